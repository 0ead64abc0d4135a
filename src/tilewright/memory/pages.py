# SPDX-License-Identifier: Apache-2.0
"""The pages of a tensor: padded shapes, and how many pages of how many bytes they make, on any chip."""

from __future__ import annotations

from functools import cached_property
from math import prod

from ..formats import Format
from .config import MemoryConfig
from .kinds import TensorLayout
from .padding import padded_extents
from .shape import Shape
from .tile import Tile

EMPTY_PAGE_BYTES = 4  # of a row-major tensor without elements


class PagedTensor:
    """What the shape, the format, the layout and the shards of a tensor say about its pages, before any chip does.

    >>> from tilewright import TensorSpec
    >>> spec = TensorSpec((60, 90), "bfloat8_b")
    >>> spec.padded_shape, spec.page_shape, spec.num_pages, spec.page_bytes
    ((64, 96), (32, 32), 6, 1088)
    """

    shape: Shape
    dtype: Format
    layout: TensorLayout
    tile: Tile
    memory: MemoryConfig
    alignment: tuple[int, ...] | None

    @cached_property
    def padded_shape(self) -> tuple[int, ...]:
        """Return the extents with padding.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((2, 33, 1), layout="tile").padded_shape, TensorSpec((7,)).padded_shape
        ((2, 64, 32), (7,))
        """
        sharding = self.memory.sharding
        if self.alignment is not None:
            alignment = self.alignment
        elif self.layout is TensorLayout.TILE:
            alignment = self.tile.shape
        else:
            alignment = (1,) if sharding is None else sharding.shape[-1:]
        return padded_extents(self.shape.logical, alignment)

    @cached_property
    def physical_shape(self) -> tuple[int, int]:
        """Return (rows, columns) of the matrix that the padded tensor is stored as.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((1, 4, 60, 90), layout="tile").physical_shape
        (256, 96)
        """
        return prod(self.padded_shape[:-1]), self.padded_shape[-1]

    @cached_property
    def page_shape(self) -> tuple[int, int]:
        """Return (rows, columns) of a page: a tile, or a row as wide as the tensor or the shard.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64)).page_shape, TensorSpec((64, 64), layout="tile").page_shape
        ((1, 64), (32, 32))
        """
        if self.layout is TensorLayout.TILE:
            return self.tile.shape
        sharding = self.memory.sharding
        return 1, self.padded_shape[-1] if sharding is None else sharding.shape[-1]

    @property
    def unit(self) -> tuple[int, int]:
        """Return (rows, columns) of which shards must hold multiples.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64)).unit, TensorSpec((64, 64), layout="tile").unit
        ((1, 1), (32, 32))
        """
        return self.tile.shape if self.layout is TensorLayout.TILE else (1, 1)

    @cached_property
    def page_elements(self) -> int:
        """Return the number of elements of a page.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64), layout="tile").page_elements
        1024
        """
        return max(1, prod(self.page_shape))

    @cached_property
    def num_pages(self) -> int:
        """Return the number of pages.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), layout="tile").num_pages
        6
        """
        return prod(self.padded_shape) // self.page_elements

    @cached_property
    def page_bytes(self) -> int:
        """Return the bytes of a page.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat8_b").page_bytes
        1088
        """
        return self.dtype.bytes_per_tile(prod(self.page_shape)) or EMPTY_PAGE_BYTES

    @cached_property
    def nbytes(self) -> int:
        """Return the bytes of all pages back to back, as the host stores them.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat8_b").nbytes
        6528
        """
        return self.num_pages * self.page_bytes

    @cached_property
    def padding_bytes(self) -> int:
        """Return how many bytes of the pages hold padding rather than data.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat16", "tile").padding_bytes
        1488
        """
        data = self.shape.logical_volume() * self.page_bytes // self.page_elements
        return self.nbytes - data
