# SPDX-License-Identifier: Apache-2.0
"""The members of zip files: where their bytes are, and compressed ones unpacked to a temporary file."""

from __future__ import annotations

import io
import os
import struct
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from threading import Lock
from typing import IO, Any

import numpy as np

from ..errors import FileFormatError
from .source_file import SourceFile

_LOCAL_HEADER_BYTES = 30  # of a member, before its name
_CHUNK = 1 << 20
ZIP_START = b"PK\x03\x04"

_ZIP_ERRORS: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    ValueError,
    LookupError,  # of an empty name, say
    EOFError,
    OverflowError,
)
with suppress(ImportError):  # a Python may be built without it
    from lzma import LZMAError

    _ZIP_ERRORS += (LZMAError,)
_ZIP_READ_ERRORS: tuple[type[Exception], ...] = (*_ZIP_ERRORS, OSError)


class FileStream(io.RawIOBase):
    """A source file, or the bytes from `start` to `end` of it, as a Python file object for libraries that take one.

    >>> FileStream(SourceFile(__file__)).read(6), FileStream(SourceFile(__file__), 2, 6).read()
    (b'# SPDX', b'SPDX')
    """

    def __init__(self, file: SourceFile, start: int = 0, end: int | None = None) -> None:
        super().__init__()
        self._file, self._at, self._start = file, 0, start
        self._size = (file.size if end is None else end) - start

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to an offset, counted from the start, the position or the end; return the new position."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError(22, "Invalid argument")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer; return their number."""
        out = np.frombuffer(buffer, np.uint8)
        size = max(0, min(len(out), self._size - self._at))
        out[:size] = np.frombuffer(self._file.read(self._start + self._at, size), np.uint8)
        self._at += size
        return size


@contextmanager
def open_zip(file: SourceFile) -> Iterator[zipfile.ZipFile]:
    """Yield the zip archive in a file; what is wrong with it is a `FileFormatError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(f"{folder}/a.zip", "w") as archive:
    ...         archive.writestr("x", b"12")
    ...     with open_zip(SourceFile(f"{folder}/a.zip")) as archive:
    ...         archive.namelist()
    ['x']
    """
    stream: IO[bytes] = io.BufferedReader(FileStream(file))
    try:
        with zipfile.ZipFile(stream) as archive:
            yield archive
    except FileFormatError:
        raise
    except _ZIP_READ_ERRORS as problem:
        if isinstance(problem, OSError) and problem.errno not in (None, 22):
            raise  # a disk error; damaged offsets are invalid arguments, and bzip2 gives no number
        raise FileFormatError(f"cannot read the zip file: {problem}") from None


def find_member_ranges(members: Sequence[zipfile.ZipInfo], file: SourceFile) -> list[tuple[int, int]]:
    """Return (start, end) of the stored bytes of members in their zip file; their headers are read in one go.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(f"{folder}/a.zip", "w") as archive:
    ...         archive.writestr("x", b"12")
    ...     with open_zip(SourceFile(f"{folder}/a.zip")) as archive:
    ...         find_member_ranges(archive.infolist(), SourceFile(f"{folder}/a.zip"))
    [(31, 33)]
    """
    starts = [info.header_offset for info in members]
    for info in members:
        if not 0 <= info.header_offset <= file.size - _LOCAL_HEADER_BYTES:
            raise FileFormatError(f"member {info.filename!r} extends beyond the end of the file")
        if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
            sizes = f"{info.compress_size} bytes, not {info.file_size}"
            raise FileFormatError(f"member {info.filename!r} is stored in {sizes}")
    headers = np.empty((len(members), _LOCAL_HEADER_BYTES), np.uint8)
    file.read_equal_runs(np.array(starts, np.int64), _LOCAL_HEADER_BYTES, headers.reshape(-1))
    result = []
    for info, header in zip(members, headers, strict=True):
        begin = info.header_offset + _LOCAL_HEADER_BYTES + sum(struct.unpack_from("<HH", header.tobytes(), 26))
        if begin + info.compress_size > file.size:
            raise FileFormatError(f"member {info.filename!r} extends beyond the end of the file")
        result.append((begin, begin + info.compress_size))
    return result


def reject_overlaps(ranges: list[tuple[int, int]]) -> None:
    """Raise if members share bytes, which is how a small file unpacks to terabytes.

    >>> reject_overlaps([(31, 33), (64, 70)])
    """
    for (_, end), (start, _) in pairwise(sorted(ranges)):
        if start < end:
            raise FileFormatError(f"two members overlap in bytes {start} to {end}")


class UnpackedFile(SourceFile):
    """Bytes that are made from those of another file, on first use, in a nameless temporary file.

    A subclass has a `_copy_to`, which writes them.

    >>> [each.__name__ for each in UnpackedFile.__subclasses__()][:1]
    ['UnpackedMember']
    """

    __slots__ = ("__weakref__", "_container", "_handle", "_once")

    def __init__(self, container: SourceFile, size: int) -> None:
        self.path, self.size, self.time, self._map = container.path, size, container.time, None
        self._container, self._once = container, Lock()
        self._handle: Any = None

    def _reopen(self) -> int:
        with self._once:
            if self._handle is None:
                self._handle = self._unpack()
                weakref.finalize(self, self._handle.close)
        return os.dup(self._handle.fileno())

    def _unpack(self) -> Any:
        handle = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as this object)
        try:
            self._copy_to(handle)
        except BaseException:
            handle.close()
            raise
        handle.flush()
        return handle

    def _copy_to(self, handle: Any) -> None:
        raise NotImplementedError


class UnpackedMember(UnpackedFile):
    """A compressed member of a zip file, unpacked.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zipfile.ZipFile(f"{folder}/a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    ...         archive.writestr("x", b"12")
    ...     file = SourceFile(f"{folder}/a.zip")
    ...     with open_zip(file) as archive:
    ...         info = archive.getinfo("x")
    ...     UnpackedMember(file, info).read(1, 1)
    b'2'
    """

    __slots__ = ("_info",)

    def __init__(self, container: SourceFile, info: zipfile.ZipInfo) -> None:
        super().__init__(container, info.file_size)
        self._info = info

    def __reduce__(self) -> Any:
        return UnpackedMember, (self._container, self._info)

    def _copy_to(self, handle: Any) -> None:
        left, name = self.size, f"{self.path}: {self._info.filename!r}"
        stream: IO[bytes] = io.BufferedReader(FileStream(self._container))
        try:
            with zipfile.ZipFile(stream) as archive, archive.open(self._info) as member:
                while chunk := member.read(min(_CHUNK, left + 1)):
                    left -= len(chunk)
                    if left < 0:
                        raise FileFormatError(f"{name} is longer than its header says")
                    handle.write(chunk)
        except FileFormatError:
            raise
        except _ZIP_READ_ERRORS as problem:
            if isinstance(problem, OSError) and problem.errno is not None:
                raise  # a disk error; bzip2 raises OSError without errno for damaged data
            raise FileFormatError(f"{self.path}: cannot unpack {self._info.filename!r}: {problem}") from None
        if left:
            raise FileFormatError(f"{name} is {left} bytes shorter than its header says")
