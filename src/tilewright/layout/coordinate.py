# SPDX-License-Identifier: Apache-2.0
"""Coordinates: from an index to a nested coordinate and back, coordinates that slice, and boxes of coordinates.

One-dimensional coordinates are colexicographic: the leftmost mode varies fastest. Integers may be NumPy arrays, which
broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from ..errors import CoordinateError, LayoutError
from .tuples import Coordinate, IntOrArray, Nested, Shape, as_tree, leaves, nest_like, prefix_product, product
from .validation import is_array, validate_coordinate


def is_slice(coord: Coordinate) -> bool:
    """Return whether a coordinate keeps a mode: it contains None or a slice.

    >>> is_slice((1, (None, 2))), is_slice((1, slice(None))), is_slice((1, 2))
    (True, True, False)
    """
    if isinstance(coord, tuple):
        return any(map(is_slice, coord))
    return coord is None or isinstance(coord, slice)


def leaf_coordinates(coord: Coordinate, shape: Shape) -> list[IntOrArray]:
    """Return one coordinate per leaf of `shape`, from any coordinate that fits `shape`.

    >>> leaf_coordinates((1, 5), (4, (2, 4))), leaf_coordinates(21, (4, (2, 4)))
    ([1, 1, 2], [1, 1, 2])
    """
    flat: list[IntOrArray] = []
    try:
        _append_leaf_coordinates(coord, shape, flat)
    except ValueError as problem:
        if isinstance(problem, LayoutError):
            raise
        raise out_of_range_error(coord, shape) from None
    return flat


def _append_leaf_coordinates(coord: Coordinate, shape: Shape, flat: list[IntOrArray]) -> None:
    if isinstance(coord, tuple):
        if not isinstance(shape, tuple) or len(coord) != len(shape):
            count = f"{len(shape)} entries" if isinstance(shape, tuple) else "one integer"
            raise LayoutError(f"coordinate {coord} does not fit shape {shape}, which takes {count}")
        for part, mode in zip(coord, shape, strict=True):
            _append_leaf_coordinates(part, mode, flat)
    elif not isinstance(shape, tuple):
        flat.append(validate_coordinate(coord, shape))
    else:
        index = validate_coordinate(coord, product(shape))
        extents: list[int] = leaves(shape)
        for extent in extents[:-1]:
            flat.append(index % extent)
            index = index // extent
        if extents:
            flat.append(index)


def out_of_range_error(coord: Coordinate, shape: Shape) -> CoordinateError:
    """Return the error for a coordinate outside `shape`, which names the first mode that it leaves.

    >>> print(out_of_range_error((1, 9), (4, 8)))
    coordinate (1, 9) is outside shape (4, 8): mode 1 takes 0 to 7; L.extended(...) continues past the edge
    """
    subject, extent = "it", product(shape)
    if isinstance(coord, tuple) and isinstance(shape, tuple):
        for k, (part, mode) in enumerate(zip(coord, shape, strict=True)):
            try:
                leaf_coordinates(part, mode)
            except ValueError:
                subject, extent = f"mode {k}", product(mode)
                break
    rule = f"{subject} takes 0 to {extent - 1}" if extent else f"{subject} is empty and takes no coordinate"
    return CoordinateError(
        f"coordinate {_format_coordinate(coord)} is outside shape {shape}: {rule};"
        " L.extended(...) continues past the edge"
    )


def _format_coordinate(coord: Coordinate) -> str:
    """Return the text of a coordinate; of an array, its lowest and highest entry."""
    if isinstance(coord, tuple):
        return f"({', '.join(map(_format_coordinate, coord))}{',' if len(coord) == 1 else ''})"
    return f"[{coord.min()}..{coord.max()}]" if is_array(coord) else repr(coord)


def index_to_coordinate(index: Coordinate, shape: Shape) -> Nested[Any]:
    """Return the coordinate in `shape` of an index; an index per mode is expanded mode by mode.

    >>> index_to_coordinate(22, (4, 8)), index_to_coordinate((2, 5), ((2, 2), (4, 2)))
    ((2, 5), ((0, 1), (1, 1)))
    """
    return nest_like(shape, iter(leaf_coordinates(as_tree(index), shape)))


def coordinate_to_index(coord: Coordinate, shape: Shape) -> IntOrArray:
    """Return the index in `shape` of a coordinate: the inverse of `index_to_coordinate`.

    >>> coordinate_to_index((2, 5), (4, 8))
    22
    """
    steps = leaves(prefix_product(shape))
    return sum(c * step for c, step in zip(leaf_coordinates(as_tree(coord), shape), steps, strict=True))


def coordinates(shape: Shape) -> Iterator[Nested[int]]:
    """Yield every coordinate of `shape` in colexicographic order.

    >>> list(coordinates((2, 2)))
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    extents = leaves(shape)
    current = [0] * len(extents)
    for _ in range(product(shape)):
        yield nest_like(shape, iter(current))
        for k, extent in enumerate(extents):
            current[k] += 1
            if current[k] < extent:
                break
            current[k] = 0


def select_modes(coord: Coordinate, tree: Nested[Any]) -> Nested[Any]:
    """Return the branches of `tree` that a slicing coordinate keeps, grouped as they were.

    >>> select_modes((None, (None, 1)), (4, (2, 3))), select_modes((1, (None, (0, None))), (4, (2, (3, 5))))
    ((4, 2), (2, 5))
    """
    if not isinstance(coord, tuple):
        return tree if _keeps_mode(coord) else ()
    branches = _selected_branches(coord, tree)
    return branches[0] if len(branches) == 1 and isinstance(branches[0], tuple) else tuple(branches)


def _selected_branches(coord: Coordinate, tree: Nested[Any]) -> list[Any]:
    """Return the kept branches of `tree`; of a nested mode, a single kept branch loses its nesting."""
    if not isinstance(coord, tuple):
        return [tree] if _keeps_mode(coord) else []
    if not isinstance(tree, tuple) or len(coord) != len(tree):
        count = f"{len(tree)} entries" if isinstance(tree, tuple) else "one entry"
        raise LayoutError(f"slice {coord} does not fit {tree}, which takes {count}")
    selected = []
    for part, mode in zip(coord, tree, strict=True):
        branches = _selected_branches(part, mode)
        if branches:
            selected.append(branches[0] if len(branches) == 1 else tuple(branches))
    return selected


def _keeps_mode(coord: Coordinate) -> bool:
    if isinstance(coord, slice) and coord != slice(None):
        raise LayoutError(f"a slice keeps a whole mode, got {coord}; for a range use compose(L, tiler) + offset")
    return coord is None or isinstance(coord, slice)


def fixed_offset(coord: Coordinate, shape: Shape, stride: Nested[Any]) -> Any:
    """Return the offset of the entries that a slicing coordinate fixes.

    >>> fixed_offset((None, 3), (4, 8), (1, 4))
    12
    """
    if _keeps_mode(coord):
        return 0
    if isinstance(coord, tuple) and is_slice(coord):
        if not isinstance(shape, tuple) or not isinstance(stride, tuple) or len(coord) != len(shape):
            raise LayoutError(f"slice {coord} does not fit shape {shape}: the ranks differ")
        return sum((fixed_offset(c, s, d) for c, s, d in zip(coord, shape, stride, strict=True)), 0)
    entries = leaf_coordinates(coord, shape)
    return sum((c * step for c, step in zip(entries, leaves(stride), strict=True)), 0)


@dataclass(frozen=True, slots=True)
class Box:
    """A box of coordinates: its start, which may be negative, and its extent along each axis.

    >>> Box((-1, 4), (3, 4)).end
    (2, 8)
    """

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def between(cls, offset: tuple[int, ...], end: tuple[int, ...]) -> Box:
        """Return the box from `offset` up to, not including, `end`.

        >>> Box.between((2, 0), (5, 5))
        Box(offset=(2, 0), shape=(3, 5))
        """
        return cls(offset, tuple([max(0, b - a) for a, b in zip(offset, end, strict=True)]))

    @property
    def end(self) -> tuple[int, ...]:
        """Return the first coordinate beyond the box, along each axis.

        >>> Box((2, 0), (3, 5)).end
        (5, 5)
        """
        return tuple([start + n for start, n in zip(self.offset, self.shape, strict=True)])

    @property
    def size(self) -> int:
        """Return the number of elements.

        >>> Box((2, 0), (3, 5)).size
        15
        """
        return prod(self.shape)

    @property
    def empty(self) -> bool:
        """Return whether the box has no elements.

        >>> Box((0, 0), (5, 0)).empty
        True
        """
        return 0 in self.shape

    @property
    def slices(self) -> tuple[slice, ...]:
        """Return the box as an index of an array; only for a box that starts inside.

        >>> Box((2, 0), (3, 5)).slices
        (slice(2, 5, None), slice(0, 5, None))
        """
        return tuple([slice(start, start + n) for start, n in zip(self.offset, self.shape, strict=True)])

    def within(self, space: tuple[int, ...]) -> Box:
        """Return the part of the box inside an array of shape `space`, which may be empty.

        >>> Box((-1, 4), (3, 4)).within((10, 6))
        Box(offset=(0, 4), shape=(2, 2))
        """
        low = tuple([min(max(start, 0), n) for start, n in zip(self.offset, space, strict=True)])
        high = [min(max(end, 0), n) for end, n in zip(self.end, space, strict=True)]
        return Box(low, tuple([b - a for a, b in zip(low, high, strict=True)]))

    def relative_to(self, offset: tuple[int, ...]) -> Box:
        """Return the same box relative to the start `offset`.

        >>> Box((5, 4), (3, 4)).relative_to((4, 4))
        Box(offset=(1, 0), shape=(3, 4))
        """
        return Box(tuple([a - b for a, b in zip(self.offset, offset, strict=True)]), self.shape)

    def intersection(self, other: Box) -> Box:
        """Return the common part of this box and `other`, which may be empty.

        >>> Box((0, 0), (4, 4)).intersection(Box((2, 3), (4, 4)))
        Box(offset=(2, 3), shape=(2, 1))
        """
        return Box.between(tuple(map(max, self.offset, other.offset)), tuple(map(min, self.end, other.end)))

    def permute(self, order: tuple[int, ...]) -> Box:
        """Return the box with its axes in another `order`, as `numpy.transpose` has it.

        >>> Box((2, 3), (5, 9)).permute((1, 0))
        Box(offset=(3, 2), shape=(9, 5))
        """
        return Box(tuple([self.offset[axis] for axis in order]), tuple([self.shape[axis] for axis in order]))

    def __str__(self) -> str:
        return "[" + ", ".join([f"{a}:{a + n}" for a, n in zip(self.offset, self.shape, strict=True)]) + "]"


def empty_box(rank: int) -> Box:
    """Return an empty box of that rank.

    >>> empty_box(2)
    Box(offset=(0, 0), shape=(0, 0))
    """
    return Box((0,) * rank, (0,) * rank)
