# SPDX-License-Identifier: Apache-2.0
"""Devices: simulated chips that are opened by number, and what lies in their memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import memory
from ..errors import MemoryConfigError
from ..layout.validation import as_integer
from ..memory import Chip
from ..memory.chip import ChipLike
from .cores import CoreCoord, CoreGrid
from .enums import BufferType
from .meshes import MeshShape

if TYPE_CHECKING:
    from .mesh_device import MeshDevice

DEFAULT_CHIP = "wormhole_n150"
AnyDevice: TypeAlias = "memory.Device | MeshDevice"  # what a tensor can be on
OpenDevice: TypeAlias = "Device | MeshDevice"
_OPEN: dict[int, Device] = {}
_DEFAULT: list[OpenDevice] = []


class ChipProperties:
    """What a device and a mesh of equal devices say about their chip.

    >>> Device("blackhole_p150").arch()
    'blackhole'
    """

    chip: Chip
    is_part = False  # of a mesh whose devices it shares

    def arch(self) -> str:
        """Return the name of the chip's architecture.

        >>> Device("blackhole_p150").arch()
        'blackhole'
        """
        return self.chip.arch

    def compute_with_storage_grid_size(self) -> CoreCoord:
        """Return the columns and rows of the compute grid.

        >>> Device("blackhole_p150").compute_with_storage_grid_size()
        11-10
        """
        return CoreCoord(*self.chip.compute_grid)

    @property
    def core_grid(self) -> CoreGrid:
        """Return the grid of all cores.

        >>> Device("wormhole_n150").core_grid.num_cores
        64
        """
        x, y = self.chip.compute_grid
        return CoreGrid(y=y, x=x)

    def dram_grid_size(self) -> CoreCoord:
        """Return the DRAM banks as a row of cores.

        >>> Device("wormhole_n150").dram_grid_size()
        12-1
        """
        return CoreCoord(self.chip.banks("dram"), 1)


class Device(ChipProperties, memory.Device):
    """A simulated chip with the methods of ttnn's devices.

    >>> Device("wormhole_n150").compute_with_storage_grid_size()
    8-8
    """

    device_id = 0

    def id(self) -> int:
        """Return the number under which the device was opened.

        >>> Device("wormhole_n150").id()
        0
        """
        return self.device_id

    @property
    def shape(self) -> MeshShape:
        """Return the shape of a mesh of one device: ttnn has no devices but meshes.

        >>> Device("wormhole_n150").shape
        MeshShape([1, 1])
        """
        return MeshShape(1, 1)

    def get_device_ids(self) -> list[int]:
        """Return the numbers of the chips: that of this one.

        >>> Device("wormhole_n150").get_device_ids()
        [0]
        """
        return [self.device_id]

    def get_num_devices(self) -> int:
        """Return the number of chips: one.

        >>> Device("wormhole_n150").get_num_devices()
        1
        """
        return 1

    def get_devices(self) -> list[Device]:
        """Return the chips: this one.

        >>> len(Device("wormhole_n150").get_devices())
        1
        """
        return [self]

    def __repr__(self) -> str:
        return f"<ttnn.Device {self.device_id}: {self.chip.name}, {self.chip.dispatch} dispatch>"


def open_device(
    device_id: int = 0,
    l1_small_size: int = 0,
    trace_region_size: int = 0,
    worker_l1_size: int | None = None,
    dispatch_core_config: object = None,
    *,
    chip: ChipLike | None = None,
) -> Device:
    """Return the simulated device of number `device_id`, opened unless it is open already.

    `chip` defaults to the environment variable TILEWRIGHT_CHIP, or wormhole_n150. As with ttnn,
    TT_METAL_SLOW_DISPATCH_MODE=1 opens it in slow dispatch. `l1_small_size` and `trace_region_size` bytes per bank are
    reserved; `worker_l1_size` limits the L1 for tensors; `dispatch_core_config` is ignored.

    >>> device = open_device(device_id=0)
    >>> close_device(device)
    """
    if as_integer(device_id, "device_id") < 0:
        raise MemoryConfigError(f"devices are numbered from 0, got device_id={device_id}")
    if device_id not in _OPEN:
        device = Device(resolve_chip(chip), l1_small_size, trace_region_size, worker_l1_size)
        device.device_id = device_id
        _OPEN[device_id] = device
    return _OPEN[device_id]


def resolve_chip(chip: ChipLike | None) -> Chip:
    """Return the `chip` to simulate, by default that of the environment, in slow dispatch if the environment says so.

    >>> resolve_chip("blackhole_p150").name
    'blackhole_p150'
    """
    slow = os.environ.get("TT_METAL_SLOW_DISPATCH_MODE") == "1"
    if chip is None:
        chip = os.environ.get("TILEWRIGHT_CHIP") or DEFAULT_CHIP
    return Chip.named(chip, dispatch="slow") if slow and isinstance(chip, str) else Chip.of(chip)


def close_device(device: OpenDevice) -> None:
    """Close `device`, a device or a mesh of them; its number can be opened again, and its tensors are gone.

    A mesh that is part of another one leaves its devices open.

    >>> close_device(open_device(device_id=3))
    """
    for chip in device.get_devices():
        if _OPEN.get(chip.device_id) is chip:
            del _OPEN[chip.device_id]
        chip.is_open = chip.is_open and device.is_part
    if device in _DEFAULT:
        _DEFAULT.clear()


@contextmanager
def manage_device(device_id: int = 0, **options: Any) -> Iterator[Device]:
    """Open device `device_id` for the length of a with block; `options` are those of `open_device`.

    >>> with manage_device(device_id=0) as device:
    ...     device.arch()
    'wormhole_b0'
    """
    device = open_device(device_id, **options)
    try:
        yield device
    finally:
        close_device(device)


def SetDefaultDevice(device: OpenDevice | None) -> None:  # noqa: N802  (ttnn's name)
    """Make `device` the default for functions that take none; None clears it.

    >>> SetDefaultDevice(None)
    """
    _DEFAULT[:] = [] if device is None else [device]


def GetDefaultDevice() -> OpenDevice | None:  # noqa: N802  (ttnn's name)
    """Return the default device: the one that was set, or else the only open one.

    >>> GetDefaultDevice() is None
    True
    """
    if _DEFAULT:
        return _DEFAULT[0]
    return next(iter(_OPEN.values())) if len(_OPEN) == 1 else None


def resolve_device(requested: AnyDevice | None, tensor_device: AnyDevice | None) -> AnyDevice:
    """Return the `requested` device, or that of the tensor, or the default one; raise if there is none.

    >>> with manage_device() as device:
    ...     resolve_device(None, None) is device
    True
    """
    device = requested or tensor_device or GetDefaultDevice()
    if device is None:
        raise MemoryConfigError(
            "the tensor is on the host and no single device is open; use to_device(tensor, device, memory_config=...)"
        )
    return device


@dataclass(frozen=True, slots=True)
class BufferPage:
    """The core, bank and address of one page of a buffer.

    >>> BufferPage(1048640, 0, 3, 0, 3, 3, 1048640, 2048, BufferType.DRAM).bank_id
    3
    """

    address: int
    device_id: int
    core_x: int
    core_y: int
    bank_id: int
    page_index: int
    page_address: int
    page_size: int
    buffer_type: BufferType


def get_buffer_pages(device: OpenDevice) -> list[BufferPage]:
    """Return the core and address of every page of every tensor on `device`, or on each of a mesh, in DRAM and L1.

    >>> from tilewright.tensor import Tensor
    >>> with manage_device() as device:
    ...     tensor = Tensor.of([[1, 2], [3, 4]]).to_device(device, "l1")
    ...     [(page.core_x, page.core_y) for page in get_buffer_pages(device)]
    [(1, 4), (4, 4)]
    """
    pages = []
    for chip in device.get_devices():
        for kind in (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL, BufferType.TRACE):
            for block in chip.memory_view(kind.name).allocations:
                if block.spec is None:
                    continue
                rows = block.spec.pages(base=block.address).rows().tolist()
                size = block.spec.page_bytes
                pages += [
                    BufferPage(block.address, chip.device_id, x, y, bank, page, address, size, kind)
                    for page, bank, x, y, address in rows
                ]
    return pages


def dump_device_memory_state(device: OpenDevice, prefix: str = "") -> None:
    """Print the memory use of `device`, or of each device of a mesh, after `prefix`.

    >>> with manage_device() as device:
    ...     dump_device_memory_state(device)
    DRAM: 0 of 1072693184 bytes in each of 12 banks used, largest free block 1072693184
    L1: 0 of 1393312 bytes in each of 64 banks used, largest free block 1393312
    """
    chips = device.get_devices()
    for chip in chips:
        name = f"device {chip.device_id}: " if len(chips) > 1 else ""
        print(prefix + name + chip.report())


def synchronize_device(device: OpenDevice, cq_id: object = None, sub_device_ids: object = ()) -> None:
    """Do nothing: a simulated `device` has always finished; `cq_id` and `sub_device_ids` are ignored.

    >>> with manage_device() as device:
    ...     synchronize_device(device)
    """
