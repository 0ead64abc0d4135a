# SPDX-License-Identifier: Apache-2.0
"""tilewright: where does this element live on a tiled machine, and how does it get there?

The names used every day are here; every package (`tilewright.layout`, `tilewright.memory`, ...) has more.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from . import (
        analysis,
        conversion,
        copying,
        cute,
        errors,
        files,
        formats,
        layout,
        memory,
        mojo,
        notation,
        tensor,
        testing,
        tiling,
        traffic,
        ttl,
        ttnn,
        views,
    )
    from .analysis import atoms
    from .conversion import (
        capacity,
        check_cache,
        convert,
        diff,
        explain_difference,
        fit,
        infer_recipe,
        match,
        prepare,
        verify,
    )  # fmt: skip
    from .copying import Placement, copy, pack, plan_copy, tilize, unpack, untilize
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
    from .files import inspect, open_tensors, read_tensorbin, write_tensorbin
    from .formats import cast, format_of
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
        is_bijective,
        is_contiguous,
        is_injective,
        lane,
        left_inverse,
        logical_divide,
        logical_product,
        pad,
        replicate,
        right_inverse,
        row_major,
        tile_to_shape,
        tiled_layout,
        with_logical_shape,
        zipped_divide,
    )
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
        ShardSpec,
        TensorSpec,
        Tile,
        block_sharded,
        explain,
        from_bytes,
        height_sharded,
        interleaved,
        nd_sharded,
        parse_accessor,
        to_bytes,
        width_sharded,
    )
    from .notation import explain_error, parse, write
    from .tensor import Tensor, TileTensor
    from .tiling import Pipeline, Tiler, plan_tiles, stream
    from .traffic import reshard

    audit: Any  # of companions
    simt: Any

_PACKAGES = (
    "analysis", "conversion", "copying", "cute", "errors", "files", "formats", "layout",
    "memory", "mojo", "notation", "tensor", "testing", "tiling", "traffic", "ttl", "ttnn", "views",
)  # fmt: skip

# Every name is imported on first use, so that `import tilewright` stays quick.
_LAZY_NAMES = {
    "errors": (
        "DeviceError", "FileFormatError", "FormatError", "KernelError", "LayoutError", "MemoryConfigError",
        "OutOfMemory", "TilewrightError", "TransferError",
    ),
    "layout": (
        "Axis", "Box", "ComposedLayout", "Layout", "Place", "Swizzle", "addr", "bank", "blocked_product", "coalesce",
        "col_major", "complement", "compose", "core", "device", "flatten", "functionally_equal", "is_bijective",
        "is_contiguous", "is_injective", "lane", "left_inverse", "logical_divide", "logical_product", "pad",
        "replicate", "right_inverse", "row_major", "tile_to_shape", "tiled_layout", "with_logical_shape",
        "zipped_divide",
    ),
    "analysis": ("atoms",),
    "conversion": (
        "capacity", "check_cache", "convert", "diff", "explain_difference", "fit", "infer_recipe", "match", "prepare",
        "verify",
    ),
    "copying": ("Placement", "copy", "pack", "plan_copy", "tilize", "unpack", "untilize"),
    "files": ("inspect", "open_tensors", "read_tensorbin", "write_tensorbin"),
    "formats": ("cast", "format_of"),
    "layout.linear": ("Linear",),
    "memory": (
        "Allocator", "Chip", "CoreCoord", "CoreRange", "CoreRangeSet", "Device", "MemoryConfig", "NdShardSpec",
        "ShardSpec", "TensorSpec", "Tile", "block_sharded", "explain", "from_bytes", "height_sharded",
        "interleaved", "nd_sharded", "parse_accessor", "to_bytes", "width_sharded",
    ),
    "notation": ("explain_error", "parse", "write"),
    "tensor": ("Tensor", "TileTensor"),
    "tiling": ("Pipeline", "Tiler", "plan_tiles", "stream"),
    "traffic": ("reshard",),
}  # fmt: skip
# Names of companions, which are imported on first use as well, and the extra that installs each.
_COMPANIONS = {"audit": ("tilewright_audit", "audit"), "simt": ("tilewright_mojo", "mojo")}
_PACKAGE_OF = {name: package for package, names in _LAZY_NAMES.items() for name in names}

__all__ = [
    "Allocator", "Axis", "Box", "Chip", "ComposedLayout", "CoreCoord", "CoreRange", "CoreRangeSet", "Device",
    "DeviceError", "FileFormatError", "FormatError", "KernelError", "Layout", "LayoutError", "Linear", "MemoryConfig",
    "MemoryConfigError", "NdShardSpec", "OutOfMemory", "Pipeline", "Place", "Placement", "ShardSpec", "Swizzle",
    "Tensor", "TensorSpec", "Tile", "TileTensor", "Tiler", "TilewrightError", "TransferError", "addr", "atoms", "bank",
    "block_sharded", "blocked_product", "capacity", "cast", "check_cache", "coalesce", "col_major", "complement",
    "compose", "convert", "copy", "core", "device", "diff", "explain", "explain_difference", "explain_error", "fit",
    "flatten", "format_of", "from_bytes", "functionally_equal", "height_sharded", "infer_recipe", "inspect",
    "interleaved", "is_bijective", "is_contiguous", "is_injective", "lane", "left_inverse", "logical_divide",
    "logical_product", "match", "nd_sharded", "open_tensors", "pack", "pad", "parse", "parse_accessor", "plan_copy",
    "plan_tiles", "prepare", "read_tensorbin", "replicate", "reshard", "right_inverse", "row_major", "stream",
    "tile_to_shape", "tiled_layout", "tilize", "to_bytes", "unpack", "untilize", "verify", "width_sharded",
    "with_logical_shape", "write", "write_tensorbin", "zipped_divide",
]  # fmt: skip


def _find_name(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    if name in _COMPANIONS:
        from ._lazy import companion_name

        return companion_name(f"{__name__}.{name}", *_COMPANIONS[name])
    if name not in _PACKAGE_OF:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    value = getattr(import_module(f".{_PACKAGE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # for a type checker it would make every misspelt name a name of this module
    __getattr__ = _find_name


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES, "__version__"])
