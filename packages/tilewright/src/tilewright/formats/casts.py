# SPDX-License-Identifier: Apache-2.0
"""`cast`: conversions between scalar formats in NumPy. The other engines must give the same bits."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import FormatError
from .encodings import E4M3, E5M2, SmallFloat
from .rounding import Floats
from .scalar_format import (
    SCALAR_FORMATS,
    FormatLike,
    ScalarFormat,
    bfloat16,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    float64,
    scalar_format_of,
)

OnOverflow: TypeAlias = Literal["saturate", "raise"]
Singles: TypeAlias = NDArray[np.float32]

_FLOAT8: dict[ScalarFormat, SmallFloat] = {float8_e4m3: E4M3, float8_e5m2: E5M2}


def cast(array: ArrayLike, target: FormatLike, on_overflow: OnOverflow = "saturate") -> NDArray[Any]:
    """Return a copy of `array` in the scalar format `target`.

    The rules:

    1. To the same format: the bits are copied.
    2. To a float: round to nearest, ties to even. float64 and integers become float32 first, then the smaller float:
       two roundings for float16, bfloat16 and float8, as in torch. Subnormals are preserved.
    3. Too large for float32, float16 or bfloat16: infinity. Too large or infinite for float8: the largest number of
       that sign (448 and 57344), although float8_e5m2 has an infinity.
    4. To float8_e4m3, a magnitude below 2^-6 becomes a zero of the same sign: no subnormals are produced.
       float8_e5m2 has subnormals.
    5. NaN becomes the quiet NaN with a clear sign and no payload (0x7FC0 in bfloat16, 0x7F in float8_e4m3). Only
       bfloat16 to float32 preserves sign and payload.
    6. Integer to integer keeps the low bits. Float to integer truncates; out of range it gives the nearest limit, and
       NaN gives 0.
    7. To bool: everything but zero is True, including NaN. From bool: 0 and 1.

    With `on_overflow="raise"`, an element that is out of range by rule 3 or 6 raises a `FormatError` instead. An
    infinity that stays an infinity is not an overflow.

    >>> cast(np.float32([1.00390625, 1.01171875, np.nan]), "bfloat16").view(np.uint16).tolist()
    [16256, 16258, 32704]
    >>> cast(np.float32([300.7, -5.0, np.nan]), "uint8").tolist()
    [255, 0, 0]
    >>> cast(np.array([300, -1]), "uint8").tolist()
    [44, 255]
    """
    values = np.asarray(array)
    source, wanted = scalar_format_of(values), scalar_format_of(target)
    if on_overflow not in ("saturate", "raise"):
        raise FormatError(f"expected on_overflow 'saturate' or 'raise', got {on_overflow!r}")
    shape = values.shape
    values = np.atleast_1d(values).astype(source.dtype, copy=False)  # in the byte order of this machine
    if source == wanted:
        return values.reshape(shape).copy()
    with np.errstate(all="ignore"):
        result, lost = _convert(values, source, wanted, on_overflow == "raise")
    if on_overflow == "raise" and lost is not None and lost.any():
        _raise_overflow(values.reshape(shape), lost.reshape(shape), source, wanted)
    return result.reshape(shape)


def fit_values(values: ArrayLike, target: FormatLike) -> NDArray[Any]:
    """Return numbers in the scalar format `target`; raise a FormatError if one of them is not a value of it.

    `values` is a number or an array. Integer formats take whole numbers within their limits, bool takes 0 and 1. Float
    formats round to nearest, and refuse a finite number that rounds to one beyond their limits, or an infinity that
    they do not have. `cast` converts such numbers instead.

    >>> fit_values([1.0, 2], "int8"), fit_values(0.1, "bfloat16").item()
    (array([1, 2], dtype=int8), 0.10009765625)
    >>> try:
    ...     fit_values([7, 300], "uint8")
    ... except FormatError as problem:
    ...     print(str(problem).partition(";")[0])
    300 at 1 is not a value of uint8, which holds whole numbers from 0 to 255
    """
    wanted = scalar_format_of(target)
    types, low, high = direct_range(wanted)
    number: Any = values
    kind: type = number.__class__
    if kind in types and low <= number <= high:
        return np.array(number, wanted.dtype)
    array = np.asarray(values)
    if array.dtype == wanted.dtype:
        return array
    if array.dtype.kind in "Oc" or array.dtype == np.longdouble:
        array = _narrow(array, wanted)
    elif array.dtype.kind in "USMm":
        raise TypeError(f"expected numbers of {wanted}, got {values!r}")
    source = scalar_format_of(array)
    with np.errstate(all="ignore"):
        result, lost = _fit(array.reshape(-1).astype(source.dtype, copy=False), source, wanted)
    if lost.any():
        _raise_misfit(array, lost.reshape(array.shape), wanted)
    return result.reshape(array.shape)


def _fit(values: NDArray[Any], source: ScalarFormat, target: ScalarFormat) -> tuple[NDArray[Any], Any]:
    """Return the values in another format, and which of them are not values of it."""
    if target.kind == "float":
        result = values.astype(target.dtype)
        if source.kind != "float":
            return result, ~np.isfinite(result)
        return result, (np.isfinite(values) != np.isfinite(result)) | (np.isinf(values) != np.isinf(result))
    if target.kind == "bool":
        result = values != 0
    elif source.kind == "float":
        values = _as_float64(values, source)
        result, lost = _float_to_integer(values, target)
        return result, lost | (result != values)
    else:
        result = values.astype(target.dtype)
        if source.kind != "bool":
            return result, _out_of_range(values, target)
    return result, result != values


@lru_cache(maxsize=len(SCALAR_FORMATS))
def direct_range(target: ScalarFormat) -> tuple[frozenset[type], float, float]:
    """Return (types, low, high): a number of one of these types from low to high fits `target` without a closer look.

    >>> types, low, high = direct_range(scalar_format_of("int8"))
    >>> int in types, float in types, low, high
    (True, False, -128, 127)
    """
    # not the smaller floats of NumPy: the limits of a larger format overflow when they are compared with them
    types = {int, bool} if target.kind != "float" else {int, bool, float, np.float64}
    return frozenset(types), target.limits.lowest, target.limits.highest


def _narrow(array: NDArray[Any], target: ScalarFormat) -> NDArray[Any]:
    """Return Python objects, long doubles or complex numbers as float64 or as `target`, after checking them."""
    lost = np.array([not _is_value(number, target) for number in array.ravel().tolist()], bool)
    if lost.any():
        _raise_misfit(array, lost.reshape(array.shape), target)
    return array.astype(np.float64 if target.kind == "float" else target.dtype)


def _is_value(number: Any, target: ScalarFormat) -> bool:
    if isinstance(number, complex | np.complexfloating):
        raise FormatError(f"{number} is not a value of {target}: it is complex; store its real or imaginary part")
    if not isinstance(number, Real):
        raise TypeError(f"expected a number of {target}, got {type(number).__name__} {number!r}")
    real: Any = number
    within = bool(target.limits.lowest <= real <= target.limits.highest)
    if target.kind == "float":
        return within or bool(real != real or abs(real) == inf)
    return within and bool(real == int(real))


def _raise_misfit(values: NDArray[Any], lost: NDArray[np.bool_], target: ScalarFormat) -> None:
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(lost)), lost.shape))
    where = f" at {first[0] if len(first) == 1 else first}" if first else ""
    number = values[first]
    holds = {"bool": "0 and 1", "float": f"numbers from {target.limits}"}.get(
        target.kind, f"whole numbers from {target.limits}"
    )
    raise FormatError(
        f"{getattr(number, 'item', lambda: number)()}{where} is not a value of {target}, which holds {holds}; use one"
        f" that fits, or convert on purpose: tilewright.formats.cast(values, {target.name!r})"
    )


def to_float32(values: NDArray[Any]) -> Singles:
    """Return the values as float32 by the rules of `cast`, without a copy if they are float32 already.

    >>> to_float32(np.array([1, 2], dtype=np.int8)).dtype
    dtype('float32')
    """
    source = scalar_format_of(values)
    with np.errstate(all="ignore"):
        return _as_float32(values.astype(source.dtype, copy=False), source)


def out_of_range(values: NDArray[Any], target: ScalarFormat) -> NDArray[np.bool_]:
    """Return which elements `cast` would give the nearest limit, an infinity or other bits, since they do not fit.

    >>> out_of_range(np.array([65519.0, 65520.0, np.inf]), float16).tolist()
    [False, True, False]
    """
    source = scalar_format_of(values)
    if source == target:
        return np.zeros(values.shape, np.bool_)
    with np.errstate(all="ignore"):
        lost = _convert(values, source, target, check=True)[1]
    return np.zeros(values.shape, np.bool_) if lost is None else lost


def _convert(
    values: NDArray[Any], source: ScalarFormat, target: ScalarFormat, check: bool
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return the converted values and, if `check`, a mask of the elements that were out of range."""
    if target.kind == "bool":
        return (_as_float64(values, source) if source.kind == "float" else values) != 0, None
    if target.kind == "float":
        return _to_float(values, source, target, check)
    if source.kind == "float":
        return _float_to_integer(_as_float64(values, source), target)
    return values.astype(target.dtype), _out_of_range(values, target) if check and source.kind != "bool" else None


def _to_float(
    values: NDArray[Any], source: ScalarFormat, target: ScalarFormat, check: bool
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    if target == float64:
        return _as_float64(values, source), None
    single = _as_float32(values, source)
    if target in _FLOAT8:
        return _to_float8(single, target, check)
    if target == float32:
        result: NDArray[Any] = single
    elif target == bfloat16:
        result = _to_bfloat16(single)
    else:
        result = single.astype(np.float16)
        result[np.isnan(single)] = np.nan
    if not check:
        return result, None
    finite = np.isfinite(_as_float64(values, source)) if source.kind == "float" else np.bool_(True)
    return result, finite & np.isinf(_as_float32(result, target))


def _to_bfloat16(single: Singles) -> NDArray[Any]:
    bits = single.view(np.uint32)
    # Adding just under half of the discarded part, plus one where the rest is odd, rounds ties to even.
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(single), 0x7FC0, rounded).astype(np.uint16).view(bfloat16.dtype)


def _to_float8(single: Singles, target: ScalarFormat, check: bool) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    encoding = _FLOAT8[target]
    wide = single.astype(np.float64)
    limited = np.where(np.isinf(wide), np.copysign(encoding.largest, wide), wide)
    if target == float8_e4m3:
        tiny = np.abs(limited) < 2.0**encoding.lowest_exponent
        limited = np.where(tiny, np.copysign(0.0, limited), limited)
    lost = None
    if check:
        lost = np.isinf(wide) | encoding.overflows(np.where(np.isfinite(wide), wide, 0.0))
    return encoding.encode(limited).view(target.dtype), lost


def _float_to_integer(wide: Floats, target: ScalarFormat) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    lowest, highest = int(target.limits.lowest), int(target.limits.highest)
    whole = np.trunc(wide)
    # highest + 1 is a power of two and lowest one or zero, so both are exact in float64 even for 64-bit integers.
    high, low, nan = whole >= float(highest + 1), whole < float(lowest), np.isnan(whole)
    lost = high | low | nan
    result = np.where(lost, 0.0, whole).astype(target.dtype)
    result[high], result[low] = highest, lowest
    return result, lost


def _out_of_range(values: NDArray[Any], target: ScalarFormat) -> NDArray[np.bool_]:
    """Return which integers do not fit the target, comparing within the dtype of the source."""
    own = np.iinfo(values.dtype)
    low = max(int(target.limits.lowest), int(own.min))
    high = min(int(target.limits.highest), int(own.max))
    below: NDArray[np.bool_] = values < values.dtype.type(low)
    above: NDArray[np.bool_] = values > values.dtype.type(high)
    return below | above


def _as_float32(values: NDArray[Any], source: ScalarFormat) -> Singles:
    if source == float32:
        return values
    if source == bfloat16:
        return (values.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if source in _FLOAT8:
        return _canonicalize_nan(_FLOAT8[source].decode(values.view(np.uint8)).astype(np.float32))
    single = values.astype(np.float32)
    return _canonicalize_nan(single) if source in (float16, float64) else single


def _as_float64(values: NDArray[Any], source: ScalarFormat) -> Floats:
    if source == float64:
        return values
    if source.kind != "float":
        return values.astype(np.float64)
    return _canonicalize_nan(_as_float32(values, source).astype(np.float64))


def _canonicalize_nan(values: NDArray[Any]) -> NDArray[Any]:
    """Give every NaN the same bits, in place: what happens to a payload depends on the processor."""
    values[np.isnan(values)] = np.nan
    return values


def _raise_overflow(values: NDArray[Any], lost: NDArray[np.bool_], source: ScalarFormat, target: ScalarFormat) -> None:
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(lost)), lost.shape))
    where = f" at {first[0] if len(first) == 1 else first}" if first else ""
    instead = "keep the low bits" if source.kind != "float" and target.kind != "float" else "take the nearest limit"
    if target in (float32, float16, bfloat16):
        instead = "get an infinity"
    elif target.kind != "float" and source.kind == "float":
        instead += " (0 for NaN)"
    raise FormatError(
        f"cannot cast {source} to {target}: {values[first].item()}{where} is outside {target.limits}; "
        f"use a wider format, or on_overflow='saturate' to {instead}"
    )
