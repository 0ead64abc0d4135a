# SPDX-License-Identifier: Apache-2.0
"""Faults that were found once and must not come back, where no law in another file would show them."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Place, Swizzle, addr, bank, cute
from tilewright.errors import CoordinateError
from tilewright.layout import InverseLayout

from .strategies import named_layouts
from .test_notation import anything


def deep(levels=5000, leaf=4):
    """Return a leaf inside very many tuples."""
    for _ in range(levels):
        leaf = (leaf,)
    return leaf


# Arrays.


def test_narrow_arrays_do_not_wrap_in_guards_and_swizzles():
    rows, tiles = np.array([99], dtype=np.uint8), np.array([9], dtype=np.uint8)
    assert tw.logical_divide(Layout(950), 100).valid(rows, tiles).tolist() == [False]
    assert Swizzle(3, 4, -3)(np.array([255], dtype=np.uint8)).tolist() == [Swizzle(3, 4, -3)(255)]


def test_validity_of_arrays_is_an_array():
    assert Layout(8).valid(np.arange(8)).tolist() == [True] * 8


def test_a_swizzle_takes_no_array_of_floats():
    with pytest.raises(TypeError, match="float64"):
        Swizzle(3, 0, 3)(np.array([1.5]))


# Named axes.


@given(named_layouts())
def test_a_layout_over_axes_gives_a_place_on_all_of_them_everywhere(layout):
    for i in range(layout.size):
        assert isinstance(layout(i), Place)
        assert layout(i).axes == layout.axes


def test_a_place_prints_only_what_it_has():
    assert repr(Layout((12, 100), (1 @ bank, 2048 @ addr))(13)) == "Place(bank=1, addr=2048)"


def test_numpy_integers_scale_places_and_move_layouts():
    assert np.int64(3) * (1 @ bank) == 3 @ bank
    assert Layout(4) + np.int64(3) == Layout(4, offset=3)
    assert Layout(4) - np.int64(3) == Layout(4, offset=-3)


@pytest.mark.parametrize("factor", [2.5, "x", True, None])
def test_a_place_is_scaled_by_integers_only(factor):
    with pytest.raises(TypeError):
        (1 @ bank) * factor


def test_a_number_is_not_an_axis_of_a_place():
    assert 5 not in Place(bank=1)


# Sizes.


@pytest.mark.parametrize(
    "make",
    [
        lambda: Layout(4, offset=2**63),
        lambda: Layout(4) + 2**63,
        lambda: Layout(Layout(2**62), Layout(2**62, 2)),
        lambda: tw.logical_product(Layout(2**40), Layout(2**40)),
    ],
    ids=["offset", "sum", "join", "product"],
)
def test_places_beyond_64_bits_are_refused_wherever_they_arise(make):
    with pytest.raises(LayoutError, match="2\\^63"):
        make()


@pytest.mark.parametrize(
    "call",
    [
        lambda: Layout(4, deep()),
        lambda: Layout((4, 8))(deep()),
        lambda: tw.compose(Layout((4, 8)), deep()),
        lambda: tw.logical_divide(Layout((4, 8)), deep()),
        lambda: tw.logical_product(Layout(4), deep()),
        lambda: cute.size(deep()),
        lambda: tw.cute.idx2crd(0, deep()),
        lambda: tw.pad(Layout(4), deep()),
        lambda: cute.congruent(deep(), 4),
        lambda: tw.coalesce(Layout((4, 8)), deep()),
    ],
    ids=["stride", "call", "compose", "divide", "product", "size", "idx2crd", "pad", "congruent", "coalesce"],
)
def test_very_deep_nesting_is_an_error_and_not_a_crash(call):
    with pytest.raises(LayoutError):
        call()


# Tilers.


@pytest.mark.parametrize("tiler", [Layout((2, 2), (1, 3)), Layout((2, 2), (2, 3)), 0])
def test_a_tiler_that_would_lose_elements_is_refused(tiler):
    with pytest.raises(LayoutError, match="cannot divide"):
        tw.logical_divide(Layout(12), tiler)


def test_exact_looks_at_the_data_that_is_reached():
    padded = tw.with_logical_shape(Layout(((3, 1), 3), ((1, 3), 3)), (3, 2))
    assert [tw.compose(padded, 4, exact=True)(i) for i in range(4)] == [0, 1, 2, 3]


@pytest.mark.parametrize("tiler", [(None, None), (None,), ()])
def test_a_product_with_nothing_is_the_block(tiler):
    block = Layout((6, 4), (4, 1))
    assert tw.logical_product(block, tiler) == block


# Inverses.


def test_the_right_inverse_of_a_swizzle_with_gaps_stops_at_the_first_gap():
    layout = tw.compose(Swizzle(2, 0, 2), Layout((2, 4), (8, 1)))
    inverse = tw.right_inverse(layout)
    assert inverse.size == 4
    assert [layout(inverse(i)) for i in range(4)] == [0, 1, 2, 3]


def test_the_right_inverse_over_axes_does_not_depend_on_their_order():
    layout = Layout((4, 5), (2 @ bank, 1 @ addr))
    assert tw.right_inverse(layout, axes=(bank, addr)).size == 5
    assert tw.right_inverse(layout, axes=(addr, bank)).size == 5


def test_a_paged_tensor_can_be_asked_what_lives_where():
    home = tw.compose(Layout((12, 9), (1 @ bank, 2048 @ addr)), tw.row_major(7, 5))
    back = tw.left_inverse(home, axes=(bank, addr))
    assert all(back(home(i).bank, home(i).addr) == i for i in range(home.size))


def test_an_inverse_is_made_of_a_layout():
    with pytest.raises(TypeError):
        InverseLayout(5)


def test_a_composition_that_is_not_injective_names_two_coordinates():
    with pytest.raises(LayoutError, match="coordinates"):
        tw.left_inverse(tw.compose(Layout((3, 5), (1, 1)), Layout(6, 2)))


# Recasting and padding.


@pytest.mark.parametrize(("layout", "factor"), [(Layout((3, 2), (2, 3)), 6), (Layout(4, -1), 4)])
def test_upcast_refuses_to_drop_memory(layout, factor):
    with pytest.raises(LayoutError):
        cute.upcast(layout, factor)


def test_tiling_a_swizzled_block_to_a_shape_keeps_the_padding():
    tiled = tw.tile_to_shape(tw.compose(Swizzle(2, 0, 2), tw.row_major(4, 4)), (6, 4))
    assert tiled.valid(5, 0)
    assert not tiled.valid(7, 0)


def test_a_unit_mode_can_be_all_padding():
    assert tw.with_logical_shape(Layout((1,)), (0,)).logical_shape == (0,)


# Errors.


@pytest.mark.parametrize(
    "call",
    [
        tw.coalesce,
        tw.is_injective,
        tw.is_bijective,
        tw.is_contiguous,
        cute.nullspace,
        cute.cosize,
        cute.size,
        cute.sort,
    ],
)
def test_something_that_is_no_layout_is_a_type_error(call):
    with pytest.raises(TypeError):
        call("x")


@pytest.mark.parametrize("bound", ["x", 1.5, True])
def test_the_bound_of_a_complement_is_an_integer(bound):
    with pytest.raises(TypeError, match="bound"):
        tw.complement(Layout(4), bound)


def test_ranges_and_missing_modes_are_refused_in_brackets():
    with pytest.raises(LayoutError):
        Layout((4, 3))[0:2]
    with pytest.raises(CoordinateError):
        Layout((4, 3))[2]


def test_an_error_in_a_slice_shows_the_whole_shape():
    with pytest.raises(CoordinateError, match=r"\(4, \(2, 3\)\)"):
        Layout((4, (2, 3)))(None, 6)


def test_division_by_zero_is_a_layout_error():
    with pytest.raises(LayoutError):
        cute.shape_div(6, 0)


def test_a_shape_to_tile_to_is_checked():
    with pytest.raises(TypeError, match="shape"):
        tw.tile_to_shape(Layout((4, 8)), (8, "x"))
    with pytest.raises(LayoutError, match="-8"):
        tw.tile_to_shape(Layout((4, 8)), (8, -8))


# Text.

REFUSED = [
    *("4@bank:1", "(4,2@bank):(1,2)", "4:1 where 1@bank<3", "4:1 where 1+1@bank<3", "4:1 where 1+R[2:1]<3"),
    *("inverse(Sw<2,0,2>)", "inverse(4:0)", "Sw<99999999999,0,99999999999>", "\u0664:1", "4:1@b\u00e4nk"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_text_that_describes_no_layout_is_refused(text):
    with pytest.raises(LayoutError):
        tw.parse(text)


PIECES = ["@bank", "+1@bank", " o ", "Sw<1,0,1>", " where ", "+R[2:1]", "{", "}", " and ", "inverse("]


@given(anything, st.data())
def test_damaged_text_is_refused_or_reads_as_what_it_prints(value, data):
    text = str(value)
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 3))
    damaged = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + cut :]
    assume(damaged != text)
    try:
        found = tw.parse(damaged)
    except LayoutError:
        return
    assert tw.parse(str(found)) == found


def test_compositions_nest_to_the_right_however_they_are_made():
    left = ComposedLayout(ComposedLayout(Layout((3, 5), (5, 1)), Layout(6, 2)), Layout(3, 2))
    assert tw.parse(str(left)) == left
