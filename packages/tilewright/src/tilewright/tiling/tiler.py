# SPDX-License-Identifier: Apache-2.0
"""`Tiler`: a space cut into tiles that may overlap, extend beyond it, and be smaller at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product as combinations
from math import prod
from operator import index
from typing import Any, TypeAlias

from .._text import canonical_word
from ..display import Drawable
from ..errors import CoordinateError, LayoutError
from ..layout import Box, empty_box
from ..memory import TileExplanation

Extents: TypeAlias = int | Sequence[int]
"""One number for every axis, or one number per axis."""

Margins: TypeAlias = int | Sequence[int | Sequence[int]]
"""One number for every side, one number per axis, or one (before, after) pair per axis."""

_MAX_LISTED_SPANS = 1 << 16  # tiles along an axis; longer axes are iterated tile by tile


def as_extents(value: Extents, name: str, rank: int | None = None) -> tuple[int, ...]:
    """Return one integer per axis; a single integer is repeated `rank` times.

    `name` names the value in messages. With a `rank`, a sequence must have that many entries.

    >>> as_extents(2, "overlap", 3), as_extents([4, 5], "space")
    ((2, 2, 2), (4, 5))
    """
    try:
        numbers = tuple([index(n) for n in value]) if isinstance(value, Sequence) else (index(value),) * (rank or 1)
    except TypeError:
        raise LayoutError(f"expected an integer or one integer per axis as {name}, got {value!r}") from None
    if rank is not None and len(numbers) != rank:
        raise LayoutError(
            f"{name} {numbers} has {_count_axes(numbers)}, but the space has {rank}; give one integer, or one per axis"
        )
    return numbers


def as_margins(value: Margins, name: str, rank: int) -> tuple[tuple[int, int], ...]:
    """Return one (before, after) pair per axis, from one number, one number per axis, or one pair per axis.

    `name` names the value in messages.

    >>> as_margins(1, "overlap", 2), as_margins((0, (1, 2)), "overlap", 2)
    (((1, 1), (1, 1)), ((0, 0), (1, 2)))
    """
    sides = value if isinstance(value, Sequence) else (value,) * rank
    pairs = [as_extents(side, name, 2) for side in sides]
    if len(pairs) != rank:
        raise LayoutError(
            f"{name} {value!r} has {_count_axes(pairs)}, but the space has {rank}; give one number or one (before,"
            " after) pair per axis"
        )
    return tuple([(before, after) for before, after in pairs])


def _count_axes(values: Sequence[Any]) -> str:
    return "1 axis" if len(values) == 1 else f"{len(values)} axes"


@dataclass(frozen=True, init=False)
class Tiler(Drawable):
    """The tiles of a space of any rank, as a sequence of boxes; axes are outermost first.

    Along an axis with space S, tile T, overlap V and augmentation (A, B), tile i starts at i * (T - V) - A, and
    ceil((S + A + B - V) / (T - V)) tiles cover exactly [-A, S + B). The last tile may be smaller. Only augmentation
    extends tiles beyond the space.

    Args:
        space: the extents to cut.
        tile: the extents of a tile.
        overlap: elements that neighbouring tiles share.
        augmentation: elements that tiles extend beyond the space, before and after it.
        order: in which order tiles are numbered: "row_major", "col_major", "snake", "morton" or "hilbert".

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
        self, space: Extents, tile: Extents, overlap: Extents = 0, augmentation: Margins = 0, order: str = "row_major"
    ) -> None:
        space_extents = as_extents(space, "space")
        rank = len(space_extents)
        values = {
            "space": space_extents,
            "tile": as_extents(tile, "tile", rank),
            "overlap": as_extents(overlap, "overlap", rank),
            "augmentation": as_margins(augmentation, "augmentation", rank),
            "order": validate_order(order),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        for axis in range(rank):
            self._validate_axis(axis)

    def _validate_axis(self, axis: int) -> None:
        space, tile, overlap, (before, after) = (
            self.space[axis],
            self.tile[axis],
            self.overlap[axis],
            self.augmentation[axis],
        )
        if min(space, overlap, before, after) < 0:
            raise LayoutError(
                f"axis {axis} has space {space}, overlap {overlap} and augmentation ({before}, {after});"
                " none of them may be negative"
            )
        if tile < 1 or tile <= overlap:
            raise LayoutError(
                f"tile {tile} must be larger than overlap {overlap} on axis {axis}; use a tile of at least"
                f" {max(1, overlap + 1)}"
            )
        if space and self._tiles_along(axis) == 0:
            raise LayoutError(
                f"overlap {overlap} leaves no tile for the {space} elements of axis {axis}; use an overlap below"
                f" {space + before + after}, or augment the axis"
            )

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """The number of tiles along each axis.

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
        """The number of tiles; unlike `len`, without a size limit.

        >>> Tiler((10**12, 10**12), (1, 1)).count == 10**24
        True
        """
        return prod(self.grid)

    @property
    def rank(self) -> int:
        """The number of axes.

        >>> Tiler((10, 7), (4, 3)).rank
        2
        """
        return len(self.space)

    @cached_property
    def largest_tile(self) -> tuple[int, ...]:
        """The extents that hold every tile, and so the extents that a buffer needs.

        >>> Tiler((10, 2), (4, 3)).largest_tile
        (4, 2)
        """
        reach = [n + a + b for n, (a, b) in zip(self.space, self.augmentation, strict=True)]
        return tuple([min(tile, n) for tile, n in zip(self.tile, reach, strict=True)])

    @cached_property
    def axes(self) -> tuple[tuple[int, int, int, int, int], ...]:
        """(stride, first offset, tile extent, last index, last tile's extent) of each axis.

        >>> Tiler((10,), (4,), overlap=1).axes
        ((3, 0, 4, 2, 4),)
        """
        axes = []
        for axis, n in enumerate(self.grid):
            before, after = self.augmentation[axis]
            stride = self.tile[axis] - self.overlap[axis]
            last = self.space[axis] + after - ((n - 1) * stride - before)
            axes.append((stride, -before, self.tile[axis], n - 1, last))
        return tuple(axes)

    @property
    def volume(self) -> int:
        """The number of elements of all tiles; shared elements count once per tile.

        >>> Tiler((10, 7), (4, 3), overlap=(1, 0)).volume
        84
        """
        return prod([last * extent + rest for _, _, extent, last, rest in self.axes]) if self.count else 0

    def tile_at(self, coords: Sequence[int]) -> Box:
        """Return the tile at grid coordinates `coords`.

        >>> Tiler((10, 7), (4, 3)).tile_at((2, 0))
        Box(offset=(8, 0), shape=(2, 3))
        """
        if len(coords) != self.rank or not all(0 <= c < n for c, n in zip(coords, self.grid, strict=True)):
            raise CoordinateError(f"tile coordinates {tuple(coords)} are outside the grid {self.grid} of {self}")
        return self._tile_at(coords)

    def _tile_at(self, coords: Sequence[int]) -> Box:
        offset, shape = [], []
        for c, (stride, first, extent, last, rest) in zip(coords, self.axes, strict=True):
            offset.append(c * stride + first)
            shape.append(rest if c == last else extent)
        return Box(tuple(offset), tuple(shape))

    def coords(self, number: int) -> tuple[int, ...]:
        """Return the grid coordinates of tile `number`.

        >>> Tiler((10, 7), (4, 3), order="column_major").coords(1)
        (1, 0)
        """
        if not self.has_tile(number):
            raise CoordinateError(f"tile {number} is outside 0 to {self.count - 1} of {self}")
        return coordinates_of(self.order, self.grid, number)

    def number_at(self, coords: Sequence[int]) -> int:
        """Return the number of the tile at grid coordinates `coords`.

        >>> Tiler((10, 7), (4, 3), order="column_major").number_at((1, 0))
        1
        """
        self.tile_at(coords)
        return number_of(self.order, self.grid, tuple(coords))

    def has_tile(self, number: int) -> bool:
        """Return whether `number` is the number of a tile.

        >>> Tiler((10, 7), (4, 3)).has_tile(9)
        False
        """
        return 0 <= number < self.count

    def get(self, number: int) -> Box:
        """Return tile `number`, or an empty box if the number is out of range.

        >>> Tiler((10, 7), (4, 3)).get(9).empty
        True
        """
        return self[number] if self.has_tile(number) else empty_box(self.rank)

    def explain_element(self, coordinate: Sequence[int]) -> TileExplanation:
        """Return which tiles hold the element at `coordinate`, and where in them.

        >>> print(Tiler((10, 7), (4, 3)).explain_element((8, 6)))
        element   (8, 6) of 10 x 7
        tile      8 = (2, 2) of 3 x 3: element (0, 0)
        """
        at = tuple([int(c) for c in coordinate])
        if len(at) != self.rank or not all(0 <= c < n for c, n in zip(at, self.space, strict=True)):
            raise CoordinateError(f"element {at} is outside a space of {' x '.join(map(str, self.space))}")
        along = [
            [(k, c - k * stride - first) for k in tiles_along(self, axis, c, c + 1)]
            for axis, (c, (stride, first, *_)) in enumerate(zip(at, self.axes, strict=True))
        ]
        holders = []
        for entries in combinations(*along):
            tile, inside = (tuple(entry) for entry in zip(*entries, strict=True)) if entries else ((), ())
            holders.append((number_of(self.order, self.grid, tile), tile, inside))
        return TileExplanation(self.space, self.grid, at, tuple(holders))

    def neighbours(self, number: int, diagonal: bool = False) -> list[int]:
        """Return the numbers of the tiles that share a face (with `diagonal`, also a corner) with tile `number`.

        >>> Tiler((10, 7), (4, 3)).neighbours(0)
        [1, 3]
        """
        here = self.coords(number)
        numbers = []
        for direction in combinations((-1, 0, 1), repeat=self.rank):
            if not any(direction) or (not diagonal and sum(map(abs, direction)) > 1):
                continue
            there = [c + d for c, d in zip(here, direction, strict=True)]
            if all(0 <= c < n for c, n in zip(there, self.grid, strict=True)):
                numbers.append(number_of(self.order, self.grid, tuple(there)))
        return sorted(numbers)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Box:
        if number < 0:
            number += self.count
        return self._tile_at(self.coords(number))

    def __iter__(self) -> Iterator[Box]:
        if self.order != "row_major" or not self.space or max(self.grid) > _MAX_LISTED_SPANS:
            yield from map(self.__getitem__, range(self.count))
            return
        axes = [self._axis_spans(*axis) for axis in self.axes]
        for spans in combinations(*axes):
            offset, shape = zip(*spans, strict=True)
            yield Box(offset, shape)

    @staticmethod
    def _axis_spans(stride: int, first: int, extent: int, last: int, rest: int) -> list[tuple[int, int]]:
        """Return (start, length) of each tile along an axis."""
        return [(c * stride + first, rest if c == last else extent) for c in range(last + 1)]


def tiles_along(tiler: Tiler, axis: int, start: int, end: int) -> range:
    """Return the grid coordinates, along an axis, of the tiles that hold elements from `start` to before `end`.

    >>> tiles_along(Tiler((10,), (4,), overlap=1), 0, 3, 5)
    range(0, 2)
    """
    stride, first, extent, last, _ = tiler.axes[axis]
    low = max(0, -(-(start - first - extent + 1) // stride))  # the first tile that reaches them
    return range(low, min(last, (end - 1 - first) // stride) + 1)


Coordinates = tuple[int, ...]
ORDERS = ("row_major", "col_major", "snake", "morton", "hilbert")


def coordinates_of(order: str, grid: Coordinates, number: int) -> Coordinates:
    """Return the grid coordinates of tile `number` in an order; 0 <= number < product of the grid.

    >>> [coordinates_of("snake", (2, 3), i) for i in range(6)]
    [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)]
    """
    if order == "row_major":
        return _to_digits(grid, number)
    if order == "col_major":
        return _swap_last_axes(_to_digits(_swap_last_axes(grid), number))
    if order == "snake":
        return _reflect_odd_rows(grid, _to_digits(grid, number))
    return _curve_coordinates(order, grid, number)


def number_of(order: str, grid: Coordinates, coordinates: Coordinates) -> int:
    """Return the tile number of grid coordinates in an order: the inverse of `coordinates_of`.

    >>> number_of("morton", (4, 4), (1, 2)), number_of("col_major", (2, 3), (1, 2))
    (6, 5)
    """
    if order == "row_major":
        return _from_digits(grid, coordinates)
    if order == "col_major":
        return _from_digits(_swap_last_axes(grid), _swap_last_axes(coordinates))
    if order == "snake":
        return _from_digits(grid, _reflect_odd_rows(grid, coordinates, inverse=True))
    return _curve_number(order, grid, coordinates)


def validate_order(order: str) -> str:
    """Return the name of an order as the library spells it, or raise if it is unknown.

    >>> validate_order("morton"), validate_order("COLUMN-MAJOR")
    ('morton', 'col_major')
    """
    known = canonical_word(str(order))
    if known not in ORDERS:
        raise LayoutError(f"unknown order {order!r}; choose one of {', '.join(ORDERS)}")
    return known


def _to_digits(grid: Coordinates, number: int) -> Coordinates:
    digits = []
    for n in reversed(grid):
        number, digit = divmod(number, n)
        digits.append(digit)
    return tuple(digits[::-1])


def _from_digits(grid: Coordinates, digits: Coordinates) -> int:
    value = 0
    for n, digit in zip(grid, digits, strict=True):
        value = value * n + digit
    return value


def _swap_last_axes(axes: Coordinates) -> Coordinates:
    """Return the axes with the last two exchanged; outer axes stay outermost."""
    return (*axes[:-2], *axes[:-3:-1])


def _reflect_odd_rows(grid: Coordinates, digits: Coordinates, inverse: bool = False) -> Coordinates:
    """Return digits in which an axis runs backwards wherever the number of the outer axes is odd."""
    result = []
    outer = 0
    for n, digit in zip(grid, digits, strict=True):
        reflected = n - 1 - digit if outer % 2 else digit
        outer = outer * n + (reflected if inverse else digit)
        result.append(reflected)
    return tuple(result)


class _Curve:
    """A Morton or Hilbert curve through a cube: the order of its children, and the curve inside each child."""

    def __init__(self, order: str, rank: int, entry: int = 0, direction: int = 0) -> None:
        self.order, self.rank, self.entry, self.direction = order, rank, entry, direction

    def child_cubes(self, corner: Coordinates, side: int) -> Iterator[tuple[Coordinates, _Curve]]:
        """Yield (corner, curve) of each child of a cube along the curve; children have half its side, `side`.

        For Hilbert this is the recurrence of Hamilton and Rau-Chaplin: children follow a Gray code, rotated and
        reflected so that each child starts next to where the one before it ended.
        """
        rank = self.rank
        for k in range(1 << rank):
            bits, inner = k, self
            if self.order == "hilbert":
                bits = self._rotate_bits(_gray_code(k)) ^ self.entry
                start = 0 if k == 0 else _gray_code(2 * ((k - 1) // 2))
                along = 0 if k == 0 else _trailing_ones(k if k % 2 else k - 1) % rank
                entry = self._rotate_bits(start) ^ self.entry
                inner = _Curve(self.order, rank, entry, (self.direction + along + 1) % rank)
            halves = [bits >> (rank - 1 - axis) & 1 for axis in range(rank)]
            yield tuple([at + half * side for at, half in zip(corner, halves, strict=True)]), inner

    def _rotate_bits(self, bits: int) -> int:
        by = (self.direction + 1) % self.rank
        return (bits << by | bits >> (self.rank - by)) & ((1 << self.rank) - 1)


def _gray_code(number: int) -> int:
    return number ^ number >> 1


def _trailing_ones(number: int) -> int:
    return (~number & (number + 1)).bit_length() - 1


def _count_cells_in_cube(grid: Coordinates, corner: Coordinates, side: int) -> int:
    """Return the number of grid cells inside a cube."""
    return prod(max(0, min(n - at, side)) for n, at in zip(grid, corner, strict=True))


def _cube_side(grid: Coordinates) -> int:
    return int(1 << (max(grid, default=1) - 1).bit_length())


def _curve_coordinates(order: str, grid: Coordinates, number: int) -> Coordinates:
    corner, side, curve = (0,) * len(grid), _cube_side(grid), _Curve(order, len(grid))
    while side > 1:
        side //= 2
        for child, inner in curve.child_cubes(corner, side):
            cells = _count_cells_in_cube(grid, child, side)
            if number < cells:
                corner, curve = child, inner
                break
            number -= cells
    return corner


def _curve_number(order: str, grid: Coordinates, coordinates: Coordinates) -> int:
    corner, side, curve = (0,) * len(grid), _cube_side(grid), _Curve(order, len(grid))
    number = 0
    while side > 1:
        side //= 2
        for child, inner in curve.child_cubes(corner, side):
            if all(at <= c < at + side for at, c in zip(child, coordinates, strict=True)):
                corner, curve = child, inner
                break
            number += _count_cells_in_cube(grid, child, side)
    return number
