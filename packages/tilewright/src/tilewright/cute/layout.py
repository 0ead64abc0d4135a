# SPDX-License-Identifier: Apache-2.0
"""CuTe's `Layout`, its static integers and basis strides, and the functions that make layouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

import tilewright.layout as native

from ..errors import LayoutError
from ..layout import (
    PLAIN,
    ComposedLayout,
    Coordinate,
    LayoutArgument,
    LayoutLike,
    Nested,
    Offset,
    Place,
    Shape,
    ShapeArgument,
    Stride,
    StrideArgument,
    Swizzle,
    TaggedInt,
    as_integer,
    as_tree,
    as_tuple,
    format_tree,
    is_slice,
    is_weakly_congruent,
    join_parts,
    leaves,
    live_guards,
    map_leaves,
    nest_like,
    prefix_product,
    product,
    require_strided,
    suffix_product,
    validate_shape,
)
from ..layout import Layout as NativeLayout
from ..layout import make_layout as make_trusted
from ..tensor import TileTensor
from .tuples import crd2idx, idx2crd

__all__ = [
    "C", "E", "GenColMajor", "GenRowMajor", "Int", "Layout", "LayoutLeft", "LayoutRight", "ScaledBasis",
    "compact_col_major", "compact_order", "compact_row_major", "dice", "dice_modes", "is_static",
    "make_identity_layout", "make_layout", "make_layout_like", "make_ordered_layout", "make_swizzle", "slice_",
    "slice_and_offset", "slice_modes",
]  # fmt: skip


_Options = ParamSpec("_Options")
_Leaf = TypeVar("_Leaf")
_Target: TypeAlias = "LayoutArgument | Swizzle"


class Int(TaggedInt):
    """A static integer, CuTe's `Int<n>`: printed as `_n`. Arithmetic of static integers is static.

    >>> print(Int(4), Int(4) * Int(2), Int(4) * 2)
    _4 _8 8
    """

    __slots__ = ()

    def __str__(self) -> str:
        return f"_{int(self)}"

    def __repr__(self) -> str:
        return f"Int({int(self)})"

    def _keeps_tag(self, *operand: object) -> bool:
        return all(isinstance(value, Int) for value in operand)


C = Int


def is_static(value: object) -> bool:
    """Return whether all integers of `value`, a shape, a coordinate or a layout, are static.

    >>> is_static((Int(4), Int(8))), is_static(Layout((Int(4), 8)))
    (True, False)
    """
    trees = (value.shape, value.stride) if isinstance(value, NativeLayout) else (as_tree(value),)
    return all(isinstance(leaf, Int) for tree in trees for leaf in leaves(tree))


def E(*modes: int) -> Place:  # noqa: N802  (CuTe's name)
    """Return the unit stride along `modes`, the path of a coordinate mode: CuTe's `E<0>`, or nested, `E<0, 1>`.

    >>> print(Layout((4, 8), (E(0), E(1))), Layout((4, 8), (E(0), E(1)))(2, 5))
    (4,8):(1@0,1@1) (2, 5)
    """
    return Place({".".join(f"E{as_integer(mode, 'a mode')}" for mode in modes): 1})


def ScaledBasis(value: int, *modes: int) -> Place:  # noqa: N802  (CuTe's name)
    """Return a stride of `value` along a coordinate mode: `value * E(*modes)`.

    >>> print(Layout((4, 8), (ScaledBasis(2, 0), ScaledBasis(3, 1))))
    (4,8):(2@0,3@1)
    """
    return value * E(*modes)


@dataclass(frozen=True)
class LayoutLeft:
    """Asks `make_layout` for column-major strides; CuTe also calls it `GenColMajor`.

    >>> strides = LayoutLeft()
    >>> print(make_layout((4, 8), strides))
    (4,8):(1,4)
    """


@dataclass(frozen=True)
class LayoutRight:
    """Asks `make_layout` for row-major strides; CuTe also calls it `GenRowMajor`.

    >>> strides = LayoutRight()
    >>> print(make_layout((4, 8), strides))
    (4,8):(8,1)
    """


GenColMajor, GenRowMajor = LayoutLeft, LayoutRight


class Layout(NativeLayout):
    """A layout of CuTe: `Layout(shape, stride)`, or `Layout(a, b, ...)` of layouts as modes.

    It is a `tilewright.Layout` that prints as CuTe's, is evaluated past its end without a check, and slices with None
    as CuTe does: the result has the selected modes, and no offset.

    >>> A = Layout(((3, 2), ((2, 3), 2)), ((4, 1), ((2, 15), 100)))
    >>> print(A(2, None), A(2, 5), A(100))
    (((2,3),2)):(((2,15),100)) 40 235
    """

    __slots__ = ()

    def __init__(self, shape: Any = (), stride: Any = None, *modes: Any) -> None:
        if isinstance(shape, NativeLayout):
            parts = [part for part in (shape, stride, *modes) if part is not None]
            super().__init__(*join_parts(tuple(parts)))
            return
        if stride is None:
            shape = validate_shape(shape)
            stride = compact_col_major(shape)
        super().__init__(shape, stride)

    def __call__(self, *coord: Any) -> Any:
        nested = self._nest_coordinate(coord)
        if is_slice(nested):
            sliced = self._slice(nested)
            return sliced._with(offset=0)
        place = self._as_public_offset(crd2idx(nested, self._shape, self._stride) + self.offset)
        return _place_to_tuple(place) if isinstance(place, Place) else place

    def compose(self, *tilers: Any) -> Layout:
        """Return this layout composed with a layout, or with `tilers` mode by mode.

        >>> print(Layout((4, 8)).compose(Layout(2, 4)), Layout((4, 8)).compose(Layout(2, 2), Layout(4)))
        2:4 (2,4):(2,4)
        """
        inner = tilers[0] if len(tilers) == 1 else tilers
        composed = require_strided(native.compose(self, inner, strided=True), "compose")
        return from_native(composed, keep_padding=bool(self.guards))

    def with_shape(self, *extents: Any) -> Layout:
        """Return the same function of the index with another shape, given as a tuple or as `extents`.

        >>> print(Layout((4, 8), (8, 1)).with_shape(2, 2, 8))
        (2,2,8):(8,16,1)
        """
        return self.compose(Layout(extents[0] if len(extents) == 1 else extents))

    def get_hier_coord(self, index: int) -> Shape | Any:
        """Return the coordinate whose offset is `index`, nested like the shape, where strides divide one another.

        >>> Layout(((2, 2), 8)).get_hier_coord(7), Layout((4, 8), (8, 1)).get_hier_coord(13)
        (((1, 1), 1), (1, 5))
        """
        return idx2crd(as_integer(index, "an index"), self._shape, self._stride)

    def get_flat_coord(self, index: int) -> tuple[int, ...]:
        """Return the coordinate whose offset is `index`, with one number per top-level mode.

        >>> Layout(((2, 2), 8)).get_flat_coord(7)
        (3, 1)
        """
        modes = zip(as_tuple(self.get_hier_coord(index)), as_tuple(self._shape), strict=True)
        return tuple([crd2idx(coord, shape) for coord, shape in modes])

    def get_1d_coord(self, index: Coordinate) -> int | Any:
        """Return the position, in column-major order, of the coordinate whose offset is `index`, or of a coordinate.

        >>> Layout((4, 8), (8, 1)).get_1d_coord(13), Layout((4, 8), (8, 1)).get_1d_coord((1, 5))
        (21, 21)
        """
        coord = index if isinstance(index, (tuple, list)) else self.get_hier_coord(as_integer(index, "an index"))
        return crd2idx(coord, self._shape)

    def _slice(self, coord: Coordinate) -> Layout:
        shape, stride = self._shape, self._stride
        extents = slice_modes(coord, shape)
        guards = [
            guard.with_stride(slice_modes(coord, guard.stride), crd2idx(coord, shape, guard.stride))
            for guard in self.guards
        ]
        offset = self.offset + crd2idx(coord, shape, stride)
        sliced = make_trusted(extents, slice_modes(coord, stride), offset, self.replicas, live_guards(extents, guards))
        return from_native(sliced, keep_padding=True)

    def _mode(self, path: tuple[int, ...]) -> Layout:
        return from_native(super()._mode(path), keep_padding=True)

    def _with(self, **changes: Any) -> Layout:
        return from_native(super()._with(**changes), keep_padding=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return from_native, (make_trusted(*self._parts()), False, True)

    def __str__(self) -> str:
        text = f"{_format(self._shape)}:{_format(self._stride)}"
        return text + (f"+{_format(self.offset)}" if self.offset else "")


def slice_modes(coord: Coordinate, tree: Nested[_Leaf]) -> tuple[Nested[_Leaf], ...]:
    """Return the branches of a shape or stride `tree` where `coord` has None, without the nesting of sliced modes.

    >>> slice_modes((None, (None, 1)), (4, (2, 3))), slice_modes((0, None), (4, (2, 3)))
    ((4, 2), ((2, 3),))
    """
    if coord is None or coord == slice(None):
        return (tree,)
    if not isinstance(coord, tuple):
        return ()
    if not isinstance(tree, tuple) or len(coord) != len(tree):
        raise LayoutError(f"slice: coordinate {coord} and {tree} differ in rank")
    return tuple([branch for c, t in zip(coord, tree, strict=True) for branch in slice_modes(c, t)])


def from_native(layout: NativeLayout, static: bool = False, keep_padding: bool = False) -> Layout:
    """Return a native layout as CuTe's; `static` makes all its integers static, `keep_padding` keeps its padding.

    >>> print(from_native(NativeLayout((4, 8)), static=True))
    (_4,_8):(_1,_4)
    """
    shape, stride = layout.shape, layout.stride
    if static:
        shape, stride = map_leaves(Int, shape), map_leaves(_as_static_stride, stride)
    result: Layout = object.__new__(Layout)
    result._shape, result._stride, result._offset, result._replicas = shape, stride, layout.offset, layout.replicas
    result._guards = layout.guards if keep_padding else ()
    result._axes = result._flat = result._modes = None
    return result


def replace_leaves(layout: NativeLayout, extents: list[Any], strides: list[Any], offset: int) -> Layout:
    """Return a layout with the nesting of `layout` and these leaves."""
    if layout.guards or layout.replicas:
        raise LayoutError(f"{layout} is padded or replicated; recast or filter it first, then pad or replicate")
    shape = layout.shape
    result = make_trusted(nest_like(shape, iter(extents)), nest_like(shape, iter(strides)), offset)
    return from_native(result, is_static(layout))


def _as_static_stride(stride: Offset) -> Any:
    return stride if isinstance(stride, Place) else Int(stride)


def _format(tree: Stride) -> str:
    """Return a shape or stride as CuTe prints it: `(_4,8)`, basis strides as `1@0`."""
    if isinstance(tree, tuple):
        return f"({','.join(map(_format, tree))})"
    if not isinstance(tree, Place) or len(tree) != 1 or not is_basis(tree):
        return format_tree(tree)
    ((name, amount),) = tree.items()
    return f"{amount}{''.join(f'@{part[1:]}' for part in reversed(name.split('.')))}"


def is_basis(place: Place) -> bool:
    """Return whether a `place` has only axes of `E`.

    >>> is_basis(3 * E(1)), is_basis(Place(bank=1))
    (True, False)
    """
    return all(part[:1] == "E" and part[1:].isdigit() for name in place.axes for part in name.split("."))


def _place_to_tuple(place: Place) -> Any:
    """Return a point over basis strides as a coordinate; other places as they are."""
    if not is_basis(place):
        return place
    modes = sorted({int(name.split(".")[0][1:]) for name in place.axes})
    coordinate = []
    for k in range(modes[-1] + 1 if modes else 0):
        nested = {n.partition(".")[2]: v for n, v in place.items() if n.split(".")[0] == f"E{k}"}
        inner = {name: amount for name, amount in nested.items() if name}
        coordinate.append(_place_to_tuple(Place(inner)) if inner else nested.get(PLAIN, 0))
    return tuple(coordinate)


def compact_col_major(shape: Shape, first: int | None = None) -> Shape:
    """Return the strides of a compact column-major layout of `shape`; static extents of 1 have stride 0, as in CuTe.

    `first` is the smallest stride, 1 by default.

    >>> compact_col_major((4, (2, 3))), compact_col_major((Int(4), Int(8))), compact_col_major((Int(2), Int(1), Int(3)))
    ((1, (4, 8)), (Int(1), Int(4)), (Int(1), Int(0), Int(2)))
    """
    return _without_unit_strides(shape, prefix_product(shape, _first_stride(shape) if first is None else first))


def compact_row_major(shape: Shape, first: int | None = None) -> Shape:
    """Return the strides of a compact row-major layout of `shape`; static extents of 1 have stride 0, as in CuTe.

    `first` is the smallest stride, 1 by default.

    >>> compact_row_major((4, (2, 3))), compact_row_major((4, (2, 3)), 5)
    ((6, (3, 1)), (30, (15, 5)))
    """
    return _without_unit_strides(shape, suffix_product(shape, _first_stride(shape) if first is None else first))


def _first_stride(shape: Shape) -> int:
    """Return 1, static if an extent of the shape is."""
    return Int(1) if any(isinstance(leaf, Int) for leaf in leaves(shape)) else 1


def _without_unit_strides(shape: Shape, strides: Any) -> Shape:
    """Return strides with 0 for the static extents of 1."""
    if isinstance(shape, tuple):
        return tuple([_without_unit_strides(n, d) for n, d in zip(shape, strides, strict=True)])
    return Int(0) if isinstance(shape, Int) and shape == 1 else cast("Shape", strides)


def compact_order(shape: ShapeArgument, order: ShapeArgument) -> Shape:
    """Return the strides of `make_ordered_layout` of `shape` and `order`.

    >>> compact_order((2, 3, 4, 5), (2, 67, 42, 50))
    (1, 40, 2, 8)
    """
    strides: Shape = make_ordered_layout(shape, order).stride
    return strides


def make_layout(
    *parts: Any, stride: StrideArgument | type[LayoutLeft | LayoutRight] | LayoutLeft | LayoutRight | None = None
) -> Layout:
    """Return the layout of a shape, of a shape and a `stride`, or with several layouts as its modes, its `parts`.

    The strides may be `LayoutLeft()` or `LayoutRight()`.

    >>> print(make_layout((4, 8)), make_layout((4, 8), (8, 1)), make_layout(Layout(4), Layout(8, 4)))
    (4,8):(1,4) (4,8):(8,1) (4,8):(1,4)
    >>> print(make_layout((4, 8), LayoutRight()), make_layout((4, 8), stride=(8, 1)))
    (4,8):(8,1) (4,8):(8,1)
    """
    if stride is not None:
        parts = (*parts, stride)
    if len(parts) == 2 and _is_major(parts[1], LayoutLeft):
        return Layout(parts[0])
    if len(parts) == 2 and _is_major(parts[1], LayoutRight):
        return Layout(parts[0], compact_row_major(validate_shape(parts[0])))
    if len(parts) == 1 and isinstance(parts[0], (list, tuple)) and any(isinstance(x, LayoutLike) for x in parts[0]):
        parts = tuple(parts[0])
    return Layout(*parts)


def _is_major(value: object, order: type) -> bool:
    """Return whether a value stands for strides in an order: the class, or an object of it."""
    return value is order or isinstance(value, order)


def make_identity_layout(shape: ShapeArgument) -> Layout:
    """Return the layout that maps each coordinate of `shape` to itself.

    >>> print(make_identity_layout((4, 8)), make_identity_layout((4, 8))(13))
    (4,8):(1@0,1@1) (1, 3)
    """

    def basis(tree: Shape, path: tuple[int, ...]) -> Any:
        if isinstance(tree, tuple):
            return tuple([basis(branch, (*path, k)) for k, branch in enumerate(tree)])
        return E(*path)

    form = validate_shape(shape)
    return Layout(form, basis(form, ()) if isinstance(form, tuple) else E(0))


def make_ordered_layout(shape: ShapeArgument, order: ShapeArgument | None = None) -> Layout:
    """Return a compact layout of `shape`; a mode with a smaller number in `order` varies faster.

    `order` is nested like the shape, or less deep. Without it the layout is column-major.

    >>> print(make_ordered_layout((4, 8), (1, 0)), make_ordered_layout((2, 3, 4, 5), (2, 67, 42, 50)))
    (4,8):(8,1) (2,3,4,5):(1,40,2,8)
    >>> print(make_ordered_layout((3, (4, 5)), (1, (2, 0))))
    (3,(4,5)):(5,(15,1))
    """
    form = validate_shape(shape)
    if order is None:
        return Layout(form)
    ranks = as_tree(order)
    if not is_weakly_congruent(ranks, form):
        raise LayoutError(f"make_ordered_layout: order {order} does not fit shape {form}; nest it like the shape")
    pairs: list[tuple[int, Any]] = []
    _collect_orders(form, ranks, pairs)

    def strides(tree: Any, rank_tree: Shape) -> Any:
        if isinstance(rank_tree, tuple):
            return tuple([strides(t, r) for t, r in zip(tree, rank_tree, strict=True)])
        start = product(tuple([product(other) for rank, other in pairs if rank < rank_tree]))
        return prefix_product(tree, start)

    return from_native(make_trusted(form, strides(form, ranks)), is_static(form))


def _collect_orders(shape: Any, ranks: Shape, pairs: list[tuple[int, Any]]) -> None:
    """Append (rank, mode) for every number of an order."""
    if isinstance(ranks, tuple):
        for mode_shape, rank_tree in zip(shape, ranks, strict=True):
            _collect_orders(mode_shape, rank_tree, pairs)
    else:
        pairs.append((as_integer(ranks, "order"), shape))


def make_layout_like(layout: NativeLayout, shape: ShapeArgument | LayoutLike | None = None) -> Layout:
    """Return a compact layout with the shape of `layout` and modes in the order of its strides; broadcasts stay.

    With another `shape`, or a layout's shape, return it under the strides of `layout`, leaf by leaf.

    >>> print(make_layout_like(Layout((4, 8), (100, 1))), make_layout_like(Layout((4, 8), (0, 3))))
    (4,8):(8,1) (4,8):(0,1)
    >>> print(make_layout_like(Layout((8, 8)), (4, 2)))
    (4,2):(1,8)
    """
    require_strided(layout, "make_layout_like")
    if layout.replicas or layout.axes:
        raise LayoutError(
            f"make_layout_like of {layout}: copies and named axes have no compact form; remove them first"
        )
    extents, strides = layout.flat_modes()
    if shape is not None:
        form = shape.shape if isinstance(shape, LayoutLike) else validate_shape(shape)
        if len(leaves(form)) > len(strides):
            raise LayoutError(f"make_layout_like: shape {form} has more flat modes than {layout}")
        if layout.guards:
            raise LayoutError(f"make_layout_like of {layout}: its padding does not fit {form}; pad the result instead")
        return Layout(form, nest_like(form, iter(strides)))
    packed: list[Any] = [0] * len(strides)
    size = 1
    for k in sorted(range(len(strides)), key=lambda k: (abs(strides[k]), k)):
        if strides[k]:
            packed[k] = size
            size = size * extents[k]
    return from_native(make_trusted(layout.shape, nest_like(layout.shape, iter(packed))), is_static(layout))


def make_swizzle(source_mask: int, target_mask: int) -> Swizzle:
    """Return the swizzle that XORs the bits of `source_mask` into the bits of `target_mask`.

    >>> make_swizzle(0b111000, 0b111)
    Swizzle(3, 0, 3)
    """
    source, target = as_integer(source_mask, "a bit mask"), as_integer(target_mask, "a bit mask")
    if source < 0 or target < 0 or source.bit_count() != target.bit_count():
        raise LayoutError(
            f"make_swizzle: masks {source:#b} and {target:#b} must be nonnegative and have the same number of bits"
        )
    if not source:
        return Swizzle(0, 0, 0)
    low, high = _lowest_bit(source), _lowest_bit(target)
    for mask, start in ((source, low), (target, high)):
        if mask >> start != (1 << mask.bit_count()) - 1:
            raise LayoutError(f"make_swizzle: the bits of mask {mask:#b} must be adjacent")
    if abs(low - high) < source.bit_count():
        raise LayoutError(f"make_swizzle: masks {source:#b} and {target:#b} must not overlap")
    return Swizzle(source.bit_count(), min(low, high), low - high)


def _lowest_bit(mask: int) -> int:
    """Return the position of the lowest bit that is set."""
    return (mask & -mask).bit_length() - 1


# Native results, as CuTe has them: static integers, no padding, and views where tensors go in.


class OnTensors(Protocol[_Options]):
    """A function of layouts that also takes tensors, and returns a view of them."""

    @overload
    def __call__(self, target: TileTensor, /, *rest: _Options.args, **options: _Options.kwargs) -> TileTensor: ...
    @overload
    def __call__(self, target: _Target, /, *rest: _Options.args, **options: _Options.kwargs) -> Layout | Any: ...


def on_tensors(function: Callable[Concatenate[Any, _Options], Any]) -> OnTensors[_Options]:
    """Return a `function` of layouts that also takes tensors: the result is a view of the tensor's memory.

    >>> from tilewright import cute
    >>> tensor = TileTensor([0.0] * 8, cute.Layout((2, 4)))
    >>> print(on_tensors(lambda layout: cute.Layout((4, 2)))(tensor).layout)
    (4,2):(1,4)
    """

    @wraps(function)
    def operate(target: object, *arguments: _Options.args, **options: _Options.kwargs) -> Any:
        if isinstance(target, TileTensor):
            return target.reshape(function(target.layout, *arguments, **options), allow_resize=True)
        return function(target, *arguments, **options)

    return cast("OnTensors[_Options]", operate)


@overload
def as_cute(result: NativeLayout, *operands: object) -> Layout: ...
@overload
def as_cute(result: object, *operands: object) -> Layout | Any: ...
def as_cute(result: object, *operands: object) -> Layout | Any:
    """Return a `result` of the library; its integers are static if all `operands` have static integers.

    It is padded only if an operand is: CuTe's own layouts never are.

    >>> from tilewright.cute import Int, Layout
    >>> print(as_cute(NativeLayout(4), Layout(Int(4))))
    _4:_1
    """
    if isinstance(result, ComposedLayout):
        return ComposedLayout(*[as_cute(part, *operands) for part in (result.outer, result.inner)])
    if not isinstance(result, NativeLayout):
        return result
    padded = any(isinstance(operand, LayoutLike) and operand._has_padding() for operand in operands)
    return from_native(result, all(map(_is_static_operand, operands)), padded)


def _is_static_operand(operand: object) -> bool:
    if isinstance(operand, (tuple, list)):
        return all(map(_is_static_operand, operand))
    if isinstance(operand, ComposedLayout):
        return _is_static_operand(operand.inner)
    return (
        operand is None
        or isinstance(operand, Swizzle)
        or (bool(leaves(getattr(operand, "shape", operand))) and is_static(operand))
    )


# Slices of CuTe: the modes of a layout that a coordinate leaves open, and those that it fixes.


@overload
def slice_(coord: Coordinate, target: LayoutLike) -> LayoutLike: ...
@overload
def slice_(coord: LayoutLike, target: Coordinate) -> LayoutLike: ...
@overload
def slice_(coord: Coordinate, target: ShapeArgument) -> tuple[Shape, ...]: ...
def slice_(coord: Any, target: Any) -> LayoutLike | tuple[Shape, ...]:  # in either order
    """Return the modes or branches of `target` where `coord` has None; a layout may also come first.

    >>> from tilewright.cute import Layout
    >>> print(slice_((None, 3), Layout((4, 8))), slice_((None, 3), (4, 8)), slice_(Layout((4, 8)), (None, 3)))
    (4):(1) (4,) (4):(1)
    """
    if isinstance(coord, LayoutLike):
        coord, target = target, coord
    if isinstance(target, LayoutLike):
        return slice_and_offset(coord, target)[0]
    return slice_modes(as_tree(coord), as_tree(target))


@overload
def dice_modes(coord: Coordinate, target: LayoutLike) -> LayoutLike: ...
@overload
def dice_modes(coord: Coordinate, target: ShapeArgument) -> Shape: ...
def dice_modes(coord: Coordinate, target: LayoutLike | ShapeArgument) -> LayoutLike | Shape:
    """Return the modes of a layout, or the branches of a tuple, `target`, where `coord` has an integer: CuTe's `dice`.

    >>> from tilewright.cute import Layout
    >>> print(dice_modes((0, None), Layout((3, 4))), dice_modes((None, 1), (3, 4)), dice_modes(2, (3, 4)))
    (3):(1) (4,) (3, 4)
    """
    coord = as_tree(coord)
    is_whole = not isinstance(coord, tuple) and coord is not None
    if isinstance(target, LayoutLike):
        return target if is_whole else as_cute(target._restructure(lambda tree, _: _dice(coord, tree), "dice"), target)
    tree: Shape = as_tree(target)
    return tree if is_whole else _dice(coord, tree)


dice = dice_modes


def _dice(coord: Coordinate, tree: Nested[object]) -> tuple[Any, ...]:
    if coord is None:
        return ()
    if not isinstance(coord, tuple):
        return (tree,)
    if not isinstance(tree, tuple) or len(coord) != len(tree):
        raise LayoutError(f"dice: coordinate {coord} and {tree} differ in rank")
    return tuple([branch for part, mode in zip(coord, tree, strict=True) for branch in _dice(part, mode)])


def slice_and_offset(coord: Coordinate, layout: LayoutLike) -> tuple[LayoutLike, int | Any]:
    """Return (sublayout, offset): the modes of `layout` where `coord` has None, and the offset of its integers.

    >>> from tilewright.cute import Layout
    >>> sublayout, offset = slice_and_offset((None, 3), Layout((4, 8)))
    >>> print(sublayout, offset)
    (4):(1) 12
    """
    if isinstance(layout, ComposedLayout):
        inner, offset = slice_and_offset(coord, layout.inner)
        return ComposedLayout(layout.outer, inner + offset), 0
    strided: NativeLayout = require_strided(layout, "slice_and_offset")
    sliced = from_native(strided, keep_padding=True)._slice(strided._nest_coordinate((as_tree(coord),)))
    return sliced._with(offset=0), sliced.offset
