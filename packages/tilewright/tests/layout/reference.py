# SPDX-License-Identifier: Apache-2.0
"""Slow and obvious versions of what the algebra computes, for small domains; none of them uses the algebra."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import strategies as st

from tilewright import Layout

from .strategies import digits, leaves, nested_like, place_by_hand, shapes


def table(layout: Any) -> list[Any]:
    """Return the place of every index of a strided layout, from the definition."""
    return [place_by_hand(layout, i) for i in range(layout.size)]


def values(layout: Any) -> list[Any]:
    """Return the place of every index as the layout itself gives it."""
    return [layout(i) for i in range(layout.size)]


def valid_flags(layout: Any) -> list[bool]:
    """Return for every index whether it is data, as the layout itself says."""
    return [layout.valid(i) for i in range(layout.size)]


def data(layout: Any) -> list[Any]:
    """Return the places of all indices that are data."""
    return [layout(i) for i in range(layout.size) if layout.valid(i)]


def continued(layout: Layout, index: int) -> Any:
    """Return the place of any integer index: the outermost coalesced mode has no end, and below 0 signs turn."""
    if index < 0:
        return layout.offset - (continued(layout, -index) - layout.offset)
    modes: list[list[Any]] = []
    for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        if n == 1:
            continue
        if modes and modes[-1][0] * modes[-1][1] == d:
            modes[-1][0] *= n
        else:
            modes.append([n, d])
    if not modes:
        return layout.offset
    total = layout.offset
    *inner, (_, last) = modes
    for c, (_, d) in zip(digits(index, [n for n, _ in inner]), inner, strict=True):
        total = total + c * d
    for n, _ in inner:
        index //= n
    return total + index * last


def is_strided_over(extents: list[int], function: dict[tuple[int, ...], Any]) -> bool:
    """Return whether some strided layout over refinements of these leaves is the given function of coordinates.

    It has to add up over the leaves, and along each leaf it must be a nest of constant steps.
    """
    if 0 in extents:
        return True
    origin = function[(0,) * len(extents)]
    lines = []
    for k, n in enumerate(extents):
        line = [function[tuple(c if j == k else 0 for j in range(len(extents)))] - origin for c in range(n)]
        if not _is_nest(line):
            return False
        lines.append(line)
    return all(
        function[coord] == origin + sum((line[c] for line, c in zip(lines, coord, strict=True)), 0)
        for coord in product(*map(range, extents))
    )


def _is_nest(line: list[Any]) -> bool:
    """Return whether values at 0, 1, 2, ... are those of a strided layout; every first extent is tried."""
    n = len(line)
    if n == 1:
        return True
    for inner in (p for p in range(2, n + 1) if n % p == 0):
        outer = line[::inner]
        if all(line[i] == outer[i // inner] + i % inner * line[1] for i in range(n)) and _is_nest(outer):
            return True
    return False


@st.composite
def layouts_into(draw: st.DrawFn, size: int, max_size: int = 48, **options: Any) -> Layout:
    """Return a layout, often with negative or zero strides, whose places all lie in 0 .. size - 1."""
    shape = draw(shapes(max_size=max_size, **options))
    available = size - 1
    steps, low = [], 0
    for n in leaves(shape):
        limit = available // max(n - 1, 1)
        step = draw(st.integers(-limit, limit))
        available -= abs(step) * max(n - 1, 0)
        low += min(0, step * (n - 1))
        steps.append(step)
    return Layout(shape, nested_like(shape, steps), offset=draw(st.integers(0, available)) - low)


def without_padding(layout):
    """Return a strided layout with all of its coordinates counted as data."""
    return Layout(layout.shape, layout.stride, layout.offset, layout.replicas)
