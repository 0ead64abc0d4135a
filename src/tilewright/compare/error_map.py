# SPDX-License-Identifier: Apache-2.0
"""`ErrorMap`: the largest error of every block of rows and columns, taken in run by run."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from ..layout.tuples import ceil_div

SIDE = 64  # rows and columns of a map at most


class ErrorMap:
    """The largest error of every block of the folded matrix of a shape; blocks are whole tiles.

    >>> errors = ErrorMap((100, 70), (32, 32))
    >>> errors.add(0, np.arange(7000.0))
    >>> errors.block, errors.cells.shape, float(errors.cells[0, 0])
    ((32, 32), (4, 3), 2201.0)
    """

    def __init__(self, shape: tuple[int, ...], tile: tuple[int, int]) -> None:
        self.width = shape[-1] if shape else 1
        height = prod(shape[:-1])
        high, wide = (
            side * max(1, ceil_div(ceil_div(n, side), SIDE)) for n, side in zip((height, self.width), tile, strict=True)
        )
        self.block = (high, wide)
        self.cells: NDArray[np.float64] = np.zeros((max(1, ceil_div(height, high)), max(1, ceil_div(self.width, wide))))

    def add(self, start: int, errors: NDArray[np.float64]) -> None:
        """Take in the errors of a run of elements, of which the first is number `start`: whole rows, or part of one.

        >>> errors = ErrorMap((1, 70), (32, 32))
        >>> errors.add(60, np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
        >>> errors.cells.tolist()
        [[0.0, 4.0, 5.0]]
        """
        row, column = divmod(start, self.width)
        whole = not column and errors.size % self.width == 0
        block = errors.reshape(-1, self.width) if whole else errors.reshape(1, -1)
        (high, wide), (rows, columns) = self.block, block.shape
        down, across = _starts(row, rows, high), _starts(column, columns, wide)
        largest = np.maximum.reduceat(np.maximum.reduceat(block, across, axis=1), down, axis=0)
        top, left = row // high, column // wide
        part = self.cells[top : top + len(down), left : left + len(across)]
        np.maximum(part, largest, out=part)


def _starts(first: int, count: int, step: int) -> NDArray[np.int64]:
    """Return where the blocks begin in a run of so many rows, of which the first is given."""
    borders = np.arange(first // step, (first + count - 1) // step + 1, dtype=np.int64) * step
    found: NDArray[np.int64] = np.maximum(borders - first, 0)
    return found
