# SPDX-License-Identifier: Apache-2.0
"""Shapes, tiles and tensor specs under ttnn's names."""

from __future__ import annotations

from math import lcm
from typing import Any

from .. import memory
from ..layout import round_up
from ..memory import BufferType, ShardDistribution, ShardOrientation, TensorLayout, TensorMemoryLayout
from ..memory.sharding import ROW_BYTES, Sharding
from .door import Door, plain
from .kinds import DataType, ShardShapeAlignment
from .memory import MemoryConfig, NdShardSpec, ShardSpec


class Shape(memory.Shape):
    """Extents with the padded ones beside them. It compares and indexes as the logical extents.

    >>> print(Shape([16, 32]))
    ttnn.Shape([16, 32])
    >>> print(Shape([14, 28], [32, 32]))
    ttnn.Shape([14[32], 28[32]])
    >>> Shape([14, 28], [32, 32]), Shape([14, 28], [32, 32]) == Shape([14, 28])
    (Shape([14, 28]), True)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self.logical == other.logical if isinstance(other, memory.Shape) else super().__eq__(other)

    __hash__ = memory.Shape.__hash__

    def __repr__(self) -> str:
        return f"Shape({list(self.logical)})"

    def __str__(self) -> str:
        return f"ttnn.Shape({super().__str__()})"


class Tile(Door[memory.Tile]):
    """A tile of one of the twelve shapes, optionally transposed.

    >>> Tile((16, 32)).num_faces, Tile((16, 32)).face_shape, Tile((16, 32)).get_tile_size(DataType.BFLOAT8_B)
    (2, [16, 16], 544)
    """

    __slots__ = ()

    def __init__(self, tile_shape: Any = (32, 32), transpose_tile: bool = False) -> None:
        self.plain = memory.Tile(tuple(tile_shape), transpose_tile)

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
        """Return whether faces run down columns.

        >>> Tile((32, 32), transpose_tile=True).transpose_within_face
        True
        """
        return self.plain.transpose

    @property
    def transpose_of_faces(self) -> bool:
        """Return whether faces follow each other down columns.

        >>> Tile((32, 32)).transpose_of_faces
        False
        """
        return self.plain.transpose

    def get_tile_size(self, dtype: Any) -> int:
        """Return the bytes of a tile.

        >>> Tile((32, 32)).get_tile_size(DataType.BFLOAT16)
        2048
        """
        return DataType.of(dtype).format.bytes_per_tile(self.plain.elements)


class TensorSpec(Door[memory.TensorSpec]):
    """Shape, data type, layout and memory of a tensor.

    After these come, by kind: a buffer type, or a memory layout with its shard spec, or an ND shard spec; and a tile.

    >>> TensorSpec(Shape([64, 64]), DataType.BFLOAT16, TensorLayout.TILE, BufferType.L1).memory_config.buffer_type
    BufferType.L1
    """

    __slots__ = ()

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        layout: Any,
        *placement: Any,
        memory_layout: Any = None,
        shard_spec: Any = None,
        nd_shard_spec: Any = None,
        buffer_type: Any = None,
        memory_config: Any = None,
        tile: Any = None,
    ) -> None:
        for each in placement:
            if isinstance(each, BufferType):
                buffer_type = each
            elif isinstance(each, TensorMemoryLayout):
                memory_layout = each
            elif isinstance(each, ShardSpec):
                shard_spec = each
            elif isinstance(each, NdShardSpec):
                nd_shard_spec = each
            elif isinstance(each, MemoryConfig):
                memory_config = each
            elif isinstance(each, Tile):
                tile = each
            elif each is not None:
                raise TypeError(f"a tensor spec has no place for {type(each).__name__} {each!r}")
        if memory_config is None:
            memory_config = MemoryConfig(
                TensorMemoryLayout.INTERLEAVED if memory_layout is None else memory_layout,
                BufferType.DRAM if buffer_type is None else buffer_type,
                shard_spec,
                nd_shard_spec,
            )
        self.plain = memory.TensorSpec(shape, DataType.of(dtype).format, layout, plain(tile), plain(memory_config))

    @property
    def shape(self) -> Shape:
        """Return the extents, with padding beside them.

        >>> TensorSpec([5, 7], DataType.BFLOAT16, TensorLayout.TILE).shape.padded
        (32, 32)
        """
        return Shape(self.plain.shape.logical, self.plain.padded_shape)

    @property
    def dtype(self) -> DataType:
        """Return the data type.

        >>> TensorSpec([5, 7], DataType.BFLOAT16, TensorLayout.TILE).dtype
        DataType.BFLOAT16
        """
        return DataType.of(self.plain.dtype)

    @property
    def layout(self) -> TensorLayout:
        """Return whether pages are rows or tiles.

        >>> TensorSpec([5, 7], DataType.BFLOAT16, TensorLayout.TILE).layout
        TensorLayout.TILE
        """
        return self.plain.layout

    @property
    def tile(self) -> Tile:
        """Return the tile.

        >>> TensorSpec([5, 7], DataType.BFLOAT16, TensorLayout.TILE).tile.tile_shape
        [32, 32]
        """
        return Tile.around(self.plain.tile)

    @property
    def memory_config(self) -> MemoryConfig:
        """Return the memory config, with both forms of its shards.

        >>> TensorSpec([5, 7], DataType.BFLOAT16, TensorLayout.TILE).memory_config.buffer_type
        BufferType.DRAM
        """
        return MemoryConfig.around(self.plain.memory)

    # Sharding helpers; each keeps the buffer type.

    def _sharded(self, make: Any, *arguments: Any, **more: Any) -> TensorSpec:
        sharding: Sharding = make(*arguments, buffer_type=self.plain.memory.buffer_type, **more)
        return TensorSpec.around(self.plain.with_memory(sharding))

    def height_sharded(self, grid: Any, orientation: Any = ShardOrientation.ROW_MAJOR) -> TensorSpec:
        """Return the spec cut along its height, as evenly as whole tiles allow.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([128, 64], DataType.BFLOAT16, TensorLayout.TILE)
        >>> spec.height_sharded(CoreRange((0, 0), (3, 0))).memory_config.shard_spec.shape
        [32, 64]
        """
        return self._sharded(memory.height_sharded, plain(grid), orientation=orientation)

    def width_sharded(self, grid: Any, orientation: Any = ShardOrientation.ROW_MAJOR) -> TensorSpec:
        """Return the spec cut along its width, as evenly as whole tiles allow.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([64, 128], DataType.BFLOAT16, TensorLayout.TILE)
        >>> spec.width_sharded(CoreRange((0, 0), (3, 0))).memory_config.shard_spec.shape
        [64, 32]
        """
        return self._sharded(memory.width_sharded, plain(grid), orientation=orientation)

    def block_sharded(self, grid: Any, orientation: Any = ShardOrientation.ROW_MAJOR) -> TensorSpec:
        """Return the spec cut both ways over a rectangle of cores.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([64, 128], DataType.BFLOAT16, TensorLayout.TILE)
        >>> spec.block_sharded(CoreRange((0, 0), (1, 1))).memory_config.shard_spec.shape
        [32, 64]
        """
        return self._sharded(memory.block_sharded, plain(grid), orientation=orientation)

    def sharded_across_dims(self, dims: Any, grid: Any, orientation: Any = ShardOrientation.ROW_MAJOR) -> TensorSpec:
        """Return the spec with one shard for each index of some dimensions.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([4, 64, 96], DataType.BFLOAT16, TensorLayout.TILE)
        >>> spec.sharded_across_dims([0], CoreRange((0, 0), (3, 0))).memory_config.nd_shard_spec.shard_shape
        [1, 64, 96]
        """
        return self._sharded(memory.sharded_across_dims, dims, plain(grid), orientation)

    def sharded_across_dims_except(
        self, dims: Any, grid: Any, orientation: Any = ShardOrientation.ROW_MAJOR
    ) -> TensorSpec:
        """Return the spec with one shard for each index of all but some dimensions.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([4, 64, 96], DataType.BFLOAT16, TensorLayout.TILE)
        >>> spec.sharded_across_dims_except([2], CoreRange((0, 0), (3, 1))).memory_config.nd_shard_spec.shard_shape
        [1, 32, 96]
        """
        return self._sharded(memory.sharded_across_dims, dims, plain(grid), orientation, all_but=True)

    def sharded(
        self,
        shard_shape: Any,
        grid: Any,
        shard_alignment: ShardShapeAlignment = ShardShapeAlignment.RECOMMENDED,
        orientation: Any = ShardOrientation.ROW_MAJOR,
        shard_distribution_strategy: Any = ShardDistribution.ROUND_ROBIN_1D,
    ) -> TensorSpec:
        """Return the spec in shards of a shape that is rounded up as asked.

        >>> from tilewright.ttnn import CoreRange
        >>> spec = TensorSpec([4, 50, 70], DataType.BFLOAT16, TensorLayout.TILE)
        >>> spec.sharded([1, 20, 20], CoreRange((0, 0), (3, 0))).memory_config.nd_shard_spec.shard_shape
        [1, 32, 32]
        """
        shape, spec = list(shard_shape), self.plain
        if shard_alignment is not ShardShapeAlignment.NONE and spec.layout is TensorLayout.TILE:
            shape[-2:] = [round_up(n, unit) for n, unit in zip(shape[-2:], spec.tile.shape[-len(shape) :], strict=True)]
        elif shard_alignment is ShardShapeAlignment.RECOMMENDED:
            size = spec.dtype.bytes_per_tile(1)
            shape[-1] = round_up(shape[-1], lcm(ROW_BYTES, size) // size)
        config = memory.nd_sharded(
            shape, plain(grid), orientation, shard_distribution_strategy, spec.memory.buffer_type
        )
        return TensorSpec.around(spec.with_memory(config))
