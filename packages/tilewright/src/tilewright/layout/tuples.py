# SPDX-License-Identifier: Apache-2.0
"""Nested integer tuples: the shapes, strides and coordinates that layouts are made of.

A tree is an integer or a tuple of trees. These functions know nothing of layouts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypeGuard, TypeVar, cast

from ..errors import CoordinateError, LayoutError

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
# The accepted spellings of a shape: lists count as tuples.
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
    strides = []
    stride: Any = 1
    for extent in leaves(shape):
        strides.append(0 if extent == 1 and stride == 1 else stride)
        stride = stride * extent
    return nest_like(shape, iter(strides))


def tree_depth(tree: Nested[Any]) -> int:
    """Return the depth of nesting; a leaf and the empty tuple have depth 0.

    >>> tree_depth(4), tree_depth((4, (2, 3)))
    (0, 2)
    """
    if not isinstance(tree, tuple) or not tree:
        return 0
    return 1 + max(map(tree_depth, tree))


def as_tuple(value: object) -> tuple[Any, ...]:
    """Return `value` as a tuple: a leaf becomes a tuple of one, lists become tuples.

    >>> as_tuple(4), as_tuple([4, 8])
    ((4,), (4, 8))
    """
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def as_tree(value: object, depth: int = 0) -> Nested[Any]:
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
    strides, stride = [], init
    for branch in tree:
        strides.append(prefix_product(branch, stride))
        stride = prod(leaves(branch), start=stride)  # one by one, so that tagged integers stay tagged
    return tuple(strides)


def suffix_product(tree: Shape, init: int = 1) -> Shape:
    """Return `init` times the product of the leaves after each leaf of `tree`: compact row-major strides.

    >>> suffix_product((3, (2, 4)))
    (8, (4, 1))
    """
    if not isinstance(tree, tuple):
        return init
    strides, stride = [], init
    for branch in reversed(tree):
        strides.append(suffix_product(branch, stride))
        stride = prod(leaves(branch), start=stride)  # one by one, so that tagged integers stay tagged
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


# Validation of integers, shapes and coordinates: input is checked here once, and trusted from then on.


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


# Coordinates: from an index to a nested coordinate and back, and coordinates that slice.


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
    strides = leaves(prefix_product(shape))
    return sum(c * stride for c, stride in zip(leaf_coordinates(as_tree(coord), shape), strides, strict=True))


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


def fixed_offset(coord: Coordinate, shape: Shape, stride: Nested[Any]) -> int | Any:
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
    return sum((c * leaf for c, leaf in zip(entries, leaves(stride), strict=True)), 0)
