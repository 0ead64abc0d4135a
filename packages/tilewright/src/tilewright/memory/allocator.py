# SPDX-License-Identifier: Apache-2.0
"""`Allocator`: the addresses of tensors. Allocations have the same address in all banks of a memory."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._integers import ceil_div, round_up
from .._text import count_of
from ..display import Shown
from ..errors import MemoryConfigError, OutOfMemory
from .chip import Chip, ChipLike
from .config import BufferType, BufferTypeLike
from .placement_rules import placement_violations

if TYPE_CHECKING:
    from .spec import TensorSpec

EMPTY_ADDRESS = 0  # the address of a tensor without elements
TRACE_ALIGNMENT = 8192  # bytes; the trace region of a bank is a multiple of this


@dataclass(frozen=True, slots=True)
class Allocation:
    """An allocated block at the same address in every bank of a memory, and the spec of its tensor, if any.

    >>> from tilewright import TensorSpec
    >>> Allocator("wormhole_n150").allocate(TensorSpec((32, 32), "int32", "tile", memory="l1", chip="n150")).address
    1495040
    """

    number: int
    buffer_type: BufferType
    address: int
    size: int
    spec: TensorSpec | None = None

    @property
    def end(self) -> int:
        """Return the address after the last byte.

        >>> Allocation(0, BufferType.DRAM, 1024, 64).end
        1088
        """
        return self.address + self.size


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The state of one memory, in bytes per bank: total, allocated, free, and the largest free block.

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

    def __str__(self) -> str:
        head = f"{self.buffer_type}: {self.allocated} of {self.bank_bytes} bytes in each of {self.num_banks} banks used"
        lines = [f"{head}, largest free block {self.largest_free}"]
        for block in self.allocations:
            tensor = f"  {block.spec.shape} {block.spec.dtype}, {block.spec.memory}" if block.spec else ""
            lines.append(f"  {block.address:>10} - {block.end:<10} {block.size:>9} bytes{tensor}")
        return "\n".join(lines)


class _AddressRange:
    """A range of addresses with its free blocks, lowest first, and its allocations by address."""

    def __init__(self, start: int, end: int, top_down: bool) -> None:
        self.start, self.end, self.top_down = start, end, top_down
        self.blocks = [(start, end)] if start < end else []
        self.allocations: dict[int, Allocation] = {}

    def allocate(self, size: int) -> int | None:
        """Return the address of the first free block that fits, or None."""
        order = range(len(self.blocks) - 1, -1, -1) if self.top_down else range(len(self.blocks))
        for k in order:
            low, high = self.blocks[k]
            if high - low < size:
                continue
            address = high - size if self.top_down else low
            rest = [(low, address)] if self.top_down else [(low + size, high)]
            self.blocks[k : k + 1] = [block for block in rest if block[0] < block[1]]
            return address
        return None

    def allocate_at(self, start: int, size: int) -> bool:
        """Allocate the block at an address, and return whether it was free."""
        for k, (low, high) in enumerate(self.blocks):
            if low <= start and start + size <= high:
                rest = [(low, start), (start + size, high)]
                self.blocks[k : k + 1] = [block for block in rest if block[0] < block[1]]
                return True
        return False

    def free(self, start: int, end: int) -> None:
        """Add a free block, merged with adjacent free blocks."""
        for block in [block for block in self.blocks if block[1] == start or block[0] == end]:
            self.blocks.remove(block)
            start, end = min(start, block[0]), max(end, block[1])
        insort(self.blocks, (start, end))


class Allocator(Shown):
    """The allocator of a chip: first fit, in DRAM from the bottom, in L1 from the top.

    `l1_small_size` bytes at the top of L1 and `trace_region_size` bytes of all DRAM are reserved; `worker_l1_size`
    limits L1 to its upper part.

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
        self, chip: ChipLike, l1_small_size: int = 0, trace_region_size: int = 0, worker_l1_size: int | None = None
    ) -> None:
        self.chip = Chip.of(chip)
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
        kind, size = spec.memory.buffer_type, spec.allocated_bytes
        for violation in placement_violations(spec, any_size=True):
            raise violation.error(str(violation))
        if not size:
            return Allocation(self._take_number(), kind, EMPTY_ADDRESS, 0, spec)
        total = spec.paging.num_shards * spec.paging.shard_pages * spec.aligned_page_bytes
        return self._allocate(kind, size, total, len(spec.used_banks), spec)

    def allocate_bytes(self, size: int, buffer_type: BufferTypeLike) -> Allocation:
        """Return a block of `size` bytes per bank of `buffer_type`, rounded up to the alignment of the chip.

        >>> Allocator("wormhole_n150").allocate_bytes(100, "l1").size
        128
        """
        kind = BufferType.of(buffer_type)
        unit, banks = self.chip.allocation_alignment, self.chip.banks(kind)
        return self._allocate(kind, max(unit, round_up(size, unit)), size * banks, banks, None)

    def reserve(self, address: int, size: int, buffer_type: BufferTypeLike) -> Allocation:
        """Allocate the `size` bytes at an `address` of `buffer_type`, which must be free, and return the block.

        >>> Allocator("wormhole_n150").reserve(2097152, 64, "dram").end
        2097216
        """
        region = self._region(BufferType.of(buffer_type))
        if size < 1 or not region.allocate_at(address, size):
            raise MemoryConfigError(
                f"{size} bytes at {address} of {BufferType.of(buffer_type)} are not free; the free blocks are"
                f" {', '.join(f'{low} to {high}' for low, high in region.blocks) or 'none'}"
            )
        return self._record(region, BufferType.of(buffer_type), address, size, None)

    def _allocate(self, kind: BufferType, size: int, total: int, banks: int, spec: TensorSpec | None) -> Allocation:
        region = self._region(kind)
        address = region.allocate(size)
        if address is None:
            view = self.memory_view(kind)
            raise OutOfMemory(
                f"{total} bytes of {kind} over {count_of(banks, 'bank')} need {size} bytes per bank, but the largest"
                f" free block has {view.largest_free}: a bank has {view.bank_bytes} bytes, {view.allocated} allocated"
                f" and {view.free} free; fit lists alternatives"
            )
        return self._record(region, kind, address, size, spec)

    def _take_number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def _record(
        self, region: _AddressRange, kind: BufferType, address: int, size: int, spec: TensorSpec | None
    ) -> Allocation:
        allocation = Allocation(self._take_number(), kind, address, size, spec)
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
        region = self._region(allocation.buffer_type)
        if region.allocations.get(allocation.address) != allocation:
            raise MemoryConfigError(
                f"{allocation} is not allocated: it was freed already, or belongs to another allocator"
            )
        del region.allocations[allocation.address]
        region.free(allocation.address, allocation.end)

    def _region(self, kind: BufferType) -> _AddressRange:
        if kind not in self._regions:
            raise MemoryConfigError(
                f"{kind} is not a memory of a chip; use one of {', '.join(map(str, self._regions))}"
            )
        return self._regions[kind]

    def memory_view(self, buffer_type: BufferTypeLike) -> MemoryView:
        """Return the state of the memory `buffer_type`.

        >>> Allocator("wormhole_n150", l1_small_size=1000).memory_view("l1_small").bank_bytes
        1024
        """
        kind = BufferType.of(buffer_type)
        region = self._region(kind)
        sizes = [high - low for low, high in region.blocks]
        total, free = region.end - region.start, sum(sizes)
        blocks = tuple([region.allocations[address] for address in sorted(region.allocations)])
        return MemoryView(kind, self.chip.banks(kind), total, total - free, free, max(sizes, default=0), blocks)

    def lowest_address(self, buffer_type: BufferTypeLike) -> int:
        """Return the lowest allocated address of `buffer_type`, or its end if nothing is allocated.

        >>> Allocator("wormhole_n150").lowest_address("l1")
        1499136
        """
        region = self._region(BufferType.of(buffer_type))
        return min(region.allocations, default=region.end)

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
        views = [self.memory_view(kind) for kind in self._regions]
        return "\n".join(str(view) for view in views if view.bank_bytes)
