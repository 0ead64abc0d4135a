# SPDX-License-Identifier: Apache-2.0
"""Tiles and the elements of threads as views: `t.tile[2, 2](1, 0)`, `t.tiles[2, 2]()`, `t.distribute[threads](5)`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product as combinations
from math import prod
from typing import Any, ClassVar, Generic, SupportsIndex, TypeAlias, TypeVar

import numpy as np

from .._integers import ceil_div, round_up
from .._text import format_extents
from ..errors import CoordinateError, LayoutError
from ..formats import FormatLike, format_of
from ..layout import (
    Layout,
    LayoutLike,
    ShapeArgument,
    Swizzle,
    as_integer,
    as_tree,
    flatten,
    leaves,
    make_layout,
    map_leaves,
    product,
    product_each,
    suffix_product,
)
from .view import Cut, PairLayout, View, cut_modes, pair_layout, transpose_pair, vectorize_pair

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

    def with_parameters(self, *parameters: Any, **named: Any) -> Callable[..., Any]:
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
    strides = tuple([int(stride) for stride in product_each(stride_layout.shape)])
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
        """The number of tiles along each mode.

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
                f"tile {index} is outside the {format_extents(self.grid)} tiles, which are 0 to {count - 1}"
            )
        index %= count
        coords = [0] * len(self.grid)
        for k in reversed(range(len(coords))) if self.order == "row" else range(len(coords)):
            index, coords[k] = divmod(index, self.grid[k])
        return tile(self.tensor, self.shape, *coords)

    def __repr__(self) -> str:
        return f"<{format_extents(self.grid)} tiles of shape {self.shape} in {self.order} order>"


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
    return [int(thread // stride % n) if stride else 0 for n, stride in pairs]


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


# Parts and other shapes of a tensor, as views: slices, subscripts, splits; reshape, transpose, vectorize, bitcast.


class ReshapeBrackets(Brackets[Kind]):
    """`t.reshape[2, 6]()`, `t.reshape(2, 6)` or `t.reshape(layout)`; see `TileTensor.reshape`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(12), tw.row_major(3, 4)).reshape[2, 6]().shape
    (2, 6)
    """

    __slots__ = ()
    method = "reshape"

    def __getitem__(self, shape: Extents) -> partial[Kind]:
        return partial(reshape, self._tensor, shape if isinstance(shape, tuple) else (shape,))

    def __call__(self, *shape: ShapeArgument | LayoutLike, allow_resize: bool = False) -> Kind:
        """Return the tensor in another `shape`, or under another layout of the same size unless `allow_resize`."""
        first: Any = shape[0] if len(shape) == 1 else shape
        if isinstance(first, LayoutLike):
            return replace_layout(self._tensor, first, allow_resize)
        return reshape(self._tensor, first if isinstance(first, (tuple, list)) else shape)


class VectorizeBrackets(Brackets[Kind]):
    """`t.vectorize[1, 4]()` has blocks of elements as its elements; see `TileTensor.vectorize`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[1, 4]().shape
    (6, 2)
    """

    __slots__ = ()
    method = "vectorize"

    def __getitem__(self, block: Extents) -> partial[Kind]:
        return partial(vectorize, self._tensor, block if isinstance(block, tuple) else (block,))

    def __call__(self, *, simd_bytes: int = 64) -> Kind:
        """Return vectors along the last mode, as long as `simd_bytes` holds scalars."""
        rank = len(self._tensor._extents)
        width = max(1, simd_bytes // self._tensor._store.format.itemsize)
        return vectorize(self._tensor, (*[1] * (rank - 1), width) if rank else ())


class BitcastBrackets(Brackets[Kind]):
    """`t.bitcast["uint32"]()` reads the same bytes as another format; see `TileTensor.bitcast`.

    >>> import tilewright as tw
    >>> tw.TileTensor([1.0, 2.0], tw.row_major(2)).bitcast["int64"]().dtype.name
    'int64'
    """

    __slots__ = ()
    method = "bitcast"

    def __getitem__(self, dtype: FormatLike) -> partial[Kind]:
        return partial(bitcast, self._tensor, dtype)


def reshape(tensor: Kind, shape: Sequence[Any]) -> Kind:
    """Return the same elements, which must be in row-major order without gaps, in another shape.

    >>> import tilewright as tw
    >>> reshape(tw.TileTensor(list(range(12)), tw.row_major(3, 4)), (2, 6)).layout
    Layout((2, 6), (6, 1))
    """
    form: Any = map_leaves(lambda n: as_integer(n, "an extent"), as_tree(shape))
    require_row_major(tensor, "reshape")
    if product(form) != tensor.size:
        raise LayoutError(
            f"cannot reshape {tensor.size} elements of shape {tensor.layout.shape} to {form}, which has {product(form)}"
        )
    size = tensor.element_size
    if size == 1:
        return tensor._view(pair_layout(make_layout(form, suffix_product(form))), tensor._offset)
    vector = tuple([1] * (len(form) - 1) + [size]) if form else (size,)
    pair = make_layout((form, vector), (suffix_product(form, size), (1,) * len(vector)))
    return tensor._view(pair, tensor._offset)


def replace_layout(tensor: Kind, layout: LayoutLike, allow_resize: bool) -> Kind:
    """Return another layout over the storage from the first scalar of the tensor on.

    >>> import tilewright as tw
    >>> replace_layout(tw.TileTensor(list(range(12)), tw.row_major(3, 4)), tw.col_major(2, 6), False).layout
    Layout((2, 6), (1, 2))
    """
    if tensor.element_size != 1:
        raise LayoutError("cannot change the layout of a vectorized tensor; reshape it before vectorize")
    if tensor.is_ragged:
        raise LayoutError("cannot change the layout of a ragged view: some of its scalars belong to no element")
    if layout.size != tensor.size and not allow_resize:
        raise LayoutError(
            f"{layout} has {layout.size} elements, but the tensor has {tensor.size}; allow_resize=True permits that"
        )
    view = tensor._view(pair_layout(layout), tensor._offset)
    view._check_bounds()
    return view


def require_row_major(tensor: View, caller: str) -> None:
    """Raise an error that names `caller` unless the elements are in row-major order without gaps.

    >>> import tilewright as tw
    >>> require_row_major(tw.TileTensor(bytearray(12), tw.row_major(3, 4)), "reshape")
    """
    if not is_contiguous_row_major(tensor):
        raise LayoutError(
            f"{caller} needs elements in row-major order without gaps, got the layout {tensor.layout}"
            + (" with a ragged edge" if tensor.is_ragged else "")
            + "; copy it first: TileTensor(t.to_numpy())"
        )


def is_contiguous_row_major(tensor: View) -> bool:
    """Return whether the elements are in row-major order without gaps.

    >>> import tilewright as tw
    >>> is_contiguous_row_major(tw.TileTensor(bytearray(12), tw.row_major(3, 4)).transpose())
    False
    """
    pair = tensor._pair
    if not isinstance(pair, Layout) or pair.guards:
        return False
    runs = [
        leaf
        for part in (1, 0)  # the scalars of an element, then the elements
        for shape, stride in zip(pair.shape[part][::-1], pair.stride[part][::-1], strict=True)
        for leaf in zip(leaves(shape), leaves(stride), strict=True)  # in a nested mode the first is the fastest
    ]
    expected = 1
    for n, step in runs:
        if n != 1:
            if step != expected:
                return False
            expected *= n
    return True


def coalesce(tensor: Kind) -> Kind:
    """Return the tensor with one mode; its elements must be in row-major order without gaps.

    >>> import tilewright as tw
    >>> tw.TileTensor(list(range(12)), tw.row_major(3, 4)).coalesce().layout
    Layout((12,), (1,))
    """
    require_row_major(tensor, "coalesce")
    count, size = product(tensor._pair.shape[0]), tensor.element_size
    pair = make_layout(((count,), (size,) if size > 1 else ()), ((size,), (1,) if size > 1 else ()))
    return tensor._view(pair, tensor._offset)


def transpose(tensor: Kind) -> Kind:
    """Return the tensor with its modes in reverse.

    >>> import tilewright as tw
    >>> tw.TileTensor(list(range(12)), tw.row_major(3, 4)).transpose().layout
    Layout((4, 3), (1, 4))
    """
    return tensor._view(transpose_pair(tensor._pair), tensor._offset)


def vectorize(tensor: Kind, block: tuple[Any, ...]) -> Kind:
    """Return the tensor with blocks of elements as single elements.

    >>> import tilewright as tw
    >>> vectorize(tw.TileTensor(list(range(120)), tw.row_major(10, 12)), (1, 4)).layout
    Layout((10, 3), (12, 4))
    """
    rank = len(tensor._extents)
    if len(block) != rank:
        raise LayoutError(
            f"a vector of shape {tuple(block)} does not fit shape {tensor.layout.shape}; give {rank} extents"
        )
    widths = [int(as_integer(n, "a vector extent")) for n in block]
    if any(n < 1 for n in widths):
        raise LayoutError(f"the extents of a vector must be at least 1, got {tuple(block)}")
    pair = tensor._pair if all(n == 1 for n in widths) else vectorize_pair(tensor._pair, widths)
    return tensor._view(pair, tensor._offset)


def bitcast(tensor: Kind, dtype: FormatLike, rescale: bool = False) -> Kind:
    """Return the same indices and strides over the same bytes read as another format.

    `rescale=True` multiplies the strides where the new format is smaller than the old one and divides it.

    >>> import numpy as np
    >>> import tilewright as tw
    >>> hex(bitcast(tw.TileTensor(np.ones(4, dtype=np.float32), tw.row_major(2, 2)), "uint32")[0, 0])
    '0x3f800000'
    """
    old, new = tensor._store.format, format_of(dtype)
    if new.has_blocks:
        raise LayoutError(f"bitcast takes a scalar format, got {new.name}; unpack its blocks first")
    data = np.asarray(tensor._store.host).view(new.dtype)
    store = tensor._store.with_fields(data=data, format=new)
    if old.itemsize == new.itemsize:
        return tensor._view(tensor._pair, tensor._offset, store)
    if not rescale or old.itemsize % new.itemsize or not isinstance(tensor._pair, Layout):
        raise LayoutError(
            f"{old.name} and {new.name} differ in size, so the same strides would address other bytes; rescale=True"
            " multiplies them if the new size divides the old one"
        )
    factor = old.itemsize // new.itemsize
    strides = map_leaves(lambda stride: stride * factor, tensor._pair.stride)
    scaled = make_layout(tensor._pair.shape, strides, 0, (), tensor._pair.guards)
    return tensor._view(scaled, tensor._offset * factor, store)


SliceEntry: TypeAlias = "slice | int"
SliceEntries: TypeAlias = "SliceEntry | tuple[SliceEntry, ...]"


class SliceBrackets(Brackets[Kind]):
    """`t.slice[1:3, 2:5]()` is a part of a tensor; see `TileTensor.slice`.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).slice[1:3, 2:5]().offset
    10
    """

    __slots__ = ()
    method = "slice"

    def __getitem__(self, entries: SliceEntries) -> partial[Kind]:
        return partial(slice_leaves, self._tensor, entries if isinstance(entries, tuple) else (entries,), False)

    def __call__(self, *ranges: tuple[int, int]) -> Kind:
        """Return the part given by one (start, end) pair per leaf, known only at run time."""
        return slice_leaves(self._tensor, ranges, True)


class SplitBrackets(Brackets[Kind]):
    """`t.split[count, axis]()` are equal parts, `t.split[axis, alignment](count, k)` one part of several.

    >>> import tilewright as tw
    >>> [part.shape for part in tw.TileTensor(bytearray(48), tw.row_major(6, 8)).split[2, 1]()]
    [(6, 4), (6, 4)]
    """

    __slots__ = ()
    method = "split"

    def __getitem__(self, parameters: Extents) -> partial[Any]:  # a list of views, or one view
        return partial(split, self._tensor, parameters if isinstance(parameters, tuple) else (parameters,))

    def __call__(self, count: int, k: int) -> Kind:
        """Return part `k` of `count` of the first mode."""
        return _split_part(self._tensor, 0, 1, count, k)


def slice_leaves(tensor: Kind, entries: tuple[Any, ...], at_run_time: bool) -> Kind:
    """Return a part of the tensor: one entry per leaf, a range or an integer that drops its mode.

    >>> import tilewright as tw
    >>> slice_leaves(tw.TileTensor(list(range(72)), tw.row_major(6, 12)), (slice(4, 6), 10), False)
    TileTensor(Layout((2,), (12,)), offset=58, dtype='int64')
    """
    pair = tensor._pair if len(tensor._extents) == tensor._leaf_count else pair_layout(flatten(tensor._native_layout))
    if tensor.element_size > 1 and pair is not tensor._pair:
        raise LayoutError("a vectorized tensor with nested modes cannot be sliced by leaf; slice it before vectorize")
    extents = product_each(pair.shape[0])
    if len(entries) != len(extents):
        raise LayoutError(
            f"{len(entries)} ranges do not fit a tensor of shape {tensor.layout.shape}: give one for each of its"
            f" {len(extents)} leaves"
        )
    cuts, keep = [], []
    for k, (entry, extent) in enumerate(zip(entries, extents, strict=True)):
        low, high, is_range = _slice_bounds(entry, extent, k)
        cuts.append((low, tensor._runtime_extent(high - low) if at_run_time else high - low, 1))
        keep.append(is_range)
    return _cut_view(tensor, pair, cuts, None if all(keep) else keep)


def _cut_view(tensor: Kind, pair: PairLayout, cuts: list[Cut], keep: list[bool] | None = None) -> Kind:
    """Return the view of the cuts of `pair`, the layout of the tensor or its flattened form."""
    view, shift = cut_modes(pair, cuts, keep)
    return tensor._view(view, tensor._offset + shift)


def _slice_bounds(entry: SliceEntry | Sequence[int], extent: int, k: int) -> tuple[int, int, bool]:
    """Return (start, end, whether the entry is a range) of an entry for mode k."""
    if isinstance(entry, slice):
        if entry.step not in (None, 1):
            raise LayoutError(
                f"slice takes ranges with step 1, got step {entry.step}; a subscript t[a:b:s] takes any step"
            )
        low = 0 if entry.start is None else int(as_integer(entry.start, "a slice bound"))
        high = int(extent) if entry.stop is None else int(as_integer(entry.stop, "a slice bound"))
    elif isinstance(entry, (tuple, list)) and len(entry) == 2:
        low, high = (int(as_integer(bound, "a slice bound")) for bound in entry)
    else:
        index = int(as_integer(entry, "an index in a slice"))
        if not 0 <= index < extent:
            raise CoordinateError(f"index {index} of mode {k} is outside its {extent} elements")
        return index, index + 1, False
    if not 0 <= low <= high <= extent:
        raise CoordinateError(f"range {low}:{high} of mode {k} must lie within 0:{extent} and start before its end")
    return low, high, True


def subscript(tensor: Kind, entries: tuple[Any, ...]) -> Kind:
    """Return the part that a subscript with slices selects; integers drop their mode, slices clamp as in Python.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(72)), tw.row_major(6, 12))
    >>> t[-2:9, 3], t[::2, :].shape
    (TileTensor(Layout((2,), (12,)), offset=51, dtype='int64'), (3, 12))
    """
    pair = tensor._pair
    entries = _expand_ellipsis(entries, len(tensor._extents))
    if len(entries) == tensor._leaf_count != len(tensor._extents) and tensor.element_size == 1:
        pair = pair_layout(flatten(tensor._native_layout))
    extents = product_each(pair.shape[0])
    if len(entries) != len(extents):
        raise LayoutError(
            f"a tensor of shape {tensor.layout.shape} takes {len(extents)} subscripts, got {len(entries)}; give all, or"
            " use ..."
        )
    cuts: list[Cut] = []
    keep = []
    for k, (entry, extent) in enumerate(zip(entries, extents, strict=True)):
        if entry is None:
            raise LayoutError("a subscript cannot contain None; add an axis with reshape")
        if isinstance(entry, slice):
            low, high, step = entry.indices(int(extent))
            cuts.append((low, tensor._runtime_extent(len(range(low, high, step))), step))
        else:
            low, high, _ = _slice_bounds(entry, extent, k)
            cuts.append((low, 1, 1))
        keep.append(isinstance(entry, slice))
    return _cut_view(tensor, pair, cuts, None if all(keep) else keep)


def _expand_ellipsis(entries: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    """Return subscripts with `...` replaced by the missing full slices."""
    dots = [k for k, entry in enumerate(entries) if entry is Ellipsis]
    if not dots:
        return entries
    if len(dots) > 1:
        raise LayoutError("a subscript can contain only one ...")
    missing = rank - len(entries) + 1
    return (*entries[: dots[0]], *[slice(None)] * missing, *entries[dots[0] + 1 :])


def split(tensor: Kind, parameters: tuple[Any, ...], *part: int) -> Kind | list[Kind]:
    """Return equal parts for parameters (count, axis), or one part (count, k) for parameters (axis, alignment).

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(24)), tw.row_major(2, 12))
    >>> [part.offset for part in split(t, (3, 1))], [split(t, (1, 4), 4, k).shape for k in range(4)]
    ([0, 4, 8], [(2, 4), (2, 4), (2, 4), (2, 0)])
    """
    if len(part) == 2:
        axis, alignment = (*parameters, 0, 1)[:2] if len(parameters) != 1 else (parameters[0], 1)
        count, k = part
        return _split_part(tensor, axis, alignment, count, k)
    if part or not 1 <= len(parameters) <= 2:
        raise LayoutError("split takes split[count, axis]() for all parts, or split[axis, alignment](count, k) for one")
    count, axis = (*parameters, 0)[:2]
    extent = int(tensor._extents[tensor._check_mode(axis)])
    if count < 1 or extent % count:
        raise LayoutError(
            f"{extent} elements of mode {axis} do not split into {count} equal parts; use a divisor of {extent}"
        )
    length = extent // count
    return [_cut_axis(tensor, axis, k * length, length) for k in range(count)]


def _split_part(tensor: Kind, axis: int, alignment: int, count: int, k: int) -> Kind:
    """Return part k of `count` parts, each rounded up to the alignment; the last ones may be shorter or empty."""
    extent = int(tensor._extents[tensor._check_mode(axis)])
    if count < 1 or alignment < 1:
        raise LayoutError(f"split takes a count and an alignment of at least 1, got {count} and {alignment}")
    if not 0 <= k < count:
        raise CoordinateError(f"part {k} is outside the {count} parts, which are 0 to {count - 1}")
    length = round_up(ceil_div(extent, count), alignment)
    return _cut_axis(tensor, axis, k * length, tensor._runtime_extent(min(max(extent - k * length, 0), length)))


def _cut_axis(tensor: Kind, axis: int, start: int, length: int) -> Kind:
    """Return the part of a tensor from `start` on along one mode."""
    cuts: list[Cut] = [(0, n, 1) for n in tensor._extents]
    cuts[axis] = (start, length, 1)
    return _cut_view(tensor, tensor._pair, cuts)
