# SPDX-License-Identifier: Apache-2.0
"""A checking SIMT machine: kernels run without a GPU, and the machine reports their defects.

`launch` runs a kernel, a function of Python, for every thread of a grid of blocks. The kernel asks `thread_idx`,
`block_idx` and the like who it is, allocates memory with `shared_array` and `local_array`, and waits with `barrier`.
The machine finds accesses out of bounds, reads of memory without values, data races, barriers that not all threads
reach, and what the accesses of each line cost.
"""

from .access_log import Site, local_array, shared_array
from .collectives import (
    atomic_add,
    atomic_compare_exchange,
    atomic_exchange,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_store,
    atomic_sub,
    ballot,
    barrier,
    block_broadcast,
    block_max,
    block_min,
    block_prefix_sum,
    block_reduce,
    block_sum,
    cluster_barrier,
    fence,
    shuffle_down,
    shuffle_idx,
    shuffle_up,
    shuffle_xor,
    syncwarp,
    vote_all,
    vote_any,
    warp_broadcast,
    warp_max,
    warp_min,
    warp_prefix_sum,
    warp_reduce,
    warp_sum,
)
from .kernel_report import Defect, KernelReport, SiteCost, TouchMap, Witness
from .kernel_thread import Dim, block_dim, block_idx, global_idx, grid_dim, lane_id, thread_idx, warp_id
from .machine import BlockLimits, collect_reports, launch

__all__ = [
    "BlockLimits", "Defect", "Dim", "KernelReport", "Site", "SiteCost", "TouchMap", "Witness", "atomic_add",
    "atomic_compare_exchange", "atomic_exchange", "atomic_load", "atomic_max", "atomic_min", "atomic_store",
    "atomic_sub", "ballot", "barrier", "block_broadcast", "block_dim", "block_idx", "block_max", "block_min",
    "block_prefix_sum", "block_reduce", "block_sum", "cluster_barrier", "collect_reports", "fence", "global_idx",
    "grid_dim", "lane_id", "launch", "local_array", "shared_array", "shuffle_down", "shuffle_idx", "shuffle_up",
    "shuffle_xor", "syncwarp", "thread_idx", "vote_all", "vote_any", "warp_broadcast", "warp_id", "warp_max",
    "warp_min", "warp_prefix_sum", "warp_reduce", "warp_sum",
]  # fmt: skip
