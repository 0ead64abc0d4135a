# SPDX-License-Identifier: Apache-2.0
"""Statistics of errors, in one pass: sums by magnitude, the largest error of every block, and distances in ULPs."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._integers import ceil_div
from ..copying import native_library
from ..formats import Format, ScalarFormat, cast

Floats = NDArray[np.float64]

_LOWEST = -1075  # frexp's exponent of the smallest double, less one: the bin of zeros
_BINS = 1024 - _LOWEST + 1
_CHUNK = 1 << 13  # elements at a time: temporaries stay in the caches, and sums are the same however they are made


def _zero_bins() -> Floats:
    return np.zeros(_BINS)


@dataclass(slots=True)
class Moments:
    """Counts, means and central second moments of pairs of numbers, in bins by magnitude.

    >>> moments = Moments()
    >>> moments.add(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    >>> moments.total().pcc
    1.0
    """

    count: Floats = field(default_factory=_zero_bins)
    mean_a: Floats = field(default_factory=_zero_bins)
    mean_b: Floats = field(default_factory=_zero_bins)
    aa: Floats = field(default_factory=_zero_bins)
    bb: Floats = field(default_factory=_zero_bins)
    ab: Floats = field(default_factory=_zero_bins)
    squared_error: Floats = field(default_factory=_zero_bins)

    def add(self, a: Floats, b: Floats) -> None:
        """Add pairs of finite numbers.

        >>> moments = Moments()
        >>> moments.add(np.array([1.0, 3.0]), np.array([1.0, 3.0]))
        >>> moments.total().count
        2
        """
        for start in range(0, a.size, _CHUNK):
            self._add_chunk(a[start : start + _CHUNK], b[start : start + _CHUNK])

    def _add_chunk(self, a: Floats, b: Floats) -> None:
        low, sums = _sum_bins(a, b)
        count, mean_a, mean_b, aa, bb, ab, squared_error = sums
        part = slice(low, low + count.size)
        with np.errstate(over="ignore", invalid="ignore"):  # numbers near the largest double have infinite squares
            # Chan's update: two sets of sums become those of the union
            both = np.maximum(self.count[part] + count, 1.0)
            step_a, step_b = mean_a - self.mean_a[part], mean_b - self.mean_b[part]
            weight = self.count[part] * count / both
            self.aa[part] += aa + step_a * step_a * weight
            self.bb[part] += bb + step_b * step_b * weight
            self.ab[part] += ab + step_a * step_b * weight
            self.mean_a[part] += step_a * count / both
            self.mean_b[part] += step_b * count / both
            self.count[part] += count
            self.squared_error[part] += squared_error

    def total(self, below: int = _BINS) -> Totals:
        """Return the sums over all bins, or over those below bin `below`.

        >>> moments = Moments()
        >>> moments.add(np.array([1.0, 1000.0]), np.array([1.0, 1000.0]))
        >>> moments.total(below=moments.highest_bin()).mean_a
        1.0
        """
        count = self.count[:below]
        number = float(count.sum())
        if not number:
            return Totals(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            mean_a = float((count * self.mean_a[:below]).sum() / number)
            mean_b = float((count * self.mean_b[:below]).sum() / number)
            da, db = self.mean_a[:below] - mean_a, self.mean_b[:below] - mean_b
            return Totals(
                int(number),
                mean_a,
                mean_b,
                float((self.aa[:below] + count * da * da).sum() / number),
                float((self.bb[:below] + count * db * db).sum() / number),
                float((self.ab[:below] + count * da * db).sum() / number),
                float(self.squared_error[:below].sum() / number),
            )

    def highest_bin(self) -> int:
        """Return the highest bin that is not empty.

        >>> moments = Moments()
        >>> moments.add(np.array([1.0]), np.array([1.0]))
        >>> ones = moments.highest_bin()
        >>> moments.add(np.array([2.0]), np.array([2.0]))
        >>> moments.highest_bin() - ones
        1
        """
        used = np.flatnonzero(self.count)
        return int(used[-1]) if used.size else 0

    def largest_bins(self, share: float) -> int:
        """Return the lowest bin so that it and those above hold at most `share` of the elements, and at least one.

        >>> moments = Moments()
        >>> moments.add(np.array([1.0] * 99 + [1000.0]), np.array([1.0] * 99 + [1000.0]))
        >>> moments.largest_bins(1.0) < moments.largest_bins(0.01) <= moments.highest_bin()
        True
        """
        above = np.cumsum(self.count[::-1])[::-1]
        few = np.flatnonzero((above > 0) & (above <= max(1.0, share * float(self.count.sum()))))
        return int(few[0]) if few.size else self.highest_bin() + 1


def _sum_bins(a: Floats, b: Floats) -> tuple[int, Any]:
    """Return the lowest bin in use, and per bin from there: count, means, central second moments, squared error."""
    if not native_library.is_available():
        return _sum_bins_with_numpy(a, b)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    sums, bins = np.empty((7, _BINS)), np.empty(2, np.int64)
    native_library.load_library().tw_pair_sums(a.ctypes.data, b.ctypes.data, a.size, sums.ctypes.data, bins.ctypes.data)
    low, high = bins.tolist()
    return low, sums[:, low:high]


def _sum_bins_with_numpy(a: Floats, b: Floats) -> tuple[int, Any]:
    """Return the same sums with NumPy, bit for bit: the fallback and the oracle."""
    magnitude = np.maximum(np.abs(a), np.abs(b))
    bins = np.frexp(magnitude)[1] - _LOWEST
    if not magnitude.min():
        bins[magnitude == 0.0] = 0
    low, high = int(bins.min()), int(bins.max()) + 1
    bins -= low

    def summed(values: Floats) -> Floats:
        return np.bincount(bins, values, high - low).astype(np.float64, copy=False)

    with np.errstate(over="ignore", invalid="ignore"):
        count = np.bincount(bins, minlength=high - low).astype(np.float64)
        some = np.maximum(count, 1.0)
        mean_a, mean_b = summed(a) / some, summed(b) / some
        da, db, error = a - mean_a[bins], b - mean_b[bins], a - b
        second = summed(da * da), summed(db * db), summed(da * db), summed(error * error)
        return low, (count, mean_a, mean_b, *second)


@dataclass(frozen=True, slots=True)
class Totals:
    """Means, variances, covariance and mean squared error of pairs of numbers.

    >>> Totals(2, 0.0, 0.0, 1.0, 4.0, 2.0, 1.0).slope
    2.0
    """

    count: int
    mean_a: float
    mean_b: float
    variance_a: float
    variance_b: float
    covariance: float
    squared_error: float

    @property
    def pcc(self) -> float | None:
        """Return Pearson's correlation coefficient, None if one side is constant.

        >>> Totals(2, 0.0, 0.0, 1.0, 4.0, 2.0, 1.0).pcc, Totals(2, 1.0, 0.0, 0.0, 4.0, 0.0, 1.0).pcc
        (1.0, None)
        """
        # each root alone: the product of two variances can leave the range of a double
        spread = float(np.sqrt(self.variance_a) * np.sqrt(self.variance_b))
        if not spread or not np.isfinite(spread):
            return None
        return max(-1.0, min(1.0, self.covariance / spread))

    @property
    def slope(self) -> float | None:
        """Return the factor of the best fit b = factor x a + offset.

        >>> Totals(2, 0.0, 0.0, 0.0, 4.0, 0.0, 1.0).slope is None
        True
        """
        return self.covariance / self.variance_a if self.variance_a and np.isfinite(self.variance_a) else None

    @property
    def offset(self) -> float | None:
        """Return the offset of the best fit.

        >>> Totals(2, 1.0, 5.0, 1.0, 4.0, 2.0, 1.0).offset
        3.0
        """
        slope = self.slope
        return None if slope is None else self.mean_b - slope * self.mean_a

    def error_parts(self) -> dict[str, float]:
        """Return the mean squared error in three parts: offset, factor, and noise, which is all that PCC sees.

        >>> Totals(2, 0.0, 0.0, 1.0, 4.0, 2.0, 1.0).error_parts()
        {'offset': 0.0, 'factor': 1.0, 'scatter': 0.0}
        """
        slope = self.slope
        offset = (self.mean_b - self.mean_a) ** 2
        factor = 0.0 if slope is None else (slope - 1.0) ** 2 * self.variance_a
        explained = 0.0 if slope is None else slope * self.covariance
        return {"offset": offset, "factor": factor, "scatter": max(0.0, self.variance_b - explained)}


MAX_MAP_SIDE = 64  # rows and columns of a map at most


class ErrorMap:
    """The largest error of every block of a shape folded to a matrix; blocks are multiples of tiles.

    >>> errors = ErrorMap((100, 70), (32, 32))
    >>> errors.add(0, np.arange(7000.0))
    >>> errors.block, errors.cells.shape, float(errors.cells[0, 0])
    ((32, 32), (4, 3), 2201.0)
    """

    def __init__(self, shape: tuple[int, ...], tile: tuple[int, int]) -> None:
        self.width = shape[-1] if shape else 1
        height = prod(shape[:-1])
        high, wide = (
            side * max(1, ceil_div(ceil_div(n, side), MAX_MAP_SIDE))
            for n, side in zip((height, self.width), tile, strict=True)
        )
        self.block = (high, wide)
        self.cells: NDArray[np.float64] = np.zeros((max(1, ceil_div(height, high)), max(1, ceil_div(self.width, wide))))

    def add(self, start: int, errors: NDArray[np.float64]) -> None:
        """Add the errors of a run of elements from element `start` on: entire rows, or part of one.

        >>> errors = ErrorMap((1, 70), (32, 32))
        >>> errors.add(60, np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
        >>> errors.cells.tolist()
        [[0.0, 4.0, 5.0]]
        """
        row, column = divmod(start, self.width)
        whole = not column and errors.size % self.width == 0
        block = errors.reshape(-1, self.width) if whole else errors.reshape(1, -1)
        (high, wide), (rows, columns) = self.block, block.shape
        down, across = _block_starts(row, rows, high), _block_starts(column, columns, wide)
        largest = np.maximum.reduceat(np.maximum.reduceat(block, across, axis=1), down, axis=0)
        top, left = row // high, column // wide
        part = self.cells[top : top + len(down), left : left + len(across)]
        np.maximum(part, largest, out=part)


def _block_starts(first: int, count: int, step: int) -> NDArray[np.int64]:
    """Return the starts of the blocks of `step` rows in `count` rows from row `first` on."""
    borders = np.arange(first // step, (first + count - 1) // step + 1, dtype=np.int64) * step
    result: NDArray[np.int64] = np.maximum(borders - first, 0)
    return result


_SMALLEST_NORMAL = 2.0**-126  # of float32
_PRECISION = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "float8_e4m3": 4, "float8_e5m2": 3}


def coarser_format(a: Format, b: Format) -> Format:
    """Return the coarser of two formats; two tensors are compared in ULPs of it.

    >>> from tilewright import format_of
    >>> (
    ...     coarser_format(format_of("float32"), format_of("bfloat16")),
    ...     coarser_format(format_of("int32"), format_of("float32")),
    ... )
    (format_of('bfloat16'), format_of('float32'))
    """
    for each in (a, b):
        if each.has_blocks:
            other = b if each is a else a
            return other if other.has_blocks and other.bits < each.bits else each
    floats = [each for each in (a, b) if each.name in _PRECISION]
    return min(floats, key=lambda each: _PRECISION[each.name]) if floats else b


def ulp_distance(a: Any, b: Any, unit: Format, steps: Any = None, finite: bool = False) -> Floats:
    """Return the distance between values in ULPs of the format `unit`; block formats need the `steps` of each element.

    Values are rounded to a scalar format first; in block formats, numbers that float32 holds only as subnormals are
    zero, since packing makes them zero. NaN is 0 ULPs from NaN, and infinitely many from anything else;
    `finite` skips that check.

    >>> from tilewright import format_of
    >>> ulp_distance(np.float32([1.0, 1.0]), np.float32([1.01, -1.0]), format_of("bfloat16")).tolist()
    [1.0, 32512.0]
    >>> ulp_distance(np.float32([1.0]), np.float32([1.25]), format_of("bfloat8_b"), np.float32([0.5])).tolist()
    [0.5]
    """
    if not unit.has_blocks and unit.name in _PRECISION:
        one, other = (_number_ranks(np.asarray(each), unit) for each in (a, b))
        distance = np.maximum(one, other) - np.minimum(
            one, other
        )  # may wrap around, and is right as an unsigned number
        apart: Floats = distance.view(f"u{unit.itemsize}").astype(np.float64)
    else:
        numbers = (np.asarray(each, np.float64) for each in (a, b))
        one, other = (_flush_subnormals(each) if unit.has_blocks else each for each in numbers)
        with np.errstate(all="ignore"):
            apart = np.abs(one - other)
            if steps is not None:
                apart = np.where(apart == 0.0, 0.0, apart / steps)
    return apart if finite else settle_non_finite(apart, a, b)


def _flush_subnormals(values: Floats) -> Floats:
    return np.where(np.abs(values) < _SMALLEST_NORMAL, 0.0, values)


def settle_non_finite(apart: Floats, a: Any, b: Any) -> Floats:
    """Return distances with 0 for equal values, NaN and infinity included, and infinity for a single NaN.

    >>> settle_non_finite(np.array([np.nan, np.nan]), np.array([np.nan, 1]), np.array([np.nan, np.nan])).tolist()
    [0.0, inf]
    """
    one_nan, other_nan = np.isnan(a), np.isnan(b)
    same = (np.asarray(a) == np.asarray(b)) | (one_nan & other_nan)
    far = (one_nan != other_nan) | np.isnan(apart)
    result: Floats = np.where(same, 0.0, np.where(far, np.inf, apart))
    return result


def _number_ranks(values: NDArray[Any], unit: ScalarFormat) -> NDArray[Any]:
    """Return the rank of each value among all numbers of a format; both zeros are 0."""
    rounded = values if values.dtype == unit.dtype else cast(values, unit)
    bits = np.ascontiguousarray(rounded).view(f"i{unit.itemsize}")
    sign = bits >> (unit.bits - 1)  # -1 or 0
    magnitude = bits & np.iinfo(bits.dtype).max
    ranks: NDArray[Any] = (magnitude ^ sign) - sign
    return ranks
