# SPDX-License-Identifier: Apache-2.0
"""SHA-256 of two streams at once, on processors that can: one stream alone leaves half of the unit idle.

Elsewhere `hashlib` hashes them one after the other, with the same result.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, Protocol

import numpy as np

from ..copying import native_library

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
        _compress(one, a, other, b)
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
            _compress(self, block, self, block[:0])
        whole = len(rest) - len(rest) % _BLOCK
        self._tail = rest[whole:].tobytes()
        return rest[:whole]

    def update(self, data: Any, /) -> None:
        """Add bytes."""
        blocks = self.complete_blocks(data)
        _compress(self, blocks, self, blocks[:0])

    def hexdigest(self) -> str:
        """Return the hash of all bytes so far."""
        ended = PairedHash()
        ended.state = self.state.copy()
        end = b"\x80" + bytes(-(len(self._tail) + 9) % _BLOCK) + (8 * self._count).to_bytes(8, "big")
        blocks = np.frombuffer(self._tail + end, np.uint8)
        _compress(ended, blocks, ended, blocks[:0])
        return ended.state.astype(">u4").tobytes().hex()


def _as_buffer(data: Any) -> Any:
    return data.data if isinstance(data, np.ndarray) else data


def _compress(one: PairedHash, a: Any, other: PairedHash, b: Any) -> None:
    first, second = (one.state.ctypes.data, a.ctypes.data), (other.state.ctypes.data, b.ctypes.data)
    native_library.load_library().tw_sha256_pair(*first, len(a) // _BLOCK, *second, len(b) // _BLOCK)
