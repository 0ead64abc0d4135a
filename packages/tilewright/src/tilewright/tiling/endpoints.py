# SPDX-License-Identifier: Apache-2.0
"""Endpoints: the arrays in memory, in mapped files and on devices that tiles are imported from and exported to.

Addressable memory is copied straight to and from a buffer by a copy plan.

A page that was touched through a map counts as memory of the process until the system takes it back, so streaming a
large file through its map would fill the memory. A contiguous range of the file is therefore read and written directly.
Other tiles go through the map, and the touched pages are released now and then.

Touching a page of a map behind the end of its file kills the process (SIGBUS), and a file can be truncated at any time.
So the size of the file is queried before each tile that goes through the map, which takes 1 us; reading every row of a
tile by a separate call took 5 to 40 times as long as the map (float32, rows of 64 to 1024 elements, in the page cache).
The remaining risk is a file that is truncated while one of its tiles is being copied.
"""

from __future__ import annotations

import os
import threading
from functools import partial
from math import gcd, prod
from typing import Any, Protocol

import numpy as np

from .._files import mmap
from ..copying import DeviceArray, Footprint, Runner, dense_footprint, packed_strides, strided_range
from ..errors import TransferError
from ..layout import Box
from .array_store import StorageRegion
from .tile_copies import (
    LARGE_TARGET,
    BoundCopy,
    CopyList,
    Work,
    compile_word_copy,
    export_copies,
    import_copies,
)
from .transfer_tensors import ExternalTensor, TileBuffer

RELEASE_AFTER = 16 << 20
"""Bytes that may be touched through a map before its pages are released."""

MIN_FILE_READ = 64 << 10
"""Bytes below which a tile goes through the map: a system call for a short range costs more than a page fault."""


class Endpoint(Protocol):
    """An array that tiles are imported from or exported to.

    >>> MemoryEndpoint(ExternalTensor(np.zeros((4, 8)))).shape
    (4, 8)
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Any) -> Work:
        """Return the work that reads a tile into a buffer, padded with `fill`."""

    def plan_export(self, tile: Box, buffer: TileBuffer) -> Work:
        """Return the work that writes the part of a tile that lies inside the array from a buffer."""

    def regions(self) -> list[StorageRegion]:
        """Return the bytes that the array occupies."""


class MemoryEndpoint:
    """An array in addressable memory.

    Tiles that lie inside have a fast path: their copy depends on their shape alone, and only addresses differ.

    >>> MemoryEndpoint(ExternalTensor(np.zeros((4, 8), np.int16))).dtype
    dtype('int16')
    """

    def __init__(self, tensor: ExternalTensor) -> None:
        self.tensor = tensor
        self.shape, self.dtype = tensor.shape, tensor.dtype
        is_entire = tensor.window.offset == (0,) * len(tensor.space) and tensor.shape == tensor.space
        self._fast = is_entire and tensor.strides is not None and tensor.in_bounds
        strides = tensor.strides or ()
        # every tile starts a multiple of the strides from the base, and every buffer at a cache line
        self._word = gcd(self.dtype.itemsize, 8, tensor.address, *strides) if self.dtype.itemsize else 1
        self._base = tensor.address
        self._large = prod(self.shape) * self.dtype.itemsize >= LARGE_TARGET
        self._tile_copies: dict[tuple[tuple[int, ...], bool], tuple[Runner, int]] = {}
        self._axes = tuple(zip(self.shape, strides, strict=True)) if self._fast else ()
        # Arrays with equal keys have equal copies, up to their base address; None: the copies depend on more.
        self.copy_key: Any = (self._axes, self.dtype, self._base % 8) if self._fast else None

    def _tile_address(self, tile: Box) -> int | None:
        """Return the address of a tile on the fast path, None for other tiles."""
        if not self._fast:
            return None
        address = self._base
        for start, n, (extent, stride) in zip(tile.offset, tile.shape, self._axes, strict=True):
            if start < 0 or start + n > extent or not n:
                return None
            address += start * stride
        return address

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Any) -> Work:
        """Return the work that reads a tile into a buffer, padded with `fill`."""
        address = self._tile_address(tile)
        if address is None:
            return import_copies(buffer.tensor(tile.shape, self.dtype), self.tensor.tile(tile), fill)
        run, low = self._compile_tile_copy(tile.shape, importing=True)
        return CopyList([BoundCopy(run, address + low, buffer.address, (self.tensor, buffer))])

    def plan_export(self, tile: Box, buffer: TileBuffer) -> Work:
        """Return the work that writes the part of a tile that lies inside the array from a buffer."""
        address = self._tile_address(tile)
        if address is None:
            return export_copies(buffer.tensor(tile.shape, self.dtype), self.tensor.tile(tile), clip=True)
        run, low = self._compile_tile_copy(tile.shape, importing=False)
        return CopyList([BoundCopy(run, buffer.address, address + low, (self.tensor, buffer))])

    def _compile_tile_copy(self, shape: tuple[int, ...], importing: bool) -> tuple[Runner, int]:
        """Return the copy of tiles of a shape that lie inside, and the lowest byte offset from a tile's start."""
        known = self._tile_copies.get((shape, importing))
        if known is None:
            size, strides = self.dtype.itemsize, self.tensor.strides or ()
            packed = packed_strides(shape, size)
            if importing:
                run, low, _ = compile_word_copy(shape, strides, packed, size, self._word)
            else:
                run, _, low = compile_word_copy(shape, packed, strides, size, self._word, self._large)
            known = self._tile_copies[shape, importing] = (run, low)
        return known

    def regions(self) -> list[StorageRegion]:
        """Return the memory of the tensor."""
        return [self._region("memory", 0)]

    def _region(self, store: Any, shift: int) -> StorageRegion:
        """Return the bytes of the tensor in a store, with `shift` added to their addresses."""
        tensor, first = self.tensor, self.tensor.address + shift
        if tensor.strides is None:
            footprint = dense_footprint(tensor.memory.address + shift, tensor.memory.nbytes)
        else:
            footprint = Footprint(first, tensor.space, tensor.strides, self.dtype.itemsize)
        return StorageRegion(store, footprint, (first, tensor.strides or tensor.layout, tensor.window.offset))


class MappedEndpoint(MemoryEndpoint):
    """An array that lies in a `numpy.memmap`.

    `file` is an open descriptor of the mapped file, which the endpoint takes over; without it, the file is opened.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = np.lib.format.open_memmap(pathlib.Path(folder, "a.npy"), "w+", np.int16, (4, 8))
    ...     endpoint, buffer = MappedEndpoint(file), TileBuffer(32)
    ...     endpoint.plan_import(Box((2, 0), (2, 8)), buffer, None)()
    ...     endpoint.close()
    ...     del file, endpoint
    """

    def __init__(self, array: np.ndarray[Any, Any], file: int | None = None) -> None:
        super().__init__(ExternalTensor(array))
        self.copy_key = None  # large tiles are read from the file
        root = find_memmap(array)
        if root is None:
            raise TransferError(f"expected an array in a memory map, got {type(array).__name__} in plain memory")
        self._map: Any = root._mmap  # type: ignore[attr-defined]  # NumPy has no public name for it
        start = np.frombuffer(self._map, np.uint8).ctypes.data
        skipped = root.offset - root.offset % mmap.ALLOCATIONGRANULARITY
        self._file_shift = skipped - start  # from an address to a file offset
        _, end = strided_range(array.shape, array.strides, array.itemsize)
        # bytes that the file must have
        self._required_size = array.ctypes.data + end + self._file_shift if array.size else 0
        self._shared = is_shared_map(root)
        if file is None:
            name = str(root.filename)
            file = _open_mapped_file(name, bool(array.flags.writeable), start) if self._shared else -1
        self._file = file
        self._touched = 0
        self._touched_lock = threading.Lock()

    def close(self) -> None:
        """Close the file; the map stays."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> MappedEndpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def inode(self) -> int | None:
        """Return the inode of the mapped file, None if its path now names another file."""
        return os.fstat(self._file).st_ino if self._file >= 0 else None

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Any) -> Work:
        """Return the work that reads a tile into a buffer, padded with `fill`."""
        nbytes = prod(tile.shape) * self.dtype.itemsize
        address = self._contiguous_address(tile, nbytes)
        if address is None:
            return partial(self._copy_through_map, super().plan_import(tile, buffer, fill), nbytes)
        return partial(self._read_file, buffer.bytes[:nbytes].data, address + self._file_shift)

    def plan_export(self, tile: Box, buffer: TileBuffer) -> Work:
        """Return the work that writes the part of a tile that lies inside the array from a buffer."""
        nbytes = prod(tile.shape) * self.dtype.itemsize
        address = self._contiguous_address(tile, nbytes)
        if address is None:
            return partial(self._copy_through_map, super().plan_export(tile, buffer), nbytes)
        return partial(self._write_file, buffer.bytes[:nbytes].data, address + self._file_shift)

    def regions(self) -> list[StorageRegion]:
        """Return the memory of the map, and the range of the file, which other maps may share."""
        in_memory = super().regions()
        if self._file < 0:
            return in_memory
        file = os.fstat(self._file)
        return [*in_memory, self._region(("file", file.st_dev, file.st_ino), self._file_shift)]

    def _contiguous_address(self, tile: Box, nbytes: int) -> int | None:
        """Return the address of a tile that is one long contiguous range of the file, None for other tiles."""
        address = self._tile_address(tile) if nbytes >= MIN_FILE_READ and self._file >= 0 else None
        if address is None:
            return None
        size = self.dtype.itemsize
        for n, (_, step) in zip(reversed(tile.shape), reversed(self._axes), strict=True):
            if n > 1 and step != size:
                return None
            size *= n
        return address

    def _read_file(self, buffer: memoryview, offset: int) -> None:
        while buffer.nbytes:
            count = os.preadv(self._file, [buffer], offset)
            if count == 0:
                raise self._truncated_error(buffer.nbytes)
            buffer, offset = buffer[count:], offset + count

    @staticmethod
    def _truncated_error(missing: int) -> TransferError:
        return TransferError(
            f"the file was truncated: the last {missing} bytes of its array are missing; write the file again"
        )

    def _write_file(self, buffer: memoryview, offset: int) -> None:
        while buffer.nbytes:
            count = os.pwritev(self._file, [buffer], offset)
            buffer, offset = buffer[count:], offset + count

    def _copy_through_map(self, work: Work, nbytes: int) -> None:
        if self._map.size() < self._required_size:  # asks for the size of the file
            raise self._truncated_error(self._required_size - self._map.size())
        work()
        if not self._shared:  # private pages exist nowhere else
            return
        with self._touched_lock:
            self._touched += nbytes
            if self._touched < RELEASE_AFTER:
                return
            self._touched = 0
        # the file keeps what was written: only our claim to the pages is dropped
        self._map.madvise(mmap.MADV_DONTNEED)


def _open_mapped_file(name: str, writable: bool, address: int) -> int:
    """Return a descriptor of the file mapped at an address; -1 if the name is now another file."""
    try:
        file = os.open(name, os.O_RDWR if writable else os.O_RDONLY)
    except OSError:
        return -1
    if os.fstat(file).st_ino == _mapped_inode(address):
        return file
    os.close(file)
    return -1


def _mapped_inode(address: int) -> int:
    """Return the inode of the file mapped at an address, -1 if unknown."""
    try:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            for line in maps:
                span, _, _, _, inode, *_ = line.split()
                low, high = (int(end, 16) for end in span.split("-"))
                if low <= address < high:
                    return int(inode)
    except OSError:
        pass
    return -1


def find_memmap(array: Any) -> np.memmap[Any, Any] | None:
    """Return the memory map that an array is a view of, directly or through other views; None if there is none.

    >>> find_memmap(np.zeros(3)) is None
    True
    """
    memmap = None
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and getattr(array, "_mmap", None) is not None:
            memmap = array
        array = array.base
    return memmap


def is_shared_map(array: Any) -> bool:
    """Return whether an array is a shared memory map of a file, whose pages may be released.

    >>> is_shared_map(np.zeros(3))
    False
    """
    return (
        isinstance(array, np.memmap)
        and getattr(array, "_mmap", None) is not None
        and getattr(array, "mode", None) in ("r", "r+", "w+")
        and getattr(array, "filename", None) is not None
        and hasattr(os, "preadv")
        and hasattr(mmap, "MADV_DONTNEED")
    )


class DeviceEndpoint:
    """An array in the memory of a device, where a pipeline runs as a kernel.

    >>> from tilewright.formats import float32
    >>> array = DeviceArray(backend=None, memory=0, start=0, shape=(4,), strides=(4,), format=float32, owner=None)
    >>> DeviceEndpoint(array).dtype
    dtype('float32')
    """

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        self.shape, self.dtype = tuple([int(n) for n in array.shape]), array.dtype

    def plan_import(self, tile: Box, buffer: TileBuffer, fill: Any) -> Work:
        """Raise: the host cannot address this memory."""
        raise self._not_on_host()

    def plan_export(self, tile: Box, buffer: TileBuffer) -> Work:
        """Raise: the host cannot address this memory."""
        raise self._not_on_host()

    def regions(self) -> list[StorageRegion]:
        """Return the memory of the array: in the device's address space, or in the buffer object that holds it."""
        array = self.array
        store, shift = ("device", array.memory) if isinstance(array.memory, int) else (array.memory, 0)
        footprint = Footprint(array.start + shift, array.shape, array.strides, array.itemsize)
        return [StorageRegion(store, footprint, (footprint.first, array.strides))]

    def _not_on_host(self) -> TransferError:
        engine = self.array.backend.engine
        return TransferError(
            f"an operand is in {engine} memory, which the host cannot address; give the compute in C, as in"
            f" pipeline.kernel('2 * in0', engine={engine!r}).run(), or copy the operand to the host"
        )
