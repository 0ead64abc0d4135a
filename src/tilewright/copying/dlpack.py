# SPDX-License-Identifier: Apache-2.0
"""DLPack: arrays over the memory of other libraries, also in number formats that NumPy itself lacks."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..errors import LayoutError
from .exchange import HOST_DEVICES, capsule_contents

Array = np.ndarray[Any, Any]


def from_dlpack(exporter: Any) -> Array:
    """Return an array that shares the memory of an object with DLPack.

    >>> values = np.arange(4)
    >>> bool(np.shares_memory(from_dlpack(values), values))
    True
    """
    try:
        found = np.from_dlpack(exporter)
    except (BufferError, RuntimeError, TypeError, ValueError) as problem:
        return _imported(exporter, problem)
    if not found.flags.writeable and hasattr(exporter, "__array__"):
        # DLPack before version 1 cannot say that memory may be written; the object's own export may
        own = np.asarray(exporter)
        if own.__array_interface__["data"][0] == found.__array_interface__["data"][0]:
            return own
    return found


def _imported(exporter: Any, problem: Exception) -> Array:
    """Return the array that NumPy refused, if it is host memory in a format that we know."""
    try:
        found = capsule_contents(exporter.__dlpack__())
    except (BufferError, LayoutError, RuntimeError, TypeError, ValueError):
        found = None
    if found is None or found.device_type not in HOST_DEVICES:
        raise LayoutError(
            f"cannot share the memory of {type(exporter).__name__} through DLPack: {problem}; memory of a device must"
            " be copied to the host first"
        ) from None
    shape, strides, size = found.shape, found.strides, found.format.itemsize
    if 0 in shape:
        return np.empty(shape, dtype=found.format.dtype)
    low = sum([(n - 1) * step for n, step in zip(shape, strides, strict=True) if step < 0])
    high = sum([(n - 1) * step for n, step in zip(shape, strides, strict=True) if step > 0])
    memory: Any = (ctypes.c_uint8 * (high - low + size)).from_address(found.address + low)
    memory.owner = found.capsule  # an unused capsule frees the memory when it goes
    scalars: Array = np.frombuffer(memory, dtype=f"u{size}")
    return np.lib.stride_tricks.as_strided(scalars[-low // size :], shape, strides).view(found.format.dtype)
