# SPDX-License-Identifier: Apache-2.0
"""Tiles of a tensor, one or all of them, as views: `t.tile[2, 2](1, 0)`, `t.tiles[2, 2]()`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product as combinations
from math import prod
from typing import Any, Generic, TypeAlias, TypeVar

from ..errors import CoordinateError, LayoutError
from ..layout import Layout
from ..layout.layout import make_layout
from ..layout.tuples import ceil_div, product_each
from ..layout.validation import as_integer
from .view import View
from .view_layouts import Cut, cut_modes

Kind = TypeVar("Kind", bound="View")
Extents: TypeAlias = "int | tuple[int, ...]"
# A tile, the index of its first element, and the distance of that element from the first one of the tensor.
LocatedView: TypeAlias = "tuple[Kind, tuple[int, ...], int]"


class Brackets(Generic[Kind]):
    """A method of a tensor that takes fixed arguments in brackets: `t.tile[2, 2](1, 0)`.

    >>> import tilewright as tw
    >>> isinstance(tw.TileTensor(bytearray(4), tw.row_major(2, 2)).tile, Brackets)
    True
    """

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Kind) -> None:
        self._tensor = tensor


class TileBrackets(Brackets[Kind]):
    """`t.tile[4, 8](1, 0)` is the tile of shape (4, 8) at (1, 0) in the grid of tiles; see `TileTensor.tile`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[2, 4](1, 0).offset
    16
    """

    __slots__ = ()

    def __getitem__(self, shape: Extents) -> partial[Kind]:
        return partial(tile, self._tensor, shape if isinstance(shape, tuple) else (shape,))

    def __call__(self, shape: Sequence[int], coords: Sequence[int], *, stride_layout: Layout | None = None) -> Kind:
        """Return the tile of a `shape` that is known only at run time, at `coords`."""
        return tile(self._tensor, _runtime_shape(self._tensor, shape), coords, stride_layout=stride_layout)


class LocatedTileBrackets(Brackets[Kind]):
    """`t.tile_with_offset[4, 8](1, 0)` is (tile, corner, offset); see `TileTensor.tile_with_offset`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile_with_offset[2, 4](1, 0)[1:]
    ((2, 0), 16)
    """

    __slots__ = ()

    def __getitem__(self, shape: Extents) -> partial[LocatedView[Kind]]:
        return partial(tile_with_offset, self._tensor, shape if isinstance(shape, tuple) else (shape,))

    def __call__(
        self, shape: Sequence[int], coords: Sequence[int], *, stride_layout: Layout | None = None
    ) -> LocatedView[Kind]:
        """Return (tile, corner, offset) for a `shape` that is known only at run time, at `coords`."""
        return tile_with_offset(self._tensor, _runtime_shape(self._tensor, shape), coords, stride_layout=stride_layout)


class TilesBrackets(Brackets[Kind]):
    """`t.tiles[4, 8]()` are all tiles of shape (4, 8); see `TileTensor.tiles`.

    >>> import tilewright as tw
    >>> len(tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tiles[2, 4]())
    6
    """

    __slots__ = ()

    def __getitem__(self, shape: Extents) -> partial[Tiles[Kind]]:
        return partial(tiles, self._tensor, shape if isinstance(shape, tuple) else (shape,))

    def __call__(self, shape: Sequence[int], order: str = "row") -> Tiles[Kind]:
        """Return all tiles of a `shape` in an `order`, "row" or "colex"."""
        return tiles(self._tensor, tuple(shape), order)


def tile(tensor: Kind, shape: Sequence[int], *coords: Any, stride_layout: Layout | None = None) -> Kind:
    """Return the tile at a coordinate of the grid of tiles.

    `coords` are integers, or one tuple of them. `stride_layout` has the strides of the tile as its shape; they must
    be equal, and replace strides that are known only at run time.

    >>> import tilewright as tw
    >>> tile(tw.TileTensor(list(range(72)), tw.row_major(9, 8)), (3, 4), 2, 1).offset
    52
    """
    position = _validate_tile(tensor, shape, coords)
    pair, shift = cut_modes(tensor._pair, _tile_cuts(tensor, shape, position))
    if stride_layout is not None:
        pair = _replace_strides(pair, stride_layout)
    return tensor._view(pair, tensor._offset + shift)


def _validate_tile(tensor: View, shape: Sequence[int], coords: tuple[Any, ...]) -> Sequence[Any]:
    """Return the coordinates of a tile, one per mode."""
    position: Sequence[Any] = coords
    if len(coords) == 1 and isinstance(coords[0], (tuple, list)):
        position = coords[0]
    rank = len(tensor._extents)
    if len(shape) != rank or len(position) != rank:
        raise LayoutError(
            f"a tile of shape {tuple(shape)} at {tuple(position)} does not fit a tensor of shape"
            f" {tensor.layout.shape}: expected {rank} extents and {rank} coordinates"
        )
    return position


def _runtime_shape(tensor: View, shape: Any) -> tuple[int, ...]:
    """Return the shape of a tile that was passed at run time."""
    if not isinstance(shape, (tuple, list)):
        raise LayoutError("tile needs a shape: t.tile[2, 2](1, 0), or t.tile(shape, coords) at run time")
    return tuple([tensor._runtime_extent(n) if type(n) is int else n for n in shape])


def _tile_cuts(tensor: View, shape: Sequence[int], coords: Sequence[Any]) -> list[Cut]:
    """Return the cut of every mode for the tile at `coords`."""
    cuts: list[Cut] = []
    for k, extent in enumerate(tensor._extents):
        n, c = shape[k], coords[k]
        if n.__class__ is not int:
            n = as_integer(n, "a tile extent")
        if c.__class__ is not int:
            c = int(as_integer(c, "a tile coordinate"))
        start = c * int(n)
        if n < 1:
            raise LayoutError(f"the extents of a tile must be at least 1, got {tuple(shape)}")
        if not 0 <= start < extent:
            raise CoordinateError(
                f"tile {tuple(coords)} of shape {tuple(shape)} is outside a tensor of shape {tensor.layout.shape}:"
                f" mode {k} has tiles 0 to {ceil_div(int(extent), int(n)) - 1}"
            )
        cuts.append((start, n, 1))
    return cuts


def _replace_strides(pair: Any, stride_layout: Layout) -> Any:
    """Return the pair with the strides that are the shape of another layout, after comparing them."""
    strides = tuple([int(step) for step in product_each(stride_layout.shape)])
    if not isinstance(pair, Layout) or tuple(pair.stride[0]) != strides:
        actual = pair.stride[0] if isinstance(pair, Layout) else "none"
        raise LayoutError(f"stride_layout states strides {strides}, but the tile has {actual}; they must be equal")
    return make_layout(pair.shape, (strides, pair.stride[1]), pair.offset, (), pair.guards)


def tile_with_offset(
    tensor: Kind, shape: Sequence[int], *coords: Any, stride_layout: Layout | None = None
) -> LocatedView[Kind]:
    """Return (tile, corner, offset): the tile, the index of its first element, and how far that is from the first.

    >>> import tilewright as tw
    >>> tile_with_offset(tw.TileTensor(list(range(72)), tw.row_major(9, 8)), (3, 4), 2, 1)[1:]
    ((6, 4), 52)
    """
    position = _validate_tile(tensor, shape, coords)
    corner = tuple([int(c) * int(n) for n, c in zip(shape, position, strict=True)])
    view = tile(tensor, shape, *position, stride_layout=stride_layout)
    return view, corner, view.offset - tensor.offset


@dataclass(frozen=True, slots=True, repr=False)
class Tiles(Generic[Kind]):
    """All tiles of a tensor in a fixed order: iterable, with a length, and indexed by position.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(12)), tw.row_major(3, 4))
    >>> [tile.offset for tile in t.tiles[2, 2]()], len(t.tiles[2, 2]())
    ([0, 2, 8, 10], 4)
    """

    tensor: Kind
    shape: tuple[int, ...]
    order: str = "row"

    @property
    def grid(self) -> tuple[int, ...]:
        """Return the number of tiles along each mode.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(12), tw.row_major(3, 4)).tiles[2, 2]().grid
        (2, 2)
        """
        return tuple([ceil_div(int(n), m) for n, m in zip(self.tensor._extents, self.shape, strict=True)])

    def coordinates(self) -> Iterator[tuple[int, ...]]:
        """Yield the coordinates of the tiles in their order.

        >>> import tilewright as tw
        >>> list(tw.TileTensor(bytearray(4), tw.row_major(2, 2)).tiles[1, 2]().coordinates())
        [(0, 0), (1, 0)]
        """
        ranges = [range(n) for n in self.grid]
        if self.order == "row":
            yield from combinations(*ranges)
        else:
            for position in combinations(*ranges[::-1]):
                yield position[::-1]

    def __iter__(self) -> Iterator[Kind]:
        for position in self.coordinates():
            yield tile(self.tensor, self.shape, *position)

    def __len__(self) -> int:
        return prod(self.grid)

    def __getitem__(self, position: int) -> Kind:
        count = len(self)
        index = as_integer(position, "the position of a tile")
        if not -count <= index < count:
            raise CoordinateError(
                f"tile {index} is outside the {' x '.join(map(str, self.grid))} tiles, which are 0 to {count - 1}"
            )
        index %= count
        coords = [0] * len(self.grid)
        for k in reversed(range(len(coords))) if self.order == "row" else range(len(coords)):
            index, coords[k] = divmod(index, self.grid[k])
        return tile(self.tensor, self.shape, *coords)

    def __repr__(self) -> str:
        return f"<{' x '.join(map(str, self.grid))} tiles of shape {self.shape} in {self.order} order>"


def tiles(tensor: Kind, shape: tuple[int, ...], order: str = "row") -> Tiles[Kind]:
    """Return all tiles of a `shape`: last coordinate fastest, or first fastest with `order="colex"`.

    >>> import tilewright as tw
    >>> [part.valid_shape for part in tiles(tw.TileTensor(list(range(12)), tw.row_major(3, 4)), (2, 2))]
    [(2, 2), (2, 2), (1, 2), (1, 2)]
    """
    check_order(order)
    if len(shape) != len(tensor._extents):
        raise LayoutError(
            f"tiles of shape {shape} do not fit a tensor of shape {tensor.layout.shape}; give one extent per mode"
        )
    sizes = tuple([int(as_integer(n, "a tile extent")) for n in shape])
    if min(sizes, default=1) < 1:
        raise LayoutError(f"the extents of a tile must be at least 1, got {sizes}")
    return Tiles(tensor, sizes, order)


def check_order(order: str) -> None:
    """Raise unless `order` is "row" (last mode fastest) or "colex" (first mode fastest).

    >>> check_order("row")
    """
    if order not in ("row", "colex"):
        raise LayoutError(f"expected order 'row' (last mode fastest) or 'colex' (first mode fastest), got {order!r}")
