# SPDX-License-Identifier: Apache-2.0
"""`MemoryConfig` and the two forms of a shard specification: for matrices, and for tensors of any rank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

from ..errors import MemoryConfigError
from ..layout.tuples import ceil_div
from ..layout.validation import as_integer
from .cores import CoreRangeSet
from .kinds import BufferType, ShardDistribution, ShardOrientation, TensorMemoryLayout


@dataclass(frozen=True, init=False, repr=False)
class ShardSpec:
    """Shards of height x width elements of the folded matrix, over a set of cores.

    >>> ShardSpec((2, 2), [64, 32])
    ShardSpec(CoreRangeSet([CoreRange((0, 0), (1, 1))]), (64, 32), 'row_major')
    """

    grid: CoreRangeSet
    shape: tuple[int, int]
    orientation: ShardOrientation

    def __init__(self, grid: Any, shape: Any, orientation: Any = "row_major") -> None:
        extents = shard_extents(shape)
        if len(extents) != 2:
            raise MemoryConfigError(
                f"a shard of a matrix is (height, width), got {list(extents)}; NdShardSpec takes other ranks"
            )
        object.__setattr__(self, "grid", CoreRangeSet.of(grid))
        object.__setattr__(self, "shape", extents)
        object.__setattr__(self, "orientation", ShardOrientation.of(orientation))

    def __repr__(self) -> str:
        return f"ShardSpec({self.grid!r}, {self.shape}, {self.orientation.name.lower()!r})"


@dataclass(frozen=True, init=False, repr=False)
class NdShardSpec:
    """Shards of any rank, over a set of cores, and how they are dealt to them.

    >>> NdShardSpec([1, 64, 32], (2, 2)).distribution
    ShardDistribution.ROUND_ROBIN_1D
    """

    shape: tuple[int, ...]
    grid: CoreRangeSet
    orientation: ShardOrientation
    distribution: ShardDistribution

    def __init__(
        self, shape: Any, grid: Any, orientation: Any = "row_major", distribution: Any = "round_robin_1d"
    ) -> None:
        object.__setattr__(self, "shape", shard_extents(shape))
        object.__setattr__(self, "grid", CoreRangeSet.of(grid))
        object.__setattr__(self, "orientation", ShardOrientation.of(orientation))
        object.__setattr__(self, "distribution", ShardDistribution.of(distribution))

    def __repr__(self) -> str:
        names = f"{self.orientation.name.lower()!r}, {self.distribution.name.lower()!r}"
        return f"NdShardSpec({self.shape}, {self.grid!r}, {names})"


def shard_extents(shape: Any) -> tuple[int, ...]:
    """Return the extents of a shard as a tuple of at least one integer.

    >>> shard_extents([64, 32])
    (64, 32)
    """
    if not isinstance(shape, Iterable) or isinstance(shape, str):
        raise MemoryConfigError(f"the shape of a shard is a list of extents, got {shape!r}")
    extents = tuple([int(as_integer(n, "a shard's extent")) for n in shape])
    if not extents:
        raise MemoryConfigError("a shard needs at least one extent, got none")
    return extents


@dataclass(frozen=True, init=False, eq=False, repr=False)
class MemoryConfig:
    """Which memory a tensor lies in, and how its pages are spread over banks or cores.

    A tensor's own config has both forms of its shards: the one that was given, which decides the placement, and the
    other as a label. Configs are equal when the same was asked for; the label does not count.

    >>> MemoryConfig("height_sharded", "l1", ShardSpec((8, 1), [32, 64])).is_sharded
    True
    >>> MemoryConfig()
    MemoryConfig('interleaved', 'dram')
    """

    memory_layout: TensorMemoryLayout
    buffer_type: BufferType
    shard_spec: ShardSpec | None
    nd_shard_spec: NdShardSpec | None
    made_with_nd: bool

    def __init__(
        self,
        memory_layout: Any = "interleaved",
        buffer_type: Any = "dram",
        shard_spec: ShardSpec | None = None,
        nd_shard_spec: NdShardSpec | None = None,
        made_with_nd: bool | None = None,
    ) -> None:
        layout = TensorMemoryLayout.of(memory_layout)
        if not layout.is_sharded and (shard_spec or nd_shard_spec):
            raise MemoryConfigError(
                f"an interleaved config has no shards, got {shard_spec or nd_shard_spec!r};"
                " leave it out, or use a sharded memory layout"
            )
        object.__setattr__(self, "memory_layout", layout)
        object.__setattr__(self, "buffer_type", BufferType.of(buffer_type))
        object.__setattr__(self, "shard_spec", shard_spec)
        object.__setattr__(self, "nd_shard_spec", nd_shard_spec)
        nd_only = nd_shard_spec is not None and shard_spec is None
        object.__setattr__(self, "made_with_nd", nd_only if made_with_nd is None else bool(made_with_nd))

    @property
    def is_sharded(self) -> bool:
        """Return whether pages are gathered in shards.

        >>> MemoryConfig().is_sharded
        False
        """
        return self.memory_layout.is_sharded

    @property
    def sharding(self) -> NdShardSpec | None:
        """Return the shards that decide the placement, in the general form; None where there are none.

        >>> MemoryConfig("block_sharded", "l1", ShardSpec((2, 2), [64, 32])).sharding.distribution
        ShardDistribution.GRID_2D
        """
        if self.made_with_nd or self.shard_spec is None:
            return self.nd_shard_spec
        given = self.shard_spec
        on_grid = self.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
        return NdShardSpec(given.shape, given.grid, given.orientation, "grid_2d" if on_grid else "round_robin_1d")

    def completed(self, padded: tuple[int, ...], matrix: tuple[int, int]) -> MemoryConfig:
        """Return the config with the form that was not given filled in, for a tensor of this padded shape and matrix.

        >>> config = MemoryConfig("nd_sharded", "l1", nd_shard_spec=NdShardSpec([1, 32, 64], (4, 2)))
        >>> config.completed((2, 64, 64), (128, 64)).memory_layout
        TensorMemoryLayout.HEIGHT_SHARDED
        """
        sharding = self.sharding
        if sharding is None:
            return self
        if self.made_with_nd:
            layout, shape = as_matrix_shards(sharding, padded, matrix)
            if shape == matrix and self.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
                layout = self.memory_layout  # one shard holds everything, and is of either kind
            label = None if shape is None else ShardSpec(sharding.grid, shape, sharding.orientation)
            return MemoryConfig(layout, self.buffer_type, label, sharding, True)
        if len(padded) == 1:
            sharding = replace_shape(sharding, sharding.shape[-1:])
        return MemoryConfig(self.memory_layout, self.buffer_type, self.shard_spec, sharding, False)

    def _key(self) -> tuple[Any, ...]:
        """Return what was asked for, without the label that `completed` works out for a tensor."""
        if self.made_with_nd:
            return (self.buffer_type, self.nd_shard_spec)
        return (self.buffer_type, self.memory_layout, self.shard_spec)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, MemoryConfig) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        parts = [repr(self.memory_layout.name.lower()), repr(self.buffer_type.name.lower())]
        if self.made_with_nd:
            parts.append(f"nd_shard_spec={self.nd_shard_spec!r}")
        elif self.shard_spec is not None:
            parts.append(repr(self.shard_spec))
        return f"MemoryConfig({', '.join(parts)})"

    def __str__(self) -> str:
        where = f"{self.memory_layout.name.lower().replace('_', ' ')} in {self.buffer_type}"
        sharding = self.sharding
        if sharding is None:
            return where
        shape = " x ".join(map(str, sharding.shape))
        count, what = sharding.grid.num_cores, "core" if self.buffer_type.is_l1 else "bank"
        return f"{where}, shards of {shape} on {count} {what}{'' if count == 1 else 's'}"


def replace_shape(sharding: NdShardSpec, shape: tuple[int, ...]) -> NdShardSpec:
    """Return the same sharding with shards of another shape.

    >>> replace_shape(NdShardSpec([64, 32], (2, 2)), (32, 32)).shape
    (32, 32)
    """
    return NdShardSpec(shape, sharding.grid, sharding.orientation, sharding.distribution)


def as_matrix_shards(
    sharding: NdShardSpec, padded: tuple[int, ...], matrix: tuple[int, int]
) -> tuple[TensorMemoryLayout, tuple[int, int] | None]:
    """Return the memory layout and shard shape of a matrix that describe shards of any rank; ND and None if none do.

    >>> as_matrix_shards(NdShardSpec([2, 32, 64], (4, 1)), (8, 32, 64), (256, 64))
    (TensorMemoryLayout.HEIGHT_SHARDED, (64, 64))
    """
    stays_nd = (TensorMemoryLayout.ND_SHARDED, None)
    height = _folded_height(sharding.shape, padded)
    if height is None or sharding.distribution is ShardDistribution.CONTIGUOUS_1D:
        return stays_nd
    shape = (height, sharding.shape[-1])
    down, across = ceil_div(matrix[0], height), ceil_div(matrix[1], shape[1])
    if sharding.orientation is ShardOrientation.COL_MAJOR:
        down, across = across, down
    if down * across > sharding.grid.num_cores:
        return stays_nd
    in_turn = sharding.distribution is ShardDistribution.ROUND_ROBIN_1D
    if in_turn and height == matrix[0]:
        return TensorMemoryLayout.WIDTH_SHARDED, shape
    if in_turn and shape[1] == matrix[1]:
        return TensorMemoryLayout.HEIGHT_SHARDED, shape
    if len(sharding.grid) != 1:
        return stays_nd
    cores = sharding.grid.ranges[0]
    if across > cores.width or down > cores.height or (in_turn and across != cores.width):
        return stays_nd
    return TensorMemoryLayout.BLOCK_SHARDED, shape


def _folded_height(shard: tuple[int, ...], padded: tuple[int, ...]) -> int | None:
    """Return the rows of the folded matrix that a shard covers, None if they are not one run of rows."""
    extent = dict(zip(range(-len(padded), 0), padded, strict=True))
    for d in range(-2, -len(shard) - 1, -1):
        if extent.get(d, 1) != shard[d]:
            whole = d == -len(shard) or extent.get(d, 1) % shard[d] == 0 or prod(padded[:d]) == 1
            return prod(shard[d:-1]) if whole and prod(shard[:d]) == 1 else None
    return prod(shard[:-1])


DRAM_MEMORY_CONFIG = MemoryConfig("interleaved", "dram")
L1_MEMORY_CONFIG = MemoryConfig("interleaved", "l1")
