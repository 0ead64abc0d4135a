# SPDX-License-Identifier: Apache-2.0
"""The orders in which tiles of a grid are visited, as bijections between tile numbers and grid coordinates.

Row-major, column-major and snake are arithmetic. Morton and Hilbert curves fill a cube with a power-of-two side; here
they cover a grid of any shape by skipping cells outside it. Nothing is enumerated: the cube is halved along every axis,
and the grid cells of each child are counted, until one cell is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..errors import LayoutError

Coordinates = tuple[int, ...]
ORDERS = ("row_major", "column_major", "snake", "morton", "hilbert")


def coordinates_of(order: str, grid: Coordinates, number: int) -> Coordinates:
    """Return the grid coordinates of tile `number` in an order; 0 <= number < product of the grid.

    >>> [coordinates_of("snake", (2, 3), i) for i in range(6)]
    [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)]
    """
    if order == "row_major":
        return _to_digits(grid, number)
    if order == "column_major":
        return _swap_last_axes(_to_digits(_swap_last_axes(grid), number))
    if order == "snake":
        return _reflect_odd_rows(grid, _to_digits(grid, number))
    return _curve_coordinates(order, grid, number)


def number_of(order: str, grid: Coordinates, coordinates: Coordinates) -> int:
    """Return the tile number of grid coordinates in an order: the inverse of `coordinates_of`.

    >>> number_of("morton", (4, 4), (1, 2)), number_of("column_major", (2, 3), (1, 2))
    (6, 5)
    """
    if order == "row_major":
        return _from_digits(grid, coordinates)
    if order == "column_major":
        return _from_digits(_swap_last_axes(grid), _swap_last_axes(coordinates))
    if order == "snake":
        return _from_digits(grid, _reflect_odd_rows(grid, coordinates, inverse=True))
    return _curve_number(order, grid, coordinates)


def validate_order(order: str) -> str:
    """Return the name of an order, or raise if it is unknown.

    >>> validate_order("morton")
    'morton'
    """
    if order not in ORDERS:
        raise LayoutError(f"unknown order {order!r}; choose one of {', '.join(ORDERS)}")
    return order


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

    def children(self) -> Iterator[tuple[Coordinates, _Curve]]:
        """Yield (halves, curve) of each child along the curve; halves has a 0 or 1 per axis.

        For Hilbert this is the recurrence of Hamilton and Rau-Chaplin: children follow a Gray code, rotated and
        reflected so that each child starts next to where the one before it ended.
        """
        rank = self.rank
        for k in range(1 << rank):
            if self.order == "morton":
                yield _axis_bits(k, rank), self
                continue
            corner = self._rotate_bits(k ^ k >> 1) ^ self.entry
            start = 0 if k == 0 else _gray_code(2 * ((k - 1) // 2))
            along = 0 if k == 0 else _trailing_ones(k if k % 2 else k - 1) % rank
            entry = self._rotate_bits(start) ^ self.entry
            yield _axis_bits(corner, rank), _Curve(self.order, rank, entry, (self.direction + along + 1) % rank)

    def _rotate_bits(self, bits: int) -> int:
        by = (self.direction + 1) % self.rank
        return (bits << by | bits >> (self.rank - by)) & ((1 << self.rank) - 1)


def _gray_code(number: int) -> int:
    return number ^ number >> 1


def _trailing_ones(number: int) -> int:
    return (~number & (number + 1)).bit_length() - 1


def _axis_bits(number: int, rank: int) -> Coordinates:
    return tuple([number >> (rank - 1 - axis) & 1 for axis in range(rank)])


def _count_cells_in_cube(grid: Coordinates, corner: Coordinates, side: int) -> int:
    """Return the number of grid cells inside a cube."""
    return prod(max(0, min(n - at, side)) for n, at in zip(grid, corner, strict=True))


def _cube_side(grid: Coordinates) -> int:
    return int(1 << (max(grid, default=1) - 1).bit_length())


def _curve_coordinates(order: str, grid: Coordinates, number: int) -> Coordinates:
    corner, side, curve = (0,) * len(grid), _cube_side(grid), _Curve(order, len(grid))
    while side > 1:
        side //= 2
        for halves, inner in curve.children():
            child = tuple([at + half * side for at, half in zip(corner, halves, strict=True)])
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
        for halves, inner in curve.children():
            child = tuple([at + half * side for at, half in zip(corner, halves, strict=True)])
            if all(at <= c < at + side for at, c in zip(child, coordinates, strict=True)):
                corner, curve = child, inner
                break
            number += _count_cells_in_cube(grid, child, side)
    return number
