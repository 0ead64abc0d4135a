# SPDX-License-Identifier: Apache-2.0
"""Sums over two arrays that are read piece by piece: means, variances and squared errors, apart for each magnitude.

Elements are counted in bins by the larger of the two magnitudes, one bin for each power of two. What the largest
elements contribute can then be told from the rest without a second look at the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..copying import native_library

Floats = NDArray[np.float64]

_LOWEST = -1075  # frexp's exponent of the smallest double, less one: the bin of zeros
_BINS = 1024 - _LOWEST + 1
_CHUNK = 1 << 13  # elements at a time: temporaries stay in the caches, and sums are the same however they are made


def _zeros() -> Floats:
    return np.zeros(_BINS)


@dataclass(slots=True)
class Moments:
    """Counts, means and central second moments of pairs of numbers, in bins of magnitude; they can be added to.

    >>> moments = Moments()
    >>> moments.add(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    >>> moments.total().pcc
    1.0
    """

    count: Floats = field(default_factory=_zeros)
    mean_a: Floats = field(default_factory=_zeros)
    mean_b: Floats = field(default_factory=_zeros)
    aa: Floats = field(default_factory=_zeros)
    bb: Floats = field(default_factory=_zeros)
    ab: Floats = field(default_factory=_zeros)
    squared_error: Floats = field(default_factory=_zeros)

    def add(self, a: Floats, b: Floats) -> None:
        """Take in more pairs of finite numbers.

        >>> moments = Moments()
        >>> moments.add(np.array([1.0, 3.0]), np.array([1.0, 3.0]))
        >>> moments.total().count
        2
        """
        for start in range(0, a.size, _CHUNK):
            self._add(a[start : start + _CHUNK], b[start : start + _CHUNK])

    def _add(self, a: Floats, b: Floats) -> None:
        low, sums = _sums_in_bins(a, b)
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
        """Return the sums over all bins, or over those below one.

        >>> moments = Moments()
        >>> moments.add(np.array([1.0, 1000.0]), np.array([1.0, 1000.0]))
        >>> moments.total(below=moments.top()).mean_a
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

    def top(self) -> int:
        """Return the highest bin that holds anything.

        >>> moments = Moments()
        >>> moments.add(np.array([1.0]), np.array([1.0]))
        >>> ones = moments.top()
        >>> moments.add(np.array([2.0]), np.array([2.0]))
        >>> moments.top() - ones
        1
        """
        used = np.flatnonzero(self.count)
        return int(used[-1]) if used.size else 0

    def largest(self, share: float) -> int:
        """Return the lowest bin such that it and those above hold at most a share of the elements, and at least one.

        >>> moments = Moments()
        >>> moments.add(np.array([1.0] * 99 + [1000.0]), np.array([1.0] * 99 + [1000.0]))
        >>> moments.largest(1.0) < moments.largest(0.01) <= moments.top()
        True
        """
        above = np.cumsum(self.count[::-1])[::-1]
        few = np.flatnonzero((above > 0) & (above <= max(1.0, share * float(self.count.sum()))))
        return int(few[0]) if few.size else self.top() + 1


def _sums_in_bins(a: Floats, b: Floats) -> tuple[int, Any]:
    """Return the lowest bin in use, and for each from there on: count, means, central second moments, squared error."""
    if not native_library.is_available():
        return _sums_in_numpy(a, b)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    sums, bins = np.empty((7, _BINS)), np.empty(2, np.int64)
    native_library.load_library().tw_pair_sums(a.ctypes.data, b.ctypes.data, a.size, sums.ctypes.data, bins.ctypes.data)
    low, high = bins.tolist()
    return low, sums[:, low:high]


def _sums_in_numpy(a: Floats, b: Floats) -> tuple[int, Any]:
    """Return the same, bit for bit: the fallback and the oracle."""
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
        """Return Pearson's correlation coefficient, None where one side does not vary.

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
        """Return the factor of the straight line b = factor x a + offset that fits best.

        >>> Totals(2, 0.0, 0.0, 0.0, 4.0, 0.0, 1.0).slope is None
        True
        """
        return self.covariance / self.variance_a if self.variance_a and np.isfinite(self.variance_a) else None

    @property
    def offset(self) -> float | None:
        """Return the offset of the straight line that fits best.

        >>> Totals(2, 1.0, 5.0, 1.0, 4.0, 2.0, 1.0).offset
        3.0
        """
        slope = self.slope
        return None if slope is None else self.mean_b - slope * self.mean_a

    def error_parts(self) -> dict[str, float]:
        """Return the mean squared error in three parts: an offset, a factor, and the scatter, which is all PCC sees.

        >>> Totals(2, 0.0, 0.0, 1.0, 4.0, 2.0, 1.0).error_parts()
        {'offset': 0.0, 'factor': 1.0, 'scatter': 0.0}
        """
        slope = self.slope
        offset = (self.mean_b - self.mean_a) ** 2
        factor = 0.0 if slope is None else (slope - 1.0) ** 2 * self.variance_a
        explained = 0.0 if slope is None else slope * self.covariance
        return {"offset": offset, "factor": factor, "scatter": max(0.0, self.variance_b - explained)}

    def values(self) -> dict[str, Any]:
        """Return the figures by name.

        >>> Totals(2, 0.0, 0.0, 1.0, 4.0, 2.0, 1.0).values()["factor"]
        2.0
        """
        return {"pcc": self.pcc, "factor": self.slope, "offset": self.offset, "mean_a": self.mean_a} | {
            "mean_b": self.mean_b,
            "variance_a": self.variance_a,
            "variance_b": self.variance_b,
        }
