# SPDX-License-Identifier: Apache-2.0
"""Strided compositions, and the strided part of those that are not.

The proof that a composition A o B is strided is short. Write A in coalesced form, so that an index has digits in the
mixed radix of A's extents. Each leaf of B advances the index by a fixed step with fixed digits. As long as no sum of
digits carries, A is additive over the leaves of B, and each leaf of B gets the stride that its digits have under A. A
leaf with digits that carry by themselves is first cut where the carry happens. Where digits do carry, small domains are
compared point by point; everything else is not strided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, TypeAlias

from ..errors import LayoutError
from .axes import Stride
from .composed_layout import ComposedLayout
from .layout import Layout, add_axes, make_layout
from .layout_like import LayoutLike
from .strides import Guard, Replica, live_guards, merge_modes, value_range
from .swizzle import Swizzle
from .table_layouts import PagedLayout
from .tuples import Nested, Shape, as_tuple, leaves, nest_like

# A part of a leaf of the inner layout: its extent, its step in index space, and the digits of that step.
_Part: TypeAlias = "tuple[int, int, list[int]]"
# The leaves of a mode as (extent, step); a step of None is not strided.
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

    `ends` are the lowest and the highest place of b.
    """
    extents, steps = b.flat_modes()
    if b.replicas:
        extents = extents + [count for count, _ in b.replicas]
        steps = steps + [step for _, step in b.replicas]
        ends = value_range(extents, steps, b.offset)
    if 0 in extents:
        return [[(n, step, _digits(abs(step), radix))] for n, step in zip(extents, steps, strict=True)]
    if not radix:
        return [[(n, step, [abs(step)])] for n, step in zip(extents, steps, strict=True)]
    # A(-i) is -A(i), so indices that are never positive are treated like their opposites
    lowest = ends[0] if ends[0] >= 0 else -ends[1]
    if lowest < 0:
        return None
    headroom = [n - 1 - digit for n, digit in zip(radix, _digits(lowest, radix), strict=False)]
    pieces = []
    for extent, step in zip(extents, steps, strict=True):
        parts = _cut_at_carries(extent, step, radix)
        if parts is None:
            return None
        pieces.append(parts)
        for count, _, digits in parts:
            if count > 1:
                for k, digit in enumerate(digits[:-1]):
                    if digit:
                        headroom[k] -= (count - 1) * digit
    return None if min(headroom) < 0 else pieces


def _cut_at_carries(extent: int, step: int, radix: list[int]) -> list[_Part] | None:
    """Return one leaf of b as parts that do not carry by themselves; None if a carry falls inside a part."""
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
    """Return the digits of an index in a mixed radix, lowest first; the last digit is unbounded."""
    digits = []
    for n in radix:
        index, digit = divmod(index, n)
        digits.append(digit)
    digits.append(index)
    return digits


def _stride_of_part(line: list[Any], part: _Part) -> Any:
    """Return the stride of a part from the digits of its step; a negative step has the opposite stride."""
    total = _evaluate_digits(line, part[2])
    return total if part[1] >= 0 else -total


def _evaluate_digits(line: list[Any], digits: list[int]) -> Any:
    """Return the sum of digits times strides."""
    total: Any = 0
    for digit, step in zip(digits, line, strict=True):
        if digit:
            total = total + digit * step
    return total


def _nest_parts(form: Shape, values: list[list[Any]]) -> Any:
    """Return the values of the parts of each leaf, nested like `form`; a leaf of several parts is a nested mode."""
    if not isinstance(form, tuple):
        return values[0][0] if len(values[0]) == 1 else tuple(values[0])
    return nest_like(form, iter([parts[0] if len(parts) == 1 else tuple(parts) for parts in values]))


def _split_guards(b: Layout, extents: list[list[int]]) -> list[Guard]:
    """Return the guards of b over leaves that are cut into parts with these extents."""
    return [guard.with_stride(_nest_parts(b._shape, _split_steps(guard.stride, extents))) for guard in b.guards]


def _split_steps(tree: Nested[Any], extents: list[list[int]]) -> list[list[Any]]:
    """Return the step of every part, per leaf of a tree of steps."""
    lines = []
    for step, parts in zip(leaves(tree), extents, strict=True):
        line = []
        for extent in parts:
            line.append(step)
            step = step * extent
        lines.append(line)
    return lines


def _fit_by_points(extents: list[int], steps: list[Any], b: Layout) -> ComposedChannels | None:
    """Return the strided composition that agrees with all points of b; None if there is none, or b is large."""
    if b.size > MAX_FITTED_SIZE or b.replicas:
        return None
    radix = extents[:-1]

    def value(index: int) -> Any:
        total = _evaluate_digits(steps, _digits(abs(index), radix))
        return total if index >= 0 else -total

    start = value(b.offset)
    modes = []
    for extent, step in zip(leaves(b._shape), leaves(b._stride), strict=True):
        runs = _find_runs([value(b.offset + k * step) - start for k in range(extent)])
        if runs is None:
            return None
        modes.append(runs)
    cuts = [[n for n, _ in runs] for runs in modes]
    index = _split_steps(b._stride, cuts)
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


def strided_leaves(layout: LayoutLike) -> list[LeafSteps]:
    """Return the leaves of each top-level mode as (extent, step), fastest first; a step of None is not strided.

    A composition is often strided within small blocks: pages over banks are shuffled, but inside a page everything is
    strides. `layout(x)` is the sum of coordinate * step over the strided leaves, plus `layout` at x with those at 0.

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
    if inner.offset < 0 or any(step < 0 for step in inner.flat_modes()[1]):
        return None
    for block in blocks:
        modes = [_split_at(block, mode) for mode in _leaves_by_mode(inner.shape, inner.stride)]
        low = [[step % block != 0 for _, step in mode] for mode in modes]
        reach = sum((n - 1) * d for mode in modes for n, d in mode if d % block)
        if inner.offset % block + reach >= block or not any(map(any, low)):
            continue
        shape = tuple([tuple([n for n, _ in mode]) for mode in modes])
        low_steps = tuple(
            [tuple([d if f else 0 for (_, d), f in zip(m, fs, strict=True)]) for m, fs in zip(modes, low, strict=True)]
        )
        part = make_layout(shape, low_steps, inner.offset % block)
        through = part if outer is None else strided_composition(make_layout(outer.shape, outer.stride), part)
        if through is None:
            continue
        return [
            [
                (extent, step if is_low else None)
                for leaf, steps, is_low in zip(extents, strides, flags, strict=True)
                for extent, step in zip(leaves(leaf), leaves(steps), strict=True)
            ]
            for extents, strides, flags in zip(through.shape, through.stride, low, strict=True)
        ]
    return None


def _strided_around(inner: Layout, low: int, high: int) -> list[LeafSteps] | None:
    """Return the leaves of `inner`, strided below `low` and from `high` on; None if a sum carries past either."""
    if inner.offset < 0 or any(step < 0 for step in inner.flat_modes()[1]):
        return None
    modes = [_split_at(high, _split_at(low, mode)) for mode in _leaves_by_mode(inner.shape, inner.stride)]
    flat = [leaf for mode in modes for leaf in mode]
    for block in (low, high):
        if inner.offset % block + sum((n - 1) * d for n, d in flat if d % block) >= block:
            return None
    return [[(n, d if d % low or d % high == 0 else None) for n, d in mode] for mode in modes]


def _split_at(block: int, mode: LeafSteps) -> LeafSteps:
    """Return the leaves of a mode; a leaf that crosses `block` after a whole number of steps is split there."""
    split: LeafSteps = []
    for n, step in mode:
        count = block // step if step and block % step == 0 else 0
        split += [(count, step), (n // count, block)] if 1 < count < n and n % count == 0 else [(n, step)]
    return split


def _leaves_by_mode(shape: Shape, stride: Stride) -> list[LeafSteps]:
    """Return the (extent, stride) leaves of every top-level mode."""
    modes = zip(as_tuple(shape), as_tuple(stride), strict=True)
    return [list(zip(leaves(s), leaves(d), strict=True)) for s, d in modes]
