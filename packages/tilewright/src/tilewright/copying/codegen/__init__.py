# SPDX-License-Identifier: Apache-2.0
"""Code generation: copy plans as programs in OpenCL C and CUDA C."""

from .kernel import DEFAULTS, WIDEST, Kernel, Tuning, Tunings
from .program import MAX_BATCH, Program, generate_program, supports_formats, validate_formats

__all__ = [
    "DEFAULTS",
    "MAX_BATCH",
    "WIDEST",
    "Kernel",
    "Program",
    "Tuning",
    "Tunings",
    "generate_program",
    "supports_formats",
    "validate_formats",
]
