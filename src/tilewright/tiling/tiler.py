# SPDX-License-Identifier: Apache-2.0
"""`Tiler`: a space cut into tiles that may overlap, reach beyond it, and be smaller at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product as combinations
from math import prod
from typing import Any

from ..errors import CoordinateError, LayoutError
from ..layout.box import Box, empty_box
from ..showing import Shown
from .extents import extents
from .orders import check_order, coordinates_of, number_of

_MOST_LISTED = 1 << 16  # tiles of an axis that are listed before a loop over all tiles; more are found one by one


@dataclass(frozen=True, init=False)
class Tiler(Shown):
    """The tiles of a space, in an order: a sequence of boxes, of any rank, outermost axis first.

    Along each axis, for a space S, a tile T, an overlap V and an augmentation of A before and B after, tile i starts
    at i * (T - V) - A, and ceil((S + A + B - V) / (T - V)) tiles cover exactly [-A, S + B); the last may be smaller.
    Only augmentation reaches beyond the space.

    >>> tiler = Tiler((10, 7), (4, 3))
    >>> len(tiler), tiler.grid, tiler[8]
    (9, (3, 3), Box(offset=(8, 6), shape=(2, 1)))
    >>> Tiler((10,), (6,), overlap=2, augmentation=1)[0]
    Box(offset=(-1,), shape=(6,))
    """

    space: tuple[int, ...]
    tile: tuple[int, ...]
    overlap: tuple[int, ...]
    augmentation: tuple[tuple[int, int], ...]
    order: str

    def __init__(
        self, space: Any, tile: Any, overlap: Any = 0, augmentation: Any = 0, order: str = "row_major"
    ) -> None:
        whole = extents(space, "space")
        rank = len(whole)
        values = {
            "space": whole,
            "tile": extents(tile, "tile", rank),
            "overlap": extents(overlap, "overlap", rank),
            "augmentation": _margins(augmentation, rank),
            "order": check_order(order),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        for axis in range(rank):
            self._check_axis(axis)

    def _check_axis(self, axis: int) -> None:
        space, tile, overlap, (before, after) = (
            self.space[axis],
            self.tile[axis],
            self.overlap[axis],
            self.augmentation[axis],
        )
        if min(space, overlap, before, after) < 0:
            raise LayoutError(
                f"axis {axis} has space {space}, overlap {overlap}, augmentation ({before}, {after});"
                " none of them may be negative"
            )
        if tile < 1 or tile <= overlap:
            raise LayoutError(
                f"a tile of {tile} with an overlap of {overlap} on axis {axis} never advances;"
                f" the tile must be at least {max(1, overlap + 1)}"
            )
        if space and self._tiles_along(axis) == 0:
            raise LayoutError(
                f"an overlap of {overlap} leaves no tile for the {space} elements of axis {axis}, which would be"
                f" skipped; use an overlap below {space + before + after}, or augment the axis"
            )

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """Return the number of tiles along each axis.

        >>> Tiler((10, 7), (4, 3), overlap=(1, 0)).grid
        (3, 3)
        """
        return tuple([self._tiles_along(axis) for axis in range(len(self.space))])

    def _tiles_along(self, axis: int) -> int:
        before, after = self.augmentation[axis]
        covered = self.space[axis] + before + after - self.overlap[axis]
        return max(0, -(-covered // (self.tile[axis] - self.overlap[axis])))

    @cached_property
    def count(self) -> int:
        """Return the number of tiles; unlike `len`, of any size.

        >>> Tiler((10**12, 10**12), (1, 1)).count == 10**24
        True
        """
        return prod(self.grid)

    @property
    def rank(self) -> int:
        """Return the number of axes.

        >>> Tiler((10, 7), (4, 3)).rank
        2
        """
        return len(self.space)

    @cached_property
    def largest(self) -> tuple[int, ...]:
        """Return the shape that holds every tile: what a buffer must have room for.

        >>> Tiler((10, 2), (4, 3)).largest
        (4, 2)
        """
        reach = [n + a + b for n, (a, b) in zip(self.space, self.augmentation, strict=True)]
        return tuple([min(tile, n) for tile, n in zip(self.tile, reach, strict=True)])

    @cached_property
    def axes(self) -> tuple[tuple[int, int, int, int, int], ...]:
        """Return, for each axis, the step, the first offset, the tile, the last number and the last tile's extent.

        >>> Tiler((10,), (4,), overlap=1).axes
        ((3, 0, 4, 2, 4),)
        """
        found = []
        for axis, n in enumerate(self.grid):
            before, after = self.augmentation[axis]
            step = self.tile[axis] - self.overlap[axis]
            last = self.space[axis] + after - ((n - 1) * step - before)
            found.append((step, -before, self.tile[axis], n - 1, last))
        return tuple(found)

    @property
    def volume(self) -> int:
        """Return the number of elements of all tiles, those that tiles share counted for each.

        >>> Tiler((10, 7), (4, 3), overlap=(1, 0)).volume
        84
        """
        return prod([last * extent + rest for _, _, extent, last, rest in self.axes]) if self.count else 0

    def tile_at(self, coords: Sequence[int]) -> Box:
        """Return the tile at grid coordinates.

        >>> Tiler((10, 7), (4, 3)).tile_at((2, 0))
        Box(offset=(8, 0), shape=(2, 3))
        """
        if len(coords) != self.rank or not all(0 <= c < n for c, n in zip(coords, self.grid, strict=True)):
            raise CoordinateError(f"tile coordinates {tuple(coords)} are outside the grid {self.grid} of {self}")
        return self._tile_at(coords)

    def _tile_at(self, coords: Sequence[int]) -> Box:
        offset, shape = [], []
        for c, (step, first, extent, last, rest) in zip(coords, self.axes, strict=True):
            offset.append(c * step + first)
            shape.append(rest if c == last else extent)
        return Box(tuple(offset), tuple(shape))

    def coords(self, number: int) -> tuple[int, ...]:
        """Return the grid coordinates of a tile, by its id.

        >>> Tiler((10, 7), (4, 3), order="column_major").coords(1)
        (1, 0)
        """
        if not self.valid(number):
            raise CoordinateError(f"tile {number} is outside 0 to {self.count - 1} of {self}")
        return coordinates_of(self.order, self.grid, number)

    def id_at(self, coords: Sequence[int]) -> int:
        """Return the id of the tile at grid coordinates.

        >>> Tiler((10, 7), (4, 3), order="column_major").id_at((1, 0))
        1
        """
        self.tile_at(coords)
        return number_of(self.order, self.grid, tuple(coords))

    def valid(self, number: int) -> bool:
        """Return whether there is a tile of that id.

        >>> Tiler((10, 7), (4, 3)).valid(9)
        False
        """
        return 0 <= number < self.count

    def get(self, number: int) -> Box:
        """Return the tile of an id, and an empty one for an id out of range.

        >>> Tiler((10, 7), (4, 3)).get(9).empty
        True
        """
        return self[number] if self.valid(number) else empty_box(self.rank)

    def neighbours(self, number: int, diagonal: bool = False) -> list[int]:
        """Return the ids of the tiles that share a face, or with `diagonal` a corner, with a tile.

        >>> Tiler((10, 7), (4, 3)).neighbours(0)
        [1, 3]
        """
        here = self.coords(number)
        found = []
        for step in combinations((-1, 0, 1), repeat=self.rank):
            if not any(step) or (not diagonal and sum(map(abs, step)) > 1):
                continue
            there = [c + d for c, d in zip(here, step, strict=True)]
            if all(0 <= c < n for c, n in zip(there, self.grid, strict=True)):
                found.append(number_of(self.order, self.grid, tuple(there)))
        return sorted(found)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Box:
        if number < 0:
            number += self.count
        return self._tile_at(self.coords(number))

    def __iter__(self) -> Iterator[Box]:
        if self.order != "row_major" or not self.space or max(self.grid) > _MOST_LISTED:
            yield from map(self.__getitem__, range(self.count))
            return
        axes = [self._spans(*axis) for axis in self.axes]
        for spans in combinations(*axes):
            offset, shape = zip(*spans, strict=True)
            yield Box(offset, shape)

    @staticmethod
    def _spans(step: int, first: int, extent: int, last: int, rest: int) -> list[tuple[int, int]]:
        """Return where each tile of an axis starts, and how long it is."""
        return [(c * step + first, rest if c == last else extent) for c in range(last + 1)]


def _margins(value: Any, rank: int) -> tuple[tuple[int, int], ...]:
    """Return (before, after) of each axis, from one number, one number an axis, or one pair an axis."""
    if not isinstance(value, Sequence):
        value = (value,) * rank
    pairs = [extents(margin, "augmentation", 2) for margin in value]
    if len(pairs) != rank:
        raise LayoutError(
            f"augmentation {value!r} has {len(pairs)} axes, but the space has {rank}; give one (before, after) an axis"
        )
    return tuple([(before, after) for before, after in pairs])
