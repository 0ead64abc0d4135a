# SPDX-License-Identifier: Apache-2.0
"""tilewright: where does this element live on a tiled machine, and how does it get there?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import layout
from .errors import (
    CoordinateError,
    DeviceError,
    FileFormatError,
    FormatError,
    LayoutError,
    MemoryConfigError,
    OutOfMemory,
    TilewrightError,
    TransferError,
)
from .layout import *  # noqa: F403  (the whole vocabulary of layouts is public here too)
from .version import __version__ as __version__

if TYPE_CHECKING:
    from .compare import Comparison, diff
    from .conversion import ConversionPlan, ConversionReport, Rules, VerifyReport, convert, plan_conversion, verify
    from .copying import Placement, Plan, copy, pack, plan_copy, relayout, tiled_layout, tilize, unpack, untilize
    from .files import (
        Inspection,
        StoredTensor,
        Tensorbin,
        TensorFile,
        inspect,
        open_tensors,
        read_tensorbin,
        write_tensorbin,
    )
    from .formats import BlockFormat, ScalarFormat, cast, format_of, quantization_error
    from .memory import (
        Allocator,
        BufferType,
        Chip,
        CoreCoord,
        CoreGrid,
        CoreRange,
        CoreRangeSet,
        Device,
        MemoryConfig,
        NdShardSpec,
        PageLayout,
        Shape,
        ShardDistribution,
        ShardOrientation,
        ShardSpec,
        ShardStrategy,
        TensorMemoryLayout,
        TensorSpec,
        Tile,
        block_sharded,
        explain,
        explain_address,
        fit,
        from_bytes,
        height_sharded,
        interleaved,
        nd_sharded,
        sharded_across_dims,
        to_bytes,
        width_sharded,
    )
    from .tensor import StorageType, Tensor, TileTensor
    from .tiling import Pipeline, TilePlan, Tiler, Trace, plan_tiles, stream, suggest_tile

# Rooms that need NumPy are opened on first use, so that `import tilewright` stays quick.
_LAZY = {
    **dict.fromkeys(
        ("Placement", "Plan", "copy", "pack", "plan_copy", "relayout", "tiled_layout", "tilize"), "copying"
    ),
    **dict.fromkeys(("unpack", "untilize"), "copying"),
    **dict.fromkeys(("BlockFormat", "ScalarFormat", "cast", "format_of", "quantization_error"), "formats"),
    **dict.fromkeys(
        ("Allocator", "BufferType", "Chip", "CoreCoord", "CoreGrid", "CoreRange", "CoreRangeSet"), "memory"
    ),
    **dict.fromkeys(("Device", "MemoryConfig", "NdShardSpec", "Shape", "ShardDistribution"), "memory"),
    **dict.fromkeys(("ShardOrientation", "ShardSpec", "ShardStrategy", "PageLayout"), "memory"),
    **dict.fromkeys(("TensorMemoryLayout", "TensorSpec", "Tile", "block_sharded", "fit", "from_bytes"), "memory"),
    **dict.fromkeys(("height_sharded", "interleaved", "nd_sharded", "sharded_across_dims"), "memory"),
    **dict.fromkeys(("explain", "explain_address", "to_bytes", "width_sharded"), "memory"),
    **dict.fromkeys(("StorageType", "Tensor", "TileTensor"), "tensor"),
    **dict.fromkeys(("Pipeline", "TilePlan", "Tiler", "Trace", "plan_tiles", "stream", "suggest_tile"), "tiling"),
    **dict.fromkeys(("StoredTensor", "TensorFile", "Tensorbin", "open_tensors"), "files"),
    **dict.fromkeys(("Inspection", "inspect", "read_tensorbin", "write_tensorbin"), "files"),
    **dict.fromkeys(("Comparison", "diff"), "compare"),
    **dict.fromkeys(("ConversionPlan", "ConversionReport", "Rules", "VerifyReport"), "conversion"),
    **dict.fromkeys(("convert", "plan_conversion", "verify"), "conversion"),
}

__all__ = [
    "Allocator",
    "BlockFormat",
    "BufferType",
    "Chip",
    "Comparison",
    "ConversionPlan",
    "ConversionReport",
    "CoordinateError",
    "CoreCoord",
    "CoreGrid",
    "CoreRange",
    "CoreRangeSet",
    "Device",
    "DeviceError",
    "FileFormatError",
    "FormatError",
    "Inspection",
    "LayoutError",
    "MemoryConfig",
    "MemoryConfigError",
    "NdShardSpec",
    "OutOfMemory",
    "PageLayout",
    "Pipeline",
    "Placement",
    "Plan",
    "Rules",
    "ScalarFormat",
    "Shape",
    "ShardDistribution",
    "ShardOrientation",
    "ShardSpec",
    "ShardStrategy",
    "StorageType",
    "StoredTensor",
    "Tensor",
    "TensorFile",
    "TensorMemoryLayout",
    "TensorSpec",
    "Tensorbin",
    "Tile",
    "TilePlan",
    "TileTensor",
    "Tiler",
    "TilewrightError",
    "Trace",
    "TransferError",
    "VerifyReport",
    "block_sharded",
    "cast",
    "convert",
    "copy",
    "diff",
    "explain",
    "explain_address",
    "fit",
    "format_of",
    "from_bytes",
    "height_sharded",
    "inspect",
    "interleaved",
    "nd_sharded",
    "open_tensors",
    "pack",
    "plan_conversion",
    "plan_copy",
    "plan_tiles",
    "quantization_error",
    "read_tensorbin",
    "relayout",
    "sharded_across_dims",
    "stream",
    "suggest_tile",
    "tiled_layout",
    "tilize",
    "to_bytes",
    "unpack",
    "untilize",
    "verify",
    "width_sharded",
    "write_tensorbin",
]
__all__ += layout.__all__


def __getattr__(name: str) -> Any:
    room = _LAZY.get(name)
    if room is None:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    value = getattr(import_module(f".{room}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
