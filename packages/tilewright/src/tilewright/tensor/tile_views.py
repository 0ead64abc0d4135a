# SPDX-License-Identifier: Apache-2.0
"""Tiles and the elements of threads as views: `t.tile[2, 2](1, 0)`, `t.tiles[2, 2]()`, `t.distribute[threads](5)`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product as combinations
from math import prod
from typing import Any, ClassVar, Generic, SupportsIndex, TypeAlias, TypeVar

from .._integers import ceil_div
from ..errors import CoordinateError, LayoutError
from ..layout import Layout, Swizzle
from ..layout.layout import make_layout
from ..layout.tuples import product_each
from ..layout.validation import as_integer
from .view import View
from .view_layouts import Cut, PairLayout, cut_modes

Kind = TypeVar("Kind", bound="View")
Extents: TypeAlias = "int | tuple[int, ...]"
TileCoordinate: TypeAlias = "SupportsIndex | Sequence[SupportsIndex]"
# A tile, the index of its first element, and the distance of that element from the first one of the tensor.
LocatedView: TypeAlias = "tuple[Kind, tuple[int, ...], int]"


class Brackets(Generic[Kind]):
    """A method of a tensor that takes fixed arguments in brackets: `t.tile[2, 2](1, 0)`.

    >>> import tilewright as tw
    >>> isinstance(tw.TileTensor(bytearray(4), tw.row_major(2, 2)).tile, Brackets)
    True
    """

    __slots__ = ("_tensor",)
    method: ClassVar[str] = ""  # the name that it has on a tensor

    def __init_subclass__(cls) -> None:
        call = vars(cls).get("__call__")
        if call is not None:  # Python's errors about arguments name the method, not this class
            call.__qualname__ = f"TileTensor.{cls.method}"

    def __init__(self, tensor: Kind) -> None:
        self._tensor = tensor

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Refuse to be called without brackets; methods that need none replace this."""
        raise TypeError(f"{self.method} takes brackets first: t.{self.method}[...](...)")

    def with_parameters(self, *parameters: Any, **named: Any) -> Any:
        """Return the method with its brackets filled; named ones, for which Python has no brackets, are options.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(4), tw.row_major(2, 2)).load.with_parameters(width=2)(0, 0).tolist()
        [0, 0]
        """
        this: Any = self  # every subclass can be called, and takes brackets
        return partial(this[parameters[0] if len(parameters) == 1 else parameters] if parameters else this, **named)


class TileBrackets(Brackets[Kind]):
    """`t.tile[4, 8](1, 0)` is the tile of shape (4, 8) at (1, 0) in the grid of tiles; see `TileTensor.tile`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[2, 4](1, 0).offset
    16
    """

    __slots__ = ()
    method = "tile"

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
    method = "tile_with_offset"

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
    method = "tiles"

    def __getitem__(self, shape: Extents) -> partial[Tiles[Kind]]:
        return partial(tiles, self._tensor, shape if isinstance(shape, tuple) else (shape,))

    def __call__(self, shape: Sequence[int], order: str = "row") -> Tiles[Kind]:
        """Return all tiles of a `shape` in an `order`, "row" or "colex"."""
        return tiles(self._tensor, tuple(shape), order)


def tile(tensor: Kind, shape: Sequence[int], *coords: TileCoordinate, stride_layout: Layout | None = None) -> Kind:
    """Return the tile at a coordinate of the grid of tiles.

    `coords` are integers, or one tuple of them. `stride_layout` has the strides of the tile as its shape; they must
    be equal, and replace strides that are known only at run time.

    >>> import tilewright as tw
    >>> tile(tw.TileTensor(list(range(72)), tw.row_major(9, 8)), (3, 4), 2, 1).offset
    52
    """
    pair, shift = cut_modes(tensor._pair, _tile_cuts(tensor, shape, _unpack_coordinates(coords)))
    if stride_layout is not None:
        pair = _replace_strides(pair, stride_layout)
    return tensor._view(pair, tensor._offset + shift)


def _unpack_coordinates(coords: tuple[TileCoordinate, ...]) -> Sequence[Any]:
    """Return the coordinates of a tile, from separate integers or one tuple."""
    return coords[0] if len(coords) == 1 and isinstance(coords[0], (tuple, list)) else coords


def _runtime_shape(tensor: View, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a tile that was passed at run time."""
    if not isinstance(shape, (tuple, list)):
        raise LayoutError("tile needs a shape: t.tile[2, 2](1, 0), or t.tile(shape, coords) at run time")
    return tuple([tensor._runtime_extent(n) if type(n) is int else n for n in shape])


def _tile_cuts(tensor: View, shape: Sequence[int], coords: Sequence[Any]) -> list[Cut]:
    """Return the cut of every mode for the tile at `coords`."""
    extents = tensor._extents
    rank = len(extents)
    if len(shape) != rank or len(coords) != rank:
        raise LayoutError(
            f"a tile of shape {tuple(shape)} at {tuple(coords)} does not fit a tensor of shape"
            f" {tensor.layout.shape}: expected {rank} extents and {rank} coordinates"
        )
    cuts: list[Cut] = []
    for k, extent in enumerate(extents):
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


def _replace_strides(pair: PairLayout, stride_layout: Layout) -> Layout:
    """Return the pair with the strides that are the shape of another layout, after comparing them."""
    strides = tuple([int(step) for step in product_each(stride_layout.shape)])
    if not isinstance(pair, Layout) or tuple(pair.stride[0]) != strides:
        actual = pair.stride[0] if isinstance(pair, Layout) else "none"
        raise LayoutError(f"stride_layout states strides {strides}, but the tile has {actual}; they must be equal")
    return make_layout(pair.shape, (strides, pair.stride[1]), pair.offset, (), pair.guards)


def tile_with_offset(
    tensor: Kind, shape: Sequence[int], *coords: TileCoordinate, stride_layout: Layout | None = None
) -> LocatedView[Kind]:
    """Return (tile, corner, offset): the tile, the index of its first element, and how far that is from the first.

    >>> import tilewright as tw
    >>> tile_with_offset(tw.TileTensor(list(range(72)), tw.row_major(9, 8)), (3, 4), 2, 1)[1:]
    ((6, 4), 52)
    """
    view = tile(tensor, shape, *coords, stride_layout=stride_layout)
    corner = tuple([int(c) * int(n) for n, c in zip(shape, _unpack_coordinates(coords), strict=True)])
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


Threads: TypeAlias = "Layout | tuple[Layout, Swizzle | None]"


class DistributeBrackets(Brackets[Kind]):
    """`t.distribute[threads](thread_id)` are the elements of one thread; see `TileTensor.distribute`.

    >>> import tilewright as tw
    >>> tw.TileTensor(list(range(48)), tw.row_major(6, 8)).distribute[tw.col_major(2, 2)](1).layout
    Layout((3, 4), (16, 2))
    """

    __slots__ = ()
    method = "distribute"

    def __getitem__(self, threads: Threads) -> partial[Kind]:
        return partial(self, threads)

    def __call__(
        self,
        threads: Threads,
        thread_id: int,
        *,
        swizzle: Swizzle | None = None,
        wrap: bool = False,
        ragged: str = "warn",
    ) -> Kind:
        """Return the elements of one thread: thread k of a mode has every n-th element from k on.

        `threads` is a layout from coordinates to thread ids. A `swizzle`, here or after the layout in brackets, moves
        the start of the view. Elements that do not divide among the threads are dropped with a warning;
        `ragged="floor"` drops them silently, `"cover"` rounds up and guards, `"error"` raises. `wrap=True` takes
        thread ids modulo the number of threads.
        """
        return _locate_elements(self._tensor, threads, thread_id, swizzle, wrap, ragged)[0]


class LocatedDistributeBrackets(Brackets[Kind]):
    """`t.distribute_with_offset[threads](thread_id)` is (view, thread coordinates, offset).

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(32)), tw.row_major(2, 16))
    >>> t.distribute_with_offset[tw.row_major(2, 8), tw.Swizzle(2, 0, 3)](10)[1:]
    ((1, 2), 16)
    """

    __slots__ = ()
    method = "distribute_with_offset"

    def __getitem__(self, threads: Threads) -> partial[LocatedView[Kind]]:
        return partial(self, threads)

    def __call__(
        self,
        threads: Threads,
        thread_id: int,
        *,
        swizzle: Swizzle | None = None,
        wrap: bool = False,
        ragged: str = "warn",
    ) -> LocatedView[Kind]:
        """Return (view, thread coordinates, offset): as `distribute`, with the thread's position and its start."""
        return _locate_elements(self._tensor, threads, thread_id, swizzle, wrap, ragged)


def _locate_elements(
    tensor: Kind, threads: Threads, thread_id: int, swizzle: Swizzle | None, wrap: bool, ragged: str
) -> LocatedView[Kind]:
    """Return (view, thread coordinates, offset) of the elements of one thread."""
    layout, swizzle = _validate_threads(tensor, threads, swizzle)
    coords = _thread_coordinates(layout, thread_id, wrap)
    cuts: list[Cut] = []
    divides = True
    for n, count, start in zip(tensor._extents, layout._shape, coords):  # noqa: B905  (equal lengths, on a hot path)
        share = n // count
        if n % count:
            divides = False
            share = ceil_div(n, count) if ragged == "cover" else share
        cuts.append((start, share, count))
    if ragged not in ("warn", "floor", "cover", "error"):
        raise LayoutError(f"expected ragged='warn', 'floor', 'cover' or 'error', got {ragged!r}")
    if not divides and ragged not in ("cover", "floor"):
        _report_dropped_elements(tensor, layout, ragged)
    pair, shift = cut_modes(tensor._pair, cuts)
    if swizzle is None:
        view = tensor._view(pair, tensor._offset + shift)
        return view, tuple(coords), view.offset - tensor.offset
    if not isinstance(pair, Layout):
        raise LayoutError(f"the elements of a thread of {tensor.layout} have no single start for a swizzle to move")
    size = tensor.element_size
    swizzled = int(swizzle(shift // size)) * size
    view = tensor._view(pair, tensor._offset + swizzled)
    view._check_bounds()
    return view, tuple(coords), swizzled


def _validate_threads(tensor: Kind, threads: Threads, swizzle: Swizzle | None) -> tuple[Layout, Swizzle | None]:
    """Return the thread layout and the swizzle, which may come together in brackets."""
    if isinstance(threads, tuple):
        if not 1 <= len(threads) <= 2:
            raise LayoutError("distribute takes a thread layout in brackets: t.distribute[row_major(4, 8)](thread_id)")
        threads, swizzle = (*threads, swizzle)[:2]
    if not isinstance(threads, Layout):
        raise TypeError(f"the thread layout must be a Layout, got {type(threads).__name__} {threads!r}")
    if swizzle is not None and not isinstance(swizzle, Swizzle):
        raise TypeError(f"the swizzle must be a Swizzle, got {type(swizzle).__name__} {swizzle!r}")
    shape = threads._shape
    fits = shape.__class__ is tuple and len(shape) == len(tensor._extents)
    for n in shape if fits else ():
        fits = fits and n.__class__ is not tuple
    if not fits:
        raise LayoutError(
            f"thread layout {threads} does not fit a tensor of shape {tensor.layout.shape}: it must be flat, with"
            f" {len(tensor._extents)} modes"
        )
    return threads, swizzle


def _thread_coordinates(threads: Layout, thread_id: SupportsIndex, wrap: bool) -> list[int]:
    """Return the coordinates of a thread id."""
    thread = thread_id if type(thread_id) is int else int(as_integer(thread_id, "a thread id"))
    count = prod(threads._shape)
    if not 0 <= thread < count:
        if not wrap:
            raise CoordinateError(
                f"thread {thread} is outside the {count} threads of {threads}; wrap=True takes it modulo {count}"
            )
        thread %= count
    pairs = zip(threads._shape, threads._stride)  # noqa: B905  (equal lengths, on a hot path)
    return [int(thread // step % n) if step else 0 for n, step in pairs]


def _report_dropped_elements(tensor: Kind, threads: Layout, ragged: str) -> None:
    """Warn, or raise, that some elements belong to no thread."""
    modes = zip(tensor._extents, threads._shape, strict=True)
    dropped = [f"the last {n % m} of mode {k}" for k, (n, m) in enumerate(modes) if n % m]
    text = (
        f"a tensor of shape {tensor.layout.shape} does not divide among threads of shape {threads.shape}:"
        f" {' and '.join(dropped)} belong to no thread; ragged='cover' assigns them, 'floor' drops them silently"
    )
    if ragged == "error":
        raise LayoutError(text)
    warnings.warn(text, RuntimeWarning, stacklevel=4)  # the line that calls distribute
