# SPDX-License-Identifier: Apache-2.0
"""Memory: chips, tensor specs, sharding, pages, banks and addresses, the allocator, and what fits."""

from .allocator import Allocation, Allocator, MemoryView
from .chip import DISPATCH_MODES, Chip, ChipLike, chip_names
from .cores import CoreCoord, CoreGrid, CoreRange, CoreRangeSet, first_cores
from .device import Device, from_bytes, to_bytes
from .explanation import AddressContent, Explanation, explain, explain_address
from .fit_report import Alternative, Fit, FitTensor, row_width_multiple
from .memory_config import (
    BufferType,
    MemoryConfig,
    NdShardSpec,
    PageLayout,
    ShardDistribution,
    ShardOrientation,
    ShardSpec,
    ShardStrategy,
    TensorMemoryLayout,
)
from .offset_explanation import OffsetExplanation
from .paging import PageMap, PageTable, Paging
from .placement_rules import Violation, placement_violations
from .shape import HEIGHTS, WIDTHS, Shape, Tile, alignment_of, padded_extents
from .sharding import (
    Sharding,
    block_sharded,
    height_sharded,
    interleaved,
    nd_sharded,
    sharded_across_dims,
    width_sharded,
)
from .spec import TensorSpec, as_spec, fit
from .spec_changes import (
    ChangeKind,
    SpecChange,
    convert_spec,
    reshape_spec,
    reshard_spec,
    retile_spec,
    slice_spec,
    transpose_spec,
)
from .where import Where

__all__ = [
    "DISPATCH_MODES",
    "HEIGHTS",
    "WIDTHS",
    "AddressContent",
    "Allocation",
    "Allocator",
    "Alternative",
    "BufferType",
    "ChangeKind",
    "Chip",
    "ChipLike",
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
    "as_spec",
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
    "placement_violations",
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
