# SPDX-License-Identifier: Apache-2.0
"""Built-ins of Mojo that its layout snippets use: arrays, lists and spans, origins, and small types."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

import numpy as np

from ..copying.host_memory import aligned_empty
from ..errors import CoordinateError, FormatError
from ..formats import ScalarFormat, fit_values, format_of
from ..layout.validation import as_integer
from ..tensor.store import Storage, as_array, flat_scalars
from .simd import NumberType, UInt64, scalar_format

Int = int


UInt = UInt64
String = str
Optional = typing.Optional


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a pointer comes from: `owner` is the object that holds the memory, which a tensor keeps alive.

    `mut` says whether it can be written through the pointer. An origin without an owner stands for any:
    `MutAnyOrigin`, `ImmutAnyOrigin`.

    >>> MutAnyOrigin.mut, Origin(False) == ImmutAnyOrigin
    (True, True)
    """

    mut: bool
    owner: Any = field(default=None, repr=False, compare=False)

    def __class_getitem__(cls, mut: bool) -> Origin:
        return cls(bool(mut))


MutAnyOrigin, ImmutAnyOrigin = Origin(True), Origin(False)


@dataclass(frozen=True, slots=True, repr=False)
class IndexListType:
    """The type `IndexList[size]`: called, a tuple of so many integers; `isinstance` checks tuples.

    >>> isinstance((2, 4), IndexList[2]), isinstance((2, 4), IndexList[3])
    (True, False)
    """

    size: int

    def __call__(self, *entries: SupportsIndex) -> tuple[int, ...]:
        numbers = tuple([as_integer(entry, "an entry of an IndexList") for entry in entries])
        if len(numbers) == 1:
            numbers *= self.size
        if len(numbers) != self.size:
            raise CoordinateError(f"{self!r} takes one integer or {self.size}, got {len(numbers)}")
        return numbers

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, tuple) and len(value) == self.size and all(isinstance(entry, int) for entry in value)

    def __repr__(self) -> str:
        return f"IndexList[{self.size}]"


class _IndexListBrackets:
    """`IndexList[2](1, 2)` is a tuple of two integers.

    >>> IndexList[2](1, 2), IndexList[3](0)
    ((1, 2), (0, 0, 0))
    """

    def __repr__(self) -> str:
        return "IndexList"

    def __getitem__(self, size: SupportsIndex) -> IndexListType:
        return IndexListType(as_integer(size, "the size of an IndexList"))


IndexList = _IndexListBrackets()


@dataclass(frozen=True, slots=True, repr=False)
class MemoryType:
    """The type of memory with its number type, such as `Span[Float32]`: it makes such memory, and checks values.

    >>> isinstance(Span(np.arange(4)), Span["int64"]), isinstance(Span(np.arange(4)), Span["int8"])
    (True, False)
    """

    kind: Any
    dtype: ScalarFormat

    def __call__(self, *arguments: Any) -> Any:
        memory = self.kind(*arguments)
        if memory.dtype != self.dtype:
            raise FormatError(f"{self!r} cannot hold {memory.dtype}; use {self.kind.__name__}[DType.{memory.dtype}]")
        return memory

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self.kind) and value.dtype == self.dtype

    def __repr__(self) -> str:
        return f"{self.kind.__name__}[DType.{self.dtype}]"


def memory_type(kind: type, parameters: Any) -> MemoryType:
    """Return `kind[dtype, ...]`: the number type comes first, and what follows has no meaning on a host.

    >>> memory_type(Span, ("float32", MutAnyOrigin))
    Span[DType.float32]
    """
    return MemoryType(kind, scalar_format(parameters[0] if isinstance(parameters, tuple) else parameters))


class Span:
    """A view of the scalars of `storage`: an array, a buffer, or another span.

    >>> span = Span(np.arange(4))
    >>> len(span), int(span[3])
    (4, 3)
    """

    def __init__(self, storage: Storage) -> None:
        self.array = flat_scalars(as_array(storage))
        self.dtype = format_of(self.array).require_scalar("a span")

    def __class_getitem__(cls, parameters: Any) -> Any:
        return memory_type(cls, parameters)

    def _check_index(self, k: SupportsIndex) -> int:
        index = as_integer(k, "an index")
        if not 0 <= index < len(self):
            raise CoordinateError(f"index {index} is outside {len(self)} scalars")
        return index

    def __len__(self) -> int:
        return int(self.array.size)

    def __getitem__(self, k: SupportsIndex) -> Any:
        return self.array[self._check_index(k)]

    def __setitem__(self, k: SupportsIndex, value: float) -> None:
        self.array[self._check_index(k)] = fit_values(value, self.dtype)

    def unsafe_ptr(self) -> Any:
        """Return the memory itself.

        >>> Span(np.arange(4)).unsafe_ptr().tolist()
        [0, 1, 2, 3]
        """
        return self.array

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} x {self.dtype.name}>"


class _InlineArrayBrackets:
    """`InlineArray[Float32, 16](uninitialized=True)`, or `(fill=0)`, or the values themselves.

    >>> InlineArray["float32", 4](fill=1.5).array.tolist()
    [1.5, 1.5, 1.5, 1.5]
    """

    def __repr__(self) -> str:
        return "InlineArray"

    def __getitem__(self, parameters: tuple[NumberType, int]) -> Callable[..., Span]:
        dtype, size = parameters
        element, count = scalar_format(dtype), as_integer(size, "the size of an array")

        def create(*values: Any, fill: Any = None, uninitialized: bool = False) -> Span:
            array = aligned_empty(count, element.dtype)
            if values:
                if len(values) != count:
                    raise CoordinateError(f"expected {count} values for an array of {count} scalars, got {len(values)}")
                array[...] = fit_values(values, element)
            elif fill is not None or not uninitialized:
                array[...] = fit_values(0 if fill is None else fill, element)
            return Span(array)

        return create


InlineArray = _InlineArrayBrackets()
Array = InlineArray


class _ListBrackets:
    """`List[Float32](length=4, fill=0)` or `List[Float32](1, 2, 3)`.

    >>> List["int32"](1, 2, 3).array.tolist()
    [1, 2, 3]
    """

    def __repr__(self) -> str:
        return "List"

    def __getitem__(self, dtype: NumberType) -> Callable[..., Span]:
        element = scalar_format(dtype)

        def create(*values: Any, length: int = 0, fill: Any = 0) -> Span:
            if values:
                return Span(fit_values(values, element))
            return Span(np.full(length, fit_values(fill, element)))

        return create


List = _ListBrackets()
