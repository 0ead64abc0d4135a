# SPDX-License-Identifier: Apache-2.0
"""Padding of tiles: what an import writes where a tile lies outside its space.

A constant is written. `edge`, `reflect`, `symmetric` and `wrap` repeat the space itself. Along one axis that is a short
list of segments, each of which reads the space forwards, backwards or at one element, so a box of segments is an
ordinary strided copy.
"""

from __future__ import annotations

from itertools import product as combinations
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from ..errors import LayoutError, TransferError
from ..layout import Box

REPEATING_FILLS = ("edge", "reflect", "symmetric", "wrap")

_NAMED_VALUES = {"zero": 0, "nan": float("nan")}


class Segment(NamedTuple):
    """A part of one axis of a tile: its start and length in the tile, and its start and step in the space."""

    start: int
    length: int
    source: int
    step: int


def axis_segments(offset: int, length: int, space: int, fill: str) -> list[Segment]:
    """Return how one axis of a tile, which leaves its space, is read from that space.

    `reflect` turns at the last element, `symmetric` behind it, as in `numpy.pad`.

    >>> axis_segments(-2, 6, 3, "edge")
    [Segment(start=0, length=2, source=0, step=0), Segment(start=2, length=3, source=0, step=1), \
Segment(start=5, length=1, source=2, step=0)]
    >>> axis_segments(-2, 5, 3, "wrap")
    [Segment(start=0, length=2, source=1, step=1), Segment(start=2, length=3, source=0, step=1)]
    """
    if space < 1:
        raise LayoutError(f"fill {fill!r} repeats the space, but the space is empty; use a constant, such as fill=0")
    segments = []
    position, end = offset, offset + length
    while position < end:
        source, step, stop = _segment_at(position, end, space, fill)
        segments.append(Segment(position - offset, min(stop, end) - position, source, step))
        position = stop
    return segments


def _segment_at(position: int, end: int, space: int, fill: str) -> tuple[int, int, int]:
    """Return where a position is read, the step from there, and the first position that another segment reads."""
    if 0 <= position < space:
        return position, 1, space
    if fill == "edge" or space == 1:
        return (0, 0, 0) if position < 0 else (space - 1, 0, end)
    period = space if fill == "wrap" else 2 * space - 2 if fill == "reflect" else 2 * space
    phase = position % period
    base = position - phase
    if phase < space:
        return phase, 1, base + space
    return (period - phase if fill == "reflect" else period - 1 - phase), -1, base + period


def repeated_boxes(tile: Box, space: tuple[int, ...], fill: str) -> list[tuple[Segment, ...]]:
    """Return the boxes of a tile that are one strided copy each, as one segment per axis.

    >>> len(repeated_boxes(Box((-1, -1), (4, 4)), (9, 9), "edge"))
    4
    """
    extents = zip(tile.offset, tile.shape, space, strict=True)
    return list(combinations(*[axis_segments(start, length, n, fill) for start, length, n in extents]))


def source_box(segments: tuple[Segment, ...]) -> Box:
    """Return the box of the space that some segments, one per axis, read.

    >>> source_box((Segment(start=0, length=3, source=4, step=-1),))
    Box(offset=(2,), shape=(3,))
    """
    ends = [(part.source, part.source + part.step * (part.length - 1)) for part in segments]
    return Box(tuple([min(end) for end in ends]), tuple([max(end) - min(end) + 1 for end in ends]))


def boxes_outside(tile: Box, inside: Box) -> list[Box]:
    """Return the part of a tile that is not in `inside`, as few boxes that do not overlap.

    >>> boxes_outside(Box((-1, 0), (4, 4)), Box((0, 0), (3, 4)))
    [Box(offset=(-1, 0), shape=(1, 4))]
    """
    if inside.empty:
        return [] if tile.empty else [tile]
    boxes = []
    low, high = list(tile.offset), list(tile.end)
    for axis, (first, last) in enumerate(zip(inside.offset, inside.end, strict=True)):
        for start, stop in ((low[axis], first), (last, high[axis])):
            if start < stop:
                offset = (*low[:axis], start, *low[axis + 1 :])
                end = (*high[:axis], stop, *high[axis + 1 :])
                boxes.append(Box(offset, tuple([b - a for a, b in zip(offset, end, strict=True)])))
        low[axis], high[axis] = first, last
    return boxes


def validate_fill(fill: Any, dtype: np.dtype[Any]) -> str | np.ndarray[Any, Any]:
    """Return the name of a repeating fill, or a constant fill as an array of one element of the type.

    >>> validate_fill("edge", np.dtype("int8")), validate_fill("zero", np.dtype("int8"))
    ('edge', array([0], dtype=int8))
    >>> validate_fill(2.5, np.dtype("float32"))
    array([2.5], dtype=float32)
    """
    if isinstance(fill, str):
        if fill in REPEATING_FILLS:
            return fill
        if fill not in _NAMED_VALUES:
            raise TransferError(f"unknown fill {fill!r}; use a value, zero, nan, {', '.join(REPEATING_FILLS)}")
        fill = _NAMED_VALUES[fill]
    if isinstance(fill, float) and isnan(fill) and dtype.kind in "iub":
        raise TransferError(f"fill NaN is not a value of {dtype}; use one that fits, such as 0")
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
