# SPDX-License-Identifier: Apache-2.0
"""Layouts made of modes: compact ones, modes joined, split, merged, flattened and grouped; copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

from .._integers import ceil_div
from ..errors import LayoutError
from .axes import Guard, Offset, live_guards, merge_modes, validate_replica
from .composed import ComposedLayout, Swizzle
from .layout import Layout, LayoutLike, add_axes, join_parts, make_layout, require_layout
from .tuples import (
    Nested,
    Shape,
    ShapeArgument,
    as_integer,
    as_tree,
    as_tuple,
    index_strides,
    leaves,
    map_leaves,
    nest_like,
    prefix_product,
    product,
    suffix_product,
    tree_depth,
    validate_shape,
)

Kind = TypeVar("Kind", bound=LayoutLike)
# The arguments of functions of layouts: a layout, a shape (its compact layout), or a tuple of layouts as modes.
LayoutArgument: TypeAlias = "LayoutLike | Swizzle | ShapeArgument"


def row_major(*shape: ShapeArgument) -> Layout:
    """Return a compact layout in which the last mode varies fastest.

    `shape` is given as extents or as one tuple.

    >>> row_major(4, 8), row_major((4, 8))
    (Layout((4, 8), (8, 1)), Layout((4, 8), (8, 1)))
    """
    extents = validate_shape(_as_one_shape(shape))
    return Layout(extents, suffix_product(extents))


def col_major(*shape: ShapeArgument) -> Layout:
    """Return a compact layout in which the first mode varies fastest.

    `shape` is given as extents or as one tuple.

    >>> col_major(4, 8)
    Layout((4, 8), (1, 4))
    """
    extents = validate_shape(_as_one_shape(shape))
    return Layout(extents, prefix_product(extents))


def _as_one_shape(arguments: tuple[ShapeArgument, ...]) -> ShapeArgument:
    """Return the arguments of `row_major(4, 8)` or `row_major((4, 8))` as one shape."""
    return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)) else arguments


def compact_layout(shape: ShapeArgument, order: Sequence[int] | None = None) -> Layout:
    """Return a compact layout; `order` ranks the top-level modes, 0 for the one that varies fastest.

    >>> compact_layout((4, 8), (1, 0)), compact_layout((2, 3, 4), (2, 0, 1))
    (Layout((4, 8), (8, 1)), Layout((2, 3, 4), (12, 1, 3)))
    """
    extents = validate_shape(shape)
    if order is None:
        return make_layout(extents, prefix_product(extents))
    modes, ranks = as_tuple(extents), as_tuple(order)
    if sorted(as_integer(k, "order") for k in ranks) != list(range(len(modes))):
        raise LayoutError(f"order {order} of shape {extents} must be a permutation of 0 to {len(modes) - 1}")
    strides: list[Shape] = [0] * len(modes)
    stride = 1
    for k in sorted(range(len(modes)), key=ranks.__getitem__):
        strides[k] = prefix_product(modes[k], stride)
        stride = stride * product(modes[k])
    return make_layout(extents, tuple(strides) if isinstance(extents, tuple) else strides[0])


def as_function(value: LayoutArgument) -> Layout | Any:
    """Return a layout or swizzle as it is, a shape as its compact layout.

    >>> as_function((4, 8))
    Layout((4, 8), (1, 4))
    """
    if isinstance(value, (LayoutLike, Swizzle)):
        return value
    if isinstance(value, (tuple, list)) and any(isinstance(part, LayoutLike) for part in value):
        return join(*map(as_function, value))
    return Layout(value)


def require_strided(value: object, caller: str) -> Layout:
    """Return `value` if it is a strided layout, else raise an error that names `caller`.

    >>> require_strided(Layout(4), "group")
    Layout(4, 1)
    """
    if not isinstance(require_layout(value, caller), Layout):
        raise LayoutError(f"{caller} of {value}: it has no strides; apply {caller} first, then compose")
    return value  # type: ignore[return-value]


def join(*layouts: LayoutLike) -> Layout | Any:
    """Return the layout that has `layouts` as its modes.

    Composed layouts can also be joined if their outermost function is strided.

    >>> join(Layout(4, 1), Layout(8, 4))
    Layout((4, 8), (1, 4))
    """
    if all(isinstance(layout, Layout) for layout in layouts):
        return make_layout(*join_parts(layouts))
    # outer layouts side by side, inner indices in disjoint ranges
    outers, inners = [], []
    below = 1
    for layout in layouts:
        outer, inner = _split_composition(layout)
        low, high = inner.bounds if inner.size else (0, 0)
        if low < 0:
            raise LayoutError(f"cannot join {layout}: its inner layout maps to the negative index {low}")
        outer = extend_domain(outer, high + 1)
        outers.append(outer)
        inners.append(scale(inner, below))
        below *= outer.size
    return ComposedLayout(join(*outers), join(*inners))


def _split_composition(layout: LayoutLike) -> tuple[Layout, Layout]:
    """Return (outer, inner) of a composition of two strided layouts; a strided layout has the identity inside."""
    if isinstance(layout, Layout):
        return layout, make_layout(layout.shape, index_strides(layout.shape))
    if isinstance(layout, ComposedLayout) and isinstance(layout.outer, Layout) and isinstance(layout.inner, Layout):
        return layout.outer, layout.inner
    raise LayoutError(
        f"cannot join {layout} with other modes: its outermost function is not strided; join first, swizzle last"
    )


def append(layout: Layout, *modes: LayoutLike) -> Layout | Any:
    """Return `layout` with further `modes` at the end.

    >>> append(Layout((3, 4)), Layout(5, 12))
    Layout((3, 4, 5), (1, 3, 12))
    """
    return join(*split_modes(layout), *modes)


def prepend(layout: Layout, *modes: LayoutLike) -> Layout | Any:
    """Return `layout` with further `modes` at the front.

    >>> prepend(Layout(3), Layout(4, 3))
    Layout((4, 3), (3, 1))
    """
    return join(*modes, *split_modes(layout))


def split_modes(layout: LayoutLike) -> list[Layout]:
    """Return the modes of a layout so that joining them restores it: offset and copies go with the first.

    >>> split_modes(Layout((3, 4)) + 5)
    [Layout(3, 1, offset=5), Layout(4, 3)]
    """
    layout = require_strided(layout, "splitting modes")
    if any(sum(any(leaves(part)) for part in as_tuple(guard.stride)) > 1 for guard in layout.guards):
        raise LayoutError(f"{layout} is padded across modes and cannot be split into modes; append before padding")
    modes = [layout._mode((k,)) for k in range(layout.rank)]
    if modes:
        modes[0] = modes[0]._with(offset=layout.offset, replicas=layout.replicas)
    return modes


def replicate(layout: Layout, count: int, stride: Offset) -> Layout:
    """Return `layout` with `count` copies, each `stride` further; its offsets become sets.

    >>> from tilewright import device
    >>> sorted(replicate(Layout(4, 2), 2, 100)(1))
    [2, 102]
    >>> print(replicate(Layout(4, 2), 2, 1 @ device))
    4:2+R[2:1@device]
    """
    if not isinstance(layout, Layout):
        raise TypeError(f"only a strided layout can be replicated, got {type(layout).__name__} {layout!r}")
    return layout._with(replicas=(*layout.replicas, validate_replica((count, stride))))


def scale(layout: Layout, factor: int) -> Layout:
    """Return the layout with every offset multiplied by `factor`.

    >>> scale(Layout((4, 8)) + 1, 3)
    Layout((4, 8), (3, 12), offset=3)
    """
    replicas = tuple([(count, further * factor) for count, further in layout.replicas])
    stride = map_leaves(lambda leaf: leaf * factor, layout.stride)
    return make_layout(layout.shape, stride, layout.offset * factor, replicas, layout.guards)


def extend_domain(layout: Layout, size: int) -> Layout:
    """Return the same function on at least `size` indices; the added ones are padding.

    >>> extend_domain(Layout((4, 3), (3, 1)), 14)
    Layout((4, 4), (3, 1), guards=(Guard(stride=(1, 4), limit=12, offset=0),))
    """
    if layout.size >= size:
        return layout
    shape, stride, guards = _merge_leaves(layout, None)
    *inner, _ = as_tuple(shape)
    below = product(tuple(inner))
    if below == 0:
        raise LayoutError(f"{layout} is empty and cannot be extended to index {size - 1}")
    last = ceil_div(size, below)
    shape = (*inner, last) if inner else last
    guards = [*guards, Guard(index_strides(shape), layout.size)]
    return add_axes(make_layout(shape, stride, layout.offset, layout.replicas, live_guards(shape, guards)), layout.axes)


def coalesce(layout: LayoutLike, profile: ShapeArgument | None = None) -> Layout | Any:
    """Return the flattest layout that is the same function of the index as `layout`.

    With a tuple as `profile`, every mode that has an entry there is coalesced by itself.
    Ensures: r.size == layout.size, r.depth <= 1, r(i) == layout(i) for every i.

    >>> coalesce(Layout((2, (1, 6)), (1, (7, 2))))
    Layout(12, 1)
    >>> coalesce(Layout(((2, 2), (2, 3)), ((1, 2), (4, 8))), (1, 1))
    Layout((4, 6), (1, 4))
    """
    if not isinstance(layout, Layout):
        require_layout(layout, "coalesce")
        if isinstance(layout, ComposedLayout):
            return ComposedLayout(layout.outer, coalesce(layout.inner, profile))
        return layout  # pages and inverses are flat
    if layout.shape == ():
        return layout
    shape, stride, guards = _merge_leaves(layout, None if profile is None else as_tree(profile))
    merged = make_layout(shape, stride, layout.offset, layout.replicas, tuple(guards))
    return add_axes(merged, layout.axes) if layout.axes else merged


def _merge_leaves(layout: Layout, profile: Nested[Any]) -> tuple[Any, Any, list[Guard]]:
    """Return the shape, strides and guards of a layout with its leaves merged; by a tuple, mode by mode."""
    if not isinstance(profile, tuple) and not layout.guards:
        extents, strides = layout.canonical_modes()
        return (extents[0], strides[0], []) if len(extents) == 1 else (tuple(extents), tuple(strides), [])
    shape, (stride, *bounds) = _merge_channels(layout._shape, layout._channels(), profile)
    return shape, stride, [guard.with_stride(tree) for guard, tree in zip(layout.guards, bounds, strict=True)]


def _merge_channels(shape: Shape, channels: list[Any], profile: Nested[Any]) -> tuple[Any, list[Any]]:
    """Return a shape and the strides of every channel over it, merged where the strides of all channels continue.

    A guard may involve several modes, so each mode is merged under the strides of all guards at once.
    """
    if isinstance(profile, tuple):
        check_profile(profile, shape)
    if isinstance(profile, tuple) and isinstance(shape, tuple):
        modes = []
        for k, mode in enumerate(shape):
            lines = [tree[k] for tree in channels]
            modes.append(_merge_channels(mode, lines, profile[k]) if k < len(profile) else (mode, lines))
        merged = [tuple([lines[c] for _, lines in modes]) for c in range(len(channels))]
        return tuple([mode for mode, _ in modes]), merged
    extents, lines = merge_modes(leaves(shape), [leaves(tree) for tree in channels])
    return (extents[0], [line[0] for line in lines]) if len(extents) == 1 else (tuple(extents), list(map(tuple, lines)))


def check_profile(profile: Sequence[Any], shape: Shape) -> None:
    """Raise if `profile` has more entries than `shape` has modes.

    >>> check_profile((0,), (4, 8))
    """
    count = len(as_tuple(shape))
    if len(profile) > count:
        raise LayoutError(f"profile {profile} has more modes than the shape {shape}, which has {count}")


def flatten(layout: Kind) -> Kind:
    """Return `layout` without nesting.

    >>> flatten(Layout((4, (2, 3))))
    Layout((4, 2, 3), (1, 4, 8))
    """
    if require_layout(layout, "flatten").depth <= 1:
        return layout
    return layout._restructure(lambda tree, _: tuple(leaves(tree)), "flatten")


def unflatten(layout: Kind, profile: Shape) -> Kind:
    """Return a flat `layout` with the nesting of `profile`: the inverse of `flatten`.

    >>> unflatten(Layout((2, 3, 5)), (0, (0, 0)))
    Layout((2, (3, 5)), (1, (2, 6)))
    """
    form = as_tree(profile)
    check_unflatten(require_layout(layout, "unflatten").shape, form)
    return layout._restructure(lambda tree, _: nest_like(form, iter(leaves(tree))), "unflatten")


def check_unflatten(tree: Nested[Any], profile: Nested[Any]) -> None:
    """Raise unless `tree` is flat and has as many leaves as `profile`.

    >>> check_unflatten((1, 2, 3), (0, (0, 0)))
    """
    count, expected = len(leaves(tree)), len(leaves(profile))
    if tree_depth(tree) > 1 or count != expected:
        raise LayoutError(f"cannot unflatten {tree} like {profile}: expected {expected} flat entries, got {count}")


def group(layout: Kind, start: int, end: int) -> Kind:
    """Return `layout` with the modes from `start` up to but not including `end` nested into one.

    >>> group(Layout((2, 3, 5, 7)), 1, 3)
    Layout((2, (3, 5), 7), (1, (2, 6), 30))
    """
    require_layout(layout, "group")
    if not 0 <= start < end <= layout.rank or not isinstance(layout.shape, tuple):
        raise LayoutError(f"cannot group modes {start} to {end} of {layout}: it has modes 0 to {layout.rank - 1}")
    return layout._restructure(lambda tree, _: (*tree[:start], tree[start:end], *tree[end:]), "group")
