# SPDX-License-Identifier: Apache-2.0
"""CuTe's functions on nested integer tuples and coordinates. Like CuTe's, they do not check coordinates."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from itertools import zip_longest
from math import gcd
from typing import Any, SupportsIndex, TypeVar, overload

from .._integers import ceil_div as divide_up
from ..errors import LayoutError
from ..layout import (
    Coordinate,
    Layout,
    LayoutLike,
    Nested,
    Shape,
    ShapeArgument,
    as_tree,
    as_tuple,
    check_congruent,
    complement,
    leaves,
    prefix_product,
    product,
)

__all__ = [
    "Integer", "ceil_div", "crd2crd", "crd2idx", "elem_geq", "elem_gtr", "elem_leq", "elem_less", "elem_scale",
    "evenly_divides", "has_none", "idx2crd", "inner_product", "is_int", "is_tuple", "make_coord", "make_shape",
    "make_step", "make_stride", "make_tile", "make_tuple", "product_like", "reverse", "round_up", "safe_div",
    "shape_div", "shape_mod", "signum", "tuple_max",
]  # fmt: skip


_Item = TypeVar("_Item")


def is_tuple(value: object) -> bool:
    """Return whether `value` is a tuple.

    >>> is_tuple((4,)), is_tuple(4)
    (True, False)
    """
    return isinstance(value, tuple)


def is_int(value: object) -> bool:
    """Return whether `value` is an integer; a bool is not.

    >>> is_int(4), is_int(True), is_int(4.0)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)


class Integer(ABC):  # noqa: B024  (nothing is made of it: it only answers isinstance)
    """The type of integers in pycute: `isinstance(4, Integer)`, but not of bools.

    >>> isinstance(4, Integer), isinstance(True, Integer), issubclass(int, Integer)
    (True, False, True)
    """

    @classmethod
    def __subclasshook__(cls, subclass: type) -> bool:
        return issubclass(subclass, int) and not issubclass(subclass, bool)


def make_tuple(*items: _Item) -> tuple[_Item, ...]:
    """Return `items` as a tuple: CuTe's `make_tuple`, `make_shape`, `make_stride`, `make_coord` and `make_tile`.

    >>> make_tuple(4, (2, 3)), make_shape(4), make_coord(1, None)
    ((4, (2, 3)), (4,), (1, None))
    """
    return items


make_shape = make_stride = make_coord = make_tile = make_step = make_tuple


@overload
def ceil_div(a: int, b: int) -> int: ...


@overload
def ceil_div(a: Shape, b: Shape) -> Shape: ...


def ceil_div(a: Shape, b: Shape) -> Shape:
    """Return `a` / `b` rounded up: mode by mode for tuples, where modes that `b` lacks are divided by 1.

    A tuple by an integer is divided from its first mode on: each takes what it can of the divisor.

    >>> ceil_div(10, 4), ceil_div((10, 7), (4, 2)), ceil_div((10, 7), (4,)), ceil_div((4, 8), 8), ceil_div(24, (2, 3))
    (3, (3, 4), (3, 7), (1, 4), 4)
    """
    if not isinstance(a, tuple):
        return divide_up(a, _positive(product(b), "ceil_div"))
    if isinstance(b, tuple):
        return _by_mode(ceil_div, a, b)
    quotients = []
    for mode in a:
        quotients.append(ceil_div(mode, b))
        b = divide_up(b, _positive(product(mode), "ceil_div"))
    return tuple(quotients)


def reverse(value: ShapeArgument) -> tuple[Shape, ...]:
    """Return a tuple, `value`, in reverse order; nested ones stay as they are.

    >>> reverse((1, (2, 3), 4))
    (4, (2, 3), 1)
    """
    return as_tuple(as_tree(value))[::-1]


@overload
def round_up(a: int, b: int) -> int: ...


@overload
def round_up(a: Shape, b: Shape) -> Shape: ...


def round_up(a: Shape, b: Shape) -> Shape:
    """Return the smallest multiple of `b` that is not below `a`: mode by mode for tuples, as in `ceil_div`.

    >>> round_up(10, 4), round_up((10, 7), (4, 2))
    (12, (12, 8))
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        return _by_mode(round_up, a, b)
    if isinstance(a, tuple) or isinstance(b, tuple):
        raise LayoutError(f"round_up: {a} and {b} are not nested alike; give two integers or two tuples")
    return divide_up(a, _positive(b, "round_up")) * b


def _by_mode(function: Callable[[Any, Any], Any], a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the function applied to each mode of `a` and the matching mode of `b`, or 1."""
    if len(b) > len(a):
        raise LayoutError(f"{function.__name__}: {b} has more modes than {a}; leave out the last ones")
    return tuple([function(mode, other) for mode, other in zip_longest(a, b, fillvalue=1)])


def _positive(number: int, caller: str) -> Any:
    if number == 0:
        raise LayoutError(f"{caller}: cannot divide by 0; give a positive divisor")
    return number


def signum(value: int) -> int:
    """Return the sign of `value`: -1, 0 or 1.

    >>> signum(-7), signum(0), signum(3)
    (-1, 0, 1)
    """
    return (value > 0) - (value < 0)


def inner_product(a: ShapeArgument, b: ShapeArgument) -> int:
    """Return the sum of the products of matching leaves of `a` and `b`.

    >>> inner_product(((2, 3), 4), ((2, 1), 2))
    15
    """
    check_congruent(as_tree(a), as_tree(b), "inner_product")
    return sum(x * y for x, y in zip(leaves(as_tree(a)), leaves(as_tree(b)), strict=True))


def elem_scale(a: Shape, b: Shape) -> Shape:
    """Return `a` with each leaf multiplied by the product of the matching branch of `b`.

    >>> elem_scale((2, 3), (4, (5, 2)))
    (8, 30)
    """
    if a.__class__ is not tuple:
        return a * product(b)
    if b.__class__ is not tuple or len(a) != len(b):
        raise TypeError(f"elem_scale: {a} needs a tuple of {len(a)} scales, got {b!r}")
    return tuple([elem_scale(x, y) for x, y in zip(a, b, strict=True)])


def tuple_max(tree: Shape) -> int:
    """Return the largest leaf of `tree`.

    >>> tuple_max(((1, 9), (4, 2)))
    9
    """
    return max(leaves(tree))


def has_none(tree: Nested[object]) -> bool:
    """Return whether any leaf of `tree` is None.

    >>> has_none((1, (2, None))), has_none(3)
    (True, False)
    """
    return any(leaf is None for leaf in leaves(tree))


def shape_div(shape: Shape, divisor: Shape) -> Shape:
    """Return `shape` divided by `divisor`, leftmost mode first.

    At every leaf one of the two numbers must divide the other. A tuple as divisor divides a tuple mode by mode, and
    counts as its product when the shape is an integer.

    >>> shape_div((4, 6), 8), shape_div(12, (3, 2)), shape_div((6, 4), (3, 2))
    ((1, 3), 2, (2, 2))
    """
    if isinstance(shape, tuple):
        if isinstance(divisor, tuple):
            if len(shape) != len(divisor):
                raise LayoutError(f"shape_div: {shape} and {divisor} differ in rank; give one divisor per mode")
            return tuple([shape_div(s, d) for s, d in zip(shape, divisor, strict=True)])
        quotients = []
        for mode in shape:
            quotients.append(shape_div(mode, divisor))
            divisor = shape_div(divisor, product(mode))
        return tuple(quotients)
    divisor = product(divisor)
    if divisor == 0:
        raise LayoutError(f"shape_div: cannot divide {shape} by 0")
    if shape % divisor and divisor % shape:
        raise LayoutError(f"shape_div: {shape} and {divisor} are not divisible: one must divide the other")
    return -(-shape // divisor)


def shape_mod(shape: Shape, modulus: int) -> Shape:
    """Return the part of `shape` that `shape_div` by `modulus` removes, leftmost mode first.

    >>> shape_mod((4, 6), 8), shape_mod(12, 4)
    ((4, 2), 4)
    """
    if isinstance(shape, tuple):
        parts: list[Shape] = []
        for mode in shape:
            parts.append(shape_mod(mode, modulus))
            modulus = divide_up(modulus, product(parts[-1]))
        return tuple(parts)
    return shape if modulus >= shape else gcd(shape, modulus)


def safe_div(a: int, b: int) -> int:
    """Return `a` / `b`; raise if it is not exact.

    >>> safe_div(12, 4)
    3
    """
    if b == 0 or a % b:
        raise LayoutError(f"safe_div: {a} is not divisible by {b}")
    return a // b


def crd2idx(crd: Coordinate, shape: ShapeArgument | LayoutLike, stride: ShapeArgument | None = None) -> int | Any:
    """Return the offset of a coordinate `crd` of `shape` under `stride`, without strides its colexicographic index.

    An integer is a colexicographic index; None counts as 0.

    >>> crd2idx((2, 5), (4, 8)), crd2idx((2, 5), (4, 8), (8, 1)), crd2idx(22, (4, 8), (8, 1))
    (22, 21, 21)
    """
    extents = _as_shape(shape)
    strides = prefix_product(extents) if stride is None else as_tree(stride)
    check_congruent(extents, strides, "crd2idx")
    return _crd2idx(as_tree(crd), extents, strides)


def _as_shape(shape: ShapeArgument | LayoutLike) -> Any:
    """Return a shape, or the shape of a layout."""
    return shape.shape if isinstance(shape, LayoutLike) else as_tree(shape)


def _crd2idx(crd: Any, shape: Any, stride: Any) -> Any:
    if isinstance(crd, tuple):  # (c, c, ...)
        if not isinstance(shape, tuple) or len(crd) != len(shape):
            raise LayoutError(f"crd2idx: coordinate {crd} and shape {shape} differ in rank")
        return sum((_crd2idx(c, s, d) for c, s, d in zip(crd, shape, stride, strict=True)), 0)
    if crd is None or crd.__class__ is slice:  # _
        return 0
    if not isinstance(crd, int) and getattr(getattr(crd, "dtype", None), "kind", "") not in ("i", "u"):
        raise TypeError(f"expected integers and tuples of integers as a coordinate, got {crd!r}")
    if not isinstance(shape, tuple):  # c
        return crd * stride
    total: Any = 0
    for s, d in zip(shape[:-1], stride[:-1], strict=True):  # c over several modes
        crd, rest = _divide(crd, product(s))
        total = total + _crd2idx(rest, s, d)
    return total + _crd2idx(crd, shape[-1], stride[-1]) if shape else total


@overload
def idx2crd(
    idx: Coordinate, shape: tuple[ShapeArgument, ...] | list[Any], stride: ShapeArgument | None = None
) -> tuple[Any, ...]: ...


@overload
def idx2crd(idx: Coordinate, shape: SupportsIndex | LayoutLike, stride: ShapeArgument | None = None) -> Shape | Any: ...


def idx2crd(idx: Coordinate, shape: ShapeArgument | LayoutLike, stride: ShapeArgument | None = None) -> Shape | Any:
    """Return the coordinate of an index `idx` of `shape`; with `stride`, of an offset: `(idx // stride) % shape`.

    >>> idx2crd(22, (4, 8)), idx2crd(21, (4, 8), (8, 1)), idx2crd((2, 5), ((2, 2), (4, 2)))
    ((2, 5), (2, 5), ((0, 1), (1, 1)))
    """
    index, extents = as_tree(idx), _as_shape(shape)
    if isinstance(index, tuple):
        if not isinstance(extents, tuple) or len(index) != len(extents):
            raise LayoutError(f"idx2crd: index {index} and shape {extents} differ in rank")
        strides: Any = (None,) * len(extents) if stride is None else as_tree(stride)
        return tuple([idx2crd(i, s, d) for i, s, d in zip(index, extents, strides, strict=True)])
    strides = prefix_product(extents) if stride is None else as_tree(stride)
    if isinstance(extents, tuple):
        strides = strides if isinstance(strides, tuple) else prefix_product(extents, strides)
        check_congruent(extents, strides, "idx2crd")
        return tuple([idx2crd(index, s, d) for s, d in zip(extents, strides, strict=True)])
    return _divide(_divide(index, strides)[0], extents)[1] if strides and extents else 0


def _divide(index: Any, extent: int) -> tuple[Any, Any]:
    """Return the quotient, rounded towards zero as C++ rounds it, and the rest, of an index or an array of them."""
    if isinstance(index, int):
        inside = index if index >= 0 else -index
        if not extent:
            raise LayoutError(f"index {index} of a shape with an extent of 0, which has no elements")
        step = extent if extent > 0 else -extent
        quotient, rest = inside // step, inside % step
        return (quotient if (index >= 0) == (extent > 0) else -quotient), (rest if index >= 0 else -rest)
    quotient = abs(index) // abs(extent)
    negative = (index < 0) != (extent < 0)
    quotient = quotient - 2 * negative * quotient
    return quotient, index - quotient * extent


def crd2crd(crd: Coordinate, dst_shape: ShapeArgument, src_shape: ShapeArgument | None = None) -> Shape | Any:
    """Return the coordinate of `dst_shape` that has the index of `crd` in `src_shape`, in pycute's argument order.

    Tuples of one rank are converted mode by mode, for which `src_shape` may be left out.

    >>> crd2crd(3, (2, 4)), crd2crd((1, 0), 8, (2, 4)), crd2crd(((0, 1), 0), (6, 2), ((2, 3), 2))
    ((1, 1), 1, (2, 0))
    """
    crd, target, source = as_tree(crd), as_tree(dst_shape), as_tree(src_shape)
    if isinstance(crd, tuple) and isinstance(target, tuple):
        if len(crd) != len(target):
            raise LayoutError(f"crd2crd: coordinate {crd} and shape {target} differ in rank")
        parts = source if isinstance(source, tuple) else (None,) * len(crd)
        return tuple([crd2crd(c, t, s) for c, t, s in zip(crd, target, parts, strict=True)])
    if isinstance(crd, tuple):
        if source is None:
            raise LayoutError(f"crd2crd: coordinate {crd} needs src_shape to become an index of {target}")
        return crd2idx(crd, source)
    return idx2crd(crd, target)


def product_like(shape: Shape, profile: Nested[object]) -> Shape:
    """Return `shape` with the products of its branches where `profile` has leaves.

    >>> product_like(((2, 3), (4, 5)), (0, 0)), product_like(((2, 3), (4, 5)), (0, (0, 0)))
    ((6, 20), (6, (4, 5)))
    """
    if not isinstance(profile, tuple):
        return product(shape)
    if not isinstance(shape, tuple) or len(shape) != len(profile):
        raise LayoutError(f"product_like: {shape} is not nested like the profile {profile}")
    return tuple([product_like(branch, part) for branch, part in zip(shape, profile, strict=True)])


def evenly_divides(shape: Shape, tiler: Shape | Layout) -> bool:
    """Return whether every extent of `shape` is a multiple of the tiler's; modes without a tiler always are.

    A layout as a tiler divides an extent if its copies cover it exactly.

    >>> evenly_divides((8, 6), (4, 3)), evenly_divides((8, 6), (4, 4)), evenly_divides((8, 6), (2,))
    (True, False, True)
    >>> evenly_divides(32, Layout(8, 2)), evenly_divides(32, Layout(8, 3))
    (True, False)
    """
    if isinstance(tiler, tuple):
        modes = as_tuple(shape)
        return len(tiler) <= len(modes) and all(map(evenly_divides, modes, tiler))
    if isinstance(tiler, Layout):
        extent = product(shape)
        return bool(tiler.size * complement(tiler, extent).size == extent)
    return bool(product(shape) % product(tiler) == 0)


def elem_less(coord: Shape, shape: Shape) -> bool:
    """Return whether every number of `coord` is below its extent in `shape`: whether a coordinate is inside.

    `elem_leq`, `elem_gtr` and `elem_geq` compare in the same way.

    >>> elem_less((3, 5), (4, 8)), elem_less((4, 5), (4, 8)), elem_leq((4, 5), (4, 8))
    (True, False, True)
    """
    if isinstance(coord, tuple) and isinstance(shape, tuple):
        return len(coord) <= len(shape) and all(map(elem_less, coord, shape))
    if isinstance(coord, tuple) or isinstance(shape, tuple):
        raise LayoutError(f"elem_less: {coord} and {shape} are not nested alike; nest one like the other")
    return bool(coord < shape)


def elem_leq(coord: Shape, shape: Shape) -> bool:
    """Return whether no number of `shape` is below its partner in `coord`: `not elem_less(shape, coord)`.

    >>> elem_leq((4, 8), (4, 8)), elem_leq((5, 9), (4, 8))
    (True, False)
    """
    return not elem_less(shape, coord)


def elem_gtr(coord: Shape, shape: Shape) -> bool:
    """Return whether every number of `coord` is above its partner in `shape`.

    >>> elem_gtr((5, 9), (4, 8)), elem_gtr((5, 8), (4, 8))
    (True, False)
    """
    return elem_less(shape, coord)


def elem_geq(coord: Shape, shape: Shape) -> bool:
    """Return `not elem_less(coord, shape)`: whether some number of `coord` reaches its extent in `shape`.

    >>> elem_geq((4, 5), (4, 8)), elem_geq((3, 5), (4, 8))
    (True, False)
    """
    return not elem_less(coord, shape)
