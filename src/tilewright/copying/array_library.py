# SPDX-License-Identifier: Apache-2.0
"""What a repeated copy needs of the arrays of a library, in as few calls as possible: NumPy, torch and CuPy.

A signature is all that a plan depends on: equal signatures have equal placements, in memory of the same device. Arrays
of any other library go through `as_operand` at every call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from functools import cache, partial
from typing import Any, Protocol

import numpy as np

from ..formats import ScalarFormat
from .cuda_engine import torch_dtype
from .host_memory import aligned_empty

Signature = tuple[Hashable, ...]


class ArrayLibrary(Protocol):
    """The calls that describe and make the arrays of one library."""

    alignment: int  # of addresses that plans depend on: 1 if they depend on none

    def signature(self, array: Any) -> Signature:
        """Return what a plan depends on."""

    def address(self, array: Any) -> int:
        """Return the address of the first element."""

    def is_writeable(self, array: Any) -> bool:
        """Return whether the array may be written."""

    def allocator(self, array: Any, shape: tuple[int, ...], element: ScalarFormat) -> Callable[[], Any]:
        """Return a function that returns new, uninitialised arrays in the memory of `array`."""


class _NumpyLibrary:
    alignment = 1

    def signature(self, array: Any) -> Signature:
        return (array.shape, array.strides, array.dtype)

    def address(self, array: Any) -> int:
        address: int = array.__array_interface__["data"][0]
        return address

    def is_writeable(self, array: Any) -> bool:
        return bool(array.flags.writeable)

    def allocator(self, array: Any, shape: tuple[int, ...], element: ScalarFormat) -> Callable[[], Any]:
        return partial(aligned_empty, shape, element.dtype)


class _TorchLibrary:
    alignment = 16

    def signature(self, array: Any) -> Signature:
        return (array.shape, array.stride(), array.dtype, array.get_device())

    def address(self, array: Any) -> int:
        address: int = array.data_ptr()
        return address

    def is_writeable(self, array: Any) -> bool:
        return True

    def allocator(self, array: Any, shape: tuple[int, ...], element: ScalarFormat) -> Callable[[], Any]:
        return partial(sys.modules["torch"].empty, shape, dtype=torch_dtype(element), device=array.device)


class _CupyLibrary:
    alignment = 16

    def signature(self, array: Any) -> Signature:
        # new arrays are on the current device, which may be another one
        return (array.shape, array.strides, array.dtype, array.device.id, sys.modules["cupy"].cuda.runtime.getDevice())

    def address(self, array: Any) -> int:
        address: int = array.data.ptr
        return address

    def is_writeable(self, array: Any) -> bool:
        return True

    def allocator(self, array: Any, shape: tuple[int, ...], element: ScalarFormat) -> Callable[[], Any]:
        return partial(sys.modules["cupy"].empty, shape, dtype=element.dtype)


_numpy, _torch, _cupy = _NumpyLibrary(), _TorchLibrary(), _CupyLibrary()


@cache
def find_library(kind: type) -> ArrayLibrary | None:
    """Return the library of a type of arrays, or None if their copies are not prepared.

    >>> find_library(np.ndarray) is not None, find_library(list) is None
    (True, True)
    """
    if kind is np.ndarray:
        return _numpy
    library = kind.__module__.partition(".")[0]
    if library == "torch" and hasattr(kind, "data_ptr"):
        return _torch
    if library == "cupy" and hasattr(kind, "strides"):
        return _cupy
    return None
