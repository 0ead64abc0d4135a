# SPDX-License-Identifier: Apache-2.0
"""What an access pattern costs, in numbers: bank conflicts, coalescing, runs, padding, balance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..errors import LayoutError
from ..layout import Layout, LayoutLike

_CHUNK = 1 << 20  # coordinates looked at in one go


@dataclass(frozen=True, slots=True)
class BankReport:
    """How one access of all lanes meets the banks of a shared memory.

    `ways` is the most words that any bank has to give in one phase: 1 is free of conflicts. `wavefronts` is how often
    the memory is read in all, `ideal` how often it would be without conflicts. `words` counts the words of each bank.

    >>> BankReport(1, 1, 1, (1, 1)).conflict_free
    True
    """

    ways: int
    wavefronts: int
    ideal: int
    words: tuple[int, ...]

    @property
    def conflict_free(self) -> bool:
        """Return whether no lane has to wait for another.

        >>> BankReport(8, 8, 1, (8, 0)).conflict_free
        False
        """
        return self.wavefronts == self.ideal

    def __str__(self) -> str:
        return "no conflict" if self.conflict_free else f"{self.ways}-way conflict"


def bank_conflicts(offsets: Any, itemsize: int = 4, banks: int = 32, width: int = 4) -> BankReport:
    """Return how an access meets the banks: `offsets` has an element for each lane, or a row of elements each.

    Bank b holds the bytes whose word number, of `width` bytes, is b modulo `banks`. Lanes that want the same word share
    it. When all lanes together want more bytes than the banks give at once, they are served in phases, in order, as
    NVIDIA's hardware does.

    >>> print(bank_conflicts(np.arange(32)))
    no conflict
    >>> print(bank_conflicts(np.arange(32) * 32))  # a column of a 32 x 32 tile
    32-way conflict
    >>> print(bank_conflicts(np.arange(32) * 33))  # the same with a column of padding
    no conflict
    """
    lanes = np.asarray(offsets, dtype=np.int64)
    if min(itemsize, banks, width) < 1 or not lanes.size:
        raise LayoutError(
            f"bank_conflicts needs lanes and positive sizes, got {lanes.size} offsets, itemsize={itemsize},"
            f" banks={banks}, width={width}"
        )
    lanes = lanes.reshape(len(lanes), -1) if lanes.ndim else lanes.reshape(1, 1)
    together = max(1, banks * width // (lanes.shape[1] * itemsize))
    phases = [lanes[start : start + together] for start in range(0, len(lanes), together)]
    words = np.zeros(banks, dtype=np.int64)
    ways = []
    for phase in phases:
        first = phase.reshape(-1, 1) * itemsize
        wanted = np.unique((first + np.arange(itemsize)) // width)
        counts = np.bincount(wanted % banks, minlength=banks)
        words += counts
        ways.append(int(counts.max()))
    return BankReport(max(ways), sum(ways), len(phases), tuple(words.tolist()))


@dataclass(frozen=True, slots=True)
class CoalescingReport:
    """How one access of all lanes meets global memory, which moves whole sectors.

    >>> CoalescingReport(sectors=32, ideal=4, lines=32, used=128, moved=1024).efficiency
    0.125
    """

    sectors: int
    ideal: int
    lines: int
    used: int
    moved: int

    @property
    def efficiency(self) -> float:
        """Return the share of the moved bytes that a lane asked for.

        >>> CoalescingReport(4, 4, 1, 128, 128).efficiency
        1.0
        """
        return self.used / self.moved

    def __str__(self) -> str:
        return f"{self.sectors} sectors ({self.efficiency:.0%} of the bytes are used)"


def coalescing(offsets: Any, itemsize: int = 4, sector: int = 32, line: int = 128) -> CoalescingReport:
    """Return how an access of all lanes meets global memory, in sectors of 32 bytes and lines of 128.

    >>> print(coalescing(np.arange(32)))
    4 sectors (100% of the bytes are used)
    >>> print(coalescing(np.arange(32) * 32))
    32 sectors (12% of the bytes are used)
    """
    elements = np.unique(np.asarray(offsets, dtype=np.int64))
    if min(itemsize, sector, line) < 1 or not elements.size:
        raise LayoutError(
            f"coalescing needs lanes and positive sizes, got {elements.size} offsets, itemsize={itemsize},"
            f" sector={sector}, line={line}"
        )
    wanted = (elements[:, None] * itemsize + np.arange(itemsize)).reshape(-1)
    sectors = len(np.unique(wanted // sector))
    used = len(np.unique(wanted))
    return CoalescingReport(sectors, -(-used // sector), len(np.unique(wanted // line)), used, sectors * sector)


@dataclass(frozen=True, slots=True)
class RunReport:
    """How long the stretches are that can be moved in one go, in elements.

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
    """Return the runs of places that follow each other, read row by row; padding ends a run.

    >>> from tilewright import row_major, col_major
    >>> print(contiguous_runs(row_major(4, 8).offsets()), contiguous_runs(col_major(4, 8).offsets()), sep=", ")
    1 run of 32, 32 runs of 1
    """
    places = np.asarray(offsets, dtype=np.int64).reshape(-1)
    data = np.ones(len(places), dtype=bool) if valid is None else np.asarray(valid, dtype=bool).reshape(-1)
    if not data.any():
        return RunReport(0, 0, 0, 0.0)
    starts = data.copy()
    starts[1:] &= ~(data[:-1] & (np.diff(places) == 1))
    number = np.cumsum(starts)[data]
    lengths = np.bincount(number)[1:]
    return RunReport(len(lengths), int(lengths.min()), int(lengths.max()), float(lengths.mean()))


def padding_share(layout: LayoutLike) -> float:
    """Return the share of the coordinates of a layout that are padding.

    >>> from tilewright import row_major, within
    >>> padding_share(within(row_major(64, 96), (60, 90)))
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
    """How evenly bytes lie over cores or banks.

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
        """Return how much more the fullest holds than the average: 1 is even.

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
    """Return how evenly amounts, such as the bytes of every core, are spread.

    >>> balance([2048, 2048, 1024, 0]).imbalance
    1.6
    """
    found = [int(amount) for amount in amounts]
    if not found:
        raise LayoutError("balance needs at least one amount: give the bytes of every core, 0 where there are none")
    return BalanceReport(len(found), min(found), max(found), sum(found) / len(found), found.count(0))
