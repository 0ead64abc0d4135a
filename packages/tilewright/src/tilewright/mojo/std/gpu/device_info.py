# SPDX-License-Identifier: Apache-2.0
"""What a host program can ask about the device: limits of an NVIDIA H100, which the SIMT machine stands for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from ....layout import as_integer
from ....simt.kernel_thread import Dim as KernelDim

__all__ = ["DeviceAttribute", "Dim", "GPUInfo"]


class Dim(KernelDim):
    """Up to three numbers of blocks or threads: `Dim(4, 2)`, or `Dim((4, 2))`.

    >>> print(Dim(4, 2), Dim((4,)).y)
    (x=4, y=2) 1
    """

    __slots__ = ()

    def __new__(cls, x: Any, y: Any = 1, z: Any = 1) -> Dim:
        extents = tuple(x) if isinstance(x, (tuple, list)) else (x, y, z)
        return super().__new__(cls, *[int(as_integer(extent, "an extent")) for extent in extents])

    def __str__(self) -> str:
        given = [f"x={self.x}", f"y={self.y}", f"z={self.z}"]
        count = 3 if self.z != 1 else 2 if self.y != 1 else 1
        return f"({', '.join(given[:count])})"


class DeviceAttribute(Enum):
    """A property of the device: `ctx.get_attribute(DeviceAttribute.WARP_SIZE)`.

    >>> DeviceAttribute.WARP_SIZE.value
    32
    """

    MAX_THREADS_PER_BLOCK = 1024
    MAX_BLOCK_DIM_X = 1024 + 0j  # numbers of their own, so that equal values stay different attributes
    MAX_BLOCK_DIM_Y = 1024 + 1j
    MAX_BLOCK_DIM_Z = 64
    MAX_GRID_DIM_X = 2**31 - 1
    MAX_GRID_DIM_Y = 65535
    MAX_GRID_DIM_Z = 65535 + 1j
    MAX_SHARED_MEMORY_PER_BLOCK = 48 << 10
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 227 << 10
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 228 << 10
    WARP_SIZE = 32
    MAX_REGISTERS_PER_BLOCK = 65536
    MAX_REGISTERS_PER_MULTIPROCESSOR = 65536 + 1j
    MULTIPROCESSOR_COUNT = 132
    MAX_THREADS_PER_MULTIPROCESSOR = 2048
    MAX_BLOCKS_PER_MULTIPROCESSOR = 32 + 1j
    COMPUTE_CAPABILITY_MAJOR = 9
    COMPUTE_CAPABILITY_MINOR = 0
    CLOCK_RATE = 1_980_000


@dataclass(frozen=True, slots=True)
class GPUInfo:
    """What is known of the device at compile time.

    >>> machine = GPUInfo()
    >>> machine.warp_size
    32
    """

    name: str = "tilewright SIMT machine"
    vendor: str = "NVIDIA"
    api: str = "cuda"
    arch_name: str = "hopper"
    compute: float = 9.0
    version: str = "sm_90"
    sm_count: int = 132
    warp_size: int = 32
    threads_per_sm: int = 2048
    threads_per_multiprocessor: int = 2048
    max_thread_block_size: int = 1024
    shared_memory_per_multiprocessor: int = 228 << 10
    max_registers_per_block: int = 65536
