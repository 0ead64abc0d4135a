# SPDX-License-Identifier: Apache-2.0
"""Mojo's numbers: number types, SIMD vectors and scalars, their arithmetic, and errors."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, copysign, floor, inf, isinf, isnan, nan, trunc
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..copying import Array
from ..errors import CoordinateError, FormatError, LayoutError, TilewrightError
from ..formats import FormatLike, ScalarFormat, cast, format_of
from ..layout import as_integer
from ..tensor import format_number, join_texts
from .brackets import MojoValue, ParametrizedMeta, brackets


class Error(TilewrightError):
    """Mojo's `Error`: a text, joined from its arguments.

    >>> str(Error("no row ", 3))
    'no row 3'
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__("".join(map(str, parts)))

    def copy(self) -> Error:
        """Return the error, which never changes.

        >>> str(Error("a").copy())
        'a'
        """
        return self


Number: TypeAlias = "int | float"
_Bool: TypeAlias = bool  # in the class of number types, these names are number types
_Int: TypeAlias = int


class DType(ScalarFormat):
    """A number type: `DType.float32`. It is the format of that name, with Mojo's questions.

    >>> print(DType.float32, DType.float32.is_floating_point(), DType.uint8.is_unsigned())
    float32 True True
    >>> DType.float32
    DType.float32
    """

    __slots__ = ("low", "mojo_name", "round_number", "width_mask")

    bool: ClassVar[DType]
    int: ClassVar[DType]
    uint: ClassVar[DType]
    index: ClassVar[DType]
    int8: ClassVar[DType]
    int16: ClassVar[DType]
    int32: ClassVar[DType]
    int64: ClassVar[DType]
    uint8: ClassVar[DType]
    uint16: ClassVar[DType]
    uint32: ClassVar[DType]
    uint64: ClassVar[DType]
    float16: ClassVar[DType]
    bfloat16: ClassVar[DType]
    float32: ClassVar[DType]
    float64: ClassVar[DType]
    float8_e4m3fn: ClassVar[DType]
    float8_e5m2: ClassVar[DType]

    low: Any  # the lowest integer; 0 for other types
    mojo_name: str
    round_number: Callable[[Any], Number]  # of a number of Python: wrapped around, or rounded to nearest
    width_mask: Any

    def __new__(cls, name: str, mojo_name: str = "") -> DType:
        """Return the number type of a name.

        >>> DType("float32") is DType.float32
        True
        """
        dtype = getattr(cls, mojo_name or name, None)
        if isinstance(dtype, DType):
            return dtype
        source = format_of(name).require_scalar("a number type")
        self = object.__new__(cls)
        for field in ("name", "dtype", "bits", "kind"):
            object.__setattr__(self, field, getattr(source, field))
        object.__setattr__(self, "mojo_name", mojo_name or name)
        is_signed = self.kind == "int"
        object.__setattr__(self, "low", -(1 << (self.bits - 1)) if is_signed else 0)
        object.__setattr__(self, "width_mask", (1 << self.bits) - 1)
        object.__setattr__(self, "round_number", _rounding_of(self))
        return self

    def __init__(self, name: str, mojo_name: str = "") -> None:
        """Leave the fields as `__new__` set them."""

    @classmethod
    def of(cls, dtype: NumberType) -> DType:
        """Return the number type of a `dtype`: a format, a name, a dtype of NumPy, `Float32`, or a type of Python.

        >>> DType.of("float8_e4m3"), DType.of(Scalar[DType.int8]), DType.of(int)
        (DType.float8_e4m3fn, DType.int8, DType.int)
        """
        if dtype.__class__ is DType:
            return dtype
        if isinstance(dtype, SIMDType):
            if dtype.size != 1:
                raise FormatError(f"expected the type of a number, got {dtype!r}; use {dtype.dtype!r}")
            return dtype.dtype
        if isinstance(dtype, type) and dtype in _PYTHON_TYPES:
            return _PYTHON_TYPES[dtype]
        element = format_of(getattr(dtype, "number_type", dtype)).require_scalar("a number type")
        if element.__class__ is DType:
            return element
        if element.name not in _BY_FORMAT:
            raise FormatError(f"Mojo has no number type {element.name}; use one of {', '.join(_NAMES)}")
        return _BY_FORMAT[element.name]

    def is_floating_point(self) -> _Bool:
        """Return whether the numbers are floats.

        >>> DType.bfloat16.is_floating_point(), DType.int8.is_floating_point()
        (True, False)
        """
        return self.kind == "float"

    def is_integral(self) -> _Bool:
        """Return whether the numbers are integers.

        >>> DType.uint8.is_integral(), DType.bool.is_integral()
        (True, False)
        """
        return self.kind in ("int", "uint")

    def is_signed(self) -> _Bool:
        """Return whether there are negative numbers.

        >>> DType.float16.is_signed(), DType.uint8.is_signed()
        (True, False)
        """
        return self.kind in ("int", "float")

    def is_unsigned(self) -> _Bool:
        """Return whether the numbers are integers from 0 on.

        >>> DType.uint8.is_unsigned()
        True
        """
        return self.kind == "uint"

    def is_numeric(self) -> _Bool:
        """Return whether the numbers are integers or floats.

        >>> DType.bool.is_numeric()
        False
        """
        return self.kind != "bool"

    def is_half_float(self) -> _Bool:
        """Return whether the numbers are floats of 16 bits.

        >>> DType.bfloat16.is_half_float()
        True
        """
        return self.kind == "float" and self.bits == 16

    def is_float8(self) -> _Bool:
        """Return whether the numbers are floats of 8 bits.

        >>> DType.float8_e5m2.is_float8()
        True
        """
        return self.kind == "float" and self.bits == 8

    def size_of(self) -> _Int:
        """Return the bytes of a number.

        >>> DType.float64.size_of()
        8
        """
        return self.itemsize

    def bit_width(self) -> _Int:
        """Return the bits of a number.

        >>> DType.int16.bit_width()
        16
        """
        return self.bits

    sizeof, bitwidth = size_of, bit_width

    def __eq__(self, other: object) -> Any:
        return self.name == other.name if isinstance(other, ScalarFormat) else NotImplemented

    __hash__ = ScalarFormat.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return DType, (self.name, self.mojo_name)

    def __str__(self) -> str:
        return self.mojo_name

    def __repr__(self) -> str:
        return f"DType.{self.mojo_name}"


def _rounding_of(kind: DType) -> Callable[[Any], Number]:
    """Return the function that gives a number of Python as one of a type."""
    if kind.kind == "bool":
        return bool
    if kind.kind == "float":
        return _ROUNDINGS.get(kind.name) or (lambda number: float(kind.dtype.type(number)))
    low, high, mask = kind.low, kind.low + kind.width_mask, kind.width_mask

    def wrap(number: Any) -> MojoValue:
        if low <= number <= high:
            return number
        return ((number - low) & mask) + low

    return wrap


def _struct_rounding(code: str) -> Callable[[Any], float]:
    """Return the function that rounds to a binary float of `struct`; too large numbers become infinite."""
    pack, unpack = struct.Struct(code).pack, struct.Struct(code).unpack

    def round_number(number: Any) -> float:
        try:
            rounded: float = unpack(pack(number))[0]
        except OverflowError:
            return copysign(inf, number)
        return rounded

    return round_number


_ROUNDINGS = {"float64": float, "float32": _struct_rounding("f"), "float16": _struct_rounding("e")}
_NAMES = {
    **{name: name for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{name: name for name in ("float16", "bfloat16", "float32", "float64", "float8_e5m2")},
    "float8_e4m3fn": "float8_e4m3",
    "int": "int64",
    "uint": "uint64",
}
for _mojo_name, _name in _NAMES.items():
    setattr(DType, _mojo_name, DType(_name, _mojo_name))
DType.index = DType.int
_BY_FORMAT: dict[str, DType] = {_name: getattr(DType, _mojo_name) for _mojo_name, _name in reversed(_NAMES.items())}


_PYTHON_TYPES = {int: DType.int, float: DType.float64, bool: DType.bool}
_new = object.__new__


def as_number(dtype: DType, value: MojoValue) -> Number:
    """Return a value as a number of Python that a type can hold: converted, wrapped around or rounded.

    >>> as_number(DType.uint8, 300), as_number(DType.int32, -2.5), as_number(DType.float16, 0.1)
    (44, -2, 0.0999755859375)
    """
    kind = value.__class__
    if kind is not int and kind is not float and kind is not bool:
        value = plain_number(value)
    if dtype.kind == "float":
        return dtype.round_number(value)
    if dtype.kind == "bool":
        return bool(value)
    if value.__class__ is float and (isinf(value) or isnan(value)):
        return int(cast(np.float64(value), dtype).item())
    return dtype.round_number(int(value))


def plain_number(value: object) -> Number:
    """Return any number as one of Python.

    >>> plain_number(np.float32(1.5)), plain_number("2.5")
    (1.5, 2.5)
    """
    if isinstance(value, SIMDArithmetic):
        value = value.value
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise Error(f"String is not convertible to float: '{value}'") from None
    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise LayoutError(f"expected one number, got a vector of {value.size}")
        value = value.reshape(-1)[0]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if hasattr(value, "__index__"):
        return operator.index(value)
    if hasattr(value, "__float__"):
        return float(value)
    raise TypeError(f"expected a number, got {type(value).__name__} {value!r}")


def build_vector(kind: Any, dtype: DType, array: Any) -> MojoValue:
    """Return the vector of an array of numbers; of one number, the scalar.

    >>> build_vector(SIMDArithmetic, DType.int8, np.array([5], np.int8)).value
    5
    """
    vector = _new(kind)
    vector.dtype = dtype
    vector.value = array if array.size != 1 else as_number(dtype, array.reshape(-1)[0])
    return vector


def operand_of(self: SIMDArithmetic, other: Any) -> MojoValue:
    """Return the other operand in the type of this one, as a number or an array; NotImplemented if it is none.

    >>> from tilewright.mojo import Float32
    >>> operand_of(Float32(1), 0.1)
    0.10000000149011612
    """
    dtype = self.dtype
    if isinstance(other, SIMDArithmetic):
        if other.dtype is not dtype and other.dtype != dtype:
            raise FormatError(f"{self!r} and {other!r} have different types; convert one of them: x.cast[{dtype!r}]()")
        return other.value
    kind = other.__class__
    if kind is float and dtype.kind in ("int", "uint") and not other.is_integer():
        raise FormatError(f"{other} is not a value of {dtype}; convert {self!r} to a float first")
    if kind is np.ndarray or isinstance(other, (list, tuple)):
        return cast(np.asarray(other), dtype)
    if not hasattr(other, "__index__") and not hasattr(other, "__float__"):
        return NotImplemented
    return as_number(dtype, other)


def _calculate(kind: Any, dtype: DType, numbers: Any, arrays: Any, left: Any, right: Any) -> Any:
    if left.__class__ is np.ndarray or right.__class__ is np.ndarray:
        left, right = np.asarray(left, dtype.dtype), np.asarray(right, dtype.dtype)
        if left.ndim and right.ndim and left.size != right.size:
            raise LayoutError(f"vectors of {left.size} and {right.size} numbers do not fit together")
        with np.errstate(all="ignore"):
            return build_vector(kind, dtype, np.asarray(arrays(left, right), dtype.dtype))
    result = _new(kind)
    result.dtype = dtype
    result.value = dtype.round_number(numbers(left, right))
    return result


def _operation(numbers: Callable[[Any, Any], Any], arrays: Callable[[Any, Any], Any] | None = None) -> Any:
    """Return the method of an operation on two numbers of one type, or on arrays of them."""
    on_arrays = arrays or numbers

    def method(self: SIMDArithmetic, other: Any) -> MojoValue:
        kind, dtype = self.__class__, self.dtype
        literal = other.__class__
        if literal is kind and other.dtype is dtype:
            right = other.value
        elif literal is int or (literal is float and dtype.kind == "float"):
            right = dtype.round_number(other)
        else:
            right = operand_of(self, other)
        return right if right is NotImplemented else _calculate(kind, dtype, numbers, on_arrays, self.value, right)

    return method


def _reflected(numbers: Callable[[Any, Any], Any], arrays: Callable[[Any, Any], Any] | None = None) -> Any:
    """Return the method for an operation whose left operand is a literal."""
    on_arrays = arrays or numbers

    def method(self: SIMDArithmetic, other: object) -> MojoValue:
        left = operand_of(self, other)
        if left is NotImplemented:
            return left
        return _calculate(self.__class__, self.dtype, numbers, on_arrays, left, self.value)

    return method


def _on_each(numbers: Callable[[Any], Any], arrays: Callable[[Any], Any] | None = None) -> Any:
    """Return a method that maps every number to one of the same type."""
    on_arrays = arrays or numbers

    def method(self: SIMDArithmetic) -> MojoValue:
        dtype, value = self.dtype, self.value
        if value.__class__ is np.ndarray:
            with np.errstate(all="ignore"):
                return build_vector(self.__class__, dtype, np.asarray(on_arrays(value), dtype.dtype))
        result = _new(self.__class__)
        result.dtype, result.value = dtype, dtype.round_number(numbers(value))
        return result

    return method


def _comparison(numbers: Callable[[Any, Any], Any]) -> Any:
    """Return a comparison: one bool, of vectors for all their numbers together."""

    def compare(self: SIMDArithmetic, other: Any) -> MojoValue:
        left, kind = self.value, other.__class__
        if kind is self.__class__:
            right = other.value
        elif kind is int or kind is float or kind is bool or isinstance(other, (np.ndarray, np.generic, int, float)):
            right = other
        elif isinstance(other, (list, tuple)):
            right = np.asarray(other)
        else:
            return NotImplemented
        if left.__class__ is np.ndarray or right.__class__ is np.ndarray:
            return bool(np.all(numbers(left, right)))
        return bool(numbers(left, right))

    return compare


def _divide(left: Any, right: Any) -> Any:
    if left.__class__ is not float:  # integers lose the fraction
        quotient = _floor_divide(abs(left), abs(right))
        return quotient if (left < 0) == (right < 0) else -quotient
    try:
        return left / right
    except ZeroDivisionError:
        return nan if left == 0 or isnan(left) else copysign(inf, left) * copysign(1, right)


def _floor_divide(left: Any, right: Any) -> Any:
    try:
        return left // right
    except ZeroDivisionError:
        if left.__class__ is float:
            return _divide(left, right)
        raise FormatError(f"cannot divide the integer {left} by 0") from None


def _remainder(left: Any, right: Any) -> Any:
    try:
        return left % right
    except ZeroDivisionError:
        if left.__class__ is float:
            return nan
        raise FormatError(f"cannot divide the integer {left} by 0") from None


def _power(left: Any, right: Any) -> Any:
    if left.__class__ is int and right < 0:
        raise FormatError(f"cannot raise the integer {left} to the power {right}; convert it to a float first")
    try:
        result = left**right
    except (OverflowError, ZeroDivisionError):
        return inf
    return nan if result.__class__ is complex else result


def _refuse_zeros(divisors: Any) -> None:
    if divisors.dtype.kind in "iu" and not np.all(divisors):
        raise FormatError("cannot divide integers by 0")


def _divide_arrays(left: Any, right: Any) -> Any:
    if left.dtype.kind not in "iu":
        return left / right
    _refuse_zeros(right)
    quotient = np.abs(left) // np.abs(right)
    return np.where((left < 0) == (right < 0), quotient, -quotient)


def _floor_divide_arrays(left: Any, right: Any) -> Any:
    _refuse_zeros(right)
    return left // right


def _remainder_arrays(left: Any, right: Any) -> Any:
    _refuse_zeros(right)
    return left % right


def _shift_left(left: Any, right: Any) -> Any:
    return left << right if 0 <= right < 64 else 0


def _shift_right(left: Any, right: Any) -> Any:
    return left >> right if 0 <= right < 64 else 0


class SIMDArithmetic:
    """A scalar or a vector of a number type with its operators.

    >>> from tilewright.mojo import Float32, Int8
    >>> Int8(127) + 1, Float32(1) / 3, -7 // Int8(2)
    (Int8(-128), Float32(0.33333334), Int8(-4))
    """

    __slots__ = ("dtype", "value")
    dtype: DType
    value: Any  # a number of Python, or an array

    __add__, __radd__ = _operation(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _operation(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _operation(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _operation(_divide, _divide_arrays), _reflected(_divide, _divide_arrays)
    __floordiv__ = _operation(_floor_divide, _floor_divide_arrays)
    __rfloordiv__ = _reflected(_floor_divide, _floor_divide_arrays)
    __mod__, __rmod__ = _operation(_remainder, _remainder_arrays), _reflected(_remainder, _remainder_arrays)
    __pow__, __rpow__ = _operation(_power, operator.pow), _reflected(_power, operator.pow)
    __and__, __rand__ = _operation(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _operation(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _operation(operator.xor), _reflected(operator.xor)
    __lshift__, __rlshift__ = _operation(_shift_left, operator.lshift), _reflected(_shift_left, operator.lshift)
    __rshift__, __rrshift__ = _operation(_shift_right, operator.rshift), _reflected(_shift_right, operator.rshift)

    __neg__ = _on_each(operator.neg)
    __abs__ = _on_each(abs)
    __invert__ = _on_each(lambda number: not number if number.__class__ is bool else ~number, np.invert)

    __eq__ = _comparison(operator.eq)
    __ne__ = _comparison(operator.ne)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)

    def __pos__(self) -> Any:
        return self

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __hash__(self) -> int:
        value = self.value
        return hash(tuple(value.tolist()) if value.__class__ is np.ndarray else value)


SIMD_BYTES = 64  # of a vector register; `vectorize()` assumes the same


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

    def __call__(self, *values: Any, fill: object = None) -> SIMD:
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
    def MAX(self) -> SIMD:  # noqa: N802  (Mojo's name)
        """The largest number; of floats, infinity."""
        dtype = self.dtype
        return self(inf if dtype.kind == "float" else dtype.low + dtype.width_mask if dtype.kind != "bool" else 1)

    @property
    def MIN(self) -> SIMD:  # noqa: N802
        """The lowest number; of floats, minus infinity."""
        return self(-inf if self.dtype.kind == "float" else self.dtype.low)

    @property
    def MAX_FINITE(self) -> SIMD:  # noqa: N802
        """The largest finite number."""
        return self(self.dtype.limits.highest)

    @property
    def MIN_FINITE(self) -> SIMD:  # noqa: N802
        """The lowest finite number."""
        return self(self.dtype.limits.lowest)

    @property
    def element_type(self) -> DType:
        """The number type."""
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


NumberType: TypeAlias = "FormatLike | SIMDType"  # `DType.float32`, `Float32`, or what the library takes as a format


def make_scalar(dtype: DType, number: object) -> SIMD:
    """Return a scalar of a number that its type can hold; no check is made.

    >>> make_scalar(DType.int8, 5)
    Int8(5)
    """
    scalar: SIMD = _new(SIMD)
    scalar.dtype = dtype
    scalar.value = number
    return scalar


def as_vector(array: object) -> SIMD:
    """Return an array of numbers, or one number, of NumPy as SIMD.

    >>> as_vector(np.arange(2)), as_vector(np.float32(1.5))
    (SIMD[DType.int64, 2](0, 1), Float32(1.5))
    """
    numbers = np.asarray(array)
    return _make_vector(DType.of(numbers.dtype), numbers.reshape(-1))


def _make_vector(dtype: DType, array: object) -> SIMD:
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
    def _with_parameters(cls, dtype: Any = None, size: object = 1, **named: Any) -> Any:
        """Return the type `SIMD[dtype, size]`.

        >>> SIMD.with_parameters(DType.int8, size=4)
        SIMD[DType.int8, 4]
        """
        if named:
            raise TypeError(f"SIMD has the parameters dtype and size, got {', '.join(named)}")
        if dtype is None or dtype is ... or size is None or size is ...:
            return cls  # open parameters allow any
        count = as_integer(size, "the size of a SIMD type")
        if count < 1 or count & (count - 1):
            raise LayoutError(f"the size of a SIMD type must be a power of two, got {count}")
        return SIMDType(DType.of(dtype), count)

    @property
    def size(self) -> int:
        """The number of numbers.

        >>> SIMD[DType.int8, 4](0).size
        4
        """
        value = self.value
        return int(value.size) if value.__class__ is np.ndarray else 1

    @property
    def array(self) -> Array:
        """The numbers as an array of NumPy; a scalar as an array of one.

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

    def _check_index(self, k: object) -> int:
        index = as_integer(k, "an index")
        if not 0 <= index < self.size:
            raise CoordinateError(f"index {index} is outside a vector of {self.size} numbers")
        return int(index)

    def __getitem__(self, k: object) -> SIMD:
        value = self.value
        if value.__class__ is not np.ndarray:
            if k.__class__ is not int or k != 0:
                self._check_index(k)
            return self
        return make_scalar(self.dtype, as_number(self.dtype, value[self._check_index(k)]))

    def __setitem__(self, k: object, number: object) -> None:
        index, (new,) = self._check_index(k), (operand_of(self, number),)
        if self.value.__class__ is np.ndarray:
            self.value = self.value.copy()  # other names may share the array
            self.value[index] = new
        else:
            self.value = new

    # Types.

    @brackets
    def cast(self, parameters: tuple[Any, ...], *, target: object = None) -> SIMD:
        """Return the numbers in another type: `v.cast[DType.int32]()`.

        >>> SIMD[DType.float32, 2](1.5, -2.5).cast[DType.int32]()
        SIMD[DType.int32, 2](1, -2)
        """
        (dtype,) = parameters or (target,)
        return convert(self, DType.of(dtype))

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

    def select(self, true_case: object, false_case: object) -> MojoValue:
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

    def join(self, other: object) -> SIMD:
        """Return the numbers of this vector, followed by the numbers of `other`.

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

    def fma(self, multiplier: object, accumulator: object) -> SIMD:
        """Return self * `multiplier` + `accumulator`.

        >>> Float32(2).fma(3, 1)
        Float32(7.0)
        """
        result: SIMD = self * multiplier + accumulator
        return result

    def clamp(self, lower_bound: object, upper_bound: object) -> SIMD:
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

    def item(self) -> MojoValue:
        """Return a scalar as a number of Python.

        >>> Float32(1.5).item()
        1.5
        """
        if self.value.__class__ is np.ndarray:
            if self.value.size != 1:
                raise LayoutError(f"expected one number, got a vector of {self.size}")
            return self.value.item()
        return self.value

    def reshape(self, *shape: int) -> Array:
        """Return the numbers as an array of NumPy of a `shape`.

        >>> SIMD[DType.int32, 4](1, 2, 3, 4).reshape(2, 2).tolist()
        [[1, 2], [3, 4]]
        """
        return self.array.reshape(*shape)

    def tolist(self) -> MojoValue:
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
        return make_scalar(self.dtype, self.value)  # a number that is set later copies the array first

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


def numbers_of(value: object, element: ScalarFormat) -> MojoValue:
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
