# SPDX-License-Identifier: Apache-2.0
"""Copies: placements in memory, plans between them, and the engines that run plans."""

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .assembly import Assembly, Mode, Part, count_elements, join, modes_layout
    from .devices import (
        DEVICE_ENGINES,
        WIDEST,
        ArrayLibrary,
        Backend,
        DeviceArray,
        DeviceEngine,
        SupportsDLPack,
        as_host_array,
        export_dlpack,
        find_device_array,
        from_dlpack,
        load_engine,
        packed_strides,
        read_capsule,
    )
    from .engine import ENGINES, MAX_BATCH, BoundPlan, Runner, execute, make_runner
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
        fill_value,
        footprint_of,
        native_format,
        placement_of,
        strided_range,
    )
    from .plan import Plan, PlanCache, plan_copy, stage_operands

_NAMES = {
    "assembly": ("Assembly", "Mode", "Part", "count_elements", "join", "modes_layout"),
    "devices": (
        "DEVICE_ENGINES", "WIDEST", "ArrayLibrary", "Backend", "DeviceArray", "DeviceEngine", "SupportsDLPack",
        "as_host_array", "export_dlpack", "find_device_array", "from_dlpack", "load_engine", "packed_strides",
        "read_capsule",
    ),
    "engine": ("ENGINES", "MAX_BATCH", "BoundPlan", "Runner", "execute", "make_runner"),
    "native": ("NativeRunner", "can_decode", "decode_codes"),
    "operations": ("copy", "pack", "relayout", "tilize", "tilize_batch", "unpack", "untilize"),
    "placement": (
        "CACHE_LINE", "Array", "Buffer", "Footprint", "Leaf", "LoopNest", "Placement", "aligned_empty", "common_leaves",
        "dense_footprint", "fill_value", "footprint_of", "native_format", "placement_of", "strided_range",
    ),
    "plan": ("Plan", "PlanCache", "plan_copy", "stage_operands"),
}  # fmt: skip
if not TYPE_CHECKING:  # a type checker knows the names from above, and that there are no others
    __getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = [
    "ArrayLibrary", "Backend", "BoundPlan", "DeviceArray", "DeviceEngine", "LoopNest", "Placement", "Plan", "copy",
    "execute", "load_engine", "pack", "plan_copy", "relayout", "tilize", "tilize_batch", "unpack", "untilize",
]  # fmt: skip
