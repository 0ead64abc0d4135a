# SPDX-License-Identifier: Apache-2.0
"""Output files that several threads write in pieces, and the SHA-256 of byte ranges."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from threading import Condition, Lock
from typing import Any

import numpy as np

from ..files.sha256 import new_hash, update_pair
from ..files.source_file import SourceFile

_CHUNK = 1 << 20  # bytes that are hashed at a time


class OutputFile:
    """A file that several threads write at different offsets; errors name the final path `named`.

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
        self._next_number = Lock()

    def _call_with_path(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except OSError as problem:
            raise type(problem)(problem.errno, problem.strerror, str(self.named)) from None

    def write(self, offset: int, data: Any) -> None:
        """Write bytes at an offset."""
        view = memoryview(data).cast("B") if not isinstance(data, np.ndarray) else data.data.cast("B")
        self._call_with_path(lambda: self._write_all(view, offset))

    def _write_all(self, view: memoryview, offset: int) -> None:
        while len(view):
            count = self._write_at(view, offset)
            view, offset = view[count:], offset + count

    def _write_at(self, view: memoryview, offset: int) -> int:
        if hasattr(os, "pwrite"):
            return os.pwrite(self._handle, view, offset)
        with self._next_number:
            os.lseek(self._handle, offset, os.SEEK_SET)
            return os.write(self._handle, view)

    def extend(self, size: int) -> None:
        """Extend the file to at least `size` bytes."""
        if os.fstat(self._handle).st_size < size:
            self._call_with_path(lambda: os.truncate(self._handle, size))

    def sync(self) -> None:
        """Flush the file to disk."""
        self._call_with_path(lambda: os.fsync(self._handle))


def hash_range(path: Path, start: int, end: int, file: SourceFile | None = None) -> str:
    """Return the SHA-256 of a byte range of a file.

    >>> hash_range(Path(__file__), 0, 0)[:8]
    'e3b0c442'
    """
    source = SourceFile(path) if file is None else file
    digest, buffer = hashlib.sha256(), np.empty(min(_CHUNK, max(1, end - start)), np.uint8)
    for at in range(start, end, _CHUNK):
        piece = buffer[: min(_CHUNK, end - at)]
        source.read_runs([(at, len(piece))], piece)
        digest.update(piece.data)
    return digest.hexdigest()


Piece = tuple[int | None, Any]
"""The start of a piece in its range (None: it is in several places), and its bytes."""


class PieceHashes:
    """The SHA-256 of byte ranges, such as a source and an output, from numbered pieces of several threads.

    A piece that does not start where the previous one ended means that its range must be read again; `in_order` says
    for each range whether that never happened.

    >>> hashes = PieceHashes(0, 100)
    >>> hashes.add(0, (0, b"ab"), (100, b"x"))
    >>> hashes.add(1, (2, b"c"), (None, b""))
    >>> hashes.in_order, hashes.hexdigest(0)[:8]
    ([True, False], 'ba7816bf')
    """

    def __init__(self, *begins: int) -> None:
        self._hashes = [new_hash() for _ in begins]
        self._positions = list(begins)
        self._next_number = 0
        self._changed = Condition()
        self.in_order = [True for _ in begins]

    def add_prefix(self, stream: int, data: bytes) -> None:
        """Hash bytes before the first piece of a range.

        >>> hashes = PieceHashes(0, 0)
        >>> hashes.add_prefix(1, b"abc")
        >>> hashes.hexdigest(1)[:8]
        'ba7816bf'
        """
        self._hashes[stream].update(data)
        self._positions[stream] += len(data)

    def add(self, number: int, *pieces: Piece) -> None:
        """Hash piece `number` of each range, after the previous pieces.

        >>> hashes = PieceHashes(0, 0)
        >>> hashes.add(0, (None, b""), (None, b""))
        >>> hashes.in_order
        [False, False]
        """
        hash_pieces([(self, number, pieces)])

    def _wait_for_turn(self, number: int, pieces: tuple[Piece, ...]) -> list[int]:
        """Wait for the turn of piece `number`, and return the ranges to hash."""
        with self._changed:
            for k, (start, _) in enumerate(pieces):
                if start is None:
                    self.in_order[k] = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: not any(self.in_order) or self._next_number == number)
            for k, (start, _) in enumerate(pieces):
                self.in_order[k] = self.in_order[k] and start == self._positions[k]
            return [k for k, in_order in enumerate(self.in_order) if in_order]

    def _pass_turn(self, pieces: tuple[Piece, ...], active: list[int]) -> None:
        """Pass the turn to the next piece."""
        with self._changed:
            for k in active:
                self._positions[k] += len(pieces[k][1])
            self._next_number += 1
            self._changed.notify_all()

    def abandon(self) -> None:
        """Release all waiting threads: a piece will never come."""
        with self._changed:
            self.in_order = [False for _ in self.in_order]
            self._changed.notify_all()

    def hexdigest(self, stream: int) -> str:
        """Return the hash of a range so far.

        >>> PieceHashes(0).hexdigest(0)[:8]
        'e3b0c442'
        """
        return self._hashes[stream].hexdigest()


def hash_pieces(pieces_of: list[tuple[PieceHashes, int, tuple[Piece, ...]]]) -> None:
    """Add pieces to several hashes in their turn, two pieces of similar length at a time.

    >>> one, other = PieceHashes(0), PieceHashes(0)
    >>> hash_pieces([(one, 0, ((0, b"abc"),)), (other, 0, ((0, b"abc"),))])
    >>> one.hexdigest(0) == other.hexdigest(0)
    True
    """
    begun = [(hashes, pieces, hashes._wait_for_turn(number, pieces)) for hashes, number, pieces in pieces_of]
    # while it is their turn, no other thread uses them
    streams = [(hashes._hashes[k], pieces[k][1]) for hashes, pieces, active in begun for k in active]
    streams.sort(key=lambda stream: -len(stream[1]))
    for (one, first), (other, second) in zip(streams[::2], streams[1::2], strict=False):
        update_pair(one, first, other, second)
    if len(streams) % 2:
        last, data = streams[-1]
        last.update(data.data if hasattr(data, "ctypes") else data)
    for hashes, pieces, active in begun:
        hashes._pass_turn(pieces, active)
