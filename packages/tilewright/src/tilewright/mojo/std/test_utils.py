# SPDX-License-Identifier: Apache-2.0
"""Helpers of Modular's own tests, their package `test_utils`."""

from __future__ import annotations

from typing import Any

from ..builtins import format_value
from .testing import assert_equal

__all__ = ["check_write_to"]


def check_write_to(value: Any, *, expected: str, is_repr: bool = False) -> None:
    """Raise unless the text of a value is as expected.

    >>> check_write_to(3, expected="3")
    """
    assert_equal(repr(value) if is_repr else format_value(value), expected)
