# SPDX-License-Identifier: Apache-2.0
"""Scalars of memory as Mojo's numbers: reads and writes of one or several, and the types of elements.

The kernel that runs is told of every access before it happens.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..copying import aligned_empty
from ..errors import CoordinateError, FormatError, LayoutError
from ..formats import ScalarFormat, fit_values
from ..tensor import Store, fit_scalar
from .brackets import MojoValue
from .simd import SIMD, DType, SIMDType, as_vector, make_scalar, numbers_of


class Cells:
    """Memory of objects that are not numbers, such as structs: a list behind the same fields as a `Store`.

    >>> Cells(["a", "b"]).size
    2
    """

    __slots__ = ("data", "kind")
    format = None
    readonly = False

    def __init__(self, data: list[Any], kind: object = None) -> None:
        self.data = data
        self.kind = kind

    @property
    def size(self) -> int:
        """The number of objects.

        >>> Cells([]).size
        0
        """
        return len(self.data)

    @property
    def origin(self) -> list[Any]:
        """The list that holds the objects.

        >>> Cells([1]).origin
        [1]
        """
        return self.data


def check_memory(memory: object, start: object) -> None:
    """Raise unless this is memory of the library, and an offset in it: not something of a program that looks like it.

    >>> check_memory(Cells([1]), 0)
    >>> check_memory([1, 2], 0)
    Traceback (most recent call last):
    TypeError: list [1, 2] is not memory; a pointer comes from alloc[T](n), UnsafePointer(to=x) or x.unsafe_ptr()
    """
    if not isinstance(memory, (Store, Cells)):
        raise TypeError(
            f"{type(memory).__name__} {memory!r} is not memory; a pointer comes from alloc[T](n), UnsafePointer(to=x)"
            " or x.unsafe_ptr()"
        )
    if not isinstance(start, int):
        raise TypeError(f"an offset in memory must be an integer, got {type(start).__name__} {start!r}")


def number_type_of(kind: object) -> DType | None:
    """Return the number type of the elements of memory; None if they are other objects.

    >>> number_type_of("float32"), number_type_of(str)
    (DType.float32, None)
    """
    if isinstance(kind, SIMDType):
        return kind.dtype if kind.size == 1 else None
    if isinstance(kind, (str, ScalarFormat, np.dtype)) or kind in (int, float, bool):
        return DType.of(kind)
    if isinstance(kind, type) and issubclass(kind, np.generic):
        return DType.of(kind)
    number_type = getattr(kind, "number_type", None)
    return number_type if isinstance(number_type, DType) else None  # a struct may have a member of that name


def allocate(kind: Any, count: int) -> Any:
    """Return memory for `count` elements of a type: zeros aligned to a cache line; for other objects, cells.

    >>> allocate("int8", 3).data.tolist(), allocate(str, 2).data
    ([0, 0, 0], [None, None])
    """
    dtype = number_type_of(kind)
    if dtype is None:
        return Cells([None] * count, kind)
    data = aligned_empty(count, dtype.dtype)
    data[...] = 0
    return Store(data, dtype if dtype.mojo_name in ("int", "uint") else DType.of(dtype.name), data, False)


def element_type(store: Any) -> MojoValue:
    """Return the type of the elements of memory.

    >>> element_type(allocate("int8", 3))
    SIMD[DType.int8, 1]
    """
    return store.kind if store.format is None else SIMDType(DType.of(store.format), 1)


def read_scalar(store: Any, offset: int) -> MojoValue:
    """Return the element at an offset of memory: a scalar, an `Int` of Python, or another object.

    >>> read_scalar(allocate("int8", 3), 1)
    Int8(0)
    """
    if not 0 <= offset < store.size:
        raise _outside_error(store, offset, 1)
    if store.format is None:
        return store.data[offset]
    store.will_read(offset)
    dtype = DType.of(store.format)
    number = store.host.item(offset)
    return number if dtype is DType.int else make_scalar(dtype, number)


def write_scalar(store: Any, offset: int, value: Any) -> None:
    """Write the element at an offset of memory.

    >>> memory = allocate("int8", 3)
    >>> write_scalar(memory, 1, 7)
    >>> memory.data.tolist()
    [0, 7, 0]
    """
    if not 0 <= offset < store.size:
        raise _outside_error(store, offset, 1)
    if store.readonly:
        raise LayoutError("cannot write into read-only memory")
    if store.format is None:
        store.data[offset] = value
        return
    number = scalar_of(value, store.format)
    store.will_write(offset)
    store.host[offset] = number


def scalar_of(value: MojoValue, element: ScalarFormat) -> MojoValue:
    """Return one number as a format stores it; raise if it is not a value of it.

    >>> from tilewright.mojo import Int8
    >>> scalar_of(Int8(3), DType.int8)
    3
    """
    if value.__class__ is SIMD:
        if value.dtype == element and value.value.__class__ is not np.ndarray:
            return value.value
        if value.size != 1:
            raise LayoutError(f"an element is one number of {element}, got a vector of {value.size}")
        numbers_of(value, element)
        value = value.item()
    return fit_scalar(value, element)


def read_vector(store: Any, offset: int, width: int) -> SIMD:
    """Return `width` consecutive scalars from an offset on.

    >>> read_vector(allocate("int8", 3), 1, 2)
    SIMD[DType.int8, 2](0, 0)
    """
    if width < 1 or not 0 <= offset <= offset + width <= store.size:
        raise _outside_error(store, offset, width)
    store.will_read(offset, width)
    numbers = as_vector(store.host[offset : offset + width].copy())
    numbers.dtype = DType.of(store.format)
    return numbers


def write_vector(store: Any, offset: int, value: Any, width: int | None = None) -> None:
    """Write the numbers of a vector from an offset on; one number fills `width` of them.

    >>> memory = allocate("int8", 3)
    >>> write_vector(memory, 1, [5, 6])
    >>> memory.data.tolist()
    [0, 5, 6]
    """
    if store.format is None:
        write_scalar(store, offset, value)
        return
    if store.readonly:
        raise LayoutError("cannot write into read-only memory")
    numbers = fit_values(numbers_of(value, store.format), store.format).reshape(-1)
    count = numbers.size if width is None else width
    if numbers.size not in (1, count):
        raise LayoutError(f"a store of width {count} takes {count} numbers, got {numbers.size}")
    if count < 1 or not 0 <= offset <= offset + count <= store.size:
        raise _outside_error(store, offset, count)
    store.will_write(offset, count)
    store.host[offset : offset + count] = numbers


def _outside_error(store: Any, offset: int, width: int) -> CoordinateError:
    what = f"scalar {offset} is" if width == 1 else f"scalars {offset} to {offset + width - 1} are"
    has = f"has 0 to {store.size - 1}" if store.size else "is empty"
    return CoordinateError(f"{what} outside the storage, which {has}")


def require_numbers(store: Any, caller: str) -> Any:
    """Return memory of numbers; raise an error that names `caller` for memory of other objects.

    >>> require_numbers(allocate("int8", 1), "bitcast").size
    1
    """
    if store.format is None:
        raise FormatError(f"{caller} needs memory of numbers, got objects of {store.kind}")
    return store
