# SPDX-License-Identifier: Apache-2.0
"""`create_sharded_memory_config`: shard shapes from a tensor shape, computed exactly as in ttnn."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from math import prod
from typing import Any

from ..errors import MemoryConfigError
from ..layout.tuples import ceil_div, round_up
from ..memory import (
    CoreGrid,
    CoreRange,
    CoreRangeSet,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    ShardStrategy,
    TensorMemoryLayout,
)

_TILE = 32
_STRATEGY_OF = {strategy.memory_layout: strategy for strategy in ShardStrategy}


def create_sharded_memory_config(
    shape: Iterable[int],
    core_grid: Any,
    strategy: Any,
    orientation: Any = None,
    use_height_and_width_as_shard_shape: bool = False,
) -> MemoryConfig:
    """Return the L1 config that cuts a shape evenly over a grid of cores; what does not divide is an error.

    With `use_height_and_width_as_shard_shape` the last two extents are the shard, swapped for col_major.

    >>> create_sharded_memory_config((1, 1, 64, 128), CoreGrid(y=2, x=4), "height").shard_spec.shape
    (8, 128)
    """
    extents = _validate_extents(shape)
    cores, is_grid = _grid_cores(core_grid)
    how, order = ShardStrategy.of(strategy), ShardOrientation.of(orientation or "row_major")
    if use_height_and_width_as_shard_shape:
        return _config(how, cores, _shard_from_shape(extents, order), order)
    if not is_grid:
        raise MemoryConfigError(
            f"shard shapes are only computed for a CoreGrid, got {cores}; pass the shard shape with"
            " use_height_and_width_as_shard_shape=True, or use create_sharded_memory_config_"
        )
    height, width = prod(extents[:-1]), extents[-1]
    down, across = _shard_counts(how, cores, order)
    if height % down or width % across:
        raise MemoryConfigError(
            f"a matrix of {height} x {width} cannot be cut evenly into {down} x {across} shards; pad it to"
            f" {round_up(height, down)} x {round_up(width, across)}, or use another grid"
        )
    return _config(how, cores, (height // down, width // across), order)


def create_sharded_memory_config_(
    shape: Iterable[int],
    core_grid: Any,
    strategy: Any,
    orientation: Any,
    use_height_and_width_as_shard_shape: bool = False,
    *,
    tile_layout: bool = False,
) -> MemoryConfig:
    """Return the L1 config that cuts a shape over any set of cores, with quotients rounded up.

    >>> create_sharded_memory_config_((3, 5, 7), CoreGrid(y=2, x=4), "height", "row_major").shard_spec.shape
    (2, 7)
    """
    extents = _validate_extents(shape)
    cores, _ = _grid_cores(core_grid)
    how = _STRATEGY_OF.get(strategy) or ShardStrategy.of(strategy)
    order = ShardOrientation.of(orientation)
    if use_height_and_width_as_shard_shape:
        shard = _shard_from_shape(extents, order)
        if tile_layout:
            _validate_tiles(shard, [round_up(n, _TILE) for n in shard])
        return _config(how, cores, shard, order)
    if how is ShardStrategy.BLOCK and cores.bounding_box.size != cores.num_cores:
        raise MemoryConfigError(
            f"block sharding needs a full rectangle of cores, but {cores} has {cores.num_cores} cores of the"
            f" {cores.bounding_box.size} of its bounding box {cores.bounding_box}"
        )
    height, width = prod(extents[:-1]), extents[-1]
    down, across = _shard_counts(how, cores, order)
    if tile_layout and how is ShardStrategy.BLOCK:
        height = round_up(height, down * _TILE)
    shard = (ceil_div(height, down), ceil_div(width, across))
    if tile_layout:
        _validate_tiles(shard, [round_up(height, down * _TILE), round_up(width, across * _TILE)])
    return _config(how, cores, shard, order)


def _validate_tiles(shard: tuple[int, int], padded: list[int]) -> None:
    """Raise if a shard is not a whole number of tiles in any dimension; ttnn accepts a shard that is in one."""
    if shard[0] % _TILE and shard[1] % _TILE:
        raise MemoryConfigError(
            f"shard shape {shard[0]} x {shard[1]} is not a multiple of the tile in any dimension; pad the tensor to"
            f" {padded[0]} x {padded[1]}"
        )


def _validate_extents(shape: Iterable[int]) -> tuple[int, ...]:
    try:
        extents = tuple([int(n) for n in shape])
    except TypeError:
        raise MemoryConfigError(f"expected a shape such as (64, 32), got {shape!r}") from None
    if len(extents) < 2:
        raise MemoryConfigError(f"expected a shape of rank 2 or more, got {list(extents)}")
    return extents


def _grid_cores(grid: Any) -> tuple[CoreRangeSet, bool]:
    """Return the cores, and whether they are a single grid from (0, 0)."""
    if isinstance(grid, CoreGrid):
        return grid.ranges, True
    if isinstance(grid, CoreRangeSet):
        return grid, False
    if isinstance(grid, (tuple, list)) and len(grid) == 2 and all(isinstance(part, CoreGrid) for part in grid):
        main, extra = grid
        row = CoreRange((0, main.y), (extra.x - 1, main.y))
        return CoreRangeSet([*main.ranges, row]), False
    raise MemoryConfigError(
        f"expected a CoreGrid, a CoreRangeSet, or a pair of CoreGrids (a grid and one more row), got {grid!r}"
    )


def _shard_counts(how: ShardStrategy, cores: CoreRangeSet, order: ShardOrientation) -> tuple[int, int]:
    """Return the number of shards along the height and the width."""
    if how is ShardStrategy.HEIGHT:
        return cores.num_cores, 1
    if how is ShardStrategy.WIDTH:
        return 1, cores.num_cores
    box = cores.bounding_box
    return (box.height, box.width) if order is ShardOrientation.ROW_MAJOR else (box.width, box.height)


def _shard_from_shape(extents: tuple[int, ...], order: ShardOrientation) -> tuple[int, int]:
    height, width = extents[-2:]
    if order is ShardOrientation.ROW_MAJOR:
        return height, width
    if height != width:
        warnings.warn(
            f"col_major swaps the shard shape: ({height}, {width}) becomes ({width}, {height}), as ttnn does",
            stacklevel=3,
        )
    return width, height


def _config(how: ShardStrategy, cores: CoreRangeSet, shard: Any, order: ShardOrientation) -> MemoryConfig:
    layout: TensorMemoryLayout = how.memory_layout
    return MemoryConfig(layout, "l1", ShardSpec(cores, shard, order))
