# SPDX-License-Identifier: Apache-2.0
"""Analyses of the log of a launch: races, costs of access, maps of touched memory."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np

from tilewright.analysis import SIZES, bank_conflicts, coalescing
from tilewright.copying import aligned_empty
from tilewright.formats import ScalarFormat
from tilewright.tensor import Store

from .access_log import (
    ATOMIC,
    GLOBAL,
    KIND_NAMES,
    LOCAL,
    READ,
    REWRITE,
    SHARED,
    WRITE,
    AccessLog,
    AccessOperation,
    LogTable,
    MemoryRegion,
    Site,
    call_path,
    combine,
    element_offsets,
    find_conflicts,
    name_assigned_at,
)
from .kernel_report import Defect, SiteCost, TouchMap, Witness
from .kernel_thread import Dim, RunningMachine

Row: TypeAlias = "tuple[int, ...]"  # block, thread, warp epoch, operation, kind, epoch, order
_MAX_RACE_ELEMENTS = 400  # whose accesses are looked at one by one
_MAX_RACE_ACCESSES = 64  # to one element
_MAX_SUSPECTS = 100_000
_MAX_ATOMICS = 10_000  # of a block that are remembered


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
        if len(self.suspects) < _MAX_SUSPECTS:
            part = units.where(np.flatnonzero(chosen)[:_MAX_SUSPECTS])
            columns = zip(part.block.tolist(), part.epoch.tolist(), part.start.tolist(), strict=True)
            self.suspects |= {(block, epoch, number, start * unit) for block, epoch, start in columns}

    def _unit(self, number: int) -> int:
        """Return the smallest number of bytes that is accessed at once in a region."""
        return min(entry.itemsize for entry in self.log.operations if entry.region.number == number)

    def _remember(self, units: LogTable) -> None:
        """Record the accesses to each element of global memory: the first and last per block and kind are enough.

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
            if len(events) < _MAX_ATOMICS:
                events.append(tuple(event))

    def _report_within_block(self, region: MemoryRegion, unit: int, accesses: LogTable) -> None:
        start = int(accesses.start[0]) * unit
        rows = _rows(accesses)
        is_same = _write_the_same(accesses)
        same = " the same number to" if is_same else ""
        changed = False
        for a, b in _distinct_pairs(rows, 1, self._are_ordered):
            changed = True
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
        if changed:
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
        self, key: object, kind: str, message: str, rows: tuple[Row, Row], element: str, remedy: str, harmless: bool
    ) -> None:
        first = Defect(kind, message, tuple(map(self._witness, rows)), remedy, element, 0, harmless=harmless)
        known = self._found.get(key, first)
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
    yield from np.split(rows, starts[1:])[:_MAX_RACE_ELEMENTS]


def _rows(accesses: LogTable) -> list[Row]:
    columns = (
        *(accesses.block, accesses.thread, accesses.warp_epoch, accesses.operation, accesses.kind),
        *(accesses.epoch, accesses.order),
    )
    return list(
        zip(*[column[:_MAX_RACE_ACCESSES].tolist() for column in _first_of_each(accesses, columns)], strict=True)
    )


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
    """Yield conflicting pairs that nothing orders, one for each pair of operations; `column` holds the actor."""
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
    """Return whether no thread reads an element, and every write after the first repeats its value."""
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


_PERIOD = 128  # bytes after which banks, and the sectors of a line, repeat
_MAX_PATTERNS = 256  # of one operation that are evaluated


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
        chosen = patterns.most_common(_MAX_PATTERNS)
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


class BlockMemory:
    """Allocates memory, and reuses it for the next block.

    >>> from tilewright_mojo.simt.machine import LaunchPlan
    >>> from tilewright_mojo.simt.machine import SimtMachine
    >>> from tilewright_mojo.simt.kernel_thread import Dim
    >>> BlockMemory(SimtMachine(LaunchPlan(print, (), Dim(1), Dim(1)))).static_bytes
    0
    """

    def __init__(self, machine: RunningMachine) -> None:
        self._machine = machine
        self.tensors: dict[Any, Any] = {}  # of a dialect, over shared memory
        self._shared: dict[Any, Store] = {}
        self._local: dict[Any, list[tuple[Store, int]]] = {}  # with the references to memory that is not in use
        self.static_bytes = 0  # of shared memory

    def clear(self) -> None:
        """Clear shared memory: a new block begins.

        >>> BlockMemory.clear.__name__
        'clear'
        """
        for store in self._shared.values():
            self._machine.log.table.find(store)[0].clear()

    def allocate(self, space: str, count: int, element: ScalarFormat) -> Store:
        """Return memory without values: one for all threads of a block that come here the same way, or one per thread.

        >>> BlockMemory.allocate.__name__
        'allocate'
        """
        site = self._machine.log.site_here(2)
        key = (call_path(sys._getframe(1)), count, element.name)
        if space == SHARED:
            store = self._shared.get(key)
            if store is None:
                store = self._shared[key] = self._new_memory(space, site, count, element.dtype)
                self.static_bytes += count * element.itemsize
                self._check_shared_memory(self._machine.log.sites[site])
            return store
        free = self._local.setdefault((*key, self._machine.thread.index), [])
        for store, references in free:
            if sys.getrefcount(store.data) <= references:  # no reference is left from an earlier call
                self._machine.log.table.find(store)[0].clear()
                return store
        store = self._new_memory(space, site, count, element.dtype)
        free.append((store, sys.getrefcount(store.data)))
        return store

    def dynamic(self) -> Store:
        """Return the bytes of the dynamic shared memory of the block, as many as the launch asks for.

        >>> BlockMemory.dynamic.__name__
        'dynamic'
        """
        if "dynamic" not in self._shared:
            site, nbytes = self._machine.log.site_here(2), self._machine.plan.shared_bytes
            self._shared["dynamic"] = self._new_memory(SHARED, site, nbytes, np.dtype(np.uint8))
        return self._shared["dynamic"]

    def _new_memory(self, space: str, site: int, count: int, dtype: np.dtype[Any]) -> Store:
        source = self._machine.log.sites[site]
        store = Store.of(aligned_empty(count, dtype))
        name = name_assigned_at(source) or f"{space}@{source.line}"
        self._machine.log.table.add(MemoryRegion(name, space, store.data)).clear()
        return store

    def _check_shared_memory(self, site: Site) -> None:
        limits, dynamic = self._machine.plan.limits, self._machine.plan.shared_bytes
        if self.static_bytes > limits.static_shared or self.static_bytes + dynamic > limits.shared:
            limit = limits.static_shared if self.static_bytes > limits.static_shared else limits.shared
            self._machine.add_defect(
                Defect(
                    "shared memory",
                    f"a block uses {self.static_bytes + dynamic} bytes of shared memory, more than {limit}",
                    (Witness("allocation", site, self._machine.block_index, self._machine.thread.position),),
                    "use smaller tiles; dynamic shared memory may be larger than static",
                )
            )


_MAX_MAP_ELEMENTS = 4096  # of a tensor that is drawn
_MAX_MAP_ACCESSES = 200_000


class TouchRecorder:
    """Remembers the accesses of one block: the first one with a race, or the first of the launch.

    >>> TouchRecorder(AccessLog(), Dim(1)).maps({})
    ()
    """

    def __init__(self, log: AccessLog, grid: Dim) -> None:
        self.log, self.grid = log, grid
        self._table: LogTable | None = None
        self._is_racing = False

    def record(self, table: LogTable, racing: Collection[tuple[int, int, int, int]]) -> None:
        """Take the block of interest out of a table of the log; `racing` are the racing elements so far.

        >>> TouchRecorder(AccessLog(), Dim(1)).record(LogTable.of(AccessLog()), {})
        """
        if not table.size or self._is_racing or (self._table is not None and not racing):
            return
        self._is_racing = bool(racing)
        block = next(iter(racing))[0] if racing else int(table.block[0])
        rows = np.flatnonzero(table.block == block)[:_MAX_MAP_ACCESSES]
        self._table = table.where(rows)

    def maps(self, racing: Collection[tuple[int, int, int, int]]) -> tuple[TouchMap, ...]:
        """Return a map for each step between barriers and each tensor that was touched in it.

        >>> TouchRecorder(AccessLog(), Dim(1)).maps({})
        ()
        """
        table = self._table
        if table is None or not table.size:
            return ()
        maps = []
        for step in np.unique(table.epoch).tolist():
            part = table.where(table.epoch == step)
            for number in np.unique(part.region).tolist():
                region = self.log.table.regions[number]
                if region.space != LOCAL and region.nbytes // region.itemsize <= _MAX_MAP_ELEMENTS:
                    maps.append(self._map(region, part.where(part.region == number), step, racing))
        return tuple(maps)

    def _map(
        self, region: MemoryRegion, rows: LogTable, step: int, racing: Collection[tuple[int, int, int, int]]
    ) -> TouchMap:
        count = region.nbytes // region.itemsize
        block = int(rows.block[0])
        readers: list[int | None] = [None] * count
        writers: list[int | None] = [None] * count
        marked = [False] * count
        units = rows.split_bytes(region.itemsize)
        for start, thread, kind in zip(units.start.tolist(), units.thread.tolist(), units.kind.tolist(), strict=True):
            (readers if kind == READ else writers)[start] = thread
        for racing_block, epoch, number, start in racing:
            if (racing_block, epoch, number) == (block, step, region.number):
                marked[start // region.itemsize] = True
        shape, order = _grid_of(region, count)
        return TouchMap(
            region.name,
            region.space,
            shape,
            dim_at(block, self.grid),
            step,
            tuple([readers[k] for k in order]),
            tuple([writers[k] for k in order]),
            tuple([marked[k] for k in order]),
        )


def _grid_of(region: MemoryRegion, count: int) -> tuple[tuple[int, int], list[int]]:
    """Return the rows and columns to draw a region in, and the place of each cell."""
    view = region.view
    if view is not None and len(view._pair.shape[0]) == 2 and not view._pair.shape[1]:
        table = element_offsets(view) + region.view_start // region.itemsize
        if table.ndim == 2 and table.size and table.min() >= 0 and table.max() < count:
            return (int(table.shape[0]), int(table.shape[1])), table.reshape(-1).tolist()
    columns = min(count, 32)
    rows = count // columns if columns and count % columns == 0 else 1
    return (rows, count // rows if rows else 0), list(range(count))
