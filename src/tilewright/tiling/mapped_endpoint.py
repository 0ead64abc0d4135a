# SPDX-License-Identifier: Apache-2.0
"""`MappedEndpoint`: an array in a memory-mapped file.

A page that was touched through a map counts as memory of the process until the system takes it back, so streaming a
large file through its map would fill the memory. A contiguous range of the file is therefore read and written directly.
Other tiles go through the map, and the touched pages are released now and then.

Touching a page of a map behind the end of its file kills the process (SIGBUS), and a file can be truncated at any time.
So the size of the file is queried before each tile that goes through the map, which takes 1 us; reading every row of a
tile by a separate call took 5 to 40 times as long as the map (float32, rows of 64 to 1024 elements, in the page cache).
The remaining risk is a file that is truncated while one of its tiles is being copied.
"""

from __future__ import annotations

import mmap
import os
import threading
from functools import partial
from typing import Any

import numpy as np

from ..errors import TransferError
from ..layout import Box
from .endpoints import MemoryEndpoint, TileBuffer, Work
from .store_location import StorageRegion
from .transfer_tensors import ExternalTensor

RELEASE_AFTER = 16 << 20
"""Bytes that may be touched through a map before its pages are released."""

MIN_FILE_READ = 64 << 10
"""Bytes below which a tile goes through the map: a system call for a short range costs more than a page fault."""


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
        self._map: mmap.mmap = root._mmap  # type: ignore[attr-defined]  # NumPy has no public name for it
        start = np.frombuffer(self._map, np.uint8).ctypes.data
        skipped = root.offset - root.offset % mmap.ALLOCATIONGRANULARITY
        self._file_shift = skipped - start  # from an address to a file offset
        steps = zip(array.shape, array.strides, strict=True)
        last = array.ctypes.data + sum([(n - 1) * step for n, step in steps if step > 0]) + array.itemsize
        self._required_size = last + self._file_shift if array.size else 0  # bytes that the file must have
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
        nbytes = tile.size * self.dtype.itemsize
        address = self._contiguous_address(tile, nbytes)
        if address is None:
            return partial(self._copy_through_map, super().plan_import(tile, buffer, fill), nbytes)
        return partial(self._read, buffer.bytes[:nbytes].data, address + self._file_shift)

    def plan_export(self, tile: Box, buffer: TileBuffer) -> Work:
        """Return the work that writes the part of a tile that lies inside the array from a buffer."""
        nbytes = tile.size * self.dtype.itemsize
        address = self._contiguous_address(tile, nbytes)
        if address is None:
            return partial(self._copy_through_map, super().plan_export(tile, buffer), nbytes)
        return partial(self._write, buffer.bytes[:nbytes].data, address + self._file_shift)

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

    def _read(self, buffer: memoryview, offset: int) -> None:
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

    def _write(self, buffer: memoryview, offset: int) -> None:
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
