# SPDX-License-Identifier: Apache-2.0
"""`Store`: the memory under a tensor view, as one flat array of scalars, and the layouts over it.

Named axes of a layout become dimensions of the storage, and every valid scalar must be inside.
"""

from __future__ import annotations

import array
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .._integers import round_up
from ..copying import Array, DeviceArray, SupportsDLPack, from_dlpack, native_format
from ..errors import LayoutError
from ..formats import FormatLike, ScalarFormat, fit_values, format_of
from ..layout import (
    ComposedLayout,
    Layout,
    LayoutLike,
    Offset,
    Place,
    Swizzle,
    chunks,
    component,
    is_array,
    make_layout,
    map_leaves,
    product,
    suffix_product,
)

Tensor = TypeVar("Tensor")


class ExportsArray(Protocol):
    """An object with an array of its scalars, such as a host buffer."""

    @property
    def array(self) -> Array: ...


class ExportsDeviceMemory(Protocol):
    """An object in the memory of a device."""

    @property
    def device_memory(self) -> DeviceMemory: ...


class HasShapeAndStride(Protocol):
    """A layout of another library: attributes, or methods, that return a shape and strides."""

    @property
    def shape(self) -> Any: ...

    @property
    def stride(self) -> Any: ...


# Memory that a view can have: arrays, buffers and exporters share theirs; a list of numbers is copied.
Storage: TypeAlias = "ArrayLike | bytearray | memoryview | ExportsArray | ExportsDeviceMemory | SupportsDLPack"


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """The memory under a tensor and all its views: flat scalars, their format, and the object that owns them.

    >>> Store.of([1, 2, 3]).data.tolist()
    [1, 2, 3]
    """

    data: Any  # a NumPy array, or DeviceMemory
    format: ScalarFormat
    origin: Any
    readonly: bool

    def __post_init__(self) -> None:
        data = self.data.array if isinstance(self.data, DeviceMemory) else self.data
        if not isinstance(data, (np.ndarray, DeviceArray)) or not isinstance(self.format, ScalarFormat):
            raise TypeError(f"memory is an array of scalars, got {type(data).__name__} of {type(self.format).__name__}")
        if data.dtype != self.format.dtype:  # bounds are counted in scalars of the format
            raise TypeError(f"memory of {data.dtype} has no scalars of {self.format.name}")

    @classmethod
    def of(cls, storage: Storage, dtype: FormatLike | None = None) -> Store:
        """Return the store of an array, a buffer, a list of numbers, or anything that exports its memory.

        >>> Store.of(bytearray(8), "float32").data.size, Store.of(bytes(8)).readonly
        (2, True)
        """
        device = getattr(storage, "device_memory", None)
        if isinstance(device, DeviceMemory):
            return cls(device, device.format, storage, False)
        data = flat_scalars(as_array(storage, dtype))
        return cls(data, native_format(data.dtype), storage, not data.flags.writeable)

    @property
    def size(self) -> int:
        """The number of scalars.

        >>> Store.of(bytearray(8)).size
        8
        """
        return int(self.data.size)

    @property
    def host(self) -> Array:
        """The scalars as an array; raises if only a device can access them.

        >>> Store.of(bytearray(2)).host.tolist()
        [0, 0]
        """
        data = self.data
        return data if isinstance(data, np.ndarray) else data.reachable_array()

    def section(self, start: int, size: int) -> Array | DeviceArray:
        """Return `size` scalars from `start` on, for a copy: an array of the host, or memory of a device.

        >>> Store.of([1, 2, 3]).section(1, 2).tolist()
        [2, 3]
        """
        data: Array | DeviceMemory = self.data
        return data[start : start + size] if isinstance(data, np.ndarray) else data.section(start, size)

    @property
    def is_on_host(self) -> bool:
        """Whether the host can access the scalars, or a kernel on it.

        >>> Store.of([1]).is_on_host
        True
        """
        return isinstance(self.data, np.ndarray) or (
            kernel_memory.get() is not None and isinstance(self.data.array, np.ndarray)
        )

    def address(self, offset: int) -> int:
        """Return the byte address of the scalar at an offset.

        >>> store = Store.of(bytearray(16), "float32")
        >>> store.address(1) - store.address(0)
        4
        """
        return int(self.host.ctypes.data) + offset * self.format.itemsize

    def will_read(self, offsets: object, width: int = 1) -> None:
        """Tell the kernel that runs, if one does, of a read of `width` scalars from each of the `offsets` on.

        >>> Store.of([1, 2]).will_read(0)
        """
        kernel = kernel_memory.get()
        if kernel is not None:
            kernel.read(self, offsets, width)

    def will_write(self, offsets: object, width: int = 1) -> None:
        """Tell the kernel that runs, if one does, of a write of `width` scalars from each of the `offsets` on.

        >>> Store.of([1, 2]).will_write(0)
        """
        kernel = kernel_memory.get()
        if kernel is not None:
            kernel.write(self, offsets, width)

    def with_fields(self, **fields: Any) -> Store:
        """Return a store of the same memory with some `fields` replaced.

        >>> Store.of([1]).with_fields(readonly=True).readonly
        True
        """
        return replace(self, **fields)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceMemory:
    """Scalars that only a device can access.

    >>> DeviceMemory(format_of("float32"), np.zeros(4, dtype=np.float32)).size
    4
    """

    format: ScalarFormat
    array: Array | DeviceArray  # of the device, or of the host in its place

    @property
    def size(self) -> int:
        """The number of scalars.

        >>> DeviceMemory(format_of("int8"), np.zeros(3, dtype=np.int8)).size
        3
        """
        return int(self.array.size)

    def section(self, start: int, size: int) -> Array | DeviceArray:
        """Return `size` scalars from `start` on, as copies take them.

        >>> DeviceMemory(format_of("int8"), np.arange(5, dtype=np.int8)).section(1, 2).tolist()
        [1, 2]
        """
        if not 0 <= start <= start + size <= self.size:  # a device would not report it
            raise LayoutError(f"scalars {start} to {start + size - 1} exceed device memory, which has {self.size}")
        if not isinstance(self.array, DeviceArray):
            return self.array[start : start + size]
        itemsize = self.format.itemsize
        return replace(self.array, start=self.array.start + start * itemsize, shape=(size,), strides=(itemsize,))

    def access_error(self) -> LayoutError:
        """Return the error for reading or writing this memory from the host.

        >>> print(DeviceMemory(format_of("int8"), np.zeros(3, dtype=np.int8)).access_error())
        device memory cannot be reached from the host; copy it to a host buffer first
        """
        return LayoutError("device memory cannot be reached from the host; copy it to a host buffer first")

    def reachable_array(self) -> Array:
        """Return the scalars as an array, for a kernel that runs on the host; raise outside of one."""
        if kernel_memory.get() is None or not isinstance(self.array, np.ndarray):
            raise self.access_error()
        return self.array

    def __getitem__(self, offset: Any) -> Any:
        return self.reachable_array()[offset]

    def __setitem__(self, offset: Any, value: Any) -> None:
        self.reachable_array()[offset] = value


class KernelMemory(Protocol):
    """What the machine that runs a kernel does with memory; device memory that is the host's own is in its reach.

    It is told of every access before it happens, and may raise to prevent it: `offsets` is the position of a scalar in
    `store`, or an array of positions, and `width` how many consecutive scalars one instruction accesses from each on.
    """

    def read(self, store: Store, offsets: object, width: int = 1) -> None:
        """Learn of a read."""
        ...

    def write(self, store: Store, offsets: object, width: int = 1) -> None:
        """Learn of a write."""
        ...

    def allocate_stack(self, space: str, count: int, element: ScalarFormat) -> Store:
        """Return memory of a block ("shared") or a thread ("local") for `count` scalars, without values."""
        ...

    def share_tensor(self, store: Store, layout: object, make: Callable[[], Tensor]) -> Tensor:
        """Return the one tensor that all threads of a block have over shared memory, made on the first call."""
        ...


kernel_memory: ContextVar[KernelMemory | None] = ContextVar("kernel_memory", default=None)
"""The memory of the kernel that runs, set by the machine that runs it; None outside of kernels."""


def as_array(storage: Storage, dtype: FormatLike | None = None) -> Array:
    """Return storage as a NumPy array that shares its memory; only a list of numbers is copied.

    >>> as_array(bytearray(4), "int16").tolist()
    [0, 0]
    """
    element = None if dtype is None else format_of(dtype).require_scalar("a tensor view")
    shared = _share_memory(storage)
    if shared is None:
        if not isinstance(storage, (list, tuple)):
            raise TypeError(
                f"storage must be an array, a buffer such as bytearray, an object with DLPack or a list of numbers,"
                f" got {type(storage).__name__} {storage!r}"
            )
        return np.array(storage) if element is None else np.array(fit_values(storage, element))
    if element is None or element.dtype == shared.dtype:
        return shared
    return _reinterpret(shared, element)


def _share_memory(storage: Any) -> Array | None:
    """Return an array over the memory of `storage`; None if it exports none."""
    if isinstance(storage, np.ndarray):
        return storage
    if isinstance(storage, (bytes, bytearray, memoryview, array.array)):
        return np.asarray(memoryview(storage))
    exported = getattr(storage, "array", None)  # our own arrays and buffers
    if isinstance(exported, np.ndarray):
        return exported
    if hasattr(storage, "__array_interface__"):
        return np.asarray(storage)
    if hasattr(storage, "__dlpack__"):
        return from_dlpack(storage)
    try:
        return np.asarray(memoryview(storage))
    except TypeError:
        return None


def _reinterpret(data: Array, element: ScalarFormat) -> Array:
    """Return the bytes of an array as scalars of another format."""
    if not data.flags.c_contiguous:
        raise LayoutError(f"storage must be contiguous to be read as {element.name}, got strides {data.strides}")
    flat = data.reshape(-1)
    if flat.nbytes % element.itemsize:
        raise LayoutError(
            f"{flat.nbytes} bytes of storage are not a multiple of {element.itemsize}, the size of {element.name}"
        )
    return flat.view(element.dtype)


def flat_scalars(data: Array) -> Array:
    """Return a contiguous array as a one-dimensional array of scalars.

    >>> flat_scalars(np.zeros((2, 3))).shape
    (6,)
    """
    if not data.flags.c_contiguous:
        raise LayoutError(
            f"storage under a layout must be contiguous, got shape {data.shape} with strides {data.strides}; pass"
            " np.ascontiguousarray(...), or no layout to keep the strides"
        )
    return data.reshape(-1)


def spanned_scalars(data: Array) -> tuple[Array, int, tuple[int, ...]]:
    """Return (scalars, start, strides): all scalars an array spans, where its first element is, and its strides.

    >>> spanned_scalars(np.arange(6)[::-2])[1:]
    (4, (-2,))
    """
    size = data.itemsize
    if any(stride % size for n, stride in zip(data.shape, data.strides, strict=True) if n > 1):
        raise LayoutError(f"strides {data.strides} are not multiples of the element size {size}; copy the array first")
    strides = tuple([stride // size if n > 1 else 0 for n, stride in zip(data.shape, data.strides, strict=True)])
    if data.size == 0:
        return data.reshape(-1), 0, strides
    low = sum((n - 1) * stride for n, stride in zip(data.shape, strides, strict=True) if stride < 0)
    high = sum((n - 1) * stride for n, stride in zip(data.shape, strides, strict=True) if stride > 0)
    corner = tuple([n - 1 if stride < 0 else 0 for n, stride in zip(data.shape, strides, strict=True)])
    scalars = strided_view(data[(*corner, None)], (high - low + 1,), (1,), data.flags.writeable)
    return scalars, -low, strides


def strided_view(first: Array, shape: Sequence[int], strides: Sequence[int], writeable: bool) -> Array:
    """Return a view of memory from the array `first` on, with a stride in elements along each dimension.

    >>> strided_view(np.arange(6)[1:2], (2, 2), (2, 1), False).tolist()
    [[1, 2], [3, 4]]
    """
    size = first.itemsize
    plain = first.view(f"u{size}")  # NumPy cannot stride over some formats of other libraries
    view = np.lib.stride_tricks.as_strided(plain, shape, [stride * size for stride in strides], writeable=writeable)
    return view.view(first.dtype)


ADDRESS = "addr"


def bind_layout(
    storage: Storage, layout: LayoutLike | HasShapeAndStride | None, dtype: FormatLike | None
) -> tuple[Store, Any, int]:
    """Return (store, layout, offset) of storage under a layout; without one, under its own shape and strides.

    The layout that is returned has integer offsets that start at 0.

    >>> bind_layout(bytearray(12), Layout((3, 4)) + 0, None)[1:]
    (Layout((3, 4), (1, 3)), 0)
    """
    if layout is None:
        data = as_array(storage, dtype)
        scalars, start, steps = spanned_scalars(data)
        store = Store.of(scalars)
        shape = tuple(map(int, data.shape))
        natural: Any = suffix_product(shape)
        # the strides of extents 1 are arbitrary in NumPy; row-major ones keep is_row_major true
        strides = tuple([d if n > 1 else m for n, d, m in zip(shape, steps, natural, strict=True)])
        return store.with_fields(origin=storage), make_layout(shape, strides), start
    if not isinstance(layout, LayoutLike):
        layout = _convert_layout(layout)
    if layout.axes:
        return _bind_named_axes(storage, layout, dtype)
    if getattr(layout, "replicas", ()):
        raise LayoutError(f"a tensor view needs a layout without replicas, got {layout}")
    store = Store.of(storage, dtype)
    if isinstance(layout, Layout) and layout.offset:
        return store, layout - layout.offset, int(layout.offset)
    return store, layout, 0


def _convert_layout(value: HasShapeAndStride) -> Layout:
    """Return the layout of an object with the attributes `shape` and `stride`, or methods that return them."""
    try:
        shape, stride = value.shape, value.stride
        return Layout(shape() if callable(shape) else shape, stride() if callable(stride) else stride)
    except AttributeError:
        raise TypeError(
            f"a tensor view needs a layout, got {type(value).__name__} {value!r}; create one with row_major(4, 8)"
        ) from None


def _bind_named_axes(storage: Storage, layout: LayoutLike, dtype: FormatLike | None) -> tuple[Store, Any, int]:
    """Return (store, layout, offset) of storage with the axes of a layout as dimensions.

    The axis `addr` is the last dimension; the others come before it in the order of `layout.axes`.
    """
    names = [*[name for name in layout.axes if name != ADDRESS], *[name for name in layout.axes if name == ADDRESS]]
    data = as_array(storage, dtype)
    if data.ndim != len(names):
        raise LayoutError(
            f"{layout} maps to the axes {', '.join(names)}, so storage needs {len(names)} dimensions in that order, got"
            f" shape {data.shape}"
        )
    _check_axis_extents(layout, names, data.shape)
    strides = dict(zip(names, [stride // data.itemsize for stride in data.strides], strict=True))
    store = Store.of(flat_scalars(data)).with_fields(origin=storage)
    flat = _flatten_axes(layout, strides)
    if isinstance(flat, Layout) and flat.offset:
        return store, flat - flat.offset, int(flat.offset)
    return store, flat, 0


def _check_axis_extents(layout: LayoutLike, names: list[str], shape: tuple[int, ...]) -> None:
    if layout.size == 0:
        return
    needed: Any = layout.cosize  # a Place
    for name, extent in zip(names, shape, strict=True):
        if needed[name] > extent:
            raise LayoutError(f"{layout} needs {needed[name]} offsets along axis {name}, but the storage has {extent}")


def _flatten_axes(layout: Any, strides: dict[str, int]) -> Any:
    """Return a layout over named axes as one over scalars, given the stride in scalars of each axis."""

    def flat(stride: Offset) -> int:
        return (
            sum(component(stride, name) * size for name, size in strides.items())
            if isinstance(stride, Place)
            else stride
        )

    if isinstance(layout, ComposedLayout):
        return ComposedLayout(_flatten_axes(layout.outer, strides), layout.inner)
    return make_layout(layout.shape, map_leaves(flat, layout.stride), flat(layout.offset), (), layout.guards)


def scalar_bounds(layout: Layout | ComposedLayout, offset: int, size: int) -> tuple[int, int]:
    """Return the lowest and the highest valid offset; wider bounds if those are also inside storage of that size.

    >>> scalar_bounds(Layout((4, 8), (8, 1)), 2, 100)
    (2, 33)
    """
    if product(layout.shape) == 0:
        return 0, -1
    if isinstance(layout, Layout):
        low, high = layout.bounds
        if not layout.guards or (offset + low >= 0 and offset + high < size):
            return int(offset + low), int(offset + high)
    elif isinstance(layout.outer, Swizzle) and isinstance(layout.inner, Layout):
        low, high = layout.inner.bounds
        high = round_up(int(high) + 1, layout.outer.size) - 1
        if low >= 0 and offset + high < size:
            return offset, offset + high
    low, high = 0, -1
    first = True
    for _, offsets, valid in chunks(layout):
        inside = offsets[valid] if is_array(valid) else offsets
        if inside.size:
            low = int(inside.min()) if first else min(low, int(inside.min()))
            high = int(inside.max()) if first else max(high, int(inside.max()))
            first = False
    return (0, -1) if first else (offset + low, offset + high)


# The pages of a tensor: storage on the host, owned or borrowed, or on a device; conversion, padding and slices.
