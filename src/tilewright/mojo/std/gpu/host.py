# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.host`."""

from ....tensor import DeviceBuffer, DeviceContext, HostBuffer

__all__ = ["DeviceBuffer", "DeviceContext", "HostBuffer"]
