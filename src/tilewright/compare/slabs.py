# SPDX-License-Identifier: Apache-2.0
"""Slabs: a shape cut into boxes that fit in memory, each of them one run of elements in row-major order."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from ..layout.box import Box
from ..layout.tuples import round_up


def slabs(shape: tuple[int, ...], most: int, tile: tuple[int, int] = (32, 32)) -> Iterator[Box]:
    """Yield boxes of at most so many elements that cover a shape in row-major order, each one run of elements.

    Runs of rows, and pieces of one row, are multiples of the tile where that fits.

    >>> [box.slices for box in slabs((2, 100), 100)]
    [(slice(0, 1, None), slice(0, 100, None)), (slice(1, 2, None), slice(0, 100, None))]
    >>> sum(prod(box.shape) for box in slabs((3, 70, 50), 1000))
    10500
    """
    if not prod(shape):
        return
    axis = len(shape)
    while axis and prod(shape[axis - 1 :]) <= most:
        axis -= 1
    if not axis:
        yield Box((0,) * len(shape), tuple(shape))
        return
    axis -= 1  # the dimension that is cut; those after it are whole, those before it are taken one by one
    from_end = len(shape) - axis
    unit = tile[-from_end] if from_end <= len(tile) else 1
    step = max(1, most // prod(shape[axis + 1 :]))
    step = round_up(step - unit + 1, unit) if step >= unit else step
    for outer in np.ndindex(*shape[:axis]):
        for start in range(0, shape[axis], step):
            rows = min(step, shape[axis] - start)
            yield Box((*outer, start, *[0] * (from_end - 1)), (*[1] * axis, rows, *shape[axis + 1 :]))


def pieces(start: int, count: int, width: int, most: int = 1 << 14) -> Iterator[slice]:
    """Yield slices of a run of elements, of which the first is number `start`: some whole rows, or part of one.

    They are short enough to stay in the caches while they are looked at.

    >>> list(pieces(0, 10, 4, most=9)), list(pieces(2, 6, 100, most=4))
    ([slice(0, 8, None), slice(8, 10, None)], [slice(0, 4, None), slice(4, 6, None)])
    """
    at, stop = start, start + count
    while at < stop:
        end = at + most // width * width if width <= most else min(at + most, at - at % width + width)
        yield slice(at - start, min(end, stop) - start)
        at = end
