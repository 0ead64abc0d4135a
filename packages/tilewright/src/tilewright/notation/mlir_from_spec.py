# SPDX-License-Identifier: Apache-2.0
"""`mlir_layout_of`: the #ttnn.ttnn_layout of a tensor spec, as the compiler would write it; and its text."""

from __future__ import annotations

from typing import Any

from .._integers import ceil_div
from ..errors import LayoutError, MemoryConfigError
from ..memory import ShardOrientation, ShardSpec, ShardStrategy, TensorMemoryLayout, TensorSpec
from .affine_map import AffineMap
from .mlir_layouts import MlirLayout
from .mlir_rule import expected_memref
from .mlir_types import Memref, TensorType, mlir_dtype

_STRATEGIES = {strategy.memory_layout: strategy for strategy in ShardStrategy}


def mlir_layout_of(spec: TensorSpec) -> MlirLayout:
    """Return the layout that tt-mlir has for a tensor with this `spec`, or raise if it has none.

    >>> from tilewright import height_sharded
    >>> spec = TensorSpec((2, 64, 32), "bfloat16", "tile", memory=height_sharded((4, 1)))
    >>> print(mlir_layout_of(spec))
    #ttnn.ttnn_layout<(d0, d1, d2) -> (d0 * 64 + d1, d2), <4x1>, memref<1x1x!ttcore.tile<32x32, bf16>, \
#ttnn.buffer_type<l1>>, <height_sharded>, core_ranges = #ttnn.core_range_set<[#ttnn.core_range<(0,0), (3,0)>]>>
    """
    shape, tile = spec.shape.logical, spec.tile.shape if spec.is_tiled else None
    dtype, space = mlir_dtype(spec.dtype, in_tile=spec.is_tiled), spec.memory.buffer_type.name.lower()
    memory_layout = spec.memory.memory_layout
    shards = spec.memory.shard_spec
    if memory_layout is TensorMemoryLayout.INTERLEAVED:
        draft = MlirLayout(_fold(spec), _interleaved_grid(spec), Memref((), tile, dtype, space), "interleaved")
        memref = Memref(expected_memref(draft, shape), tile, dtype, space)
        return MlirLayout(draft.map, draft.grid, memref, "interleaved")
    if shards is None or memory_layout not in _STRATEGIES or shards.orientation is not ShardOrientation.ROW_MAJOR:
        raise MemoryConfigError(
            f"tt-mlir has no ttnn_layout for {spec.memory!r}: it needs row-major shards of a matrix"
        )
    counts = _STRATEGIES[memory_layout].shard_counts(shards.grid, shards.orientation)
    memref = Memref(_in_units(shards, tile or (1, 1)), tile, dtype, space)
    return MlirLayout(_fold(spec), counts, memref, memory_layout.name.lower(), shards.grid)


def write_mlir_layout(spec: Any) -> str:
    """Return the #ttnn.ttnn_layout of a tensor `spec`, or of an `MlirLayout`; raise if the text would not say it all.

    >>> write_mlir_layout(TensorSpec((32, 64), "float32"))
    '#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<32x64xf32, #ttnn.buffer_type<dram>>, <interleaved>>'
    """
    if isinstance(spec, MlirLayout):
        return str(spec)
    if not isinstance(spec, TensorSpec):
        raise LayoutError(
            f"tt-mlir's layouts are those of tensors in the memory of a chip, got {type(spec).__name__} {spec!s:.60};"
            " make a TensorSpec of it, with a shape, an element type and a memory config"
        )
    layout = mlir_layout_of(spec)
    for problem in layout.problems():
        raise MemoryConfigError(f"tt-mlir has no ttnn_layout for {spec.memory!r}: {problem}")
    again = layout.to_spec(mlir_tensor_type(spec), spec.chip)
    same_memory = again.memory.shard_spec == spec.memory.shard_spec  # either form of the shards
    if not same_memory or again.with_memory(spec.memory) != spec:
        raise LayoutError(f"tt-mlir's layout of {spec!r} does not say all of it: it would be read as {again!r}")
    return str(layout)


def mlir_tensor_type(spec: TensorSpec) -> TensorType:
    """Return the tensor type of a tensor with this `spec`, with its layout.

    >>> mlir_tensor_type(TensorSpec((32, 64), "uint16")).dtype
    'ui16'
    """
    return TensorType(spec.shape.logical, None, mlir_dtype(spec.dtype, in_tile=False), str(mlir_layout_of(spec)))


def _fold(spec: TensorSpec) -> AffineMap:
    """Return the map that folds all dimensions but the last to rows, each matrix padded to tiles."""
    rank = spec.shape.rank
    padded = spec.padded_shape[-rank:] if rank else ()
    strides, rows = [0] * rank, 1
    for d in range(rank - 2, -1, -1):
        strides[d] = rows
        rows *= padded[d]
    columns = tuple([int(d == rank - 1) for d in range(rank)])
    return AffineMap(rank, (tuple(strides), columns), (0, 0))


def _interleaved_grid(spec: TensorSpec) -> tuple[int, int]:
    """Return the grid of interleaved memory: all cores in L1, which must be known, and 1 x 1 elsewhere."""
    if not spec.memory.buffer_type.is_l1:
        return 1, 1
    cores = spec.known_chip.compute_grid
    return cores.y, cores.x


def _in_units(shards: ShardSpec, unit: tuple[int, int]) -> tuple[int, int]:
    height, width = shards.shape
    return ceil_div(height, unit[0]), ceil_div(width, unit[1])
