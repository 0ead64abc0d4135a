# SPDX-License-Identifier: Apache-2.0
"""Cores, shards and memory configs under ttnn's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .. import memory
from ..memory import BufferType, CoreCoord, CoreRange, ShardDistribution, ShardOrientation, TensorMemoryLayout
from . import sharded_config, work_split
from .wrapper import Wrapper, unwrap


class CoreRangeSet(Wrapper[memory.CoreRangeSet]):
    """Ranges of cores that do not overlap, in order; those of a Python set are sorted.

    >>> CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(3, 1))]).num_cores()
    8
    """

    __slots__ = ()

    def __init__(self, core_ranges: Any) -> None:
        given = unwrap(core_ranges)
        self.plain = memory.CoreRangeSet([given]) if isinstance(given, CoreRange) else memory.CoreRangeSet(given)

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
        """Return whether there is no range.

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

    def contains(self, cores: Any) -> bool:
        """Return whether a core, a range or a set of ranges is inside.

        >>> CoreRangeSet([CoreRange((0, 0), (3, 1))]).contains(CoreCoord(4, 0))
        False
        """
        asked = unwrap(cores)
        wanted = (
            {CoreCoord.of(asked)}
            if isinstance(asked, (CoreCoord, tuple))
            else set(memory.CoreRangeSet.of(asked).cores())
        )
        return wanted <= set(self.plain.cores())

    def __iter__(self) -> Iterator[CoreRange]:
        return iter(self.plain)

    def __len__(self) -> int:
        return len(self.plain)


class ShardSpec(Wrapper[memory.ShardSpec]):
    """Shards of a matrix over cores.

    >>> ShardSpec(CoreRangeSet([CoreRange((0, 0), (3, 1))]), [32, 64], ShardOrientation.ROW_MAJOR).num_cores()
    8
    """

    __slots__ = ()

    def __init__(
        self,
        grid: Any,
        shard_shape: Iterable[int],
        shard_orientation: ShardOrientation | str = ShardOrientation.ROW_MAJOR,
    ) -> None:
        self.plain = memory.ShardSpec(unwrap(grid), shard_shape, shard_orientation)

    @property
    def grid(self) -> CoreRangeSet:
        """Return the cores.

        >>> ShardSpec(CoreRange((0, 0), (3, 1)), [32, 64]).grid.num_cores()
        8
        """
        return CoreRangeSet.wrap(self.plain.grid)

    @property
    def shape(self) -> list[int]:
        """Return the height and width of a shard.

        >>> ShardSpec(CoreRange((0, 0), (3, 1)), (32, 64)).shape
        [32, 64]
        """
        return list(self.plain.shape)

    @property
    def orientation(self) -> ShardOrientation:
        """Return the order in which shards visit cores.

        >>> ShardSpec(CoreRange((0, 0), (3, 1)), (32, 64)).orientation
        ShardOrientation.ROW_MAJOR
        """
        return self.plain.orientation

    def num_cores(self) -> int:
        """Return the number of cores.

        >>> ShardSpec(CoreRange((0, 0), (3, 1)), (32, 64)).num_cores()
        8
        """
        return self.plain.grid.num_cores


class NdShardSpec(Wrapper[memory.NdShardSpec]):
    """Shards of any rank over cores, and how they are dealt.

    >>> NdShardSpec([1, 32, 64], CoreRangeSet([CoreRange((0, 0), (3, 1))])).shard_shape
    [1, 32, 64]
    """

    __slots__ = ()

    def __init__(
        self,
        shard_shape: Iterable[int],
        grid: Any,
        orientation: ShardOrientation | str = ShardOrientation.ROW_MAJOR,
        shard_distribution_strategy: Any = ShardDistribution.ROUND_ROBIN_1D,
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
    def grid(self) -> CoreRangeSet:
        """Return the cores.

        >>> NdShardSpec([1, 32], CoreRange((0, 0), (3, 1))).grid.num_cores()
        8
        """
        return CoreRangeSet.wrap(self.plain.grid)

    @property
    def orientation(self) -> ShardOrientation:
        """Return the order in which shards visit cores.

        >>> NdShardSpec([1, 32], CoreRange((0, 0), (3, 1))).orientation
        ShardOrientation.ROW_MAJOR
        """
        return self.plain.orientation

    @property
    def shard_distribution_strategy(self) -> ShardDistribution:
        """Return how shards are dealt to cores.

        >>> NdShardSpec([1, 32], CoreRange((0, 0), (3, 1))).shard_distribution_strategy
        ShardDistribution.ROUND_ROBIN_1D
        """
        return self.plain.distribution

    def num_cores(self) -> int:
        """Return the number of cores.

        >>> NdShardSpec([1, 32], CoreRange((0, 0), (3, 1))).num_cores()
        8
        """
        return self.plain.grid.num_cores


class MemoryConfig(Wrapper[memory.MemoryConfig]):
    """Which memory a tensor lies in, and how: a memory layout, a buffer type and a shard spec, or an ND shard spec.

    >>> MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1).is_sharded()
    False
    >>> MemoryConfig(BufferType.L1, NdShardSpec([32, 32], CoreRange((0, 0), (1, 1)))).memory_layout
    TensorMemoryLayout.ND_SHARDED
    """

    __slots__ = ()

    def __init__(
        self,
        memory_layout: Any = TensorMemoryLayout.INTERLEAVED,
        buffer_type: Any = BufferType.DRAM,
        shard_spec: Any = None,
        nd_shard_spec: Any = None,
    ) -> None:
        if isinstance(memory_layout, BufferType):  # the other form: buffer type, ND shard spec
            memory_layout, buffer_type, nd_shard_spec = (
                TensorMemoryLayout.ND_SHARDED,
                memory_layout,
                nd_shard_spec if nd_shard_spec is not None else buffer_type,
            )
        elif nd_shard_spec is not None:
            memory_layout = TensorMemoryLayout.ND_SHARDED
        self.plain = memory.MemoryConfig(memory_layout, buffer_type, unwrap(shard_spec), unwrap(nd_shard_spec))

    @property
    def memory_layout(self) -> TensorMemoryLayout:
        """Return how pages are spread.

        >>> MemoryConfig().memory_layout
        TensorMemoryLayout.INTERLEAVED
        """
        return self.plain.memory_layout

    @property
    def buffer_type(self) -> BufferType:
        """Return the memory.

        >>> MemoryConfig().buffer_type
        BufferType.DRAM
        """
        return self.plain.buffer_type

    @property
    def shard_spec(self) -> ShardSpec | None:
        """Return the shards of the matrix, None if there are none.

        >>> MemoryConfig().shard_spec is None
        True
        """
        return None if self.plain.shard_spec is None else ShardSpec.wrap(self.plain.shard_spec)

    @property
    def nd_shard_spec(self) -> NdShardSpec | None:
        """Return the shards in their general form, None if there are none.

        >>> MemoryConfig().nd_shard_spec is None
        True
        """
        return None if self.plain.nd_shard_spec is None else NdShardSpec.wrap(self.plain.nd_shard_spec)

    @property
    def interleaved(self) -> bool:
        """Return whether pages are dealt to all banks in turn.

        >>> MemoryConfig().interleaved
        True
        """
        return not self.plain.is_sharded

    def is_sharded(self) -> bool:
        """Return whether pages are gathered in shards.

        >>> MemoryConfig().is_sharded()
        False
        """
        return self.plain.is_sharded


def _l1(layout: TensorMemoryLayout) -> MemoryConfig:
    return MemoryConfig(layout, BufferType.L1)


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = _l1(TensorMemoryLayout.INTERLEAVED)
L1_HEIGHT_SHARDED_MEMORY_CONFIG = _l1(TensorMemoryLayout.HEIGHT_SHARDED)
L1_WIDTH_SHARDED_MEMORY_CONFIG = _l1(TensorMemoryLayout.WIDTH_SHARDED)
L1_BLOCK_SHARDED_MEMORY_CONFIG = _l1(TensorMemoryLayout.BLOCK_SHARDED)


def create_sharded_memory_config(
    shape: Iterable[int],
    core_grid: Any,
    strategy: Any,
    orientation: Any = None,
    use_height_and_width_as_shard_shape: bool = False,
) -> MemoryConfig:
    """Return the L1 config that cuts a shape evenly over cores, or whose shard is the last two extents of the shape.

    >>> from tilewright.ttnn import CoreGrid, ShardStrategy
    >>> create_sharded_memory_config((64, 64), CoreGrid(y=2, x=2), ShardStrategy.BLOCK).shard_spec.shape
    [32, 32]
    """
    made = sharded_config.create_sharded_memory_config(
        shape, unwrap(core_grid), strategy, orientation, use_height_and_width_as_shard_shape
    )
    return MemoryConfig.wrap(made)


def create_sharded_memory_config_(
    shape: Iterable[int],
    core_grid: Any,
    strategy: Any,
    orientation: Any,
    use_height_and_width_as_shard_shape: bool = False,
    tile_layout: bool = False,
) -> MemoryConfig:
    """Return the L1 config that cuts a shape over any set of cores, with quotients rounded up.

    >>> from tilewright.ttnn import CoreGrid, ShardStrategy
    >>> rows = ShardOrientation.ROW_MAJOR
    >>> create_sharded_memory_config_((3, 5, 7), CoreGrid(y=2, x=4), ShardStrategy.HEIGHT, rows).shard_spec.shape
    [2, 7]
    """
    made = sharded_config.create_sharded_memory_config_(
        shape, unwrap(core_grid), strategy, orientation, use_height_and_width_as_shard_shape, tile_layout=tile_layout
    )
    return MemoryConfig.wrap(made)


# The order of cores.


def num_cores_to_corerangeset(target_num_cores: int, grid_size: Any, row_wise: bool = False) -> CoreRangeSet:
    """Return the first cores of a grid as at most three ranges.

    >>> num_cores_to_corerangeset(10, CoreCoord(8, 8), row_wise=True).ranges()
    [CoreRange((0, 0), (7, 0)), CoreRange((0, 1), (1, 1))]
    """
    return CoreRangeSet.wrap(work_split.num_cores_to_corerangeset(target_num_cores, grid_size, row_wise))


def split_work_to_cores(
    grid_size: Any, units_to_divide: int, row_wise: bool = False
) -> tuple[int, CoreRangeSet, CoreRangeSet, CoreRangeSet, int, int]:
    """Return how units are shared out: cores, all of them, those with one unit more, the others, units of each.

    >>> split_work_to_cores(CoreCoord(8, 8), 100)[0]
    64
    """
    count, *sets, more, less = work_split.split_work_to_cores(grid_size, units_to_divide, row_wise)
    everyone, first, second = (CoreRangeSet.wrap(each) for each in sets)
    return count, everyone, first, second, more, less


def corerange_to_cores(core_range_set: Any, max_cores: int | None = None, row_wise: bool = False) -> list[CoreCoord]:
    """Return the cores of a set in order.

    >>> corerange_to_cores(CoreRangeSet([CoreRange((0, 0), (1, 0))]), row_wise=True)
    [CoreCoord(x=0, y=0), CoreCoord(x=1, y=0)]
    """
    return work_split.corerange_to_cores(unwrap(core_range_set), max_cores, row_wise)
