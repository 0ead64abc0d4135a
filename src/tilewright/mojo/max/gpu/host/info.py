# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `max.gpu.host.info`: what is known of the device at compile time."""

from ....std.gpu.device_info import GPUInfo

__all__ = ["GPUInfo"]
