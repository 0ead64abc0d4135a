# SPDX-License-Identifier: Apache-2.0
"""Checkpoints converted to tiled files: planned, in bounded memory, resumable and verifiable."""

from .cache_check import CacheReport, check_cache
from .cache_relations import CacheProblem
from .conversion_plan import ConversionPlan, plan_conversion
from .conversion_run import ConversionReport, ProgressEvent, convert, run_plan
from .optimizations import Optimizations
from .prepare import plan_cache, prepare
from .recipe import Recipe, recipe_names
from .retarget import plan_retarget, retarget_cache
from .rules import Rules, Settings
from .verification import Verdict, VerifyReport, verify
from .weight_cache import CacheOptions, WeightCache

__all__ = [
    "CacheOptions",
    "CacheProblem",
    "CacheReport",
    "ConversionPlan",
    "ConversionReport",
    "Optimizations",
    "ProgressEvent",
    "Recipe",
    "Rules",
    "Settings",
    "Verdict",
    "VerifyReport",
    "WeightCache",
    "check_cache",
    "convert",
    "plan_cache",
    "plan_conversion",
    "plan_retarget",
    "prepare",
    "recipe_names",
    "retarget_cache",
    "run_plan",
    "verify",
]
