# SPDX-License-Identifier: Apache-2.0
"""`TensorSpec`: all that decides where the elements of a tensor live."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..copying import tiled_layout
from ..errors import MemoryConfigError
from ..formats import BlockFormat, Format, format_of
from ..layout import Axis, Layout, addr, bank, core, left_inverse, row_major, with_logical_shape
from ..layout.tuples import round_up
from ..showing import Shown
from .chip import Chip
from .config import MemoryConfig
from .kinds import TensorLayout
from .legality import (
    Violation,
    bytes_per_bank,
    check_placement,
    grid_violations,
    placement_violations,
    spec_violations,
)
from .padding import padded_extents
from .page_table import PageTable, page_table
from .pages import PagedTensor
from .paging import Paging, cut_in_shards, dealt_in_turn
from .placing import element_placement
from .shape import Shape
from .sharding import Sharding
from .tile import Tile
from .where import Where, as_place, element_at, locate

if TYPE_CHECKING:
    from .fitting import Fit


@dataclass(frozen=True, init=False, repr=False)
class TensorSpec(PagedTensor, Shown):
    """The shape, number format, page layout and memory of a tensor, on a chip: enough to say where each byte is.

    `memory` is a `MemoryConfig`, or a sharding without a shard shape, which is then worked out. Questions about banks
    and addresses need a chip. `alignment` pads beyond what layout and shards ask for.

    >>> from tilewright import block_sharded
    >>> spec = TensorSpec((1, 4, 60, 90), "bfloat8_b", memory=block_sharded(core_grid=(8, 8)), chip="wormhole_n150")
    >>> spec.padded_shape, spec.physical_shape, spec.num_pages, spec.page_bytes
    ((1, 4, 64, 96), (256, 96), 24, 1088)
    >>> spec.where(0, 2, 33, 17).core
    CoreCoord(x=0, y=5)
    """

    shape: Shape
    dtype: Format
    layout: TensorLayout
    tile: Tile
    memory: MemoryConfig
    chip: Chip | None
    alignment: tuple[int, ...] | None

    def __init__(
        self,
        shape: Any,
        dtype: Any = "bfloat16",
        layout: Any = None,
        tile: Any = None,
        memory: Any = None,
        chip: Any = None,
        alignment: Any = None,
    ) -> None:
        element = format_of(dtype)
        tiled = isinstance(element, BlockFormat) if layout is None else TensorLayout.of(layout) is TensorLayout.TILE
        set_field = object.__setattr__  # the class is frozen for everyone else
        set_field(self, "dtype", element)
        set_field(self, "layout", TensorLayout.TILE if tiled else TensorLayout.ROW_MAJOR)
        set_field(self, "tile", Tile.of(tile))
        set_field(self, "chip", None if chip is None else Chip.of(chip))
        set_field(self, "alignment", None if alignment is None else tuple(map(int, alignment)))
        set_field(self, "shape", Shape(shape))
        set_field(self, "memory", self._resolved(memory))
        for broken in spec_violations(self):
            raise MemoryConfigError(f"{list(self.shape)} {element}: {broken}")
        padded = self.padded_shape
        set_field(self, "shape", Shape(self.shape.logical, padded))
        set_field(self, "memory", self.memory.completed(padded, self.physical_shape))

    def _resolved(self, memory: Any) -> MemoryConfig:
        if isinstance(memory, Sharding):
            if self.chip is not None:  # shards that are worked out for a grid are meant for all of it
                for broken in grid_violations(self.chip, memory.grid, memory.buffer_type):
                    raise MemoryConfigError(str(broken))
            tile = self.tile.shape if self.layout is TensorLayout.TILE else None
            padded = padded_extents(self.shape.logical, self.alignment or tile or (1,))
            return memory.config_for(padded, tile, getattr(self.dtype, "itemsize", 1))
        if memory is None or isinstance(memory, MemoryConfig):
            return MemoryConfig() if memory is None else memory
        return MemoryConfig("interleaved", memory)

    def _replaced(self, **changes: Any) -> TensorSpec:
        """Return the spec made again with other arguments."""
        names = ("shape", "dtype", "layout", "tile", "memory", "chip", "alignment")
        given = {name: getattr(self, name) for name in names}
        return TensorSpec(**{**given, "shape": self.shape.logical, **changes})

    def with_memory(self, memory: Any) -> TensorSpec:
        """Return the spec of the same tensor in another memory.

        >>> from tilewright import height_sharded
        >>> TensorSpec((64, 64), layout="tile").with_memory(height_sharded((2, 1))).memory.sharding.shape
        (32, 64)
        """
        return self._replaced(memory=memory)

    def with_chip(self, chip: Any) -> TensorSpec:
        """Return the spec of the same tensor on another chip.

        >>> TensorSpec((64, 64), chip="n150").with_chip("p150").aligned_page_bytes
        128
        """
        return self._replaced(chip=chip)

    def with_dtype(self, dtype: Any) -> TensorSpec:
        """Return the spec of the same tensor in another number format.

        >>> TensorSpec((64, 64), layout="tile").with_dtype("bfloat8_b").page_bytes
        1088
        """
        return self._replaced(dtype=dtype)

    # Banks.

    @property
    def known_chip(self) -> Chip:
        """Return the chip, or raise if the spec has none.

        >>> TensorSpec((4, 4), chip="n150").known_chip.name
        'wormhole_n150'
        """
        if self.chip is None:
            raise MemoryConfigError("banks and addresses depend on the chip; give one, as in chip='wormhole_n150'")
        return self.chip

    @cached_property
    def aligned_page_bytes(self) -> int:
        """Return the bytes from one page to the next in a bank.

        >>> TensorSpec((34, 20), "float32", chip="n150").aligned_page_bytes
        96
        """
        return round_up(self.page_bytes, self.known_chip.page_alignment(self.memory.buffer_type))

    @cached_property
    def paging(self) -> Paging:
        """Return how pages are cut into shards and dealt to cores; interleaved pages are shards of their own.

        >>> TensorSpec((64, 64), layout="tile", chip="n150").paging.num_shards
        4
        """
        self.check_pages()
        sharding = self.memory.sharding
        if sharding is not None:
            made_with_matrix = not self.memory.made_with_nd
            lifted = (1, *self.padded_shape) if made_with_matrix and len(self.padded_shape) == 1 else self.padded_shape
            return cut_in_shards(lifted, sharding, self.page_shape)
        chip, buffer = self.known_chip, self.memory.buffer_type
        return dealt_in_turn(self.num_pages, tuple([chip.core_of(k, buffer) for k in range(chip.banks(buffer))]))

    def check_pages(self) -> None:
        """Raise if the tensor is no whole number of pages.

        >>> TensorSpec((4, 4)).check_pages()
        """
        for what, n, page in zip(("height", "width"), self.physical_shape, self.page_shape, strict=True):
            if page and n % page:
                raise MemoryConfigError(
                    f"the {what} {n} of the tensor is not a multiple of the {what} {page} of a page; use an alignment"
                    f" of {page}, which pads it to {round_up(n, page)}"
                )

    @cached_property
    def banks(self) -> tuple[int, ...]:
        """Return the bank of each core that pages are dealt to, also where there are fewer pages than cores.

        >>> from tilewright import height_sharded
        >>> TensorSpec((64, 64), layout="tile", memory=height_sharded((2, 1)), chip="n150").banks
        (34, 63)
        """
        cores = self.paging.cores
        if not self.memory.is_sharded:
            return tuple(range(len(cores)))
        chip, buffer = self.known_chip, self.memory.buffer_type
        return tuple([chip.bank_of(core, buffer) for core in cores])

    @cached_property
    def used_banks(self) -> frozenset[int]:
        """Return the banks that hold at least one page.

        >>> sorted(TensorSpec((64, 64), layout="tile", chip="n150").used_banks)
        [0, 1, 2, 3]
        """
        return frozenset(self.banks[: self.paging.num_shards])

    @cached_property
    def position_of_bank(self) -> dict[int, int]:
        """Return the position in the list of cores of each bank that holds part of the tensor.

        >>> TensorSpec((64, 64), chip="n150").position_of_bank[3]
        3
        """
        return {number: position for position, number in enumerate(self.banks)}

    @cached_property
    def bytes_per_bank(self) -> int:
        """Return the bytes that every bank must have free, before rounding to the allocator's unit.

        >>> TensorSpec((1024, 1024), "bfloat16", "tile", chip="n150").bytes_per_bank
        176128
        """
        return bytes_per_bank(self, self.known_chip)

    @cached_property
    def allocated_bytes(self) -> int:
        """Return the bytes that the allocator takes from every bank; none for a tensor without elements.

        >>> TensorSpec((5,), "uint8", memory="l1", chip="n150").allocated_bytes
        32
        """
        return round_up(self.bytes_per_bank, self.known_chip.allocation_alignment)

    @cached_property
    def first_address(self) -> int:
        """Return the address that the tensor gets on an empty chip.

        >>> TensorSpec((32, 32), "int32", "tile", memory="l1", chip="n150").first_address
        1495040
        """
        chip, buffer = self.known_chip, self.memory.buffer_type
        check_placement(self)
        return chip.end(buffer) - self.allocated_bytes if buffer.is_l1 else chip.base(buffer)

    # Places.

    @cached_property
    def _whole(self) -> Layout:
        """Return the layout from a padded coordinate to its element in physical order."""
        if self.layout is TensorLayout.TILE:
            return tiled_layout(self.padded_shape, self.tile.shape, self.tile.face_shape, self.tile.transpose)
        return row_major(*self.padded_shape)

    @cached_property
    def stored(self) -> Layout:
        """Return the layout from a coordinate, of the rank of the padded shape, to its element in physical order.

        >>> print(TensorSpec((7,), memory="dram", layout="tile", tile=(1, 16)).stored)
        ((1,1,1),(16,1,1)):((16,16,16),(1,16,16)) where ((0,0,0),(1,16,16))<7
        """
        lead = len(self.padded_shape) - self.shape.rank
        data: Layout = with_logical_shape(self._whole, (1,) * lead + self.shape.logical)
        return data

    @cached_property
    def host(self) -> Layout:
        """Return the layout from a coordinate to its element in physical order, page after page.

        >>> print(TensorSpec((4, 8)).host)
        (4,8):(8,1)
        """
        lead = len(self.padded_shape) - self.shape.rank
        own = Layout(self._whole.shape[lead:], self._whole.stride[lead:])
        data: Layout = with_logical_shape(own, self.shape.logical) if self.shape.rank else own
        return data

    @cached_property
    def host_inverse(self) -> Any:
        """Return the layout from an element in physical order to the index of its padded coordinate.

        >>> TensorSpec((4, 8)).host_inverse(9)
        5
        """
        return left_inverse(self._whole)

    @property
    def axis(self) -> Axis:
        """Return the axis on which places count banks, or the positions of cores in `paging.cores`.

        >>> TensorSpec((4, 8)).axis
        Axis('bank')
        """
        return core if self.memory.is_sharded else bank

    @cached_property
    def page_places(self) -> Layout:
        """Return the layout from pages counted shard by shard to bank or core, and address in the buffer.

        >>> print(TensorSpec((64, 64), layout="tile", chip="n150").page_places)
        (1,12,1):(2048@addr,1@bank,2048@addr)
        """
        return self.paging.deal(self.aligned_page_bytes, self.axis)

    @cached_property
    def page_axes(self) -> tuple[Layout, Layout]:
        """Return the two axes of `page_places` apart: the bank or position of the core, and the address.

        >>> [along(13) for along in TensorSpec((640, 640), layout="tile", chip="n150").page_axes]
        [1, 2048]
        """
        places = self.page_places + (0 @ self.axis + 0 @ addr)
        return places.project(self.axis), places.project(addr)

    @cached_property
    def placement(self) -> Any:
        """Return the layout from a coordinate to its bank or core, and the byte in the buffer there.

        On the axis `core` places count along `paging.cores`. Elements smaller than a byte share a place.

        >>> TensorSpec((1, 4, 60, 90), "int32", "tile", chip="n150").placement(0, 2, 33, 17)
        Place(addr=5188, bank=3)
        """
        return element_placement(self)

    def where(self, *coord: int, base: int | None = None) -> Where:
        """Return every step on the way of an element to its byte, in a buffer at base or on an empty chip.

        >>> TensorSpec((1, 4, 60, 90), "int32", "tile", chip="n150").where(0, 2, 33, 17).address
        1053828
        """
        return locate(self, coord, base)

    def element_at(
        self, place: Any, address: int | None = None, bit: int = 0, base: int | None = None
    ) -> tuple[int, ...] | None:
        """Return the coordinate of the element at an address of a core or bank; None for padding, gaps and exponents.

        >>> TensorSpec((1, 4, 60, 90), "int32", "tile", chip="n150").element_at(3, 1053828)
        (0, 2, 33, 17)
        """
        place, at, bit = as_place(place, address, bit)
        return element_at(self, place, at, bit, base)

    def pages(self, base: int | None = None) -> PageTable:
        """Return where every page lies, as arrays, in a buffer at base or on an empty chip.

        >>> TensorSpec((64, 64), layout="tile", chip="n150").pages().bank.tolist()
        [0, 1, 2, 3]
        """
        return page_table(self, self.first_address if base is None else base)

    def violations(self) -> list[Violation]:
        """Return the rules of placement that the tensor breaks on its chip, in numbers; none if it can be placed.

        Without a chip, it can be placed if one of the shipped chips takes it.

        >>> from tilewright import height_sharded
        >>> spec = TensorSpec((64, 64), layout="tile", memory=height_sharded((1, 9), (32, 64)), chip="n150")
        >>> print(spec.violations()[0].remedy)
        its cores are (0, 0) to (7, 7)
        """
        return list(placement_violations(self))

    def fit(self, circular_buffers: Any = 0) -> Fit:
        """Return whether the tensor fits its chip beside circular buffers, and what would if it does not.

        >>> bool(TensorSpec((64, 64), memory="l1", chip="n150").fit(circular_buffers=100_000))
        True
        """
        from .fitting import fit  # it tries other specs, and so stands below this file

        return fit(self, circular_buffers=circular_buffers)

    def __repr__(self) -> str:
        parts = [repr(self.shape.logical), repr(self.dtype.name), repr(self.layout.name.lower())]
        if not self.tile.is_default:
            parts.append(f"tile={self.tile!r}")
        if self.memory != MemoryConfig():
            parts.append(f"memory={self.memory!r}")
        if self.chip is not None:
            parts.append(f"chip={self.chip!r}")
        if self.alignment is not None:
            parts.append(f"alignment={self.alignment}")
        return f"TensorSpec({', '.join(parts)})"

    def __str__(self) -> str:
        layout = f"tiles of {self.tile}" if self.layout is TensorLayout.TILE else "rows"
        chip = f", {self.chip.name}" if self.chip else ""
        return f"{self.shape} {self.dtype} in {layout}, {self.memory}{chip}"


def as_spec(value: Any) -> TensorSpec:
    """Return the spec that value is or has: of a tensor, or of a dialect's tensor or spec.

    >>> as_spec(TensorSpec((4, 4))).shape.logical
    (4, 4)
    """
    own = getattr(value, "plain", value)  # a dialect's value is one of ours under other names
    found = own if isinstance(own, TensorSpec) else getattr(own, "spec", None)
    if not isinstance(found, TensorSpec):
        raise MemoryConfigError(
            f"expected a TensorSpec, or a tensor that has one, got {type(value).__name__}; make one with"
            " TensorSpec(shape, dtype, ...)"
        )
    return found
