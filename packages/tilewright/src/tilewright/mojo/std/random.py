# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.random`: numbers of a generator of our own; with the same seed, other numbers than Mojo's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from ..brackets import Bracketed
from ..memory import Pointer, Span
from ..simd import DType, UInt64, make_scalar

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


@contextmanager
def own_generator() -> Iterator[None]:
    """Give what runs inside a `with` block a generator of its own, as every process of Mojo has one.

    >>> with own_generator():
    ...     seed(7)
    """
    before = _generators[0]
    _generators[0] = Random(0)
    try:
        yield
    finally:
        _generators[0] = before


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


class _Filler(Bracketed[None]):
    """A function that fills memory: `f[dtype](pointer, size, ...)` or `f(span, ...)`; the memory has the type.

    >>> from tilewright.mojo.memory import alloc
    >>> rand(alloc["float32"](4), 4)
    """


def _fill(target: Any, arguments: tuple[Any, ...], draw: Callable[..., Any]) -> None:
    """Write what `draw` returns for the arguments to each element of a span, or to so many at a pointer."""
    if isinstance(target, Pointer):
        target, arguments = Span(ptr=target, length=arguments[0]), arguments[1:]
    for k in range(len(target)):
        target[k] = draw(*arguments)


def _rand(_: Any, _parameters: Any, target: Any, *size: Any, min: Any = 0.0, max: Any = 1.0, **_options: Any) -> None:  # noqa: A002
    _fill(target, size, lambda: _generators[0].uniform(float(min), float(max)))


def _randint(_: Any, _parameters: Any, target: Any, *arguments: Any, **named: Any) -> None:
    bounds = [*arguments, *[named[name] for name in ("size", "low", "high") if name in named]]
    _fill(target, tuple(bounds), lambda low, high: _generators[0].randint(int(low), int(high)))


_NORMAL = (("mean", 0), ("standard_deviation", 1))


def _randn(_: Any, _parameters: Any, target: Any, *arguments: Any, **named: Any) -> None:
    size, shape = (arguments[:1], arguments[1:]) if isinstance(target, Pointer) else ((), arguments)
    mean, deviation = (*shape, *[named.get(name, default) for name, default in _NORMAL[len(shape) :]])
    _fill(target, size, lambda: _generators[0].gauss(float(mean), float(deviation)))


rand = _Filler(_rand)
randint = _Filler(_randint)
randn = _Filler(_randn)


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
