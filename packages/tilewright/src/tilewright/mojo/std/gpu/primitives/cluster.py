# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.primitives.cluster`: blocks that run together, `cluster_dim=` of a launch."""

from __future__ import annotations

from typing import Any

from .....simt import cluster_barrier
from .....simt.kernel_thread import current_machine, suspends

__all__ = [
    "block_rank_in_cluster",
    "cluster_arrive",
    "cluster_arrive_relaxed",
    "cluster_sync",
    "cluster_sync_relaxed",
    "cluster_wait",
    "elect_one_sync",
]


def block_rank_in_cluster() -> int:
    """Return the number of the block in its cluster.

    >>> from tilewright.simt import launch
    >>> launch(lambda: print(block_rank_in_cluster(), end=" "), grid=4, block=1, cluster=2).clean
    0 1 0 1 True
    """
    return current_machine("block_rank_in_cluster()").cluster_rank


def cluster_arrive() -> None:
    """Say that the thread has come; here only `cluster_wait()` counts, which has to follow.

    >>> from tilewright.simt import launch
    >>> launch(lambda: cluster_arrive(), grid=2, block=1, cluster=2).clean
    True
    """
    current_machine("cluster_arrive()")


@suspends
def cluster_wait() -> Any:
    """Wait for all threads of the cluster.

    >>> from tilewright.simt import launch
    >>> launch(lambda: cluster_wait(), grid=2, block=2, cluster=2).clean
    True
    """
    return cluster_barrier()


cluster_arrive_relaxed = cluster_arrive
cluster_sync = cluster_sync_relaxed = cluster_wait


def elect_one_sync() -> bool:
    """Return whether this is the thread that acts for its warp: the first one.

    >>> from tilewright.simt import launch
    >>> launch(lambda: print(elect_one_sync(), end=" "), grid=1, block=2).clean
    True False True
    """
    return current_machine("elect_one_sync()").thread.lane == 0
