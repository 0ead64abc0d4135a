# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `max.gpu`: the threads of a kernel."""

from ...std.gpu import (
    MAX_THREADS_PER_BLOCK_METADATA,
    WARP_SIZE,
    barrier,
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
