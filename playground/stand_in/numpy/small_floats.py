# SPDX-License-Identifier: Apache-2.0
"""The codes of floats of 8 and 16 bits, which no Python type has: from values to codes and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import copysign, frexp, inf, isinf, ldexp, nan


@dataclass(frozen=True)
class FloatCode:
    """A float of `bits` bits, of which `mantissa` are behind the point; `largest` is the code of the largest value.

    What does not fit becomes the code `overflow`: infinity, or where there is none, `not_a_number`.

    >>> half = FloatCode("half", 16, 10, 15, 0x7BFF, 0x7C00, 0x7E00)
    >>> half.encode(1.0) == 0x3C00, half.decode(0x7BFF), half.decode(half.encode(1e6))
    (True, 65504.0, inf)
    """

    name: str
    bits: int
    mantissa: int
    bias: int
    largest: int
    overflow: int
    not_a_number: int
    is_unsigned_zero: bool = False  # the code of -0.0 is that of NaN

    def encode(self, value: float) -> int:
        """Return the code of the nearest value; of two, the one with the even code."""
        if value != value:
            return self.not_a_number
        sign = 1 << (self.bits - 1) if copysign(1.0, value) < 0 else 0
        code = self.overflow if isinf(value) else 0
        if code != self.overflow and value:
            exponent = max(frexp(value)[1] - 1, 1 - self.bias)
            code = ((exponent + self.bias - 1) << self.mantissa) + round(ldexp(abs(value), self.mantissa - exponent))
            if code > self.largest:
                code = self.overflow
        if self.is_unsigned_zero and code in (0, self.not_a_number):
            return code
        return sign | code

    def decode(self, code: int) -> float:
        """Return the value of a code."""
        size = code & ((1 << (self.bits - 1)) - 1)
        sign = -1.0 if code >> (self.bits - 1) else 1.0
        if self.is_unsigned_zero and code == self.not_a_number:
            return nan
        if size > self.largest:
            return sign * inf if size == self.overflow and self.overflow != self.not_a_number else copysign(nan, sign)
        exponent, digits = size >> self.mantissa, size & ((1 << self.mantissa) - 1)
        if exponent:
            return sign * ldexp(digits + (1 << self.mantissa), exponent - self.bias - self.mantissa)
        return sign * ldexp(digits, 1 - self.bias - self.mantissa)

    @cached_property
    def _values(self) -> list[float]:
        return [self.decode(code) for code in range(1 << self.bits)]

    def decode_all(self, codes: Iterable[int]) -> list[float]:
        """Return the values of codes; those of 8 bits are looked up."""
        if self.bits == 8:
            return [self._values[code] for code in codes]
        return [self.decode(code) for code in codes]


FLOAT16 = FloatCode("float16", 16, 10, 15, 0x7BFF, 0x7C00, 0x7E00)
BFLOAT16 = FloatCode("bfloat16", 16, 7, 127, 0x7F7F, 0x7F80, 0x7FC0)
FLOAT8_E4M3FN = FloatCode("float8_e4m3fn", 8, 3, 7, 0x7E, 0x7F, 0x7F)
FLOAT8_E5M2 = FloatCode("float8_e5m2", 8, 2, 15, 0x7B, 0x7C, 0x7E)
FLOAT8_E4M3FNUZ = FloatCode("float8_e4m3fnuz", 8, 3, 8, 0x7F, 0x80, 0x80, is_unsigned_zero=True)
FLOAT8_E5M2FNUZ = FloatCode("float8_e5m2fnuz", 8, 2, 16, 0x7F, 0x80, 0x80, is_unsigned_zero=True)
