# SPDX-License-Identifier: Apache-2.0
"""Mojo's package `layout`; what does not belong to `TileTensor` is loaded on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..memory import AddressSpace
from .coord import All, ComptimeInt, Coord, CoordLike, Idx, RuntimeInt, coord, coord_to_index_list
from .swizzle import ComposedLayout, Swizzle
from .tensor_storage import PointerStorage, TensorStorage
from .tile_layout import ColMajorLayout, RowMajorLayout, TensorLayout, col_major, row_major
from .tile_layout import Layout as MixedLayout
from .tile_tensor import (
    NullableTileTensor,
    TileTensor,
    TileTensorIter,
    flatten_leading,
    lt_to_tt,
    stack_allocation,
)

if TYPE_CHECKING:
    from .int_tuple import UNKNOWN_VALUE, IntTuple, create_unknown_int_tuple, to_index_list
    from .layout import Layout, LayoutList, LTToTTLayout, MakeLayoutList, composition, print_layout
    from .layout_tensor_iter import LayoutTensorIter
    from .layout_tensor_view import LayoutTensor, stack_allocation_like
    from .numpy import from_numpy, to_numpy
    from .runtime_layout import RuntimeLayout
    from .runtime_tuple import RuntimeTuple

__all__ = [
    "UNKNOWN_VALUE",
    "AddressSpace",
    "All",
    "ColMajorLayout",
    "ComposedLayout",
    "ComptimeInt",
    "Coord",
    "CoordLike",
    "Idx",
    "IntTuple",
    "LTToTTLayout",
    "Layout",
    "LayoutList",
    "LayoutTensor",
    "LayoutTensorIter",
    "MakeLayoutList",
    "MixedLayout",
    "NullableTileTensor",
    "PointerStorage",
    "RowMajorLayout",
    "RuntimeInt",
    "RuntimeLayout",
    "RuntimeTuple",
    "Swizzle",
    "TensorLayout",
    "TensorStorage",
    "TileTensor",
    "TileTensorIter",
    "col_major",
    "composition",
    "coord",
    "coord_to_index_list",
    "create_unknown_int_tuple",
    "flatten_leading",
    "from_numpy",
    "lt_to_tt",
    "print_layout",
    "row_major",
    "stack_allocation",
    "stack_allocation_like",
    "to_index_list",
    "to_numpy",
]

_OLDER = {
    "int_tuple": "UNKNOWN_VALUE IntTuple create_unknown_int_tuple to_index_list",
    "layout": "LTToTTLayout Layout LayoutList MakeLayoutList composition print_layout",
    "layout_tensor_iter": "LayoutTensorIter",
    "layout_tensor_view": "LayoutTensor stack_allocation_like",
    "numpy": "from_numpy to_numpy",
    "runtime_layout": "RuntimeLayout",
    "runtime_tuple": "RuntimeTuple",
}


def __getattr__(name: str) -> Any:
    """Return a name of `LayoutTensor` and its layouts, whose modules are loaded on first use."""
    module = next((module for module, names in _OLDER.items() if name in names.split()), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{module}", __name__), name)
