# SPDX-License-Identifier: Apache-2.0
"""Shards and memory configs under ttnn's names, printed as ttnn prints them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from .. import memory
from .._json import parse_json
from ..errors import MemoryConfigError, TilewrightError
from ..notation.ttnn_json import memory_config_from_json
from ..notation.ttnn_writer import ttnn_text
from ..showing import Shown
from .cores import CoreRangeSet, CoresLike, range_fields, to_json
from .enums import (
    BufferType,
    BufferTypeLike,
    DistributionLike,
    MemoryLayoutLike,
    OrientationLike,
    ShardDistributionStrategy,
    ShardOrientation,
    TensorMemoryLayout,
)
from .strict_rules import check_memory
from .wrapper import Wrapper, unwrap

_Shards = TypeVar("_Shards", memory.ShardSpec, memory.NdShardSpec)


class ShardCores(Wrapper[_Shards]):
    """The cores of a shard spec, and the order in which shards visit them.

    >>> issubclass(ShardSpec, ShardCores), issubclass(NdShardSpec, ShardCores)
    (True, True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return ttnn_text(self.plain)

    __str__ = __repr__

    @property
    def grid(self) -> CoreRangeSet:
        """Return the cores.

        >>> ShardSpec((4, 2), [32, 64]).grid.num_cores()
        8
        """
        return CoreRangeSet.wrap(self.plain.grid)

    @property
    def orientation(self) -> ShardOrientation:
        """Return the order in which shards visit cores.

        >>> ShardSpec((4, 2), (32, 64)).orientation
        ShardOrientation.ROW_MAJOR
        """
        return ShardOrientation.of(self.plain.orientation)

    def num_cores(self) -> int:
        """Return the number of cores.

        >>> NdShardSpec([1, 32], (4, 2)).num_cores()
        8
        """
        return self.plain.grid.num_cores


class ShardSpec(ShardCores[memory.ShardSpec]):
    """Shards of `shard_shape` (height, width), dealt to the cores of `grid` in `shard_orientation`.

    >>> ShardSpec((4, 2), [32, 64], ShardOrientation.ROW_MAJOR).num_cores()
    8
    """

    __slots__ = ()

    def __init__(
        self,
        grid: CoresLike,
        shard_shape: Iterable[int],
        shard_orientation: OrientationLike = ShardOrientation.ROW_MAJOR,
    ) -> None:
        self.plain = memory.ShardSpec(unwrap(grid), shard_shape, memory.ShardOrientation.of(shard_orientation))

    @property
    def shape(self) -> list[int]:
        """Return the height and width of a shard.

        >>> ShardSpec((4, 2), (32, 64)).shape
        [32, 64]
        """
        return list(self.plain.shape)

    def to_json(self) -> str:
        """Return the shards as JSON.

        >>> ShardSpec((1, 1), [32, 64]).to_json()
        '{"grid":[{"end":{"x":0,"y":0},"start":{"x":0,"y":0}}],"orientation":0,"shape":[32,64]}'
        """
        return to_json(shard_fields(self.plain))


class NdShardSpec(ShardCores[memory.NdShardSpec]):
    """Shards of `shard_shape`, of any rank, dealt to the cores of `grid` in `orientation`.

    `shard_distribution_strategy` says how they are dealt: round robin, or as a grid.

    >>> NdShardSpec([1, 32, 64], (4, 2)).shard_shape
    [1, 32, 64]
    """

    __slots__ = ()

    def __init__(
        self,
        shard_shape: Iterable[int],
        grid: CoresLike,
        orientation: OrientationLike = ShardOrientation.ROW_MAJOR,
        shard_distribution_strategy: DistributionLike = ShardDistributionStrategy.ROUND_ROBIN_1D,
    ) -> None:
        order = memory.ShardOrientation.of(orientation)
        distribution = memory.ShardDistribution.of(shard_distribution_strategy)
        self.plain = memory.NdShardSpec(shard_shape, unwrap(grid), order, distribution)

    @property
    def shard_shape(self) -> list[int]:
        """Return the extents of a shard.

        >>> NdShardSpec([1, 32], (4, 2)).shard_shape
        [1, 32]
        """
        return list(self.plain.shape)

    @property
    def shard_distribution_strategy(self) -> ShardDistributionStrategy:
        """Return how shards are dealt to cores.

        >>> NdShardSpec([1, 32], (4, 2)).shard_distribution_strategy
        ShardDistributionStrategy.ROUND_ROBIN_1D
        """
        return ShardDistributionStrategy.of(self.plain.distribution)

    def to_json(self) -> str:
        """Return the shards as JSON, with the shape, in whose place ttnn writes an error text.

        >>> NdShardSpec([1, 32], (1, 1)).to_json()[-21:]
        '"shard_shape":[1,32]}'
        """
        return to_json(shard_fields(self.plain))


def shard_fields(shards: memory.ShardSpec | memory.NdShardSpec) -> dict[str, Any]:
    """Return shards as ttnn writes them in JSON.

    >>> shard_fields(memory.NdShardSpec([1, 32], (1, 1)))["shard_shape"]
    [1, 32]
    """
    fields: dict[str, Any] = {"grid": list(map(range_fields, shards.grid)), "orientation": shards.orientation.value}
    if isinstance(shards, memory.ShardSpec):
        return fields | {"shape": list(shards.shape)}
    strategy = shards.distribution.value
    return fields | {"shard_shape": list(shards.shape), "shard_distribution_strategy": strategy}


_BUFFER_TYPES = (BufferType, memory.BufferType)


class MemoryConfig(Wrapper[memory.MemoryConfig], Shown):
    """The memory of a tensor: `memory_layout`, `buffer_type`, and `shard_spec` or `nd_shard_spec` for its shards.

    The form `MemoryConfig(buffer_type, nd_shard_spec)` is accepted, too.

    >>> MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1).is_sharded()
    False
    >>> MemoryConfig(BufferType.L1, NdShardSpec([32, 32], (2, 2))).memory_layout
    TensorMemoryLayout.ND_SHARDED
    """

    __slots__ = ()

    def __init__(
        self,
        memory_layout: MemoryLayoutLike | BufferTypeLike = TensorMemoryLayout.INTERLEAVED,
        buffer_type: BufferTypeLike | NdShardSpec = BufferType.DRAM,
        shard_spec: ShardSpec | memory.ShardSpec | None = None,
        nd_shard_spec: NdShardSpec | memory.NdShardSpec | None = None,
    ) -> None:
        if isinstance(memory_layout, _BUFFER_TYPES) or isinstance(buffer_type, NdShardSpec):
            shards = buffer_type if nd_shard_spec is None else nd_shard_spec
            if not (isinstance(memory_layout, _BUFFER_TYPES) and isinstance(shards, (NdShardSpec, memory.NdShardSpec))):
                raise MemoryConfigError(
                    f"expected MemoryConfig(buffer_type, nd_shard_spec), got {memory_layout!r} and {shards!r}; for"
                    " interleaved memory use MemoryConfig(buffer_type=...)"
                )
            buffer_type, nd_shard_spec = memory_layout, shards
            memory_layout = TensorMemoryLayout.ND_SHARDED
        elif nd_shard_spec is not None:
            memory_layout = TensorMemoryLayout.ND_SHARDED
        self.plain = memory.MemoryConfig(
            memory.TensorMemoryLayout.of(memory_layout),
            memory.BufferType.of(buffer_type),
            unwrap(shard_spec),
            unwrap(nd_shard_spec),
        )
        check_memory(self.plain)

    @property
    def memory_layout(self) -> TensorMemoryLayout:
        """Return the memory layout: interleaved, or how it is sharded.

        >>> MemoryConfig().memory_layout
        TensorMemoryLayout.INTERLEAVED
        """
        return TensorMemoryLayout.of(self.plain.memory_layout)

    @property
    def buffer_type(self) -> BufferType:
        """Return the type of memory: DRAM, L1, ...

        >>> MemoryConfig().buffer_type
        BufferType.DRAM
        """
        return BufferType.of(self.plain.buffer_type)

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

    def to_json(self) -> str:
        """Return the config as JSON, which `from_json` reads.

        >>> MemoryConfig().to_json()
        '{"buffer_type":0,"created_with_nd_shard_spec":false,"memory_layout":0,"per_core_allocation":false}'
        """
        config = self.plain
        fields: dict[str, Any] = {
            "buffer_type": config.buffer_type.value,
            "created_with_nd_shard_spec": config.made_with_nd,
            "memory_layout": config.memory_layout.value,
            "per_core_allocation": False,
        }
        shards = {"shard_spec": config.shard_spec, "nd_shard_spec": config.nd_shard_spec}
        return to_json(fields | {name: shard_fields(part) for name, part in shards.items() if part is not None})

    @classmethod
    def from_json(cls, json_string: str) -> MemoryConfig:
        """Return the config that `to_json` wrote as `json_string`.

        >>> MemoryConfig.from_json(L1_MEMORY_CONFIG.to_json()) == L1_MEMORY_CONFIG
        True
        """
        try:
            config = memory_config_from_json(parse_json(json_string, "a memory config"))
        except TilewrightError as problem:
            raise MemoryConfigError(
                f"expected a memory config as to_json() writes it, got {json_string!r:.60}: {problem}"
            ) from None
        return cls.wrap(config)

    def __repr__(self) -> str:
        return ttnn_text(self.plain)

    __str__ = __repr__


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1)
L1_HEIGHT_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
L1_WIDTH_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1)
L1_BLOCK_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1)
