# SPDX-License-Identifier: Apache-2.0
"""`TensorSpec`: shape, format, pages and memory of a tensor on a chip, which decide where its elements are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import MemoryConfigError
from ..formats import Format, FormatLike, format_of
from ..layout import Axis, LayoutLike, bank, core
from ..layout.tuples import round_up
from ..showing import Shown
from .chip import Chip, ChipLike
from .cores import CoreLike
from .memory_config import BufferType, MemoryConfig, PageLayout
from .page_geometry import Tile, TileLike
from .page_map import PageMap, PageTable, PlacedTensor, page_byte_layout
from .paging import Paging, interleaved_paging, sharded_paging
from .placement_rules import (
    Violation,
    bytes_per_bank,
    grid_violations,
    placement_violations,
    spec_violations,
    validate_placement,
)
from .shape import Shape, padded_extents
from .sharding import Sharding
from .where import ElementLocator, Where, split_place

if TYPE_CHECKING:
    from .fit_report import CircularBuffers, Fit

MemoryLike: TypeAlias = MemoryConfig | Sharding | BufferType | str | None


@dataclass(frozen=True, init=False, repr=False)
class TensorSpec(PlacedTensor, Shown):
    """The shape, number format, page layout and memory of a tensor on a chip, which decide where each byte is.

    Args:
        shape: the logical extents.
        dtype: the number format.
        page_layout: "tile" or "row_major"; the default is tiles for block formats, rows otherwise.
        tile: the `Tile`, or its (height, width); 32 x 32 by default.
        memory: a `MemoryConfig`, a `Sharding` without a shard shape, or "dram" (the default) or "l1" for interleaved.
        chip: the `Chip` or its name; needed for banks and addresses.
        alignment: pads the last dimensions to multiples, beyond what tiles and shards need.

    >>> from tilewright import block_sharded
    >>> spec = TensorSpec((1, 4, 60, 90), "bfloat8_b", memory=block_sharded(core_grid=(8, 8)), chip="wormhole_n150")
    >>> spec.padded_shape, spec.physical_shape, spec.num_pages, spec.page_bytes
    ((1, 4, 64, 96), (256, 96), 24, 1088)
    >>> spec.where(0, 2, 33, 17).core
    CoreCoord(x=0, y=5)
    """

    shape: Shape
    dtype: Format
    page_layout: PageLayout
    tile: Tile
    memory: MemoryConfig
    chip: Chip | None
    alignment: tuple[int, ...] | None

    def __init__(
        self,
        shape: Iterable[int],
        dtype: FormatLike = "bfloat16",
        page_layout: PageLayout | str | None = None,
        tile: TileLike = None,
        memory: MemoryLike = None,
        chip: ChipLike | None = None,
        alignment: Iterable[int] | None = None,
    ) -> None:
        element = format_of(dtype)
        if page_layout is None:
            page_layout = PageLayout.TILE if element.has_blocks else PageLayout.ROW_MAJOR
        set_field = object.__setattr__  # the class is frozen
        set_field(self, "dtype", element)
        set_field(self, "page_layout", PageLayout.of(page_layout))
        set_field(self, "tile", Tile.of(tile))
        set_field(self, "chip", None if chip is None else Chip.of(chip))
        set_field(self, "alignment", None if alignment is None else tuple(map(int, alignment)))
        set_field(self, "shape", Shape(shape))
        set_field(self, "memory", self._resolve_memory(memory))
        for violation in spec_violations(self):
            raise MemoryConfigError(f"{list(self.shape)} {element}: {violation}")
        padded = self.padded_shape
        set_field(self, "shape", Shape(self.shape.logical, padded))
        set_field(self, "memory", self.memory.complete(padded, self.physical_shape))

    def _resolve_memory(self, memory: MemoryLike) -> MemoryConfig:
        """Return the config of a memory, with a computed shard shape for a `Sharding`."""
        if isinstance(memory, Sharding):
            if self.chip is not None:  # a computed shard shape uses all cores of the grid
                for violation in grid_violations(self.chip, memory.grid, memory.buffer_type):
                    raise MemoryConfigError(str(violation))
            tile = self.tile.shape if self.is_tiled else None
            padded = padded_extents(self.shape.logical, self.alignment or tile or (1,))
            return memory.config_for(padded, tile, self.dtype.storage_format.itemsize)
        if memory is None or isinstance(memory, MemoryConfig):
            return MemoryConfig() if memory is None else memory
        return MemoryConfig("interleaved", memory)

    def replace(self, **changes: Any) -> TensorSpec:  # arguments of any type; the constructor validates them
        """Return the spec with other constructor arguments.

        >>> TensorSpec((64, 64)).replace(shape=(32, 64), dtype="int8").page_bytes
        64
        """
        names = ("dtype", "page_layout", "tile", "memory", "chip", "alignment")
        arguments = {name: getattr(self, name) for name in names}
        return TensorSpec(**{"shape": self.shape.logical, **arguments, **changes})

    def with_memory(self, memory: MemoryLike) -> TensorSpec:
        """Return the spec of the same tensor in another memory.

        >>> from tilewright import height_sharded
        >>> TensorSpec((64, 64), page_layout="tile").with_memory(height_sharded((2, 1))).memory.sharding.shape
        (32, 64)
        """
        return self.replace(memory=memory)

    def with_chip(self, chip: ChipLike | None) -> TensorSpec:
        """Return the spec of the same tensor on another chip.

        >>> TensorSpec((64, 64), chip="n150").with_chip("p150").aligned_page_bytes
        128
        """
        return self.replace(chip=chip)

    def with_dtype(self, dtype: FormatLike) -> TensorSpec:
        """Return the spec of the same tensor in another number format.

        >>> TensorSpec((64, 64), page_layout="tile").with_dtype("bfloat8_b").page_bytes
        1088
        """
        return self.replace(dtype=dtype)

    @property
    def known_chip(self) -> Chip:
        """Return the chip, or raise if the spec has none.

        >>> TensorSpec((4, 4), chip="n150").known_chip.name
        'wormhole_n150'
        """
        if self.chip is None:
            raise MemoryConfigError("banks and addresses depend on the chip; pass one, such as chip='wormhole_n150'")
        return self.chip

    @cached_property
    def aligned_page_bytes(self) -> int:
        """Return the distance in bytes of the pages of a bank.

        >>> TensorSpec((34, 20), "float32", chip="n150").aligned_page_bytes
        96
        """
        return round_up(self.page_bytes, self.known_chip.page_alignment(self.memory.buffer_type))

    @cached_property
    def paging(self) -> Paging:
        """Return how pages are cut into shards and distributed over cores; interleaved pages are shards of one page.

        >>> TensorSpec((64, 64), page_layout="tile", chip="n150").paging.num_shards
        4
        """
        self.validate_pages()
        sharding = self.memory.sharding
        if sharding is not None:
            is_vector = len(self.padded_shape) == 1 and not self.memory.made_with_nd
            padded = (1, *self.padded_shape) if is_vector else self.padded_shape
            return sharded_paging(padded, sharding, self.page_shape)
        chip, buffer = self.known_chip, self.memory.buffer_type
        return interleaved_paging(self.num_pages, tuple([chip.core_of(k, buffer) for k in range(chip.banks(buffer))]))

    def validate_pages(self) -> None:
        """Raise if the tensor is not a whole number of pages.

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
        """Return the bank of each core of `paging.cores`.

        >>> from tilewright import height_sharded
        >>> TensorSpec((64, 64), page_layout="tile", memory=height_sharded((2, 1)), chip="n150").banks
        (34, 63)
        """
        cores = self.paging.cores
        if not self.memory.is_sharded:
            return tuple(range(len(cores)))
        chip, buffer = self.known_chip, self.memory.buffer_type
        return tuple([chip.bank_of(core, buffer) for core in cores])

    @cached_property
    def used_banks(self) -> frozenset[int]:
        """Return the banks with at least one page.

        >>> sorted(TensorSpec((64, 64), page_layout="tile", chip="n150").used_banks)
        [0, 1, 2, 3]
        """
        return frozenset(self.banks[: self.paging.num_shards])

    @cached_property
    def position_of_bank(self) -> dict[int, int]:
        """Return the position in `paging.cores` of each bank.

        >>> TensorSpec((64, 64), chip="n150").position_of_bank[3]
        3
        """
        return {number: position for position, number in enumerate(self.banks)}

    @cached_property
    def bytes_per_bank(self) -> int:
        """Return the bytes needed in each bank, before rounding to the alignment of allocations.

        >>> TensorSpec((1024, 1024), "bfloat16", "tile", chip="n150").bytes_per_bank
        176128
        """
        return bytes_per_bank(self, self.known_chip)

    @cached_property
    def allocated_bytes(self) -> int:
        """Return the bytes allocated in each bank; 0 for a tensor without elements.

        >>> TensorSpec((5,), "uint8", memory="l1", chip="n150").allocated_bytes
        32
        """
        return round_up(self.bytes_per_bank, self.known_chip.allocation_alignment)

    @cached_property
    def first_address(self) -> int:
        """Return the address of the tensor on an empty chip.

        >>> TensorSpec((32, 32), "int32", "tile", memory="l1", chip="n150").first_address
        1495040
        """
        chip, buffer = self.known_chip, self.memory.buffer_type
        validate_placement(self)
        return chip.end(buffer) - self.allocated_bytes if buffer.is_l1 else chip.base(buffer)

    @property
    def axis(self) -> Axis:
        """Return the axis of placements that counts banks, or positions of cores in `paging.cores`.

        >>> TensorSpec((4, 8)).axis
        Axis('bank')
        """
        return core if self.memory.is_sharded else bank

    @cached_property
    def page_map(self) -> PageMap:
        """Return the map from pages to banks or cores, and back.

        >>> TensorSpec((64, 64), page_layout="tile", chip="n150").page_map.page_at(3, 5)
        (3, 5)
        """
        return PageMap(self.paging, self.banks, self.aligned_page_bytes, self.axis)

    @cached_property
    def placement(self) -> LayoutLike:
        """Return the layout from a coordinate to its bank or core, and the byte in the buffer there.

        The axis `core` counts positions in `paging.cores`. Elements smaller than a byte share an offset.

        >>> TensorSpec((1, 4, 60, 90), "int32", "tile", chip="n150").placement(0, 2, 33, 17)
        Place(addr=5188, bank=3)
        """
        return self.page_map.place_elements(
            self.host, self.page_elements, page_byte_layout(self.dtype, self.page_elements)
        )

    @cached_property
    def locator(self) -> ElementLocator:
        """Return the locator, which finds elements by coordinate and by address.

        >>> TensorSpec((4, 4), "int32", chip="n150").locator.element_at(1, 1048648)
        (1, 2)
        """
        return ElementLocator(self)

    def where(self, *coord: int, base: int | None = None) -> Where:
        """Return where an element is, in a buffer at address `base` or on an empty chip.

        >>> TensorSpec((1, 4, 60, 90), "int32", "tile", chip="n150").where(0, 2, 33, 17).address
        1053828
        """
        return self.locator.locate(coord, base)

    def element_at(
        self, place: Where | CoreLike | int, address: int | None = None, bit: int = 0, base: int | None = None
    ) -> tuple[int, ...] | None:
        """Return the coordinate of the element at an address of a core or bank; None for padding, gaps and scales.

        `place` is a bank, a core (x, y), or a `Where` without an address; `bit` is the bit in the byte, and `base` the
        address of the buffer.

        >>> TensorSpec((1, 4, 60, 90), "int32", "tile", chip="n150").element_at(3, 1053828)
        (0, 2, 33, 17)
        """
        bank_or_core, at, bit = split_place(place, address, bit)
        return self.locator.element_at(bank_or_core, at, bit, base)

    def pages(self, base: int | None = None) -> PageTable:
        """Return the table of all pages, in a buffer at address `base` or on an empty chip.

        >>> TensorSpec((64, 64), page_layout="tile", chip="n150").pages().bank.tolist()
        [0, 1, 2, 3]
        """
        return self.page_map.table(self.first_address if base is None else base)

    def violations(self) -> list[Violation]:
        """Return the placement rules that the tensor breaks on its chip; without a chip, on all known chips.

        >>> from tilewright import height_sharded
        >>> spec = TensorSpec((64, 64), page_layout="tile", memory=height_sharded((1, 9), (32, 64)), chip="n150")
        >>> print(spec.violations()[0].remedy)
        use cores (0, 0) to (7, 7)
        """
        return list(placement_violations(self))

    def fit(self, circular_buffers: CircularBuffers = 0) -> Fit:
        """Return whether the tensor fits its chip beside `circular_buffers` (bytes per core), and alternatives if not.

        >>> bool(TensorSpec((64, 64), memory="l1", chip="n150").fit(circular_buffers=100_000))
        True
        """
        from .fit_report import fit  # it tries other specs

        return fit(self, circular_buffers=circular_buffers)

    def __repr__(self) -> str:
        parts = [repr(self.shape.logical), repr(self.dtype.name), repr(self.page_layout.name.lower())]
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
        pages = f"tiles of {self.tile}" if self.is_tiled else "rows"
        chip = f", {self.chip.name}" if self.chip else ""
        return f"{self.shape} {self.dtype} in {pages}, {self.memory}{chip}"


def as_spec(value: Any) -> TensorSpec:
    """Return the spec of a tensor, of a spec, or of either in a dialect.

    >>> as_spec(TensorSpec((4, 4))).shape.logical
    (4, 4)
    """
    plain = getattr(value, "plain", value)  # values of a dialect have the core value as `plain`
    spec = plain if isinstance(plain, TensorSpec) else getattr(plain, "spec", None)
    if not isinstance(spec, TensorSpec):
        raise MemoryConfigError(
            f"expected a TensorSpec or a tensor, got {type(value).__name__}; create one with TensorSpec(shape, dtype,"
            " ...)"
        )
    return spec
