# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `max.gpu.primitives.cluster`."""

from ....std.gpu.primitives.cluster import (
    block_rank_in_cluster,
    cluster_arrive,
    cluster_arrive_relaxed,
    cluster_sync,
    cluster_sync_relaxed,
    cluster_wait,
    elect_one_sync,
)

__all__ = [
    "block_rank_in_cluster",
    "cluster_arrive",
    "cluster_arrive_relaxed",
    "cluster_sync",
    "cluster_sync_relaxed",
    "cluster_wait",
    "elect_one_sync",
]
