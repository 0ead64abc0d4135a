# SPDX-License-Identifier: Apache-2.0
"""Tensors: `TileTensor`, a view of storage through a layout, and `Tensor`, a spec with storage."""

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .elements import (
        LoadBrackets,
        Scalars,
        StoreBrackets,
        element_offset,
        fit_scalar,
        require_writable,
    )
    from .store import (
        Array,
        DeviceMemory,
        Storage,
        Store,
        as_array,
        flat_scalars,
        kernel_memory,
        scalar_bounds,
    )
    from .tensor import (
        DeviceStorage,
        HostStorage,
        StorageType,
        Tensor,
        convert_pages,
        pad_spec,
        padding_as_data,
    )
    from .tile_tensor import (
        TileTensor,
        element_texts,
        format_matrices,
        format_number,
        format_tensor,
        join_texts,
    )
    from .view import (
        View,
        cut_modes,
        elements_layout,
        pair_layout,
        vector_layout,
    )
    from .views import (
        Brackets,
        DistributeBrackets,
        Extents,
        LocatedDistributeBrackets,
        LocatedTileBrackets,
        LocatedView,
        ReshapeBrackets,
        SliceBrackets,
        SliceEntries,
        SplitBrackets,
        TileBrackets,
        Tiles,
        VectorizeBrackets,
        require_row_major,
        slice_leaves,
        tile,
        tile_with_offset,
        vectorize,
    )

_NAMES = {
    "elements": (
        "LoadBrackets", "Scalars", "StoreBrackets", "element_offset", "fit_scalar",
        "require_writable",
    ),
    "store": (
        "Array", "DeviceMemory", "Storage", "Store", "as_array", "flat_scalars", "kernel_memory",
        "scalar_bounds",
    ),
    "tensor": (
        "DeviceStorage", "HostStorage", "StorageType", "Tensor", "convert_pages", "pad_spec", "padding_as_data",
    ),
    "tile_tensor": (
        "TileTensor", "element_texts", "format_matrices", "format_number", "format_tensor", "join_texts",
    ),
    "view": (
        "View", "cut_modes", "elements_layout", "pair_layout", "vector_layout",
    ),
    "views": (
        "Brackets", "DistributeBrackets", "Extents", "LocatedDistributeBrackets", "LocatedTileBrackets",
        "LocatedView", "ReshapeBrackets", "SliceBrackets", "SliceEntries", "SplitBrackets", "TileBrackets", "Tiles",
        "VectorizeBrackets", "require_row_major", "slice_leaves", "tile", "tile_with_offset", "vectorize",
    ),
}  # fmt: skip
if not TYPE_CHECKING:  # a type checker knows the names from above, and that there are no others
    __getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = [
    "StorageType", "Tensor", "TileTensor", "Tiles",
]  # fmt: skip
