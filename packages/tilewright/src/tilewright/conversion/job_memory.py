# SPDX-License-Identifier: Apache-2.0
"""The memory of a conversion: scratch for the slabs of each thread, and buffers for outputs that come out of order."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np

from .._integers import round_up
from ..copying.host_memory import CACHE_LINE, aligned_empty
from ..files.source_file import ByteArray
from .output_file import BLOCK_BYTES

_MAX_SLAB_BYTES = 24 << 20  # larger ones are not faster
_MAX_BUFFER_BYTES = 24 << 20


class MemoryPlan(NamedTuple):
    """How the memory of a conversion is shared: threads, the bytes of each one's slabs, and those of a buffer."""

    threads: int
    slab_bytes: int
    buffer_bytes: int

    @classmethod
    def of(cls, threads: int, available: int) -> MemoryPlan:
        """Return how `available` bytes are shared; slabs first, then buffers for all strips that may be open.

        These are one for each slab that a thread converts, the two that slabs are taken from, and one to be hashed.

        >>> MemoryPlan.of(3, 256 << 20)
        MemoryPlan(threads=3, slab_bytes=25165824, buffer_bytes=21437553)
        """
        slab = min(_MAX_SLAB_BYTES, available // threads)
        buffer = (available - threads * slab) // (2 * threads + 3)
        return cls(threads, slab, min(_MAX_BUFFER_BYTES, buffer))


class Scratch:
    """Per-thread scratch memory, reused for every step; a slab larger than planned gets memory of its own."""

    def __init__(self, size: int) -> None:
        self._bytes = _block_aligned(size + 4 * BLOCK_BYTES)
        self._used = 0

    def reset(self) -> None:
        """Free all allocations."""
        self._used = 0

    def allocate(self, size: int, offset: int | None = None) -> ByteArray:
        """Return `size` bytes that stay valid until `reset()`; at the place in a disk block that `offset` has."""
        start = self._used if offset is None else round_up(self._used, BLOCK_BYTES) + offset % BLOCK_BYTES
        self._used = round_up(start + size, CACHE_LINE)
        if self._used > len(self._bytes):
            return aligned_empty(size, np.uint8)
        return self._bytes[start : start + size]


class OutputBuffers:
    """Buffers for strips of outputs, each of at most `size` bytes; those that are released are used again.

    >>> buffers = OutputBuffers(1 << 20)
    >>> buffer = buffers.take(100, 600_000)
    >>> len(buffer), buffer.ctypes.data % BLOCK_BYTES
    (600000, 100)
    >>> buffers.release(buffer)
    """

    def __init__(self, size: int) -> None:
        self.size, self._lock = size, Lock()
        self._free: list[ByteArray] = []
        self._memory: dict[int, ByteArray] = {}  # of the buffers in use, by address

    def take(self, offset: int, size: int) -> ByteArray:
        """Return a buffer of `size` bytes at the place in a disk block that the file `offset` has."""
        with self._lock:
            memory = self._free.pop() if self._free else _block_aligned(self.size + BLOCK_BYTES)
            start = offset % BLOCK_BYTES
            buffer = memory[start : start + size]
            self._memory[buffer.ctypes.data] = memory
            return buffer

    def release(self, buffer: ByteArray) -> None:
        """Take a buffer back."""
        with self._lock:
            self._free.append(self._memory.pop(buffer.ctypes.data))


def _block_aligned(size: int) -> ByteArray:
    """Return `size` bytes at the start of a disk block."""
    memory = np.empty(size + BLOCK_BYTES, np.uint8)
    start = -memory.ctypes.data % BLOCK_BYTES
    return memory[start : start + size]
