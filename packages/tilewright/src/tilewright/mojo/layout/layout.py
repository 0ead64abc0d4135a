# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F403, PLE0604  (the module is these two)
"""Mojo's module `layout.layout`: the older layout of nested integers, and its algebra."""

from . import int_layout, layout_algebra
from .int_layout import *
from .layout_algebra import *

__all__ = [*int_layout.__all__, *layout_algebra.__all__]
