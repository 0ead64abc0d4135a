# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.bit`: the bits of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import FormatError
from ..simd import SIMD, DType, make_scalar

__all__ = [
    "bit_reverse",
    "bit_width",
    "byte_swap",
    "count_leading_zeros",
    "count_trailing_zeros",
    "is_power_of_two",
    "log2_ceil",
    "log2_floor",
    "next_power_of_two",
    "pop_count",
    "prev_power_of_two",
]


def _function(name: str, count: Callable[[int, int], int]) -> Callable[[Any], Any]:
    """Return a function of the bits of an integer, and of how many there are."""

    def function(value: Any) -> Any:
        dtype = value.dtype if isinstance(value, SIMD) else DType.int64
        if dtype.kind not in ("int", "uint"):
            raise FormatError(f"{name} needs an integer, got {value!r}")
        if isinstance(value, SIMD) and value.size > 1:
            numbers = [function(number).item() for number in value]
            return SIMD[dtype, value.size](*numbers)
        result = dtype.round_number(count(int(value) & dtype.width_mask, dtype.bits))
        return make_scalar(dtype, result) if isinstance(value, SIMD) else result

    function.__name__ = name
    function.__doc__ = f"Return {name.replace('_', ' ')} of an integer, or of every number of a vector."
    return function


count_leading_zeros = _function("count_leading_zeros", lambda bits, width: width - bits.bit_length())
count_trailing_zeros = _function(
    "count_trailing_zeros", lambda bits, width: (bits & -bits).bit_length() - 1 if bits else width
)
pop_count = _function("pop_count", lambda bits, _: bits.bit_count())
bit_width = _function("bit_width", lambda bits, _: bits.bit_length())
log2_floor = _function("log2_floor", lambda bits, _: bits.bit_length() - 1)
log2_ceil = _function("log2_ceil", lambda bits, _: (bits - 1).bit_length() if bits > 1 else 0)
next_power_of_two = _function("next_power_of_two", lambda bits, _: 1 << (bits - 1).bit_length() if bits > 1 else 1)
prev_power_of_two = _function("prev_power_of_two", lambda bits, _: 1 << (bits.bit_length() - 1) if bits else 0)
bit_reverse = _function("bit_reverse", lambda bits, width: int(f"{bits:0{width}b}"[::-1], 2))
byte_swap = _function("byte_swap", lambda bits, width: int.from_bytes(bits.to_bytes(width // 8, "little"), "big"))


def is_power_of_two(value: Any) -> bool:
    """Return whether an integer is a power of two.

    >>> is_power_of_two(8), is_power_of_two(6)
    (True, False)
    """
    number = int(value)
    return number > 0 and number & (number - 1) == 0
