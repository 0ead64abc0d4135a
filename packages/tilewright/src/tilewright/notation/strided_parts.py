# SPDX-License-Identifier: Apache-2.0
"""The parts of a strided layout: what XLA, oneDNN, Mosaic, TVM, MLIR and AIE write, each in its own words."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from .._text import MAX_INTEGER
from ..errors import LayoutError
from ..layout import Layout, LayoutLike, as_tuple, leaves


class StridedPart(NamedTuple):
    """A leaf of a mode: `extent` values of (coordinate // `divisor`), `stride` elements apart.

    `is_last` says whether it takes all that is left of the coordinate: no other leaf of its mode follows.

    >>> part = StridedPart(0, 2, 4, 16, True)
    >>> part.stride
    16
    """

    mode: int
    divisor: int
    extent: int
    stride: int
    is_last: bool


def strided_parts(layout: LayoutLike, notation: str) -> list[StridedPart]:
    """Return the leaves of a strided `layout`; raise if it is something else, which `notation` cannot say.

    >>> [part.stride for part in strided_parts(Layout(((2, 4), 8), ((1, 16), 2)), "XLA")]
    [1, 16, 2]
    """
    if not isinstance(layout, Layout) or layout.axes or layout.is_replicated:
        raise LayoutError(f"{layout} is not a strided layout of plain offsets, which is all that {notation} can say")
    parts = []
    for k, (shape, stride) in enumerate(zip(as_tuple(layout.shape), as_tuple(layout.stride), strict=True)):
        pairs, divisor = list(zip(leaves(shape), leaves(stride), strict=True)), 1
        last = max([position for position, (extent, _) in enumerate(pairs) if extent != 1], default=0)
        for position, (extent, step) in enumerate(pairs):
            parts.append(StridedPart(k, divisor, int(extent), int(step), position >= last))
            divisor *= int(extent)
    if any(max(part.extent, abs(part.stride)) > MAX_INTEGER for part in parts):
        raise LayoutError(f"{layout} has numbers beyond 64 bits, which {notation} does not have")
    return parts


def compact_parts(layout: LayoutLike, notation: str) -> list[StridedPart]:
    """Return the leaves of a compact `layout` in order of their strides, the largest first, without those of extent 1.

    Raises if it has an offset, gaps or overlaps, which `notation` cannot say.

    >>> [part.extent for part in compact_parts(Layout(((2, 4), 8), ((1, 16), 2)), "XLA")]
    [4, 8, 2]
    """
    parts = [part for part in strided_parts(layout, notation) if part.extent != 1]
    if offset := offset_of(layout):
        raise LayoutError(f"{layout} begins at {offset}; arrays of {notation} begin at 0")
    ordered, expected = sorted(parts, key=lambda part: part.stride, reverse=True), 1
    for part in reversed(ordered):
        if part.stride != expected:
            raise LayoutError(f"{layout} has gaps or overlaps at stride {part.stride}, where {notation} has {expected}")
        expected *= part.extent
    return ordered


def tiled_parts(layout: LayoutLike, notation: str) -> list[StridedPart]:
    """Return the leaves of a compact `layout` as `compact_parts` does; raise if they are not tiles within tiles.

    >>> [part.extent for part in tiled_parts(Layout(((2, 4), 8), ((1, 16), 2)), "XLA")]
    [4, 8, 2]
    """
    parts, divisors = compact_parts(layout, notation), dict[int, int]()
    if 0 in (shape := logical_extents(layout)) or not shape:
        raise LayoutError(f"{layout} has no elements or no dimensions, so {notation} has no tiles for it")
    for part in parts:
        if part.divisor > divisors.get(part.mode, part.divisor):
            raise LayoutError(
                f"{layout} has neighbours along mode {part.mode} further apart than what is not; tiles of {notation}"
                " are the other way round"
            )
        divisors[part.mode] = part.divisor
    return parts


def offset_of(layout: LayoutLike) -> int:
    """Return where a layout of plain offsets begins.

    >>> offset_of(Layout(4) + 3)
    3
    """
    return int(getattr(layout, "offset", 0))


def logical_extents(layout: Any) -> tuple[int, ...]:
    """Return the extents of the modes of a `layout`, without padding.

    >>> logical_extents(Layout(((2, 4), 3)))
    (8, 3)
    """
    return tuple([int(extent) for extent in as_tuple(layout.logical_shape)])


def stored_extents(layout: Any) -> tuple[int, ...]:
    """Return the extents of the modes of a `layout`, with padding.

    >>> from tilewright import with_logical_shape
    >>> stored_extents(with_logical_shape(Layout(((2, 4), 3)), (7, 3)))
    (8, 3)
    """
    return tuple([prod([int(extent) for extent in leaves(mode)]) for mode in as_tuple(layout.shape)])


def nested_tiles(parts: Sequence[StridedPart], order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return the tiles within tiles that store compact `parts` as they are, of dimensions that `order` lists.

    Both go from major to minor. Splitting by a tile stores the dimensions in order, first the counts and then the
    tile, so every tile begins where the order of the parts begins again; it reaches back to the most major dimension
    that has a part after that.

    >>> faces = Layout(((16, 2, 2), (16, 2, 2)), ((16, 512, 2048), (1, 256, 1024)))
    >>> nested_tiles(tiled_parts(faces, "XLA"), (0, 1))
    ((32, 32), (16, 16))
    """
    levels: list[dict[int, int]] = [{}]  # the extents of dimensions, by their place in the order
    place = -1
    for part in parts:
        here = order.index(part.mode)
        if here < place:
            levels.append({})
        levels[-1][here] = levels[-1].get(here, 1) * part.extent
        place = here
    tiles = []
    for k in range(1, len(levels)):
        inner = levels[k:]
        first = min(min(level) for level in inner)
        tiles.append(tuple([prod([level.get(d, 1) for level in inner]) for d in range(first, len(order))]))
    return tuple(tiles)
