# SPDX-License-Identifier: Apache-2.0
"""The weight cache of a model: its files by recipe, prepared from a checkpoint, checked, retargeted and fitted."""

from .cache_check import CacheReport, check_cache
from .cache_preparation import plan_cache, prepare
from .cache_relations import CacheProblem
from .model_fit import fit
from .optimizations import Optimizations
from .recipe import Recipe, recipe_names
from .retarget import plan_retarget, retarget_cache

__all__ = [
    "CacheProblem",
    "CacheReport",
    "Optimizations",
    "Recipe",
    "check_cache",
    "fit",
    "plan_cache",
    "plan_retarget",
    "prepare",
    "recipe_names",
    "retarget_cache",
]
