# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.utils`: lists of indices, static tuples, variants, and what is known of number types."""

from ..builtins import Index, IndexList, StaticTuple
from ..collections import Variant
from . import utils_numerics as numerics

__all__ = ["Index", "IndexList", "StaticTuple", "Variant", "numerics"]
