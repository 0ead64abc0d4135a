# SPDX-License-Identifier: Apache-2.0
"""Checkpoints at work: converted, prepared as a weight cache, verified, checked, fitted and compared."""

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .cache_check import CacheProblem, CacheReport, check_cache
    from .cache_folder import (
        fit,
        fit_plan,
        plan_cache,
        plan_retarget,
        prepare,
        retarget_cache,
    )
    from .comparison import Comparison, Difference, HiddenError, TensorComparison, Tolerance
    from .device_fit import DeviceTensor, fit_device, mark_weights
    from .explained_difference import DifferenceReason, explain_difference
    from .matching import Match, MatchReport, match
    from .model_capacity import Capacity, Demand, capacity, list_machines, solve_precision
    from .plan import ConversionItem, ConversionPlan, ItemExplanation, Piece, format_box, plan_conversion
    from .recipe import Optimizations, Recipe, recipe_names
    from .recipe_example import NumberChoice, RecipeByExample, infer_recipe
    from .rules import Rules, Settings
    from .run import ConversionReport, ProgressEvent, convert, run_plan
    from .source import Rounding
    from .tensor_diff import DescriptionComparison, diff
    from .verification import Verdict, VerifyReport, verify

_NAMES = {
    "cache_check": ("CacheProblem", "CacheReport", "check_cache"),
    "cache_folder": ("fit", "fit_plan", "plan_cache", "plan_retarget", "prepare", "retarget_cache"),
    "device_fit": ("DeviceTensor", "fit_device", "mark_weights"),
    "comparison": ("Comparison", "Difference", "HiddenError", "TensorComparison", "Tolerance"),
    "explained_difference": ("DifferenceReason", "explain_difference"),
    "matching": ("Match", "MatchReport", "match"),
    "model_capacity": ("Capacity", "Demand", "capacity", "list_machines", "solve_precision"),
    "plan": ("ConversionItem", "ConversionPlan", "ItemExplanation", "Piece", "format_box", "plan_conversion"),
    "recipe": ("Optimizations", "Recipe", "recipe_names"),
    "recipe_example": ("NumberChoice", "RecipeByExample", "infer_recipe"),
    "rules": ("Rules", "Settings"),
    "run": ("ConversionReport", "ProgressEvent", "convert", "run_plan"),
    "source": ("Rounding",),
    "tensor_diff": ("DescriptionComparison", "diff"),
    "verification": ("Verdict", "VerifyReport", "verify"),
}  # fmt: skip
if not TYPE_CHECKING:  # a type checker knows the names from above, and that there are no others
    __getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = [
    "CacheProblem",
    "CacheReport",
    "Capacity",
    "Comparison",
    "ConversionPlan",
    "ConversionReport",
    "Demand",
    "DescriptionComparison",
    "Difference",
    "DifferenceReason",
    "HiddenError",
    "Match",
    "MatchReport",
    "NumberChoice",
    "Optimizations",
    "ProgressEvent",
    "Recipe",
    "RecipeByExample",
    "Rules",
    "Settings",
    "TensorComparison",
    "Tolerance",
    "Verdict",
    "VerifyReport",
    "capacity",
    "check_cache",
    "convert",
    "diff",
    "explain_difference",
    "fit",
    "infer_recipe",
    "list_machines",
    "match",
    "plan_cache",
    "plan_conversion",
    "plan_retarget",
    "prepare",
    "recipe_names",
    "retarget_cache",
    "run_plan",
    "solve_precision",
    "verify",
]
