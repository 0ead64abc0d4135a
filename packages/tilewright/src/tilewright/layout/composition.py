# SPDX-License-Identifier: Apache-2.0
"""Composition: `compose(A, B)` is the function that maps i to A(B(i)), defined for all layouts.

A worked example, in which A is 4 x 6 elements in rows, and B chooses some of its indices. Indices run down the columns:

    A = (4,6):(6,1)      index 0 1 2 3 is row 0 1 2 3 of column 0: offsets 0 6 12 18; index 4 is offset 1

    compose(A, 12:2)     every second index, 0 2 4 6 ...: offsets 0 12 1 13 2 14 ...
                         (2,6):(12,1): 2 fits into the 4 rows twice, and what is left goes along the columns
    compose(A, 8:3)      every third: 0 3 6 9 ... are offsets 0 18 13 8 ...: no strides give these,
                         so the answer is the pair itself, a `ComposedLayout` that evaluates both

    compose(10:3, 4:4)   indices 0 4 8 12, but A has 10: a `Layout(4, 12)` whose last coordinate is padding,
                         which its guard says, and `valid` answers

A strided answer is found mode by mode: the stride of a leaf of B is divided by the extents of A from the first on, the
extent is taken from what is left (`strided_composition`). Where that fails the function is compared point by point, up
to `MAX_FITTED_SIZE`, before it becomes a `ComposedLayout`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, SupportsIndex, TypeAlias

from .._integers import ceil_div
from ..errors import LayoutError
from .axes import Guard, Replica, Stride, live_guards, merge_modes, value_range
from .composed import ComposedLayout, PagedLayout, Swizzle
from .evaluation import chunks
from .layout import Layout, LayoutLike, add_axes, make_layout, require_layout
from .modes import LayoutArgument, as_function, join, scale
from .tuples import (
    Nested,
    Shape,
    ShapeArgument,
    as_integer,
    as_tree,
    as_tuple,
    index_strides,
    leaves,
    nest_like,
    prefix_product,
    product_each,
    zeros_like,
)

# Strided compositions, and the strided part of those that are not.

# A part of a leaf of the inner layout: its extent, its stride in index space, and the digits of that stride.
_Part: TypeAlias = "tuple[int, int, list[int]]"
# The leaves of a mode as (extent, stride); a stride of None is not strided.
LeafSteps: TypeAlias = "list[tuple[int, Any]]"
MAX_FITTED_SIZE = 4096  # domains up to this size are compared point by point when the proof does not apply


def strided_composition(a: Layout, b: Layout) -> Layout | None:
    """Return a o b as a strided layout; None where there is none, or none can be proven.

    >>> strided_composition(Layout((4, 3), (3, 1)), Layout(24))
    Layout((4, 6), (3, 1), guards=(Guard(stride=(1, 4), limit=12, offset=0),))
    """
    canonical = None if a.guards else a.canonical_modes()
    composed = compose_channels(a._shape, a._channels(), b, canonical)
    return None if composed is None else composed.to_layout(a)


@dataclass(slots=True)
class ComposedChannels:
    """Several strided functions of one index (channels), composed with one layout: a common shape, strides for each.

    >>> compose_channels((4, 8), [(8, 1)], Layout(2, 4)).strides
    [1]
    """

    shape: Any
    strides: list[Any]
    offsets: list[Any]
    replicas: tuple[Replica, ...]
    guards: Sequence[Guard]

    def to_layout(self, outer: Layout) -> Layout:
        """Return the composition of `outer`, which the channels are the strides and guards of.

        >>> compose_channels((4, 8), [(8, 1)], Layout(2, 4)).to_layout(Layout((4, 8), (8, 1)) + 5)
        Layout(2, 1, offset=5)
        """
        guards = self.guards
        if outer.guards or guards:
            channels = zip(outer.guards, self.strides[1:], self.offsets[1:], strict=True)
            composed = [guard.with_stride(stride, offset) for guard, stride, offset in channels]
            guards = live_guards(self.shape, [*composed, *guards])
        offset, replicas = outer.offset + self.offsets[0], outer.replicas + self.replicas
        return add_axes(make_layout(self.shape, self.strides[0], offset, replicas, tuple(guards)), outer.axes)


def compose_channels(
    shape: Shape, channels: list[Any], b: Layout, canonical: tuple[list[int], list[Any]] | None = None
) -> ComposedChannels | None:
    """Return every channel, a tree of strides over `shape`, composed with b; None if the result is not strided.

    `canonical` are the coalesced extents and strides of a single channel, if they are known.

    >>> compose_channels((4, 8), [(8, 1)], Layout((2, 2), (2, 4))).strides
    [(16, 1)]
    """
    if canonical is None:
        extents, lines = merge_modes(leaves(shape), [leaves(tree) for tree in channels])
    else:
        extents, lines = canonical[0], [canonical[1]]
    radix = extents[:-1]
    if 0 in radix:
        if b.size:
            raise LayoutError(f"cannot compose with {b}: the outer layout, of shape {shape}, is empty")
        return ComposedChannels(b._shape, [b._stride] * len(channels), [0] * len(channels), (), ())
    offset, copies, bounds = b.offset, b.replicas, b.guards
    ends = value_range(*b.flat_modes(), offset)
    own = _carry_free_parts(radix, b, ends)
    if own is None:
        return _fit_by_points(extents, lines[0], b) if len(lines) == 1 else None
    replicas: tuple[Any, ...] = ()
    if copies:
        replicas = tuple(
            [(part[0], _stride_of_part(lines[0], part)) for parts in own[-len(copies) :] for part in parts]
        )
        own = own[: -len(copies)]
    form = b._shape
    shape = _nest_parts(form, [[part[0] for part in parts] for parts in own])
    trees = [_nest_parts(form, [[_stride_of_part(line, part) for part in parts] for parts in own]) for line in lines]
    offsets: list[Any] = [0] * len(lines)
    if offset:
        origin = _digits(abs(offset), radix)
        offsets = [_evaluate_digits(line, origin) if offset > 0 else -_evaluate_digits(line, origin) for line in lines]
    guards = _split_guards(b, [[part[0] for part in parts] for parts in own]) if bounds else []
    size = prod(extents)
    if ends[0] < 0 or ends[1] >= size:
        guards.append(Guard(_nest_parts(form, [[part[1] for part in parts] for parts in own]), size, offset))
    return ComposedChannels(shape, trees, offsets, replicas, guards)


def _carry_free_parts(radix: list[int], b: Layout, ends: tuple[int, int]) -> list[list[_Part]] | None:
    """Return the leaves, then the replicas, of b cut into parts; None if digits carry.

    `ends` are the lowest and the highest offset of b.
    """
    extents, strides = b.flat_modes()
    if b.replicas:
        extents = extents + [count for count, _ in b.replicas]
        strides = strides + [stride for _, stride in b.replicas]
        ends = value_range(extents, strides, b.offset)
    if 0 in extents:
        return [[(n, stride, _digits(abs(stride), radix))] for n, stride in zip(extents, strides, strict=True)]
    if not radix:
        return [[(n, stride, [abs(stride)])] for n, stride in zip(extents, strides, strict=True)]
    # A(-i) is -A(i), so indices that are never positive are treated like their opposites
    lowest = ends[0] if ends[0] >= 0 else -ends[1]
    if lowest < 0:
        return None
    headroom = [n - 1 - digit for n, digit in zip(radix, _digits(lowest, radix), strict=False)]
    pieces = []
    for extent, stride in zip(extents, strides, strict=True):
        parts = _cut_at_carries(extent, stride, radix)
        if parts is None:
            return None
        pieces.append(parts)
        for count, _, digits in parts:
            if count > 1:
                for k, digit in enumerate(digits[:-1]):
                    if digit:
                        headroom[k] -= (count - 1) * digit
    return None if min(headroom) < 0 else pieces


def _cut_at_carries(extent: int, stride: int, radix: list[int]) -> list[_Part] | None:
    """Return one leaf of b as parts that do not carry by themselves; None if a carry falls inside a part."""
    parts = []
    while True:
        digits = _digits(abs(stride), radix)
        run = extent
        for digit, n in zip(digits, radix, strict=False):
            if (extent - 1) * digit >= n:
                run = -(-n // digit)
                break
        if run == extent:
            parts.append((extent, stride, digits))
            return parts
        if run == 1 or extent % run:
            return None
        parts.append((run, stride, digits))
        extent = extent // run
        stride = stride * run


def _digits(index: int, radix: list[int]) -> list[int]:
    """Return the digits of an index in a mixed radix, lowest first; the last digit is unbounded."""
    digits = []
    for n in radix:
        index, digit = divmod(index, n)
        digits.append(digit)
    digits.append(index)
    return digits


def _stride_of_part(line: list[Any], part: _Part) -> Any:
    """Return the stride of a part from the digits of its stride in index space; a negative one gives the opposite."""
    total = _evaluate_digits(line, part[2])
    return total if part[1] >= 0 else -total


def _evaluate_digits(line: list[Any], digits: list[int]) -> Any:
    """Return the sum of digits times strides."""
    total: Any = 0
    for digit, stride in zip(digits, line, strict=True):
        if digit:
            total = total + digit * stride
    return total


def _nest_parts(form: Shape, values: list[list[Any]]) -> Any:
    """Return the values of the parts of each leaf, nested like `form`; a leaf of several parts is a nested mode."""
    if not isinstance(form, tuple):
        return values[0][0] if len(values[0]) == 1 else tuple(values[0])
    return nest_like(form, iter([parts[0] if len(parts) == 1 else tuple(parts) for parts in values]))


def _split_guards(b: Layout, extents: list[list[int]]) -> list[Guard]:
    """Return the guards of b over leaves that are cut into parts with these extents."""
    return [guard.with_stride(_nest_parts(b._shape, _split_strides(guard.stride, extents))) for guard in b.guards]


def _split_strides(tree: Nested[Any], extents: list[list[int]]) -> list[list[Any]]:
    """Return the stride of every part, per leaf of a tree of strides."""
    lines = []
    for stride, parts in zip(leaves(tree), extents, strict=True):
        line = []
        for extent in parts:
            line.append(stride)
            stride = stride * extent
        lines.append(line)
    return lines


def _fit_by_points(extents: list[int], strides: list[Any], b: Layout) -> ComposedChannels | None:
    """Return the strided composition that agrees with all points of b; None if there is none, or b is large."""
    if b.size > MAX_FITTED_SIZE or b.replicas:
        return None
    radix = extents[:-1]

    def value(index: int) -> Any:
        total = _evaluate_digits(strides, _digits(abs(index), radix))
        return total if index >= 0 else -total

    start = value(b.offset)
    modes = []
    for extent, step in zip(leaves(b._shape), leaves(b._stride), strict=True):
        runs = _find_runs([value(b.offset + k * step) - start for k in range(extent)])
        if runs is None:
            return None
        modes.append(runs)
    cuts = [[n for n, _ in runs] for runs in modes]
    index = _split_strides(b._stride, cuts)
    points: list[tuple[int, Any]] = [(b.offset, start)]
    for runs, line in zip(modes, index, strict=True):
        for (n, stride), step in zip(runs, line, strict=True):
            points = [(i + k * step, total + k * stride) for k in range(n) for i, total in points]
    if any(value(i) != total for i, total in points):
        return None
    form = b._shape
    shape = _nest_parts(form, cuts)
    tree = _nest_parts(form, [[d for _, d in runs] for runs in modes])
    guards = [*_split_guards(b, cuts), Guard(_nest_parts(form, index), prod(extents), b.offset)]
    return ComposedChannels(shape, [tree], [start], (), live_guards(shape, guards))


def _find_runs(values: list[Any]) -> list[tuple[int, Any]] | None:
    """Return (extent, stride) modes of the layout with these values at 0, 1, 2, ...; None if there is none."""
    modes = []
    count, jump = len(values), 1
    while count > 1:
        stride = values[jump]
        run = 2
        while run < count and values[run * jump] == run * stride:
            run += 1
        if count % run:
            return None
        modes.append((run, stride))
        jump *= run
        count //= run
    modes = modes or [(1, 0)]
    check = [0]
    for n, stride in modes:
        check = [low + k * stride for k in range(n) for low in check]
    return modes if check == values else None


def strided_leaves(layout: LayoutLike) -> list[LeafSteps]:
    """Return the leaves of each top-level mode as (extent, stride), fastest first; a stride of None is not strided.

    A composition is often strided within small blocks: pages over banks are shuffled, but inside a page everything is
    strides. `layout(x)` is the sum of coordinate * stride over the strided leaves, plus `layout` at x with those at 0.

    >>> from tilewright import Layout, compose
    >>> strided_leaves(compose(Layout((64, (12, 9)), (1, (1000, 64))), Layout((64, (5, 7)), (1, (64, 320)))))
    [[(64, 1)], [(5, None), (7, None)]]
    """
    if isinstance(layout, Layout):
        return _leaves_by_mode(layout.shape, layout.stride)
    if isinstance(layout, ComposedLayout) and _is_shift(layout.outer):
        return strided_leaves(layout.inner)
    if isinstance(layout, ComposedLayout) and isinstance(layout.inner, Layout) and not layout.inner.replicas:
        outer, inner = layout.outer, layout.inner
        if isinstance(outer, Swizzle):
            touched = outer.source_mask | outer.target_mask
            lowest = touched & -touched
            modes = (
                _strided_around(inner, lowest, outer.size) or _strided_within(inner, [lowest], None)
                if touched
                else None
            )
        elif isinstance(outer, Layout):
            modes = _strided_within(inner, list(accumulate(outer.canonical_modes()[0][:-1], mul))[::-1], outer)
        elif isinstance(outer, PagedLayout):
            modes = _strided_within(inner, [outer.page], None)
        else:
            modes = None
        if modes is not None:
            return modes
    return [[(extent, None) for extent, _ in mode] for mode in _leaves_by_mode(layout.shape, layout.shape)]


def _is_shift(layout: object) -> bool:
    """Return whether a layout only adds its offset."""
    return isinstance(layout, Layout) and layout.depth == 0 and layout.stride == 1 and not layout.replicas


def _strided_within(inner: Layout, blocks: list[int], outer: Layout | None) -> list[LeafSteps] | None:
    """Return the leaves of `inner`, strided where they stay inside a block of indices, for the first block that works.

    Inside a block the outer function is `outer`, or the identity.
    """
    if inner.offset < 0 or any(stride < 0 for stride in inner.flat_modes()[1]):
        return None
    for block in blocks:
        modes = [split_mode(mode, block) for mode in _leaves_by_mode(inner.shape, inner.stride)]
        low = [[stride % block != 0 for _, stride in mode] for mode in modes]
        reach = sum((n - 1) * d for mode in modes for n, d in mode if d % block)
        if inner.offset % block + reach >= block or not any(map(any, low)):
            continue
        shape = tuple([tuple([n for n, _ in mode]) for mode in modes])
        low_strides = tuple(
            [tuple([d if f else 0 for (_, d), f in zip(m, fs, strict=True)]) for m, fs in zip(modes, low, strict=True)]
        )
        part = make_layout(shape, low_strides, inner.offset % block)
        through = part if outer is None else strided_composition(make_layout(outer.shape, outer.stride), part)
        if through is None:
            continue
        return [
            [
                (extent, stride if is_low else None)
                for leaf, steps, is_low in zip(extents, strides, flags, strict=True)
                for extent, stride in zip(leaves(leaf), leaves(steps), strict=True)
            ]
            for extents, strides, flags in zip(through.shape, through.stride, low, strict=True)
        ]
    return None


def _strided_around(inner: Layout, low: int, high: int) -> list[LeafSteps] | None:
    """Return the leaves of `inner`, strided below `low` and from `high` on; None if a sum carries past either."""
    if inner.offset < 0 or any(stride < 0 for stride in inner.flat_modes()[1]):
        return None
    modes = [split_mode(split_mode(mode, low), high) for mode in _leaves_by_mode(inner.shape, inner.stride)]
    flat = [leaf for mode in modes for leaf in mode]
    for block in (low, high):
        if inner.offset % block + sum((n - 1) * d for n, d in flat if d % block) >= block:
            return None
    return [[(n, d if d % low or d % high == 0 else None) for n, d in mode] for mode in modes]


def split_mode(mode: Sequence[tuple[int, Any]], size: int) -> LeafSteps:
    """Return a mode with leaves that cross a multiple of `size` split there, if that is possible evenly.

    >>> split_mode([(12, 64)], 128)
    [(2, 64), (6, 128)]
    """
    split: LeafSteps = []
    for n, stride in mode:
        count = size // stride if stride and size % stride == 0 else 0
        split += [(count, stride), (n // count, size)] if 1 < count < n and n % count == 0 else [(n, stride)]
    return split


def _leaves_by_mode(shape: Shape, stride: Stride) -> list[LeafSteps]:
    """Return the (extent, stride) leaves of every top-level mode."""
    modes = zip(as_tuple(shape), as_tuple(stride), strict=True)
    return [list(zip(leaves(s), leaves(d), strict=True)) for s, d in modes]


# A tile of a mode: an integer n (`Layout(n)`), a layout, None (leave the mode whole), or a tuple of these per mode.
Tiler: TypeAlias = "LayoutLike | Swizzle | SupportsIndex | tuple[Tiler, ...] | list[Any] | None"


def compose(outer: LayoutArgument, inner: Tiler, *, strided: bool = False, exact: bool = False) -> Layout | Any:
    """Return the layout R with R(i) == outer(inner(i)) for every i in the domain of `inner`.

    R is a `Layout` where a strided one exists, else a `ComposedLayout`. Its shape refines the shape of `inner`. Where
    `inner` leaves the domain of `outer`, R is `outer.extended` and not `valid`. `inner` may be a layout, an integer n
    (meaning `Layout(n)`), a `Swizzle`, None (unchanged), or a tuple of these, which composes mode by mode.

    `strided=True` raises if two strided layouts do not compose to a strided one; `exact=True` raises if `inner` leaves
    the domain of `outer`.

    >>> compose(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    Layout(((2, 2), 3), ((24, 2), 8))
    >>> compose(Layout((12, (4, 8)), (59, (13, 1))), (3, 8))
    Layout((3, (4, 2)), (59, (13, 1)))
    >>> print(compose(Layout((3, 5), (5, 1)), Layout(6, 2)))
    (3,5):(5,1) o 6:2
    """
    result = _compose(as_function(outer), _as_tiler(as_tree(inner)))
    if exact:
        _require_within_domain(result, outer, inner)
    if strided and not _is_fully_composed(result):
        raise LayoutError(
            f"compose: {outer} o {_format_tiler(inner)} is not strided: extents and strides are not divisible;"
            " without strided=True the result is an exact ComposedLayout"
        )
    return result


def _as_tiler(value: Tiler) -> Any:
    """Return an inner function: integers as layouts, tuples entry by entry."""
    if value is None or isinstance(value, (LayoutLike, Swizzle)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple([_as_tiler(part) for part in value])
    return Layout(value)


def _compose(outer: LayoutLike | Swizzle, inner: LayoutLike | Swizzle | tuple[Tiler, ...] | None) -> Any:
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
        inner = ComposedLayout(inner, make_layout(outer.shape, index_strides(outer.shape)))
    if inner.axes:
        raise LayoutError(
            f"{inner} maps to the axes {', '.join(inner.axes)}, not to coordinates of {outer};"
            " take one axis with .project(axis), or use it as the outer layout"
        )
    if isinstance(outer, Swizzle):
        return _compose_swizzle(outer, inner)
    if isinstance(inner, ComposedLayout):
        # associating to the left is the same function only if the middle one is never extended
        if isinstance(outer, Layout) and isinstance(inner.outer, Layout) and _maps_into(inner.inner, inner.outer):
            middle = _compose(outer, inner.outer)
            if isinstance(middle, Layout) and not middle.guards:
                return _compose(middle, inner.inner)
        return ComposedLayout(outer, inner)
    if isinstance(outer, Layout) and isinstance(inner, Layout):
        strided = strided_composition(outer, inner)
        return ComposedLayout(outer, inner) if strided is None else strided
    return ComposedLayout(outer, inner)


def _compose_swizzle(swizzle: Swizzle, inner: LayoutLike) -> LayoutLike:
    if isinstance(inner, Layout) and inner.size and not inner.guards and not inner.replicas:
        low, high = inner.bounds
        lowest_read = (swizzle.source_mask & -swizzle.source_mask) or high + 1
        if low >= 0 and high < lowest_read:
            return inner  # no offset has the bits that the swizzle reads
    return ComposedLayout(swizzle, inner)


def _is_fully_composed(layout: object) -> bool:
    """Return whether the result contains no composition of two strided layouts."""
    if not isinstance(layout, ComposedLayout):
        return True
    if isinstance(layout.outer, Layout) and isinstance(layout.inner, Layout):
        return False
    return _is_fully_composed(layout.outer) and _is_fully_composed(layout.inner)


def _maps_into(inner: LayoutLike, outer: Layout) -> bool:
    """Return whether every offset of `inner` is an index of `outer`."""
    if not isinstance(inner, Layout) or inner.size == 0:
        return inner.size == 0
    low, high = inner.bounds
    return bool(low >= 0 and high < outer.size)


def _require_within_domain(result: LayoutLike, outer: LayoutArgument, inner: Tiler) -> None:
    if isinstance(result, Layout):
        inside = not result.guards
    else:
        inside = all(bool(valid.all()) for _, _, valid in chunks(result))
    if not inside:
        raise LayoutError(
            f"compose: {_format_tiler(inner)} leaves the data of {outer}; without exact=True the rest is padding"
        )


def _format_tiler(tiler: Tiler) -> str:
    """Return the text of a tiler, layouts in their short form."""
    if isinstance(tiler, (tuple, list)):
        return f"({', '.join(map(_format_tiler, tiler))})"
    return str(tiler)


def compose_by_mode(outer: LayoutLike | Swizzle, tilers: tuple[Tiler, ...]) -> Layout | Any:
    """Return `outer` with each mode composed with its own tiler; modes without a tiler stay.

    >>> compose_by_mode(Layout((8, 8)), (Layout(2, 4), Layout(4)))
    Layout((2, 4), (4, 8))
    """
    if isinstance(outer, ComposedLayout):
        return _compose(outer.outer, compose_by_mode(outer.inner, tilers))
    if not isinstance(outer, Layout):
        raise LayoutError(
            f"{outer} is not strided and cannot be composed with {_format_tiler(tilers)} mode by mode; use one layout"
        )
    composed = _compose_modes(outer._shape, outer._channels(), tilers)
    return _compose_by_index(outer, tilers) if composed is None else composed.to_layout(outer)


def _compose_modes(shape: Shape, channels: list[Any], tiler: Tiler) -> ComposedChannels | None:
    """Return every channel composed mode by mode with the tiler; None if a mode is not strided."""
    if tiler is None:
        return ComposedChannels(shape, channels, [0] * len(channels), (), ())
    if not isinstance(tiler, tuple):
        return compose_channels(shape, channels, tiler) if isinstance(tiler, Layout) else None
    shapes = as_tuple(shape)
    lines = [as_tuple(tree) for tree in channels]
    if len(tiler) > len(shapes):
        raise LayoutError(
            f"tiler {_format_tiler(tiler)} has more modes than the shape {shape}, which has {len(shapes)}"
        )
    modes = []
    for k, mode in enumerate(shapes):
        composed = _compose_modes(mode, [line[k] for line in lines], tiler[k] if k < len(tiler) else None)
        if composed is None:
            return None
        modes.append(composed)
    guards = []
    if any(mode.guards for mode in modes):
        zeros = [zeros_like(mode.shape) for mode in modes]
        guards = [
            guard.with_stride((*zeros[:k], guard.stride, *zeros[k + 1 :]))
            for k, mode in enumerate(modes)
            for guard in mode.guards
        ]
    return ComposedChannels(
        tuple([mode.shape for mode in modes]),
        [tuple([mode.strides[c] for mode in modes]) for c in range(len(channels))],
        [sum([mode.offsets[c] for mode in modes]) for c in range(len(channels))],
        sum([mode.replicas for mode in modes], ()),
        guards,
    )


def _compose_by_index(outer: Layout, tilers: tuple[Tiler, ...]) -> LayoutLike:
    """Return the mode-by-mode composition via the index of `outer`, each mode extended as far as its tiler needs."""
    domains, tiles = [], []
    below = 1
    for k, shape in enumerate(as_tuple(outer._shape)):
        tiler = tilers[k] if k < len(tilers) else None
        identity = make_layout(shape, index_strides(shape))
        tile = _compose(identity, tiler) if isinstance(tiler, tuple) or tiler is None else tiler
        if not isinstance(tile, Layout) or (tile.size and tile.bounds[0] < 0):
            raise LayoutError(
                f"cannot compose mode {k} of {outer} with {_format_tiler(tiler)}: use a strided, nonnegative tiler"
            )
        extents = [n for n in leaves(shape) if n != 1] or [1]
        block = prod(extents[:-1]) or 1
        needed = max(tile.bounds[1] + 1 if tile.size else 0, prod(extents))
        domains.append(Layout(ceil_div(needed, block) * block))
        tiles.append(scale(tile, below))
        below *= domains[-1].size
    return ComposedLayout(compose_by_mode(outer, tuple(domains)), join(*tiles))


def pad(layout: LayoutLike, shape: ShapeArgument) -> Layout | Any:
    """Return the function of `layout` on a larger `shape`, one extent per mode; the added coordinates are padding.

    Strides stay as they are. To reserve memory for the padding, build the padded layout and use `with_logical_shape`.

    >>> padded = pad(Layout(100), 128)
    >>> padded.size, padded.valid(99), padded.valid(100)
    (128, True, False)
    >>> pad(Layout((60, 90)), (64, 96)).logical_shape
    (60, 90)
    """
    padded = _validate_extents(layout, shape, "pad")
    extents = product_each(layout.shape)
    for n, extent in zip(padded, extents, strict=True):
        if n < extent:
            raise LayoutError(f"cannot pad {layout} to {shape}: {n} is less than the extent {extent}")
    tilers = tuple([None if n == extent else Layout(n) for n, extent in zip(padded, extents, strict=True)])
    return compose(layout, tilers if isinstance(layout.shape, tuple) else tilers[0])


def with_logical_shape(layout: LayoutLike, shape: ShapeArgument) -> Layout | Any:
    """Return `layout` with only the coordinates inside `shape`, one extent per mode, as data; the rest is padding.

    >>> from tilewright import row_major
    >>> stored = with_logical_shape(row_major(64, 96), (60, 90))
    >>> stored(1, 0), stored.valid(59, 89), stored.valid(60, 0)
    (96, True, False)
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.outer, with_logical_shape(layout.inner, shape))
    extents = _validate_extents(layout, shape, "with_logical_shape")
    modes = layout.shape
    if not isinstance(layout, Layout):
        return ComposedLayout(layout, with_logical_shape(make_layout(modes, index_strides(modes)), shape))
    sizes = product_each(modes)
    padded = [k for k, extent in enumerate(extents) if extent < sizes[k]] if layout.size else []
    if not isinstance(modes, tuple):
        guards = [Guard(1, extents[k]) for k in padded]
    else:
        zeros = [zeros_like(mode) for mode in modes]
        guards = [Guard((*zeros[:k], prefix_product(modes[k]), *zeros[k + 1 :]), extents[k]) for k in padded]
    return layout._with(guards=tuple(dict.fromkeys([*layout.guards, *guards])))


def _validate_extents(layout: LayoutLike, shape: ShapeArgument, caller: str) -> tuple[int, ...]:
    """Return `shape` as one extent per mode of `layout`."""
    require_layout(layout, caller)
    extents = as_tuple(as_tree(shape))
    if len(extents) != layout.rank:
        raise LayoutError(
            f"{caller}: {layout} has {layout.rank} modes, but {shape} has {len(extents)} extents; give one per mode"
        )
    for n in extents:
        if isinstance(n, tuple):
            raise LayoutError(f"{caller}: {shape} is nested; give one extent for each top-level mode")
        if as_integer(n, f"{caller}: an extent") < 0:
            raise LayoutError(f"{caller}: extent {n} is negative; extents must be nonnegative")
    return tuple([int(n) for n in extents])
