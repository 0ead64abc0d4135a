# SPDX-License-Identifier: Apache-2.0
"""Coordinates: from an index to a nested coordinate and back, over plain shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Layout, LayoutError, cute
from tilewright.errors import CoordinateError
from tilewright.layout.tuples import coordinate_to_index, index_to_coordinate

from ..cute.test_tuples import refined
from .strategies import digits, layouts, leaves, nested_like, shapes, size_of


@st.composite
def coarser(draw, shape):
    """Return a shape that takes the same indices with some nested modes counted as one."""
    if not isinstance(shape, tuple) or draw(st.booleans()):
        return size_of(shape)
    return tuple(draw(coarser(mode)) for mode in shape)


# Round trips


@given(shapes(allow_empty=True))
def test_every_index_has_one_coordinate_that_leads_back(shape):
    seen = set()
    for index in range(size_of(shape)):
        coord = tw.cute.idx2crd(index, shape)
        assert cute.congruent(coord, shape)
        assert coord == nested_like(shape, digits(index, leaves(shape)))
        assert cute.crd2idx(coord, shape) == coordinate_to_index(coord, shape) == index
        seen.add(coord)
    assert len(seen) == size_of(shape)


@given(shapes(allow_zero=True, allow_empty=True))
def test_all_coordinates_come_in_order_of_their_index(shape):
    found = list(tw.layout.coordinates(shape))
    assert found == [tw.cute.idx2crd(index, shape) for index in range(size_of(shape))]


@given(shapes(), st.data())
def test_a_coordinate_of_a_coarser_shape_is_completed(shape, data):
    rough = data.draw(coarser(shape))
    for index in range(size_of(shape)):
        coord = tw.cute.idx2crd(index, rough)
        assert tw.cute.idx2crd(coord, shape) == tw.cute.idx2crd(index, shape)
        assert cute.crd2idx(coord, shape) == index


@given(shapes(), st.data())
def test_coordinates_convert_between_shapes_that_refine_each_other(shape, data):
    finer = data.draw(refined(shape))
    for index in range(size_of(shape)):
        coord, fine = tw.cute.idx2crd(index, shape), tw.cute.idx2crd(index, finer)
        assert cute.crd2crd(coord, finer, shape) == fine
        assert cute.crd2crd(fine, shape, finer) == coord
        assert cute.crd2crd(coord, finer) == fine, "no source is needed to go to a finer shape"
        assert cute.crd2crd(index, shape) == coord
        assert cute.crd2crd(coord, size_of(shape), shape) == index


@given(shapes())
def test_converting_to_the_own_shape_changes_nothing(shape):
    for coord in tw.layout.coordinates(shape):
        assert cute.crd2crd(coord, shape, shape) == coord
        assert tw.cute.idx2crd(coord, shape) == coord


def test_known_coordinates():
    assert tw.cute.idx2crd(22, (4, 8)) == (2, 5)
    assert tw.cute.idx2crd(22, ((2, 2), (4, 2))) == ((0, 1), (1, 1))
    assert tw.cute.idx2crd(0, ()) == ()
    assert cute.crd2idx((2, 5), (4, 8)) == 22
    assert cute.crd2idx((2, 5), (4, 8), (8, 1)) == 21
    assert cute.crd2crd(((0, 1), 0), (6, 2), ((2, 3), 2)) == (2, 0)


# Offsets


@given(layouts(allow_empty=True, offsets=False))
def test_offsets_under_strides_are_those_of_the_layout(layout):
    for index, coord in enumerate(tw.layout.coordinates(layout.shape)):
        for form in (coord, index):
            assert cute.crd2idx(form, layout.shape, layout.stride) == layout(index)
            assert layout(form) == layout(index)


@given(shapes(allow_empty=True))
def test_the_index_is_the_offset_under_compact_strides(shape):
    for coord in tw.layout.coordinates(shape):
        assert cute.crd2idx(coord, shape) == cute.crd2idx(coord, shape, cute.prefix_product(shape))


@given(layouts())
def test_cute_converts_indices_as_the_core_does(layout):
    for index in range(layout.size):
        coord = index_to_coordinate(index, layout.shape)
        assert coord == tw.cute.idx2crd(index, layout.shape)
        assert coordinate_to_index(coord, layout.shape) == index


@given(shapes())
def test_lists_are_read_as_tuples(shape):
    def as_lists(branch):
        return [as_lists(part) for part in branch] if isinstance(branch, tuple) else branch

    for index, coord in enumerate(tw.layout.coordinates(shape)):
        assert tw.cute.idx2crd(index, as_lists(shape)) == coord
        assert cute.crd2idx(as_lists(coord), as_lists(shape)) == index
        assert cute.crd2crd(as_lists(coord), as_lists(shape), as_lists(shape)) == coord


# Arrays


@given(shapes())
def test_arrays_of_indices_become_coordinates_of_arrays(shape):
    index = np.arange(size_of(shape))
    coord = tw.cute.idx2crd(index, shape)
    assert cute.congruent(coord, shape)
    for k, column in enumerate(leaves(coord)):
        assert column.tolist() == [digits(int(i), leaves(shape))[k] for i in index]
    assert cute.crd2idx(coord, shape).tolist() == index.tolist()


# Bounds


@given(shapes(), st.integers())
def test_an_index_outside_the_shape_is_refused(shape, index):
    if 0 <= index < size_of(shape):
        index_to_coordinate(index, shape)
    else:
        with pytest.raises(CoordinateError, match="outside shape"):
            index_to_coordinate(index, shape)


@given(shapes(min_rank=1), st.data())
def test_a_coordinate_outside_the_shape_is_refused(shape, data):
    extents = leaves(shape)
    at = digits(data.draw(st.integers(0, size_of(shape) - 1)), extents)
    k = data.draw(st.integers(0, len(at) - 1))
    at[k] = data.draw(st.sampled_from([-1, extents[k], extents[k] + 5]))
    for convert in (index_to_coordinate, coordinate_to_index):
        with pytest.raises(CoordinateError, match="outside shape"):
            convert(nested_like(shape, at), shape)
    with pytest.raises(CoordinateError, match="outside shape"):
        Layout(shape)(nested_like(shape, at))


@pytest.mark.parametrize("wrong", [True, 1.0, "1", None, {1}])
def test_coordinates_are_integers(wrong):
    for call in (
        lambda: index_to_coordinate(wrong, (4, 8)),
        lambda: coordinate_to_index((0, wrong), (4, 8)),
        lambda: Layout((4, 8), (8, 1)).extended(0, wrong),
    ):
        with pytest.raises(TypeError, match=type(wrong).__name__):
            call()


@pytest.mark.parametrize("coord", [(1,), (1, 2, 3), ((1, 1), 2), (1, (2, 0))])
def test_coordinates_of_another_form_are_refused(coord):
    with pytest.raises(LayoutError):
        tw.cute.idx2crd(coord, (4, 8))
    with pytest.raises(LayoutError):
        cute.crd2idx(coord, (4, 8))


def test_a_coordinate_with_one_entry_is_an_index():
    """As `layout(5)`: the message that refuses a coordinate has always listed one entry among what is taken."""
    for layout in (
        tw.row_major(4, 8),
        tw.Layout(((2, 2), 8), ((1, 2), 4)),
        tw.compose(tw.Swizzle(1, 0, 2), tw.row_major(4, 8)),
    ):
        assert [layout((k,)) for k in range(layout.size)] == [layout(k) for k in range(layout.size)], layout
    with pytest.raises(LayoutError):
        tw.row_major(4, 8)(((1, 2),))
