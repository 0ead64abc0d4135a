# SPDX-License-Identifier: Apache-2.0
"""Composition: `compose(A, B)` is the function that takes i to A(B(i)), always.

Where the result is strided it is a `Layout`; the proof is short. Write A in coalesced form, so that an index has
digits in the mixed radix of A's extents. Each leaf of B moves the index by a fixed step, whose digits are fixed too.
As long as no sum of digits carries, A adds up leaf by leaf, and each leaf of B becomes a leaf with the stride that its
digits have under A. A leaf whose own digits carry is first cut where the carry happens. Where digits do carry, small
domains are compared point by point, and everything else stays an exact `ComposedLayout`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from ..errors import LayoutError
from .base import LayoutLike
from .bulk import chunks
from .composed import ComposedLayout
from .construct import make_layout, scaled
from .guards import Guard, live_guards
from .steps import merge_modes, span
from .strided import Layout, keep_axes, make
from .swizzle import Swizzle
from .tuples import as_tree, as_tuple, ceil_div, index_strides, leaves, like, map_leaves

# A piece of a leaf of the inner layout: its extent, its step in index space, and the digits of that step.
_Part: TypeAlias = "tuple[int, int, list[int]]"
FIT_LIMIT = 4096  # domains up to this size are compared point by point when the proof does not apply


def compose(outer: Any, inner: Any, *, strided: bool = False, exact: bool = False) -> Any:
    """Return the layout R with R(i) == outer(inner(i)) for every i in the domain of inner.

    R is a `Layout` where a strided one exists, else a `ComposedLayout`. Its shape refines the shape of inner. Where
    inner leaves the domain of outer, outer is continued (`outer.extended`) and R is not `valid` there. Inner may be a
    layout, an integer n (meaning `Layout(n)`), a `Swizzle`, None (leave as it is), or a tuple of these, which
    composes mode by mode.

    `strided=True` raises where layouts do not compose to a strided one (a swizzle never does, and is let through);
    `exact=True` raises where inner leaves the domain of outer.

    >>> compose(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    Layout(((2, 2), 3), ((24, 2), 8))
    >>> compose(Layout((12, (4, 8)), (59, (13, 1))), (3, 8))
    Layout((3, (4, 2)), (59, (13, 1)))
    >>> print(compose(Layout((3, 5), (5, 1)), Layout(6, 2)))
    (3,5):(5,1) o 6:2
    """
    result = _compose(as_function(outer), _as_tiler(as_tree(inner)))
    if exact:
        _require_inside(result, outer, inner)
    if strided and not _is_strided(result):
        raise LayoutError(
            f"compose: {outer} o {_shown(inner)} is not a strided layout, since extents and strides are not divisible;"
            " leave out strided=True to get an exact ComposedLayout"
        )
    return result


composition = compose


def as_function(value: Any) -> Any:
    """Return a layout or swizzle as it is, a shape as its compact layout.

    >>> as_function((4, 8))
    Layout((4, 8), (1, 4))
    """
    if isinstance(value, (LayoutLike, Swizzle)):
        return value
    if isinstance(value, (tuple, list)) and any(isinstance(part, LayoutLike) for part in value):
        return make_layout(*map(as_function, value))
    return Layout(value)


def _as_tiler(value: Any) -> Any:
    if value is None or isinstance(value, (LayoutLike, Swizzle)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple([_as_tiler(part) for part in value])
    return Layout(value)


def _compose(outer: Any, inner: Any) -> Any:
    if inner is None:
        return outer
    if isinstance(outer, ComposedLayout):
        return _compose(outer.outer, _compose(outer.inner, inner))
    if isinstance(inner, tuple):
        return compose_by_mode(outer, inner)
    if isinstance(inner, Swizzle):
        if isinstance(outer, Swizzle):
            raise LayoutError(
                f"{outer} o {inner} has no shape: compose swizzles with a layout, as in {outer} o ({inner} o L)"
            )
        inner = ComposedLayout(inner, make(outer.shape, index_strides(outer.shape)))
    if inner.axes:
        raise LayoutError(
            f"{inner} leads to named axes {', '.join(inner.axes)}, not to coordinates of {outer};"
            " take one axis with .on(axis), or put the named layout on the outer side"
        )
    if isinstance(outer, Swizzle):
        return _swizzled(outer, inner)
    if isinstance(inner, ComposedLayout):
        # associate to the left where the middle function is never continued, since only then both ways agree
        if isinstance(outer, Layout) and isinstance(inner.outer, Layout) and _stays_inside(inner.inner, inner.outer):
            middle = _compose(outer, inner.outer)
            if isinstance(middle, Layout) and not middle.guards:
                return _compose(middle, inner.inner)
        return ComposedLayout(outer, inner)
    if isinstance(outer, Layout) and isinstance(inner, Layout):
        found = strided_composition(outer, inner)
        return ComposedLayout(outer, inner) if found is None else found
    return ComposedLayout(outer, inner)


def _swizzled(swizzle: Swizzle, inner: LayoutLike) -> LayoutLike:
    if isinstance(inner, Layout) and inner.size and not inner.guards and not inner.replicas:
        low, high = inner.bounds
        lowest_read = (swizzle.source_mask & -swizzle.source_mask) or high + 1
        if low >= 0 and high < lowest_read:
            return inner  # no offset reaches the bits that the swizzle reads
    return ComposedLayout(swizzle, inner)


def _is_strided(layout: Any) -> bool:
    """Return whether no two strided layouts had to be left uncomposed."""
    if not isinstance(layout, ComposedLayout):
        return True
    if isinstance(layout.outer, Layout) and isinstance(layout.inner, Layout):
        return False
    return _is_strided(layout.outer) and _is_strided(layout.inner)


def _stays_inside(inner: LayoutLike, outer: Layout) -> bool:
    if not isinstance(inner, Layout) or inner.size == 0:
        return inner.size == 0
    low, high = inner.bounds
    return bool(low >= 0 and high < outer.size)


def _require_inside(result: Any, outer: Any, inner: Any) -> None:
    if isinstance(result, Layout):
        inside = not result.guards
    else:
        inside = all(bool(valid.all()) for _, _, valid in chunks(result))
    if not inside:
        raise LayoutError(
            f"compose: {_shown(inner)} leaves the domain of {outer} or its data, which exact=True forbids"
        )


def _shown(tiler: Any) -> str:
    if isinstance(tiler, (tuple, list)):
        return f"({', '.join(map(_shown, tiler))})"
    return str(tiler)


def strided_composition(a: Layout, b: Layout) -> Layout | None:
    """Return a o b as a strided layout, or None where there is none (or none can be proven).

    >>> strided_composition(Layout((4, 3), (3, 1)), Layout(24))
    Layout((4, 6), (3, 1), guards=(Guard(stride=(1, 4), limit=12, offset=0),))
    """
    canonical = None if a.guards else a.canonical_modes()
    found = _compose_channels(a._shape, [a._stride, *(guard.stride for guard in a.guards)], b, canonical)
    if found is None:
        return None
    guards = found.guards
    if a.guards or guards:
        guards = live_guards(found.shape, [*_continued_guards(a.guards, found), *guards])
    result = make(found.shape, found.trees[0], a.offset + found.starts[0], a.replicas + found.replicas, tuple(guards))
    return keep_axes(result, a.axes)


@dataclass(slots=True)
class _Strided:
    """Several functions of one index, composed with one tiler: a common shape, and strides for each of them."""

    shape: Any
    trees: list[Any]
    starts: list[Any]
    replicas: tuple[Any, ...]
    guards: Sequence[Guard]


def _continued_guards(guards: tuple[Guard, ...], found: _Strided) -> list[Guard]:
    """Return the guards of the outer layout, whose strides were composed as channels 1, 2, ..."""
    return [
        Guard(tree, guard.limit, guard.offset + start)
        for guard, tree, start in zip(guards, found.trees[1:], found.starts[1:], strict=True)
    ]


def _compose_channels(shape: Any, channels: list[Any], b: Layout, canonical: Any = None) -> _Strided | None:
    """Return every channel, a tree of strides over shape, composed with b; None if that is not strided."""
    if canonical is None:
        extents, lines = merge_modes(leaves(shape), [leaves(tree) for tree in channels])
    else:
        extents, lines = canonical[0], [canonical[1]]
    radix = extents[:-1]
    if 0 in radix:
        if b.size:
            raise LayoutError(f"cannot compose with {b}: the outer layout, of shape {shape}, is empty")
        return _Strided(b._shape, [b._stride] * len(channels), [0] * len(channels), (), ())
    offset, copies, bounds = b._rest
    ends = span(*b.flat_modes(), offset)
    own = _carry_free(radix, b, ends)
    if own is None:
        return _fitted(extents, lines[0], b) if len(lines) == 1 else None
    replicas: tuple[Any, ...] = ()
    if copies:
        replicas = tuple([(part[0], _stride_under(lines[0], part)) for parts in own[-len(copies) :] for part in parts])
        own = own[: -len(copies)]
    form = b._shape
    shape = _nested(form, [[part[0] for part in parts] for parts in own])
    trees = [_nested(form, [[_stride_under(line, part) for part in parts] for parts in own]) for line in lines]
    starts: list[Any] = [0] * len(lines)
    if offset:
        origin = _digits(abs(offset), radix)
        starts = [_value_at(line, origin) if offset > 0 else -_value_at(line, origin) for line in lines]
    guards = _refined_guards(b, [[part[0] for part in parts] for parts in own]) if bounds else []
    size = prod(extents)
    if ends[0] < 0 or ends[1] >= size:
        guards.append(Guard(_nested(form, [[part[1] for part in parts] for parts in own]), size, offset))
    return _Strided(shape, trees, starts, replicas, guards)


def _carry_free(radix: list[int], b: Layout, ends: tuple[int, int]) -> list[list[_Part]] | None:
    """Return the leaves (then the replicas) of b, whose places run from one end to the other, cut into parts.

    None if digits carry.
    """
    extents, steps = b.flat_modes()
    if b.replicas:
        extents = extents + [count for count, _ in b.replicas]
        steps = steps + [step for _, step in b.replicas]
        ends = span(extents, steps, b.offset)
    if 0 in extents:
        return [[(n, step, _digits(abs(step), radix))] for n, step in zip(extents, steps, strict=True)]
    if not radix:
        return [[(n, step, [abs(step)])] for n, step in zip(extents, steps, strict=True)]
    # below 0 the outer layout is odd, so an index that never rises above 0 is treated like its opposite
    lowest = ends[0] if ends[0] >= 0 else -ends[1]
    if lowest < 0:
        return None
    room = [n - 1 - digit for n, digit in zip(radix, _digits(lowest, radix), strict=False)]
    pieces = []
    for extent, step in zip(extents, steps, strict=True):
        parts = _cut(extent, step, radix)
        if parts is None:
            return None
        pieces.append(parts)
        for count, _, digits in parts:
            if count > 1:
                for k, digit in enumerate(digits[:-1]):
                    if digit:
                        room[k] -= (count - 1) * digit
    return None if min(room) < 0 else pieces


def _cut(extent: int, step: int, radix: list[int]) -> list[_Part] | None:
    """Return one leaf of b as parts of which none carries by itself, None if a carry falls inside a part."""
    parts = []
    while True:
        digits = _digits(abs(step), radix)
        run = extent
        for digit, n in zip(digits, radix, strict=False):
            if (extent - 1) * digit >= n:
                run = -(-n // digit)
                break
        if run == extent:
            parts.append((extent, step, digits))
            return parts
        if run == 1 or extent % run:
            return None
        parts.append((run, step, digits))
        extent = extent // run
        step = step * run


def _digits(index: int, radix: list[int]) -> list[int]:
    digits = []
    for n in radix:
        index, digit = divmod(index, n)
        digits.append(digit)
    digits.append(index)
    return digits


def _stride_under(line: list[Any], part: _Part) -> Any:
    """Return the stride that a step gets from its digits; a step back gets the opposite one."""
    total = _value_at(line, part[2])
    return total if part[1] >= 0 else -total


def _value_at(line: list[Any], digits: list[int]) -> Any:
    total: Any = 0
    for digit, step in zip(digits, line, strict=True):
        if digit:
            total = total + digit * step
    return total


def _nested(form: Any, values: list[list[Any]]) -> Any:
    """Return the values of each leaf's parts in the form of a tree; a leaf in several parts becomes a nested mode."""
    if form.__class__ is not tuple:
        return values[0][0] if len(values[0]) == 1 else tuple(values[0])
    return like(form, iter([parts[0] if len(parts) == 1 else tuple(parts) for parts in values]))


def _refined_guards(b: Layout, extents: list[list[int]]) -> list[Guard]:
    """Return the guards of b over leaves that were cut into parts of these extents."""
    return [
        Guard(_nested(b._shape, _refined_steps(guard.stride, extents)), guard.limit, guard.offset) for guard in b.guards
    ]


def _refined_steps(tree: Any, extents: list[list[int]]) -> list[list[Any]]:
    lines = []
    for step, parts in zip(leaves(tree), extents, strict=True):
        line = []
        for extent in parts:
            line.append(step)
            step = step * extent
        lines.append(line)
    return lines


def _fitted(extents: list[int], steps: list[Any], b: Layout) -> _Strided | None:
    """Return the composition as a strided one if all its points lie on it; None otherwise, or for large domains."""
    if b.size > FIT_LIMIT or b.replicas:
        return None
    radix = extents[:-1]

    def value(index: int) -> Any:
        total = _value_at(steps, _digits(abs(index), radix))
        return total if index >= 0 else -total

    start = value(b.offset)
    modes = []
    for extent, step in zip(leaves(b._shape), leaves(b._stride), strict=True):
        runs = _runs([value(b.offset + k * step) - start for k in range(extent)])
        if runs is None:
            return None
        modes.append(runs)
    cuts = [[n for n, _ in runs] for runs in modes]
    index = _refined_steps(b._stride, cuts)
    points: list[tuple[int, Any]] = [(b.offset, start)]
    for runs, line in zip(modes, index, strict=True):
        for (n, stride), step in zip(runs, line, strict=True):
            points = [(at + k * step, total + k * stride) for k in range(n) for at, total in points]
    if any(value(at) != total for at, total in points):
        return None
    form = b._shape
    shape = _nested(form, cuts)
    tree = _nested(form, [[d for _, d in runs] for runs in modes])
    guards = [*_refined_guards(b, cuts), Guard(_nested(form, index), prod(extents), b.offset)]
    return _Strided(shape, [tree], [start], (), live_guards(shape, guards))


def _runs(values: list[Any]) -> list[tuple[int, Any]] | None:
    """Return the modes of the layout with these values at 0, 1, 2, ..., None if there is none."""
    modes = []
    count, jump = len(values), 1
    while count > 1:
        step = values[jump]
        run = 2
        while run < count and values[run * jump] == run * step:
            run += 1
        if count % run:
            return None
        modes.append((run, step))
        jump *= run
        count //= run
    modes = modes or [(1, 0)]
    check = [0]
    for n, step in modes:
        check = [low + k * step for k in range(n) for low in check]
    return modes if check == values else None


def compose_by_mode(outer: Any, tilers: tuple[Any, ...]) -> Any:
    """Return outer with each mode composed with its own tiler; modes beyond the tilers stay.

    >>> compose_by_mode(Layout((8, 8)), (Layout(2, 4), Layout(4)))
    Layout((2, 4), (4, 8))
    """
    if isinstance(outer, ComposedLayout):
        return _compose(outer.outer, compose_by_mode(outer.inner, tilers))
    if not isinstance(outer, Layout):
        raise LayoutError(
            f"{outer} has no modes to compose with {_shown(tilers)} one by one; use a single layout as tiler"
        )
    found = _compose_modes(outer._shape, [outer._stride, *(guard.stride for guard in outer.guards)], tilers)
    if found is None:
        return _composed_by_index(outer, tilers)
    guards = [*_continued_guards(outer.guards, found), *found.guards]
    result = make(
        found.shape,
        found.trees[0],
        outer.offset + found.starts[0],
        outer.replicas + found.replicas,
        live_guards(found.shape, guards),
    )
    return keep_axes(result, outer.axes)


def _compose_modes(shape: Any, channels: list[Any], tiler: Any) -> _Strided | None:
    """Return every channel composed mode by mode with the tiler; None if a mode is not strided."""
    if tiler is None:
        return _Strided(shape, channels, [0] * len(channels), (), ())
    if not isinstance(tiler, tuple):
        return _compose_channels(shape, channels, tiler) if isinstance(tiler, Layout) else None
    shapes = as_tuple(shape)
    lines = [as_tuple(tree) for tree in channels]
    if len(tiler) > len(shapes):
        raise LayoutError(f"tiler {_shown(tiler)} has more modes than the shape {shape}, which has {len(shapes)}")
    modes = []
    for k, mode in enumerate(shapes):
        found = _compose_modes(mode, [line[k] for line in lines], tiler[k] if k < len(tiler) else None)
        if found is None:
            return None
        modes.append(found)
    guards = []
    if any(found.guards for found in modes):
        zeros = [map_leaves(lambda _: 0, found.shape) for found in modes]
        guards = [
            Guard((*zeros[:k], guard.stride, *zeros[k + 1 :]), guard.limit, guard.offset)
            for k, found in enumerate(modes)
            for guard in found.guards
        ]
    every = range(len(channels))
    return _Strided(
        tuple([found.shape for found in modes]),
        [tuple([found.trees[c] for found in modes]) for c in every],
        [sum([found.starts[c] for found in modes]) for c in every],
        sum([found.replicas for found in modes], ()),
        guards,
    )


def _composed_by_index(outer: Layout, tilers: tuple[Any, ...]) -> Any:
    """Return the mode-by-mode composition through the index of outer, each mode continued as far as its tiler goes."""
    reach, tiles = [], []
    below = 1
    for k, shape in enumerate(as_tuple(outer._shape)):
        tiler = tilers[k] if k < len(tilers) else None
        identity = make(shape, index_strides(shape))
        tile = _compose(identity, tiler) if isinstance(tiler, tuple) or tiler is None else tiler
        if not isinstance(tile, Layout) or (tile.size and tile.bounds[0] < 0):
            raise LayoutError(
                f"cannot compose mode {k} of {outer} with {_shown(tiler)}: a tiler by mode is strided and nonnegative"
            )
        extents = [n for n in leaves(shape) if n != 1] or [1]
        block = prod(extents[:-1]) or 1
        needed = max(tile.bounds[1] + 1 if tile.size else 1, prod(extents))
        reach.append(Layout(ceil_div(needed, block) * block))
        tiles.append(scaled(tile, below))
        below *= reach[-1].size
    return ComposedLayout(compose_by_mode(outer, tuple(reach)), make_layout(*tiles))
