# SPDX-License-Identifier: Apache-2.0
"""Faults of the copying package that were found once and must not come back."""

import numpy as np
import pytest

from tilewright import FormatError, LayoutError, TilewrightError, TransferError
from tilewright.copying import Placement, copy, execute, plan_copy, relayout, tilize, untilize
from tilewright.copying.placement import prefix_boxes, suffix_boxes
from tilewright.formats import format_of
from tilewright.layout import Layout, pad, row_major, tiled_layout

from .models import any_bits, assert_same_bits, numbers, poisoned, ragged_plan, tilized


@pytest.mark.parametrize("tile", [(4, 32), (8, 16), (1, 32), (1, 16), (2, 16)])
@pytest.mark.parametrize("name", ["bfloat8_b", "bfloat4_b", "bfloat2_b"])
def test_the_gap_after_the_scales_is_zero(engine, name, tile):
    array = numbers(np.random.default_rng(1), (20, 40))
    wanted = format_of(name).pack(tilized(array, tile), tile[0] * tile[1])
    out = poisoned(wanted.size, "uint8")
    assert_same_bits(tilize(array, tile, dtype=name, out=out, **engine), wanted)


@pytest.mark.parametrize("dtype", [">f4", ">i2", ">u8"])
def test_another_byte_order_is_refused_or_honoured(engine, dtype):
    array = np.arange(1024, dtype=dtype).reshape(32, 32)
    calls = [
        lambda: tilize(array, **engine),
        lambda: copy(array, np.zeros(array.shape, np.dtype(dtype).newbyteorder("=")), **engine),
        lambda: copy(array.astype(np.dtype(dtype).newbyteorder("=")), np.zeros(array.shape, dtype), **engine),
        lambda: untilize(array.reshape(-1), (32, 32), **engine),
        lambda: relayout(array, row_major(32, 32), row_major(32, 32), **engine),
    ]
    for call in calls:
        with pytest.raises(FormatError, match="byte order"):
            call()


def test_places_below_zero_are_refused():
    down, up = Placement(Layout(4, -1), "int8"), Placement(Layout(4), "int8")
    for source, target in ((down, up), (up, down)):
        with pytest.raises(LayoutError, match="offset of 3"):
            plan_copy(source, target)


def test_long_rows_do_not_recurse(engine):
    array = any_bits(np.random.default_rng(1), (3, (1 << 21) + 1), "int8")
    out = np.zeros((3, (1 << 21) + 5), np.int8)
    copy(array, out[:, : array.shape[1]], **engine)
    assert (out[:, : array.shape[1]] == array).all()


def test_a_mode_of_one_that_is_all_padding_is_filled(engine):
    plan = ragged_plan(Placement(row_major(0, 4), "int8"), Placement(row_major(1, 4), "int8", fill=7))
    out = poisoned(4, "int8")
    execute(plan, np.zeros(0, np.int8), out, **engine)
    assert out.tolist() == [7] * 4


def test_blocks_of_a_mode_of_one_that_is_all_padding_are_filled(engine):
    plan = ragged_plan(Placement(row_major(0, 16), "float32"), Placement(row_major(1, 16), "bfloat8_b", 1, 16))
    out = np.full(32, 0xEE, np.uint8)
    execute(plan, np.zeros(0, np.float32), out, **engine)
    assert out[[0, 16, 31]].tolist() == [127, 64, 64]


def test_a_mode_without_leaves_has_one_index():
    assert suffix_boxes([], 0) == [[]]
    assert suffix_boxes([], 1) == []
    assert prefix_boxes([], 0) == []


def test_the_padding_of_a_composition_is_padding(engine):
    source = pad(Layout((1, (2, 2)), (0, (2, 1))), (1, 5))
    assert [source.valid(0, k) for k in range(5)] == [True] * 4 + [False]
    plan = ragged_plan(Placement(source, "int8"), Placement(row_major(1, 5), "int8", fill=9))
    assert (plan.moved, plan.filled) == (4, 1)


def test_blocks_without_a_tile_size_are_refused():
    with pytest.raises(LayoutError):
        plan_copy(Placement(row_major(4, 16), "float32"), Placement(row_major(4, 16), "bfloat8_b"))


def test_blocks_from_nested_strides_that_do_not_divide_are_refused_with_a_reason():
    odd = Layout(((5, 13), 1), ((1, 5), 65))
    with pytest.raises(LayoutError, match="block format"):
        plan_copy(Placement(odd, "float32"), Placement(Layout((64, 1), (1, 64)), "bfloat8_b", tile_elements=64))


def test_an_empty_nested_source_packs_padding():
    plan = ragged_plan(
        Placement(Layout(((0, 3), 16), ((16, 0), 1)), "float32"),
        Placement(row_major(2, 16), "bfloat8_b", tile_elements=32),
    )
    assert plan.moved == 0


@pytest.mark.parametrize("shape", [(1000, 1000), (8192, 8192), (8, 3, 224, 224)])
def test_an_explanation_fits_a_terminal(shape):
    text = plan_copy(Placement(row_major(*shape), "float32"), Placement(tiled_layout(shape), "bfloat16")).explain()
    assert max(map(len, text.splitlines())) <= 80


def test_threads_are_checked_by_every_engine(engine):
    with pytest.raises(TransferError):
        tilize(np.ones((2, 2)), engine=engine["engine"], threads=-1)


def test_a_variable_that_is_no_number_is_refused_by_name(monkeypatch, fast_engine):
    monkeypatch.setenv("TILEWRIGHT_THREADS", "many")
    with pytest.raises(TransferError, match="TILEWRIGHT_THREADS"):
        tilize(np.ones((2, 2)), engine="native")


def test_out_of_another_format_than_asked_is_refused(engine):
    with pytest.raises(TilewrightError):
        untilize(
            np.zeros(4, np.int32), (2, 2), (2, 2), None, out_dtype="int8", out=np.zeros((2, 2), np.float64), **engine
        )


def test_a_target_that_overlaps_itself_is_refused():
    with pytest.raises(TilewrightError):
        plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4, 0), "int8"))
