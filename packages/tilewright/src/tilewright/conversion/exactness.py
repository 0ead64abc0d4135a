# SPDX-License-Identifier: Apache-2.0
"""How values differ from their source: `Rounding` says how many a conversion has changed, and by how much at most.

It also counts exceptional values: NaN, infinity, and numbers beyond the range of a format. They are rare, so the pass
that compares values only looks for the largest magnitude, and values are counted where it exceeds the range.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..copying import native_library
from ..formats import Format, ScalarFormat
from ..formats.casts import out_of_range
from ..formats.scalar_format import find_scalar_format
from ..layout.box import Box

_LARGEST = sys.float_info.max
_CHUNK = 1 << 17  # elements at a time
_TYPE_CODES = {np.dtype(np.float32): 1, np.dtype(ml_dtypes.bfloat16): 3}  # of native/tilewright.h


@dataclass(frozen=True, slots=True)
class Rounding:
    """Of so many `values`, so many are `rounded`; the `largest_error` is the largest difference of finite numbers.

    `nan` and `infinite` count such values of the source, and `out_of_range` its finite values that are too large for
    the format that they are converted to.

    >>> print(Rounding(1024, 0, 0.0))
    exact
    >>> print(Rounding(1024, 3, 0.25) + Rounding(1024, 1, 0.5))
    4 of 2048 values rounded, largest error 0.5
    """

    values: int
    rounded: int = 0
    largest_error: float = 0.0
    nan: int = 0
    infinite: int = 0
    out_of_range: int = 0

    @property
    def is_exact(self) -> bool:
        """Return whether no value was changed.

        >>> Rounding(1024, 3, 0.25).is_exact
        False
        """
        return not self.rounded

    @property
    def exceptional(self) -> dict[str, int]:
        """Return how many values are NaN, infinite or out of range, where there are any.

        >>> Rounding(1024, nan=2).exceptional
        {'nan': 2}
        """
        counts = {"nan": self.nan, "infinite": self.infinite, "out_of_range": self.out_of_range}
        return {name: count for name, count in counts.items() if count}

    def __add__(self, other: Rounding) -> Rounding:
        error = max(self.largest_error, other.largest_error)
        counts = [getattr(self, name) + getattr(other, name) for name in ("nan", "infinite", "out_of_range")]
        return Rounding(self.values + other.values, self.rounded + other.rounded, error, *counts)

    def __str__(self) -> str:
        if self.is_exact:
            return "exact"
        return f"{self.rounded} of {self.values} values rounded, largest error {self.largest_error:.6g}"


_NAMES = {"nan": "NaN", "infinite": "infinite", "out_of_range": "out of range"}
_MAX_NAMED = 8  # tensors with exceptional values


def describe_exceptional(counts: Mapping[str, int], target: object = None) -> str:
    """Return exceptional values in words: their `counts` by name, and the format `target` that they are converted to.

    >>> describe_exceptional({"nan": 1, "out_of_range": 2}, "float16")
    '1 value is NaN, 2 values are out of range of float16'
    """
    parts = []
    for name, count in counts.items():
        of = f" of {target}" if name == "out_of_range" and target is not None else ""
        parts.append(f"{count} {'value is' if count == 1 else 'values are'} {_NAMES[name]}{of}")
    return ", ".join(parts)


def name_targets(*formats: object) -> str:
    """Return the formats that values are converted to, one after the other, as `describe_exceptional` names them.

    >>> name_targets("bfloat16", "bfloat8_b"), name_targets("bfloat16", "bfloat16")
    ('bfloat16 or bfloat8_b', 'bfloat16')
    """
    *others, last = dict.fromkeys(map(str, formats))
    return " or ".join([", ".join(others), last] if others else [last])


def note_exceptional(counts: Iterable[tuple[str, Mapping[str, int], object]]) -> Iterator[str]:
    """Yield a note for each tensor with exceptional values, from names, counts and formats; many are counted together.

    >>> list(note_exceptional([("x", {"nan": 3}, "bfloat16"), ("y", {}, "bfloat16")]))
    ['x: 3 values are NaN']
    """
    found = [(name, each, target) for name, each, target in counts if each]
    yield from [f"{name}: {describe_exceptional(each, target)}" for name, each, target in found[:_MAX_NAMED]]
    rest = [each for _, each, _ in found[_MAX_NAMED:]]
    if rest:
        sums = {name: total for name in _NAMES if (total := sum([each.get(name, 0) for each in rest]))}
        yield f"and {len(rest)} more tensors: {describe_exceptional(sums)}"


def count_exceptional(values: NDArray[Any], targets: Sequence[Format] = ()) -> Rounding:
    """Return how many values are NaN, infinite, or finite but out of range of one of the formats of `targets`.

    >>> count_exceptional(np.array([1.0, np.nan, 1e5, -np.inf]), [find_scalar_format("float16")]).exceptional
    {'nan': 1, 'infinite': 1, 'out_of_range': 1}
    """
    flat = values.reshape(-1)
    if not has_exceptional(flat, targets):
        return Rounding(0)
    total = Rounding(0)
    for start in range(0, flat.size, _CHUNK):
        with np.errstate(invalid="ignore"):  # of signalling NaNs
            wide = flat[start : start + _CHUNK].astype(np.float64)
        nan, infinite = np.isnan(wide), np.isinf(wide)
        beyond = np.zeros(wide.shape, np.bool_)
        for each in targets:
            beyond |= _exceeds(wide, each)
        counts = [int(np.count_nonzero(mask)) for mask in (nan, infinite, beyond & ~(nan | infinite))]
        total += Rounding(0, 0, 0.0, *counts)
    return total


def has_exceptional(values: NDArray[Any], targets: Sequence[Format] = ()) -> bool:
    """Return whether some values are NaN, infinite, or perhaps out of range of a format; quickly, from the largest.

    >>> has_exceptional(np.float32([1.0, 2.0])), has_exceptional(np.float32([1e5]), [find_scalar_format("float16")])
    (False, True)
    """
    return not _holds(targets, *_extremes(values))


def _holds(targets: Sequence[Format], least: float, largest: float) -> bool:
    """Return whether numbers between these two, perhaps NaN, are finite and in range of all formats."""
    ranges = [(-_LARGEST, _LARGEST), *map(_limits, targets)]
    return all(low <= least and largest <= high for low, high in ranges)


def _extremes(values: NDArray[Any]) -> tuple[float, float]:
    """Return the least and the largest value, NaN if there is one; of float32, perhaps of either sign."""
    element = find_scalar_format(values.dtype)
    if not values.size or element is None:
        return 0.0, 0.0
    if element.kind != "float":
        return values.min().item(), values.max().item()
    library = native_library.load_library()
    if library is not None and values.dtype == np.float32 and values.flags.c_contiguous:
        largest = (ctypes.c_float * 2)()
        address = values.ctypes.data
        library.tw_differences(_TYPE_CODES[values.dtype], address, address, values.size, ctypes.addressof(largest))
        return -largest[1], largest[1]
    # codes order like magnitudes: of positive numbers as signed integers, of negative ones as unsigned integers
    is_odd = element.name.endswith("fnuz")  # where the code of a negative zero is NaN
    codes = []
    for start in range(0, values.size, _CHUNK):
        signed = values[start : start + _CHUNK].view(f"i{element.itemsize}")
        codes += [signed.max(), signed.view(f"u{element.itemsize}").max().view(signed.dtype)]
        codes += [signed.min()] if is_odd else []
    found = np.array(codes).view(element.dtype).astype(np.float64)
    return float(found.min()), float(found.max())


def _limits(target: Format) -> tuple[float, float]:
    if target.has_blocks and target.tensor_scaled:  # its scale is chosen for the values
        return -inf, inf
    return target.limits.lowest, target.limits.highest


def _exceeds(wide: NDArray[np.float64], target: Format) -> NDArray[np.bool_]:
    """Return which numbers are too large for a format, after rounding."""
    if not target.has_blocks:
        return out_of_range(wide, target)
    highest = _limits(target)[1]
    result: NDArray[np.bool_] = np.abs(wide) > highest
    return result


def compare_values(expected: NDArray[Any], actual: NDArray[Any], targets: Sequence[Format] = ()) -> Rounding:
    """Return how `actual` values differ from `expected` ones; a NaN equals a NaN.

    Exceptional values among the expected ones are counted, also those out of range of the formats of `targets`.

    >>> print(compare_values(np.array([1.0, 2.0, np.nan]), np.array([1.0, 2.5, np.nan])))
    1 of 3 values rounded, largest error 0.5
    """
    library, code = native_library.load_library(), _TYPE_CODES.get(expected.dtype)
    is_contiguous = expected.flags.c_contiguous and actual.flags.c_contiguous
    if library is not None and code is not None and expected.dtype == actual.dtype and is_contiguous:
        largest = (ctypes.c_float * 2)()
        addresses = (expected.ctypes.data, actual.ctypes.data, expected.size, ctypes.addressof(largest))
        found = Rounding(expected.size, int(library.tw_differences(code, *addresses)), largest[0])
        return found if _holds(targets, -largest[1], largest[1]) else found + count_exceptional(expected, targets)
    a, b = expected.astype(np.float64), actual.astype(np.float64)
    differs = (a != b) & ~(np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        away = np.abs(a[differs] - b[differs])
    found = Rounding(a.size, int(differs.sum()), float(away[np.isfinite(away)].max(initial=0.0)))
    return found + count_exceptional(expected, targets)


def describe_difference(expected: NDArray[Any], actual: NDArray[Any], box: Box) -> str:
    """Return how many `actual` values in a `box` of a tensor are not the `expected` ones, and which is the first.

    >>> print(describe_difference(np.zeros((2, 4)), np.eye(2, 4), Box((32, 0), (2, 4))))
    2 of 8 values, the first at (32, 0): 1 instead of 0
    """
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        a, b = expected.astype(np.float64), actual.astype(np.float64)
    differs = (a != b) & ~(np.isnan(a) & np.isnan(b))
    if not differs.any():
        return "only bytes of padding, or signs of zeros"
    at = tuple([int(places[0]) for places in np.nonzero(differs)])
    place = ", ".join([str(start + k) for start, k in zip(box.offset, at, strict=True)])
    many = f"{np.count_nonzero(differs)} of {a.size} {'value' if a.size == 1 else 'values'}"
    return f"{many}, the first at ({place}): {b[at]:.6g} instead of {a[at]:.6g}"


def may_round(source: Format, target: Format) -> bool:
    """Return whether a value of one format may not exist in another.

    >>> from tilewright import format_of
    >>> may_round(format_of("bfloat16"), format_of("float32")), may_round(format_of("float16"), format_of("bfloat16"))
    (False, True)
    >>> may_round(format_of("bfloat16"), format_of("bfloat8_b")), may_round(format_of("int32"), format_of("int64"))
    (True, False)
    """
    if source == target:
        return False
    if source.has_blocks or target.has_blocks:
        return True
    if target.kind != "float":
        return source.kind == "float"  # integers that do not fit are refused
    if source.kind != "float":
        return bool(source.bits > _float_info(target).nmant + 1)
    inner, outer = _float_info(source), _float_info(target)
    return bool(inner.nmant > outer.nmant or inner.maxexp > outer.maxexp or inner.minexp < outer.minexp)


def holds_values(target: Format, element: ScalarFormat) -> bool:
    """Return whether every value of a target, a scalar or one with shared exponents of 8 bits, is one of `element`.

    >>> from tilewright import format_of
    >>> (
    ...     holds_values(format_of("bfloat8_b"), format_of("bfloat16")),
    ...     holds_values(format_of("mxfp4"), format_of("float16")),
    ... )
    (True, False)
    """
    if target.has_blocks:
        return target.aligned and element.name in ("bfloat16", "float32")
    return not may_round(target, element)


def _float_info(element: ScalarFormat) -> Any:
    finfo: Any = ml_dtypes.finfo  # which has no types
    return finfo(element.dtype)
