# SPDX-License-Identifier: Apache-2.0
"""Inverses and complement: which coordinate lives at a place, and what a layout leaves free.

Every result obeys its law or the function raises; nothing is cut short.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

from ..errors import LayoutError
from .axes import PLAIN, Axis, Place, axis_name
from .base import LayoutLike
from .bulk import chunks
from .composed import ComposedLayout
from .composing import as_function, compose
from .coords import idx2crd
from .guards import Guard
from .integers import as_integer
from .lookup import InverseLayout
from .properties import collision, is_injective
from .queries import size
from .regrouping import require_strided
from .steps import along, merge_modes
from .strided import Layout, joined_parts, keep_axes, make, used_axes
from .swizzle import Swizzle
from .tuples import as_tree, ceil_div, index_strides, leaves, like, map_leaves, product


def complement(layout: Any, bound: Any = None) -> Layout:
    """Return a layout C of the places that layout leaves free: it repeats layout without collision up to bound.

    C is strictly increasing and meets the places of layout only in 0; `cosize((layout, C)) >= bound`, which is
    cosize(layout) unless given, and with one copy less it would not be. A shape as bound is covered mode by mode.
    Broadcast modes are ignored; the places of copies are not free.

    >>> complement(Layout(4, 2), 16)
    Layout((2, 2), (1, 8))
    >>> complement(Layout((2, 2), (1, 4)), 16)
    Layout((2, 2), (2, 8))
    """
    layout = layout if isinstance(layout, LayoutLike) else Layout(layout)
    if getattr(layout, "axes", ()):
        return _on_one_axis(layout, "complement", lambda plain: complement(plain, bound))
    extents, strides, period, filled, _ = _gaps(layout)
    limit = 0 if bound is None else as_tree(bound)  # its own places it reaches by itself
    if min([as_integer(n, "the bound of a complement") for n in leaves(limit)], default=0) < 0:
        raise LayoutError(f"complement of {layout} up to {limit}: the bound must be nonnegative")
    copies = ceil_div(product(limit) - filled, period) + 1
    if limit.__class__ is tuple and product(limit):
        copies = max(copies, _copies_by_mode(limit, period))
    return _merged([*extents, max(1, copies)], [*strides, period])


def free_positions(layout: Layout, count: int) -> Layout:
    """Return the complement that offers at least count positions for copies of layout.

    >>> free_positions(Layout(4, 2), 3)
    Layout((2, 2), (1, 8))
    """
    if layout.axes:
        return _on_one_axis(layout, "a product", lambda plain: free_positions(plain, count))
    extents, strides, period, _, _ = _gaps(layout)
    return _merged([*extents, max(1, ceil_div(count, prod(extents)))], [*strides, period])


def tiles_exactly(layout: Layout) -> bool:
    """Return whether copies of layout can fill a range without holes.

    >>> tiles_exactly(Layout((2, 2), (1, 4))), tiles_exactly(Layout((2, 2), (1, 3)))
    (True, False)
    """
    return _gaps(layout)[4]


def _gaps(layout: Any) -> tuple[list[int], list[int], int, int, bool]:
    """Return the gaps between the modes, as extents and strides, the period, how far it fills, and whether wholly."""
    if not isinstance(layout, Layout):
        raise LayoutError(f"complement of {layout}: it is not strided; take the complement before composing")
    layout = _copies_as_modes(layout)
    modes = sorted([(d, n) for n, d in zip(*layout.flat_modes(), strict=True) if n != 1 and d != 0])
    if modes and modes[0][0] < 0:
        raise LayoutError(f"complement of {layout}: it has the negative stride {modes[0][0]}; flip that mode first")
    if any(n == 0 for _, n in modes):
        return [], [], 1, 1, False
    if any(low[0] * low[1] > high[0] for low, high in pairwise(modes)):
        pair = collision(_without_broadcast(layout))
        if pair is not None:
            raise LayoutError(
                f"complement of {layout}: it is not injective, coordinates {pair[0]} and {pair[1]} share"
                f" place {layout(pair[0])}; only broadcast modes may repeat places"
            )
        low, high = layout.bounds
        reach = high + 1 - low
        return [], [], reach, reach, False
    extents, strides = [], []
    period, filled, wholly = 1, 1, True
    for step, extent in modes:
        gap, rest = divmod(step, period)
        wholly = wholly and not rest
        extents.append(gap)
        strides.append(period)
        # what the modes so far and the gap fill, before this mode spreads it
        filled = (gap - 1) * period + filled + (extent - 1) * step
        period = step * extent
    return extents, strides, period, filled, wholly


def _copies_as_modes(layout: Layout) -> Layout:
    """Return a layout of the places of all copies: they lie where further modes would."""
    if not layout.replicas:
        return layout
    extents, steps = zip(*layout.replicas, strict=True)
    return make((layout.shape, *extents), (layout.stride, *steps), layout.offset)


def _copies_by_mode(shape: tuple[Any, ...], block: int) -> int:
    """Return how many blocks cover shape when no block may run from one mode into the next."""
    copies = 1
    for extent in leaves(shape):
        copies *= ceil_div(extent, block)
        block = ceil_div(block, extent)
    return copies


def _merged(extents: list[int], strides: list[int]) -> Layout:
    """Return the coalesced layout of these modes."""
    extents, (strides,) = merge_modes(extents, [strides])
    return make(extents[0], strides[0]) if len(extents) == 1 else make(tuple(extents), tuple(strides))


def _on_one_axis(layout: Layout, what: str, plain_form: Any) -> Layout:
    axes = used_axes(layout) or layout.axes
    steps = [*leaves(layout.stride), *(step for _, step in layout.replicas), layout.offset]
    if len(axes) > 1 or any(along(step, PLAIN) for step in steps):
        raise LayoutError(f"{what} of {layout}: places lie on {', '.join(axes)}; take one axis with .on(axis)")
    result = plain_form(layout.on(axes[0]))
    return keep_axes(make(result.shape, map_leaves(lambda step: Place({axes[0]: step}), result.stride)), layout.axes)


def right_inverse(layout: Any, axes: Sequence[Axis | str] | None = None) -> Any:
    """Return the largest layout R, made of modes of layout, with layout(R(i)) == i for every i < size(R).

    With axes, the arguments of R are places: coordinates along those axes, in that order.

    >>> right_inverse(Layout((8, 4), (4, 1)))
    Layout((4, 8), (8, 1))
    >>> right_inverse(Layout((5, (16, 6)), (6, (1, 1))))
    Layout((6, 5), (80, 1))
    """
    layout = as_function(layout)
    special = _inverse_of_other_kinds(layout, axes, right_inverse)
    if special is not None:
        return special
    return _with_guards_of(layout, _right_inverse_of_modes(_indexed_modes(layout), layout.offset, layout))


def _inverse_of_other_kinds(layout: Any, axes: Sequence[Axis | str] | None, invert: Any) -> Any:
    """Return the inverse of what is not a plain strided layout; None for one that is."""
    if isinstance(layout, Swizzle):
        return layout
    if layout.replicated:
        raise LayoutError(f"{invert.__name__} of {layout}: its places are sets; invert the layout without replicas")
    if layout.axes or axes is not None:
        return _inverse_over_axes(layout, axes, invert)
    if isinstance(layout, InverseLayout):
        return layout.layout
    return None if isinstance(layout, Layout) else _looked_up_inverse(layout, invert)


def _indexed_modes(layout: Layout) -> list[tuple[Any, int, int]]:
    """Return (stride, extent, index stride) of every mode that moves."""
    modes = []
    at = 1
    for n, d in zip(*layout.flat_modes(), strict=True):
        if n != 1 and d:
            modes.append((d, n, at))
        at = at * n
    return modes


def _right_inverse_of_modes(modes: list[tuple[int, int, int]], offset: int, layout: Layout) -> Layout:
    if any(n == 0 for _, n, _ in modes):
        return make(0, 1)
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
        start = 0  # only modes that run up from place 0 count
    else:
        raise LayoutError(f"right_inverse of {layout}: no coordinate lives at 0; invert L - {lowest} instead")
    chain = _longest_chain(sorted(upward))
    result = _merged([n for n, _ in chain], [at for _, at in chain])
    return result + start if start else result


def _longest_chain(modes: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return (extent, index stride) pairs whose strides run on without a gap from 1, covering as much as possible.

    Modes are (stride, extent, index stride), sorted by stride. Without overlap there is nothing to choose.
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


def _best_chain(modes: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return the longest chain where modes overlap: each may be used whole, or cut where a later one takes over."""
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


def _with_guards_of(layout: Any, inverse: Any) -> Any:
    """Return an inverse that is valid only where it leads to data."""
    if not layout.guards:
        return inverse
    return compose(make(layout.shape, index_strides(layout.shape), guards=layout.guards), inverse)


def left_inverse(layout: Any, axes: Sequence[Axis | str] | None = None) -> Any:
    """Return a layout Li with Li(layout(i)) == i; over broadcast modes, with layout(Li(layout(i))) == layout(i).

    Places that layout does not use are not `valid` in it. Where no strided answer exists the result is an exact
    `InverseLayout`. With axes, the arguments are places: coordinates along those axes, in that order.

    >>> print(left_inverse(Layout((4, 8), (1, 5))))
    (5,8):(1,4) where (1,0)<4
    >>> left_inverse(Layout((2, 2), (2, 3)))
    InverseLayout(Layout((2, 2), (2, 3)))
    """
    layout = as_function(layout)
    special = _inverse_of_other_kinds(layout, axes, left_inverse)
    if special is not None:
        return special
    if layout.size == 0:
        raise LayoutError(f"left_inverse of {layout}: the layout is empty, so it has no place to start from")
    modes = sorted(_indexed_modes(layout))
    if layout.offset == 0 and _nests(modes):
        return _with_guards_of(layout, _nested_left_inverse(modes))
    pair = collision(_without_broadcast(layout))
    if pair is not None:
        raise LayoutError(f"left_inverse of {layout}: it is not injective, coordinates {pair[0]} and {pair[1]} collide")
    return InverseLayout(layout)


def _nests(modes: list[tuple[int, int, int]]) -> bool:
    """Return whether each of the sorted strides is a multiple of the one before, with room for its extent."""
    upward = not modes or modes[0][0] > 0
    return upward and all(b[0] % a[0] == 0 and a[0] * a[1] <= b[0] for a, b in pairwise(modes))


def _without_broadcast(layout: Layout) -> Layout:
    """Return the layout with every broadcast mode cut down to one element."""
    extents = [1 if d == 0 else n for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True)]
    return make(like(layout.shape, iter(extents)), layout.stride, layout.offset)


def _nested_left_inverse(modes: list[tuple[int, int, int]]) -> Layout:
    """Return the inverse of modes of which each stride is a multiple of the one before, with room for its extent."""
    extents: list[int] = []
    strides: list[int] = []
    used: list[int] = []
    if modes and modes[0][0] > 1:
        extents, strides, used = [modes[0][0]], [0], [1]
    for k, (step, n, at) in enumerate(modes):
        room = modes[k + 1][0] // step if k + 1 < len(modes) else n
        if extents and used[-1] == extents[-1] and n == room and strides[-1] * extents[-1] == at:
            extents[-1] *= n
            used[-1] *= n
        else:
            extents.append(room)
            strides.append(at)
            used.append(n)
    if not extents:
        return make(1, 0)
    if len(extents) == 1:
        return make(extents[0], strides[0])
    count = len(extents)
    guards = [Guard((0,) * k + (1,) + (0,) * (count - 1 - k), used[k]) for k in range(count) if used[k] < extents[k]]
    return make(tuple(extents), tuple(strides), 0, (), tuple(guards))


def _looked_up_inverse(layout: Any, invert: Any) -> Any:
    """Return the inverse of a composition or of pages, looked up; of a swizzle over whole blocks, by swizzling back."""
    if isinstance(layout, ComposedLayout) and isinstance(layout.outer, Swizzle):
        undone = invert(layout.inner)
        if size(undone) % layout.outer.size == 0:
            return compose(undone, ComposedLayout(layout.outer, make(size(undone), 1)))
    if invert is right_inverse:
        return ComposedLayout(InverseLayout(layout), make(_gapless(layout), 1))
    if not is_injective(layout):
        first, second = _shared_place(layout)
        raise LayoutError(f"left_inverse of {layout}: it is not injective, coordinates {first} and {second} collide")
    return InverseLayout(layout)


def _shared_place(layout: LayoutLike) -> tuple[Any, Any]:
    """Return two coordinates that share a place."""
    import numpy as np

    places = np.concatenate([places for _, places, _ in chunks(layout)])
    order = np.argsort(places, kind="stable")
    twin = int(np.flatnonzero(np.diff(places[order]) == 0)[0])
    return idx2crd(int(order[twin]), layout.shape), idx2crd(int(order[twin + 1]), layout.shape)


def _gapless(layout: LayoutLike) -> int:
    """Return how many places from 0 on are all used."""
    import numpy as np

    places = np.unique(np.concatenate([places for _, places, _ in chunks(layout)]))
    places = places[places >= 0]
    gaps = np.flatnonzero(places != np.arange(len(places)))
    return int(gaps[0]) if len(gaps) else len(places)


def _inverse_over_axes(layout: Any, axes: Sequence[Axis | str] | None, invert: Any) -> Any:
    """Return the inverse whose arguments are the coordinates along the given axes."""
    if axes is None:
        raise LayoutError(f"{invert.__name__} of {layout}: say over which axes, as in axes=({', '.join(layout.axes)},)")
    names = [axis_name(axis) for axis in axes]
    outer = layout
    while isinstance(outer, ComposedLayout):
        outer = outer.outer
    missing = [name for name in used_axes(layout) if name not in names]
    if not isinstance(outer, Layout):
        raise LayoutError(f"{invert.__name__} of {layout}: its places lie on no axis; leave out axes={names}")
    if missing or any(along(step, PLAIN) for step in [*leaves(outer.stride), outer.offset]):
        raise LayoutError(f"{invert.__name__} of {layout}: axes {names} leave out {missing or 'the plain strides'}")
    if isinstance(layout, Layout):
        found = _axis_by_axis(layout, names, invert)
        if found is not None:
            return found
    reach = [cosize_along(layout, name) for name in names]
    weights = [prod([max(n, 2) for n in reach[:k]]) for k in range(len(reach))]
    return compose(invert(_folded(layout, dict(zip(names, weights, strict=True)))), make(tuple(reach), tuple(weights)))


def cosize_along(layout: Any, name: str) -> int:
    """Return the size of the smallest range that holds all coordinates along one axis.

    >>> from tilewright import bank
    >>> cosize_along(Layout(12, 1 @ bank), "bank"), cosize_along(Layout(12, 1 @ bank), "addr")
    (12, 1)
    """
    return int(layout.on(name).cosize) if name in layout.axes else 1


def _axis_by_axis(layout: Layout, names: list[str], invert: Any) -> Layout | None:
    """Return the inverse taken for each axis on its own, None where a mode moves along several axes."""
    modes = _indexed_modes(layout)
    if any(sum(map(bool, step._parts.values())) > 1 for step, _, _ in modes):
        return None
    parts = []
    for name in names:
        own = sorted([(along(step, name), n, at) for step, n, at in modes if along(step, name)])
        offset = along(layout.offset, name)
        if invert is right_inverse:
            parts.append(_right_inverse_of_modes(own, offset, layout))
        elif offset == 0 and _nests(own):
            parts.append(_nested_left_inverse(own))
        else:
            return None
    inverse = _with_guards_of(layout, make(*joined_parts(tuple(parts))))
    return inverse if isinstance(inverse, Layout) else None


def _folded(layout: Any, weights: dict[str, int]) -> Any:
    """Return the layout with its axes folded into one, each with a weight."""
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(_folded(layout.outer, weights), layout.inner)

    def as_index(step: Any) -> int:
        return int(sum(along(step, name) * weight for name, weight in weights.items()))

    return make(layout.shape, map_leaves(as_index, layout.stride), as_index(layout.offset), (), layout.guards)


def nullspace(layout: Layout) -> Layout:
    """Return the layout of all indices that broadcast modes send to place 0: layout(N(i)) == layout(0).

    >>> nullspace(Layout((2, 4, 3), (0, 1, 0)))
    Layout((2, 3), (1, 8))
    """
    require_strided(layout, "nullspace")
    steps = leaves(layout.stride)
    extents = leaves(layout.shape)
    index = [prod(extents[:k]) for k in range(len(extents))]
    found = [(n, at) for n, d, at in zip(extents, steps, index, strict=True) if d == 0 and n != 1]
    if not found:
        return make(1, 0)
    if len(found) == 1:
        return make(*found[0])
    return make(tuple([n for n, _ in found]), tuple([at for _, at in found]))


def max_common_layout(a: Any, b: Any) -> Any:
    """Return the longest layout R with a(R(i)) == i and b(R(i)) == i, and so for every such run of elements after it.

    These are the elements that both keep contiguous and in the same order, all over: a swizzle ends a run where it
    first could move one, though the first run may be longer.

    >>> max_common_layout(Layout(8), Layout((4, 2), (1, 4)))
    Layout(8, 1)
    >>> max_common_layout(Layout((4, 2), (2, 1)), Layout(8))
    Layout(1, 0)
    """
    a, b = as_function(a), as_function(b)
    if isinstance(a, Swizzle) or isinstance(b, Swizzle):
        raise LayoutError(f"max_common_layout of {a} and {b}: a swizzle has no shape; compose it with a layout first")
    if a.replicated or a.axes:
        raise LayoutError(f"max_common_layout of {a}: its places are not plain integers; leave out copies and axes")
    inverse = right_inverse(b)
    count = _common_run(compose(a, inverse))
    return compose(inverse, make(count, 1)) if count > 1 else make(1, 0)


def _common_run(layout: Any) -> int:
    """Return the length of the runs of data, each from a multiple of it on, in which places rise with the index."""
    if isinstance(layout, Layout) and not layout.guards:
        extents, steps = layout.canonical_modes()
        return int(extents[0]) if layout.offset == 0 and steps[0] == 1 else 1
    import numpy as np

    run, before = 0, (0, True)
    for index, places, valid in chunks(layout):
        shift = np.concatenate([[before[0]], places - index])
        is_data = np.concatenate([[before[1]], valid])
        ends = (is_data[1:] != is_data[:-1]) | (valid & (shift[1:] != shift[:-1]))
        run = int(np.gcd.reduce(index[ends], initial=run))
        if ends[0] and index[0] == 0:
            return 1
        before = shift[-1], is_data[-1]
    return run or int(layout.size)


def max_common_vector(a: Any, b: Any) -> int:
    """Return how many elements both layouts keep contiguous and in the same order, from the first on.

    >>> max_common_vector(Layout((4, 8)), Layout((4, 8), (1, 5)))
    4
    """
    return size(max_common_layout(a, b))
