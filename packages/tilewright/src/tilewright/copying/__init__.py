# SPDX-License-Identifier: Apache-2.0
"""Copies: placements in memory, plans between them, and the engines that run plans."""

from .engine import BoundPlan, execute
from .operations import copy, pack, relayout, tilize, tilize_batch, unpack, untilize
from .placement import LoopNest, Placement
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
