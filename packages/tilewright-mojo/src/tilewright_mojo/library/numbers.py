# SPDX-License-Identifier: Apache-2.0
"""Mojo's modules `std.bit`, `std.random` and `std.utils.numerics`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from tilewright.errors import FormatError
from tilewright.mojo import SIMD, DType, Float64, Int64, MojoValue, Pointer, Scalar, Span, UInt64, brackets


def _limit(value: Any) -> brackets[Any]:
    @brackets
    def find(parameters: tuple[Any, ...], *, dtype: Any = None) -> MojoValue:
        kind = DType.of((*parameters, dtype)[0])
        return Scalar[kind](value(kind))

    return find


max_finite, min_finite = _limit(lambda kind: kind.limits.highest), _limit(lambda kind: kind.limits.lowest)
inf, neg_inf, nan = _limit(lambda _: math.inf), _limit(lambda _: -math.inf), _limit(lambda _: math.nan)
max_or_inf = _limit(lambda kind: math.inf if kind.kind == "float" else kind.limits.highest)
min_or_neg_inf = _limit(lambda kind: -math.inf if kind.kind == "float" else kind.limits.lowest)


@brackets
def get_accum_type(parameters: tuple[Any, ...], **named: Any) -> DType:
    kind = DType.of((*parameters, *named.values())[0])
    return DType.float32 if kind.kind == "float" and kind.itemsize < 4 else kind


def _function(name: str, count: Callable[[int, int], int]) -> Callable[[Any], Any]:
    """Return a function of the bits of an integer, and of how many there are."""

    def function(value: Any) -> MojoValue:
        dtype = value.dtype if isinstance(value, SIMD) else DType.int64
        if dtype.kind not in ("int", "uint"):
            raise FormatError(f"{name} needs an integer, got {value!r}")
        if isinstance(value, SIMD) and value.size > 1:
            numbers = [function(number).item() for number in value]
            return SIMD[dtype, value.size](*numbers)
        result = dtype.round_number(count(int(value) & dtype.width_mask, dtype.bits))
        return Scalar[dtype](result) if isinstance(value, SIMD) else result

    function.__name__ = name
    function.__doc__ = f"Return {name.replace('_', ' ')} of an integer, or of every number of a vector."
    return function


count_leading_zeros = _function("count_leading_zeros", lambda bits, width: width - bits.bit_length())
count_trailing_zeros = _function(
    "count_trailing_zeros", lambda bits, width: (bits & -bits).bit_length() - 1 if bits else width
)
pop_count = _function("pop_count", lambda bits, _: bits.bit_count())
bit_width = _function("bit_width", lambda bits, _: bits.bit_length())
log2_floor = _function("log2_floor", lambda bits, _: bits.bit_length() - 1)
log2_ceil = _function("log2_ceil", lambda bits, _: (bits - 1).bit_length() if bits > 1 else 0)
next_power_of_two = _function("next_power_of_two", lambda bits, _: 1 << (bits - 1).bit_length() if bits > 1 else 1)
prev_power_of_two = _function("prev_power_of_two", lambda bits, _: 1 << (bits.bit_length() - 1) if bits else 0)
bit_reverse = _function("bit_reverse", lambda bits, width: int(f"{bits:0{width}b}"[::-1], 2))
byte_swap = _function("byte_swap", lambda bits, width: int.from_bytes(bits.to_bytes(width // 8, "little"), "big"))


def is_power_of_two(value: Any) -> bool:
    """Return whether an integer is a power of two.

    >>> is_power_of_two(8), is_power_of_two(6)
    (True, False)
    """
    number = int(value)
    return number > 0 and number & (number - 1) == 0


_generators = [Random(0)]  # the one in use


@contextmanager
def own_generator() -> Iterator[None]:
    """Give the code inside a `with` block a generator of its own, as every process of Mojo has one.

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


def random_float64(min: Any = 0, max: Any = 1) -> MojoValue:  # noqa: A002  (Mojo's names)
    """Return a number from `min` up to `max`.

    >>> 0 <= random_float64() < 1
    True
    """
    return Float64(_generators[0].uniform(float(min), float(max)))


def random_si64(min: Any, max: Any) -> MojoValue:  # noqa: A002
    """Return an integer from `min` to `max`.

    >>> random_si64(3, 3)
    Int64(3)
    """
    return Int64(_generators[0].randint(int(min), int(max)))


def random_ui64(min: Any, max: Any) -> MojoValue:  # noqa: A002
    """Return an integer from `min` to `max`, of type UInt64.

    >>> random_ui64(3, 3)
    UInt64(3)
    """
    return UInt64(_generators[0].randint(int(min), int(max)))


def randn_float64(mean: Any = 0, standard_deviation: Any = 1) -> MojoValue:
    """Return a number of the normal distribution.

    >>> randn_float64(2, 0)
    Float64(2.0)
    """
    return Float64(_generators[0].gauss(float(mean), float(standard_deviation)))


def _fill(target: Any, arguments: tuple[Any, ...], draw: Callable[..., Any]) -> None:
    """Write what `draw` returns for the arguments to each element of a span, or of memory at a pointer."""
    if isinstance(target, Pointer):
        target, arguments = Span(ptr=target, length=arguments[0]), arguments[1:]
    for k in range(len(target)):
        target[k] = draw(*arguments)


@brackets
def rand(_parameters: object, target: Any, *size: Any, min: Any = 0.0, max: Any = 1.0, **_options: Any) -> None:  # noqa: A002
    """Fill memory with numbers from `min` up to `max`: `rand[dtype](pointer, size)`, or `rand(span)`.

    >>> from tilewright.mojo.memory import alloc
    >>> rand(alloc["float32"](4), 4)
    """
    _fill(target, size, lambda: _generators[0].uniform(float(min), float(max)))


@brackets
def randint(_parameters: object, target: object, *arguments: Any, **named: Any) -> None:
    """Fill memory with integers from `low` to `high`: `randint[dtype](pointer, size, low, high)`.

    >>> from tilewright.mojo.memory import alloc
    >>> randint(alloc["int32"](4), 4, 1, 6)
    """
    bounds = [*arguments, *[named[name] for name in ("size", "low", "high") if name in named]]
    _fill(target, tuple(bounds), lambda low, high: _generators[0].randint(int(low), int(high)))


_NORMAL = (("mean", 0), ("standard_deviation", 1))


@brackets
def randn(_parameters: object, target: object, *arguments: Any, **named: Any) -> None:
    """Fill memory with numbers of the normal distribution: `randn[dtype](pointer, size)`.

    >>> from tilewright.mojo.memory import alloc
    >>> randn(alloc["float32"](4), 4)
    """
    size, shape = (arguments[:1], arguments[1:]) if isinstance(target, Pointer) else ((), arguments)
    mean, deviation = (*shape, *[named.get(name, default) for name, default in _NORMAL[len(shape) :]])
    _fill(target, size, lambda: _generators[0].gauss(float(mean), float(deviation)))


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
