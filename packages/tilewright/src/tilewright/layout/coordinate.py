# SPDX-License-Identifier: Apache-2.0
"""Coordinates: from an index to a nested coordinate and back, and coordinates that slice.

One-dimensional coordinates are colexicographic: the leftmost mode varies fastest. Integers may be NumPy arrays, which
broadcast.
"""

from __future__ import annotations

from collections.abc import Iterator
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
