# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.math`: functions of numbers and vectors, and of integers for tiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.errors import FormatError
from tilewright.layout import as_integer
from tilewright.mojo import SIMD, DType, MemoryArray, MojoValue, Pointer, Span, brackets, map_numbers, operand_of

pi, tau, e = math.pi, math.tau, math.e
_abs, _max, _min, _pow, _round = abs, max, min, pow, round  # the functions below have the names of Python's


def _function(name: str, numbers: Callable[[float], float], arrays: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function of floats: of one number, or of every number of a vector."""

    def safe(number: Any) -> float:
        try:
            return numbers(float(number))
        except OverflowError:
            return math.inf
        except ValueError:  # outside of the domain
            return -math.inf if number == 0 else math.nan

    def function(x: object, *_: Any) -> MojoValue:
        if isinstance(x, SIMD):
            if x.dtype.kind != "float":
                raise FormatError(f"{name} needs a float, got {x!r}; convert it first: x.cast[DType.float32]()")
            if x.size > 1 and x.dtype.itemsize < 8:  # as for scalars: in double precision, then rounded
                return map_numbers(safe, lambda values: arrays(values.astype(np.float64)), x)
            return map_numbers(safe, arrays, x)
        own = getattr(x, f"__{name}__", None)  # of a tensor
        return safe(x) if own is None else own()

    function.__name__ = name
    function.__doc__ = f"Return {name} of a number, or of every number of a vector."
    return function


sqrt = _function("sqrt", lambda x: math.sqrt(x) if x >= 0 else math.nan, np.sqrt)
rsqrt = _function("rsqrt", lambda x: 1 / math.sqrt(x) if x > 0 else math.inf, lambda values: 1 / np.sqrt(values))
exp, exp2 = _function("exp", math.exp, np.exp), _function("exp2", lambda x: 2.0**x, np.exp2)
expm1, log1p = _function("expm1", math.expm1, np.expm1), _function("log1p", math.log1p, np.log1p)
log, log2 = _function("log", math.log, np.log), _function("log2", math.log2, np.log2)
log10 = _function("log10", math.log10, np.log10)
sin, cos = _function("sin", math.sin, np.sin), _function("cos", math.cos, np.cos)
tan = _function("tan", math.tan, np.tan)
asin, acos = _function("asin", math.asin, np.arcsin), _function("acos", math.acos, np.arccos)
atan, tanh = _function("atan", math.atan, np.arctan), _function("tanh", math.tanh, np.tanh)
sinh, cosh = _function("sinh", math.sinh, np.sinh), _function("cosh", math.cosh, np.cosh)
asinh, acosh = _function("asinh", math.asinh, np.arcsinh), _function("acosh", math.acosh, np.arccosh)
atanh = _function("atanh", math.atanh, np.arctanh)
cbrt = _function("cbrt", lambda x: float(np.cbrt(x)), np.cbrt)
erf, erfc = _function("erf", math.erf, np.vectorize(math.erf)), _function("erfc", math.erfc, np.vectorize(math.erfc))
gamma = _function("gamma", math.gamma, np.vectorize(math.gamma))
lgamma = _function("lgamma", math.lgamma, np.vectorize(math.lgamma))


def recip(x: Any) -> MojoValue:
    """Return 1 / x.

    >>> recip(4.0)
    0.25
    """
    return 1 / x


def floor(x: object) -> MojoValue:
    """Return the largest whole number that is not greater than `x`.

    >>> floor(2.5)
    2.0
    """
    return x.__floor__() if isinstance(x, SIMD) else float(math.floor(x)) if isinstance(x, float) else x


def ceil(x: object) -> MojoValue:
    """Return the smallest whole number that is not less than `x`.

    >>> ceil(2.5)
    3.0
    """
    return x.__ceil__() if isinstance(x, SIMD) else float(math.ceil(x)) if isinstance(x, float) else x


def trunc(x: object) -> MojoValue:
    """Return a number without its fraction.

    >>> trunc(-2.5)
    -2.0
    """
    return x.__trunc__() if isinstance(x, SIMD) else float(math.trunc(x)) if isinstance(x, float) else x


def round(x: object, digits: int = 0) -> MojoValue:  # noqa: A001  (Mojo's names, here and below)
    """Return the nearest whole number; halves go to the even one.

    >>> round(2.5)
    2.0
    """
    return _round(x, digits) if isinstance(x, SIMD) else float(_round(x, digits)) if isinstance(x, float) else x


def abs(x: Any) -> MojoValue:  # noqa: A001
    """Return the absolute value.

    >>> abs(-2)
    2
    """
    return _abs(x)


def _choose(arrays: Any, numbers: Any, values: tuple[Any, ...]) -> Any:
    known = [value for value in values if isinstance(value, SIMD)]
    if not known:
        return numbers(*values)
    result, *rest = [operand_of(known[0], value) for value in values]
    for value in rest:
        result = arrays(result, value)
    longest = _max(known, key=len)
    return map_numbers(lambda _: result, lambda _: result, longest)


def min(*values: Any) -> MojoValue:  # noqa: A001
    """Return the smallest value; of vectors, number by number.

    >>> min(3, 2)
    2
    """
    return _choose(np.minimum, _min, values)


def max(*values: Any) -> MojoValue:  # noqa: A001
    """Return the largest value; of vectors, number by number.

    >>> max(3, 2)
    3
    """
    return _choose(np.maximum, _max, values)


def clamp(x: object, lower_bound: object, upper_bound: object) -> MojoValue:
    """Return `x`, not less than one bound and not greater than the other.

    >>> clamp(7, 0, 5)
    5
    """
    return min(max(x, lower_bound), upper_bound)


def pow(base: Any, exponent: Any) -> MojoValue:  # noqa: A001
    """Return a power.

    >>> pow(2, 10)
    1024
    """
    return base**exponent


def fma(a: Any, b: Any, c: Any) -> MojoValue:
    """Return a * b + c.

    >>> fma(2, 3, 4)
    10
    """
    return a * b + c


def copysign(magnitude: Any, sign: Any) -> MojoValue:
    """Return `magnitude` with the sign of `sign`.

    >>> copysign(2.0, -1.0)
    -2.0
    """
    if isinstance(magnitude, SIMD):
        signs = np.asarray(operand_of(magnitude, sign))
        one = lambda x: math.copysign(x, float(signs))  # noqa: E731
        return map_numbers(one, lambda values: np.copysign(values, signs), magnitude)
    return math.copysign(magnitude, float(sign))


def hypot(x: object, y: object) -> MojoValue:
    """Return the distance of the point (x, y) from the origin.

    >>> hypot(3.0, 4.0)
    5.0
    """
    return _apply_two(math.hypot, np.hypot, x, y)


def remainder(x: object, y: object) -> MojoValue:
    """Return `x` minus the multiple of `y` that is nearest to it.

    >>> remainder(5.0, 3.0)
    -1.0
    """
    return _apply_two(math.remainder, lambda left, right: left - right * np.round(left / right), x, y)


def _apply_two(numbers: Any, arrays: Any, x: Any, y: Any) -> Any:
    if isinstance(x, SIMD):
        other = np.asarray(operand_of(x, y))
        return map_numbers(lambda value: numbers(value, float(other)), lambda values: arrays(values, other), x)
    return numbers(float(x), float(y))


def atan2(y: object, x: object) -> MojoValue:
    """Return the angle of the point (x, y).

    >>> atan2(0.0, 1.0)
    0.0
    """
    return _apply_two(math.atan2, np.arctan2, y, x)


def _check(numbers: Callable[[float], bool], arrays: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> MojoValue:
        """Return whether a number is so; of a vector, number by number."""
        if isinstance(x, SIMD) and x.size > 1:
            return SIMD[DType.bool, x.size](arrays(np.asarray(x.value, np.float64)))
        return numbers(float(x))

    return function


isnan, isinf, isfinite = _check(math.isnan, np.isnan), _check(math.isinf, np.isinf), _check(math.isfinite, np.isfinite)


def isclose(a: object, b: object, *, atol: Any = 1e-8, rtol: Any = 1e-5, equal_nan: bool = False) -> MojoValue:
    """Return whether two numbers differ by at most `atol + rtol * |b|`.

    >>> isclose(1.0, 1.000001)
    True
    """
    left, right = (np.asarray(value, np.float64) for value in (a, b))
    close = np.asarray(np.isclose(left, right, atol=float(atol), rtol=float(rtol), equal_nan=bool(equal_nan)))
    return SIMD[DType.bool, close.size](close) if close.size > 1 else bool(close)


def ceildiv(numerator: Any, denominator: Any) -> MojoValue:
    """Return the quotient, rounded up.

    >>> ceildiv(7, 2)
    4
    """
    return -(-numerator // denominator)


def align_up(value: object, alignment: object) -> MojoValue:
    """Return the smallest multiple of `alignment` that is not less than `value`.

    >>> align_up(7, 4)
    8
    """
    return ceildiv(value, alignment) * alignment


def align_down(value: Any, alignment: Any) -> MojoValue:
    """Return the largest multiple of `alignment` that is not greater than `value`.

    >>> align_down(7, 4)
    4
    """
    return value // alignment * alignment


def gcd(*values: Any) -> int:
    """Return the greatest common divisor.

    >>> gcd(12, 18)
    6
    """
    return math.gcd(*[int(as_integer(value, "an integer")) for value in values])


def lcm(*values: Any) -> int:
    """Return the least common multiple.

    >>> lcm(4, 6)
    12
    """
    return math.lcm(*[int(as_integer(value, "an integer")) for value in values])


def factorial(n: object) -> int:
    """Return n!.

    >>> factorial(5)
    120
    """
    return math.factorial(int(as_integer(n, "an integer")))


@brackets
def iota(
    parameters: tuple[Any, ...], *arguments: Any, dtype: object = None, width: object = None, **named: Any
) -> MojoValue:
    """`iota[dtype, width](offset)`: consecutive numbers; `iota(span, offset)` writes them to memory.

    >>> iota["int32", 4](3)
    SIMD[DType.int32, 4](3, 4, 5, 6)
    """
    if arguments and isinstance(arguments[0], (MemoryArray, Pointer)):
        target, *rest = arguments
        span = Span(ptr=target, length=rest.pop(0)) if isinstance(target, Pointer) else target
        offset = rest[0] if rest else named.get("offset", 0)
        for k in range(len(span)):
            span[k] = offset + k
        return None
    offset = arguments[0] if arguments else named.get("offset", 0)
    kind, count = (*parameters, named.get("dtype"), named.get("width"))[:2]
    return SIMD[DType.of(kind), count](*[offset + k for k in range(int(count))])
