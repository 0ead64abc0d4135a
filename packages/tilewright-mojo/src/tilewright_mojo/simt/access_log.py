# SPDX-License-Identifier: Apache-2.0
"""Memory of kernels and the log of every access to it."""

from __future__ import annotations

import ast
import bisect
import linecache
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tilewright.errors import LayoutError
from tilewright.formats import FormatLike, ScalarFormat, format_of
from tilewright.layout import LayoutLike, as_integer, leaves, row_major
from tilewright.tensor import Store, TileTensor

from .kernel_thread import MACHINE, PACKAGES, current_machine, is_inside_kernel

GLOBAL, SHARED, LOCAL = "global", "shared", "local"
POISON = 0xCD  # bytes of memory that nobody has written
_LARGE = 1 << 20  # elements; the coordinates in larger tensors are not searched


class MemoryRegion:
    """A contiguous piece of memory with a name: its start, its contents, and the bytes that were written.

    `written` has one byte per byte of memory, None if all of it had values before the launch.

    >>> region = MemoryRegion("a", GLOBAL, np.zeros(4, dtype=np.float32))
    >>> region.nbytes, region.element_text(8)
    (16, 'a[2]')
    """

    __slots__ = (
        *(
            "_table",
            "address",
            "data",
            "itemsize",
            "name",
            "nbytes",
            "number",
            "space",
            "view",
            "view_start",
            "written",
        ),
    )

    def __init__(self, name: str, space: str, data: np.ndarray, view: TileTensor | None = None) -> None:
        self.name, self.space, self.data = name, space, data
        self.view, self.view_start = view, 0  # a tensor in the region, and the byte where its storage starts
        self.address = int(data.ctypes.data)
        self.nbytes, self.itemsize = int(data.nbytes), int(data.itemsize)
        self.number = 0
        self.written: bytearray | None = None
        self._table: Any = None

    def clear(self) -> None:
        """Forget what was written: the memory of a new block.

        >>> region = MemoryRegion("s", SHARED, np.zeros(2, dtype=np.uint8))
        >>> region.clear()
        >>> region.data.tolist(), region.written
        ([205, 205], bytearray(b'\\x00\\x00'))
        """
        self.data.view(np.uint8)[...] = POISON
        self.written = bytearray(self.nbytes)

    def include(self, data: np.ndarray) -> None:
        """Extend the region by an array that overlaps it.

        >>> numbers = np.zeros(8, dtype=np.int8)
        >>> region = MemoryRegion("a", GLOBAL, numbers[:6])
        >>> region.include(numbers[4:])
        >>> region.nbytes
        8
        """
        start = int(data.ctypes.data)
        low, high = min(self.address, start), max(self.address + self.nbytes, start + int(data.nbytes))
        self.view_start += self.address - low
        self.address, self.nbytes = low, high - low
        self.written = None

    def element_text(self, start: int) -> str:
        """Return the element at a byte as text: `a[2, 3]` if the shape of the tensor is known, else its offset.

        >>> import tilewright as tw
        >>> tensor = tw.TileTensor(np.zeros((3, 4), dtype=np.int8))
        >>> MemoryRegion("a", GLOBAL, tensor._store.data, tensor).element_text(6)
        'a[1, 2]'
        """
        coordinate = self.coordinate(start)
        return f"{self.name}[{', '.join(map(str, coordinate))}]"

    def coordinate(self, start: int) -> tuple[int, ...]:
        """Return the coordinate of the element at a byte; its offset if the tensor has none there.

        >>> MemoryRegion("a", GLOBAL, np.zeros(4, dtype=np.int16)).coordinate(6)
        (3,)
        """
        if self.view is None or prod(leaves(self.view._pair.shape[0])) > _LARGE:
            return (start // self.itemsize,)
        offset = (start - self.view_start) // self.view._store.format.itemsize
        if self._table is None:
            self._table = element_offsets(self.view)
        matches = np.argwhere(self._table == offset)
        return tuple(map(int, matches[0])) if len(matches) else (start // self.itemsize,)


def element_offsets(view: TileTensor) -> np.ndarray:
    """Return where the elements of a tensor start in its storage, with one dimension per mode.

    >>> import tilewright as tw
    >>> element_offsets(tw.TileTensor([1, 2, 3, 4], tw.col_major(2, 2))).tolist()
    [[0, 2], [1, 3]]
    """
    return np.asarray(view._native_layout.offsets()) + view.offset


class RegionTable:
    """All memory that a launch knows, by address: another array over the same memory belongs to the same region.

    >>> table = RegionTable()
    >>> region = table.add(MemoryRegion("a", GLOBAL, np.zeros(4)))
    >>> table.find(Store.of(region.data[1:])) == (region, 8)
    True
    """

    def __init__(self) -> None:
        self.regions: list[MemoryRegion] = []
        self._starts: list[int] = []
        self._by_start: list[MemoryRegion] = []
        self._anonymous = 0

    def add(self, region: MemoryRegion) -> MemoryRegion:
        """Add a region; return it.

        >>> RegionTable().add(MemoryRegion("a", GLOBAL, np.zeros(4))).number
        0
        """
        region.number = len(self.regions)
        self.regions.append(region)
        at = bisect.bisect(self._starts, region.address)
        self._starts.insert(at, region.address)
        self._by_start.insert(at, region)
        return region

    def find(self, store: Store) -> tuple[MemoryRegion, int]:
        """Return the region of a store, and the byte in it where the store starts; add one if it is not known.

        >>> RegionTable().find(Store.of([1, 2]))[0].name
        'memory 1'
        """
        data = store.host
        address = int(data.ctypes.data)
        at = bisect.bisect(self._starts, address) - 1
        if at >= 0:
            region = self._by_start[at]
            if address + data.nbytes <= region.address + region.nbytes:
                return region, address - region.address
        self._anonymous += 1
        return self.add(new_region(f"memory {self._anonymous}", store)), 0


def new_region(name: str, store: Store) -> MemoryRegion:
    """Return a region of global memory; what its owner knows to have no values yet has none.

    >>> new_region("a", Store.of([1, 2])).written is None
    True
    """
    region = MemoryRegion(name, GLOBAL, store.host)
    written = getattr(store.origin, "_written", None)
    if type(written) is bytearray and len(written) == region.nbytes:  # others, such as objects, have bytes to protect
        region.written = written
    return region


READ, WRITE, ATOMIC, REWRITE = 0, 1, 2, 3  # a rewrite writes the value that is there already
SAME = 1 << 40  # added to the operation of a rewrite in the log
UNWRITTEN, WRITTEN, IN_FLIGHT = 0, 1, 2  # the state of a byte of memory
KIND_NAMES = ("read", "write", "atomic access", "write")
VECTOR_BYTES = 16  # that one instruction accesses per thread at most


class _FileTable(dict[str, bool]):
    """Whether a file belongs to the library, by its name."""

    def __missing__(self, name: str) -> bool:
        inside = self[name] = name.startswith(PACKAGES)
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
        """The line of source, without indentation; empty if it is not available.

        >>> Site("nowhere.py", 1, 1).text
        ''
        """
        return linecache.getline(self.file, self.line).strip()

    @property
    def short_file(self) -> str:
        """The name of the file without its folder.

        >>> Site("kernels/scan.py", 1, 1).short_file
        'scan.py'
        """
        return self.file if self.file.startswith("<") else Path(self.file).name

    @property
    def position(self) -> str:
        """The line and the column as text.

        >>> Site("scan.py", 12, 5).position
        '12:5'
        """
        return f"{self.line}:{self.column}" if self.column else str(self.line)

    def __str__(self) -> str:
        return f"{self.short_file}:{self.position}"


class AccessOperation(NamedTuple):
    """The operation of an access: its place in the source, its memory, and its kind.

    >>> AccessOperation(0, MemoryRegion("a", "global", np.zeros(2)), READ, 8, 8, 0).itemsize
    8
    """

    site: int
    region: MemoryRegion
    kind: int
    itemsize: int
    nbytes: int  # of one access of one thread
    start: int  # the byte of the region where offset 0 is


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
        self.entries: list[int] = []  # operation, offset, operation, offset, ...
        self.slices: list[tuple[int, ...]] = []  # (first entry, block, thread, epoch, warp epoch)
        self.examined = 0  # accesses that were taken out
        self.operations: list[AccessOperation] = []
        self.sites: list[Site] = []
        self._site_numbers: dict[Any, int] = {}
        self._known: dict[Any, tuple[int, MemoryRegion, int, int, np.ndarray]] = {}
        # The last write, and what was there before.
        self._unsettled: tuple[int, np.ndarray, Any, int, Any] | None = None
        self._numbers: dict[Any, int] = {}
        self._codes: list[CodeType] = []  # alive, so that their ids stay theirs
        self._stores: list[Store] = []

    # What a kernel does.

    def read(self, store: Store, offsets: object, width: int = 1) -> None:
        """Record a read of `width` scalars from each offset on.

        >>> log = AccessLog()
        >>> log.read(Store.of([1, 2, 3]), np.array([0, 2]))
        >>> log.entries
        [0, 0, 0, 2]
        """
        if offsets.__class__ is not int:
            offsets, width = _as_instruction(offsets, width, store)
            if offsets.__class__ is not int:
                return self._record_all(READ, store, offsets, width)
        number, region, start, step, _ = self._operation(READ, store, width)
        written = region.written
        if written is not None or width != 1:
            first = start + offsets * step
            if width != 1:
                self._check_alignment(region, first, width * step)
            if written is not None:
                if written[first] != 1 or (
                    width != 1 and written.count(1, first, first + width * step) != width * step
                ):
                    self.report_unwritten(region, first, width * step)
                if region.space is LOCAL:
                    return None
        self.entries += (number, offsets)
        return None

    def write(self, store: Store, offsets: object, width: int = 1) -> None:
        """Record a write of `width` scalars from each offset on.

        >>> log = AccessLog()
        >>> log.write(Store.of([1, 2, 3]), 1)
        >>> log.operations[0].kind == WRITE
        True
        """
        if offsets.__class__ is not int:
            offsets, width = _as_instruction(offsets, width, store)
            if offsets.__class__ is not int:
                return self._record_all(WRITE, store, offsets, width)
        number, region, start, step, data = self._operation(WRITE, store, width)
        written = region.written
        if written is not None or width != 1:
            first = start + offsets * step
            if width != 1:
                self._check_alignment(region, first, width * step)
            if written is not None:
                written[first : first + width * step] = b"\1" * (width * step)
                if region.space is LOCAL:
                    return None
        before = data[offsets] if width == 1 else data[offsets : offsets + width].copy()
        self._unsettled = (len(self.entries), data, offsets, width, before)
        self.entries += (number, offsets)
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
        at, data, offsets, width, before = self._unsettled
        self._unsettled = None
        if offsets.__class__ is int:
            is_same = data[offsets] == before if width == 1 else bool((data[offsets : offsets + width] == before).all())
            if is_same:
                self.entries[at] += SAME
            return
        same = (data[offsets[:, None] + np.arange(width)] == before).all(axis=1)
        for k in np.flatnonzero(same).tolist():
            self.entries[at + 2 * k] += SAME

    def update(self, store: Store, offset: int, reads: bool = True, writes: bool = True) -> None:
        """Record an atomic access to one scalar, which must have a value if the access `reads` it.

        >>> log = AccessLog()
        >>> log.update(Store.of([1, 2, 3]), 1)
        >>> log.operations[0].kind == ATOMIC
        True
        """
        number, region, start, step, _ = self._operation(ATOMIC, store, 1)
        if region.written is not None:
            first = start + offset * step
            if reads and not region.written[first]:
                self.report_unwritten(region, first, step)
            if writes:
                region.written[first : first + step] = b"\1" * step
        self.entries += (number, offset)

    def _record_all(self, kind: int, store: Store, offsets: object, width: int) -> None:
        """Record accesses to several places that one call makes."""
        number, region, start, step, data = self._operation(kind, store, width)
        table = np.asarray(offsets, dtype=np.int64).reshape(-1)
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

    def mark_copies(self, store: Store, offsets: object, state: int) -> None:
        """Mark scalars of shared memory as on their way (`IN_FLIGHT`), or as written, by asynchronous copies.

        >>> AccessLog().mark_copies(Store.of([1, 2]), [0], IN_FLIGHT)
        """
        region, start = self.table.find(store)
        if region.written is not None:
            step = store.format.itemsize
            covered = (start + np.asarray(offsets, dtype=np.int64).reshape(-1, 1) * step) + np.arange(step)
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

    def _operation(self, kind: int, store: Store, width: int) -> tuple[int, MemoryRegion, int, int, np.ndarray]:
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


def _as_instruction(offsets: object, width: int, store: Store) -> tuple[Any, int]:
    """Return (offset, width) of offsets that one vector instruction can access, else (offsets, width)."""
    if isinstance(offsets, (np.integer, int)):
        return int(offsets), width
    table: np.ndarray = np.asarray(offsets).reshape(-1)
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
        if code.co_filename == MACHINE:
            break
        if not _inside[code.co_filename]:
            path.append((id(code), frame.f_lineno))
        frame = frame.f_back
    return tuple(path)


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


def allocate_store(space: str, count: int, dtype: FormatLike) -> Store:
    """Return memory of the running block ("shared") or thread ("local") for `count` scalars, without values.

    All threads of a block that come to the same line get the same shared memory.

    >>> from tilewright_mojo.simt import launch
    >>> launch(lambda: print(allocate_store("shared", 4, "int8").size), grid=1, block=1).errors
    4
    ()
    """
    element = format_of(dtype).require_scalar("memory of a kernel")
    store: Store = current_machine("memory of a block").memory.allocate(space, count, element)
    return store


def _ignore(store: Store, offsets: object, width: int = 1) -> None:
    """Do nothing with an access that nobody checks."""


class BlockStack:
    """Memory as the running kernel sees it: the stacks of its block and threads, and a log of accesses, if it has one.

    >>> from tilewright.formats import format_of
    >>> from tilewright_mojo.simt import launch
    >>> launch(lambda: print(BlockStack().allocate_stack("local", 4, format_of("int8")).size), grid=1, block=1).errors
    4
    ()
    """

    def __init__(self, log: AccessLog | None = None) -> None:
        self.read, self.write = (_ignore, _ignore) if log is None else (log.read, log.write)

    def allocate_stack(self, space: str, count: int, element: ScalarFormat) -> Store:
        """Return memory of the running block ("shared") or thread ("local") for `count` scalars, without values."""
        return allocate_store(space, count, element)

    def share_tensor(self, store: Store, layout: object, make: Callable[[], Any]) -> Any:
        """Return the tensor of this layout over shared memory; reports name coordinates of the first one."""
        machine = current_machine("shared memory")
        tensors, key = machine.memory.tensors, (id(store.data), layout)
        if key not in tensors:
            tensors[key] = make()
            region = machine.log.table.find(store)[0]
            if region.view is None and isinstance(tensors[key], TileTensor):
                region.view = tensors[key]
        return tensors[key]


def dynamic_memory(dtype: FormatLike) -> Store:
    """Return the dynamic shared memory of the running block, `shared_bytes` of the launch, as scalars of a format.

    >>> from tilewright_mojo.simt import launch
    >>> launch(lambda: print(dynamic_memory("float32").size), grid=1, block=1, shared_bytes=64).errors
    16
    ()
    """
    element = format_of(dtype).require_scalar("memory of a kernel")
    machine = current_machine("dynamic shared memory")
    nbytes = machine.plan.shared_bytes
    if not nbytes:
        raise LayoutError("a block has no dynamic shared memory; launch the kernel with shared_bytes=...")
    if nbytes % element.itemsize:
        raise LayoutError(f"{nbytes} bytes of dynamic shared memory are not a multiple of {element.itemsize}")
    store: Store = machine.memory.dynamic()
    return store.with_fields(data=store.data.view(element.dtype), format=element)


def shared_array(shape: object, dtype: FormatLike = "float32") -> TileTensor:
    """Return a tensor in the shared memory of the block: one for all its threads, and one per line that asks for it.

    `shape` is a number, a tuple or a layout. The memory has no values until a thread writes them.

    >>> import numpy as np
    >>> from tilewright_mojo.simt import barrier, launch, thread_idx
    >>> def kernel(out):
    ...     shared = shared_array((2, 2), "int32")
    ...     if thread_idx.x == 0:
    ...         shared[1, 1] = 5
    ...     barrier()
    ...     out[thread_idx.x] = shared[1, 1]
    >>> numbers = np.zeros(2, dtype=np.int32)
    >>> launch(kernel, numbers, grid=1, block=2).errors, numbers.tolist()
    ((), [5, 5])
    """
    return _make_array(SHARED, shape, dtype)


def local_array(shape: object, dtype: FormatLike = "float32") -> TileTensor:
    """Return a tensor of the thread's own; `shape` and `dtype` as for `shared_array`.

    >>> from tilewright_mojo.simt import launch
    >>> def kernel():
    ...     numbers = local_array(2, "int32")
    ...     numbers[0] = 7
    ...     print(numbers[0])
    >>> launch(kernel, grid=1, block=1).errors
    7
    ()
    """
    return _make_array(LOCAL, shape, dtype)


def _make_array(space: str, shape: object, dtype: FormatLike) -> TileTensor:
    if isinstance(shape, LayoutLike):
        layout, count = shape, int(shape.cosize)
    else:
        extents = [as_integer(n, "an extent") for n in (shape if isinstance(shape, (tuple, list)) else (shape,))]
        if not extents or min(extents) < 0:
            raise LayoutError(f"expected extents of at least 0, got shape {shape!r}")
        layout, count = row_major(*extents), prod(extents)
    store = allocate_store(space, count, dtype)
    machine = current_machine("memory of a block")
    region = machine.log.table.find(store)[0]
    if region.view is None:
        region.view = TileTensor(store.data, layout)
    tensor: TileTensor = region.view
    return tensor


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
        """Return the accesses in a log.

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
        offset = start + pairs[:, 1] * itemsize
        order = log.examined + np.arange(len(pairs))
        return cls(block, thread, epoch, warp_epoch, number, kind, region, offset, nbytes, order)

    @property
    def size(self) -> int:
        """The number of accesses.

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
        """Whether nothing was written, so that no accesses can conflict.

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
        """Return whether both kinds occur, and not only for the same actor."""
        same = (low[a] == high[a]) & (low[b] == high[b]) & (low[a] == low[b])
        return (high[a] >= 0) & (high[b] >= 0) & ~same

    conflict = differ(WRITE, WRITE) | differ(WRITE, READ) | differ(WRITE, ATOMIC) | differ(ATOMIC, READ)
    chosen: Column = group[starts[conflict]]
    return chosen


def start_copy(store: Store, offsets: object) -> None:
    """Say that the running thread copies into scalars of a store, and has not waited for it yet.

    >>> start_copy(Store.of([1, 2]), [0])  # outside of a kernel nothing has to be waited for
    """
    if is_inside_kernel():
        machine = current_machine("an asynchronous copy")
        machine.thread.copies[-1].append((store, offsets))
        machine.log.mark_copies(store, offsets, IN_FLIGHT)


def commit_copies() -> None:
    """End a group of copies of the running thread.

    >>> commit_copies()
    """
    if is_inside_kernel():
        current_machine("an asynchronous copy").thread.copies.append([])


def wait_for_copies(remaining: int | None = None) -> None:
    """Wait for the copies of the running thread: all, or all except the last `remaining` groups.

    >>> wait_for_copies()
    """
    if not is_inside_kernel():
        return
    machine = current_machine("an asynchronous copy")
    groups = machine.thread.copies
    committed = len(groups) if remaining is None else max(0, len(groups) - 1 - remaining)
    for group in groups[:committed]:
        for store, offsets in group:
            machine.log.mark_copies(store, offsets, WRITTEN)
        group.clear()
