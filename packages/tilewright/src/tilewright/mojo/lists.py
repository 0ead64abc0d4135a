# SPDX-License-Identifier: Apache-2.0
"""Mojo's `List`: elements of memory that grow in number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from ..errors import CoordinateError
from ..layout import as_integer
from .arrays import MemoryArray, copy_memory, values_memory
from .builtins import name_type, represent
from .dtype import as_dtype
from .language.raising import Error
from .memory_type import MemoryType, memory_type
from .pointer import allocate
from .scalar_memory import Cells, write_scalar
from .simd import SIMD

__all__ = ["List"]


class List(MemoryArray):
    """`List[Float32](length=4, fill=0)`, `List[Float32](1, 2, 3)` or `List[Float32](capacity=8)`; it grows.

    Its `values` may be of any type.

    >>> numbers = List["int32"](1, 2, 3)
    >>> numbers.append(4)
    >>> print(numbers, len(numbers))
    [1, 2, 3, 4] 4
    """

    __slots__ = ()
    __bracketed__: ClassVar[tuple[str, ...]] = ("T",)
    takes_lists: ClassVar[bool] = True

    def __init__(self, *values: Any, length: Any = 0, fill: Any = None, capacity: Any = 0, **_: Any) -> None:
        self._fill_new(MemoryType(List, None), values, length, fill)

    def _fill_new(self, kind: MemoryType, values: tuple[Any, ...], length: Any, fill: Any) -> None:
        if len(values) == 1 and isinstance(values[0], (list, tuple, MemoryArray)) and kind.element is not list:
            values = tuple(values[0])
        if not values and fill is not None:
            values = (fill,) * int(as_integer(length, "the length of a list"))
            length = 0
        memory = values_memory(kind, values)
        super().__init__(memory, 0, memory.size)
        if length:
            self.resize(int(as_integer(length, "the length of a list")), 0)

    @classmethod
    def _with_parameters(cls, *parameters: Any, T: Any = None, **_: Any) -> MemoryType:  # noqa: N803
        """Return the type `List[T]`.

        >>> List.with_parameters("int8")
        List[DType.int8]
        """
        return memory_type(cls, (*parameters, T))

    @classmethod
    def _of_type(
        cls, kind: MemoryType, *values: Any, length: Any = 0, fill: Any = None, unsafe_uninit_length: Any = 0, **_: Any
    ) -> List:
        made = object.__new__(cls)
        made._fill_new(kind, values, length or unsafe_uninit_length, fill)
        return made

    @property
    def capacity(self) -> int:
        """Return how many elements fit without new memory.

        >>> List["int8"](1, 2).capacity >= 2
        True
        """
        return int(self.memory.size)

    # Growth.

    def reserve(self, count: Any) -> None:
        """Make memory for at least `count` elements.

        >>> List["int8"]().reserve(5)
        """
        size = int(as_integer(count, "a capacity"))
        memory = self.memory
        if isinstance(memory, Cells) or size <= memory.size:
            return
        grown = allocate(as_dtype(memory.format), size)
        grown.host[: self._size] = memory.host[: self._size]
        self.memory = grown

    def append(self, value: Any) -> None:
        """Add an element, `value`, at the end.

        >>> numbers = List["int8"]()
        >>> numbers.append(7)
        >>> print(numbers)
        [7]
        """
        memory = self.memory
        if isinstance(memory, Cells):
            if not memory.data and memory.kind is object and isinstance(value, (SIMD, int, float)):
                self._fill_new(MemoryType(List, None), (value,), 0, None)  # the first element gives the type
                return
            memory.data.append(value)
            self._size += 1
            return
        if self._size == memory.size:
            self.reserve(max(4, 2 * memory.size))
        write_scalar(self.memory, self._size, value)
        self._size += 1

    def extend(self, values: Iterable[Any]) -> None:
        """Add elements, `values`, at the end.

        >>> numbers = List["int8"](1)
        >>> numbers.extend([2, 3])
        >>> print(numbers)
        [1, 2, 3]
        """
        for value in list(values):
            self.append(value)

    def resize(self, length: Any, value: Any = 0) -> None:
        """Shorten the list, or add elements `value` up to a length.

        >>> numbers = List["int8"](1)
        >>> numbers.resize(3, 7)
        >>> print(numbers)
        [1, 7, 7]
        """
        count = int(as_integer(length, "the length of a list"))
        self.reserve(count)
        while self._size < count:
            self.append(value)
        self.shrink(count)

    def shrink(self, length: Any) -> None:
        """Drop the elements from `length` on.

        >>> numbers = List["int8"](1, 2, 3)
        >>> numbers.shrink(1)
        >>> print(numbers)
        [1]
        """
        count = int(as_integer(length, "the length of a list"))
        if not 0 <= count <= self._size:
            raise CoordinateError(f"cannot shrink a list of {self._size} elements to {count}")
        self._size = count
        if isinstance(self.memory, Cells):
            del self.memory.data[count:]

    def clear(self) -> None:
        """Drop all elements.

        >>> numbers = List["int8"](1, 2, 3)
        >>> numbers.clear()
        >>> len(numbers)
        0
        """
        self.shrink(0)

    def pop(self, k: Any = -1) -> Any:
        """Remove element `k`, the last one if not told, and return it.

        >>> List["int8"](1, 2, 3).pop(0)
        Int8(1)
        """
        index = self._size - 1 if as_integer(k, "an index") == -1 else k
        value = self[index]
        rest = [self[j] for j in range(int(index) + 1, self._size)]
        self.shrink(int(index))
        self.extend(rest)
        return value

    def insert(self, k: Any, value: Any) -> None:
        """Insert an element, `value`, before index `k`.

        >>> numbers = List["int8"](1, 3)
        >>> numbers.insert(1, 2)
        >>> print(numbers)
        [1, 2, 3]
        """
        index = int(as_integer(k, "an index"))
        if not 0 <= index <= self._size:
            raise CoordinateError(f"index {index} is outside a list of {self._size} elements")
        rest = [self[j] for j in range(index, self._size)]
        self.shrink(index)
        self.extend([value, *rest])

    def swap_elements(self, i: Any, j: Any) -> None:
        """Exchange elements `i` and `j`.

        >>> numbers = List["int8"](1, 3)
        >>> numbers.swap_elements(0, 1)
        >>> print(numbers)
        [3, 1]
        """
        self[i], self[j] = self[j], self[i]

    def reverse(self) -> None:
        """Reverse the order of the elements.

        >>> numbers = List["int8"](1, 3)
        >>> numbers.reverse()
        >>> print(numbers)
        [3, 1]
        """
        for k, value in enumerate([self[j] for j in reversed(range(self._size))]):
            self[k] = value

    def index(self, value: Any) -> int:
        """Return the index of the first element equal to `value`.

        >>> List["int8"](1, 3).index(3)
        1
        """
        for k, element in enumerate(self):
            if element == value:
                return k
        raise Error("ValueError: Given element is not in list")  # as Mojo says it

    def count(self, value: Any) -> int:
        """Return how many elements are equal to `value`.

        >>> List["int8"](1, 3, 1).count(1)
        2
        """
        return sum(1 for element in self if element == value)

    def represent_in_mojo(self) -> str:
        """Return what Mojo's `repr` shows: the type of the elements, and each of them.

        >>> List["int8"](1, 2).represent_in_mojo()
        'List[SIMD[DType.int8, 1]]([Int8(1), Int8(2)])'
        """
        elements = list(self)
        kind = f"[{name_type(elements[0])}]" if elements else ""
        return f"List{kind}([{', '.join(map(represent, elements))}])"

    def __add__(self, other: Iterable[Any]) -> List:
        joined = self.__copy__()
        joined.extend(other)
        return joined

    def __iadd__(self, other: Iterable[Any]) -> List:
        self.extend(other)
        return self

    def __mul__(self, count: Any) -> List:
        repeated = self.__copy__()
        for _ in range(int(as_integer(count, "a number of copies")) - 1):
            repeated.extend(self)
        return repeated

    def __copy__(self) -> List:
        copied = object.__new__(type(self))
        MemoryArray.__init__(copied, copy_memory(self), 0, self._size)
        return copied

    copy = __copy__
