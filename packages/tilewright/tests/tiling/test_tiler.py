# SPDX-License-Identifier: Apache-2.0
"""Tilers: what the tiles cover, in which order, and what is refused."""

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import LayoutError
from tilewright.errors import CoordinateError
from tilewright.tiling import Box, Tiler
from tilewright.tiling.tiler import ORDERS


@st.composite
def axes(draw):
    """Return (space, tile, overlap, (before, after)) of an axis that has tiles."""
    tile = draw(st.integers(1, 6))
    overlap = draw(st.integers(0, tile - 1))
    margins = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    space = draw(st.integers(max(0, overlap + 1 - sum(margins)), 8))
    return space, tile, overlap, margins


@st.composite
def tilers(draw):
    parts = list(zip(*draw(st.lists(axes(), min_size=1, max_size=3)), strict=True))
    return Tiler(*map(tuple, parts), order=draw(st.sampled_from(ORDERS)))


@given(axes())
def test_tiles_cover_space_and_augmentation_exactly(axis):
    space, tile, overlap, (before, after) = axis
    tiles = list(Tiler((space,), (tile,), (overlap,), ((before, after),)))
    covered = [set(range(t.offset[0], t.end[0])) for t in tiles]
    assert set().union(*covered) == set(range(-before, space + after))
    assert all(len(a & b) == overlap for a, b in pairwise(covered))
    assert all(overlap < len(one) <= tile for one in covered[-1:])
    assert all(len(one) == tile for one in covered[:-1])


@given(tilers())
def test_every_order_visits_every_tile_once(tiler):
    coords = [tiler.coords(i) for i in range(len(tiler))]
    assert sorted(coords) == list(product(*map(range, tiler.grid)))
    assert [tiler.number_at(c) for c in coords] == list(range(len(tiler)))
    assert list(tiler) == [tiler.tile_at(c) for c in coords] == [tiler[i] for i in range(len(tiler))]


@given(tilers())
def test_the_largest_tile_holds_every_tile(tiler):
    for tile in tiler:
        assert all(a <= b for a, b in zip(tile.shape, tiler.largest_tile, strict=True))


@given(tilers(), st.booleans())
def test_neighbours_are_mutual_and_adjacent(tiler, diagonal):
    for number in range(min(len(tiler), 20)):
        for other in tiler.neighbours(number, diagonal):
            assert number in tiler.neighbours(other, diagonal)
            steps = [abs(a - b) for a, b in zip(tiler.coords(number), tiler.coords(other), strict=True)]
            assert max(steps) == 1
            assert diagonal or sum(steps) == 1


@pytest.mark.parametrize("order", ["snake", "hilbert"])
@pytest.mark.parametrize("grid", [(8,), (8, 8), (4, 4, 4), (2, 2, 2, 2), (4, 4, 4, 4)])
def test_snake_and_hilbert_step_from_neighbour_to_neighbour(order, grid):
    tiler = Tiler(grid, (1,) * len(grid), order=order)
    for a, b in pairwise(tiler):
        assert sum(abs(x - y) for x, y in zip(a.offset, b.offset, strict=True)) == 1


def test_a_snake_has_no_jumps_on_any_grid():
    for a, b in pairwise(Tiler((5, 3, 4), (1, 1, 1), order="snake")):
        assert sum(abs(x - y) for x, y in zip(a.offset, b.offset, strict=True)) == 1


def test_column_major_keeps_planes_outermost():
    tiler = Tiler((2, 2, 2), (1, 1, 1), order="column_major")
    assert [tiler.coords(i) for i in range(4)] == [(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1)]


def test_counts_are_exact_beyond_64_bits():
    tiler = Tiler((10**15, 10**15), (1, 1))
    assert tiler.count == 10**30
    assert tiler[tiler.count - 1] == Box((10**15 - 1, 10**15 - 1), (1, 1))
    assert Tiler((1000,), (300,), 256).count == 17
    for order in ORDERS:
        far = Tiler((10**15, 10**15), (1, 1), order=order)
        assert far.number_at(far.coords(10**29 + 7)) == 10**29 + 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((5,), (0,)), "at least 1"),
        (((5, 5), (2, 0)), "axis 1"),
        (((5,), (3,), 3), "at least 4"),
        (((5,), (3,), 4), "at least 5"),
        (((2,), (5,), 3), "leaves no tile"),
        (((1,), (5,), 4), "below 1"),
        (((-1,), (5,)), "negative"),
        (((5,), (5,), -1), "negative"),
        (((5,), (5,), 0, ((-1, 0),)), "negative"),
        (((5, 5), (5,)), "1 axis"),
        (((5, 5), (5, 5), 0, ((1, 1),)), "1 axis"),
        (((5.5,), (5,)), "integer"),
        (((5,), "x"), "integer"),
        (((5,), (5,), 0, 0, "spiral"), "unknown order 'spiral'"),
    ],
)
def test_degenerate_input_is_refused_with_the_rule(arguments, message):
    with pytest.raises(LayoutError, match=message):
        Tiler(*arguments)


def test_a_loop_over_very_many_tiles_starts_at_once():
    tiles = iter(Tiler((10**15, 3), (1, 2)))
    assert [next(tiles).offset for _ in range(3)] == [(0, 0), (0, 2), (1, 0)]


def test_an_empty_space_has_no_tiles():
    tiler = Tiler((0, 3), (4, 2))
    assert len(tiler) == 0
    assert list(tiler) == []
    assert tiler.get(0).empty


def test_ids_out_of_range():
    tiler = Tiler((10, 7), (4, 3))
    assert tiler.get(-1) == tiler.get(9) == Box((0, 0), (0, 0))
    assert not tiler.has_tile(-1)
    assert tiler[-1] == tiler[8]
    for wrong in (9, -10):
        with pytest.raises(CoordinateError, match="outside 0 to 8"):
            tiler[wrong]
    with pytest.raises(CoordinateError, match="outside the grid"):
        tiler.tile_at((3, 0))


def test_a_tile_larger_than_the_space_is_clamped():
    assert list(Tiler((3,), (9,), 2, 1)) == [Box((-1,), (5,))]


@given(tilers())
def test_repr_is_a_constructor_call(tiler):
    assert eval(repr(tiler), {"Tiler": Tiler}) == tiler  # noqa: S307
