# SPDX-License-Identifier: Apache-2.0
"""Devices: simulated chips that are opened by number, and reports of what they hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .. import memory
from ..errors import MemoryConfigError
from ..memory import BufferType, Chip, CoreCoord, CoreGrid

DEFAULT_CHIP = "wormhole_n150"
_OPEN: dict[int, Device] = {}
_DEFAULT: list[Device] = []


class Device(memory.Device):
    """A simulated chip, with the questions that ttnn's devices answer.

    >>> Device("wormhole_n150").compute_with_storage_grid_size()
    CoreCoord(x=8, y=8)
    """

    device_id = 0

    def id(self) -> int:
        """Return the number under which the device was opened.

        >>> Device("wormhole_n150").id()
        0
        """
        return self.device_id

    def arch(self) -> str:
        """Return the name of the chip's architecture.

        >>> Device("blackhole_p150").arch()
        'blackhole'
        """
        return self.chip.arch

    def compute_with_storage_grid_size(self) -> CoreCoord:
        """Return how many columns and rows of cores there are.

        >>> Device("blackhole_p150").compute_with_storage_grid_size()
        CoreCoord(x=11, y=10)
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
        CoreCoord(x=12, y=1)
        """
        return CoreCoord(self.chip.banks("dram"), 1)

    def get_num_devices(self) -> int:
        """Return the number of chips: one.

        >>> Device("wormhole_n150").get_num_devices()
        1
        """
        return 1

    def __repr__(self) -> str:
        return f"<ttnn.Device {self.device_id}: {self.chip.name}, {self.chip.dispatch} dispatch>"


def open_device(
    device_id: int = 0,
    l1_small_size: int = 0,
    trace_region_size: int = 0,
    worker_l1_size: int | None = None,
    dispatch_core_config: object = None,
    *,
    chip: Any = None,
) -> Device:
    """Return a simulated device; one that is open already is returned again.

    The chip is the argument, or what the environment variable TILEWRIGHT_CHIP names, or wormhole_n150. As with ttnn,
    TT_METAL_SLOW_DISPATCH_MODE=1 opens it in slow dispatch.

    >>> device = open_device(device_id=0)
    >>> close_device(device)
    """
    if device_id not in _OPEN:
        slow = os.environ.get("TT_METAL_SLOW_DISPATCH_MODE") == "1"
        named = os.environ.get("TILEWRIGHT_CHIP") or DEFAULT_CHIP if chip is None else chip
        wanted = Chip.named(named, dispatch="slow") if slow and isinstance(named, str) else Chip.of(named)
        device = Device(wanted, l1_small_size, trace_region_size, worker_l1_size)
        device.device_id = device_id
        _OPEN[device_id] = device
    return _OPEN[device_id]


def close_device(device: Device) -> None:
    """Close a device, so that its number opens a new one.

    >>> close_device(open_device(device_id=3))
    """
    _OPEN.pop(device.device_id, None)
    if device in _DEFAULT:
        _DEFAULT.clear()


@contextmanager
def manage_device(device_id: int = 0, **options: Any) -> Iterator[Device]:
    """Return a device as a context, closed at its end.

    >>> with manage_device(device_id=0) as device:
    ...     device.arch()
    'wormhole_b0'
    """
    device = open_device(device_id, **options)
    try:
        yield device
    finally:
        close_device(device)


def SetDefaultDevice(device: Device | None) -> None:  # noqa: N802  (ttnn's name)
    """Make a device the one that is meant where none is named.

    >>> SetDefaultDevice(None)
    """
    _DEFAULT[:] = [] if device is None else [device]


def GetDefaultDevice() -> Device | None:  # noqa: N802  (ttnn's name)
    """Return the device that is meant where none is named: the default one, or the only one open.

    >>> GetDefaultDevice() is None
    True
    """
    if _DEFAULT:
        return _DEFAULT[0]
    return next(iter(_OPEN.values())) if len(_OPEN) == 1 else None


def known_device(tensor_device: Any, asked: Any = None) -> Device:
    """Return the device asked for, or that of a tensor, or the default one; raise if none is known.

    >>> with manage_device() as device:
    ...     known_device(None) is device
    True
    """
    found: Device | None = asked if asked is not None else tensor_device or GetDefaultDevice()
    if found is None:
        raise MemoryConfigError(
            "the tensor is on the host and no single device is open; use to_device(tensor, device, memory_config=...)"
        )
    return found


@dataclass(frozen=True, slots=True)
class BufferPage:
    """Where one page of a buffer lies.

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


def get_buffer_pages(device: Device) -> list[BufferPage]:
    """Return where every page of every tensor on a device lies, DRAM included.

    >>> from tilewright.tensor import Tensor
    >>> with manage_device() as device:
    ...     held = Tensor.of([[1, 2], [3, 4]]).to_device(device, "l1")
    ...     [(page.core_x, page.core_y) for page in get_buffer_pages(device)]
    [(1, 4), (4, 4)]
    """
    found = []
    for kind in (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL, BufferType.TRACE):
        for block in device.memory_view(kind).allocations:
            if block.spec is None:
                continue
            rows = block.spec.pages(base=block.address).rows().tolist()
            size = block.spec.page_bytes
            found += [
                BufferPage(block.address, device.device_id, x, y, bank, page, address, size, kind)
                for page, bank, x, y, address in rows
            ]
    return found


def dump_device_memory_state(device: Device, prefix: str = "") -> None:
    """Print what the memories of a device hold.

    >>> with manage_device() as device:
    ...     dump_device_memory_state(device)
    DRAM: 0 of 1072693184 bytes in each of 12 banks used, largest free block 1072693184
    L1: 0 of 1393312 bytes in each of 64 banks used, largest free block 1393312
    """
    print(prefix + device.report())
