# SPDX-License-Identifier: Apache-2.0
"""Memory: chips, tensor specs, sharding, pages, banks and addresses, the allocator, and what fits."""

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .accessor import AccessorArguments, parse_accessor
    from .allocator import (
        Allocation,
        Allocator,
        Alternative,
        CircularBuffers,
        Fit,
        FitRequest,
        FitTensor,
        MemoryView,
        check_fit,
        row_width_multiple,
    )
    from .chip import DISPATCH_MODES, Chip, ChipLike, chip_names
    from .config import (
        ROW_BYTES,
        AllocationMode,
        BufferType,
        HelpfulEnum,
        MemoryConfig,
        MemoryLike,
        NamedEnum,
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
    from .cores import CoreCoord, CoreGrid, CoreLike, CoreRange, CoreRangeSet, first_cores, grid_extents, parse_grid
    from .device import Device, from_bytes, host_placement, to_bytes
    from .explanation import (
        AddressContent,
        Explanation,
        OffsetExplanation,
        TileExplanation,
        explain,
        explain_address,
        format_steps,
        scale_name,
    )
    from .mesh import Coordinate, DeviceLike, Mesh, Topology, format_devices
    from .paging import Integers, PageMap, PageTable, Paging
    from .placement_rules import Violation, placement_violations, validate_placement
    from .shape import HEIGHTS, WIDTHS, Shape, Tile, alignment_of, padded_extents
    from .spec import (
        ChangeKind,
        SpecChange,
        TensorSpec,
        as_spec,
        convert_spec,
        device_address,
        fit,
        reshape_spec,
        reshard_spec,
        retile_spec,
        slice_spec,
        transpose_spec,
    )
    from .where import Where, validate_coordinate

_NAMES = {
    "accessor": ("AccessorArguments", "parse_accessor"),
    "allocator": (
        "Allocation", "Allocator", "Alternative", "CircularBuffers", "Fit", "FitRequest", "FitTensor", "MemoryView",
        "check_fit", "row_width_multiple",
    ),
    "chip": ("DISPATCH_MODES", "Chip", "ChipLike", "chip_names"),
    "config": (
        "ROW_BYTES", "AllocationMode", "BufferType", "HelpfulEnum", "MemoryConfig", "MemoryLike", "NamedEnum",
        "NdShardSpec", "PageLayout", "ShardDistribution", "Sharding", "ShardOrientation", "ShardSpec", "ShardStrategy",
        "TensorMemoryLayout", "block_sharded", "height_sharded", "interleaved", "nd_sharded", "sharded_across_dims",
        "width_sharded",
    ),
    "cores": (
        "CoreCoord", "CoreGrid", "CoreLike", "CoreRange", "CoreRangeSet", "first_cores", "grid_extents", "parse_grid",
    ),
    "device": ("Device", "from_bytes", "host_placement", "to_bytes"),
    "explanation": (
        "AddressContent", "Explanation", "OffsetExplanation", "TileExplanation", "explain", "explain_address",
        "format_steps", "scale_name",
    ),
    "mesh": ("Coordinate", "DeviceLike", "Mesh", "Topology", "format_devices"),
    "paging": ("Integers", "PageMap", "PageTable", "Paging"),
    "placement_rules": ("Violation", "placement_violations", "validate_placement"),
    "shape": ("HEIGHTS", "WIDTHS", "Shape", "Tile", "alignment_of", "padded_extents"),
    "spec": (
        "ChangeKind", "SpecChange", "TensorSpec", "as_spec", "convert_spec", "device_address", "fit", "reshape_spec",
        "reshard_spec", "retile_spec", "slice_spec", "transpose_spec",
    ),
    "where": ("Where", "validate_coordinate"),
}  # fmt: skip
if not TYPE_CHECKING:  # a type checker knows the names from above, and that there are no others
    __getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = [
    "AccessorArguments",
    "AddressContent",
    "Allocation",
    "AllocationMode",
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
    "parse_accessor",
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
