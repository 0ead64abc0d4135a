# SPDX-License-Identifier: Apache-2.0
"""Construction: row-major and column-major layouts, layouts joined from modes, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import LayoutError
from .axes import Step, as_step
from .composed_layout import ComposedLayout
from .guards import Guard, live_guards
from .layout import Layout, ShapeArgument, add_axes, join_parts, make_layout, require_strided
from .layout_like import LayoutLike
from .strides import merge_modes
from .swizzle import Swizzle
from .tuples import as_tuple, index_strides, leaves, map_leaves, nest_like, prefix_product, product, suffix_product
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
