# SPDX-License-Identifier: Apache-2.0
"""How many steps of a number format lie between two values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formats import BlockFormat, Format, ScalarFormat, cast

Floats = NDArray[np.float64]
_PRECISION = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "float8_e4m3": 4, "float8_e5m2": 3}


def coarser(a: Format, b: Format) -> Format:
    """Return the format whose steps two tensors are compared in: the one with fewer of them.

    >>> from tilewright import format_of
    >>> coarser(format_of("float32"), format_of("bfloat16")), coarser(format_of("int32"), format_of("float32"))
    (format_of('bfloat16'), format_of('float32'))
    """
    for each in (a, b):
        if isinstance(each, BlockFormat):
            other = b if each is a else a
            return other if isinstance(other, BlockFormat) and other.bits < each.bits else each
    floats = [each for each in (a, b) if each.name in _PRECISION]
    return min(floats, key=lambda each: _PRECISION[each.name]) if floats else b


def ulps_apart(a: Any, b: Any, unit: Format, steps: Any = None, finite: bool = False) -> Floats:
    """Return how many steps of a format lie between values: counted if it is scalar, measured in `steps` for blocks.

    Both are rounded to a scalar format first. NaN is no step from NaN, and infinitely many from anything else;
    whoever knows that all are `finite` can say so.

    >>> from tilewright import format_of
    >>> ulps_apart(np.float32([1.0, 1.0]), np.float32([1.01, -1.0]), format_of("bfloat16")).tolist()
    [1.0, 32512.0]
    >>> ulps_apart(np.float32([1.0]), np.float32([1.25]), format_of("bfloat8_b"), np.float32([0.5])).tolist()
    [0.5]
    """
    if isinstance(unit, ScalarFormat) and unit.name in _PRECISION:
        one, other = (_ranks(np.asarray(each), unit) for each in (a, b))
        distance = np.maximum(one, other) - np.minimum(one, other)  # may wrap around, and is right without its sign
        apart: Floats = distance.view(f"u{unit.itemsize}").astype(np.float64)
    else:
        with np.errstate(all="ignore"):
            apart = np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64))
            if steps is not None:
                apart = np.where(apart == 0.0, 0.0, apart / steps)
    return apart if finite else settled(apart, a, b)


def settled(apart: Floats, a: Any, b: Any) -> Floats:
    """Return distances in which what is the same is at none, also NaN and infinity, and NaN is far from the rest.

    >>> settled(np.array([np.nan, np.nan]), np.array([np.nan, 1]), np.array([np.nan, np.nan])).tolist()
    [0.0, inf]
    """
    one_nan, other_nan = np.isnan(a), np.isnan(b)
    same = (np.asarray(a) == np.asarray(b)) | (one_nan & other_nan)
    far = (one_nan != other_nan) | np.isnan(apart)
    found: Floats = np.where(same, 0.0, np.where(far, np.inf, apart))
    return found


def _ranks(values: NDArray[Any], unit: ScalarFormat) -> NDArray[Any]:
    """Return the place of each value in the order of all numbers of a format; both zeros are at 0."""
    rounded = values if values.dtype == unit.dtype else cast(values, unit)
    bits = np.ascontiguousarray(rounded).view(f"i{unit.itemsize}")
    sign = bits >> (unit.bits - 1)  # -1 or 0
    magnitude = bits & np.iinfo(bits.dtype).max
    ranks: NDArray[Any] = (magnitude ^ sign) - sign
    return ranks
