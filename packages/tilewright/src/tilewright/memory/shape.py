# SPDX-License-Identifier: Apache-2.0
"""`Shape`: the logical and padded extents of a tensor; how an alignment pads extents; and `Tile`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import prod
from typing import TypeAlias

from .._integers import round_up
from ..display import Drawable
from ..errors import MemoryConfigError
from ..layout import as_integer

FACE, HEIGHTS, WIDTHS = 16, (32, 16, 8, 4, 2, 1), (32, 16)  # of tiles
_MIN_INDEX_RANK = 4  # missing leading dimensions up to this rank have extent 1


class Shape(Drawable):
    """The logical and padded extents of a tensor; it compares and indexes as the logical ones.

    >>> shape = Shape([14, 28], [32, 32])
    >>> shape == (14, 28), shape[-1], shape[-4], shape.padded
    (True, 28, 1, (32, 32))
    >>> print(shape)
    [14[32], 28[32]]
    """

    __slots__ = ("_logical", "_padded")
    _logical: tuple[int, ...]
    _padded: tuple[int, ...]

    def __init__(self, logical: Iterable[int], padded: Iterable[int] | None = None) -> None:
        self._logical = _validate_extents(logical)
        self._padded = self._logical if padded is None else _validate_extents(padded)
        for n, padded_n in zip_longest(reversed(self._logical), reversed(self._padded), fillvalue=1):
            if padded_n < n and len(self._padded) < len(self._logical):
                raise MemoryConfigError(
                    f"padded shape {list(self._padded)} has rank {len(self._padded)}, the logical shape"
                    f" {list(self._logical)} rank {len(self._logical)}; give a padded extent for every dimension"
                )
            if padded_n < n:
                raise MemoryConfigError(
                    f"padded shape {list(self._padded)} is smaller than the logical shape {list(self._logical)};"
                    f" {padded_n} must be at least {n}"
                )

    @property
    def logical(self) -> tuple[int, ...]:
        """The extents of the data.

        >>> Shape([14, 28], [32, 32]).logical
        (14, 28)
        """
        return self._logical

    @property
    def padded(self) -> tuple[int, ...]:
        """The padded extents; their rank can be larger than the data's.

        >>> Shape([7], [32, 32]).padded
        (32, 32)
        """
        return self._padded

    @property
    def rank(self) -> int:
        """The number of dimensions.

        >>> Shape([1, 4, 6, 8]).rank
        4
        """
        return len(self._logical)

    @property
    def folded(self) -> tuple[int, int]:
        """(rows, columns) of the padded tensor folded to a matrix.

        >>> Shape([1, 4, 6, 8]).folded
        (24, 8)
        """
        return prod(self._padded[:-1]), self._padded[-1] if self._padded else 1

    def with_tile_padding(self) -> Shape:
        """Return the padded extents as a shape of their own.

        >>> Shape([14, 28], [32, 32]).with_tile_padding()
        Shape([32, 32])
        """
        return type(self)(self._padded)

    def volume(self) -> int:
        """Return the number of elements including padding.

        >>> Shape([14, 28], [32, 32]).volume()
        1024
        """
        return prod(self._padded)

    def logical_volume(self) -> int:
        """Return the number of elements without padding.

        >>> Shape([14, 28], [32, 32]).logical_volume()
        392
        """
        return prod(self._logical)

    def to_rank(self, rank: int) -> Shape:
        """Return the extents with leading ones added or removed, so that there are `rank`.

        >>> Shape([14, 28]).to_rank(4), Shape([1, 1, 5]).to_rank(1)
        (Shape([1, 1, 14, 28]), Shape([5]))
        """
        rank = as_integer(rank, "a rank")
        gone = self._logical[: max(0, self.rank - rank)]
        if any(n != 1 for n in gone):
            raise MemoryConfigError(
                f"{self!r} cannot have rank {rank}: only leading extents of 1 can be removed, got {list(gone)}"
            )
        return type(self)([1] * (rank - self.rank) + list(self._logical[len(gone) :]))

    def __getitem__(self, index: int) -> int:
        at = as_integer(index, "shape index")
        if not -max(self.rank, _MIN_INDEX_RANK) <= at < self.rank:
            raise IndexError(
                f"index {at} is outside {self!r}; use {-max(self.rank, _MIN_INDEX_RANK)} to {max(self.rank - 1, 0)}"
            )
        return 1 if at < -self.rank else self._logical[at]

    def __len__(self) -> int:
        return self.rank

    def __iter__(self) -> Iterator[int]:
        return iter(self._logical)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Shape):
            return self._logical == other._logical and self._padded == other._padded
        return list(self._logical) == list(other) if isinstance(other, (list, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._logical)

    def __repr__(self) -> str:
        padded = "" if self._padded == self._logical else f", {list(self._padded)}"
        return f"{type(self).__name__}({list(self._logical)}{padded})"

    def __str__(self) -> str:
        pairs = list(zip_longest(reversed(self._logical), reversed(self._padded), fillvalue=1))[::-1]
        return f"[{', '.join(str(n) if n == padded else f'{n}[{padded}]' for n, padded in pairs)}]"


def _validate_extents(values: Iterable[int]) -> tuple[int, ...]:
    """Return extents as a tuple of integers of at least 0, or raise."""
    if not isinstance(values, Iterable):
        raise TypeError(f"expected a shape such as (64, 32), got {type(values).__name__} {values!r}")
    extents = tuple(values)
    if {*map(type, extents)} - {int}:
        extents = tuple([int(as_integer(n, "extent")) for n in extents])
    if min(extents, default=0) < 0:
        raise MemoryConfigError(f"extents must not be negative, got {list(extents)}")
    return extents


def padded_extents(shape: tuple[int, ...], alignment: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents `shape` rounded up to an `alignment` with entries for the last dimensions.

    The last two dimensions are rounded to their own entries. An entry further out counts rows of the tensor folded to a
    matrix: it must divide the rows of the dimensions inside it, or be a multiple of them.

    >>> padded_extents((2, 33, 1), (32, 32)), padded_extents((7,), (32, 32)), padded_extents((5, 7), (2,))
    ((2, 64, 32), (32, 32), (5, 8))
    >>> padded_extents((3, 5, 7), (24, 6, 9))
    (4, 6, 9)
    """
    if any(entry < 1 for entry in alignment):
        raise MemoryConfigError(f"alignment entries must be at least 1, got {list(alignment)}")
    rank = max(len(shape), len(alignment))
    extents = [1] * (rank - len(shape)) + list(shape)
    rows = 1
    for d in range(-1, -len(alignment) - 1, -1):
        entry = alignment[d]
        if d >= -2:
            extents[d] = round_up(extents[d], entry)
        elif rows == 0 or rows % entry == 0:
            pass  # the inner dimensions are aligned already
        elif entry % rows == 0:
            extents[d] = round_up(extents[d], entry // rows)
        else:
            raise MemoryConfigError(
                f"alignment {list(alignment)} does not fit shape {list(shape)}: entry {entry} of dimension {d} must be"
                f" a multiple or a divisor of the {rows} rows inside it"
            )
        if d < -1:
            rows *= extents[d]
    return tuple(extents)


def alignment_of(padded: tuple[int, ...]) -> tuple[int, ...]:
    """Return the alignment that pads any smaller shape of the same rank to the extents `padded`.

    >>> alignment_of((4, 6, 9)), padded_extents((3, 5, 7), alignment_of((4, 6, 9)))
    ((24, 6, 9), (4, 6, 9))
    """
    rows = [prod(padded[d:-1]) for d in range(len(padded) - 2)]
    return (*rows, *padded[-2:])


@dataclass(frozen=True, init=False, repr=False)
class Tile:
    """A tile of `shape` (height, width), stored face by face, in row-major order, or column-major with `transpose`.

    Any shape can be described; chips have the twelve of `is_on_chips`. Faces are at most 16 x 16; a tile that they do
    not divide is one face.

    >>> Tile((16, 32)).face_shape, Tile((16, 32)).num_faces
    ((16, 16), 2)
    >>> Tile(), Tile((2, 2)).num_faces
    (Tile((32, 32)), 1)
    """

    shape: tuple[int, int]
    transpose: bool

    def __init__(self, shape: Sequence[int] = (32, 32), transpose: bool = False) -> None:
        pair = tuple([int(as_integer(n, "tile extent")) for n in shape]) if isinstance(shape, (tuple, list)) else ()
        if len(pair) != 2 or min(pair) < 1:
            raise MemoryConfigError(f"expected a tile of two positive extents, such as (32, 32), got {shape!r}")
        object.__setattr__(self, "shape", pair)
        object.__setattr__(self, "transpose", bool(transpose))
        if transpose and self.face_shape[0] != self.face_shape[1]:
            raise MemoryConfigError(
                f"a {pair[0]} x {pair[1]} tile cannot be transposed, since its faces are not square; use height 16 or"
                " 32"
            )

    @classmethod
    def of(cls, value: TileLike) -> Tile:
        """Return a tile from `value`: a `Tile`, (height, width), or None for the default.

        >>> Tile.of((16, 32)), Tile.of(None)
        (Tile((16, 32)), Tile((32, 32)))
        """
        return value if isinstance(value, Tile) else _DEFAULT_TILE if value is None else cls(value)

    @property
    def height(self) -> int:
        """The number of rows.

        >>> Tile((8, 32)).height
        8
        """
        return self.shape[0]

    @property
    def width(self) -> int:
        """The number of columns.

        >>> Tile((8, 32)).width
        32
        """
        return self.shape[1]

    @property
    def elements(self) -> int:
        """The number of elements.

        >>> Tile((8, 32)).elements
        256
        """
        return self.height * self.width

    @property
    def face_shape(self) -> tuple[int, int]:
        """(height, width) of a face: at most 16 x 16, and the whole tile if they do not divide it.

        >>> Tile((4, 32)).face_shape, Tile((40, 40)).face_shape
        ((4, 16), (40, 40))
        """
        high, wide = min(FACE, self.height), min(FACE, self.width)
        return (high, wide) if self.height % high == self.width % wide == 0 else self.shape

    @property
    def num_faces(self) -> int:
        """The number of faces.

        >>> Tile().num_faces
        4
        """
        high, wide = self.face_shape
        return self.elements // (high * wide)

    @property
    def is_on_chips(self) -> bool:
        """Whether chips have tiles of this shape.

        >>> Tile((16, 32)).is_on_chips, Tile((2, 2)).is_on_chips
        (True, False)
        """
        return self.height in HEIGHTS and self.width in WIDTHS

    def require_on_chips(self) -> Tile:
        """Return the tile, or raise if chips have no tiles of this shape.

        >>> Tile((16, 32)).require_on_chips()
        Tile((16, 32))
        """
        if not self.is_on_chips:
            heights = ", ".join(map(str, HEIGHTS))
            raise MemoryConfigError(
                f"chips have no tiles of {self}: expected a height of {heights} and a width of 32 or 16; for other"
                " tiles, leave the chip out, or use tw.tilize and tw.tiled_layout"
            )
        return self

    @property
    def is_default(self) -> bool:
        """Whether this is the default tile: 32 x 32, not transposed.

        >>> Tile().is_default
        True
        """
        return self == _DEFAULT_TILE

    def __repr__(self) -> str:
        return f"Tile({self.shape}{', transpose=True' if self.transpose else ''})"

    def __str__(self) -> str:
        return f"{self.height} x {self.width}{' transposed' if self.transpose else ''}"


_DEFAULT_TILE = Tile()
TileLike: TypeAlias = Tile | Sequence[int] | None
