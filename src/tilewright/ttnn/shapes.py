# SPDX-License-Identifier: Apache-2.0
"""Shapes and tiles under ttnn's names, and what a tensor and its spec both say of themselves."""

from __future__ import annotations

from typing import Any, TypeVar

from .. import memory, tensor
from ..memory import PageLayout
from ..memory.spec import as_spec
from .data_types import DataType, DataTypeLike
from .wrapper import Wrapper

_Plain = TypeVar("_Plain", memory.TensorSpec, tensor.Tensor)


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


class Tile(Wrapper[memory.Tile]):
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

    def get_tile_size(self, dtype: DataTypeLike) -> int:
        """Return the bytes of a tile.

        >>> Tile((32, 32)).get_tile_size(DataType.BFLOAT16)
        2048
        """
        return DataType.of(dtype).format.bytes_per_tile(self.plain.elements)


class TensorProperties(Wrapper[_Plain]):
    """Shape, data type, layout and tile: what a spec says, and a tensor too.

    >>> from tilewright.ttnn import Tensor, TensorSpec
    >>> issubclass(Tensor, TensorProperties), issubclass(TensorSpec, TensorProperties)
    (True, True)
    """

    __slots__ = ()

    @property
    def shape(self) -> Shape:
        """Return the extents, with padding beside them.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, PageLayout.TILE).shape.padded
        (32, 32)
        """
        return Shape(self.plain.shape.logical, self.plain.padded_shape)

    @property
    def dtype(self) -> DataType:
        """Return the data type.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, PageLayout.TILE).dtype
        DataType.BFLOAT16
        """
        return DataType.of(self.plain.dtype)

    @property
    def layout(self) -> PageLayout:
        """Return whether pages are rows or tiles.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, PageLayout.TILE).layout
        PageLayout.TILE
        """
        return as_spec(self.plain).page_layout

    @property
    def tile(self) -> Tile:
        """Return the tile.

        >>> from tilewright.ttnn import TensorSpec
        >>> TensorSpec([5, 7], DataType.BFLOAT16, PageLayout.TILE).tile.tile_shape
        [32, 32]
        """
        return Tile.wrap(self.plain.tile)
