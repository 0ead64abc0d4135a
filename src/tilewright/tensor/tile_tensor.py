# SPDX-License-Identifier: Apache-2.0
"""`TileTensor`: a typed view of storage through a layout, with the vocabulary of tiled kernels."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import LayoutError
from ..formats import ScalarFormat, format_of
from ..layout import Layout
from ..layout.brackets import brackets
from ..layout.strided import make
from . import access, printing, reshaping, slicing, thread_shares, tile_views, whole
from .admission import admit, index_format
from .arithmetic import Arithmetic
from .cutting import paired, rebased
from .host_device import DeviceBuffer
from .scalars import Scalars
from .spaces import AddressSpace
from .storage import Store
from .view import View

if TYPE_CHECKING:
    from .layout_tensor import LayoutTensor


def _address_space_cast(tensor: TileTensor, fixed: tuple[Any, ...]) -> TileTensor:
    """Return the same view labelled with another address space.

    >>> import tilewright as tw
    >>> t = TileTensor(bytearray(48), tw.row_major(6, 8))
    >>> t.address_space_cast[AddressSpace.SHARED]().address_space
    <AddressSpace.SHARED: 3>
    """
    (space,) = fixed
    store = tensor._store.changed(address_space=AddressSpace(space))
    return tensor._view(tensor._whole, tensor._offset, tensor.linear_idx_type, store)


def _bitcast(tensor: TileTensor, fixed: tuple[Any, ...], rescale: bool = False) -> TileTensor:
    """Return the same indices and strides over the same bytes read as another format: `t.bitcast[dtype]()`.

    Formats of other sizes would give the strides another meaning; `rescale=True` multiplies them where it can.

    >>> import tilewright as tw
    >>> ones = TileTensor(np.ones(4, dtype=np.float32), tw.row_major(2, 2))
    >>> hex(ones.bitcast["uint32"]()[0, 0])
    '0x3f800000'
    """
    (dtype,) = fixed
    old, new = tensor._store.format, format_of(dtype)
    if not isinstance(new, ScalarFormat):
        raise LayoutError(f"{new.name} has blocks and no single elements to read; unpack it first")
    data = np.asarray(tensor._store.host).view(new.dtype)
    store = Store(data, new, tensor._store.origin, tensor._store.readonly, tensor._store.address_space)
    if old.itemsize == new.itemsize:
        return tensor._view(tensor._whole, tensor._offset, None, store)
    if not rescale or old.itemsize % new.itemsize or not isinstance(tensor._whole, Layout):
        raise LayoutError(
            f"{old.name} and {new.name} differ in size, so the same strides would mean other bytes; rescale=True"
            " multiplies them where the new format divides the old one"
        )
    factor = old.itemsize // new.itemsize
    steps = [tuple([step * factor for step in part]) for part in tensor._whole.stride]
    scaled = make(tensor._whole.shape, tuple(steps), 0, (), tensor._whole.guards)
    return tensor._view(scaled, tensor._offset * factor, None, store)


class _TypeName:
    """`TileTensor.get_type_name()` names the class, `t.get_type_name()` the type of a view."""

    def __get__(self, tensor: TileTensor | None, kind: type) -> Any:
        if tensor is None:
            return lambda: kind.__name__
        return lambda: (
            f"{kind.__name__}[mut={tensor.mut}, dtype={tensor.dtype}, Engine=DefaultEngine[element_size="
            f"{tensor.element_size}], address_space={tensor.address_space}, linear_idx_type={tensor.linear_idx_type}]"
        )


class TileTensor(View, Arithmetic):
    """A view of storage through a layout; tiles, slices, vectors and shares of threads are further views.

    Storage is a NumPy array, a buffer such as `bytearray`, an object with DLPack, a host or device buffer, or a list
    of numbers, which is copied. Without a layout an array keeps its own shape and strides. The storage must hold all
    places of the layout. Views share memory; `TileTensor(t)` is the same view, read-only.

    >>> import tilewright as tw
    >>> t = TileTensor(np.arange(16), tw.row_major[4, 4]())
    >>> t.tile[2, 2](1, 0).to_numpy().tolist()
    [[8, 9], [12, 13]]
    >>> t.vectorize[1, 4]()[2, 0].tolist()
    [8, 9, 10, 11]
    """

    __slots__ = ()

    def __init__(
        self,
        storage: Any,
        layout: Any = None,
        *,
        dtype: Any = None,
        address_space: AddressSpace = AddressSpace.GENERIC,
        linear_idx_type: Any = None,
    ) -> None:
        self._index_type = None if linear_idx_type is None else index_format(linear_idx_type)
        if isinstance(storage, TileTensor):
            if layout is not None:
                raise LayoutError("a tensor is a view already; give its storage another layout with t.reshape(layout)")
            self._store = storage._store.changed(readonly=True)
            self._whole, self._offset = storage._whole, storage._offset
            return
        self._store, self._layout, self._offset = admit(storage, layout, dtype)
        if address_space is not AddressSpace.GENERIC:
            self._store = self._store.changed(address_space=AddressSpace(address_space))
        self._whole, first = rebased(paired(self._layout))
        if first:
            self._offset += first
            self._layout = rebased(self._layout)[0]
        self._check_inside()

    # elements

    def __getitem__(self, key: Any) -> Any:
        place = self._quick_place(key)
        if place is not None:
            lanes = self._quick[2]
            return self._store.data[place] if lanes is None else self._store.host[lanes + place]
        index = key if isinstance(key, tuple) else (key,)
        if _selects(index):
            return slicing.subscript(self, index)
        return access.read_element(self, index)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self._store.readonly:
            place = self._quick_place(key)
            if place is not None and self._quick[2] is None:
                self._store.data[place] = value
                return
        index = key if isinstance(key, tuple) else (key,)
        if _selects(index):
            part = slicing.subscript(self, index)
            if isinstance(value, TileTensor) or np.ndim(value):
                whole.copy_from(part, value)
            else:
                whole.fill(part, value)
            return
        access.write_element(self, index, value)

    def _quick_place(self, key: Any) -> int | None:
        """Return the place of an index of plain integers, one a mode, where all is strided and valid; else None."""
        try:
            shape, stride, _ = self._quick
        except AttributeError:
            shape, stride, _ = self._quick = access.quick_access(self)
        if key.__class__ is not tuple or len(key) != len(shape):
            return None
        place = self._offset
        for c, n, step in zip(key, shape, stride):  # noqa: B905  (the lengths were compared; this is the hot path)
            if c.__class__ is not int or not 0 <= c < n:
                return None
            if step.__class__ is int:
                place += c * step
            else:
                for extent, inner in step:
                    place += c % extent * inner
                    c //= extent
        return place

    load = brackets(access.load)
    store = brackets(access.store)
    ptr_at_offset = access.ptr_at_offset

    def prefetch(self, *index: Any) -> None:
        """Check an index; a host needs no hint.

        >>> import tilewright as tw
        >>> TileTensor(bytearray(48), tw.row_major(6, 8)).prefetch(5, 7)
        """
        self.ptr_at_offset(*index)

    def load_linear(self, *index: Any) -> Any:
        """Return the element at an index of a flat layout: the same as `load`.

        >>> import tilewright as tw
        >>> int(TileTensor([0, 1, 2, 3], tw.row_major(2, 2)).load_linear(1, 0))
        2
        """
        return self.load(*index)

    def store_linear(self, *index_and_value: Any) -> None:
        """Write the element at an index of a flat layout: the same as `store`.

        >>> import tilewright as tw
        >>> TileTensor([0, 1, 2, 3], tw.row_major(2, 2)).store_linear((1, 0), 9)
        """
        self.store(*index_and_value)

    raw_load = brackets(access.raw_load)
    raw_store = brackets(access.raw_store)

    def __iter__(self) -> Any:
        if self.rank != 1:
            raise TypeError(
                "a tensor of several modes has no single order: loop over t.tiles[...](), or over t.flat(order='row')"
            )
        return (self[k] for k in range(self.numel()))

    # views

    tile = brackets(tile_views.tile)
    tile_with_offset = brackets(tile_views.tile_with_offset)
    tiles = brackets(tile_views.tiles)
    distribute = brackets(thread_shares.distribute)
    distribute_with_offset = brackets(thread_shares.distribute_with_offset)
    vectorize = brackets(reshaping.vectorize)
    slice = brackets(slicing.slice_)
    split = brackets(slicing.split)
    reshape = brackets(reshaping.reshape)
    coalesce = reshaping.coalesce
    transpose = reshaping.transpose
    make_dynamic = brackets(reshaping.make_dynamic)
    address_space_cast = brackets(_address_space_cast)
    bitcast = brackets(_bitcast)

    def as_immut(self) -> TileTensor:
        """Return the same view, read-only.

        >>> import tilewright as tw
        >>> TileTensor(bytearray(4), tw.row_major(2, 2)).as_immut().mut
        False
        """
        return self._view(self._whole, self._offset, self._index_type, self._store.changed(readonly=True))

    as_imm = as_immut

    def as_any_origin(self) -> TileTensor:
        """Return the same view; in Python every view keeps its storage alive.

        >>> import tilewright as tw
        >>> TileTensor(bytearray(4), tw.row_major(2, 2)).as_any_origin().layout
        Layout((2, 2), (2, 1))
        """
        return self._view(self._whole, self._offset, self._index_type)

    as_unsafe_any_origin = as_any_origin
    __copy__ = as_any_origin

    def to_layout_tensor(self) -> LayoutTensor:
        """Return the same view as a `LayoutTensor`.

        >>> import tilewright as tw
        >>> type(TileTensor(bytearray(4), tw.row_major(2, 2)).to_layout_tensor()).__name__
        'LayoutTensor'
        """
        from .layout_tensor import LayoutTensor

        return LayoutTensor._of(self)

    def to_device_buffer(self, context: Any) -> DeviceBuffer:
        """Return a device buffer with all scalars of the view, which must follow each other in storage.

        >>> import tilewright as tw
        >>> from tilewright.tensor import DeviceContext
        >>> len(TileTensor(bytearray(4), tw.row_major(2, 2)).to_device_buffer(DeviceContext()))
        4
        """
        reshaping.require_row_major(self, "to_device_buffer")
        count = self.numel() * self.element_size
        if isinstance(self._store.origin, DeviceBuffer) and self._offset == 0 and count == self._store.size:
            return self._store.origin
        buffer: DeviceBuffer = context.enqueue_create_buffer[self.dtype](count)
        context.enqueue_copy(buffer, self._store.part(self._offset, count))
        return buffer

    def as_span(self) -> Any:
        """Return the scalars of a view in row-major order as a flat array that shares its memory.

        >>> import tilewright as tw
        >>> TileTensor(list(range(6)), tw.row_major(2, 3)).as_span().tolist()
        [0, 1, 2, 3, 4, 5]
        """
        reshaping.require_row_major(self, "as_span")
        return self._array_view().reshape(-1)

    # the whole

    fill = whole.fill
    copy_from = whole.copy_from
    to_numpy = whole.to_numpy
    equals = whole.equals

    def copy_to(self, target: Any, order: str | None = None, fill: Any = None) -> Any:
        """Return target after the elements were copied and converted into it: a tensor or a writeable array.

        >>> import tilewright as tw
        >>> TileTensor([1, 2, 3, 4], tw.col_major(2, 2)).copy_to(np.zeros((2, 2))).tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """
        into = target if isinstance(target, TileTensor) else type(self)(target)
        whole.copy_from(into, self, order, fill)
        return target

    @classmethod
    def from_numpy(cls, array: Any, layout: Any = None) -> TileTensor:
        """Return a tensor over the memory of an array, without a copy.

        >>> TileTensor.from_numpy(np.zeros((3, 4))).layout
        Layout((3, 4), (4, 1))
        """
        return cls(np.asarray(array), layout)

    def flat(self, order: str = "colex") -> Any:
        """Return all elements in linear order: the first index fastest ("colex"), or the last ("row").

        >>> import tilewright as tw
        >>> t = TileTensor(list(range(4)), tw.row_major(2, 2))
        >>> t.flat().tolist(), t.flat(order="row").tolist()
        ([0, 2, 1, 3], [0, 1, 2, 3])
        """
        if order not in ("row", "colex"):
            raise LayoutError(f"order={order!r}: use 'row' (last index fastest) or 'colex' (first fastest)")
        values = self.to_numpy()
        axes = range(self.rank) if order == "row" else reversed(range(self.rank))
        ordered = values.transpose([*axes, *range(self.rank, values.ndim)])
        return ordered.reshape(prod(values.shape[: self.rank]), *values.shape[self.rank :])

    def as_strided(self) -> Any:
        """Return the valid scalars as a NumPy view of storage, a dimension a leaf: for inner loops and numba.

        Leaves of a nested mode come slowest first; vector lanes are part of their mode.

        >>> import tilewright as tw
        >>> TileTensor(list(range(6)), tw.col_major(2, 3)).as_strided().tolist()
        [[0, 2, 4], [1, 3, 5]]
        """
        view = Scalars.of(self).view()
        if view is None:
            raise LayoutError(f"{self.layout} is not strided, or ragged within a nested mode; use to_numpy()")
        return view

    def _array_view(self) -> Any:
        return whole.to_numpy(self, copy=None)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        found = whole.to_numpy(self, copy=copy)
        return found if dtype is None or found.dtype == dtype else found.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return whole.to_numpy(self, copy=False).__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return whole.to_numpy(self, copy=False).__dlpack_device__()

    def _fresh(self, values: Any) -> TileTensor:
        return type(self)(np.ascontiguousarray(values))

    # as text

    def __str__(self) -> str:
        return printing.readable_text(self)

    def __format__(self, style: str) -> str:
        return printing.formatted(self, style)

    def write_to(self, writer: Any) -> None:
        """Write the text of the tensor to anything with a `write` method.

        >>> import sys
        >>> import tilewright as tw
        >>> TileTensor([1, 2], tw.row_major(2)).write_to(sys.stdout)
        [1, 2]
        """
        writer.write(str(self))

    def pretty(self) -> str:
        """Return every matrix of the last two modes as a grid under its leading coordinates.

        >>> import tilewright as tw
        >>> print(TileTensor([1, 2, 3, 10], tw.row_major(2, 2)).pretty())
         1  2
         3 10
        """
        return printing.pretty_text(self)

    def __repr__(self) -> str:
        parts = [repr(self.layout), f"offset={self._offset}", f"dtype={self.dtype.name!r}"]
        if self.element_size > 1:
            parts.append(f"element={self.element_layout!r}")
        if self.readonly:
            parts.append("readonly=True")
        return f"{type(self).__name__}({', '.join(parts)})"

    get_type_name: Any = _TypeName()

    # Names that a type has in Mojo; here they all mean the class, for annotations.
    ViewType: ClassVar[Any]
    AddressSpaceCastType: ClassVar[Any]
    OriginCastType: ClassVar[Any]
    GenericType: ClassVar[Any]
    device_type: ClassVar[Any]
    DynamicType: ClassVar[Any]
    CoalescedType: ClassVar[Any]
    ReshapedType: ClassVar[Any]
    VectorizedType: ClassVar[Any]
    SIMDVectorizedType: ClassVar[Any]

    def __class_getitem__(cls, _: Any) -> Any:
        return cls


for _name in [name for name in TileTensor.__annotations__ if name.endswith(("Type", "_type"))]:
    if not hasattr(TileTensor, _name):
        setattr(TileTensor, _name, TileTensor)
for _name in ("__copy_ctor_is_trivial", "__move_ctor_is_trivial", "__del__is_trivial"):
    setattr(TileTensor, _name, True)


def _selects(index: tuple[Any, ...]) -> bool:
    return any(entry.__class__ is slice or entry is Ellipsis for entry in index)
