# SPDX-License-Identifier: Apache-2.0
"""Plans as C: one generator, for OpenCL C and CUDA C."""

from .kernel import DEFAULTS, Kernel, Tuning, Tunings
from .program import Program, check_formats, generate, knows_formats

__all__ = ["DEFAULTS", "Kernel", "Program", "Tuning", "Tunings", "check_formats", "generate", "knows_formats"]
