# SPDX-License-Identifier: Apache-2.0
"""The older part of Mojo's package `layout`, from before `TileTensor`: `LayoutTensor` and its layouts."""

from typing import TYPE_CHECKING

from tilewright._lazy import lazy_names

if TYPE_CHECKING:
    from .functions import from_numpy, to_numpy
    from .int_tuple import UNKNOWN_VALUE, IntTuple, create_unknown_int_tuple, to_index_list
    from .layout import Layout, LayoutList, LTToTTLayout, MakeLayoutList, composition, print_layout
    from .layout_tensor_iter import LayoutTensorIter
    from .layout_tensor_view import LayoutTensor, NullableTileTensor, lt_to_tt, stack_allocation_like
    from .runtime_layout import RuntimeLayout
    from .runtime_tuple import RuntimeTuple

_NAMES = {
    "int_tuple": ("UNKNOWN_VALUE", "IntTuple", "create_unknown_int_tuple", "to_index_list"),
    "layout": ("LTToTTLayout", "Layout", "LayoutList", "MakeLayoutList", "composition", "print_layout"),
    "layout_tensor_iter": ("LayoutTensorIter",),
    "layout_tensor_view": ("LayoutTensor", "NullableTileTensor", "lt_to_tt", "stack_allocation_like"),
    "functions": ("from_numpy", "to_numpy"),
    "runtime_layout": ("RuntimeLayout",),
    "runtime_tuple": ("RuntimeTuple",),
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = [
    "UNKNOWN_VALUE", "IntTuple", "LTToTTLayout", "Layout", "LayoutList", "LayoutTensor", "LayoutTensorIter",
    "MakeLayoutList", "NullableTileTensor", "RuntimeLayout", "RuntimeTuple", "composition", "create_unknown_int_tuple",
    "from_numpy", "lt_to_tt", "print_layout", "stack_allocation_like", "to_index_list", "to_numpy",
]  # fmt: skip
