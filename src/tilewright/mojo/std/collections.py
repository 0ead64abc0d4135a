# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.collections`: arrays, lists, dictionaries, sets and optional values."""

from ..arrays import Array, InlineArray
from ..containers import Dict, Optional, Set
from ..lists import List

__all__ = ["Array", "Dict", "InlineArray", "List", "Optional", "Set"]
