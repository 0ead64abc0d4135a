# SPDX-License-Identifier: Apache-2.0
"""Copies: placements in memory, plans between them, and the engines that run plans."""

from .engine import execute
from .loop_nest import LoopNest
from .operations import copy, pack, relayout, tiled_layout, tilize, unpack, untilize
from .placement import Placement
from .plan import Plan, plan_copy

__all__ = [
    "LoopNest",
    "Placement",
    "Plan",
    "copy",
    "execute",
    "pack",
    "plan_copy",
    "relayout",
    "tiled_layout",
    "tilize",
    "unpack",
    "untilize",
]
