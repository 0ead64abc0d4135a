# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.collections`: arrays, lists, deques, dictionaries, counters, sets and optional values."""

from ..arrays import Array, InlineArray
from ..containers import Dict, Optional, Set
from ..counters import Counter
from ..deques import Deque
from ..lists import List

__all__ = ["Array", "Counter", "Deque", "Dict", "InlineArray", "List", "Optional", "Set"]
