# SPDX-License-Identifier: Apache-2.0
"""Storage: whatever holds scalars in memory, as one flat array."""

from __future__ import annotations

import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..copying.dlpack import from_dlpack
from ..copying.host_memory import native_format
from ..errors import FormatError, LayoutError
from ..formats import ScalarFormat, format_of
from .spaces import AddressSpace

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """The memory under a tensor and all its views: flat scalars, their format, and who owns them.

    >>> Store.of([1, 2, 3]).data.tolist()
    [1, 2, 3]
    """

    data: Any
    format: ScalarFormat
    origin: Any
    readonly: bool
    address_space: AddressSpace = AddressSpace.GENERIC

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
        return cls(data, native_format(data), storage, not data.flags.writeable)

    @property
    def size(self) -> int:
        """Return how many scalars there are.

        >>> Store.of(bytearray(8)).size
        8
        """
        return int(self.data.size)

    @property
    def host(self) -> Array:
        """Return the scalars, if the host can reach them.

        >>> Store.of(bytearray(2)).host.tolist()
        [0, 0]
        """
        if not isinstance(self.data, np.ndarray):
            raise self.data.unreachable()
        return self.data

    def part(self, start: int, size: int) -> Any:
        """Return some of the scalars wherever they are, for a move: an array of the host, or memory of a device.

        >>> Store.of([1, 2, 3]).part(1, 2).tolist()
        [2, 3]
        """
        return self.data[start : start + size] if self.on_host else self.data.part(start, size)

    @property
    def on_host(self) -> bool:
        """Return whether the host can reach the scalars.

        >>> Store.of([1]).on_host
        True
        """
        return isinstance(self.data, np.ndarray)

    def changed(self, **fields: Any) -> Store:
        """Return the same memory with other labels.

        >>> Store.of([1]).changed(readonly=True).readonly
        True
        """
        return replace(self, **fields)


def as_array(storage: Any, dtype: Any = None) -> Array:
    """Return storage as a NumPy array that shares its memory; only a list of numbers is copied.

    >>> as_array(bytearray(4), "int16").tolist()
    [0, 0]
    """
    found = _shared(storage)
    if found is None:
        if not isinstance(storage, (list, tuple)):
            raise TypeError(
                f"cannot find memory in {type(storage).__name__} {storage!r}; give an array, a buffer such as"
                " bytearray, an object with DLPack, or a list of numbers"
            )
        wanted = None if dtype is None else _scalar(dtype).dtype
        return np.array(storage, dtype=wanted)
    if dtype is None or _scalar(dtype).dtype == found.dtype:
        return found
    return _reinterpreted(found, _scalar(dtype))


def _scalar(dtype: Any) -> ScalarFormat:
    element = format_of(dtype)
    if not isinstance(element, ScalarFormat):
        raise FormatError(f"a tensor view holds scalars, not {element.name}, whose elements share scales; unpack first")
    return element


def _shared(storage: Any) -> Array | None:
    """Return an array over the memory of storage, or None if it exports none."""
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


def _reinterpreted(data: Array, element: ScalarFormat) -> Array:
    """Return the bytes of an array as scalars of another format."""
    if not data.flags.c_contiguous:
        raise LayoutError(
            f"storage with strides {data.strides} cannot be read as {element.name}; it must be contiguous"
        )
    flat = data.reshape(-1)
    if flat.nbytes % element.itemsize:
        raise LayoutError(f"{flat.nbytes} bytes of storage are no whole number of {element.name} scalars")
    return flat.view(element.dtype)


def flat_scalars(data: Array) -> Array:
    """Return a contiguous array as one dimension of scalars.

    >>> flat_scalars(np.zeros((2, 3))).shape
    (6,)
    """
    if not data.flags.c_contiguous:
        raise LayoutError(
            f"storage of shape {data.shape} has strides {data.strides} and is no plain run of scalars; leave the layout"
            " out to keep the strides, or pass np.ascontiguousarray(...)"
        )
    return data.reshape(-1)


def spanned_scalars(data: Array) -> tuple[Array, int, tuple[int, ...]]:
    """Return all scalars between the first and the last element of an array, where it starts, and its strides.

    >>> spanned_scalars(np.arange(6)[::-2])[1:]
    (4, (-2,))
    """
    size = data.itemsize
    if any(step % size for n, step in zip(data.shape, data.strides, strict=True) if n > 1):
        raise LayoutError(
            f"strides {data.strides} are no whole number of elements of {size} bytes; copy the array first"
        )
    steps = tuple([step // size if n > 1 else 0 for n, step in zip(data.shape, data.strides, strict=True)])
    if data.size == 0:
        return data.reshape(-1), 0, steps
    low = sum((n - 1) * step for n, step in zip(data.shape, steps, strict=True) if step < 0)
    high = sum((n - 1) * step for n, step in zip(data.shape, steps, strict=True) if step > 0)
    corner = tuple([n - 1 if step < 0 else 0 for n, step in zip(data.shape, steps, strict=True)])
    scalars = strided(data[(*corner, None)], (high - low + 1,), (1,), data.flags.writeable)
    return scalars, -low, steps


def strided(first: Array, shape: Sequence[int], steps: Sequence[int], writeable: bool) -> Array:
    """Return a view of the memory from an element on, with a step of so many elements along each dimension.

    >>> strided(np.arange(6)[1:2], (2, 2), (2, 1), False).tolist()
    [[1, 2], [3, 4]]
    """
    size = first.itemsize
    plain = first.view(f"u{size}")  # NumPy cannot stride over some formats of other libraries
    view = np.lib.stride_tricks.as_strided(plain, shape, [step * size for step in steps], writeable=writeable)
    return view.view(first.dtype)
