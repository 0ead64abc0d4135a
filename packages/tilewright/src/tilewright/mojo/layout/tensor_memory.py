# SPDX-License-Identifier: Apache-2.0
"""The memory of Mojo's tensors: address spaces, pointers, buffers, and what of a tensor is known at compile time."""

from __future__ import annotations

from types import EllipsisType
from typing import Any, TypeVar

import numpy as np

from ...errors import CoordinateError, LayoutError
from ...layout import ComposedLayout, LayoutLike
from ...layout import Layout as CoreLayout
from ...layout.layout import make_layout
from ...layout.tuples import leaves
from ...layout.validation import as_integer
from ...tensor import TileTensor as CoreTileTensor
from ...tensor.element_access import element_place
from ...tensor.shape_views import require_row_major
from ...tensor.store import Store, scalar_bounds
from ...tensor.watching import current_watcher
from ..brackets import brackets
from ..builtins import Origin
from ..memory import AddressSpace, LabelledStore, MemoryArray, Pointer, label_store
from ..scalar_memory import require_numbers
from ..simd import SIMD, DType, SIMDType, as_dtype, as_vector, make_scalar, numbers_of
from ..std.gpu.host import DeviceBuffer, DeviceContext, HostBuffer
from .coord import ComptimeInt, RuntimeInt, StaticExtents, integer_type
from .strided_layout import from_core, plain_layout
from .tile_layout import Layout

Kind = TypeVar("Kind", bound="MemoryTensor")


class MemoryTensor(StaticExtents, CoreTileTensor):
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
        span: Any = None,
        buffer: Any = None,
        device_buffer: Any = None,
        host_buffer: Any = None,
        other: Any = None,
        ptr: Any = None,
        dtype: Any = None,
        address_space: AddressSpace = AddressSpace.GENERIC,
        linear_idx_type: Any = None,
        element_size: int = 1,
    ) -> None:
        self._index_type = None if linear_idx_type is None else integer_type(linear_idx_type, "linear_idx_type")
        memories = (storage, span, buffer, device_buffer, host_buffer, other, ptr)
        storage = None if all(each is None for each in memories) else only_one("a tensor", "its memory", *memories)
        for name, given, kinds in (
            ("device_buffer", device_buffer, DeviceBuffer),
            ("host_buffer", host_buffer, HostBuffer),
            ("other", other, CoreTileTensor),
        ):
            if given is not None and not isinstance(given, kinds):
                raise TypeError(f"{name} must be a {kinds.__name__}, got {type(given).__name__}")
        if layout is None and not isinstance(storage, CoreTileTensor):
            layout = getattr(storage, "layout", None)  # of a buffer with a shape
        if layout is not None and not isinstance(layout, LayoutLike) and hasattr(layout, "shape_coord"):
            layout = Layout(layout.shape_coord(), layout.stride_coord())
        layout = plain_layout(layout)
        if isinstance(storage, (Pointer, MemoryArray)) and layout is not None and dtype is None:
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
        if size < 1 or not isinstance(pair, CoreLayout) or self.element_size != 1:
            raise LayoutError(f"element_size must be at least 1, over strided scalars, got {size} of {self.layout!r}")
        block = (*[1] * (self.rank - 1), size)
        self._pair = make_layout((pair.shape[0], block), (pair.stride[0], (1,) * len(block)))
        self._check_bounds()

    def _bind_memory(self, storage: Pointer | MemoryArray, layout: Any) -> None:
        """Place the layout at a pointer, or on an array, of the dialect: both share one store."""
        memory = require_numbers(storage.memory, "a tensor")
        start = storage.offset if isinstance(storage, Pointer) else storage.start
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
        """Return the number type of the scalars.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).dtype
        DType.uint8
        """
        return as_dtype(self._store.format)

    @property
    def layout(self) -> Any:
        """Return the layout of the elements, with Mojo's methods.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).layout.static_product
        48
        """
        return from_core(super().layout)

    @property
    def element_layout(self) -> Any:
        """Return the layout of the scalars within an element, with Mojo's methods.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).vectorize[1, 4]().element_layout.size()
        4
        """
        return from_core(super().element_layout)

    # Elements.

    def __getitem__(self, coord: Any, *items: Any) -> Any:
        index = (coord, *items) if items else coord if coord.__class__ is tuple else _as_index(coord)
        place = self._quick_place(index)
        if place is None:
            require_one_index_per_mode(self, index)
            value = super().__getitem__(_plain_index(index))
            is_part = isinstance(value, CoreTileTensor) or any(isinstance(entry, (np.ndarray, list)) for entry in index)
            return value if is_part else as_vector(value)
        store, watcher = self._store, current_watcher()
        vector = self._quick[2]
        if vector is None:
            if watcher is not None:
                watcher.read(store, place)
            data = store.data if store.data.__class__ is np.ndarray else store.host  # the former is faster
            return make_scalar(self._number_type(), data.item(place))
        places = vector + place
        if watcher is not None:
            watcher.read(store, places)
        return as_vector(store.host[places])

    def _number_type(self) -> DType:
        try:
            return self._dtype
        except AttributeError:
            self._dtype = as_dtype(self._store.format)
            return self._dtype

    def get_subscript(self, *items: Any, coord: Any = None) -> Any:
        """Return an element whose index, `items`, may have Mojo's name: `t[coord=Coord(1, 2)]`.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(4), row_major[2, 2]()).get_subscript(coord=(1, 0))
        UInt8(0)
        """
        return self[_named_index(items, coord)]

    def set_subscript(self, value: Any, *items: Any, coord: Any = None) -> None:
        """Set an element to `value`; its index, `items`, may have Mojo's name: `t[coord=Coord(1, 2)] = x`.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(4), row_major[2, 2]()).set_subscript(7, coord=(1, 0))
        """
        self[_named_index(items, coord)] = value

    def __setitem__(self, coord: Any, *items: Any, value: Any = None) -> None:
        if value is None:
            if not items:
                raise TypeError("an element is set to a value: t[1, 2] = value")
            *items, value = items  # type: ignore[assignment]
        index = (coord, *items) if items else coord if coord.__class__ is tuple else _as_index(coord)
        if value.__class__ is SIMD:
            if value.dtype is self._number_type() and not self._store.readonly:
                place = self._quick_place(index)
                if place is not None and self._quick[2] is None and value.value.__class__ is not np.ndarray:
                    store, watcher = self._store, current_watcher()
                    if watcher is not None:
                        watcher.write(store, place)
                    store.host[place] = value.value
                    return
            value = numbers_of(value, self._store.format)
        require_one_index_per_mode(self, index)
        super().__setitem__(_plain_index(index), value)

    # What is known at compile time.

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
        index: Any = None,
        *,
        i: Any = None,
        IndexType: Any = None,  # noqa: N803  (Mojo's name)
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
        index: Any = None,
        *,
        IndexType: Any = None,  # noqa: N803  (Mojo's name)
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
        """Return whether the view can be written.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytes(2), row_major[2]()).mut
        False
        """
        return not self._store.readonly

    @property
    def origin(self) -> Origin:
        """Return where the pointer comes from: the object that holds the memory, which the tensor keeps alive.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytes(2), row_major[2]()).origin.owner, MemoryTensor(bytes(2), row_major[2]()).origin.mut
        (b'\\x00\\x00', False)
        """
        is_any = isinstance(self._store, LabelledStore) and self._store.any_origin
        return Origin(self.mut, None if is_any else self._store.origin)

    @property
    def address_space(self) -> AddressSpace:
        """Return the address space of the memory: a label.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(2), row_major[2]()).address_space
        <AddressSpace.GENERIC: 0>
        """
        return self._store.address_space if isinstance(self._store, LabelledStore) else AddressSpace.GENERIC

    @property
    def linear_idx_type(self) -> DType:
        """Return the integer format that a kernel uses for offsets: a label, ours are exact.

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
        """Return a pointer to the first scalar.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).ptr.offset
        0
        """
        return Pointer(self._store, self._offset)

    def ptr_at_offset(self, *index: Any, coords: Any = None) -> Pointer:
        """Return a pointer to the first scalar of the element at an index, which Mojo calls `coords`.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).ptr_at_offset(1, 3).offset
        11
        """
        entries = index_entries("ptr_at_offset", index, coords)
        require_one_index_per_mode(self, entries)
        return Pointer(self._store, element_place(self, entries))

    def prefetch(self, *index: Any, coords: Any = None) -> None:
        """Check an index, which Mojo calls `coords`; a host needs no hint.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).prefetch(5, 7)
        """
        entries = index_entries("prefetch", index, coords)
        require_one_index_per_mode(self, entries)
        element_place(self, entries)

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

    def to_device_buffer(self, ctx: DeviceContext) -> DeviceBuffer:
        """Return a device buffer of the context `ctx` with all scalars of the view: in order, without gaps.

        >>> from tilewright.mojo.layout import row_major
        >>> len(MemoryTensor(bytearray(4), row_major[2, 2]()).to_device_buffer(DeviceContext()))
        4
        """
        require_row_major(self, "to_device_buffer")
        count = self.size * self.element_size
        if isinstance(self._store.origin, DeviceBuffer) and self._offset == 0 and count == self._store.size:
            return self._store.origin
        if not isinstance(ctx, DeviceContext):
            raise TypeError(f"to_device_buffer takes a DeviceContext, got {type(ctx).__name__} {ctx!r}")
        buffer: DeviceBuffer = ctx.enqueue_create_buffer[self.dtype](count)
        ctx.enqueue_copy(buffer, self._store.section(self._offset, count))
        return buffer

    def as_span(self) -> Any:
        """Return the scalars of a view in row-major order as a flat array that shares its memory.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(list(range(6)), row_major[2, 3]()).as_span().tolist()
        [0, 1, 2, 3, 4, 5]
        """
        require_row_major(self, "as_span")
        return self.to_numpy(copy=None).reshape(-1)


def _without_index_type(method: str, parameters: tuple[Any, ...], kind: Any, index: Any) -> tuple[Any, ...]:
    """Return the parameters without the type of a run-time index, `IndexType` in Mojo, which needs one."""
    types = [each for each in (*parameters, kind) if isinstance(each, (type, SIMDType))]
    if types and index is None:
        raise TypeError(f"{method}[{types[0]!r}] takes the number of a mode in parentheses: t.{method}[Int](0)")
    if kind is not None and not types:
        raise TypeError(f"IndexType of {method} is the type of an index, such as Int, got {kind!r}")
    return tuple([each for each in parameters if not isinstance(each, (type, SIMDType))])


def only_one(method: str, what: str, *values: Any) -> Any:
    """Return the one value that is not None of those that a method was given under several names.

    >>> only_one("dim", "the number of a mode", None, 1)
    1
    """
    given = [value for value in values if value is not None]
    if len(given) != 1:
        raise TypeError(f"{method} takes {what} once, got {given or 'none'}")
    return given[0]


def index_entries(method: str, index: tuple[Any, ...], coord: Any = None) -> tuple[Any, ...]:
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


def _named_index(items: tuple[Any, ...], coord: Any) -> Any:
    """Return what stands in brackets, by position or as `coord`."""
    if (coord is None) == (not items):
        raise TypeError("an element takes one index: t[1, 2], or t[coord=Coord(1, 2)]")
    if coord is not None:
        return coord
    return items[0] if len(items) == 1 else items


def _as_index(key: Any) -> tuple[Any, ...]:
    """Return a subscript as a tuple of its entries."""
    return tuple(key) if isinstance(key, (tuple, list)) else (key,)


def _plain_index(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index with Python's integers in place of Mojo's."""
    return tuple([entry.__index__() if isinstance(entry, (SIMD, ComptimeInt)) else entry for entry in index])
