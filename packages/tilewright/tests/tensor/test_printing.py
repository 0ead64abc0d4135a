# SPDX-License-Identifier: Apache-2.0
"""Tensors as text: as people read them, exactly as Mojo prints them, and in grids."""

import io

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright import Layout, LayoutError, Swizzle, blocked_product, col_major, compose, row_major
from tilewright.mojo.layout import LayoutTensor, TileTensor

from .strategies import chains, iota, roots

fewer = settings(max_examples=max(1, settings().max_examples // 2))


def tensor_of(*shape, dtype=np.int64):
    return TileTensor(iota(int(np.prod(shape)), dtype), row_major(*shape))


# What Mojo 26.7 prints.


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (TileTensor(iota(6), col_major(2, 3)), "[[0, 2, 4], [1, 3, 5]]"),
        (tensor_of(3), "[0, 1, 2]"),
        (tensor_of(2, 3, 2), "[0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11]"),
        (
            TileTensor(iota(24), blocked_product(row_major(2, 2), row_major(2, 3))),
            "[0, 2, 12, 14, 1, 3, 13, 15, 4, 6, 16, 18, 5, 7, 17, 19, 8, 10, 20, 22, 9, 11, 21, 23]",
        ),
        (tensor_of(8).vectorize[4](), "[[0, 1, 2, 3], [4, 5, 6, 7]]"),
        (tensor_of(2, 4).vectorize[1, 2](), "[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]"),
        (tensor_of(6, 8).tile[4, 3](1, 2), "[[38, 39, _], [46, 47, _], [_, _, _], [_, _, _]]"),
        (tensor_of(7).vectorize[2](), "[[0, 1], [2, 3], [4, 5], [6, _]]"),
        (tensor_of(2, 3).make_dynamic(), "[[0, 1, 2], [3, 4, 5]]"),
        (tensor_of(2, 3).slice[1, 2](), "[5]"),
        (tensor_of(4, 4).slice[0:0, :](), ""),
    ],
    ids=repr,
)
def test_mojo_style(tensor, text):
    assert format(tensor, "mojo") == text


def test_mojo_style_is_never_shortened():
    assert format(tensor_of(40, 50), "mojo").count(",") == 40 * 50 - 1


# What people read.


def test_str_shows_a_matrix_row_by_row():
    assert str(tensor_of(2, 3)) == "[[0, 1, 2],\n[3, 4, 5]]"
    assert str(tensor_of(2, 3).transpose()) == "[[0, 3],\n[1, 4],\n[2, 5]]"
    assert f"{tensor_of(2, 3)}" == str(tensor_of(2, 3))


def test_str_shows_nested_and_swizzled_matrices_as_matrices():
    nested = TileTensor(iota(24), blocked_product(row_major(2, 2), row_major(2, 3)))
    assert str(nested).splitlines()[2] == "[12, 13, 16, 17, 20, 21],"
    swizzled = TileTensor(iota(16), compose(Swizzle(2, 0, 2), row_major(4, 4)))
    assert str(swizzled).splitlines()[1] == "[5, 4, 7, 6],"


def test_str_of_other_ranks_is_flat_with_the_first_index_fastest():
    assert str(tensor_of(2, 2, 2)) == "[0, 4, 2, 6, 1, 5, 3, 7]"
    assert str(tensor_of(0, 3)) == ""


@given(st.data())
@fewer
def test_str_of_a_small_tensor_shows_what_mojo_style_shows(data):
    origin = data.draw(roots())
    walk = data.draw(chains(origin, longest=2))[-1]
    if walk.tensor.flat_rank == walk.tensor.rank and not isinstance(walk.tensor, LayoutTensor):  # its own way
        assert str(walk.tensor).replace("\n", " ") == format(walk.tensor, "mojo")


def test_large_matrices_keep_their_corners():
    lines = str(tensor_of(50, 60)).splitlines()
    assert len(lines) == 7
    assert lines[0] == "[[0, 1, 2, ..., 57, 58, 59],"
    assert lines[3] == "...,"
    assert lines[-1] == "[2940, 2941, 2942, ..., 2997, 2998, 2999]]"


def test_large_and_narrow_matrices_keep_all_columns():
    lines = str(tensor_of(600, 2)).splitlines()
    assert (lines[0], len(lines)) == ("[[0, 1],", 7)
    wide = str(tensor_of(2, 600)).splitlines()
    assert wide == ["[[0, 1, 2, ..., 597, 598, 599],", "[600, 601, 602, ..., 1197, 1198, 1199]]"]


def test_large_tensors_of_other_ranks_keep_their_ends():
    assert str(tensor_of(2000)) == "[0, 1, 2, ..., 1997, 1998, 1999]"
    assert str(tensor_of(20, 10, 10)) == "[0, 100, 200, ..., 1799, 1899, 1999]"


def test_large_ragged_and_vectorized_tensors_are_shortened_too():
    edge = tensor_of(90, 90).tile[80, 80](1, 1)
    lines = str(edge).splitlines()
    assert lines[0] == f"[[{80 * 90 + 80}, {80 * 90 + 81}, {80 * 90 + 82}, ..., _, _, _],"
    assert lines[-1] == "[_, _, _, ..., _, _, _]]"
    vectors = tensor_of(60, 120).vectorize[1, 2]()
    assert str(vectors).splitlines()[0] == "[[[0, 1], [2, 3], [4, 5], ..., [114, 115], [116, 117], [118, 119]],"


def test_a_huge_tensor_prints_at_once():
    huge = TileTensor(np.zeros(1, dtype=np.float32), Layout((10**6, 10**6), (0, 0)))
    assert str(huge).splitlines()[0] == "[[0.0, 0.0, 0.0, ..., 0.0, 0.0, 0.0],"


def test_pretty_shows_the_last_two_modes_under_the_leading_coordinates():
    assert tensor_of(2, 2, 3).pretty() == "\n".join(
        ["[0, :, :]", "   0  1  2", "   3  4  5", "[1, :, :]", "   6  7  8", "   9 10 11"]
    )
    assert tensor_of(2, 6).pretty() == " 0  1  2  3  4  5\n 6  7  8  9 10 11"
    assert tensor_of(6).pretty() == "0 1 2 3 4 5"
    assert tensor_of(6, 8).tile[4, 3](1, 2).pretty().splitlines()[:3] == ["38 39  _", "46 47  _", " _  _  _"]
    assert format(tensor_of(2, 2, 2), "pretty") == tensor_of(2, 2, 2).pretty()


def test_pretty_aligns_nested_modes_by_their_logical_index():
    nested = TileTensor(iota(24), blocked_product(row_major(2, 2), row_major(2, 3)))
    assert nested.pretty().splitlines()[0] == " 0  1  4  5  8  9"


# Numbers.


@pytest.mark.parametrize(
    ("number", "dtype", "text"),
    [
        (0.1, np.float32, "0.1"),
        (0.1, np.float64, "0.1"),
        (1 / 3, np.float32, "0.33333334"),
        (1 / 3, np.float64, "0.3333333333333333"),
        (1e10, np.float32, "10000000000.0"),
        (1e-4, np.float64, "0.0001"),
        (9.9e-5, np.float64, "9.9e-05"),
        (-3.5e-5, np.float32, "-3.5e-05"),
        (1e16, np.float64, "1e+16"),
        (9007199254740993.0, np.float64, "9007199254740992.0"),
        (1e20, np.float64, "1e+20"),
        (1e100, np.float64, "1e+100"),
        (np.nan, np.float32, "nan"),
        (np.inf, np.float64, "inf"),
        (-np.inf, np.float32, "-inf"),
        (-0.0, np.float32, "-0.0"),
        (2.0, np.float32, "2.0"),
        (0.1, np.float16, "0.099975586"),
        (0.1, ml_dtypes.bfloat16, "0.100097656"),
        (0.3, ml_dtypes.float8_e4m3fn, "0.3125"),
        (True, np.bool_, "True"),
        (-128, np.int8, "-128"),
        (2**64 - 1, np.uint64, str(2**64 - 1)),
    ],
)
def test_numbers_have_the_fewest_digits_that_tell_them_apart(number, dtype, text):
    assert format(TileTensor(np.array([number], dtype=dtype)), "mojo") == f"[{text}]"


@given(st.floats(width=32))
def test_a_printed_number_can_be_read_back(number):
    text = format(TileTensor(np.array([number], dtype=np.float32)), "mojo")[1:-1]
    np.testing.assert_array_equal(np.float32(text), np.float32(number))


# Writers, styles, repr.


def test_write_to_writes_the_same_text():
    writer = io.StringIO()
    tensor_of(2, 3).write_to(writer)
    assert writer.getvalue() == str(tensor_of(2, 3))


def test_an_unknown_style_is_refused():
    with pytest.raises(LayoutError, match="expected print style 'mojo', 'grid', 'pretty' or none, got 'fancy'"):
        format(tensor_of(2), "fancy")


def test_repr_summarises_a_view_without_its_elements():
    tensor = TileTensor(iota(10**6, np.float32), row_major(1000, 1000))
    assert repr(tensor) == "TileTensor(Layout((1000, 1000), (1000, 1)), offset=0, dtype='float32')"
    view = repr(tensor.tile[4, 8](1, 2).vectorize[1, 4]().as_immut())
    assert "offset=4016" in view
    assert "element=Layout((1, 4), (1000, 1))" in view
    assert "readonly=True" in view
    assert repr(tensor.to_layout_tensor()).startswith("LayoutTensor(")
