# SPDX-License-Identifier: Apache-2.0
"""Coordinates: from an index to a nested coordinate and back, over plain shapes.

One-dimensional coordinates are colexicographic: the leftmost mode varies fastest. Integers may be NumPy arrays, which
broadcast.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from ..errors import CoordinateError, LayoutError
from .integers import is_bool
from .tuples import as_tree, check_congruent, leaves, like, prefix_product, product


def is_array(value: object) -> bool:
    """Return whether value is an array of coordinates rather than one coordinate.

    >>> is_array(4)
    False
    """
    return hasattr(value, "dtype") and getattr(value, "ndim", 0) > 0


def as_wide(array: Any) -> Any:
    """Return an array of coordinates in 64 bits, so that offsets made of them do not wrap.

    >>> import numpy as np
    >>> as_wide(np.arange(3, dtype=np.uint8)).dtype
    dtype('int64')
    """
    if array.dtype == "uint64" and array.size and int(array.max()) >= 2**63:
        raise LayoutError(f"{int(array.max())} in an array is beyond 2^63 - 1, the largest place; use smaller numbers")
    return array if array.dtype == "int64" else array.astype("int64")


def is_slice(coord: Any) -> bool:
    """Return whether a coordinate keeps a mode: it holds None or a full slice somewhere.

    >>> is_slice((1, (None, 2))), is_slice((1, slice(None))), is_slice((1, 2))
    (True, True, False)
    """
    if coord.__class__ is tuple:
        return any(map(is_slice, coord))
    return coord is None or coord.__class__ is slice


def checked(coord: Any, extent: int) -> Any:
    """Return one coordinate as an integer (or integer array) inside 0 <= coord < extent, else raise ValueError.

    >>> checked(3, 4)
    3
    """
    if coord.__class__ is not int:
        if is_array(coord):
            if coord.dtype.kind not in "iu":
                raise TypeError(f"coordinates must be integers, got an array of {coord.dtype}")
            if coord.size and (int(coord.min()) < 0 or int(coord.max()) >= extent):
                raise ValueError("an array of coordinates leaves its mode")
            return as_wide(coord)
        if is_bool(coord):
            raise TypeError(f"a coordinate must be an integer, got the bool {coord!r}")
        try:
            coord = operator.index(coord)
        except TypeError:
            raise TypeError(f"a coordinate must be an integer, got {type(coord).__name__} {coord!r}") from None
    if not 0 <= coord < extent:
        raise ValueError("the coordinate leaves its mode")
    return coord


def leaf_coordinates(coord: Any, shape: Any) -> list[Any]:
    """Return one coordinate for each leaf of shape, from any coordinate that fits shape.

    >>> leaf_coordinates((1, 5), (4, (2, 4))), leaf_coordinates(21, (4, (2, 4)))
    ([1, 1, 2], [1, 1, 2])
    """
    found: list[Any] = []
    try:
        _gather(coord, shape, found)
    except ValueError as problem:
        if isinstance(problem, LayoutError):
            raise
        raise out_of_range(coord, shape) from None
    return found


def _gather(coord: Any, shape: Any, found: list[Any]) -> None:
    if coord.__class__ is tuple:
        if shape.__class__ is not tuple or len(coord) != len(shape):
            need = f"{len(shape)} entries" if shape.__class__ is tuple else "one integer"
            raise LayoutError(f"coordinate {coord} does not fit shape {shape}: mode of shape {shape} takes {need}")
        for part, mode in zip(coord, shape, strict=True):
            _gather(part, mode, found)
    elif shape.__class__ is not tuple:
        found.append(checked(coord, shape))
    else:
        coord = checked(coord, product(shape))
        extents = leaves(shape)
        for extent in extents[:-1]:
            found.append(coord % extent)
            coord = coord // extent
        if extents:
            found.append(coord)


def out_of_range(coord: Any, shape: Any) -> CoordinateError:
    """Return the error for a coordinate outside shape, naming the first mode that it leaves.

    >>> print(out_of_range((1, 9), (4, 8)))
    coordinate (1, 9) is outside shape (4, 8): mode 1 takes 0 to 7; L.extended(...) continues past the edge
    """
    where, extent = "it", product(shape)
    if coord.__class__ is tuple and shape.__class__ is tuple:
        for k, (part, mode) in enumerate(zip(coord, shape, strict=True)):
            try:
                leaf_coordinates(part, mode)
            except ValueError:
                where, extent = f"mode {k}", product(mode)
                break
    rule = f"{where} takes 0 to {extent - 1}" if extent else f"{where} is empty and takes no coordinate"
    shown = _span(coord)
    return CoordinateError(
        f"coordinate {shown} is outside shape {shape}: {rule}; L.extended(...) continues past the edge"
    )


def _span(coord: Any) -> str:
    if coord.__class__ is tuple:
        return f"({', '.join(map(_span, coord))}{',' if len(coord) == 1 else ''})"
    return f"[{coord.min()}..{coord.max()}]" if is_array(coord) else repr(coord)


def as_shape(value: Any) -> Any:
    """Return a shape: that of a layout, or the given one with lists turned into tuples.

    >>> as_shape([4, 8])
    (4, 8)
    """
    return as_tree(getattr(value, "shape", value))


def idx2crd(index: Any, shape: Any) -> Any:
    """Return the coordinate in shape of an index; a coordinate is completed mode by mode.

    >>> idx2crd(22, (4, 8)), idx2crd(22, ((2, 2), (4, 2))), idx2crd((2, 5), ((2, 2), (4, 2)))
    ((2, 5), ((0, 1), (1, 1)), ((0, 1), (1, 1)))
    """
    index, shape = as_tree(index), as_shape(shape)
    return like(shape, iter(leaf_coordinates(index, shape)))


def crd2flat(coord: Any, shape: Any) -> Any:
    """Return the index in shape of a coordinate: the inverse of `idx2crd`.

    >>> crd2flat((2, 5), (4, 8))
    22
    """
    coord, shape = as_tree(coord), as_shape(shape)
    steps = leaves(prefix_product(shape))
    return sum(c * step for c, step in zip(leaf_coordinates(coord, shape), steps, strict=True))


def crd2offset(coord: Any, shape: Any, stride: Any) -> Any:
    """Return the offset of a coordinate under the given strides.

    >>> crd2offset((2, 5), (4, 8), (8, 1))
    21
    """
    coord, shape, stride = as_tree(coord), as_tree(shape), as_tree(stride)
    check_congruent(shape, stride, "crd2offset")
    return sum(c * step for c, step in zip(leaf_coordinates(coord, shape), leaves(stride), strict=True))


def crd2idx(coord: Any, shape: Any, stride: Any = None) -> Any:
    """Return the index of a coordinate in shape, or its offset when strides are given.

    >>> crd2idx((2, 5), (4, 8)), crd2idx((2, 5), (4, 8), (8, 1))
    (22, 21)
    """
    return crd2flat(coord, shape) if stride is None else crd2offset(coord, shape, stride)


def crd2crd(coord: Any, target: Any, source: Any = None) -> Any:
    """Return the coordinate in target that has the same index as coord in source.

    Where both are tuples of one rank the modes are converted one by one; source may be left out when coord already
    says enough.

    >>> crd2crd(3, (2, 4)), crd2crd((1, 0), 8, (2, 4)), crd2crd(((0, 1), 0), (6, 2), ((2, 3), 2))
    ((1, 1), 1, (2, 0))
    """
    coord, target, source = as_tree(coord), as_tree(target), as_tree(source)
    if coord.__class__ is tuple and target.__class__ is tuple:
        if len(coord) != len(target):
            raise LayoutError(f"crd2crd: coordinate {coord} and shape {target} differ in rank; they must match")
        parts = source if source.__class__ is tuple else (None,) * len(coord)
        return tuple([crd2crd(c, t, s) for c, t, s in zip(coord, target, parts, strict=True)])
    if coord.__class__ is tuple:
        if source is None:
            raise LayoutError(f"crd2crd: coordinate {coord} needs its source shape to become an index in {target}")
        return crd2flat(coord, source)
    return idx2crd(coord, target)


def coordinates(shape: Any) -> Iterator[Any]:
    """Yield every coordinate of shape in colexicographic order.

    >>> list(coordinates((2, 2)))
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    extents = leaves(shape)
    at = [0] * len(extents)
    for _ in range(product(shape)):
        yield like(shape, iter(at))
        for k, extent in enumerate(extents):
            at[k] += 1
            if at[k] < extent:
                break
            at[k] = 0
