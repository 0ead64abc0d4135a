# SPDX-License-Identifier: Apache-2.0
"""Checkpoints converted to tiled files: planned, in bounded memory, resumable and verifiable."""

from .cache_check import CacheReport, check_cache
from .cache_preparation import plan_cache, prepare
from .cache_relations import CacheProblem
from .conversion_plan import ConversionPlan, plan_conversion
from .conversion_run import ConversionReport, ProgressEvent, convert, run_plan
from .model_fit import fit
from .optimizations import Optimizations
from .recipe import Recipe, recipe_names
from .retarget import plan_retarget, retarget_cache
from .rules import Rules, Settings
from .verification import Verdict, VerifyReport, verify

__all__ = [
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
    "check_cache",
    "convert",
    "fit",
    "plan_cache",
    "plan_conversion",
    "plan_retarget",
    "prepare",
    "recipe_names",
    "retarget_cache",
    "run_plan",
    "verify",
]
