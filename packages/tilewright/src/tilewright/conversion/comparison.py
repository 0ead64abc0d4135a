# SPDX-License-Identifier: Apache-2.0
"""The results of a comparison: figures and differences per tensor, also where a correlation coefficient hides them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from math import inf, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._integers import ceil_div
from .._text import count_of, format_extents, format_table
from ..copying import native
from ..display import Drawable
from ..findings import Finding
from ..formats import Format, ScalarFormat, cast
from ..memory import format_devices
from .source import describe_exceptional, note_exceptional

# Statistics of errors, in one pass: sums by magnitude, the largest error of every block, and distances in ULPs.

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
            # Chan's update: two sets of sums become the sums of the union
            both = np.maximum(self.count[part] + count, 1.0)
            delta_a, delta_b = mean_a - self.mean_a[part], mean_b - self.mean_b[part]
            weight = self.count[part] * count / both
            self.aa[part] += aa + delta_a * delta_a * weight
            self.bb[part] += bb + delta_b * delta_b * weight
            self.ab[part] += ab + delta_a * delta_b * weight
            self.mean_a[part] += delta_a * count / both
            self.mean_b[part] += delta_b * count / both
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
        """Return the lowest bin that, with all above it, holds at most `share` of the elements, and at least one.

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
    if not native.is_available():
        return _sum_bins_with_numpy(a, b)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    sums, bins = np.empty((7, _BINS)), np.empty(2, np.int64)
    native.load_library().tw_pair_sums(a.ctypes.data, b.ctypes.data, a.size, sums.ctypes.data, bins.ctypes.data)
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
        """Pearson's correlation coefficient, None if one side is constant.

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
        """The factor of the best fit b = factor x a + offset.

        >>> Totals(2, 0.0, 0.0, 0.0, 4.0, 0.0, 1.0).slope is None
        True
        """
        return self.covariance / self.variance_a if self.variance_a and np.isfinite(self.variance_a) else None

    @property
    def offset(self) -> float | None:
        """The offset of the best fit.

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


def _block_starts(first: int, count: int, block: int) -> NDArray[np.int64]:
    """Return the starts of the blocks of `block` rows in `count` rows from row `first` on."""
    borders = np.arange(first // block, (first + count - 1) // block + 1, dtype=np.int64) * block
    return np.maximum(borders - first, 0)


_SMALLEST_NORMAL = 2.0**-126  # of float32
FORMAT_PRECISION = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "float8_e4m3": 4, "float8_e5m2": 3}


def coarser_format(a: Format, b: Format) -> Format:
    """Return the coarser of two formats; two tensors are compared in ULPs of it.

    >>> from tilewright import format_of
    >>> (
    ...     coarser_format(format_of("float32"), format_of("bfloat16")),
    ...     coarser_format(format_of("int32"), format_of("float32")),
    ... )
    (format_of('bfloat16'), format_of('float32'))
    """
    for element in (a, b):
        if element.has_blocks:
            other = b if element is a else a
            return other if other.has_blocks and other.bits < element.bits else element
    floats = [element for element in (a, b) if element.name in FORMAT_PRECISION]
    return min(floats, key=lambda element: FORMAT_PRECISION[element.name]) if floats else b


def ulp_distance(
    a: NDArray[Any], b: NDArray[Any], unit: Format, steps: NDArray[Any] | None = None, finite: bool = False
) -> Floats:
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
    if not unit.has_blocks and unit.name in FORMAT_PRECISION:
        left, right = (_number_ranks(np.asarray(array), unit) for array in (a, b))
        distance = np.maximum(left, right) - np.minimum(left, right)  # may wrap around: it is unsigned
        apart: Floats = distance.view(f"u{unit.itemsize}").astype(np.float64)
    else:
        left, right = (np.asarray(array, np.float64) for array in (a, b))
        if unit.has_blocks:  # which have no subnormals
            left, right = (np.where(np.abs(array) < _SMALLEST_NORMAL, 0.0, array) for array in (left, right))
        with np.errstate(all="ignore"):
            apart = np.abs(left - right)
            if steps is not None:
                apart = np.where(apart == 0.0, 0.0, apart / steps)
    return apart if finite else settle_non_finite(apart, a, b)


def settle_non_finite(apart: Floats, a: NDArray[Any], b: NDArray[Any]) -> Floats:
    """Return distances with 0 for equal values, NaN and infinity included, and infinity for a single NaN.

    >>> settle_non_finite(np.array([np.nan, np.nan]), np.array([np.nan, 1]), np.array([np.nan, np.nan])).tolist()
    [0.0, inf]
    """
    one_nan, other_nan = np.isnan(a), np.isnan(b)
    same = (np.asarray(a) == np.asarray(b)) | (one_nan & other_nan)
    far = (one_nan != other_nan) | np.isnan(apart)
    return np.where(same, 0.0, np.where(far, np.inf, apart))


def _number_ranks(values: NDArray[Any], unit: ScalarFormat) -> NDArray[Any]:
    """Return the rank of each value among all numbers of a format; both zeros are 0."""
    rounded = values if values.dtype == unit.dtype else cast(values, unit)
    bits = np.ascontiguousarray(rounded).view(f"i{unit.itemsize}")
    sign = bits >> (unit.bits - 1)  # -1 or 0
    magnitude = bits & np.iinfo(bits.dtype).max
    return (magnitude ^ sign) - sign


FEW_SHARE = 0.001  # the share of elements that counts as few
PASSING_PCC = 0.99  # a correlation that passes common tests
_ROUNDING = 1e-7  # the rounding error of the sums
_NOTABLE_SHARE = 0.5  # of an error or a variance


@dataclass(frozen=True, slots=True)
class HiddenError(Finding):
    """An error that a high correlation hides: its kind, a message, and the `value` that shows it.

    >>> print(HiddenError("factor", "B is 2 x A", value=2.0))
    B is 2 x A
    """

    value: float = 0.0

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of elements that became zero, changed sign or are finite on one side only; and the worst error.

    >>> Counts(elements=10, nonzero=9, zeroed=3, flipped=0, not_finite=0, worst_error=0.5).zeroed
    3
    """

    elements: int
    nonzero: int
    zeroed: int
    flipped: int
    not_finite: int
    worst_error: float


def find_hidden_errors(moments: Moments, counts: Counts) -> list[HiddenError]:
    """Return the differences that the correlation of two tensors hides, from their sums and counts.

    >>> import numpy as np
    >>> a = np.linspace(-1, 1, 100)
    >>> moments = Moments()
    >>> moments.add(a, 2 * a)
    >>> print(find_hidden_errors(moments, Counts(100, 100, 0, 0, 0, 1.0))[0])
    B is 2 x A, which is 100 % of the squared error; PCC is the same for any factor
    """
    total = moments.total()
    findings: list[HiddenError] = []
    if total.count and total.pcc is None:
        side = "A" if not total.variance_a else "B"
        findings.append(HiddenError("constant", f"{side} is constant, so PCC is undefined", value=0.0))
    findings += _find_in_error(total, counts)
    findings += _find_outliers(moments, total)
    if counts.zeroed:
        share = counts.zeroed / max(1, counts.nonzero)
        zeroed = _count_elements(counts.zeroed, "nonzero ")
        text = f"{zeroed} became zero ({_format_percent(share)}), which hardly changes PCC"
        findings.append(HiddenError("zeroed", text, value=share))
    if counts.flipped:
        share = counts.flipped / counts.elements
        findings.append(
            HiddenError(
                "flipped", f"{_count_elements(counts.flipped)} changed sign ({_format_percent(share)})", value=share
            )
        )
    if counts.not_finite:
        share = counts.not_finite / counts.elements
        text = f"NaN or infinite on one side only: {_count_elements(counts.not_finite)}, which PCC ignores"
        findings.append(HiddenError("not_finite", text, value=share))
    return findings


def _find_in_error(total: Totals, counts: Counts) -> list[HiddenError]:
    """Return the parts of the error that a correlation cannot see."""
    parts = total.error_parts()
    whole = sum(parts.values())
    if not whole or not total.squared_error:
        return []
    result = []
    related = (total.pcc or 0.0) ** 2 >= _NOTABLE_SHARE  # a factor of unrelated tensors means nothing
    if related and parts["factor"] / whole >= _NOTABLE_SHARE and total.slope is not None:
        text = f"B is {total.slope:.6g} x A, which is {_format_percent(parts['factor'] / whole)} of the squared error"
        result.append(HiddenError("factor", f"{text}; PCC is the same for any factor", value=total.slope))
    if parts["offset"] / whole >= _NOTABLE_SHARE:
        shift = total.mean_b - total.mean_a
        text = (
            f"B is A {'+' if shift > 0 else '-'} {abs(shift):.6g}, which is {_format_percent(parts['offset'] / whole)}"
        )
        result.append(HiddenError("offset", f"{text} of the squared error; any offset has the same PCC", value=shift))
    share = counts.worst_error**2 / (total.squared_error * total.count)
    if share >= _NOTABLE_SHARE and total.count > 1 / FEW_SHARE:
        percent = _format_percent(min(1.0, share))
        text = f"one element makes {percent} of the squared error; PCC averages it over {total.count}"
        result.append(HiddenError("one_error", text, value=share))
    return result


def _find_outliers(moments: Moments, total: Totals) -> list[HiddenError]:
    """Return a finding if a few large elements dominate the correlation."""
    if total.pcc is None or total.count < 1 / FEW_SHARE:
        return []
    lowest, top = moments.largest_bins(FEW_SHARE), moments.highest_bin()
    rests = [moments.total(below=bin_) for bin_ in range(lowest, top + 1)]
    whole = total.count * total.variance_a
    shares = [1.0 - rest.count * rest.variance_a / whole for rest in rests]  # of the variance, outside of the rest
    if not shares or shares[0] < _NOTABLE_SHARE:
        return []
    # the fewest elements with nearly the same share
    chosen = max(k for k, share in enumerate(shares) if share >= 0.95 * shares[0])
    rest = rests[chosen]
    without = rest.pcc
    if not rest.count or (without is not None and 1.0 - without <= 2.0 * (1.0 - total.pcc) + 1e-6):
        return []
    few = total.count - rest.count
    alone = "PCC is undefined" if without is None else f"PCC is {without:.6g}"
    large = f"{_count_elements(few, 'large ')} ({_format_percent(few / total.count)})"
    text = f"{large} make {_format_percent(shares[chosen])} of the variance"
    return [HiddenError("outliers", f"{text}; without them {alone}", value=0.0 if without is None else without)]


def summarize_pcc(pcc: float | None, relative_rms: float, findings: list[HiddenError]) -> str:
    """Return one sentence on how far PCC can be trusted for two tensors.

    >>> summarize_pcc(0.99999, 0.004, [])
    'PCC is reliable here: the error is noise, 0.4 % of the values (rms)'
    """
    error = f"{_format_percent(relative_rms)} of the values (rms)"
    if pcc is None:
        return f"PCC is undefined; the error is {error}"
    if not findings:
        return f"PCC is reliable here: the error is noise, {error}"
    seen = sqrt(max(0.0, 1.0 - pcc * pcc))
    if pcc >= PASSING_PCC and relative_rms > 2.0 * seen:
        suggested = "no error" if seen < _ROUNDING else f"an error of {_format_percent(seen)}"
        return f"PCC {pcc:.6g} would pass and suggests {suggested}, but the error is {error}"
    return f"PCC agrees with the error of {error}, but hides:"


def _count_elements(count: int, adjective: str = "") -> str:
    return f"{count} {adjective}element{'' if count == 1 else 's'}"


def _format_percent(share: float) -> str:
    return f"{100 * share:.3g} %"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far apart elements may be: within atol + rtol x |a|, or within `ulp` ULPs; and the least PCC.

    By default elements must be equal; with a PCC alone, only correlated.

    >>> Tolerance(atol=1e-3).is_exact, str(Tolerance(ulp=1))
    (False, 'within 1 ULP')
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulp: float | None = None
    pcc: float | None = None

    @property
    def is_exact(self) -> bool:
        """Whether elements must be equal.

        >>> Tolerance().is_exact
        True
        """
        return not (self.atol or self.rtol or self.ulp)

    def __str__(self) -> str:
        parts = []
        if self.atol or self.rtol:
            parts.append(f"{self.atol:g} + {self.rtol:g} x |a|")
        if self.ulp:
            parts.append(f"{self.ulp:g} ULP")
        within = [f"within {' or '.join(parts)}"] if parts else ["equal"] if self.pcc is None else []
        return ", ".join([*within, *([] if self.pcc is None else [f"PCC at least {self.pcc:g}"])])


@dataclass(frozen=True, slots=True)
class Difference:
    """An element in which two tensors differ: its coordinate, both values, and its tile and core if known.

    On a mesh, `devices` hold it, and tile and core are those in their part.

    >>> print(Difference((1, 2), 0.5, 0.75, (0, 0), (3, 1)))
    (1, 2): 0.5 and 0.75, in tile (0, 0), core (3, 1)
    """

    coordinate: tuple[int, ...]
    a: float
    b: float
    tile: tuple[int, int] | None = None
    core: tuple[int, int] | None = None
    devices: tuple[tuple[int, ...], ...] = ()

    def __str__(self) -> str:
        at = f"({', '.join(map(str, self.coordinate))})"
        tile = "" if self.tile is None else f", in tile {self.tile}"
        core = "" if self.core is None else f", core {self.core}"
        a, b = (str(value) if isinstance(value, int) else f"{value:.9g}" for value in (self.a, self.b))
        noun = "device" if len(self.devices) == 1 else "devices"
        devices = f", on {noun} {format_devices(self.devices)}" if self.devices else ""
        return f"{at}: {a} and {b}{devices}{tile}{core}"


@dataclass(frozen=True, slots=True, eq=False)
class TensorComparison(Drawable):
    """How one tensor differs from another: figures, the first and the worst difference, and what PCC hides.

    `different` counts the elements beyond the tolerance, `unequal` those that are not exactly equal. `max_ulp` is in
    steps of `ulp_format`, the coarser of the two. `error_map` has the largest error of every `map_block` of rows and
    columns. `problem` is the reason why they could not be compared, and `order` how the dimensions of B were permuted
    for it. `exceptional_a` and `exceptional_b` count values that are NaN or infinite, and in A those out of B's range.

    >>> from tilewright.conversion import diff
    >>> tensor = diff(np.zeros((4, 4)), np.eye(4)).tensors[0]
    >>> tensor.unequal, tensor.max_abs, str(tensor.first)
    (4, 1.0, '(0, 0): 0 and 1')
    """

    name: str
    shape: tuple[int, ...]
    format_a: str
    format_b: str
    same: bool
    problem: str = ""
    count: int = 0
    unequal: int = 0
    different: int = 0
    max_abs: float = 0.0
    max_relative: float = 0.0
    max_ulp: float = 0.0
    ulp_format: str = ""
    rms_error: float = 0.0
    relative_rms: float = 0.0
    pcc: float | None = None
    factor: float | None = None
    offset: float | None = None
    pcc_in_words: str = ""
    findings: tuple[HiddenError, ...] = ()
    first: Difference | None = None
    worst: Difference | None = None
    map_block: tuple[int, int] = (1, 1)
    error_map: NDArray[np.float64] | None = None
    order: tuple[int, ...] | None = None
    exceptional_a: Mapping[str, int] = field(default_factory=dict)
    exceptional_b: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain data.

        >>> from tilewright.conversion import diff
        >>> diff(np.zeros(3), np.zeros(3)).tensors[0].to_json()["same"]
        True
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def lines(self) -> list[tuple[str, str]]:
        """Return the names and texts of all figures.

        >>> from tilewright.conversion import diff
        >>> diff(np.zeros(3), np.zeros(3)).tensors[0].lines()[-1]
        ('PCC', 'every element is equal')
        """
        shape = format_extents(self.shape, "scalar")
        result = [("tensor", f"{self.name or 'the array'}: {shape}, {self.format_a} and {self.format_b}")]
        if self.problem:
            return [*result, ("problem", self.problem)]
        if self.order is not None:
            result.append(("order", f"B has the dimensions of A in the order {self.order}"))
        for side, counts in (("A", self.exceptional_a), ("B", self.exceptional_b)):
            if counts:
                result.append(("values", f"{side}: {describe_exceptional(counts, self.format_b)}"))
        if not self.unequal:
            return [*result, ("equal", f"all {self.count} elements"), ("PCC", "every element is equal")]
        beyond = "" if self.different == self.unequal else f", {self.different} of them beyond the tolerance"
        share = f"{100 * self.unequal / self.count:.3g} %"
        result += [
            ("unequal", f"{self.unequal} of {self.count} elements ({share}){beyond}"),
            ("max abs", f"{self.max_abs:.6g}" + ("" if self.worst is None else f" at {self.worst}")),
            ("max rel", f"{self.max_relative:.6g}"),
            ("max ULP", f"{self.max_ulp:.6g} steps of {self.ulp_format}"),
            ("rms", f"{self.rms_error:.6g}, {100 * self.relative_rms:.3g} % of the rms of A"),
            *([] if self.first is None else [("first", str(self.first))]),
            ("PCC", "none" if self.pcc is None else f"{self.pcc:.9g}"),
            ("", self.pcc_in_words),
        ]
        return [*result, *(("", f"- {finding}") for finding in self.findings)]

    def __str__(self) -> str:
        return "\n".join(f"{name:<9}{text}" for name, text in self.lines())

    def __repr__(self) -> str:
        summary = self.problem or f"{self.unequal} of {self.count} unequal, max abs {self.max_abs:g}"
        return f"<TensorComparison {self.name!r}: {summary}>"


_FEWEST_DUMPS = 3
_JUMP = 10.0  # times the error of what was before


def _split(name: str) -> list[str]:
    """Return the numbers and the texts between them of a name, alternately."""
    return re.split(r"(\d+)", name)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Drawable):
    """How the tensors of two files differ, and which exist in only one of them.

    >>> from tilewright.conversion import diff
    >>> comparison = diff({"x": np.zeros(3), "y": np.ones(2)}, {"x": np.zeros(3)})
    >>> comparison.same, comparison.only_a, comparison["x"].same
    (False, ('y',), True)
    """

    a: str
    b: str
    tolerance: Tolerance
    tensors: tuple[TensorComparison, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether both sides have the same tensors, within the tolerance.

        >>> from tilewright.conversion import diff
        >>> diff(np.zeros(3), np.ones(3)).same
        False
        """
        return not self.only_a and not self.only_b and all(tensor.same for tensor in self.tensors)

    @property
    def worst(self) -> TensorComparison | None:
        """The tensor to look at first: one that cannot be compared, or the one with the largest error.

        >>> from tilewright.conversion import diff
        >>> diff({"x": np.zeros(3), "y": np.zeros(2)}, {"x": np.zeros(3), "y": np.ones(2)}).worst.name
        'y'
        """
        return max(self.tensors, key=lambda one: (not one.same, bool(one.problem), one.relative_rms), default=None)

    def find_jump(self) -> tuple[TensorComparison, TensorComparison] | None:
        """Return the tensor before which the error jumps, and that one, for dumps in the order of their numbers.

        It is where the share of the error first exceeds ten times all before it, and most.

        >>> from tilewright.conversion import diff
        >>> a = {f"layer{k}": np.linspace(1, 2, 9) for k in range(12)}
        >>> b = {name: x * (1.001 if name != "layer10" else 1.2) for name, x in a.items()}
        >>> [tensor.name for tensor in diff(a, b).find_jump()]
        ['layer9', 'layer10']
        """
        numbered = [one for one in self.tensors if not one.problem and len(_split(one.name)) > 1]
        if len(numbered) < _FEWEST_DUMPS:
            return None
        ordered = sorted(numbered, key=lambda one: [int(part) if part.isdigit() else part for part in _split(one.name)])
        largest, best, jump = 0.0, _JUMP, None
        for before, tensor in pairwise(ordered):
            largest = max(largest, before.relative_rms)
            ratio = tensor.relative_rms / largest if largest else inf if tensor.relative_rms else 0.0
            if ratio > best:
                best, jump = ratio, (before, tensor)
        return jump

    def __getitem__(self, name: str) -> TensorComparison:
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(f"no comparison of {name!r}; there are {count_of(len(self.tensors), 'other')}")

    def __iter__(self) -> Iterator[TensorComparison]:
        return iter(self.tensors)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain data.

        >>> from tilewright.conversion import diff
        >>> sorted(diff(np.zeros(3), np.ones(3)).to_json())
        ['a', 'b', 'jump', 'only_a', 'only_b', 'same', 'tensors', 'tolerance']
        """
        result = {field.name: getattr(self, field.name) for field in fields(self)}
        jump = self.find_jump()
        tensors = [tensor.to_json() for tensor in self.tensors]
        return {**result, "tensors": tensors, "same": self.same, "jump": None if jump is None else jump[1].name}

    def table(self, width: int | None = None) -> str:
        """Return a table with a line per tensor; names are shortened to fit `width`, if it is given.

        >>> from tilewright.conversion import diff
        >>> print(diff({"x": np.float32([1, 2])}, {"x": np.float32([1, 3])}).table())
        tensor  max abs      ULPs  rms error        PCC
        x             1  4.19e+06      0.447  1.0000000  DIFFERS
        """
        rows = [("tensor", "max abs", "ULPs", "rms error", "PCC", "")]
        for tensor in self.tensors:
            verdict = tensor.problem or ("" if tensor.same else "DIFFERS")
            figures = ("", "", "", "")
            if not tensor.problem:
                pcc = "none" if tensor.pcc is None else f"{tensor.pcc:.7f}"
                figures = (f"{tensor.max_abs:.4g}", f"{tensor.max_ulp:.3g}", f"{tensor.relative_rms:.3g}", pcc)
            rows.append((tensor.name, *figures, verdict))
        for side, names in ((self.a, self.only_a), (self.b, self.only_b)):
            rows += [(name, "", "", "", "", f"only in {side}") for name in names]
        reasons = max([len(row[-1]) for row in rows]) - len("DIFFERS")  # they may be long, and exceed the width
        columns = None if width is None else width + max(0, reasons)
        return "\n".join(format_table(rows, columns, right=[1, 2, 3, 4]))

    def text(self, width: int | None = None) -> str:
        """Return the comparison as text; names are shortened to fit `width`, if it is given.

        >>> from tilewright.conversion import diff
        >>> diff(np.zeros(3), np.zeros(3)).text().splitlines()[0]
        '1 of 1 tensor is the same (equal)'
        """
        same = sum([tensor.same for tensor in self.tensors])
        missing = len(self.only_a) + len(self.only_b)
        verb = "is" if 1 in (same, len(self.tensors)) else "are"
        heading = f"{same} of {count_of(len(self.tensors), 'tensor')} {verb} the same ({self.tolerance})"
        others = f", {missing} in only one of the two" if missing else ""
        worst = self.worst
        detail = "" if worst is None or not (worst.unequal or worst.problem) else f"\n\n{worst}"
        notes = "".join([f"\nnote: {note}" for note in self.notes()])
        if (jump := self.find_jump()) is not None:
            before, at = [f"{one.pcc or 0:.6f} and {one.max_abs:.4g}" for one in jump]
            notes += f"\nthe error jumps at {jump[1].name}: PCC and largest error {before} before, {at} there"
        if not self.tensors and self.only_a and self.only_b:
            notes += "\nnote: no name is in both; tilewright match finds which tensors are made of which"
        return f"{heading}{others}\n{self.table(width)}{notes}{detail}"

    def notes(self) -> list[str]:
        """Return which tensors have values that are NaN, infinite, or in A out of range of B's format.

        >>> from tilewright.conversion import diff
        >>> diff({"x": np.array([1, np.nan])}, {"x": np.array([1, np.nan])}).notes()
        ['x in A: 1 value is NaN', 'x in B: 1 value is NaN']
        """
        sides = [
            (f"{tensor.name or 'the array'} in {side}", counts, tensor.format_b)
            for tensor in self.tensors
            for side, counts in (("A", tensor.exceptional_a), ("B", tensor.exceptional_b))
        ]
        return list(note_exceptional(sides))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Comparison of {count_of(len(self.tensors), 'tensor')}: {'same' if self.same else 'different'}>"
