# SPDX-License-Identifier: Apache-2.0
"""CuTe's algebra: results have no padding, and what CuTe refuses raises a LayoutError."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import gcd
from typing import Any

import tilewright.layout as core

from ..errors import LayoutError
from ..layout import ComposedLayout, LayoutLike, Swizzle
from ..layout import Layout as CoreLayout
from ..layout.evaluation import chunks
from ..layout.layout import add_axes
from ..layout.layout import make_layout as make_trusted
from ..layout.layout_like import require_layout
from ..layout.modes import as_function, check_profile, check_unflatten, require_strided, split_modes
from ..layout.tiled_layouts import regroup_pairs, zip_groups
from ..layout.tuples import as_tree, leaves, nest_like, prefix_product
from ..layout.validation import as_integer, check_mode, validate_shape
from ..ndarrays import lazy_np as np
from ..tensor import TileTensor
from .compositions import compose_strided
from .layout import Layout, from_core, is_static, make_layout_like, replace_leaves, slice_modes
from .tuples import crd2idx


def _on_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation on layouts that takes tensors, too: the result is a view of the tensor's memory."""

    @wraps(function)
    def operate(target: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(target, TileTensor):
            return target.reshape(function(target.layout, *arguments, **options), allow_resize=True)
        return function(target, *arguments, **options)

    return operate


def _inside_composition(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a product that repeats the innermost layout of a composition; outer functions go on past their ends."""

    @wraps(function)
    def repeat(block: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(block, ComposedLayout):
            return ComposedLayout(block.outer, repeat(block.inner, *arguments, **options))
        return function(block, *arguments, **options)

    return repeat


def _as_cute(result: Any, *operands: Any) -> Any:
    """Return a result of the core; its integers are static if those of all operands are.

    It is padded only if an operand is: CuTe's own layouts never are.
    """
    if isinstance(result, ComposedLayout):
        return ComposedLayout(*[_as_cute(part, *operands) for part in (result.outer, result.inner)])
    if not isinstance(result, CoreLayout):
        return result
    padded = any(isinstance(operand, LayoutLike) and operand._has_padding() for operand in operands)
    return from_core(result, all(map(_is_static_operand, operands)), padded)


def _is_static_operand(operand: Any) -> bool:
    if isinstance(operand, (tuple, list)):
        return all(map(_is_static_operand, operand))
    if isinstance(operand, ComposedLayout):
        return _is_static_operand(operand.inner)
    return (
        operand is None
        or isinstance(operand, Swizzle)
        or (bool(leaves(getattr(operand, "shape", operand))) and is_static(operand))
    )


@_on_tensors
def coalesce(layout: LayoutLike, profile: Any = None) -> Any:
    """Return the flattest layout that is the same function as `layout`; with a tuple as `profile`, mode by mode.

    >>> print(coalesce(Layout((2, (1, 6)), (1, (6, 2)))))
    12:1
    """
    return _as_cute(core.coalesce(layout, profile), layout)


def filter(layout: CoreLayout, profile: Any = None) -> Any:  # noqa: A001  (CuTe's name)
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
    return _as_cute(add_axes(core.coalesce(filtered_layout), layout.axes), layout)


def filter_zeros(layout: CoreLayout, profile: Any = None) -> Layout:
    """Return `layout` with extent 1 in all modes of stride 0, or, with a `profile`, where that has a 0.

    >>> print(filter_zeros(Layout((4, 3, 8), (1, 0, 4))), filter_zeros(Layout((4, 8)), (0, 1)))
    (4,1,8):(1,0,4) (1,8):(1,4)
    """
    require_strided(layout, "filter_zeros")
    zeros = leaves(layout.stride if profile is None else as_tree(profile))
    extents = [1 if zero == 0 else n for n, zero in zip(leaves(layout.shape), zeros, strict=True)]
    return replace_leaves(layout, extents, leaves(layout.stride), layout.offset)


@_on_tensors
def composition(a: Any, b: Any) -> Any:
    """Return the layout R with R(i) == `a`(`b`(i)); raise where it is not strided. `b` may be a tuple, mode by mode.

    >>> print(composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))), composition(Layout(7, 11), Layout(3, 4)))
    ((2,2),3):((24,2),8) 3:44
    """
    return _as_cute(compose_strided(a, b), a, b)


def complement(layout: Any, bound: Any = None) -> Layout:
    """Return the layout of the offsets that `layout` leaves free, up to `bound` (its cosize by default).

    >>> print(complement(Layout(4, 2), 24))
    (2,3):(1,8)
    """
    result: Layout = _as_cute(core.complement(layout, bound), layout, bound)
    return result


def left_inverse(layout: Any) -> Any:
    """Return the left inverse of `layout`: a layout L with L(layout(i)) == i.

    >>> print(left_inverse(Layout((4, 8), (1, 5))))
    (5,8):(1,4)
    """
    return _as_cute(_swizzle_last(_as_cute(core.left_inverse(layout), layout)), layout)


def right_inverse(layout: Any) -> Any:
    """Return the right inverse of `layout`: the largest layout R with layout(R(i)) == i.

    >>> print(right_inverse(Layout((8, 4), (4, 1))))
    (4,8):(8,1)
    """
    return _as_cute(_swizzle_last(_as_cute(core.right_inverse(layout), layout)), layout)


def _swizzle_last(layout: Any) -> Any:
    """Return a layout of a swizzled layout as a swizzle of a layout, where that is the same."""
    if isinstance(layout, ComposedLayout) and isinstance(layout.inner, ComposedLayout):
        return compose_strided(layout.outer, layout.inner)
    return layout


@_on_tensors
def logical_divide(layout: Any, tiler: Any) -> Any:
    """Return `layout` cut into (tile, rest) by `tiler`; by a tuple, mode by mode.

    >>> print(logical_divide(Layout(24), 8))
    (8,3):(1,8)
    """
    return _as_cute(core.logical_divide(layout, tiler, strided=True), layout, tiler)


@_on_tensors
def zipped_divide(layout: Any, tiler: Any) -> Any:
    """Return `layout` cut by `tiler` into (all tile modes, all rest modes).

    >>> print(zipped_divide(Layout((8, 8)), (2, 4)))
    ((2,4),(4,2)):((1,8),(2,32))
    """
    return _as_cute(core.zipped_divide(layout, tiler, strided=True), layout, tiler)


@_on_tensors
def tiled_divide(layout: Any, tiler: Any) -> Any:
    """Return `layout` cut by `tiler` into (all tile modes, rest, rest, ...).

    >>> print(tiled_divide(Layout((8, 8)), (2, 4)))
    ((2,4),4,2):((1,8),2,32)
    """
    return _as_cute(core.tiled_divide(layout, tiler, strided=True), layout, tiler)


@_on_tensors
def flat_divide(layout: Any, tiler: Any) -> Any:
    """Return `layout` cut by `tiler` into (tile, tile, ..., rest, rest, ...).

    >>> print(flat_divide(Layout((8, 8)), (2, 4)))
    (2,4,4,2):(1,8,2,32)
    """
    return _as_cute(core.flat_divide(layout, tiler, strided=True), layout, tiler)


@_inside_composition
def logical_product(block: Any, tiler: Any) -> Any:
    """Return (block, copies): `block` repeated at the positions of `tiler`.

    >>> print(logical_product(Layout(4), 3))
    (4,3):(1,4)
    """
    return _as_cute(core.logical_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def zipped_product(block: Any, tiler: Any) -> Any:
    """Return `block` repeated over `tiler` as (all block modes, all copy modes).

    >>> print(zipped_product(Layout((2, 2)), Layout((3, 4))))
    ((2,2),(3,4)):((1,2),(4,12))
    """
    return _as_cute(core.zipped_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def tiled_product(block: Any, tiler: Any) -> Any:
    """Return `block` repeated over `tiler` as (all block modes, copies, copies, ...).

    >>> print(tiled_product(Layout((2, 2)), Layout((3, 4))))
    ((2,2),3,4):((1,2),4,12)
    """
    return _as_cute(core.tiled_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def flat_product(block: Any, tiler: Any) -> Any:
    """Return `block` repeated over `tiler` as (block, block, ..., copies, copies, ...).

    >>> print(flat_product(Layout((2, 2)), Layout((3, 4))))
    (2,2,3,4):(1,2,4,12)
    """
    return _as_cute(core.flat_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def blocked_product(block: Any, tiler: Any) -> Any:
    """Return `block` repeated over `tiler` as a grid of whole blocks: ((block, copies), ...).

    >>> print(blocked_product(Layout((2, 2)), Layout((2, 2))))
    ((2,2),(2,2)):((1,4),(2,8))
    """
    return _as_cute(core.blocked_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def raked_product(block: Any, tiler: Any) -> Any:
    """Return `block` repeated over `tiler` with its elements spread out: ((copies, block), ...).

    >>> print(raked_product(Layout((2, 2)), Layout((2, 2))))
    ((2,2),(2,2)):((4,1),(8,2))
    """
    return _as_cute(core.raked_product(block, tiler, strided=True), block, tiler)


@_inside_composition
def tile_to_shape(block: Any, shape: Any, order: Any = None) -> Any:
    """Return `block` repeated to `shape`; `order` ranks the modes of the grid of blocks, 0 for the fastest.

    >>> print(tile_to_shape(Layout((2, 2)), (4, 6), (1, 0)))
    ((2,2),(2,3)):((1,12),(2,4))
    """
    return _as_cute(core.tile_to_shape(block, shape, order), block, shape)


def hier_unzip(splitter: Callable[[Any, Any], Any], layout: CoreLayout, tiler: Any) -> Any:
    """Return `splitter(mode, tiler)` of the modes of `layout`, its pairs gathered into (first modes, second modes).

    >>> print(hier_unzip(logical_divide, Layout((4, 8)), (2, 4)))
    ((2,4),(2,2)):((1,4),(2,16))
    """
    require_layout(layout, "hier_unzip")
    return _as_cute(regroup_pairs(_split_modes(splitter, layout, tiler), tiler, zip_groups), layout, tiler)


def _split_modes(splitter: Callable[[Any, Any], Any], layout: CoreLayout, tiler: Any) -> Any:
    """Return the layout with every mode that has a tiler split in two."""
    if tiler is None:
        return layout
    if not isinstance(tiler, (tuple, list)):
        return splitter(layout, tiler)
    if len(tiler) > layout.rank:
        raise LayoutError(f"tiler {tuple(tiler)} has more modes than {layout}, which has {layout.rank}")
    modes = split_modes(layout)
    split = [_split_modes(splitter, mode, part) for mode, part in zip(modes, tiler, strict=False)]
    return Layout(*split, *modes[len(split) :])


def append(layout: CoreLayout, *modes: CoreLayout) -> Any:
    """Return `layout` with further `modes` at the end.

    >>> print(append(Layout((3, 4)), Layout(5, 12)))
    (3,4,5):(1,3,12)
    """
    return Layout(*split_modes(layout), *modes)


def prepend(layout: CoreLayout, *modes: CoreLayout) -> Any:
    """Return `layout` with further `modes` at the front.

    >>> print(prepend(Layout(3), Layout(4, 3)))
    (4,3):(3,1)
    """
    return Layout(*modes, *split_modes(layout))


def replace(layout: CoreLayout, k: int, mode: CoreLayout) -> Any:
    """Return `layout` with mode `k` replaced by `mode`.

    >>> print(replace(Layout((3, 4)), 1, Layout((2, 2), (3, 6))))
    (3,(2,2)):(1,(3,6))
    """
    modes = split_modes(layout)
    modes[check_mode(k, len(modes), layout)] = mode
    return Layout(*modes)


@_on_tensors
def group_modes(layout: LayoutLike, start: int, end: int) -> Any:
    """Return `layout` with the modes from `start` up to but not including `end` nested into one.

    >>> print(group_modes(Layout((2, 3, 5, 7)), 1, 3))
    (2,(3,5),7):(1,(2,6),30)
    """
    return _as_cute(core.group(layout, start, end), layout)


def flatten(value: Any) -> Any:
    """Return `value`, a layout or a tuple, without nesting.

    >>> print(flatten(Layout((4, (2, 3)))), flatten((4, (2, 3))))
    (4,2,3):(1,4,8) (4, 2, 3)
    """
    if isinstance(value, LayoutLike):
        return _as_cute(core.flatten(value), value)
    return tuple(leaves(as_tree(value)))


def unflatten(value: Any, profile: Any) -> Any:
    """Return `value`, a flat layout or tuple, nested like `profile`: the inverse of `flatten`.

    >>> print(unflatten(Layout((2, 3, 5)), (0, (0, 0))), unflatten((1, 2, 3), (0, (0, 0))))
    (2,(3,5)):(1,(2,6)) (1, (2, 3))
    """
    form = getattr(profile, "shape", profile)
    if isinstance(value, LayoutLike):
        return _as_cute(core.unflatten(value, form), value)
    values, form = as_tree(value), as_tree(form)
    check_unflatten(values, form)
    return nest_like(form, iter(leaves(values)))


def sort(layout: CoreLayout) -> Any:
    """Return `layout` flattened, with its modes in order of stride, smallest first.

    >>> print(sort(Layout((2, 3, 4), (12, 1, 3))))
    (3,4,2):(1,3,12)
    """
    require_strided(layout, "sort")
    if layout.depth == 0:
        return layout
    extents, steps = layout.flat_modes()
    order = sorted(range(len(steps)), key=lambda k: (_stride_rank(steps[k]), extents[k]))
    return _as_cute(layout._restructure(lambda tree, _: tuple([leaves(tree)[k] for k in order]), "sort"), layout)


def _stride_rank(step: Any) -> tuple[int, str]:
    """Return the sort key of a stride: its amount, then its axis."""
    return (int(step), "") if isinstance(step, int) else (sum(map(abs, step.values())), str(step))


def slice_(coord: Any, target: Any) -> Any:
    """Return the modes or branches of `target` where `coord` has None; a layout may also come first.

    >>> print(slice_((None, 3), Layout((4, 8))), slice_((None, 3), (4, 8)), slice_(Layout((4, 8)), (None, 3)))
    (4):(1) (4,) (4):(1)
    """
    if isinstance(coord, LayoutLike):
        coord, target = target, coord
    if isinstance(target, LayoutLike):
        return slice_and_offset(coord, target)[0]
    return slice_modes(as_tree(coord), as_tree(target))


def dice_modes(coord: Any, target: Any) -> Any:
    """Return the modes of a layout, or the branches of a tuple, `target`, where `coord` has an integer: CuTe's `dice`.

    >>> print(dice_modes((0, None), Layout((3, 4))), dice_modes((None, 1), (3, 4)))
    (3):(1) (4,)
    """
    coord = as_tree(coord)
    if isinstance(target, CoreLayout):
        return _as_cute(target._restructure(lambda tree, _: _dice(coord, tree), "dice"), target)
    return _dice(coord, as_tree(target))


def _dice(coord: Any, tree: Any) -> tuple[Any, ...]:
    if coord is None:
        return ()
    if not isinstance(coord, tuple):
        return (tree,)
    if not isinstance(tree, tuple) or len(coord) != len(tree):
        raise LayoutError(f"dice: coordinate {coord} and {tree} differ in rank")
    return tuple([branch for part, mode in zip(coord, tree, strict=True) for branch in _dice(part, mode)])


def slice_and_offset(coord: Any, layout: LayoutLike) -> tuple[Any, Any]:
    """Return (sublayout, offset): the modes of `layout` where `coord` has None, and the offset of its integers.

    >>> sublayout, offset = slice_and_offset((None, 3), Layout((4, 8)))
    >>> print(sublayout, offset)
    (4):(1) 12
    """
    if isinstance(layout, ComposedLayout):
        inner, offset = slice_and_offset(coord, layout.inner)
        return ComposedLayout(layout.outer, inner + offset), 0
    strided: CoreLayout = require_strided(layout, "slice_and_offset")
    nested = strided._nest_coordinate((as_tree(coord),))
    sliced = make_trusted(slice_modes(nested, strided.shape), slice_modes(nested, strided.stride))
    return from_core(sliced), crd2idx(nested, strided.shape, strided.stride) + strided.offset


def nullspace(layout: CoreLayout) -> Any:
    """Return the layout N of all indices that broadcast modes of `layout` map to offset 0: layout(N(i)) == layout(0).

    >>> print(nullspace(Layout((2, 4, 3), (0, 1, 0))))
    (2,3):(1,8)
    """
    require_strided(layout, "nullspace")
    extents, steps = layout.flat_modes()
    indices = leaves(prefix_product(tuple(extents)))
    modes = [(n, index) for n, d, index in zip(extents, steps, indices, strict=True) if d == 0 and n != 1]
    if len(modes) < 2:
        return _as_cute(make_trusted(*modes[0]) if modes else make_trusted(1, 0), layout)
    shape, stride = tuple([n for n, _ in modes]), tuple([index for _, index in modes])
    return _as_cute(make_trusted(shape, stride), layout)


def domain_distribute(shape: Any, count: int) -> Layout:
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
    steps = leaves(prefix_product(tuple(extents)))
    result: Layout = _as_cute(core.coalesce(make_trusted(tuple(taken), tuple(steps))), shape, count)
    return result


def max_common_layout(a: Any, b: Any) -> Any:
    """Return the longest layout R with `a`(R(i)) == i and `b`(R(i)) == i, which holds for every such run of elements.

    These are the elements that both layouts keep contiguous and in the same order. A swizzle ends a run where it first
    could move an element.

    >>> print(
    ...     max_common_layout(Layout(8), Layout((4, 2), (1, 4))), max_common_layout(Layout((4, 2), (2, 1)), Layout(8))
    ... )
    8:1 1:0
    """
    a, b = as_function(a), as_function(b)
    if isinstance(a, Swizzle) or isinstance(b, Swizzle):
        raise LayoutError(f"max_common_layout of {a} and {b}: a swizzle has no shape; compose it with a layout first")
    if a.is_replicated or a.axes:
        raise LayoutError(f"max_common_layout of {a}: its places are not plain integers; remove copies and axes first")
    inverse = core.right_inverse(b)
    count = _common_run_length(core.compose(a, inverse))
    return _as_cute(core.compose(inverse, make_trusted(count, 1)) if count > 1 else make_trusted(1, 0), a, b)


def _common_run_length(layout: LayoutLike) -> int:
    """Return the length of the runs of data, each from a multiple of it on, in which offsets grow with the index."""
    if isinstance(layout, CoreLayout) and not layout.guards:
        extents, steps = layout.canonical_modes()
        return int(extents[0]) if layout.offset == 0 and steps[0] == 1 else 1
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


def max_common_vector(a: Any, b: Any) -> int:
    """Return how many elements both `a` and `b` keep contiguous and in the same order, from the first on.

    >>> max_common_vector(Layout((4, 8)), Layout((4, 8), (1, 5)))
    4
    """
    return int(max_common_layout(a, b).size)


def make_fragment_like(layout: CoreLayout) -> Any:
    """Return a compact layout of the shape of `layout` for registers: its first mode contiguous, the others in order.

    >>> print(make_fragment_like(Layout(((2, 4), 3, 5), ((1, 16), 64, 2))))
    ((2,4),3,5):((1,2),40,8)
    """
    if layout.rank < 2:
        return Layout(layout.shape)
    first, *others = split_modes(layout)
    return tiled_product(
        make_layout_like(Layout(first.shape, _contiguous_steps(first))), make_layout_like(Layout(*others))
    )


def _contiguous_steps(layout: CoreLayout) -> Any:
    """Return column-major strides for a layout; broadcast modes keep stride 0."""
    steps: list[Any] = []
    step = 1
    for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        steps.append(step if d else 0)
        step *= n if d else 1
    return nest_like(layout.shape, iter(steps))
