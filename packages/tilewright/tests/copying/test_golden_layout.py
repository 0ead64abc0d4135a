# SPDX-License-Identifier: Apache-2.0
"""Layouts and host operations against the vectors recorded from ttnn, bit for bit."""

import json
from collections import Counter
from pathlib import Path

import numpy as np

from tilewright import row_major, with_logical_shape
from tilewright.copying import Placement, copy, execute, plan_copy, relayout, tilize, untilize
from tilewright.formats import BlockFormat, cast, format_of
from tilewright.layout import Layout

from ..cases import all_cases
from .models import as_bytes, assert_same_bits, golden_step, poisoned

FOLDER = Path(__file__).parent.parent / "golden" / "ttnn"


def recorded(name):
    """Return (cases, arrays) of one pair of files."""
    cases = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        return cases, {key: file[key] for key in file.files}


LAYOUTS, LAYOUT_ARRAYS = recorded("layout")
HOST_OPS, HOST_OP_ARRAYS = recorded("hostops")
TILED = [case for case in LAYOUTS if case["layout"] == "TILE"]
ROW_MAJOR = [case for case in LAYOUTS if case["layout"] == "ROW_MAJOR"]
# ttnn made one fp8_e4m3 tensor, but the recording does not say what it read back.
NOT_READ_BACK = {228}


def case_name(case):
    return f"{case['id']}-{case.get('op', case['layout'])}-{case['dtype']}"


def for_each(cases):
    return all_cases(("case", cases), groups=4, name=case_name, step=golden_step)


# Tensors made from arrays.


def array_of(case):
    """Return the input of a case; a rank of 0 was recorded as one element, and sharded blocks go through bfloat16."""
    values = LAYOUT_ARRAYS[f"c{case['id']}_in"].reshape(case["shape"])
    assert values.dtype == np.dtype(case["in_dtype"])
    through_bfloat16 = case["memory_config"] is not None and isinstance(format_of(case["dtype"]), BlockFormat)
    return cast(values, "bfloat16") if through_bfloat16 else values


def physical_of(case):
    bytes_ = LAYOUT_ARRAYS[f"c{case['id']}_phys"]
    assert bytes_.nbytes == case["nbytes"]
    return bytes_


def back_of(case):
    """Return what ttnn read back, as float32; it was not recorded where it is the input."""
    key = "in" if case["roundtrip_equals_input"] else "back"
    return LAYOUT_ARRAYS[f"c{case['id']}_{key}"].reshape(case["shape"]).astype(np.float32)


def tiles_of(case):
    return {"tile": case["tile"], "transpose": case["transpose_tile"]}


def typed(case, data):
    element = format_of(case["dtype"])
    return data if isinstance(element, BlockFormat) else data.view(element.dtype)


def layout_of(case):
    """Return the layout of a row-major tensor that is padded as recorded."""
    return with_logical_shape(row_major(*case["padded_shape"]), tuple(case["shape"] or [1]))


@for_each(TILED)
def test_a_tiled_tensor_has_the_bytes_of_ttnn(case, engine):
    out = np.zeros_like(physical_of(case))
    tilize(
        array_of(case),
        **tiles_of(case),
        dtype=case["dtype"],
        pad_value=case["pad_value"] or 0,
        out=typed(case, out),
        **engine,
    )
    np.testing.assert_array_equal(out, physical_of(case))


@for_each(TILED)
def test_a_tiled_tensor_reads_back_as_in_ttnn(case, engine):
    data = typed(case, physical_of(case))
    array = untilize(data, case["shape"], **tiles_of(case), dtype=case["dtype"], **engine)
    assert_same_bits(cast(array, "float32"), back_of(case))


@for_each(ROW_MAJOR)
def test_a_row_major_tensor_has_the_bytes_of_ttnn(case, engine):
    array = array_of(case)
    before = row_major(*array.shape) if array.shape else Layout((1,))
    made = relayout(
        array,
        before,
        layout_of(case),
        dtype=case["dtype"],
        pad_value=case["pad_value"] or 0,
        out=poisoned(layout_of(case).size, format_of(case["dtype"]).dtype),
        **engine,
    )
    np.testing.assert_array_equal(as_bytes(made), physical_of(case))


@for_each([case for case in ROW_MAJOR if case["id"] not in NOT_READ_BACK])
def test_a_row_major_tensor_reads_back_as_in_ttnn(case, engine):
    shape = case["shape"] or [1]
    data = typed(case, physical_of(case))
    out = poisoned(int(np.prod(shape)), "float32")
    relayout(data, layout_of(case), row_major(*shape), dtype="float32", out=out, **engine)
    assert_same_bits(out.reshape(case["shape"]), back_of(case))


def test_every_recorded_layout_is_replayed():
    assert len(LAYOUTS) == len(TILED) + len(ROW_MAJOR) == 229
    assert [case["id"] for case in LAYOUTS] == list(range(229))
    used = {f"c{case['id']}_{part}" for case in LAYOUTS for part in ("in", "phys")}
    read_back = [case for case in LAYOUTS if case["id"] not in NOT_READ_BACK]
    assert len(read_back) == 228
    used |= {f"c{case['id']}_back" for case in read_back if not case["roundtrip_equals_input"]}
    assert used == set(LAYOUT_ARRAYS)
    assert len({tuple(case["tile"]) for case in TILED}) == 12
    assert Counter(case["transpose_tile"] for case in TILED) == {False: 184, True: 16}
    assert sum(case["memory_config"] is not None for case in LAYOUTS) == 28


# Operations on tensors of the host.


def pad_to_tile(case, values, engine):
    memory_layout = with_logical_shape(row_major(*case["padded_shape"]), values.shape)
    return relayout(values, row_major(*values.shape), memory_layout, pad_value=case["args"]["pad_value"], **engine)


def to_tiles(case, values, engine):
    return tilize(values, pad_value=case["args"]["pad_value"], **engine)


def to_tiles_and_back(case, values, engine):
    return untilize(to_tiles(case, values, engine), values.shape, **engine)


def pad_anywhere(case, values, engine):
    """Fill with a plan whose source is empty, then copy into a window."""
    shape, start = case["args"]["output_padded_shape"], case["args"]["input_tensor_start"]
    nothing, everything = row_major(*[0 for _ in shape]), row_major(*shape)
    padded = poisoned(everything.size, values.dtype)
    value = case["args"]["pad_value"]
    relayout(np.zeros(0, dtype=values.dtype), nothing, everything, pad_value=value, out=padded, **engine)
    window = tuple(slice(s, s + n) for s, n in zip(start, values.shape, strict=True))
    padded = padded.reshape(shape)
    copy(values, padded[window], **engine)
    return padded


def unpad(case, values, engine):
    """Crop by a plan: the source starts at the window and goes on to its end, the target is smaller."""
    start, end = case["args"]["start"], case["args"]["end"]
    shape = [stop - first for first, stop in zip(start, end, strict=True)]
    whole = row_major(*values.shape)
    rest = tuple(n - first for n, first in zip(values.shape, start, strict=True))
    window = Layout(rest, whole.stride) + whole(*start)
    out = poisoned(int(np.prod(shape)), values.dtype)
    return relayout(values, window, row_major(*shape), out=out, crop=True, **engine)


def packed(values, element, engine):
    """Return values that are in physical order already, as tiles of a block format."""
    memory_layout = Layout(values.size)
    target = Placement(memory_layout, element, tile_elements=1024)
    out = poisoned(target.nbytes, "uint8")
    execute(plan_copy(Placement(memory_layout, "float32"), target), values, out, **engine)
    return out


def unpacked(data, element, count, engine):
    memory_layout = Layout(count)
    out = poisoned(count, "float32")
    execute(
        plan_copy(Placement(memory_layout, element, tile_elements=1024), Placement(memory_layout, "float32")),
        data,
        out,
        **engine,
    )
    return out


def typecast(case, values, engine):
    tiles, element = tilize(values, **engine), format_of(case["args"]["dtype"])
    if isinstance(element, BlockFormat):
        return packed(tiles, element, engine)
    return relayout(tiles, Layout(tiles.size), Layout(tiles.size), dtype=element, **engine)


def unpack_blocks(case, values, engine):
    tiles = tilize(values, dtype="bfloat8_b", **engine)
    return unpacked(tiles, "bfloat8_b", int(np.prod(case["padded_shape"])), engine)


def blocks_to_blocks(case, values, engine):
    return packed(unpack_blocks(case, values, engine), "bfloat4_b", engine)


OPERATIONS = {
    "pad_to_tile": pad_to_tile,
    "to_layout_TILE": to_tiles,
    "to_layout_TILE_then_ROW_MAJOR": to_tiles_and_back,
    "Tensor.pad": pad_anywhere,
    "Tensor.unpad": unpad,
    "typecast_TILE": typecast,
    "bfloat8_b_TILE_typecast_float32": unpack_blocks,
    "bfloat8_b_TILE_typecast_bfloat4_b": blocks_to_blocks,
}


@for_each(HOST_OPS)
def test_a_host_operation_is_a_plan_with_the_bytes_of_ttnn(case, engine):
    values = HOST_OP_ARRAYS[f"h{case['id']}_in"]
    assert list(values.shape) == case["in_shape"]
    made = OPERATIONS[case["op"]](case, values, engine)
    np.testing.assert_array_equal(as_bytes(made), HOST_OP_ARRAYS[f"h{case['id']}_phys"])


def test_every_recorded_host_operation_is_replayed():
    assert len(HOST_OPS) == 68
    used = {f"h{case['id']}_{part}" for case in HOST_OPS for part in ("in", "phys")}
    assert used == set(HOST_OP_ARRAYS)
    assert {case["op"] for case in HOST_OPS} == set(OPERATIONS)
