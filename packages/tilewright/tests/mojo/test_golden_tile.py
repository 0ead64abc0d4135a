# SPDX-License-Identifier: Apache-2.0
"""Tiles: their views, corners and offsets, as Mojo recorded them."""

from math import prod

import numpy as np
import pytest

import tilewright as tw
from tilewright import LayoutError
from tilewright.mojo.layout import Coord, Idx, Layout, coord

from .golden import assert_view, listed, nested, replay, storage, tensor_of

OUTSIDE = {"tile_dyn-p001"}  # its tile starts where the parent has ended; Mojo does not look


def valid_extents(shape, sizes, coords):
    """Return how much of each mode of a tile lies in its parent."""
    return tuple(min(n, extent - c * n) for extent, n, c in zip(shape, sizes, coords, strict=True))


@replay("tile")
def test_tile(case):
    t = tensor_of(case)
    sizes = tuple(case["tile_sizes"])
    for result in case["results"]:
        at = result["args"]["coords"]
        part = t.tile[sizes](*at)
        assert_view(part, result["view"])
        assert_view(t.tile[sizes](Coord(*at)), result["view"])
        assert part.valid_shape == valid_extents(t.shape, sizes, at)
        assert part.is_ragged == (part.valid_shape != sizes)


@replay("tile")
def test_tile_with_offset(case):
    t = tensor_of(case)
    for result in case["results"]:
        part, corner, offset = t.tile_with_offset[tuple(case["tile_sizes"])](Coord(*result["args"]["coords"]))
        assert_view(part, result["view"])
        assert (listed(corner), offset) == (result["corner"], result["linear_offset"])
        assert part.offset == result["with_offset_view_offset"]


def tile_by_form(t, case, form):
    sizes, at = case["tile_sizes"], Coord(*case["coords"])
    if form == "coord_static":
        return t.tile(coord[tuple(sizes)], at)
    if form == "coord_runtime":
        return t.tile(Coord(*map(Idx, sizes)), at)
    steps = Layout(coord[tuple(case["layout"]["stride"])])
    return t.tile[tuple(sizes)](at, stride_layout=steps)


@replay("tile_dyn")
def test_tile_shapes_at_run_time(case):
    t = tensor_of(case)
    for result in case["results"]:
        if case["id"] in OUTSIDE:
            with pytest.raises(IndexError, match="is outside a tensor"):
                tile_by_form(t, case, result["form"])
        else:
            assert_view(tile_by_form(t, case, result["form"]), result["view"])


@replay("tile_dyn", select=lambda case: case["id"] not in OUTSIDE)
def test_a_stride_layout_must_state_the_real_strides(case):
    wrong = Layout(coord[tuple(step + 1 for step in case["layout"]["stride"])])
    with pytest.raises(LayoutError, match="stride_layout states"):
        tensor_of(case).tile[tuple(case["tile_sizes"])](Coord(*case["coords"]), stride_layout=wrong)


@replay("tile_nested")
def test_tile_of_leaves(case):
    t = tensor_of(case)
    for result in case["results"]:
        part = t.tile[tuple(case["tile_sizes"])](*result["args"]["coords"])
        assert_view(part, result["view"])


@replay("tile_nested")
def test_a_tensor_of_the_library_cuts_tiles_from_logical_indices(case):
    shape, stride = (nested(case["base_view"][key]) for key in ("shape", "stride"))
    t = tw.TileTensor(storage(case["dtype"]), tw.Layout(shape, stride))
    elements, sizes = t.to_numpy(), case["tile_sizes"]
    counts = [extent // n for extent, n in zip(t.shape, sizes, strict=True)]
    assert prod(counts) > 0
    for at in np.ndindex(*counts):
        block = tuple(slice(c * n, (c + 1) * n) for c, n in zip(at, sizes, strict=True))
        part = t.tile[tuple(sizes)](*map(int, at))
        np.testing.assert_array_equal(part.to_numpy(), elements[block])
