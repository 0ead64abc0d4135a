# SPDX-License-Identifier: Apache-2.0
"""Code generation: copy plans as programs in OpenCL C and CUDA C."""

from .c_code import (
    Digit,
    c_dialect,
    conditional,
    digit_expressions,
    indent,
    needs_double,
    raw_type,
    read_header,
    reader_functions,
    writer_functions,
)
from .kernel import DEFAULTS, Kernel, Tuning, vector_type
from .program import formats_without_code, generate_program, shared_arrays
