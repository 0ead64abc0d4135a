# SPDX-License-Identifier: Apache-2.0
"""Casts and block floats recorded from ttnn, through plans on every engine; cases of one kind share a plan."""

from itertools import product

import numpy as np
import pytest

import tilewright as tw
from tests.formats import test_golden_blocks as blocks
from tests.formats import test_golden_casts as casts
from tilewright.copying import Placement, execute, opencl, plan_copy
from tilewright.copying.codegen import supports_formats
from tilewright.errors import FormatError
from tilewright.formats import BLOCK_FORMATS, BlockFormat, format_of
from tilewright.formats.scalars import E2M1
from tilewright.layout import Layout

from ..cases import all_cases
from .models import golden_step, poisoned


def grouped(cases, key):
    """Return the cases of each key, in the order in which keys first occur."""
    found = {}
    for case in cases:
        found.setdefault(key(case), []).append(case)
    return found


def named(key):
    return "-".join(map(str, key))


def moved(data, source, target, engine):
    """Return what a plan makes of elements that lie one after another."""
    memory_layout = Layout(data.size if source.tile_elements == 0 else source.cosize)
    assert memory_layout.size == target.cosize
    out = poisoned(target.nbytes, "uint8")
    execute(plan_copy(source, target), data, out, **engine)
    return out


PAIRS = grouped(casts.NAMED, lambda case: (case["src"], case["dst"]))


@all_cases(("pair", PAIRS), groups=2, name=named, step=golden_step)
def test_casts_are_those_of_ttnn(pair, engine):
    source, target = map(format_of, pair)
    inputs = [casts.ARRAYS[f"{case['id']}_in"].astype(source.dtype).reshape(-1) for case in PAIRS[pair]]
    outputs = [casts.ARRAYS[f"{case['id']}_out"].reshape(-1) for case in PAIRS[pair]]
    memory_layout = Layout(sum(values.size for values in inputs))
    made = moved(np.concatenate(inputs), Placement(memory_layout, source), Placement(memory_layout, target), engine)
    assert made.tobytes() == b"".join([values.tobytes() for values in outputs])


@all_cases(("name, into", [("f32_to_bf16", "bfloat16"), ("f32_to_fp8", "float8_e4m3")]), groups=2)
def test_float32_is_rounded_as_in_ttnn(name, into, engine):
    arrays = {key: casts.ARRAYS[key] for key in casts.ARRAYS if key.startswith(name)}
    source = next(values for key, values in arrays.items() if "_in" in key).view(np.float32).reshape(-1)
    wanted = next(values for key, values in arrays.items() if "_out" in key)
    memory_layout = Layout(source.size)
    made = moved(source, Placement(memory_layout, "float32"), Placement(memory_layout, into), engine)
    assert made.tobytes() == wanted.tobytes()


def block_key(case):
    return blocks.block_format(case).name, blocks.tile_elements(case), blocks.physical(case).dtype.name


KINDS = grouped(blocks.CASES, block_key)
PACKED = grouped(blocks.CASES, lambda case: block_key(case)[:2])


@all_cases(("kind", KINDS), groups=2, name=named, step=golden_step)
def test_blocks_are_packed_as_in_ttnn(kind, engine):
    name, elements, source = kind
    values = np.concatenate([blocks.physical(case).reshape(-1) for case in KINDS[kind]])
    memory_layout = Layout(values.size)
    made = moved(
        values, Placement(memory_layout, source), Placement(memory_layout, name, tile_elements=elements), engine
    )
    wanted = np.concatenate([blocks.ARRAYS[f"{case['id']}_packed"] for case in KINDS[kind]])
    np.testing.assert_array_equal(made, wanted)


@all_cases(("kind", PACKED), groups=2, name=named, step=golden_step)
def test_blocks_are_unpacked_as_in_ttnn(kind, engine):
    name, elements = kind
    packed = [blocks.ARRAYS[f"{case['id']}_packed"] for case in PACKED[kind]]
    sizes = [data.size // format_of(name).bytes_per_tile(elements) * elements for data in packed]
    memory_layout = Layout(sum(sizes))
    place = Placement(memory_layout, name, tile_elements=elements)
    made = moved(np.concatenate(packed), place, Placement(memory_layout, "float32"), engine).view(np.float32)
    for case, values in zip(PACKED[kind], np.split(made, np.cumsum(sizes)[:-1]), strict=True):
        if "shape" in case:
            turned = case.get("transpose_tile", False)
            values = blocks.untilized(values, case["shape"], case["tile"], turned)
        wanted = blocks.ARRAYS[f"{case['id']}_unpacked"]
        np.testing.assert_array_equal(np.ascontiguousarray(values).view(np.uint32), wanted.view(np.uint32))


def test_every_recorded_case_is_replayed():
    assert sum(map(len, PAIRS.values())) == len(casts.NAMED) == len(casts.CASES) - 2
    assert sum(map(len, KINDS.values())) == sum(map(len, PACKED.values())) == len(blocks.CASES)


def awkward_values(dtype, seed):
    """Return a matrix of values in which every rule of a block format is met: ties, specials, zeros, any bits."""
    rng = np.random.default_rng(seed)
    shape = (64, 96)
    values = (rng.standard_normal(shape) * np.exp2(rng.integers(-8, 8, shape))).astype(np.float32)
    if seed % 4 == 1:  # any bits
        values = rng.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32).view(np.float32)
    elif seed % 4 == 2:  # some specials
        specials = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0, 3.4e38, 1e-45, -1e-40], np.float32)
        values = np.where(rng.random(shape) < 0.02, rng.choice(specials, shape), values)
    elif seed % 4 == 3:  # many ties
        values = (rng.integers(-64, 64, shape) / rng.choice([1, 2, 4, 8, 16], shape)).astype(np.float32)
    with np.errstate(all="ignore"):
        return values.astype(format_of(dtype).dtype)


@pytest.mark.parametrize("name", BLOCK_FORMATS)
def test_devices_pack_and_unpack_every_format_as_the_reference(name):
    if opencl.unavailable_reason():
        pytest.skip(opencl.unavailable_reason())
    for seed, dtype in product(range(4), ("float32", "bfloat16", "float16")):
        values = awkward_values(dtype, seed)
        for label, part in (("tiles", values), ("columns", values.T), ("ragged", values[:50, :70])):
            case = f"{dtype}, {label}, seed {seed}"
            packed = tw.tilize(part, dtype=name, engine="reference")
            np.testing.assert_array_equal(tw.tilize(part, dtype=name, engine="opencl"), packed, err_msg=case)
            if seed % 4 == 1 and not name.endswith("_a"):  # whose exponents have five bits
                packed = np.random.default_rng(seed).integers(0, 256, packed.size).astype(np.uint8)
            for out in ("float32", "bfloat16"):
                made, wanted = (
                    tw.untilize(packed, part.shape, dtype=name, out_dtype=out, engine=engine)
                    for engine in ("opencl", "reference")
                )
                bits = np.uint32 if out == "float32" else np.uint16
                np.testing.assert_array_equal(made.view(bits), wanted.view(bits), err_msg=f"{case} to {out}")


def test_a_block_format_that_devices_do_not_know_is_refused_by_name():
    element = BlockFormat("my_blocks", 16, E2M1, format_of("mxfp4").scale)
    memory_layout = Layout(64)
    plan = plan_copy(Placement(memory_layout, "float32"), Placement(memory_layout, element, tile_elements=16))
    assert not supports_formats(plan)
    for dialect in ("opencl", "cuda"):
        with pytest.raises(FormatError, match=r"my_blocks is not supported on devices.*engine='reference'"):
            plan.code(dialect)
