# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.id`, now `std.gpu.primitives.id`."""

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

__all__ = [
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
