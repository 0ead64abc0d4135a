# SPDX-License-Identifier: Apache-2.0
"""Built-ins of Mojo that its layout snippets use: number types, arrays and spans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np

from .. import formats
from ..copying.host_memory import aligned_empty
from ..errors import CoordinateError
from ..formats import FormatLike, ScalarFormat, fit_values, format_of
from ..layout.validation import as_integer
from ..tensor.store import Storage, as_array, flat_scalars

Int = int


class DType:
    """The number types by name: `DType.float32` is the format of that name.

    >>> DType.float32
    format_of('float32')
    """

    bool = formats.bool_
    int8 = formats.int8
    int16 = formats.int16
    int32 = formats.int32
    int64 = formats.int64
    uint8 = formats.uint8
    uint16 = formats.uint16
    uint32 = formats.uint32
    uint64 = formats.uint64
    float16 = formats.float16
    bfloat16 = formats.bfloat16
    float32 = formats.float32
    float64 = formats.float64
    float8_e4m3fn = formats.float8_e4m3
    float8_e5m2 = formats.float8_e5m2


Bool = formats.bool_
Int8, Int16, Int32, Int64 = formats.int8, formats.int16, formats.int32, formats.int64
UInt8, UInt16, UInt32, UInt64 = formats.uint8, formats.uint16, formats.uint32, formats.uint64
Float16, BFloat16 = formats.float16, formats.bfloat16
Float32, Float64 = formats.float32, formats.float64


class _ScalarBrackets:
    """`Scalar[dtype](value)` is a number of that type.

    >>> Scalar[DType.int8](5).itemsize
    1
    """

    def __getitem__(self, dtype: FormatLike) -> Callable[[Any], Any]:
        return _scalar_format(dtype).dtype.type


Scalar = _ScalarBrackets()


def _scalar_format(dtype: FormatLike) -> ScalarFormat:
    """Return the format of a dtype; raise unless it is a scalar format."""
    return format_of(dtype).require_scalar("an array")


class Span:
    """A view of the scalars of `storage`: an array, a buffer, or another span.

    >>> span = Span(np.arange(4))
    >>> len(span), int(span[3])
    (4, 3)
    """

    def __init__(self, storage: Storage) -> None:
        self.array = flat_scalars(as_array(storage))
        self._format = format_of(self.array).require_scalar("a span")

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
        self.array[self._check_index(k)] = fit_values(value, self._format)

    def unsafe_ptr(self) -> Any:
        """Return the memory itself.

        >>> Span(np.arange(4)).unsafe_ptr().tolist()
        [0, 1, 2, 3]
        """
        return self.array

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} x {format_of(self.array).name}>"


class _InlineArrayBrackets:
    """`InlineArray[Float32, 16](uninitialized=True)`, or `(fill=0)`, or the values themselves.

    >>> InlineArray[Float32, 4](fill=1.5).array.tolist()
    [1.5, 1.5, 1.5, 1.5]
    """

    def __getitem__(self, parameters: tuple[FormatLike, int]) -> Callable[..., Span]:
        dtype, size = parameters
        element, count = _scalar_format(dtype), as_integer(size, "the size of an array")

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

    >>> List[Int32](1, 2, 3).array.tolist()
    [1, 2, 3]
    """

    def __getitem__(self, dtype: FormatLike) -> Callable[..., Span]:
        element = _scalar_format(dtype)

        def create(*values: Any, length: int = 0, fill: Any = 0) -> Span:
            if values:
                return Span(fit_values(values, element))
            return Span(np.full(length, fit_values(fill, element)))

        return create


List = _ListBrackets()
