# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.algorithm.functional`: loops over functions. Everything runs in order, on one processor."""

from __future__ import annotations

from itertools import product
from typing import Any

from tilewright.errors import LayoutError
from tilewright.mojo import Index, MojoValue, brackets
from tilewright.mojo.layout import Coord, Idx

from .device import launch_calls


def _split(
    parameters: tuple[Any, ...], arguments: tuple[Any, ...], names: tuple[str, ...], named: dict[str, Any]
) -> Any:
    """Return (function, parameters, arguments): the function comes in brackets (older programs) or parentheses."""
    values = [*parameters]
    function = named.get("func") or named.get("work")
    for k, value in enumerate(values):
        if callable(value) and not isinstance(value, type):
            function = values.pop(k)
            break
    rest = list(arguments)
    if function is None:
        for k, value in enumerate(rest):
            if callable(value):
                function = rest.pop(k)
                break
    if function is None:
        raise TypeError("expected a function, in brackets or as an argument")
    values += [named[name] for name in names if name in named]
    return function, values, rest


def _call(function: Any, parameters: tuple[Any, ...], *arguments: Any) -> Any:
    """Return function[*parameters](*arguments); a function without brackets is called without them."""
    try:
        bound = brackets.bind(function, parameters, {})
    except TypeError:
        return function(*arguments)
    return bound(*arguments)


@brackets
def vectorize(parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> None:
    """`vectorize[width](size, function)`: calls `function[width](i)`, and single elements at the end.

    >>> vectorize[2](5, brackets(lambda width, i: print(width, i)))
    (2,) 0
    (2,) 2
    (1,) 4
    """
    function, values, rest = _split(parameters, arguments, ("simd_width",), named)
    size = named["size"] if "size" in named else rest[0] if rest else values[1]
    width, count = int(values[0]), int(size)
    if width < 1:
        raise LayoutError(f"the width of vectorize must be at least 1, got {width}")
    start = 0
    while start < count:
        step = width if start + width <= count else 1
        _call(function, (step,), start)
        start += step


@brackets
def parallelize(parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> None:
    """`parallelize[function](count)`: calls the function with 0 to count - 1, in order.

    >>> parallelize[lambda k: print(k)](2)
    0
    1
    """
    function, _values, rest = _split(parameters, arguments, (), named)
    for k in range(int(rest[0])):
        function(k)


map = sync_parallelize = parallelize  # noqa: A001  (Mojo's name)


@brackets
def elementwise(parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> None:
    """`elementwise[function, width](shape)`: calls `function[width, rank](index)` for every vector of a shape.

    >>> elementwise[brackets(lambda parameters, index: print(parameters, index)), 2](Index(2, 2))
    (2, 2) (0, 0)
    (2, 2) (1, 0)
    """
    function, values, rest = _split(parameters, arguments, ("simd_width",), named)
    width = int(values[0]) if values else 1
    shape = rest[0] if isinstance(rest[0], (tuple, list)) else (rest[0],)
    is_coord = isinstance(rest[0], Coord)
    extents = [int(n) for n in shape]
    calls = []
    for outer in product(*[range(n) for n in extents[:-1]]):
        start = 0
        while start < extents[-1]:
            step = width if start + width <= extents[-1] else 1
            index = (*outer, start)
            calls.append((step, Coord(*[Idx(n) for n in index]) if is_coord else Index(*index)))
            start += step

    def bind(step: int) -> MojoValue:
        try:
            return brackets.bind(function, (step,) if is_coord else (step, len(extents)), {})
        except TypeError:  # a function without brackets
            return function

    bound = {step: bind(step) for step in {step for step, _ in calls}}
    if named.get("target") == "gpu":
        launch_calls([(bound[step], index) for step, index in calls], getattr(function, "__name__", "elementwise"))
        return
    for step, where in calls:
        bound[step](where)


@brackets
def tile(parameters: tuple[Any, ...], *arguments: Any, **named: Any) -> None:
    """`tile[function, [8, 1]](start, end)`: calls `function[size](i)` with the largest size that still fits.

    >>> tile[brackets(lambda size, i: print(size, i)), [2, 1]](0, 3)
    (2,) 0
    (1,) 2
    """
    function, values, rest = _split(parameters, arguments, (), named)
    sizes = list(values[0]) if values and isinstance(values[0], (list, tuple)) else list(values)
    start, end = int(rest[0]), int(rest[1])
    for size in sizes:
        while start + int(size) <= end:
            _call(function, (int(size),), start)
            start += int(size)
