# SPDX-License-Identifier: Apache-2.0
"""Access to elements: from an index to the scalars in storage, with all checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..copying import Buffer, Placement, aligned_empty, execute, footprint_of, placement_of, plan_copy
from ..errors import CoordinateError, FormatError, LayoutError
from ..formats import Number, ScalarFormat, cast, direct_range, fit_values
from ..layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    as_integer,
    compose,
    is_array,
    is_slice,
    leaves,
    product,
    product_each,
)
from .store import Array, kernel_memory, strided_view
from .view import PairLayout, View, elements_layout, scalars_layout, vector_layout
from .views import Brackets, Kind, check_order

IndexEntry: TypeAlias = "SupportsIndex | Array | Sequence[SupportsIndex]"


def element_offset(tensor: View, index: tuple[Any, ...]) -> int | Any:
    """Return the position in storage of the first scalar of the element at an index.

    >>> import tilewright as tw
    >>> element_offset(tw.TileTensor(bytearray(48), tw.row_major(6, 8)), (1, 3))
    11
    """
    layout = tensor._native_layout
    _refuse_slices(index)
    try:
        offset = layout(*index)
        inside = True if not tensor.is_ragged else layout.valid(*index)
    except LayoutError as problem:
        raise _index_error(tensor, index, problem) from None
    if not np.all(inside):
        raise CoordinateError(
            f"index {_format_index(index)} is outside the valid part of a ragged view of shape {layout.shape}:"
            f" {_describe_valid_part(tensor)}; load(..., fill=x) reads x there"
        )
    return tensor.offset + offset


def _refuse_slices(index: tuple[Any, ...]) -> None:
    if is_slice(index):
        raise TypeError(f"a coordinate must be an integer, got None or a slice in {index}")


def _index_error(tensor: View, index: tuple[Any, ...], problem: LayoutError) -> CoordinateError:
    """Return the error for an index that the layout refused: out of range, or of the wrong form."""
    return _out_of_range_error(tensor, index) if isinstance(problem, CoordinateError) else CoordinateError(str(problem))


def _out_of_range_error(tensor: View, index: tuple[Any, ...]) -> CoordinateError:
    shape = tensor._native_layout.shape
    if any(isinstance(part, int) and part < 0 for part in index):
        return CoordinateError(f"index {_format_index(index)} is negative; indices into shape {shape} start at 0")
    return CoordinateError(
        f"index {_format_index(index)} is outside a tensor of shape {shape}: {_describe_range(tensor, index)}"
    )


def _describe_range(tensor: View, index: tuple[Any, ...]) -> str:
    """Return the range of the first mode that an index leaves, as text."""
    if len(index) == 1 and tensor.rank != 1:
        return f"a linear index takes 0 to {tensor.size - 1}"
    extents = tensor.shape if len(index) == tensor.rank else tuple(leaves(tensor._native_layout.shape))
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


def vector_offsets(tensor: View, index: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return (offsets, valid) of all scalars of an element, as arrays in the shape of an element.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(bytearray(96), tw.row_major(8, 12)).vectorize[2, 2]()
    >>> vector_offsets(t, (1, 0))[0].tolist()
    [[24, 25], [36, 37]]
    """
    pair = tensor._pair
    _refuse_slices(index)
    try:
        coord = tensor._native_layout._nest_coordinate(index)
        scalars = np.arange(tensor.element_size)
        # of an element with one scalar the results are single numbers
        offsets = np.broadcast_to(pair(coord, scalars) + tensor.offset, scalars.shape)
        valid = np.broadcast_to(pair.valid(coord, scalars) if tensor.is_ragged else True, scalars.shape)
    except LayoutError as problem:
        raise _index_error(tensor, index, problem) from None
    block = tuple([n for n in product_each(pair.shape[1]) if n != 1]) or (1,)
    return tensor._arrange(offsets.reshape(block, order="F")), tensor._arrange(valid.reshape(block, order="F"))


def read_element(tensor: View, index: tuple[Any, ...], fill: Number | None = None) -> np.generic | Any:
    """Return an element: a scalar, or the array of its scalars; scalars that are not valid read as `fill`.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(12)), tw.row_major(3, 4)).vectorize[1, 2]()
    >>> read_element(t, (1, 1)).tolist()
    [6, 7]
    """
    data = tensor._store.host
    if tensor.element_size == 1:
        if fill is None or not tensor.is_ragged or tensor._native_layout.valid(*index):
            offset = element_offset(tensor, index)
            tensor._store.will_read(offset)
            return data[offset]
        if product(tensor._native_layout.shape) == 0:
            raise _out_of_range_error(tensor, index)
        tensor._native_layout(*index)  # raises outside the full shape, where nothing is padded
        return fit_values(fill, tensor._store.format)[()]
    offsets, valid = vector_offsets(tensor, index)
    tensor._store.will_read(offsets[valid])
    if valid.all():
        return data[offsets]
    if fill is None:
        raise _partly_valid_error(tensor, index, valid, "load(..., fill=x) reads x there")
    values = np.full(offsets.shape, fit_values(fill, tensor._store.format), dtype=data.dtype)
    values[valid] = data[offsets[valid]]
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
        if masked and tensor.is_ragged and not tensor._native_layout.valid(*index):
            tensor._native_layout(*index)
            return
        offset = element_offset(tensor, index)
        tensor._store.will_write(offset)
        data[offset] = fit_values(value, tensor._store.format)
        return
    offsets, valid = vector_offsets(tensor, index)
    scalars = fit_values(value, tensor._store.format)
    if scalars.ndim and scalars.size != offsets.size:
        raise LayoutError(
            f"an element has {offsets.size} scalars of shape {offsets.shape}: expected one number or {offsets.size},"
            f" got {scalars.size}"
        )
    if not valid.all() and not masked:
        raise _partly_valid_error(tensor, index, valid, "store(..., fill=x) writes only those")
    block = np.broadcast_to(scalars.reshape(offsets.shape) if scalars.ndim else scalars, offsets.shape)
    tensor._store.will_write(offsets[valid])
    data[offsets[valid]] = block[valid]


def fit_scalar(value: View | ArrayLike, target: ScalarFormat) -> np.generic | Any:
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
    scalar: Any = fitted.reshape(())[()]
    return scalar


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
    """Return (offset, width) of `width` consecutive scalars from an element on, inside storage and aligned.

    >>> import tilewright as tw
    >>> scalar_run(tw.TileTensor(bytearray(48), tw.row_major(6, 8)), (1, 6), 4, None)
    (14, 4)
    """
    count = as_integer(width, "a width")
    offset = element_offset(tensor, index)
    if count < 1 or is_array(offset):
        raise LayoutError(f"a load or store with a width takes one index and a width of at least 1, got width {count}")
    if offset + count > tensor._store.size:
        raise CoordinateError(
            f"scalars {offset} to {offset + count - 1} exceed the storage of {tensor._store.size}; use a smaller width"
        )
    check_alignment(tensor, offset, alignment)
    return offset, count


def check_alignment(tensor: View, offset: int, alignment: int | None) -> None:
    """Raise unless the byte address of a scalar is a multiple of alignment.

    >>> import tilewright as tw
    >>> check_alignment(tw.TileTensor(bytearray(4), tw.row_major(2, 2)), 1, 1)
    """
    if alignment is None:
        return
    multiple = as_integer(alignment, "an alignment")
    if multiple < 1:
        raise LayoutError(f"an alignment must be at least 1 byte, got {multiple}")
    address = tensor._store.address(offset)
    if address % multiple:
        raise LayoutError(
            f"scalar {offset} is at address {address:#x}, which is not a multiple of {multiple}; align the storage, or"
            " use a smaller alignment"
        )


def _instructions(tensor: View, offset: int, count: int, alignment: int | None) -> list[tuple[int, int]]:
    """Return (offset, width) of the accesses to `count` scalars: several if their alignment is less than their size."""
    size = tensor._store.format.itemsize
    if alignment is None or alignment >= min(count * size, 16):  # the bytes that one instruction accesses
        return [(offset, count)]
    width = max(1, alignment // size)
    return [(offset + k, min(width, count - k)) for k in range(0, count, width)]


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
                check_alignment(tensor, element_offset(tensor, entries), alignment)
            return read_element(tensor, entries, fill)
        offset, count = scalar_run(tensor, entries, width, alignment)
        for first, size in _instructions(tensor, offset, count, alignment):
            tensor._store.will_read(first, size)
        return tensor._store.host[offset : offset + count].copy()


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
                check_alignment(tensor, element_offset(tensor, index), alignment)
            write_element(tensor, index, value, masked=fill is not None)
            return
        offset, count = scalar_run(tensor, index, width, alignment)
        scalars = fit_values(value, tensor._store.format).reshape(-1)
        if scalars.size != count:
            raise LayoutError(f"store with width {count} takes {count} scalars, got {scalars.size}")
        for first, size in _instructions(tensor, offset, count, alignment):
            tensor._store.will_write(first, size)
        tensor._store.host[offset : offset + count] = scalars


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


# All scalars of a tensor: where they are, which are valid, and how they are read and written at once.

SMALL = 1 << 14  # below this number of scalars NumPy's assignment is faster than a plan


@dataclass(frozen=True, slots=True)
class Scalars:
    """All scalars of a tensor: their layout, the extent of each mode, and the extents of the valid box.

    >>> import tilewright as tw
    >>> ragged = tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[4, 3](1, 2)
    >>> Scalars.of(ragged).extents, Scalars.of(ragged).valid
    ((4, 3), (2, 2))
    """

    tensor: View
    layout: Any
    extents: tuple[int, ...]
    valid: tuple[int, ...] | None  # None if the valid scalars are not a box

    @classmethod
    def of(cls, tensor: View) -> Scalars:
        """Return the scalars of a tensor.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(bytearray(48), tw.row_major(6, 8)).vectorize[1, 4]()).extents
        (6, 8)
        """
        if not isinstance(tensor, View):  # whose bounds were checked: what follows trusts them
            raise TypeError(f"expected a tensor, got {type(tensor).__name__}")
        layout, extents = tensor._mode_layout, tensor.shape
        if tensor._pair.shape[1]:
            layout = scalars_layout(tensor._pair)
            extents = tuple([int(n) for n in product_each(layout.shape)])
        return cls(tensor, layout, extents, valid_box(layout, extents))

    @property
    def is_whole(self) -> bool:
        """Whether all scalars are valid.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(bytearray(48), tw.row_major(6, 8))).is_whole
        True
        """
        return self.valid == self.extents

    def view(self) -> Array | None:
        """Return the valid scalars as a view of storage, the leaves of each mode slowest first; None if not possible.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(list(range(6)), tw.row_major(2, 3)).transpose()).view().tolist()
        [[0, 3], [1, 4], [2, 5]]
        """
        if not isinstance(self.layout, Layout) or self.valid is None:
            return None
        shape: list[int] = []
        steps: list[int] = []
        for mode, stride, extent in zip(self.layout.shape, self.layout.stride, self.valid, strict=True):
            extents, strides = leaves(mode)[::-1], leaves(stride)[::-1]
            if prod(extents) != extent:
                if len(extents) != 1:
                    return None
                extents = [extent]
            shape += map(int, extents)
            steps += map(int, strides)
        data = self.tensor._store.host
        if 0 in shape:
            return np.empty(shape, dtype=data.dtype)
        first = int(self.tensor._offset)
        spans = [(n - 1) * step for n, step in zip(shape, steps, strict=True)]
        low, high = (first + sum(span for span in spans if (span < 0) == is_low) for is_low in (True, False))
        if low < 0 or high >= data.size:  # NumPy would not report it
            raise LayoutError(f"a view of scalars {low} to {high} exceeds its storage, which has {data.size}")
        return strided_view(data[first : first + 1], shape, steps, not self.tensor._store.readonly)

    def offsets(self) -> tuple[Any, Any]:
        """Return (offsets in storage, which are valid) as arrays with one dimension per mode.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(bytearray(6), tw.row_major(2, 3)).transpose()).offsets()[0].tolist()
        [[0, 3], [1, 4], [2, 5]]
        """
        table = np.asarray(self.layout.offsets()) + self.tensor._offset
        mask = self.layout._valid_table()
        return table, np.ones(table.shape, dtype=bool) if mask is None else np.broadcast_to(mask, table.shape)

    def will_read(self) -> None:
        """Tell the kernel that runs, if one does, that the scalars are about to be read.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(bytearray(6), tw.row_major(2, 3))).will_read()
        """
        if kernel_memory.get() is not None:
            self.tensor._store.will_read(*self._vectors())

    def will_write(self) -> None:
        """Tell the kernel that runs, if one does, that the scalars are about to be written.

        >>> import tilewright as tw
        >>> Scalars.of(tw.TileTensor(bytearray(6), tw.row_major(2, 3))).will_write()
        """
        if kernel_memory.get() is not None:
            self.tensor._store.will_write(*self._vectors())

    def _vectors(self) -> tuple[Array, int]:
        """Return (offsets, width): where consecutive scalars start that are accessed at once, and how many they are."""
        tensor = self.tensor
        width = tensor.element_size
        if width > 1 and self.is_whole:
            vector = np.asarray(vector_layout(tensor._pair).offsets()).reshape(-1, order="F")
            if bool((vector == np.arange(width)).all()):
                return np.asarray(elements_layout(tensor._pair).offsets()).reshape(-1) + tensor._offset, width
        table, mask = self.offsets()
        return table[mask], 1

    def read(self, fill: Number | None = None) -> Array:
        """Return a copy of the scalars: the valid ones, or with `fill` all, the others as `fill`.

        >>> import tilewright as tw
        >>> ragged = tw.TileTensor(list(range(48)), tw.row_major(6, 8)).tile[4, 3](1, 2)
        >>> Scalars.of(ragged).read().tolist(), Scalars.of(ragged).read(fill=0)[1].tolist()
        ([[38, 39], [46, 47]], [46, 47, 0])
        """
        self.will_read()
        if self.valid is None:
            return self._gather(fill)
        values = self._read_valid()
        if fill is None or self.is_whole:
            return values
        padded = np.full(self.extents, fit_values(fill, self.tensor._store.format), dtype=values.dtype)
        padded[tuple([slice(0, n) for n in self.valid])] = values
        return padded

    def _read_valid(self) -> Array:
        assert self.valid is not None
        if prod(self.valid) >= SMALL:
            values = aligned_empty(self.valid, self.tensor._store.format.dtype)
            if self._copy_by_plan(self.valid, values, writing=False):
                return values
        view = self.view()
        if view is not None:
            return view.copy().reshape(self.valid)
        table, mask = self.offsets()
        inside: Array = self.tensor._store.host[table[mask]].reshape(self.valid)
        return inside

    def placement(self, extents: tuple[int, ...], on_device: bool = False) -> tuple[Placement, Any] | None:
        """Return (placement, memory) of the first scalars of each mode; None if no plan can copy them.

        The memory must be on the host, unless `on_device`.

        >>> import tilewright as tw
        >>> t = tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[4, 3](1, 2)
        >>> placement, memory = Scalars.of(t).placement((2, 2))
        >>> print(placement.layout, memory.size)
        (2,2):(8,1) 10
        """
        layout = self.layout
        if extents != self.extents:
            layout = compose(layout, tuple([Layout(n) for n in extents]))
        start = self.tensor._offset
        if isinstance(layout, Layout):
            low, high = layout.bounds
            layout, start, size = layout - low, start + int(low), int(high - low) + 1
        elif _is_nonnegative(layout):
            size = self.tensor._store.size - start
        else:
            return None
        store = self.tensor._store
        memory = store.section(start, size) if on_device else store.host[start : start + size]
        return Placement(layout, store.format), memory

    def _copy_by_plan(self, extents: tuple[int, ...], array: Array, writing: bool) -> bool:
        """Copy the first scalars of each mode from or to an array of their shape; return whether a plan could."""
        ours = self.placement(extents)
        if ours is None:
            return False
        theirs = placement_of(array), array
        return run_plan(*theirs, *ours) if writing else run_plan(*ours, *theirs)

    def _gather(self, fill: Number | None) -> Array:
        """Return all scalars through the table of offsets."""
        if fill is None:
            raise LayoutError(
                f"the valid part of a ragged view of {self.tensor.layout} is not a box and does not fit into an array;"
                " give fill=x for the rest"
            )
        table, mask = self.offsets()
        data = self.tensor._store.host
        values = np.full(self.extents, fit_values(fill, self.tensor._store.format), dtype=data.dtype)
        values[mask] = data[table[mask]]
        return values

    def write(self, values: Array) -> None:
        """Write `values` over the valid scalars: an array of their shape, or of the full shape.

        >>> import tilewright as tw
        >>> t = tw.TileTensor([0] * 6, tw.row_major(2, 3))
        >>> Scalars.of(t).write(np.array([[1, 2, 3], [4, 5, 6]]))
        >>> t.to_numpy().tolist()
        [[1, 2, 3], [4, 5, 6]]
        """
        require_writable(self.tensor)
        self.will_write()
        if self.valid is not None and values.shape == self.extents:
            values = values[tuple([slice(0, n) for n in self.valid])]
        by_plan = values.size >= SMALL and values.shape == self.valid
        if by_plan and self._copy_by_plan(values.shape, values, writing=True):
            return
        view = self.view()
        if view is not None:
            assign(values.reshape(view.shape), view, self.tensor)
            return
        table, mask = self.offsets()
        data = self.tensor._store.host
        converted = cast(values, self.tensor._store.format)
        data[table[mask]] = converted[mask] if converted.shape == mask.shape else converted.reshape(-1)


def valid_box(layout: PairLayout, extents: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the extents of the valid coordinates; None if they are not a box.

    >>> import tilewright as tw
    >>> valid_box(tw.pad(tw.row_major(60, 90), (64, 96)), (64, 96))
    (60, 90)
    """
    if isinstance(layout, Layout):
        if not layout.guards:
            return extents
        try:
            return tuple([int(n) for n in layout.logical_shape])
        except LayoutError:
            pass
    mask = layout._valid_table()
    return extents if mask is None else mask_extents(np.broadcast_to(mask, extents))


def mask_extents(valid: Array) -> tuple[int, ...] | None:
    """Return the extents of the corner box that equals the True part of a mask; None if there is none.

    >>> mask_extents(np.array([[True, True, False], [False, False, False]])), mask_extents(np.eye(2, dtype=bool))
    ((1, 2), None)
    """
    others = [tuple(j for j in range(valid.ndim) if j != k) for k in range(valid.ndim)]
    corner = tuple([int(valid.any(axis=axes).sum()) for axes in others])
    inside = valid[tuple([slice(0, n) for n in corner])]
    return corner if int(valid.sum()) == inside.size and inside.all() else None


def _is_nonnegative(layout: ComposedLayout) -> bool:
    """Return whether every offset of a composition is known to be at least 0."""
    inner, outer = layout.inner, layout.outer
    if not isinstance(inner, Layout) or inner.bounds[0] < 0:
        return False
    return isinstance(outer, Swizzle) or (isinstance(outer, Layout) and outer.bounds[0] >= 0)


def run_plan(source: Placement, source_array: Array, target: Placement, target_array: Array) -> bool:
    """Copy by plan; return False, without a copy, if the arrays overlap or target elements share an offset.

    >>> a, b = np.arange(6).reshape(2, 3), np.zeros((2, 3), dtype=int, order="F")
    >>> run_plan(placement_of(a), a, placement_of(b), b), b.tolist()
    (True, [[0, 1, 2], [3, 4, 5]])
    """
    before, after = Buffer.of(source_array), Buffer.of(target_array)
    if before.overlaps(after) and footprint_of(source, before.address).overlaps(footprint_of(target, after.address)):
        return False
    try:
        plan = plan_copy(source, target)
    except LayoutError:  # several elements of the target share an offset: NumPy's order decides
        return False
    execute(plan, source_array, target_array)
    return True


def assign(values: Array, view: Array, tensor: View) -> None:
    """Copy and convert `values` into a view of the storage of `tensor`; overlapping memory is copied first.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0.0] * 3, tw.row_major(3))
    >>> assign(np.array([1, 2, 3]), t.to_numpy(copy=False), t)
    >>> t.to_numpy().tolist()
    [1.0, 2.0, 3.0]
    """
    if np.may_share_memory(values, view):
        values = values.copy()
    view[...] = values if values.dtype == view.dtype else cast(values, tensor._store.format)


# The contents of a tensor, all scalars at once: fill, copy, compare, compute, and convert to arrays.

Operand: TypeAlias = "View | ArrayLike"


def fill(tensor: Kind, value: ArrayLike) -> Kind:
    """Set every valid scalar to `value`, which must be a value of the tensor's format; return the tensor.

    >>> import tilewright as tw
    >>> tw.TileTensor([0] * 4, tw.row_major(2, 2)).fill(7).to_numpy().tolist()
    [[7, 7], [7, 7]]
    """
    require_writable(tensor)
    data, number = tensor._store.host, fit_values(value, tensor._store.format)
    scalars = Scalars.of(tensor)
    scalars.will_write()
    view = scalars.view()
    if view is not None:
        view[...] = number
    else:
        table, mask = scalars.offsets()
        data[table[mask]] = number
    return tensor


def copy_from(tensor: Kind, source: View | ArrayLike, order: str | None = None, fill: Number | None = None) -> Kind:
    """Copy the elements of `source`, a tensor or an array, into this tensor; return it.

    The elements of a tensor are converted as by `formats.cast`; the numbers of an array must be values of this tensor's
    format, and only floats are rounded.

    With equal extents, elements are copied by coordinate. Another shape with the same number of scalars needs an
    `order`: "row" (last mode fastest) or "colex" (first mode fastest). Where the target is valid but the source is not,
    `fill` is written.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0] * 4, tw.col_major(2, 2))
    >>> t.copy_from(tw.TileTensor([1, 2, 3, 4], tw.row_major(2, 2))).to_numpy().tolist()
    [[1, 2], [3, 4]]
    """
    require_writable(tensor)
    is_on_device = not tensor._store.is_on_host or (isinstance(source, View) and not source._store.is_on_host)
    target = Scalars.of(tensor)
    if is_on_device:
        return _copy_on_device(tensor, target, source)
    if not isinstance(source, View):
        values = np.asarray(source)
        fit_values(values, tensor._store.format)
        return _copy_array(
            tensor, target, np.broadcast_to(values, target.extents) if values.ndim == 0 else values, order
        )
    origin = Scalars.of(source)
    if origin.extents != target.extents:
        return _copy_array(tensor, target, origin.read(), order)
    if origin.is_whole or origin.valid == target.valid or fill is not None or _covers(origin, target):
        _copy_scalars(origin, target, fill)
        return tensor
    raise LayoutError(
        f"the source is valid in {origin.valid} of {origin.extents}, less than the {target.valid} of the target;"
        " give fill=x for the rest"
    )


def _copy_on_device(tensor: Kind, target: Scalars, source: View | ArrayLike) -> Kind:
    """Copy by a plan between tensors in the memory of a device: boxes of equal extents."""
    if not isinstance(source, View):
        raise tensor._store.data.access_error()
    origin = Scalars.of(source)
    ours = theirs = None
    if target.valid is not None and origin.valid == target.valid:
        ours = target.placement(target.valid, on_device=True)
        theirs = origin.placement(target.valid, on_device=True)
    if ours is None or theirs is None:
        raise LayoutError(
            f"a copy in device memory needs equal extents, here {target.valid or target.extents}; reshape the source,"
            " or copy whole buffers"
        )
    if target.valid and prod(target.valid):
        execute(plan_copy(theirs[0], ours[0]), theirs[1], ours[1])
    return tensor


def _covers(origin: Scalars, target: Scalars) -> bool:
    """Return whether every valid scalar of target is valid in origin."""
    if origin.valid is not None and target.valid is not None:
        return all(a >= b for a, b in zip(origin.valid, target.valid, strict=True))
    return bool((origin.offsets()[1] | ~target.offsets()[1]).all())


def _copy_scalars(origin: Scalars, target: Scalars, fill: Number | None) -> None:
    """Copy scalars of equal extents: by plan, by NumPy, or through a table of offsets."""
    if target.valid is not None and prod(target.valid) >= SMALL and origin.valid is not None and fill is None:
        ours, theirs = origin.placement(target.valid), target.placement(target.valid)
        if ours is not None and theirs is not None and run_plan(*ours, *theirs):
            origin.will_read()
            target.will_write()
            return
    if origin.valid == target.valid and origin.valid is not None:
        source, view = origin.view(), target.view()
        if source is not None and view is not None and source.shape == view.shape:
            origin.will_read()
            target.will_write()
            assign(source, view, target.tensor)
            return
        fill = None
    elif origin.is_whole and target.valid is not None:
        fill = None
    elif fill is None:
        fill = 0
    target.write(origin.read(fill))


def _copy_array(tensor: Kind, target: Scalars, values: Array, order: str | None) -> Kind:
    """Copy an array by coordinate, or in an order of all scalars."""
    if order is None:
        if values.shape not in (target.extents, target.valid):
            raise LayoutError(
                f"cannot copy shape {values.shape} into {target.extents}: the extents differ; order='row' or 'colex'"
                " copies all scalars in that order"
            )
        target.write(values)
        return tensor
    check_order(order)
    shape = target.extents if target.valid is None else target.valid
    if values.size != prod(shape):
        raise LayoutError(f"cannot copy {values.size} scalars into {prod(shape)}: the numbers must be equal")
    layout_order: Any = "C" if order == "row" else "F"
    target.write(values.reshape(-1, order=layout_order).reshape(shape, order=layout_order))
    return tensor


def to_numpy(tensor: View, fill: Number | None = None, copy: bool | None = True) -> Array:
    """Return the elements as an array: one dimension per mode, then the dimensions of a vector element.

    A ragged view returns its valid part, or with `fill` its full shape. `copy=False` returns a view of the storage or
    raises; `copy=None` copies only where strides do not allow a view.

    >>> import tilewright as tw
    >>> t = tw.TileTensor(list(range(6)), tw.col_major(2, 3))
    >>> t.to_numpy().tolist(), t.to_numpy(copy=False).base is not None
    ([[0, 2, 4], [1, 3, 5]], True)
    """
    scalars = Scalars.of(tensor)
    vector = tensor._vector_extents
    if tensor.size == 0:
        fill = 0  # an empty shape has no ragged edge
    if vector and fill is None and scalars.valid is not None and 0 in scalars.valid:
        return np.empty((*[0] * tensor.rank, *[n for n in vector if n != 1]), dtype=tensor._store.format.dtype)
    if vector and fill is None and not _has_whole_vectors(scalars, tensor):
        raise LayoutError(
            f"elements at the ragged edge of {tensor.layout} have fewer than {tensor.element_size} valid scalars and do"
            " not fit into an array; give fill=x for the rest"
        )
    if not copy and (fill is None or scalars.is_whole):
        view = scalars.view()
        if view is not None and view.ndim == len(scalars.extents):
            scalars.will_read()
            return _group_by_element(view, tensor)
    if copy is False:
        raise LayoutError(f"{tensor.layout} cannot become an array without a copy; do not pass copy=False")
    return _group_by_element(scalars.read(fill), tensor)


def _has_whole_vectors(scalars: Scalars, tensor: View) -> bool:
    """Return whether all valid elements are valid in all their scalars."""
    vector = tensor._vector_extents
    if scalars.valid is None:
        return False
    if len(vector) != tensor.rank:  # a slice dropped modes of the elements: the modes of the vectors follow the rest
        return scalars.valid[-len(vector) :] == scalars.extents[-len(vector) :]
    return all(n % width == 0 for n, width in zip(scalars.valid, vector, strict=True))


def _group_by_element(scalars: Array, tensor: View) -> Array:
    """Return an array of scalars, one dimension per mode, as one of elements, then vectors without extents 1."""
    vector, rank = tensor._vector_extents, len(tensor._pair.shape[0])
    if not vector:
        return scalars
    if scalars.ndim == rank:
        split: list[int] = []
        for n, width in zip(scalars.shape, vector, strict=True):
            split += [n // width, width]
        scalars = scalars.reshape(split).transpose([*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)])
    elements = scalars.shape[: scalars.ndim - len(vector)]
    return scalars.reshape((*elements, *[width for width in vector if width != 1]))


def write_elements(tensor: View, values: Array) -> None:
    """Write an array in the form of `to_numpy` over the elements.

    >>> import tilewright as tw
    >>> t = tw.TileTensor([0] * 4, tw.row_major(2, 2)).vectorize[1, 2]()
    >>> write_elements(t, np.array([[1, 2], [3, 4]]).reshape(2, 1, 2))
    >>> t.to_numpy().tolist()
    [[[1, 2]], [[3, 4]]]
    """
    vector = tensor._vector_extents
    if not vector:
        Scalars.of(tensor).write(values)
        return
    rank = len(tensor._pair.shape[0])
    elements = values.shape[:rank]
    scalars = values.reshape((*elements, *vector))
    if len(vector) == rank:
        scalars = scalars.transpose([k for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for k in pair])
        scalars = scalars.reshape([n * width for n, width in zip(elements, vector, strict=True)])
    Scalars.of(tensor).write(scalars)


def mask(tensor: View) -> Array:
    """Return which elements of the full shape are valid, for vectors which scalars, as an array of bools.

    >>> import tilewright as tw
    >>> tw.TileTensor(bytearray(6), tw.row_major(2, 3)).tile[2, 2](0, 1).mask().tolist()
    [[True, False], [True, False]]
    """
    scalars = Scalars.of(tensor)
    return _group_by_element(np.array(scalars.offsets()[1]), tensor)


def valid_extents(tensor: View) -> tuple[int, ...] | None:
    """Return the extents of the box of elements that have a valid scalar; None if they are not a box.

    >>> import tilewright as tw
    >>> valid_extents(tw.TileTensor(bytearray(48), tw.row_major(6, 8)).tile[4, 4](1, 0).vectorize[1, 3]())
    (2, 2)
    """
    if tensor.element_size == 1:
        return valid_box(tensor._mode_layout, tensor.shape)
    valid = mask(tensor)
    return mask_extents(np.asarray(valid.any(axis=tuple(range(tensor.rank, valid.ndim)))))


def equals(tensor: View, other: View | ArrayLike) -> bool:
    """Return whether `other`, a tensor or array, has the same valid elements at the same coordinates.

    >>> import tilewright as tw
    >>> a = tw.TileTensor([1, 2, 3, 4], tw.row_major(2, 2))
    >>> a.equals([[1, 2], [3, 4]]), a.equals(a.transpose())
    (True, False)
    """
    ours = to_numpy(tensor, fill=0, copy=None)
    if isinstance(other, View):
        return np.array_equal(mask(tensor), mask(other)) and np.array_equal(ours, to_numpy(other, fill=0, copy=None))
    theirs = np.asarray(other)
    if ours.shape != theirs.shape and tensor.is_ragged:
        ours = to_numpy(tensor, copy=None)
    return np.array_equal(ours, theirs)


def _as_operand(value: Operand) -> Any:
    """Return a tensor as an array, anything else as it is."""
    return to_numpy(value, copy=None) if isinstance(value, View) else value


def _as_operand_in_place(value: Operand, target: View) -> Any:
    """Return an operand of an in-place operation: a tensor of rank 1 is broadcast along mode 0 of one of rank 2."""
    operand = _as_operand(value)
    if isinstance(value, View) and value is not target:
        shape = to_numpy(target, copy=None).shape
        if operand.ndim == 1 and len(shape) == 2 and operand.shape[0] == shape[0]:
            return operand[:, None]
        if operand.shape != shape:
            raise LayoutError(
                f"an in-place operation needs equal shapes, or a tensor of rank 1 along mode 0: got {operand.shape} for"
                f" {shape}; t.to_numpy() broadcasts as NumPy does"
            )
    return operand


def _compute(function: Any, operands: list[Any], options: dict[str, Any]) -> Any:
    """Return the result of a NumPy function; a Python integer beyond the type of an operand is refused."""
    try:
        return function(*operands, **options)
    except OverflowError as problem:
        raise FormatError(f"{problem}; use a number of that type, or an array of a wider one") from None


class Arithmetic(View, np.lib.mixins.NDArrayOperatorsMixin):
    """The operators of a tensor. Results are new tensors in row-major order; comparisons return arrays of bools.

    `a + b` broadcasts as NumPy does. `a += b` needs equal shapes, or a tensor of rank 1 that is broadcast along mode 0
    of a tensor of rank 2; arrays and numbers broadcast as in NumPy.

    >>> import tilewright as tw
    >>> a = tw.TileTensor([1, 2, 3, 4], tw.row_major(2, 2))
    >>> (a * 10 + a).to_numpy().tolist(), (a == a.transpose()).tolist()
    ([[11, 22], [33, 44]], [[True, False], [False, True]])
    >>> a += tw.TileTensor([10, 20], tw.row_major(2))
    >>> a.to_numpy().tolist()
    [[11, 12], [23, 24]]
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Operand, out: tuple[Any, ...] | None = None, **options: Any
    ) -> Any:
        if out is None:
            result = _compute(getattr(ufunc, method), [_as_operand(value) for value in inputs], options)
            wrap = method == "__call__" and isinstance(result, np.ndarray) and result.ndim and result.dtype != bool
            return self._new_tensor(result) if wrap else result
        target = out[0]
        if method != "__call__" or not isinstance(target, Arithmetic):
            return NotImplemented
        result = _compute(ufunc, [_as_operand_in_place(value, target) for value in inputs], options)
        return target._assign(np.asarray(result))

    def _new_tensor(self, values: Array) -> View:
        raise NotImplementedError

    def _assign(self: Kind, values: Array) -> Kind:
        """Write an array of its shape over the tensor; return the tensor."""
        require_writable(self)
        dtype = self._store.format.dtype
        if values.dtype != dtype and not np.can_cast(values.dtype, dtype, "same_kind"):
            raise LayoutError(
                f"cannot store a result of {values.dtype} in a tensor of {dtype} without loss; use //= for integers, or"
                " compute out of place"
            )
        shape = to_numpy(self, copy=None).shape
        if values.shape != shape:
            raise LayoutError(f"a result of shape {values.shape} does not fit a tensor of shape {shape}")
        write_elements(self, fit_values(values, self._store.format))
        return self
