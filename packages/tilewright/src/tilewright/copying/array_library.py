# SPDX-License-Identifier: Apache-2.0
"""What a repeated copy needs of the arrays of a library, in as few calls as possible: of NumPy, torch and CuPy.

A signature is all that a plan depends on: equal signatures have equal placements, in memory of the same device. Arrays
of any other library become one of NumPy or a `DeviceArray` at every call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..formats import ScalarFormat
from .cuda_engine import torch_dtype
from .device_array import DeviceArray
from .host_memory import address_of, aligned_empty

Signature = tuple[Hashable, ...]


class ArrayLibrary(Protocol):
    """The calls that describe and make the arrays of one library."""

    def signature(self, array: Any) -> Signature:
        """Return what a plan depends on."""

    def address(self, array: Any) -> int:
        """Return the address of the first element."""

    def is_writeable(self, array: Any) -> bool:
        """Return whether the array may be written."""

    def allocator(self, array: Any, shape: tuple[int, ...], element: ScalarFormat) -> Callable[[], Any]:
        """Return a function that returns new, uninitialised arrays in the memory of `array`."""


class _NumpyLibrary:
    def signature(self, array: Any) -> Signature:
        return (array.shape, array.strides, array.dtype)

    def address(self, array: Any) -> int:
        return address_of(array)

    def is_writeable(self, array: Any) -> bool:
        return bool(array.flags.writeable)

    def allocator(self, array: Any, shape: tuple[int, ...], element: ScalarFormat) -> Callable[[], Any]:
        return partial(aligned_empty, shape, element.dtype)


class _TorchLibrary:
    def signature(self, array: Any) -> Signature:
        return (array.shape, array.stride(), array.dtype, array.get_device())

    def address(self, array: Any) -> int:
        address: int = array.data_ptr()
        return address

    def is_writeable(self, array: Any) -> bool:
        return True

    def allocator(self, array: Any, shape: tuple[int, ...], element: ScalarFormat) -> Callable[[], Any]:
        empty = sys.modules["torch"].empty(0, dtype=torch_dtype(element), device=array.device)
        return partial(empty.new_empty, shape)  # which takes less time than torch.empty with a device


class _CupyLibrary:
    def __init__(self) -> None:
        self._current_device = sys.modules["cupy"].cuda.runtime.getDevice

    def signature(self, array: Any) -> Signature:
        # new arrays are on the current device, which may be another one
        return (array.shape, array.strides, array.dtype, array.data.device_id, self._current_device())

    def address(self, array: Any) -> int:
        address: int = array.data.ptr
        return address

    def is_writeable(self, array: Any) -> bool:
        return True

    def allocator(self, array: Any, shape: tuple[int, ...], element: ScalarFormat) -> Callable[[], Any]:
        return partial(sys.modules["cupy"].ndarray, shape, element.dtype)


class _DeviceLibrary:
    """Arrays of any library that shares them through DLPack, as device arrays."""

    def signature(self, array: Any) -> Signature:
        return (array.shape, array.strides, array.format, array.backend)

    def address(self, array: Any) -> int:
        address: int = array.memory + array.start
        return address

    def is_writeable(self, array: Any) -> bool:
        return bool(array.writeable)

    def allocator(self, array: Any, shape: tuple[int, ...], element: ScalarFormat) -> Callable[[], Any]:
        return partial(array.backend.empty, shape, element)


_numpy, _torch, _device = _NumpyLibrary(), _TorchLibrary(), _DeviceLibrary()


class _Libraries(dict[type[Any], "ArrayLibrary | None"]):
    """The library of each type of arrays, or None if it is another one; looked up once per type."""

    def __missing__(self, kind: type[Any]) -> ArrayLibrary | None:
        library: ArrayLibrary | None = None
        name = kind.__module__.partition(".")[0]
        if kind is np.ndarray:
            library = _numpy
        elif kind is DeviceArray:
            library = _device
        elif name == "torch" and hasattr(kind, "data_ptr"):
            library = _torch
        elif name == "cupy" and hasattr(kind, "strides"):
            library = _CupyLibrary()
        self[kind] = library
        return library


LIBRARIES = _Libraries()
