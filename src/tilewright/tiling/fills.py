# SPDX-License-Identifier: Apache-2.0
"""Fills: what an import puts where a tile lies outside its space.

A constant is written. `edge`, `reflect` and `wrap` repeat the space itself; along one axis that is a short list of
segments, each of which walks through the space forwards, backwards or not at all, so a box of segments is an ordinary
strided copy.
"""

from __future__ import annotations

from itertools import product as combinations
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from ..errors import LayoutError, TransferError
from ..layout.box import Box

REPEATING = ("edge", "reflect", "symmetric", "wrap")


class Segment(NamedTuple):
    """A stretch of one axis of a tile: its start and length there, and where in the space it is read, by which step."""

    start: int
    length: int
    source: int
    step: int


def segments(offset: int, length: int, space: int, fill: str) -> list[Segment]:
    """Return how one axis of a tile is read from a space that it leaves, from its start to its end.

    `reflect` turns at the last element, `symmetric` behind it, as in `numpy.pad`.

    >>> segments(-2, 6, 3, "edge")
    [Segment(start=0, length=2, source=0, step=0), Segment(start=2, length=3, source=0, step=1), \
Segment(start=5, length=1, source=2, step=0)]
    >>> segments(-2, 5, 3, "wrap")
    [Segment(start=0, length=2, source=1, step=1), Segment(start=2, length=3, source=0, step=1)]
    """
    if space < 1:
        raise LayoutError(f"fill {fill!r} repeats the space, and a space of {space} has nothing to repeat; use a value")
    found = []
    at, end = offset, offset + length
    while at < end:
        source, step, stop = _stretch(at, end, space, fill)
        found.append(Segment(at - offset, min(stop, end) - at, source, step))
        at = stop
    return found


def _stretch(at: int, end: int, space: int, fill: str) -> tuple[int, int, int]:
    """Return where position `at` is read, by which step it goes on, and the first position where that changes."""
    if 0 <= at < space:
        return at, 1, space
    if fill == "edge" or space == 1:
        return (0, 0, 0) if at < 0 else (space - 1, 0, end)
    period = space if fill == "wrap" else 2 * space - 2 if fill == "reflect" else 2 * space
    phase = at % period
    base = at - phase
    if phase < space:
        return phase, 1, base + space
    return (period - phase if fill == "reflect" else period - 1 - phase), -1, base + period


def repeated_boxes(tile: Box, space: tuple[int, ...], fill: str) -> list[tuple[Segment, ...]]:
    """Return the boxes of a tile that are one strided copy each, one segment an axis.

    >>> len(repeated_boxes(Box((-1, -1), (4, 4)), (9, 9), "edge"))
    4
    """
    axes = [segments(start, n, whole, fill) for start, n, whole in zip(tile.offset, tile.shape, space, strict=True)]
    return list(combinations(*axes))


def read_box(box: tuple[Segment, ...]) -> Box:
    """Return the box of the space that a box of segments reads.

    >>> read_box((Segment(start=0, length=3, source=4, step=-1),))
    Box(offset=(2,), shape=(3,))
    """
    ends = [(part.source, part.source + part.step * (part.length - 1)) for part in box]
    return Box(tuple([min(end) for end in ends]), tuple([max(end) - min(end) + 1 for end in ends]))


def outside_boxes(tile: Box, inside: Box) -> list[Box]:
    """Return what is in a tile but not in the part of it that is inside, as few boxes that do not overlap.

    >>> outside_boxes(Box((-1, 0), (4, 4)), Box((0, 0), (3, 4)))
    [Box(offset=(-1, 0), shape=(1, 4))]
    """
    if inside.empty:
        return [] if tile.empty else [tile]
    found = []
    low, high = list(tile.offset), list(tile.end)
    for axis, (first, last) in enumerate(zip(inside.offset, inside.end, strict=True)):
        for start, stop in ((low[axis], first), (last, high[axis])):
            if start < stop:
                offset = (*low[:axis], start, *low[axis + 1 :])
                end = (*high[:axis], stop, *high[axis + 1 :])
                found.append(Box(offset, tuple([b - a for a, b in zip(offset, end, strict=True)])))
        low[axis], high[axis] = first, last
    return found


def check_fill(fill: Any, dtype: np.dtype[Any]) -> Any:
    """Return a fill as its name, or as an array of one element of the type.

    >>> check_fill("edge", np.dtype("int8")), check_fill("zero", np.dtype("int8")), check_fill(2.5, np.dtype("float32"))
    ('edge', array([0], dtype=int8), array([2.5], dtype=float32))
    """
    if isinstance(fill, str):
        if fill in REPEATING:
            return fill
        named = {"zero": 0, "nan": float("nan")}
        if fill not in named:
            raise TransferError(f"there is no fill {fill!r}; use a value, zero, nan, {', '.join(REPEATING)}")
        fill = named[fill]
    if isinstance(fill, float) and isnan(fill) and dtype.kind in "iub":
        raise TransferError(f"NaN does not fit {dtype}, which holds no fractions; choose a fill such as 0")
    if dtype.kind == "V" and dtype.names is None and isinstance(fill, int) and fill == 0:
        return np.zeros(1, dtype)
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= fill <= np.iinfo(dtype).max:
        raise TransferError(f"fill {fill!r} is not a value of {dtype}; use one that fits")
    try:
        value = np.empty(1, dtype)
        value[0] = fill
    except (TypeError, ValueError, OverflowError) as problem:
        raise TransferError(f"fill {fill!r} is not a value of {dtype}: {problem}") from None
    return value
