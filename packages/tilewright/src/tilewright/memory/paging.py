# SPDX-License-Identifier: Apache-2.0
"""`Paging`: how pages are distributed over cores; `PageMap`: the bank and address of each page, and the way back.

Pages are cut into shards, and shards are distributed over cores. Interleaved memory has shards of one page, distributed
round-robin over all banks. The way of a page is a chain of three layouts:

    pad_to_shards   page -> page in a grid that is extended to whole shards
    page_to_slot    page in that grid -> slot: pages counted shard by shard (a partial shard has empty slots)
    slot_to_bank    slot -> position of the core in the list of cores, and address

A worked example: a grid of 3 x 5 pages, shards of 2 x 2 pages, two cores, pages of 2048 bytes.

    grid (3, 5)          pages 0 1 2 3 4 / 5 6 7 8 9 / 10 11 12 13 14
    pad_to_shards        (3, 5) -> (4, 6): page 6, at row 1 and column 1, is number 7 of 24 there
    page_to_slot         (4, 6) is 2 x 3 shards of 2 x 2: page 7 there is slot 3 of shard 0
    slot_to_bank         shard 0 is the first of core 0: page 6 lives on core 0, at 3 * 2048 = 6144

Placements of elements are the composition of these layouts with the layout of elements in a page, and the way back are
their inverses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, TypeAlias

import numpy as np

from .._integers import ceil_div
from ..errors import MemoryConfigError
from ..formats import Format
from ..layout import Axis, Layout, LayoutLike, addr, compose, left_inverse, scale
from .config import NdShardSpec, ShardDistribution, ShardOrientation
from .cores import CoreCoord, CoreRange

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True)
class Paging:
    """A `grid` of pages, cut into shards that are distributed over `cores`, round-robin or in runs (`in_runs`).

    >>> four = tuple(CoreRange((0, 0), (1, 1)).cores())
    >>> Paging(grid=(4, 4), shard=(2, 2), cores=four).slots(6)  # page 6 is in shard 1, at its row 1, column 0
    6
    """

    grid: tuple[int, ...]
    shard: tuple[int, ...]
    cores: tuple[CoreCoord, ...]
    in_runs: bool = False

    @property
    def num_pages(self) -> int:
        """The number of pages.

        >>> Paging((4, 4), (2, 2), (CoreCoord(0, 0),)).num_pages
        16
        """
        return prod(self.grid)

    @cached_property
    def shard_pages(self) -> int:
        """The number of pages of a complete shard.

        >>> Paging((4, 4), (2, 3), (CoreCoord(0, 0),)).shard_pages
        6
        """
        return prod(self.shard)

    @cached_property
    def shards(self) -> tuple[int, ...]:
        """The number of shards along each dimension; those at an edge may be partial.

        >>> Paging((4, 4), (2, 3), (CoreCoord(0, 0),)).shards
        (2, 2)
        """
        return tuple([ceil_div(n, s) for n, s in zip(self.grid, self.shard, strict=True)])

    @cached_property
    def num_shards(self) -> int:
        """The number of shards.

        >>> Paging((4, 4), (2, 3), (CoreCoord(0, 0),)).num_shards
        4
        """
        return prod(self.shards)

    @cached_property
    def shards_per_core(self) -> int:
        """The largest number of shards of a core.

        >>> Paging((4, 4), (2, 2), tuple(CoreRange((0, 0), (2, 0)).cores())).shards_per_core
        2
        """
        return ceil_div(self.num_shards, len(self.cores))

    @property
    def is_uneven(self) -> bool:
        """Whether runs of shards are not equally long, so that some cores would get fewer.

        >>> Paging((5,), (1,), tuple(CoreRange((0, 0), (1, 0)).cores()), in_runs=True).is_uneven
        True
        """
        return self.in_runs and self.num_shards % len(self.cores) != 0

    def validate_even(self) -> None:
        """Raise if runs of shards are not equally long.

        >>> Paging((4,), (1,), tuple(CoreRange((0, 0), (1, 0)).cores()), in_runs=True).validate_even()
        """
        if self.is_uneven:
            raise MemoryConfigError(
                f"contiguous_1d needs the same number of shards per core, got {self.num_shards} shards on"
                f" {len(self.cores)} cores; use round_robin_1d, or a number of cores that divides {self.num_shards}"
            )

    def squeeze(self) -> Paging:
        """Return the same pages in the same shards with as few dimensions as tt-metal gives them.

        From the last dimension on, a dimension joins the one after it where shards span that one and all that joined
        it before, or where a shard has one page and shards divide the dimension after it. Either way, neither the
        number of a page nor its slot changes.

        >>> paging = Paging((3, 2, 4), (1, 2, 2), (CoreCoord(0, 0),)).squeeze()
        >>> paging.grid, paging.shard
        ((6, 4), (2, 2))
        """
        grid: list[int] = []  # innermost first
        shard: list[int] = []
        spanned = divided = False
        for pages, size in zip(reversed(self.grid), reversed(self.shard), strict=True):
            if grid and (spanned or (size == 1 and divided)):
                grid[-1] *= pages
                shard[-1] *= size
            else:
                grid.append(pages)
                shard.append(size)
                spanned = True
            spanned, divided = spanned and pages == size, pages % size == 0
            if (prod(grid), prod(shard)) == (self.num_pages, self.shard_pages):
                break
        return replace(self, grid=tuple(reversed(grid)), shard=tuple(reversed(shard)))

    def shards_of(self, position: int) -> range:
        """Return the shards of a core, by its position in `cores`, in the order of their addresses.

        >>> Paging((4, 4), (2, 2), tuple(CoreRange((0, 0), (2, 0)).cores())).shards_of(0)
        range(0, 4, 3)
        """
        if self.in_runs:
            first = position * self.shards_per_core
            return range(first, min(first + self.shards_per_core, self.num_shards))
        return range(position, self.num_shards, len(self.cores))

    def pages_of_shard(self, shard: int) -> Integers:
        """Return the pages of a shard in the order of their slots; a partial shard's slots without a page are skipped.

        >>> Paging((4, 4), (2, 3), (CoreCoord(0, 0),)).pages_of_shard(1).tolist()
        [3, 7]
        """
        if not 0 <= shard < self.num_shards:
            raise MemoryConfigError(f"expected a shard from 0 to {self.num_shards - 1}, got {shard}")
        pages = np.zeros((), dtype=np.int64)
        places: Any = np.unravel_index(shard, self.shards)
        for at, size, extent in zip(places, self.shard, self.grid, strict=True):
            pages = pages[..., None] * extent + np.arange(at * size, min((at + 1) * size, extent))
        return pages.reshape(-1)

    # In these layouts, modes are innermost first, so that an index counts pages row by row.

    @cached_property
    def pad_to_shards(self) -> Layout:
        """The layout from a page to the same page in a grid that is extended to whole shards.

        >>> print(Paging((4, 4), (2, 3), (CoreCoord(0, 0),)).pad_to_shards)
        (4,4):(1,6)
        """
        whole = [n * s for n, s in zip(self.shards, self.shard, strict=True)]
        return Layout(tuple(reversed(self.grid)), tuple(_row_major_strides(whole)))

    @cached_property
    def page_to_slot(self) -> Layout:
        """The layout from a page in the extended grid to its slot.

        >>> print(Paging((4, 4), (2, 3), (CoreCoord(0, 0),)).page_to_slot)
        ((3,2),(2,2)):((1,6),(3,12))
        """
        inside, across = (
            _row_major_strides(self.shard),
            [stride * self.shard_pages for stride in _row_major_strides(self.shards)],
        )
        extents = tuple(zip(reversed(self.shard), reversed(self.shards), strict=True))
        return Layout(extents, tuple(zip(inside, across, strict=True)))

    @cached_property
    def slots(self) -> LayoutLike:
        """The layout from a page to its slot.

        >>> [Paging((4, 4), (2, 2), (CoreCoord(0, 0),)).slots(page) for page in (0, 1, 2, 4)]
        [0, 1, 4, 2]
        """
        return compose(self.page_to_slot, self.pad_to_shards)

    def slot_to_bank(self, page_bytes: int, axis: Axis) -> Layout:
        """Return the layout from slots to the position of a core along `axis`, and address, with pages of `page_bytes`.

        >>> from tilewright import core
        >>> print(Paging((4, 4), (2, 2), tuple(CoreRange((0, 0), (1, 0)).cores())).slot_to_bank(2048, core))
        (4,2,2):(2048@addr,1@core,8192@addr)
        """
        rounds, cores = max(1, self.shards_per_core), len(self.cores)
        shard = self.shard_pages * page_bytes @ addr
        if self.in_runs:
            return Layout((self.shard_pages, rounds, cores), (page_bytes @ addr, shard, 1 @ axis))
        return Layout((self.shard_pages, cores, rounds), (page_bytes @ addr, 1 @ axis, shard))

    def shard_table(self) -> tuple[Integers, Integers]:
        """Return the shard of every page and its position in the shard, as arrays.

        >>> shard, inside = Paging((2, 4), (2, 2), (CoreCoord(0, 0),)).shard_table()
        >>> shard.tolist(), inside.tolist()
        ([0, 0, 1, 1, 0, 0, 1, 1], [0, 1, 0, 1, 2, 3, 2, 3])
        """
        shard, inside = np.zeros((), dtype=np.int64), np.zeros((), dtype=np.int64)
        for mode, extent in zip(reversed(self.page_to_slot.modes), self.grid, strict=True):
            # a single dimension never carries from the position in a shard to the number of the shard
            across, within = np.divmod(mode(np.arange(extent, dtype=np.int64)), self.shard_pages)
            shard, inside = shard[..., None] + across, inside[..., None] + within
        return shard.reshape(-1), inside.reshape(-1)

    @cached_property
    def _slot_to_page(self) -> LayoutLike:
        return left_inverse(self.page_to_slot)

    def page_at(self, slot: int) -> int | None:
        """Return the page in a slot; None if the slot is empty.

        >>> edge = Paging((1, 4), (1, 3), (CoreCoord(0, 0),))
        >>> edge.page_at(3), edge.page_at(4)
        (3, None)
        """
        if not 0 <= slot < self.num_shards * self.shard_pages:
            return None
        index, page, stride = self._slot_to_page(slot), 0, 1
        for extent, shards, pages in zip(reversed(self.grid), reversed(self.shards), reversed(self.shard), strict=True):
            index, digit = divmod(index, shards * pages)
            if digit >= extent:
                return None
            page += digit * stride
            stride *= extent
        return int(page)


def _row_major_strides(extents: Sequence[int]) -> list[int]:
    """Return the stride of each dimension in row-major order, innermost first."""
    return list(accumulate([1, *reversed(extents)][:-1], mul))


def interleaved_paging(num_pages: int, cores: tuple[CoreCoord, ...]) -> Paging:
    """Return the paging of interleaved memory: single pages, distributed round-robin over all banks.

    >>> interleaved_paging(100, tuple(CoreRange((0, 0), (11, 0)).cores())).shards_per_core
    9
    """
    return Paging((num_pages,), (1,), cores)


def sharded_paging(
    shape: tuple[int, ...], sharding: NdShardSpec, page: tuple[int, int], uneven: bool = False
) -> Paging:
    """Return the paging of a tensor of this padded shape in shards, with pages of (rows, columns) elements.

    With `uneven`, contiguous runs of shards need not be equally long.

    >>> paging = sharded_paging((128, 128), NdShardSpec((64, 64), (2, 2)), (32, 32))
    >>> paging.grid, paging.shard, len(paging.cores)
    ((4, 4), (2, 2), 4)
    """
    grid, shard = _page_counts(shape, page), _page_counts(sharding.shape, page)
    if len(shard) > len(grid):
        raise MemoryConfigError(
            f"shard shape {list(sharding.shape)} has rank {len(shard)}, but tensor shape {list(shape)} has rank"
            f" {len(grid)}; use a shard shape of rank {len(grid)} or less"
        )
    cores = _shard_cores(grid, shard, sharding)
    extra = len(grid) - len(shard)
    grid = (prod(grid[: extra + 1]), *grid[extra + 1 :])
    in_runs = sharding.distribution is ShardDistribution.CONTIGUOUS_1D
    paging = Paging(grid, shard, tuple(cores), in_runs)
    if not uneven:
        paging.validate_even()
    return paging


def _page_counts(extents: tuple[int, ...], page: tuple[int, int]) -> tuple[int, ...]:
    """Return the number of pages along each dimension."""
    units = ([1] * len(extents) + list(page))[-len(extents) :]
    return tuple([ceil_div(n, unit) for n, unit in zip(extents, units, strict=True)])


def _shard_cores(grid: tuple[int, ...], shard: tuple[int, ...], sharding: NdShardSpec) -> list[CoreCoord]:
    """Return the cores for shards, in order; for a 2-D grid of shards, only cores that get one."""
    row_wise = sharding.orientation is ShardOrientation.ROW_MAJOR
    if not sharding.grid.num_cores:
        raise MemoryConfigError("a sharded tensor needs at least one core, got an empty set")
    if sharding.distribution is not ShardDistribution.GRID_2D:
        return sharding.grid.cores(row_wise)
    if len(shard) > 2:
        raise MemoryConfigError(f"grid_2d needs shards of rank 1 or 2, got {list(sharding.shape)}; use round_robin_1d")
    if len(sharding.grid) != 1:
        raise MemoryConfigError(
            f"grid_2d needs a single range of cores, got {len(sharding.grid)} ranges {sharding.grid}; use their"
            f" bounding box {sharding.grid.bounding_box}"
        )
    box = sharding.grid.ranges[0]
    across = max(1, ceil_div(grid[-1], shard[-1]))
    down = max(1, ceil_div(prod(grid[:-1]), shard[-2] if len(shard) > 1 else 1))
    if not row_wise:
        across, down = down, across
    if across > box.width or down > box.height:
        note = "" if row_wise else " (swapped, since the orientation is col_major)"
        raise MemoryConfigError(
            f"{across} x {down} shards{note} do not fit {box.width} x {box.height} cores {box}; use larger shards, or"
            f" at least {across} columns and {down} rows of cores"
        )
    return CoreRange(box.start, (box.start.x + across - 1, box.start.y + down - 1)).cores(row_wise)


@dataclass(frozen=True, slots=True, eq=False)
class PageTable:
    """The bank, core and address of every page, as arrays.

    >>> from tilewright import TensorSpec
    >>> table = TensorSpec((64, 64), "bfloat16", "tile", chip="wormhole_n150").pages()
    >>> table.bank.tolist(), table.address.tolist()
    ([0, 1, 2, 3], [1048640, 1048640, 1048640, 1048640])
    """

    bank: Integers
    core_x: Integers
    core_y: Integers
    address: Integers

    def __len__(self) -> int:
        return len(self.bank)

    @property
    def page(self) -> Integers:
        """The page numbers.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((64, 64), "bfloat16", "tile", chip="wormhole_n150").pages().page.tolist()
        [0, 1, 2, 3]
        """
        return np.arange(len(self), dtype=np.int64)

    def rows(self) -> Integers:
        """Return one row per page: page, bank, x, y, address.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((32, 64), "bfloat16", "tile", chip="wormhole_n150").pages().rows().tolist()
        [[0, 0, 0, 0, 1048640], [1, 1, 1, 0, 1048640]]
        """
        return np.stack([self.page, self.bank, self.core_x, self.core_y, self.address], axis=1)

    def by_core(self) -> dict[CoreCoord, list[int]]:
        """Return the pages of every core that has some, in the order of their addresses.

        >>> from tilewright import TensorSpec, block_sharded
        >>> spec = TensorSpec((128, 128), "bfloat16", "tile", memory=block_sharded((2, 2)), chip="wormhole_n150")
        >>> {str(core): pages for core, pages in spec.pages().by_core().items()}
        {'(0, 0)': [0, 1, 4, 5], '(1, 0)': [2, 3, 6, 7], '(0, 1)': [8, 9, 12, 13], '(1, 1)': [10, 11, 14, 15]}
        """
        cores: dict[CoreCoord, list[int]] = {}
        order = np.lexsort((self.address, self.core_x, self.core_y))
        for page, x, y in zip(*[part[order].tolist() for part in (self.page, self.core_x, self.core_y)], strict=True):
            cores.setdefault(CoreCoord(x, y), []).append(page)
        return cores


@dataclass(frozen=True)
class PageMap:
    """The map from pages to banks or cores, and back.

    `paging` cuts pages into shards for its cores; `banks` are the banks of these cores; `page_stride` is the distance
    in bytes of the pages of a bank; `axis` is the axis of the layouts that counts banks or cores.

    >>> from tilewright import TensorSpec
    >>> pages = TensorSpec((640, 640), page_layout="tile", chip="wormhole_n150").page_map
    >>> slot = pages.slot_of_page(13)
    >>> pages.position_of_slot(slot), pages.offset_of_slot(slot), pages.page_at(1, 2048 + 5)
    (1, 2048, (13, 5))
    """

    paging: Paging
    banks: tuple[int, ...]
    page_stride: int
    axis: Axis

    @cached_property
    def slot_layout(self) -> Layout:
        """The layout from slots to bank or core, and offset in the buffer.

        >>> from tilewright import TensorSpec
        >>> print(TensorSpec((64, 64), page_layout="tile", chip="wormhole_n150").page_map.slot_layout)
        (1,12,1):(2048@addr,1@bank,2048@addr)
        """
        return self.paging.slot_to_bank(self.page_stride, self.axis)

    @cached_property
    def slot_of_page(self) -> LayoutLike:
        """The layout from pages to slots."""
        return self.paging.slots

    @cached_property
    def position_of_slot(self) -> Layout:
        """The layout from slots to the position of their core in `paging.cores`."""
        return (self.slot_layout + (0 @ self.axis + 0 @ addr)).project(self.axis)

    @cached_property
    def offset_of_slot(self) -> Layout:
        """The layout from slots to offsets in the buffer."""
        return (self.slot_layout + (0 @ self.axis + 0 @ addr)).project(addr)

    @cached_property
    def _slot_of_address(self) -> LayoutLike:
        """The layout from `position * pages_per_bank + page in the bank` to slots: the inverse of `slot_layout`."""
        strides = [
            stride.get(self.axis.name, 0) * self._pages_per_bank + stride.get(addr.name, 0) // self.page_stride
            for stride in self.slot_layout.stride
        ]
        return left_inverse(Layout(self.slot_layout.shape, tuple(strides)))

    @cached_property
    def _pages_per_bank(self) -> int:
        return max(1, self.paging.shards_per_core) * self.paging.shard_pages

    def page_at(self, position: int, offset: int) -> tuple[int | None, int]:
        """Return (page, byte in it) at `offset` in bank or core `position`; None in the gap of a partial shard.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((4, 4), "int32", chip="wormhole_n150").page_map.page_at(1, 8)
        (1, 8)
        """
        page_in_bank, byte = divmod(offset, self.page_stride)
        return self.paging.page_at(self._slot_of_address(position * self._pages_per_bank + page_in_bank)), byte

    def table(self, base: int) -> PageTable:
        """Return the table of all pages of a buffer at address `base`.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((4, 4), chip="wormhole_n150").page_map.table(0).core_x.tolist()
        [0, 1, 2, 3]
        """
        if not self.paging.num_pages:
            empty = np.zeros(0, dtype=np.int64)
            return PageTable(empty, empty, empty, empty)
        # The start of each shard is a broadcast sum; with the modes outermost first it comes out in order.
        shape, stride = self.slot_layout.shape, self.slot_layout.stride
        starts: Any = Layout(tuple(reversed(shape[1:])), tuple(reversed(stride[1:])), offset=base @ addr).offsets()
        position, address = starts[self.axis].reshape(-1), starts["addr"].reshape(-1)
        cores, banks = np.array(self.paging.cores, dtype=np.int64), np.array(self.banks, dtype=np.int64)
        if self.paging.shard_pages == 1 and len(self.paging.grid) == 1:  # every page is a shard
            position, address = position[: self.paging.num_pages], address[: self.paging.num_pages]
            return PageTable(banks[position], cores[:, 0][position], cores[:, 1][position], address)
        shard, page_in_shard = self.paging.shard_table()
        page_in_shard *= self.page_stride
        page_in_shard += address[shard]
        return PageTable(banks[position][shard], cores[position, 0][shard], cores[position, 1][shard], page_in_shard)

    def place_elements(self, host: Layout, page_elements: int, page_bytes: Layout) -> LayoutLike:
        """Return the layout from coordinates to bank or core and byte, of pages laid out by `page_elements`.

        `host` maps coordinates to elements in physical order, `page_bytes` an element of a page to its byte. The
        layouts of pages get the elements of a page as one more mode in front.

        >>> from tilewright import TensorSpec
        >>> print(TensorSpec((100, 150), page_layout="tile", chip="wormhole_n150").address_layout)
        (1024,1,12,2):(2@addr,2048@addr,1@bank,2048@addr) o ((16,2,4),(16,2,5)):((16,512,5120),(1,256,1024)) \
where ((1,16,32),(0,0,0))<100 and ((0,0,0),(1,16,32))<150
        """
        start = page_bytes.offset + 0 @ self.axis + 0 @ addr  # addresses have both axes
        to_bank, to_slot, padded = self.slot_layout, self.paging.page_to_slot, self.paging.pad_to_shards
        outer = Layout((page_bytes.shape, *to_bank.shape), (page_bytes.stride, *to_bank.stride), offset=start)
        by_shard = Layout((page_elements, *to_slot.shape), (1, *scale(to_slot, page_elements).stride))
        grown = Layout((page_elements, *padded.shape), (1, *scale(padded, page_elements).stride))
        return compose(outer, compose(by_shard, compose(grown, host)))


def page_byte_layout(number_format: Format, page_elements: int) -> Layout:
    """Return the layout from the elements of a page to bytes; elements smaller than a byte share one.

    >>> from tilewright.formats import bfloat4_b
    >>> print(page_byte_layout(bfloat4_b, 1024))
    (2,512):(0@addr,1@addr)+64@addr
    """
    if not number_format.has_blocks:
        return Layout(page_elements, number_format.itemsize @ addr)
    if 8 % number_format.bits:
        raise MemoryConfigError(
            f"elements of {number_format} have {number_format.bits} bits and cross bytes, so they have no layout in"
            " bytes; use where(...)"
        )
    sections = number_format.sections(page_elements)
    shape = (page_elements // sections.data, sections.data)
    return Layout(shape, (0 @ addr, 1 @ addr), offset=sections.data_offset @ addr)
