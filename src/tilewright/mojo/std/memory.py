# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.memory`: pointers, spans and address spaces."""

from ..arrays import Span
from ..pointer import AddressSpace, UnsafePointer, alloc

__all__ = ["AddressSpace", "Span", "UnsafePointer", "alloc"]
