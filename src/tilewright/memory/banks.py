# SPDX-License-Identifier: Apache-2.0
"""`Banks`: the bytes of all banks of a memory, which exist only once they are touched."""

from __future__ import annotations

import mmap
import sys
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..errors import MemoryConfigError, OutOfMemory
from ..layout.tuples import round_up
from .chip import Chip
from .kinds import BufferType

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
_HUGE_FROM = 1 << 26  # bytes of a bank from which large pages of the operating system pay off


class Banks:
    """One memory of a chip: banks one after the other in a single address space, so that one plan reaches all.

    >>> banks = Banks(Chip.named("wormhole_n150"), BufferType.L1)
    >>> banks.at(3, 200000, 4)[:] = 7
    >>> banks.at(3, 200002, 4).tolist()
    [7, 7, 0, 0]
    """

    def __init__(self, chip: Chip, buffer_type: BufferType) -> None:
        self.count = chip.banks(buffer_type)
        self.start, self.end = chip.base(buffer_type), chip.end(buffer_type)
        self.stride = round_up(self.end - self.start, mmap.PAGESIZE)
        self.name = f"{buffer_type} of {chip.name}"

    @cached_property
    def bytes(self) -> Bytes:
        """Return all bytes; the operating system gives them memory when they are first written.

        >>> Banks(Chip.named("wormhole_n150"), BufferType.DRAM).bytes.size == 12 * 1072693248
        True
        """
        size = self.count * self.stride
        try:
            if sys.platform == "win32":
                pages = mmap.mmap(-1, size)
            else:
                pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
        except (OSError, ValueError) as problem:
            raise OutOfMemory(
                f"this machine cannot set aside {size} bytes of addresses for {self.name} ({problem}); describe a chip"
                " with less memory in a file for Chip.read"
            ) from None
        if self.stride >= _HUGE_FROM and hasattr(mmap, "MADV_HUGEPAGE"):
            pages.madvise(mmap.MADV_HUGEPAGE)
        return np.frombuffer(pages, dtype=np.uint8)

    def at(self, bank: int, address: int, size: int) -> Bytes:
        """Return so many bytes of a bank from an address on, without a copy.

        >>> Banks(Chip.named("wormhole_n150"), BufferType.L1).at(0, 105824, 8).size
        8
        """
        if not 0 <= bank < self.count:
            raise MemoryConfigError(f"{self.name} has no bank {bank}; it has 0 to {self.count - 1}")
        if size < 0 or not self.start <= address <= address + size <= self.end:
            raise MemoryConfigError(
                f"{size} bytes at {address} are outside {self.name}, which runs from {self.start} to {self.end}"
            )
        first = bank * self.stride + address - self.start
        return self.bytes[first : first + size]
