# SPDX-License-Identifier: Apache-2.0
"""WHERE on a machine: chips, shapes with padding, memory configurations, pages, banks, and what fits."""

from .allocator import Allocation, Allocator, MemoryView
from .alternatives import Alternative
from .changes import Change, ChangeKind, converted, reshaped, resharded, retiled, sliced, transposed
from .chip import Chip, chip_names
from .config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig, NdShardSpec, ShardSpec
from .core_order import WorkSplit, corerange_to_cores, num_cores_to_corerangeset, split_work_to_cores
from .cores import CoreCoord, CoreGrid, CoreRange, CoreRangeSet
from .device import Device
from .even_shards import create_sharded_memory_config, create_sharded_memory_config_
from .fitting import Fit, FitTensor, fit, row_width_multiple
from .host_bytes import from_bytes, to_bytes
from .kinds import BufferType, ShardDistribution, ShardOrientation, ShardStrategy, TensorLayout, TensorMemoryLayout
from .legality import Violation
from .padding import alignment_of, padded_extents
from .page_table import PageTable
from .paging import Paging
from .shape import Shape
from .sharding import (
    Sharding,
    block_sharded,
    height_sharded,
    interleaved,
    nd_sharded,
    sharded_across_dims,
    width_sharded,
)
from .spec import TensorSpec
from .tile import Tile
from .where import Where

__all__ = [
    "DRAM_MEMORY_CONFIG",
    "L1_MEMORY_CONFIG",
    "Allocation",
    "Allocator",
    "Alternative",
    "BufferType",
    "Change",
    "ChangeKind",
    "Chip",
    "CoreCoord",
    "CoreGrid",
    "CoreRange",
    "CoreRangeSet",
    "Device",
    "Fit",
    "FitTensor",
    "MemoryConfig",
    "MemoryView",
    "NdShardSpec",
    "PageTable",
    "Paging",
    "Shape",
    "ShardDistribution",
    "ShardOrientation",
    "ShardSpec",
    "ShardStrategy",
    "Sharding",
    "TensorLayout",
    "TensorMemoryLayout",
    "TensorSpec",
    "Tile",
    "Violation",
    "Where",
    "WorkSplit",
    "alignment_of",
    "block_sharded",
    "chip_names",
    "converted",
    "corerange_to_cores",
    "create_sharded_memory_config",
    "create_sharded_memory_config_",
    "fit",
    "from_bytes",
    "height_sharded",
    "interleaved",
    "nd_sharded",
    "num_cores_to_corerangeset",
    "padded_extents",
    "reshaped",
    "resharded",
    "retiled",
    "row_width_multiple",
    "sharded_across_dims",
    "sliced",
    "split_work_to_cores",
    "to_bytes",
    "transposed",
    "width_sharded",
]
