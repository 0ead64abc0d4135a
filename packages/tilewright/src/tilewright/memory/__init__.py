# SPDX-License-Identifier: Apache-2.0
"""Memory: chips, tensor specs, sharding, pages, banks and addresses, the allocator, and what fits."""

from .allocator import Allocation, Allocator, MemoryView
from .chip import Chip, chip_names
from .config import (
    BufferType,
    MemoryConfig,
    NdShardSpec,
    PageLayout,
    ShardDistribution,
    Sharding,
    ShardOrientation,
    ShardSpec,
    ShardStrategy,
    TensorMemoryLayout,
    block_sharded,
    height_sharded,
    interleaved,
    nd_sharded,
    sharded_across_dims,
    width_sharded,
)
from .cores import CoreCoord, CoreGrid, CoreRange, CoreRangeSet, first_cores
from .device import Device, from_bytes, to_bytes
from .explanation import AddressContent, Explanation, OffsetExplanation, explain, explain_address
from .fit_report import Alternative, Fit, FitTensor, row_width_multiple
from .paging import PageMap, PageTable, Paging
from .placement_rules import Violation
from .shape import Shape, Tile, alignment_of, padded_extents
from .spec import (
    ChangeKind,
    SpecChange,
    TensorSpec,
    convert_spec,
    fit,
    reshape_spec,
    reshard_spec,
    retile_spec,
    slice_spec,
    transpose_spec,
)
from .where import Where

__all__ = [
    "AddressContent",
    "Allocation",
    "Allocator",
    "Alternative",
    "BufferType",
    "ChangeKind",
    "Chip",
    "CoreCoord",
    "CoreGrid",
    "CoreRange",
    "CoreRangeSet",
    "Device",
    "Explanation",
    "Fit",
    "FitTensor",
    "MemoryConfig",
    "MemoryView",
    "NdShardSpec",
    "OffsetExplanation",
    "PageLayout",
    "PageMap",
    "PageTable",
    "Paging",
    "Shape",
    "ShardDistribution",
    "ShardOrientation",
    "ShardSpec",
    "ShardStrategy",
    "Sharding",
    "SpecChange",
    "TensorMemoryLayout",
    "TensorSpec",
    "Tile",
    "Violation",
    "Where",
    "alignment_of",
    "block_sharded",
    "chip_names",
    "convert_spec",
    "explain",
    "explain_address",
    "first_cores",
    "fit",
    "from_bytes",
    "height_sharded",
    "interleaved",
    "nd_sharded",
    "padded_extents",
    "reshape_spec",
    "reshard_spec",
    "retile_spec",
    "row_width_multiple",
    "sharded_across_dims",
    "slice_spec",
    "to_bytes",
    "transpose_spec",
    "width_sharded",
]
