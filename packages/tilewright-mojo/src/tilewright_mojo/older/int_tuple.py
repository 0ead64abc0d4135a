# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.int_tuple`: nested tuples of integers, known or `UNKNOWN_VALUE`, and functions of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.errors import LayoutError
from tilewright.layout import Layout as NativeLayout
from tilewright.layout import as_tuple, leaves, map_leaves, nest_like
from tilewright.mojo import Index, IndexList, MojoValue, brackets

from .nested_integers import UNKNOWN_VALUE, IntTuple, as_int_tree, format_tree, multiply, multiply_leaves, of_tree

_sort = sorted  # the functions below have the names of Python's


def _sum(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total += number
    return total


def signum(a: Any) -> int:
    """Return the sign of an integer: -1, 0 or 1.

    >>> signum(-7)
    -1
    """
    return int(a > 0) - int(a < 0)


def is_int(t: object) -> bool:
    """Return whether a tuple is an integer.

    >>> is_int(IntTuple(2)), is_int(IntTuple(2, 3))
    (True, False)
    """
    return not isinstance(as_int_tree(t), tuple)


def is_tuple(t: object) -> bool:
    """Return whether a tuple is more than an integer.

    >>> is_tuple(IntTuple(2, 3))
    True
    """
    return not is_int(t)


def flatten(t: object) -> IntTuple:
    """Return all integers without nesting.

    >>> print(flatten(IntTuple(2, IntTuple(3, 4))))
    (2, 3, 4)
    """
    return of_tree(tuple(leaves(as_int_tree(t))))


def to_unknown(t: object) -> IntTuple:
    """Return the nesting with every integer unknown.

    >>> print(to_unknown(IntTuple(2, IntTuple(3, 4))))
    (-1, (-1, -1))
    """
    return fill_like(t, UNKNOWN_VALUE)


def fill_like(src: object, val: object) -> IntTuple:
    """Return the nesting with every integer `val`.

    >>> print(fill_like(IntTuple(2, IntTuple(3, 4)), 0))
    (0, (0, 0))
    """
    number = as_int_tree(val)
    return of_tree(map_leaves(lambda _: number, as_int_tree(src)))


def create_unknown_int_tuple(rank: Any) -> IntTuple:
    """Return a tuple of `rank` unknown integers.

    >>> print(create_unknown_int_tuple(2))
    (-1, -1)
    """
    return of_tree((UNKNOWN_VALUE,) * int(rank))


def reverse(src: object) -> IntTuple:
    """Return the entries in reverse, at every level.

    >>> print(reverse(IntTuple(2, IntTuple(3, 4))))
    ((4, 3), 2)
    """
    tree = as_int_tree(src)
    return of_tree(tuple([reverse(part)._tree for part in tree[::-1]]) if isinstance(tree, tuple) else tree)


def depth(src: object) -> int:
    """Return how deeply the tuple is nested: 0 for an integer.

    >>> depth(IntTuple(1)), depth(IntTuple(1, IntTuple(2, 3)))
    (0, 2)
    """
    tree = as_int_tree(src)
    level = 0
    while isinstance(tree, tuple):  # level by level
        level += 1
        tree = tuple([leaf for part in tree if isinstance(part, tuple) for leaf in part]) or None
    return level


def abs(t: object) -> IntTuple:  # noqa: A001  (Mojo's name)
    """Return the absolute value of every integer.

    >>> print(abs(IntTuple(-2, IntTuple(3, -4))))
    (2, (3, 4))
    """
    return of_tree(map_leaves(lambda leaf: leaf if leaf >= 0 else -leaf, as_int_tree(t)))


def mul(lhs: Any, rhs: Any) -> IntTuple:
    """Return every integer times `rhs`.

    >>> print(mul(IntTuple(2, IntTuple(3, 4)), 10))
    (20, (30, 40))
    """
    return of_tree(map_leaves(lambda leaf: multiply(leaf, int(rhs)), as_int_tree(lhs)))


def sum(t: object) -> int:  # noqa: A001
    """Return the sum of all integers, unknown if one is.

    >>> sum(IntTuple(2, IntTuple(3, 4)))
    9
    """
    numbers = leaves(as_int_tree(t))
    return UNKNOWN_VALUE if UNKNOWN_VALUE in numbers else _sum(numbers)


def product(t: object) -> int:
    """Return the product of all integers, unknown if one is.

    >>> product(IntTuple(2, IntTuple(3, 4)))
    24
    """
    return multiply_leaves(as_int_tree(t))


size = product


def product_each(t: object) -> IntTuple:
    """Return the product of each entry.

    >>> print(product_each(IntTuple(2, IntTuple(3, 4))))
    (2, 12)
    """
    tree = as_int_tree(t)
    return of_tree(tuple([product(part) for part in tree]) if isinstance(tree, tuple) else tree)


def inner_product(a: object, b: object) -> int:
    """Return the sum of products of integers at the same place.

    >>> inner_product(IntTuple(1, 2), IntTuple(3, 2))
    7
    """
    left, right = leaves(as_int_tree(a)), leaves(as_int_tree(b))
    if len(left) != len(right):
        raise LayoutError(f"inner_product needs tuples of the same nesting, got {a} and {b}")
    return sum([multiply(x, y) for x, y in zip(left, right, strict=True)])


def tuple_max(t: object) -> int:
    """Return the largest integer.

    >>> tuple_max(IntTuple(1, IntTuple(7, 3)))
    7
    """
    return int(max(leaves(as_int_tree(t))))


@brackets
def sorted(parameters: tuple[Any, ...], t: object, cmp: object = None) -> IntTuple:  # noqa: A001
    """`sorted(t)`, or `sorted[cmp](t)`: the entries in order.

    >>> print(sorted(IntTuple(7, 3, 1)))
    (1, 3, 7)
    """
    is_before = (*parameters, cmp)[0] or (lambda a, b: a < b)
    parts: list[IntTuple] = []
    for part in of_tree(as_int_tree(t)):  # insertion keeps equal entries in their order
        k = len(parts)
        while k and is_before(part, parts[k - 1]):
            k -= 1
        parts.insert(k, part)
    return of_tree(tuple([part._tree for part in parts]))


@brackets
def reduce(parameters: tuple[Any, ...], t: object, initializer: object) -> MojoValue:
    """`reduce[reducer](t, initializer)`: the entries combined, one after another.

    >>> reduce[lambda a, b: a + int(b)](IntTuple(1, 2, 3), 10)
    16
    """
    result = initializer
    for part in of_tree(as_int_tree(t)):
        result = parameters[-1](result, part)
    return result


@brackets
def apply(parameters: tuple[Any, ...], t: object) -> IntTuple:
    """`apply[function](t)`: a function of every integer.

    >>> print(apply[lambda n: n * n](IntTuple(2, IntTuple(3, 4))))
    (4, (9, 16))
    """
    return of_tree(map_leaves(lambda leaf: int(parameters[0](leaf)), as_int_tree(t)))


def congruent(a: object, b: object) -> bool:
    """Return whether two tuples have the same nesting.

    >>> congruent(IntTuple(1, IntTuple(2, 3)), IntTuple(4, IntTuple(5, 6)))
    True
    """
    return _compare(a, b, lambda x, y: not isinstance(y, tuple))


def weakly_congruent(a: object, b: object) -> bool:
    """Return whether `b` has the nesting of `a`, or a deeper one.

    >>> weakly_congruent(IntTuple(1, 2), IntTuple(4, IntTuple(5, 6)))
    True
    """
    return _compare(a, b, lambda x, y: True)


def compatible(a: object, b: object) -> bool:
    """Return whether `b` refines `a`: every integer of `a` is the size of the entry at its place.

    >>> compatible(IntTuple(4, 30), IntTuple(4, IntTuple(5, 6)))
    True
    """
    return _compare(a, b, lambda x, y: x == product(y))


def weakly_compatible(a: object, b: object) -> bool:
    """Return whether every integer of `a` divides the size of the entry of `b` at its place.

    >>> weakly_compatible(IntTuple(4, 15), IntTuple(4, IntTuple(5, 6)))
    True
    """
    return _compare(a, b, lambda x, y: x != 0 and product(y) % x == 0)


def _compare(a: object, b: object, is_fit: Callable[[int, Any], bool]) -> bool:
    """Return whether every integer of one tuple fits the entry of the other at its place."""
    left, right = as_int_tree(a), as_int_tree(b)
    if not isinstance(left, tuple):
        return is_fit(left, right)
    if not isinstance(right, tuple) or len(left) != len(right):
        return False
    return all(_compare(x, y, is_fit) for x, y in zip(left, right, strict=True))


def prefix_product(a: object, init: object = 1) -> IntTuple:
    """Return the product of all integers before each, times `init`: the strides of column-major order.

    >>> print(prefix_product(IntTuple(IntTuple(2, 3), 4)))
    ((1, 2), 6)
    """
    tree, running = as_int_tree(a), as_int_tree(init)
    if isinstance(running, tuple):
        pairs = zip(as_tuple(tree), running, strict=True)
        return of_tree(tuple([prefix_product(part, start)._tree for part, start in pairs]))
    strides = []
    for leaf in leaves(tree):
        strides.append(running)
        running = multiply(running, leaf)
    return of_tree(nest_like(tree, iter(strides)))


@brackets
def shape_div(parameters: tuple[Any, ...], a: object, b: object, check: bool = False) -> IntTuple:
    """`shape_div(a, b)`: a shape divided by another one, or by a number that its first modes use up.

    >>> print(shape_div(IntTuple(3, 4), 6))
    (1, 2)
    """
    return of_tree(_divide(as_int_tree(a), as_int_tree(b)))


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) != len(b):
            raise LayoutError(f"shape_div needs tuples of the same length, got {format_tree(a)} and {format_tree(b)}")
        return tuple([_divide(x, y) for x, y in zip(a, b, strict=True)])
    if isinstance(a, tuple):
        parts = []
        for part in a:
            parts.append(_divide(part, b))
            b = _divide(b, product(part))
        return tuple(parts)
    if isinstance(b, tuple):
        return _divide(a, product(b))
    if UNKNOWN_VALUE in (a, b):
        return UNKNOWN_VALUE
    return a // b if b and a % b == 0 else signum(a * b)


def idx2crd(idx: object, shape: object, _stride: object = None) -> IntTuple:
    """Return the coordinate of an index: `(idx // stride) % shape` for every integer, 0 where the stride is 0.

    >>> print(idx2crd(7, IntTuple(4, 2)))
    (3, 1)
    """
    index, form = as_int_tree(idx), as_int_tree(shape)
    steps = (prefix_product(form) if _stride is None else of_tree(as_int_tree(_stride)))._tree
    if isinstance(index, tuple):
        if len(index) != len(as_tuple(form)):
            raise LayoutError(f"idx2crd needs one index per entry of {format_tree(form)}, got {format_tree(index)}")
        parts = zip(index, as_tuple(form), as_tuple(steps), strict=True)
        return of_tree(tuple([idx2crd(i, n, d)._tree for i, n, d in parts]))
    pairs = zip(leaves(form), leaves(steps), strict=True)
    return of_tree(nest_like(form, iter([index // d % n if d and n else 0 for n, d in pairs])))


def crd2idx(crd: object, shape: object, _stride: object = None) -> int:
    """Return the index of a coordinate: entry by entry, an integer of a nested entry as a colexicographic index.

    >>> crd2idx(IntTuple(3, 1), IntTuple(4, 2), IntTuple(1, 4))
    7
    """
    form = as_int_tree(shape)
    steps = (prefix_product(form) if _stride is None else of_tree(as_int_tree(_stride)))._tree
    return int(NativeLayout(form, steps).extended(as_int_tree(crd)))


def compact_order(shape: object, order: object) -> IntTuple:
    """Return the strides of a shape without gaps, the integer with the lowest `order` fastest.

    >>> print(compact_order(IntTuple(2, 3, 4, 5), IntTuple(1, 4, 3, 5)))
    (1, 8, 2, 24)
    """
    form = as_int_tree(shape)
    ranks = _spread(form, as_int_tree(order))
    numbers = leaves(form)
    strides, running = [0] * len(numbers), 1
    for k in _argsort(ranks):
        strides[k] = running
        running = multiply(running, numbers[k])
    return of_tree(nest_like(form, iter(strides)))


def _argsort(keys: list[int]) -> list[int]:
    return [k for _, k in _sort([(key, k) for k, key in enumerate(keys)])]


def _spread(shape: Any, order: Any) -> list[int]:
    """Return the order of every integer of a shape; one order for a nested entry holds for all its integers."""
    if isinstance(order, tuple):
        if not isinstance(shape, tuple) or len(shape) != len(order):
            raise LayoutError(f"the order {format_tree(order)} does not fit the shape {format_tree(shape)}")
        return [rank for part, rule in zip(shape, order, strict=True) for rank in _spread(part, rule)]
    return [order] * len(leaves(shape))


def to_index_list(t: object, *_: Any) -> IndexList:
    """Return a flat tuple as an `IndexList`.

    >>> to_index_list(IntTuple(2, 3))
    (2, 3)
    """
    return Index(*leaves(as_int_tree(t)))


@brackets
def coord_to_int_tuple(parameters: tuple[Any, ...], value: object = None) -> IntTuple:
    """`coord_to_int_tuple(coord)`, or of types in brackets: an `IntTuple` of the same nesting.

    >>> from tilewright.mojo.layout import Coord
    >>> print(coord_to_int_tuple(Coord(Coord(2, 3), 4)))
    ((2, 3), 4)
    """
    return of_tree(as_int_tree(parameters if value is None else value))
