# SPDX-License-Identifier: Apache-2.0
"""The memory of Mojo's tensors: address spaces, pointers, buffers, and what of a tensor is known at compile time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from ...errors import CoordinateError, LayoutError
from ...formats import ScalarFormat, fit_values, format_of, int32, int64
from ...layout import ComposedLayout, LayoutLike
from ...layout.tuples import leaves
from ...layout.validation import as_integer
from ...tensor import TileTensor as CoreTileTensor
from ...tensor.element_access import element_place
from ...tensor.shape_views import require_row_major
from ...tensor.store import Store
from ..brackets import brackets
from ..buffer import NDBuffer
from ..builtins import Origin, memory_type
from ..std.gpu.host import DeviceBuffer, DeviceContext
from .coord import RuntimeInt, StaticExtents
from .tile_layout import Layout, from_core

Kind = TypeVar("Kind", bound="MemoryTensor")


class AddressSpace(Enum):
    """The kind of memory that a tensor is in. On a host it is only a label.

    >>> print(AddressSpace.SHARED)
    AddressSpace.SHARED
    """

    GENERIC = 0
    GLOBAL = 1
    SHARED = 3
    CONSTANT = 4
    LOCAL = 5


@dataclass(frozen=True, slots=True, eq=False)
class LabelledStore(Store):
    """A store with the address space of its memory, and whether its pointers may come from anywhere.

    >>> LabelledStore.of([1, 2]).address_space
    <AddressSpace.GENERIC: 0>
    """

    address_space: AddressSpace = AddressSpace.GENERIC
    any_origin: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Pointer:
    """A scalar of a store: `offset` scalars after its start. Unlike Mojo's `UnsafePointer`, every access is checked.

    >>> pointer = Pointer(Store.of([10, 11, 12]), 1)
    >>> int(pointer[0]), int(pointer[1]), (pointer + 1).offset
    (11, 12, 2)
    """

    store: Store
    offset: int

    @property
    def storage(self) -> Any:
        """Return the object that holds the memory.

        >>> Pointer(Store.of([10, 11]), 1).storage
        [10, 11]
        """
        return self.store.origin

    @property
    def address(self) -> int:
        """Return the byte address.

        >>> pointer = Pointer(Store.of(bytearray(16), "float32"), 0)
        >>> (pointer + 1).address - pointer.address
        4
        """
        return self.store.address(self.offset)

    def _check_index(self, k: int) -> int:
        place = self.offset + as_integer(k, "an offset from a pointer")
        if not 0 <= place < self.store.size:
            raise CoordinateError(f"scalar {place} is outside the storage, which has 0 to {self.store.size - 1}")
        return place

    def __getitem__(self, k: int) -> Any:
        return self.store.host[self._check_index(k)]

    def __setitem__(self, k: int, value: Any) -> None:
        if self.store.readonly:
            raise LayoutError("cannot write through a pointer into read-only storage")
        self.store.host[self._check_index(k)] = fit_values(value, self.store.format)

    def __add__(self, count: int) -> Pointer:
        return Pointer(self.store, self.offset + as_integer(count, "a pointer step"))

    @property
    def dtype(self) -> ScalarFormat:
        """Return the format of the scalars.

        >>> Pointer(Store.of([10, 11]), 1).dtype
        format_of('int64')
        """
        return self.store.format

    def __class_getitem__(cls, parameters: Any) -> Any:
        return memory_type(cls, parameters)

    def __repr__(self) -> str:
        return f"<UnsafePointer to scalar {self.offset} of {self.store.size} x {self.store.format.name}>"

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Pointer):
            if other.store.data is not self.store.data:
                raise LayoutError("cannot subtract pointers into different storage")
            return self.offset - other.offset
        return self + -as_integer(other, "a pointer step")


UnsafePointer = Pointer


class MemoryTensor(StaticExtents, CoreTileTensor):
    """A view of memory with the labels of Mojo: its address space, the format of offsets, extents known or not.

    `address_space` is a label of the memory, `linear_idx_type` the integer format of offsets in a kernel.

    >>> from tilewright.mojo.layout import row_major
    >>> MemoryTensor(bytearray(24), row_major[4, 6]()).static_stride
    (6, 1)
    """

    __slots__ = ("_index_type",)
    _index_type: ScalarFormat | None

    def __init__(
        self,
        storage: Any,
        layout: Any = None,
        *,
        dtype: Any = None,
        address_space: AddressSpace = AddressSpace.GENERIC,
        linear_idx_type: Any = None,
    ) -> None:
        self._index_type = None if linear_idx_type is None else _index_format(linear_idx_type)
        if isinstance(storage, NDBuffer):
            layout = storage.layout if layout is None else layout
        if layout is not None and not isinstance(layout, LayoutLike) and hasattr(layout, "shape_coord"):
            layout = Layout(layout.shape_coord(), layout.stride_coord())
        super().__init__(storage, layout, dtype=dtype)
        if address_space is not AddressSpace.GENERIC:
            self._store = label_store(self._store, address_space)

    def _view(self: Kind, pair: Any, offset: int, store: Store | None = None) -> Kind:
        view = super()._view(pair, offset, store)
        view._index_type = None
        return view

    def _runtime_extent(self, extent: int) -> int:
        return RuntimeInt(extent)

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

    # What is known at compile time.

    def _leaf_extents(self) -> list[int]:
        return leaves(self._pair.shape[0])

    def _leaf_strides(self) -> list[Any]:
        layout = self._pair
        while isinstance(layout, ComposedLayout):
            layout = layout.inner
        return leaves(layout.stride[0])

    @brackets
    def dim(self, parameters: tuple[Any, ...], *index: Any) -> int:
        """Return the extent of a mode: `t.dim[0]()` or `t.dim(0)`; of a nested mode, its size.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).dim[0]()
        6
        """
        (k,) = parameters or index
        return int(self._extents[self._check_mode(k)])

    def dynamic_stride(self, k: int) -> int:
        """Return the stride of mode `k`.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(24), row_major[4, 6]()).dynamic_stride(0)
        6
        """
        step = self.strides[self._check_mode(k)]
        if isinstance(step, tuple):
            raise LayoutError(f"mode {k} of {self.layout} has no single stride, but {step}")
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
    def linear_idx_type(self) -> ScalarFormat:
        """Return the integer format that a kernel uses for offsets: a label, ours are exact.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(2), row_major[2]()).linear_idx_type.name
        'int32'
        """
        if self._index_type is not None:
            return self._index_type
        if self.all_dims_known and self._store.size < 2**31:
            return int32
        return int32 if self.address_space in (AddressSpace.SHARED, AddressSpace.CONSTANT) else int64

    @property
    def ptr(self) -> Pointer:
        """Return a pointer to the first scalar.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).ptr.offset
        0
        """
        return Pointer(self._store, self._offset)

    def ptr_at_offset(self, *index: Any) -> Pointer:
        """Return a pointer to the first scalar of the element at `index`.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).ptr_at_offset(1, 3).offset
        11
        """
        entries = tuple(index[0]) if len(index) == 1 and isinstance(index[0], (tuple, list)) else index
        return Pointer(self._store, element_place(self, entries))

    def prefetch(self, *index: Any) -> None:
        """Check `index`; a host needs no hint.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(bytearray(48), row_major[6, 8]()).prefetch(5, 7)
        """
        self.ptr_at_offset(*index)

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

    def to_device_buffer(self, context: DeviceContext) -> DeviceBuffer:
        """Return a device buffer of `context` with all scalars of the view, which must be in order without gaps.

        >>> from tilewright.mojo.layout import row_major
        >>> len(MemoryTensor(bytearray(4), row_major[2, 2]()).to_device_buffer(DeviceContext()))
        4
        """
        require_row_major(self, "to_device_buffer")
        count = self.size * self.element_size
        if isinstance(self._store.origin, DeviceBuffer) and self._offset == 0 and count == self._store.size:
            return self._store.origin
        buffer: DeviceBuffer = context.enqueue_create_buffer[self.dtype](count)
        context.enqueue_copy(buffer, self._store.section(self._offset, count))
        return buffer

    def as_span(self) -> Any:
        """Return the scalars of a view in row-major order as a flat array that shares its memory.

        >>> from tilewright.mojo.layout import row_major
        >>> MemoryTensor(list(range(6)), row_major[2, 3]()).as_span().tolist()
        [0, 1, 2, 3, 4, 5]
        """
        require_row_major(self, "as_span")
        return self.to_numpy(copy=None).reshape(-1)


def label_store(store: Store, space: AddressSpace, any_origin: bool = False) -> LabelledStore:
    """Return a store of the same memory with an address space; `any_origin` forgets where its pointers come from.

    >>> label_store(Store.of([1, 2]), AddressSpace.SHARED).address_space
    <AddressSpace.SHARED: 3>
    """
    is_any = any_origin or (isinstance(store, LabelledStore) and store.any_origin)
    return LabelledStore(store.data, store.format, store.origin, store.readonly, AddressSpace(space), is_any)


def _index_format(dtype: Any) -> ScalarFormat:
    """Return the format of a dtype; raise unless it is an integer format."""
    element = format_of(dtype)
    if element.has_blocks or element.kind not in ("int", "uint"):
        raise LayoutError(f"linear_idx_type must be an integer format, got {element.name}")
    return element
