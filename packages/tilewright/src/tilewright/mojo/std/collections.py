# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.collections`: arrays, lists, deques, dictionaries, counters, sets and optional values."""

from ..collections import Counter, Deque, Dict, List, Optional, Set
from ..memory import Array, InlineArray

__all__ = ["Array", "Counter", "Deque", "Dict", "InlineArray", "List", "Optional", "Set"]
