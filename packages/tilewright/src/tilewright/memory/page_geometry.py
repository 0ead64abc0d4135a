# SPDX-License-Identifier: Apache-2.0
"""`PageGeometry`: the pages of a tensor, the order of elements in them, and their banks."""

from __future__ import annotations

from functools import cached_property
from math import prod

from .._integers import ceil_div, round_up
from ..errors import MemoryConfigError
from ..formats import Format
from ..layout import (
    Axis,
    Layout,
    LayoutLike,
    bank,
    core,
    index_to_coordinate,
    left_inverse,
    row_major,
    tiled_layout,
    with_logical_shape,
)
from .chip import Chip
from .config import AllocationMode, BufferType, MemoryConfig, PageLayout
from .paging import PageMap, Paging, interleaved_paging, page_byte_layout, sharded_paging
from .shape import Shape, Tile, padded_extents

EMPTY_PAGE_BYTES = 4  # of a row-major tensor without elements


class PageGeometry:
    """The base of `TensorSpec`: pages, the order of elements in them, and the banks of a chip that hold them.

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
    chip: Chip | None

    @property
    def is_tiled(self) -> bool:
        """Whether pages are tiles.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat8_b").is_tiled
        True
        """
        return self.page_layout is PageLayout.TILE

    @cached_property
    def padded_shape(self) -> tuple[int, ...]:
        """The padded extents.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((2, 33, 1), page_layout="tile").padded_shape, TensorSpec((7,)).padded_shape
        ((2, 64, 32), (7,))
        """
        return padded_extents(self.shape.logical, self.default_alignment if self.alignment is None else self.alignment)

    @property
    def default_alignment(self) -> tuple[int, ...]:
        """The alignment of a tensor that was given none: its tile, or the width of its shards, or nothing.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((5, 7), page_layout="tile").default_alignment, TensorSpec((5, 7)).default_alignment
        ((32, 32), (1,))
        """
        if self.is_tiled:
            return self.tile.shape
        sharding = self.memory.sharding
        return (1,) if sharding is None else sharding.shape[-1:]

    @cached_property
    def physical_shape(self) -> tuple[int, int]:
        """(rows, columns) of the padded tensor folded to a matrix.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((1, 4, 60, 90), page_layout="tile").physical_shape
        (256, 96)
        """
        return prod(self.padded_shape[:-1]), self.padded_shape[-1]

    @cached_property
    def page_shape(self) -> tuple[int, int]:
        """(rows, columns) of a page: a tile, or a row as wide as the tensor or the shard.

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
        """(rows, columns) that shard extents must be multiples of.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64)).unit, TensorSpec((64, 64), page_layout="tile").unit
        ((1, 1), (32, 32))
        """
        return self.tile.shape if self.is_tiled else (1, 1)

    @cached_property
    def page_elements(self) -> int:
        """The number of elements of a page.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64), page_layout="tile").page_elements
        1024
        """
        return max(1, prod(self.page_shape))

    @cached_property
    def num_pages(self) -> int:
        """The number of pages.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), page_layout="tile").num_pages
        6
        """
        return prod(self.padded_shape) // self.page_elements

    @cached_property
    def page_bytes(self) -> int:
        """The size of a page in bytes.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat8_b").page_bytes
        1088
        """
        return self.dtype.bytes_per_tile(prod(self.page_shape)) or EMPTY_PAGE_BYTES

    @cached_property
    def nbytes(self) -> int:
        """The size in bytes of all pages without gaps, as stored on the host.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat8_b").nbytes
        6528
        """
        return self.num_pages * self.page_bytes

    @cached_property
    def data_bytes(self) -> int:
        """The bytes of the elements of the logical shape, with their share of the scales of blocks.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat16", "tile").data_bytes
        10800
        """
        return self.shape.logical_volume() * self.page_bytes // self.page_elements

    @property
    def total_bytes(self) -> int:
        """The bytes allocated in all banks that hold pages; without a chip, the bytes of all pages.

        Banks reserve the same addresses, whether they hold pages or not: those that hold none are not counted.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "uint8").total_bytes, TensorSpec((60, 90), "uint8", chip="n150").total_bytes
        (5400, 5760)
        """
        return self.nbytes if self.chip is None else self.allocated_bytes * len(self.used_banks)

    @property
    def padding_bytes(self) -> int:
        """The bytes that hold no data, of `total_bytes`; `padding_parts` gives the reasons.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "bfloat16", "tile").padding_bytes
        1488
        """
        return self.total_bytes - self.data_bytes

    @property
    def padding_parts(self) -> dict[str, int]:
        """The padding by its reason: `in_pages`, and on a chip `alignment` and `free_pages`.

        Pages hold elements beyond the logical shape, they are aligned in a bank, and every bank with a page reserves
        the pages of the fullest one, which stay free where a shard is partial or pages do not divide evenly.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((60, 90), "uint8", "row_major", chip="n150").padding_parts
        {'in_pages': 0, 'alignment': 360, 'free_pages': 0}
        >>> TensorSpec((160, 90), "uint8", "tile", chip="n150").padding_parts
        {'in_pages': 960, 'alignment': 0, 'free_pages': 9216}
        """
        inside = self.nbytes - self.data_bytes
        if self.chip is None:
            return {"in_pages": inside}
        rounded = (self.allocated_bytes - self.bytes_per_bank) * len(self.used_banks)
        aligned = self.num_pages * (self.aligned_page_bytes - self.page_bytes) + rounded
        return {"in_pages": inside, "alignment": aligned, "free_pages": self.padding_bytes - inside - aligned}

    @cached_property
    def _padded_layout(self) -> Layout:
        """The layout from a padded coordinate to its element in physical order."""
        if self.is_tiled:
            return tiled_layout(self.padded_shape, self.tile.shape, self.tile.face_shape, self.tile.transpose)
        return row_major(*self.padded_shape)

    @cached_property
    def stored(self) -> Layout:
        """The layout from a coordinate, with the rank of the padded shape, to its element in physical order.

        >>> from tilewright import TensorSpec
        >>> print(TensorSpec((7,), page_layout="tile", tile=(1, 16)).stored)
        ((1,1,1),(16,1,1)):((16,16,16),(1,16,16)) where ((0,0,0),(1,16,16))<7
        """
        lead = len(self.padded_shape) - self.shape.rank
        return with_logical_shape(self._padded_layout, (1,) * lead + self.shape.logical)

    @cached_property
    def host(self) -> Layout:
        """The layout from a coordinate to its element in physical order, page after page.

        >>> from tilewright import TensorSpec
        >>> print(TensorSpec((4, 8)).host)
        (4,8):(8,1)
        """
        lead = len(self.padded_shape) - self.shape.rank
        own = Layout(self._padded_layout.shape[lead:], self._padded_layout.stride[lead:])
        return with_logical_shape(own, self.shape.logical) if self.shape.rank else own

    @cached_property
    def host_inverse(self) -> LayoutLike:
        """The layout from an element in physical order to the index of its padded coordinate.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((4, 8)).host_inverse(9)
        5
        """
        return left_inverse(self._padded_layout)

    def coordinate_of(self, page: int, element: int) -> tuple[tuple[int, ...], bool]:
        """Return the padded coordinate of an `element` of a `page`, and whether it is data.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((30, 30), "int32", "tile").coordinate_of(0, 15 * 16 + 15)
        ((15, 15), True)
        """
        index = self.host_inverse(page * self.page_elements + element)
        coordinate = tuple(map(int, index_to_coordinate(index, self.padded_shape)))
        lead = len(coordinate) - self.shape.rank
        inside = all(c < n for c, n in zip(coordinate[lead:], self.shape.logical, strict=True))
        return coordinate, inside and not any(coordinate[:lead])

    @cached_property
    def data_offset(self) -> int:
        """The offset of the values in a page: after its scales.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((32, 32), "bfloat4_b").data_offset
        64
        """
        return self.dtype.sections(self.page_elements).data_offset

    def element_in_page(self, byte: int, bit: int = 0) -> int | None:
        """Return the element of a page with a value at a `byte` and `bit`; None for scales and gaps.

        >>> from tilewright import TensorSpec
        >>> spec = TensorSpec((32, 32), "bfloat4_b")
        >>> spec.element_in_page(72, 4), spec.element_in_page(1)
        (17, None)
        """
        start = self.data_offset
        return ((byte - start) * 8 + bit) // self.dtype.bits if start <= byte < self.page_bytes else None

    @property
    def known_chip(self) -> Chip:
        """The chip; raises if the spec has none.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((4, 4), chip="n150").known_chip.name
        'wormhole_n150'
        """
        if self.chip is None:
            raise MemoryConfigError("banks and addresses depend on the chip; choose one, such as wormhole_n150")
        return self.chip

    @cached_property
    def aligned_page_bytes(self) -> int:
        """The distance in bytes of the pages of a bank.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((34, 20), "float32", chip="n150").aligned_page_bytes
        96
        """
        return round_up(self.page_bytes, self.known_chip.page_alignment(self.memory.buffer_type))

    @cached_property
    def paging(self) -> Paging:
        """The division of pages into shards and over cores; interleaved pages are shards of one page.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64), page_layout="tile", chip="n150").paging.num_shards
        4
        """
        return self.cut_pages()

    def cut_pages(self, uneven: bool = False) -> Paging:
        """Return `paging`; with `uneven`, also of contiguous runs of shards that are not equally long.

        >>> from tilewright import TensorSpec, nd_sharded
        >>> memory = nd_sharded((32, 32), (2, 1), distribution="contiguous_1d")
        >>> TensorSpec((96, 32), page_layout="tile", memory=memory).cut_pages(uneven=True).num_shards
        3
        """
        self.validate_pages()
        sharding = self.memory.sharding
        if sharding is not None:
            is_vector = len(self.padded_shape) == 1 and not self.memory.made_with_nd
            padded = (1, *self.padded_shape) if is_vector else self.padded_shape
            return sharded_paging(padded, sharding, self.page_shape, uneven)
        return interleaved_paging(self.num_pages, self.known_chip.bank_cores(self.memory.buffer_type))

    def validate_pages(self) -> None:
        """Raise if the tensor is not a whole number of pages.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((4, 4)).validate_pages()
        """
        for side, n, page in zip(("height", "width"), self.physical_shape, self.page_shape, strict=True):
            if page and n % page:
                raise MemoryConfigError(
                    f"tensor {side} {n} is not a multiple of the page {side} {page}; use an alignment of {page}, which"
                    f" pads it to {round_up(n, page)}"
                )

    @cached_property
    def banks(self) -> tuple[int, ...]:
        """The bank of each core of `paging.cores`.

        >>> from tilewright import TensorSpec, height_sharded
        >>> TensorSpec((64, 64), page_layout="tile", memory=height_sharded((2, 1)), chip="n150").banks
        (34, 63)
        """
        cores = self.paging.cores
        if not self.memory.is_sharded:
            return tuple(range(len(cores)))
        return self.known_chip.banks_of(cores, self.memory.buffer_type)

    @cached_property
    def used_banks(self) -> frozenset[int]:
        """The banks with at least one page.

        >>> from tilewright import TensorSpec
        >>> sorted(TensorSpec((64, 64), page_layout="tile", chip="n150").used_banks)
        [0, 1, 2, 3]
        """
        return frozenset(self.banks[: self.paging.num_shards])

    @cached_property
    def position_of_bank(self) -> dict[int, int]:
        """The position in `paging.cores` of each bank.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64), chip="n150").position_of_bank[3]
        3
        """
        return {number: position for position, number in enumerate(self.banks)}

    @cached_property
    def bytes_per_bank(self) -> int:
        """The bytes needed in each bank, before rounding to the alignment of allocations.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((1024, 1024), "bfloat16", "tile", chip="n150").bytes_per_bank
        176128
        """
        return self.bytes_per_bank_on(self.known_chip)

    def bytes_per_bank_on(self, chip: Chip) -> int:
        """Return the same for the banks of any `chip`.

        >>> from tilewright import Chip, TensorSpec
        >>> TensorSpec((1024, 1024), "bfloat16", "tile").bytes_per_bank_on(Chip.named("n150"))
        176128
        """
        buffer = self.memory.buffer_type
        if self.memory.is_sharded:
            pages = self.paging.shards_per_core * self.paging.shard_pages
        else:
            pages = ceil_div(self.num_pages, chip.banks(buffer))
        return pages * round_up(self.page_bytes, chip.page_alignment(buffer))

    @cached_property
    def allocated_bytes(self) -> int:
        """The bytes allocated in each bank; 0 for a tensor without elements.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((5,), "uint8", memory="l1", chip="n150").allocated_bytes
        32
        """
        return self.allocated_bytes_beside(self.memory.allocation is AllocationMode.PER_CORE)

    def allocated_bytes_beside(self, per_core: bool) -> int:
        """Return the bytes allocated in each bank, if other buffers may be allocated per core (hybrid mode), or not.

        In hybrid mode not the sum of the pages is rounded up to the alignment of the chip, but each page.

        >>> from tilewright import TensorSpec, height_sharded
        >>> rows = TensorSpec((12, 4), "float32", memory=height_sharded((4, 1)), chip="wormhole_n150")
        >>> rows.allocated_bytes_beside(False), rows.allocated_bytes_beside(True)
        (64, 96)
        """
        unit = self.known_chip.allocation_alignment
        if not per_core or self.memory.buffer_type is not BufferType.L1:
            return round_up(self.bytes_per_bank, unit)
        return self.bytes_per_bank // max(1, self.aligned_page_bytes) * round_up(self.aligned_page_bytes, unit)

    @property
    def axis(self) -> Axis:
        """The axis of placements that counts banks, or positions of cores in `paging.cores`.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((4, 8)).axis
        Axis('bank')
        """
        return core if self.memory.is_sharded else bank

    @cached_property
    def page_map(self) -> PageMap:
        """The map from pages to banks or cores, and back.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64), page_layout="tile", chip="n150").page_map.page_at(3, 5)
        (3, 5)
        """
        return PageMap(self.paging, self.banks, self.aligned_page_bytes, self.axis)

    @cached_property
    def address_layout(self) -> LayoutLike:
        """The layout from a coordinate to its bank or core, and the byte in the buffer there.

        The axis `core` counts positions in `paging.cores`. Elements smaller than a byte share an offset.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((1, 4, 60, 90), "int32", "tile", chip="n150").address_layout(0, 2, 33, 17)
        Place(addr=5188, bank=3)
        """
        return self.page_map.place_elements(
            self.host, self.page_elements, page_byte_layout(self.dtype, self.page_elements)
        )
