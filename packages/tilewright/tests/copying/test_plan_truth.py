# SPDX-License-Identifier: Apache-2.0
"""What a plan says of itself is what happens: counts, bytes and explanation, for all formats."""

import re
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import LayoutError
from tilewright.copying import Placement, execute, native, plan_copy
from tilewright.copying import plan as plan_module
from tilewright.formats import BLOCK_FORMATS, cast
from tilewright.layout import Layout, PagedLayout, compose, pad, row_major, with_logical_shape

from ..cases import examples
from .models import SCALARS, fitting, numbers, ragged_plan
from .test_random_plans import block_sides, scalar_sides, seeds

POISONS = (0xA5, 0x5A)


def place_of(side, name, tile, fill=0):
    return Placement(side.layout, name, fill, tile if name in BLOCK_FORMATS else 0)


def memory_of(place, side, seed):
    """Return the bytes of a source that holds ordinary numbers."""
    values = numbers(np.random.default_rng(seed), side.extents)
    flat = np.zeros(max(place.cosize, 1), dtype=np.float32)
    flat[side.layout.offsets().reshape(-1)] = values.reshape(-1)
    if str(place.format) in BLOCK_FORMATS:
        return place.format.pack(flat[: place.cosize], tile_elements=place.tile_elements)
    return cast(flat, place.format).view(np.uint8)


def run(plan, source, engine):
    """Return what an engine leaves in the target, and which bytes it wrote: those that no longer tell how they were."""
    found = [np.full(plan.target.nbytes, poison, dtype=np.uint8) for poison in POISONS]
    for target in found:
        execute(plan, source, target, engine=engine)
    return found[0], found[0] == found[1]


def check_truth(plan, source_side, target_side, memory, engines=("reference",)):
    common = [min(a, b) for a, b in zip(source_side.data, target_side.data, strict=True)]
    inside = sum(
        all(i < n for i, n in zip(at, common, strict=True)) for at in product(*map(range, target_side.extents))
    )
    assert plan.moved == inside
    assert plan.filled == prod(target_side.extents) - inside
    assert plan.cropped == prod(source_side.data) - inside
    lines = plan.explain().splitlines()
    moved, read, written = map(int, re.fullmatch(r"(\d+) elements, (\d+) bytes read, (\d+) written", lines[1]).groups())
    wanted, touched = run(plan, memory, "reference")
    assert moved == inside
    assert written == int(touched.sum())
    assert bool(read) == bool(inside)
    assert plan.filled == sum(int(n) for n in re.findall(r"^(\d+) elements of padding", "\n".join(lines), re.MULTILINE))
    assert plan.cropped == sum(
        int(n) for n in re.findall(r"^(\d+) elements of the source", "\n".join(lines), re.MULTILINE)
    )
    nests = re.findall(r"^(copy|fill|pack|unpack|clear) (\d+) (?:elements|bytes)", "\n".join(lines[1:]), re.MULTILINE)
    assert nests == [(nest.operation, str(nest.elements)) for nest in plan.nests]
    for engine in engines:
        made, bytes_written = run(plan, memory, engine)
        np.testing.assert_array_equal(made[touched], wanted[touched], err_msg=engine)
        np.testing.assert_array_equal(bytes_written, touched, err_msg=engine)


@st.composite
def cases(draw, source_names, target_names):
    """Return two sides with formats and tiles; either may reach further than the other."""
    first, second = draw(st.sampled_from(source_names)), draw(st.sampled_from(target_names))
    blocks = [BLOCK_FORMATS[name].block if name in BLOCK_FORMATS else 16 for name in (first, second)]
    source, tile = draw(block_sides(blocks[0]))
    target, other = draw(block_sides(blocks[1]))
    if first in SCALARS:
        source = draw(scalar_sides(target))
    elif second in SCALARS:
        target = draw(scalar_sides(source))
    return (first, source, tile), (second, target, other)


ALL = [*SCALARS, *BLOCK_FORMATS]


@given(case=cases(ALL, ALL), fill=st.integers(-5, 5), seed=seeds)
@examples(50)
def test_a_plan_says_what_it_does(case, fill, seed):
    (first, source, tile), (second, target, other) = case
    before = place_of(source, first, tile)
    after = place_of(target, second, other, fitting(fill, before.format.value_format))
    plan = ragged_plan(before, after)
    engines = ["native"] if native.can_run(plan) else []
    check_truth(plan, source, target, memory_of(before, source, seed), engines)


def test_every_pair_of_block_formats_is_a_plan_of_slabs(monkeypatch):
    """All pairs, in slabs so small that there are several; values are those of unpacking and packing by hand."""
    monkeypatch.setattr(plan_module, "SLAB_BYTES", 4 * 64 * 4)
    layout, rng = with_logical_shape(row_major(12, 64), (11, 50)), np.random.default_rng(3)
    values = numbers(rng, (12, 64))
    for (first, one), (second, two) in product(BLOCK_FORMATS.items(), repeat=2):
        before, after = Placement(layout, one, 0, 128), Placement(layout, two, 2, 128)
        plan = plan_copy(before, after)
        packed = one.pack(values.reshape(-1), tile_elements=128)
        logical = np.full((12, 64), 2, dtype=np.float32)
        logical[:11, :50] = one.unpack(packed, tile_elements=128).reshape(12, 64)[:11, :50]
        wanted = two.pack(logical.reshape(-1), tile_elements=128)
        for engine in ("reference", *(["native"] if native.can_run(plan) else [])):
            made, written = run(plan, packed, engine)
            np.testing.assert_array_equal(made, wanted, err_msg=f"{first} to {second}, {engine}")
            assert written.all()
        assert (plan.moved, plan.filled, plan.cropped) == (550, 12 * 64 - 550, 0)
        assert len(plan.stages) > 2
        assert plan.scratch < 550


def test_tiles_of_others_are_left_alone():
    """Only gaps of the target's own tiles are cleared: what lies between and before them belongs to somebody else."""
    place = Placement(Layout((16, 2, 3), (1, 16, 96)) + 32, "bfloat8_b", 0, 32)
    plan = plan_copy(Placement(Layout((16, 2, 3)), "float32"), place)
    tiles = np.arange(place.nbytes) // place.format.bytes_per_tile(32)
    for engine in ("reference", *(["native"] if native.can_run(plan) else [])):
        _, written = run(plan, np.ones(96, dtype=np.float32), engine)
        assert set(tiles[written]) == {1, 4, 7}, engine
        assert np.array_equal(written, np.isin(tiles, [1, 4, 7])), engine


SHARED = [
    pad(row_major(3, 5), (4, 8)),
    with_logical_shape(Layout((4, 8), (0, 1)), (3, 5)),
    with_logical_shape(Layout((4, 8), (4, 1)), (4, 5)),
    compose(PagedLayout(8, [0, 8, 4, 24]), row_major(4, 8)),
    compose(PagedLayout(8, [0, 8, 16, 24]), Layout((4, 8), (8, 0))),
]


@pytest.mark.parametrize("layout", SHARED, ids=str)
def test_no_element_is_written_over_another(layout):
    source = Placement(row_major(*Placement(layout, "int8").data_extents), "int8")
    with pytest.raises(LayoutError, match="several elements have the same offset"):
        plan_copy(source, Placement(layout, "int8"))


@pytest.mark.parametrize(
    ("source", "target", "asked"),
    [
        ((4, 8), (8, 4), {"crop", "pad"}),
        ((4, 8), (4, 6), {"crop"}),
        ((4, 6), (4, 8), {"pad"}),
        ((0, 4), (3, 4), {"pad"}),
        ((3, 4), (0, 4), {"crop"}),
        ((4, 8), (4, 8), set()),
    ],
)
def test_data_is_left_out_or_made_up_only_when_asked(source, target, asked):
    for formats in (("int8", "int8"), ("int8", "float32")):
        places = [Placement(row_major(*shape), name) for shape, name in zip((source, target), formats, strict=True)]
        for given_ in product([False, True], repeat=2):
            allowed = {name for name, on in zip(("crop", "pad"), given_, strict=True) if on}
            options = dict.fromkeys(allowed, True)
            if asked <= allowed:
                plan = plan_copy(*places, **options)
                assert (plan.cropped > 0, plan.filled > 0) == ("crop" in asked, "pad" in asked)
                continue
            missing = "|".join(f"{name}=True" for name in sorted(asked - allowed))
            with pytest.raises(LayoutError, match=missing) as told:
                plan_copy(*places, **options)
            assert str(source) in str(told.value)
            assert str(target) in str(told.value)


def test_arrays_are_told_from_placements():
    place = Placement(Layout(4), "int8")
    for ends in ((np.zeros(4), np.zeros(4)), (place, np.zeros(4)), (Layout(4), place)):
        with pytest.raises(TypeError, match=r"expects a Placement as (source|target), got (ndarray|Layout)"):
            plan_copy(*ends)
