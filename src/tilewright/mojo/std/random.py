# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.random`: numbers of a generator of our own; with the same seed, other numbers than Mojo's."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

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

_generators = [Random(0)]  # the one in use


def seed(*value: Any) -> None:
    """Start the generator again: from a number, or from anywhere.

    >>> seed(7)
    >>> first = random_float64()
    >>> seed(7)
    >>> random_float64() == first
    True
    """
    _generators[0] = Random(int(value[0]) & (2**64 - 1) if value else None)


def random_float64(min: Any = 0, max: Any = 1) -> Any:  # noqa: A002  (Mojo's names)
    """Return a number from `min` up to `max`.

    >>> 0 <= random_float64() < 1
    True
    """
    return make_scalar(DType.float64, _generators[0].uniform(float(min), float(max)))


def random_si64(min: Any, max: Any) -> Any:  # noqa: A002
    """Return an integer from `min` to `max`.

    >>> random_si64(3, 3)
    Int64(3)
    """
    return make_scalar(DType.int64, _generators[0].randint(int(min), int(max)))


def random_ui64(min: Any, max: Any) -> Any:  # noqa: A002
    """Return an integer from `min` to `max`, of type UInt64.

    >>> random_ui64(3, 3)
    UInt64(3)
    """
    return UInt64(_generators[0].randint(int(min), int(max)))


def randn_float64(mean: Any = 0, standard_deviation: Any = 1) -> Any:
    """Return a number of the normal distribution.

    >>> randn_float64(2, 0)
    Float64(2.0)
    """
    return make_scalar(DType.float64, _generators[0].gauss(float(mean), float(standard_deviation)))


def _fill(ptr: Pointer, size: Any, draw: Callable[[Any, Any], Any], *limits: Any) -> None:
    for k in range(int(size)):
        ptr[k] = draw(*limits)


def rand(ptr: Pointer, size: Any, *, min: Any = 0.0, max: Any = 1.0, **_: Any) -> None:  # noqa: A002
    """Write numbers from `min` up to `max` to `size` elements.

    >>> from tilewright.mojo.pointer import alloc
    >>> rand(alloc["float32"](4), 4)
    """
    _fill(ptr, size, _generators[0].uniform, float(min), float(max))


def randint(ptr: Pointer, size: Any, low: Any, high: Any) -> None:
    """Write integers from `low` to `high` to `size` elements.

    >>> from tilewright.mojo.pointer import alloc
    >>> randint(alloc["int8"](4), 4, 0, 9)
    """
    _fill(ptr, size, _generators[0].randint, int(low), int(high))


def randn(ptr: Pointer, size: Any, mean: Any = 0, standard_deviation: Any = 1) -> None:
    """Write numbers of the normal distribution to `size` elements.

    >>> from tilewright.mojo.pointer import alloc
    >>> randn(alloc["float32"](4), 4)
    """
    _fill(ptr, size, _generators[0].gauss, float(mean), float(standard_deviation))


def shuffle(items: Any) -> None:
    """Put the elements of a list into a random order.

    >>> items = [1, 2, 3]
    >>> shuffle(items)
    >>> sorted(items)
    [1, 2, 3]
    """
    values = [items[k] for k in range(len(items))]
    _generators[0].shuffle(values)
    for k, value in enumerate(values):
        items[k] = value
