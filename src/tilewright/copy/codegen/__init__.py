# SPDX-License-Identifier: Apache-2.0
"""Plans as C: one generator, for OpenCL C and CUDA C."""

from .kernel import Kernel, Tuning
from .program import Program, check_formats, generate

__all__ = ["Kernel", "Program", "Tuning", "check_formats", "generate"]
