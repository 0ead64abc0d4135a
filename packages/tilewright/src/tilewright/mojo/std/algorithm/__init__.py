# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.algorithm`: loops over functions."""

from . import functional
from .functional import elementwise, map, parallelize, sync_parallelize, tile, unswitch, vectorize

__all__ = ["elementwise", "functional", "map", "parallelize", "sync_parallelize", "tile", "unswitch", "vectorize"]
