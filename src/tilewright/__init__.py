# SPDX-License-Identifier: Apache-2.0
"""tilewright: where does this element live on a tiled machine, and how does it get there?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import layout
from .errors import (
    CoordinateError,
    FormatError,
    LayoutError,
    MemoryConfigError,
    OutOfMemory,
    TilewrightError,
    TransferError,
)
from .layout import *  # noqa: F403  (the whole vocabulary of layouts is public here too)

if TYPE_CHECKING:
    from .copy import Placement, Plan, plan_copy, relayout, tiled_layout, tilize, untilize
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
        Shape,
        ShardDistribution,
        ShardOrientation,
        ShardSpec,
        ShardStrategy,
        TensorLayout,
        TensorMemoryLayout,
        TensorSpec,
        Tile,
        block_sharded,
        fit,
        from_bytes,
        height_sharded,
        interleaved,
        nd_sharded,
        sharded_across_dims,
        to_bytes,
        width_sharded,
    )
    from .tensor import AddressSpace, LayoutTensor, TileTensor
    from .tiling import Pipeline, TilePlan, Tiler, Trace, plan_tiles, stream, suggest_tile

__version__ = "0.0.1"

# Rooms that need NumPy are opened on first use, so that `import tilewright` stays quick.
_LAZY = {
    **dict.fromkeys(("Placement", "Plan", "plan_copy", "relayout", "tiled_layout", "tilize", "untilize"), "copy"),
    **dict.fromkeys(("BlockFormat", "ScalarFormat", "cast", "format_of", "quantization_error"), "formats"),
    **dict.fromkeys(("BufferType", "Chip", "CoreCoord", "CoreGrid", "CoreRange", "CoreRangeSet"), "memory"),
    **dict.fromkeys(("MemoryConfig", "NdShardSpec", "Shape", "ShardDistribution", "ShardOrientation"), "memory"),
    **dict.fromkeys(("ShardSpec", "ShardStrategy", "TensorLayout", "TensorMemoryLayout", "TensorSpec"), "memory"),
    **dict.fromkeys(("Tile", "block_sharded", "height_sharded", "interleaved", "nd_sharded"), "memory"),
    **dict.fromkeys(("Allocator", "Device", "fit", "from_bytes", "sharded_across_dims", "to_bytes"), "memory"),
    "width_sharded": "memory",
    **dict.fromkeys(("AddressSpace", "LayoutTensor", "TileTensor"), "tensor"),
    **dict.fromkeys(("Pipeline", "TilePlan", "Tiler", "Trace"), "tiling"),
    **dict.fromkeys(("plan_tiles", "stream", "suggest_tile"), "tiling"),
}

__all__ = [
    "AddressSpace",
    "Allocator",
    "BlockFormat",
    "BufferType",
    "Chip",
    "CoordinateError",
    "CoreCoord",
    "CoreGrid",
    "CoreRange",
    "CoreRangeSet",
    "Device",
    "FormatError",
    "LayoutError",
    "LayoutTensor",
    "MemoryConfig",
    "MemoryConfigError",
    "NdShardSpec",
    "OutOfMemory",
    "Placement",
    "Plan",
    "ScalarFormat",
    "Shape",
    "ShardDistribution",
    "ShardOrientation",
    "ShardSpec",
    "ShardStrategy",
    "TensorLayout",
    "TensorMemoryLayout",
    "TensorSpec",
    "Tile",
    "TileTensor",
    "TilewrightError",
    "TransferError",
    "block_sharded",
    "cast",
    "fit",
    "format_of",
    "from_bytes",
    "height_sharded",
    "interleaved",
    "nd_sharded",
    "plan_copy",
    "quantization_error",
    "relayout",
    "sharded_across_dims",
    "tiled_layout",
    "tilize",
    "to_bytes",
    "untilize",
    "width_sharded",
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
