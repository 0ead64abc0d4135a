# SPDX-License-Identifier: Apache-2.0
"""`Device`: a simulated chip with real bytes in its banks; `to_bytes` and `from_bytes`: the same bytes on the host."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import cached_property, lru_cache
from os import PathLike
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

from .._files import PAGE_BYTES, as_path, mmap, write_file
from .._integers import round_up
from ..copying import Placement, aligned_empty, as_host_array, execute, placement_of, plan_copy
from ..display import Drawable
from ..errors import LayoutError, MemoryConfigError, OutOfMemory
from ..formats import FormatLike, Number, scalar_format_of
from ..layout import Layout, PagedLayout, compose
from .allocator import Allocation, Allocator, MemoryView
from .chip import Chip, ChipLike
from .config import BufferType, BufferTypeLike
from .cores import CoreLike
from .spec import TensorSpec

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
ReadableBuffer: TypeAlias = "bytes | bytearray | memoryview | np.ndarray[Any, Any]"
MANIFEST = "banks.json"
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
_MIN_HUGE_PAGE_BYTES = 1 << 26  # size of a bank from which on huge pages of the operating system pay off


def host_placement(spec: TensorSpec, fill: Number = 0) -> Placement:
    """Return the placement of the elements of `spec` in the bytes of all its pages; padding gets the value `fill`.

    >>> host_placement(TensorSpec((60, 90), "bfloat8_b")).nbytes
    6528
    """
    return Placement(spec.stored, spec.dtype, fill, spec.page_elements)


def to_bytes(array: object, spec: TensorSpec, pad_value: Number = 0, out: Bytes | None = None) -> Bytes:
    """Return an `array`, converted and padded with `pad_value`, as the bytes of all pages of `spec`, in `out` if given.

    >>> to_bytes(np.ones((30, 40), dtype=np.float32), TensorSpec((30, 40), "bfloat8_b")).nbytes
    2176
    """
    data = aligned_empty(spec.nbytes, np.uint8) if out is None or not spec.nbytes else validate_bytes(out, spec)
    if spec.nbytes:
        values = as_stored_array(array, spec)
        execute(plan_copy(placement_of(values), host_placement(spec, pad_value)), values, data)
    return data


def from_bytes(data: ReadableBuffer, spec: TensorSpec, dtype: FormatLike | None = None) -> np.ndarray[Any, Any]:
    """Return the values of a tensor of `spec` from `data`, the bytes of all pages, as `dtype`; blocks become float32.

    >>> spec = TensorSpec((2, 3), "int16", "tile")
    >>> from_bytes(to_bytes(np.arange(6).reshape(2, 3), spec), spec).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    result = empty_result(spec, dtype)
    if spec.shape.logical_volume():
        source = validate_bytes(np.frombuffer(data, np.uint8) if isinstance(data, (bytes, bytearray)) else data, spec)
        view = as_stored_array(result, spec)
        execute(plan_copy(host_placement(spec), placement_of(view)), source, view)
    return result


def as_stored_array(array: object, spec: TensorSpec) -> np.ndarray[Any, Any]:
    """Return a view of an `array` of the shape of `spec` with the rank of its padded shape.

    >>> as_stored_array(np.zeros(7), TensorSpec((7,), page_layout="tile")).shape
    (1, 7)
    """
    values = as_host_array(array)
    if values.shape != spec.shape.logical:
        raise LayoutError(f"array has shape {values.shape}, tensor has shape {list(spec.shape)}: they must be equal")
    if any(stride % values.itemsize for stride in values.strides):
        values = np.ascontiguousarray(values)
    return values.reshape((1,) * (len(spec.padded_shape) - values.ndim) + values.shape)


def empty_result(spec: TensorSpec, dtype: FormatLike | None) -> np.ndarray[Any, Any]:
    """Return an uninitialised array for the values of `spec`, as `dtype` or in its own format.

    >>> empty_result(TensorSpec((3, 4), "bfloat8_b"), None).dtype
    dtype('float32')
    """
    element = spec.dtype.value_format if dtype is None else scalar_format_of(dtype)
    return aligned_empty(spec.shape.logical, element.dtype)


def validate_bytes(data: object, spec: TensorSpec) -> Bytes:
    """Return `data` as bytes, which must have the size of all pages of `spec`.

    >>> validate_bytes(np.zeros(64, np.uint8), TensorSpec((4, 8), "int16")).size
    64
    """
    array = np.asarray(data)
    if not array.flags.c_contiguous or array.nbytes != spec.nbytes:
        raise LayoutError(
            f"expected {spec.nbytes} contiguous bytes, the pages of {spec}, got {array.nbytes} with strides"
            f" {array.strides}"
        )
    return array.reshape(-1).view(np.uint8)


class BankMemory:
    """One memory of a chip: all banks in a single address space, so that one plan can access all of them.

    >>> banks = BankMemory(Chip.named("wormhole_n150"), BufferType.L1)
    >>> banks.at(3, 200000, 4)[:] = 7
    >>> banks.at(3, 200002, 4).tolist()
    [7, 7, 0, 0]
    """

    def __init__(self, chip: Chip, buffer_type: BufferType) -> None:
        self.count = chip.banks(buffer_type)
        self.start, self.end = chip.base(buffer_type), chip.end(buffer_type)
        self.stride = round_up(self.end - self.start, PAGE_BYTES)
        self.name = f"{buffer_type} of {chip.name}"

    @cached_property
    def bytes(self) -> Bytes:
        """All bytes; the operating system allocates memory when they are first written.

        >>> BankMemory(Chip.named("wormhole_n150"), BufferType.DRAM).bytes.size == 12 * 1072693248
        True
        """
        size = self.count * self.stride
        try:
            if mmap is None:
                return np.zeros(size, dtype=np.uint8)
            if sys.platform == "win32":
                pages = mmap.mmap(-1, size)
            else:
                pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
        except (OSError, ValueError, MemoryError) as problem:
            raise OutOfMemory(
                f"cannot reserve {size} bytes of address space for {self.name} ({problem}); describe a chip with less"
                " memory in a .toml file"
            ) from None
        if self.stride >= _MIN_HUGE_PAGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
            pages.madvise(mmap.MADV_HUGEPAGE)
        return np.frombuffer(pages, dtype=np.uint8)

    def at(self, bank: int, address: int, size: int) -> Bytes:
        """Return `size` bytes of a bank from an address on, without a copy.

        >>> BankMemory(Chip.named("wormhole_n150"), BufferType.L1).at(0, 105824, 8).size
        8
        """
        if not 0 <= bank < self.count:
            raise MemoryConfigError(f"{self.name} has banks 0 to {self.count - 1}, got bank {bank}")
        if size < 0 or not self.start <= address <= address + size <= self.end:
            raise MemoryConfigError(
                f"{size} bytes at {address} are outside the address range {self.start} to {self.end} of {self.name}"
            )
        first = bank * self.stride + address - self.start
        return self.bytes[first : first + size]


class Device(Drawable):
    """A chip with memory: tensors are allocated, written, read and freed, with every byte where the real chip has it.

    Bytes outside of pages keep their values, as on a real chip. `l1_small_size`,
    `trace_region_size` and `worker_l1_size` reserve memory, as in `Allocator`; a `hybrid` device also takes tensors of
    which each core's shard is allocated on its own.

    >>> device = Device("wormhole_n150")
    >>> tensor = device.put(np.arange(12).reshape(3, 4), TensorSpec((3, 4), "int32", "tile"))
    >>> tensor.address, device.get(tensor).tolist()
    (1048640, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    """

    is_open: bool = True  # a dialect closes devices; a closed device holds no tensors

    def __init__(
        self,
        chip: ChipLike,
        l1_small_size: int = 0,
        trace_region_size: int = 0,
        worker_l1_size: int | None = None,
        *,
        hybrid: bool = False,
    ) -> None:
        self.chip = Chip.of(chip)
        self.allocator = Allocator(self.chip, l1_small_size, trace_region_size, worker_l1_size, hybrid=hybrid)
        self._banks = {
            is_l1: BankMemory(self.chip, BufferType.L1 if is_l1 else BufferType.DRAM) for is_l1 in (True, False)
        }

    def allocate(self, spec: TensorSpec) -> Allocation:
        """Return the memory allocated for the tensor of `spec`; a spec without a chip gets this one.

        >>> Device("wormhole_n150").allocate(TensorSpec((4, 4), "float32")).size
        32
        """
        if not self.is_open:
            raise MemoryConfigError(f"the device of {self.chip.name} is closed; open it again to put tensors on it")
        return self.allocator.allocate(spec if spec.chip else spec.with_chip(self.chip))

    def free(self, allocation: Allocation) -> None:
        """Free the `allocation` of a tensor; its bytes stay until they are overwritten.

        >>> device = Device("wormhole_n150")
        >>> device.free(device.allocate(TensorSpec((4, 4), "float32")))
        """
        self.allocator.free(allocation)

    def put(self, array: object, spec: TensorSpec, pad_value: Number = 0) -> Allocation:
        """Allocate a tensor of `spec`, write an `array` to it, padded with `pad_value`, and return its memory.

        >>> device = Device("wormhole_n150")
        >>> device.get(device.put([1.5, 2.5], TensorSpec((2,), "bfloat16"))).tolist()
        [1.5, 2.5]
        """
        allocation = self.allocate(spec)
        self.write_array(allocation, array, pad_value)
        return allocation

    def write_array(self, allocation: Allocation, array: object, pad_value: Number = 0) -> None:
        """Write an `array` to the pages of the tensor at `allocation`, converted, and padded with `pad_value`.

        >>> device = Device("wormhole_n150")
        >>> tensor = device.allocate(TensorSpec((2,), "int32"))
        >>> device.write_array(tensor, np.array([3, 4]))
        >>> device.get(tensor).tolist()
        [3, 4]
        """
        spec = _tensor_spec(allocation)
        target = self._element_placement(allocation, pad_value)
        if target is None:
            self.write(allocation, to_bytes(array, spec, pad_value))
        elif spec.nbytes:
            values = as_stored_array(array, spec)
            execute(plan_copy(placement_of(values), target), values, self._memory_from(allocation))

    def get(self, allocation: Allocation, dtype: FormatLike | None = None) -> np.ndarray[Any, Any]:
        """Return the values of the tensor at `allocation` as an array of `dtype`; block formats become float32.

        >>> device = Device("wormhole_n150")
        >>> device.get(device.put([[1, 2]], TensorSpec((1, 2), "uint8")), dtype="float32").tolist()
        [[1.0, 2.0]]
        """
        spec = _tensor_spec(allocation)
        source = self._element_placement(allocation, 0)
        if source is None:
            return from_bytes(self.read(allocation), spec, dtype)
        result = empty_result(spec, dtype)
        if result.size:
            view = as_stored_array(result, spec)
            execute(plan_copy(source, placement_of(view)), self._memory_from(allocation), view)
        return result

    def write(self, allocation: Allocation, pages: ReadableBuffer) -> None:
        """Write the bytes of all `pages` of an `allocation`, one after the other, to the banks.

        >>> device = Device("wormhole_n150")
        >>> tensor = device.allocate(TensorSpec((2, 4), "uint8"))
        >>> device.write(tensor, np.arange(8, dtype=np.uint8))
        >>> device.read_bytes(1, tensor.address, 4).tolist()
        [4, 5, 6, 7]
        """
        spec = _tensor_spec(allocation)
        if spec.nbytes:
            data = validate_bytes(pages, spec)
            execute(plan_copy(*self._page_placements(allocation)), data, self._memory_from(allocation))

    def read(self, allocation: Allocation) -> Bytes:
        """Return the bytes of all pages of an `allocation`, one after the other.

        >>> device = Device("wormhole_n150")
        >>> device.read(device.put([[1, 2], [3, 4]], TensorSpec((2, 2), "uint8"))).tolist()
        [1, 2, 3, 4]
        """
        spec = _tensor_spec(allocation)
        data = aligned_empty(spec.nbytes, np.uint8)
        if spec.nbytes:
            flat, scattered = self._page_placements(allocation)
            execute(plan_copy(scattered, flat), self._memory_from(allocation), data)
        return data

    def _memory_from(self, allocation: Allocation) -> Bytes:
        """Return the address space of all banks from the lowest address of an allocation in bank 0 on."""
        banks = self._banks[allocation.buffer_type.is_l1]
        return banks.bytes[allocation.address - banks.start :]

    def _element_placement(self, allocation: Allocation, fill: Number) -> Placement | None:
        """Return the placement of elements in the banks; None if pages are not a whole number of elements."""
        spec = _tensor_spec(allocation)
        unit = self.chip.page_alignment(spec.memory.buffer_type)
        if not spec.num_pages or spec.dtype.has_blocks or unit % spec.dtype.itemsize:
            return None
        scattered = self._page_layout(allocation, spec.dtype.itemsize)
        return Placement(compose(scattered, spec.stored), spec.dtype, fill)

    def _page_placements(self, allocation: Allocation) -> tuple[Placement, Placement]:
        """Return the placements of the bytes of all pages on the host and in the banks."""
        spec = _tensor_spec(allocation)
        flat = Layout((spec.page_bytes, spec.num_pages))
        return Placement(flat, "uint8"), Placement(compose(self._page_layout(allocation, 1), flat), "uint8")

    def _page_layout(self, allocation: Allocation, unit: int) -> PagedLayout:
        """Return the layout of pages from the lowest address on, which allocations of equal specs mostly share."""
        addresses = tuple([(core, address - allocation.address) for core, address in allocation.shard_addresses])
        block = replace(allocation, number=0, address=0, shard_addresses=addresses)
        return _page_layout_in_banks(block, self._banks[allocation.buffer_type.is_l1].stride, unit)

    def read_bytes(self, place: CoreLike | int, address: int, size: int, buffer_type: BufferTypeLike = "dram") -> Bytes:
        """Return a copy of `size` bytes at an `address` of `place`, a bank of `buffer_type` or a core.

        >>> Device("wormhole_n150").read_bytes((0, 0), 200000, 4, "l1").tolist()
        [0, 0, 0, 0]
        """
        return self._bank_bytes(place, address, size, buffer_type).copy()

    def write_bytes(
        self, place: CoreLike | int, address: int, data: ReadableBuffer, buffer_type: BufferTypeLike = "dram"
    ) -> None:
        """Write the bytes `data` to an `address` of `place`, a bank of `buffer_type` or a core.

        >>> device = Device("wormhole_n150")
        >>> device.write_bytes((0, 0), 200000, b"ab", "l1")
        >>> device.read_bytes((0, 0), 200000, 2, "l1").tolist()
        [97, 98]
        """
        array = np.frombuffer(data, dtype=np.uint8)
        self._bank_bytes(place, address, array.size, buffer_type)[:] = array

    def _bank_bytes(self, place: CoreLike | int, address: int, size: int, buffer_type: BufferTypeLike) -> Bytes:
        memory = BufferType.of(buffer_type)
        bank = place if isinstance(place, int) else self.chip.bank_of(place, memory)
        return self._banks[memory.is_l1].at(bank, address, size)

    def bank_memory(self, buffer_type: BufferTypeLike) -> BankMemory:
        """Return the bytes of all banks of the memory `buffer_type`.

        >>> Device("wormhole_n150").bank_memory("dram").count
        12
        """
        return self._banks[BufferType.of(buffer_type).is_l1]

    def memory_view(self, buffer_type: BufferTypeLike) -> MemoryView:
        """Return the state of the memory `buffer_type`.

        >>> Device("wormhole_n150").memory_view("dram").free
        1072693184
        """
        return self.allocator.memory_view(buffer_type)

    def report(self) -> str:
        """Return the state of all memories with their allocations.

        >>> print(Device("wormhole_n150").report().splitlines()[1])
        L1: 0 of 1393312 bytes in each of 64 banks used, largest free block 1393312
        """
        return self.allocator.report()

    def dump(self, folder: str | PathLike[str]) -> None:
        """Write the allocated part of every bank to a `folder`: a raw file per bank, and a manifest.

        >>> import tempfile
        >>> device = Device("wormhole_n150")
        >>> tensor = device.put([1, 2], TensorSpec((2,), "uint8", memory="l1"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     device.dump(folder)
        ...     Device.load(folder, "wormhole_n150").read_bytes((1, 4), tensor.address, 2, "l1").tolist()
        [1, 2]
        """
        path = as_path(folder)
        path.mkdir(parents=True, exist_ok=True)
        buffer_types = ("dram", "trace", "l1", "l1_small")
        blocks = [block for buffer_type in buffer_types for block in self.memory_view(buffer_type).allocations]
        ranges, checksums = {}, {}
        for is_l1, banks in self._banks.items():
            own = [block for block in blocks if block.buffer_type.is_l1 == is_l1]
            if not own:
                continue
            name = "l1" if is_l1 else "dram"
            low, high = min(block.single_address for block in own), max(block.end for block in own)
            ranges[name] = [low, high]
            for bank in range(banks.count):
                image = banks.at(bank, low, high - low).tobytes()
                checksums[file := f"{name}_{bank:03}.bin"] = crc32(image)
                write_file(path / file, image)
        content = {
            "chip": self.chip.name,
            "dispatch": self.chip.dispatch,
            "ranges": ranges,
            "crc32": checksums,  # an interrupted dump has images of two dumps, which must not be loaded
            "allocations": [[block.buffer_type.name, block.address, block.size] for block in blocks],
        }
        write_file(path / MANIFEST, json.dumps(content, indent=1))

    @classmethod
    def load(cls, folder: str | PathLike[str], chip: ChipLike, **options: Any) -> Device:  # as for the device
        """Return a device of `chip` with the banks and allocations dumped to `folder`; `options` are as in `Device`.

        >>> Device.load("no-such-folder", "wormhole_n150")
        Traceback (most recent call last):
            ...
        FileNotFoundError: [Errno 2] No such file or directory: 'no-such-folder/banks.json'
        """
        path = as_path(folder)
        text = (path / MANIFEST).read_text(encoding="utf-8")
        device = cls(chip, **options)
        try:
            content = json.loads(text)
            dumped_from = (content["chip"], content["dispatch"])
            ranges = {str(name): (int(low), int(high)) for name, (low, high) in content["ranges"].items()}
            blocks = [(str(memory), int(address), int(size)) for memory, address, size in content["allocations"]]
            checksums = {str(file): int(checksum) for file, checksum in content["crc32"].items()}
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            raise MemoryConfigError(f"{path / MANIFEST} is damaged ({problem}); dump the device again") from None
        if dumped_from != (device.chip.name, device.chip.dispatch):
            raise MemoryConfigError(
                f"{path} is a dump of {dumped_from[0]} with {dumped_from[1]} dispatch, expected one of {device.chip}"
            )
        for name, (low, high) in ranges.items():
            banks = device._banks[BufferType.of(name).is_l1]
            for bank in range(banks.count):
                file = f"{name}_{bank:03}.bin"
                image = np.fromfile(path / file, dtype=np.uint8)
                if image.size != high - low:
                    raise MemoryConfigError(
                        f"{file} has {image.size} bytes, expected {high - low} for the range {low} to {high}"
                    )
                if crc32(image.data) != checksums.get(file):
                    raise MemoryConfigError(f"{file} does not match {MANIFEST}; dump the device again")
                banks.at(bank, low, image.size)[:] = image
        for buffer_type, address, size in blocks:
            device.allocator.reserve(address, size, buffer_type)
        return device


@lru_cache(maxsize=16)  # few entries, since the table of a large tensor is large
def _page_layout_in_banks(block: Allocation, stride: int, unit: int) -> PagedLayout:
    """Return the layout of pages in the address space of all banks, `stride` bytes apart, in units of `unit` bytes."""
    pages = block.pages()
    return PagedLayout(_tensor_spec(block).page_bytes // unit, (pages.bank * stride + pages.address) // unit)


def _tensor_spec(allocation: Allocation) -> TensorSpec:
    if allocation.spec is None:
        raise MemoryConfigError(f"{allocation} is not a tensor; use read_bytes and write_bytes")
    return allocation.spec
