# SPDX-License-Identifier: Apache-2.0
"""Cores, ranges, sets and grids of cores under ttnn's names, printed as ttnn prints them; and work split over cores."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from .. import memory
from ..errors import MemoryConfigError
from ..memory import cores as plain_cores
from ..memory import first_cores
from ..memory.cores import CoreLike, grid_extents
from ..notation.ttnn_writer import ttnn_text
from .wrapper import Wrapper, unwrap


def to_json(value: Any) -> str:
    """Return `value` as ttnn writes JSON: without blanks, keys in order.

    >>> to_json({"y": 1, "x": [0, 2]})
    '{"x":[0,2],"y":1}'
    """
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


class CoreCoord(memory.CoreCoord):
    """A core: column x and row y; it compares equal to the pair (x, y).

    >>> CoreCoord(7, 3), CoreCoord(7, 3) == (7, 3)
    (7-3, True)
    """

    __slots__ = ()

    def __new__(cls, x: int, y: int) -> CoreCoord:
        """Return the core of column `x` and row `y`, whole numbers from 0."""
        return super().__new__(cls, *memory.CoreCoord.of((x, y)))

    def to_json(self) -> str:
        """Return the core as JSON.

        >>> CoreCoord(7, 3).to_json()
        '{"x":7,"y":3}'
        """
        return to_json(self._asdict())

    def __repr__(self) -> str:
        return f"{self.x}-{self.y}"

    __str__ = __repr__


class CoreRange(Wrapper[memory.CoreRange]):
    """A rectangle of cores from `start` to `end`, both included.

    >>> CoreRange(CoreCoord(0, 0), CoreCoord(3, 1))
    [0-0 - 3-1]
    """

    __slots__ = ()

    def __init__(self, start: CoreLike, end: CoreLike | None = None) -> None:
        self.plain = memory.CoreRange(start, end)

    @property
    def start(self) -> CoreCoord:
        """Return the first core.

        >>> CoreRange((1, 0), (3, 1)).start
        1-0
        """
        return CoreCoord(*self.plain.start)

    @property
    def end(self) -> CoreCoord:
        """Return the last core.

        >>> CoreRange((1, 0), (3, 1)).end
        3-1
        """
        return CoreCoord(*self.plain.end)

    def grid_size(self) -> CoreCoord:
        """Return the columns and rows.

        >>> CoreRange((1, 0), (3, 1)).grid_size()
        3-2
        """
        return CoreCoord(self.plain.width, self.plain.height)

    def contains(self, cores: CoreLike | CoresLike) -> bool:
        """Return whether all `cores` (one core, a range, or a set of ranges) are in the range.

        >>> CoreRange((0, 0), (3, 1)).contains(CoreRange((1, 1), (2, 1)))
        True
        """
        return CoreRangeSet(self).contains(cores)

    def to_json(self) -> str:
        """Return the range as JSON.

        >>> CoreRange((0, 0), (3, 1)).to_json()
        '{"end":{"x":3,"y":1},"start":{"x":0,"y":0}}'
        """
        return to_json(range_fields(self.plain))

    def __repr__(self) -> str:
        return ttnn_text(self.plain)

    __str__ = __repr__


def range_fields(cores: memory.CoreRange) -> dict[str, dict[str, int]]:
    """Return the corners of a range by name, as ttnn writes them.

    >>> range_fields(memory.CoreRange((0, 0), (3, 1)))
    {'start': {'x': 0, 'y': 0}, 'end': {'x': 3, 'y': 1}}
    """
    return {"start": cores.start._asdict(), "end": cores.end._asdict()}


class CoreRangeSet(Wrapper[memory.CoreRangeSet]):
    """Ranges of cores that do not overlap, in the order of `core_ranges`; a Python set of them is sorted.

    >>> CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(3, 1))]).num_cores()
    8
    """

    __slots__ = ()

    def __init__(self, core_ranges: CoreRange | CoreRangeSet | Iterable[CoreRange | memory.CoreRange]) -> None:
        ranges = unwrap(core_ranges)
        if isinstance(ranges, memory.CoreRange):
            ranges = [ranges]
        kind = set if isinstance(ranges, (set, frozenset)) else list  # a set is sorted
        self.plain = (
            ranges if isinstance(ranges, memory.CoreRangeSet) else memory.CoreRangeSet(kind(map(unwrap, ranges)))
        )

    def ranges(self) -> list[CoreRange]:
        """Return the ranges in order.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).ranges()
        [[0-0 - 3-1]]
        """
        return list(map(CoreRange.wrap, self.plain.ranges))

    def num_cores(self) -> int:
        """Return the number of cores.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).num_cores()
        8
        """
        return self.plain.num_cores

    def size(self) -> int:
        """Return the number of ranges.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).size()
        1
        """
        return len(self.plain)

    def empty(self) -> bool:
        """Return whether the set has no ranges.

        >>> CoreRangeSet([]).empty()
        True
        """
        return not self.plain.ranges

    def bounding_box(self) -> CoreRange:
        """Return the smallest range that contains all cores.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1)), CoreRange((5, 5), (5, 5))]).bounding_box()
        [0-0 - 5-5]
        """
        return CoreRange.wrap(self.plain.bounding_box)

    def contains(self, cores: CoreLike | CoresLike) -> bool:
        """Return whether all `cores` (one core, a range, or a set of ranges) are in the set.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).contains(CoreCoord(4, 0))
        False
        """
        if isinstance(cores, tuple):
            return memory.CoreCoord.of(cores) in self.plain.cores()
        return set(memory.CoreRangeSet.of(unwrap(cores)).cores()) <= set(self.plain.cores())

    def to_json(self) -> str:
        """Return the ranges as JSON.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).to_json()
        '[{"end":{"x":3,"y":1},"start":{"x":0,"y":0}}]'
        """
        return to_json(list(map(range_fields, self.plain)))

    def __iter__(self) -> Iterator[CoreRange]:
        return iter(self.ranges())

    def __len__(self) -> int:
        return len(self.plain)

    def __repr__(self) -> str:
        return ttnn_text(self.plain)

    __str__ = __repr__


class CoreGrid(Wrapper[memory.CoreGrid]):
    """A grid of `y` rows and `x` columns of cores, from (0, 0).

    >>> CoreGrid(y=2, x=3)
    ttnn.CoreGrid(x=3, y=2)
    """

    __slots__ = ()

    def __init__(self, y: int, x: int) -> None:
        self.plain = memory.CoreGrid(y, x)

    @property
    def x(self) -> int:
        """Return the number of columns.

        >>> CoreGrid(y=2, x=3).x
        3
        """
        return self.plain.x

    @property
    def y(self) -> int:
        """Return the number of rows.

        >>> CoreGrid(y=2, x=3).y
        2
        """
        return self.plain.y

    @property
    def num_cores(self) -> int:
        """Return the number of cores.

        >>> CoreGrid(y=2, x=3).num_cores
        6
        """
        return self.plain.num_cores

    def __repr__(self) -> str:
        return f"ttnn.CoreGrid(x={self.x}, y={self.y})"

    __str__ = __repr__


CoresLike: TypeAlias = CoreRangeSet | CoreRange | CoreGrid | plain_cores.CoresLike
GridLike: TypeAlias = CoreGrid | memory.CoreGrid | CoreLike


def num_cores_to_corerangeset(target_num_cores: int, grid_size: GridLike, row_wise: bool = False) -> CoreRangeSet:
    """Return the first `target_num_cores` cores of `grid_size`, row by row (`row_wise`) or column by column.

    >>> num_cores_to_corerangeset(10, CoreCoord(8, 8), row_wise=True).ranges()
    [[0-0 - 7-0], [0-1 - 1-1]]
    """
    return CoreRangeSet.wrap(first_cores(target_num_cores, unwrap(grid_size), row_wise))


def split_work_to_cores(
    grid_size: GridLike, units_to_divide: int, row_wise: bool = False
) -> tuple[int, CoreRangeSet, CoreRangeSet, CoreRangeSet, int, int]:
    """Return `units_to_divide` split evenly over `grid_size`, row by row (`row_wise`) or column by column.

    The result is (number of cores, all cores, cores with one unit more, the other cores, units per core of both).

    >>> count, _, more, fewer, units_of_more, units_of_fewer = split_work_to_cores(CoreCoord(8, 8), 100)
    >>> count, more.num_cores(), units_of_more, fewer.num_cores(), units_of_fewer
    (64, 36, 2, 28, 1)
    """
    across, down = grid_extents(unwrap(grid_size))
    if units_to_divide < 0:
        raise MemoryConfigError(f"expected at least 0 units of work, got {units_to_divide}")
    none = CoreRangeSet([])
    if units_to_divide == 0:
        return 0, none, none, none, 0, 0
    count = min(units_to_divide, across * down)
    all_cores = num_cores_to_corerangeset(count, grid_size, row_wise)
    per_core, remainder = divmod(units_to_divide, count)
    if not remainder:
        return count, all_cores, all_cores, none, per_core, 0
    line, along = divmod(remainder, across if row_wise else down)
    start = (along, line) if row_wise else (line, along)
    more = num_cores_to_corerangeset(remainder, grid_size, row_wise)
    fewer = CoreRangeSet.wrap(first_cores(count - remainder, unwrap(grid_size), row_wise, start))
    return count, all_cores, more, fewer, per_core + 1, per_core


def corerange_to_cores(
    core_range_set: CoresLike, max_cores: int | None = None, row_wise: bool = False
) -> list[CoreCoord]:
    """Return the cores of `core_range_set`, row by row (`row_wise`) or column by column; at most `max_cores`.

    >>> corerange_to_cores(CoreRangeSet([CoreRange((0, 0), (1, 0))]), row_wise=True)
    [0-0, 1-0]
    """
    cores = memory.CoreRangeSet.of(unwrap(core_range_set)).cores(row_wise)
    return [CoreCoord(*core) for core in cores[:max_cores]]
