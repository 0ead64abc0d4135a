# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `std.gpu`: the threads of a kernel."""

import sys
from importlib import import_module

from .globals import MAX_THREADS_PER_BLOCK_METADATA, WARP_SIZE
from .primitives.id import (
    block_dim,
    block_id_in_cluster,
    block_idx,
    cluster_dim,
    cluster_idx,
    global_idx,
    grid_dim,
    lane_id,
    sm_id,
    thread_idx,
    warp_id,
)
from .sync import barrier

__all__ = [
    "MAX_THREADS_PER_BLOCK_METADATA",
    "WARP_SIZE",
    "barrier",
    "block_dim",
    "block_id_in_cluster",
    "block_idx",
    "cluster_dim",
    "cluster_idx",
    "global_idx",
    "grid_dim",
    "lane_id",
    "sm_id",
    "thread_idx",
    "warp_id",
]

# The older names of three modules.
for _name in ("block", "id", "warp"):
    sys.modules[f"{__name__}.{_name}"] = import_module(f".primitives.{_name}", __name__)
