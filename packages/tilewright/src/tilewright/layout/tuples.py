# SPDX-License-Identifier: Apache-2.0
"""Nested integer tuples: the shapes, strides and coordinates that layouts are made of.

A tree is an integer or a tuple of trees. These functions know nothing of layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypeVar

from ..errors import LayoutError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Leaf = TypeVar("Leaf")
Result = TypeVar("Result")
Nested: TypeAlias = "Leaf | tuple[Nested[Leaf], ...]"
Shape: TypeAlias = "Nested[int]"
# NumPy is imported only where tables are made, so these are names for the type checker.
IntArray: TypeAlias = "NDArray[np.integer[Any]]"
IntOrArray: TypeAlias = "int | IntArray"
# A coordinate of any form a layout takes: an index, entries per mode or per leaf, None or `:` for a mode that stays.
Coordinate: TypeAlias = "SupportsIndex | IntArray | slice | tuple[Coordinate, ...] | list[Any] | None"
# What a shape may be written as: lists count as tuples.
ShapeArgument: TypeAlias = "SupportsIndex | tuple[ShapeArgument, ...] | list[Any]"
MAX_DEPTH = 64


def leaves(tree: Nested[Leaf]) -> list[Leaf]:
    """Return the leaves of a tree, left to right.

    >>> leaves(((2, 3), 4))
    [2, 3, 4]
    """
    if not isinstance(tree, tuple):
        return [tree]
    flat: list[Leaf] = []
    for branch in tree:
        if isinstance(branch, tuple):
            flat += leaves(branch)
        else:
            flat.append(branch)
    return flat


def product(tree: Shape) -> int:
    """Return the product of all leaves of `tree`; the empty tuple has product 1.

    >>> product(((2, 3), 4)), product(())
    (24, 1)
    """
    if not isinstance(tree, tuple):
        return tree
    extents: list[int] = leaves(tree)
    return prod(extents)


def nest_like(profile: Nested[Any], values: Iterator[Leaf]) -> Nested[Leaf]:
    """Return the next `values`, nested like `profile`.

    >>> nest_like((0, (0, 0)), iter([1, 2, 3]))
    (1, (2, 3))
    """
    if isinstance(profile, tuple):
        return tuple([nest_like(branch, values) for branch in profile])
    return next(values)


def map_leaves(function: Callable[[Leaf], Result], tree: Nested[Leaf]) -> Nested[Result]:
    """Return `tree` with `function` applied to every leaf.

    >>> map_leaves(lambda leaf: leaf * 2, (1, (2, 3)))
    (2, (4, 6))
    """
    if isinstance(tree, tuple):
        return tuple([map_leaves(function, branch) for branch in tree])
    return function(tree)


def zeros_like(tree: Nested[Any]) -> Nested[int]:
    """Return a tree of zeros, nested like `tree`.

    >>> zeros_like((4, (2, 3)))
    (0, (0, 0))
    """
    return tuple([zeros_like(branch) for branch in tree]) if isinstance(tree, tuple) else 0


def index_strides(shape: Shape) -> Shape:
    """Return the strides that map each coordinate to its index: compact, column-major, leading units with stride 0.

    >>> index_strides((1, 2, (3, 4))), index_strides((2, 1, 3))
    ((0, 1, (2, 6)), (1, 2, 2))
    """
    steps = []
    step: Any = 1
    for extent in leaves(shape):
        steps.append(0 if extent == 1 and step == 1 else step)
        step = step * extent
    return nest_like(shape, iter(steps))


def tree_depth(tree: Nested[Any]) -> int:
    """Return the depth of nesting; a leaf and the empty tuple have depth 0.

    >>> tree_depth(4), tree_depth((4, (2, 3)))
    (0, 2)
    """
    if not isinstance(tree, tuple) or not tree:
        return 0
    return 1 + max(map(tree_depth, tree))


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return `value` as a tuple: a leaf becomes a tuple of one, lists become tuples.

    >>> as_tuple(4), as_tuple([4, 8])
    ((4,), (4, 8))
    """
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def as_tree(value: Any, depth: int = 0) -> Any:
    """Return `value` with every list in it turned into a tuple.

    >>> as_tree([2, [3, 4]])
    (2, (3, 4))
    """
    if not isinstance(value, (tuple, list)):
        return value
    if depth >= MAX_DEPTH:
        raise LayoutError(f"a tuple is nested deeper than {MAX_DEPTH} levels; flatten it")
    return tuple([as_tree(branch, depth + 1) for branch in value])


def product_each(shape: Shape) -> tuple[int, ...]:
    """Return the product of each top-level mode of `shape`.

    >>> product_each(((2, 2), 8)), product_each(16)
    ((4, 8), (16,))
    """
    return tuple([product(mode) for mode in as_tuple(shape)])


def prefix_product(tree: Shape, init: int = 1) -> Shape:
    """Return `init` times the product of the leaves before each leaf of `tree`: compact column-major strides.

    >>> prefix_product(((2, 3), 4))
    ((1, 2), 6)
    """
    if not isinstance(tree, tuple):
        return init
    strides, step = [], init
    for branch in tree:
        strides.append(prefix_product(branch, step))
        step = prod(leaves(branch), start=step)  # one by one, so that tagged integers stay tagged
    return tuple(strides)


def suffix_product(tree: Shape, init: int = 1) -> Shape:
    """Return `init` times the product of the leaves after each leaf of `tree`: compact row-major strides.

    >>> suffix_product((3, (2, 4)))
    (8, (4, 1))
    """
    if not isinstance(tree, tuple):
        return init
    strides, step = [], init
    for branch in reversed(tree):
        strides.append(suffix_product(branch, step))
        step = prod(leaves(branch), start=step)  # one by one, so that tagged integers stay tagged
    return tuple(reversed(strides))


def is_congruent(a: Nested[Any], b: Nested[Any]) -> bool:
    """Return whether two trees have the same nesting.

    >>> is_congruent(((2, 3), 4), ((5, 6), 7)), is_congruent((2, 3), 6)
    (True, False)
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(is_congruent, a, b))
    return not isinstance(a, tuple) and not isinstance(b, tuple)


def is_weakly_congruent(a: Nested[Any], b: Nested[Any]) -> bool:
    """Return whether `b` is nested like `a`, or deeper.

    >>> is_weakly_congruent((2, 3), (5, (6, 7))), is_weakly_congruent((2, (3, 4)), (5, 6))
    (True, False)
    """
    if not isinstance(a, tuple):
        return True
    return isinstance(b, tuple) and len(a) == len(b) and all(map(is_weakly_congruent, a, b))


def is_compatible(a: Shape, b: Shape) -> bool:
    """Return whether every coordinate of shape `a` is also one of shape `b`: `b` refines `a`.

    >>> is_compatible((4, 3), ((2, 2), 3)), is_compatible((4, 3), (3, 4))
    (True, False)
    """
    if not isinstance(a, tuple):
        return bool(a == product(b))
    return isinstance(b, tuple) and len(a) == len(b) and all(map(is_compatible, a, b))


def check_congruent(a: Nested[Any], b: Nested[Any], caller: str) -> None:
    """Raise an error that names `caller` unless two trees have the same nesting.

    >>> check_congruent((2, 3), (4, 5), "example")
    """
    if not is_congruent(a, b):
        raise LayoutError(f"{caller}: {a} and {b} are nested differently; give both the same rank and grouping")
