# SPDX-License-Identifier: Apache-2.0
"""Inverses: the coordinate that lives at a place. Every result obeys its law, or the function raises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ..errors import LayoutError
from .axes import PLAIN, Axis, Step, axis_name, component
from .complements import coalesced_layout, used_axes, without_broadcast
from .composed_layout import ComposedLayout
from .composition import compose
from .coordinate import index_to_coordinate
from .evaluation import chunks
from .layout import Layout, join_parts, make_layout
from .layout_like import LayoutLike
from .modes import LayoutArgument, as_function
from .properties import find_collision, is_injective
from .strides import Guard
from .swizzle import Swizzle
from .table_layouts import InverseLayout
from .tuples import Nested, index_strides, leaves, map_leaves

# A mode that moves: its stride, its extent, and its stride in the index.
_IndexedMode: TypeAlias = "tuple[Any, int, int]"
_Inversion: TypeAlias = "Callable[..., Any]"  # right_inverse or left_inverse


def right_inverse(layout: LayoutArgument, axes: Sequence[Axis | str] | None = None) -> Any:
    """Return the largest layout R, made of modes of `layout`, with layout(R(i)) == i for every i < R.size.

    With `axes`, the arguments of R are places: coordinates along those axes, in that order.

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
    """Return the inverse of anything but a strided layout of plain integers; None for such a layout."""
    if isinstance(layout, Swizzle):
        return layout
    if layout.is_replicated:
        raise LayoutError(f"{invert.__name__} of {layout}: its places are sets; remove the replicas first")
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
        start = 0  # only modes with positive strides start at place 0
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
    for step, n, at in modes:
        if step > current:
            break
        if step < current:
            return _best_chain(modes)
        chain.append((n, at))
        current = step * n
    return chain


def _best_chain(modes: list[_IndexedMode]) -> list[tuple[int, int]]:
    """Return the longest chain of overlapping modes; a mode may be cut short where another one continues."""
    best: dict[int, tuple[int, int, list[tuple[int, int]]]] = {}
    for step in sorted({step for step, _, _ in modes}, reverse=True):
        options = []
        for n, at in [(n, at) for d, n, at in modes if d == step]:
            cuts = [n, *(later // step for later in best if later % step == 0 and 1 < later // step < n)]
            for used in cuts:
                reach, whole, rest = best.get(step * used, (step * used, 0, []))
                options.append((reach, whole + (used == n), [(used, at), *rest]))
        best[step] = max(options, key=lambda option: (option[0], option[1], -abs(option[2][0][1])))
    return best[1][2] if 1 in best else []


def _restrict_to_data(layout: Layout, inverse: Layout) -> Any:
    """Return `inverse`, valid only where it maps to data of `layout`."""
    if not layout.guards:
        return inverse
    return compose(make_layout(layout.shape, index_strides(layout.shape), guards=layout.guards), inverse)


def left_inverse(layout: LayoutArgument, axes: Sequence[Axis | str] | None = None) -> Any:
    """Return a layout Li with Li(layout(i)) == i; over broadcast modes, with layout(Li(layout(i))) == layout(i).

    Places that `layout` does not use are not `valid` in Li. Where no strided inverse exists Li is an exact
    `InverseLayout`. With `axes`, the arguments of Li are places: coordinates along those axes, in that order.

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
    for k, (step, n, at) in enumerate(modes):
        gap = modes[k + 1][0] // step if k + 1 < len(modes) else n
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


def _invert_by_table(layout: LayoutLike, invert: _Inversion) -> Any:
    """Return the inverse of a composition or of pages by a table; of a swizzle over whole blocks, by the swizzle."""
    if isinstance(layout, ComposedLayout) and isinstance(layout.outer, Swizzle):
        inner_inverse = invert(layout.inner)
        if inner_inverse.size % layout.outer.block == 0:
            return compose(inner_inverse, ComposedLayout(layout.outer, make_layout(inner_inverse.size, 1)))
    if invert is right_inverse:
        return ComposedLayout(InverseLayout(layout), make_layout(_count_consecutive_places(layout), 1))
    if not is_injective(layout):
        raise _collision_error(layout, _find_collision_by_table(layout))
    return InverseLayout(layout)


def _find_collision_by_table(layout: LayoutLike) -> tuple[Nested[int], Nested[int]]:
    """Return two coordinates that share a place."""
    places = np.concatenate([places for _, places, _ in chunks(layout)])
    order = np.argsort(places, kind="stable")
    twin = int(np.flatnonzero(np.diff(places[order]) == 0)[0])
    return index_to_coordinate(int(order[twin]), layout.shape), index_to_coordinate(int(order[twin + 1]), layout.shape)


def _count_consecutive_places(layout: LayoutLike) -> int:
    """Return how many places in a row, from 0 on, are used."""
    places = np.unique(np.concatenate([places for _, places, _ in chunks(layout)]))
    places = places[places >= 0]
    gaps = np.flatnonzero(places != np.arange(len(places)))
    return int(gaps[0]) if len(gaps) else len(places)


def _invert_over_axes(layout: LayoutLike, axes: Sequence[Axis | str] | None, invert: _Inversion) -> Any:
    """Return the inverse that takes the coordinates along the given axes."""
    if axes is None:
        raise LayoutError(f"{invert.__name__} of {layout}: give the axes, as in axes=({', '.join(layout.axes)},)")
    names = [axis_name(axis) for axis in axes]
    outer = layout
    while isinstance(outer, ComposedLayout):
        outer = outer.outer
    missing = [name for name in used_axes(layout) if name not in names]
    if not isinstance(outer, Layout):
        raise LayoutError(f"{invert.__name__} of {layout}: its places lie on no axis; do not pass axes={names}")
    if missing or any(component(step, PLAIN) for step in [*leaves(outer.stride), outer.offset]):
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
    if any(sum(map(bool, step._parts.values())) > 1 for step, _, _ in modes):
        return None
    parts = []
    for name in names:
        own = sorted([(component(step, name), n, index) for step, n, index in modes if component(step, name)])
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

    def as_index(step: Step) -> int:
        return int(sum(component(step, name) * weight for name, weight in weights.items()))

    return make_layout(layout.shape, map_leaves(as_index, layout.stride), as_index(layout.offset), (), layout.guards)
