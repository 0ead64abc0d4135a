# SPDX-License-Identifier: Apache-2.0
"""Cores, and ranges and sets of cores. A core is (x, y): column and row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from .._text import parse_extents
from ..errors import MemoryConfigError
from ..layout import as_integer


class CoreCoord(NamedTuple):
    """A core: column x and row y; it compares equal to the pair (x, y).

    >>> CoreCoord(3, 1), CoreCoord(3, 1) == (3, 1)
    (CoreCoord(x=3, y=1), True)
    """

    x: int
    y: int

    @classmethod
    def of(cls, value: CoreLike) -> CoreCoord:
        """Return a core from `value`, a pair (x, y) or an object with attributes x and y.

        >>> CoreCoord.of((3, 1))
        CoreCoord(x=3, y=1)
        """
        if isinstance(value, CoreCoord):
            return value
        candidate: Any = value
        pair = (candidate.x, candidate.y) if hasattr(candidate, "x") else candidate
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise MemoryConfigError(f"expected a core (x, y), got {value!r}")
        x, y = (int(as_integer(n, "core coordinate")) for n in pair)
        if x < 0 or y < 0:
            raise MemoryConfigError(f"core coordinates must not be negative, got ({x}, {y})")
        return cls(x, y)

    def __str__(self) -> str:
        return f"({self.x}, {self.y})"


@dataclass(frozen=True, init=False, repr=False)
class CoreRange:
    """A rectangle of cores from `start` to `end`, both included.

    >>> CoreRange((0, 0), (3, 1)).size
    8
    """

    start: CoreCoord
    end: CoreCoord

    def __init__(self, start: CoreLike, end: CoreLike | None = None) -> None:
        first = CoreCoord.of(start)
        last = first if end is None else CoreCoord.of(end)
        if first.x > last.x or first.y > last.y:
            low, high = map(min, first, last), map(max, first, last)
            raise MemoryConfigError(
                f"a core range must not start after its end, got {first} to {last}; use {tuple(low)} to {tuple(high)}"
            )
        object.__setattr__(self, "start", first)
        object.__setattr__(self, "end", last)

    @property
    def width(self) -> int:
        """The number of columns.

        >>> CoreRange((1, 0), (3, 1)).width
        3
        """
        return self.end.x - self.start.x + 1

    @property
    def height(self) -> int:
        """The number of rows.

        >>> CoreRange((1, 0), (3, 1)).height
        2
        """
        return self.end.y - self.start.y + 1

    @property
    def size(self) -> int:
        """The number of cores.

        >>> CoreRange((1, 0), (3, 1)).size
        6
        """
        return self.width * self.height

    def cores(self, row_wise: bool = True) -> list[CoreCoord]:
        """Return the cores, row by row (`row_wise`) or column by column.

        >>> [tuple(core) for core in CoreRange((0, 0), (1, 1)).cores(row_wise=False)]
        [(0, 0), (0, 1), (1, 0), (1, 1)]
        """
        columns, rows = range(self.start.x, self.end.x + 1), range(self.start.y, self.end.y + 1)
        if row_wise:
            return [CoreCoord(x, y) for y in rows for x in columns]
        return [CoreCoord(x, y) for x in columns for y in rows]

    def overlaps(self, other: CoreRange) -> bool:
        """Return whether this range and `other` have a core in common.

        >>> CoreRange((0, 0), (1, 1)).overlaps(CoreRange((1, 1), (2, 2)))
        True
        """
        return all(a <= b for a, b in zip((*self.start, *other.start), (*other.end, *self.end), strict=True))

    def __repr__(self) -> str:
        return f"CoreRange({tuple(self.start)}, {tuple(self.end)})"

    def __str__(self) -> str:
        return f"{self.start}-{self.end}"


def parse_grid(text: str) -> tuple[int, int] | list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return (columns, rows) from a text such as 8x4, or the corners of ranges such as 0,0-3,1+5,0-5,1.

    >>> parse_grid("12x1"), parse_grid("0,0-3,1 + 5,0")
    ((12, 1), [((0, 0), (3, 1)), ((5, 0), (5, 0))])
    """
    content = text.replace(" ", "")
    if "," not in content and (extents := parse_extents(content)) and len(extents) == 2 and 0 not in extents:
        return extents[0], extents[1]
    ranges = [re.fullmatch(r"\(?(\d+),(\d+)\)?(?:-\(?(\d+),(\d+)\)?)?", part) for part in content.split("+")]
    if not all(ranges):
        raise MemoryConfigError(f"{text!r} is not a grid; write columns x rows as 8x4, or ranges as 0,0-3,1+5,0-5,1")
    corners = [[int(n) for n in match.groups() if n is not None] for match in ranges if match]
    return [((c[0], c[1]), (c[-2], c[-1])) for c in corners]


def _as_core_range(value: object) -> CoreRange:  # any nested sequence; checked here
    if isinstance(value, CoreRange):
        return value
    if not isinstance(value, Sequence) or isinstance(value, str) or not 1 <= len(value) <= 2:
        raise MemoryConfigError(f"expected a range of cores ((x, y), (x, y)), got {value!r}")
    return CoreRange(*value)


@dataclass(frozen=True, init=False, repr=False)
class CoreRangeSet:
    """Core `ranges` that do not overlap. The order of a list is kept and decides placement; a set is sorted.

    >>> CoreRangeSet([((2, 0), (3, 1)), ((0, 0), (1, 0))]).num_cores
    6
    """

    ranges: tuple[CoreRange, ...]

    def __init__(self, ranges: Iterable[Any] = ()) -> None:  # of CoreRange, or of pairs of corners
        candidates: Any = ranges
        if not isinstance(candidates, Iterable) or isinstance(candidates, str):
            raise MemoryConfigError(f"expected ranges of cores, got {ranges!r}; CoreRangeSet.of also accepts grids")
        core_ranges = [_as_core_range(value) for value in ranges]
        if isinstance(ranges, (set, frozenset)):
            core_ranges.sort(key=lambda core_range: core_range.start)
        for k, core_range in enumerate(core_ranges):
            for other in core_ranges[:k]:
                if core_range.overlaps(other):
                    raise MemoryConfigError(
                        f"core ranges {other} and {core_range} overlap; the ranges of a set must be disjoint"
                    )
        object.__setattr__(self, "ranges", tuple(core_ranges))

    @classmethod
    def of(cls, value: CoresLike) -> CoreRangeSet:
        """Return the cores of `value`: a set, a range, a grid, (columns, rows), ranges in order, or a text of these.

        >>> CoreRangeSet.of((8, 4)), CoreRangeSet.of(CoreGrid(y=4, x=8)) == CoreRangeSet.of((8, 4))
        (CoreRangeSet([CoreRange((0, 0), (7, 3))]), True)
        """
        if isinstance(value, CoreRangeSet):
            return value
        if isinstance(value, str):
            return cls.of(parse_grid(value))
        if isinstance(value, CoreRange):
            return cls([value])
        if isinstance(value, CoreGrid):
            return value.ranges
        if isinstance(value, (tuple, list)) and len(value) == 2 and all(isinstance(n, int) for n in value):
            return CoreGrid(x=value[0], y=value[1]).ranges
        if isinstance(value, Iterable):
            return cls(value)
        raise MemoryConfigError(f"expected a CoreRangeSet, a CoreRange, a CoreGrid or (columns, rows), got {value!r}")

    @property
    def num_cores(self) -> int:
        """The number of cores.

        >>> CoreRangeSet.of((8, 4)).num_cores
        32
        """
        return sum(core_range.size for core_range in self.ranges)

    @property
    def bounding_box(self) -> CoreRange:
        """The smallest range that contains all cores.

        >>> CoreRangeSet([((2, 0), (3, 1)), ((0, 0), (1, 0))]).bounding_box
        CoreRange((0, 0), (3, 1))
        """
        if not self.ranges:
            raise MemoryConfigError("an empty set of cores has no bounding box")
        starts, ends = zip(*[(core_range.start, core_range.end) for core_range in self.ranges], strict=True)
        return CoreRange(
            (min(at.x for at in starts), min(at.y for at in starts)),
            (max(at.x for at in ends), max(at.y for at in ends)),
        )

    def cores(self, row_wise: bool = True) -> list[CoreCoord]:
        """Return the cores: ranges in order, each row by row (`row_wise`) or column by column.

        >>> [tuple(core) for core in CoreRangeSet([((2, 0), (2, 1)), ((0, 0), (1, 0))]).cores()]
        [(2, 0), (2, 1), (0, 0), (1, 0)]
        """
        return [core for core_range in self.ranges for core in core_range.cores(row_wise)]

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
            object.__setattr__(self, name, int(as_integer(getattr(self, name), f"{name} of a core grid")))
        if self.x < 1 or self.y < 1:
            raise MemoryConfigError(f"a core grid needs at least one row and one column, got y={self.y}, x={self.x}")

    @property
    def num_cores(self) -> int:
        """The number of cores.

        >>> CoreGrid(y=8, x=8).num_cores
        64
        """
        return self.x * self.y

    @property
    def ranges(self) -> CoreRangeSet:
        """The grid as a set of one range.

        >>> CoreGrid(y=2, x=4).ranges
        CoreRangeSet([CoreRange((0, 0), (3, 1))])
        """
        return CoreRangeSet([CoreRange((0, 0), (self.x - 1, self.y - 1))])


CoreLike: TypeAlias = CoreCoord | Sequence[int]
CoresLike: TypeAlias = CoreRangeSet | CoreRange | CoreGrid | tuple[int, int] | Iterable[Any]


def first_cores(
    count: int, grid: CoreGrid | CoreLike, row_wise: bool = False, start: CoreLike = (0, 0)
) -> CoreRangeSet:
    """Return the first `count` cores of a `grid` from `start` on, as at most three ranges.

    They are counted row by row (`row_wise`) or column by column.

    >>> first_cores(10, (8, 8), row_wise=True)
    CoreRangeSet([CoreRange((0, 0), (7, 0)), CoreRange((0, 1), (1, 1))])
    """
    across, down = grid_extents(grid)
    first = CoreCoord.of(start)
    # lines run along the fast direction; corners are (along, line), swapped back at the end
    fast, lines = (across, down) if row_wise else (down, across)
    along, line = first if row_wise else first[::-1]
    available = fast * lines - (line * fast + along)
    if not 0 <= along < fast or not 0 <= line < lines:
        raise MemoryConfigError(f"start {first} is outside the grid of {across} x {down} cores")
    if not 0 < count <= available:
        raise MemoryConfigError(
            f"a grid of {across} x {down} cores has {available} cores from {first} on, expected 1 to {available}, got"
            f" {count}"
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


def grid_extents(grid: CoreGrid | CoreLike) -> tuple[int, int]:
    """Return (columns, rows) of `grid`, a `CoreGrid` or a pair (x, y).

    >>> grid_extents(CoreGrid(y=2, x=4))
    (4, 2)
    """
    if isinstance(grid, CoreGrid):
        return grid.x, grid.y
    at = CoreCoord.of(grid)
    return at.x, at.y
