# SPDX-License-Identifier: Apache-2.0
"""What the accesses of a kernel cost, by line: bank conflicts in shared memory, sectors in global memory.

The n-th time that the threads of a warp come to a line between two barriers counts as one instruction of the warp. The
addresses of its threads, relative to the first, are a pattern; there are few of them, and each is evaluated once.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

import numpy as np

from ..analysis import SIZES, bank_conflicts, coalescing
from .access_log import KIND_NAMES, WRITE, AccessLog, AccessOperation
from .kernel_report import SiteCost
from .log_table import LogTable, combine
from .memory_region import LOCAL, SHARED

_PERIOD = 128  # bytes after which banks, and the sectors of a line, repeat
_MOST_PATTERNS = 256  # of one operation that are evaluated


class CostCounter:
    """Counts the patterns of addresses of each operation of a log.

    >>> CostCounter(AccessLog(), 32).costs()
    ()
    """

    def __init__(self, log: AccessLog, warp: int) -> None:
        self.log, self.warp = log, warp
        self._patterns: dict[int, Counter[bytes]] = {}
        self._accesses: Counter[int] = Counter()

    def count(self, table: LogTable) -> None:
        """Count the accesses of a table.

        >>> CostCounter(AccessLog(), 32).count(LogTable.of(AccessLog()))
        """
        if not table.size:
            return
        # operations of blocks that use the same line and the same memory are one
        visit = combine(table.operation, table.block, table.epoch, table.thread)
        order = np.argsort(visit, kind="stable")
        starts = np.flatnonzero(np.diff(visit[order], prepend=-1))
        lengths = np.diff(starts, append=len(order))
        instance = np.empty(len(order), dtype=np.int64)
        instance[order] = np.arange(len(order)) - np.repeat(starts, lengths)
        warps = combine(table.operation, table.block, table.epoch, table.thread // self.warp, instance)
        rows = np.full((int(warps.max()) + 1, self.warp), -1, dtype=np.int64)
        rows[warps, table.thread % self.warp] = table.start
        operation = np.empty(len(rows), dtype=np.int64)
        operation[warps] = table.operation
        self._count_patterns(rows, operation)
        numbers, counts = np.unique(table.operation, return_counts=True)
        self._accesses.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))

    def _count_patterns(self, rows: Any, operation: Any) -> None:
        idle = rows < 0
        lowest = np.where(idle, np.iinfo(np.int64).max, rows).min(axis=1) // _PERIOD * _PERIOD
        rows = np.where(idle, -1, rows - lowest[:, None])
        for number in np.unique(operation).tolist():
            counter = self._patterns.setdefault(number, Counter())
            chosen = np.ascontiguousarray(rows[operation == number])
            keys = chosen.view(np.dtype((np.void, chosen.shape[1] * 8))).reshape(-1)
            values, counts = np.unique(keys, return_counts=True)
            counter.update({value.tobytes(): count for value, count in zip(values, counts.tolist(), strict=True)})

    def costs(self) -> tuple[SiteCost, ...]:
        """Return the cost of each line, memory and kind of access, in the order of the source.

        >>> CostCounter(AccessLog(), 32).costs()
        ()
        """
        totals: dict[Any, list[int]] = {}
        for number, patterns in self._patterns.items():
            entry = self.log.operations[number]
            if entry.region.space == LOCAL or entry.itemsize not in SIZES:
                continue
            key = (entry.site, entry.region.name, entry.region.space, entry.kind)
            total = totals.setdefault(key, [0] * 7)
            units, ideal, ways, instructions, estimated = self._evaluate(entry, patterns)
            count = self._accesses[number]
            added = (count, count * entry.nbytes, instructions, units, ideal)
            total[:5] = [a + b for a, b in zip(total, added, strict=False)]
            total[5], total[6] = max(total[5], ways), max(total[6], estimated)
        costs = [
            SiteCost(KIND_NAMES[kind], self.log.sites[site], name, space, *_as_fields(total))
            for (site, name, space, kind), total in totals.items()
        ]
        return tuple(sorted(costs, key=lambda cost: (cost.site.file, cost.site.line, cost.site.column)))

    def _evaluate(self, entry: AccessOperation, patterns: Counter[bytes]) -> tuple[int, int, int, int, int]:
        """Return (units, ideal, ways, instructions, whether it is an estimate) of the instructions of an operation."""
        chosen = patterns.most_common(_MOST_PATTERNS)
        units = ideal = instructions = seen = 0
        ways = 1
        for pattern, count in chosen:
            cost = _pattern_cost(
                pattern,
                entry.itemsize,
                entry.nbytes // entry.itemsize,
                entry.region.space == SHARED,
                entry.kind == WRITE,
            )
            seen += count
            units, ideal, instructions = (
                units + cost[0] * count,
                ideal + cost[1] * count,
                instructions + cost[3] * count,
            )
            ways = max(ways, cost[2])
        everything = patterns.total()
        if everything != seen:
            units, ideal, instructions = (round(x * everything / seen) for x in (units, ideal, instructions))
        return units, ideal, ways, instructions, int(everything != seen)


def _as_fields(total: list[int]) -> tuple[int, int, int, int, int, int, bool]:
    accesses, nbytes, instructions, units, ideal, ways, estimated = total
    return accesses, nbytes, instructions, units, ideal, ways, bool(estimated)


@lru_cache(maxsize=4096)
def _pattern_cost(pattern: bytes, itemsize: int, width: int, shared: bool, is_store: bool) -> tuple[int, int, int, int]:
    """Return (wavefronts or sectors, ideal, ways, instructions) of one instruction of a warp."""
    starts = np.frombuffer(pattern, dtype=np.int64)
    active = starts >= 0
    offsets = np.where(active, starts, 0)[:, None] // itemsize + np.arange(width)
    if shared:
        banks = bank_conflicts(offsets, itemsize=itemsize, instruction="st" if is_store else "ld", active=active)
        return banks.wavefronts, banks.ideal, banks.ways, banks.instructions
    moved = coalescing(offsets, itemsize=itemsize, active=active)
    return moved.sectors, moved.ideal, 1, moved.instructions
