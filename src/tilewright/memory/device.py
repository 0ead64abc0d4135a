# SPDX-License-Identifier: Apache-2.0
"""`Device`: a simulated chip whose banks hold real bytes, written and read through copy plans."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

from ..atomic import write_file
from ..copying import Placement, execute, plan_copy
from ..copying.host_memory import aligned_empty, placement_of
from ..errors import MemoryConfigError
from ..formats import ScalarFormat
from ..layout import Layout, PagedLayout, compose
from ..showing import Shown
from .allocator import Allocation, Allocator, MemoryView
from .banks import Banks
from .chip import Chip
from .host_bytes import as_stored, checked_bytes, empty_result, from_bytes, to_bytes
from .kinds import BufferType
from .spec import TensorSpec

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
MANIFEST = "banks.json"


class Device(Shown):
    """A chip with memory: tensors are allocated, written, read and freed, and every byte lies where it would.

    Bytes that no page covers keep what they held before, as on a real device.

    >>> device = Device("wormhole_n150")
    >>> tensor = device.put(np.arange(12).reshape(3, 4), TensorSpec((3, 4), "int32", "tile"))
    >>> tensor.address, device.get(tensor).tolist()
    (1048640, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    """

    def __init__(
        self, chip: Any, l1_small_size: int = 0, trace_region_size: int = 0, worker_l1_size: int | None = None
    ) -> None:
        self.chip = Chip.of(chip)
        self.allocator = Allocator(self.chip, l1_small_size, trace_region_size, worker_l1_size)
        self._banks = {is_l1: Banks(self.chip, BufferType.L1 if is_l1 else BufferType.DRAM) for is_l1 in (True, False)}

    # Tensors.

    def allocate(self, spec: TensorSpec) -> Allocation:
        """Return the block of a tensor; a spec without a chip is taken to be for this one.

        >>> Device("wormhole_n150").allocate(TensorSpec((4, 4), "float32")).size
        32
        """
        return self.allocator.allocate(spec if spec.chip else spec.with_chip(self.chip))

    def free(self, allocation: Allocation) -> None:
        """Give a block back; its bytes stay until someone writes there.

        >>> device = Device("wormhole_n150")
        >>> device.free(device.allocate(TensorSpec((4, 4), "float32")))
        """
        self.allocator.free(allocation)

    def put(self, array: Any, spec: TensorSpec, pad_value: Any = 0) -> Allocation:
        """Return the block of a tensor that was allocated and written from an array.

        >>> device = Device("wormhole_n150")
        >>> device.get(device.put([1.5, 2.5], TensorSpec((2,), "bfloat16"))).tolist()
        [1.5, 2.5]
        """
        allocation = self.allocate(spec)
        self.write_array(allocation, array, pad_value)
        return allocation

    def write_array(self, allocation: Allocation, array: Any, pad_value: Any = 0) -> None:
        """Write an array to its pages, converted and padded, in one pass where elements have bytes of their own.

        >>> device = Device("wormhole_n150")
        >>> tensor = device.allocate(TensorSpec((2,), "int32"))
        >>> device.write_array(tensor, np.array([3, 4]))
        >>> device.get(tensor).tolist()
        [3, 4]
        """
        spec = _spec_of(allocation)
        target = self._elements(spec, pad_value)
        if target is None:
            self.write(allocation, to_bytes(array, spec, pad_value))
        elif spec.nbytes:
            values = as_stored(array, spec)
            execute(plan_copy(placement_of(values), target), values, self._from(allocation))

    def get(self, allocation: Allocation, dtype: Any = None) -> np.ndarray[Any, Any]:
        """Return the values of a tensor as an array of its shape; block formats become float32.

        >>> device = Device("wormhole_n150")
        >>> device.get(device.put([[1, 2]], TensorSpec((1, 2), "uint8")), dtype="float32").tolist()
        [[1.0, 2.0]]
        """
        spec = _spec_of(allocation)
        source = self._elements(spec, 0)
        if source is None:
            return from_bytes(self.read(allocation), spec, dtype)
        result = empty_result(spec, dtype)
        if result.size:
            view = as_stored(result, spec)
            execute(plan_copy(source, placement_of(view)), self._from(allocation), view)
        return result

    def write(self, allocation: Allocation, pages: Any) -> None:
        """Write the bytes of all pages, back to back, to where the pages lie.

        >>> device = Device("wormhole_n150")
        >>> tensor = device.allocate(TensorSpec((2, 4), "uint8"))
        >>> device.write(tensor, np.arange(8, dtype=np.uint8))
        >>> device.read_bytes(1, tensor.address, 4).tolist()
        [4, 5, 6, 7]
        """
        spec = _spec_of(allocation)
        if spec.nbytes:
            data = checked_bytes(pages, spec)
            execute(plan_copy(*self._pages(spec)), data, self._from(allocation))

    def read(self, allocation: Allocation) -> Bytes:
        """Return the bytes of all pages, back to back.

        >>> device = Device("wormhole_n150")
        >>> device.read(device.put([[1, 2], [3, 4]], TensorSpec((2, 2), "uint8"))).tolist()
        [1, 2, 3, 4]
        """
        spec = _spec_of(allocation)
        data = aligned_empty(spec.nbytes, np.uint8)
        if spec.nbytes:
            flat, scattered = self._pages(spec)
            execute(plan_copy(scattered, flat), self._from(allocation), data)
        return data

    # Places in the one address space of a memory, counted from the start of a tensor's block in bank 0.

    def _from(self, allocation: Allocation) -> Bytes:
        banks = self._banks[allocation.buffer_type.is_l1]
        return banks.bytes[allocation.address - banks.start :]

    def _elements(self, spec: TensorSpec, fill: Any) -> Placement | None:
        """Return where the elements lie; None if they have no bytes of their own or straddle the count of elements."""
        unit = self.chip.page_alignment(spec.memory.buffer_type)
        if not spec.num_pages or not isinstance(spec.dtype, ScalarFormat) or unit % spec.dtype.itemsize:
            return None
        scattered = _scattered(spec, self._banks[spec.memory.buffer_type.is_l1].stride, spec.dtype.itemsize)
        return Placement(compose(scattered, spec.stored), spec.dtype, fill)

    def _pages(self, spec: TensorSpec) -> tuple[Placement, Placement]:
        """Return where the bytes of all pages lie back to back, and where they lie in the banks."""
        flat = Layout((spec.page_bytes, spec.num_pages))
        scattered = _scattered(spec, self._banks[spec.memory.buffer_type.is_l1].stride, 1)
        return Placement(flat, "uint8"), Placement(compose(scattered, flat), "uint8")

    # Raw memory.

    def read_bytes(self, place: Any, address: int, size: int, buffer_type: Any = "dram") -> Bytes:
        """Return a copy of some bytes of a bank, given by number or by core.

        >>> Device("wormhole_n150").read_bytes((0, 0), 200000, 4, "l1").tolist()
        [0, 0, 0, 0]
        """
        return self._at(place, address, size, buffer_type).copy()

    def write_bytes(self, place: Any, address: int, data: Any, buffer_type: Any = "dram") -> None:
        """Write some bytes to a bank, given by number or by core.

        >>> device = Device("wormhole_n150")
        >>> device.write_bytes((0, 0), 200000, b"ab", "l1")
        >>> device.read_bytes((0, 0), 200000, 2, "l1").tolist()
        [97, 98]
        """
        array = np.frombuffer(data, dtype=np.uint8)
        self._at(place, address, array.size, buffer_type)[:] = array

    def _at(self, place: Any, address: int, size: int, buffer_type: Any) -> Bytes:
        kind = BufferType.of(buffer_type)
        bank = place if isinstance(place, int) else self.chip.bank_of(place, kind)
        return self._banks[kind.is_l1].at(bank, address, size)

    def memory_view(self, buffer_type: Any) -> MemoryView:
        """Return the state of one memory.

        >>> Device("wormhole_n150").memory_view("dram").free
        1072693184
        """
        return self.allocator.memory_view(buffer_type)

    def report(self) -> str:
        """Return the state of all memories, with what lies where.

        >>> print(Device("wormhole_n150").report().splitlines()[1])
        L1: 0 of 1393312 bytes in each of 64 banks used, largest free block 1393312
        """
        return self.allocator.report()

    # Images.

    def dump(self, folder: Any) -> None:
        """Write the allocated part of every bank to a folder: a raw file a bank, and a list of what is in them.

        >>> import tempfile
        >>> device = Device("wormhole_n150")
        >>> tensor = device.put([1, 2], TensorSpec((2,), "uint8", memory="l1"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     device.dump(folder)
        ...     Device.load(folder, "wormhole_n150").read_bytes((1, 4), tensor.address, 2, "l1").tolist()
        [1, 2]
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        blocks = [each for kind in ("dram", "trace", "l1", "l1_small") for each in self.memory_view(kind).allocations]
        ranges, checksums = {}, {}
        for is_l1, banks in self._banks.items():
            here = [each for each in blocks if each.buffer_type.is_l1 == is_l1]
            if not here:
                continue
            name = "l1" if is_l1 else "dram"
            low, high = min(each.address for each in here), max(each.end for each in here)
            ranges[name] = [low, high]
            for bank in range(banks.count):
                image = banks.at(bank, low, high - low).tobytes()
                checksums[file := f"{name}_{bank:03}.bin"] = crc32(image)
                write_file(path / file, image)
        content = {
            "chip": self.chip.name,
            "dispatch": self.chip.dispatch,
            "ranges": ranges,
            "crc32": checksums,  # a dump that was interrupted has images of two dumps, which nobody must load
            "allocations": [[each.buffer_type.name, each.address, each.size] for each in blocks],
        }
        write_file(path / MANIFEST, json.dumps(content, indent=1))

    @classmethod
    def load(cls, folder: Any, chip: Any, **sizes: Any) -> Device:
        """Return a device with the bank images of a folder and the same blocks allocated; sizes as for a new one.

        >>> Device.load("no-such-folder", "wormhole_n150")
        Traceback (most recent call last):
            ...
        FileNotFoundError: [Errno 2] No such file or directory: 'no-such-folder/banks.json'
        """
        path = Path(folder)
        text = (path / MANIFEST).read_text(encoding="utf-8")
        device = cls(chip, **sizes)
        try:
            content = json.loads(text)
            made_on = (content["chip"], content["dispatch"])
            ranges = {str(name): (int(low), int(high)) for name, (low, high) in content["ranges"].items()}
            blocks = [(str(kind), int(address), int(size)) for kind, address, size in content["allocations"]]
            checksums = {str(file): int(checksum) for file, checksum in content["crc32"].items()}
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise MemoryConfigError(f"{path / MANIFEST} is damaged ({problem}); dump the device again") from None
        if made_on != (device.chip.name, device.chip.dispatch):
            raise MemoryConfigError(
                f"{path} holds images of {made_on[0]} with {made_on[1]} dispatch, not of {device.chip}; load it there"
            )
        for name, (low, high) in ranges.items():
            banks = device._banks[BufferType.of(name).is_l1]
            for bank in range(banks.count):
                file = f"{name}_{bank:03}.bin"
                image = np.fromfile(path / file, dtype=np.uint8)
                if image.size != high - low:
                    raise MemoryConfigError(
                        f"{file} has {image.size} bytes, but its range {low} to {high} has {high - low}"
                    )
                if crc32(image.data) != checksums.get(file):
                    raise MemoryConfigError(f"{file} is not what {MANIFEST} describes; dump the device again")
                banks.at(bank, low, image.size)[:] = image
        for kind, address, size in blocks:
            device.allocator.reserve(address, size, kind)
        return device


@lru_cache(maxsize=16)  # a tensor is often written and read several times, and the table of a large one is large
def _scattered(spec: TensorSpec, stride: int, size: int) -> PagedLayout:
    """Return where pages lie in the one address space of all banks, in units of so many bytes."""
    pages = spec.pages(base=0)
    return PagedLayout(spec.page_bytes // size, (pages.bank * stride + pages.address) // size)


def _spec_of(allocation: Allocation) -> TensorSpec:
    if allocation.spec is None:
        raise MemoryConfigError(f"{allocation} holds raw bytes and no tensor; use read_bytes and write_bytes")
    return allocation.spec
