# SPDX-License-Identifier: Apache-2.0
"""Ways to make layouts: row- and column-major, ordered, like another one, joined from modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..errors import LayoutError
from .base import LayoutLike
from .composed import ComposedLayout
from .guards import Guard, live_guards
from .integers import as_integer
from .queries import shape_of
from .regrouping import require_strided
from .steps import Step, check_step, merge_modes
from .strided import Layout, joined_parts, keep_axes, make
from .tuples import (
    as_tree,
    as_tuple,
    index_strides,
    leaves,
    like,
    map_leaves,
    prefix_product,
    product,
    suffix_product,
)


class _RowMajor:
    """Return a compact layout in which the last mode varies fastest.

    >>> row_major(4, 8), row_major[4, 8]()
    (Layout((4, 8), (8, 1)), Layout((4, 8), (8, 1)))
    >>> from tilewright import Idx
    >>> row_major((Idx[4](), Idx(6)))
    Layout((4, Idx(6)), (Idx(6), 1))
    """

    __slots__ = ()

    def __call__(self, *shape: Any) -> Layout:
        extents = Layout(_only(shape)).shape
        return Layout(extents, suffix_product(extents))

    def __getitem__(self, shape: Any) -> Callable[[], Layout]:
        return partial(self, *as_tuple(shape))

    def __repr__(self) -> str:
        return "row_major"


class _ColMajor:
    """Return a compact layout in which the first mode varies fastest.

    >>> col_major(4, 8), col_major[4, 8]()
    (Layout((4, 8), (1, 4)), Layout((4, 8), (1, 4)))
    """

    __slots__ = ()

    def __call__(self, *shape: Any) -> Layout:
        extents = Layout(_only(shape)).shape
        return Layout(extents, prefix_product(extents))

    def __getitem__(self, shape: Any) -> Callable[[], Layout]:
        return partial(self, *as_tuple(shape))

    def __repr__(self) -> str:
        return "col_major"


def _only(shape: tuple[Any, ...]) -> Any:
    """Return the arguments of `row_major(4, 8)` or `row_major((4, 8))` as one shape."""
    return shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


row_major = _RowMajor()
col_major = _ColMajor()


def make_layout(*layouts: Any) -> Any:
    """Return the layout whose modes are the given layouts; from a shape and strides, that layout.

    Composed layouts can be joined too, as long as what is outermost in them is strided.

    >>> make_layout(Layout(4, 1), Layout(8, 4))
    Layout((4, 8), (1, 4))
    """
    if (
        len(layouts) == 1
        and isinstance(layouts[0], (list, tuple))
        and any(isinstance(x, LayoutLike) for x in layouts[0])
    ):
        layouts = tuple(layouts[0])
    if not any(isinstance(layout, LayoutLike) for layout in layouts):
        return Layout(*layouts)
    if all(isinstance(layout, Layout) for layout in layouts):
        return make(*joined_parts(layouts))
    return _join_composed(layouts)


def _join_composed(layouts: Sequence[Any]) -> ComposedLayout:
    """Return the modes joined as one composition: side by side outside, each inner index in a range of its own."""
    outers, inners = [], []
    below = 1
    for layout in layouts:
        outer, inner = _halves(layout)
        low, high = inner.bounds if inner.size else (0, 0)
        if low < 0:
            raise LayoutError(f"cannot join {layout}: its inner layout reaches the negative index {low}")
        outer = reaching(outer, high + 1)
        outers.append(outer)
        inners.append(scaled(inner, below))
        below *= outer.size
    return ComposedLayout(make_layout(*outers), make_layout(*inners))


def _halves(layout: Any) -> tuple[Layout, Layout]:
    if isinstance(layout, Layout):
        return layout, make(layout.shape, index_strides(layout.shape))
    if isinstance(layout, ComposedLayout) and isinstance(layout.outer, Layout) and isinstance(layout.inner, Layout):
        return layout.outer, layout.inner
    raise LayoutError(
        f"cannot join {layout} with other modes: its outermost function is not strided; join first, swizzle last"
    )


def reaching(layout: Layout, extent: int) -> Layout:
    """Return the same function on at least extent indices; those it did not have before are padding.

    >>> reaching(Layout((4, 3), (3, 1)), 14)
    Layout((4, 4), (3, 1), guards=(Guard(stride=(1, 4), limit=12, offset=0),))
    """
    if layout.size >= extent:
        return layout
    channels = [leaves(layout.stride), *(leaves(guard.stride) for guard in layout.guards)]
    extents, (steps, *bounds) = merge_modes(leaves(layout.shape), channels)
    below = product(tuple(extents[:-1]))
    if below == 0:
        raise LayoutError(f"{layout} is empty and cannot be continued to index {extent - 1}")
    extents = [*extents[:-1], -(-extent // below)]
    shape = tuple(extents) if len(extents) > 1 else extents[0]
    guards = [
        Guard(like(shape, iter(steps_)), guard.limit, guard.offset)
        for steps_, guard in zip(bounds, layout.guards, strict=True)
    ]
    guards.append(Guard(index_strides(shape), layout.size))
    longer = make(shape, like(shape, iter(steps)), layout.offset, layout.replicas, live_guards(shape, guards))
    return keep_axes(longer, layout.axes)


def scaled(layout: Layout, factor: int) -> Layout:
    """Return the layout with every place multiplied by factor.

    >>> scaled(Layout((4, 8)) + 1, 3)
    Layout((4, 8), (3, 12), offset=3)
    """
    replicas = tuple([(count, step * factor) for count, step in layout.replicas])
    stride = map_leaves(lambda step: step * factor, layout.stride)
    return make(layout.shape, stride, layout.offset * factor, replicas, layout.guards)


def make_ordered_layout(shape: Any, order: Any = None) -> Layout:
    """Return a compact layout whose modes vary in the given order.

    Order gives the rank of each top-level mode, 0 for the one that varies fastest, as in CuTe and Mojo; so `(1, 0)`
    makes a matrix row-major.

    >>> make_ordered_layout((4, 8), (1, 0)), make_ordered_layout((2, 3, 4), (2, 0, 1))
    (Layout((4, 8), (8, 1)), Layout((2, 3, 4), (12, 1, 3)))
    """
    shape = Layout(shape).shape
    if order is None:
        return make(shape, prefix_product(shape))
    modes = shape if isinstance(shape, tuple) else (shape,)
    ranks = as_tree(order) if isinstance(order, (tuple, list)) else (order,)
    if sorted(as_integer(k, "order") for k in ranks) != list(range(len(modes))):
        raise LayoutError(
            f"order {order} must be a permutation of 0 to {len(modes) - 1}, one entry for each mode of {shape}"
        )
    strides: list[Any] = [0] * len(modes)
    step = 1
    for k in sorted(range(len(modes)), key=ranks.__getitem__):
        strides[k] = prefix_product(modes[k], step)
        step = step * product(modes[k])
    return make(shape, tuple(strides) if isinstance(shape, tuple) else strides[0])


def make_layout_like(layout: Any, shape: Any = None) -> Layout:
    """Return a compact layout with the same shape whose modes vary in the same order; broadcast modes stay broadcast.

    With another shape, return that shape under the strides of layout, leaf by leaf.

    >>> make_layout_like(Layout((4, 8), (100, 1))), make_layout_like(Layout((4, 8), (0, 3)))
    (Layout((4, 8), (8, 1)), Layout((4, 8), (0, 1)))
    >>> make_layout_like(Layout((8, 8)), (4, 2))
    Layout((4, 2), (1, 8))
    """
    require_strided(layout, "make_layout_like")
    if layout.replicas or layout.axes:
        raise LayoutError(f"make_layout_like of {layout}: copies and named axes have no compact form; leave them out")
    if shape is not None:
        form = shape_of(shape)
        if len(leaves(form)) > len(leaves(layout.stride)):
            raise LayoutError(f"shape {form} has more flat modes than {layout}: no stride is left for the last ones")
        if layout.guards:
            raise LayoutError(f"make_layout_like of {layout}: its padding does not fit {form}; pad the result")
        return Layout(form, like(form, iter(leaves(layout.stride))))
    shape = shape_of(layout)
    steps = leaves(layout.stride)
    extents = leaves(shape)
    found: list[Any] = [0] * len(steps)
    step = 1
    for k in sorted(range(len(steps)), key=lambda k: (_magnitude(steps[k]), k)):
        if _magnitude(steps[k]):
            found[k] = step
            step = step * extents[k]
    return make(shape, like(shape, iter(found)), guards=layout.guards)


def _magnitude(step: Step) -> int:
    return abs(step) if isinstance(step, int) else sum(map(abs, step._parts.values()))


def replicate(layout: Layout, count: int, step: Any) -> Layout:
    """Return the layout with count copies, each a step further; its places are sets of places.

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
        raise LayoutError(f"cannot make {number} copies of {layout}: the number of copies must be at least 1")
    return layout._with(replicas=(*layout.replicas, (number, check_step(step, "the step between copies"))))


def append(layout: Layout, *modes: Layout) -> Any:
    """Return the layout with further modes at the end.

    >>> append(Layout((3, 4)), Layout(5, 12))
    Layout((3, 4, 5), (1, 3, 12))
    """
    return make_layout(*own_modes(layout), *modes)


def prepend(layout: Layout, *modes: Layout) -> Any:
    """Return the layout with further modes at the front.

    >>> prepend(Layout(3), Layout(4, 3))
    Layout((4, 3), (3, 1))
    """
    return make_layout(*modes, *own_modes(layout))


def replace(layout: Layout, k: int, mode: Layout) -> Any:
    """Return the layout with mode k replaced.

    >>> replace(Layout((3, 4)), 1, Layout((2, 2), (3, 6)))
    Layout((3, (2, 2)), (1, (3, 6)))
    """
    modes = own_modes(layout)
    if not -len(modes) <= k < len(modes):
        raise LayoutError(f"{layout} has no mode {k}: it has modes 0 to {len(modes) - 1}")
    modes[k] = mode
    return make_layout(*modes)


def own_modes(layout: Layout) -> list[Any]:
    """Return the modes of a layout that together make it up again: offset and copies go with the first.

    >>> own_modes(Layout((3, 4)) + 5)
    [Layout(3, 1, offset=5), Layout(4, 3)]
    """
    require_strided(layout, "taking apart the modes")
    if any(sum(any(leaves(part)) for part in as_tuple(guard.stride)) > 1 for guard in layout.guards):
        raise LayoutError(f"{layout} is padded across modes and cannot be taken apart; append before padding")
    modes = [layout._mode((k,)) for k in range(layout.rank)]
    if modes:
        modes[0] = modes[0]._with(offset=layout.offset, replicas=layout.replicas)
    return modes
