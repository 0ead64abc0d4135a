# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.utils`: lists of indices."""

from ..builtins import IndexList

__all__ = ["IndexList"]
