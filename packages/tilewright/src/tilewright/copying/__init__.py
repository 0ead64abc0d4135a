# SPDX-License-Identifier: Apache-2.0
"""Copies: placements in memory, plans between them, and the engines that run plans."""

from .bound_plan import BoundPlan
from .engine import execute
from .loop_nest import LoopNest
from .operations import copy, pack, relayout, tilize, tilize_batch, unpack, untilize
from .placement import Placement
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
