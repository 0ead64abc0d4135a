# SPDX-License-Identifier: Apache-2.0
"""Integer division and rounding."""

from __future__ import annotations

from math import isqrt


def ceil_div(a: int, b: int) -> int:
    """Return `a` / `b` rounded up.

    >>> ceil_div(100, 32)
    4
    """
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    """Return the smallest multiple of `b` that is not below `a`.

    >>> round_up(100, 32)
    128
    """
    return ceil_div(a, b) * b


def divisors(number: int) -> list[int]:
    """Return all divisors of a number.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    low = [k for k in range(1, isqrt(number) + 1) if number % k == 0]
    return sorted({*low, *[number // k for k in low]})
