# SPDX-License-Identifier: Apache-2.0
"""`Paging`: how pages are distributed over cores, for interleaved and for all kinds of sharded memory.

Pages are cut into shards, and shards are distributed over cores. Interleaved memory has shards of one page, distributed
round-robin over all banks. Each step is a layout:

    widen   page -> page in a grid that is extended to whole shards
    cut     page in that grid -> slot: pages counted shard by shard (a partial shard at the edge has empty slots)
    deal    slot -> position of the core in the list of cores, and address
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, TypeAlias

import numpy as np

from ..errors import MemoryConfigError
from ..layout import Axis, Layout, LayoutLike, addr, compose, left_inverse
from ..layout.tuples import ceil_div
from .cores import CoreCoord, CoreRange
from .memory_config import NdShardSpec, ShardDistribution, ShardOrientation

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@dataclass(frozen=True)
class Paging:
    """A `grid` of pages, cut into shards that are distributed over `cores`, round-robin or in runs (`in_runs`).

    >>> four = tuple(CoreRange((0, 0), (1, 1)).cores())
    >>> Paging(grid=(4, 4), shard=(2, 2), cores=four).slots(6)  # page 6 is in shard 1, at its row 1, column 0
    6
    """

    grid: tuple[int, ...]
    shard: tuple[int, ...]
    cores: tuple[CoreCoord, ...]
    in_runs: bool = False

    @property
    def num_pages(self) -> int:
        """Return the number of pages.

        >>> Paging((4, 4), (2, 2), (CoreCoord(0, 0),)).num_pages
        16
        """
        return prod(self.grid)

    @property
    def shard_pages(self) -> int:
        """Return the number of pages of a complete shard.

        >>> Paging((4, 4), (2, 3), (CoreCoord(0, 0),)).shard_pages
        6
        """
        return prod(self.shard)

    @cached_property
    def shards(self) -> tuple[int, ...]:
        """Return the number of shards along each dimension; those at an edge may be partial.

        >>> Paging((4, 4), (2, 3), (CoreCoord(0, 0),)).shards
        (2, 2)
        """
        return tuple([ceil_div(n, s) for n, s in zip(self.grid, self.shard, strict=True)])

    @property
    def num_shards(self) -> int:
        """Return the number of shards.

        >>> Paging((4, 4), (2, 3), (CoreCoord(0, 0),)).num_shards
        4
        """
        return prod(self.shards)

    @property
    def shards_per_core(self) -> int:
        """Return the largest number of shards of a core.

        >>> Paging((4, 4), (2, 2), tuple(CoreRange((0, 0), (2, 0)).cores())).shards_per_core
        2
        """
        return ceil_div(self.num_shards, len(self.cores))

    # In these layouts, modes are innermost first, so that an index counts pages row by row.

    @cached_property
    def widen(self) -> Layout:
        """Return the layout from a page to the same page in a grid that is extended to whole shards.

        >>> print(Paging((4, 4), (2, 3), (CoreCoord(0, 0),)).widen)
        (4,4):(1,6)
        """
        whole = [n * s for n, s in zip(self.shards, self.shard, strict=True)]
        return Layout(tuple(reversed(self.grid)), tuple(_row_major_steps(whole)))

    @cached_property
    def cut(self) -> Layout:
        """Return the layout from a page in the extended grid to its slot.

        >>> print(Paging((4, 4), (2, 3), (CoreCoord(0, 0),)).cut)
        ((3,2),(2,2)):((1,6),(3,12))
        """
        inside, across = (
            _row_major_steps(self.shard),
            [step * self.shard_pages for step in _row_major_steps(self.shards)],
        )
        extents = tuple(zip(reversed(self.shard), reversed(self.shards), strict=True))
        return Layout(extents, tuple(zip(inside, across, strict=True)))

    @cached_property
    def slots(self) -> LayoutLike:
        """Return the layout from a page to its slot.

        >>> [Paging((4, 4), (2, 2), (CoreCoord(0, 0),)).slots(page) for page in (0, 1, 2, 4)]
        [0, 1, 4, 2]
        """
        slots: LayoutLike = compose(self.cut, self.widen)
        return slots

    def deal(self, page_bytes: int, axis: Axis) -> Layout:
        """Return the layout from slots to the position of a core along `axis`, and address, with pages of `page_bytes`.

        >>> from tilewright import core
        >>> print(Paging((4, 4), (2, 2), tuple(CoreRange((0, 0), (1, 0)).cores())).deal(2048, core))
        (4,2,2):(2048@addr,1@core,8192@addr)
        """
        rounds, cores = max(1, self.shards_per_core), len(self.cores)
        shard = self.shard_pages * page_bytes @ addr
        if self.in_runs:
            return Layout((self.shard_pages, rounds, cores), (page_bytes @ addr, shard, 1 @ axis))
        return Layout((self.shard_pages, cores, rounds), (page_bytes @ addr, 1 @ axis, shard))

    def shard_table(self) -> tuple[Integers, Integers]:
        """Return the shard of every page and its position in the shard, as arrays.

        >>> shard, inside = Paging((2, 4), (2, 2), (CoreCoord(0, 0),)).shard_table()
        >>> shard.tolist(), inside.tolist()
        ([0, 0, 1, 1, 0, 0, 1, 1], [0, 1, 0, 1, 2, 3, 2, 3])
        """
        shard, inside = np.zeros((), dtype=np.int64), np.zeros((), dtype=np.int64)
        for mode, extent in zip(reversed(self.cut.modes), self.grid, strict=True):
            # a single dimension never carries from the position in a shard to the number of the shard
            across, within = np.divmod(mode(np.arange(extent, dtype=np.int64)), self.shard_pages)
            shard, inside = shard[..., None] + across, inside[..., None] + within
        return shard.reshape(-1), inside.reshape(-1)

    @cached_property
    def _inverse_cut(self) -> LayoutLike:
        inverse: LayoutLike = left_inverse(self.cut)
        return inverse

    def page_at(self, slot: int) -> int | None:
        """Return the page in a slot; None if the slot is empty.

        >>> edge = Paging((1, 4), (1, 3), (CoreCoord(0, 0),))
        >>> edge.page_at(3), edge.page_at(4)
        (3, None)
        """
        if not 0 <= slot < self.num_shards * self.shard_pages:
            return None
        index, page, step = self._inverse_cut(slot), 0, 1
        for extent, shards, pages in zip(reversed(self.grid), reversed(self.shards), reversed(self.shard), strict=True):
            index, digit = divmod(index, shards * pages)
            if digit >= extent:
                return None
            page += digit * step
            step *= extent
        return int(page)


def _row_major_steps(extents: Sequence[int]) -> list[int]:
    """Return the step of each dimension in row-major order, innermost first."""
    return list(accumulate([1, *reversed(extents)][:-1], mul))


def interleaved_paging(num_pages: int, cores: tuple[CoreCoord, ...]) -> Paging:
    """Return the paging of interleaved memory: single pages, distributed round-robin over all banks.

    >>> interleaved_paging(100, tuple(CoreRange((0, 0), (11, 0)).cores())).shards_per_core
    9
    """
    return Paging((num_pages,), (1,), cores)


def sharded_paging(shape: tuple[int, ...], sharding: NdShardSpec, page: tuple[int, int]) -> Paging:
    """Return the paging of a tensor of this padded shape in shards, with pages of (rows, columns) elements.

    >>> paging = sharded_paging((128, 128), NdShardSpec((64, 64), (2, 2)), (32, 32))
    >>> paging.grid, paging.shard, len(paging.cores)
    ((4, 4), (2, 2), 4)
    """
    grid, shard = _page_counts(shape, page), _page_counts(sharding.shape, page)
    if len(shard) > len(grid):
        raise MemoryConfigError(
            f"shard shape {list(sharding.shape)} has rank {len(shard)}, but tensor shape {list(shape)} has rank"
            f" {len(grid)}; use a shard shape of rank {len(grid)} or less"
        )
    cores = _shard_cores(grid, shard, sharding)
    extra = len(grid) - len(shard)
    grid = (prod(grid[: extra + 1]), *grid[extra + 1 :])
    in_runs = sharding.distribution is ShardDistribution.CONTIGUOUS_1D
    paging = Paging(grid, shard, tuple(cores), in_runs)
    if in_runs and paging.num_shards % len(cores):
        raise MemoryConfigError(
            f"contiguous_1d needs the same number of shards per core, got {paging.num_shards} shards on {len(cores)}"
            f" cores; use round_robin_1d, or a number of cores that divides {paging.num_shards}"
        )
    return paging


def _page_counts(extents: tuple[int, ...], page: tuple[int, int]) -> tuple[int, ...]:
    """Return the number of pages along each dimension."""
    units = ([1] * len(extents) + list(page))[-len(extents) :]
    return tuple([ceil_div(n, unit) for n, unit in zip(extents, units, strict=True)])


def _shard_cores(grid: tuple[int, ...], shard: tuple[int, ...], sharding: NdShardSpec) -> list[CoreCoord]:
    """Return the cores for shards, in order; of a 2-D grid of shards only those that get a shard."""
    row_wise = sharding.orientation is ShardOrientation.ROW_MAJOR
    if not sharding.grid.num_cores:
        raise MemoryConfigError("a sharded tensor needs at least one core, got an empty set")
    if sharding.distribution is not ShardDistribution.GRID_2D:
        return sharding.grid.cores(row_wise)
    if len(shard) > 2:
        raise MemoryConfigError(
            f"grid_2d needs a shard shape of rank 1 or 2, got {list(sharding.shape)}; use round_robin_1d"
        )
    if len(sharding.grid) != 1:
        raise MemoryConfigError(
            f"grid_2d needs a single range of cores, got {len(sharding.grid)} ranges {sharding.grid}; use their"
            f" bounding box {sharding.grid.bounding_box}"
        )
    box = sharding.grid.ranges[0]
    across = max(1, ceil_div(grid[-1], shard[-1]))
    down = max(1, ceil_div(prod(grid[:-1]), shard[-2] if len(shard) > 1 else 1))
    if not row_wise:
        across, down = down, across
    if across > box.width or down > box.height:
        note = "" if row_wise else " (swapped, since the orientation is col_major)"
        raise MemoryConfigError(
            f"{across} x {down} shards{note} do not fit {box.width} x {box.height} cores {box}; use larger shards, or"
            f" at least {across} columns and {down} rows of cores"
        )
    return CoreRange(box.start, (box.start.x + across - 1, box.start.y + down - 1)).cores(row_wise)
