# SPDX-License-Identifier: Apache-2.0
"""The element types of OpenCL, and `pointer`: memory and a position in it, indexed like a C pointer but checked."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..errors import CoordinateError, LayoutError, TransferError
from ..formats import fit_values

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
"""TTL's element types by their names; any other dtype works as well."""

_VECTOR = re.compile(r"([a-z]+?)(2|3|4|8|16)")
_VECTOR_ELEMENTS = {**TYPES, "half": "float16", "float": "float32", "double": "float64"}


def vector_type(name: str) -> np.dtype[Any] | None:
    """Return the type of an OpenCL vector such as float4, whose elements are field "s"; None for any other name.

    As in OpenCL, a vector of three elements takes the space of four.

    >>> vector_type("float4").itemsize, vector_type("uchar3").itemsize, vector_type("quux4")
    (16, 4, None)
    """
    match = _VECTOR.fullmatch(name)
    element = _VECTOR_ELEMENTS.get(match[1]) if match else None
    if match is None or element is None:
        return None
    count, kind = int(match[2]), np.dtype(element)
    size = kind.itemsize * (4 if count == 3 else count)
    return np.dtype({"names": ["s"], "formats": [(kind, (count,))], "offsets": [0], "itemsize": size})


class pointer:
    """A position in memory, which is checked when it is used.

    `memory` is an array, which has an element type, other memory (such as a `bytearray`), which is void, or a pointer.
    `offset` counts bytes from its start, and `dtype` is another element type.

    >>> p = pointer(np.arange(8, dtype=np.int16)) + 2
    >>> int(p[1]), p.offset
    (3, 4)
    """

    __slots__ = ("array_shape", "dtype", "memory", "offset", "writeable")
    array_shape: tuple[int, ...]  # of the array that the memory came as; one number for other memory
    memory: np.ndarray[Any, Any]
    dtype: np.dtype[Any] | None
    offset: int
    writeable: bool

    def __init__(self, memory: Any, offset: int = 0, dtype: Any = None) -> None:
        if isinstance(memory, pointer):
            self.memory, self.dtype, self.array_shape = memory.memory, memory.dtype, memory.array_shape
            self.writeable = memory.writeable
            self.offset = memory.offset + offset
        else:
            array = memory if isinstance(memory, np.ndarray) else _bytes_of(memory)
            if array.dtype.hasobject:
                raise LayoutError(
                    f"expected an array of numbers or structs for a pointer, got one of {array.dtype}, whose elements"
                    " are Python objects; convert it with astype"
                )
            if not array.flags.c_contiguous:
                raise LayoutError(
                    f"expected contiguous memory for a pointer, got strides {array.strides}; pass its base"
                )
            self.memory, self.array_shape = array.reshape(-1).view(np.uint8), array.shape
            self.dtype = array.dtype if isinstance(memory, np.ndarray) else None
            self.writeable = bool(array.flags.writeable)
            self.offset = offset
        if dtype is not None:
            self.dtype = element_type(dtype)

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

    def _element_view(self, index: int) -> np.ndarray[Any, Any]:
        start = self.offset + index * self.step
        if start < 0 or start + self.step > self.memory.size:
            raise CoordinateError(f"element {index} is at byte {start}, outside the memory of {self.memory.size} bytes")
        cell: np.ndarray[Any, Any] = self.memory[start : start + self.step].view(self.dtype or np.uint8)
        return cell

    def __getitem__(self, index: int) -> Any:
        return self._element_view(index)[0]

    def __setitem__(self, index: int, value: Any) -> None:
        if not self.writeable:
            raise TransferError("cannot write through a pointer to read-only memory")
        cell = self._element_view(index)
        cell[0] = fit_values(value, cell.dtype) if cell.dtype.kind in "biuf" else value

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


def SIZEOF(value: Any) -> int:
    """Return the bytes of `value`: a type, its name, or one element of an array.

    >>> SIZEOF("uint"), SIZEOF(np.float64), SIZEOF(np.zeros(4, np.int16))
    (4, 8, 2)
    """
    if isinstance(value, str):
        value = vector_type(value) or _VECTOR_ELEMENTS.get(value, value)
    if isinstance(value, np.ndarray):
        return value.itemsize
    return int(element_type(value).itemsize)


def _bytes_of(memory: Any) -> np.ndarray[Any, Any]:
    try:
        view = memoryview(memory)
    except TypeError:
        raise LayoutError(
            f"expected an array, a bytearray or a pointer as base, got {type(memory).__name__}; for a list pass"
            " np.array(..., dtype)"
        ) from None
    if not view.c_contiguous:
        raise LayoutError(f"expected contiguous memory for a pointer, got strides {view.strides}; pass its base")
    return np.frombuffer(view, np.uint8) if view.nbytes else np.zeros(0, np.uint8)


def element_type(value: Any) -> np.dtype[Any]:
    """Return a dtype, or raise the library's error.

    >>> element_type("int16")
    dtype('int16')
    """
    try:
        found: np.dtype[Any] = np.dtype(value)
    except TypeError:
        raise LayoutError(f"expected a NumPy dtype or one of {', '.join(_VECTOR_ELEMENTS)}, got {value!r}") from None
    return found
