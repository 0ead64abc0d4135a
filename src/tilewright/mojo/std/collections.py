# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.collections`: arrays, lists and optional values."""

from ..arrays import Array, InlineArray
from ..builtins import Optional
from ..lists import List

__all__ = ["Array", "InlineArray", "List", "Optional"]
