# SPDX-License-Identifier: Apache-2.0
"""A layout given to NumPy is its offsets, or refused: never its coordinates."""

import numpy as np
import pytest
from hypothesis import given

import tilewright as tw
from tilewright import cute
from tilewright.mojo.layout import row_major as mojo_row_major

from .strategies import layouts

DATA = np.arange(1000, 2000)
LAYOUTS = [
    tw.Layout((2, 3), (3, 1)),
    tw.Layout(7, 3),
    tw.Layout((4, (2, 3)), (6, (1, 2))),
    tw.Layout(()),
    tw.Layout((0, 3)),
    tw.Layout((3, 4), (5, 1)) + 9,
    tw.tiled_layout((4, 8), (2, 2)),
    tw.compose(tw.Swizzle(2, 0, 2), tw.row_major(4, 4)),
    tw.compose(tw.Layout((6, 2), (8, 2)), tw.Layout((4, 3), (3, 1))),
    cute.Layout((4, 8), (8, 1)),
    cute.composition(cute.Swizzle(3, 0, 3), cute.Layout((8, 8), (8, 1))),
    mojo_row_major(4, 8),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_an_array_of_a_layout_is_its_offsets(layout):
    places = layout.offsets()
    for made in (np.asarray(layout), np.array(layout), np.asanyarray(layout)):
        assert (made.dtype, made.tolist()) == (np.int64, places.tolist())
    assert np.asarray(layout, dtype=np.int16).dtype == np.int16
    assert np.array(layout, dtype=float).tolist() == places.astype(float).tolist()
    np.testing.assert_array_equal(DATA[layout], DATA[places])
    np.testing.assert_array_equal(DATA.take(layout), DATA[places])
    if layout.rank:
        assert np.array([layout, layout]).shape == (2, *places.shape)


@given(layouts())
def test_gathering_by_a_layout_reads_where_it_says(layout):
    if layout.axes or layout.is_replicated or layout._has_padding():
        with pytest.raises(tw.LayoutError, match=r"not plain offsets|has padding"):
            np.asarray(layout)
    else:
        np.testing.assert_array_equal(np.asarray(layout), layout.offsets())


def test_places_that_are_no_numbers_are_refused():
    for refused, reason in [
        (tw.Layout((2, 3), (1 @ tw.bank, 1 @ tw.addr)), r"take one axis with .project\(axis\)"),
        (tw.replicate(tw.Layout(4), 2, 100), "are not plain offsets"),
        (tw.logical_divide(tw.Layout(10), 4), r"has padding, which has no offset; use .offsets\(fill=...\)"),
    ]:
        for use in (np.asarray, lambda layout: DATA[layout]):
            with pytest.raises(tw.LayoutError, match=reason):
                use(refused)
    with pytest.raises(tw.LayoutError, match="do not fit into int8; use a wider dtype"):
        np.asarray(tw.Layout(2, 1000), dtype=np.int8)
    with pytest.raises(tw.LayoutError, match="copy=False rules out"):
        tw.Layout(4).__array__(copy=False)
    with pytest.raises(tw.LayoutError, match="expected an integer type for offsets, got float32"):
        tw.Layout(4).offsets(dtype=np.float32)


def test_arithmetic_with_numbers_of_numpy_is_the_layouts_own():
    layout = tw.Layout((2, 3), (3, 1))
    assert np.int64(3) + layout == layout + np.int64(3) == 3 + layout
    assert (layout == np.arange(6)) is False
    with pytest.raises(TypeError):
        np.arange(6) + layout


def test_layouts_of_mojo_and_parsed_texts_are_offsets_too():
    import tilewright.mojo.layout as mojo

    wanted = tw.Layout((4, 8), (8, 1)).offsets().tolist()
    for layout in (
        mojo.Layout.row_major(4, 8),
        mojo.RuntimeLayout.row_major(4, 8),
        mojo.row_major[4, 8](),
        tw.parse("f32[4,8]{1,0}"),
    ):
        assert np.asarray(layout).tolist() == np.arange(32)[layout].tolist() == wanted
    with pytest.raises(tw.LayoutError, match="has unknown extents"):
        np.asarray(mojo.Layout.row_major(mojo.UNKNOWN_VALUE, 8))
    registers = "tensor<2xf16, #ttg.linear<{register = [], lane = [[1]], warp = [], block = []}>>"
    with pytest.raises(tw.LayoutError, match="are not offsets"):
        np.asarray(tw.parse(registers))
