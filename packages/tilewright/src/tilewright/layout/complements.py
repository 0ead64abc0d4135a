# SPDX-License-Identifier: Apache-2.0
"""Complements: the layout of the places that another layout leaves free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from .._integers import ceil_div
from ..errors import LayoutError
from .axes import PLAIN, Place, component
from .layout import Layout, add_axes, make_layout
from .layout_like import LayoutLike
from .properties import find_collision
from .strides import merge_modes
from .tuples import Shape, ShapeArgument, as_tree, leaves, map_leaves, nest_like, product
from .validation import as_integer


def complement(layout: LayoutLike | ShapeArgument, bound: ShapeArgument | None = None) -> Layout:
    """Return the layout C of the places that `layout` leaves free: C repeats it without collision up to `bound`.

    C is strictly increasing and shares only place 0 with `layout`. Joined with C, `layout` has the smallest cosize of
    at least `bound`, its own cosize by default. A shape as `bound` is covered mode by mode. Broadcast modes are
    ignored; the places of copies are not free.

    >>> complement(Layout(4, 2), 16)
    Layout((2, 2), (1, 8))
    >>> complement(Layout((2, 2), (1, 4)), 16)
    Layout((2, 2), (2, 8))
    """
    function = layout if isinstance(layout, LayoutLike) else Layout(layout)
    if function.axes:
        return _apply_along_axis(function, "complement", lambda plain: complement(plain, bound))
    gaps = _find_gaps(function)
    limit = 0 if bound is None else as_tree(bound)
    if min([as_integer(n, "the bound of a complement") for n in leaves(limit)], default=0) < 0:
        raise LayoutError(f"complement of {function} up to {limit}: the bound must be nonnegative")
    copies = ceil_div(product(limit) - gaps.filled, gaps.period) + 1
    if isinstance(limit, tuple) and product(limit):
        copies = max(copies, _count_blocks_by_mode(limit, gaps.period))
    return coalesced_layout([*gaps.extents, max(1, copies)], [*gaps.strides, gaps.period])


def free_positions(layout: LayoutLike, count: int) -> Layout:
    """Return the complement of `layout` that has at least `count` positions for copies of it.

    >>> free_positions(Layout(4, 2), 3)
    Layout((2, 2), (1, 8))
    """
    if layout.axes:
        return _apply_along_axis(layout, "a product", lambda plain: free_positions(plain, count))
    gaps = _find_gaps(layout)
    copies = max(1, ceil_div(count, prod(gaps.extents)))
    return coalesced_layout([*gaps.extents, copies], [*gaps.strides, gaps.period])


def tiles_without_holes(layout: Layout) -> bool:
    """Return whether copies of `layout` can fill an interval without holes.

    >>> tiles_without_holes(Layout((2, 2), (1, 4))), tiles_without_holes(Layout((2, 2), (1, 3)))
    (True, False)
    """
    return _find_gaps(layout).no_holes


@dataclass(slots=True)
class _Gaps:
    """The gaps between the modes of a layout, as modes that fill them."""

    extents: list[int]
    strides: list[int]
    period: int  # distance between two copies of the layout with its gaps filled
    filled: int  # places from the first to the last of one such copy
    no_holes: bool


def _find_gaps(layout: LayoutLike) -> _Gaps:
    if not isinstance(layout, Layout):
        raise LayoutError(f"complement of {layout}: it is not strided; take the complement before composing")
    layout = _replicas_as_modes(layout)
    modes: list[Any] = sorted([(d, n) for n, d in zip(*layout.flat_modes(), strict=True) if n != 1 and d != 0])
    if modes and modes[0][0] < 0:
        raise LayoutError(f"complement of {layout}: it has the negative stride {modes[0][0]}; flip that mode first")
    if any(n == 0 for _, n in modes):
        return _Gaps([], [], 1, 1, False)
    if any(low[0] * low[1] > high[0] for low, high in pairwise(modes)):
        pair = find_collision(without_broadcast(layout))
        if pair is not None:
            raise LayoutError(
                f"complement of {layout}: it is not injective, coordinates {pair[0]} and {pair[1]} share"
                f" place {layout(pair[0])}; only broadcast modes may repeat places"
            )
        low, high = layout.bounds
        reach = high + 1 - low
        return _Gaps([], [], reach, reach, False)
    extents, strides = [], []
    period, filled, no_holes = 1, 1, True
    for step, extent in modes:
        gap, rest = divmod(step, period)
        no_holes = no_holes and not rest
        extents.append(gap)
        strides.append(period)
        filled = (gap - 1) * period + filled + (extent - 1) * step
        period = step * extent
    return _Gaps(extents, strides, period, filled, no_holes)


def _replicas_as_modes(layout: Layout) -> Layout:
    """Return a layout with the replicas as further modes, which have the same places."""
    if not layout.replicas:
        return layout
    extents, steps = zip(*layout.replicas, strict=True)
    return make_layout((layout.shape, *extents), (layout.stride, *steps), layout.offset)


def _count_blocks_by_mode(shape: Shape, block: int) -> int:
    """Return how many blocks cover `shape` when no block may cross from one mode into the next."""
    copies = 1
    for extent in leaves(shape):
        copies *= ceil_div(extent, block)
        block = ceil_div(block, extent)
    return copies


def coalesced_layout(extents: list[int], strides: list[int]) -> Layout:
    """Return the coalesced layout of modes with these extents and strides.

    >>> coalesced_layout([2, 3], [1, 2])
    Layout(6, 1)
    """
    extents, (strides,) = merge_modes(extents, [strides])
    return make_layout(extents[0], strides[0]) if len(extents) == 1 else make_layout(tuple(extents), tuple(strides))


def _apply_along_axis(layout: Any, caller: str, function: Callable[[Layout], Layout]) -> Layout:
    """Return `function` of a layout over a single named axis, applied to its coordinates along that axis."""
    axes = used_axes(layout) or layout.axes
    steps = [*leaves(layout.stride), *(step for _, step in layout.replicas), layout.offset]
    if len(axes) > 1 or any(component(step, PLAIN) for step in steps):
        raise LayoutError(f"{caller} of {layout}: places lie on {', '.join(axes)}; take one axis with .project(axis)")
    result = function(layout.project(axes[0]))
    return add_axes(
        make_layout(result.shape, map_leaves(lambda step: Place({axes[0]: step}), result.stride)), layout.axes
    )


def used_axes(layout: LayoutLike) -> tuple[str, ...]:
    """Return the axes along which some place of a layout is not 0.

    >>> from tilewright import addr, bank
    >>> used_axes(Layout((4, 2), (1 @ bank, 0 @ addr)))
    ('bank',)
    """
    if not isinstance(layout, Layout):
        return tuple(layout.axes)
    steps = [*layout.flat_modes()[1], *(step for _, step in layout.replicas), layout.offset]
    return tuple([name for name in layout.axes if any(component(step, name) for step in steps)])


def without_broadcast(layout: Layout) -> Layout:
    """Return the layout with every broadcast mode reduced to one element.

    >>> without_broadcast(Layout((4, 3), (1, 0)))
    Layout((4, 1), (1, 0))
    """
    extents = [1 if d == 0 else n for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True)]
    return make_layout(nest_like(layout.shape, iter(extents)), layout.stride, layout.offset)
