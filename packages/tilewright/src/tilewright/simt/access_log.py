# SPDX-License-Identifier: Apache-2.0
"""The log of a launch: which thread accessed which memory where in the source, recorded cheaply and examined later.

An access is two integers in a list: the number of its *operation* (where in the source, what memory, read or write, how
wide) and its place. Which thread ran is known from the slices of the list that were recorded between two switches. So
an access costs about a microsecond, and everything that needs to compare threads is done by NumPy on whole blocks.
"""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from ..tensor import Array, Store
from .coroutines import PACKAGE
from .memory_region import LOCAL, MemoryRegion, RegionTable

READ, WRITE, ATOMIC, REWRITE = 0, 1, 2, 3  # a rewrite is a write of what is there already
SAME = 1 << 40  # added to the operation of a rewrite in the log
UNWRITTEN, WRITTEN, IN_FLIGHT = 0, 1, 2  # what is known of a byte of memory
KIND_NAMES = ("read", "write", "atomic access", "write")
VECTOR_BYTES = 16  # that one instruction accesses per thread at most


class _FileTable(dict[str, bool]):
    """Whether a file belongs to the library, by its name."""

    def __missing__(self, name: str) -> bool:
        inside = self[name] = name.startswith(PACKAGE)
        return inside


_inside = _FileTable()


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the source of a kernel; `column` is 0 where Python does not tell it, before 3.11.

    >>> print(Site("kernel.py", 12, 5), Site("kernel.py", 12, 0))
    kernel.py:12:5 kernel.py:12
    """

    file: str
    line: int
    column: int

    @property
    def text(self) -> str:
        """Return the line of source, without indentation; empty if it is not available.

        >>> Site("nowhere.py", 1, 1).text
        ''
        """
        return linecache.getline(self.file, self.line).strip()

    @property
    def short_file(self) -> str:
        """Return the name of the file without its folder.

        >>> Site("kernels/scan.py", 1, 1).short_file
        'scan.py'
        """
        return self.file if self.file.startswith("<") else Path(self.file).name

    @property
    def position(self) -> str:
        """Return the line and the column as text.

        >>> Site("scan.py", 12, 5).position
        '12:5'
        """
        return f"{self.line}:{self.column}" if self.column else str(self.line)

    def __str__(self) -> str:
        return f"{self.short_file}:{self.position}"


class AccessOperation(NamedTuple):
    """What an access does: where in the source, to which memory, how.

    >>> AccessOperation(0, MemoryRegion("a", "global", np.zeros(2)), READ, 8, 8, 0).itemsize
    8
    """

    site: int
    region: MemoryRegion
    kind: int
    itemsize: int
    nbytes: int  # of one access of one thread
    start: int  # the byte of the region where place 0 is


class AccessLog:
    """Records accesses; a machine tells which thread runs, and takes out what was recorded.

    >>> log = AccessLog()
    >>> store = Store.of([1, 2, 3])
    >>> log.read(store, 2)
    >>> log.entries
    [0, 2]
    """

    def __init__(self) -> None:
        self.table = RegionTable()
        self.entries: list[int] = []  # operation, place, operation, place, ...
        self.slices: list[tuple[int, ...]] = []  # (first entry, block, thread, epoch, warp epoch)
        self.examined = 0  # accesses that were taken out
        self.operations: list[AccessOperation] = []
        self.sites: list[Site] = []
        self._site_numbers: dict[Any, int] = {}
        self._known: dict[Any, tuple[int, MemoryRegion, int, int, Array]] = {}
        self._unsettled: tuple[int, Array, Any, int, Any] | None = None  # the last write, and what was there before
        self._numbers: dict[Any, int] = {}
        self._codes: list[CodeType] = []  # alive, so that their ids stay theirs
        self._stores: list[Store] = []

    # What a kernel does.

    def read(self, store: Store, places: Any, width: int = 1) -> None:
        """Record a read of `width` scalars from each place on.

        >>> log = AccessLog()
        >>> log.read(Store.of([1, 2, 3]), np.array([0, 2]))
        >>> log.entries
        [0, 0, 0, 2]
        """
        if places.__class__ is not int:
            places, width = _as_instruction(places, width, store)
            if places.__class__ is not int:
                return self._record_all(READ, store, places, width)
        number, region, start, step, _ = self._operation(READ, store, width)
        written = region.written
        if written is not None or width != 1:
            first = start + places * step
            if width != 1:
                self._check_alignment(region, first, width * step)
            if written is not None:
                if written[first] != 1 or (
                    width != 1 and written.count(1, first, first + width * step) != width * step
                ):
                    self.report_unwritten(region, first, width * step)
                if region.space is LOCAL:
                    return None
        self.entries += (number, places)
        return None

    def write(self, store: Store, places: Any, width: int = 1) -> None:
        """Record a write of `width` scalars from each place on.

        >>> log = AccessLog()
        >>> log.write(Store.of([1, 2, 3]), 1)
        >>> log.operations[0].kind == WRITE
        True
        """
        if places.__class__ is not int:
            places, width = _as_instruction(places, width, store)
            if places.__class__ is not int:
                return self._record_all(WRITE, store, places, width)
        number, region, start, step, data = self._operation(WRITE, store, width)
        written = region.written
        if written is not None or width != 1:
            first = start + places * step
            if width != 1:
                self._check_alignment(region, first, width * step)
            if written is not None:
                written[first : first + width * step] = b"\1" * (width * step)
                if region.space is LOCAL:
                    return None
        before = data[places] if width == 1 else data[places : places + width].copy()
        self._unsettled = (len(self.entries), data, places, width, before)
        self.entries += (number, places)
        return None

    def settle(self) -> None:
        """Find out whether the last write changed anything: only after it has happened is it known.

        >>> log, store = AccessLog(), Store.of([1, 2])
        >>> log.write(store, 0)
        >>> store.data[0] = 1
        >>> log.settle()
        >>> log.entries == [SAME, 0]
        True
        """
        if self._unsettled is None:
            return
        at, data, places, width, before = self._unsettled
        self._unsettled = None
        if places.__class__ is int:
            is_same = data[places] == before if width == 1 else bool((data[places : places + width] == before).all())
            if is_same:
                self.entries[at] += SAME
            return
        same = (data[places[:, None] + np.arange(width)] == before).all(axis=1)
        for k in np.flatnonzero(same).tolist():
            self.entries[at + 2 * k] += SAME

    def update(self, store: Store, place: int, reads: bool = True, writes: bool = True) -> None:
        """Record an atomic access to one scalar, which must have a value if the access `reads` it.

        >>> log = AccessLog()
        >>> log.update(Store.of([1, 2, 3]), 1)
        >>> log.operations[0].kind == ATOMIC
        True
        """
        number, region, start, step, _ = self._operation(ATOMIC, store, 1)
        if region.written is not None:
            first = start + place * step
            if reads and not region.written[first]:
                self.report_unwritten(region, first, step)
            if writes:
                region.written[first : first + step] = b"\1" * step
        self.entries += (number, place)

    def _record_all(self, kind: int, store: Store, places: Any, width: int) -> None:
        """Record accesses to several places that one call makes."""
        number, region, start, step, data = self._operation(kind, store, width)
        table = np.asarray(places, dtype=np.int64).reshape(-1)
        if width != 1 and table.size:
            self._check_alignment(region, start + int(table[0]) * step, width * step)
        if region.written is not None:
            written = np.frombuffer(region.written, dtype=np.uint8)
            covered = ((start + table * step)[:, None] + np.arange(width * step)).reshape(-1)
            if kind == WRITE:
                written[covered] = 1
            elif not (written[covered] == 1).all():
                first = int(covered[int(np.argmin(written[covered] == 1))])
                self.report_unwritten(region, first // step * step, step)
            if region.space is LOCAL:
                return
        if kind == WRITE:
            before = data[table[:, None] + np.arange(width)]
            self._unsettled = (len(self.entries), data, table, width, before)
        pairs = np.empty((table.size, 2), dtype=np.int64)
        pairs[:, 0], pairs[:, 1] = number, table
        self.entries += pairs.reshape(-1).tolist()

    def mark_copies(self, store: Store, places: Any, state: int) -> None:
        """Mark scalars of shared memory as on their way (`IN_FLIGHT`), or as written, by asynchronous copies.

        >>> AccessLog().mark_copies(Store.of([1, 2]), [0], IN_FLIGHT)
        """
        region, start = self.table.find(store)
        if region.written is not None:
            step = store.format.itemsize
            covered = (start + np.asarray(places, dtype=np.int64).reshape(-1, 1) * step) + np.arange(step)
            np.frombuffer(region.written, dtype=np.uint8)[covered] = state

    def _check_alignment(self, region: MemoryRegion, first: int, nbytes: int) -> None:
        needed = min(nbytes, VECTOR_BYTES)
        if needed & (needed - 1) == 0 and first % needed:
            self.report_misaligned(region, first, nbytes, needed)

    def report_unwritten(self, region: MemoryRegion, first: int, nbytes: int) -> None:
        """Called for a read of memory without a value; a machine overrides it.

        >>> AccessLog().report_unwritten(MemoryRegion("a", "shared", np.zeros(2)), 0, 8)
        """

    def report_misaligned(self, region: MemoryRegion, first: int, nbytes: int, needed: int) -> None:
        """Called for a vector at an address that is not a multiple of its size; a machine overrides it.

        >>> AccessLog().report_misaligned(MemoryRegion("a", "shared", np.zeros(2)), 4, 8, 8)
        """

    # Where in the source.

    def _operation(self, kind: int, store: Store, width: int) -> tuple[int, MemoryRegion, int, int, Array]:
        """Return (number, region, start, itemsize, scalars) of the access that the kernel is about to make."""
        if self._unsettled is not None:
            self.settle()
        frame = user_frame(sys._getframe(2))
        key = (id(frame.f_code), frame.f_lasti, id(store.data), kind, width)
        known = self._known.get(key)
        if known is None:
            region, start = self.table.find(store)
            step = store.format.itemsize
            # Python may number one instruction in two ways, before and after it has adapted it to its operands
            operation = AccessOperation(self.site_at(frame), region, kind, step, step * width, start)
            number = self._numbers.setdefault((region.number, *operation[2:], operation.site), len(self.operations))
            if number == len(self.operations):
                self.operations.append(operation)
            known = self._known[key] = (number, region, start, step, store.host)
            self._codes.append(frame.f_code)
            self._stores.append(store)
        return known

    def site_here(self, depth: int = 1) -> int:
        """Return the number of the site of the caller outside the library, `depth` frames up at least.

        >>> AccessLog().site_here()
        0
        """
        return self.site_at(user_frame(sys._getframe(depth)))

    def site_at(self, frame: FrameType) -> int:
        """Return the number of the site where a frame is.

        >>> AccessLog().site_at(sys._getframe())
        0
        """
        code, instruction = frame.f_code, frame.f_lasti
        number = self._site_numbers.get((id(code), instruction))
        if number is None:
            self._codes.append(code)
            number = self._site_numbers[id(code), instruction] = self.add_site(site_of(code, instruction))
        return number

    def add_site(self, site: Site) -> int:
        """Return the number of a site, a new one if it is not known.

        >>> AccessLog().add_site(Site("a.py", 1, 1))
        0
        """
        number = self._site_numbers.get(site)
        if number is None:
            number = self._site_numbers[site] = len(self.sites)
            self.sites.append(site)
        return number


def _as_instruction(places: Any, width: int, store: Store) -> tuple[Any, int]:
    """Return (place, width) of places that one vector instruction can access, else (places, width)."""
    if isinstance(places, (np.integer, int)):
        return int(places), width
    table: Array = np.asarray(places).reshape(-1)
    count, size = table.size, store.format.itemsize
    if count == 1:
        return int(table[0]), width
    if width == 1 and 1 < count * size <= VECTOR_BYTES and bool((np.diff(table) == 1).all()):
        return int(table[0]), count
    return table, width


def user_frame(frame: FrameType) -> FrameType:
    """Return the innermost frame, from `frame` outwards, of a file outside the library.

    >>> user_frame(sys._getframe()).f_code.co_filename.startswith("<doctest")
    True
    """
    inner = frame
    while _inside[frame.f_code.co_filename]:
        if frame.f_back is None:
            return inner
        frame = frame.f_back
    return frame


def call_path(frame: FrameType | None) -> tuple[tuple[int, int], ...]:
    """Return where the functions of a kernel were when they called the library: (code, line) from the inside out.

    >>> len(call_path(sys._getframe())) > 0
    True
    """
    path = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename == _MACHINE:
            break
        if not _inside[code.co_filename]:
            path.append((id(code), frame.f_lineno))
        frame = frame.f_back
    return tuple(path)


_MACHINE = f"{PACKAGE}simt{os.sep}machine.py"


def site_of(code: CodeType, instruction: int) -> Site:
    """Return the place in the source of an instruction of a code object.

    >>> site_of(site_of.__code__, -1).column
    0
    """
    positions = list(code.co_positions()) if hasattr(code, "co_positions") else []
    at = instruction // 2
    if 0 <= at < len(positions):
        line, _, column, _ = positions[at]
        if line is not None:
            return Site(code.co_filename, line, 0 if column is None else column + 1)
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= instruction < end and number is not None:
            line = number
    return Site(code.co_filename, line, 0)


_ASSIGNMENT = re.compile(r"^\s*(?:(?:var|let|ref)\s+)?([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)")


def name_assigned_at(site: Site) -> str | None:
    """Return the variable that the line of a site assigns to; None if it assigns to none.

    >>> name_assigned_at(Site("nowhere.py", 1, 1)) is None
    True
    """
    line = linecache.getline(site.file, site.line)
    match = _ASSIGNMENT.match(line)
    return match.group(1) if match else _name_in_tuple(line, site.column)


def _name_in_tuple(line: str, column: int) -> str | None:
    """Return the variable that gets the value at a column, in a line such as `a, b = f(), g()`."""
    indent = len(line) - len(line.lstrip())
    try:
        (statement,) = ast.parse(line.strip()).body
    except (SyntaxError, ValueError):  # part of a statement, or another language
        return None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Tuple):
        return None
    (target, *_), values = statement.targets, statement.value.elts
    if not isinstance(target, ast.Tuple) or len(target.elts) != len(values):
        return None
    for variable, value in zip(target.elts, values, strict=True):
        end = value.end_col_offset or 0
        if isinstance(variable, ast.Name) and value.col_offset <= column - 1 - indent < end:
            return variable.id
    return None
