# SPDX-License-Identifier: Apache-2.0
"""Construction: row-major and column-major layouts, layouts joined from modes, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..errors import LayoutError
from .axes import Step, as_step
from .composed_layout import ComposedLayout
from .layout import Layout, ShapeArgument, add_axes, join_parts, make_layout, require_strided
from .layout_like import LayoutLike, require_layout
from .strides import Guard, live_guards, merge_modes
from .swizzle import Swizzle
from .tuples import (
    Nested,
    Shape,
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
)
from .validation import as_integer, validate_shape


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


def _as_one_shape(arguments: tuple[Any, ...]) -> Any:
    """Return the arguments of `row_major(4, 8)` or `row_major((4, 8))` as one shape."""
    return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)) else arguments


def as_function(value: Any) -> Any:
    """Return a layout or swizzle as it is, a shape as its compact layout.

    >>> as_function((4, 8))
    Layout((4, 8), (1, 4))
    """
    if isinstance(value, (LayoutLike, Swizzle)):
        return value
    if isinstance(value, (tuple, list)) and any(isinstance(part, LayoutLike) for part in value):
        return join(*map(as_function, value))
    return Layout(value)


def join(*layouts: LayoutLike) -> Any:
    """Return the layout that has `layouts` as its modes.

    Composed layouts can be joined, too, if their outermost function is strided.

    >>> join(Layout(4, 1), Layout(8, 4))
    Layout((4, 8), (1, 4))
    """
    if all(isinstance(layout, Layout) for layout in layouts):
        return make_layout(*join_parts(layouts))
    return _join_composed(layouts)


def _join_composed(layouts: Sequence[LayoutLike]) -> ComposedLayout:
    """Return the modes joined as one composition: outer layouts side by side, inner indices in disjoint ranges."""
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


def extend_domain(layout: Layout, size: int) -> Layout:
    """Return the same function on at least `size` indices; the added ones are padding.

    >>> extend_domain(Layout((4, 3), (3, 1)), 14)
    Layout((4, 4), (3, 1), guards=(Guard(stride=(1, 4), limit=12, offset=0),))
    """
    if layout.size >= size:
        return layout
    channels = [leaves(layout.stride), *(leaves(guard.stride) for guard in layout.guards)]
    extents, (steps, *bounds) = merge_modes(leaves(layout.shape), channels)
    below = product(tuple(extents[:-1]))
    if below == 0:
        raise LayoutError(f"{layout} is empty and cannot be extended to index {size - 1}")
    extents = [*extents[:-1], -(-size // below)]
    shape: Any = tuple(extents) if len(extents) > 1 else extents[0]
    guards = [
        Guard(nest_like(shape, iter(bound)), guard.limit, guard.offset)
        for bound, guard in zip(bounds, layout.guards, strict=True)
    ]
    guards.append(Guard(index_strides(shape), layout.size))
    stride = nest_like(shape, iter(steps))
    longer = make_layout(shape, stride, layout.offset, layout.replicas, live_guards(shape, guards))
    return add_axes(longer, layout.axes)


def scale(layout: Layout, factor: int) -> Layout:
    """Return the layout with every place multiplied by `factor`.

    >>> scale(Layout((4, 8)) + 1, 3)
    Layout((4, 8), (3, 12), offset=3)
    """
    replicas = tuple([(count, step * factor) for count, step in layout.replicas])
    stride = map_leaves(lambda step: step * factor, layout.stride)
    return make_layout(layout.shape, stride, layout.offset * factor, replicas, layout.guards)


def compact_layout(shape: Any, order: Sequence[int] | None = None) -> Layout:
    """Return a compact layout; `order` ranks the top-level modes, 0 for the one that varies fastest.

    >>> compact_layout((4, 8), (1, 0)), compact_layout((2, 3, 4), (2, 0, 1))
    (Layout((4, 8), (8, 1)), Layout((2, 3, 4), (12, 1, 3)))
    """
    shape = validate_shape(shape)
    if order is None:
        return make_layout(shape, prefix_product(shape))
    modes, ranks = as_tuple(shape), as_tuple(order)
    if sorted(as_integer(k, "order") for k in ranks) != list(range(len(modes))):
        raise LayoutError(f"order {order} of shape {shape} must be a permutation of 0 to {len(modes) - 1}")
    strides: list[Any] = [0] * len(modes)
    step = 1
    for k in sorted(range(len(modes)), key=ranks.__getitem__):
        strides[k] = prefix_product(modes[k], step)
        step = step * product(modes[k])
    return make_layout(shape, tuple(strides) if isinstance(shape, tuple) else strides[0])


def replicate(layout: Layout, count: int, step: Step) -> Layout:
    """Return `layout` with `count` copies, each `step` further; its places are sets of places.

    >>> from tilewright import device
    >>> sorted(replicate(Layout(4, 2), 2, 100)(1))
    [2, 102]
    >>> print(replicate(Layout(4, 2), 2, 1 @ device))
    4:2+R[2:1@device]
    """
    if not isinstance(layout, Layout):
        raise TypeError(f"only a strided layout can be replicated, got {type(layout).__name__} {layout!r}")
    number = as_integer(count, "the number of copies")
    if number < 1:
        raise LayoutError(f"the number of copies of {layout} must be at least 1, got {number}")
    return layout._with(replicas=(*layout.replicas, (number, as_step(step, "the step between copies"))))


def append(layout: Layout, *modes: Layout) -> Any:
    """Return `layout` with further `modes` at the end.

    >>> append(Layout((3, 4)), Layout(5, 12))
    Layout((3, 4, 5), (1, 3, 12))
    """
    return join(*split_modes(layout), *modes)


def prepend(layout: Layout, *modes: Layout) -> Any:
    """Return `layout` with further `modes` at the front.

    >>> prepend(Layout(3), Layout(4, 3))
    Layout((4, 3), (3, 1))
    """
    return join(*modes, *split_modes(layout))


def split_modes(layout: Layout) -> list[Layout]:
    """Return the modes of a layout so that joining them restores it: offset and copies go with the first.

    >>> split_modes(Layout((3, 4)) + 5)
    [Layout(3, 1, offset=5), Layout(4, 3)]
    """
    require_strided(layout, "splitting modes")
    if any(sum(any(leaves(part)) for part in as_tuple(guard.stride)) > 1 for guard in layout.guards):
        raise LayoutError(f"{layout} is padded across modes and cannot be split into modes; append before padding")
    modes = [layout._mode((k,)) for k in range(layout.rank)]
    if modes:
        modes[0] = modes[0]._with(offset=layout.offset, replicas=layout.replicas)
    return modes


Kind = TypeVar("Kind", bound=LayoutLike)


def coalesce(layout: LayoutLike, profile: Any = None) -> Any:
    """Return the flattest layout that is the same function of the index as `layout`.

    With a tuple as `profile`, every mode that has an entry there is coalesced by itself.
    Ensures: r.size == layout.size, r.depth <= 1, r(i) == layout(i) for every i.

    >>> coalesce(Layout((2, (1, 6)), (1, (7, 2))))
    Layout(12, 1)
    >>> coalesce(Layout(((2, 2), (2, 3)), ((1, 2), (4, 8))), (1, 1))
    Layout((4, 6), (1, 4))
    """
    require_layout(layout, "coalesce")
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, coalesce(layout.inner, profile))
    if not isinstance(layout, Layout):  # pages and inverses are flat
        return layout
    if isinstance(profile, (tuple, list)):
        check_profile(layout, profile)
        if not isinstance(layout.shape, tuple):
            return coalesce(layout)
        return add_axes(_coalesce_by_mode(layout, as_tree(profile)), layout.axes)
    if layout.shape == ():
        return layout
    if layout.guards:
        return add_axes(_coalesce_padded(layout), layout.axes)
    extents, steps = layout.canonical_modes()
    shape, stride = (tuple(extents), tuple(steps)) if len(extents) > 1 else (extents[0], steps[0])
    return add_axes(make_layout(shape, stride, layout.offset, layout.replicas), layout.axes)


def check_profile(layout: Layout, profile: Any) -> None:
    """Raise if `profile` has more entries than the layout has modes.

    >>> check_profile(Layout((4, 8)), (1, 1))
    """
    if len(profile) > layout.rank:
        raise LayoutError(f"profile {profile} has more modes than {layout}, which has {layout.rank}")


def _coalesce_padded(layout: Layout) -> Layout:
    channels = [leaves(layout.stride), *(leaves(guard.stride) for guard in layout.guards)]
    extents, lines = merge_modes(leaves(layout.shape), channels)
    shape: Any = tuple(extents) if len(extents) > 1 else extents[0]
    steps, *bounds = [nest_like(shape, iter(line)) for line in lines]
    guards = [Guard(step, guard.limit, guard.offset) for step, guard in zip(bounds, layout.guards, strict=True)]
    return make_layout(shape, steps, layout.offset, layout.replicas, tuple(guards))


def _coalesce_by_mode(layout: Layout, profile: tuple[Any, ...]) -> Layout:
    # a guard may involve several modes, so each mode is merged under the strides of all guards at once
    shapes: list[Any] = []
    columns: list[list[Any]] = []
    trees = [layout.stride, *(guard.stride for guard in layout.guards)]
    for k, part in enumerate(profile):
        mode = make_layout(layout.shape[k], layout.stride[k])
        if isinstance(part, tuple):
            if layout.guards:
                raise LayoutError("cannot coalesce a padded layout by a nested profile; coalesce its modes one by one")
            merged = coalesce(mode, part)
            shapes.append(merged.shape)
            columns.append([merged.stride])
            continue
        extents, lines = merge_modes(leaves(mode.shape), [leaves(tree[k]) for tree in trees])
        shape: Any = tuple(extents) if len(extents) > 1 else extents[0]
        shapes.append(shape)
        columns.append([nest_like(shape, iter(line)) for line in lines])
    rest = len(profile)
    shape = (*shapes, *layout.shape[rest:])
    steps, *bounds = [(*(column[c] for column in columns), *tree[rest:]) for c, tree in enumerate(trees)]
    guards = [Guard(step, guard.limit, guard.offset) for step, guard in zip(bounds, layout.guards, strict=True)]
    return make_layout(shape, steps, layout.offset, layout.replicas, tuple(guards))


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
