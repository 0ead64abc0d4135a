# SPDX-License-Identifier: Apache-2.0
"""The universal functions by name: arithmetic, comparisons, bits, and the functions of floats."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from math import copysign, inf, nan
from typing import Any

from .array_class import ndarray
from .array_indices import broadcast_to
from .array_strides import broadcast_shapes
from .number_types import FLOAT64, dtype, generic
from .operators import UFUNCS
from .type_promotion import result_type
from .ufuncs import FLOAT, TRUTH, WHOLE, ufunc

Function = Callable[..., Any]


def _divide(a: Any, b: Any) -> float:
    if b == 0:
        return nan if a == 0 or a != a else copysign(inf, a) * copysign(1.0, b)
    return float(a / b)


def _floor_divide(a: Any, b: Any) -> Any:
    if b == 0:
        return _divide(a, b) if isinstance(a, float) or isinstance(b, float) else 0
    return a // b if not isinstance(a, float) or math.isfinite(a) else nan


def _remainder(a: Any, b: Any) -> Any:
    if b == 0:
        return nan if isinstance(a, float) or isinstance(b, float) else 0
    return a % b if not isinstance(a, float) or math.isfinite(a) else nan


def _power(a: Any, b: Any) -> Any:
    try:
        result = a**b
        return nan if isinstance(result, complex) else result
    except OverflowError:
        return -inf if a < 0 and b % 2 == 1 else inf
    except ZeroDivisionError:
        return inf


def _lesser(a: Any, b: Any) -> Any:
    return a if a <= b or a != a else b


def _greater(a: Any, b: Any) -> Any:
    return a if a >= b or a != a else b


def _of_float(function: Function, at_infinity: float = inf) -> Function:
    """Return a function that is NaN where it has no value, and infinite where its value is too large."""

    def calculate(*numbers: Any) -> float:
        try:
            return float(function(*numbers))
        except OverflowError:
            return at_infinity
        except (ValueError, ZeroDivisionError):
            return nan

    return calculate


def _log(function: Function) -> Function:
    return lambda value: -inf if value == 0 else _of_float(function)(value)


def _ldexp(value: Any, exponent: Any) -> Any:
    return _of_float(math.ldexp, copysign(inf, value))(value, int(exponent))


def _rounding(function: Function) -> Function:
    return lambda value: copysign(float(function(value)), value) if math.isfinite(value) else value


def _sign(value: Any) -> Any:
    return value if value != value else (value > 0) - (value < 0)


ufunc("add", operator.add, bools=operator.or_, identity=0)
ufunc("subtract", operator.sub)
ufunc("multiply", operator.mul, bools=operator.and_, identity=1)
true_divide = divide = ufunc("true_divide", operator.truediv, FLOAT, _divide)
floor_divide = ufunc("floor_divide", operator.floordiv, WHOLE, _floor_divide)
remainder = ufunc("remainder", operator.mod, WHOLE, _remainder)
ufunc("power", _power, WHOLE)
ufunc("gcd", math.gcd, identity=0)
ufunc("minimum", min, floats=_lesser)
ufunc("maximum", max, floats=_greater)
ufunc("left_shift", operator.lshift)
ufunc("right_shift", operator.rshift)
ufunc("bitwise_and", operator.and_, identity=-1)
ufunc("bitwise_or", operator.or_, identity=0)
ufunc("bitwise_xor", operator.xor, identity=0)
invert = bitwise_not = ufunc("invert", operator.invert, bools=operator.not_, nin=1)
ufunc("equal", operator.eq, TRUTH)
ufunc("not_equal", operator.ne, TRUTH)
ufunc("less", operator.lt, TRUTH)
ufunc("less_equal", operator.le, TRUTH)
ufunc("greater", operator.gt, TRUTH)
ufunc("greater_equal", operator.ge, TRUTH)
ufunc("negative", operator.neg, nin=1)
ufunc("positive", operator.pos, nin=1)
ufunc("absolute", abs, nin=1)
ufunc("sign", _sign, nin=1)
ufunc("floor", operator.pos, floats=_rounding(math.floor), nin=1)
ufunc("ceil", operator.pos, floats=_rounding(math.ceil), nin=1)
ufunc("trunc", operator.pos, floats=_rounding(math.trunc), nin=1)
ufunc("rint", _rounding(round), FLOAT, nin=1)
ufunc("copysign", copysign, FLOAT)
ufunc("arctan2", math.atan2, FLOAT)
ufunc("hypot", math.hypot, FLOAT)
ufunc("ldexp", _ldexp, FLOAT)
ufunc("isnan", lambda value: value != value, TRUTH, nin=1)
ufunc("isinf", math.isinf, TRUTH, nin=1)
ufunc("isfinite", math.isfinite, TRUTH, nin=1)
ufunc("signbit", lambda value: copysign(1.0, value) < 0, TRUTH, nin=1)
ufunc("sqrt", math.sqrt, FLOAT, _of_float(math.sqrt), nin=1)


def _float_function(name: str, function: Function, careful: Function | None = None) -> ufunc:
    return ufunc(name, function, FLOAT, careful or _of_float(function), nin=1)


for _name in ("exp", "expm1", "sin", "cos", "tan", "tanh", "cosh"):
    _float_function(_name, getattr(math, _name))
for _name in ("asin", "acos", "atan", "asinh", "acosh"):
    _float_function(f"arc{_name[1:]}", getattr(math, _name))
for _name in ("log", "log2", "log10"):
    _float_function(_name, getattr(math, _name), _log(getattr(math, _name)))
_float_function("arctanh", math.atanh, lambda value: value * inf if abs(value) == 1 else _of_float(math.atanh)(value))
_float_function("cbrt", lambda value: copysign(abs(value) ** (1 / 3), value))
_float_function("exp2", lambda value: 2.0**value)
_float_function("log1p", math.log1p, lambda value: -inf if value == -1 else _of_float(math.log1p)(value))
_float_function("sinh", math.sinh, lambda value: copysign(_of_float(math.sinh)(abs(value)), value))


def divmod(a: Any, b: Any) -> tuple[Any, Any]:
    """Return quotients and remainders."""
    return floor_divide(a, b), remainder(a, b)


UFUNCS["divmod"] = divmod
for _alias, _name in (("divide", "true_divide"), ("mod", "remainder"), ("abs", "absolute")):
    UFUNCS[_alias] = UFUNCS[_name]


def frexp(value: Any) -> tuple[Any, Any]:
    """Return the mantissas and exponents of floats."""
    source = ndarray.of(value)
    pairs = [math.frexp(each) for each in source.values()]
    kind = FLOAT64 if source.dtype.kind in "iub" else source.dtype
    mantissas = ndarray.from_values([pair[0] for pair in pairs], kind, source.shape)
    exponents = ndarray.from_values([pair[1] for pair in pairs], dtype("int32"), source.shape)
    return mantissas.scalar_or_self(), exponents.scalar_or_self()


def where(condition: Any, *choices: Any) -> Any:
    """Return elements of the first choice where a condition holds, else of the second; without choices, the places."""
    chosen = ndarray.of(condition)
    if not choices:
        return chosen.nonzero()
    a, b = (each if isinstance(each, (int, float, generic)) else ndarray.of(each) for each in choices)
    kind = result_type(a, b)
    parts = [ndarray.of(a), ndarray.of(b)]
    shape = broadcast_shapes(chosen.shape, parts[0].shape, parts[1].shape)
    columns = [broadcast_to(each, shape).values() for each in (chosen, *parts)]
    return ndarray.from_values([x if test else y for test, x, y in zip(*columns, strict=True)], kind, shape)
