# SPDX-License-Identifier: Apache-2.0
"""Files that are written in pieces, and ranges of files that are hashed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ..files.source_file import SourceFile

_CHUNK = 1 << 20  # bytes that are hashed at a time


class OutputFile:
    """A file that several threads write at places of their own; errors name the file that it will become.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as opened:
    ...     file = OutputFile(opened.fileno(), Path("x"))
    ...     file.write(2, b"cd")
    ...     file.write(0, b"ab")
    ...     file.extend(6)
    ...     file.sync()
    ...     opened.read()
    b'abcd\\x00\\x00'
    """

    def __init__(self, handle: int, named: Path) -> None:
        self.named = named
        self._handle = handle
        self._turn = Lock()

    def _named(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except OSError as problem:
            raise type(problem)(problem.errno, problem.strerror, str(self.named)) from None

    def write(self, offset: int, data: Any) -> None:
        """Write bytes at a place."""
        view = memoryview(data).cast("B") if not isinstance(data, np.ndarray) else data.data.cast("B")
        self._named(lambda: self._write_all(view, offset))

    def _write_all(self, view: memoryview, offset: int) -> None:
        while len(view):
            count = self._write_at(view, offset)
            view, offset = view[count:], offset + count

    def _write_at(self, view: memoryview, offset: int) -> int:
        if hasattr(os, "pwrite"):
            return os.pwrite(self._handle, view, offset)
        with self._turn:
            os.lseek(self._handle, offset, os.SEEK_SET)
            return os.write(self._handle, view)

    def extend(self, size: int) -> None:
        """Make the file at least so long."""
        if os.fstat(self._handle).st_size < size:
            self._named(lambda: os.truncate(self._handle, size))

    def sync(self) -> None:
        """Wait until everything is on the disk."""
        self._named(lambda: os.fsync(self._handle))


def hash_range(path: Path, start: int, end: int, file: SourceFile | None = None) -> str:
    """Return the SHA-256 of a range of a file, read piece by piece.

    >>> hash_range(Path(__file__), 0, 0)[:8]
    'e3b0c442'
    """
    source = SourceFile(path) if file is None else file
    digest, room = hashlib.sha256(), np.empty(min(_CHUNK, max(1, end - start)), np.uint8)
    for at in range(start, end, _CHUNK):
        piece = room[: min(_CHUNK, end - at)]
        source.read_runs([(at, len(piece))], piece)
        digest.update(piece.data)
    return digest.hexdigest()
