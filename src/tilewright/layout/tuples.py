# SPDX-License-Identifier: Apache-2.0
"""Nested integer tuples: the shapes, strides and coordinates that layouts are made of.

A tree is an integer or a tuple of trees. These functions know nothing of layouts; those that peers also call with a
layout (`size`, `rank`, `depth`, `flatten`, ...) live in `queries` and come back here for plain trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd, prod
from typing import Any, TypeAlias

from ..errors import LayoutError

Tree: TypeAlias = "int | tuple[Tree, ...]"
MAX_DEPTH = 64


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a tree, left to right.

    >>> leaves(((2, 3), 4))
    [2, 3, 4]
    """
    if tree.__class__ is not tuple:
        return [tree]
    found: list[Any] = []
    for branch in tree:
        if branch.__class__ is tuple:
            found += leaves(branch)
        else:
            found.append(branch)
    return found


def product(tree: Any) -> Any:
    """Return the product of all leaves; the empty tuple has product 1.

    >>> product(((2, 3), 4)), product(())
    (24, 1)
    """
    return prod(leaves(tree)) if tree.__class__ is tuple else tree


def like(profile: Any, values: Iterator[Any]) -> Any:
    """Return the next values arranged in the form of profile.

    >>> like((0, (0, 0)), iter([1, 2, 3]))
    (1, (2, 3))
    """
    if profile.__class__ is tuple:
        return tuple([like(branch, values) for branch in profile])
    return next(values)


def map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """Return tree with every leaf changed.

    >>> map_leaves(lambda leaf: leaf * 2, (1, (2, 3)))
    (2, (4, 6))
    """
    if tree.__class__ is tuple:
        return tuple([map_leaves(change, branch) for branch in tree])
    return change(tree)


def index_strides(shape: Any) -> Any:
    """Return the strides that give each coordinate its index: compact and column-major, leading units with stride 0.

    >>> index_strides((1, 2, (3, 4))), index_strides((2, 1, 3))
    ((0, 1, (2, 6)), (1, 2, 2))
    """
    steps = []
    step: Any = 1
    for extent in leaves(shape):
        steps.append(0 if extent == 1 and step == 1 else step)
        step = step * extent
    return like(shape, iter(steps))


def tree_rank(tree: Any) -> int:
    """Return the number of top-level branches; a leaf has none.

    >>> tree_rank((4, (2, 3))), tree_rank(4)
    (2, 0)
    """
    return len(tree) if tree.__class__ is tuple else 0


def tree_depth(tree: Any) -> int:
    """Return the depth of nesting; a leaf has depth 0, and so has the empty tuple.

    >>> tree_depth(4), tree_depth((4, (2, 3)))
    (0, 2)
    """
    if tree.__class__ is not tuple or not tree:
        return 0
    return 1 + max(map(tree_depth, tree))


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return value as a tuple: a leaf becomes a tuple of one, lists become tuples.

    >>> as_tuple(4), as_tuple([4, 8])
    ((4,), (4, 8))
    """
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def as_tree(value: Any, depth: int = 0) -> Any:
    """Return value with every list in it turned into a tuple.

    >>> as_tree([2, [3, 4]])
    (2, (3, 4))
    """
    if not isinstance(value, (tuple, list)):
        return value
    if depth >= MAX_DEPTH:
        raise LayoutError(f"a tuple nests deeper than {MAX_DEPTH} levels; flatten it")
    return tuple([as_tree(branch, depth + 1) for branch in value])


def is_tuple(value: object) -> bool:
    """Return whether value is a tuple.

    >>> is_tuple((4,)), is_tuple(4)
    (True, False)
    """
    return isinstance(value, tuple)


def is_int(value: object) -> bool:
    """Return whether value is an integer; a bool is not.

    >>> is_int(4), is_int(True), is_int(4.0)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool)


def product_each(shape: Any) -> tuple[Any, ...]:
    """Return the product of each top-level mode.

    >>> product_each(((2, 2), 8)), product_each(16)
    ((4, 8), (16,))
    """
    return tuple([product(mode) for mode in as_tuple(shape)])


def prefix_product(tree: Any, init: Any = 1) -> Any:
    """Return, for each leaf, the product of the leaves before it: the strides of a compact column-major array.

    >>> prefix_product(((2, 3), 4))
    ((1, 2), 6)
    """
    if tree.__class__ is not tuple:
        return init
    strides, step = [], init
    for branch in tree:
        strides.append(prefix_product(branch, step))
        step = step * product(branch)
    return tuple(strides)


def suffix_product(tree: Any, init: Any = 1) -> Any:
    """Return, for each leaf, the product of the leaves after it: the strides of a compact row-major array.

    >>> suffix_product((3, (2, 4)))
    (8, (4, 1))
    """
    if tree.__class__ is not tuple:
        return init
    strides, step = [], init
    for branch in reversed(tree):
        strides.append(suffix_product(branch, step))
        step = step * product(branch)
    return tuple(reversed(strides))


def inner_product(a: Any, b: Any) -> Any:
    """Return the sum of the products of matching leaves.

    >>> inner_product(((2, 3), 4), ((2, 1), 2))
    15
    """
    check_congruent(a, b, "inner_product")
    return sum(x * y for x, y in zip(leaves(a), leaves(b), strict=True))


def elem_scale(a: Any, b: Any) -> Any:
    """Return a with each leaf scaled by the product of the matching branch of b.

    >>> elem_scale((2, 3), (4, (5, 2)))
    (8, 30)
    """
    if a.__class__ is not tuple:
        return a * product(b)
    if b.__class__ is not tuple or len(a) != len(b):
        raise TypeError(f"elem_scale: {a} needs a tuple of {len(a)} scales, got {b!r}")
    return tuple([elem_scale(x, y) for x, y in zip(a, b, strict=True)])


def tuple_max(tree: Any) -> Any:
    """Return the largest leaf.

    >>> tuple_max(((1, 9), (4, 2)))
    9
    """
    return max(leaves(tree))


def has_none(tree: Any) -> bool:
    """Return whether any leaf is None.

    >>> has_none((1, (2, None))), has_none(3)
    (True, False)
    """
    return any(leaf is None for leaf in leaves(tree))


def tree_congruent(a: Any, b: Any) -> bool:
    """Return whether two trees nest alike.

    >>> tree_congruent(((2, 3), 4), ((5, 6), 7)), tree_congruent((2, 3), 6)
    (True, False)
    """
    if a.__class__ is tuple and b.__class__ is tuple:
        return len(a) == len(b) and all(map(tree_congruent, a, b))
    return a.__class__ is not tuple and b.__class__ is not tuple


def tree_weakly_congruent(a: Any, b: Any) -> bool:
    """Return whether b nests like a or deeper.

    >>> tree_weakly_congruent((2, 3), (5, (6, 7))), tree_weakly_congruent((2, (3, 4)), (5, 6))
    (True, False)
    """
    if a.__class__ is not tuple:
        return True
    return b.__class__ is tuple and len(a) == len(b) and all(map(tree_weakly_congruent, a, b))


def tree_compatible(a: Any, b: Any) -> bool:
    """Return whether every coordinate into a is also one into b: b refines a.

    >>> tree_compatible((4, 3), ((2, 2), 3)), tree_compatible((4, 3), (3, 4))
    (True, False)
    """
    if a.__class__ is not tuple:
        return bool(a == product(b))
    return b.__class__ is tuple and len(a) == len(b) and all(map(tree_compatible, a, b))


def check_congruent(a: Any, b: Any, who: str) -> None:
    """Raise unless two trees nest alike.

    >>> check_congruent((2, 3), (4, 5), "example")
    """
    if not tree_congruent(a, b):
        raise LayoutError(f"{who}: {a} and {b} do not nest alike; give both the same rank and the same grouping")


def shape_div(shape: Any, divisor: Any) -> Any:
    """Return what is left of shape after divisor is taken out of it, leftmost mode first.

    The division must be clean at every leaf: one of the two numbers divides the other. A tuple as divisor divides mode
    by mode when the shape is a tuple, and counts as its product when the shape is an integer.

    >>> shape_div((4, 6), 8), shape_div(12, (3, 2)), shape_div((6, 4), (3, 2))
    ((1, 3), 2, (2, 2))
    """
    if shape.__class__ is tuple:
        if divisor.__class__ is tuple:
            if len(shape) != len(divisor):
                raise LayoutError(f"shape_div: {shape} and {divisor} differ in rank; give one divisor for each mode")
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


def shape_mod(shape: Any, modulus: Any) -> Any:
    """Return the part of shape that `shape_div` takes out, leftmost mode first.

    >>> shape_mod((4, 6), 8), shape_mod(12, 4)
    ((4, 2), 4)
    """
    if shape.__class__ is tuple:
        kept = []
        for mode in shape:
            kept.append(shape_mod(mode, modulus))
            modulus = ceil_div(modulus, product(kept[-1]))
        return tuple(kept)
    return shape if modulus >= shape else gcd(shape, modulus)


def safe_div(a: int, b: int) -> int:
    """Return a / b, which must be exact.

    >>> safe_div(12, 4)
    3
    """
    if b == 0 or a % b:
        raise LayoutError(f"safe_div: {a} is not divisible by {b}")
    return a // b


def ceil_div(a: int, b: int) -> int:
    """Return a / b rounded up.

    >>> ceil_div(100, 32)
    4
    """
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    """Return the smallest multiple of b that is not below a.

    >>> round_up(100, 32)
    128
    """
    return ceil_div(a, b) * b
