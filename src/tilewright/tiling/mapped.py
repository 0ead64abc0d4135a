# SPDX-License-Identifier: Apache-2.0
"""The port of a memory-mapped file: tiles that are one stretch of the file are read and written without the map.

A page that was touched through a map counts as memory of the process until the system takes it back, so streaming a
large file through its map fills the memory. A stretch of the file goes straight to and from a buffer instead. Other
tiles go through the map, and what they touched is given back now and then.

A page of a map behind the end of its file kills the process when it is touched (SIGBUS), and a file can be truncated at
any time. So the size of the file is asked for before each tile that goes through the map, which takes 1 us; reading
every row of a tile by a call of its own took 5 to 40 times as long as the map (float32, rows of 64 to 1024 elements, in
the page cache). What remains is a file that is truncated while a tile of it is being copied.
"""

from __future__ import annotations

import mmap
import os
import threading
from functools import partial
from typing import Any

import numpy as np

from ..errors import TransferError
from ..layout.box import Box
from .ports import MemoryPort, Room, Work
from .sharing import Stretch
from .tensors import ExternalTensor

GIVE_BACK_AFTER = 16 << 20
"""Bytes that may be touched through a map before its pages are given back."""

SHORTEST_STRETCH = 64 << 10
"""Bytes below which a tile goes through the map: a call for each short stretch costs more than a page."""


class MappedPort(MemoryPort):
    """The port of an array that lies in a `numpy.memmap`.

    `file` is a descriptor of the mapped file, which the port takes over, where the caller has one.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = np.lib.format.open_memmap(pathlib.Path(folder, "a.npy"), "w+", np.int16, (4, 8))
    ...     port, room = MappedPort(file), Room(32)
    ...     port.importing(Box((2, 0), (2, 8)), room, None)()
    ...     port.close()
    ...     del file, port
    """

    def __init__(self, array: np.ndarray[Any, Any], file: int | None = None) -> None:
        super().__init__(ExternalTensor(array))
        self.likeness = None  # some are better read than touched
        root = map_of(array)
        if root is None:
            raise TransferError(f"expected an array in a memory map, got {type(array).__name__} in plain memory")
        self._map: mmap.mmap = root._mmap  # type: ignore[attr-defined]  # NumPy has no public name for it
        start = np.frombuffer(self._map, np.uint8).ctypes.data
        skipped = root.offset - root.offset % mmap.ALLOCATIONGRANULARITY
        self._shift = skipped - start  # from an address to a place in the file
        steps = zip(array.shape, array.strides, strict=True)
        last = array.ctypes.data + sum([(n - 1) * step for n, step in steps if step > 0]) + array.itemsize
        self._needed = last + self._shift if array.size else 0  # bytes that the file must have
        self._shared = is_shared_map(root)
        if file is None:
            name = str(root.filename)
            file = _opened(name, bool(array.flags.writeable), start) if self._shared else -1
        self._file = file
        self._touched = 0
        self._counting = threading.Lock()

    def close(self) -> None:
        """Close the file; the map stays."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> MappedPort:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def inode(self) -> int | None:
        """Return the inode of the mapped file, if its name still leads to it."""
        return os.fstat(self._file).st_ino if self._file >= 0 else None

    def importing(self, tile: Box, room: Room, fill: Any) -> Work:
        """Return the work that fills a room with a tile."""
        nbytes = tile.size * self.dtype.itemsize
        address = self._straight(tile, nbytes)
        if address is None:
            return partial(self._through_map, super().importing(tile, room, fill), nbytes)
        return partial(self._read, room.bytes[:nbytes].data, address + self._shift)

    def exporting(self, tile: Box, room: Room) -> Work:
        """Return the work that writes a tile from a room, less what lies outside."""
        nbytes = tile.size * self.dtype.itemsize
        address = self._straight(tile, nbytes)
        if address is None:
            return partial(self._through_map, super().exporting(tile, room), nbytes)
        return partial(self._write, room.bytes[:nbytes].data, address + self._shift)

    def stretches(self) -> list[Stretch]:
        """Return the memory of the map, and the part of the file that any other map of it would show, too."""
        in_memory = super().stretches()
        if self._file < 0:
            return in_memory
        file = os.fstat(self._file)
        return [*in_memory, self._stretch_in(("file", file.st_dev, file.st_ino), self._shift)]

    def _straight(self, tile: Box, nbytes: int) -> int | None:
        """Return where a tile starts if it lies inside and is one long stretch of the file."""
        address = self._address(tile) if nbytes >= SHORTEST_STRETCH and self._file >= 0 else None
        if address is None:
            return None
        size = self.dtype.itemsize
        for n, (_, step) in zip(reversed(tile.shape), reversed(self._axes), strict=True):
            if n > 1 and step != size:
                return None
            size *= n
        return address

    def _read(self, room: memoryview, at: int) -> None:
        while room.nbytes:
            count = os.preadv(self._file, [room], at)
            if count == 0:
                raise self._truncated(room.nbytes)
            room, at = room[count:], at + count

    @staticmethod
    def _truncated(missing: int) -> TransferError:
        return TransferError(f"the file ends {missing} bytes before its array does: it was truncated; write it again")

    def _write(self, room: memoryview, at: int) -> None:
        while room.nbytes:
            count = os.pwritev(self._file, [room], at)
            room, at = room[count:], at + count

    def _through_map(self, work: Work, nbytes: int) -> None:
        if self._map.size() < self._needed:  # of the file, however it is called now
            raise self._truncated(self._needed - self._map.size())
        work()
        if not self._shared:  # what is private is nowhere else
            return
        with self._counting:
            self._touched += nbytes
            if self._touched < GIVE_BACK_AFTER:
                return
            self._touched = 0
        # a shared map keeps what was written: only our claim to the pages is dropped
        self._map.madvise(mmap.MADV_DONTNEED)


def _opened(name: str, writeable: bool, address: int) -> int:
    """Return the file behind a map, opened; -1 if the name no longer leads to the file that is mapped."""
    try:
        file = os.open(name, os.O_RDWR if writeable else os.O_RDONLY)
    except OSError:
        return -1
    if os.fstat(file).st_ino == _mapped_inode(address):
        return file
    os.close(file)
    return -1


def _mapped_inode(address: int) -> int:
    """Return the inode that the system has mapped at an address, or -1 where it does not say."""
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


def map_of(array: Any) -> np.memmap[Any, Any] | None:
    """Return the memory map that an array lies in, directly or as a view of views; None if it lies in none.

    >>> map_of(np.zeros(3)) is None
    True
    """
    found = None
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and getattr(array, "_mmap", None) is not None:
            found = array
        array = array.base
    return found


def is_shared_map(array: Any) -> bool:
    """Return whether an array is a memory map of a file whose pages may be given back.

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
