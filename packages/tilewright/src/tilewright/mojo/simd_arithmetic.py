# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of Mojo's numbers: a scalar holds a number of Python that its type can hold, a vector an array.

Integers wrap around and floats round to their type after every operation; literals of Python take the type of the
other operand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import copysign, inf, isinf, isnan, nan
from typing import Any

import numpy as np

from ..errors import FormatError, LayoutError
from ..formats import cast
from .dtype import DType
from .language.raising import Error

_new = object.__new__


def as_number(dtype: DType, value: Any) -> Any:
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


def plain_number(value: Any) -> Any:
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
        return value.__index__()
    if hasattr(value, "__float__"):
        return float(value)
    raise TypeError(f"expected a number, got {type(value).__name__} {value!r}")


def build_vector(kind: Any, dtype: DType, array: Any) -> Any:
    """Return the vector of an array of numbers; of one number, the scalar.

    >>> build_vector(SIMDArithmetic, DType.int8, np.array([5], np.int8)).value
    5
    """
    vector = _new(kind)
    vector.dtype = dtype
    vector.value = array if array.size != 1 else as_number(dtype, array.reshape(-1)[0])
    return vector


def operand_of(self: SIMDArithmetic, other: Any) -> Any:
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

    def method(self: SIMDArithmetic, other: Any) -> Any:
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

    def method(self: SIMDArithmetic, other: Any) -> Any:
        left = operand_of(self, other)
        if left is NotImplemented:
            return left
        return _calculate(self.__class__, self.dtype, numbers, on_arrays, left, self.value)

    return method


def _on_each(numbers: Callable[[Any], Any], arrays: Callable[[Any], Any] | None = None) -> Any:
    """Return a method that maps every number to one of the same type."""
    on_arrays = arrays or numbers

    def method(self: SIMDArithmetic) -> Any:
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

    def compare(self: SIMDArithmetic, other: Any) -> Any:
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

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __hash__(self) -> int:
        value = self.value
        return hash(tuple(value.tolist()) if value.__class__ is np.ndarray else value)
