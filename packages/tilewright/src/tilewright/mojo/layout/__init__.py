# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `layout`: `TileTensor` and its layouts; what came before them is in the companion."""

from typing import Any

from ..._lazy import companion_name
from ..memory import AddressSpace
from .coord import All, ComptimeInt, Coord, CoordLike, Idx, RuntimeInt, coord, coord_to_index_list
from .swizzle import ComposedLayout, Swizzle
from .tensor_storage import PointerStorage, TensorStorage
from .tile_layout import ColMajorLayout, RowMajorLayout, TensorLayout, col_major, row_major
from .tile_layout import Layout as MixedLayout
from .tile_tensor import TileTensor, TileTensorIter, flatten_leading, stack_allocation

__all__ = [
    "AddressSpace", "All", "ColMajorLayout", "ComposedLayout", "ComptimeInt", "Coord", "CoordLike", "Idx",
    "MixedLayout", "PointerStorage", "RowMajorLayout", "RuntimeInt", "Swizzle", "TensorLayout", "TensorStorage",
    "TileTensor", "TileTensorIter", "col_major", "coord", "coord_to_index_list", "flatten_leading", "row_major",
    "stack_allocation",
]  # fmt: skip

_OLDER = {
    "IntTuple", "LTToTTLayout", "Layout", "LayoutList", "LayoutTensor", "LayoutTensorIter", "MakeLayoutList",
    "NullableTileTensor", "RuntimeLayout", "RuntimeTuple", "UNKNOWN_VALUE", "composition", "create_unknown_int_tuple",
    "from_numpy", "lt_to_tt", "print_layout", "stack_allocation_like", "to_index_list", "to_numpy",
}  # fmt: skip
"""Names of the companion: `LayoutTensor`, its layouts, and NumPy's arrays."""


def __getattr__(name: str) -> Any:
    if name not in _OLDER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return companion_name(f"{__name__}.{name}", "tilewright_mojo.older", "mojo")
