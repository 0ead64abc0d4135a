# SPDX-License-Identifier: Apache-2.0
"""Inverses: the coordinate that lives at an offset. Every result obeys its law, or the function raises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np

from .._integers import ceil_div
from ..errors import LayoutError
from .axes import PLAIN, Axis, Guard, Offset, Place, axis_name, component, merge_modes
from .composed import ComposedLayout, InverseLayout, Swizzle
from .composition import compose
from .evaluation import chunks
from .layout import Layout, LayoutLike, add_axes, join_parts, make_layout
from .modes import LayoutArgument, as_function
from .properties import find_collision, is_injective
from .tuples import (
    Nested,
    Shape,
    ShapeArgument,
    as_integer,
    as_tree,
    index_strides,
    index_to_coordinate,
    leaves,
    map_leaves,
    nest_like,
    product,
)

# Complements: the layout of the offsets that another layout leaves free.


def complement(layout: LayoutLike | ShapeArgument, bound: ShapeArgument | None = None) -> Layout:
    """Return the layout C of the offsets that `layout` leaves free: C repeats it without collision up to `bound`.

    C is strictly increasing and shares only offset 0 with `layout`. Joined with C, `layout` has the smallest cosize of
    at least `bound`, its own cosize by default. A shape as `bound` is covered mode by mode. Broadcast modes are
    ignored; the offsets of copies are not free.

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
    filled: int  # offsets from the first to the last of one such copy
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
                f" offset {layout(pair[0])}; only broadcast modes may repeat offsets"
            )
        low, high = layout.bounds
        reach = high + 1 - low
        return _Gaps([], [], reach, reach, False)
    extents, strides = [], []
    period, filled, no_holes = 1, 1, True
    for stride, extent in modes:
        gap, rest = divmod(stride, period)
        no_holes = no_holes and not rest
        extents.append(gap)
        strides.append(period)
        filled = (gap - 1) * period + filled + (extent - 1) * stride
        period = stride * extent
    return _Gaps(extents, strides, period, filled, no_holes)


def _replicas_as_modes(layout: Layout) -> Layout:
    """Return a layout with the replicas as further modes, which have the same offsets."""
    if not layout.replicas:
        return layout
    extents, strides = zip(*layout.replicas, strict=True)
    return make_layout((layout.shape, *extents), (layout.stride, *strides), layout.offset)


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
    strides = [*leaves(layout.stride), *(stride for _, stride in layout.replicas), layout.offset]
    if len(axes) > 1 or any(component(stride, PLAIN) for stride in strides):
        raise LayoutError(f"{caller} of {layout}: offsets lie on {', '.join(axes)}; take one axis with .project(axis)")
    result = function(layout.project(axes[0]))
    return add_axes(
        make_layout(result.shape, map_leaves(lambda stride: Place({axes[0]: stride}), result.stride)), layout.axes
    )


def used_axes(layout: LayoutLike) -> tuple[str, ...]:
    """Return the axes along which some offset of a layout is not 0.

    >>> from tilewright import addr, bank
    >>> used_axes(Layout((4, 2), (1 @ bank, 0 @ addr)))
    ('bank',)
    """
    if not isinstance(layout, Layout):
        return tuple(layout.axes)
    strides = [*layout.flat_modes()[1], *(stride for _, stride in layout.replicas), layout.offset]
    return tuple([name for name in layout.axes if any(component(stride, name) for stride in strides)])


def without_broadcast(layout: Layout) -> Layout:
    """Return the layout with every broadcast mode reduced to one element.

    >>> without_broadcast(Layout((4, 3), (1, 0)))
    Layout((4, 1), (1, 0))
    """
    extents = [1 if d == 0 else n for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True)]
    return make_layout(nest_like(layout.shape, iter(extents)), layout.stride, layout.offset)


# A mode that moves: its stride, its extent, and its stride in the index.
_IndexedMode: TypeAlias = "tuple[Any, int, int]"
_Inversion: TypeAlias = "Callable[..., Any]"  # right_inverse or left_inverse


def right_inverse(layout: LayoutArgument, axes: Sequence[Axis | str] | None = None) -> Layout | Any:
    """Return the largest layout R, made of modes of `layout`, with layout(R(i)) == i for every i < R.size.

    With `axes`, the arguments of R are offsets: coordinates along those axes, in that order.

    >>> right_inverse(Layout((8, 4), (4, 1)))
    Layout((4, 8), (8, 1))
    >>> right_inverse(Layout((5, (16, 6)), (6, (1, 1))))
    Layout((6, 5), (80, 1))
    """
    function = as_function(layout)
    inverse = _invert_unless_strided(function, axes, right_inverse)
    if inverse is not None:
        return inverse
    return _restrict_to_data(function, _invert_right(_indexed_modes(function), function.offset, function))


def _invert_unless_strided(layout: LayoutLike | Swizzle, axes: Sequence[Axis | str] | None, invert: _Inversion) -> Any:
    """Return the inverse of anything but a strided layout of plain integers (None); a swizzle is its own inverse."""
    if isinstance(layout, Swizzle):
        return layout
    if layout.is_replicated:
        raise LayoutError(f"{invert.__name__} of {layout}: its offsets are sets; remove the replicas first")
    if layout.axes or axes is not None:
        return _invert_over_axes(layout, axes, invert)
    if isinstance(layout, InverseLayout):
        return layout.layout
    return None if isinstance(layout, Layout) else _invert_by_table(layout, invert)


def _indexed_modes(layout: Layout) -> list[_IndexedMode]:
    """Return (stride, extent, index stride) of every mode that has a nonzero stride and several elements."""
    modes = []
    index_stride = 1
    for n, d in zip(*layout.flat_modes(), strict=True):
        if n != 1 and d:
            modes.append((d, n, index_stride))
        index_stride = index_stride * n
    return modes


def _invert_right(modes: list[_IndexedMode], offset: int, layout: Layout) -> Layout:
    """Return the right inverse of modes with an offset; `layout` is quoted in errors."""
    if any(n == 0 for _, n, _ in modes):
        return make_layout(0, 1)
    lowest, start = offset, 0
    upward = []
    for d, n, at in modes:
        if d > 0:
            upward.append((d, n, at))
        else:
            lowest += (n - 1) * d
            start += (n - 1) * at
    if lowest == 0:
        upward = [(abs(d), n, at if d > 0 else -at) for d, n, at in modes]
    elif offset == 0:
        start = 0  # only modes with positive strides start at offset 0
    else:
        raise LayoutError(f"right_inverse of {layout}: no coordinate maps to 0; invert L - {lowest} instead")
    chain = _longest_chain(sorted(upward))
    result = coalesced_layout([n for n, _ in chain], [at for _, at in chain])
    return result + start if start else result


def _longest_chain(modes: list[_IndexedMode]) -> list[tuple[int, int]]:
    """Return (extent, index stride) of modes that continue each other from stride 1, covering as much as possible.

    The modes are sorted by stride. If they do not overlap there is only one chain.
    """
    chain, current = [], 1
    for stride, n, at in modes:
        if stride > current:
            break
        if stride < current:
            return _best_chain(modes)
        chain.append((n, at))
        current = stride * n
    return chain


def _best_chain(modes: list[_IndexedMode]) -> list[tuple[int, int]]:
    """Return the longest chain of overlapping modes; a mode may be cut short where another one continues."""
    best: dict[int, tuple[int, int, list[tuple[int, int]]]] = {}
    for stride in sorted({stride for stride, _, _ in modes}, reverse=True):
        options = []
        for n, at in [(n, at) for d, n, at in modes if d == stride]:
            cuts = [n, *(later // stride for later in best if later % stride == 0 and 1 < later // stride < n)]
            for used in cuts:
                reach, whole, rest = best.get(stride * used, (stride * used, 0, []))
                options.append((reach, whole + (used == n), [(used, at), *rest]))
        best[stride] = max(options, key=lambda option: (option[0], option[1], -abs(option[2][0][1])))
    return best[1][2] if 1 in best else []


def _restrict_to_data(layout: Layout, inverse: Layout) -> LayoutLike:
    """Return `inverse`, valid only where it maps to data of `layout`."""
    if not layout.guards:
        return inverse
    return compose(make_layout(layout.shape, index_strides(layout.shape), guards=layout.guards), inverse)


def left_inverse(layout: LayoutArgument, axes: Sequence[Axis | str] | None = None) -> Layout | Any:
    """Return a layout Li with Li(layout(i)) == i; over broadcast modes, with layout(Li(layout(i))) == layout(i).

    Places that `layout` does not use are not `valid` in Li. Where no strided inverse exists Li is an exact
    `InverseLayout`. With `axes`, the arguments of Li are offsets: coordinates along those axes, in that order.

    >>> print(left_inverse(Layout((4, 8), (1, 5))))
    (5,8):(1,4) where (1,0)<4
    >>> left_inverse(Layout((2, 2), (2, 3)))
    InverseLayout(Layout((2, 2), (2, 3)))
    """
    function = as_function(layout)
    inverse = _invert_unless_strided(function, axes, left_inverse)
    if inverse is not None:
        return inverse
    if function.size == 0:
        raise LayoutError(f"left_inverse of {function}: the layout is empty")
    modes = sorted(_indexed_modes(function))
    if function.offset == 0 and _is_nested(modes):
        return _restrict_to_data(function, _invert_nested(modes))
    pair = find_collision(without_broadcast(function))
    if pair is not None:
        raise _collision_error(function, pair)
    return InverseLayout(function)


def _collision_error(layout: LayoutLike, pair: tuple[Nested[int], Nested[int]]) -> LayoutError:
    return LayoutError(f"left_inverse of {layout}: it is not injective, coordinates {pair[0]} and {pair[1]} collide")


def _is_nested(modes: list[_IndexedMode]) -> bool:
    """Return whether each of the sorted strides is a multiple of the one before and lies past its extent."""
    upward = not modes or modes[0][0] > 0
    return upward and all(b[0] % a[0] == 0 and a[0] * a[1] <= b[0] for a, b in pairwise(modes))


def _invert_nested(modes: list[_IndexedMode]) -> Layout:
    """Return the left inverse of nested modes: see `_is_nested`."""
    extents: list[int] = []
    strides: list[int] = []
    used: list[int] = []
    if modes and modes[0][0] > 1:
        extents, strides, used = [modes[0][0]], [0], [1]
    for k, (stride, n, at) in enumerate(modes):
        gap = modes[k + 1][0] // stride if k + 1 < len(modes) else n
        if extents and used[-1] == extents[-1] and n == gap and strides[-1] * extents[-1] == at:
            extents[-1] *= n
            used[-1] *= n
        else:
            extents.append(gap)
            strides.append(at)
            used.append(n)
    if not extents:
        return make_layout(1, 0)
    if len(extents) == 1:
        return make_layout(extents[0], strides[0])
    count = len(extents)
    guards = [Guard((0,) * k + (1,) + (0,) * (count - 1 - k), used[k]) for k in range(count) if used[k] < extents[k]]
    return make_layout(tuple(extents), tuple(strides), 0, (), tuple(guards))


def _invert_by_table(layout: LayoutLike, invert: _Inversion) -> LayoutLike:
    """Return the inverse of a composition or of pages by a table; of a swizzle over whole blocks, by the swizzle."""
    if isinstance(layout, ComposedLayout) and isinstance(layout.outer, Swizzle):
        inner_inverse = invert(layout.inner)
        if inner_inverse.size % layout.outer.block == 0:
            return compose(inner_inverse, ComposedLayout(layout.outer, make_layout(inner_inverse.size, 1)))
    if invert is right_inverse:
        return ComposedLayout(InverseLayout(layout), make_layout(_count_consecutive_offsets(layout), 1))
    if not is_injective(layout):
        raise _collision_error(layout, _find_collision_by_table(layout))
    return InverseLayout(layout)


def _find_collision_by_table(layout: LayoutLike) -> tuple[Nested[int], Nested[int]]:
    """Return two coordinates that share an offset."""
    offsets = np.concatenate([offsets for _, offsets, _ in chunks(layout)])
    order = np.argsort(offsets, kind="stable")
    twin = int(np.flatnonzero(np.diff(offsets[order]) == 0)[0])
    return index_to_coordinate(int(order[twin]), layout.shape), index_to_coordinate(int(order[twin + 1]), layout.shape)


def _count_consecutive_offsets(layout: LayoutLike) -> int:
    """Return how many consecutive offsets, from 0 on, are used."""
    offsets = np.unique(np.concatenate([offsets for _, offsets, _ in chunks(layout)]))
    offsets = offsets[offsets >= 0]
    gaps = np.flatnonzero(offsets != np.arange(len(offsets)))
    return int(gaps[0]) if len(gaps) else len(offsets)


def _invert_over_axes(layout: LayoutLike, axes: Sequence[Axis | str] | None, invert: _Inversion) -> LayoutLike:
    """Return the inverse that takes the coordinates along the given axes."""
    if axes is None:
        raise LayoutError(f"{invert.__name__} of {layout}: give the axes, as in axes=({', '.join(layout.axes)},)")
    names = [axis_name(axis) for axis in axes]
    outer = layout
    while isinstance(outer, ComposedLayout):
        outer = outer.outer
    missing = [name for name in used_axes(layout) if name not in names]
    if not isinstance(outer, Layout):
        raise LayoutError(f"{invert.__name__} of {layout}: its offsets lie on no axis; do not pass axes={names}")
    if missing or any(component(stride, PLAIN) for stride in [*leaves(outer.stride), outer.offset]):
        raise LayoutError(
            f"{invert.__name__} of {layout}: axes {names} do not include {missing or 'the plain strides'}"
        )
    if isinstance(layout, Layout):
        inverse = _invert_axis_by_axis(layout, names, invert)
        if inverse is not None:
            return inverse
    assert isinstance(layout, (Layout, ComposedLayout))  # the others have no axes
    reach = [cosize_along(layout, name) for name in names]
    weights = [prod([max(n, 2) for n in reach[:k]]) for k in range(len(reach))]
    return compose(
        invert(_fold_axes(layout, dict(zip(names, weights, strict=True)))), make_layout(tuple(reach), tuple(weights))
    )


def cosize_along(layout: Layout | ComposedLayout, name: str) -> int:
    """Return the size of the smallest interval that holds 0 and all coordinates along the axis of that name.

    >>> from tilewright import bank
    >>> cosize_along(Layout(12, 1 @ bank), "bank"), cosize_along(Layout(12, 1 @ bank), "addr")
    (12, 1)
    """
    return int(layout.project(name).cosize) if name in layout.axes else 1


def _invert_axis_by_axis(layout: Layout, names: list[str], invert: _Inversion) -> Layout | None:
    """Return the inverse taken for each axis by itself; None where a mode moves along several axes."""
    modes = _indexed_modes(layout)
    if any(sum(map(bool, stride._parts.values())) > 1 for stride, _, _ in modes):
        return None
    parts = []
    for name in names:
        own = sorted([(component(stride, name), n, index) for stride, n, index in modes if component(stride, name)])
        offset = component(layout.offset, name)
        if invert is right_inverse:
            parts.append(_invert_right(own, offset, layout))
        elif offset == 0 and _is_nested(own):
            parts.append(_invert_nested(own))
        else:
            return None
    inverse = _restrict_to_data(layout, make_layout(*join_parts(tuple(parts))))
    return inverse if isinstance(inverse, Layout) else None


def _fold_axes(layout: Layout | ComposedLayout, weights: dict[str, int]) -> Any:
    """Return the layout with its axes folded into one: each coordinate is multiplied by the weight of its axis."""
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(_fold_axes(layout.outer, weights), layout.inner)

    def as_index(stride: Offset) -> int:
        return int(sum(component(stride, name) * weight for name, weight in weights.items()))

    return make_layout(layout.shape, map_leaves(as_index, layout.stride), as_index(layout.offset), (), layout.guards)
