# SPDX-License-Identifier: Apache-2.0
"""Whole checkpoints converted to tiled files: planned, in bounded memory, resumable and verifiable."""

from .conversion import ConversionReport, Event, convert, run_plan
from .plan import ConversionPlan, plan_conversion
from .rules import Rules, Settings

__all__ = ["ConversionPlan", "ConversionReport", "Event", "Rules", "Settings", "convert", "plan_conversion", "run_plan"]
