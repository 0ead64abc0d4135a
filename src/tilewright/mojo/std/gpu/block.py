# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.gpu.block`, now `std.gpu.primitives.block`."""

from .primitives.block import broadcast, max, min, prefix_sum, reduce, sum

__all__ = [
    "broadcast",
    "max",
    "min",
    "prefix_sum",
    "reduce",
    "sum",
]
