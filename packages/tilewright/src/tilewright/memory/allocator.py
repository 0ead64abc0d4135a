# SPDX-License-Identifier: Apache-2.0
"""`Allocator`: the addresses of tensors: the same in all banks of a memory, or of a core's shard alone."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .._integers import ceil_div, round_up
from .._text import count_of, format_bytes, format_extents
from ..display import Drawable
from ..errors import MemoryConfigError, OutOfMemory, TilewrightError
from ..formats import format_of
from .chip import Chip, ChipLike
from .config import (
    AllocationMode,
    BufferType,
    BufferTypeLike,
    PageLayout,
    Sharding,
    ShardOrientation,
    as_memory,
    block_sharded,
    height_sharded,
    interleaved,
    width_sharded,
)
from .cores import CoreCoord, CoreRangeSet, first_cores
from .paging import PageTable
from .placement_rules import Violation, broken_rule

if TYPE_CHECKING:
    from .spec import TensorSpec


_Range: TypeAlias = "tuple[int, int]"  # from an address to the one after the last
_HYBRID_VARIABLE = "TT_METAL_ALLOCATOR_MODE_HYBRID"  # of ttnn
EMPTY_ADDRESS = 0  # the address of a tensor without elements
TRACE_ALIGNMENT = 8192  # bytes; the trace region of a bank is a multiple of this


@dataclass(frozen=True, slots=True)
class Allocation:
    """An allocated block at the same address in every bank of a memory, and the spec of its tensor, if any.

    If each core's shard is allocated on its own, `shard_addresses` has the address on every core of the shards' grid,
    and `address` is the lowest of them.

    >>> from tilewright import TensorSpec
    >>> Allocator("wormhole_n150").allocate(TensorSpec((32, 32), "int32", "tile", memory="l1", chip="n150")).address
    1495040
    """

    number: int
    buffer_type: BufferType
    address: int
    size: int
    spec: TensorSpec | None = None
    shard_addresses: tuple[tuple[CoreCoord, int], ...] = ()

    @property
    def end(self) -> int:
        """The address after the last byte.

        >>> Allocation(0, BufferType.DRAM, 1024, 64).end
        1088
        """
        return self.address + self.size

    @property
    def single_address(self) -> int:
        """The address on all cores; an error if each core's shard is allocated on its own.

        >>> Allocation(0, BufferType.DRAM, 1024, 64).single_address
        1024
        """
        if self.shard_addresses:
            raise MemoryConfigError(f"{self.spec} has no single address; use shard_addresses, or lockstep")
        return self.address

    def pages(self) -> PageTable:
        """Return the table of all pages of the tensor, at their addresses.

        >>> from tilewright import TensorSpec
        >>> spec = TensorSpec((32, 64), "int32", "tile", memory="l1", chip="n150")
        >>> Allocator("n150").allocate(spec).pages().address.tolist()
        [1495040, 1495040]
        """
        assert self.spec is not None
        table = self.spec.pages(self.address)
        if not self.shard_addresses:
            return table
        chip, starts = self.spec.known_chip, dict(self.shard_addresses)
        start = np.zeros(chip.banks(self.buffer_type), dtype=np.int64)
        start[list(chip.banks_of(starts, self.buffer_type))] = list(starts.values())
        return replace(table, address=table.address - self.address + start[table.bank])


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The state of one memory, in bytes per bank: total, allocated, free, and the largest free block.

    With shards that are allocated on their own, an address counts as allocated if it is on any core.

    >>> print(Allocator("wormhole_n150").memory_view("l1"))
    L1: 0 of 1393312 bytes in each of 64 banks used, largest free block 1393312
    """

    buffer_type: BufferType
    num_banks: int
    bank_bytes: int
    allocated: int
    free: int
    largest_free: int
    allocations: tuple[Allocation, ...] = ()

    @property
    def has_own_addresses(self) -> bool:
        """Whether a core's shard is allocated on its own, so that banks differ.

        >>> Allocator("wormhole_n150").memory_view("l1").has_own_addresses
        False
        """
        return any(block.shard_addresses for block in self.allocations)

    @property
    def summary(self) -> str:
        """The first line of the text: the used and the free bytes.

        >>> Allocator("wormhole_n150").memory_view("l1_small").summary
        'L1_SMALL: 0 of 0 bytes in each of 64 banks used, largest free block 0'
        """
        banks = f"in {'some' if self.has_own_addresses else 'each'} of {self.num_banks} banks"
        head = f"{self.buffer_type}: {self.allocated} of {self.bank_bytes} bytes {banks} used"
        return f"{head}, largest free block {self.largest_free}"

    def __str__(self) -> str:
        lines = [self.summary]
        for block in self.allocations:
            tensor = f"  {block.spec.shape} {block.spec.dtype}, {block.spec.memory}" if block.spec else ""
            if block.shard_addresses:
                lines.append(f"  {block.size:>9} bytes at {_format_addresses(block.shard_addresses)}{tensor}")
                continue
            lines.append(f"  {block.address:>10} - {block.end:<10} {block.size:>9} bytes{tensor}")
        return "\n".join(lines)


def _format_addresses(shard_addresses: tuple[tuple[CoreCoord, int], ...]) -> str:
    """Return the lowest and the highest address of the shards of a tensor."""
    addresses = [address for _, address in shard_addresses]
    return f"{min(addresses)} to {max(addresses)}, by core"


def _subtract(free: list[_Range], occupied: Iterable[_Range]) -> list[_Range]:
    """Return free ranges without the `occupied` ones, lowest first."""
    for start, end in occupied:
        parts = [part for low, high in free for part in ((low, min(high, start)), (max(low, end), high))]
        free = [part for part in parts if part[0] < part[1]]
    return free


class _AddressRange:
    """A range of addresses with its free blocks, lowest first, and its allocations by address."""

    def __init__(self, start: int, end: int, top_down: bool) -> None:
        self.start, self.end, self.top_down = start, end, top_down
        self.blocks = [(start, end)] if start < end else []
        self.allocations: dict[int, Allocation] = {}

    @property
    def allocated(self) -> list[_Range]:
        """The ranges that are not free."""
        return _subtract([(self.start, self.end)], self.blocks)

    def find(self, size: int, occupied: Iterable[_Range]) -> int | None:
        """Return the address of the first free block that fits, outside of the `occupied` ranges, or None."""
        free = _subtract(self.blocks, occupied)
        for low, high in reversed(free) if self.top_down else free:
            if high - low >= size:
                return high - size if self.top_down else low
        return None

    def allocate_at(self, start: int, size: int) -> None:
        """Allocate the block at an address, which must be free."""
        self.blocks = _subtract(self.blocks, [(start, start + size)])

    def free(self, start: int, end: int) -> None:
        """Add a free block, merged with adjacent free blocks."""
        for block in [block for block in self.blocks if block[1] == start or block[0] == end]:
            self.blocks.remove(block)
            start, end = min(start, block[0]), max(end, block[1])
        insort(self.blocks, (start, end))


class Allocator(Drawable):
    """The allocator of a chip: first fit, in DRAM from the bottom, in L1 from the top.

    `l1_small_size` bytes at the top of L1 and `trace_region_size` bytes of all DRAM are reserved; `worker_l1_size`
    limits L1 to its upper part. A `hybrid` allocator also allocates the shard of a core on its own, next to
    buffers on all cores: the mode that TT_METAL_ALLOCATOR_MODE_HYBRID=1 selects.

    >>> from tilewright import TensorSpec
    >>> allocator = Allocator("wormhole_n150")
    >>> first = allocator.allocate(TensorSpec((64, 64), "bfloat16", "tile", chip="n150"))
    >>> second = allocator.allocate(TensorSpec((64, 64), "bfloat16", "tile", chip="n150"))
    >>> first.address, second.address
    (1048640, 1050688)
    >>> allocator.free(first)
    >>> allocator.allocate_bytes(64, "dram").address
    1048640
    """

    def __init__(
        self,
        chip: ChipLike,
        l1_small_size: int = 0,
        trace_region_size: int = 0,
        worker_l1_size: int | None = None,
        *,
        hybrid: bool = False,
    ) -> None:
        self.chip, self.hybrid = Chip.of(chip), hybrid
        unit = self.chip.allocation_alignment
        l1_end, dram_end = self.chip.end("l1"), self.chip.end("dram")
        small = round_up(l1_small_size, unit)
        trace = round_up(ceil_div(trace_region_size, self.chip.dram_banks), TRACE_ALIGNMENT)
        l1_base = self.chip.base("l1") if worker_l1_size is None else l1_end - worker_l1_size
        if l1_base < self.chip.base("l1") or l1_base > l1_end - small:
            raise MemoryConfigError(
                f"worker_l1_size={worker_l1_size} and l1_small_size={l1_small_size} do not fit the"
                f" {self.chip.bank_bytes('l1')} bytes of L1 of {self.chip.name}"
            )
        if trace > self.chip.bank_bytes("dram"):
            raise MemoryConfigError(
                f"trace_region_size={trace_region_size} needs {trace} bytes per DRAM bank, but a bank has"
                f" {self.chip.bank_bytes('dram')}"
            )
        self._regions = {
            BufferType.DRAM: _AddressRange(self.chip.base("dram"), dram_end - trace, top_down=False),
            BufferType.TRACE: _AddressRange(dram_end - trace, dram_end, top_down=False),
            BufferType.L1: _AddressRange(l1_base, l1_end - small, top_down=True),
            BufferType.L1_SMALL: _AddressRange(l1_end - small, l1_end, top_down=True),
        }
        # in each bank of L1, beside the blocks in all of them
        self._own_ranges = [
            _AddressRange(l1_base, l1_end - small, top_down=True) for _ in range(self.chip.banks("l1") if hybrid else 0)
        ]
        self._scattered: dict[int, Allocation] = {}  # with an address on each core, by their number
        self._next_number = 0  # a plain one, since allocators are pickled

    def allocate(self, spec: TensorSpec) -> Allocation:
        r"""Return the block allocated for the tensor of `spec`; its pages are `spec.pages(allocation.address)`.

        >>> from tilewright import TensorSpec
        >>> spec = TensorSpec((1, 1, 16384, 16384), "bfloat16", "tile", memory="l1", chip="n150")
        >>> try:
        ...     Allocator("n150").allocate(spec)
        ... except OutOfMemory as problem:
        ...     print(str(problem)[:63])
        536870912 bytes of L1 over 64 banks need 8388608 bytes per bank
        """
        if spec.known_chip != self.chip:
            raise MemoryConfigError(
                f"the spec is for {spec.known_chip}, but the allocator is for {self.chip}; use spec.with_chip(...)"
            )
        buffer_type, size = spec.memory.buffer_type, spec.allocated_bytes_beside(self.hybrid)
        for violation in spec.rules_broken:
            raise violation.error(str(violation))
        if not size:
            return Allocation(self._take_number(), buffer_type, EMPTY_ADDRESS, 0, spec)
        if spec.memory.allocation is AllocationMode.PER_CORE:
            return self._allocate_per_core(spec, size)
        total = spec.paging.num_shards * spec.paging.shard_pages * spec.aligned_page_bytes
        return self._allocate(buffer_type, size, total, len(spec.used_banks), spec)

    def allocate_bytes(self, size: int, buffer_type: BufferTypeLike) -> Allocation:
        """Return a block of `size` bytes per bank of `buffer_type`, rounded up to the alignment of the chip.

        >>> Allocator("wormhole_n150").allocate_bytes(100, "l1").size
        128
        """
        memory = BufferType.of(buffer_type)
        unit, banks = self.chip.allocation_alignment, self.chip.banks(memory)
        return self._allocate(memory, max(unit, round_up(size, unit)), size * banks, banks, None)

    def reserve(self, address: int, size: int, buffer_type: BufferTypeLike) -> Allocation:
        """Allocate the `size` bytes at an `address` of `buffer_type`, which must be free, and return the block.

        >>> Allocator("wormhole_n150").reserve(2097152, 64, "dram").end
        2097216
        """
        memory = BufferType.of(buffer_type)
        region = self._region(memory)
        free = _subtract(region.blocks, self._occupied_by_shards(memory, None))
        if size < 1 or not any(low <= address and address + size <= high for low, high in free):
            raise MemoryConfigError(
                f"{size} bytes at {address} of {memory} are not free; the free blocks are"
                f" {', '.join(f'{low} to {high}' for low, high in free) or 'none'}"
            )
        return self._record(region, memory, address, size, None)

    def _allocate(
        self, buffer_type: BufferType, size: int, total: int, banks: int, spec: TensorSpec | None
    ) -> Allocation:
        region = self._region(buffer_type)
        address = region.find(size, self._occupied_by_shards(buffer_type, spec))
        if address is None:
            whole, free = region.end - region.start, self._free_sizes(buffer_type)
            raise OutOfMemory(
                f"{total} bytes of {buffer_type} over {count_of(banks, 'bank')} need {size} bytes per bank, but the"
                f" largest free block has {max(free, default=0)}: a bank has {whole} bytes, {whole - sum(free)}"
                f" allocated and {sum(free)} free; fit lists alternatives"
            )
        return self._record(region, buffer_type, address, size, spec)

    def _occupied_by_shards(self, buffer_type: BufferType, spec: TensorSpec | None) -> set[_Range]:
        """Return the ranges of shards with own addresses: on all cores, or on the cores of `spec` in range lockstep."""
        if buffer_type is not BufferType.L1:
            return set()
        chosen = self._own_ranges
        if chosen and spec is not None and spec.memory.allocation is AllocationMode.RANGE_LOCKSTEP:
            chosen = [chosen[bank] for bank in spec.used_banks]
        return {occupied for own in chosen for occupied in own.allocated}

    def _allocate_per_core(self, spec: TensorSpec, size: int) -> Allocation:
        """Return the block of a tensor of which each core's shard is allocated on its own, core after core."""
        if not self.hybrid:
            raise MemoryConfigError(f"{spec} needs a hybrid allocator; pass hybrid=True (ttnn: {_HYBRID_VARIABLE}=1)")
        # rounded up less than for each other
        lockstep = [
            (block.address, block.address + (block.spec.allocated_bytes if block.spec else block.size))
            for block in self._regions[BufferType.L1].allocations.values()
        ]
        shards = spec.memory.shard_spec
        assert shards is not None
        addresses: list[tuple[CoreCoord, int]] = []
        for core in shards.grid.cores(shards.orientation is ShardOrientation.ROW_MAJOR):
            own = self._own_range(core)
            address = own.find(size, lockstep)
            if address is None:
                free = max([high - low for low, high in _subtract(own.blocks, lockstep)], default=0)
                reason = f"the shard on core {core} needs {size} bytes, but the largest free block there has {free}"
                raise OutOfMemory(f"{reason}; use smaller shards, or other cores")
            addresses.append((core, address))
        for core, address in addresses:  # all of them or none
            self._own_range(core).allocate_at(address, size)
        lowest = min([address for _, address in addresses])
        block = Allocation(self._take_number(), BufferType.L1, lowest, size, spec, tuple(addresses))
        self._scattered[block.number] = block
        return block

    def _own_range(self, core: CoreCoord) -> _AddressRange:
        return self._own_ranges[self.chip.bank_of(core, BufferType.L1)]

    def _take_number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def _record(
        self, region: _AddressRange, buffer_type: BufferType, address: int, size: int, spec: TensorSpec | None
    ) -> Allocation:
        region.allocate_at(address, size)
        allocation = Allocation(self._take_number(), buffer_type, address, size, spec)
        region.allocations[address] = allocation
        return allocation

    def free(self, allocation: Allocation) -> None:
        """Free an `allocation`; adjacent free blocks are merged.

        >>> allocator = Allocator("wormhole_n150")
        >>> allocator.free(allocator.allocate_bytes(100, "l1"))
        >>> allocator.memory_view("l1").allocated
        0
        """
        if not allocation.size:
            return
        if allocation.shard_addresses and self._scattered.pop(allocation.number, None) == allocation:
            for core, address in allocation.shard_addresses:
                self._own_range(core).free(address, address + allocation.size)
            return
        region = self._region(allocation.buffer_type)
        if region.allocations.get(allocation.address) != allocation:
            raise MemoryConfigError(f"{allocation} is not allocated: it was freed already, or is of another allocator")
        del region.allocations[allocation.address]
        region.free(allocation.address, allocation.end)

    def _region(self, buffer_type: BufferType) -> _AddressRange:
        if buffer_type not in self._regions:
            raise MemoryConfigError(
                f"{buffer_type} is not a memory of a chip; use one of {', '.join(map(str, self._regions))}"
            )
        return self._regions[buffer_type]

    def _free_sizes(self, memory: BufferType) -> list[int]:
        """Return the sizes of the blocks of a memory that are free in all banks."""
        free = _subtract(self._region(memory).blocks, self._occupied_by_shards(memory, None))
        return [high - low for low, high in free]

    def memory_view(self, buffer_type: BufferTypeLike) -> MemoryView:
        """Return the state of the memory `buffer_type`.

        >>> Allocator("wormhole_n150", l1_small_size=1000).memory_view("l1_small").bank_bytes
        1024
        """
        memory = BufferType.of(buffer_type)
        region = self._region(memory)
        sizes = self._free_sizes(memory)
        total, free = region.end - region.start, sum(sizes)
        scattered = self._scattered.values() if memory is BufferType.L1 else ()
        blocks = tuple(sorted([*region.allocations.values(), *scattered], key=lambda block: block.address))
        return MemoryView(memory, self.chip.banks(memory), total, total - free, free, max(sizes, default=0), blocks)

    def lowest_address(self, buffer_type: BufferTypeLike) -> int:
        """Return the lowest allocated address of `buffer_type`, or its end if nothing is allocated.

        >>> Allocator("wormhole_n150").lowest_address("l1")
        1499136
        """
        memory = BufferType.of(buffer_type)
        region = self._region(memory)
        shards = [start for start, _ in self._occupied_by_shards(memory, None)]
        return min([*region.allocations, *shards], default=region.end)

    def start_address(self, buffer_type: BufferTypeLike) -> int:
        """Return the first address of `buffer_type`.

        >>> Allocator("wormhole_n150", worker_l1_size=1048576).start_address("l1")
        450560
        """
        return self._region(BufferType.of(buffer_type)).start

    def report(self) -> str:
        """Return the state of all memories with their allocations.

        >>> from tilewright import TensorSpec
        >>> allocator = Allocator("wormhole_n150")
        >>> block = allocator.allocate(TensorSpec((64, 64), "bfloat16", "tile", memory="l1", chip="n150"))
        >>> print(allocator.report())
        DRAM: 0 of 1072693184 bytes in each of 12 banks used, largest free block 1072693184
        L1: 2048 of 1393312 bytes in each of 64 banks used, largest free block 1391264
             1497088 - 1499136         2048 bytes  [64, 64] bfloat16, interleaved in L1
        """
        views = [self.memory_view(buffer_type) for buffer_type in self._regions]
        return "\n".join(str(view) for view in views if view.bank_bytes)


# `fit`: whether tensors fit a chip together, with bytes per bank; if not, why, and alternatives that fit.

MIN_ROW_BYTES = 4  # of a row-major row, as device operations expect it
MAX_ALTERNATIVES = 8
FitRequest: TypeAlias = "TensorSpec | Mapping[str, Any]"  # a spec, or the arguments of one
_HYBRID = f"with shards allocated per core, ttnn needs {_HYBRID_VARIABLE}=1 before a device is opened"
CircularBuffers: TypeAlias = "int | Sequence[int] | Mapping[str, int]"
# Smaller number formats to try, in order; block formats need tiles.
SMALLER = {
    "float64": ("float32", "bfloat16"),
    "float32": ("bfloat16", "bfloat8_b", "bfloat4_b"),
    "bfloat16": ("bfloat8_b", "bfloat4_b"),
    "float16": ("bfloat8_b", "bfloat4_b"),
    "bfloat8_b": ("bfloat4_b",),
    "int32": ("int8",),
    "uint32": ("uint16", "uint8"),
    "uint16": ("uint8",),
}
_SMALL_FORMATS = ("bfloat8_b", "bfloat4_b")  # to try for all tensors together
_PADDING = {"in_pages": "in pages", "alignment": "for alignment", "free_pages": "in free pages"}
_MAX_LISTED = 16  # tensors that are printed one by one
_STRATEGIES = {"block sharded": block_sharded, "height sharded": height_sharded, "width sharded": width_sharded}


@dataclass(frozen=True, slots=True)
class FitTensor:
    """One tensor of a `Fit`: its bytes per bank, padding and address, and its problems and warnings.

    Padding is the space that the banks with pages of the tensor allocate beyond its data, see
    `TensorSpec.padding_parts`. A tensor that breaks a rule is not allocated, and has no bytes and no padding.

    >>> from tilewright import TensorSpec, fit
    >>> fit(TensorSpec((60, 90), "bfloat16", "tile", memory="l1"), "wormhole_n150").tensors[0].bytes_per_bank
    2048
    """

    spec: TensorSpec | None
    bytes_per_bank: int
    banks: int
    padding_bytes: int
    address: int | None
    problems: tuple[Violation, ...] = ()
    warnings: tuple[str, ...] = ()
    name: str = ""
    shard_addresses: tuple[tuple[CoreCoord, int], ...] = ()

    @property
    def total_bytes(self) -> int:
        """The bytes in all banks that the tensor takes, or would take.

        >>> from tilewright import TensorSpec, fit
        >>> fit(TensorSpec((60, 90), "bfloat16", "tile", memory="l1"), "wormhole_n150").tensors[0].total_bytes
        12288
        """
        return self.bytes_per_bank * self.banks

    def __str__(self) -> str:
        label = f"{self.name}: " if self.name else ""
        lines = [label.strip()] if self.name and self.spec is None else []
        if self.spec is not None:
            where = "not allocated" if self.address is None else f"at {self.address}"
            if self.shard_addresses:
                where = f"at {_format_addresses(self.shard_addresses)}"
            chip = f", {self.spec.chip.name}" if self.spec.chip else ""  # which the first line of a report names
            lines.append(f"{label}{str(self.spec).removesuffix(chip)}")
            if self.banks:
                size = f"{self.bytes_per_bank} bytes in {describe_banks(self.spec)}"
                lines.append(f"  {size}, {where}, padding {self._describe_padding(self.spec)}")
            elif not self.spec.num_pages:
                lines.append("  no elements, so no bytes in any bank")
        lines += [f"  {problem}" for problem in self.problems]
        lines += [f"  note: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def _describe_padding(self, spec: TensorSpec) -> str:
        """Return the padding with its share of all bytes, and its parts."""
        parts = [(count, _PADDING[name]) for name, count in spec.padding_parts.items() if count]
        why = f", {parts[0][1]}" if len(parts) == 1 else "".join([f", {count} {words}" for count, words in parts])
        return f"{self.padding_bytes} bytes ({100 * self.padding_bytes / max(1, self.total_bytes):.0f} %{why})"


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether tensors and circular buffers fit a chip together, the problems, and alternatives.

    On a `mesh` of devices, this is for each of them. `remedies` are changes of all tensors together that would fit.
    `scope` states the extent of the count, where a user may expect more, and `notes` are about the request.

    >>> from tilewright import TensorSpec, fit
    >>> print(fit(TensorSpec((2048, 2048), "float32", "tile", memory="l1"), "wormhole_n150"))
    fits wormhole_n150
    [2048, 2048] float32 in tiles of 32 x 32, interleaved in L1
      262144 bytes in each of 64 banks, at 1236992, padding 0 bytes (0 %)
    L1: 262144 of 1393312 bytes in each of 64 banks used, largest free block 1131168
    """

    chip: Chip
    fits: bool
    tensors: tuple[FitTensor, ...]
    memories: tuple[MemoryView, ...]
    circular_buffer_bytes: int
    problems: tuple[Violation, ...]
    alternatives: tuple[Alternative, ...]
    remedies: tuple[str, ...] = ()
    mesh: tuple[int, ...] = ()
    scope: str = ""
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.fits

    def __str__(self) -> str:
        devices = f", on each of {prod(self.mesh)} devices ({format_extents(self.mesh)})" if self.mesh else ""
        scope = f", {self.scope}" if self.scope else ""
        verdict = "fits" if self.fits else "does not fit"
        if self.scope:  # which is not the whole
            verdict = "enough space on" if self.fits else "too little space on"
        lines = [f"{verdict} {self.chip.name}{devices}{scope}"]
        lines += [f"note: {note}" for note in self.notes]
        lines += self._summarize() if len(self.tensors) > _MAX_LISTED else map(str, self.tensors)
        for view in self.memories:
            if view.allocated:
                lines.append(view.summary)
                used, total = (format_bytes(size * view.num_banks) for size in (view.allocated, view.bank_bytes))
                if len(self.tensors) > 1 and not view.has_own_addresses:
                    lines.append(f"  in all {used} of {total}, {format_bytes(view.free * view.num_banks)} left")
        if self.circular_buffer_bytes:
            lines.append(f"circular buffers: {self.circular_buffer_bytes} bytes per core")
        lines += [str(problem) for problem in self.problems]
        if self.alternatives:
            lines += ["alternatives that fit, nearest first:", *(f"  {option}" for option in self.alternatives)]
        if self.remedies:
            lines += ["alternatives for all tensors together:", *(f"  {remedy}" for remedy in self.remedies)]
        return "\n".join(lines)

    def _summarize(self) -> list[str]:
        """Return the sums of many tensors, and the first one that does not fit."""
        # every bank reserves as much as the fullest one, as in the lines on each memory
        banks = {view.buffer_type: view.num_banks for view in self.memories}
        held = [(tensor, tensor.spec) for tensor in self.tensors if tensor.spec is not None and tensor.banks]
        total = sum([tensor.bytes_per_bank * banks[spec.memory.buffer_type] for tensor, spec in held])
        unused = total - sum([spec.data_bytes for _, spec in held])
        share = f"{100 * unused / max(1, total):.1f} %"
        waste = f"{format_bytes(unused)} are padding or free space in banks ({share})"
        lines = [f"{len(self.tensors)} tensors, {format_bytes(total)}, of which {waste}"]
        failed = [(k, tensor) for k, tensor in enumerate(self.tensors) if tensor.problems]
        if failed:
            k, first = failed[0]
            lines.append(f"{count_of(len(failed), 'tensor')} without memory, the first is number {k + 1}:")
            lines += [f"  {line}" for line in str(first).splitlines()]
        return lines


def check_fit(
    requests: list[FitRequest],
    spec_type: type[TensorSpec],
    chip: ChipLike | None,
    circular_buffers: CircularBuffers,
    *reserved: int,
    names: Sequence[str] = (),
    mesh: tuple[int, ...] = (),
) -> Fit:
    """Return whether specs, or arguments of a `spec_type`, fit a chip together; `reserved` are sizes for `Allocator`.

    `names` are the tensors' names, and `mesh` is the shape of the mesh whose devices hold as much each.

    >>> from tilewright import TensorSpec
    >>> bool(check_fit([TensorSpec((64, 64), memory="l1")], TensorSpec, "n150", 100_000))
    True
    """
    target = _select_chip(requests, chip)
    distinct = {id(item): item for item in requests}  # of a checkpoint with very many tensors, few that differ
    results = {key: _check_request(item, spec_type, target) for key, item in distinct.items()}
    checked = [results[id(item)] for item in requests]
    circular = _total_bytes(circular_buffers)
    per_core = AllocationMode.PER_CORE
    hybrid = any(spec is not None and spec.memory.allocation is per_core for spec, _ in results.values())
    new_allocator = partial(Allocator, target, *reserved, hybrid=hybrid)
    allocator = new_allocator()
    labels = names or ("",) * len(checked)
    known = _Known()
    tensors = [_allocate_tensor(*pair, allocator, name, known) for pair, name in zip(checked, labels, strict=True)]
    problems = _overlap_violations(allocator, circular)
    fits = not problems and not any(tensor.problems for tensor in tensors)
    options: list[Alternative] = []
    remedies: list[str] = []
    specs = [spec for spec, _ in checked]
    too_many = sum([bool(tensor.problems) for tensor in tensors]) > 1
    if too_many:  # no change of one tensor helps the others
        remedies = list(_remedies_for_all(specs, tensors, new_allocator(), prod(mesh)))
    if not fits and not remedies:
        index = _tensor_to_change(specs, tensors)
        fitting = (
            option
            for option in alternatives(specs[index] or requests[index], spec_type, target)
            if _all_fit([*specs[:index], option.spec, *specs[index + 1 :]], new_allocator(), circular)
        )
        options = list(islice(fitting, MAX_ALTERNATIVES))
    views = tuple([allocator.memory_view(buffer_type) for buffer_type in ("dram", "l1", "l1_small")])
    lists = tuple(problems), tuple(options), tuple(remedies)
    return Fit(target, fits, tuple(tensors), views, circular, *lists, mesh, notes=(_HYBRID,) * hybrid)


def _remedies_for_all(
    specs: list[TensorSpec | None], tensors: list[FitTensor], allocator: Allocator, devices: int
) -> Iterator[str]:
    """Yield changes of all tensors in DRAM that would fit: smaller formats, or more devices that share them."""
    if any(spec is None or spec.memory.buffer_type is not BufferType.DRAM for spec in specs):
        return
    chip, free = allocator.chip, allocator.memory_view("dram").free
    distinct = {id(spec): spec for spec in specs if spec is not None}
    for name in _SMALL_FORMATS:
        smaller = {key: _as_format(spec, name) for key, spec in distinct.items()}
        changed = [smaller[id(spec)] for spec in specs if spec is not None]
        needed = sum([round_up(spec.allocated_bytes, chip.allocation_alignment) for spec in changed])
        if needed <= free:
            total = format_bytes(sum([spec.nbytes for spec in changed]))
            yield f"all floating-point tensors as {name}: {total}{' on each device' if devices > 1 else ''}"
    needed = sum([tensor.bytes_per_bank for tensor in tensors])
    count = devices * ceil_div(needed, free)
    if count > devices:
        share = format_bytes(sum([tensor.total_bytes for tensor in tensors]) * devices // count)
        yield f"{count} devices that share every tensor evenly: {share} on each"


def _as_format(spec: TensorSpec, name: str) -> TensorSpec:
    """Return a floating-point spec in another format, in tiles; others, and smaller ones, stay as they are."""
    element = spec.dtype
    if not element.has_blocks and element.kind != "float":
        return spec
    arguments = {**spec.arguments(), "dtype": name, "page_layout": "tile", "memory": interleaved("dram")}
    changed = type(spec)(**{**arguments, "tile": None if not spec.is_tiled else spec.tile, "alignment": None})
    return changed if changed.nbytes < spec.nbytes else spec


def row_width_multiple(spec: TensorSpec) -> int:
    """Return the number of elements that the width of a row of `spec` should be a multiple of: 4 bytes, or a tile.

    >>> from tilewright import TensorSpec
    >>> row_width_multiple(TensorSpec((4, 3), "bfloat16")), row_width_multiple(TensorSpec((4, 3), "bfloat8_b"))
    (2, 32)
    """
    if spec.is_tiled or spec.dtype.has_blocks:
        return spec.tile.width
    return max(1, MIN_ROW_BYTES // spec.dtype.itemsize)


def _select_chip(requests: list[FitRequest], chip: ChipLike | None) -> Chip:
    """Return the chip to use, or the chip of the first request that has one."""
    if chip is not None:
        return Chip.of(chip)
    for request in requests:
        own = request.get("chip") if isinstance(request, Mapping) else request.chip
        if own is not None:
            return Chip.of(own)
    raise MemoryConfigError("whether tensors fit depends on the chip; choose one, such as wormhole_n150")


def _check_request(
    request: FitRequest, spec_type: type[TensorSpec], chip: Chip
) -> tuple[TensorSpec | None, list[Violation]]:
    """Return the spec on the chip, or None if it is invalid, and the violated rules."""
    try:
        spec = spec_type(**{**request, "chip": chip}) if isinstance(request, Mapping) else request.with_chip(chip)
    except MemoryConfigError as problem:
        return None, [broken_rule("the spec is valid", str(problem))]
    return spec, list(spec.rules_broken)


class _Known:
    """What is known of the specs so far, which live as long: their sizes; and why a free block holds one no longer."""

    def __init__(self) -> None:
        self.measures: dict[int, tuple[int, int, int, tuple[str, ...]]] = {}
        self.refused: dict[int, list[Violation]] = {}  # since the last one that was allocated


def _allocate_tensor(
    spec: TensorSpec | None, violations: list[Violation], allocator: Allocator, name: str, known: _Known
) -> FitTensor:
    """Return how a tensor fits beside the allocated ones."""
    if spec is None or violations:
        return FitTensor(spec, 0, 0, 0, None, tuple(violations), name=name)
    allocation: Allocation | None = None
    violations = known.refused.get(id(spec), [])
    if not violations:
        try:
            allocation = allocator.allocate(spec)
            known.refused.clear()
        except OutOfMemory as problem:
            reason = str(problem).rpartition("; ")[0]
            violations = [broken_rule("a free block holds the tensor", f"{reason}; see the alternatives")]
            known.refused[id(spec)] = violations
    address = allocation.address if allocation else None
    size, banks, padding, warnings = known.measures.get(id(spec)) or _measure(spec, allocator.hybrid)
    known.measures[id(spec)] = size, banks, padding, warnings
    return FitTensor(
        *(spec, size, banks, padding, address, tuple(violations), warnings, name),
        allocation.shard_addresses if allocation else (),
    )


def _measure(spec: TensorSpec, hybrid: bool) -> tuple[int, int, int, tuple[str, ...]]:
    """Return the bytes in each bank, the banks, the bytes of padding, and warnings."""
    size, banks = spec.allocated_bytes_beside(hybrid), len(spec.used_banks)
    padding = spec.padding_bytes + (size - spec.allocated_bytes) * banks
    return size, banks, padding, tuple(_width_warnings(spec))


def _width_warnings(spec: TensorSpec) -> Iterator[str]:
    multiple = row_width_multiple(spec)
    width = spec.page_shape[1]
    if spec.num_pages and not spec.is_tiled and width % multiple:
        yield (
            f"rows of {width} x {spec.dtype} are not a multiple of {MIN_ROW_BYTES} bytes; some device operations need a"
            f" width that is a multiple of {multiple}"
        )


def _total_bytes(circular_buffers: CircularBuffers) -> int:
    """Return the bytes of all circular buffers."""
    sizes = circular_buffers.values() if isinstance(circular_buffers, Mapping) else circular_buffers
    total = sum(sizes) if isinstance(sizes, Iterable) else int(sizes)
    if total < 0:
        raise MemoryConfigError(f"circular buffers must have at least 0 bytes, got {total}")
    return int(total)


def _overlap_violations(allocator: Allocator, circular: int) -> list[Violation]:
    """Return the violation if circular buffers, at the bottom of L1, overlap tensors, at the top."""
    start = allocator.start_address("l1")
    lowest = allocator.lowest_address("l1")
    if start + circular <= lowest:
        return []
    over = start + circular - lowest
    return [
        Violation(
            "circular buffers and tensors share L1",
            f"circular buffers use L1 from {start} to {start + circular} on every core, but tensors start at {lowest}",
            remedy=f"make the buffers {over} bytes smaller, or move tensors out of L1",
        )
    ]


def _tensor_to_change(specs: list[TensorSpec | None], tensors: list[FitTensor]) -> int:
    """Return the index of the first tensor with a problem, else of the largest in L1."""
    for k, tensor in enumerate(tensors):
        if tensor.problems:
            return k

    def l1_bytes(k: int) -> int:
        spec = specs[k]
        return tensors[k].bytes_per_bank if spec is not None and spec.memory.buffer_type is BufferType.L1 else -1

    return max(range(len(tensors)), key=l1_bytes)


def _all_fit(specs: list[TensorSpec | None], allocator: Allocator, circular: int) -> bool:
    """Return whether all specs fit an empty allocator together with circular buffers."""
    try:
        for spec in specs:
            if spec is not None:
                allocator.allocate(spec)
    except TilewrightError:
        return False
    return not _overlap_violations(allocator, circular)


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another spec for the same tensor, and a description of the change.

    >>> from tilewright import TensorSpec
    >>> next(alternatives(TensorSpec((64, 64), "float32", "tile", memory="l1"), TensorSpec, "n150")).change
    'float32 as bfloat16'
    """

    spec: TensorSpec
    change: str

    @property
    def bytes_per_bank(self) -> int:
        """The bytes that the alternative needs in each bank.

        >>> from tilewright import TensorSpec
        >>> next(alternatives(TensorSpec((64, 64), memory="l1"), TensorSpec, "n150")).bytes_per_bank
        1088
        """
        return self.spec.allocated_bytes

    def __str__(self) -> str:
        return f"{self.change}: {self.bytes_per_bank} bytes in {describe_banks(self.spec)}"


def alternatives(request: FitRequest, spec_type: type[TensorSpec], chip: ChipLike) -> Iterator[Alternative]:
    """Yield valid specs for a tensor on a chip, nearest first.

    `request` is a spec, or arguments of an invalid one; `spec_type` is `TensorSpec`.

    >>> from tilewright import TensorSpec
    >>> request = {"shape": (100, 64), "page_layout": "tile", "memory": height_sharded((4, 1), (25, 64))}
    >>> print(next(alternatives(request, TensorSpec, "n150")))
    height sharded (32, 64) on 4 cores: 4096 bytes in each of 4 banks
    """
    chip = Chip.of(chip)
    arguments = dict(request) if isinstance(request, Mapping) else request.arguments()
    arguments["chip"] = chip
    seen = set() if isinstance(request, Mapping) else {_alternative_key(request.with_chip(chip))}
    for changes, description in _candidate_changes(arguments, chip):
        try:
            spec = spec_type(**{**arguments, **changes})
            usable = not spec.violations() and spec.num_pages > 0
        except TilewrightError:
            continue
        if usable and _alternative_key(spec) not in seen:
            seen.add(_alternative_key(spec))
            yield Alternative(spec, description or _describe_memory(spec))


def _alternative_key(spec: TensorSpec) -> tuple[Any, ...]:
    """Return the key that distinguishes alternatives: not the grid alone if the shards stay the same."""
    usable = None if spec.violations() else spec.memory.buffer_type
    shards = spec.memory.sharding.shape if spec.memory.sharding else None
    return (spec.dtype, spec.memory.memory_layout, shards, usable)


def _candidate_changes(arguments: dict[str, Any], chip: Chip) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield changes of the arguments with descriptions, nearest first; an empty description is filled in later."""
    memory = as_memory(arguments.get("memory"))
    sharding = memory if isinstance(memory, Sharding) else memory.sharding
    is_sharded, buffer = memory.memory_layout.is_sharded, memory.buffer_type
    whole, *parts = _candidate_grids(chip, buffer if is_sharded else BufferType.L1)
    own = memory.memory_layout.name.lower().replace("_", " ")
    strategies = sorted(_STRATEGIES.items(), key=lambda strategy: strategy[0] != own)  # its own first
    if is_sharded:
        for _, make in strategies:
            for grid in (whole,) if sharding is None else (sharding.grid, whole):
                yield {"memory": make(grid, buffer_type=buffer)}, ""
        yield {"memory": interleaved("l1")}, "interleaved in L1"
    yield from _smaller_formats(arguments)
    if not is_sharded and buffer.is_l1:
        yield from (({"memory": make(whole)}, "") for _, make in strategies)
    yield {"memory": interleaved("dram")}, "interleaved in DRAM"
    for change, description in _smaller_formats(arguments):
        yield {**change, "memory": interleaved("dram")}, f"{description}, interleaved in DRAM"
    if is_sharded:
        for _, make in strategies:
            yield from (({"memory": make(grid, buffer_type=buffer)}, "") for grid in parts)


def _smaller_formats(arguments: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    element = format_of(arguments.get("dtype", "bfloat16"))
    page_layout = arguments.get("page_layout")
    tiled = page_layout is not None and PageLayout.of(page_layout) is PageLayout.TILE
    if element.has_blocks and not tiled:
        yield {"page_layout": "tile"}, f"{element} in tiles"
    for name in SMALLER.get(element.name, ()):
        change: dict[str, Any] = {"dtype": name}
        description = f"{element} as {name}"
        if format_of(name).has_blocks and not tiled:
            change["page_layout"] = "tile"
            description += " in tiles"
        yield change, description


def _candidate_grids(chip: Chip, buffer: BufferType) -> list[CoreRangeSet]:
    """Return grids of the chip to try, from all cores or banks down."""
    across, down = chip.shard_grid(buffer)
    sizes = [(across, down), (across, max(1, down // 2)), (max(1, across // 2), down), (across, 1)]
    return [first_cores(x * y, (x, y), row_wise=True) for x, y in dict.fromkeys(sizes)]


def describe_banks(spec: TensorSpec) -> str:
    """Return the number of banks with pages of a tensor as text.

    >>> from tilewright import TensorSpec
    >>> describe_banks(TensorSpec((4, 4), chip="n150"))
    'each of 4 banks'
    """
    count, sharding = len(spec.used_banks), spec.memory.sharding
    text = "one bank" if count == 1 else f"each of {count} banks"
    if sharding is None or sharding.grid.num_cores == count:
        return text
    return f"{text} (its grid has {sharding.grid.num_cores})"


def _describe_memory(spec: TensorSpec) -> str:
    """Return the memory of a tensor as text."""
    sharding = spec.memory.sharding
    if sharding is None:
        return str(spec.memory)
    name = spec.memory.memory_layout.name.lower().replace("_", " ")
    count = min(spec.paging.num_shards, len(spec.paging.cores))
    where = ("core" if spec.memory.buffer_type.is_l1 else "DRAM bank") + ("" if count == 1 else "s")
    return f"{name} {sharding.shape} on {count} {where}"
