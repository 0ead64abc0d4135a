# SPDX-License-Identifier: Apache-2.0
"""Tensors: `TileTensor`, a view of storage through a layout, and `Tensor`, a spec with storage."""

from .elements import (
    LoadBrackets,
    Scalars,
    StoreBrackets,
    current_watcher,
    element_place,
    fit_scalar,
    require_writable,
    watch_read,
    watch_write,
    watched_by,
)
from .store import (
    Array,
    DeviceMemory,
    DeviceStorage,
    HostStorage,
    Storage,
    StorageType,
    Store,
    as_array,
    convert_pages,
    flat_scalars,
    pad_spec,
    padding_as_data,
    reach_device_memory,
    scalar_bounds,
)
from .tensor import Tensor
from .tile_tensor import TileTensor, element_texts, format_matrices, format_number, format_tensor, join_texts
from .view import View, cut_modes, elements_layout, pair_layout, vector_layout
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

__all__ = ["StorageType", "Tensor", "TileTensor", "Tiles"]
