# SPDX-License-Identifier: Apache-2.0
"""Nested lists of numbers as one flat list, with the shape and the type that an array of them has."""

from __future__ import annotations

from itertools import chain
from typing import Any

from .number_types import BOOL, FLOAT64, INT64, OBJECT, dtype, generic, uint64
from .type_promotion import promote

_DEEPEST = 32


def flatten_values(value: Any) -> tuple[list[Any], dtype, tuple[int, ...]]:
    """Return (values, type, shape) of a number, or of nested lists of numbers and arrays.

    >>> flatten_values([[1, 2], [3, 4.5]])
    ([1, 2, 3, 4.5], dtype('float64'), (2, 2))
    """
    shape: list[int] = []
    level = [value]
    while level and all(isinstance(each, (list, tuple, range)) or _is_array(each) for each in level):
        if any(_is_array(each) for each in level):
            return _join_arrays(level, tuple(shape))
        lengths = {len(each) for each in level}
        if len(lengths) > 1:
            raise ValueError("the lists inside a list have different lengths, so that they have no shape")
        if len(shape) == _DEEPEST:
            raise ValueError(f"lists are nested deeper than {_DEEPEST} levels")
        shape.append(lengths.pop())
        level = list(chain.from_iterable(level))
    if any(isinstance(each, (list, tuple)) for each in level):
        raise ValueError("some entries of a list are numbers and others lists, so that they have no shape")
    return level, _common_type(level), tuple(shape)


def _is_array(value: Any) -> bool:
    return not isinstance(value, generic) and hasattr(value, "values") and hasattr(value, "strides")


def _join_arrays(level: list[Any], outer: tuple[int, ...]) -> tuple[list[Any], dtype, tuple[int, ...]]:
    """Return what arrays, and lists beside them, hold."""
    parts = [(each.values(), each.dtype, each.shape) if _is_array(each) else flatten_values(each) for each in level]
    if len({shape for _, _, shape in parts}) > 1:
        raise ValueError("the arrays inside a list have different shapes")
    kind = parts[0][1]
    for _, other, _ in parts[1:]:
        kind = promote(kind, other)
    return list(chain.from_iterable([values for values, _, _ in parts])), kind, (*outer, *parts[0][2])


def _common_type(values: list[Any]) -> dtype:
    """Return the type of Python's numbers and scalars."""
    kinds = set(map(type, values))
    if not kinds:
        return FLOAT64
    if kinds == {int}:
        low, high = min(values), max(values)
        if low >= -(1 << 63) and high < 1 << 63:
            return INT64
        return uint64._dtype if low >= 0 and high < 1 << 64 else OBJECT
    result: dtype | None = None
    for kind in kinds:
        entry = _TYPES.get(kind) or (kind._dtype if issubclass(kind, generic) else OBJECT)
        result = entry if result is None else promote(result, entry)
    return result or FLOAT64


_TYPES: dict[type, dtype] = {int: INT64, float: FLOAT64, bool: BOOL}
