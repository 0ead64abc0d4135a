# SPDX-License-Identifier: Apache-2.0
"""Cores and sets of cores. A core is always (x, y), x to the right and y down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import MemoryConfigError
from ..layout.validation import as_integer


class CoreCoord(NamedTuple):
    """A core: column x, row y. It is a pair, and equal to one.

    >>> CoreCoord(3, 1), CoreCoord(3, 1) == (3, 1)
    (CoreCoord(x=3, y=1), True)
    """

    x: int
    y: int

    @classmethod
    def of(cls, value: Any) -> CoreCoord:
        """Return a core given as a pair, or as an object with x and y.

        >>> CoreCoord.of((3, 1))
        CoreCoord(x=3, y=1)
        """
        if isinstance(value, CoreCoord):
            return value
        pair = (value.x, value.y) if hasattr(value, "x") else value
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise MemoryConfigError(f"a core is (x, y), got {value!r}")
        x, y = (int(as_integer(n, "a core's coordinate")) for n in pair)
        if x < 0 or y < 0:
            raise MemoryConfigError(f"core ({x}, {y}) has a negative coordinate; cores are counted from (0, 0)")
        return cls(x, y)

    def __str__(self) -> str:
        return f"({self.x}, {self.y})"


@dataclass(frozen=True, init=False, repr=False)
class CoreRange:
    """A rectangle of cores, both corners included.

    >>> CoreRange((0, 0), (3, 1)).size
    8
    """

    start: CoreCoord
    end: CoreCoord

    def __init__(self, start: Any, end: Any = None) -> None:
        first = CoreCoord.of(start)
        last = first if end is None else CoreCoord.of(end)
        if first.x > last.x or first.y > last.y:
            low, high = map(min, first, last), map(max, first, last)
            raise MemoryConfigError(
                f"a core range must not start after its end, got {first} to {last};"
                f" use CoreRange({tuple(low)}, {tuple(high)})"
            )
        object.__setattr__(self, "start", first)
        object.__setattr__(self, "end", last)

    @property
    def width(self) -> int:
        """Return the number of columns.

        >>> CoreRange((1, 0), (3, 1)).width
        3
        """
        return self.end.x - self.start.x + 1

    @property
    def height(self) -> int:
        """Return the number of rows.

        >>> CoreRange((1, 0), (3, 1)).height
        2
        """
        return self.end.y - self.start.y + 1

    @property
    def size(self) -> int:
        """Return the number of cores.

        >>> CoreRange((1, 0), (3, 1)).size
        6
        """
        return self.width * self.height

    def cores(self, row_wise: bool = True) -> list[CoreCoord]:
        """Return the cores, row by row or column by column.

        >>> [tuple(core) for core in CoreRange((0, 0), (1, 1)).cores(row_wise=False)]
        [(0, 0), (0, 1), (1, 0), (1, 1)]
        """
        columns, rows = range(self.start.x, self.end.x + 1), range(self.start.y, self.end.y + 1)
        if row_wise:
            return [CoreCoord(x, y) for y in rows for x in columns]
        return [CoreCoord(x, y) for x in columns for y in rows]

    def overlaps(self, other: CoreRange) -> bool:
        """Return whether two ranges share a core.

        >>> CoreRange((0, 0), (1, 1)).overlaps(CoreRange((1, 1), (2, 2)))
        True
        """
        apart = (
            self.end.x < other.start.x
            or other.end.x < self.start.x
            or self.end.y < other.start.y
            or other.end.y < self.start.y
        )
        return not apart

    def __repr__(self) -> str:
        return f"CoreRange({tuple(self.start)}, {tuple(self.end)})"

    def __str__(self) -> str:
        return f"{self.start}-{self.end}"


def _as_range(value: Any) -> CoreRange:
    if isinstance(value, CoreRange):
        return value
    if not isinstance(value, Sequence) or isinstance(value, str) or not 1 <= len(value) <= 2:
        raise MemoryConfigError(f"a range of cores is ((x, y), (x, y)), both included, got {value!r}")
    return CoreRange(*value)


@dataclass(frozen=True, init=False, repr=False)
class CoreRangeSet:
    """Ranges that do not overlap. A list keeps its order, which decides placement; a Python set is sorted by start.

    >>> CoreRangeSet([((2, 0), (3, 1)), ((0, 0), (1, 0))]).num_cores
    6
    """

    ranges: tuple[CoreRange, ...]

    def __init__(self, ranges: Any = ()) -> None:
        if not isinstance(ranges, Iterable) or isinstance(ranges, str):
            raise MemoryConfigError(
                f"a set of cores is made of ranges, got {ranges!r}; CoreRangeSet.of takes grids, too"
            )
        found = [_as_range(each) for each in ranges]
        if isinstance(ranges, (set, frozenset)):
            found.sort(key=lambda each: each.start)
        for k, each in enumerate(found):
            for other in found[:k]:
                if each.overlaps(other):
                    raise MemoryConfigError(
                        f"core ranges {other} and {each} overlap; a core may belong to one range of a set only"
                    )
        object.__setattr__(self, "ranges", tuple(found))

    @classmethod
    def of(cls, value: Any) -> CoreRangeSet:
        """Return the cores that value describes: a set, a range, a grid, (x, y) extents, or ranges in order.

        >>> CoreRangeSet.of((8, 4)), CoreRangeSet.of(CoreGrid(y=4, x=8)) == CoreRangeSet.of((8, 4))
        (CoreRangeSet([CoreRange((0, 0), (7, 3))]), True)
        """
        if isinstance(value, CoreRangeSet):
            return value
        if isinstance(value, CoreRange):
            return cls([value])
        if isinstance(value, CoreGrid):
            return value.ranges
        if isinstance(value, (tuple, list)) and len(value) == 2 and all(isinstance(n, int) for n in value):
            return CoreGrid(x=value[0], y=value[1]).ranges
        if isinstance(value, Iterable):
            return cls(value)
        raise MemoryConfigError(
            f"{value!r} describes no cores; use a CoreRangeSet, a CoreRange, a CoreGrid or (columns, rows)"
        )

    @property
    def num_cores(self) -> int:
        """Return the number of cores.

        >>> CoreRangeSet.of((8, 4)).num_cores
        32
        """
        return sum(each.size for each in self.ranges)

    @property
    def bounding_box(self) -> CoreRange:
        """Return the smallest range that contains all cores.

        >>> CoreRangeSet([((2, 0), (3, 1)), ((0, 0), (1, 0))]).bounding_box
        CoreRange((0, 0), (3, 1))
        """
        if not self.ranges:
            raise MemoryConfigError("an empty set of cores has no bounding box; give it a range")
        starts, ends = [each.start for each in self.ranges], [each.end for each in self.ranges]
        return CoreRange(
            (min(at.x for at in starts), min(at.y for at in starts)),
            (max(at.x for at in ends), max(at.y for at in ends)),
        )

    def cores(self, row_wise: bool = True) -> list[CoreCoord]:
        """Return the cores: ranges in order, each row by row or column by column.

        >>> [tuple(core) for core in CoreRangeSet([((2, 0), (2, 1)), ((0, 0), (1, 0))]).cores()]
        [(2, 0), (2, 1), (0, 0), (1, 0)]
        """
        return [core for each in self.ranges for core in each.cores(row_wise)]

    def __iter__(self) -> Iterator[CoreRange]:
        return iter(self.ranges)

    def __len__(self) -> int:
        return len(self.ranges)

    def __repr__(self) -> str:
        return f"CoreRangeSet([{', '.join(map(repr, self.ranges))}])"

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self.ranges)) + "}"


@dataclass(frozen=True, slots=True)
class CoreGrid:
    """A grid of y rows and x columns of cores, from (0, 0).

    >>> CoreGrid(y=2, x=4).num_cores
    8
    """

    y: int
    x: int

    def __post_init__(self) -> None:
        for name in ("y", "x"):
            object.__setattr__(self, name, int(as_integer(getattr(self, name), f"{name} of a grid")))
        if self.x < 1 or self.y < 1:
            raise MemoryConfigError(f"a grid needs at least one row and one column, got y={self.y}, x={self.x}")

    @property
    def num_cores(self) -> int:
        """Return the number of cores.

        >>> CoreGrid(y=8, x=8).num_cores
        64
        """
        return self.x * self.y

    @property
    def ranges(self) -> CoreRangeSet:
        """Return the grid as a set of one range.

        >>> CoreGrid(y=2, x=4).ranges
        CoreRangeSet([CoreRange((0, 0), (3, 1))])
        """
        return CoreRangeSet([CoreRange((0, 0), (self.x - 1, self.y - 1))])
