# SPDX-License-Identifier: Apache-2.0
"""tilewright: where does this element live on a tiled machine, and how does it get there?

The names used every day are here; every package (`tilewright.layout`, `tilewright.memory`, ...) has more.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import (
    DeviceError,
    FileFormatError,
    FormatError,
    KernelError,
    LayoutError,
    MemoryConfigError,
    OutOfMemory,
    TilewrightError,
    TransferError,
)
from .layout import (
    Axis,
    Box,
    ComposedLayout,
    Layout,
    Place,
    Swizzle,
    addr,
    bank,
    blocked_product,
    coalesce,
    col_major,
    complement,
    compose,
    core,
    device,
    flatten,
    functionally_equal,
    group,
    is_bijective,
    is_contiguous,
    is_injective,
    lane,
    left_inverse,
    logical_divide,
    logical_product,
    pad,
    raked_product,
    replicate,
    right_inverse,
    row_major,
    tile_to_shape,
    with_logical_shape,
    zipped_divide,
)
from .version import __version__

if TYPE_CHECKING:
    from .analysis import atoms
    from .auditing import audit
    from .compare import diff
    from .conversion import convert, plan_conversion, verify
    from .copying import Placement, Plan, copy, pack, plan_copy, relayout, tiled_layout, tilize, unpack, untilize
    from .files import inspect, open_tensors, read_tensorbin, write_tensorbin
    from .formats import BlockFormat, ScalarFormat, cast, format_of, quantization_error
    from .layout.linear import Linear
    from .memory import (
        Allocator,
        Chip,
        CoreCoord,
        CoreRange,
        CoreRangeSet,
        Device,
        MemoryConfig,
        NdShardSpec,
        Shape,
        ShardSpec,
        TensorSpec,
        Tile,
        block_sharded,
        explain,
        from_bytes,
        height_sharded,
        interleaved,
        nd_sharded,
        to_bytes,
        width_sharded,
    )
    from .notation import parse, write
    from .tensor import Tensor, TileTensor
    from .tiling import Pipeline, TilePlan, Tiler, plan_tiles, rechunk, reduce_tiles, stream, transpose
    from .traffic import ReshardPlan, best_layout, reshard
    from .weights import check_cache, fit, prepare

_PACKAGES = (
    "analysis", "auditing", "compare", "conversion", "copying", "cute", "files", "formats", "memory", "mojo",
    "notation", "simt", "tensor", "testing", "tiling", "traffic", "ttl", "ttnn", "views", "weights",
)  # fmt: skip

# Packages that import NumPy are imported on first use, so that `import tilewright` stays quick.
_LAZY_NAMES = {
    "analysis": (
        "atoms",
    ),
    "auditing": (
        "audit",
    ),
    "compare": (
        "diff",
    ),
    "conversion": (
        "convert", "plan_conversion", "verify",
    ),
    "copying": (
        "Placement", "Plan", "copy", "pack", "plan_copy", "relayout", "tiled_layout", "tilize", "unpack", "untilize",
    ),
    "files": (
        "inspect", "open_tensors", "read_tensorbin", "write_tensorbin",
    ),
    "formats": (
        "BlockFormat", "ScalarFormat", "cast", "format_of", "quantization_error",
    ),
    "layout.linear": (
        "Linear",
    ),
    "memory": (
        "Allocator", "Chip", "CoreCoord", "CoreRange", "CoreRangeSet", "Device", "MemoryConfig", "NdShardSpec",
        "Shape", "ShardSpec", "TensorSpec", "Tile", "block_sharded", "explain", "from_bytes", "height_sharded",
        "interleaved", "nd_sharded", "to_bytes", "width_sharded",
    ),
    "notation": (
        "parse", "write",
    ),
    "tensor": (
        "Tensor", "TileTensor",
    ),
    "tiling": (
        "Pipeline", "TilePlan", "Tiler", "plan_tiles", "rechunk", "reduce_tiles", "stream", "transpose",
    ),
    "traffic": (
        "ReshardPlan", "best_layout", "reshard",
    ),
    "weights": (
        "check_cache", "fit", "prepare",
    ),
}  # fmt: skip
_PACKAGE_OF = {name: package for package, names in _LAZY_NAMES.items() for name in names}

__all__ = [
    "Allocator", "Axis", "BlockFormat", "Box", "Chip", "ComposedLayout", "CoreCoord", "CoreRange", "CoreRangeSet",
    "Device", "DeviceError", "FileFormatError", "FormatError", "KernelError", "Layout", "LayoutError", "Linear",
    "MemoryConfig", "MemoryConfigError", "NdShardSpec", "OutOfMemory", "Pipeline", "Place", "Placement", "Plan",
    "ReshardPlan", "ScalarFormat", "Shape", "ShardSpec", "Swizzle", "Tensor", "TensorSpec", "Tile", "TilePlan",
    "TileTensor", "Tiler", "TilewrightError", "TransferError", "addr", "atoms", "audit", "bank", "best_layout",
    "block_sharded", "blocked_product", "cast", "check_cache", "coalesce", "col_major", "complement", "compose",
    "convert", "copy", "core", "device", "diff", "explain", "fit", "flatten", "format_of", "from_bytes",
    "functionally_equal", "group", "height_sharded", "inspect", "interleaved", "is_bijective", "is_contiguous",
    "is_injective", "lane", "left_inverse", "logical_divide", "logical_product", "nd_sharded", "open_tensors", "pack",
    "pad", "parse", "plan_conversion", "plan_copy", "plan_tiles", "prepare", "quantization_error", "raked_product",
    "read_tensorbin", "rechunk", "reduce_tiles", "relayout", "replicate", "reshard", "right_inverse", "row_major",
    "stream", "tile_to_shape", "tiled_layout", "tilize", "to_bytes", "transpose", "unpack", "untilize", "verify",
    "width_sharded", "with_logical_shape", "write", "write_tensorbin", "zipped_divide",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    if name not in _PACKAGE_OF:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    value = getattr(import_module(f".{_PACKAGE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES, "__version__"])
