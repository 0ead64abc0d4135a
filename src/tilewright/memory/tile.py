# SPDX-License-Identifier: Apache-2.0
"""`Tile`: the twelve tile shapes of the hardware, and the faces in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import MemoryConfigError
from ..layout.validation import as_integer

FACE = 16
HEIGHTS = (32, 16, 8, 4, 2, 1)
WIDTHS = (32, 16)


@dataclass(frozen=True, init=False, repr=False)
class Tile:
    """A tile of height x width elements, stored face by face; transposed tiles run down columns instead.

    >>> Tile((16, 32)).face_shape, Tile((16, 32)).num_faces
    ((16, 16), 2)
    >>> Tile()
    Tile((32, 32))
    """

    shape: tuple[int, int]
    transpose: bool

    def __init__(self, shape: Any = (32, 32), transpose: bool = False) -> None:
        pair = tuple([int(as_integer(n, "a tile's extent")) for n in shape]) if isinstance(shape, (tuple, list)) else ()
        if len(pair) != 2 or pair[0] not in HEIGHTS or pair[1] not in WIDTHS:
            raise MemoryConfigError(
                f"{shape!r} is no tile shape; heights are {', '.join(map(str, HEIGHTS))} and widths 32 or 16"
            )
        if transpose and pair[0] < FACE:
            raise MemoryConfigError(
                f"a tile of {pair[0]} x {pair[1]} cannot be transposed: its faces are not square; use height 16 or 32"
            )
        object.__setattr__(self, "shape", pair)
        object.__setattr__(self, "transpose", bool(transpose))

    @classmethod
    def of(cls, value: Any) -> Tile:
        """Return a tile given as such, as (height, width), or as None for the usual one.

        >>> Tile.of((16, 32)), Tile.of(None)
        (Tile((16, 32)), Tile((32, 32)))
        """
        return value if isinstance(value, Tile) else cls() if value is None else cls(value)

    @property
    def height(self) -> int:
        """Return the number of rows.

        >>> Tile((8, 32)).height
        8
        """
        return self.shape[0]

    @property
    def width(self) -> int:
        """Return the number of columns.

        >>> Tile((8, 32)).width
        32
        """
        return self.shape[1]

    @property
    def elements(self) -> int:
        """Return the number of elements.

        >>> Tile((8, 32)).elements
        256
        """
        return self.height * self.width

    @property
    def face_shape(self) -> tuple[int, int]:
        """Return (height, width) of a face: 16 wide, and never higher than the tile.

        >>> Tile((4, 32)).face_shape
        (4, 16)
        """
        return min(FACE, self.height), FACE

    @property
    def num_faces(self) -> int:
        """Return the number of faces.

        >>> Tile().num_faces
        4
        """
        high, wide = self.face_shape
        return self.elements // (high * wide)

    @property
    def is_default(self) -> bool:
        """Return whether this is the usual tile, 32 x 32 and not transposed.

        >>> Tile().is_default
        True
        """
        return self == Tile()

    def __repr__(self) -> str:
        return f"Tile({self.shape}{', transpose=True' if self.transpose else ''})"

    def __str__(self) -> str:
        return f"{self.height} x {self.width}{' transposed' if self.transpose else ''}"
