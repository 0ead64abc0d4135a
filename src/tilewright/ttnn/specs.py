# SPDX-License-Identifier: Apache-2.0
"""Tensor specs under ttnn's names."""

from __future__ import annotations

from collections.abc import Iterable
from math import lcm
from typing import Any

from .. import memory
from ..layout.tuples import round_up
from ..memory import BufferType, PageLayout, ShardDistribution, ShardOrientation, TensorMemoryLayout
from ..memory.sharding import ROW_BYTES, Sharding
from .arguments import bind_by_type
from .data_types import DataType, DataTypeLike, ShardShapeAlignment
from .memory import MemoryConfig, NdShardSpec, ShardSpec
from .shapes import TensorProperties, Tile
from .wrapper import unwrap

_PLACEMENT = {
    "buffer_type": BufferType,
    "memory_layout": TensorMemoryLayout,
    "shard_spec": ShardSpec,
    "nd_shard_spec": NdShardSpec,
    "memory_config": MemoryConfig,
    "tile": Tile,
}


class TensorSpec(TensorProperties[memory.TensorSpec]):
    """Shape, data type, layout and memory of a tensor.

    After these come, by kind: a buffer type, or a memory layout with its shard spec, or an ND shard spec; and a tile.

    >>> TensorSpec([64, 64], DataType.BFLOAT16, PageLayout.TILE, BufferType.L1).memory_config.buffer_type
    BufferType.L1
    """

    __slots__ = ()

    def __init__(
        self,
        shape: Iterable[int],
        dtype: DataTypeLike,
        layout: Any,
        *placement: Any,
        memory_layout: Any = None,
        shard_spec: Any = None,
        nd_shard_spec: Any = None,
        buffer_type: Any = None,
        memory_config: Any = None,
        tile: Any = None,
    ) -> None:
        named = {"memory_layout": memory_layout, "shard_spec": shard_spec, "nd_shard_spec": nd_shard_spec}
        named |= {"buffer_type": buffer_type, "memory_config": memory_config, "tile": tile}
        found = bind_by_type(_PLACEMENT, placement, "a tensor spec", **named)
        tile, config = found.pop("tile", None), found.pop("memory_config", None)
        if config is None:
            config = MemoryConfig(
                found.get("memory_layout", TensorMemoryLayout.INTERLEAVED),
                found.get("buffer_type", BufferType.DRAM),
                found.get("shard_spec"),
                found.get("nd_shard_spec"),
            )
        elif found:
            raise TypeError(f"a tensor spec got memory_config and {', '.join(found)}; give one or the other")
        self.plain = memory.TensorSpec(shape, DataType.of(dtype).format, layout, unwrap(tile), unwrap(config))

    @property
    def memory_config(self) -> MemoryConfig:
        """Return the memory config, with both forms of its shards.

        >>> TensorSpec([5, 7], DataType.BFLOAT16, PageLayout.TILE).memory_config.buffer_type
        BufferType.DRAM
        """
        return MemoryConfig.wrap(self.plain.memory)

    # Sharding helpers; each keeps the buffer type.

    def _sharded(self, make: Any, *arguments: Any, **more: Any) -> TensorSpec:
        buffer = self.plain.memory.buffer_type
        sharding: Sharding = make(*arguments, buffer_type=buffer, **more)
        shards = self.plain.with_memory(sharding).memory.sharding
        # ttnn names what it works out by the shards alone, not by the method that was called
        return TensorSpec.wrap(self.plain.with_memory(memory.MemoryConfig("nd_sharded", buffer, nd_shard_spec=shards)))

    def height_sharded(self, grid: Any, orientation: ShardOrientation | str = ShardOrientation.ROW_MAJOR) -> TensorSpec:
        """Return the spec cut along its height, as evenly as whole tiles allow.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([128, 64], DataType.BFLOAT16, PageLayout.TILE)
        >>> spec.height_sharded(CoreRange((0, 0), (3, 0))).memory_config.shard_spec.shape
        [32, 64]
        """
        return self._sharded(memory.height_sharded, unwrap(grid), orientation=orientation)

    def width_sharded(self, grid: Any, orientation: ShardOrientation | str = ShardOrientation.ROW_MAJOR) -> TensorSpec:
        """Return the spec cut along its width, as evenly as whole tiles allow.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([64, 128], DataType.BFLOAT16, PageLayout.TILE)
        >>> spec.width_sharded(CoreRange((0, 0), (3, 0))).memory_config.shard_spec.shape
        [64, 32]
        """
        return self._sharded(memory.width_sharded, unwrap(grid), orientation=orientation)

    def block_sharded(self, grid: Any, orientation: ShardOrientation | str = ShardOrientation.ROW_MAJOR) -> TensorSpec:
        """Return the spec cut both ways over a rectangle of cores.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([64, 128], DataType.BFLOAT16, PageLayout.TILE)
        >>> spec.block_sharded(CoreRange((0, 0), (1, 1))).memory_config.shard_spec.shape
        [32, 64]
        """
        return self._sharded(memory.block_sharded, unwrap(grid), orientation=orientation)

    def sharded_across_dims(
        self, dims: Any, grid: Any, orientation: ShardOrientation | str = ShardOrientation.ROW_MAJOR
    ) -> TensorSpec:
        """Return the spec with one shard for each index of some dimensions.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([4, 64, 96], DataType.BFLOAT16, PageLayout.TILE)
        >>> spec.sharded_across_dims([0], CoreRange((0, 0), (3, 0))).memory_config.nd_shard_spec.shard_shape
        [1, 64, 96]
        """
        return self._sharded(memory.sharded_across_dims, dims, unwrap(grid), orientation)

    def sharded_across_dims_except(
        self, dims: Any, grid: Any, orientation: ShardOrientation | str = ShardOrientation.ROW_MAJOR
    ) -> TensorSpec:
        """Return the spec with one shard for each index of all but some dimensions.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([4, 64, 96], DataType.BFLOAT16, PageLayout.TILE)
        >>> spec.sharded_across_dims_except([2], CoreRange((0, 0), (3, 1))).memory_config.nd_shard_spec.shard_shape
        [1, 32, 96]
        """
        return self._sharded(memory.sharded_across_dims, dims, unwrap(grid), orientation, all_but=True)

    def sharded(
        self,
        shard_shape: Iterable[int],
        grid: Any,
        shard_alignment: ShardShapeAlignment = ShardShapeAlignment.RECOMMENDED,
        orientation: ShardOrientation | str = ShardOrientation.ROW_MAJOR,
        shard_distribution_strategy: Any = ShardDistribution.ROUND_ROBIN_1D,
    ) -> TensorSpec:
        """Return the spec in shards of a shape that is rounded up as asked.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([4, 50, 70], DataType.BFLOAT16, PageLayout.TILE)
        >>> spec.sharded([1, 20, 20], CoreRange((0, 0), (3, 0))).memory_config.nd_shard_spec.shard_shape
        [1, 32, 32]
        """
        shape, spec = list(shard_shape), self.plain
        if shard_alignment is not ShardShapeAlignment.NONE and spec.page_layout is PageLayout.TILE:
            shape[-2:] = [round_up(n, unit) for n, unit in zip(shape[-2:], spec.tile.shape[-len(shape) :], strict=True)]
        elif shard_alignment is ShardShapeAlignment.RECOMMENDED:
            size = spec.dtype.bytes_per_tile(1)
            shape[-1] = round_up(shape[-1], lcm(ROW_BYTES, size) // size)
        config = memory.nd_sharded(
            shape, unwrap(grid), orientation, shard_distribution_strategy, spec.memory.buffer_type
        )
        return TensorSpec.wrap(spec.with_memory(config))
