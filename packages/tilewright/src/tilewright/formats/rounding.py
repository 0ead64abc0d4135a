# SPDX-License-Identifier: Apache-2.0
"""Rounding of magnitudes, counted in steps of a format, to a whole number of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError

Floats: TypeAlias = NDArray[np.float64]
Rounding: TypeAlias = Literal["nearest_even", "truncate", "stochastic"]
Rounder: TypeAlias = Callable[[Floats], Floats]

ROUNDINGS = ("nearest_even", "truncate", "stochastic")

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


def validate_rounding(rounding: Any, seed: Any) -> None:
    """Raise a FormatError unless `rounding` is known, with a `seed` if and only if it is stochastic.

    >>> validate_rounding("stochastic", 7)
    """
    if rounding not in ROUNDINGS:
        raise FormatError(f"unknown rounding {rounding!r}; use one of {', '.join(map(repr, ROUNDINGS))}")
    if rounding != "stochastic":
        if seed is not None:
            raise FormatError(
                f"rounding {rounding!r} takes no seed, got {seed!r}; leave it out, or use rounding='stochastic'"
            )
    elif isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise FormatError(f"stochastic rounding needs a seed from 0 to 2^64 - 1 to be reproducible, got {seed!r}")


def make_rounder(rounding: Rounding, seed: int | None, first: int, shape: tuple[int, ...]) -> Rounder:
    """Return a function that rounds an array of magnitudes of this `shape` to whole numbers.

    `first` is the position of its first element in the complete array. Stochastic rounding rounds up with a
    probability equal to the fraction, so that the expected result is the value itself.

    >>> make_rounder("nearest_even", None, 0, (4,))(np.array([0.5, 1.5, 2.5, 2.75])).tolist()
    [0.0, 2.0, 2.0, 3.0]
    >>> make_rounder("stochastic", 7, 0, (4,))(np.array([0.5, 0.5, 0.5, 3.0])).tolist()
    [0.0, 1.0, 0.0, 3.0]
    """
    if rounding == "nearest_even":
        return np.rint
    if rounding == "truncate":
        return np.floor
    threshold = noise(seed or 0, first, int(np.prod(shape, dtype=np.int64))).reshape(shape)

    def stochastic(values: Floats) -> Floats:
        whole = np.floor(values)
        return whole + (threshold < values - whole)

    return stochastic


def noise(seed: int, first: int, count: int) -> Floats:
    """Return `count` random numbers in [0, 1) that depend only on the seed and on their positions from `first` on.

    This is the finaliser of SplitMix64 applied to a counter, without generator state: an array gets the same noise in
    one piece or in several, on any number of threads, with every version of NumPy.

    >>> noise(7, 0, 4)[2:].tolist() == noise(7, 2, 2).tolist()
    True
    """
    # The seed is mixed, too: otherwise the noise of seed 8 would be that of seed 7, shifted.
    start = _mix(np.array([seed], dtype=np.uint64))
    position = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    # 53 bits, as many as a float64 holds, so that the distribution is uniform.
    return (_mix(position * _GOLDEN + start) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    for shift, factor in _MIX:
        words = (words ^ (words >> shift)) * factor
    return words ^ (words >> np.uint64(31))
