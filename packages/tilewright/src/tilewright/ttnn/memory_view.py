# SPDX-License-Identifier: Apache-2.0
"""`get_memory_view`: how much of a device's memory is allocated, block by block."""

from __future__ import annotations

from dataclasses import dataclass, field

from .devices import OpenDevice
from .enums import BufferType, BufferTypeLike

_NO_BLOCK = str(2**64 - 1)  # what ttnn writes where there is no neighbour


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The use of one memory of a device, in bytes per bank.

    `block_table` has a row for each allocated and each free block, numbered by address, in the fields and the text of
    ttnn: `blockID`, `address` (from the start of the bank), `size`, `prevID`, `nextID`, `allocated`.

    >>> MemoryView(12, 1024, 256, 768, 768, []).total_bytes_free_per_bank
    768
    """

    num_banks: int
    total_bytes_per_bank: int
    total_bytes_allocated_per_bank: int
    total_bytes_free_per_bank: int
    largest_contiguous_bytes_free_per_bank: int
    block_table: list[dict[str, str]] = field(hash=False)


def get_memory_view(device: OpenDevice, buffer_type: BufferTypeLike) -> MemoryView:
    """Return the use of the memory `buffer_type` of `device`; of a mesh, that of its first device.

    >>> from tilewright.ttnn import manage_device
    >>> with manage_device() as device:
    ...     view = get_memory_view(device, BufferType.L1)
    >>> view.num_banks, view.total_bytes_per_bank, view.block_table[0]["allocated"]
    (64, 1393312, 'no')
    """
    chip, kind = device.get_devices()[0], BufferType.of(buffer_type).name
    view, start = chip.memory_view(kind), chip.allocator.start_address(kind)
    blocks, end = [], 0
    for allocation in view.allocations:
        address = allocation.address - start
        blocks += [(end, address - end, "no"), (address, allocation.size, "yes")]
        end = address + allocation.size
    blocks = [block for block in [*blocks, (end, view.bank_bytes - end, "no")] if block[1]]
    return MemoryView(
        view.num_banks, view.bank_bytes, view.allocated, view.free, view.largest_free, _block_table(blocks)
    )


def _block_table(blocks: list[tuple[int, int, str]]) -> list[dict[str, str]]:
    """Return the rows of (address, size, allocated), each with the numbers of its neighbours."""
    last = len(blocks) - 1
    return [
        {
            "blockID": str(k),
            "address": str(address),
            "size": str(size),
            "prevID": str(k - 1) if k else _NO_BLOCK,
            "nextID": str(k + 1) if k < last else _NO_BLOCK,
            "allocated": allocated,
        }
        for k, (address, size, allocated) in enumerate(blocks)
    ]
