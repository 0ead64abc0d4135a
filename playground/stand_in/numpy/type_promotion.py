# SPDX-License-Identifier: Apache-2.0
"""Which type the result of an operation has, and what is known of a type: as in NumPy 2."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

from .number_types import BOOL, FLOAT64, INT64, OBJECT, TYPES, dtype, float32


def promote(a: dtype, b: dtype) -> dtype:
    """Return the smallest type that has the values of two types, as NumPy promotes."""
    if a == b or b is BOOL:
        return a if a.isnative else a.newbyteorder("=")
    if a is BOOL:
        return promote(b, b)
    if "O" in (a.kind, b.kind):
        return OBJECT
    floats = [each for each in (a, b) if each.kind in "fV"]
    if len(floats) == 2:
        if a.itemsize == b.itemsize and a.itemsize < 4:
            return float32._dtype  # type: ignore[no-any-return]
        return max(a, b, key=lambda each: each.itemsize).newbyteorder("=")
    if floats:
        real, whole = floats[0], b if floats[0] is a else a
        if real.kind == "V":
            return real
        needed = {1: 2, 2: 4}.get(whole.itemsize, 8)
        return TYPES[f"f{max(real.itemsize, needed)}"]
    if a.kind == b.kind:
        return TYPES[f"{a.kind}{max(a.itemsize, b.itemsize)}"]
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed.newbyteorder("=")
    return FLOAT64 if unsigned.itemsize == 8 else TYPES[f"i{2 * unsigned.itemsize}"]


def result_type(*operands: Any) -> dtype:
    """Return the type of the result of operands: types, arrays and scalars; Python's numbers count less."""
    result: dtype | None = None
    weak = 0  # 1 for a Python bool, 2 for an integer, 3 for a float
    for operand in operands:
        kind = operand.__class__
        if kind in (bool, int, float):
            weak = max(weak, 1 if kind is bool else 2 if kind is int else 3)
            continue
        entry = dtype(operand if isinstance(operand, type) else getattr(operand, "dtype", operand))
        result = entry if result is None else promote(result, entry)
    if result is None:
        return (BOOL, BOOL, INT64, FLOAT64)[weak]
    if weak == 3 and result.kind in "biu":
        return FLOAT64
    if weak == 2 and result is BOOL:
        return INT64
    return promote(result, result)


def can_cast(source: Any, target: Any, casting: str = "safe") -> bool:
    """Return whether values of a type may become those of another; `casting` is "safe" or "same_kind"."""
    a, b = dtype(source), dtype(target)
    if casting == "safe":
        return promote(a, b) == b
    order = "buifV"
    return order.index(a.kind.replace("V", "f")) <= order.index(b.kind.replace("V", "f"))


def iinfo(kind: Any) -> SimpleNamespace:
    """Return the lowest and highest value of an integer type."""
    entry = dtype(kind)
    if entry.kind not in "iu":
        raise ValueError(f"Invalid integer data type {entry.kind!r}.")
    return SimpleNamespace(min=entry.low, max=entry.high, bits=8 * entry.itemsize, dtype=entry)


def finfo(kind: Any) -> SimpleNamespace:
    """Return the largest values of a float type, and the distance from 1 to the next value."""
    entry = dtype(kind)
    if entry.code is not None:
        top, digits = entry.code.decode(entry.code.largest), entry.code.mantissa
    else:
        top, digits = (sys.float_info.max, 52) if entry.itemsize == 8 else (float(2**128 - 2**104), 23)
    return SimpleNamespace(max=entry.wrap(top), min=entry.wrap(-top), eps=entry.wrap(2.0**-digits), dtype=entry)
