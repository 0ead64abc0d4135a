# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.globals`: numbers of the machine, which are those of an NVIDIA H100."""

WARP_SIZE = 32
WARPGROUP_SIZE = 128
MAX_THREADS_PER_BLOCK_METADATA = "nvvm.maxntid"

__all__ = ["MAX_THREADS_PER_BLOCK_METADATA", "WARPGROUP_SIZE", "WARP_SIZE"]
