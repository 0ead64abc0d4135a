# SPDX-License-Identifier: Apache-2.0
"""How values differ from their source: `Rounding` says how many a conversion has changed, and by how much at most."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from ..copying import native_library
from ..formats import Format, ScalarFormat
from ..layout.box import Box
from ..ndarrays import NDArray, ml_dtypes, np

_TYPE_CODES = {np.dtype(np.float32): 1, np.dtype(ml_dtypes.bfloat16): 3}  # of native/tilewright.h


@dataclass(frozen=True, slots=True)
class Rounding:
    """Of so many `values`, so many are `rounded`; the `largest_error` is the largest difference of finite numbers.

    >>> print(Rounding(1024, 0, 0.0))
    exact
    >>> print(Rounding(1024, 3, 0.25) + Rounding(1024, 1, 0.5))
    4 of 2048 values rounded, largest error 0.5
    """

    values: int
    rounded: int = 0
    largest_error: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Return whether no value was changed.

        >>> Rounding(1024, 3, 0.25).is_exact
        False
        """
        return not self.rounded

    def __add__(self, other: Rounding) -> Rounding:
        error = max(self.largest_error, other.largest_error)
        return Rounding(self.values + other.values, self.rounded + other.rounded, error)

    def __str__(self) -> str:
        if self.is_exact:
            return "exact"
        return f"{self.rounded} of {self.values} values rounded, largest error {self.largest_error:.6g}"


def compare_values(expected: NDArray[Any], actual: NDArray[Any]) -> Rounding:
    """Return how `actual` values differ from `expected` ones; a NaN equals a NaN.

    >>> print(compare_values(np.array([1.0, 2.0, np.nan]), np.array([1.0, 2.5, np.nan])))
    1 of 3 values rounded, largest error 0.5
    """
    library, code = native_library.load_library(), _TYPE_CODES.get(expected.dtype)
    is_contiguous = expected.flags.c_contiguous and actual.flags.c_contiguous
    if library is not None and code is not None and expected.dtype == actual.dtype and is_contiguous:
        largest = ctypes.c_float()
        addresses = (expected.ctypes.data, actual.ctypes.data, expected.size, ctypes.addressof(largest))
        return Rounding(expected.size, int(library.tw_differences(code, *addresses)), largest.value)
    a, b = expected.astype(np.float64), actual.astype(np.float64)
    differs = (a != b) & ~(np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        away = np.abs(a[differs] - b[differs])
    return Rounding(a.size, int(differs.sum()), float(away[np.isfinite(away)].max(initial=0.0)))


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
