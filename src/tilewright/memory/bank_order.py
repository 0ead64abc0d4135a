# SPDX-License-Identifier: Apache-2.0
"""The order of L1 banks: the runtime shuffles them, always in the same way.

It calls libstdc++'s `std::shuffle` with `default_random_engine` seeded with 0, so the order depends on nothing but the
number of banks. Two swaps share one draw of the generator, as that library does while the square of the count fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

_MODULUS = 2147483647  # minstd_rand0: x -> 16807 x mod 2^31 - 1, from 1
_MULTIPLIER = 16807
_RANGE = _MODULUS - 2  # the generator yields 1 to _MODULUS - 1


def _draws() -> Iterator[int]:
    state = 1
    while True:
        state = _MULTIPLIER * state % _MODULUS
        yield state - 1


def _below(limit: int, draws: Iterator[int]) -> int:
    """Return a number from 0 to limit - 1; draws that would favour small ones are thrown away."""
    scale = _RANGE // limit
    return next(draw for draw in draws if draw < limit * scale) // scale


@lru_cache(maxsize=64)
def shuffled_banks(count: int) -> tuple[int, ...]:
    """Return the bank of each core, cores counted row by row.

    >>> shuffled_banks(8)
    (2, 7, 1, 6, 5, 0, 4, 3)
    """
    draws = _draws()
    banks = list(range(count))
    k = 1
    if count % 2 == 0 and count:
        j = _below(2, draws)
        banks[1], banks[j] = banks[j], banks[1]
        k = 2
    while k < count:
        first, second = divmod(_below((k + 1) * (k + 2), draws), k + 2)
        banks[k], banks[first] = banks[first], banks[k]
        banks[k + 1], banks[second] = banks[second], banks[k + 1]
        k += 2
    return tuple(banks)
