# SPDX-License-Identifier: Apache-2.0
"""`pointer`: what `base` is in Python, memory and a position in it, indexed like a C pointer but checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import CoordinateError, LayoutError, TransferError

TYPES = {
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
}
"""TTL's element types, by the names it gives them; any other dtype works as well."""


class pointer:
    """A position in memory, which may lie outside until it is used.

    An array brings its element type; other memory (a `bytearray`, say) is void, and has no type.

    >>> p = pointer(np.arange(8, dtype=np.int16)) + 2
    >>> int(p[1]), p.offset
    (3, 4)
    """

    __slots__ = ("dtype", "memory", "offset", "writeable")
    memory: np.ndarray[Any, Any]
    dtype: np.dtype[Any] | None
    offset: int
    writeable: bool

    def __init__(self, memory: Any, offset: int = 0, dtype: Any = None) -> None:
        if isinstance(memory, pointer):
            self.memory, self.dtype = memory.memory, memory.dtype
            self.writeable = memory.writeable
            self.offset = memory.offset + offset
        else:
            array = memory if isinstance(memory, np.ndarray) else np.frombuffer(memory, np.uint8)
            if not array.flags.c_contiguous:
                raise LayoutError(f"a pointer needs memory without gaps, got strides {array.strides}; pass its base")
            self.memory = array.reshape(-1).view(np.uint8)
            self.dtype = array.dtype if isinstance(memory, np.ndarray) else None
            self.writeable = bool(array.flags.writeable)
            self.offset = offset
        if dtype is not None:
            self.dtype = np.dtype(dtype)

    @property
    def step(self) -> int:
        """Return the bytes of one element, 1 for void.

        >>> pointer(bytearray(4)).step
        1
        """
        return 1 if self.dtype is None else int(self.dtype.itemsize)

    def __add__(self, elements: int) -> pointer:
        return pointer(self, elements * self.step)

    def __sub__(self, elements: int) -> pointer:
        return pointer(self, -elements * self.step)

    def _at(self, index: int) -> np.ndarray[Any, Any]:
        start = self.offset + index * self.step
        if start < 0 or start + self.step > self.memory.size:
            raise CoordinateError(f"element {index} lies at byte {start} of a memory of {self.memory.size} bytes")
        cell: np.ndarray[Any, Any] = self.memory[start : start + self.step].view(self.dtype or np.uint8)
        return cell

    def __getitem__(self, index: int) -> Any:
        return self._at(index)[0]

    def __setitem__(self, index: int, value: Any) -> None:
        if not self.writeable:
            raise TransferError("cannot write through a pointer to read-only memory")
        self._at(index)[0] = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, pointer):
            return NotImplemented
        return self.address == other.address

    __hash__ = None  # type: ignore[assignment]  # positions compare by address, which says nothing about content

    @property
    def address(self) -> int:
        """Return the address that the pointer holds.

        >>> a = np.zeros(4)
        >>> (pointer(a) + 1).address - a.ctypes.data
        8
        """
        return int(self.memory.ctypes.data) + self.offset

    def __repr__(self) -> str:
        kind = "void" if self.dtype is None else str(self.dtype)
        return f"pointer(<{self.memory.size} bytes>, offset={self.offset}, dtype={kind!r})"


def SIZEOF(thing: Any) -> int:
    """Return the bytes of a type or of one element.

    >>> SIZEOF("uint"), SIZEOF(np.float64), SIZEOF(np.zeros(4, np.int16))
    (4, 8, 2)
    """
    if isinstance(thing, str):
        thing = TYPES.get(thing, thing)
    if isinstance(thing, np.ndarray):
        return thing.itemsize
    return int(np.dtype(thing).itemsize)
