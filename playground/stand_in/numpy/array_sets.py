# SPDX-License-Identifier: Apache-2.0
"""Functions that sort, count and compare whole arrays."""

from __future__ import annotations

from collections import Counter
from math import nan
from typing import Any

from .array_class import ndarray
from .array_functions import array, concatenate
from .number_types import BOOL, FLOAT64, INT64
from .operators import UFUNCS


def unique(
    source: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """Return the different elements in ascending order, and if asked, where, which and how often they are."""
    table = ndarray.of(source)
    if axis is not None:
        rows: list[Any] = [tuple(row.reshape(-1).values()) for row in table.swapaxes(0, axis)]
    else:
        rows = table.values()
    distinct = sorted(set(rows))
    if axis is None:
        result = ndarray.from_values(distinct, table.dtype, (len(distinct),))
    else:
        shape = (len(distinct), *table.swapaxes(0, axis).shape[1:])
        result = ndarray.from_values([value for row in distinct for value in row], table.dtype, shape)
        result = result.swapaxes(0, axis)
    extra = []
    if return_index:
        first: dict[Any, int] = {}
        for k, row in enumerate(rows):
            first.setdefault(row, k)
        extra.append([first[row] for row in distinct])
    if return_inverse:
        rank = {row: k for k, row in enumerate(distinct)}
        extra.append([rank[row] for row in rows])
    if return_counts:
        counts = Counter(rows)
        extra.append([counts[row] for row in distinct])
    if not extra:
        return result
    columns = [ndarray.from_values(column, INT64, (len(column),)) for column in extra]
    if return_inverse and axis is None:
        at = int(return_index)
        columns[at] = columns[at].reshape(table.shape)
    return (result, *columns)


def union1d(a: Any, b: Any) -> Any:
    """Return the elements of either array in ascending order."""
    return unique(concatenate([ndarray.of(a).reshape(-1), ndarray.of(b).reshape(-1)]))


def setdiff1d(a: Any, b: Any) -> Any:
    """Return the elements of one array that another does not have, in ascending order."""
    distinct = unique(ndarray.of(a).reshape(-1))
    return distinct[~isin(distinct, b)]


def isin(source: Any, wanted: Any, assume_unique: bool = False) -> ndarray:
    """Return which elements are among others."""
    table, members = ndarray.of(source), set(ndarray.of(wanted).values())
    return ndarray.from_values([value in members for value in table.values()], BOOL, table.shape)


def bincount(source: Any, weights: Any = None, minlength: int = 0) -> ndarray:
    """Return how often each number from 0 on is an element, or the sum of its weights."""
    numbers = ndarray.of(source).values()
    totals: list[Any] = [0 if weights is None else 0.0] * max(minlength, max(numbers, default=-1) + 1)
    if numbers and min(numbers) < 0:
        raise ValueError("'list' argument must have no negative elements")
    for number, weight in zip(
        numbers, [1] * len(numbers) if weights is None else ndarray.of(weights).values(), strict=True
    ):
        totals[number] += weight
    return ndarray.from_values(totals, INT64 if weights is None else FLOAT64, (len(totals),))


def sort(source: Any, axis: int = -1, kind: str | None = None) -> ndarray:
    """Return the elements in ascending order."""
    result = array(source)
    result.sort(axis)
    return result


def argsort(source: Any, axis: int = -1, kind: str | None = None) -> Any:
    """Return the places of the elements in ascending order."""
    return ndarray.of(source).argsort(axis)


def lexsort(keys: Any) -> ndarray:
    """Return the places of rows in ascending order, by the last key first."""
    columns = [ndarray.of(key).values() for key in keys]
    rows = list(zip(*reversed(columns), strict=True))
    return ndarray.from_values(sorted(range(len(rows)), key=rows.__getitem__), INT64, (len(rows),))


def searchsorted(source: Any, values: Any, side: str = "left") -> Any:
    """Return where values would be inserted to keep ascending elements in order."""
    return ndarray.of(source).searchsorted(values, side)


def flatnonzero(source: Any) -> Any:
    """Return the places of the elements that are not 0, in row-major order."""
    return ndarray.of(source).reshape(-1).nonzero()[0]


def nonzero(source: Any) -> Any:
    """Return the coordinates of the elements that are not 0."""
    return ndarray.of(source).nonzero()


def argwhere(source: Any) -> ndarray:
    """Return the coordinates of the elements that are not 0, one row each."""
    columns = [column.values() for column in ndarray.of(source).nonzero()]
    rows = list(zip(*columns, strict=True))
    return ndarray.from_values([value for row in rows for value in row], INT64, (len(rows), len(columns)))


def count_nonzero(source: Any, axis: Any = None) -> Any:
    """Return how many elements are not 0."""
    return ndarray.of(ndarray.of(source) != 0).sum(axis)


def array_equal(a: Any, b: Any) -> bool:
    """Return whether two arrays have the same shape and elements."""
    first, second = ndarray.of(a), ndarray.of(b)
    return first.shape == second.shape and first.values() == second.values()


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Return which elements are close to those of another array."""
    first, second = ndarray.of(a), ndarray.of(b)
    limit = atol + rtol * UFUNCS["absolute"](second)
    near = (UFUNCS["absolute"](first - second) <= limit) & UFUNCS["isfinite"](second) | (first == second)
    return near | ((first != first) & (second != second)) if equal_nan else near


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether all elements are close to those of another array."""
    return bool(ndarray.of(isclose(a, b, rtol, atol, equal_nan)).all())


def nanmin(source: Any) -> Any:
    """Return the smallest element that is a number."""
    table = ndarray.of(source)
    chosen = table[table == table]
    return chosen.min() if chosen.size else nan


def nanmax(source: Any) -> Any:
    """Return the largest element that is a number."""
    table = ndarray.of(source)
    chosen = table[table == table]
    return chosen.max() if chosen.size else nan


def shares_memory(a: Any, b: Any, max_work: int | None = None) -> bool:
    """Return whether two arrays have a byte in common."""
    if not may_share_memory(a, b):
        return False
    if max(a.nbytes, b.nbytes) > _MAX_BYTES:
        raise TooHardError("the arrays are too large to find out whether they share memory")
    return not _byte_addresses(a).isdisjoint(_byte_addresses(b))


def may_share_memory(a: Any, b: Any) -> bool:
    """Return whether the address ranges of two arrays overlap."""
    if not a.size or not b.size:
        return False
    (low, high), (other_low, other_high) = _address_range(a), _address_range(b)
    return low < other_high and other_low < high


_MAX_BYTES = 1 << 18


class TooHardError(RuntimeError):
    """A question about memory would take too long."""


def _address_range(source: Any) -> tuple[int, int]:
    reach = [(n - 1) * step for n, step in zip(source.shape, source.strides, strict=True)]
    low = sum([step for step in reach if step < 0])
    return source.address + low, source.address + sum([step for step in reach if step > 0]) + source.itemsize


def _byte_addresses(source: Any) -> set[int]:
    origin = source.address - source.start
    return {origin + at + k for at in source.places(1) for k in range(source.itemsize)}
