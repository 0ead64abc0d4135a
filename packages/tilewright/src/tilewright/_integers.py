# SPDX-License-Identifier: Apache-2.0
"""Integer division and rounding."""

from __future__ import annotations


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
