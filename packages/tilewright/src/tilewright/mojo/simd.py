# SPDX-License-Identifier: Apache-2.0
"""Mojo's `SIMD`: vectors and scalars of a number type. Integers wrap around, floats round, as Mojo's do.

A scalar, `SIMD` of size 1, holds a number of Python that its type can hold; a vector holds a NumPy array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, inf, trunc
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..errors import CoordinateError, FormatError, LayoutError
from ..formats import FormatLike, ScalarFormat, cast
from ..layout import as_integer
from ..tensor import format_number, join_texts
from .brackets import brackets
from .dtype import DType, as_dtype
from .parametrized import ParametrizedMeta
from .simd_arithmetic import SIMDArithmetic, as_number, build_vector, operand_of

SIMD_BYTES = 64  # of a vector register; `vectorize()` assumes the same
_new = object.__new__


@dataclass(frozen=True, slots=True, repr=False)
class SIMDType:
    """The type `SIMD[dtype, size]`: called, it makes a vector, of size 1 a scalar; `isinstance` checks values.

    One number, or `fill`, fills a vector. Numbers are converted as Mojo does: floats lose their fraction on the way to
    an integer, and integers wrap around.

    >>> SIMD[DType.int32, 4](7), Scalar[DType.int8](5), UInt8(300)
    (SIMD[DType.int32, 4](7, 7, 7, 7), Int8(5), UInt8(44))
    >>> isinstance(Int32(1), Int32), isinstance(Int32(1), UInt8), Int32.MAX
    (True, False, Int32(2147483647))
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("dtype", "size")

    dtype: DType
    size: int

    def __call__(self, *values: Any, fill: Any = None) -> Any:
        if fill is not None:
            values = (fill,)
        dtype, size = self.dtype, self.size
        if not values:
            values = (0,)
        if len(values) == 1:
            value = values[0]
            if isinstance(value, SIMD) and value.size == size:
                return value if value.dtype is dtype else convert(value, dtype)
            if size == 1:
                return make_scalar(dtype, as_number(dtype, value))
            if np.ndim(value):
                return _make_vector(dtype, self._check_size(cast(np.asarray(value), dtype).reshape(-1)))
            filled = np.full(size, as_number(dtype, value), dtype.dtype)
            return _make_vector(dtype, filled)
        return _make_vector(dtype, self._check_size(np.array([as_number(dtype, v) for v in values], dtype.dtype)))

    def _check_size(self, numbers: Any) -> Any:
        if numbers.size == 1 and self.size == 1:
            return numbers
        if numbers.size != self.size:
            raise LayoutError(f"{self!r} takes one number or {self.size}, got {numbers.size}")
        return numbers

    @property
    def MAX(self) -> Any:  # noqa: N802  (Mojo's name)
        """Return the largest number; of floats, infinity."""
        dtype = self.dtype
        return self(inf if dtype.kind == "float" else dtype.low + dtype.width_mask if dtype.kind != "bool" else 1)

    @property
    def MIN(self) -> Any:  # noqa: N802
        """Return the lowest number; of floats, minus infinity."""
        return self(-inf if self.dtype.kind == "float" else self.dtype.low)

    @property
    def MAX_FINITE(self) -> Any:  # noqa: N802
        """Return the largest finite number."""
        return self(self.dtype.limits.highest)

    @property
    def MIN_FINITE(self) -> Any:  # noqa: N802
        """Return the lowest finite number."""
        return self(self.dtype.limits.lowest)

    @property
    def element_type(self) -> DType:
        """Return the number type."""
        return self.dtype

    def __instancecheck__(self, value: object) -> bool:
        if isinstance(value, SIMD):
            return value.dtype == self.dtype and value.size == self.size
        is_array = isinstance(value, (np.ndarray, np.generic))
        return is_array and value.dtype == self.dtype.dtype and value.size == self.size  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"SIMD[{self.dtype!r}, {self.size}]"

    def __str__(self) -> str:
        return repr(self)


NumberType: TypeAlias = "FormatLike | SIMDType"  # `DType.float32`, `Float32`, or what the core takes as a format


def make_scalar(dtype: DType, number: Any) -> SIMD:
    """Return a scalar of a number that its type can hold; no check is made.

    >>> make_scalar(DType.int8, 5)
    Int8(5)
    """
    scalar: SIMD = _new(SIMD)
    scalar.dtype = dtype
    scalar.value = number
    return scalar


def as_vector(array: Any) -> SIMD:
    """Return an array of numbers, or one number, of NumPy as SIMD.

    >>> as_vector(np.arange(2)), as_vector(np.float32(1.5))
    (SIMD[DType.int64, 2](0, 1), Float32(1.5))
    """
    numbers = np.asarray(array)
    return _make_vector(as_dtype(numbers.dtype), numbers.reshape(-1))


def _make_vector(dtype: DType, array: Any) -> SIMD:
    vector: SIMD = build_vector(SIMD, dtype, array)
    return vector


def _elementwise(compare: Any) -> Any:
    """Return a method that compares number by number."""

    def method(self: SIMD, other: Any) -> SIMD:
        """Return, number by number, how this vector compares with an `other` one."""
        return _make_vector(DType.bool, np.atleast_1d(compare(np.asarray(self.value), operand_of(self, other))))

    return method


class SIMD(SIMDArithmetic, metaclass=ParametrizedMeta):
    """A vector of numbers of one type, `SIMD[DType.float32, 4](1, 2, 3, 4)`; of size 1, a scalar.

    Its `values` are numbers, and a size is a power of two. Arithmetic is element by element. As in Mojo, `==` is one
    bool for all elements; `eq`, `lt` and the like compare one by one.

    >>> v = SIMD[DType.float32, 4](1, 2, 3, 4)
    >>> print(v * 2, v[2], v.reduce_add(), v == v, v.lt(3))
    [2.0, 4.0, 6.0, 8.0] 3.0 10.0 True [True, True, False, False]
    """

    __slots__ = ()
    __bracketed__: ClassVar[tuple[str, ...]] = ("dtype", "size")

    def __new__(cls, *values: Any) -> Any:
        """Return a vector of numbers, `values`, of the type of the first: a SIMD value, an integer, or a float."""
        first = values[0] if values else 0
        default = DType.float64 if isinstance(first, float) else DType.int64
        return SIMDType(first.dtype if isinstance(first, SIMD) else default, max(1, len(values)))(*values)

    @classmethod
    def _with_parameters(cls, dtype: Any = None, size: Any = 1, **named: Any) -> Any:
        """Return the type `SIMD[dtype, size]`.

        >>> SIMD.with_parameters(DType.int8, size=4)
        SIMD[DType.int8, 4]
        """
        if named:
            raise TypeError(f"SIMD has the parameters dtype and size, got {', '.join(named)}")
        if dtype is None or dtype is ... or size is None or size is ...:
            return cls  # what is open is any
        count = as_integer(size, "the size of a SIMD type")
        if count < 1 or count & (count - 1):
            raise LayoutError(f"the size of a SIMD type must be a power of two, got {count}")
        return SIMDType(as_dtype(scalar_format(dtype)), count)

    @property
    def size(self) -> int:
        """Return how many numbers there are.

        >>> SIMD[DType.int8, 4](0).size
        4
        """
        value = self.value
        return int(value.size) if value.__class__ is np.ndarray else 1

    @property
    def array(self) -> Any:
        """Return the numbers as an array of NumPy; a scalar as an array of one.

        >>> Float32(1.5).array
        array([1.5], dtype=float32)
        """
        value = self.value
        return value if value.__class__ is np.ndarray else np.array([value], self.dtype.dtype)

    # Elements.

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[SIMD]:
        return (self[k] for k in range(self.size))

    def _check_index(self, k: Any) -> int:
        index = as_integer(k, "an index")
        if not 0 <= index < self.size:
            raise CoordinateError(f"index {index} is outside a vector of {self.size} numbers")
        return int(index)

    def __getitem__(self, k: Any) -> SIMD:
        value = self.value
        if value.__class__ is not np.ndarray:
            if k.__class__ is not int or k != 0:
                self._check_index(k)
            return self
        return make_scalar(self.dtype, as_number(self.dtype, value[self._check_index(k)]))

    def __setitem__(self, k: Any, number: Any) -> None:
        index, (new,) = self._check_index(k), (operand_of(self, number),)
        if self.value.__class__ is np.ndarray:
            self.value = self.value.copy()  # other names may share the array
            self.value[index] = new
        else:
            self.value = new

    # Types.

    @brackets
    def cast(self, parameters: tuple[Any, ...], *, target: Any = None) -> SIMD:
        """Return the numbers in another type: `v.cast[DType.int32]()`.

        >>> SIMD[DType.float32, 2](1.5, -2.5).cast[DType.int32]()
        SIMD[DType.int32, 2](1, -2)
        """
        (dtype,) = parameters or (target,)
        return convert(self, as_dtype(scalar_format(dtype)))

    @brackets
    def to_bits(self, parameters: tuple[Any, ...]) -> SIMD:
        """Return the bits as unsigned integers of the same size.

        >>> Float32(1).to_bits()
        UInt32(1065353216)
        """
        return as_vector(self.array.view(f"u{self.dtype.itemsize}"))

    # Reductions.

    @brackets
    def reduce_add(self, parameters: tuple[Any, ...]) -> SIMD:
        """Return the sum.

        >>> SIMD[DType.uint8, 2](200, 100).reduce_add()  # 300 - 256
        UInt8(44)
        """
        return self._reduce(np.add, *parameters)

    @brackets
    def reduce_mul(self, parameters: tuple[Any, ...]) -> SIMD:
        """Return the product.

        >>> SIMD[DType.int32, 4](1, 9, 3, 4).reduce_mul()
        Int32(108)
        """
        return self._reduce(np.multiply, *parameters)

    @brackets
    def reduce_min(self, parameters: tuple[Any, ...]) -> SIMD:
        """Return the smallest number.

        >>> SIMD[DType.int32, 2](7, 3).reduce_min()
        Int32(3)
        """
        return self._reduce(np.minimum, *parameters)

    @brackets
    def reduce_max(self, parameters: tuple[Any, ...]) -> SIMD:
        """Return the largest number.

        >>> SIMD[DType.int32, 2](7, 3).reduce_max()
        Int32(7)
        """
        return self._reduce(np.maximum, *parameters)

    @brackets
    def reduce_and(self, parameters: tuple[Any, ...]) -> SIMD:
        """Return the bits that all numbers have; of bools, whether all are true.

        >>> SIMD[DType.bool, 2](True, False).reduce_and()
        Bool(False)
        """
        return self._reduce(np.bitwise_and, *parameters)

    @brackets
    def reduce_or(self, parameters: tuple[Any, ...]) -> SIMD:
        """Return the bits that some number has; of bools, whether one is true.

        >>> SIMD[DType.bool, 2](True, False).reduce_or()
        Bool(True)
        """
        return self._reduce(np.bitwise_or, *parameters)

    def _reduce(self, operation: Any, size_out: int = 1) -> SIMD:
        """Return the numbers combined in halves, as Mojo does it: (a0 + a2) + (a1 + a3), until `size_out` are left."""
        numbers = self.array
        with np.errstate(all="ignore"):
            while numbers.size > max(1, size_out):
                half = numbers.size // 2
                numbers = operation(numbers[:half], numbers[half:])
        return _make_vector(self.dtype, numbers)

    # Selections and orders.

    def select(self, true_case: Any, false_case: Any) -> Any:
        """Return, of a vector of bools, `true_case` where it is true and `false_case` elsewhere.

        >>> SIMD[DType.int32, 2](1, 5).lt(3).select(SIMD[DType.int32, 2](10), 20)
        SIMD[DType.int32, 2](10, 20)
        """
        cases = [true_case, false_case]
        known = [case for case in cases if isinstance(case, SIMD)]
        if not known:
            return true_case if self else false_case
        numbers = [operand_of(known[0], case) for case in cases]
        return _make_vector(known[0].dtype, np.asarray(np.where(self.array, *numbers), known[0].dtype.dtype))

    def join(self, other: Any) -> SIMD:
        """Return the numbers of this vector, then those of `other`.

        >>> SIMD[DType.int32, 2](1, 2).join(SIMD[DType.int32, 2](3, 4))
        SIMD[DType.int32, 4](1, 2, 3, 4)
        """
        return _make_vector(self.dtype, np.concatenate([self.array, np.atleast_1d(operand_of(self, other))]))

    def interleave(self, other: SIMD) -> SIMD:
        """Return the numbers of this vector and an `other` one in turns.

        >>> SIMD[DType.int32, 2](1, 2).interleave(SIMD[DType.int32, 2](3, 4))
        SIMD[DType.int32, 4](1, 3, 2, 4)
        """
        return _make_vector(self.dtype, np.stack([self.array, other.array], axis=1).reshape(-1))

    @brackets
    def slice(self, parameters: tuple[Any, ...], *, offset: int = 0, output_width: int | None = None) -> SIMD:
        """Return some consecutive numbers: `v.slice[2, offset=1]()`.

        >>> SIMD[DType.int32, 4](1, 2, 3, 4).slice.with_parameters(2, offset=1)()
        SIMD[DType.int32, 2](2, 3)
        """
        width, start = (*parameters, output_width, offset)[:2] if len(parameters) < 2 else parameters
        start = offset if len(parameters) < 2 else start
        if not 0 <= start <= start + width <= self.size:
            raise CoordinateError(f"numbers {start} to {start + width - 1} are outside a vector of {self.size}")
        return _make_vector(self.dtype, self.array[start : start + width])

    @brackets
    def insert(self, parameters: tuple[Any, ...], value: SIMD, *, offset: int = 0) -> SIMD:
        """Return the vector with the numbers of `value` in place of its own: `v.insert[offset=2](w)`.

        >>> SIMD[DType.int32, 4](1, 2, 3, 4).insert[2](SIMD[DType.int32, 2](0, 0))
        SIMD[DType.int32, 4](1, 2, 0, 0)
        """
        start = parameters[0] if parameters else offset
        if not 0 <= start <= start + value.size <= self.size:
            raise CoordinateError(f"numbers {start} to {start + value.size - 1} are outside a vector of {self.size}")
        numbers = self.array.copy()
        numbers[start : start + value.size] = operand_of(self, value)
        return _make_vector(self.dtype, numbers)

    @brackets
    def shuffle(self, parameters: tuple[Any, ...], *, mask: Any = None) -> SIMD:
        """Return the numbers at some indices: `v.shuffle[3, 2, 1, 0]()`.

        >>> SIMD[DType.int32, 2](1, 2).shuffle[1, 1]()
        SIMD[DType.int32, 2](2, 2)
        """
        return _make_vector(self.dtype, self.array[[self._check_index(k) for k in mask or parameters]])

    def reversed(self) -> SIMD:
        """Return the numbers in reverse.

        >>> SIMD[DType.int32, 2](1, 2).reversed()
        SIMD[DType.int32, 2](2, 1)
        """
        return _make_vector(self.dtype, self.array[::-1])

    @brackets
    def rotate_left(self, parameters: tuple[Any, ...]) -> SIMD:
        """Return the numbers moved to lower indices, around the end: `v.rotate_left[1]()`.

        >>> SIMD[DType.int32, 4](1, 2, 3, 4).rotate_left[1]()
        SIMD[DType.int32, 4](2, 3, 4, 1)
        """
        return _make_vector(self.dtype, np.roll(self.array, -parameters[0]))

    @brackets
    def rotate_right(self, parameters: tuple[Any, ...]) -> SIMD:
        """Return the numbers moved to higher indices, around the end: `v.rotate_right[1]()`.

        >>> SIMD[DType.int32, 4](1, 2, 3, 4).rotate_right[1]()
        SIMD[DType.int32, 4](4, 1, 2, 3)
        """
        return _make_vector(self.dtype, np.roll(self.array, parameters[0]))

    @brackets
    def shift_left(self, parameters: tuple[Any, ...]) -> SIMD:
        """Return the numbers moved to lower indices, zeros after them: `v.shift_left[1]()`.

        >>> SIMD[DType.int32, 4](1, 2, 3, 4).shift_left[1]()
        SIMD[DType.int32, 4](2, 3, 4, 0)
        """
        return _make_vector(self.dtype, np.append(self.array[parameters[0] :], self.array[: parameters[0]] * 0))

    @brackets
    def shift_right(self, parameters: tuple[Any, ...]) -> SIMD:
        """Return the numbers moved to higher indices, zeros before them: `v.shift_right[1]()`.

        >>> SIMD[DType.int32, 4](1, 2, 3, 4).shift_right[1]()
        SIMD[DType.int32, 4](0, 1, 2, 3)
        """
        start = self.size - parameters[0]
        return _make_vector(self.dtype, np.append(self.array[start:] * 0, self.array[:start]))

    def deinterleave(self) -> tuple[SIMD, SIMD]:
        """Return the numbers at even indices, and those at odd ones.

        >>> SIMD[DType.int32, 4](1, 2, 3, 4).deinterleave()[1]
        SIMD[DType.int32, 2](2, 4)
        """
        return _make_vector(self.dtype, self.array[::2]), _make_vector(self.dtype, self.array[1::2])

    def split(self) -> tuple[SIMD, SIMD]:
        """Return the two halves.

        >>> SIMD[DType.int32, 4](1, 2, 3, 4).split()[1]
        SIMD[DType.int32, 2](3, 4)
        """
        half = self.size // 2
        return _make_vector(self.dtype, self.array[:half]), _make_vector(self.dtype, self.array[half:])

    eq, ne = _elementwise(np.equal), _elementwise(np.not_equal)
    lt, le = _elementwise(np.less), _elementwise(np.less_equal)
    gt, ge = _elementwise(np.greater), _elementwise(np.greater_equal)

    # Mathematics.

    def fma(self, multiplier: Any, accumulator: Any) -> SIMD:
        """Return self * `multiplier` + `accumulator`.

        >>> Float32(2).fma(3, 1)
        Float32(7.0)
        """
        result: SIMD = self * multiplier + accumulator
        return result

    def clamp(self, lower_bound: Any, upper_bound: Any) -> SIMD:
        """Return the numbers, not less than `lower_bound` and not greater than `upper_bound`.

        >>> SIMD[DType.int32, 4](1, 9, 3, 4).clamp(2, 4)
        SIMD[DType.int32, 4](2, 4, 3, 4)
        """
        low, high = operand_of(self, lower_bound), operand_of(self, upper_bound)
        return _make_vector(self.dtype, np.minimum(np.maximum(self.array, low), high).astype(self.dtype.dtype))

    def __floor__(self) -> SIMD:
        return map_numbers(floor, np.floor, self)

    def __ceil__(self) -> SIMD:
        return map_numbers(ceil, np.ceil, self)

    def __trunc__(self) -> SIMD:
        return map_numbers(trunc, np.trunc, self)

    def __round__(self, digits: int = 0) -> SIMD:
        return map_numbers(lambda number: round(number, digits), lambda array: np.round(array, digits), self)

    # As numbers of Python and NumPy.

    def item(self) -> Any:
        """Return a scalar as a number of Python.

        >>> Float32(1.5).item()
        1.5
        """
        if self.value.__class__ is np.ndarray:
            if self.value.size != 1:
                raise LayoutError(f"expected one number, got a vector of {self.size}")
            return self.value.item()
        return self.value

    def reshape(self, *shape: int) -> Any:
        """Return the numbers as an array of NumPy of a `shape`.

        >>> SIMD[DType.int32, 4](1, 2, 3, 4).reshape(2, 2).tolist()
        [[1, 2], [3, 4]]
        """
        return self.array.reshape(*shape)

    def tolist(self) -> Any:
        """Return the numbers as a list of Python's; a scalar as a number, unless it was loaded with a width.

        >>> SIMD[DType.int32, 2](1, 2).tolist()
        [1, 2]
        """
        return self.value.tolist() if self.value.__class__ is np.ndarray else self.value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.value, self.dtype.dtype if dtype is None else dtype)

    def __bool__(self) -> bool:
        return bool(np.all(self.value))

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        number = self.value if self.value.__class__ is not np.ndarray else self.item()
        if number.__class__ is not int and number.__class__ is not bool:
            raise TypeError(f"expected an integer, got {self!r}; convert it with Int(x)")
        return int(number)

    def __copy__(self) -> SIMD:
        return make_scalar(self.dtype, self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_vector, (self.dtype, self.array)

    def __str__(self) -> str:
        dtype, value = self.dtype, self.value
        if value.__class__ is not np.ndarray or value.size == 1:
            return _text(dtype, self.item())
        return join_texts([_text(dtype, number) for number in value])

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __repr__(self) -> str:
        if self.size == 1:
            return f"{_SCALAR_NAMES.get(self.dtype.mojo_name, f'Scalar[{self.dtype!r}]')}({self})"
        return f"SIMD[{self.dtype!r}, {self.size}]({str(self)[1:-1]})"


def _text(dtype: DType, number: Any) -> str:
    return format_number(dtype.dtype.type(number) if dtype.kind == "float" else number)


def numbers_of(value: Any, element: ScalarFormat) -> Any:
    """Return the number, or array of numbers, of a value that memory of a format is to hold.

    A vector or scalar has to be of that type, as in Mojo; other values are checked where they are written.

    >>> numbers_of(Int8(3), DType.int8), numbers_of(3, DType.int8)
    (3, 3)
    """
    if not isinstance(value, SIMD):
        return value
    if value.dtype != element:
        raise FormatError(
            f"{value!r} cannot be stored as {element.name}: the types must match; convert it:"
            f" x.cast[DType.{element.name}]()"
        )
    return value.value


def convert(value: SIMD, dtype: DType) -> SIMD:
    """Return SIMD in another type; an integer wraps around, and a float loses its fraction.

    >>> convert(Float32(-2.5), DType.int8)
    Int8(-2)
    """
    number = value.value
    if number.__class__ is np.ndarray:
        return _make_vector(dtype, cast(number, dtype))
    return make_scalar(dtype, as_number(dtype, number))


def map_numbers(numbers: Any, arrays: Any, value: SIMD) -> SIMD:
    """Return a function of every number, of the same type: `numbers` of one of Python, `arrays` of an array.

    >>> map_numbers(abs, np.abs, Int8(-3))
    Int8(3)
    """
    dtype = value.dtype
    if value.value.__class__ is np.ndarray:
        with np.errstate(all="ignore"):
            return _make_vector(dtype, np.asarray(arrays(value.value)).astype(dtype.dtype))
    return make_scalar(dtype, dtype.round_number(numbers(value.value)))


class _ScalarBrackets:
    """`Scalar[dtype]` is `SIMD[dtype, 1]`: called, a number of that type.

    >>> Scalar[DType.int8](5)
    Int8(5)
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("dtype",)

    def __repr__(self) -> str:
        return "Scalar"

    def __getitem__(self, dtype: NumberType) -> Any:
        return SIMDType(dtype, 1) if dtype.__class__ is DType else SIMD.with_parameters(dtype, 1)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, SIMD) and value.size == 1


Scalar = _ScalarBrackets()


def scalar_format(dtype: NumberType) -> DType:
    """Return the number type of a dtype, or of `SIMD[dtype, 1]`; raise unless it is one of scalars.

    >>> scalar_format(Scalar[DType.int8]), scalar_format(int)
    (DType.int8, DType.int)
    """
    if dtype.__class__ is DType:
        return dtype
    if isinstance(dtype, SIMDType):
        if dtype.size != 1:
            raise FormatError(f"expected the type of a number, got {dtype!r}; use {dtype.dtype!r}")
        return dtype.dtype
    named = {int: DType.int, float: DType.float64, bool: DType.bool}.get(dtype)  # type: ignore[arg-type]
    return named or as_dtype(getattr(dtype, "number_type", dtype))


Int8, Int16, Int32, Int64 = Scalar["int8"], Scalar["int16"], Scalar["int32"], Scalar["int64"]
UInt8, UInt16, UInt32, UInt64 = Scalar["uint8"], Scalar["uint16"], Scalar["uint32"], Scalar["uint64"]
Float16, BFloat16 = Scalar["float16"], Scalar["bfloat16"]
Float32, Float64 = Scalar["float32"], Scalar["float64"]
UInt, Byte = Scalar[DType.uint], UInt8
_SCALAR_NAMES = {
    "bool": "Bool",
    "int": "Int",
    "uint": "UInt",
    "bfloat16": "BFloat16",
    **{name: f"Int{name[3:]}" for name in ("int8", "int16", "int32", "int64")},
    **{name: f"UInt{name[4:]}" for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: f"Float{name[5:]}" for name in ("float16", "float32", "float64")},
}
