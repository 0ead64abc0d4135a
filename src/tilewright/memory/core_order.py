# SPDX-License-Identifier: Apache-2.0
"""The orders in which work visits cores: lists of cores, compact sets of n cores, and units shared out."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import MemoryConfigError
from .cores import CoreCoord, CoreGrid, CoreRange, CoreRangeSet


def corerange_to_cores(cores: Any, max_cores: int | None = None, row_wise: bool = False) -> list[CoreCoord]:
    """Return the cores of a set, ranges in order, each row by row or column by column; at most max_cores of them.

    >>> [tuple(core) for core in corerange_to_cores(CoreRange((0, 0), (1, 1)), row_wise=True)]
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    return CoreRangeSet.of(cores).cores(row_wise)[:max_cores]


def num_cores_to_corerangeset(count: int, grid: Any, row_wise: bool = False, start: Any = (0, 0)) -> CoreRangeSet:
    """Return the first count cores of a grid, from start on, as at most three ranges: part of a line, lines, the rest.

    >>> num_cores_to_corerangeset(10, (8, 8), row_wise=True)
    CoreRangeSet([CoreRange((0, 0), (7, 0)), CoreRange((0, 1), (1, 1))])
    """
    across, down = _extents(grid)
    first = CoreCoord.of(start)
    # lines run along the fast direction; work in (along, line) and swap back at the end
    fast, lines = (across, down) if row_wise else (down, across)
    along, line = first if row_wise else first[::-1]
    room = fast * lines - (line * fast + along)
    if not 0 <= along < fast or not 0 <= line < lines:
        raise MemoryConfigError(f"start {first} is outside the grid of {across} x {down} cores")
    if not 0 < count <= room:
        raise MemoryConfigError(
            f"{count} cores do not fit a grid of {across} x {down} from {first}, which has {room}; ask for 1 to {room}"
        )
    boxes = []
    left = count
    if along and left > fast - along:
        boxes.append(((along, line), (fast - 1, line)))
        left -= fast - along
        along, line = 0, line + 1
    if left > fast:
        full = left // fast
        boxes.append(((0, line), (fast - 1, line + full - 1)))
        left -= full * fast
        line += full
    if left:
        boxes.append(((along, line), (along + left - 1, line)))
    return CoreRangeSet([CoreRange(*(corner if row_wise else corner[::-1] for corner in box)) for box in boxes])


class WorkSplit(NamedTuple):
    """Units of work shared out: all cores, those with one unit more, the others, and the units of each.

    >>> split_work_to_cores((8, 8), 100).units_per_core_1
    2
    """

    num_cores: int
    all_cores: CoreRangeSet
    group_1: CoreRangeSet
    group_2: CoreRangeSet
    units_per_core_1: int
    units_per_core_2: int


def split_work_to_cores(grid: Any, units: int, row_wise: bool = False) -> WorkSplit:
    """Return how units of work are shared out over a grid as evenly as possible.

    >>> split = split_work_to_cores((8, 8), 100, row_wise=True)
    >>> split.num_cores, split.group_1.num_cores, split.units_per_core_1, split.units_per_core_2
    (64, 36, 2, 1)
    """
    across, down = _extents(grid)
    if units < 0:
        raise MemoryConfigError(f"cannot share out {units} units of work; use 0 or more")
    if units == 0:
        return WorkSplit(0, CoreRangeSet(), CoreRangeSet(), CoreRangeSet(), 0, 0)
    count = min(units, across * down)
    everyone = num_cores_to_corerangeset(count, grid, row_wise)
    each, more = divmod(units, count)
    if not more:
        return WorkSplit(count, everyone, everyone, CoreRangeSet(), each, 0)
    first = num_cores_to_corerangeset(more, grid, row_wise)
    fast = across if row_wise else down
    line, along = divmod(more, fast)
    rest = num_cores_to_corerangeset(count - more, grid, row_wise, (along, line) if row_wise else (line, along))
    return WorkSplit(count, everyone, first, rest, each + 1, each)


def _extents(grid: Any) -> tuple[int, int]:
    """Return (columns, rows) of a grid given as a pair (x, y), a core-like object or a `CoreGrid`."""
    if isinstance(grid, CoreGrid):
        return grid.x, grid.y
    at = CoreCoord.of(grid)
    return at.x, at.y
