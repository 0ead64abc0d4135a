# SPDX-License-Identifier: Apache-2.0
"""Lists and sets of cores, and work distributed over cores, as in ttnn."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import MemoryConfigError
from ..memory import CoreCoord, CoreGrid, CoreRangeSet, first_cores
from ..memory.cores import CoreLike, CoresLike, grid_extents


def corerange_to_cores(cores: CoresLike, max_cores: int | None = None, row_wise: bool = False) -> list[CoreCoord]:
    """Return the cores of a set, row by row (`row_wise`) or column by column in each range; at most `max_cores`.

    >>> from tilewright import CoreRange
    >>> [tuple(core) for core in corerange_to_cores(CoreRange((0, 0), (1, 1)), row_wise=True)]
    [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    return CoreRangeSet.of(cores).cores(row_wise)[:max_cores]


def num_cores_to_corerangeset(
    count: int, grid: CoreGrid | CoreLike, row_wise: bool = False, start: CoreLike = (0, 0)
) -> CoreRangeSet:
    """Return the first `count` cores of a grid from `start` on, as at most three ranges.

    >>> num_cores_to_corerangeset(10, (8, 8), row_wise=True)
    CoreRangeSet([CoreRange((0, 0), (7, 0)), CoreRange((0, 1), (1, 1))])
    """
    return first_cores(count, grid, row_wise, start)


class WorkSplit(NamedTuple):
    """A distribution of work: all cores, `group_1` with one unit more, `group_2`, and the units per core of both.

    >>> split_work_to_cores((8, 8), 100).units_per_core_1
    2
    """

    num_cores: int
    all_cores: CoreRangeSet
    group_1: CoreRangeSet
    group_2: CoreRangeSet
    units_per_core_1: int
    units_per_core_2: int


def split_work_to_cores(grid: CoreGrid | CoreLike, units: int, row_wise: bool = False) -> WorkSplit:
    """Return `units` of work split over a grid as evenly as possible, row by row (`row_wise`) or column by column.

    >>> split = split_work_to_cores((8, 8), 100, row_wise=True)
    >>> split.num_cores, split.group_1.num_cores, split.units_per_core_1, split.units_per_core_2
    (64, 36, 2, 1)
    """
    across, down = grid_extents(grid)
    if units < 0:
        raise MemoryConfigError(f"expected at least 0 units of work, got {units}")
    if units == 0:
        return WorkSplit(0, CoreRangeSet(), CoreRangeSet(), CoreRangeSet(), 0, 0)
    count = min(units, across * down)
    all_cores = num_cores_to_corerangeset(count, grid, row_wise)
    per_core, remainder = divmod(units, count)
    if not remainder:
        return WorkSplit(count, all_cores, all_cores, CoreRangeSet(), per_core, 0)
    first = num_cores_to_corerangeset(remainder, grid, row_wise)
    line, along = divmod(remainder, across if row_wise else down)
    rest = num_cores_to_corerangeset(count - remainder, grid, row_wise, (along, line) if row_wise else (line, along))
    return WorkSplit(count, all_cores, first, rest, per_core + 1, per_core)
