# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `max.gpu.globals`."""

from ...std.gpu.globals import MAX_THREADS_PER_BLOCK_METADATA, WARP_SIZE, WARPGROUP_SIZE

__all__ = [
    "MAX_THREADS_PER_BLOCK_METADATA",
    "WARPGROUP_SIZE",
    "WARP_SIZE",
]
