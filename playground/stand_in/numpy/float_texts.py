# SPDX-License-Identifier: Apache-2.0
"""Floats as text: the fewest digits that identify a number among those of its type."""

from __future__ import annotations

from typing import Any

_MAX_DIGITS = 17  # of a float of 64 bits


def shortest_text(value: float, kind: Any) -> str:
    """Return the shortest text in scientific notation that is the same number in a type.

    0.10000000149011612 as float32 is '1e-01'.
    """
    for digits in range(_MAX_DIGITS):
        text = f"{value:.{digits}e}"
        if kind.scalar(float(text)) == value:
            break
    return text


def format_float_positional(value: Any, unique: bool = True, trim: str = "k") -> str:
    """Return a float without an exponent; `trim` "0" keeps a zero behind the point."""
    digits, _, exponent = shortest_text(float(value), _type_of(value)).partition("e")
    decimals = max(0, len(digits.lstrip("-")) - 2 - int(exponent)) if "." in digits else max(0, -int(exponent))
    text = f"{float(f'{digits}e{exponent}'):.{decimals}f}"
    return text if "." in text or trim != "0" else f"{text}.0"


def format_float_scientific(value: Any, unique: bool = True, trim: str = "k", exp_digits: int = 2) -> str:
    """Return a float with an exponent of `exp_digits` digits at least."""
    return shortest_text(float(value), _type_of(value))


def scalar_text(value: Any) -> str:
    """Return a scalar as Python writes floats, with the digits that identify it in its type."""
    number = float(value)
    return repr(float(shortest_text(number, value.dtype))) if number - number == 0 else repr(number)


def _type_of(value: Any) -> Any:
    return getattr(value, "dtype", None) or _DOUBLE


class _Double:
    """The type of Python's floats."""

    def scalar(self, value: float) -> float:
        """Return the number itself."""
        return value


_DOUBLE = _Double()
