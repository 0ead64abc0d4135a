# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.sys`: what a program asks about the machine."""

from ..simd import simd_width_of

__all__ = ["simd_width_of"]
