# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.primitives.warp`: shuffles, reductions, scans and votes of a warp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.layout import as_integer
from tilewright.mojo import SIMD, MojoValue, brackets

from ..simt import collectives
from .threads import WARP_SIZE


class WarpFunction(brackets[Any]):
    """A function of a warp that takes parameters in brackets, most of which may be inferred: `sum(x)`, `sum[...](x)`.

    >>> isinstance(sum, WarpFunction)
    True
    """


def _shuffle(function: Callable[..., Any]) -> WarpFunction:
    """Return a shuffle: `shuffle_down(x, offset)`, or with a mask of lanes first, `shuffle_down(mask, x, offset)`."""

    def call(parameters: tuple[Any, ...], *arguments: Any) -> MojoValue:
        value, lane = arguments[-2:]
        return function(value, int(as_integer(lane, "a lane or an offset")))

    return WarpFunction(call)


shuffle_idx, shuffle_up = _shuffle(collectives.shuffle_idx), _shuffle(collectives.shuffle_up)
shuffle_down, shuffle_xor = _shuffle(collectives.shuffle_down), _shuffle(collectives.shuffle_xor)


def larger(a: object, b: object) -> MojoValue:
    """Return the larger of two numbers, or of each pair of elements of two vectors.

    >>> larger(3, 5)
    5
    """
    return _choose(a, b, lambda x, y: x > y, "gt")


def smaller(a: object, b: object) -> MojoValue:
    """Return the smaller of two numbers, or of each pair of elements of two vectors.

    >>> smaller(3, 5)
    3
    """
    return _choose(a, b, lambda x, y: x < y, "lt")


def _choose(a: object, b: object, wins: Callable[[Any, Any], bool], compare: str) -> Any:
    if isinstance(a, SIMD) and a.size > 1:
        return getattr(a, compare)(b).select(a, b)
    return a if wins(a, b) else b


def _add(a: Any, b: Any) -> Any:
    return a + b


def _reduction(join: Callable[[Any, Any], Any]) -> WarpFunction:
    return WarpFunction(lambda parameters, val, **named: collectives.warp_reduce(val, join))


sum, max, min = _reduction(_add), _reduction(larger), _reduction(smaller)  # noqa: A001  (Mojo's names)


async def _reduce_groups(value: object, join: Callable[[Any, Any], Any], count: int, stride: int = 1) -> Any:
    """Return the reduction over groups of `count` lanes, each `stride` lanes apart, to every lane."""
    offset = count * stride // 2
    while offset >= stride:
        value = join(value, await collectives.shuffle_xor(value, offset))
        offset //= 2
    return value


def _group_reduction(join: Callable[[Any, Any], Any]) -> WarpFunction:
    """Return the reduction over groups of lanes: `lane_group_sum[num_lanes=8](x)`."""

    def call(
        parameters: tuple[Any, ...], val: Any, num_lanes: Any = WARP_SIZE, stride: Any = 1, **named: Any
    ) -> MojoValue:
        numbers = [entry for entry in parameters if isinstance(entry, int)]
        count, step = (*numbers, *(num_lanes, stride)[len(numbers) :])[:2]
        return _reduce_groups(val, join, int(count), int(step))

    return WarpFunction(call)


lane_group_sum, lane_group_max, lane_group_min = map(_group_reduction, (_add, larger, smaller))
lane_group_sum_and_broadcast, lane_group_max_and_broadcast = lane_group_sum, lane_group_max


def _reduce(parameters: tuple[Any, ...], val: object, func: object = None, **named: Any) -> Any:
    functions = [entry for entry in (*parameters, func) if callable(entry)]
    return collectives.warp_reduce(val, functions[-1])


reduce = lane_group_reduce = WarpFunction(_reduce)


def _broadcast(parameters: tuple[Any, ...], val: object) -> Any:
    return collectives.warp_broadcast(val)


broadcast = WarpFunction(_broadcast)


def _prefix_sum(parameters: tuple[Any, ...], x: object, exclusive: object = False, **named: Any) -> Any:
    flags = [entry for entry in parameters if isinstance(entry, bool)]
    return collectives.warp_prefix_sum(x, bool(flags[0] if flags else exclusive))


prefix_sum = WarpFunction(_prefix_sum)


async def _vote(parameters: tuple[Any, ...], value: object, named: dict[str, Any]) -> Any:
    bits = await collectives.ballot(value)
    kind = (*parameters, *named.values(), "uint32")[0]
    return SIMD.with_parameters(kind, 1)(bits)


vote = WarpFunction(lambda parameters, val, **named: _vote(parameters, val, named))
