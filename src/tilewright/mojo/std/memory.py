# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `std.memory`: pointers, spans and address spaces."""

from ..builtins import Span
from ..layout.tensor_memory import AddressSpace, UnsafePointer

__all__ = ["AddressSpace", "Span", "UnsafePointer"]
