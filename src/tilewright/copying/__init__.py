# SPDX-License-Identifier: Apache-2.0
"""HOW bytes move: plans, and the engines that execute them."""

from .engine import execute
from .moves import copy, pack, relayout, tiled_layout, tilize, unpack, untilize
from .placement import Placement
from .plan import Plan, plan_copy

__all__ = [
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
