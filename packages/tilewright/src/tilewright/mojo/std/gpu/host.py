# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.host`: what a host program does with a device: buffers, copies and launches.

Only copies and kernels can access the memory of a device. The device is a real one, through OpenCL or CUDA, or by
default the SIMT machine over memory of the host with the same rules, so that the same program runs anywhere.
"""

from __future__ import annotations

from typing import Any

from ...brackets import Bracketed
from .device_buffer import DeviceBuffer, HostBuffer
from .device_context import DeviceContext, DeviceFunction
from .device_info import DeviceAttribute, Dim, GPUInfo

__all__ = [
    "DeviceAttribute",
    "DeviceBuffer",
    "DeviceContext",
    "DeviceFunction",
    "Dim",
    "GPUInfo",
    "HostBuffer",
    "get_gpu_target",
]

get_gpu_target: Any = Bracketed(lambda _, parameters, *arguments, **named: "simt")  # a label
