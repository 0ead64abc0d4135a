# SPDX-License-Identifier: Apache-2.0
"""Mojo's arrays in memory: `InlineArray` (now `Array`) and `Span`, of numbers or of any other objects.

Numbers lie in one flat array, which tensors and pointers share; other objects lie in a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from ..errors import CoordinateError, LayoutError
from ..layout import as_integer
from ..tensor import Storage, Store, as_array, flat_scalars
from .builtins import Origin, format_value
from .dtype import DType, as_dtype
from .memory_type import MemoryMeta, MemoryType, memory_type
from .pointer import Pointer, allocate
from .scalar_memory import Cells, check_memory, element_type, read_scalar, require_numbers, write_scalar
from .simd import SIMD
from .simd_arithmetic import as_number

__all__ = ["Array", "InlineArray", "Span"]


class MemoryArray(metaclass=MemoryMeta):
    """Elements of memory, from `start` on: what arrays, lists and spans have in common.

    >>> MemoryArray(Store.of([5, 6, 7]), 1, 2)[1]
    Int64(7)
    """

    __slots__ = ("_size", "memory", "start")

    def __init__(self, memory: Any, start: int, size: int) -> None:
        check_memory(memory, start)
        self.memory, self.start, self._size = memory, start, size

    # What it holds.

    @property
    def dtype(self) -> DType:
        """Return the number type.

        >>> MemoryArray(Store.of([5, 6]), 0, 2).dtype
        DType.int64
        """
        return as_dtype(require_numbers(self.memory, "dtype").format)

    @property
    def T(self) -> Any:  # noqa: N802  (Mojo's name)
        """Return the type of the elements.

        >>> MemoryArray(Store.of([5, 6]), 0, 2).T
        SIMD[DType.int64, 1]
        """
        return element_type(self.memory)

    ElementType = type = T

    @property
    def origin(self) -> Origin:
        """Return where the memory comes from.

        >>> MemoryArray(Store.of([5, 6]), 0, 2).origin
        Origin(mut=True)
        """
        return Origin(not self.memory.readonly, self)

    @property
    def array(self) -> Any:
        """Return the numbers as a flat array of NumPy that shares the memory.

        >>> MemoryArray(Store.of([5, 6, 7]), 1, 2).array.tolist()
        [6, 7]
        """
        return require_numbers(self.memory, "array").host[self.start : self.start + self._size]

    def unsafe_ptr(self) -> Pointer:
        """Return a pointer to the first element.

        >>> MemoryArray(Store.of([5, 6, 7]), 1, 2).unsafe_ptr()[0]
        Int64(6)
        """
        return Pointer(self.memory, self.start)

    # Elements.

    def __len__(self) -> int:
        return self._size

    def _place(self, k: Any) -> int:
        index = k if k.__class__ is int else int(as_integer(k, "an index"))
        if not 0 <= index < self._size:
            raise CoordinateError(f"index {index} is outside {self._size} elements")
        return self.start + index

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return self._part(k)
        return read_scalar(self.memory, self._place(k))

    def _part(self, part: slice) -> Any:
        begin, end, step = part.indices(self._size)
        if step != 1:
            raise LayoutError(f"a span takes consecutive elements, got the step {step}")
        return Span._of_memory(self.memory, self.start + begin, max(0, end - begin))

    def __setitem__(self, k: Any, value: Any) -> None:
        write_scalar(self.memory, self._place(k), value)

    def get_subscript(self, *position: Any, unsafe_offset: Any = 0, **_: Any) -> Any:
        """Return an element: `x[unsafe_offset=i]`.

        >>> MemoryArray(Store.of([5, 6]), 0, 2).get_subscript(unsafe_offset=1)
        Int64(6)
        """
        return self[position[0] if position else unsafe_offset]

    def set_subscript(self, value: Any, *position: Any, unsafe_offset: Any = 0, **_: Any) -> None:
        """Write an element: `x[unsafe_offset=i] = value`.

        >>> MemoryArray(Store.of([5, 6]), 0, 2).set_subscript(9, unsafe_offset=1)
        """
        self[position[0] if position else unsafe_offset] = value

    unsafe_get = __getitem__

    def __iter__(self) -> Iterator[Any]:
        return (read_scalar(self.memory, place) for place in range(self.start, self.start + self._size))

    def __contains__(self, value: object) -> bool:
        return any(element == value for element in self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (MemoryArray, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return self._size > 0

    def fill(self, value: Any) -> Any:
        """Write `value` to every element; return the array.

        >>> print(MemoryArray(Store.of([5, 6]), 0, 2).fill(1))
        [1, 1]
        """
        for place in range(self.start, self.start + self._size):
            write_scalar(self.memory, place, value)
        return self

    def __str__(self) -> str:
        return f"[{', '.join(map(format_value, self))}]"

    def __repr__(self) -> str:
        if self.memory.format is None:
            return f"<{type(self).__name__} of {self._size} objects>"
        return f"<{type(self).__name__} of {self._size} x {self.memory.format.name}>"


def values_memory(kind: MemoryType, values: Iterable[Any]) -> Any:
    """Return new memory with some values, of the type in brackets, or of the first value.

    >>> values_memory(InlineArray["int8", 2], [1, 2]).data.tolist()
    [1, 2]
    """
    items = list(values)
    element = kind.element if kind.element is not None else kind.dtype
    if element is None:
        element = _type_of_item(items[0]) if items else object
    memory = allocate(element, len(items))
    if isinstance(memory, Cells):
        memory.data[:] = items
    else:
        memory.host[...] = _fit_items(items, memory.format)
    return memory


def _fit_items(items: list[Any], element: Any) -> Any:
    """Return numbers as an array of a format; SIMD is converted as Mojo's literals are."""
    dtype = as_dtype(element)
    return np.array([as_number(dtype, item) for item in items], dtype.dtype)


def _type_of_item(item: Any) -> Any:
    if isinstance(item, SIMD):
        return item.dtype if item.size == 1 else SIMD
    return type(item) if isinstance(item, (int, float, bool)) else object


class InlineArray(MemoryArray):
    """`InlineArray[Float32, 16](uninitialized=True)`, `(fill=0)`, or the values themselves; else zeros.

    >>> print(InlineArray["float32", 4](fill=1.5), InlineArray["int8", 2](1, 2))
    [1.5, 1.5, 1.5, 1.5] [1, 2]
    """

    __slots__ = ()
    __bracketed__: ClassVar[tuple[str, ...]] = ("T", "size")
    takes_lists: ClassVar[bool] = True

    def __init__(self, *values: Any, fill: Any = None, uninitialized: bool = False) -> None:
        if len(values) == 1 and isinstance(values[0], (list, tuple, MemoryArray)):
            values = tuple(values[0])
        memory = values_memory(MemoryType(InlineArray, None), values)
        super().__init__(memory, 0, memory.size)

    @classmethod
    def _with_parameters(cls, *parameters: Any, size: Any = None, T: Any = None) -> MemoryType:  # noqa: N803
        """Return the type `InlineArray[T, size]`.

        >>> InlineArray.with_parameters("int8", size=3)
        InlineArray[DType.int8, 3]
        """
        element, count = (*parameters, *[value for value in (T, size) if value is not None], None, None)[:2]
        is_open = count is None or count is ...
        return memory_type(cls, element, None if is_open else int(as_integer(count, "the size of an array")))

    @classmethod
    def _of_type(
        cls, kind: MemoryType, *values: Any, fill: Any = None, uninitialized: bool = False, **_: Any
    ) -> InlineArray:
        if len(values) == 1 and isinstance(values[0], (list, tuple, MemoryArray)):
            values = tuple(values[0])
        if kind.size is not None and len(values) not in (0, kind.size):
            raise CoordinateError(f"expected {kind.size} values for an array of {kind.size} scalars, got {len(values)}")
        array = object.__new__(cls)
        if values:
            memory = values_memory(kind, values)
        else:
            memory = allocate(kind.dtype or kind.element, kind.size or 0)
        MemoryArray.__init__(array, memory, 0, memory.size)
        if fill is not None:
            array.fill(fill if kind.dtype is None else as_number(kind.dtype, fill))
        return array

    @property
    def size(self) -> int:
        """Return the number of elements.

        >>> InlineArray["int8", 3](fill=0).size
        3
        """
        return self._size

    length = size

    def __copy__(self) -> InlineArray:
        copied = object.__new__(type(self))
        MemoryArray.__init__(copied, copy_memory(self), 0, self._size)
        return copied

    copy = __copy__


Array = InlineArray


def copy_memory(array: MemoryArray) -> Any:
    """Return new memory with the elements of an array.

    >>> copy_memory(InlineArray["int8", 2](1, 2)).data.tolist()
    [1, 2]
    """
    memory = array.memory
    part = memory.data[array.start : array.start + array._size]
    if isinstance(memory, Cells):
        return Cells(list(part), memory.kind)
    copied = allocate(as_dtype(memory.format), array._size)
    copied.host[...] = part
    return copied


class Span(MemoryArray):
    """A view of the elements of `storage`, an array, a list, a buffer or another span; or of `length` ones at `ptr`.

    >>> span = Span([0, 1, 2, 3])
    >>> len(span), span[3], span[1:3][0]
    (4, 3, 1)
    """

    __slots__ = ()
    __bracketed__: ClassVar[tuple[str, ...]] = ("T", "origin")
    takes_lists: ClassVar[bool] = True

    def __init__(self, storage: Any = None, *, ptr: Pointer | None = None, length: Any = None, **_: Any) -> None:
        if isinstance(storage, Pointer) or ptr is not None:
            source = storage if isinstance(storage, Pointer) else ptr
            assert source is not None
            super().__init__(source.memory, source.offset, int(as_integer(length, "the length of a span")))
            if not 0 <= self.start <= self.start + self._size <= self.memory.size:
                raise CoordinateError(f"a span of {self._size} elements exceeds {self.memory.size} of its memory")
        elif isinstance(storage, MemoryArray):
            super().__init__(storage.memory, storage.start, len(storage))
        elif isinstance(storage, (list, tuple)):
            memory = values_memory(MemoryType(Span, None), storage)
            super().__init__(memory, 0, memory.size)
        else:
            super().__init__(*_share(storage))

    @classmethod
    def _of_memory(cls, memory: Any, start: int, size: int) -> Span:
        span = object.__new__(Span)
        MemoryArray.__init__(span, memory, start, size)
        return span

    @classmethod
    def _with_parameters(cls, *parameters: Any, T: Any = None, **_: Any) -> MemoryType:  # noqa: N803
        """Return the type `Span[T, origin]`.

        >>> Span.with_parameters("int8", origin=None)
        Span[DType.int8]
        """
        return memory_type(cls, (*parameters, T))

    def copy_from(self, other: Any) -> None:
        """Copy the elements of an `other` span of the same length.

        >>> span = Span([0, 0])
        >>> span.copy_from(Span([0, 1]))
        >>> print(span)
        [0, 1]
        """
        if len(other) != len(self):
            raise LayoutError(f"cannot copy {len(other)} elements to {len(self)}")
        for k, value in enumerate(list(other)):
            self[k] = value

    def as_immutable(self) -> Span:
        """Return the same span, read-only.

        >>> Span([1, 2]).as_immutable().origin
        Origin(mut=False)
        """
        memory = require_numbers(self.memory, "as_immutable").with_fields(readonly=True)
        return Span._of_memory(memory, self.start, self._size)

    get_immutable = as_imm = as_immutable


def _share(storage: Storage) -> tuple[Store, int, int]:
    """Return (store, start, size) of an object that exports its memory."""
    store = Store.of(flat_scalars(as_array(storage)))
    return store.with_fields(origin=storage), 0, store.size
