# SPDX-License-Identifier: Apache-2.0
"""`TileTensor`: a typed view of storage through a layout, with the vocabulary of tiled kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..errors import LayoutError
from ..formats import FormatLike, Number
from ..layout import LayoutLike
from . import elements, views
from .elements import Arithmetic, LoadBrackets, Scalars, StoreBrackets, mask, to_numpy, vector_offsets
from .store import Array, HasShapeAndStride, Storage, bind_layout, kernel_memory
from .view import View, pair_layout, rebase
from .views import (
    BitcastBrackets,
    DistributeBrackets,
    LocatedDistributeBrackets,
    LocatedTileBrackets,
    ReshapeBrackets,
    SliceBrackets,
    SplitBrackets,
    TileBrackets,
    TilesBrackets,
    VectorizeBrackets,
    check_order,
)

# Tensors as text.

MAX_PRINTED = 1000  # with more elements `str` omits the middle
EDGE = 3  # rows and columns printed at each end then


def format_number(value: Number) -> str:
    """Return the shortest text that identifies a number, in fixed notation from 1e-4 up to 1e16.

    >>> (
    ...     format_number(np.float32(0.1)),
    ...     format_number(np.float64(1e20)),
    ...     format_number(np.float32(-3.5e-5)),
    ...     format_number(7),
    ... )
    ('0.1', '1e+20', '-3.5e-05', '7')
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    # narrow floats are printed with the digits that identify them as float32
    number = value if isinstance(value, (np.float32, np.float64)) else np.float32(value)
    if not np.isfinite(number):
        return "nan" if np.isnan(number) else "inf" if number > 0 else "-inf"
    size = abs(float(number))
    if size == 0 or 1e-4 <= size < 1e16:
        return str(np.format_float_positional(number, unique=True, trim="0"))
    return str(np.format_float_scientific(number, unique=True, trim="-", exp_digits=2))


def element_texts(tensor: View) -> Array:
    """Return the text of every element as an array, `_` where it is not valid; vectors in brackets.

    >>> import tilewright as tw
    >>> element_texts(tw.TileTensor([1, 2, 3], tw.row_major(3)).tile[2](1)).tolist()
    ['3', '_']
    """
    values: Any = to_numpy(tensor, fill=0)
    valid = mask(tensor)
    texts = np.empty(values.shape, dtype=object)
    for at in np.ndindex(*values.shape):
        texts[at] = format_number(values[at]) if valid[at] else "_"
    rank = len(tensor._extents)
    if values.ndim == rank:
        return texts
    joined = np.empty(values.shape[:rank], dtype=object)
    for at in np.ndindex(*joined.shape):
        joined[at] = join_texts(tensor._arrange(texts[at]).reshape(-1))
    return joined


def join_texts(texts: Iterable[str]) -> str:
    """Return texts as one list: "[a, b]".

    >>> join_texts(["1", "2"])
    '[1, 2]'
    """
    return f"[{', '.join(texts)}]"


def format_tensor(tensor: View) -> str:
    """Return two modes as a grid, other ranks flat with the first index fastest; large ones without the middle.

    >>> import tilewright as tw
    >>> print(format_tensor(tw.TileTensor(list(range(6)), tw.row_major(2, 3))))
    [[0, 1, 2],
    [3, 4, 5]]
    """
    if tensor.size == 0:
        return ""
    if len(tensor._extents) == 2:
        rows = [join_texts(row) for row in _matrix_texts(tensor)]
        return f"[{_join_rows(rows, tensor)}]"
    if tensor.size <= MAX_PRINTED:
        return join_texts(element_texts(tensor).reshape(-1, order="F"))
    ends = [_element_text(tensor, k) for k in range(EDGE)]
    ends += ["..."] + [_element_text(tensor, k) for k in range(tensor.size - EDGE, tensor.size)]
    return join_texts(ends)


def _join_rows(rows: list[str], tensor: View) -> str:
    if tensor.size > MAX_PRINTED and tensor._extents[0] > 2 * EDGE:
        rows = [*rows[:EDGE], "...", *rows[-EDGE:]]
    return ",\n".join(rows)


def _matrix_texts(tensor: View) -> list[list[str]]:
    """Return the texts of a matrix, row by row; of a large one only the first and last rows and columns."""
    if tensor.size <= MAX_PRINTED:
        return [list(row) for row in element_texts(tensor)]
    chosen = [list(range(n)) if n <= 2 * EDGE else [*range(EDGE), *range(n - EDGE, n)] for n in tensor._extents]
    rows = []
    for i in chosen[0]:
        row = [_element_text(tensor, i, j) for j in chosen[1]]
        if tensor._extents[1] > 2 * EDGE:
            row[EDGE:EDGE] = ["..."]
        rows.append(row)
    return rows


def _element_text(tensor: View, *index: int) -> str:
    offsets, valid = vector_offsets(tensor, index)
    data = tensor._store.host
    texts = [
        format_number(data[offset]) if ok else "_"
        for offset, ok in zip(offsets.reshape(-1), valid.reshape(-1), strict=True)
    ]
    return texts[0] if tensor.element_size == 1 else join_texts(texts)


def format_matrices(tensor: View) -> str:
    """Return every matrix of the last two modes as a grid under its leading coordinates.

    >>> import tilewright as tw
    >>> print(format_matrices(tw.TileTensor(list(range(8)), tw.row_major(2, 2, 2))))
    [0, :, :]
      0 1
      2 3
    [1, :, :]
      4 5
      6 7
    """
    texts = element_texts(tensor)
    if texts.ndim < 2:
        return " ".join(texts.reshape(-1))
    width = max((len(text) for text in texts.reshape(-1)), default=0)
    lines = []
    for at in np.ndindex(*texts.shape[:-2]):
        if at:
            lines.append(f"[{', '.join(map(str, at))}, :, :]")
        indent = "  " if at else ""
        lines += [indent + " ".join(text.rjust(width) for text in row) for row in texts[at]]
    return "\n".join(lines)


Kind = TypeVar("Kind", bound="TileTensor")
OtherTarget = TypeVar("OtherTarget")
SubscriptEntry: TypeAlias = "SupportsIndex | slice | EllipsisType | Array | tuple[SupportsIndex, ...]"
Subscript: TypeAlias = "SubscriptEntry | tuple[SubscriptEntry, ...]"


class TileTensor(Arithmetic):
    """A view of storage through a layout; tiles, slices, vectors and the elements of threads are further views.

    `storage` is a NumPy array, a buffer such as `bytearray`, an object with DLPack, a device buffer, or a list of
    numbers, which is copied. Without a `layout` an array keeps its shape and strides; `dtype` reads a buffer as another
    format. The storage must contain all offsets of the layout. Views share memory; `TileTensor(t)` is the same view,
    read-only. Brackets hold compile-time arguments, parentheses run-time arguments.

    >>> import tilewright as tw
    >>> t = TileTensor(np.arange(16), tw.row_major(4, 4))
    >>> t.tile[2, 2](1, 0).to_numpy().tolist()
    [[8, 9], [12, 13]]
    >>> t.vectorize[1, 4]()[2, 0].tolist()
    [8, 9, 10, 11]
    """

    __slots__ = ()

    def __init__(
        self,
        storage: Storage | TileTensor,
        layout: LayoutLike | HasShapeAndStride | None = None,
        *,
        dtype: FormatLike | None = None,
    ) -> None:
        if isinstance(storage, TileTensor):
            if layout is not None:
                raise LayoutError("a tensor already has a layout; use t.reshape(layout) for another one")
            self._store = storage._store.with_fields(readonly=True)
            self._pair, self._offset = storage._pair, storage._offset
            return
        self._store, self._layout, self._offset = bind_layout(storage, layout, dtype)
        self._pair, first = rebase(pair_layout(self._layout))
        if first:
            self._offset += first
            self._layout = rebase(self._layout)[0]
        self._check_bounds()

    @classmethod
    def from_numpy(cls: type[Kind], array: ArrayLike, layout: LayoutLike | None = None) -> Kind:
        """Return a tensor over the memory of `array`, without a copy; a `layout` replaces its shape and strides.

        >>> TileTensor.from_numpy(np.zeros((3, 4))).layout
        Layout((3, 4), (4, 1))
        """
        return cls(np.asarray(array), layout)

    # Elements.

    def __getitem__(self, key: Subscript) -> Any:
        offset = self._quick_offset(key)
        if offset is not None:
            vector = self._quick[2]
            if kernel_memory.get() is not None:
                self._store.will_read(offset if vector is None else vector + offset)
            return self._store.data[offset] if vector is None else self._store.host[vector + offset]
        index = key if isinstance(key, tuple) else (key,)
        if _has_slice(index):
            return views.subscript(self, index)
        return elements.read_element(self, index)

    def __setitem__(self, key: Subscript, value: View | ArrayLike) -> None:
        if not self._store.readonly:
            offset = self._quick_offset(key)
            if offset is not None:
                _, _, vector, (own_type, types, low, high) = self._quick
                if vector is None:
                    value_type: type = value.__class__
                    if value_type is not own_type and (value_type not in types or not low <= value <= high):
                        value = elements.fit_scalar(value, self._store.format)
                    self._store.will_write(offset)
                    self._store.data[offset] = value
                    return
        index = key if isinstance(key, tuple) else (key,)
        if _has_slice(index):
            part = views.subscript(self, index)
            if isinstance(value, View) or np.ndim(value):
                elements.copy_from(part, value)
            else:
                elements.fill(part, value)
            return
        elements.write_element(self, index, np.asarray(value) if isinstance(value, View) else value)

    def _quick_offset(self, key: object) -> int | None:
        """Return the offset of an index of plain integers, one per mode, in a strided view; else None."""
        try:
            shape, stride, _, _ = self._quick
        except AttributeError:
            shape, stride, _, _ = self._quick = elements.quick_access(self)
        if key.__class__ is int and len(shape) == 1:
            key = (key,)
        if type(key) is not tuple or len(key) != len(shape):
            return None
        offset = self._offset
        if len(key) == 2:  # the usual case, without a loop
            (row, column), (rows, columns), (down, right) = key, shape, stride
            if row.__class__ is column.__class__ is down.__class__ is right.__class__ is int:
                if 0 <= row < rows and 0 <= column < columns:
                    return int(offset + row * down + column * right)
                return None
        for c, n, d in zip(key, shape, stride):  # noqa: B905  (equal lengths, on the hot path)
            if c.__class__ is not int or not 0 <= c < n:
                return None
            if d.__class__ is int:
                offset += c * d
            else:
                for extent, inner in d:
                    offset += c % extent * inner
                    c //= extent
        return offset

    @property
    def valid_shape(self) -> tuple[int, ...]:
        """The extent of the valid part of each mode.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[4, 4](1, 0).valid_shape
        (2, 4)
        """
        if not self.is_ragged:
            return self.shape
        extents = elements.valid_extents(self)
        if extents is None:
            raise LayoutError(f"the valid part of {self.layout} is not a box; mask() shows it")
        return extents

    mask = elements.mask

    @property
    def load(self: Kind) -> LoadBrackets[Kind]:
        """Read an element: `t.load(2, 3)`; or scalars from there on: `t.load[width](2, 3)`.

        Options: `width`, `alignment` in bytes, which is checked, and `fill`, the value of scalars outside the valid
        part of a ragged view.

        >>> import tilewright as tw
        >>> t = tw.TileTensor(list(range(48)), tw.row_major(6, 8))
        >>> int(t.load(2, 3)), t.load[4](1, 6).tolist()
        (19, [14, 15, 16, 17])
        """
        return LoadBrackets(self)

    @property
    def store(self: Kind) -> StoreBrackets[Kind]:
        """Write an element: `t.store((1, 0), x)`; or scalars from there on: `t.store[width]((1, 0), xs)`.

        Options: `width`, `alignment` in bytes, which is checked, and `fill` (any value), with which only the valid
        scalars of a ragged view are written.

        >>> import tilewright as tw
        >>> t = tw.TileTensor([0] * 4, tw.row_major(2, 2))
        >>> t.store((1, 0), 7)
        >>> t.to_numpy().tolist()
        [[0, 0], [7, 0]]
        """
        return StoreBrackets(self)

    def __iter__(self) -> Iterator[Any]:
        if self.rank != 1:
            raise TypeError("only a tensor of rank 1 is iterable; loop over t.tiles[...]() or t.flat(order='row')")
        return (self[k] for k in range(self.size))

    # Views.

    @property
    def tile(self: Kind) -> TileBrackets[Kind]:
        """A tile: `t.tile[shape](*coords)`, or `t.tile(shape, coords)` at run time.

        `shape` has one extent per mode, `coords` are the coordinates in the grid of tiles. A tile at a ragged edge
        keeps its full shape and knows its valid part.

        >>> import tilewright as tw
        >>> t = tw.TileTensor(list(range(72)), tw.row_major(9, 8))
        >>> t.tile[3, 4](2, 1)
        TileTensor(Layout((3, 4), (8, 1)), offset=52, dtype='int64')
        >>> t.tile[4, 4](2, 0).valid_shape
        (1, 4)
        """
        return TileBrackets(self)

    @property
    def tile_with_offset(self: Kind) -> LocatedTileBrackets[Kind]:
        """(tile, corner, offset): as `tile`, with the index of its first element and its distance in storage.

        >>> import tilewright as tw
        >>> tw.TileTensor(list(range(72)), tw.row_major(9, 8)).tile_with_offset[3, 4](2, 1)[1:]
        ((6, 4), 52)
        """
        return LocatedTileBrackets(self)

    @property
    def tiles(self: Kind) -> TilesBrackets[Kind]:
        """All tiles: `t.tiles[shape](order)` with `order` "row" (last coordinate fastest) or "colex".

        >>> import tilewright as tw
        >>> [part.offset for part in tw.TileTensor(list(range(12)), tw.row_major(3, 4)).tiles[2, 2]()]
        [0, 2, 8, 10]
        """
        return TilesBrackets(self)

    @property
    def distribute(self: Kind) -> DistributeBrackets[Kind]:
        """The elements of one thread: `t.distribute[threads](thread_id)`.

        `threads` is a layout from thread coordinates to ids, optionally followed by a swizzle. Options: `swizzle`,
        `wrap` (ids modulo the number of threads), and `ragged`, what to do with elements that do not divide: "warn" and
        drop, "floor" (drop), "cover" (round up and guard) or "error".

        >>> import tilewright as tw
        >>> t = tw.TileTensor(list(range(48)), tw.row_major(6, 8))
        >>> [t.distribute[tw.col_major(2, 2)](k).offset for k in range(4)]
        [0, 8, 1, 9]
        """
        return DistributeBrackets(self)

    @property
    def distribute_with_offset(self: Kind) -> LocatedDistributeBrackets[Kind]:
        """(view, thread coordinates, offset): as `distribute`, with the coordinates and the start of the thread.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(48), tw.row_major(6, 8)).distribute_with_offset[tw.row_major(2, 4)](5)[1:]
        ((1, 1), 9)
        """
        return LocatedDistributeBrackets(self)

    @property
    def vectorize(self: Kind) -> VectorizeBrackets[Kind]:
        """Blocks of elements as single elements: `t.vectorize[1, 4]()`.

        An element is the block in its own shape; at a ragged edge it has fewer valid scalars. Without brackets, blocks
        are as long in the last mode as `simd_bytes` (64) holds scalars.

        >>> import tilewright as tw
        >>> t = tw.TileTensor(list(range(120)), tw.row_major(10, 12)).vectorize[1, 4]()
        >>> t.layout, t.element_size, t[1, 0].tolist()
        (Layout((10, 3), (12, 4)), 4, [12, 13, 14, 15])
        """
        return VectorizeBrackets(self)

    @property
    def slice(self: Kind) -> SliceBrackets[Kind]:
        """A part: `t.slice[1:4, 2:7]()`, or at run time `t.slice((1, 4), (2, 7))`.

        One entry per leaf: a range, or in brackets an integer, which drops its mode. Bounds are checked; subscripts
        `t[1:3, :]` clamp them as Python does.

        >>> import tilewright as tw
        >>> t = tw.TileTensor(list(range(72)), tw.row_major(6, 12))
        >>> t.slice[4:6, 10]()
        TileTensor(Layout((2,), (12,)), offset=58, dtype='int64')
        """
        return SliceBrackets(self)

    @property
    def split(self: Kind) -> SplitBrackets[Kind]:
        """Equal parts, `t.split[count, axis]()`, or one part, `t.split[axis, alignment](count, k)`.

        Equal parts need an extent that `count` divides. One part is rounded up to `alignment`, and the last parts may
        be shorter or empty.

        >>> import tilewright as tw
        >>> t = tw.TileTensor(list(range(24)), tw.row_major(2, 12))
        >>> [part.offset for part in t.split[3, 1]()], t.split[1, 4](4, 3).shape
        ([0, 4, 8], (2, 0))
        """
        return SplitBrackets(self)

    @property
    def reshape(self: Kind) -> ReshapeBrackets[Kind]:
        """The tensor in another shape, `t.reshape[2, 6]()` or `t.reshape(2, 6)`, or layout, `t.reshape(layout)`.

        A shape needs elements in row-major order without gaps, and the same number of them. A layout starts at the
        first scalar of the tensor; one of another size needs `allow_resize=True`.

        >>> import tilewright as tw
        >>> t = tw.TileTensor(list(range(12)), tw.row_major(3, 4))
        >>> t.reshape[2, 6]().layout, t.reshape(tw.col_major(2, 6)).layout
        (Layout((2, 6), (6, 1)), Layout((2, 6), (1, 2)))
        """
        return ReshapeBrackets(self)

    @property
    def bitcast(self: Kind) -> BitcastBrackets[Kind]:
        """The same indices and strides over the same bytes, read as another format: `t.bitcast[dtype]()`.

        Formats of other sizes need `rescale=True`, which multiplies the strides where the new size divides the old one.

        >>> import tilewright as tw
        >>> hex(TileTensor(np.ones(4, dtype=np.float32), tw.row_major(2, 2)).bitcast["uint32"]()[0, 0])
        '0x3f800000'
        """
        return BitcastBrackets(self)

    coalesce = views.coalesce
    transpose = views.transpose

    @property
    def T(self: Kind) -> Kind:  # noqa: N802  (NumPy's name)
        """The tensor with its modes in reverse.

        >>> import tilewright as tw
        >>> tw.TileTensor(bytearray(12), tw.row_major(3, 4)).T.shape
        (4, 3)
        """
        return self.transpose()

    def as_readonly(self: Kind) -> Kind:
        """Return the same view, read-only.

        >>> import tilewright as tw
        >>> TileTensor(bytearray(4), tw.row_major(2, 2)).as_readonly().readonly
        True
        """
        return self._view(self._pair, self._offset, self._store.with_fields(readonly=True))

    def __copy__(self: Kind) -> Kind:
        return self._view(self._pair, self._offset)

    # Contents.

    fill = elements.fill
    copy_from = elements.copy_from
    to_numpy = elements.to_numpy
    equals = elements.equals

    def copy_to(self, target: OtherTarget, order: str | None = None, fill: Number | None = None) -> OtherTarget:
        """Copy and convert the elements into `target`, a tensor or a writeable array; return it.

        `order` and `fill` are as in `copy_from`.

        >>> import tilewright as tw
        >>> TileTensor([1, 2, 3, 4], tw.col_major(2, 2)).copy_to(np.zeros((2, 2))).tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        memory: Any = target  # an array, of any library
        elements.copy_from(target if isinstance(target, View) else type(self)(memory), self, order, fill)
        return target

    def flat(self, order: str = "colex") -> Array:
        """Return all elements in one dimension: the first mode fastest ("colex"), or the last ("row").

        >>> import tilewright as tw
        >>> t = TileTensor(list(range(4)), tw.row_major(2, 2))
        >>> t.flat().tolist(), t.flat(order="row").tolist()
        ([0, 2, 1, 3], [0, 1, 2, 3])
        """
        check_order(order)
        values = self.to_numpy()
        axes = range(self.rank) if order == "row" else reversed(range(self.rank))
        ordered = values.transpose([*axes, *range(self.rank, values.ndim)])
        return ordered.reshape(prod(values.shape[: self.rank]), *values.shape[self.rank :])

    def as_strided(self) -> Array:
        """Return the valid scalars as a NumPy view of storage, one dimension per leaf: for inner loops and numba.

        The leaves of a nested mode come slowest first; the scalars of a vector are part of their mode.

        >>> import tilewright as tw
        >>> TileTensor(list(range(6)), tw.col_major(2, 3)).as_strided().tolist()
        [[0, 2, 4], [1, 3, 5]]
        """
        view = Scalars.of(self).view()
        if view is None:
            raise LayoutError(f"{self.layout} is not strided, or ragged within a nested mode; use to_numpy()")
        return view

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        values = elements.to_numpy(self, copy=copy)
        return values if dtype is None or values.dtype == dtype else values.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return elements.to_numpy(self, copy=False).__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return elements.to_numpy(self, copy=False).__dlpack_device__()

    def _new_tensor(self, values: Array) -> TileTensor:
        return type(self)(np.ascontiguousarray(values))

    # Text.

    def __str__(self) -> str:
        return format_tensor(self)

    def pretty(self) -> str:
        """Return every matrix of the last two modes as a grid under its leading coordinates.

        >>> import tilewright as tw
        >>> print(TileTensor([1, 2, 3, 10], tw.row_major(2, 2)).pretty())
         1  2
         3 10
        """
        return format_matrices(self)

    def __repr__(self) -> str:
        parts = [repr(self.layout), f"offset={self._offset}", f"dtype={self.dtype.name!r}"]
        if self.element_size > 1:
            parts.append(f"element={self.element_layout!r}")
        if self.readonly:
            parts.append("readonly=True")
        return f"{type(self).__name__}({', '.join(parts)})"


def _has_slice(index: tuple[Any, ...]) -> bool:
    return any(entry.__class__ is slice or entry is Ellipsis for entry in index)
