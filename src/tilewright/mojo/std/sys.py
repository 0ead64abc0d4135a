# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.sys`: what a program asks about the machine, and what it was started with."""

from ..program_arguments import argv, get_defined_bool, get_defined_dtype, get_defined_int, get_defined_string, is_defined
from ..type_sizes import align_of, simd_width_of, size_of

__all__ = [
    "align_of",
    "argv",
    "get_defined_bool",
    "get_defined_dtype",
    "get_defined_int",
    "get_defined_string",
    "is_defined",
    "simd_width_of",
    "size_of",
]
