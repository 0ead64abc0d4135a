# SPDX-License-Identifier: Apache-2.0
"""The part of a composition that is strided after all.

A composition that is not strided as a whole often is within small blocks: pages over banks are shuffled, but inside a
page everything is strides. `additive_modes` finds that part, so that only what is left needs a table.
"""

from __future__ import annotations

from itertools import accumulate
from operator import mul
from typing import Any

from .base import LayoutLike
from .composed import ComposedLayout
from .composing import strided_composition
from .paged import PagedLayout
from .strided import Layout, make
from .swizzle import Swizzle
from .tuples import leaves


def additive_modes(layout: LayoutLike) -> list[list[tuple[int, Any]]]:
    """Return, for each top-level mode, its leaves as (extent, step), fastest first; a step of None is not strided.

    `layout(x)` is the sum of coordinate * step over the strided leaves, plus layout at x with those leaves at 0.

    >>> from tilewright import Layout, compose
    >>> additive_modes(compose(Layout((64, (12, 9)), (1, (1000, 64))), Layout((64, (5, 7)), (1, (64, 320)))))
    [[(64, 1)], [(5, None), (7, None)]]
    """
    if isinstance(layout, Layout):
        return _by_mode(layout.shape, layout.stride)
    if isinstance(layout, ComposedLayout) and _is_shift(layout.outer):
        return additive_modes(layout.inner)
    if isinstance(layout, ComposedLayout) and isinstance(layout.inner, Layout) and not layout.inner.replicas:
        outer, inner = layout.outer, layout.inner
        if isinstance(outer, Swizzle):
            touched = outer.source_mask | outer.target_mask
            lowest = touched & -touched
            found = _around(inner, lowest, outer.size) or _below(inner, [lowest], None) if touched else None
        elif isinstance(outer, Layout):
            found = _below(inner, list(accumulate(outer.canonical_modes()[0][:-1], mul))[::-1], outer)
        elif isinstance(outer, PagedLayout):
            found = _below(inner, [outer.page], None)
        else:
            found = None
        if found is not None:
            return found
    nothing: list[list[tuple[int, Any]]] = _by_mode(layout.shape, layout.shape)
    return [[(extent, None) for extent, _ in mode] for mode in nothing]


def _is_shift(layout: Any) -> bool:
    """Return whether a layout only adds its offset."""
    return isinstance(layout, Layout) and layout.depth == 0 and layout.stride == 1 and not layout.replicas


def _below(inner: Layout, blocks: list[int], outer: Layout | None) -> list[list[tuple[int, Any]]] | None:
    """Return the leaves of inner, strided where they stay inside a block of indices: the largest block that works."""
    if inner.offset < 0 or any(step < 0 for step in inner.flat_modes()[1]):
        return None
    for block in blocks:
        modes = [_cut_at(block, mode) for mode in _by_mode(inner.shape, inner.stride)]
        low = [[step % block != 0 for _, step in mode] for mode in modes]
        reach = sum(
            (n - 1) * d
            for mode, flags in zip(modes, low, strict=True)
            for (n, d), f in zip(mode, flags, strict=True)
            if f
        )
        if inner.offset % block + reach >= block or not any(map(any, low)):
            continue
        shape = tuple([tuple([n for n, _ in mode]) for mode in modes])
        kept = tuple(
            [tuple([d if f else 0 for (_, d), f in zip(m, fs, strict=True)]) for m, fs in zip(modes, low, strict=True)]
        )
        part = make(shape, kept, inner.offset % block)
        through = part if outer is None else strided_composition(make(outer.shape, outer.stride), part)
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


def _around(inner: Layout, low: int, high: int) -> list[list[tuple[int, Any]]] | None:
    """Return the leaves of inner, strided below low and from high on, where nothing carries from one to the next."""
    if inner.offset < 0 or any(step < 0 for step in inner.flat_modes()[1]):
        return None
    modes = [_cut_at(high, _cut_at(low, mode)) for mode in _by_mode(inner.shape, inner.stride)]
    flat = [leaf for mode in modes for leaf in mode]
    for block in (low, high):
        if inner.offset % block + sum((n - 1) * d for n, d in flat if d % block) >= block:
            return None
    return [[(n, d if d % low or d % high == 0 else None) for n, d in mode] for mode in modes]


def _cut_at(block: int, mode: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the leaves of a mode with those cut in two that run through a multiple of block evenly."""
    cut = []
    for n, step in mode:
        count = block // step if step and block % step == 0 else 0
        cut += [(count, step), (n // count, block)] if 1 < count < n and n % count == 0 else [(n, step)]
    return cut


def _by_mode(shape: Any, stride: Any) -> list[list[tuple[int, Any]]]:
    if shape.__class__ is not tuple:
        shape, stride = (shape,), (stride,)
    return [list(zip(leaves(s), leaves(d), strict=True)) for s, d in zip(shape, stride, strict=True)]
