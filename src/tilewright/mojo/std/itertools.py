# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.itertools`: Python's functions of the same names."""

from itertools import chain, count, cycle, product, repeat, takewhile

__all__ = ["chain", "count", "cycle", "product", "repeat", "takewhile"]
