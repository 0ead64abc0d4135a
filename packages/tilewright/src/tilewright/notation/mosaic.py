# SPDX-License-Identifier: Apache-2.0
"""Tilings of JAX's Mosaic GPU, such as `Tiling((64, 64)(16, 16))`, in and out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._text import TextCursor
from ..errors import FileFormatError, LayoutError
from ..layout import Layout, LayoutLike
from .strided_parts import logical_extents, nested_tiles, stored_extents, tiled_parts
from .tilings import MAX_TILES, TiledDimensions


@dataclass(frozen=True)
class MosaicTiling:
    """Tiles within tiles, each of which must divide the extents that it splits.

    >>> tiling = parse_mosaic("Tiling((32, 32)(16, 16))")
    >>> tiling.tile_shape((64, 96)), tiling.tile_strides((96, 1))
    ((2, 3, 2, 2, 16, 16), (3072, 32, 1536, 16, 96, 1))
    >>> tiling.layout((64, 96))(33, 5), tiling.tile_index((45, 27))
    (3093, (1, 0, 0, 1, 13, 11))
    >>> print(tiling)
    Tiling((32, 32)(16, 16))
    """

    tiles: tuple[tuple[int, ...], ...]

    def tile_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the extents of an array of a `shape` after it was tiled."""
        return self._split(shape).extents

    def tile_strides(self, strides: Sequence[int]) -> tuple[int, ...]:
        """Return the strides after tiling, over a buffer with `strides`."""
        result = tuple(strides)
        for tile in self.tiles:
            whole, split = result[: -len(tile)], result[-len(tile) :]
            result = (*whole, *[stride * part for stride, part in zip(split, tile, strict=True)], *split)
        return result

    def tile_index(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return the index into the tiled array of an `index` into the array."""
        result = tuple(index)
        for tile in self.tiles:
            pairs = list(zip(result[-len(tile) :], tile, strict=True))
            result = (
                *result[: -len(tile)],
                *[part // extent for part, extent in pairs],
                *[part % extent for part, extent in pairs],
            )
        return result

    def layout(self, shape: Sequence[int]) -> Any:
        """Return the layout of an array of a `shape` whose tiles are stored one after the other."""
        return self._split(shape).layout

    def view(self, shape: Sequence[int], strides: Sequence[int]) -> Layout:
        """Return the layout of the tiled array over a buffer of an array with `shape` and `strides`."""
        return Layout(self.tile_shape(shape), self.tile_strides(strides))

    def _split(self, shape: Sequence[int]) -> TiledDimensions:
        tiled = TiledDimensions.of(shape)
        for tile in self.tiles:
            if len(tile) > len(tiled.extents):
                raise LayoutError(f"{self} needs at least {len(tile)} dimensions, got {tuple(shape)}")
            split = tiled.extents[-len(tile) :]
            if any(extent % part for extent, part in zip(split, tile, strict=True)):
                raise LayoutError(f"{self}: the tile {tile} does not divide {split}, from shape {tuple(shape)}")
            tiled = tiled.split(tile)
        return tiled

    def __str__(self) -> str:
        return f"Tiling({''.join(map(str, self.tiles))})"


def parse_mosaic(text: str) -> MosaicTiling:
    """Return the tiling that a `text` describes.

    >>> parse_mosaic("Tiling((128,))").tiles
    ((128,),)
    """
    cursor = TextCursor(text, "a tiling")
    cursor.expect("Tiling")
    cursor.expect("(")
    tiles: list[tuple[int, ...]] = []
    while cursor.accept("("):
        tile = cursor.items(")", lambda: cursor.integer("an extent"), is_python=True)
        if not tile or min(tile) < 1 or (tiles and len(tile) > len(tiles[-1])):
            raise FileFormatError(
                f"{cursor.name}: a tile has extents of at least 1, and no more than the one before it, got {tile}"
            )
        if len(tiles) == MAX_TILES:
            cursor.fail(f"at most {MAX_TILES} tiles within each other")
        tiles.append(tuple(tile))
        cursor.accept(",")
    cursor.expect(")")
    cursor.expect_end()
    if not tiles:
        raise FileFormatError(f"{cursor.name}: expected at least one tile, such as Tiling((64, 64))")
    return MosaicTiling(tuple(tiles))


def write_mosaic(layout: LayoutLike) -> str:
    """Return the tiling that stores an array as a `layout` does; one without tiles is that of whole rows.

    >>> from tilewright import row_major
    >>> write_mosaic(parse_mosaic("Tiling((32, 32)(16, 16))").layout((64, 96))), write_mosaic(row_major(4, 8))
    ('Tiling((32, 32)(16, 16))', 'Tiling((8,))')
    """
    parts, shape = tiled_parts(layout, "Mosaic"), logical_extents(layout)
    if shape != stored_extents(layout):
        raise LayoutError(f"{layout} has padding, and Mosaic's tiles divide their array; use the padded shape instead")
    tiles = nested_tiles(parts, range(len(shape)))
    return str(MosaicTiling(tiles or (shape[-1:],)))
