# SPDX-License-Identifier: Apache-2.0
"""The storage of the pages of a tensor: on the host, owned or borrowed, or in the memory of a device."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from ..errors import TransferError
from ..memory import Allocation, Device

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"


class StorageType(Enum):
    """Who owns the bytes of a tensor.

    >>> StorageType.BORROWED_HOST.is_host
    True
    """

    OWNED_HOST = 0
    BORROWED_HOST = 1
    DEVICE = 2

    @property
    def is_host(self) -> bool:
        """Return whether the bytes are in the memory of this process.

        >>> StorageType.DEVICE.is_host
        False
        """
        return self is not StorageType.DEVICE


@dataclass(frozen=True, slots=True, eq=False)
class HostStorage:
    """Pages on the host, one after the other, and who owns them.

    >>> HostStorage(np.zeros(8, np.uint8), StorageType.OWNED_HOST).data.nbytes
    8
    """

    data: Bytes
    type: StorageType


class DeviceStorage:
    """A block of device memory, freed when nothing refers to it any more, or by `free`.

    >>> from tilewright import TensorSpec
    >>> device = Device("wormhole_n150")
    >>> block = DeviceStorage(device, device.allocate(TensorSpec((4, 4))))
    >>> block.free()
    >>> device.memory_view("dram").allocated
    0
    """

    type = StorageType.DEVICE

    def __init__(self, device: Device, allocation: Allocation) -> None:
        self.device = device
        self._allocation = allocation
        self._release = weakref.finalize(self, device.free, allocation)

    @property
    def allocation(self) -> Allocation:
        """Return the block; raise if it was freed.

        >>> from tilewright import TensorSpec
        >>> device = Device("wormhole_n150")
        >>> DeviceStorage(device, device.allocate(TensorSpec((4, 4)))).allocation.address
        1048640
        """
        if not self._release.alive:
            raise TransferError(f"the tensor at {self._allocation.address} of {self.device.chip.name} was deallocated")
        return self._allocation

    @property
    def is_allocated(self) -> bool:
        """Return whether the block is still allocated.

        >>> from tilewright import TensorSpec
        >>> device = Device("wormhole_n150")
        >>> DeviceStorage(device, device.allocate(TensorSpec((4, 4)))).is_allocated
        True
        """
        return self._release.alive

    def free(self) -> None:
        """Free the block; a second call does nothing.

        >>> from tilewright import TensorSpec
        >>> device = Device("wormhole_n150")
        >>> DeviceStorage(device, device.allocate(TensorSpec((4, 4)))).free()
        """
        self._release()
