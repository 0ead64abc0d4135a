# SPDX-License-Identifier: Apache-2.0
"""Memory configs by name: `interleaved`, `height_sharded` and so on.

Without a shard shape the result is a `Sharding`: a `TensorSpec` computes the shard shape from its own shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import lcm, prod
from typing import TypeAlias

from .._integers import ceil_div, round_up
from ..errors import MemoryConfigError
from ..spelling import canonical_word
from .cores import CoreRangeSet, CoresLike
from .memory_config import (
    BufferType,
    BufferTypeLike,
    MemoryConfig,
    NdShardSpec,
    ShardDistribution,
    ShardOrientation,
    ShardSpec,
    ShardStrategy,
    TensorMemoryLayout,
)

ROW_BYTES = 64  # the width of row-major shards is a multiple of this number of bytes


@dataclass(frozen=True, slots=True)
class Sharding:
    """How to shard a tensor of any shape: by strategy, or with one shard per index of the dimensions `dims`.

    With `all_but`, it is one shard per index of all other dimensions.

    >>> block_sharded(core_grid=(8, 8)).strategy
    ShardStrategy.BLOCK
    """

    strategy: ShardStrategy | None
    grid: CoreRangeSet
    orientation: ShardOrientation
    buffer_type: BufferType
    dims: tuple[int, ...] = ()
    all_but: bool = False

    @property
    def memory_layout(self) -> TensorMemoryLayout:
        """Return the memory layout of the strategy.

        >>> sharded_across_dims([0], (4, 1)).memory_layout
        TensorMemoryLayout.ND_SHARDED
        """
        return TensorMemoryLayout.ND_SHARDED if self.strategy is None else self.strategy.memory_layout

    def config_for(self, padded: tuple[int, ...], tile: tuple[int, int] | None, itemsize: int = 1) -> MemoryConfig:
        """Return the config for a tensor of this `padded` shape; `tile` is None for row-major pages.

        `itemsize` is the size of an element in bytes, which decides the width of row-major shards.

        >>> block_sharded(core_grid=(8, 8)).config_for((1, 4, 64, 96), (32, 32)).sharding.shape
        (32, 32)
        """
        shape = self._dims_shape(padded) if self.strategy is None else self._strategy_shape(self.strategy, padded)
        if tile is not None:
            shape[-1] = round_up(shape[-1], tile[1])
            if len(shape) > 1:
                shape[-2] = round_up(shape[-2], tile[0])
        elif self.strategy in (None, ShardStrategy.BLOCK):
            shape[-1] = round_up(shape[-1], lcm(ROW_BYTES, itemsize) // itemsize)
        distribution = "grid_2d" if self.strategy is ShardStrategy.BLOCK else "round_robin_1d"
        sharding = NdShardSpec(shape, self.grid, self.orientation, distribution)
        return MemoryConfig(self.memory_layout, self.buffer_type, nd_shard_spec=sharding)

    def _strategy_shape(self, strategy: ShardStrategy, padded: tuple[int, ...]) -> list[int]:
        if strategy is ShardStrategy.BLOCK and len(self.grid) != 1:
            raise MemoryConfigError(
                f"block sharding needs a single range of cores, got {len(self.grid)} ranges {self.grid}; use their"
                f" bounding box {self.grid.bounding_box}"
            )
        down, across = strategy.shard_counts(self.grid, self.orientation)
        return [max(1, ceil_div(prod(padded[:-1]), down)), max(1, ceil_div(padded[-1], across))]

    def _dims_shape(self, padded: tuple[int, ...]) -> list[int]:
        for d in self.dims:
            if not -len(padded) <= d < len(padded):
                raise MemoryConfigError(
                    f"dimension {d} is outside padded shape {list(padded)}; use {-len(padded)} to {len(padded) - 1}"
                )
        chosen = {d % len(padded) for d in self.dims}
        return [1 if (d in chosen) != self.all_but else max(1, n) for d, n in enumerate(padded)]


ShardedMemory: TypeAlias = MemoryConfig | Sharding
MemoryLike: TypeAlias = MemoryConfig | Sharding | BufferType | str | None
OrientationLike: TypeAlias = ShardOrientation | str


def as_memory(memory: MemoryLike) -> ShardedMemory:
    """Return a config or a sharding as it is, and interleaved memory for a buffer type; None is DRAM.

    >>> as_memory("l1"), as_memory(None), as_memory("Interleaved")
    (MemoryConfig('interleaved', 'l1'), MemoryConfig('interleaved', 'dram'), MemoryConfig('interleaved', 'dram'))
    """
    if isinstance(memory, (MemoryConfig, Sharding)):
        return memory
    if memory is None or (isinstance(memory, str) and canonical_word(memory) == "interleaved"):
        return MemoryConfig()
    return MemoryConfig("interleaved", memory)


def interleaved(buffer_type: BufferTypeLike = "dram") -> MemoryConfig:
    """Return the config that distributes pages round-robin over all banks of `buffer_type`, "dram" or "l1".

    >>> interleaved("l1")
    MemoryConfig('interleaved', 'l1')
    """
    return MemoryConfig("interleaved", buffer_type)


def height_sharded(
    core_grid: CoresLike,
    shard_shape: Iterable[int] | None = None,
    orientation: OrientationLike = "row_major",
    buffer_type: BufferTypeLike = "l1",
) -> ShardedMemory:
    """Return the config with shards of full rows.

    `core_grid` is (columns, rows) or any set of cores, `shard_shape` (height, width) or None to compute it,
    `orientation` the order of cores, and `buffer_type` the memory.

    >>> height_sharded((8, 8), (64, 96)).memory_layout
    TensorMemoryLayout.HEIGHT_SHARDED
    """
    return _shard_by_strategy(ShardStrategy.HEIGHT, core_grid, shard_shape, orientation, buffer_type)


def width_sharded(
    core_grid: CoresLike,
    shard_shape: Iterable[int] | None = None,
    orientation: OrientationLike = "row_major",
    buffer_type: BufferTypeLike = "l1",
) -> ShardedMemory:
    """Return the config with shards of full columns.

    `core_grid`, `shard_shape`, `orientation` and `buffer_type` are those of `height_sharded`.

    >>> width_sharded((8, 1), (64, 32)).shard_spec.shape
    (64, 32)
    """
    return _shard_by_strategy(ShardStrategy.WIDTH, core_grid, shard_shape, orientation, buffer_type)


def block_sharded(
    core_grid: CoresLike,
    shard_shape: Iterable[int] | None = None,
    orientation: OrientationLike = "row_major",
    buffer_type: BufferTypeLike = "l1",
) -> ShardedMemory:
    """Return the config with block (i, j) of the matrix on row i and column j of cores.

    `core_grid`, `shard_shape`, `orientation` and `buffer_type` are those of `height_sharded`.

    >>> block_sharded((2, 2), (64, 64)).sharding.distribution
    ShardDistribution.GRID_2D
    """
    return _shard_by_strategy(ShardStrategy.BLOCK, core_grid, shard_shape, orientation, buffer_type)


def nd_sharded(
    shard_shape: Iterable[int],
    core_grid: CoresLike,
    orientation: OrientationLike = "row_major",
    distribution: ShardDistribution | str = "round_robin_1d",
    buffer_type: BufferTypeLike = "l1",
) -> MemoryConfig:
    """Return the config with shards of `shard_shape`, of any rank; `distribution` says how they are distributed.

    `core_grid`, `orientation` and `buffer_type` are those of `height_sharded`.

    >>> nd_sharded((1, 64, 32), (4, 2)).made_with_nd
    True
    """
    sharding = NdShardSpec(shard_shape, core_grid, orientation, distribution)
    return MemoryConfig("nd_sharded", buffer_type, nd_shard_spec=sharding)


def sharded_across_dims(
    dims: int | Sequence[int],
    core_grid: CoresLike,
    orientation: OrientationLike = "row_major",
    buffer_type: BufferTypeLike = "l1",
    all_but: bool = False,
) -> Sharding:
    """Return the sharding with one shard for each index of the dimensions `dims`, or of all others with `all_but`.

    `core_grid`, `orientation` and `buffer_type` are those of `height_sharded`.

    >>> sharded_across_dims([0], (4, 1)).config_for((4, 64, 96), (32, 32)).sharding.shape
    (1, 64, 96)
    """
    numbers = tuple([int(d) for d in ([dims] if isinstance(dims, int) else dims)])
    cores, order = CoreRangeSet.of(core_grid), ShardOrientation.of(orientation)
    return Sharding(None, cores, order, BufferType.of(buffer_type), numbers, all_but)


def _shard_by_strategy(
    strategy: ShardStrategy,
    cores: CoresLike,
    shape: Iterable[int] | None,
    orientation: OrientationLike,
    buffer: BufferTypeLike,
) -> ShardedMemory:
    if shape is None:
        return Sharding(strategy, CoreRangeSet.of(cores), ShardOrientation.of(orientation), BufferType.of(buffer))
    return MemoryConfig(strategy.memory_layout, buffer, ShardSpec(cores, shape, orientation))
