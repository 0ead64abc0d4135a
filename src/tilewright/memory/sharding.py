# SPDX-License-Identifier: Apache-2.0
"""Memory configs by name: `interleaved`, `height_sharded` and the others, with the shard shape or without.

Without a shard shape the answer is a `Sharding`, which a `TensorSpec` turns into a config once the shape is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Any, TypeAlias

from ..errors import MemoryConfigError
from ..layout.tuples import ceil_div, round_up
from .config import MemoryConfig, NdShardSpec, ShardSpec
from .cores import CoreRangeSet
from .kinds import BufferType, ShardOrientation, ShardStrategy

ROW_BYTES = 64  # shards of rows are as wide as a multiple of this many bytes


@dataclass(frozen=True, slots=True)
class Sharding:
    """A way to shard a tensor of any shape: by strategy, or one shard per index of some dimensions.

    >>> block_sharded(core_grid=(8, 8)).strategy
    ShardStrategy.BLOCK
    """

    strategy: ShardStrategy | None
    grid: CoreRangeSet
    orientation: ShardOrientation
    buffer_type: BufferType
    dims: tuple[int, ...] = ()
    all_but: bool = False

    def config_for(self, padded: tuple[int, ...], tile: tuple[int, int] | None, itemsize: int = 1) -> MemoryConfig:
        """Return the config for a tensor of this padded shape; `tile` is None for rows.

        >>> block_sharded(core_grid=(8, 8)).config_for((1, 4, 64, 96), (32, 32)).sharding.shape
        (32, 32)
        """
        shape = self._dims_shape(padded) if self.strategy is None else self._strategy_shape(padded)
        if tile is not None:
            shape[-1] = round_up(shape[-1], tile[1])
            if len(shape) > 1:
                shape[-2] = round_up(shape[-2], tile[0])
        elif self.strategy in (None, ShardStrategy.BLOCK):
            shape[-1] = round_up(shape[-1], lcm(ROW_BYTES, itemsize) // itemsize)
        distribution = "grid_2d" if self.strategy is ShardStrategy.BLOCK else "round_robin_1d"
        sharding = NdShardSpec(shape, self.grid, self.orientation, distribution)
        layout = "nd_sharded" if self.strategy is None else self.strategy.memory_layout
        return MemoryConfig(layout, self.buffer_type, nd_shard_spec=sharding)

    def _strategy_shape(self, padded: tuple[int, ...]) -> list[int]:
        rows, columns = 1, padded[-1]
        for n in padded[:-1]:
            rows *= n
        cores = self.grid.num_cores
        if self.strategy is ShardStrategy.HEIGHT:
            return _at_least_one(ceil_div(rows, cores), columns)
        if self.strategy is ShardStrategy.WIDTH:
            return _at_least_one(rows, ceil_div(columns, cores))
        if len(self.grid) != 1:
            raise MemoryConfigError(
                f"block sharding needs one rectangle of cores, got the {len(self.grid)} ranges {self.grid};"
                f" their bounding box is {self.grid.bounding_box}"
            )
        down, across = self.grid.ranges[0].height, self.grid.ranges[0].width
        if self.orientation is ShardOrientation.COL_MAJOR:
            down, across = across, down
        return _at_least_one(ceil_div(rows, down), ceil_div(columns, across))

    def _dims_shape(self, padded: tuple[int, ...]) -> list[int]:
        for d in self.dims:
            if not -len(padded) <= d < len(padded):
                raise MemoryConfigError(
                    f"a tensor of padded shape {list(padded)} has no dimension {d}; use {-len(padded)} to"
                    f" {len(padded) - 1}"
                )
        chosen = {d % len(padded) for d in self.dims}
        return [1 if (d in chosen) != self.all_but else max(1, n) for d, n in enumerate(padded)]


def _at_least_one(*extents: int) -> list[int]:
    return [max(1, n) for n in extents]


Made: TypeAlias = MemoryConfig | Sharding


def interleaved(buffer_type: Any = "dram") -> MemoryConfig:
    """Return the config that deals pages to all banks of a memory in turn.

    >>> interleaved("l1")
    MemoryConfig('interleaved', 'l1')
    """
    return MemoryConfig("interleaved", buffer_type)


def height_sharded(
    core_grid: Any, shard_shape: Any = None, orientation: Any = "row_major", buffer_type: Any = "l1"
) -> Made:
    """Return the config in which each shard is a run of whole rows.

    >>> height_sharded((8, 8), (64, 96)).memory_layout
    TensorMemoryLayout.HEIGHT_SHARDED
    """
    return _by_strategy(ShardStrategy.HEIGHT, core_grid, shard_shape, orientation, buffer_type)


def width_sharded(
    core_grid: Any, shard_shape: Any = None, orientation: Any = "row_major", buffer_type: Any = "l1"
) -> Made:
    """Return the config in which each shard is a run of whole columns.

    >>> width_sharded((8, 1), (64, 32)).shard_spec.shape
    (64, 32)
    """
    return _by_strategy(ShardStrategy.WIDTH, core_grid, shard_shape, orientation, buffer_type)


def block_sharded(
    core_grid: Any, shard_shape: Any = None, orientation: Any = "row_major", buffer_type: Any = "l1"
) -> Made:
    """Return the config in which the matrix is cut both ways, and shard (i, j) goes to row i and column j of cores.

    >>> block_sharded((2, 2), (64, 64)).sharding.distribution
    ShardDistribution.GRID_2D
    """
    return _by_strategy(ShardStrategy.BLOCK, core_grid, shard_shape, orientation, buffer_type)


def nd_sharded(
    shard_shape: Any,
    core_grid: Any,
    orientation: Any = "row_major",
    distribution: Any = "round_robin_1d",
    buffer_type: Any = "l1",
) -> MemoryConfig:
    """Return the config with shards of any rank.

    >>> nd_sharded((1, 64, 32), (4, 2)).made_with_nd
    True
    """
    sharding = NdShardSpec(shard_shape, core_grid, orientation, distribution)
    return MemoryConfig("nd_sharded", buffer_type, nd_shard_spec=sharding)


def sharded_across_dims(
    dims: Any, core_grid: Any, orientation: Any = "row_major", buffer_type: Any = "l1", all_but: bool = False
) -> Sharding:
    """Return the sharding with one shard for each index of some dimensions, or of all but some.

    >>> sharded_across_dims([0], (4, 1)).config_for((4, 64, 96), (32, 32)).sharding.shape
    (1, 64, 96)
    """
    numbers = tuple([int(d) for d in (dims if isinstance(dims, (tuple, list)) else [dims])])
    cores, order = CoreRangeSet.of(core_grid), ShardOrientation.of(orientation)
    return Sharding(None, cores, order, BufferType.of(buffer_type), numbers, all_but)


def _by_strategy(strategy: ShardStrategy, cores: Any, shape: Any, orientation: Any, buffer: Any) -> Made:
    if shape is None:
        return Sharding(strategy, CoreRangeSet.of(cores), ShardOrientation.of(orientation), BufferType.of(buffer))
    return MemoryConfig(strategy.memory_layout, buffer, ShardSpec(cores, shape, orientation))
