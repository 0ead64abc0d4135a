# SPDX-License-Identifier: Apache-2.0
"""`SourceFile`: a file that several threads read in pieces, and that must not change meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._files import as_path, map_file
from .._json import parse_json
from ..copying import native
from ..errors import FileFormatError
from .file_names import resolve_inside

ByteArray: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
FilePath: TypeAlias = "str | os.PathLike[str]"
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


class SourceFile:
    """A regular file: its size, a map of its bytes, and reads of ranges into given memory.

    No descriptor stays open, so thousands of files can be used. A read raises if the size or the modification time of
    the file has changed since it was first opened.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.bin")
    ...     _ = path.write_bytes(b"0123456789")
    ...     file = SourceFile(path)
    ...     file.size, file.read(2, 3), file.map()[-1:].tobytes()
    (10, b'234', b'9')
    """

    __slots__ = ("_map", "path", "size", "time")

    def __init__(self, path: FilePath) -> None:
        self.path = as_path(path)
        self._map: ByteArray | None = None
        handle, result = self._open_checked()
        os.close(handle)
        self.size, self.time = result.st_size, result.st_mtime_ns

    def __getstate__(self) -> tuple[Path, int, int]:
        # the map is not sent, and the receiver may be in another directory
        return self.path.absolute(), self.size, self.time

    def __setstate__(self, state: tuple[Path, int, int]) -> None:
        self.path, self.size, self.time = state
        self._map = None

    def _open_checked(self) -> tuple[int, os.stat_result]:
        # O_NONBLOCK: a named pipe would otherwise hang here until someone writes to it
        handle = os.open(self.path, _READ_FLAGS)
        result = os.fstat(handle)
        if not stat.S_ISREG(result.st_mode):
            os.close(handle)
            raise FileFormatError(f"{self.path} is not a regular file")
        return handle, result

    def _reopen(self) -> int:
        handle, result = self._open_checked()
        if (result.st_size, result.st_mtime_ns) != (self.size, self.time):
            os.close(handle)
            raise FileFormatError(f"{self.path} has changed since it was opened; open it again")
        return handle

    def map(self) -> ByteArray:
        """Return all bytes as a read-only memory map.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.bin")
        ...     _ = path.write_bytes(b"ab")
        ...     SourceFile(path).map().tolist()
        [97, 98]
        """
        if self._map is None:
            handle = self._reopen()
            try:
                mapped = map_file(handle)
            finally:
                os.close(handle)
            self._map = np.frombuffer(mapped, np.uint8)
        return self._map

    def read_runs(self, runs: Iterable[tuple[int, int]], out: ByteArray) -> None:
        """Read ranges, `runs` of (offset, size), one after the other into `out`.

        >>> import tempfile
        >>> out = np.zeros(3, np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.bin")
        ...     _ = path.write_bytes(b"0123456789")
        ...     SourceFile(path).read_runs([(8, 2), (0, 1)], out)
        >>> out.tobytes()
        b'890'
        """
        view, at = out.data, 0
        handle = self._reopen()
        try:
            for offset, size in runs:
                self._read_into(handle, offset, view[at : at + size])
                at += size
        finally:
            os.close(handle)

    def read_equal_runs(self, starts: NDArray[np.int64], size: int, out: ByteArray) -> None:
        """Read ranges of `size` bytes at the offsets `starts`, one after the other into `out`.

        >>> import tempfile
        >>> out = np.zeros(4, np.uint8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.bin")
        ...     _ = path.write_bytes(b"0123456789")
        ...     SourceFile(path).read_equal_runs(np.array([8, 0]), 2, out)
        >>> out.tobytes()
        b'8901'
        """
        library = native.load_library()
        handle = self._reopen()
        try:
            first = 0
            if library is not None and len(starts) > 1:
                offsets = np.ascontiguousarray(starts, np.int64)
                first = library.tw_read_runs(handle, offsets.ctypes.data, len(offsets), size, out.ctypes.data)
            for k in range(first, len(starts)):
                self._read_into(handle, int(starts[k]), out.data[k * size : (k + 1) * size])
        finally:
            os.close(handle)

    def _read_into(self, handle: int, offset: int, part: memoryview) -> None:
        while len(part):
            try:
                count = _read_at(handle, offset, part)
            except OSError as problem:
                raise type(problem)(problem.errno, problem.strerror, str(self.path)) from None
            if not count:
                raise FileFormatError(f"{self.path} ends at byte {offset}, but {len(part)} more bytes were expected")
            part, offset = part[count:], offset + count

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes at `offset`.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a.bin")
        ...     _ = path.write_bytes(b"0123456789")
        ...     SourceFile(path).read(4, 2)
        b'45'
        """
        if offset + size > self.size:
            raise FileFormatError(f"cannot read {size} bytes at {offset}: the file has {self.size}")
        out = np.empty(size, np.uint8)
        self.read_runs([(offset, size)], out)
        return out.tobytes()

    def map_range(self, start: int, end: int) -> ByteArray:
        """Return the bytes from `start` to `end` as a read-only memory map.

        >>> SourceFile(__file__).map_range(2, 6).tobytes()
        b'SPDX'
        """
        return self.map()[start:end]

    def open_beside(self, name: str, follow_symlinks: bool = False) -> SourceFile:
        """Return the file of another name in the same directory; raise if the name points outside.

        `follow_symlinks` allows links that do.

        >>> SourceFile(__file__).open_beside("npy.py").path.name
        'npy.py'
        """
        return SourceFile(resolve_inside(self.path.parent, name, follow_symlinks))

    def __repr__(self) -> str:
        return f"SourceFile({str(self.path)!r})"


def as_source_file(path: FilePath | SourceFile) -> SourceFile:
    """Return the file at a path, or one that is open already.

    >>> as_source_file(SourceFile(__file__)).path.name
    'source_file.py'
    """
    return path if isinstance(path, SourceFile) else SourceFile(path)


def _read_at(handle: int, offset: int, part: memoryview) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(handle, [part], offset)
    os.lseek(handle, offset, os.SEEK_SET)  # the handle belongs to this call
    result = os.read(handle, len(part))
    part[: len(result)] = result
    return len(result)


def read_json(path: FilePath | SourceFile, name: str, max_bytes: int) -> Any:
    """Return the parsed JSON of the file at `path`, which must not be larger than `max_bytes`; `name` is for messages.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "index.json").write_text("[1, 2]")
    ...     read_json(Path(folder, "index.json"), "the index", 100)
    [1, 2]
    """
    file = as_source_file(path)
    if file.size > max_bytes:
        raise FileFormatError(f"{name} has {file.size} bytes, more than {max_bytes}")
    return parse_json(file.read(0, file.size), name)
