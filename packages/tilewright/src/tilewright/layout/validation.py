# SPDX-License-Identifier: Apache-2.0
"""Validation of integers, shapes and coordinates: input is checked here once, and trusted from then on."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeGuard, cast

from ..errors import LayoutError
from .tuples import MAX_DEPTH, Coordinate, IntArray, IntOrArray, Shape


class TaggedInt(int):
    """An integer that the algebra keeps as it is and compares with its tag, for integers with a meaning of their own.

    Arithmetic returns tagged integers, unless a subclass decides otherwise. Two tagged integers are equal as numbers;
    two layouts are equal only if the same leaves are tagged.

    >>> (as_integer(TaggedInt(4), "an extent") * 2).__class__.__name__
    'TaggedInt'
    """

    __slots__ = ()

    def _keeps_tag(self, *operand: object) -> bool:
        """Return whether the result of an operation, with another operand if it takes one, is tagged."""
        return True


def _tag_result(operation: Callable[..., int]) -> Callable[..., int]:
    """Return an operation of int that returns tagged integers."""

    def method(self: TaggedInt, *operand: object) -> int:
        result = operation(self, *operand)
        return type(self)(result) if type(result) is int and self._keeps_tag(*operand) else result

    return method


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "rfloordiv", "mod", "rmod", "neg", "abs"):
    setattr(TaggedInt, f"__{_name}__", _tag_result(getattr(int, f"__{_name}__")))


def is_bool(value: object) -> bool:
    """Return whether `value` is a Python or NumPy bool.

    >>> is_bool(True), is_bool(1)
    (True, False)
    """
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"


def as_integer(value: object, name: str) -> int:
    """Return `value` as an int; raise a TypeError that calls it `name` if it is not an integer.

    >>> import numpy as np
    >>> as_integer(np.int8(4), "an extent")
    4
    """
    if type(value) is int or isinstance(value, TaggedInt):
        return value
    if is_bool(value):
        raise TypeError(f"{name} must be an integer, got the bool {value!r}; write 0 or 1 if a number is meant")
    try:
        return operator.index(cast(Any, value))
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {type(value).__name__} {value!r}") from None


def is_tagged(value: object) -> bool:
    """Return whether `value` is a tagged integer.

    >>> is_tagged(TaggedInt(4)), is_tagged(4)
    (True, False)
    """
    return isinstance(value, TaggedInt)


def validate_shape(shape: object, depth: int = 0) -> Shape:
    """Return `shape` as a nested tuple of nonnegative integers.

    >>> validate_shape([4, [2, 3]])
    (4, (2, 3))
    """
    if isinstance(shape, (tuple, list)):
        if depth >= MAX_DEPTH:
            raise LayoutError(f"the shape is nested deeper than {MAX_DEPTH} levels; flatten it")
        return tuple([validate_shape(mode, depth + 1) for mode in shape])
    extent = as_integer(shape, "shape")
    if extent < 0:
        raise LayoutError(f"the shape has the negative extent {extent}; extents must be nonnegative")
    return extent


def is_array(value: object) -> TypeGuard[IntArray]:
    """Return whether `value` is an array of coordinates rather than one coordinate.

    >>> is_array(4)
    False
    """
    return hasattr(value, "dtype") and getattr(value, "ndim", 0) > 0


def as_int64(array: IntArray) -> IntArray:
    """Return an array of integers in 64 bits, so that offsets computed from it do not wrap.

    >>> import numpy as np
    >>> as_int64(np.arange(3, dtype=np.uint8)).dtype
    dtype('int64')
    """
    if array.dtype == "uint64" and array.size and int(array.max()) >= 2**63:
        raise LayoutError(f"the array holds {int(array.max())}; the largest offset is 2^63 - 1")
    return array if array.dtype == "int64" else array.astype("int64")


def validate_coordinate(coord: Coordinate, extent: int) -> IntOrArray:
    """Return one coordinate (or an array of them) with 0 <= coord < extent; raise ValueError if it is outside.

    >>> validate_coordinate(3, 4)
    3
    """
    if is_array(coord):
        if coord.dtype.kind not in "iu":
            raise TypeError(f"coordinates must be integers, got an array of {coord.dtype}")
        if coord.size and (int(coord.min()) < 0 or int(coord.max()) >= extent):
            raise ValueError("a coordinate of the array is outside the mode")
        return as_int64(coord)
    index = coord if type(coord) is int else int(as_integer(coord, "a coordinate"))
    if not 0 <= index < extent:
        raise ValueError("the coordinate is outside the mode")
    return index


def check_mode(number: object, count: int, owner: object) -> int:
    """Return a mode number of `owner`, which has `count` modes; raise if there is no such mode.

    >>> check_mode(1, 2, "(4,8):(1,4)")
    1
    """
    k = as_integer(number, "a mode number")
    if not -count <= k < count:
        raise LayoutError(f"{owner} has no mode {k}; it has modes 0 to {count - 1}")
    return k
