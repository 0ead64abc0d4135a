# SPDX-License-Identifier: Apache-2.0
"""Output files that several threads write in pieces, and the SHA-256 of byte ranges, two at a time."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Condition, Lock
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..copying import native_library
from ..errors import FileFormatError
from ..files import StoredTensor

_CHUNK = 1 << 20  # bytes that are hashed at a time
BLOCK_BYTES = 4096  # of a disk: what passes the page cache by starts and ends between blocks, in memory and in the file
_MIN_DIRECT_BYTES = 1 << 18  # shorter writes go through the page cache
_DIRECT = getattr(os, "O_DIRECT", 0)


class OutputFile:
    """A file that several threads write at different offsets; errors name the final path `named`.

    Long writes from memory that has the place of the file in its blocks pass the page cache by, where the system can do
    that: what has to be on the disk anyway is not copied once more.

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
        self._seek_lock = Lock()
        self._direct: int | None = None

    def _call_with_path(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except OSError as problem:
            raise type(problem)(problem.errno, problem.strerror, str(self.named)) from None

    def write(self, offset: int, data: Any) -> None:
        """Write bytes at an offset."""
        view = memoryview(data).cast("B") if not isinstance(data, np.ndarray) else data.data.cast("B")
        first = min(-offset % BLOCK_BYTES, len(view))  # bytes before the first block, and after the last one
        last = len(view) - (len(view) - first) % BLOCK_BYTES
        is_aligned = isinstance(data, np.ndarray) and (data.ctypes.data + first) % BLOCK_BYTES == 0
        if not is_aligned or last - first < _MIN_DIRECT_BYTES:
            first = last = len(view)
        self._call_with_path(lambda: self._write_all(view[:first], offset))
        self._call_with_path(lambda: self._write_blocks(view[first:last], offset + first))
        self._call_with_path(lambda: self._write_all(view[last:], offset + last))

    def _write_all(self, view: memoryview, offset: int) -> None:
        while len(view):
            count = self._write_at(view, offset)
            view, offset = view[count:], offset + count

    def _write_blocks(self, view: memoryview, offset: int) -> None:
        """Write blocks past the page cache, or through it if the file system refuses."""
        with self._seek_lock:
            if len(view) and self._direct is None:
                self._direct = _open_direct(self._handle)
        count = 0
        if len(view) and self._direct is not None:
            try:
                count = os.pwrite(self._direct, view, offset)
            except OSError as problem:
                if problem.errno != errno.EINVAL:
                    raise
        self._write_all(view[count:], offset + count)

    def _write_at(self, view: memoryview, offset: int) -> int:
        if hasattr(os, "pwrite"):
            return os.pwrite(self._handle, view, offset)
        with self._seek_lock:
            os.lseek(self._handle, offset, os.SEEK_SET)
            return os.write(self._handle, view)

    def extend(self, size: int) -> None:
        """Extend the file to at least `size` bytes."""
        if os.fstat(self._handle).st_size < size:
            self._call_with_path(lambda: os.truncate(self._handle, size))

    def sync(self) -> None:
        """Flush the file to disk."""
        self._call_with_path(lambda: os.fsync(self._handle))

    def close(self) -> None:
        """Close what was opened here; the handle stays open."""
        if self._direct is not None:
            os.close(self._direct)
            self._direct = None


def _open_direct(handle: int) -> int | None:
    """Return a handle of the same file that passes the page cache by, None if the system has none."""
    try:
        return os.open(f"/proc/self/fd/{handle}", os.O_WRONLY | _DIRECT) if _DIRECT else None
    except OSError:
        return None


def hash_range(path: Path, start: int, end: int) -> str:
    """Return the SHA-256 of the bytes from `start` to `end` of the file at `path`.

    The rest of the file may change meanwhile: several threads or processes write the tensors of a shared output.

    >>> hash_range(Path(__file__), 0, 0)[:8]
    'e3b0c442'
    """
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(min(_CHUNK, max(1, end - start))))
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while start < end:
            count = file.readinto(buffer[: end - start])
            if not count:
                raise FileFormatError(f"{path} ends at byte {start}, but {end - start} more bytes were expected")
            digest.update(buffer[:count])
            start += count
    return digest.hexdigest()


def hash_tensor(tensor: StoredTensor) -> str:
    """Return the SHA-256 of the bytes of a stored tensor, those of its sections one after the other.

    >>> from tilewright.files.stored_arrays import store_arrays
    >>> hash_tensor(store_arrays({"x": np.frombuffer(b"abc", np.uint8)})["x"])[:8]
    'ba7816bf'
    """
    digest = hashlib.sha256()
    for section in tensor.sections:
        start, end = section.byte_range
        buffer = np.empty(min(_CHUNK, max(1, end - start)), np.uint8)
        for at in range(start, end, _CHUNK):
            piece = buffer[: min(_CHUNK, end - at)]
            section.file.read_runs([(at, len(piece))], piece)
            digest.update(piece.data)
    return digest.hexdigest()


class SourceHashes:
    """The hashes of source tensors, each computed once: several outputs may use the same source."""

    def __init__(self) -> None:
        self._hashes: dict[tuple[Path, tuple[int, int]], str] = {}

    def add(self, tensor: StoredTensor, digest: str) -> None:
        """Add the hash of a tensor that was read from front to back."""
        self._hashes[tensor.path, tensor.byte_range] = digest

    def get(self, tensor: StoredTensor) -> str:
        """Return the hash of a tensor, which is read again if it is not known."""
        key = tensor.path, tensor.byte_range
        if key not in self._hashes:
            self._hashes[key] = hash_tensor(tensor)
        return self._hashes[key]


Piece = tuple[int | None, Any]
"""The start of a piece in its range (None: it is in several places), and its bytes; no bytes are always in order."""


NumberedPieces: TypeAlias = "tuple[PieceHashes, int, tuple[Piece, ...]]"
"""Hashes, the number of the next pieces, and a piece of each range."""


class PieceHashes:
    """The SHA-256 of byte ranges, such as a source and an output, from numbered pieces of several threads.

    A piece that does not start where the previous one ended means that its range must be read again; `in_order` says
    for each range whether that never happened.

    >>> hashes = PieceHashes(0, 100)
    >>> hashes.add(0, (0, b"ab"), (100, b"x"))
    >>> hashes.add(1, (2, b"c"), (None, b"y"))
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
        >>> hashes.add(0, (None, b"a"), (None, b""))
        >>> hashes.in_order
        [False, True]
        """
        hash_pieces([(self, number, pieces)])

    def _wait_for_turn(self, number: int, pieces: tuple[Piece, ...]) -> list[int]:
        """Wait for the turn of piece `number`, and return the ranges to hash."""
        with self._changed:
            for k, (start, data) in enumerate(pieces):
                if start is None and len(data):
                    self.in_order[k] = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: not any(self.in_order) or self._next_number == number)
            for k, (start, data) in enumerate(pieces):
                self.in_order[k] = self.in_order[k] and (not len(data) or start == self._positions[k])
            return [k for k, in_order in enumerate(self.in_order) if in_order and len(pieces[k][1])]

    def _pass_turn(self, pieces: tuple[Piece, ...], active: list[int]) -> None:
        """Pass the turn to the next piece."""
        with self._changed:
            for k in active:
                self._positions[k] += len(pieces[k][1])
            self._next_number += 1
            self._changed.notify_all()

    def position(self, stream: int) -> int:
        """Return where the next piece of a range starts.

        >>> hashes = PieceHashes(5)
        >>> hashes.add(0, (5, b"ab"))
        >>> hashes.position(0)
        7
        """
        return self._positions[stream]

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


def hash_pieces(pieces_of: list[NumberedPieces]) -> None:
    """Add pieces to several hashes in their turn, two pieces of similar length at a time.

    >>> one, other = PieceHashes(0), PieceHashes(0)
    >>> hash_pieces([(one, 0, ((0, b"abc"),)), (other, 0, ((0, b"abc"),))])
    >>> one.hexdigest(0) == other.hexdigest(0)
    True
    """
    begun = [(hashes, pieces, hashes._wait_for_turn(number, pieces)) for hashes, number, pieces in pieces_of]
    # while it is their turn, no other thread uses them
    update_hashes([(hashes._hashes[k], pieces[k][1]) for hashes, pieces, active in begun for k in active])
    for hashes, pieces, active in begun:
        hashes._pass_turn(pieces, active)


def update_hashes(streams: list[tuple[Hash, Any]]) -> None:
    """Update hashes with their data, two of similar length at a time.

    >>> hashes = [new_hash() for _ in range(3)]
    >>> update_hashes([(each, b"abc") for each in hashes])
    >>> {each.hexdigest()[:8] for each in hashes}
    {'ba7816bf'}
    """
    longest_first = sorted(streams, key=lambda stream: -len(stream[1]))
    for (one, first), (other, second) in zip(longest_first[::2], longest_first[1::2], strict=False):
        update_pair(one, first, other, second)
    if len(streams) % 2:
        last, data = longest_first[-1]
        last.update(_as_buffer(data))


_BLOCK = 64
_START = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)


class Hash(Protocol):
    """The interface of hashlib's hashes.

    >>> isinstance(new_hash().hexdigest(), str)
    True
    """

    def update(self, data: Any, /) -> None:
        """Add bytes."""

    def hexdigest(self) -> str:
        """Return the hash of all bytes so far."""


def new_hash() -> Hash:
    """Return a new SHA-256.

    >>> one = new_hash()
    >>> one.update(b"abc")
    >>> one.hexdigest()[:8]
    'ba7816bf'
    """
    return PairedHash() if _is_native() else hashlib.sha256()


@cache
def _is_native() -> bool:
    library = native_library.load_library()
    nothing = np.array(_START, np.uint32)
    address = nothing.ctypes.data
    return library is not None and library.tw_sha256_pair(address, None, 0, address, None, 0) == 0


def update_pair(one: Hash, first: Any, other: Hash, second: Any) -> None:
    """Update two hashes, in little more time than the longer update takes.

    >>> one, other = new_hash(), new_hash()
    >>> update_pair(one, b"a" * 1000, other, b"b" * 70)
    >>> other.hexdigest() == hashlib.sha256(b"b" * 70).hexdigest()
    True
    """
    if isinstance(one, PairedHash) and isinstance(other, PairedHash):
        a, b = one.complete_blocks(first), other.complete_blocks(second)
        _compress_pair(one, a, other, b)
    else:
        one.update(_as_buffer(first))
        other.update(_as_buffer(second))


class PairedHash:
    """A SHA-256 with an accessible state, so that two of them can be updated together.

    >>> if _is_native():
    ...     hashed = PairedHash()
    ...     hashed.update(b"abc")
    ...     assert hashed.hexdigest() == hashlib.sha256(b"abc").hexdigest()
    """

    __slots__ = ("_count", "_tail", "state")

    def __init__(self) -> None:
        self.state = np.array(_START, np.uint32)
        self._tail, self._count = b"", 0

    def complete_blocks(self, data: Any) -> Any:
        """Return the complete blocks of more bytes as an array; the remainder is kept for the next bytes."""
        rest = np.frombuffer(_as_buffer(data), np.uint8)
        self._count += len(rest)
        if self._tail:
            missing = _BLOCK - len(self._tail)
            self._tail, rest = self._tail + rest[:missing].tobytes(), rest[missing:]
            if len(self._tail) < _BLOCK:
                return rest
            block, self._tail = np.frombuffer(self._tail, np.uint8), b""
            _compress_pair(self, block, self, block[:0])
        whole = len(rest) - len(rest) % _BLOCK
        self._tail = rest[whole:].tobytes()
        return rest[:whole]

    def update(self, data: Any, /) -> None:
        """Add bytes."""
        blocks = self.complete_blocks(data)
        _compress_pair(self, blocks, self, blocks[:0])

    def hexdigest(self) -> str:
        """Return the hash of all bytes so far."""
        ended = PairedHash()
        ended.state = self.state.copy()
        end = b"\x80" + bytes(-(len(self._tail) + 9) % _BLOCK) + (8 * self._count).to_bytes(8, "big")
        blocks = np.frombuffer(self._tail + end, np.uint8)
        _compress_pair(ended, blocks, ended, blocks[:0])
        return ended.state.astype(">u4").tobytes().hex()


def _as_buffer(data: Any) -> Any:
    return data.data if isinstance(data, np.ndarray) else data


def _compress_pair(one: PairedHash, a: Any, other: PairedHash, b: Any) -> None:
    first, second = (one.state.ctypes.data, a.ctypes.data), (other.state.ctypes.data, b.ctypes.data)
    native_library.load_library().tw_sha256_pair(*first, len(a) // _BLOCK, *second, len(b) // _BLOCK)
