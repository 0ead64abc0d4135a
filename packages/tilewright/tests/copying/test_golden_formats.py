# SPDX-License-Identifier: Apache-2.0
"""Casts and block floats recorded from ttnn, through plans on every engine; cases of one kind share a plan."""

import numpy as np

from tests.formats import test_golden_blocks as blocks
from tests.formats import test_golden_casts as casts
from tilewright.copying import Placement, execute, plan_copy
from tilewright.formats import format_of
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
