# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.collections`: arrays, lists and optional values."""

from ..builtins import Array, InlineArray, List, Optional

__all__ = ["Array", "InlineArray", "List", "Optional"]
