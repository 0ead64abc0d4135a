# SPDX-License-Identifier: Apache-2.0
"""Copies: placements in memory, plans between them, and the engines that run plans."""

from .assembly import Assembly, Mode, Part, count_elements, join, modes_layout
from .devices import DeviceArray, SupportsDLPack, as_host_array, export_dlpack, from_dlpack, packed_strides
from .engine import DEVICE_ENGINES, ENGINES, BoundPlan, Runner, execute, find_device_array, load_engine, make_runner
from .native import NativeRunner, can_decode, decode_codes
from .operations import copy, pack, relayout, tilize, tilize_batch, unpack, untilize
from .placement import (
    CACHE_LINE,
    Array,
    Buffer,
    Footprint,
    Leaf,
    LoopNest,
    Placement,
    aligned_empty,
    common_leaves,
    dense_footprint,
    footprint_of,
    native_format,
    placement_of,
    strided_range,
)
from .plan import Plan, plan_copy

__all__ = [
    "BoundPlan",
    "LoopNest",
    "Placement",
    "Plan",
    "copy",
    "execute",
    "pack",
    "plan_copy",
    "relayout",
    "tilize",
    "tilize_batch",
    "unpack",
    "untilize",
]
