# SPDX-License-Identifier: Apache-2.0
"""How elements are spread: contiguous runs, the share of padding, and balance over cores or banks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..errors import LayoutError
from ..layout import Layout, LayoutLike
from ..tensor import View
from .accesses import access_offsets

_CHUNK = 1 << 20  # coordinates evaluated at a time


@dataclass(frozen=True, slots=True)
class RunReport:
    """The lengths of contiguous runs, in elements.

    >>> print(RunReport(4, 8, 8, 8.0))
    4 runs of 8
    """

    runs: int
    shortest: int
    longest: int
    mean: float

    def __str__(self) -> str:
        if self.shortest == self.longest:
            return f"{self.runs} run{'s' * (self.runs != 1)} of {self.longest}"
        return f"{self.runs} runs of {self.shortest} to {self.longest}, {self.mean:.3g} on average"


def contiguous_runs(offsets: Any, valid: Any = None) -> RunReport:
    """Return the runs of consecutive offsets, in row-major order; padding ends a run.

    `offsets` are integers, a layout or a `TileTensor`; `valid` says which integers are not padding.

    >>> from tilewright import row_major, col_major
    >>> print(contiguous_runs(row_major(4, 8).offsets()), contiguous_runs(col_major(4, 8).offsets()), sep=", ")
    1 run of 32, 32 runs of 1
    """
    places, touched = (table.reshape(-1) for table in access_offsets(offsets, None, "contiguous_runs"))
    data = touched if valid is None else np.asarray(valid, dtype=bool).reshape(-1)
    if data.shape != places.shape:
        raise LayoutError(
            f"contiguous_runs: valid has {data.size} entries for {places.size} offsets; give one for each"
        )
    if not data.any():
        return RunReport(0, 0, 0, 0.0)
    starts = data.copy()
    starts[1:] &= ~(data[:-1] & (np.diff(places) == 1))
    number = np.cumsum(starts)[data]
    lengths = np.bincount(number)[1:]
    return RunReport(len(lengths), int(lengths.min()), int(lengths.max()), float(lengths.mean()))


def padding_share(layout: LayoutLike) -> float:
    """Return the share of the coordinates of a `layout` that are padding.

    >>> from tilewright import row_major, with_logical_shape
    >>> padding_share(with_logical_shape(row_major(64, 96), (60, 90)))
    0.12109375
    """
    size = int(layout.size)
    if not size:
        return 0.0
    if isinstance(layout, Layout):
        try:
            return 1 - prod(layout.logical_shape) / size
        except LayoutError:
            pass  # padded across modes: count
    data = 0
    for start in range(0, size, _CHUNK):
        index = np.arange(start, min(size, start + _CHUNK), dtype=np.int64)
        data += int(np.count_nonzero(np.broadcast_to(layout.valid(index), index.shape)))
    return 1 - data / size


@dataclass(frozen=True, slots=True)
class BalanceReport:
    """How evenly amounts, such as bytes, are spread over cores or banks.

    >>> print(BalanceReport(8, 0, 2048, 1536.0, 2))
    1536 on average, 0 to 2048, 2 of 8 idle
    """

    count: int
    least: int
    most: int
    mean: float
    idle: int

    @property
    def imbalance(self) -> float:
        """Return the largest amount divided by the mean: 1 is even.

        >>> BalanceReport(4, 0, 100, 50.0, 2).imbalance
        2.0
        """
        return self.most / self.mean if self.mean else 1.0

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.most} on each of {self.count}"
        idle = f", {self.idle} of {self.count} idle" if self.idle else ""
        mean = f"{self.mean:g}" if self.mean < 1000 else f"{self.mean:.0f}"
        return f"{mean} on average, {self.least} to {self.most}{idle}"


def balance(amounts: Iterable[int]) -> BalanceReport:
    """Return how evenly `amounts`, such as the bytes of every core, are spread.

    >>> balance([2048, 2048, 1024, 0]).imbalance
    1.6
    """
    if isinstance(amounts, (LayoutLike, View)):
        raise LayoutError(f"expected amounts, such as the bytes per core, got {amounts!r}")
    values = [int(amount) for amount in amounts]
    if not values:
        raise LayoutError("expected at least one amount, such as the bytes per core, got none")
    return BalanceReport(len(values), min(values), max(values), sum(values) / len(values), values.count(0))
