# SPDX-License-Identifier: Apache-2.0
"""`Tile`, and `PageGeometry`: the pages of a tensor and the order of elements in them, on any chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

from ..copying import tiled_layout
from ..errors import MemoryConfigError
from ..formats import Format
from ..layout import Layout, LayoutLike, left_inverse, row_major, with_logical_shape
from ..layout.coordinate import index_to_coordinate
from ..layout.validation import as_integer
from .memory_config import MemoryConfig, PageLayout
from .shape import Shape, padded_extents

FACE = 16
HEIGHTS = (32, 16, 8, 4, 2, 1)
WIDTHS = (32, 16)
EMPTY_PAGE_BYTES = 4  # of a row-major tensor without elements


@dataclass(frozen=True, init=False, repr=False)
class Tile:
    """A tile of height x width elements, stored face by face, in row-major order, or column-major with `transpose`.

    >>> Tile((16, 32)).face_shape, Tile((16, 32)).num_faces
    ((16, 16), 2)
    >>> Tile()
    Tile((32, 32))
    """

    shape: tuple[int, int]
    transpose: bool

    def __init__(self, shape: Sequence[int] = (32, 32), transpose: bool = False) -> None:
        pair = tuple([int(as_integer(n, "tile extent")) for n in shape]) if isinstance(shape, (tuple, list)) else ()
        if len(pair) != 2 or pair[0] not in HEIGHTS or pair[1] not in WIDTHS:
            raise MemoryConfigError(
                f"expected a tile height of {', '.join(map(str, HEIGHTS))} and a width of 32 or 16, got {shape!r}"
            )
        if transpose and pair[0] < FACE:
            raise MemoryConfigError(
                f"a {pair[0]} x {pair[1]} tile cannot be transposed, since its faces are not square; use height 16 or"
                " 32"
            )
        object.__setattr__(self, "shape", pair)
        object.__setattr__(self, "transpose", bool(transpose))

    @classmethod
    def of(cls, value: TileLike) -> Tile:
        """Return a tile from a `Tile`, (height, width), or None for the default.

        >>> Tile.of((16, 32)), Tile.of(None)
        (Tile((16, 32)), Tile((32, 32)))
        """
        return value if isinstance(value, Tile) else cls() if value is None else cls(value)

    @property
    def height(self) -> int:
        """Return the number of rows.

        >>> Tile((8, 32)).height
        8
        """
        return self.shape[0]

    @property
    def width(self) -> int:
        """Return the number of columns.

        >>> Tile((8, 32)).width
        32
        """
        return self.shape[1]

    @property
    def elements(self) -> int:
        """Return the number of elements.

        >>> Tile((8, 32)).elements
        256
        """
        return self.height * self.width

    @property
    def face_shape(self) -> tuple[int, int]:
        """Return (height, width) of a face: at most 16 x 16.

        >>> Tile((4, 32)).face_shape
        (4, 16)
        """
        return min(FACE, self.height), FACE

    @property
    def num_faces(self) -> int:
        """Return the number of faces.

        >>> Tile().num_faces
        4
        """
        high, wide = self.face_shape
        return self.elements // (high * wide)

    @property
    def is_default(self) -> bool:
        """Return whether this is the default tile: 32 x 32, not transposed.

        >>> Tile().is_default
        True
        """
        return self == Tile()

    def __repr__(self) -> str:
        return f"Tile({self.shape}{', transpose=True' if self.transpose else ''})"

    def __str__(self) -> str:
        return f"{self.height} x {self.width}{' transposed' if self.transpose else ''}"


TileLike: TypeAlias = Tile | Sequence[int] | None


class PageGeometry:
    """The base of `TensorSpec`: pages and the order of elements in them, which do not depend on a chip.

    >>> from tilewright import TensorSpec
    >>> spec = TensorSpec((60, 90), "bfloat8_b")
    >>> spec.padded_shape, spec.page_shape, spec.num_pages, spec.page_bytes
    ((64, 96), (32, 32), 6, 1088)
    """

    shape: Shape
    dtype: Format
    page_layout: PageLayout
    tile: Tile
    memory: MemoryConfig
    alignment: tuple[int, ...] | None

    @property
    def is_tiled(self) -> bool:
        """Return whether pages are tiles.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat8_b").is_tiled
        True
        """
        return self.page_layout is PageLayout.TILE

    @cached_property
    def padded_shape(self) -> tuple[int, ...]:
        """Return the padded extents.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((2, 33, 1), page_layout="tile").padded_shape, TensorSpec((7,)).padded_shape
        ((2, 64, 32), (7,))
        """
        sharding = self.memory.sharding
        if self.alignment is not None:
            alignment = self.alignment
        elif self.is_tiled:
            alignment = self.tile.shape
        else:
            alignment = (1,) if sharding is None else sharding.shape[-1:]
        return padded_extents(self.shape.logical, alignment)

    @cached_property
    def physical_shape(self) -> tuple[int, int]:
        """Return (rows, columns) of the padded tensor folded to a matrix.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((1, 4, 60, 90), page_layout="tile").physical_shape
        (256, 96)
        """
        return prod(self.padded_shape[:-1]), self.padded_shape[-1]

    @cached_property
    def page_shape(self) -> tuple[int, int]:
        """Return (rows, columns) of a page: a tile, or a row as wide as the tensor or the shard.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64)).page_shape, TensorSpec((64, 64), page_layout="tile").page_shape
        ((1, 64), (32, 32))
        """
        if self.is_tiled:
            return self.tile.shape
        sharding = self.memory.sharding
        return 1, self.padded_shape[-1] if sharding is None else sharding.shape[-1]

    @property
    def unit(self) -> tuple[int, int]:
        """Return (rows, columns) that shard extents must be multiples of.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64)).unit, TensorSpec((64, 64), page_layout="tile").unit
        ((1, 1), (32, 32))
        """
        return self.tile.shape if self.is_tiled else (1, 1)

    @cached_property
    def page_elements(self) -> int:
        """Return the number of elements of a page.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64), page_layout="tile").page_elements
        1024
        """
        return max(1, prod(self.page_shape))

    @cached_property
    def num_pages(self) -> int:
        """Return the number of pages.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), page_layout="tile").num_pages
        6
        """
        return prod(self.padded_shape) // self.page_elements

    @cached_property
    def page_bytes(self) -> int:
        """Return the size of a page in bytes.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat8_b").page_bytes
        1088
        """
        return self.dtype.bytes_per_tile(prod(self.page_shape)) or EMPTY_PAGE_BYTES

    @cached_property
    def nbytes(self) -> int:
        """Return the size in bytes of all pages without gaps, as stored on the host.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat8_b").nbytes
        6528
        """
        return self.num_pages * self.page_bytes

    @cached_property
    def padding_bytes(self) -> int:
        """Return the bytes of padding in all pages.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat16", "tile").padding_bytes
        1488
        """
        data = self.shape.logical_volume() * self.page_bytes // self.page_elements
        return self.nbytes - data

    @cached_property
    def _padded_layout(self) -> Layout:
        """Return the layout from a padded coordinate to its element in physical order."""
        if self.is_tiled:
            return tiled_layout(self.padded_shape, self.tile.shape, self.tile.face_shape, self.tile.transpose)
        return row_major(*self.padded_shape)

    @cached_property
    def stored(self) -> Layout:
        """Return the layout from a coordinate, with the rank of the padded shape, to its element in physical order.

        >>> from tilewright import TensorSpec
        >>> print(TensorSpec((7,), page_layout="tile", tile=(1, 16)).stored)
        ((1,1,1),(16,1,1)):((16,16,16),(1,16,16)) where ((0,0,0),(1,16,16))<7
        """
        lead = len(self.padded_shape) - self.shape.rank
        data: Layout = with_logical_shape(self._padded_layout, (1,) * lead + self.shape.logical)
        return data

    @cached_property
    def host(self) -> Layout:
        """Return the layout from a coordinate to its element in physical order, page after page.

        >>> from tilewright import TensorSpec
        >>> print(TensorSpec((4, 8)).host)
        (4,8):(8,1)
        """
        lead = len(self.padded_shape) - self.shape.rank
        own = Layout(self._padded_layout.shape[lead:], self._padded_layout.stride[lead:])
        data: Layout = with_logical_shape(own, self.shape.logical) if self.shape.rank else own
        return data

    @cached_property
    def host_inverse(self) -> LayoutLike:
        """Return the layout from an element in physical order to the index of its padded coordinate.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((4, 8)).host_inverse(9)
        5
        """
        inverse: LayoutLike = left_inverse(self._padded_layout)
        return inverse

    def coordinate_of(self, page: int, element: int) -> tuple[tuple[int, ...], bool]:
        """Return the padded coordinate of an element of a page, and whether it is data.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((30, 30), "int32", "tile").coordinate_of(0, 15 * 16 + 15)
        ((15, 15), True)
        """
        index = self.host_inverse(page * self.page_elements + element)
        coordinate = tuple(map(int, index_to_coordinate(index, self.padded_shape)))
        lead = len(coordinate) - self.shape.rank
        inside = all(c < n for c, n in zip(coordinate[lead:], self.shape.logical, strict=True))
        return coordinate, inside and not any(coordinate[:lead])

    def element_in_page(self, byte: int, bit: int = 0) -> int | None:
        """Return the element of a page with a value at a byte; None for scales and gaps.

        >>> from tilewright import TensorSpec
        >>> spec = TensorSpec((32, 32), "bfloat4_b")
        >>> spec.element_in_page(72, 4), spec.element_in_page(1)
        (17, None)
        """
        start = self.dtype.sections(self.page_elements).data_offset
        return ((byte - start) * 8 + bit) // self.dtype.bits if start <= byte < self.page_bytes else None
