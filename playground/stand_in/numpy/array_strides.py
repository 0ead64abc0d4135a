# SPDX-License-Identifier: Apache-2.0
"""Shapes and strides: where elements are, and which other shapes the same strides allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.errors import MissingPackage

MAX_ELEMENTS = 1 << 24  # of an array; lists of more would fill the memory of a browser


def check_size(count: int) -> None:
    """Raise if an array has so many elements that it needs NumPy.

    >>> check_size(1000)
    """
    if count > MAX_ELEMENTS:
        raise MissingPackage(
            f"an array of {count} elements needs NumPy, which is not installed; install numpy and ml_dtypes, or use at"
            f" most {MAX_ELEMENTS} elements"
        )


def row_major_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes of contiguous elements, the last dimension fastest.

    >>> row_major_strides((2, 3), 8)
    (24, 8)
    """
    strides = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(extent, 1)
    return tuple(reversed(strides))


def list_positions(shape: Sequence[int], strides: Sequence[int], start: int) -> list[int]:
    """Return the place of every element in row-major order.

    >>> list_positions((2, 2), (1, 10), 5)
    [5, 15, 6, 16]
    """
    places = [start]
    for extent, step in zip(shape, strides, strict=True):
        steps = [k * step for k in range(extent)]
        places = [place + each for place in places for each in steps]
    return places


def split_strides(
    shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int], itemsize: int
) -> tuple[int, ...] | None:
    """Return the strides of the same elements in the shape `wanted`, or None if a copy is needed.

    >>> split_strides((4, 6), (6, 1), (2, 2, 6), 1), split_strides((4, 6), (1, 4), (24,), 1)
    ((12, 6, 1), None)
    """
    if 0 in shape:
        return row_major_strides(wanted, itemsize)
    old = [(extent, step) for extent, step in zip(shape, strides, strict=True) if extent != 1]
    result: list[int] = []
    rest = list(wanted)
    while old:
        run, step = old.pop()  # the innermost dimensions, joined while they are one
        while old and old[-1][1] == run * step:
            run *= old.pop()[0]
        covered = 1
        while rest and covered < run:
            extent = rest.pop()
            result.append(step * covered)
            covered *= extent
        if covered != run:
            return None
    result += [result[-1] if result else itemsize for _ in rest]
    return tuple(reversed(result))


def broadcast_shapes(*shapes: Iterable[int]) -> tuple[int, ...]:
    """Return the common shape of arrays: extents of 1, and missing ones in front, fit any other.

    >>> broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    result: list[int] = []
    for shape in shapes:
        extents = list(shape)[::-1]
        result += [1] * (len(extents) - len(result))
        for k, extent in enumerate(extents):
            if extent != 1:
                if result[k] not in (1, extent):
                    listed = " ".join(str(tuple(each)) for each in shapes)
                    raise ValueError(f"operands could not be broadcast together with shapes {listed}")
                result[k] = extent
    return tuple(result[::-1])
