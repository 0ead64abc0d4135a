# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.utils`: lists of indices."""

from ..index_list import Index, IndexList, StaticTuple

__all__ = ["Index", "IndexList", "StaticTuple"]
