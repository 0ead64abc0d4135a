# SPDX-License-Identifier: Apache-2.0
"""WHERE on a machine: chips, shapes with padding, memory configurations, pages, banks, and what fits."""

from .chip import Chip, chip_names
from .config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, MemoryConfig, NdShardSpec, ShardSpec
from .core_order import WorkSplit, corerange_to_cores, num_cores_to_corerangeset, split_work_to_cores
from .cores import CoreCoord, CoreGrid, CoreRange, CoreRangeSet
from .kinds import BufferType, ShardDistribution, ShardOrientation, ShardStrategy, TensorLayout, TensorMemoryLayout
from .legality import Violation
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
    "BufferType",
    "Chip",
    "CoreCoord",
    "CoreGrid",
    "CoreRange",
    "CoreRangeSet",
    "MemoryConfig",
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
    "block_sharded",
    "chip_names",
    "corerange_to_cores",
    "height_sharded",
    "interleaved",
    "nd_sharded",
    "num_cores_to_corerangeset",
    "sharded_across_dims",
    "split_work_to_cores",
    "width_sharded",
]
