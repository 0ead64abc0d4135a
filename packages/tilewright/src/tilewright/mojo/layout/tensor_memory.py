# SPDX-License-Identifier: Apache-2.0
"""The memory behind Mojo's tensors, and operations on it, element by element."""

from __future__ import annotations

from functools import partial
from types import EllipsisType
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..._dialect import unwrap
from ...copying import Array
from ...errors import CoordinateError, LayoutError
from ...formats import cast, fit_values
from ...layout import ComposedLayout, LayoutLike, as_integer, leaves, make_layout
from ...layout import Layout as NativeLayout
from ...tensor import (
    Brackets,
    LoadBrackets,
    Store,
    StoreBrackets,
    View,
    element_offset,
    elements,
    require_row_major,
    require_writable,
    scalar_bounds,
)
from ...tensor import TileTensor as NativeTileTensor
from ..brackets import MojoValue, brackets
from ..builtins import Origin
from ..memory import AddressSpace, LabelledStore, MemoryArray, MemoryWindow, Pointer, label_store
from ..scalar_memory import read_vector, require_numbers, write_vector
from ..simd import SIMD, DType, SIMDType, as_vector, make_scalar, numbers_of
from .coord import ComptimeInt, RuntimeInt, StaticExtents, integer_type
from .tile_layout import Layout

Kind = TypeVar("Kind", bound="MemoryTensor")


class MemoryTensor(StaticExtents, NativeTileTensor):
    """A view of memory with the labels of Mojo: its address space, the format of offsets, extents known or not.

    `address_space` is a label of the memory, `linear_idx_type` the integer format of offsets in a kernel.

    >>> from tilewright.mojo.layout import row_major
    >>> MemoryTensor(bytearray(24), row_major[4, 6]()).static_stride
    (6, 1)
    """

    __slots__ = ("_dtype", "_index_type")
    _index_type: DType | None
    _dtype: DType  # of the scalars, once they were accessed

    def __init__(
        self,
        storage: Any = None,
        layout: Any = None,
        *,
        span: object = None,
        buffer: object = None,
        device_buffer: object = None,
        host_buffer: object = None,
        other: object = None,
        ptr: object = None,
        dtype: Any = None,
        address_space: AddressSpace = AddressSpace.GENERIC,
        linear_idx_type: object = None,
        element_size: int = 1,
    ) -> None:
        self._index_type = None if linear_idx_type is None else integer_type(linear_idx_type, "linear_idx_type")
        memories = (storage, span, buffer, device_buffer, host_buffer, other, ptr)
        storage = None if all(memory is None for memory in memories) else only_one("a tensor", "its memory", *memories)
        for name, given, kind in (
            ("device_buffer", device_buffer, "DeviceBuffer"),
            ("host_buffer", host_buffer, "HostBuffer"),
        ):
            if given is not None and getattr(given, "_memory_name", None) != kind:
                raise TypeError(f"{name} must be a {kind}, got {type(given).__name__}")
        if other is not None and not isinstance(other, NativeTileTensor):
            raise TypeError(f"other must be a TileTensor, got {type(other).__name__}")
        if layout is None and not isinstance(storage, NativeTileTensor):
            layout = getattr(storage, "layout", None)  # of a buffer with a shape
        if layout is not None and not isinstance(layout, LayoutLike) and hasattr(layout, "shape_coord"):
            layout = Layout(layout.shape_coord(), layout.stride_coord())
        layout = unwrap(layout)
        is_window = isinstance(storage, MemoryWindow) and not hasattr(storage, "device_memory")
        if is_window and layout is not None and dtype is None:
            self._bind_memory(storage, layout)
        else:
            super().__init__(storage, layout, dtype=dtype)
        if address_space is not AddressSpace.GENERIC:
            self._store = label_store(self._store, AddressSpace(address_space))
        if as_integer(element_size, "element_size") != 1:
            self._widen_elements(int(element_size))

    def _widen_elements(self, size: int) -> None:
        """Make every element a vector of `size` consecutive scalars, as Mojo's parameter `element_size` does."""
        pair = self._pair
        if size < 1 or not isinstance(pair, NativeLayout) or self.element_size != 1:
            raise LayoutError(f"element_size must be at least 1, over strided scalars, got {size} of {self.layout!r}")
        block = (*[1] * (self.rank - 1), size)
        self._pair = make_layout((pair.shape[0], block), (pair.stride[0], (1,) * len(block)))
        self._check_bounds()

    def _bind_memory(self, storage: Pointer | MemoryArray, layout: Any) -> None:
        """Place the layout at a pointer, or on an array, of the dialect: both share one store."""
        memory = require_numbers(storage.memory, "a tensor")
        start = storage.offset
        super().__init__(memory.data, layout + start)
        self._store = memory if isinstance(storage, Pointer) else memory.with_fields(origin=storage)
        size = memory.size if isinstance(storage, Pointer) else start + len(storage)
        if scalar_bounds(self._pair, self._offset, size)[1] >= size:
            raise LayoutError(f"{layout} needs {layout.cosize} scalars, but the storage has {size - start}")

    def _view(self: Kind, pair: Any, offset: int, store: Store | None = None) -> Kind:
        view = super()._view(pair, offset, store)
        view._index_type = None
        return view

    def _runtime_extent(self, extent: int) -> int:
        return RuntimeInt(extent)

    @property
    def dtype(self) -> DType:
        """The number type of the scalars.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).dtype
        DType.uint8
        """
        return DType.of(self._store.format)

    @property
    def layout(self) -> Any:
        """The layout of the elements, with Mojo's methods.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).layout.static_product
        48
        """
        return Layout.wrap(super().layout)

    @property
    def element_layout(self) -> Any:
        """The layout of the scalars within an element, with Mojo's methods.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).vectorize[1, 4]().element_layout.size()
        4
        """
        return Layout.wrap(super().element_layout)

    # Elements.

    def __getitem__(self, coord: object, *items: Any) -> Any:
        index = (coord, *items) if items else coord if coord.__class__ is tuple else _as_index(coord)
        offset = self._quick_offset(index)
        if offset is None:
            require_one_index_per_mode(self, index)
            value = super().__getitem__(_plain_index(index))
            is_part = isinstance(value, NativeTileTensor) or any(
                isinstance(entry, (np.ndarray, list)) for entry in index
            )
            return value if is_part else as_vector(value)
        store = self._store
        vector = self._quick[2]
        if vector is None:
            store.will_read(offset)
            data = store.data if store.data.__class__ is np.ndarray else store.host  # the former is faster
            return make_scalar(self._number_type(), data.item(offset))
        offsets = vector + offset
        store.will_read(offsets)
        return as_vector(store.host[offsets])

    def _number_type(self) -> DType:
        try:
            return self._dtype
        except AttributeError:
            self._dtype = DType.of(self._store.format)
            return self._dtype

    def get_subscript(self, *items: Any, coord: object = None) -> MojoValue:
        """Return an element whose index, `items`, may have Mojo's name: `t[coord=Coord(1, 2)]`.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(4), row_major[2, 2]()).get_subscript(coord=(1, 0))
        UInt8(0)
        """
        return self[_named_index(items, coord)]

    def set_subscript(self, value: object, *items: Any, coord: object = None) -> None:
        """Set an element to `value`; its index, `items`, may have Mojo's name: `t[coord=Coord(1, 2)] = x`.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(4), row_major[2, 2]()).set_subscript(7, coord=(1, 0))
        """
        self[_named_index(items, coord)] = value

    def __setitem__(self, coord: object, *items: Any, value: Any = None) -> None:
        if value is None:
            if not items:
                raise TypeError("an element is set to a value: t[1, 2] = value")
            *items, value = items  # type: ignore[assignment]
        index = (coord, *items) if items else coord if coord.__class__ is tuple else _as_index(coord)
        if value.__class__ is SIMD:
            if value.dtype is self._number_type() and not self._store.readonly:
                offset = self._quick_offset(index)
                if offset is not None and self._quick[2] is None and value.value.__class__ is not np.ndarray:
                    store = self._store
                    store.will_write(offset)
                    store.host[offset] = value.value
                    return
            value = numbers_of(value, self._store.format)
        require_one_index_per_mode(self, index)
        super().__setitem__(_plain_index(index), value)

    # Facts at compile time.

    def _leaf_extents(self) -> list[int]:
        return leaves(self._pair.shape[0])

    def _leaf_strides(self) -> list[Any]:
        layout = self._pair
        while isinstance(layout, ComposedLayout):
            layout = layout.inner
        return leaves(layout.stride[0])

    @brackets
    def dim(
        self,
        parameters: tuple[Any, ...],
        index: object = None,
        *,
        i: object = None,
        IndexType: object = None,  # noqa: N803  (Mojo's name)
    ) -> int:
        """Return the extent of a mode, of a nested one its size: `t.dim[i]()`, or `t.dim(index)` at run time.

        `IndexType`, in brackets or by name, is the type of a run-time index.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).dim[0]()
        6
        """
        numbers = _without_index_type("dim", parameters, IndexType, index)
        return int(self._extents[self._check_mode(only_one("dim", "the number of a mode", *numbers, i, index))])

    @brackets
    def dynamic_stride(
        self,
        parameters: tuple[Any, ...],
        index: object = None,
        *,
        IndexType: object = None,  # noqa: N803  (Mojo's name)
    ) -> int:
        """Return the stride of mode `index`; `IndexType`, in brackets or by name, is the type of the index.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(24), row_major[4, 6]()).dynamic_stride(0)
        6
        """
        numbers = _without_index_type("dynamic_stride", parameters, IndexType, index)
        index = only_one("dynamic_stride", "the number of a mode", *numbers, index)
        step = self.strides[self._check_mode(index)]
        if isinstance(step, tuple):
            raise LayoutError(f"mode {index} of {self.layout} has no single stride, but {step}")
        return int(step)

    def numel(self) -> int:
        """Return the number of elements.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).vectorize[1, 4]().numel()
        12
        """
        return self.size

    num_elements = numel

    # Memory.

    @property
    def mut(self) -> bool:
        """Whether the view can be written.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytes(2), row_major[2]()).mut
        False
        """
        return not self._store.readonly

    @property
    def origin(self) -> Origin:
        """The origin of the pointer: the object that holds the memory, which the tensor keeps alive.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytes(2), row_major[2]()).origin.owner, MemoryTensor(bytes(2), row_major[2]()).origin.mut
        (b'\\x00\\x00', False)
        """
        is_any = isinstance(self._store, LabelledStore) and self._store.any_origin
        return Origin(self.mut, None if is_any else self._store.origin)

    @property
    def address_space(self) -> AddressSpace:
        """The address space of the memory: a label.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(2), row_major[2]()).address_space
        <AddressSpace.GENERIC: 0>
        """
        return self._store.address_space if isinstance(self._store, LabelledStore) else AddressSpace.GENERIC

    @property
    def linear_idx_type(self) -> DType:
        """The integer format that a kernel uses for offsets: a label, ours are exact.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(2), row_major[2]()).linear_idx_type.name
        'int32'
        """
        if self._index_type is not None:
            return self._index_type
        if self.all_dims_known and self._store.size < 2**31:
            return DType.int32
        is_small = self.address_space in (AddressSpace.SHARED, AddressSpace.CONSTANT)
        return DType.int32 if is_small else DType.int64

    @property
    def ptr(self) -> Pointer:
        """A pointer to the first scalar.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).ptr.offset
        0
        """
        return Pointer(self._store, self._offset)

    def ptr_at_offset(self, *index: Any, coords: object = None) -> Pointer:
        """Return a pointer to the first scalar of the element at an index, which Mojo calls `coords`.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).ptr_at_offset(1, 3).offset
        11
        """
        entries = index_entries("ptr_at_offset", index, coords)
        require_one_index_per_mode(self, entries)
        return Pointer(self._store, element_offset(self, entries))

    def prefetch(self, *index: Any, coords: object = None) -> None:
        """Check an index, which Mojo calls `coords`; a host needs no hint.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).prefetch(5, 7)
        """
        entries = index_entries("prefetch", index, coords)
        require_one_index_per_mode(self, entries)
        element_offset(self, entries)

    def as_immut(self: Kind) -> Kind:
        """Return the same view, read-only.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(4), row_major[2, 2]()).as_immut().mut
        False
        """
        view = self.as_readonly()
        view._index_type = self._index_type
        return view

    as_imm = as_immut

    def as_any_origin(self: Kind) -> Kind:
        """Return the same view with any origin, as mutable as it was; in Python it still keeps its storage alive.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(4), row_major[2, 2]()).as_any_origin().origin
        Origin(mut=True)
        """
        view = self.__copy__()
        view._store = label_store(self._store, self.address_space, any_origin=True)
        return view

    as_unsafe_any_origin = as_any_origin

    def __copy__(self: Kind) -> Kind:
        view = self._view(self._pair, self._offset)
        view._index_type = self._index_type
        return view

    def to_device_buffer(self, ctx: Any) -> Any:
        """Return a device buffer of the context `ctx` with all scalars of the view: in order, without gaps.

        >>> from tilewright.mojo.layout import row_major
        >>> from tilewright_mojo.std.gpu.host import DeviceContext
        >>> len(MemoryTensor(bytearray(4), row_major[2, 2]()).to_device_buffer(DeviceContext()))
        4
        """
        require_row_major(self, "to_device_buffer")
        count = self.size * self.element_size
        if (
            getattr(self._store.origin, "_memory_name", None) == "DeviceBuffer"
            and self._offset == 0
            and count == self._store.size
        ):
            return self._store.origin
        if getattr(ctx, "_memory_name", None) != "DeviceContext":
            raise TypeError(f"to_device_buffer takes a DeviceContext, got {type(ctx).__name__} {ctx!r}")
        buffer = ctx.enqueue_create_buffer[self.dtype](count)
        ctx.enqueue_copy(buffer, self._store.section(self._offset, count))
        return buffer

    def as_span(self) -> Array:
        """Return the scalars of a view in row-major order as a flat array that shares its memory.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(list(range(6)), row_major[2, 3]()).as_span().tolist()
        [0, 1, 2, 3, 4, 5]
        """
        require_row_major(self, "as_span")
        return self.to_numpy(copy=None).reshape(-1)


def _without_index_type(method: str, parameters: tuple[Any, ...], kind: object, index: object) -> tuple[Any, ...]:
    """Return the parameters without the type of a run-time index, `IndexType` in Mojo, which needs one."""
    types = [entry for entry in (*parameters, kind) if isinstance(entry, (type, SIMDType))]
    if types and index is None:
        raise TypeError(f"{method}[{types[0]!r}] takes the number of a mode in parentheses: t.{method}[Int](0)")
    if kind is not None and not types:
        raise TypeError(f"IndexType of {method} is the type of an index, such as Int, got {kind!r}")
    return tuple([entry for entry in parameters if not isinstance(entry, (type, SIMDType))])


def only_one(method: str, what: str, *values: Any) -> Any:
    """Return the one value that a method was given under one of several names; the others are None.

    >>> only_one("dim", "the number of a mode", None, 1)
    1
    """
    present = [value for value in values if value is not None]
    if len(present) != 1:
        raise TypeError(f"{method} takes {what} once, got {present or 'none'}")
    return present[0]


def index_entries(method: str, index: tuple[Any, ...], coord: object = None) -> tuple[Any, ...]:
    """Return the entries of an index as integers of Python, from separate ones, one coordinate, or a named one.

    >>> index_entries("load", (), (1, 2))
    (1, 2)
    """
    if (coord is None) == (not index):
        raise TypeError(f"{method} takes one index: a coordinate, as in t.{method}(Coord(1, 2), ...), or its integers")
    entries = index if coord is None else (coord,)
    entries = tuple(entries[0]) if len(entries) == 1 and isinstance(entries[0], (tuple, list)) else entries
    return _plain_index(entries)


def require_one_index_per_mode(tensor: Any, index: tuple[Any, ...]) -> None:
    """Raise if a tensor of several modes is given a single index; only `load` takes a linear one.

    >>> from tilewright.mojo.layout import row_major
    >>> require_one_index_per_mode(MemoryTensor(bytearray(4), row_major[2, 2]()), (0, 1))
    """
    if len(index) == 1 and tensor.rank != 1 and not isinstance(index[0], (slice, EllipsisType)):
        raise CoordinateError(
            f"one index, {index[0]}, does not address an element of a tensor of shape {tensor.layout.shape}: give"
            f" {tensor.rank}, one for each mode; only load takes a linear index"
        )


def _named_index(items: tuple[Any, ...], coord: object) -> Any:
    """Return what stands in brackets, by position or as `coord`."""
    if (coord is None) == (not items):
        raise TypeError("an element takes one index: t[1, 2], or t[coord=Coord(1, 2)]")
    if coord is not None:
        return coord
    return items[0] if len(items) == 1 else items


def _as_index(key: object) -> tuple[Any, ...]:
    """Return a subscript as a tuple of its entries."""
    return tuple(key) if isinstance(key, (tuple, list)) else (key,)


def _plain_index(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index with Python's integers in place of Mojo's."""
    return tuple([entry.__index__() if isinstance(entry, (SIMD, ComptimeInt)) else entry for entry in index])


ViewKind = TypeVar("ViewKind", bound=View)
Elements = TypeVar("Elements", bound="ElementwiseTensor")


class FillBrackets(Brackets[ViewKind]):
    """`t.fill(7)`, or `t.fill[use_runtime_layout](7)`; see `TileTensor.fill`.

    >>> from tilewright.mojo.layout import row_major
    >>> ElementwiseTensor([0] * 2, row_major[2]()).fill[True](7).to_numpy().tolist()
    [7, 7]
    """

    __slots__ = ()
    method = "fill"

    def __getitem__(self, use_runtime_layout: bool) -> partial[ViewKind]:
        return partial(self, use_runtime_layout=use_runtime_layout)

    def __call__(self, val: object, *, use_runtime_layout: bool | None = None) -> ViewKind:
        """Set every valid scalar to `val`; return the tensor. `use_runtime_layout` has no effect."""
        number = numbers_of(val, self._tensor._store.format)
        if np.ndim(number):
            raise LayoutError(f"fill takes one number, got {np.asarray(number).size}; copy_from takes an array")
        return elements.fill(self._tensor, number)


class _LoadBrackets(LoadBrackets[ViewKind]):
    """`t.load(2, 3)`, `t.load[4](2, 3)`: SIMD."""

    __slots__ = ()

    def __call__(
        self,
        *index: Any,
        coord: Any = None,
        width: Any = None,
        alignment: Any = None,
        load_alignment: Any = None,
        fill: Any = None,
        invariant: Any = False,
        non_temporal: Any = False,
        linear_idx_type: Any = None,
    ) -> Any:
        """Return the element at the index `coord`, or `width` scalars from there on; the last three have no effect."""
        entries = index_entries(self.method, index, coord)
        step = alignment if load_alignment is None else load_alignment
        numbers = as_vector(super().__call__(*entries, width=width, alignment=step, fill=fill))
        if width is not None and numbers.size == 1:
            numbers.value = numbers.array  # a vector of one, as it was asked for
        return numbers


class _StoreBrackets(StoreBrackets[ViewKind]):
    """`t.store((1, 0), x)`; a vector that is longer than an element is written to the scalars from there on."""

    __slots__ = ()

    def __call__(
        self,
        *index_and_value: Any,
        coord: Any = None,
        value: Any = None,
        width: Any = None,
        alignment: Any = None,
        store_alignment: Any = None,
        fill: Any = None,
        non_temporal: Any = False,
    ) -> None:
        """Write `value` to the element at `coord`, or to `width` scalars from there on: one number goes to all."""
        arguments = index_and_value if value is None else (*index_and_value, value)
        if not arguments:
            raise TypeError("store takes an index and a value: t.store(Coord(1, 2), value)")
        *index, number = arguments
        tensor, entries = self._tensor, index_entries(self.method, tuple(index), coord)
        require_one_index_per_mode(tensor, entries)
        if width is None and isinstance(number, SIMD) and number.size > tensor.element_size:
            width = number.size
        scalars = numbers_of(number, tensor._store.format)
        if width is not None and np.asarray(scalars).size == 1:
            scalars = np.full(as_integer(width, "a width"), scalars)
        step = alignment if store_alignment is None else store_alignment
        super().__call__(entries, scalars, width=width, alignment=step, fill=fill)


class ElementwiseTensor(MemoryTensor):
    """A view of memory with loads and stores of scalars, and arithmetic in place.

    >>> from tilewright.mojo.layout import row_major
    >>> ElementwiseTensor([-1, 5], row_major[2]()).abs().to_numpy().tolist()
    [1, 5]
    """

    __slots__ = ()
    tiles_logically: ClassVar[bool] = False  # else nested modes are tiled by their leaves

    # Elements.

    @property
    def load(self: ViewKind) -> LoadBrackets[ViewKind]:
        """Return the element at an index, `t.load(2, 3)`, or scalars from there on, `t.load[4](2, 3)`: SIMD.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([0, 1, 2, 3], row_major[2, 2]()).load[2](1, 0)
        SIMD[DType.int64, 2](2, 3)
        """
        return _LoadBrackets(self)

    @property
    def store(self: ViewKind) -> StoreBrackets[ViewKind]:
        """Write the element at an index, or a vector from there on: `t.store((1, 0), x)`, `t.store[4]((1, 0), v)`.

        >>> from tilewright.mojo.layout import row_major
        >>> t = ElementwiseTensor([0, 1, 2, 3], row_major[2, 2]())
        >>> t.store((1, 0), SIMD(8, 9))
        >>> t.to_numpy().tolist()
        [[0, 1], [8, 9]]
        """
        return _StoreBrackets(self)

    @brackets
    def load_linear(self, parameters: tuple[Any, ...], *index: Any, width: object = None, **options: Any) -> MojoValue:
        """Return the element at `index` of a flat layout, or `load_linear[width](index)` scalars: the same as `load`.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([0, 1, 2, 3], row_major[2, 2]()).load_linear(1, 0)
        Int64(2)
        """
        count = (*parameters, width)[0]
        require_one_index_per_mode(self, index_entries("load_linear", index))
        return self.load(*index, **options) if count is None else self.load[count](*index, **options)

    @brackets
    def store_linear(
        self, parameters: tuple[Any, ...], *index_and_value: Any, width: object = None, **options: Any
    ) -> None:
        """Write the element at an index of a flat layout, or a vector from there on: the same as `store`.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([0, 1, 2, 3], row_major[2, 2]()).store_linear((1, 0), 9)
        """
        count = (*parameters, width)[0]
        method = self.store if count is None else self.store[count]
        method(*index_and_value, **options)

    @brackets
    def raw_load(self, parameters: tuple[Any, ...], offset: object, *, width: object = 1, **_: Any) -> SIMD:
        """Return scalars from `offset` after the first one of the view, whatever the layout: `raw_load[width](offset)`.

        >>> from tilewright.mojo.layout import col_major
        >>> ElementwiseTensor(list(range(8)), col_major[2, 4]()).raw_load[2](5).tolist()
        [5, 6]
        """
        offset, count = self._raw_range((*parameters, width)[0], offset)
        return read_vector(self._store, offset, count)

    @brackets
    def raw_store(
        self, parameters: tuple[Any, ...], offset: object, value: object, *, width: object = None, **_: Any
    ) -> None:
        """Write scalars from `offset` after the first one of the view on, whatever the layout.

        >>> from tilewright.mojo.layout import row_major
        >>> t = ElementwiseTensor([0] * 4, row_major[2, 2]())
        >>> t.raw_store[2](1, [5, 6])
        >>> t.to_numpy().tolist()
        [[0, 5], [6, 0]]
        """
        require_writable(self)
        scalars = fit_values(numbers_of(value, self._store.format), self._store.format).reshape(-1)
        offset, count = self._raw_range((*parameters, width, scalars.size)[0] or scalars.size, offset)
        if scalars.size != count:
            raise LayoutError(f"raw_store with width {count} takes {count} scalars, got {scalars.size}")
        write_vector(self._store, offset, scalars)

    def _raw_range(self, width: object, offset: object) -> tuple[int, int]:
        """Return (offset, width) of scalars in storage, after checking them."""
        offset, count = self.offset + as_integer(offset, "an offset"), as_integer(width, "a width")
        if count < 1 or offset < 0 or offset + count > self._store.size:
            raise CoordinateError(f"scalars {offset} to {offset + count - 1} exceed the storage of {self._store.size}")
        return offset, count

    # Arithmetic in place.

    @property
    def fill(self: ViewKind) -> FillBrackets[ViewKind]:  # type: ignore[override]
        """Set every valid scalar to a value of the tensor's type; return the tensor: `t.fill(7)`.

        `use_runtime_layout`, in brackets or parentheses, has no effect: it tells Mojo how to compile the loop.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([0] * 4, row_major[2, 2]()).fill(7).to_numpy().tolist()
        [[7, 7], [7, 7]]
        """
        return FillBrackets(self)

    @brackets
    def exp(self: Elements, parameters: tuple[Any, ...], scale: float = 1) -> Elements:
        """Replace every element x by exp(`scale` * x): `t.exp[scale]()`, 1 without brackets; return the tensor.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([0.0, 0.0], row_major[2]()).exp[2.0]().to_numpy().tolist()
        [1.0, 1.0]
        """
        values = self.to_numpy(copy=None)
        factor = parameters[0] if parameters else scale
        # in double precision, then rounded, as for scalars
        exact = np.exp(values.astype(np.float64) * float(factor))
        return self._assign(cast(exact, self._store.format))

    def min(self: Elements, other: object) -> Elements:
        """Replace every element by the smaller of itself and `other`; return the tensor.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([1, 5], row_major[2]()).min(3).to_numpy().tolist()
        [1, 3]
        """
        return _apply_in_place(np.minimum, self, other)

    def max(self: Elements, other: object) -> Elements:
        """Replace every element by the larger of itself and `other`; return the tensor.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([1, 5], row_major[2]()).max(3).to_numpy().tolist()
        [3, 5]
        """
        return _apply_in_place(np.maximum, self, other)

    def abs(self: Elements) -> Elements:
        """Replace every element by its absolute value; return the tensor.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([-1, 5], row_major[2]()).abs().to_numpy().tolist()
        [1, 5]
        """
        return _apply_in_place(np.absolute, self)

    def recip(self: Elements) -> Elements:
        """Replace every element by its reciprocal; return the tensor.

        >>> from tilewright.mojo.layout import row_major
        >>> ElementwiseTensor([2.0, 4.0], row_major[2]()).recip().to_numpy().tolist()
        [0.5, 0.25]
        """
        values = self.to_numpy(copy=None)
        return self._assign(values.dtype.type(1) / values)


def _apply_in_place(ufunc: Any, tensor: Elements, *operands: Any) -> Elements:
    """Return the tensor after a NumPy function of it was written over it."""
    ufunc(tensor, *operands, out=(tensor,))
    return tensor
