# SPDX-License-Identifier: Apache-2.0
"""Tiles of a tensor, one or all of them. None of them copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as combinations
from typing import TYPE_CHECKING, Any

from ..errors import CoordinateError, LayoutError
from ..layout import Layout
from ..layout.integers import DynamicInt, as_integer
from ..layout.strided import make
from ..layout.tuples import ceil_div, product_each
from .cutting import Cut, cut, paired

if TYPE_CHECKING:
    from .tile_tensor import TileTensor


def tile(
    tensor: TileTensor, fixed: tuple[Any, ...], *coords: Any, stride_layout: Any = None, modes: str = "logical"
) -> TileTensor:
    """Return the tile at a coordinate of the grid of tiles: `t.tile[32, 32](1, 0)`.

    A tile at a ragged edge keeps its full shape and knows its valid part. `t.tile(shape, coords)` takes the shape at
    run time. `stride_layout` restates dynamic strides as static ones (its shape holds them). On nested layouts tiles
    are cut from the logical modes; `modes="leaf"` steps through the first leaf of each mode and keeps the last, as
    Mojo 26.7 does.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(72)), tw.row_major(9, 8))
    >>> t.tile[3, 4](2, 1)
    TileTensor(Layout((3, 4), (8, 1)), offset=52, dtype='int64')
    >>> t.tile[4, 4](2, 0).valid_shape
    (1, 4)
    """
    sizes, coords = _tile_arguments(tensor, fixed, coords)
    if modes == "leaf":
        return _leaf_tile(tensor, sizes, coords)
    if modes != "logical":
        raise LayoutError(f"modes={modes!r}: use 'logical' for tiles of the modes, 'leaf' for the rule of Mojo 26.7")
    whole, shift = cut(tensor._whole, _tile_cuts(tensor, sizes, coords))
    if stride_layout is not None:
        whole = _restated(whole, stride_layout)
    return tensor._view(whole, tensor._offset + shift)


def _tile_arguments(tensor: TileTensor, fixed: tuple[Any, ...], coords: tuple[Any, ...]) -> tuple[Any, Any]:
    if not fixed:
        if not coords or not isinstance(coords[0], tuple):
            raise LayoutError("tile needs a shape: write t.tile[2, 2](1, 0), or t.tile(shape, coords) at run time")
        fixed, coords = tuple([_dynamic(n) for n in coords[0]]), coords[1:]
    if len(coords) == 1 and isinstance(coords[0], (tuple, list)):
        coords = tuple(coords[0])
    rank = len(tensor._extents)
    if len(fixed) != rank or len(coords) != rank:
        raise LayoutError(
            f"a tile of shape {tuple(fixed)} at {tuple(coords)} does not fit a tensor of shape {tensor.layout.shape}:"
            f" give {rank} extents and {rank} coordinates"
        )
    return fixed, coords


def _dynamic(n: Any) -> Any:
    """Return an extent that came at run time: dynamic, unless it was marked as static."""
    return DynamicInt(n) if type(n) is int else n


def _tile_cuts(tensor: TileTensor, sizes: Any, coords: Any) -> list[Cut]:
    cuts: list[Cut] = []
    for k, extent in enumerate(tensor._extents):
        n, c = sizes[k], coords[k]
        if n.__class__ is not int:
            n = as_integer(n, "a tile extent")
        if c.__class__ is not int:
            c = int(as_integer(c, "a tile coordinate"))
        start = c * int(n)
        if n < 1:
            raise LayoutError(f"a tile of shape {tuple(sizes)} is empty; extents must be at least 1")
        if not 0 <= start < extent:
            raise CoordinateError(
                f"there is no tile {tuple(coords)} of shape {tuple(sizes)} in a tensor of shape {tensor.layout.shape}:"
                f" mode {k} has tiles 0 to {ceil_div(int(extent), int(n)) - 1}"
            )
        cuts.append((start, n, 1))
    return cuts


def _restated(whole: Any, stride_layout: Any) -> Any:
    """Return the layout with the strides that another layout's shape states, after comparing them."""
    stated = tuple([int(step) for step in product_each(stride_layout.shape)])
    if not isinstance(whole, Layout) or tuple(whole.stride[0]) != stated:
        have = whole.stride[0] if isinstance(whole, Layout) else "none"
        raise LayoutError(f"stride_layout states strides {stated}, but the tile has {have}; they must be equal")
    return make(whole.shape, (stated, whole.stride[1]), whole.offset, (), whole.guards)


def _leaf_tile(tensor: TileTensor, sizes: Any, coords: Any) -> TileTensor:
    layout = tensor.layout
    if not isinstance(layout, Layout) or tensor.element_size != 1:
        raise LayoutError(f"modes='leaf' needs a strided layout of scalars, not {layout}")
    shift, steps = 0, []
    for k, (n, c) in enumerate(zip(sizes, coords, strict=True)):
        shape, stride = layout.mode(k).flat_modes()
        if not 0 <= c < shape[0] or not 0 < n <= shape[-1]:
            raise CoordinateError(
                f"mode {k} of {layout} has tiles 0 to {shape[0] - 1} of up to {shape[-1]} elements; got {c} of {n}"
            )
        shift += int(c * stride[0])
        steps.append(stride[-1])
    return tensor._view(paired(make(tuple(map(int, sizes)), tuple(steps))), tensor._offset + shift)


def tile_with_offset(
    tensor: TileTensor, fixed: tuple[Any, ...], *coords: Any, stride_layout: Any = None
) -> tuple[TileTensor, tuple[int, ...], int]:
    """Return (tile, corner, offset): the tile, the index of its first element, and how far that lies from t's first.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(72)), tw.row_major(9, 8))
    >>> t.tile_with_offset[3, 4](2, 1)[1:]
    ((6, 4), 52)
    """
    sizes, coords = _tile_arguments(tensor, fixed, coords)
    corner = tuple([int(c) * int(n) for n, c in zip(sizes, coords, strict=True)])
    found = tile(tensor, sizes, *coords, stride_layout=stride_layout)
    return found, corner, found.offset - tensor.offset


@dataclass(frozen=True, slots=True, repr=False)
class Tiles:
    """All tiles of a tensor, in a stated order: iterable, with a length, and indexed by position.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(12)), tw.row_major(3, 4))
    >>> [tile.offset for tile in t.tiles[2, 2]()], len(t.tiles[2, 2]())
    ([0, 2, 8, 10], 4)
    """

    tensor: TileTensor
    shape: tuple[int, ...]
    order: str = "row"

    @property
    def grid(self) -> tuple[int, ...]:
        """Return how many tiles there are along each mode.

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
            for at in combinations(*ranges[::-1]):
                yield at[::-1]

    def __iter__(self) -> Iterator[TileTensor]:
        for at in self.coordinates():
            yield tile(self.tensor, self.shape, *at)

    def __len__(self) -> int:
        count = 1
        for n in self.grid:
            count *= n
        return count

    def __getitem__(self, position: int) -> TileTensor:
        count = len(self)
        at = as_integer(position, "the position of a tile")
        if not -count <= at < count:
            raise CoordinateError(
                f"there is no tile {at}: the {' x '.join(map(str, self.grid))} tiles are 0 to {count - 1}"
            )
        at %= count
        coords = [0] * len(self.grid)
        for k in reversed(range(len(coords))) if self.order == "row" else range(len(coords)):
            at, coords[k] = divmod(at, self.grid[k])
        return tile(self.tensor, self.shape, *coords)

    def __repr__(self) -> str:
        return f"<{' x '.join(map(str, self.grid))} tiles of shape {self.shape} in {self.order} order>"


def tiles(tensor: TileTensor, fixed: tuple[Any, ...], order: str = "row") -> Tiles:
    """Return all tiles of a shape, for loops: last coordinate fastest, or first with `order="colex"`.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(12)), tw.row_major(3, 4))
    >>> [part.valid_shape for part in t.tiles[2, 2]()]
    [(2, 2), (2, 2), (1, 2), (1, 2)]
    """
    if order not in ("row", "colex"):
        raise LayoutError(f"order={order!r}: tiles come in 'row' order (last fastest) or 'colex' (first fastest)")
    if len(fixed) != len(tensor._extents):
        raise LayoutError(
            f"tiles of shape {fixed} do not fit a tensor of shape {tensor.layout.shape}; give one extent a mode"
        )
    sizes = tuple([int(as_integer(n, "a tile extent")) for n in fixed])
    if min(sizes, default=1) < 1:
        raise LayoutError(f"tiles of shape {sizes} are empty; extents must be at least 1")
    return Tiles(tensor, sizes, order)
