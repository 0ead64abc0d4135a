# SPDX-License-Identifier: Apache-2.0
"""Plans as values: cached, free of addresses, complete, and able to say what they do."""

import re
from collections import Counter
from copy import deepcopy
from itertools import product
from math import prod
from operator import mul

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import LayoutError, addr, bank
from tilewright.copying import Placement, execute, plan_copy
from tilewright.formats import BLOCK_FORMATS, format_of
from tilewright.layout import (
    Guard,
    Layout,
    Swizzle,
    col_major,
    compose,
    pad,
    replicate,
    row_major,
    tiled_layout,
    with_logical_shape,
)

from .models import SCALARS, any_bits, assert_same_bits, ragged_plan
from .strategies import pairs, size_of

fewer = settings(max_examples=max(1, settings().max_examples // 2))
formats = st.tuples(st.sampled_from(SCALARS), st.sampled_from(SCALARS))


def plan_of(pair, elements=("int16", "float32"), fill=0):
    return ragged_plan(Placement(pair.source.layout, elements[0]), Placement(pair.target.layout, elements[1], fill))


# The bytes that a plan reads and writes, by enumeration.


def nest_offsets(extents, steps, offset):
    """Yield an offset for each turn of a loop nest."""
    for turn in product(*map(range, extents)):
        yield offset + sum(i * step for i, step in zip(turn, steps, strict=True))


def table(layout, tabulated):
    """Yield the place of each entry of a table, in elements."""
    if tabulated is None:
        yield 0
        return
    spans = [
        (mode, radix, start, count) for mode, digits in enumerate(tabulated.digits) for radix, start, count in digits
    ]
    for digits in product(*[range(start, start + count) for _, _, start, count in spans]):
        index = [0] * len(tabulated.digits)
        for (mode, radix, _, _), digit in zip(spans, digits, strict=True):
            index[mode] += digit * radix
        yield layout.extended(*index)


def elements_at(nest, place, steps, offset):
    """Return the offset of each element that a nest of copies or fills touches on one side."""
    starts = [entry * place.itemsize for entry in table(place.layout, nest.tabulated)]
    return [start + at for start in starts for at in nest_offsets(nest.extents, steps, offset)]


def bytes_at(offsets, size):
    return Counter(at + k for at in offsets for k in range(size))


def written_by(plan):
    """Return how often a plan of scalars writes each byte of the target."""
    found = Counter()
    for nest in plan.nests:
        assert nest.operation in ("copy", "fill")
        found += bytes_at(elements_at(nest, plan.target, nest.target, nest.target_offset), plan.target.itemsize)
    return found


@given(pair=pairs(), elements=formats)
def test_every_byte_of_the_target_is_written_once_and_no_other(pair, elements):
    plan = plan_of(pair, elements)
    places = pair.target.layout.offsets().reshape(-1).tolist()
    size = format_of(elements[1]).itemsize
    assert written_by(plan) == bytes_at([place * size for place in places], size)


@given(pair=pairs(), elements=formats)
@fewer
def test_only_data_that_has_a_place_in_the_target_is_read(pair, elements):
    plan = plan_of(pair, elements)
    size = format_of(elements[0]).itemsize
    box = tuple(slice(min(a, b)) for a, b in zip(pair.source.data, pair.target.data, strict=True))
    wanted = Counter((pair.source.layout.offsets()[box] * size).reshape(-1).tolist())
    found = Counter()
    for nest in plan.nests:
        if nest.operation == "copy":
            found.update(elements_at(nest, plan.source, nest.source, nest.source_offset))
    assert found == wanted


@given(pair=pairs())
def test_what_is_moved_filled_and_left_out_adds_up(pair):
    plan = plan_of(pair)
    common = [min(a, b) for a, b in zip(pair.source.data, pair.target.data, strict=True)]
    assert plan.moved == prod(common)
    assert plan.moved + plan.filled == size_of(pair.target)
    assert plan.moved + plan.cropped == prod(pair.source.data)
    assert plan.filled == sum(nest.elements for nest in plan.nests if nest.operation == "fill")


BLOCK_PLANS = [
    ((100, 70), {}),
    ((100, 70), {"transpose": True}),
    ((2, 3, 40, 33), {"tile": (32, 16)}),
    ((9, 65), {"tile": (8, 64), "face": (4, 8)}),
    ((7,), {}),
    ((33, 20), {"tile": (4, 32), "face": (4, 16)}),
]


@pytest.mark.parametrize(("shape", "tiling"), BLOCK_PLANS)
@pytest.mark.parametrize("name", ["bfloat8_b", "bfloat4_b", "bfloat2_a", "mxfp6_e2m3", "nvfp4"])
def test_every_scale_and_every_code_is_written_once(name, shape, tiling):
    element, elements = BLOCK_FORMATS[name], prod(tiling.get("tile", (32, 32)))
    matrix = (1,) * (2 - len(shape)) + shape
    target = Placement(tiled_layout(shape, **tiling), element, tile_elements=elements)
    plan = plan_copy(Placement(row_major(*matrix), "float32"), target)
    sections = element.sections(elements)
    found = Counter()
    for nest in plan.nests:
        if nest.operation == "clear":
            found += bytes_at(nest_offsets(nest.extents, nest.target, nest.target_offset), 1)
            continue
        assert nest.operation == "pack"
        assert len(nest.element_offsets) == element.block
        found += bytes_at(
            nest_offsets(nest.extents, nest.target, nest.target_offset), element.block * element.bits // 8
        )
        found += bytes_at(nest_offsets(nest.extents, nest.scale, nest.scale_offset), 1)
    tiles = target.nbytes // sections.total
    assert found == Counter(range(tiles * sections.total))  # the gaps between scales and codes, too
    assert plan.moved == prod(shape)
    assert plan.moved + plan.filled == tiles * elements


# Values.


@given(pair=pairs(), elements=formats)
@fewer
def test_equal_placements_have_one_plan(pair, elements):
    alike = deepcopy(pair)
    assert alike.target.layout is not pair.target.layout
    assert plan_of(alike, elements, fill=1) is plan_of(pair, elements, fill=1)


DIFFERENT = [
    (Placement(Layout(8), "int8"), Placement(pad(Layout(5), 8), "int8")),
    (Placement(pad(Layout(5), 8), "int8"), Placement(pad(Layout(6), 8), "int8")),
    (Placement(row_major(4, 8), "int8"), Placement(with_logical_shape(row_major(4, 8), (4, 7)), "int8")),
    (Placement(Layout(8), "int8"), Placement(Layout(8), "uint8")),
    (Placement(Layout(8), "int8"), Placement(Layout(8), "int8", fill=1)),
    (Placement(Layout(8), "float32", fill=0.0), Placement(Layout(8), "float32", fill=-0.0)),
    (Placement(Layout(8), "int8"), Placement(Layout(8, 2), "int8")),
    (Placement(Layout(8), "int8"), Placement(Layout(8) + 1, "int8")),
    (Placement(row_major(4, 8), "int8"), Placement(compose(Swizzle(1, 0, 3), row_major(4, 8)), "int8")),
    (
        Placement(compose(Swizzle(1, 0, 3), row_major(4, 8)), "int8"),
        Placement(compose(Swizzle(1, 0, 3), with_logical_shape(row_major(4, 8), (3, 8))), "int8"),
    ),
    (
        Placement(Layout(64), "bfloat8_b", tile_elements=64),
        Placement(Layout(64), "bfloat8_b", tile_elements=32),
    ),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_placements_that_differ_have_plans_of_their_own(one, other):
    assert one.key != other.key
    source = Placement(Layout(one.extents), "float32")
    plans = [ragged_plan(source, place) for place in (one, other, one)]
    assert plans[0] is plans[2]
    assert plans[0] is not plans[1]
    assert plans[0].target.key == one.key
    assert plans[1].target.key == other.key


def test_the_cache_forgets_but_plans_stay_the_same():
    places = Placement(row_major(4, 8), "int8"), Placement(col_major(4, 8), "int8")
    plan = plan_copy(*places)
    for n in range(1, 1200):
        plan_copy(Placement(Layout(n), "int8"), Placement(Layout(n), "int8"))
    assert plan_copy(*places).nests == plan.nests


def test_one_plan_serves_arrays_at_any_address(engine):
    plan = plan_copy(Placement(row_major(30, 40), "int32"), Placement(tiled_layout((30, 40)), "float32", 5))
    results = []
    for shift in (0, 1, 2, 3, 16, 61):
        array = np.ndarray((30, 40), np.int32, np.zeros(5000 + shift, dtype=np.uint8), offset=shift)
        array[...] = np.arange(1200).reshape(30, 40) - 600
        out = np.ndarray((2048,), np.float32, np.zeros(8192 + shift, dtype=np.uint8), offset=shift)
        execute(plan, array, out, **engine)
        results.append(out.copy())
    for result in results:
        assert_same_bits(result, results[0])
    assert np.isin(np.arange(1200) - 600, results[0]).all()


def test_a_plan_is_frozen():
    plan = plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int8"))
    with pytest.raises(AttributeError):
        plan.nests = ()
    with pytest.raises(AttributeError):
        plan.source.layout = Layout(5)


# What it is made of.


@pytest.mark.parametrize(
    ("source", "target", "nests"),
    [
        (row_major(64, 96), row_major(64, 96), 1),
        (row_major(64, 96), col_major(64, 96), 1),
        (row_major(64, 96), tiled_layout((64, 96)), 1),
        (row_major(2, 3, 64, 96), tiled_layout((2, 3, 64, 96)), 1),
        (tiled_layout((64, 96)), tiled_layout((64, 96), (8, 32)), 1),
    ],
)
def test_whole_tiles_need_a_single_loop_nest(source, target, nests):
    assert len(plan_copy(Placement(source, "float32"), Placement(target, "float32")).nests) == nests


def test_neighbours_are_joined_to_the_longest_run():
    plan = plan_copy(Placement(row_major(4, 5, 6), "int8"), Placement(row_major(4, 5, 6), "int16"))
    assert plan.nests[0].extents == (120,)
    tiled = plan_copy(Placement(row_major(64, 96), "float32"), Placement(tiled_layout((64, 96)), "float32"))
    assert tiled.nests[0].extents[-1] == 16


def test_what_is_not_strided_is_looked_up_only_where_it_must_be():
    page, banks, rounds = 64, 12, 9
    banked = compose(Layout((page, banks, rounds), (1, rounds * page, page)), Layout((page, (5, 7)), (1, (64, 320))))
    plan = plan_copy(Placement(row_major(64, 35), "int8"), Placement(banked, "int8"))
    assert [nest.tabulated.count for nest in plan.nests] == [35]


# In words.

ORDINARY = [
    (row_major(64, 96), "float32", tiled_layout((64, 96)), "bfloat16"),
    (row_major(1000, 1000), "float32", tiled_layout((1000, 1000)), "float32"),
    (row_major(8192, 8192), "float32", tiled_layout((8192, 8192)), "bfloat8_b"),
    (row_major(37, 50021), "float32", tiled_layout((37, 50021)), "bfloat4_b"),
    (row_major(8, 3, 224, 224), "float32", tiled_layout((8, 3, 224, 224)), "bfloat16"),
    (row_major(2, 3, 40, 50), "float32", tiled_layout((2, 3, 40, 50)), "bfloat8_b"),
    (row_major(8192, 8192), "float32", col_major(8192, 8192), "float32"),
    (row_major(4, 8), "int8", row_major(4, 6), "int8"),
    (row_major(3, 8), "int8", with_logical_shape(row_major(4, 8), (3, 8)), "float32"),
]


def ordinary(source, before, target, after):
    tile = 1024 if after.startswith("bfloat") and after.endswith("_b") else 0
    return ragged_plan(Placement(source, before), Placement(target, after, 7, tile))


@pytest.mark.parametrize(("source", "before", "target", "after"), ORDINARY)
def test_an_explanation_names_the_counts(source, before, target, after):
    plan = ordinary(source, before, target, after)
    text = plan.explain()
    head, counts, *rest = text.splitlines()
    assert head.endswith(f"{before} -> {after}")
    assert counts.startswith(f"{plan.moved} elements, ")
    assert counts.endswith(f"{plan.target.nbytes} written")
    filled = re.findall(r"^(\d+) elements of padding are filled with 7 \((\S+) %\)$", text, re.MULTILINE)
    cropped = re.findall(r"^(\d+) elements of the source are cropped", text, re.MULTILINE)
    assert [int(n) for n, _ in filled] == ([plan.filled] if plan.filled else [])
    assert all(float(share) == pytest.approx(100 * plan.filled / target.size, abs=0.05) for _, share in filled)
    assert [int(n) for n in cropped] == ([plan.cropped] if plan.cropped else [])
    assert len(rest) >= len(plan.nests)


@pytest.mark.parametrize(("source", "before", "target", "after"), ORDINARY)
def test_an_explanation_fits_a_terminal(source, before, target, after):
    assert max(map(len, ordinary(source, before, target, after).explain().splitlines())) <= 80


@given(pair=pairs())
@fewer
def test_the_loops_that_are_shown_are_the_loops_that_run(pair):
    plan = plan_of(pair)
    nests = []
    for line in plan.explain().splitlines()[1:]:
        head = re.match(r"(copy|fill) (\d+) elements( in runs of (\d+))?$", line)
        loop = re.match(r"  for (\d+)(:| offsets)", line)
        if head:
            nests.append([head[1], int(head[2]), 1])
        elif loop:
            nests[-1][2] *= int(loop[1])
    assert [(operation, count) for operation, count, _ in nests] == [(p.operation, p.elements) for p in plan.nests]
    assert all(count == turns for _, count, turns in nests)


def test_a_tilize_runs_along_the_rows_of_a_face():
    assert "runs of 16" in ordinary(*ORDINARY[0]).explain()


# What cannot be planned.


modes = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.sampled_from([1, -1])), min_size=1, max_size=3)


@given(modes, st.sampled_from([0, 0, 1, 2, 5, 24]), st.booleans())
def test_a_copy_is_refused_exactly_where_it_would_start_before_its_memory(modes, offset, is_source):
    shape = [n for n, _, _ in modes]
    logical = [max(0, n - less) for n, less, _ in modes]
    signed = tuple([step * sign for step, (_, _, sign) in zip(row_major(*shape).stride, modes, strict=True)])
    place = Placement(with_logical_shape(Layout(tuple(shape), signed, offset=offset), logical), "int8")
    plain = Placement(row_major(*shape), "int8")
    touched = logical if is_source else shape  # padding is written, but not read
    places = [offset + sum(map(mul, coord, signed)) for coord in product(*map(range, touched))]
    if min(places, default=0) < 0:
        with pytest.raises(LayoutError, match="before the start of its memory"):
            ragged_plan(place, plain) if is_source else ragged_plan(plain, place)
    else:
        plan = ragged_plan(place, plain) if is_source else ragged_plan(plain, place)
        assert plan.moved == prod(logical)


def test_modes_must_match():
    with pytest.raises(LayoutError, match=r"1 modes.* 2"):
        plan_copy(Placement(Layout(32), "int8"), Placement(row_major(4, 8), "int8"))


def test_bytes_have_no_named_axes():
    with pytest.raises(LayoutError, match="bank, addr"):
        Placement(Layout((4, 8), (1 @ bank, 1 @ addr)), "int8")


def test_replicas_are_copied_one_by_one():
    with pytest.raises(LayoutError, match="replicas"):
        Placement(replicate(Layout(4), 2, 4), "int8")


def test_a_placement_needs_a_layout():
    with pytest.raises(TypeError, match="layout"):
        Placement((4, 8), "int8")


@pytest.mark.parametrize("name", BLOCK_FORMATS)
def test_a_tile_of_blocks_is_a_whole_number_of_them(name):
    block = BLOCK_FORMATS[name].block
    with pytest.raises(LayoutError, match=str(block)):
        Placement(row_major(4, 5), name, tile_elements=20)


@pytest.mark.parametrize(
    "layout",
    [
        Layout(64, 2),
        Layout((16, 4), (1, 20)),
        row_major(16, 4, 1)[:, :, 0] + 4,
        Layout((8, 8), (1, 16)),
        Layout(64, -1) + 63,
        compose(Swizzle(2, 0, 4), Layout(64)),
        Layout((64, 2), (1, 80)),
        Layout((16, 3), (1, 32)),
    ],
    ids=[
        "every other",
        "gaps",
        "not at a tile",
        "half blocks",
        "backwards",
        "swizzled",
        "between tiles",
        "across tiles",
    ],
)
@pytest.mark.parametrize("packs", [True, False])
def test_blocks_must_lie_in_whole_tiles(layout, packs):
    places = Placement(Layout(layout.shape), "float32"), Placement(layout, "bfloat8_b", tile_elements=64)
    with pytest.raises(LayoutError, match=r"blocks|tile|strided"):
        plan_copy(*(places if packs else places[::-1]))


def test_blocks_are_not_packed_from_what_has_no_strides():
    source = compose(Swizzle(2, 0, 4), Layout(1024))
    with pytest.raises(LayoutError, match="strides"):
        plan_copy(Placement(source, "float32"), Placement(Layout(1024), "bfloat8_b", tile_elements=1024))


def test_padding_across_modes_has_no_extents():
    slanted = Layout((4, 4), (4, 1), guards=(Guard((1, 1), 4),))
    with pytest.raises(LayoutError, match="across modes"):
        plan_copy(Placement(row_major(4, 4), "int8"), Placement(slanted, "int8"))


def test_a_source_of_random_bits_moves_through_a_cached_plan_unchanged(engine):
    source, target = row_major(20, 30), col_major(20, 30)
    array = any_bits(np.random.default_rng(9), (20, 30), "float64")
    out = np.zeros((30, 20))
    for _ in range(2):
        execute(plan_copy(Placement(source, "float64"), Placement(target, "float64")), array, out, **engine)
        assert_same_bits(out, np.ascontiguousarray(array.T))


def test_a_word_does_not_fill_padding():
    with pytest.raises(TypeError, match="expected a number to fill padding with, got 'tile'"):
        Placement(row_major(4, 8), "float32", fill="tile")
