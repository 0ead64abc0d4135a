# SPDX-License-Identifier: Apache-2.0
"""Tiles within tiles: what XLA, Mosaic and oneDNN do to the dimensions of an array before it is stored row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from .._integers import ceil_div
from ..errors import LayoutError
from ..layout import Layout, compose

MAX_TILES = 16  # within each other
MERGED = None
"""In a tile: this dimension is merged into the next more minor one."""


@dataclass(frozen=True)
class TiledDimensions:
    """Dimensions of an array, major to minor, and the layout from its coordinates to their row-major index.

    >>> tiled = TiledDimensions.of((4, 6)).split((2, 3))
    >>> tiled.extents, tiled.layout(1, 3)
    ((2, 2, 2, 3), 9)
    """

    extents: tuple[int, ...]
    layout: Any

    @classmethod
    def of(cls, shape: Sequence[int], order: Sequence[int] | None = None) -> TiledDimensions:
        """Return the dimensions of an array of a `shape`; `order` lists them major to minor.

        >>> TiledDimensions.of((4, 6), (1, 0)).layout
        Layout((4, 6), (1, 4))
        """
        axes = range(len(shape)) if order is None else order
        extents = tuple([shape[k] for k in axes])
        strides = [0] * len(shape)
        for position, k in enumerate(axes):
            strides[k] = prod(extents[position + 1 :])
        return cls(extents, Layout(tuple(shape), tuple(strides)))

    @property
    def size(self) -> int:
        """Return the number of elements with those of the padding.

        >>> TiledDimensions.of((3, 5)).split((2, 2)).size
        24
        """
        return prod(self.extents)

    def split(self, tile: Sequence[int | None]) -> TiledDimensions:
        """Return the dimensions after the last ones were split by a `tile`: how many tiles, then the tile itself.

        Extents that the tile does not divide are padded. `MERGED` merges a dimension into the next one first.

        >>> TiledDimensions.of((2, 3, 4)).split((MERGED, 2, 4)).extents
        (3, 1, 2, 4)
        """
        rank = len(tile)
        extents = (1,) * (rank - len(self.extents)) + self.extents
        before, last = extents[: len(extents) - rank], extents[len(extents) - rank :]
        merged, waiting = [], 1
        for extent, part in zip(last, tile, strict=True):
            if part is MERGED:
                waiting *= extent
            else:
                merged.append((extent * waiting, part))
                waiting = 1
        if waiting != 1 or tile[-1:] == (MERGED,):
            raise LayoutError(f"the last dimension of a tile cannot be merged, as in {tuple(tile)}")
        counts = [ceil_div(extent, part) for extent, part in merged]
        parts = [part for _, part in merged]
        padded = _row_major_index(
            [*before, *[extent for extent, _ in merged]], [*before, *map(prod, zip(counts, parts, strict=True))]
        )
        grid = (*before, *counts, *parts)
        strides = [prod(grid[k + 1 :]) for k in range(len(grid))]
        outer, rest = len(before), strides[len(before) :]
        shapes: list[Any] = [*before, *zip(parts, counts, strict=True)]
        steps: list[Any] = [*strides[:outer], *zip(rest[len(counts) :], rest[: len(counts)], strict=True)]
        tiles = Layout(tuple(reversed(shapes)), tuple(reversed(steps)))
        return TiledDimensions(grid, compose(tiles, compose(padded, self.layout)))


def _row_major_index(extents: Sequence[int], padded: Sequence[int]) -> Any:
    """Return the layout from a row-major index over `extents` to that over `padded`, as large or larger ones."""
    steps = [prod(padded[k + 1 :]) for k in range(len(padded))]
    return Layout(tuple(reversed(extents)), tuple(reversed(steps)))
