# SPDX-License-Identifier: Apache-2.0
"""`Shape`, `Tile` and `TensorSpec` of ttnn, and the properties that tensors and their specs share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import lcm
from typing import Any, TypeAlias, TypeVar

from .. import memory, tensor
from .._integers import round_up
from ..memory.sharding import ROW_BYTES, Sharding
from ..memory.spec import as_spec
from ..notation.ttnn_writer import ttnn_text
from ..showing import Shown
from .cores import CoresLike
from .enums import (
    BufferType,
    DataType,
    DataTypeLike,
    DistributionLike,
    Layout,
    LayoutLike,
    OrientationLike,
    ShardDistributionStrategy,
    ShardOrientation,
    ShardShapeAlignment,
    TensorMemoryLayout,
)
from .memory import MemoryConfig, NdShardSpec, ShardSpec
from .strict_rules import check_shape, check_spec, check_tile
from .wrapper import Wrapper, bind_by_type, unwrap

_Plain = TypeVar("_Plain", memory.TensorSpec, tensor.Tensor)


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
        self.plain = memory.Tile(extents, transpose_tile).require_on_chips()
        check_tile(self.plain)

    @property
    def tile_shape(self) -> list[int]:
        """Return the height and width.

        >>> Tile((8, 32)).tile_shape
        [8, 32]
        """
        return list(self.plain.shape)

    @property
    def face_shape(self) -> list[int]:
        """Return the height and width of a face.

        >>> Tile((8, 32)).face_shape
        [8, 16]
        """
        return list(self.plain.face_shape)

    @property
    def num_faces(self) -> int:
        """Return the number of faces.

        >>> Tile((8, 32)).num_faces
        2
        """
        return self.plain.num_faces

    @property
    def narrow_tile(self) -> bool:
        """Return whether the tile is less than 32 wide.

        >>> Tile((32, 16)).narrow_tile
        True
        """
        return self.plain.width < 32

    @property
    def partial_face(self) -> bool:
        """Return whether the tile is less than 32 high.

        >>> Tile((16, 32)).partial_face
        True
        """
        return self.plain.height < 32

    @property
    def transpose_within_face(self) -> bool:
        """Return whether the elements of a face are in column-major order.

        >>> Tile((32, 32), transpose_tile=True).transpose_within_face
        True
        """
        return self.plain.transpose

    @property
    def transpose_of_faces(self) -> bool:
        """Return whether the faces of the tile are in column-major order.

        >>> Tile((32, 32)).transpose_of_faces
        False
        """
        return self.plain.transpose

    def get_tile_size(self, dtype: DataTypeLike) -> int:
        """Return the bytes of a tile of `dtype`.

        >>> Tile((32, 32)).get_tile_size(DataType.BFLOAT16)
        2048
        """
        return DataType.of(dtype).format.bytes_per_tile(self.plain.elements)

    def __repr__(self) -> str:
        return ttnn_text(self.plain)

    __str__ = __repr__


class TensorProperties(Wrapper[_Plain], Shown):
    """Shape, data type, layout and tile of a spec or a tensor.

    >>> from tilewright.ttnn import Tensor, TensorSpec
    >>> issubclass(Tensor, TensorProperties), issubclass(TensorSpec, TensorProperties)
    (True, True)
    """

    __slots__ = ()

    @property
    def _core_spec(self) -> memory.TensorSpec:
        """Return the spec of the core; that of a tensor on a mesh is the spec of each of its parts."""
        return as_spec(self.plain)

    @property
    def shape(self) -> Shape:
        """Return the logical shape together with the padded shape; on a mesh, that of each device's part.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, Layout.TILE).shape.padded
        (32, 32)
        """
        return Shape(self._core_spec.shape.logical, self._core_spec.padded_shape)

    @property
    def physical_shape(self) -> Shape:
        """Return the matrix that all dimensions but the last are folded into, padding included.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([1, 4, 6, 8], DataType.BFLOAT16, Layout.ROW_MAJOR).physical_shape
        Shape([24, 8])
        """
        return Shape(self._core_spec.physical_shape)

    @property
    def dtype(self) -> DataType:
        """Return the data type.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, Layout.TILE).dtype
        DataType.BFLOAT16
        """
        return DataType.of(self._core_spec.dtype)

    @property
    def layout(self) -> Layout:
        """Return whether pages are rows or tiles.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, Layout.TILE).layout
        Layout.TILE
        """
        return Layout.of(self._core_spec.page_layout)

    @property
    def tile(self) -> Tile:
        """Return the tile.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, Layout.TILE).tile.tile_shape
        [32, 32]
        """
        return Tile.wrap(self._core_spec.tile)


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
    """The `shape`, data type `dtype`, layout and memory of a tensor.

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
        named: dict[str, object] = {
            "memory_layout": memory_layout,
            "shard_spec": shard_spec,
            "nd_shard_spec": nd_shard_spec,
        }
        named |= {"buffer_type": buffer_type, "memory_config": memory_config, "tile": tile}
        arguments = bind_by_type("ttnn.TensorSpec", _PLACEMENT_TYPES, placement, named)
        plain_tile, config = unwrap(arguments.pop("tile", None)), arguments.pop("memory_config", None)
        if config is None:
            config = MemoryConfig(**arguments)
        elif arguments:
            raise TypeError(f"ttnn.TensorSpec got memory_config and {', '.join(arguments)}; pass one or the other")
        page_layout = memory.PageLayout.of(layout)
        self.plain = memory.TensorSpec(shape, DataType.of(dtype).format, page_layout, plain_tile, unwrap(config))
        check_spec(self.plain, on_device=False)

    @classmethod
    def wrap(cls, value: memory.TensorSpec | TensorSpec) -> TensorSpec:
        """Return `value`, a spec of the core, wrapped; in strict mode it is checked.

        >>> TensorSpec.wrap(memory.TensorSpec((5, 7))).dtype
        DataType.BFLOAT16
        """
        wrapped = super().wrap(value)
        check_spec(wrapped.plain, on_device=False)
        return wrapped

    @property
    def memory_config(self) -> MemoryConfig:
        """Return the memory config, with both forms of its shards.

        >>> TensorSpec([5, 7], DataType.BFLOAT16, Layout.TILE).memory_config.buffer_type
        BufferType.DRAM
        """
        return MemoryConfig.wrap(self.plain.memory)

    def __repr__(self) -> str:
        # ttnn writes this text in reports, and prints only the address of the object
        return ttnn_text(self.plain)

    __str__ = __repr__

    # Sharding methods keep the buffer type.

    @property
    def _buffer_type(self) -> memory.BufferType:
        return self.plain.memory.buffer_type

    def _with_sharding(self, sharding: memory.MemoryConfig | Sharding) -> TensorSpec:
        shards = self.plain.with_memory(sharding).memory.sharding
        # ttnn derives the memory layout from the shards alone, not from the method that was called
        config = memory.MemoryConfig("nd_sharded", self._buffer_type, nd_shard_spec=shards)
        return TensorSpec.wrap(self.plain.with_memory(config))

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
        """Return the spec in shards of `shard_shape`, rounded up as `shard_alignment` says, over `grid`.

        Shards visit cores in `orientation`, distributed as `shard_distribution_strategy` says.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([4, 50, 70], DataType.BFLOAT16, Layout.TILE)
        >>> spec.sharded([1, 20, 20], CoreRange((0, 0), (3, 0))).memory_config.nd_shard_spec.shard_shape
        [1, 32, 32]
        """
        shape, spec = list(shard_shape), self.plain
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
