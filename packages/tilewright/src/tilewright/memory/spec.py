# SPDX-License-Identifier: Apache-2.0
"""`TensorSpec`: shape, format, pages and memory of a tensor on a chip, which decide where its elements are; `fit`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from ..errors import MemoryConfigError
from ..formats import Format, FormatLike, format_of
from ..plain import to_plain
from ..showing import Shown
from .chip import Chip, ChipLike
from .cores import CoreLike
from .fit_report import CircularBuffers, Fit, FitRequest, check_fit
from .memory_config import MemoryConfig, PageLayout
from .page_geometry import PageGeometry
from .paging import PageTable
from .placement_rules import Violation, grid_violations, placement_violations, spec_violations, validate_placement
from .shape import Shape, Tile, TileLike, padded_extents
from .sharding import MemoryLike, as_memory
from .where import ElementLocator, Where, split_place


@dataclass(frozen=True, init=False, repr=False)
class TensorSpec(PageGeometry, Shown):
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
        config = as_memory(memory)
        if isinstance(config, MemoryConfig):
            return config
        if self.chip is not None:  # a computed shard shape uses all cores of the grid
            for violation in grid_violations(self.chip, config.grid, config.buffer_type):
                raise MemoryConfigError(str(violation))
        tile = self.tile.shape if self.is_tiled else None
        padded = padded_extents(self.shape.logical, self.alignment or tile or (1,))
        return config.config_for(padded, tile, self.dtype.storage_format.itemsize)

    def replace(self, **changes: Any) -> TensorSpec:  # arguments of any type; the constructor validates them
        """Return the spec with `changes` to its constructor arguments.

        >>> TensorSpec((64, 64)).replace(shape=(32, 64), dtype="int8").page_bytes
        64
        """
        return TensorSpec(**{**self.arguments(), **changes})

    def arguments(self) -> dict[str, Any]:  # of any type
        """Return the constructor arguments by name.

        >>> TensorSpec((64, 64), "int8").arguments()["dtype"]
        format_of('int8')
        """
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"shape": self.shape.logical}

    def with_memory(self, memory: MemoryLike) -> TensorSpec:
        """Return the spec of the same tensor in another `memory`.

        >>> from tilewright import height_sharded
        >>> TensorSpec((64, 64), page_layout="tile").with_memory(height_sharded((2, 1))).memory.sharding.shape
        (32, 64)
        """
        return self.replace(memory=memory)

    def with_chip(self, chip: ChipLike | None) -> TensorSpec:
        """Return the spec of the same tensor on another `chip`.

        >>> TensorSpec((64, 64), chip="n150").with_chip("p150").aligned_page_bytes
        128
        """
        return self.replace(chip=chip)

    def with_dtype(self, dtype: FormatLike) -> TensorSpec:
        """Return the spec of the same tensor in another number format `dtype`.

        >>> TensorSpec((64, 64), page_layout="tile").with_dtype("bfloat8_b").page_bytes
        1088
        """
        return self.replace(dtype=dtype)

    @cached_property
    def first_address(self) -> int:
        """Return the address of the tensor on an empty chip.

        >>> TensorSpec((32, 32), "int32", "tile", memory="l1", chip="n150").first_address
        1495040
        """
        chip, buffer = self.known_chip, self.memory.buffer_type
        validate_placement(self)
        return chip.end(buffer) - self.allocated_bytes if buffer.is_l1 else chip.base(buffer)

    @cached_property
    def locator(self) -> ElementLocator:
        """Return the locator, which finds elements by coordinate and by address.

        >>> TensorSpec((4, 4), "int32", chip="n150").locator.element_at(1, 1048648, base=1048640)
        (1, 2)
        """
        return ElementLocator(self)

    def where(self, *coord: int, base: int | None = None) -> Where:
        """Return where the element at `coord` is, in a buffer at address `base` or on an empty chip.

        >>> TensorSpec((1, 4, 60, 90), "int32", "tile", chip="n150").where(0, 2, 33, 17).address
        1053828
        """
        return self.locator.locate(coord, self.first_address if base is None else base)

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
        return self.locator.element_at(bank_or_core, at, self.first_address if base is None else base, bit)

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
        return check_fit([self], TensorSpec, self.chip, circular_buffers)

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
    """Return the spec of `value`: a tensor, a spec, or either in a dialect.

    >>> as_spec(TensorSpec((4, 4))).shape.logical
    (4, 4)
    """
    plain = to_plain(value)
    spec = plain if isinstance(plain, TensorSpec) else getattr(plain, "spec", None)
    if not isinstance(spec, TensorSpec):
        raise MemoryConfigError(
            f"expected a TensorSpec or a tensor, got {type(value).__name__}, which does not say what is stored; create"
            " a TensorSpec(shape, dtype, ...) with it"
        )
    return spec


def device_address(value: Any) -> int | None:
    """Return the address of a tensor that is on a device, or None: that of a spec depends on what else is there.

    >>> device_address(TensorSpec((4, 4))) is None
    True
    """
    storage = getattr(to_plain(value), "storage", None)
    allocation = getattr(storage, "allocation", None)
    return None if allocation is None else int(allocation.address)


def _as_fitted(value: Any) -> TensorSpec:
    """Return the spec of a tensor, or of the storage of a tensor in memory with a layout: one page, in one bank."""
    plain = to_plain(value)
    cosize, dtype = getattr(getattr(plain, "layout", None), "cosize", None), getattr(plain, "dtype", None)
    if cosize is None or dtype is None or isinstance(getattr(plain, "spec", None), TensorSpec):
        return as_spec(value)
    return TensorSpec((1, int(cosize)), dtype, "row_major", memory="l1" if _is_local(value) else "dram")


def _is_local(value: Any) -> bool:
    """Return whether a tensor is in the memory of a core: internal, shared or local."""
    space = getattr(getattr(to_plain(value), "address_space", None), "name", "")
    return bool(getattr(value, "internal", False)) or space in ("SHARED", "LOCAL")


def fit(
    request: Any,  # specs, tensors of any kind, or arguments of specs; one or several
    chip: ChipLike | None = None,
    circular_buffers: CircularBuffers = 0,
    l1_small_size: int = 0,
    trace_region_size: int = 0,
) -> Fit:
    """Return whether tensors fit a chip together with circular buffers, and the nearest alternatives if not.

    Args:
        request: a spec or a tensor, a dict of arguments of `TensorSpec`, or a list of these, allocated in order. A
            tensor in memory with a layout is fitted as its storage, into one bank.
        chip: the chip; the default is that of the first tensor.
        circular_buffers: bytes per core: a number, several, or several by name.
        l1_small_size: bytes reserved at the top of L1.
        trace_region_size: bytes reserved in all DRAM.

    >>> answer = fit(
    ...     TensorSpec((4096, 4096), "float32", "tile", memory="l1"), "wormhole_n150", circular_buffers=500_000
    ... )
    >>> bool(answer), answer.problems[0].problem
    (False, 'circular buffers use L1 from 105824 to 605824 on every core, but tensors start at 450560')
    >>> print(answer.alternatives[0])
    float32 as bfloat16: 524288 bytes in each of 64 banks
    """
    listed = request if isinstance(request, (list, tuple, Iterator)) else [request]
    requests: list[FitRequest] = [item if isinstance(item, Mapping) else _as_fitted(item) for item in listed]
    return check_fit(requests, TensorSpec, chip, circular_buffers, l1_small_size, trace_region_size)
