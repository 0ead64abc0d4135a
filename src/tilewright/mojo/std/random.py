# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.random`: numbers of a generator of our own; with the same seed, other numbers than Mojo's."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtype import DType
from ..pointer import Pointer
from ..simd import UInt64, make_scalar

__all__ = [
    "rand",
    "randint",
    "randn",
    "randn_float64",
    "random_float64",
    "random_si64",
    "random_ui64",
    "seed",
    "shuffle",
]

_generators = [np.random.default_rng(0)]  # the one in use


def seed(*value: Any) -> None:
    """Start the generator again: from a number, or from anywhere.

    >>> seed(7)
    >>> first = random_float64()
    >>> seed(7)
    >>> random_float64() == first
    True
    """
    _generators[0] = np.random.default_rng(int(value[0]) & (2**64 - 1) if value else None)


def random_float64(min: Any = 0, max: Any = 1) -> Any:  # noqa: A002  (Mojo's names)
    """Return a number from `min` up to `max`.

    >>> 0 <= random_float64() < 1
    True
    """
    return make_scalar(DType.float64, float(_generators[0].uniform(float(min), float(max))))


def random_si64(min: Any, max: Any) -> Any:  # noqa: A002
    """Return an integer from `min` to `max`.

    >>> random_si64(3, 3)
    Int64(3)
    """
    return make_scalar(DType.int64, int(_generators[0].integers(int(min), int(max), endpoint=True)))


def random_ui64(min: Any, max: Any) -> Any:  # noqa: A002
    """Return an integer from `min` to `max`, of type UInt64.

    >>> random_ui64(3, 3)
    UInt64(3)
    """
    return UInt64(int(_generators[0].integers(int(min), int(max), dtype=np.uint64, endpoint=True)))


def randn_float64(mean: Any = 0, standard_deviation: Any = 1) -> Any:
    """Return a number of the normal distribution.

    >>> randn_float64(2, 0)
    Float64(2.0)
    """
    return make_scalar(DType.float64, float(_generators[0].normal(float(mean), float(standard_deviation))))


def _fill(ptr: Pointer, numbers: Any) -> None:
    for k, number in enumerate(numbers.tolist()):
        ptr[k] = number


def rand(ptr: Pointer, size: Any, *, min: Any = 0.0, max: Any = 1.0, **_: Any) -> None:  # noqa: A002
    """Write numbers from `min` up to `max` to `size` elements.

    >>> from tilewright.mojo.pointer import alloc
    >>> rand(alloc["float32"](4), 4)
    """
    _fill(ptr, _generators[0].uniform(float(min), float(max), int(size)))


def randint(ptr: Pointer, size: Any, low: Any, high: Any) -> None:
    """Write integers from `low` to `high` to `size` elements.

    >>> from tilewright.mojo.pointer import alloc
    >>> randint(alloc["int8"](4), 4, 0, 9)
    """
    _fill(ptr, _generators[0].integers(int(low), int(high), int(size), endpoint=True))


def randn(ptr: Pointer, size: Any, mean: Any = 0, standard_deviation: Any = 1) -> None:
    """Write numbers of the normal distribution to `size` elements.

    >>> from tilewright.mojo.pointer import alloc
    >>> randn(alloc["float32"](4), 4)
    """
    _fill(ptr, _generators[0].normal(float(mean), float(standard_deviation), int(size)))


def shuffle(items: Any) -> None:
    """Put the elements of a list into a random order.

    >>> items = [1, 2, 3]
    >>> shuffle(items)
    >>> sorted(items)
    [1, 2, 3]
    """
    order = _generators[0].permutation(len(items)).tolist()
    values = [items[k] for k in order]
    for k, value in enumerate(values):
        items[k] = value
