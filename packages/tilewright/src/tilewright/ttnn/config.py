# SPDX-License-Identifier: Apache-2.0
"""Shards and memory configs under ttnn's names, printed as ttnn prints them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import lcm
from typing import Any, TypeAlias, TypeVar

from .. import memory, tensor
from .._dialect import unwrap
from .._integers import round_up
from .._json import parse_json
from ..display import Drawable
from ..errors import MemoryConfigError, TilewrightError
from ..memory import ROW_BYTES, Sharding, as_spec
from .strict_rules import check_memory, check_shape, check_spec, check_tile
from .text import memory_config_from_json
from .types import (
    BufferType,
    BufferTypeLike,
    CoreRangeSet,
    CoresLike,
    DataType,
    DataTypeLike,
    DistributionLike,
    JsonWrapper,
    Layout,
    LayoutLike,
    MemoryLayoutLike,
    OrientationLike,
    ShardDistributionStrategy,
    ShardOrientation,
    ShardShapeAlignment,
    TensorMemoryLayout,
    Wrapper,
    bind_by_type,
)

__all__ = [
    "DRAM_MEMORY_CONFIG", "L1_BLOCK_SHARDED_MEMORY_CONFIG", "L1_HEIGHT_SHARDED_MEMORY_CONFIG", "L1_MEMORY_CONFIG",
    "L1_WIDTH_SHARDED_MEMORY_CONFIG", "MemoryConfig", "NdShardSpec", "Shape", "ShardSpec", "TensorSpec", "Tile",
]  # fmt: skip

_Shards = TypeVar("_Shards", memory.ShardSpec, memory.NdShardSpec)


class ShardCores(JsonWrapper[_Shards]):
    """The cores of a shard spec, and the order in which shards visit them.

    >>> issubclass(ShardSpec, ShardCores), issubclass(NdShardSpec, ShardCores)
    (True, True)
    """

    __slots__ = ()

    @property
    def grid(self) -> CoreRangeSet:
        """The cores.

        >>> ShardSpec((4, 2), [32, 64]).grid.num_cores()
        8
        """
        return CoreRangeSet.wrap(self.native.grid)

    @property
    def orientation(self) -> ShardOrientation:
        """The order in which shards visit cores.

        >>> ShardSpec((4, 2), (32, 64)).orientation
        ShardOrientation.ROW_MAJOR
        """
        return ShardOrientation.of(self.native.orientation)

    def num_cores(self) -> int:
        """Return the number of cores.

        >>> NdShardSpec([1, 32], (4, 2)).num_cores()
        8
        """
        return self.native.grid.num_cores


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
        self.native = memory.ShardSpec(unwrap(grid), shard_shape, memory.ShardOrientation.of(shard_orientation))

    @property
    def shape(self) -> list[int]:
        """The height and width of a shard.

        >>> ShardSpec((4, 2), (32, 64)).shape
        [32, 64]
        """
        return list(self.native.shape)


class NdShardSpec(ShardCores[memory.NdShardSpec]):
    """Shards of `shard_shape`, of any rank, dealt to the cores of `grid` in `orientation`.

    `shard_distribution_strategy` is their distribution: round robin, or as a grid. Their JSON has the shape, in whose
    place ttnn writes an error text.

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
        self.native = memory.NdShardSpec(shard_shape, unwrap(grid), order, distribution)

    @property
    def shard_shape(self) -> list[int]:
        """The extents of a shard.

        >>> NdShardSpec([1, 32], (4, 2)).shard_shape
        [1, 32]
        """
        return list(self.native.shape)

    @property
    def shard_distribution_strategy(self) -> ShardDistributionStrategy:
        """The distribution of shards over cores.

        >>> NdShardSpec([1, 32], (4, 2)).shard_distribution_strategy
        ShardDistributionStrategy.ROUND_ROBIN_1D
        """
        return ShardDistributionStrategy.of(self.native.distribution)


_BUFFER_TYPES = (BufferType, memory.BufferType)


class MemoryConfig(JsonWrapper[memory.MemoryConfig], Drawable):
    """The memory of a tensor: `memory_layout`, `buffer_type`, and `shard_spec` or `nd_shard_spec` for its shards.

    The form `MemoryConfig(buffer_type, nd_shard_spec)` is also accepted.

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
        self.native = memory.MemoryConfig(
            memory.TensorMemoryLayout.of(memory_layout),
            memory.BufferType.of(buffer_type),
            unwrap(shard_spec),
            unwrap(nd_shard_spec),
        )
        check_memory(self.native)

    @property
    def memory_layout(self) -> TensorMemoryLayout:
        """The memory layout: interleaved, or how it is sharded.

        >>> MemoryConfig().memory_layout
        TensorMemoryLayout.INTERLEAVED
        """
        return TensorMemoryLayout.of(self.native.memory_layout)

    @property
    def buffer_type(self) -> BufferType:
        """The type of memory: DRAM, L1, ...

        >>> MemoryConfig().buffer_type
        BufferType.DRAM
        """
        return BufferType.of(self.native.buffer_type)

    @property
    def shard_spec(self) -> ShardSpec | None:
        """The two-dimensional shard spec, or None.

        >>> MemoryConfig().shard_spec is None
        True
        """
        return None if self.native.shard_spec is None else ShardSpec.wrap(self.native.shard_spec)

    @property
    def nd_shard_spec(self) -> NdShardSpec | None:
        """The shard spec of any rank, or None.

        >>> MemoryConfig().nd_shard_spec is None
        True
        """
        return None if self.native.nd_shard_spec is None else NdShardSpec.wrap(self.native.nd_shard_spec)

    @property
    def interleaved(self) -> bool:
        """Whether pages are dealt to all banks in turn, not sharded.

        >>> MemoryConfig().interleaved
        True
        """
        return not self.native.is_sharded

    def is_sharded(self) -> bool:
        """Return whether the memory is sharded.

        >>> MemoryConfig().is_sharded()
        False
        """
        return self.native.is_sharded

    def experimental_set_per_core_allocation(self, enable: bool) -> None:
        """Allocate each core's shard on its own, at an address of its own, or as before: whether to `enable` it.

        >>> config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec((4, 1), [32, 64]))
        >>> config.experimental_set_per_core_allocation(True)
        >>> config.native.allocation
        AllocationMode.PER_CORE
        """
        self._set_allocation(memory.AllocationMode.PER_CORE, enable)

    def experimental_set_range_lockstep_allocation(self, enable: bool) -> None:
        """Let other cores have something else at the address of the shards, or not: whether to `enable` it.

        >>> config = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, ShardSpec((4, 1), [32, 64]))
        >>> config.experimental_set_range_lockstep_allocation(True)
        >>> config.native.allocation
        AllocationMode.RANGE_LOCKSTEP
        """
        self._set_allocation(memory.AllocationMode.RANGE_LOCKSTEP, enable)

    def _set_allocation(self, mode: memory.AllocationMode, enable: bool) -> None:
        pairs = zip(self.native.allocation.flags, mode.flags, strict=True)
        flags = [enable if chosen else on for on, chosen in pairs]
        self.native = replace(self.native, allocation=memory.AllocationMode.of_flags(*flags))

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


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.INTERLEAVED, BufferType.L1)
L1_HEIGHT_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
L1_WIDTH_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1)
L1_BLOCK_SHARDED_MEMORY_CONFIG = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1)


# `Shape`, `Tile` and `TensorSpec` of ttnn, and the properties that tensors and their specs share.

_Native = TypeVar("_Native", memory.TensorSpec, tensor.Tensor)


class Shape(memory.Shape):
    """A logical shape together with its padded shape; it compares and indexes as the logical shape.

    >>> print(Shape([16, 32]))
    ttnn.Shape([16, 32])
    >>> print(Shape([14, 28], [32, 32]))
    ttnn.Shape([14[32], 28[32]])
    >>> Shape([14, 28], [32, 32]), Shape([14, 28], [32, 32]) == Shape([14, 28])
    (Shape([14, 28]), True)
    """

    __slots__ = ()

    def __init__(self, logical: Iterable[int], padded: Iterable[int] | None = None) -> None:
        super().__init__(logical, padded)
        check_shape(self.logical)

    def __eq__(self, other: object) -> bool:
        return self.logical == other.logical if isinstance(other, memory.Shape) else super().__eq__(other)

    __hash__ = memory.Shape.__hash__

    def __repr__(self) -> str:
        return f"Shape({list(self.logical)})"

    def __str__(self) -> str:
        return f"ttnn.Shape({super().__str__()})"


class Tile(Wrapper[memory.Tile]):
    """A tile of `tile_shape`, one of the twelve supported; `transpose_tile` stores it transposed.

    >>> Tile((16, 32)).num_faces, Tile((16, 32)).face_shape, Tile((16, 32)).get_tile_size(DataType.BFLOAT8_B)
    (2, [16, 16], 544)
    """

    __slots__ = ()

    def __init__(self, tile_shape: Iterable[int] = (32, 32), transpose_tile: bool = False) -> None:
        extents: Any = tile_shape
        if hasattr(extents, "__iter__") and not isinstance(extents, str):
            extents = tuple(extents)
        self.native = memory.Tile(extents, transpose_tile).require_on_chips()
        check_tile(self.native)

    @property
    def tile_shape(self) -> list[int]:
        """The height and width.

        >>> Tile((8, 32)).tile_shape
        [8, 32]
        """
        return list(self.native.shape)

    @property
    def face_shape(self) -> list[int]:
        """The height and width of a face.

        >>> Tile((8, 32)).face_shape
        [8, 16]
        """
        return list(self.native.face_shape)

    @property
    def num_faces(self) -> int:
        """The number of faces.

        >>> Tile((8, 32)).num_faces
        2
        """
        return self.native.num_faces

    @property
    def narrow_tile(self) -> bool:
        """Whether the tile is less than 32 wide.

        >>> Tile((32, 16)).narrow_tile
        True
        """
        return self.native.width < 32

    @property
    def partial_face(self) -> bool:
        """Whether the tile is less than 32 high.

        >>> Tile((16, 32)).partial_face
        True
        """
        return self.native.height < 32

    @property
    def transpose_within_face(self) -> bool:
        """Whether the elements of a face are in column-major order.

        >>> Tile((32, 32), transpose_tile=True).transpose_within_face
        True
        """
        return self.native.transpose

    @property
    def transpose_of_faces(self) -> bool:
        """Whether the faces of the tile are in column-major order.

        >>> Tile((32, 32)).transpose_of_faces
        False
        """
        return self.native.transpose

    def get_tile_size(self, dtype: DataTypeLike) -> int:
        """Return the bytes of a tile of `dtype`.

        >>> Tile((32, 32)).get_tile_size(DataType.BFLOAT16)
        2048
        """
        return DataType.of(dtype).format.bytes_per_tile(self.native.elements)


class TensorProperties(Wrapper[_Native], Drawable):
    """Shape, data type, layout and tile of a spec or a tensor.

    >>> from tilewright.ttnn import Tensor, TensorSpec
    >>> issubclass(Tensor, TensorProperties), issubclass(TensorSpec, TensorProperties)
    (True, True)
    """

    __slots__ = ()

    @property
    def _native_spec(self) -> memory.TensorSpec:
        """The native spec; for a tensor on a mesh, the spec of each of its parts."""
        return as_spec(self.native)

    @property
    def shape(self) -> Shape:
        """The logical shape together with the padded shape; on a mesh, of each device's part.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, Layout.TILE).shape.padded
        (32, 32)
        """
        return Shape(self._native_spec.shape.logical, self._native_spec.padded_shape)

    @property
    def physical_shape(self) -> Shape:
        """The matrix that all dimensions but the last are folded into, padding included.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([1, 4, 6, 8], DataType.BFLOAT16, Layout.ROW_MAJOR).physical_shape
        Shape([24, 8])
        """
        return Shape(self._native_spec.physical_shape)

    @property
    def dtype(self) -> DataType:
        """The data type.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, Layout.TILE).dtype
        DataType.BFLOAT16
        """
        return DataType.of(self._native_spec.dtype)

    @property
    def layout(self) -> Layout:
        """Whether pages are rows or tiles.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, Layout.TILE).layout
        Layout.TILE
        """
        return Layout.of(self._native_spec.page_layout)

    @property
    def tile(self) -> Tile:
        """The tile.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, Layout.TILE).tile.tile_shape
        [32, 32]
        """
        return Tile.wrap(self._native_spec.tile)


TileLike: TypeAlias = Tile | Sequence[int]
PlacementArgument: TypeAlias = BufferType | TensorMemoryLayout | ShardSpec | NdShardSpec | MemoryConfig | Tile | None

_order_of = memory.ShardOrientation.of

_PLACEMENT_TYPES: dict[str, type | tuple[type, ...]] = {
    "buffer_type": (BufferType, memory.BufferType),
    "memory_layout": (TensorMemoryLayout, memory.TensorMemoryLayout),
    "shard_spec": ShardSpec,
    "nd_shard_spec": NdShardSpec,
    "memory_config": MemoryConfig,
    "tile": Tile,
}


class TensorSpec(TensorProperties[memory.TensorSpec]):
    """The `shape`, data type `dtype`, layout and memory of a tensor, printed as ttnn writes it in reports.

    `placement` holds positional arguments in any order, bound by type: a `buffer_type`, a `memory_layout` with its
    `shard_spec`, or an `nd_shard_spec`, or a `memory_config` instead of these; and a `tile`. All can be keywords.

    >>> TensorSpec([64, 64], DataType.BFLOAT16, Layout.TILE, BufferType.L1).memory_config.buffer_type
    BufferType.L1
    """

    __slots__ = ()

    def __init__(
        self,
        shape: Iterable[int],
        dtype: DataTypeLike,
        layout: LayoutLike,
        *placement: PlacementArgument,
        memory_layout: TensorMemoryLayout | str | None = None,
        shard_spec: ShardSpec | None = None,
        nd_shard_spec: NdShardSpec | None = None,
        buffer_type: BufferType | str | None = None,
        memory_config: MemoryConfig | None = None,
        tile: TileLike | None = None,
    ) -> None:
        keywords: dict[str, object] = {
            "memory_layout": memory_layout,
            "shard_spec": shard_spec,
            "nd_shard_spec": nd_shard_spec,
        }
        keywords |= {"buffer_type": buffer_type, "memory_config": memory_config, "tile": tile}
        arguments = bind_by_type("ttnn.TensorSpec", _PLACEMENT_TYPES, placement, keywords)
        native_tile, config = unwrap(arguments.pop("tile", None)), arguments.pop("memory_config", None)
        if config is None:
            config = MemoryConfig(**arguments)
        elif arguments:
            raise TypeError(f"ttnn.TensorSpec got memory_config and {', '.join(arguments)}; pass one or the other")
        page_layout = memory.PageLayout.of(layout)
        self.native = memory.TensorSpec(shape, DataType.of(dtype).format, page_layout, native_tile, unwrap(config))
        check_spec(self.native, on_device=False)

    @classmethod
    def wrap(cls, value: memory.TensorSpec | TensorSpec) -> TensorSpec:
        """Return `value`, a native spec, wrapped; in strict mode it is checked.

        >>> TensorSpec.wrap(memory.TensorSpec((5, 7))).dtype
        DataType.BFLOAT16
        """
        wrapped = super().wrap(value)
        check_spec(wrapped.native, on_device=False)
        return wrapped

    @property
    def memory_config(self) -> MemoryConfig:
        """The memory config, with both forms of its shards.

        >>> TensorSpec([5, 7], DataType.BFLOAT16, Layout.TILE).memory_config.buffer_type
        BufferType.DRAM
        """
        return MemoryConfig.wrap(self.native.memory)

    # Sharding methods keep the buffer type.

    @property
    def _buffer_type(self) -> memory.BufferType:
        return self.native.memory.buffer_type

    def _with_sharding(self, sharding: memory.MemoryConfig | Sharding) -> TensorSpec:
        shards = self.native.with_memory(sharding).memory.sharding
        # ttnn derives the memory layout from the shards alone, not from the method that was called
        config = memory.MemoryConfig("nd_sharded", self._buffer_type, nd_shard_spec=shards)
        return TensorSpec.wrap(self.native.with_memory(config))

    def height_sharded(self, grid: CoresLike, orientation: OrientationLike = ShardOrientation.ROW_MAJOR) -> TensorSpec:
        """Return the spec with its height cut over the cores of `grid`, in `orientation` and whole tiles.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([128, 64], DataType.BFLOAT16, Layout.TILE)
        >>> spec.height_sharded(CoreRange((0, 0), (3, 0))).memory_config.shard_spec.shape
        [32, 64]
        """
        return self._with_sharding(memory.height_sharded(unwrap(grid), None, _order_of(orientation), self._buffer_type))

    def width_sharded(self, grid: CoresLike, orientation: OrientationLike = ShardOrientation.ROW_MAJOR) -> TensorSpec:
        """Return the spec with its width cut over the cores of `grid`, in `orientation` and whole tiles.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([64, 128], DataType.BFLOAT16, Layout.TILE)
        >>> spec.width_sharded(CoreRange((0, 0), (3, 0))).memory_config.shard_spec.shape
        [64, 32]
        """
        return self._with_sharding(memory.width_sharded(unwrap(grid), None, _order_of(orientation), self._buffer_type))

    def block_sharded(self, grid: CoresLike, orientation: OrientationLike = ShardOrientation.ROW_MAJOR) -> TensorSpec:
        """Return the spec cut in both dimensions over a rectangular `grid`, in `orientation` and whole tiles.

        The width of the shards of a row-major tensor is rounded up to a multiple of 64 bytes, as in ttnn.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([64, 128], DataType.BFLOAT16, Layout.TILE)
        >>> spec.block_sharded(CoreRange((0, 0), (1, 1))).memory_config.shard_spec.shape
        [32, 64]
        """
        return self._with_sharding(memory.block_sharded(unwrap(grid), None, _order_of(orientation), self._buffer_type))

    def sharded_across_dims(
        self, dims: int | Sequence[int], grid: CoresLike, orientation: OrientationLike = ShardOrientation.ROW_MAJOR
    ) -> TensorSpec:
        """Return the spec with one shard per index of `dims`, over the cores of `grid` in `orientation`.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([4, 64, 96], DataType.BFLOAT16, Layout.TILE)
        >>> spec.sharded_across_dims([0], CoreRange((0, 0), (3, 0))).memory_config.nd_shard_spec.shard_shape
        [1, 64, 96]
        """
        return self._with_sharding(
            memory.sharded_across_dims(dims, unwrap(grid), _order_of(orientation), self._buffer_type)
        )

    def sharded_across_dims_except(
        self, dims: int | Sequence[int], grid: CoresLike, orientation: OrientationLike = ShardOrientation.ROW_MAJOR
    ) -> TensorSpec:
        """Return the spec with one shard per index of all dimensions but `dims`, over `grid` in `orientation`.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([4, 64, 96], DataType.BFLOAT16, Layout.TILE)
        >>> spec.sharded_across_dims_except([2], CoreRange((0, 0), (3, 1))).memory_config.nd_shard_spec.shard_shape
        [1, 32, 96]
        """
        return self._with_sharding(
            memory.sharded_across_dims(dims, unwrap(grid), _order_of(orientation), self._buffer_type, all_but=True)
        )

    def sharded(
        self,
        shard_shape: Iterable[int],
        grid: CoresLike,
        shard_alignment: ShardShapeAlignment = ShardShapeAlignment.RECOMMENDED,
        orientation: OrientationLike = ShardOrientation.ROW_MAJOR,
        shard_distribution_strategy: DistributionLike = ShardDistributionStrategy.ROUND_ROBIN_1D,
    ) -> TensorSpec:
        """Return the spec in shards of `shard_shape`, rounded up to `shard_alignment`, over `grid`.

        Shards visit cores in `orientation`, distributed by `shard_distribution_strategy`.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([4, 50, 70], DataType.BFLOAT16, Layout.TILE)
        >>> spec.sharded([1, 20, 20], CoreRange((0, 0), (3, 0))).memory_config.nd_shard_spec.shard_shape
        [1, 32, 32]
        """
        shape, spec = list(shard_shape), self.native
        if shard_alignment is not ShardShapeAlignment.NONE and spec.is_tiled:
            shape[-2:] = [round_up(n, unit) for n, unit in zip(shape[-2:], spec.tile.shape[-len(shape) :], strict=True)]
        elif shard_alignment is ShardShapeAlignment.RECOMMENDED:
            size = spec.dtype.bytes_per_tile(1)
            shape[-1] = round_up(shape[-1], lcm(ROW_BYTES, size) // size)
        config = memory.nd_sharded(
            shape,
            unwrap(grid),
            memory.ShardOrientation.of(orientation),
            memory.ShardDistribution.of(shard_distribution_strategy),
            self._buffer_type,
        )
        return TensorSpec.wrap(spec.with_memory(config))
