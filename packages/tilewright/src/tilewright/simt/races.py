# SPDX-License-Identifier: Apache-2.0
"""Data races: accesses of two threads to one element, one of them a write, with nothing between that orders them.

Within a block barriers order accesses; within a warp `syncwarp` does, too. Threads of one warp do *not* run in step by
themselves. Blocks of one launch are ordered only by atomic flags: what a block did before it set one is seen by a block
that comes to the same flag later. Atomic accesses do not race with each other. Threads that all write the same number
race, too: it does no harm on today's GPUs, but no rule says so, and mostly one of them was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np

from .access_log import ATOMIC, KIND_NAMES, READ, REWRITE, WRITE, AccessLog
from .kernel_report import Defect, Witness
from .kernel_thread import Dim
from .log_table import LogTable, combine, find_conflicts
from .memory_region import GLOBAL, MemoryRegion

Row: TypeAlias = "tuple[int, ...]"  # block, thread, warp epoch, operation, kind, epoch, order
_MOST_ELEMENTS = 400  # whose accesses are looked at one by one
_MOST_ACCESSES = 64  # to one element
_MOST_SUSPECTS = 100_000
_MOST_ATOMICS = 10_000  # of a block that are remembered


class RaceFinder:
    """Collects the races of a launch: within blocks at once, between blocks at the end.

    `grid` and `block` are the extents of the launch, `warp` the threads of a warp.

    >>> RaceFinder(AccessLog(), Dim(1), Dim(32), 32).defects()
    []
    """

    def __init__(self, log: AccessLog, grid: Dim, block: Dim, warp: int) -> None:
        self.log, self.grid, self.block, self.warp = log, grid, block, warp
        self.racing: dict[tuple[int, int, int, int], None] = {}  # (block, epoch, region, first byte) of racing elements
        self.suspects: set[tuple[int, int, int, int]] = set()  # likewise, of all elements that may be racing
        self._found: dict[Any, Defect] = {}
        self._between_blocks: list[LogTable] = []
        self._cluster_barriers: dict[tuple[int, int], list[int]] = {}  # by pairs of blocks, how much happened before
        self._atomics: dict[int, list[tuple[int, ...]]] = {}  # by block: region, place, thread, epoch, order

    def examine(self, table: LogTable) -> None:
        """Look for races within the blocks of a table.

        >>> RaceFinder(AccessLog(), Dim(1), Dim(32), 32).examine(LogTable.of(AccessLog()))
        """
        for number in np.unique(table.region).tolist():
            region = self.log.table.regions[number]
            rows = table.where(table.region == number)
            unit = self._unit(number)
            units = rows.split_bytes(unit)
            if region.space == GLOBAL and self.grid != (1, 1, 1):
                self._remember(units)
            if units.is_quiet:
                continue
            group = combine(units.block, units.epoch, units.start)
            conflicts = find_conflicts(group, units.thread, units.kind)
            self._suspect(units, np.isin(group, conflicts), number, unit)
            for members in _members(group, conflicts):
                self._report_within_block(region, unit, units.where(members))

    def _suspect(self, units: LogTable, chosen: Any, number: int, unit: int) -> None:
        if len(self.suspects) < _MOST_SUSPECTS:
            part = units.where(np.flatnonzero(chosen)[:_MOST_SUSPECTS])
            columns = zip(part.block.tolist(), part.epoch.tolist(), part.start.tolist(), strict=True)
            self.suspects |= {(block, epoch, number, start * unit) for block, epoch, start in columns}

    def _unit(self, number: int) -> int:
        """Return the smallest number of bytes that is accessed at once in a region."""
        return min(entry.itemsize for entry in self.log.operations if entry.region.number == number)

    def _remember(self, units: LogTable) -> None:
        """Remember who touched each element of global memory: the first and last access per block and kind are enough.

        What orders the first access before another block may come before the last one, and the other way round.
        """
        group = combine(units.block, units.start, units.kind)
        first = np.unique(group, return_index=True)[1]
        last = group.size - 1 - np.unique(group[::-1], return_index=True)[1]
        self._between_blocks.append(units.where(np.union1d(first, last)))
        atomics = units.where(units.kind == ATOMIC)
        columns = (atomics.block, atomics.region, atomics.start, atomics.thread, atomics.epoch, atomics.order)
        for block, *event in zip(*[column.tolist() for column in columns], strict=True):
            events = self._atomics.setdefault(block, [])
            if len(events) < _MOST_ATOMICS:
                events.append(tuple(event))

    def _report_within_block(self, region: MemoryRegion, unit: int, accesses: LogTable) -> None:
        start = int(accesses.start[0]) * unit
        rows = _rows(accesses)
        is_same = _write_the_same(accesses)
        same = " the same number to" if is_same else ""
        found = False
        for a, b in _distinct_pairs(rows, 1, self._are_ordered):
            found = True
            one_warp = a[1] // self.warp == b[1] // self.warp
            self._add(
                ("race", is_same, region.number, *self._sites(a, b)),
                "race",
                f"{_action(a, b)}{same} {region.element_text(start)} in {region.space} memory, with no barrier between",
                (a, b),
                region.element_text(start),
                "call barrier() between the two lines, or let each thread use elements of its own"
                + ("; threads of one warp do not run in step: syncwarp() orders them" if one_warp else ""),
                is_same,
            )
        if found:
            self.racing[int(accesses.block[0]), int(accesses.epoch[0]), region.number, start] = None

    def _sites(self, a: Row, b: Row) -> list[int]:
        return sorted([self.log.operations[row[3]].site for row in (a, b)])

    def _are_ordered(self, a: Row, b: Row) -> bool:
        """Return whether a barrier of their warp is between two accesses in the same epoch of a block."""
        return a[1] // self.warp == b[1] // self.warp and a[2] != b[2]

    def _are_blocks_ordered(self, a: Row, b: Row) -> bool:
        """Return whether the block of the earlier access set an atomic flag after it that the other saw before its own.

        What a thread did before its atomic operation, and what others of its block did before a barrier before it, is
        seen by a thread of another block that comes to the same flag later, and by those behind a barrier after it.
        """
        first, second = sorted((a, b), key=lambda row: row[6])
        if any(first[6] < order <= second[6] for order in self._cluster_barriers.get((a[0], b[0]), ())):
            return True
        seen = [event for event in self._atomics.get(second[0], ()) if _precedes(event[2:], second)]
        flags = {event[:2]: event[4] for event in seen}  # the last time at each flag
        return any(
            event[4] < flags[event[:2]]
            for event in self._atomics.get(first[0], ())
            if event[:2] in flags and _follows(event[2:], first)
        )

    def order_cluster(self, blocks: list[int], log: AccessLog) -> None:
        """Note that all blocks of a cluster, by their numbers, are at a barrier of the cluster.

        >>> RaceFinder(AccessLog(), Dim(1), Dim(32), 32).order_cluster([0, 1], AccessLog())
        """
        order = log.examined + len(log.entries) // 2
        for a, b in permutations(blocks, 2):
            self._cluster_barriers.setdefault((a, b), []).append(order)

    def _add(
        self, key: Any, kind: str, message: str, rows: tuple[Row, Row], element: str, remedy: str, harmless: bool
    ) -> None:
        known = self._found.get(key)
        if known is None:
            witnesses = tuple([self._witness(row) for row in rows])
            self._found[key] = Defect(kind, message, witnesses, remedy, element, harmless=harmless)
        else:
            self._found[key] = replace(known, count=known.count + 1)

    def _witness(self, row: Row) -> Witness:
        operation = self.log.operations[row[3]]
        site = self.log.sites[operation.site]
        return Witness(KIND_NAMES[row[4]], site, dim_at(row[0], self.grid), dim_at(row[1], self.block))

    def defects(self) -> list[Defect]:
        """Return the races of the launch, those between blocks included.

        >>> RaceFinder(AccessLog(), Dim(1), Dim(32), 32).defects()
        []
        """
        self._examine_between_blocks()
        return list(self._found.values())

    def _examine_between_blocks(self) -> None:
        tables, self._between_blocks = self._between_blocks, []
        if not tables:
            return
        table = LogTable(*[np.concatenate([getattr(part, name) for part in tables]) for name in LogTable.__slots__])
        for number in np.unique(table.region).tolist():
            units = table.where(table.region == number)
            if units.is_quiet:
                continue
            region, unit = self.log.table.regions[number], self._unit(number)
            for members in _members(units.start, find_conflicts(units.start, units.block, units.kind)):
                accesses = units.where(members)
                start = int(accesses.start[0]) * unit
                is_same = _write_the_same(accesses)
                same = " the same number to" if is_same else ""
                for a, b in _distinct_pairs(_rows(accesses), 0, self._are_blocks_ordered):
                    self._add(
                        ("blocks", is_same, number, *self._sites(a, b)),
                        "race between blocks",
                        f"{_action(a, b, 'blocks')}{same} {region.element_text(start)}, and blocks of a launch are not"
                        " ordered",
                        (a, b),
                        region.element_text(start),
                        "use an atomic operation, give each block elements of its own, or launch a second kernel",
                        is_same,
                    )


def _members(group: Any, wanted: Any) -> Iterator[Any]:
    """Yield the rows of each wanted group, of the first groups only if there are many."""
    if not len(wanted):
        return
    rows = np.flatnonzero(np.isin(group, wanted))
    rows = rows[np.argsort(group[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(group[rows], prepend=group[rows[0]] - 1))
    yield from np.split(rows, starts[1:])[:_MOST_ELEMENTS]


def _rows(accesses: LogTable) -> list[Row]:
    columns = (
        *(accesses.block, accesses.thread, accesses.warp_epoch, accesses.operation, accesses.kind),
        *(accesses.epoch, accesses.order),
    )
    return list(zip(*[column[:_MOST_ACCESSES].tolist() for column in _first_of_each(accesses, columns)], strict=True))


def _first_of_each(accesses: LogTable, columns: tuple[Any, ...]) -> list[Any]:
    """Return columns with one row per thread and operation: repetitions add nothing."""
    first = np.unique(
        combine(accesses.block, accesses.thread, accesses.warp_epoch, accesses.operation), return_index=True
    )[1]
    first.sort()
    # of many accesses the writes matter most
    order = first[np.argsort(accesses.kind[first] == READ, kind="stable")]
    return [column[order] for column in columns]


def _distinct_pairs(rows: list[Row], column: int, are_ordered: Callable[[Row, Row], bool]) -> Iterator[tuple[Row, Row]]:
    """Yield conflicting pairs that nothing orders, one for each pair of operations; `column` says who acts."""
    seen = set()
    for k, a in enumerate(rows):
        for b in rows[k + 1 :]:
            key = (a[3], b[3])
            if a[column] != b[column] and key not in seen and _conflict(a[4], b[4]) and not are_ordered(a, b):
                seen.add(key)
                yield a, b


def _precedes(event: tuple[int, ...], access: Row) -> bool:
    """Return whether an atomic operation, as (thread, epoch, order), is before an access of the same block."""
    thread, epoch, order = event
    return order < access[6] and (thread == access[1] or epoch < access[5])


def _follows(event: tuple[int, ...], access: Row) -> bool:
    thread, epoch, order = event
    return order > access[6] and (thread == access[1] or epoch > access[5])


def _write_the_same(accesses: LogTable) -> bool:
    """Return whether nobody reads an element, and all that is written to it after the first write is there already."""
    if not bool(((accesses.kind == WRITE) | (accesses.kind == REWRITE)).all()):
        return False
    later = np.argsort(accesses.order, kind="stable")[1:]
    return bool((accesses.kind[later] == REWRITE).all())


def _conflict(a: int, b: int) -> bool:
    return not {WRITE, REWRITE}.isdisjoint((a, b)) or (a != b and ATOMIC in (a, b))


def _action(a: Row, b: Row, actors: str = "threads") -> str:
    kinds = [WRITE if row[4] == REWRITE else row[4] for row in (a, b)]
    if kinds[0] == kinds[1]:
        return f"two {actors} write"
    first, second = sorted(kinds, reverse=True)
    verbs = {READ: "reads", WRITE: "writes", ATOMIC: "atomically updates"}
    return f"one {actors[:-1]} {verbs[first]}, another {verbs[second]}"


def dim_at(number: int, extents: Dim) -> Dim:
    """Return the coordinates of a block or thread from its number.

    >>> dim_at(5, Dim(4, 2))
    Dim(x=1, y=1, z=0)
    """
    rest, x = divmod(number, extents.x)
    z, y = divmod(rest, extents.y)
    return Dim(x, y, z)
