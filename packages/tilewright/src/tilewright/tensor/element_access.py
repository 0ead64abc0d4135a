# SPDX-License-Identifier: Apache-2.0
"""Access to elements: from an index to the scalars in storage, with all checks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..errors import CoordinateError, LayoutError
from ..formats import ScalarFormat, fit_values
from ..formats.casts import direct_range
from ..layout import Layout
from ..layout.coordinate import is_slice
from ..layout.tuples import leaves, product, product_each
from ..layout.validation import as_integer, is_array
from .store import Array, Number
from .tile_views import Brackets, Kind
from .view import View
from .watching import current_watcher

IndexEntry: TypeAlias = "SupportsIndex | Array | Sequence[SupportsIndex]"


def watch_read(tensor: View, places: Any, width: int = 1) -> None:
    """Tell whoever watches memory that scalars of a tensor are about to be read.

    >>> import tilewright as tw
    >>> watch_read(tw.TileTensor([1, 2], tw.row_major(2)), 0)
    """
    watcher = current_watcher()
    if watcher is not None:
        watcher.read(tensor._store, places, width)


def watch_write(tensor: View, places: Any, width: int = 1) -> None:
    """Tell whoever watches memory that scalars of a tensor are about to be written.

    >>> import tilewright as tw
    >>> watch_write(tw.TileTensor([1, 2], tw.row_major(2)), 0)
    """
    watcher = current_watcher()
    if watcher is not None:
        watcher.write(tensor._store, places, width)


def element_place(tensor: View, index: tuple[Any, ...]) -> Any:
    """Return the position in storage of the first scalar of the element at an index.

    >>> import tilewright as tw
    >>> element_place(tw.TileTensor(bytearray(48), tw.row_major(6, 8)), (1, 3))
    11
    """
    layout = tensor._core_layout
    _refuse_slices(index)
    try:
        place = layout(*index)
        inside = True if not tensor.is_ragged else layout.valid(*index)
    except LayoutError as problem:
        raise _index_error(tensor, index, problem) from None
    if not np.all(inside):
        raise CoordinateError(
            f"index {_format_index(index)} is outside the valid part of a ragged view of shape {layout.shape}:"
            f" {_describe_valid_part(tensor)}; load(..., fill=x) reads x there"
        )
    return tensor.offset + place


def _refuse_slices(index: tuple[Any, ...]) -> None:
    if is_slice(index):
        raise TypeError(f"a coordinate must be an integer, got None or a slice in {index}")


def _index_error(tensor: View, index: tuple[Any, ...], problem: LayoutError) -> CoordinateError:
    """Return the error for an index that the layout refused: out of range, or of the wrong form."""
    return _out_of_range_error(tensor, index) if isinstance(problem, CoordinateError) else CoordinateError(str(problem))


def _out_of_range_error(tensor: View, index: tuple[Any, ...]) -> CoordinateError:
    shape = tensor._core_layout.shape
    if any(isinstance(part, int) and part < 0 for part in index):
        return CoordinateError(f"index {_format_index(index)} is negative; indices into shape {shape} start at 0")
    return CoordinateError(
        f"index {_format_index(index)} is outside a tensor of shape {shape}: {_describe_range(tensor, index)}"
    )


def _describe_range(tensor: View, index: tuple[Any, ...]) -> str:
    """Return the range of the first mode that an index leaves, as text."""
    if len(index) == 1 and tensor.rank != 1:
        return f"a linear index takes 0 to {tensor.size - 1}"
    extents = tensor.shape if len(index) == tensor.rank else tuple(leaves(tensor._core_layout.shape))
    for k, (part, extent) in enumerate(zip(index, extents, strict=False)):
        if not isinstance(part, int) or part >= extent:
            return f"mode {k} takes 0 to {extent - 1}"
    return f"the extents are {extents}"


def _format_index(index: tuple[Any, ...]) -> str:
    return str(index[0] if len(index) == 1 else index)


def _describe_valid_part(tensor: View) -> str:
    try:
        return f"its valid shape is {tensor.valid_shape}"
    except LayoutError:
        return "mask() shows it"


def vector_places(tensor: View, index: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return (places, valid) of all scalars of an element, as arrays in the shape of an element.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(bytearray(96), tw.row_major(8, 12)).vectorize[2, 2]()
    >>> vector_places(t, (1, 0))[0].tolist()
    [[24, 25], [36, 37]]
    """
    pair = tensor._pair
    _refuse_slices(index)
    try:
        coord = tensor._core_layout._nest_coordinate(index)
        scalars = np.arange(tensor.element_size)
        # of an element with one scalar the results are single numbers
        places = np.broadcast_to(pair(coord, scalars) + tensor.offset, scalars.shape)
        valid = np.broadcast_to(pair.valid(coord, scalars) if tensor.is_ragged else True, scalars.shape)
    except LayoutError as problem:
        raise _index_error(tensor, index, problem) from None
    block = tuple([n for n in product_each(pair.shape[1]) if n != 1]) or (1,)
    return tensor._arrange(places.reshape(block, order="F")), tensor._arrange(valid.reshape(block, order="F"))


def read_element(tensor: View, index: tuple[Any, ...], fill: Number | None = None) -> Any:
    """Return an element: a scalar, or the array of its scalars; scalars that are not valid read as `fill`.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(12)), tw.row_major(3, 4)).vectorize[1, 2]()
    >>> read_element(t, (1, 1)).tolist()
    [6, 7]
    """
    data = tensor._store.host
    if tensor.element_size == 1:
        if fill is None or not tensor.is_ragged or tensor._core_layout.valid(*index):
            place = element_place(tensor, index)
            watch_read(tensor, place)
            return data[place]
        if product(tensor._core_layout.shape) == 0:
            raise _out_of_range_error(tensor, index)
        tensor._core_layout(*index)  # raises outside the full shape, where nothing is padded
        return fit_values(fill, tensor._store.format)[()]
    places, valid = vector_places(tensor, index)
    watch_read(tensor, places[valid])
    if valid.all():
        return data[places]
    if fill is None:
        raise _partly_valid_error(tensor, index, valid, "load(..., fill=x) reads x there")
    values = np.full(places.shape, fit_values(fill, tensor._store.format), dtype=data.dtype)
    values[valid] = data[places[valid]]
    return values


def write_element(tensor: View, index: tuple[Any, ...], value: ArrayLike, masked: bool = False) -> None:
    """Write an element: one number goes to all its scalars; `masked` writes only the valid ones.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0] * 4, tw.row_major(2, 2))
    >>> write_element(t, (1, 0), 7)
    >>> t.to_numpy().tolist()
    [[0, 0], [7, 0]]
    """
    require_writable(tensor)
    data = tensor._store.host
    if tensor.element_size == 1:
        if masked and tensor.is_ragged and not tensor._core_layout.valid(*index):
            tensor._core_layout(*index)
            return
        place = element_place(tensor, index)
        watch_write(tensor, place)
        data[place] = fit_values(value, tensor._store.format)
        return
    places, valid = vector_places(tensor, index)
    scalars = fit_values(value, tensor._store.format)
    if scalars.ndim and scalars.size != places.size:
        raise LayoutError(
            f"an element has {places.size} scalars of shape {places.shape}: expected one number or {places.size}, got"
            f" {scalars.size}"
        )
    if not valid.all() and not masked:
        raise _partly_valid_error(tensor, index, valid, "store(..., fill=x) writes only those")
    block = np.broadcast_to(scalars.reshape(places.shape) if scalars.ndim else scalars, places.shape)
    watch_write(tensor, places[valid])
    data[places[valid]] = block[valid]


def fit_scalar(value: View | ArrayLike, target: ScalarFormat) -> Any:
    """Return one number, or an array of one, in a format; raise if it is not a value of it.

    >>> from tilewright.formats import int8
    >>> int(fit_scalar(2.0, int8))
    2
    """
    number: Any = value.item() if isinstance(value, np.generic) else value
    if number.__class__ is float and target.kind in ("int", "uint") and number.is_integer():
        number = int(number)
    fitted = fit_values(np.asarray(number) if isinstance(number, View) else number, target)
    if fitted.size != 1:
        raise LayoutError(f"an element is one number, got {fitted.size}; assign to a slice, or use t.store[width]")
    return fitted.reshape(())[()]


def _partly_valid_error(tensor: View, index: tuple[Any, ...], valid: Array, remedy: str) -> CoordinateError:
    return CoordinateError(
        f"element {_format_index(index)} of a ragged view has {int(valid.sum())} valid scalars of {valid.size};"
        f" {remedy}"
    )


def require_writable(tensor: View) -> None:
    """Raise if a tensor is read-only.

    >>> import tilewright as tw
    >>> require_writable(tw.TileTensor(bytearray(4), tw.row_major(2, 2)))
    """
    if tensor._store.readonly:
        raise LayoutError("this tensor is read-only: its storage is, or the view was made read-only")


def scalar_run(tensor: View, index: tuple[Any, ...], width: int, alignment: int | None) -> tuple[int, int]:
    """Return (place, width) of `width` consecutive scalars from an element on, inside storage and aligned.

    >>> import tilewright as tw
    >>> scalar_run(tw.TileTensor(bytearray(48), tw.row_major(6, 8)), (1, 6), 4, None)
    (14, 4)
    """
    count = as_integer(width, "a width")
    place = element_place(tensor, index)
    if count < 1 or is_array(place):
        raise LayoutError(f"a load or store with a width takes one index and a width of at least 1, got width {count}")
    if place + count > tensor._store.size:
        raise CoordinateError(
            f"scalars {place} to {place + count - 1} exceed the storage of {tensor._store.size}; use a smaller width"
        )
    check_alignment(tensor, place, alignment)
    return place, count


def check_alignment(tensor: View, place: int, alignment: int | None) -> None:
    """Raise unless the byte address of a scalar is a multiple of alignment.

    >>> import tilewright as tw
    >>> check_alignment(tw.TileTensor(bytearray(4), tw.row_major(2, 2)), 1, 1)
    """
    if alignment is None:
        return
    step = as_integer(alignment, "an alignment")
    if step < 1:
        raise LayoutError(f"an alignment must be at least 1 byte, got {step}")
    address = tensor._store.address(place)
    if address % step:
        raise LayoutError(
            f"scalar {place} is at address {address:#x}, which is not a multiple of {step}; align the storage, or use a"
            " smaller alignment"
        )


def _instructions(tensor: View, place: int, count: int, alignment: int | None) -> list[tuple[int, int]]:
    """Return (place, width) of the accesses to `count` scalars: several if their alignment is less than their size."""
    size = tensor._store.format.itemsize
    if alignment is None or alignment >= min(count * size, 16):  # the bytes that one instruction accesses
        return [(place, count)]
    width = max(1, alignment // size)
    return [(place + k, min(width, count - k)) for k in range(0, count, width)]


class LoadBrackets(Brackets[Kind]):
    """`t.load(2, 3)` is an element, `t.load[4](2, 3)` four scalars from there on; see `TileTensor.load`.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(48)), tw.row_major(6, 8))
    >>> int(t.load(2, 3)), t.load[4](1, 6).tolist()
    (19, [14, 15, 16, 17])
    """

    __slots__ = ()
    method = "load"

    def __getitem__(self, width: int | tuple[Any, ...]) -> partial[Any]:
        return partial(self, **_width_and_alignment(width))

    def __call__(
        self,
        *index: IndexEntry,
        width: int | None = None,
        alignment: int | None = None,
        invariant: bool = False,
        fill: Number | None = None,
    ) -> Any:
        """Return the element at `index`, or `width` consecutive scalars from there on.

        `alignment` in bytes is checked, `invariant` is a hint, and `fill` is read where a ragged view is not valid.
        """
        tensor, entries = self._tensor, _unpack_index(index)
        if width is None:
            if alignment is not None:
                check_alignment(tensor, element_place(tensor, entries), alignment)
            return read_element(tensor, entries, fill)
        place, count = scalar_run(tensor, entries, width, alignment)
        for first, step in _instructions(tensor, place, count, alignment):
            watch_read(tensor, first, step)
        return tensor._store.host[place : place + count].copy()


class StoreBrackets(Brackets[Kind]):
    """`t.store((1, 0), x)` writes an element, `t.store[4]((1, 0), xs)` four scalars; see `TileTensor.store`.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0] * 8, tw.row_major(2, 4))
    >>> t.store[2]((1, 0), [5, 6])
    >>> t.store(0, 3, 7)
    >>> t.to_numpy().tolist()
    [[0, 0, 0, 7], [5, 6, 0, 0]]
    """

    __slots__ = ()
    method = "store"

    def __getitem__(self, width: int | tuple[Any, ...]) -> partial[None]:
        return partial(self, **_width_and_alignment(width))

    def __call__(
        self,
        *index_and_value: Any,  # the index in one or several entries, then the value: a number or an array
        width: int | None = None,
        alignment: int | None = None,
        fill: Number | None = None,
    ) -> None:
        """Write the element at an index, or `width` consecutive scalars from there on; the value comes last.

        `alignment` in bytes is checked; with `fill` (any value) only the valid scalars of a ragged view are written.
        """
        if len(index_and_value) < 2:
            raise TypeError("store takes an index and a value: store(index, value)")
        tensor = self._tensor
        *entries, value = index_and_value
        index = _unpack_index(tuple(entries))
        require_writable(tensor)
        if width is None:
            if alignment is not None:
                check_alignment(tensor, element_place(tensor, index), alignment)
            write_element(tensor, index, value, masked=fill is not None)
            return
        place, count = scalar_run(tensor, index, width, alignment)
        scalars = fit_values(value, tensor._store.format).reshape(-1)
        if scalars.size != count:
            raise LayoutError(f"store with width {count} takes {count} scalars, got {scalars.size}")
        for first, step in _instructions(tensor, place, count, alignment):
            watch_write(tensor, first, step)
        tensor._store.host[place : place + count] = scalars


def _width_and_alignment(parameters: int | tuple[Any, ...]) -> dict[str, Any]:
    """Return the options of brackets [width], [width, alignment] or [width, alignment, invariant]."""
    values = parameters if isinstance(parameters, tuple) else (parameters,)
    if len(values) > 3:
        raise TypeError(f"brackets take a width, an alignment and whether memory is invariant, got {values}")
    return dict(zip(("width", "alignment"), values, strict=False))


def _unpack_index(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index as separate entries, from separate entries or one tuple."""
    if len(index) == 1 and isinstance(index[0], (tuple, list)):
        return tuple(index[0])
    return index


def quick_access(tensor: View) -> tuple[tuple[int, ...], tuple[Any, ...], Any, Any]:
    """Return (extents, steps, vector, numbers) for access on the hot path; extents (0,) refuse every index.

    The step of a nested mode is the (extent, stride) of each of its leaves. The vector has the offsets of the scalars
    of an element, None for plain scalars. Numbers are those that can be stored as they are: of the format's own
    type, or (types, low, high).

    >>> import tilewright as tw
    >>> quick_access(tw.TileTensor(bytearray(24), tw.Layout((4, (2, 3)), (6, (3, 1)))))[:3]
    ((4, 6), (6, [(2, 3), (3, 1)]), None)
    """
    pair, numbers = tensor._pair, (tensor._store.format.dtype.type, *direct_range(tensor._store.format))
    if not isinstance(pair, Layout) or pair.guards:
        return (0,), (0,), None, numbers
    modes = zip(pair.shape[0], pair.stride[0], strict=True)
    steps: list[Any] = []
    for shape, stride in modes:
        if isinstance(stride, tuple):
            extents: list[Any] = leaves(shape)
            strides: list[Any] = leaves(stride)
            steps.append([(int(n), int(d)) for n, d in zip(extents, strides, strict=True)])
        else:
            steps.append(int(stride))
    vector = None
    if pair.shape[1]:
        vector = Layout(pair.shape[1], pair.stride[1]).offsets()
        vector = tensor._arrange(vector.reshape(tuple([n for n in vector.shape if n != 1]) or (1,)))
    return tensor.shape, tuple(steps), vector, numbers
