# SPDX-License-Identifier: Apache-2.0
"""Who touched what: the elements of each tensor, between two barriers, of one block."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from .access_log import READ, AccessLog
from .kernel_report import TouchMap
from .kernel_thread import Dim
from .log_table import LogTable
from .memory_region import LOCAL, MemoryRegion, element_places
from .races import dim_at

_MOST_ELEMENTS = 4096  # of a tensor that is drawn
_MOST_ACCESSES = 200_000


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
        rows = np.flatnonzero(table.block == block)[:_MOST_ACCESSES]
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
                if region.space != LOCAL and region.nbytes // region.itemsize <= _MOST_ELEMENTS:
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
        for place, thread, kind in zip(units.start.tolist(), units.thread.tolist(), units.kind.tolist(), strict=True):
            (readers if kind == READ else writers)[place] = thread
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
        table = element_places(view) + region.view_start // region.itemsize
        if table.ndim == 2 and table.size and table.min() >= 0 and table.max() < count:
            return (int(table.shape[0]), int(table.shape[1])), table.reshape(-1).tolist()
    columns = min(count, 32)
    rows = count // columns if columns and count % columns == 0 else 1
    return (rows, count // rows if rows else 0), list(range(count))
