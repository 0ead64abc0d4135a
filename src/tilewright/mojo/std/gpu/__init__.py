# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `std.gpu`: the threads of a kernel."""

from .grid import Dim, barrier, block_dim, block_idx, global_idx, grid_dim, thread_idx

__all__ = ["Dim", "barrier", "block_dim", "block_idx", "global_idx", "grid_dim", "thread_idx"]
