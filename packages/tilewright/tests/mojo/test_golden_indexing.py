# SPDX-License-Identifier: Apache-2.0
"""Where elements lie, by every form of coordinate, as Mojo recorded it."""

from itertools import product

import numpy as np
import pytest

from tilewright import LayoutError
from tilewright.mojo.layout import Coord
from tilewright.mojo.layout.tile_layout import crd2idx, idx2crd

from .golden import assert_layout, leaves_of, listed, nested, replay, tensor_of


def assert_places(t, coords, offsets):
    """Compare the layout, the pointer and the value at each coordinate with where the element lies."""
    assert len(coords) == len(offsets)
    for coord, offset in zip(coords, offsets, strict=True):
        assert t.layout(*coord) == offset
        assert t.ptr_at_offset(Coord(*coord)).offset == offset
        assert t[coord] == t[Coord(*coord)] == t.load(*coord) == offset


def row_order(shape):
    return list(product(*[range(n) for n in shape]))


def assert_inverse(t, recorded):
    """Compare the free `idx2crd`, which is the bare formula, and the layout's own, which refuses what is not there."""
    layout = t.layout
    for offset, coord in enumerate(recorded):
        assert listed(idx2crd(offset, layout.shape, layout.stride)) == coord
        if layout(nested(coord)) == offset:
            assert listed(layout.idx2crd(offset)) == coord
        else:
            with pytest.raises(LayoutError, match="no coordinate"):
                layout.idx2crd(offset)


@replay("indexing_flat")
def test_flat_layouts(case):
    t = tensor_of(case)
    (result,) = case["results"]
    coords = row_order(case["layout"]["shape"])
    assert_places(t, coords, result["flat_offsets"])
    assert [crd2idx(c, t.layout.shape, t.layout.stride) for c in coords] == result["flat_offsets"]
    if "layout" in result:
        assert_layout(t.layout, result["layout"])
    assert_inverse(t, result.get("idx2crd", []))


@replay("indexing_nested")
def test_nested_layouts(case):
    t = tensor_of(case)
    (result,) = case["results"]
    assert_places(t, row_order(leaves_of(case["layout"]["shape"])), result["flat_offsets"])
    assert_places(t, row_order(t.shape), result["hier_offsets"])
    for form in ("nested", "mixed"):
        if f"{form}_offsets" in result:
            assert_places(t, nested(result["args"][f"{form}_coords"]), result[f"{form}_offsets"])
    if "layout" in result:
        assert_layout(t.layout, result["layout"])
    if "print" in result:
        assert format(t, "mojo") == result["print"]
    assert_inverse(t, result.get("idx2crd", []))


@replay("indexing_flat")
def test_one_integer_counts_with_the_first_index_fastest(case):
    t = tensor_of(case)
    offsets = case["base_view"]["offsets"]
    assert [t.layout(k) for k in range(t.numel())] == offsets
    assert [t.load(Coord(k)).item() for k in range(t.numel())] == offsets
    np.testing.assert_array_equal(t.flat(), offsets)
    np.testing.assert_array_equal(t.flat(order="row"), case["results"][0]["flat_offsets"])
