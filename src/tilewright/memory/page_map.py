# SPDX-License-Identifier: Apache-2.0
"""`PageMap`: where each page of a tensor is, and which page is at an address: the one answer for tables and elements.

Pages map to slots, which count pages shard by shard; slots map to a bank or core and an offset in the buffer there.
Both are layouts; placements of elements are their composition, and the way back are their inverses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MemoryConfigError
from ..formats import Format
from ..layout import Axis, Layout, LayoutLike, addr, compose, left_inverse
from .chip import Chip
from .page_geometry import PageGeometry
from .paging import Integers, Paging


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
        """Return the page numbers.

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
    def places(self) -> Layout:
        """Return the layout from slots to bank or core, and offset in the buffer.

        >>> from tilewright import TensorSpec
        >>> print(TensorSpec((64, 64), page_layout="tile", chip="wormhole_n150").page_map.places)
        (1,12,1):(2048@addr,1@bank,2048@addr)
        """
        return self.paging.deal(self.page_stride, self.axis)

    @cached_property
    def slot_of_page(self) -> LayoutLike:
        """Return the layout from pages to slots."""
        return self.paging.slots

    @cached_property
    def position_of_slot(self) -> Layout:
        """Return the layout from slots to the position of their core in `paging.cores`."""
        return (self.places + (0 @ self.axis + 0 @ addr)).project(self.axis)

    @cached_property
    def offset_of_slot(self) -> Layout:
        """Return the layout from slots to offsets in the buffer."""
        return (self.places + (0 @ self.axis + 0 @ addr)).project(addr)

    @cached_property
    def _slot_of_place(self) -> LayoutLike:
        """Return the layout from `position * pages_per_bank + page in the bank` to slots: the inverse of `places`."""
        strides = [
            step.get(self.axis.name, 0) * self._pages_per_bank + step.get(addr.name, 0) // self.page_stride
            for step in self.places.stride
        ]
        inverse: LayoutLike = left_inverse(Layout(self.places.shape, tuple(strides)))
        return inverse

    @property
    def _pages_per_bank(self) -> int:
        return max(1, self.paging.shards_per_core) * self.paging.shard_pages

    def page_at(self, position: int, offset: int) -> tuple[int | None, int]:
        """Return (page, byte in it) at an offset of a bank or core; the page is None in the gap of a partial shard.

        >>> from tilewright import TensorSpec
        >>> TensorSpec((4, 4), "int32", chip="wormhole_n150").page_map.page_at(1, 8)
        (1, 8)
        """
        page_in_bank, byte = divmod(offset, self.page_stride)
        return self.paging.page_at(self._slot_of_place(position * self._pages_per_bank + page_in_bank)), byte

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
        shape, stride = self.places.shape, self.places.stride
        starts = Layout(tuple(reversed(shape[1:])), tuple(reversed(stride[1:])), offset=base @ addr).offsets()
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
        """Return the layout from coordinates to bank or core, and byte in the buffer.

        `host` maps coordinates to elements in physical order, `page_bytes` an element of a page to its byte. The
        layouts of pages get the elements of a page as one more mode in front.

        >>> from tilewright import TensorSpec
        >>> print(TensorSpec((100, 150), page_layout="tile", chip="wormhole_n150").placement)
        (1024,1,12,2):(2@addr,2048@addr,1@bank,2048@addr) o ((16,2,4),(16,2,5)):((16,512,5120),(1,256,1024)) \
where ((1,16,32),(0,0,0))<100 and ((0,0,0),(1,16,32))<150
        """
        start = page_bytes.offset + 0 @ self.axis + 0 @ addr  # places have both axes
        deal, cut, widen = self.places, self.paging.cut, self.paging.widen
        outer = Layout((page_bytes.shape, *deal.shape), (page_bytes.stride, *deal.stride), offset=start)
        by_shard = Layout((page_elements, *cut.shape), (1, *_scale_strides(cut.stride, page_elements)))
        grown = Layout((page_elements, *widen.shape), (1, *_scale_strides(widen.stride, page_elements)))
        placement: LayoutLike = compose(outer, compose(by_shard, compose(grown, host)))
        return placement


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


def _scale_strides(strides: Any, factor: int) -> Any:  # a tree of steps
    """Return a stride with all steps multiplied by a factor."""
    if isinstance(strides, tuple):
        return tuple([_scale_strides(step, factor) for step in strides])
    return strides * factor


class PlacedTensor(PageGeometry):
    """The base of `TensorSpec` for locators and placement rules: pages with a place on a chip."""

    chip: Chip | None

    if TYPE_CHECKING:

        @property
        def known_chip(self) -> Chip: ...

        @property
        def paging(self) -> Paging: ...

        @property
        def page_map(self) -> PageMap: ...

        @property
        def position_of_bank(self) -> dict[int, int]: ...

        @property
        def bytes_per_bank(self) -> int: ...

        @property
        def first_address(self) -> int: ...

        def validate_pages(self) -> None: ...
