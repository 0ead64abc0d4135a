# SPDX-License-Identifier: Apache-2.0
"""`Store`: the memory under a tensor view, as one flat array of scalars."""

from __future__ import annotations

import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..copying.device_array import DeviceArray
from ..copying.dlpack import from_dlpack
from ..copying.host_memory import native_format
from ..errors import FormatError, LayoutError
from ..formats import ScalarFormat, format_of

Array = np.ndarray[Any, Any]


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

    @classmethod
    def of(cls, storage: Any, dtype: Any = None) -> Store:
        """Return the store of an array, a buffer, a list of numbers, or anything that exports its memory.

        >>> Store.of(bytearray(8), "float32").data.size, Store.of(bytes(8)).readonly
        (2, True)
        """
        device = getattr(storage, "device_memory", None)
        if device is not None:
            return cls(device, device.format, storage, False)
        data = flat_scalars(as_array(storage, dtype))
        return cls(data, native_format(data.dtype), storage, not data.flags.writeable)

    @property
    def size(self) -> int:
        """Return the number of scalars.

        >>> Store.of(bytearray(8)).size
        8
        """
        return int(self.data.size)

    @property
    def host(self) -> Array:
        """Return the scalars as an array; raise if only a device can access them.

        >>> Store.of(bytearray(2)).host.tolist()
        [0, 0]
        """
        if not isinstance(self.data, np.ndarray):
            raise self.data.access_error()
        return self.data

    def section(self, start: int, size: int) -> Any:
        """Return `size` scalars from `start` on, for a copy: an array of the host, or memory of a device.

        >>> Store.of([1, 2, 3]).section(1, 2).tolist()
        [2, 3]
        """
        return self.data[start : start + size] if self.is_on_host else self.data.section(start, size)

    @property
    def is_on_host(self) -> bool:
        """Return whether the host can access the scalars.

        >>> Store.of([1]).is_on_host
        True
        """
        return isinstance(self.data, np.ndarray)

    def address(self, place: int) -> int:
        """Return the byte address of the scalar at a place.

        >>> store = Store.of(bytearray(16), "float32")
        >>> store.address(1) - store.address(0)
        4
        """
        return int(self.host.ctypes.data) + place * self.format.itemsize

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
    array: Any  # of the device, or of the host in its place

    @property
    def size(self) -> int:
        """Return the number of scalars.

        >>> DeviceMemory(format_of("int8"), np.zeros(3, dtype=np.int8)).size
        3
        """
        return int(self.array.size)

    def section(self, start: int, size: int) -> Any:
        """Return `size` scalars from `start` on, as copies take them.

        >>> DeviceMemory(format_of("int8"), np.arange(5, dtype=np.int8)).section(1, 2).tolist()
        [1, 2]
        """
        if not isinstance(self.array, DeviceArray):
            return self.array[start : start + size]
        step = self.format.itemsize
        return replace(self.array, start=self.array.start + start * step, shape=(size,), strides=(step,))

    def access_error(self) -> LayoutError:
        """Return the error for reading or writing this memory from the host.

        >>> print(DeviceMemory(format_of("int8"), np.zeros(3, dtype=np.int8)).access_error())
        device memory cannot be reached from the host; copy it to a host buffer first
        """
        return LayoutError("device memory cannot be reached from the host; copy it to a host buffer first")

    def __getitem__(self, _: Any) -> Any:
        raise self.access_error()

    def __setitem__(self, _: Any, value: Any) -> None:
        raise self.access_error()


def as_array(storage: Any, dtype: Any = None) -> Array:
    """Return storage as a NumPy array that shares its memory; only a list of numbers is copied.

    >>> as_array(bytearray(4), "int16").tolist()
    [0, 0]
    """
    shared = _share_memory(storage)
    if shared is None:
        if not isinstance(storage, (list, tuple)):
            raise TypeError(
                f"storage must be an array, a buffer such as bytearray, an object with DLPack or a list of numbers,"
                f" got {type(storage).__name__} {storage!r}"
            )
        return np.array(storage, dtype=None if dtype is None else _scalar_format(dtype).dtype)
    if dtype is None or _scalar_format(dtype).dtype == shared.dtype:
        return shared
    return _reinterpret(shared, _scalar_format(dtype))


def _scalar_format(dtype: Any) -> ScalarFormat:
    """Return the format of a dtype; raise unless it is a scalar format."""
    element = format_of(dtype)
    if element.has_blocks:
        raise FormatError(f"a tensor view needs a scalar format, got {element.name}; unpack its blocks first")
    return element


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
    if any(step % size for n, step in zip(data.shape, data.strides, strict=True) if n > 1):
        raise LayoutError(f"strides {data.strides} are not multiples of the element size {size}; copy the array first")
    steps = tuple([step // size if n > 1 else 0 for n, step in zip(data.shape, data.strides, strict=True)])
    if data.size == 0:
        return data.reshape(-1), 0, steps
    low = sum((n - 1) * step for n, step in zip(data.shape, steps, strict=True) if step < 0)
    high = sum((n - 1) * step for n, step in zip(data.shape, steps, strict=True) if step > 0)
    corner = tuple([n - 1 if step < 0 else 0 for n, step in zip(data.shape, steps, strict=True)])
    scalars = strided_view(data[(*corner, None)], (high - low + 1,), (1,), data.flags.writeable)
    return scalars, -low, steps


def strided_view(first: Array, shape: Sequence[int], steps: Sequence[int], writeable: bool) -> Array:
    """Return a view of memory from the array `first` on, with a stride in elements along each dimension.

    >>> strided_view(np.arange(6)[1:2], (2, 2), (2, 1), False).tolist()
    [[1, 2], [3, 4]]
    """
    size = first.itemsize
    plain = first.view(f"u{size}")  # NumPy cannot stride over some formats of other libraries
    view = np.lib.stride_tricks.as_strided(plain, shape, [step * size for step in steps], writeable=writeable)
    return view.view(first.dtype)
