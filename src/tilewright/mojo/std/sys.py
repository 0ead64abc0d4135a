# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.sys`: what a program asks about the machine."""

from ..type_sizes import align_of, simd_width_of, size_of

__all__ = ["align_of", "simd_width_of", "size_of"]
