# SPDX-License-Identifier: Apache-2.0
"""CuTe's algebra: results have no padding, and what CuTe refuses raises a LayoutError."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import chain
from math import gcd
from typing import Any, TypeVar, cast, overload

import numpy as np

import tilewright.layout as native

from ..errors import LayoutError
from ..layout import (
    ComposedLayout,
    LayoutArgument,
    LayoutLike,
    Linear,
    Offset,
    Place,
    Shape,
    ShapeArgument,
    Swizzle,
    Tiler,
    add_axes,
    as_function,
    as_integer,
    as_tree,
    check_mode,
    check_profile,
    check_unflatten,
    chunks,
    complete_tiler,
    leaves,
    nest_like,
    prefix_product,
    regroup_pairs,
    require_layout,
    require_strided,
    split_modes,
    unpack_all,
    unpack_rest,
    validate_shape,
    zip_groups,
)
from ..layout import Layout as NativeLayout
from ..layout import make_layout as make_trusted
from .layout import Layout, as_cute, is_basis, make_layout_like, make_swizzle, on_tensors, replace_leaves
from .queries import basis_get, basis_value

__all__ = [
    "append", "blocked_product", "coalesce", "complement", "composition", "domain_distribute", "filter", "filter_zeros",
    "flat_divide", "flat_product", "flatten", "group_modes", "hier_unzip", "left_inverse", "logical_divide",
    "logical_product", "make_fragment_like", "max_common_layout", "max_common_vector", "nullspace", "prepend",
    "raked_product", "replace", "right_inverse", "sort", "tile_to_shape", "tiled_divide", "tiled_product", "unflatten",
    "zipped_divide", "zipped_product",
]  # fmt: skip

# Compositions as CuTe has them: past the end of a layout, and along the modes that basis strides name.


def compose_strided(a: LayoutLike | Swizzle, b: Tiler) -> NativeLayout | Any:
    """Return the strided composition of `a` and `b`; the strides of `b` may name modes of `a`.

    >>> from tilewright import cute
    >>> print(cute.composition(cute.Layout((4, 8), (8, 1)), cute.Layout((8, 4), (cute.E(1), cute.E(0)))))
    (8,4):(1,8)
    >>> print(cute.composition(cute.Layout(16, 2), cute.composition(cute.Swizzle(2, 0, 2), cute.Layout(16))))
    Sw<2,1,2> o 16:2
    """
    if isinstance(a, NativeLayout) and isinstance(b, NativeLayout):
        if b.axes and not b.offset and all(map(_is_along_a_mode, leaves(b.stride))):
            return _compose_along_modes(a, b)
        a = _open_last_mode(a, b)
    if isinstance(a, NativeLayout) and isinstance(b, (tuple, list)) and not a.guards:
        a = _open_modes(a, b)
    if isinstance(a, ComposedLayout) and isinstance(a.outer, Swizzle) and not isinstance(b, Swizzle):
        return native.compose(a.outer, compose_strided(a.inner, b))
    result = native.compose(a, b, strided=True)
    if isinstance(result, ComposedLayout) and isinstance(result.inner, ComposedLayout):
        return _move_swizzle_out(result.outer, result.inner) or result
    return result


def _is_along_a_mode(stride: Offset) -> bool:
    return not isinstance(stride, Place) or (len(stride) == 1 and is_basis(stride))


def _open_last_mode(a: NativeLayout, b: NativeLayout) -> NativeLayout:
    """Return `a` with an extent of 2 in place of a last one of 1, if a mode of `b` leaves `a`.

    An index past the end advances along the last mode, whatever its extent is; the library ignores modes of extent 1.
    """
    extents = leaves(a.shape)
    if not extents or extents[-1] != 1 or a.guards or b.axes or not b.size:
        return a
    if b.offset + max([(n - 1) * d for n, d in zip(*b.flat_modes(), strict=True)], default=0) < a.size:
        return a
    return make_trusted(nest_like(a.shape, iter([*extents[:-1], 2])), a.stride, a.offset, a.replicas)


def _open_modes(a: NativeLayout, tilers: Sequence[Any]) -> NativeLayout:
    """Return `a` with the last extents of its modes opened where the tilers, mode by mode, leave them."""
    modes = split_modes(a)
    if len(tilers) > len(modes):
        return a  # refused with the other wrong tilers
    for k, tiler in enumerate(tilers):
        if isinstance(tiler, (tuple, list)):
            modes[k] = _open_modes(modes[k], tiler)
        elif tiler is not None:
            tile = as_function(tiler)
            modes[k] = _open_last_mode(modes[k], tile) if isinstance(tile, NativeLayout) else modes[k]
    shape, stride = tuple([mode.shape for mode in modes]), tuple([mode.stride for mode in modes])
    return make_trusted(shape, stride, a.offset, a.replicas) if isinstance(a.shape, tuple) else modes[0] + a.offset


def _compose_along_modes(a: NativeLayout, b: NativeLayout) -> NativeLayout:
    """Return the composition with a layout of coordinates: each stride of `b` is along one mode of `a`, or plain."""
    parts = []
    for extent, stride in zip(leaves(b.shape), leaves(b.stride), strict=True):
        part = compose_strided(basis_get(stride, a), NativeLayout(extent, basis_value(stride)))
        parts.append(part)
    stride = nest_like(b.shape, iter([part.stride for part in parts]))
    return make_trusted(nest_like(b.shape, iter([part.shape for part in parts])), stride, a.offset, a.replicas)


def _move_swizzle_out(a: LayoutLike | Swizzle, b: ComposedLayout) -> LayoutLike | None:
    """Return `a` o swizzle o inner as another swizzle of `a` o inner; None if no swizzle does that.

    It holds for every inner layout if both sides are the same linear map of the bits of an index of `a`.
    """
    swizzle, inner = b.outer, b.inner
    if not (isinstance(a, NativeLayout) and isinstance(swizzle, Swizzle) and isinstance(inner, NativeLayout)):
        return None
    if a.axes or inner.axes or not inner.size:
        return None
    low, high = inner.bounds
    if a.guards or a.replicas or a.offset or low < 0 or high >= a.size or a.size % swizzle.block:
        return None
    if a.canonical_modes() == ([a.size], [1]):
        return b
    try:
        moved = make_swizzle(a.extended(swizzle.source_mask), a.extended(swizzle.target_mask))
        inside = Linear.of(ComposedLayout(a, ComposedLayout(swizzle, make_trusted(a.size, 1))))
        outside = Linear.of(ComposedLayout(moved, a))
        composed = native.compose(a, inner, strided=True)
    except LayoutError:
        return None
    if [*chain(*inside.bases.values())] != [*chain(*outside.bases.values())]:
        return None
    result: LayoutLike = native.compose(moved, composed)
    return result


# CuTe's divides and products: layouts cut into tiles, and layouts repeated as tiles.


_Product = TypeVar("_Product", bound=Callable[..., Any])


def _inside_composition(function: _Product) -> _Product:
    """Return a product that repeats the innermost layout of a composition; outer functions extend past their ends."""

    @wraps(function)
    def repeat(block: object, *arguments: object, **options: Any) -> Any:
        if isinstance(block, ComposedLayout):
            return ComposedLayout(block.outer, repeat(block.inner, *arguments, **options))
        return function(block, *arguments, **options)

    return cast(_Product, repeat)


@on_tensors
def logical_divide(layout: LayoutArgument, tiler: Tiler) -> Layout | Any:
    """Return `layout` cut into (tile, rest) by `tiler`; by a tuple, mode by mode.

    >>> print(logical_divide(Layout(24), 8))
    (8,3):(1,8)
    """
    return as_cute(_divide(layout, tiler), layout, tiler)


def _divide(layout: LayoutArgument, tiler: Tiler) -> Any:
    """Return (tile, rest), as CuTe continues past the end of a layout: along its last mode, even one of extent 1."""
    function = require_layout(as_function(layout), "a divide")
    return compose_strided(function, complete_tiler(function.shape, as_tree(tiler), function))


@on_tensors
def zipped_divide(layout: LayoutArgument, tiler: Tiler) -> Layout | Any:
    """Return `layout` cut by `tiler` into (all tile modes, all rest modes).

    >>> print(zipped_divide(Layout((8, 8)), (2, 4)))
    ((2,4),(4,2)):((1,8),(2,32))
    """
    return as_cute(regroup_pairs(_divide(layout, tiler), tiler, zip_groups), layout, tiler)


@on_tensors
def tiled_divide(layout: LayoutArgument, tiler: Tiler) -> Layout | Any:
    """Return `layout` cut by `tiler` into (all tile modes, rest, rest, ...).

    >>> print(tiled_divide(Layout((8, 8)), (2, 4)))
    ((2,4),4,2):((1,8),2,32)
    """
    return as_cute(regroup_pairs(_divide(layout, tiler), tiler, unpack_rest), layout, tiler)


@on_tensors
def flat_divide(layout: LayoutArgument, tiler: Tiler) -> Layout | Any:
    """Return `layout` cut by `tiler` into (tile, tile, ..., rest, rest, ...).

    >>> print(flat_divide(Layout((8, 8)), (2, 4)))
    (2,4,4,2):(1,8,2,32)
    """
    return as_cute(regroup_pairs(_divide(layout, tiler), tiler, unpack_all), layout, tiler)


@_inside_composition
def logical_product(block: LayoutArgument, tiler: Tiler) -> Layout | Any:
    """Return (block, copies): `block` repeated at the positions of `tiler`.

    >>> print(logical_product(Layout(4), 3))
    (4,3):(1,4)
    """
    return as_cute(native.logical_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def zipped_product(block: LayoutArgument, tiler: Tiler) -> Layout | Any:
    """Return `block` repeated over `tiler` as (all block modes, all copy modes).

    >>> print(zipped_product(Layout((2, 2)), Layout((3, 4))))
    ((2,2),(3,4)):((1,2),(4,12))
    """
    return as_cute(native.zipped_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def tiled_product(block: LayoutArgument, tiler: Tiler) -> Layout | Any:
    """Return `block` repeated over `tiler` as (all block modes, copies, copies, ...).

    >>> print(tiled_product(Layout((2, 2)), Layout((3, 4))))
    ((2,2),3,4):((1,2),4,12)
    """
    return as_cute(native.tiled_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def flat_product(block: LayoutArgument, tiler: Tiler) -> Layout | Any:
    """Return `block` repeated over `tiler` as (block, block, ..., copies, copies, ...).

    >>> print(flat_product(Layout((2, 2)), Layout((3, 4))))
    (2,2,3,4):(1,2,4,12)
    """
    return as_cute(native.flat_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def blocked_product(block: LayoutArgument, tiler: LayoutArgument) -> Layout | Any:
    """Return `block` repeated over `tiler` as a grid of whole blocks: ((block, copies), ...).

    >>> print(blocked_product(Layout((2, 2)), Layout((2, 2))))
    ((2,2),(2,2)):((1,4),(2,8))
    """
    return as_cute(native.blocked_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def raked_product(block: LayoutArgument, tiler: LayoutArgument) -> Layout | Any:
    """Return `block` repeated over `tiler` with its elements spread out: ((copies, block), ...).

    >>> print(raked_product(Layout((2, 2)), Layout((2, 2))))
    ((2,2),(2,2)):((4,1),(8,2))
    """
    return as_cute(native.raked_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def tile_to_shape(block: LayoutArgument, shape: ShapeArgument, order: Sequence[int] | None = None) -> Layout | Any:
    """Return `block` repeated to `shape`; `order` ranks the modes of the grid of blocks, 0 for the fastest.

    >>> print(tile_to_shape(Layout((2, 2)), (4, 6), (1, 0)))
    ((2,2),(2,3)):((1,12),(2,4))
    """
    return as_cute(native.tile_to_shape(block, shape, order), block, shape)


def hier_unzip(splitter: Callable[[Any, Any], Any], layout: NativeLayout, tiler: Tiler) -> Layout | Any:
    """Return `splitter(mode, tiler)` of the modes of `layout`, its pairs gathered into (first modes, second modes).

    >>> print(hier_unzip(logical_divide, Layout((4, 8)), (2, 4)))
    ((2,4),(2,2)):((1,4),(2,16))
    """
    require_layout(layout, "hier_unzip")
    return as_cute(regroup_pairs(_split_modes(splitter, layout, tiler), tiler, zip_groups), layout, tiler)


def _split_modes(splitter: Callable[[Any, Any], Any], layout: NativeLayout, tiler: Tiler) -> Any:
    """Return the layout with every mode that has a tiler split in two."""
    if tiler is None:
        return layout
    if not isinstance(tiler, (tuple, list)):
        return splitter(layout, tiler)
    if len(tiler) > layout.rank:
        raise LayoutError(f"tiler {tuple(tiler)} has more modes than {layout}, which has {layout.rank}")
    modes = split_modes(layout)
    split = [_split_modes(splitter, mode, part) for mode, part in zip(modes, tiler, strict=False)]
    for part in split:
        if not isinstance(part, NativeLayout):
            raise LayoutError(
                f"{part} is not strided, and cannot be a mode of a layout; use a tiler that divides {layout}"
            )
    return Layout(*split, *modes[len(split) :])


@on_tensors
def coalesce(layout: LayoutLike, profile: ShapeArgument | None = None) -> Layout | Any:
    """Return the flattest layout that is the same function as `layout`; with a tuple as `profile`, mode by mode.

    >>> print(coalesce(Layout((2, (1, 6)), (1, (6, 2)))))
    12:1
    """
    return as_cute(native.coalesce(layout, profile), layout)


def filter(layout: NativeLayout, profile: ShapeArgument | None = None) -> Layout | Any:  # noqa: A001  (CuTe's name)
    """Return `layout` without modes of size 1 or stride 0, coalesced; with a tuple as `profile`, mode by mode.

    >>> print(filter(Layout((4, 2, 8), (1, 0, 4))))
    32:1
    """
    require_strided(layout, "filter")
    if isinstance(profile, (tuple, list)):
        check_profile(profile, layout.shape)
        modes = split_modes(layout)
        filtered = [filter(mode, part) for mode, part in zip(modes, profile, strict=False)]
        return Layout(*filtered, *modes[len(profile) :])
    if layout.guards:
        raise LayoutError(
            f"filter of {layout}: it is padded, and padding may depend on any mode; filter before padding"
        )
    modes_left = [(n, d) for n, d in zip(*layout.flat_modes(), strict=True) if n != 1 and d != 0]
    shape, stride = tuple([n for n, _ in modes_left]), tuple([d for _, d in modes_left])
    filtered_layout = make_trusted(shape or 1, stride or 0, layout.offset, layout.replicas)
    return as_cute(add_axes(native.coalesce(filtered_layout), layout.axes), layout)


def filter_zeros(layout: NativeLayout, profile: ShapeArgument | None = None) -> Layout:
    """Return `layout` with extent 1 in all modes of stride 0, or, with a `profile`, where that has a 0.

    >>> print(filter_zeros(Layout((4, 3, 8), (1, 0, 4))), filter_zeros(Layout((4, 8)), (0, 1)))
    (4,1,8):(1,0,4) (1,8):(1,4)
    """
    require_strided(layout, "filter_zeros")
    zeros = leaves(layout.stride if profile is None else as_tree(profile))
    extents = [1 if zero == 0 else n for n, zero in zip(leaves(layout.shape), zeros, strict=True)]
    return replace_leaves(layout, extents, leaves(layout.stride), layout.offset)


@on_tensors
def composition(a: LayoutLike | Swizzle, b: Tiler) -> Layout | Any:
    """Return the layout R with R(i) == `a`(`b`(i)); raise where it is not strided. `b` may be a tuple, mode by mode.

    >>> print(composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))), composition(Layout(7, 11), Layout(3, 4)))
    ((2,2),3):((24,2),8) 3:44
    """
    return as_cute(compose_strided(a, b), a, b)


def complement(layout: LayoutLike | ShapeArgument, bound: ShapeArgument | None = None) -> Layout:
    """Return the layout of the offsets that `layout` leaves free, up to `bound` (its cosize by default).

    >>> print(complement(Layout(4, 2), 24))
    (2,3):(1,8)
    """
    return as_cute(native.complement(layout, bound), layout, bound)


def left_inverse(layout: LayoutArgument) -> Layout | Any:
    """Return the left inverse of `layout`: a layout L with L(layout(i)) == i.

    >>> print(left_inverse(Layout((4, 8), (1, 5))))
    (5,8):(1,4)
    """
    return as_cute(_swizzle_last(as_cute(native.left_inverse(layout), layout)), layout)


def right_inverse(layout: LayoutArgument) -> Layout | Any:
    """Return the right inverse of `layout`: the largest layout R with layout(R(i)) == i.

    >>> print(right_inverse(Layout((8, 4), (4, 1))))
    (4,8):(8,1)
    """
    return as_cute(_swizzle_last(as_cute(native.right_inverse(layout), layout)), layout)


def _swizzle_last(layout: LayoutLike) -> Any:
    """Return a layout of a swizzled layout as a swizzle of a layout, where that is the same."""
    if isinstance(layout, ComposedLayout) and isinstance(layout.inner, ComposedLayout):
        return compose_strided(layout.outer, layout.inner)
    return layout


def append(layout: NativeLayout, *modes: NativeLayout) -> Layout:
    """Return `layout` with further `modes` at the end.

    >>> print(append(Layout((3, 4)), Layout(5, 12)))
    (3,4,5):(1,3,12)
    """
    return Layout(*split_modes(layout), *modes)


def prepend(layout: NativeLayout, *modes: NativeLayout) -> Layout:
    """Return `layout` with further `modes` at the front.

    >>> print(prepend(Layout(3), Layout(4, 3)))
    (4,3):(3,1)
    """
    return Layout(*modes, *split_modes(layout))


def replace(layout: NativeLayout, k: int, mode: NativeLayout) -> Layout:
    """Return `layout` with mode `k` replaced by `mode`.

    >>> print(replace(Layout((3, 4)), 1, Layout((2, 2), (3, 6))))
    (3,(2,2)):(1,(3,6))
    """
    modes = split_modes(layout)
    modes[check_mode(k, len(modes), layout)] = mode
    return Layout(*modes)


@on_tensors
def group_modes(layout: LayoutLike, start: int, end: int) -> Layout | Any:
    """Return `layout` with the modes from `start` up to but not including `end` nested into one.

    >>> print(group_modes(Layout((2, 3, 5, 7)), 1, 3))
    (2,(3,5),7):(1,(2,6),30)
    """
    return as_cute(native.group(layout, start, end), layout)


@overload
def flatten(value: LayoutLike) -> Layout | Any: ...
@overload
def flatten(value: ShapeArgument) -> tuple[int, ...]: ...
def flatten(value: LayoutLike | ShapeArgument) -> Layout | tuple[int, ...] | Any:
    """Return `value`, a layout or a tuple, without nesting.

    >>> print(flatten(Layout((4, (2, 3)))), flatten((4, (2, 3))))
    (4,2,3):(1,4,8) (4, 2, 3)
    """
    if isinstance(value, LayoutLike):
        return as_cute(native.flatten(value), value)
    return tuple(leaves(as_tree(value)))


@overload
def unflatten(value: LayoutLike, profile: LayoutLike | ShapeArgument) -> Layout | Any: ...
@overload
def unflatten(value: ShapeArgument, profile: LayoutLike | ShapeArgument) -> Shape: ...
def unflatten(value: LayoutLike | ShapeArgument, profile: LayoutLike | ShapeArgument) -> Layout | Shape | Any:
    """Return `value`, a flat layout or tuple, nested like `profile`: the inverse of `flatten`.

    >>> print(unflatten(Layout((2, 3, 5)), (0, (0, 0))), unflatten((1, 2, 3), (0, (0, 0))))
    (2,(3,5)):(1,(2,6)) (1, (2, 3))
    """
    form: Any = getattr(profile, "shape", profile)
    if isinstance(value, LayoutLike):
        return as_cute(native.unflatten(value, form), value)
    values, form = as_tree(value), as_tree(form)
    check_unflatten(values, form)
    return nest_like(form, iter(leaves(values)))


def sort(layout: NativeLayout) -> NativeLayout:
    """Return `layout` flattened, with its modes in order of stride, smallest first.

    >>> print(sort(Layout((2, 3, 4), (12, 1, 3))))
    (3,4,2):(1,3,12)
    """
    require_strided(layout, "sort")
    if layout.depth == 0:
        return layout
    extents, strides = layout.flat_modes()
    order = sorted(range(len(strides)), key=lambda k: (_stride_rank(strides[k]), extents[k]))
    return as_cute(layout._restructure(lambda tree, _: tuple([leaves(tree)[k] for k in order]), "sort"), layout)


def _stride_rank(stride: Offset) -> tuple[int, str]:
    """Return the sort key of a stride: its amount, then its axis."""
    return (int(stride), "") if isinstance(stride, int) else (sum(map(abs, stride.values())), str(stride))


def nullspace(layout: NativeLayout) -> Layout:
    """Return the layout N of all indices that broadcast modes of `layout` map to offset 0: layout(N(i)) == layout(0).

    >>> print(nullspace(Layout((2, 4, 3), (0, 1, 0))))
    (2,3):(1,8)
    """
    require_strided(layout, "nullspace")
    extents, strides = layout.flat_modes()
    indices = leaves(prefix_product(tuple(extents)))
    modes = [(n, index) for n, d, index in zip(extents, strides, indices, strict=True) if d == 0 and n != 1]
    if len(modes) < 2:
        return as_cute(make_trusted(*modes[0]) if modes else make_trusted(1, 0), layout)
    shape, stride = tuple([n for n, _ in modes]), tuple([index for _, index in modes])
    return as_cute(make_trusted(shape, stride), layout)


def domain_distribute(shape: ShapeArgument, count: int) -> Layout:
    """Return a layout of indices into `shape` that takes `count` elements, or as many as divide its extents, evenly.

    >>> print(domain_distribute((15, 14), 6), domain_distribute((64, 3, 8, 8), 128))
    (3,2):(1,15) (64,2):(1,192)
    """
    extents = leaves(validate_shape(shape))
    left = as_integer(count, "count")
    if left < 1 or 0 in extents:
        raise LayoutError(f"domain_distribute: cannot take {left} elements of shape {shape}; both must be positive")
    taken = []
    for extent in extents:
        taken.append(gcd(extent, left))
        left //= taken[-1]
    strides = leaves(prefix_product(tuple(extents)))
    result: Layout = as_cute(native.coalesce(make_trusted(tuple(taken), tuple(strides))), shape, count)
    return result


def max_common_layout(a: LayoutArgument, b: LayoutArgument) -> Layout | Any:
    """Return the longest layout R with `a`(R(i)) == i and `b`(R(i)) == i, which holds for every such run of elements.

    These are the elements that both layouts keep contiguous and in the same order. A swizzle ends a run where it first
    could move an element.

    >>> print(
    ...     max_common_layout(Layout(8), Layout((4, 2), (1, 4))), max_common_layout(Layout((4, 2), (2, 1)), Layout(8))
    ... )
    8:1 1:0
    """
    first, second = as_function(a), as_function(b)
    if isinstance(first, Swizzle) or isinstance(second, Swizzle):
        raise LayoutError(
            f"max_common_layout of {first} and {second}: a swizzle has no shape; compose it with a layout first"
        )
    if first.is_replicated or first.axes:
        raise LayoutError(
            f"max_common_layout of {first}: its places are not plain integers; remove copies and axes first"
        )
    inverse = native.right_inverse(second)
    count = _common_run_length(native.compose(first, inverse))
    return as_cute(native.compose(inverse, make_trusted(count, 1)) if count > 1 else make_trusted(1, 0), first, second)


def _common_run_length(layout: LayoutLike) -> int:
    """Return the length of the runs of data, each from a multiple of it on, in which offsets grow with the index."""
    if isinstance(layout, NativeLayout) and not layout.guards:
        extents, strides = layout.canonical_modes()
        return int(extents[0]) if layout.offset == 0 and strides[0] == 1 else 1
    run, before = 0, (0, True)
    for index, places, valid in chunks(layout):
        shift = np.concatenate([[before[0]], places - index])
        is_data = np.concatenate([[before[1]], valid])
        ends = (is_data[1:] != is_data[:-1]) | (valid & (shift[1:] != shift[:-1]))
        run = int(np.gcd.reduce(index[ends], initial=run))
        if ends[0] and index[0] == 0:
            return 1
        before = shift[-1], is_data[-1]
    return run or layout.size


def max_common_vector(a: LayoutArgument, b: LayoutArgument) -> int:
    """Return how many elements both `a` and `b` keep contiguous and in the same order, from the first on.

    >>> max_common_vector(Layout((4, 8)), Layout((4, 8), (1, 5)))
    4
    """
    return int(max_common_layout(a, b).size)


def make_fragment_like(layout: NativeLayout) -> Layout | Any:
    """Return a compact layout of the shape of `layout` for registers: its first mode contiguous, the others in order.

    >>> print(make_fragment_like(Layout(((2, 4), 3, 5), ((1, 16), 64, 2))))
    ((2,4),3,5):((1,2),40,8)
    """
    if layout.rank < 2:
        return Layout(layout.shape)
    first, *others = split_modes(layout)
    return tiled_product(
        make_layout_like(Layout(first.shape, _contiguous_strides(first))), make_layout_like(Layout(*others))
    )


def _contiguous_strides(layout: NativeLayout) -> Any:
    """Return column-major strides for a layout; broadcast modes keep stride 0."""
    strides: list[Any] = []
    stride = 1
    for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        strides.append(stride if d else 0)
        stride *= n if d else 1
    return nest_like(layout.shape, iter(strides))
