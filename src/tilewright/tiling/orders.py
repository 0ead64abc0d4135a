# SPDX-License-Identifier: Apache-2.0
"""Orders: in which sequence the tiles of a grid are visited, as a bijection between ids and grid coordinates.

Row-major, column-major and snake are arithmetic. Morton and Hilbert curves fill a cube whose side is a power of two;
here they run over a grid of any shape, and leave out what is not in it. An id is found without enumeration: the cube
is halved along every axis, and the cells of the grid in each child are counted, until one cell is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..errors import LayoutError

Coordinates = tuple[int, ...]
ORDERS = ("row_major", "column_major", "snake", "morton", "hilbert")


def coordinates_of(order: str, grid: Coordinates, number: int) -> Coordinates:
    """Return the coordinates that an order visits at a number, 0 <= number < product of the grid.

    >>> [coordinates_of("snake", (2, 3), i) for i in range(6)]
    [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)]
    """
    if order == "row_major":
        return _digits(grid, number)
    if order == "column_major":
        return _swapped(_digits(_swapped(grid), number))
    if order == "snake":
        return _reflected(grid, _digits(grid, number))
    return _descend_to_number(order, grid, number)


def number_of(order: str, grid: Coordinates, coordinates: Coordinates) -> int:
    """Return when an order visits coordinates of the grid: the inverse of `coordinates_of`.

    >>> number_of("morton", (4, 4), (1, 2)), number_of("column_major", (2, 3), (1, 2))
    (6, 5)
    """
    if order == "row_major":
        return _value(grid, coordinates)
    if order == "column_major":
        return _value(_swapped(grid), _swapped(coordinates))
    if order == "snake":
        return _value(grid, _reflected(grid, coordinates, inverse=True))
    return _descend_to_coordinates(order, grid, coordinates)


def check_order(order: str) -> str:
    """Return the order if there is one of that name.

    >>> check_order("morton")
    'morton'
    """
    if order not in ORDERS:
        raise LayoutError(f"there is no order {order!r}; choose one of {', '.join(ORDERS)}")
    return order


def _digits(grid: Coordinates, number: int) -> Coordinates:
    found = []
    for n in reversed(grid):
        number, digit = divmod(number, n)
        found.append(digit)
    return tuple(found[::-1])


def _value(grid: Coordinates, digits: Coordinates) -> int:
    value = 0
    for n, digit in zip(grid, digits, strict=True):
        value = value * n + digit
    return value


def _swapped(axes: Coordinates) -> Coordinates:
    """Return the last two axes exchanged: TTL's column-major keeps planes outermost."""
    return (*axes[:-2], *axes[:-3:-1])


def _reflected(grid: Coordinates, digits: Coordinates, inverse: bool = False) -> Coordinates:
    """Return the reflected digits: an axis runs backwards whenever the number made by the outer axes is odd."""
    found = []
    outer = 0
    for n, digit in zip(grid, digits, strict=True):
        turned = n - 1 - digit if outer % 2 else digit
        outer = outer * n + (turned if inverse else digit)
        found.append(turned)
    return tuple(found)


class _Curve:
    """Where a curve is in a cube: which child comes when, and the curve inside each child."""

    def __init__(self, order: str, rank: int, entry: int = 0, direction: int = 0) -> None:
        self.order, self.rank, self.entry, self.direction = order, rank, entry, direction

    def children(self) -> Iterator[tuple[Coordinates, _Curve]]:
        """Yield (halves, curve) of the children in the order of the curve; halves has a 0 or 1 for each axis.

        For Hilbert this is the recurrence of Hamilton and Rau-Chaplin: children follow a Gray code, rotated and
        reflected so that each child starts next to where the one before it ended.
        """
        rank = self.rank
        for k in range(1 << rank):
            if self.order == "morton":
                yield _bits(k, rank), self
                continue
            corner = self._turned(k ^ k >> 1) ^ self.entry
            start = 0 if k == 0 else _gray(2 * ((k - 1) // 2))
            along = 0 if k == 0 else _trailing_ones(k if k % 2 else k - 1) % rank
            entry = self._turned(start) ^ self.entry
            yield _bits(corner, rank), _Curve(self.order, rank, entry, (self.direction + along + 1) % rank)

    def _turned(self, bits: int) -> int:
        by = (self.direction + 1) % self.rank
        return (bits << by | bits >> (self.rank - by)) & ((1 << self.rank) - 1)


def _gray(number: int) -> int:
    return number ^ number >> 1


def _trailing_ones(number: int) -> int:
    return (~number & (number + 1)).bit_length() - 1


def _bits(number: int, rank: int) -> Coordinates:
    return tuple([number >> (rank - 1 - axis) & 1 for axis in range(rank)])


def _inside(grid: Coordinates, corner: Coordinates, side: int) -> int:
    """Return how many cells of the grid lie in a cube."""
    return prod(max(0, min(n - at, side)) for n, at in zip(grid, corner, strict=True))


def _side(grid: Coordinates) -> int:
    return int(1 << (max(grid, default=1) - 1).bit_length())


def _descend_to_number(order: str, grid: Coordinates, number: int) -> Coordinates:
    corner, side, curve = (0,) * len(grid), _side(grid), _Curve(order, len(grid))
    while side > 1:
        side //= 2
        for halves, inner in curve.children():
            child = tuple([at + half * side for at, half in zip(corner, halves, strict=True)])
            cells = _inside(grid, child, side)
            if number < cells:
                corner, curve = child, inner
                break
            number -= cells
    return corner


def _descend_to_coordinates(order: str, grid: Coordinates, coordinates: Coordinates) -> int:
    corner, side, curve = (0,) * len(grid), _side(grid), _Curve(order, len(grid))
    number = 0
    while side > 1:
        side //= 2
        for halves, inner in curve.children():
            child = tuple([at + half * side for at, half in zip(corner, halves, strict=True)])
            if all(at <= c < at + side for at, c in zip(child, coordinates, strict=True)):
                corner, curve = child, inner
                break
            number += _inside(grid, child, side)
    return number
