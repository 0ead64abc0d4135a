# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.memory`: pointers, spans and address spaces; memory on the stack, copied and filled."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import LayoutError
from ...layout.validation import as_integer
from ..brackets import Bracketed
from ..collections import ArcPointer, OwnedPointer
from ..kernel_memory import allocate_on_stack
from ..memory import AddressSpace, Pointer, Span, UnsafePointer, alloc
from ..scalar_memory import new_memory, number_type_of, write_scalar
from ..simd import SIMD, as_vector, scalar_format

__all__ = [
    "AddressSpace",
    "ArcPointer",
    "OwnedPointer",
    "Pointer",
    "Span",
    "UnsafePointer",
    "alloc",
    "bitcast",
    "memcmp",
    "memcpy",
    "memset",
    "memset_zero",
    "pack_bits",
    "stack_allocation",
    "unsafe_bitcast",
    "unsafe_memcpy",
    "unsafe_memset",
    "unsafe_memset_zero",
    "unsafe_stack_allocation",
]


def _stack_allocation(_: Any, parameters: tuple[Any, ...], **named: Any) -> Pointer:
    values = list(parameters)
    count = values.pop(0) if values else named.get("count")
    kind = values.pop(0) if values else named.get("dtype", named.get("type", named.get("T")))
    space = AddressSpace(named.get("address_space", AddressSpace.GENERIC))
    size = int(as_integer(count, "the number of elements"))
    element = number_type_of(kind)
    if element is None:
        return Pointer(new_memory(kind, size), 0)
    return Pointer(allocate_on_stack(element, size, space), 0)


class _StackAllocation(Bracketed[Pointer]):
    """`stack_allocation[16, Float32, address_space=AddressSpace.SHARED]()`: a pointer to memory of a block or thread.

    >>> stack_allocation[4, "int8"]().store.size
    4
    """


stack_allocation = unsafe_stack_allocation = _StackAllocation(_stack_allocation)


def _count_bytes(pointer: Pointer, count: Any) -> int:
    return int(as_integer(count, "the number of elements"))


def memset(ptr: Pointer, value: Any, count: Any) -> None:
    """Write `value` to every byte of `count` elements.

    >>> pointer = alloc["uint8"](2)
    >>> memset(pointer, 7, 2)
    >>> pointer[1]
    UInt8(7)
    """
    size = _count_bytes(ptr, count)
    number = np.full(ptr.dtype.itemsize, int(value) & 255, np.uint8).view(ptr.dtype.dtype)[0]
    for k in range(size):
        write_scalar(ptr.memory, ptr.offset + k, number.item())


def memset_zero(ptr: Pointer, *count: Any, **named: Any) -> None:
    """Write zeros to `count` elements.

    >>> memset_zero(alloc["uint8"](2), 2)
    """
    memset(ptr, 0, (*count, named.get("count"))[0])


def memcpy(dest: Pointer | None = None, src: Pointer | None = None, count: Any = None) -> None:
    """Copy `count` elements.

    >>> target = alloc["int8"](2)
    >>> memcpy(target, Pointer(new_memory("int8", 2), 0), 2)
    """
    if dest is None or src is None:
        raise LayoutError("memcpy takes a destination, a source and a count")
    values = [src[k] for k in range(_count_bytes(src, count))]
    for k, value in enumerate(values):
        dest[k] = value


def memcmp(s1: Pointer, s2: Pointer, count: Any) -> int:
    """Return 0 if `count` elements are equal, else -1 or 1 by the first ones that differ.

    >>> memcmp(alloc["int8"](2), alloc["int8"](2), 2)
    0
    """
    for k in range(_count_bytes(s1, count)):
        if s1[k] != s2[k]:
            return -1 if s1[k] < s2[k] else 1
    return 0


unsafe_memset, unsafe_memset_zero, unsafe_memcpy = memset, memset_zero, memcpy


def _bitcast(_: Any, parameters: tuple[Any, ...], value: Any, *, dtype: Any = None, width: Any = None) -> Any:
    kind = scalar_format((*parameters, dtype)[0])
    numbers = value.array if isinstance(value, SIMD) else np.atleast_1d(np.asarray(value))
    return as_vector(numbers.view(kind.dtype))


class _Bitcast(Bracketed[Any]):
    """`bitcast[dtype, width](value)`: the same bits as other numbers.

    >>> from tilewright.mojo import Float32
    >>> bitcast["uint32", 1](Float32(1))
    UInt32(1065353216)
    """


bitcast = pack_bits = unsafe_bitcast = _Bitcast(_bitcast)
