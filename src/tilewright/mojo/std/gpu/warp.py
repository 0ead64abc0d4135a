# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.warp`, now `std.gpu.primitives.warp`."""

from .primitives.warp import (
    WARP_SIZE,
    broadcast,
    lane_group_max,
    lane_group_min,
    lane_group_reduce,
    lane_group_sum,
    max,
    min,
    prefix_sum,
    reduce,
    shuffle_down,
    shuffle_idx,
    shuffle_up,
    shuffle_xor,
    sum,
    vote,
)

__all__ = [
    "WARP_SIZE",
    "broadcast",
    "lane_group_max",
    "lane_group_min",
    "lane_group_reduce",
    "lane_group_sum",
    "max",
    "min",
    "prefix_sum",
    "reduce",
    "shuffle_down",
    "shuffle_idx",
    "shuffle_up",
    "shuffle_xor",
    "sum",
    "vote",
]
