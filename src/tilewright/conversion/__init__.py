# SPDX-License-Identifier: Apache-2.0
"""Whole checkpoints converted to tiled files: planned, in bounded memory, resumable and verifiable."""

from .plan import ConversionPlan, plan_conversion
from .rules import Rules, Settings
from .running import ConversionReport, Event, convert, run_plan
from .verifying import Verdict, VerifyReport, verify

__all__ = [
    "ConversionPlan",
    "ConversionReport",
    "Event",
    "Rules",
    "Settings",
    "Verdict",
    "VerifyReport",
    "convert",
    "plan_conversion",
    "run_plan",
    "verify",
]
