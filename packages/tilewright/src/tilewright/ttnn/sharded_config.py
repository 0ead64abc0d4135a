# SPDX-License-Identifier: Apache-2.0
"""Memory configs for shards: `create_sharded_memory_config`, exactly as in ttnn, and that of weights in DRAM."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from math import prod
from operator import index
from typing import Any, TypeAlias

from .. import memory
from .._integers import ceil_div, round_up
from ..errors import MemoryConfigError
from ..memory import CoreRange, ShardOrientation, ShardStrategy
from . import enums
from .cores import CoreGrid, CoreRangeSet
from .devices import OpenDevice
from .memory import MemoryConfig
from .wrapper import unwrap

_TILE = 32
_STRATEGIES: dict[object, ShardStrategy] = {strategy.memory_layout: strategy for strategy in ShardStrategy}

GridLike: TypeAlias = (
    CoreGrid | CoreRangeSet | memory.CoreGrid | memory.CoreRangeSet | Sequence[CoreGrid | memory.CoreGrid]
)
Orientation: TypeAlias = enums.ShardOrientation | ShardOrientation | str


def create_sharded_memory_config(
    shape: Iterable[int],
    core_grid: GridLike,
    strategy: enums.ShardStrategy | ShardStrategy | str,
    orientation: Orientation | None = None,
    use_height_and_width_as_shard_shape: bool = False,
) -> MemoryConfig:
    """Return the L1 config that cuts `shape` evenly over `core_grid` by `strategy`, in `orientation`, or raise.

    With `use_height_and_width_as_shard_shape` the last two extents are the shard shape, swapped for col_major.

    >>> from tilewright.ttnn import CoreGrid, ShardStrategy
    >>> create_sharded_memory_config((64, 64), CoreGrid(y=2, x=2), ShardStrategy.BLOCK).shard_spec.shape
    [32, 32]
    """
    extents = _validate_shape(shape)
    cores, is_grid = _cores_of_grid(core_grid)
    how, order = ShardStrategy.of(strategy), ShardOrientation.of(orientation or "row_major")
    if use_height_and_width_as_shard_shape:
        return _build_config(how, cores, _shard_shape_of(extents, order), order)
    if not is_grid:
        raise MemoryConfigError(
            f"expected a CoreGrid to compute the shard shape for, got {cores}; pass the shard shape with"
            " use_height_and_width_as_shard_shape=True, or use create_sharded_memory_config_"
        )
    height, width = prod(extents[:-1]), extents[-1]
    down, across = how.shard_counts(cores, order)
    if height % down or width % across:
        raise MemoryConfigError(
            f"a matrix of {height} x {width} cannot be cut evenly into {down} x {across} shards; pad it to"
            f" {round_up(height, down)} x {round_up(width, across)}, or use another grid"
        )
    return _build_config(how, cores, (height // down, width // across), order)


def create_sharded_memory_config_(
    shape: Iterable[int],
    core_grid: GridLike,
    strategy: enums.ShardStrategy | ShardStrategy | enums.TensorMemoryLayout | str,
    orientation: Orientation,
    use_height_and_width_as_shard_shape: bool = False,
    tile_layout: bool = False,
) -> MemoryConfig:
    """Return the L1 config that cuts `shape` over any `core_grid` by `strategy`, in `orientation`, rounding up.

    With `use_height_and_width_as_shard_shape` the last two extents are the shard shape, swapped for col_major. With
    `tile_layout` shards must be whole tiles in at least one dimension.

    >>> from tilewright.ttnn import CoreGrid, ShardStrategy
    >>> rows = ShardOrientation.ROW_MAJOR
    >>> create_sharded_memory_config_((3, 5, 7), CoreGrid(y=2, x=4), ShardStrategy.HEIGHT, rows).shard_spec.shape
    [2, 7]
    """
    extents = _validate_shape(shape)
    cores, _ = _cores_of_grid(core_grid)
    how = _STRATEGIES.get(strategy) or ShardStrategy.of(strategy)
    order = ShardOrientation.of(orientation)
    if use_height_and_width_as_shard_shape:
        shard = _shard_shape_of(extents, order)
        if tile_layout:
            _validate_shard_tiles(shard, [round_up(n, _TILE) for n in shard])
        return _build_config(how, cores, shard, order)
    if how is ShardStrategy.BLOCK and cores.bounding_box.size != cores.num_cores:
        raise MemoryConfigError(
            f"block sharding needs a full rectangle of cores, but {cores} has only {cores.num_cores} of the"
            f" {cores.bounding_box.size} cores in its bounding box {cores.bounding_box}"
        )
    height, width = prod(extents[:-1]), extents[-1]
    down, across = how.shard_counts(cores, order)
    if tile_layout and how is ShardStrategy.BLOCK:
        height = round_up(height, down * _TILE)
    shard = (ceil_div(height, down), ceil_div(width, across))
    if tile_layout:
        _validate_shard_tiles(shard, [round_up(height, down * _TILE), round_up(width, across * _TILE)])
    return _build_config(how, cores, shard, order)


def _validate_shard_tiles(shard: tuple[int, int], padded_shape: list[int]) -> None:
    """Raise unless a shard is a whole number of tiles in at least one dimension, which is enough for ttnn."""
    if shard[0] % _TILE and shard[1] % _TILE:
        raise MemoryConfigError(
            f"shard shape {shard[0]} x {shard[1]} is not a multiple of {_TILE} in either dimension; pad the tensor to"
            f" {padded_shape[0]} x {padded_shape[1]}"
        )


def _validate_shape(shape: Any) -> tuple[int, ...]:
    try:
        extents = tuple([index(n) for n in shape])
    except TypeError:
        remedy = f"; write ({', '.join(shape.split('x'))})" if isinstance(shape, str) and "x" in shape else ""
        raise MemoryConfigError(f"expected a shape of integers such as (64, 32), got {shape!r}{remedy}") from None
    if len(extents) < 2:
        raise MemoryConfigError(f"expected a shape of rank 2 or more, got {list(extents)}")
    if min(extents) < 1:
        raise MemoryConfigError(f"expected extents of at least 1 to be cut into shards, got {list(extents)}")
    return extents


def _cores_of_grid(core_grid: GridLike) -> tuple[memory.CoreRangeSet, bool]:
    """Return the cores of `core_grid`, and whether it is a single `CoreGrid`."""
    grid = unwrap(core_grid)
    if isinstance(grid, memory.CoreGrid):
        return grid.ranges, True
    if isinstance(grid, memory.CoreRangeSet):
        return grid, False
    parts = [unwrap(part) for part in grid] if isinstance(grid, (tuple, list)) else []
    if len(parts) == 2 and all(isinstance(part, memory.CoreGrid) for part in parts):
        main, extra = parts
        row = CoreRange((0, main.y), (extra.x - 1, main.y))
        return memory.CoreRangeSet([*main.ranges, row]), False
    raise MemoryConfigError(
        f"expected a CoreGrid, a CoreRangeSet, or a pair of CoreGrids (a grid and one more row), got {grid!r}"
    )


def _shard_shape_of(extents: tuple[int, ...], order: ShardOrientation) -> tuple[int, int]:
    height, width = extents[-2:]
    if order is ShardOrientation.ROW_MAJOR:
        return height, width
    if height != width:
        warnings.warn(
            f"col_major swaps the shard shape: ({height}, {width}) becomes ({width}, {height}), as ttnn does",
            stacklevel=3,
        )
    return width, height


def _build_config(
    strategy: ShardStrategy, cores: memory.CoreRangeSet, shard: tuple[int, int], order: ShardOrientation
) -> MemoryConfig:
    return MemoryConfig(strategy.memory_layout, "l1", memory.ShardSpec(cores, shard, order))


def create_dram_sharded_mem_config(k: int, n: int, mesh_device: OpenDevice) -> MemoryConfig:
    """Return the memory config of models for a weight of `k` x `n` on each device: its width cut over the DRAM banks.

    ttnn itself does not have it; models define it, with these arguments or as a method that knows the device.

    Args:
        k, n: the height and the width of the weight on one device.
        mesh_device: the device, or the mesh of devices, whose DRAM banks take a whole number of tiles each.

    >>> from tilewright.ttnn import manage_device
    >>> with manage_device() as device:
    ...     create_dram_sharded_mem_config(4096, 6144, device).shard_spec.shape
    [4096, 512]
    """
    banks = mesh_device.dram_grid_size().x
    shards = memory.ShardSpec(memory.CoreRangeSet.of((banks, 1)), (k, ceil_div(n, _TILE * banks) * _TILE))
    return MemoryConfig(enums.TensorMemoryLayout.WIDTH_SHARDED, enums.BufferType.DRAM, shards)
