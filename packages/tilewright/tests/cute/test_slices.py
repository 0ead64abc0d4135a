# SPDX-License-Identifier: Apache-2.0
"""Slices, selected modes and negative indices: what is left out is never lost on the way."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import cute
from tilewright.cute import Layout, Swizzle
from tilewright.cute.layout import from_native

INNER = [
    Layout((8, 8), (8, 1)),
    Layout((4, 16), (16, 1)),
    Layout((8, (2, 4)), (1, (8, 16))),
    Layout((8, 8), (8, 1)) + 5,
    tw.Layout((8, 8), (1, 8)),
]


@pytest.mark.parametrize("inner", INNER, ids=str)
@pytest.mark.parametrize("swizzle", [Swizzle(3, 0, 3), Swizzle(2, 1, 3), Swizzle(1, 0, 2)], ids=str)
def test_a_slice_of_a_swizzled_layout_is_where_its_elements_are(swizzle, inner):
    whole = cute.composition(swizzle, inner)
    rows, columns = (cute.size(mode) for mode in whole.shape)
    for i in range(rows):
        row = [whole(i, j) for j in range(columns)]
        assert [whole(i, None)(j) for j in range(columns)] == row
        assert [whole[i, :](j) for j in range(columns)] == row
        assert [cute.slice_((i, None), whole)(j) for j in range(columns)] == row
    for j in range(columns):
        assert [whole(None, j)(i) for i in range(rows)] == [whole(i, j) for i in range(rows)]


def test_a_slice_of_a_nested_composition_is_where_its_elements_are():
    whole = tw.ComposedLayout(Layout((16, 4), (4, 1)), cute.composition(Swizzle(3, 0, 3), Layout((8, 8), (8, 1))))
    assert [whole(3, None)(j) for j in range(8)] == [whole(3, j) for j in range(8)]


def test_a_slice_of_a_layout_has_no_offset():
    layout = Layout((4, 8), (8, 1)) + 5
    assert str(layout(2, None)) == "(8):(1)"
    assert cute.slice_and_offset((2, None), layout) == (layout(2, None), 21)
    assert str(layout(9, None)) == "(8):(1)"  # past the end, as everywhere in CuTe


def padded():
    """Return a layout of 4 x 8 whose last two columns are padding."""
    core = tw.Layout((4, 8), (6, 1), guards=[tw.layout.Guard((0, 1), 6)])
    return from_native(core, keep_padding=True)


@pytest.mark.parametrize(
    "change",
    {
        "select": lambda layout: cute.select(layout, 0, 1),
        "take": lambda layout: cute.take(layout, 0, 2),
        "flatten": cute.flatten,
        "add": lambda layout: layout + 0,
        "replace": lambda layout: cute.replace(layout, 0, layout.mode(0)),
        "pickle": lambda layout: pickle.loads(pickle.dumps(layout)),  # noqa: S301  (our own)
    }.values(),
)
def test_offset_and_padding_are_kept(change):
    layout = padded() + 7
    assert layout.valid(0, 5)
    assert not layout.valid(0, 6)
    result = change(layout)
    for i in range(4):
        for j in range(8):
            assert (result.extended(i, j) - result.extended(0, 0), result.valid(i, j)) == (
                layout.extended(i, j) - 7,
                layout.valid(i, j),
            )
    if change(Layout((4, 8)) + 7).offset:
        assert result.offset == 7


def test_selected_modes_keep_offset_and_padding():
    layout = padded() + 7
    assert str(cute.select(Layout((2, 3, 4)) + 5, 2, 0)) == "(4,2):(6,1)+5"
    assert str(cute.take(Layout((2, 3, 4)) + 5, 1, 3)) == "(3,4):(2,6)+5"
    columns = cute.select(layout, 1)
    assert [columns.extended(j) for j in range(8)] == [layout.extended(0, j) for j in range(8)]
    assert [columns.valid(j) for j in range(8)] == [layout.valid(0, j) for j in range(8)]
    swizzled = cute.composition(Swizzle(3, 0, 3), Layout((8, 8), (8, 1)) + 9)
    for mode in range(2):
        chosen = cute.select(swizzled, mode)
        assert [chosen(i) for i in range(8)] == [swizzled(*((i, 0) if mode == 0 else (0, i))) for i in range(8)]
    with pytest.raises(tw.LayoutError, match="mode 3"):
        cute.select(Layout((2, 3, 4)), 3)


def test_a_slice_keeps_padding():
    layout = padded()
    row = layout(1, None)
    assert [row.valid(j) for j in range(8)] == [True] * 6 + [False] * 2
    assert not any(layout(None, 7).valid(i) for i in range(4))


@given(st.integers(-200, 200), st.sampled_from([*INNER[:4], Layout((3, (2, 5), 4), (40, (1, 7), 100))]))
def test_negative_indices_round_towards_zero(index, layout):
    offset = layout.offset
    assert layout(-index) - offset == -(layout(index) - offset)
    assert layout(np.array([index, -index])).tolist() == [layout(index), layout(-index)]
    if index and layout.offset == 0:
        assert layout(index) == cute.composition(layout, Layout(2, index))(1) == cute.crd2idx(index, *_parts(layout))
    assert cute.idx2crd(-index, layout.shape) == _negated(cute.idx2crd(index, layout.shape))


def _parts(layout):
    return layout.shape, layout.stride


def _negated(tree):
    return tuple(map(_negated, tree)) if isinstance(tree, tuple) else -tree


def test_a_shape_without_elements_has_no_index():
    with pytest.raises(tw.LayoutError, match="index 1 of a shape with an extent of 0"):
        Layout((0, 3))(1)
