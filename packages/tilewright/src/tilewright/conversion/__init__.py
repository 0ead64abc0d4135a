# SPDX-License-Identifier: Apache-2.0
"""Checkpoints converted to tiled files: planned, in bounded memory, resumable and verifiable."""

from .conversion_plan import ConversionPlan, plan_conversion
from .conversion_run import ConversionReport, ProgressEvent, convert, run_plan
from .rules import Rules, Settings
from .verification import Verdict, VerifyReport, verify

__all__ = [
    "ConversionPlan",
    "ConversionReport",
    "ProgressEvent",
    "Rules",
    "Settings",
    "Verdict",
    "VerifyReport",
    "convert",
    "plan_conversion",
    "run_plan",
    "verify",
]
