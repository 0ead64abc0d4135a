# SPDX-License-Identifier: Apache-2.0
"""Cores, shards and memory configs under ttnn's names, and work split over cores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, TypeVar

from .. import memory
from ..errors import MemoryConfigError
from ..memory import (
    BufferType,
    CoreCoord,
    CoreGrid,
    CoreRange,
    ShardDistribution,
    ShardOrientation,
    TensorMemoryLayout,
    first_cores,
)
from ..memory import cores as plain_cores
from ..memory.cores import CoreLike, grid_extents
from ..memory.sharding import OrientationLike
from .wrapper import Wrapper, unwrap


class CoreRangeSet(Wrapper[memory.CoreRangeSet]):
    """Ranges of cores that do not overlap, in the order of `core_ranges`; a Python set of them is sorted.

    >>> CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(3, 1))]).num_cores()
    8
    """

    __slots__ = ()

    def __init__(self, core_ranges: CoreRange | CoreRangeSet | Iterable[CoreRange]) -> None:
        ranges = unwrap(core_ranges)
        self.plain = memory.CoreRangeSet([ranges] if isinstance(ranges, CoreRange) else ranges)

    def ranges(self) -> list[CoreRange]:
        """Return the ranges in order.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).ranges()
        [CoreRange((0, 0), (3, 1))]
        """
        return list(self.plain.ranges)

    def num_cores(self) -> int:
        """Return the number of cores.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).num_cores()
        8
        """
        return self.plain.num_cores

    def size(self) -> int:
        """Return the number of ranges.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).size()
        1
        """
        return len(self.plain)

    def empty(self) -> bool:
        """Return whether the set has no ranges.

        >>> CoreRangeSet([]).empty()
        True
        """
        return not self.plain.ranges

    def bounding_box(self) -> CoreRange:
        """Return the smallest range that contains all cores.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1)), CoreRange((5, 5), (5, 5))]).bounding_box()
        CoreRange((0, 0), (5, 5))
        """
        return self.plain.bounding_box

    def contains(self, cores: CoreLike | CoresLike) -> bool:
        """Return whether all `cores` (one core, a range, or a set of ranges) are in the set.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).contains(CoreCoord(4, 0))
        False
        """
        if isinstance(cores, (CoreCoord, tuple)):
            return CoreCoord.of(cores) in self.plain.cores()
        return set(memory.CoreRangeSet.of(unwrap(cores)).cores()) <= set(self.plain.cores())

    def __iter__(self) -> Iterator[CoreRange]:
        return iter(self.plain)

    def __len__(self) -> int:
        return len(self.plain)


CoresLike: TypeAlias = CoreRangeSet | plain_cores.CoresLike


_Shards = TypeVar("_Shards", memory.ShardSpec, memory.NdShardSpec)


class ShardCores(Wrapper[_Shards]):
    """The cores of a shard spec, and the order in which shards visit them.

    >>> issubclass(ShardSpec, ShardCores), issubclass(NdShardSpec, ShardCores)
    (True, True)
    """

    __slots__ = ()

    @property
    def grid(self) -> CoreRangeSet:
        """Return the cores.

        >>> ShardSpec(CoreRange((0, 0), (3, 1)), [32, 64]).grid.num_cores()
        8
        """
        return CoreRangeSet.wrap(self.plain.grid)

    @property
    def orientation(self) -> ShardOrientation:
        """Return the order in which shards visit cores.

        >>> ShardSpec(CoreRange((0, 0), (3, 1)), (32, 64)).orientation
        ShardOrientation.ROW_MAJOR
        """
        return self.plain.orientation

    def num_cores(self) -> int:
        """Return the number of cores.

        >>> NdShardSpec([1, 32], CoreRange((0, 0), (3, 1))).num_cores()
        8
        """
        return self.plain.grid.num_cores


class ShardSpec(ShardCores[memory.ShardSpec]):
    """Shards of `shard_shape` (height, width), dealt to the cores of `grid` in `shard_orientation`.

    >>> ShardSpec(CoreRangeSet([CoreRange((0, 0), (3, 1))]), [32, 64], ShardOrientation.ROW_MAJOR).num_cores()
    8
    """

    __slots__ = ()

    def __init__(
        self,
        grid: CoresLike,
        shard_shape: Iterable[int],
        shard_orientation: OrientationLike = ShardOrientation.ROW_MAJOR,
    ) -> None:
        self.plain = memory.ShardSpec(unwrap(grid), shard_shape, shard_orientation)

    @property
    def shape(self) -> list[int]:
        """Return the height and width of a shard.

        >>> ShardSpec(CoreRange((0, 0), (3, 1)), (32, 64)).shape
        [32, 64]
        """
        return list(self.plain.shape)


class NdShardSpec(ShardCores[memory.NdShardSpec]):
    """Shards of `shard_shape`, of any rank, dealt to the cores of `grid` in `orientation`.

    `shard_distribution_strategy` says how they are dealt: round robin, or as a grid.

    >>> NdShardSpec([1, 32, 64], CoreRangeSet([CoreRange((0, 0), (3, 1))])).shard_shape
    [1, 32, 64]
    """

    __slots__ = ()

    def __init__(
        self,
        shard_shape: Iterable[int],
        grid: CoresLike,
        orientation: OrientationLike = ShardOrientation.ROW_MAJOR,
        shard_distribution_strategy: ShardDistribution | str = ShardDistribution.ROUND_ROBIN_1D,
    ) -> None:
        self.plain = memory.NdShardSpec(shard_shape, unwrap(grid), orientation, shard_distribution_strategy)

    @property
    def shard_shape(self) -> list[int]:
        """Return the extents of a shard.

        >>> NdShardSpec([1, 32], CoreRange((0, 0), (3, 1))).shard_shape
        [1, 32]
        """
        return list(self.plain.shape)

    @property
    def shard_distribution_strategy(self) -> ShardDistribution:
        """Return how shards are dealt to cores.

        >>> NdShardSpec([1, 32], CoreRange((0, 0), (3, 1))).shard_distribution_strategy
        ShardDistribution.ROUND_ROBIN_1D
        """
        return self.plain.distribution


class MemoryConfig(Wrapper[memory.MemoryConfig]):
    """The memory of a tensor: `memory_layout`, `buffer_type`, and `shard_spec` or `nd_shard_spec` for its shards.

    The form `MemoryConfig(buffer_type, nd_shard_spec)` is accepted, too.

    >>> MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1).is_sharded()
    False
    >>> MemoryConfig(BufferType.L1, NdShardSpec([32, 32], CoreRange((0, 0), (1, 1)))).memory_layout
    TensorMemoryLayout.ND_SHARDED
    """

    __slots__ = ()

    def __init__(
        self,
        memory_layout: TensorMemoryLayout | BufferType | str = TensorMemoryLayout.INTERLEAVED,
        buffer_type: BufferType | NdShardSpec | str = BufferType.DRAM,
        shard_spec: ShardSpec | memory.ShardSpec | None = None,
        nd_shard_spec: NdShardSpec | memory.NdShardSpec | None = None,
    ) -> None:
        if isinstance(memory_layout, BufferType) or isinstance(buffer_type, NdShardSpec):
            shards = buffer_type if nd_shard_spec is None else nd_shard_spec
            if not (isinstance(memory_layout, BufferType) and isinstance(shards, (NdShardSpec, memory.NdShardSpec))):
                raise MemoryConfigError(
                    f"expected MemoryConfig(buffer_type, nd_shard_spec), got {memory_layout!r} and {shards!r}; for"
                    " interleaved memory use MemoryConfig(buffer_type=...)"
                )
            buffer_type, nd_shard_spec = memory_layout, shards
            memory_layout = TensorMemoryLayout.ND_SHARDED
        elif nd_shard_spec is not None:
            memory_layout = TensorMemoryLayout.ND_SHARDED
        self.plain = memory.MemoryConfig(memory_layout, buffer_type, unwrap(shard_spec), unwrap(nd_shard_spec))

    @property
    def memory_layout(self) -> TensorMemoryLayout:
        """Return the memory layout: interleaved, or how it is sharded.

        >>> MemoryConfig().memory_layout
        TensorMemoryLayout.INTERLEAVED
        """
        return self.plain.memory_layout

    @property
    def buffer_type(self) -> BufferType:
        """Return the type of memory: DRAM, L1, ...

        >>> MemoryConfig().buffer_type
        BufferType.DRAM
        """
        return self.plain.buffer_type

    @property
    def shard_spec(self) -> ShardSpec | None:
        """Return the two-dimensional shard spec, or None.

        >>> MemoryConfig().shard_spec is None
        True
        """
        return None if self.plain.shard_spec is None else ShardSpec.wrap(self.plain.shard_spec)

    @property
    def nd_shard_spec(self) -> NdShardSpec | None:
        """Return the shard spec of any rank, or None.

        >>> MemoryConfig().nd_shard_spec is None
        True
        """
        return None if self.plain.nd_shard_spec is None else NdShardSpec.wrap(self.plain.nd_shard_spec)

    @property
    def interleaved(self) -> bool:
        """Return whether pages are dealt to all banks in turn, not sharded.

        >>> MemoryConfig().interleaved
        True
        """
        return not self.plain.is_sharded

    def is_sharded(self) -> bool:
        """Return whether the memory is sharded.

        >>> MemoryConfig().is_sharded()
        False
        """
        return self.plain.is_sharded


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1)
L1_HEIGHT_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
L1_WIDTH_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1)
L1_BLOCK_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1)


def num_cores_to_corerangeset(
    target_num_cores: int, grid_size: CoreGrid | CoreLike, row_wise: bool = False
) -> CoreRangeSet:
    """Return the first `target_num_cores` cores of `grid_size`, row by row (`row_wise`) or column by column.

    >>> num_cores_to_corerangeset(10, CoreCoord(8, 8), row_wise=True).ranges()
    [CoreRange((0, 0), (7, 0)), CoreRange((0, 1), (1, 1))]
    """
    return CoreRangeSet.wrap(first_cores(target_num_cores, grid_size, row_wise))


def split_work_to_cores(
    grid_size: CoreGrid | CoreLike, units_to_divide: int, row_wise: bool = False
) -> tuple[int, CoreRangeSet, CoreRangeSet, CoreRangeSet, int, int]:
    """Return `units_to_divide` split evenly over `grid_size`, row by row (`row_wise`) or column by column.

    The result is (number of cores, all cores, cores with one unit more, the other cores, units per core of both).

    >>> count, _, more, fewer, units_of_more, units_of_fewer = split_work_to_cores(CoreCoord(8, 8), 100)
    >>> count, more.num_cores(), units_of_more, fewer.num_cores(), units_of_fewer
    (64, 36, 2, 28, 1)
    """
    across, down = grid_extents(grid_size)
    if units_to_divide < 0:
        raise MemoryConfigError(f"expected at least 0 units of work, got {units_to_divide}")
    none = CoreRangeSet([])
    if units_to_divide == 0:
        return 0, none, none, none, 0, 0
    count = min(units_to_divide, across * down)
    all_cores = num_cores_to_corerangeset(count, grid_size, row_wise)
    per_core, remainder = divmod(units_to_divide, count)
    if not remainder:
        return count, all_cores, all_cores, none, per_core, 0
    line, along = divmod(remainder, across if row_wise else down)
    start = (along, line) if row_wise else (line, along)
    more = num_cores_to_corerangeset(remainder, grid_size, row_wise)
    fewer = CoreRangeSet.wrap(first_cores(count - remainder, grid_size, row_wise, start))
    return count, all_cores, more, fewer, per_core + 1, per_core


def corerange_to_cores(
    core_range_set: CoresLike, max_cores: int | None = None, row_wise: bool = False
) -> list[CoreCoord]:
    """Return the cores of `core_range_set`, row by row (`row_wise`) or column by column; at most `max_cores`.

    >>> corerange_to_cores(CoreRangeSet([CoreRange((0, 0), (1, 0))]), row_wise=True)
    [CoreCoord(x=0, y=0), CoreCoord(x=1, y=0)]
    """
    return memory.CoreRangeSet.of(unwrap(core_range_set)).cores(row_wise)[:max_cores]
