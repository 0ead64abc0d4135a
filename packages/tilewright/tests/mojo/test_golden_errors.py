# SPDX-License-Identifier: Apache-2.0
"""Mojo's catalogue of edge cases, and our answer to each: a text or a refusal.

Where Mojo answers and `DIFFERENT` does not name the case, our text is Mojo's.
"""

import pytest

from tilewright import LayoutError
from tilewright.errors import CoordinateError
from tilewright.mojo import DType
from tilewright.mojo.layout import (
    Coord,
    Idx,
    Layout,
    TileTensor,
    col_major,
    coord,
    lt_to_tt,
    row_major,
    stack_allocation,
)
from tilewright.mojo.layout.swizzle import make_swizzle
from tilewright.mojo.layout.tile_layout import blocked_product, coalesce, row_major_nested

from .golden import blocks_of, recorded, storage, text_of

CASES = {case["id"]: case for case in recorded("errors")}


def matrix():
    return TileTensor(storage(), row_major[6, 8]())


def columns():
    return TileTensor(storage(), col_major[6, 8]())


def run_time():
    return TileTensor(storage(), row_major(6, 8))


def blocked():
    return TileTensor(storage(), blocked_product(row_major[2, 2](), row_major[2, 3]()))


def allocated(*shape):
    return stack_allocation[DType.int32](row_major[shape]()).fill(0)


def scalar():
    return TileTensor(storage(), row_major[()]())


def padded_rows():
    return TileTensor(storage(), Layout(Coord(3, 4), Coord(99, Idx[1])))


def shown(answer):
    """Return what `print` of Mojo shows of a number, a layout, an array, or a tuple of them."""
    if isinstance(answer, tuple):
        return " ".join(map(shown, answer))
    if isinstance(answer, Layout):
        return format(answer, "mojo")
    return str(answer.tolist() if hasattr(answer, "tolist") else answer)


def after_write(t, index, value, probe):
    t[index] = value
    return t[probe]


def after_store(t, index, value, probe):
    t.store(index, value)
    return t[probe]


def added(t, other):
    t += other
    return t[0, 0], t[5, 7]


def laid_at(part):
    return part.layout, part.offset


def laid_out(vectors):
    return vectors.layout, vectors.element_size


def bytes_before(t, at):
    return t.ptr_at_offset(at).address - t.ptr.address


# {id: (what it starts from, what is asked of that, our answer)}
TEXTS = {
    "index_nested_flat": (blocked, lambda t: t[0, 1, 1, 2], "21"),
    "index_nested_hier": (blocked, lambda t: t[2, 5], "21"),
    "set_nested_flat_variadic": (blocked, lambda t: after_write(t, (0, 1, 1, 2), -1, (2, 5)), "-1"),
    "set_nested_flat_coord": (blocked, lambda t: after_write(t, Coord(0, 1, 1, 2), -1, (2, 5)), "-1"),
    "store_nested_flat_coord": (blocked, lambda t: after_store(t, Coord(0, 1, 1, 2), -1, (2, 5)), "-1"),
    "load_nested_flat_coord": (blocked, lambda t: t.load(Coord(0, 1, 1, 2)), "21"),
    "ptr_at_offset_nested_hier": (blocked, lambda t: bytes_before(t, Coord(2, 5)), "84"),
    "ptr_at_offset_nested_flat": (blocked, lambda t: bytes_before(t, Coord(0, 1, 1, 2)), "84"),
    "dim_static_nested": (blocked, lambda t: (t.dim[0](), t.dim[1]()), "4 6"),
    "dim_runtime_nested": (blocked, lambda t: t.dim(0), "4"),
    "num_elements_nested": (blocked, lambda t: t.num_elements(), "24"),
    "tile_not_divisible": (matrix, lambda t: laid_at(t.tile[4, 3](1, 2)), "((4, 3):(8, 1)) 38"),
    "tile_with_offset_nested": (blocked, lambda t: t.tile_with_offset[2, 2](Coord(1, 0))[2], "12"),
    "vectorize_not_power_of_two_view": (matrix, lambda t: t.vectorize[1, 3]().layout, "((6, 3):(8, 3))"),
    "vectorize_not_power_of_two_print": (
        matrix,
        lambda t: format(t.vectorize[1, 3](), "mojo"),
        text_of(blocks_of(matrix().to_numpy(), (1, 3))),
    ),
    "vectorize_twice": (matrix, lambda t: laid_out(t.vectorize[1, 4]().vectorize[1, 2]()), "((6, 1):(8, 8)) 8"),
    "vectorize_nested": (blocked, lambda t: t.vectorize[1, 2]().layout, "(((2, 2), 3):((2, 12), 4))"),
    "vectorize_default_rank1": (
        storage,
        lambda st: TileTensor(st, row_major[32]()).vectorize().layout,
        "((2):(16))",
    ),
    "vectorize_default_rank3": (
        storage,
        lambda st: TileTensor(st, row_major[2, 3, 16]()).vectorize().layout,
        "((2, 3, 1):(48, 16, 16))",
    ),
    "vectorize_2d_is_contiguous": (
        matrix,
        lambda t: t.vectorize[2, 4]()[0, 0],
        "[0, 1, 2, 3, 8, 9, 10, 11]",
    ),
    "vectorize_last_axis_of_col_major": (columns, lambda t: t.vectorize[1, 4]()[0, 0], "[0, 6, 12, 18]"),
    "distribute_nested_thread_layout": (
        matrix,
        lambda t: t.distribute[blocked_product(row_major[2, 2](), row_major[2, 1]())](5).layout,
        "((1, 4):(32, 2))",
    ),
    "distribute_not_divisible": (
        storage,
        lambda st: TileTensor(st, row_major[7, 9]()).distribute[row_major[2, 4]()](0, ragged="floor").layout,
        "((3, 2):(18, 4))",
    ),
    "distribute_nested_data": (
        blocked,
        lambda t: t.distribute[row_major[2, 2]()](3).to_numpy(),
        "[[3, 7, 11], [15, 19, 23]]",
    ),
    "slice_static_nested_flat_rank": (
        blocked,
        lambda t: t.slice[0:1, 0:2, 0:1, 0:2]().layout,
        "((1, 2, 1, 2):(2, 12, 1, 4))",
    ),
    "slice_runtime_tuples_removed": (matrix, lambda t: laid_at(t.slice((1, 4), (2, 7))), "((3, 5):(8, 1)) 10"),
    "subscript_slice_reversed": (matrix, lambda t: t[4:2, :].layout, "((0, 8):(8, 1))"),
    "subscript_slice_negative": (matrix, lambda t: laid_at(t[-4:-1, :]), "((3, 8):(8, 1)) 16"),
    "subscript_slice_past_end": (matrix, lambda t: t[2:100, :].layout, "((4, 8):(8, 1))"),
    "reshape_layout_count_mismatch": (matrix, lambda t: t.reshape(row_major[5, 5]()).layout, "((5, 5):(5, 1))"),
    "coalesce_vectorized": (matrix, lambda t: t.vectorize[1, 4]().coalesce().layout, "((12):(4))"),
    "layout_coalesce_row_major_does_not_merge": (
        storage,
        lambda st: (coalesce(row_major[2, 4]()), coalesce(col_major[2, 4]())),
        "((2, 4):(4, 1)) ((8):(1))",
    ),
    "split_mutable": (matrix, lambda t: t.split[2]()[0].layout, "((3, 8):(8, 1))"),
    "copy_from_runtime_dims": (run_time, lambda t: allocated(6, 8).copy_from(t).equals(matrix()), "True"),
    "iadd_broadcast_rank1_dim0": (matrix, lambda t: added(t, allocated(6).fill(100)), "100 147"),
    "to_layout_tensor_vectorized": (
        matrix,
        lambda t: t.vectorize[1, 4]().to_layout_tensor().element_layout,
        "((1, 4):(8, 1))",
    ),
    "lt_to_tt_nested_multiplies_strides": (
        blocked,
        lambda t: lt_to_tt(t.to_layout_tensor()).layout,
        "(((2, 2), (2, 3)):((2, 12), (1, 4)))",
    ),
    "make_dynamic_nested": (
        blocked,
        lambda t: (t.make_dynamic[DType.int64]().layout, t.make_dynamic[DType.int64]().shape_known),
        "(((2, 2), (2, 3)):((2, 12), (1, 4))) False",
    ),
    "transpose_nested": (blocked, lambda t: t.transpose().layout, "(((2, 3), (2, 2)):((1, 4), (2, 12)))"),
    "print_nested_single_mode": (
        storage,
        lambda st: format(TileTensor(st, row_major_nested(Coord(coord[2, 3]))), "mojo"),
        "[0, 3, 1, 4, 2, 5]",
    ),
    "rank0": (scalar, lambda t: (t.rank, t.layout), "0 (():())"),
    "static_product_with_runtime_dim": (storage, lambda st: row_major(3, Idx[4]).static_product, "-1"),
}

DIFFERENT = {
    "distribute_nested_thread_layout",  # garbage shapes there; here the position in a nested mode is colexicographic
    "vectorize_default_rank1",  # Mojo is right for rank 2 only
    "vectorize_2d_is_contiguous",  # fact 4: ours is the real block
    "vectorize_last_axis_of_col_major",
    "subscript_slice_reversed",  # empty here, a negative extent there
    "lt_to_tt_nested_multiplies_strides",  # fact 11
    "static_product_with_runtime_dim",
}

REFUSALS = {
    "index_one_scalar_on_rank2": (matrix, lambda t: t[11], CoordinateError),  # 41 there, refused by the original page
    "set_one_scalar_on_rank2": (matrix, lambda t: after_write(t, 3, -1, (3, 0)), CoordinateError),
    "set_coord1_on_rank2": (matrix, lambda t: after_write(t, Coord(3), -1, (3, 0)), CoordinateError),
    "index_three_on_rank2": (matrix, lambda t: t[1, 2, 3], CoordinateError),
    "index_static_out_of_bounds": (matrix, lambda t: t[Idx[7], Idx[0]], CoordinateError),
    "index_runtime_out_of_bounds": (matrix, lambda t: t[7, 0], CoordinateError),
    "index_runtime_negative": (matrix, lambda t: t[1, -1], CoordinateError),
    "index_nested_three": (blocked, lambda t: t[1, 2, 3], CoordinateError),
    "set_on_immutable": (matrix, lambda t: after_write(t.as_imm(), (0, 0), 5, (0, 0)), LayoutError),
    "fill_on_immutable": (matrix, lambda t: t.as_imm().fill(5), LayoutError),
    "dim_static_out_of_range": (matrix, lambda t: t.dim[2](), CoordinateError),
    "dim_runtime_out_of_range": (matrix, lambda t: t.dim(5), CoordinateError),
    "dynamic_stride_nested": (blocked, lambda t: t.dynamic_stride(0), LayoutError),
    "tile_wrong_number_of_sizes": (matrix, lambda t: t.tile[4](1), LayoutError),
    "tile_fewer_coords_in_Coord": (matrix, lambda t: t.tile[2, 4](Coord(1)), LayoutError),
    "tile_out_of_range": (matrix, lambda t: t.tile[2, 4](10, 7), CoordinateError),
    "distribute_thread_id_wraps": (matrix, lambda t: t.distribute_with_offset[row_major[2, 2]()](5), CoordinateError),
    "slice_static_out_of_range": (matrix, lambda t: t.slice[1:9, 2:7](), CoordinateError),
    "slice_static_negative": (matrix, lambda t: t.slice[-3:-1, 2:7](), CoordinateError),
    "slice_static_step": (matrix, lambda t: t.slice[0:6:2, 2:7](), LayoutError),
    "slice_static_too_few": (matrix, lambda t: t.slice[0:6](), LayoutError),
    "slice_static_fixed_index_out_of_range": (matrix, lambda t: t.slice[7, 2:7](), CoordinateError),
    "subscript_index_out_of_range": (matrix, lambda t: t[9, :], CoordinateError),
    "reshape_count_mismatch_static": (matrix, lambda t: t.reshape[5, 3](), LayoutError),
    "reshape_count_mismatch_runtime": (matrix, lambda t: t.reshape(Coord(5, 6)), LayoutError),
    "slice_static_on_runtime_dims": (run_time, lambda t: t.slice[1:4, 2:7](), LayoutError),
    "coalesce_runtime_dims": (run_time, lambda t: t.coalesce(), LayoutError),
    "reshape_col_major": (columns, lambda t: t.reshape[48](), LayoutError),
    "reshape_runtime_dims_bad_stride": (padded_rows, lambda t: t.reshape(Coord(4, 3)), LayoutError),
    "coalesce_col_major": (columns, lambda t: t.coalesce(), LayoutError),
    "coalesce_row_major_nested": (
        storage,
        lambda st: TileTensor(st, row_major_nested(Coord(coord[2, 3], coord[4, 5]))).coalesce(),
        LayoutError,
    ),
    "split_not_divisible": (matrix, lambda t: t.as_imm().split[4](), LayoutError),
    "copy_from_count_mismatch": (matrix, lambda t: allocated(6, 7).copy_from(t), LayoutError),
    "iadd_shape_mismatch": (matrix, lambda t: added(t, allocated(8, 6)), LayoutError),
    "iadd_broadcast_rank1_dim1": (matrix, lambda t: added(t, allocated(8)), LayoutError),
    "as_span_col_major": (columns, lambda t: t.as_span(), LayoutError),
    "make_swizzle_negative_shift": (storage, lambda st: make_swizzle[8, 4, 4](), LayoutError),
    "construct_larger_than_buffer": (storage, lambda st: TileTensor(st, row_major[1000, 1000]()), LayoutError),
}


def test_every_case_has_one_answer():
    assert len(CASES) == 80
    assert not TEXTS.keys() & REFUSALS.keys()
    assert TEXTS.keys() | REFUSALS.keys() == CASES.keys()
    assert TEXTS.keys() >= DIFFERENT


@pytest.mark.parametrize("name", TEXTS)
def test_text(name):
    start, answer, expected = TEXTS[name]
    assert shown(answer(start())) == expected
    if CASES[name]["outcome"] == "ok":
        assert (expected == CASES[name]["stdout"].strip()) == (name not in DIFFERENT)


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal(name):
    start, attempt, kind = REFUSALS[name]
    t = start()
    with pytest.raises(kind) as refusal:
        attempt(t)
    assert refusal.type is kind


def test_the_other_halves_of_cases_with_two_questions():
    with pytest.raises(IndexError, match="outside"):
        matrix()[0, 9]
    with pytest.raises(IndexError, match="outside"):
        matrix()[-1, :]
    assert not padded_rows().is_row_major
    threads = row_major[2, 2]()
    assert [matrix().distribute_with_offset[threads](k, wrap=True)[1] for k in (5, -1)] == [(0, 1), (1, 1)]
    with pytest.raises(IndexError, match="thread -1 is outside"):
        matrix().distribute[threads](-1)


def test_a_layout_of_another_size_can_be_asked_for():
    assert shown(matrix().reshape(row_major[5, 5](), allow_resize=True).layout) == "((5, 5):(5, 1))"
