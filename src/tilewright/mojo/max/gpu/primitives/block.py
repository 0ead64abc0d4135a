# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `max.gpu.primitives.block`."""

from ....std.gpu.primitives.block import broadcast, max, min, prefix_sum, reduce, sum

__all__ = [
    "broadcast",
    "max",
    "min",
    "prefix_sum",
    "reduce",
    "sum",
]
