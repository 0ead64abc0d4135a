# SPDX-License-Identifier: Apache-2.0
"""DLPack: arrays over the memory of other libraries, also in number formats that NumPy itself lacks."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import LayoutError

Array = np.ndarray[Any, Any]
_HOST_DEVICES = (1, 3)  # plain and pinned memory of the host
# (type code, bits) of DLPack for the formats that NumPy cannot import
_FORMATS = {
    (4, 16): ml_dtypes.bfloat16,
    (10, 8): ml_dtypes.float8_e4m3fn,
    (12, 8): ml_dtypes.float8_e5m2,
}


class _Tensor(ctypes.Structure):
    """`DLTensor` of the DLPack standard."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


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
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    try:
        capsule = exporter.__dlpack__()
        tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    except (BufferError, RuntimeError, TypeError, ValueError):
        tensor = None
    dtype = None if tensor is None or tensor.lanes != 1 else _FORMATS.get((tensor.code, tensor.bits))
    if tensor is None or dtype is None or tensor.device_type not in _HOST_DEVICES:
        raise LayoutError(
            f"cannot share the memory of {type(exporter).__name__} through DLPack: {problem}; memory of a device must"
            " be copied to the host first"
        ) from None
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    size = np.dtype(dtype).itemsize
    if tensor.strides:
        steps = tuple(tensor.strides[k] for k in range(tensor.ndim))
    else:
        steps = tuple(prod(shape[k + 1 :]) for k in range(tensor.ndim))
    if 0 in shape:
        return np.empty(shape, dtype=dtype)
    low = sum((n - 1) * step for n, step in zip(shape, steps, strict=True) if step < 0)
    high = sum((n - 1) * step for n, step in zip(shape, steps, strict=True) if step > 0)
    address = tensor.data + tensor.byte_offset + low * size
    memory = (ctypes.c_uint8 * ((high - low + 1) * size)).from_address(address)
    memory.owner = capsule  # an unused capsule frees the memory when it goes
    scalars: Array = np.frombuffer(memory, dtype=f"u{size}")
    return np.lib.stride_tricks.as_strided(scalars[-low:], shape, [step * size for step in steps]).view(dtype)
