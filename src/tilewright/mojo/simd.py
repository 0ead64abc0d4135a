# SPDX-License-Identifier: Apache-2.0
"""Mojo's `SIMD`: vectors and scalars of a number type, over NumPy. Integers wrap around, as Mojo's do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..errors import FormatError, LayoutError
from ..formats import FormatLike, ScalarFormat, cast, fit_values, format_of
from ..layout.validation import as_integer
from .brackets import brackets

SIMD_BYTES = 64  # of a vector register; `vectorize()` assumes the same


@dataclass(frozen=True, slots=True, repr=False)
class SIMDType:
    """The type `SIMD[dtype, size]`: called, it makes a vector, of size 1 a scalar; `isinstance` checks values.

    One number fills a vector. Python's numbers must be values of the type; those of another NumPy type are converted,
    as Mojo does: floats lose their fraction, and integers wrap around.

    >>> SIMD[DType.int32, 4](7), Scalar[DType.int8](5).itemsize
    (SIMD[DType.int32, 4](7, 7, 7, 7), 1)
    >>> isinstance(np.zeros(4, np.int32), SIMD[DType.int32, 4]), int(UInt8(np.int64(-1)))
    (True, 255)
    """

    dtype: ScalarFormat
    size: int

    def __call__(self, *values: Any) -> Any:
        if len(values) not in (1, self.size):
            raise LayoutError(f"{self!r} takes one number or {self.size}, got {len(values)}")
        if any(np.ndim(value) for value in values) and len(values) != 1:
            raise LayoutError(f"{self!r} takes {self.size} numbers, or one vector of that size")
        numbers = np.reshape([self._convert(value) for value in values], -1)
        if numbers.size not in (1, self.size):
            raise LayoutError(f"{self!r} has {self.size} numbers, got a vector of {numbers.size}")
        if self.size == 1:
            return numbers[0]
        return np.array(np.broadcast_to(numbers, self.size)).view(SIMD)

    def _convert(self, value: Any) -> Any:
        is_typed = isinstance(value, (np.ndarray, np.generic))
        return cast(value, self.dtype) if is_typed else fit_values(value, self.dtype)

    def __instancecheck__(self, value: object) -> bool:
        is_array = isinstance(value, (np.ndarray, np.generic))
        return is_array and value.dtype == self.dtype.dtype and value.size == self.size  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"SIMD[DType.{self.dtype.name}, {self.size}]"


NumberType: TypeAlias = "FormatLike | SIMDType"  # `DType.float32`, `Float32`, or what the core takes as a format


class SIMD(np.ndarray[Any, Any]):
    """A vector of numbers of one type: `SIMD[DType.float32, 4](1, 2, 3, 4)`. Arithmetic is element by element.

    As in Mojo, `==` is one bool for all elements; `eq`, `lt` and the like compare one by one.

    >>> v = SIMD[DType.float32, 4](1, 2, 3, 4)
    >>> print(v * 2, v[2], v.reduce_add(), v == v, v.lt(3).tolist())
    [2.0, 4.0, 6.0, 8.0] 3.0 10.0 True [True, True, False, False]
    """

    def __class_getitem__(cls, parameters: Any) -> Any:
        dtype, size = parameters if isinstance(parameters, tuple) else (parameters, 1)
        count = as_integer(size, "the size of a SIMD type")
        if count < 1 or count & (count - 1):
            raise LayoutError(f"the size of a SIMD type must be a power of two, got {count}")
        return SIMDType(scalar_format(dtype), count)

    @brackets
    def cast(self, parameters: tuple[Any, ...]) -> Any:
        """Return the numbers in another type: `v.cast[DType.int32]()`.

        >>> SIMD[DType.float32, 2](1.5, -2.5).cast[DType.int32]()
        SIMD[DType.int32, 2](1, -2)
        """
        (dtype,) = parameters
        return cast(np.asarray(self), scalar_format(dtype)).view(SIMD)

    def reduce_add(self) -> Any:
        """Return the sum.

        >>> int(SIMD[DType.uint8, 2](200, 100).reduce_add())  # 300 - 256
        44
        """
        return np.add.reduce(np.asarray(self), dtype=self.dtype)

    def reduce_mul(self) -> Any:
        """Return the product.

        >>> int(SIMD[DType.int32, 4](1, 9, 3, 4).reduce_mul())
        108
        """
        return np.multiply.reduce(np.asarray(self), dtype=self.dtype)

    def reduce_min(self) -> Any:
        """Return the smallest number.

        >>> int(SIMD[DType.int32, 2](7, 3).reduce_min())
        3
        """
        return np.asarray(self).min()

    def reduce_max(self) -> Any:
        """Return the largest number.

        >>> int(SIMD[DType.int32, 2](7, 3).reduce_max())
        7
        """
        return np.asarray(self).max()

    def select(self, true_case: Any, false_case: Any) -> Any:
        """Return, of a vector of bools, `true_case` where it is true and `false_case` elsewhere.

        >>> SIMD[DType.int32, 2](1, 5).lt(3).select(SIMD[DType.int32, 2](10), SIMD[DType.int32, 2](20))
        SIMD[DType.int32, 2](10, 20)
        """
        return np.where(np.asarray(self), np.asarray(true_case), np.asarray(false_case)).view(SIMD)

    def join(self, other: Any) -> Any:
        """Return the numbers of this vector, then those of `other`.

        >>> SIMD[DType.int32, 2](1, 2).join(SIMD[DType.int32, 2](3, 4))
        SIMD[DType.int32, 4](1, 2, 3, 4)
        """
        return np.concatenate([np.asarray(self), np.asarray(other)]).view(SIMD)

    def eq(self, other: Any) -> Any:
        """Return which numbers are equal to those of `other`.

        >>> SIMD[DType.int32, 2](1, 2).eq(2).tolist()
        [False, True]
        """
        return np.equal(np.asarray(self), np.asarray(other)).view(SIMD)

    def ne(self, other: Any) -> Any:
        """Return which numbers differ from those of `other`.

        >>> SIMD[DType.int32, 2](1, 2).ne(2).tolist()
        [True, False]
        """
        return np.not_equal(np.asarray(self), np.asarray(other)).view(SIMD)

    def lt(self, other: Any) -> Any:
        """Return which numbers are less than those of `other`.

        >>> SIMD[DType.int32, 2](1, 2).lt(2).tolist()
        [True, False]
        """
        return np.less(np.asarray(self), np.asarray(other)).view(SIMD)

    def gt(self, other: Any) -> Any:
        """Return which numbers are greater than those of `other`.

        >>> SIMD[DType.int32, 2](1, 2).gt(1).tolist()
        [False, True]
        """
        return np.greater(np.asarray(self), np.asarray(other)).view(SIMD)

    def __eq__(self, other: object) -> bool:
        return np.array_equal(np.asarray(self), np.asarray(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __str__(self) -> str:
        return f"[{', '.join(map(str, np.asarray(self).tolist()))}]"

    def __repr__(self) -> str:
        name = scalar_format(self.dtype).name
        return f"SIMD[DType.{name}, {self.size}]({str(self)[1:-1]})"


class _ScalarBrackets:
    """`Scalar[dtype]` is `SIMD[dtype, 1]`: called, a number of that type.

    >>> Scalar[DType.int8](5).itemsize
    1
    """

    def __repr__(self) -> str:
        return "Scalar"

    def __getitem__(self, dtype: NumberType) -> SIMDType:
        return SIMDType(scalar_format(dtype), 1)


Scalar = _ScalarBrackets()


def scalar_format(dtype: NumberType) -> ScalarFormat:
    """Return the format of a dtype, or of `SIMD[dtype, 1]`; raise unless it is a scalar format.

    >>> scalar_format(Scalar[DType.int8])
    format_of('int8')
    """
    if isinstance(dtype, SIMDType):
        if dtype.size != 1:
            raise FormatError(f"expected the type of a number, got {dtype!r}; use DType.{dtype.dtype.name}")
        return dtype.dtype
    return format_of(dtype).require_scalar("an array")


class _SimdWidthOf:
    """`simd_width_of[dtype]()`: how many numbers a vector register of 64 bytes holds.

    >>> simd_width_of[DType.float32](), simd_width_of[DType.int8]()
    (16, 64)
    """

    def __repr__(self) -> str:
        return "simd_width_of"

    def __getitem__(self, dtype: NumberType) -> Callable[[], int]:
        width = max(1, SIMD_BYTES // scalar_format(dtype).itemsize)
        return lambda: width


simd_width_of = _SimdWidthOf()


class _SizeOf:
    """`size_of[type]()`, `align_of[type]()`: the bytes of a number or a vector, which it is aligned to.

    >>> size_of[DType.float32](), align_of[SIMD[DType.float32, 4]]()
    (4, 16)
    """

    def __getitem__(self, kind: NumberType) -> Callable[[], int]:
        count = kind.size if isinstance(kind, SIMDType) else 1
        size = count * (kind.dtype if isinstance(kind, SIMDType) else scalar_format(kind)).itemsize
        return lambda: size


size_of = align_of = _SizeOf()


class DType:
    """The number types by name: `DType.float32` is the format of that name.

    >>> DType.float32
    format_of('float32')
    """

    bool = format_of("bool")
    int8 = format_of("int8")
    int16 = format_of("int16")
    int32 = format_of("int32")
    int64 = format_of("int64")
    uint8 = format_of("uint8")
    uint16 = format_of("uint16")
    uint32 = format_of("uint32")
    uint64 = format_of("uint64")
    float16 = format_of("float16")
    bfloat16 = format_of("bfloat16")
    float32 = format_of("float32")
    float64 = format_of("float64")
    float8_e4m3fn = format_of("float8_e4m3")
    float8_e5m2 = format_of("float8_e5m2")


Int8, Int16, Int32, Int64 = Scalar["int8"], Scalar["int16"], Scalar["int32"], Scalar["int64"]
UInt8, UInt16, UInt32, UInt64 = Scalar["uint8"], Scalar["uint16"], Scalar["uint32"], Scalar["uint64"]
Float16, BFloat16 = Scalar["float16"], Scalar["bfloat16"]
Bool, Float32, Float64 = Scalar["bool"], Scalar["float32"], Scalar["float64"]
