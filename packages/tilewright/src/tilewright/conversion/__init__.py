# SPDX-License-Identifier: Apache-2.0
"""Checkpoints at work: converted, prepared as a weight cache, verified, checked, fitted and compared."""

from .cache_check import CacheProblem, CacheReport, check_cache
from .cache_folder import (
    DeviceTensor,
    common_mesh,
    fit,
    fit_device,
    fit_plan,
    mark_weights,
    plan_cache,
    plan_retarget,
    prepare,
    retarget_cache,
)
from .comparison import Comparison, Difference, HiddenError, TensorComparison, Tolerance
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
