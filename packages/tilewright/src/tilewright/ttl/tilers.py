# SPDX-License-Identifier: Apache-2.0
"""TTL's tiler, over `tilewright.tiling.Tiler` with the axes turned round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from ..layout.box import empty_box
from ..showing import Shown
from ..tiling import Box, Tiler
from .structs import require_integer, require_struct, struct_t
from .values import augmentation_t, offset_t, overlap_t, shape_t, significant_axes, tile_t


@dataclass(slots=True, unsafe_hash=True)  # do not change one that is a key
class tiler_t(struct_t, Shown):
    """A space, how it is cut, and the number of tiles.

    >>> create_tiler(shape_t(10, 7), shape_t(4, 3)).number_of_tiles
    9
    """

    structs: ClassVar = {"space": shape_t, "tile": shape_t, "overlap": overlap_t, "augmentation": augmentation_t}

    space: shape_t
    tile: shape_t
    overlap: overlap_t
    augmentation: augmentation_t

    def __post_init__(self) -> None:
        self.row_major  # noqa: B018 - validates the values

    @property
    def row_major(self) -> Tiler:
        """Return the tiler of the core, x fastest.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 3)).row_major.grid
        (1, 3, 3)
        """
        return self._make_tiler("row_major")

    @property
    def column_major(self) -> Tiler:
        """Return the tiler of the core, y fastest.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 3)).column_major.order
        'col_major'
        """
        return self._make_tiler("col_major")

    @property
    def plain(self) -> Tiler:
        """Return the tiler of the core without depth and height if the space has none: what is drawn.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 3)).plain.grid
        (3, 3)
        """
        return self._make_tiler("row_major", len(significant_axes(self.space)))

    def _make_tiler(self, order: str, rank: int = 3) -> Tiler:
        a = self.augmentation
        overlap = (self.overlap.depth, self.overlap.height, self.overlap.width)
        margins = ((a.front, a.back), (a.top, a.bottom), (a.left, a.right))
        space, tile = outer_first_shape(self.space), outer_first_shape(self.tile)
        return _cached_tiler(space[-rank:], tile[-rank:], overlap[-rank:], margins[-rank:], order)

    @property
    def number_of_tiles(self) -> int:
        """Return the number of all tiles.

        >>> create_tiler(shape_t(100000, 100000), shape_t(1, 1)).number_of_tiles
        10000000000
        """
        return self.row_major.count

    @property
    def tiles_in_width(self) -> int:
        """Return the number of tiles along x.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 4)).tiles_in_width
        3
        """
        return self.row_major.grid[2]

    @property
    def tiles_in_height(self) -> int:
        """Return the number of tiles along y.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 4)).tiles_in_height
        2
        """
        return self.row_major.grid[1]

    @property
    def tiles_in_depth(self) -> int:
        """Return the number of tiles along z.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 4)).tiles_in_depth
        1
        """
        return self.row_major.grid[0]

    @property
    def tiles_in_plane(self) -> int:
        """Return the number of tiles in one plane.

        >>> create_tiler(shape_t(10, 7), shape_t(4, 4)).tiles_in_plane
        6
        """
        return self.tiles_in_width * self.tiles_in_height


_cached_tiler = lru_cache(maxsize=64)(Tiler)


def outer_first_shape(shape: shape_t) -> tuple[int, int, int]:
    """Return a shape as the core writes it: outermost first.

    >>> outer_first_shape(shape_t(4, 3, 2))
    (2, 3, 4)
    """
    return (shape.depth, shape.height, shape.width)


def outer_first_offset(offset: offset_t) -> tuple[int, int, int]:
    """Return an offset as the core writes it: outermost first.

    >>> outer_first_offset(offset_t(4, 3, 2))
    (2, 3, 4)
    """
    return (offset.z, offset.y, offset.x)


def from_box(box: Box) -> tile_t:
    """Return a tile of the core as TTL writes it.

    >>> from_box(Box((0, 0, 1), (2, 3, 4)))
    tile_t(shape=shape_t(width=4, height=3, depth=2), offset=offset_t(x=1, y=0, z=0))
    """
    return tile_t.of_fields(shape_t.of_fields(*box.shape[::-1]), offset_t.of_fields(*box.offset[::-1]))


def create_tiler(space: shape_t, tile: shape_t) -> tiler_t:
    """Return a tiler of a `space` with tiles of shape `tile` that lie side by side.

    >>> number_of_tiles(create_tiler(shape_t(10, 7), shape_t(4, 3)))
    9
    """
    return tiler_t(space, tile, overlap_t(), augmentation_t())


def create_overlap_tiler(
    space: shape_t, tile: shape_t, overlap: overlap_t, augmentation: augmentation_t | None = None
) -> tiler_t:
    """Return a tiler of a `space` with tiles that share an `overlap`, and may reach beyond it by an `augmentation`.

    `tile` is the shape of a tile.

    >>> get_tile(0, create_overlap_tiler(shape_t(8), shape_t(6), overlap_t(2), augmentation_t(1, 1))).offset
    offset_t(x=-1, y=0, z=0)
    """
    return tiler_t(space, tile, overlap, augmentation_t() if augmentation is None else augmentation)


def create_tile(x: int, y: int, z: int, tiler: tiler_t) -> tile_t:
    """Return the tile of a `tiler` at the tile coordinates `x`, `y`, `z`.

    >>> create_tile(2, 0, 0, create_tiler(shape_t(10, 7), shape_t(4, 3))).offset
    offset_t(x=8, y=0, z=0)
    """
    at = [require_integer(value, name) for name, value in (("z", z), ("y", y), ("x", x))]
    return from_box(require_struct(tiler_t, tiler, "tiler").row_major.tile_at(at))


def get_tile(tile_id: int, tiler: tiler_t) -> tile_t:
    """Return tile `tile_id` of a `tiler` in row-major order, and the all-zero tile for an id out of range.

    >>> get_tile(1, create_tiler(shape_t(10, 7), shape_t(4, 3))).offset
    offset_t(x=4, y=0, z=0)
    """
    tiles = require_struct(tiler_t, tiler, "tiler").row_major
    return from_box(tiles.get(tile_id) if tiles.has_tile(require_integer(tile_id, "tile_id")) else empty_box(3))


def get_tile_column_major(tile_id: int, tiler: tiler_t) -> tile_t:
    """Return tile `tile_id` of a `tiler` in column-major order, and the all-zero tile for an id out of range.

    >>> get_tile_column_major(1, create_tiler(shape_t(10, 7), shape_t(4, 3))).offset
    offset_t(x=0, y=3, z=0)
    """
    tiles = require_struct(tiler_t, tiler, "tiler").column_major
    return from_box(tiles.get(require_integer(tile_id, "tile_id")))


def valid_tile_id(tile_id: int, tiler: tiler_t) -> bool:
    """Return whether a `tiler` has a tile `tile_id`.

    >>> valid_tile_id(9, create_tiler(shape_t(10, 7), shape_t(4, 3)))
    False
    """
    return require_struct(tiler_t, tiler, "tiler").row_major.has_tile(require_integer(tile_id, "tile_id"))


def number_of_tiles(tiler: tiler_t) -> int:
    """Return the number of all tiles of a `tiler`.

    >>> number_of_tiles(create_tiler(shape_t(10, 7), shape_t(4, 3)))
    9
    """
    return require_struct(tiler_t, tiler, "tiler").number_of_tiles


def tiles_in_width(tiler: tiler_t) -> int:
    """Return the number of tiles of a `tiler` along x.

    >>> tiles_in_width(create_tiler(shape_t(10, 7), shape_t(4, 4)))
    3
    """
    return tiler.tiles_in_width


def tiles_in_height(tiler: tiler_t) -> int:
    """Return the number of tiles of a `tiler` along y.

    >>> tiles_in_height(create_tiler(shape_t(10, 7), shape_t(4, 4)))
    2
    """
    return tiler.tiles_in_height


def tiles_in_depth(tiler: tiler_t) -> int:
    """Return the number of tiles of a `tiler` along z.

    >>> tiles_in_depth(create_tiler(shape_t(10, 7), shape_t(4, 4)))
    1
    """
    return tiler.tiles_in_depth
