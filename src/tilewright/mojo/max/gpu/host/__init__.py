# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `max.gpu.host`: what a host program does with a device."""

from ....std.gpu.host import (
    DeviceAttribute,
    DeviceBuffer,
    DeviceContext,
    DeviceFunction,
    Dim,
    GPUInfo,
    HostBuffer,
    get_gpu_target,
)

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
