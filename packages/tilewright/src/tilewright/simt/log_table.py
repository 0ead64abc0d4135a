# SPDX-License-Identifier: Apache-2.0
"""`LogTable`: the log of some blocks as columns of NumPy arrays, one row per access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .access_log import ATOMIC, READ, REWRITE, SAME, WRITE, AccessLog

Column: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True, slots=True, eq=False)
class LogTable:
    """Accesses in the order in which they happened.

    `operation` is the number of the operation in the log, and `start` the first of `nbytes` bytes of the region
    `region`. Threads and blocks are numbers, `epoch` counts the barriers that a thread has passed, `warp_epoch` those
    of its warp, and `order` the accesses of the launch.

    >>> LogTable.of(AccessLog()).size
    0
    """

    block: Column
    thread: Column
    epoch: Column
    warp_epoch: Column
    operation: Column
    kind: Column
    region: Column
    start: Column
    nbytes: Column
    order: Column

    @classmethod
    def of(cls, log: AccessLog) -> LogTable:
        """Return what a log has recorded.

        >>> LogTable.of(AccessLog()).block.tolist()
        []
        """
        pairs = np.array(log.entries, dtype=np.int64).reshape(-1, 2)
        slices = np.array(log.slices, dtype=np.int64).reshape(-1, 5)
        ends = np.append(slices[1:, 0], len(log.entries))
        lengths = (ends - slices[:, 0]) // 2
        who = np.repeat(slices[:, 1:], lengths, axis=0)
        known = np.array(
            [(entry.kind, entry.region.number, entry.itemsize, entry.nbytes, entry.start) for entry in log.operations],
            dtype=np.int64,
        ).reshape(-1, 5)
        number = pairs[:, 0] % SAME
        kind, region, itemsize, nbytes, start = known[number].T
        kind = np.where(pairs[:, 0] >= SAME, REWRITE, kind)
        block, thread, epoch, warp_epoch = who.T
        place = start + pairs[:, 1] * itemsize
        order = log.examined + np.arange(len(pairs))
        return cls(block, thread, epoch, warp_epoch, number, kind, region, place, nbytes, order)

    @property
    def size(self) -> int:
        """Return the number of accesses.

        >>> LogTable.of(AccessLog()).size
        0
        """
        return len(self.kind)

    def where(self, rows: Any) -> LogTable:
        """Return some rows: a mask, or their numbers.

        >>> LogTable.of(AccessLog()).where([]).size
        0
        """
        rows = np.asarray(rows, dtype=None if len(rows) else np.int64)
        columns = (getattr(self, name)[rows] for name in self.__slots__)
        return LogTable(*columns)

    def split_bytes(self, unit: int) -> LogTable:
        """Return a row for each unit of `unit` bytes that an access touches, with `start` in units.

        >>> LogTable.of(AccessLog()).split_bytes(4).size
        0
        """
        first = self.start // unit
        counts = (self.start + self.nbytes - 1) // unit - first + 1
        if self.size == 0 or int(counts.max()) == 1:
            return LogTable(*[first if name == "start" else getattr(self, name) for name in self.__slots__])
        rows = np.repeat(np.arange(self.size), counts)
        wide = self.where(rows)
        ends = np.cumsum(counts)
        within = np.arange(len(rows)) - np.repeat(ends - counts, counts)
        return LogTable(*[first[rows] + within if name == "start" else getattr(wide, name) for name in self.__slots__])

    @property
    def is_quiet(self) -> bool:
        """Return whether nothing was written, so that no accesses can conflict.

        >>> LogTable.of(AccessLog()).is_quiet
        True
        """
        return bool((self.kind == READ).all())


def combine(*columns: Column) -> Column:
    """Return one number per row that is equal where all columns are, and ordered as they are, the first one first.

    >>> combine(np.array([0, 0, 1]), np.array([5, 7, 5])).tolist()
    [0, 1, 2]
    """
    total = np.zeros(len(columns[0]), dtype=np.int64)
    limit = 1
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        extent = high - low + 1
        if limit * extent >= 1 << 62:
            total = _rank(total)
            limit = len(total) + 1
        total = total * extent + (column - low)
        limit *= extent
    return _rank(total)


def _rank(values: Column) -> Column:
    return np.unique(values, return_inverse=True)[1].astype(np.int64).reshape(-1)


def find_conflicts(group: Column, actor: Column, kind: Column) -> Column:
    """Return the groups in which two actors conflict: one of them writes, or only one of them is atomic.

    >>> find_conflicts(np.array([0, 0, 1, 1]), np.array([3, 4, 3, 4]), np.array([0, 1, 0, 0])).tolist()
    [0]
    """
    if not len(group):
        return group
    order = np.argsort(group, kind="stable")
    group, actor, kind = group[order], actor[order], kind[order]
    starts = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    low, high = [], []
    for codes in ((READ, READ), (WRITE, REWRITE), (ATOMIC, ATOMIC)):
        is_kind = (kind == codes[0]) | (kind == codes[1])
        low.append(np.minimum.reduceat(np.where(is_kind, actor, np.iinfo(np.int64).max), starts))
        high.append(np.maximum.reduceat(np.where(is_kind, actor, -1), starts))

    def differ(a: int, b: int) -> Any:
        """Whether both kinds occur, and not only in one and the same actor."""
        same = (low[a] == high[a]) & (low[b] == high[b]) & (low[a] == low[b])
        return (high[a] >= 0) & (high[b] >= 0) & ~same

    conflict = differ(WRITE, WRITE) | differ(WRITE, READ) | differ(WRITE, ATOMIC) | differ(ATOMIC, READ)
    chosen: Column = group[starts[conflict]]
    return chosen
