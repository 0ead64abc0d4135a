# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `layout`."""

from ..pointer import AddressSpace
from .coord import ComptimeInt, Coord, Idx, RuntimeInt, coord
from .swizzle import ComposedLayout, Swizzle
from .tile_layout import Layout, RowMajorLayout, TensorLayout, col_major, row_major
from .tile_tensor import All, LayoutTensor, TileTensor, TileTensorIter, stack_allocation

__all__ = [
    "AddressSpace",
    "All",
    "ComposedLayout",
    "ComptimeInt",
    "Coord",
    "Idx",
    "Layout",
    "LayoutTensor",
    "RowMajorLayout",
    "RuntimeInt",
    "Swizzle",
    "TensorLayout",
    "TileTensor",
    "TileTensorIter",
    "col_major",
    "coord",
    "row_major",
    "stack_allocation",
]
