# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries through DLPack, in and out, also in number formats that NumPy cannot exchange."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import LayoutError
from ..formats import ScalarFormat, scalar_format_of
from .host_memory import strided_range

Array = np.ndarray[Any, Any]
HOST_DEVICES = (1, 3)  # plain and pinned memory of the host
CUDA_DEVICES = (2, 13)  # plain and managed memory of a CUDA device
_KINDS = {0: "int", 1: "uint", 2: "float"}
_FORMAT_NAMES = {(4, 16): "bfloat16", (6, 8): "bool", (10, 8): "float8_e4m3", (12, 8): "float8_e5m2"}
# the DLPack type code of formats that NumPy cannot export, and integers of the same size that it can
_EXPORT_TYPES = {
    np.dtype(ml_dtypes.bfloat16): (4, np.uint16),
    np.dtype(ml_dtypes.float8_e4m3fn): (10, np.uint8),
    np.dtype(ml_dtypes.float8_e5m2): (12, np.uint8),
}


class CapsuleTensor(ctypes.Structure):
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


@dataclass(frozen=True, slots=True)
class CapsuleContents:
    """The array in a DLPack capsule: address, shape, strides in bytes, format, device; the capsule owns the memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    format: ScalarFormat
    device_type: int
    capsule: Any


def capsule_tensor(capsule: Any) -> CapsuleTensor:
    """Return the tensor struct in a capsule itself, not a copy of it.

    >>> import numpy as np
    >>> capsule_tensor(np.zeros((2, 3)).__dlpack__()).ndim
    2
    """
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return CapsuleTensor.from_address(pointer(capsule, b"dltensor"))


def read_capsule(capsule: Any) -> CapsuleContents:
    """Return the description of the array in a DLPack capsule.

    >>> import numpy as np
    >>> contents = read_capsule(np.arange(6, dtype=np.int16).reshape(2, 3).__dlpack__())
    >>> contents.shape, contents.strides, contents.format.name
    ((2, 3), (6, 2), 'int16')
    """
    tensor = capsule_tensor(capsule)
    name = _FORMAT_NAMES.get((tensor.code, tensor.bits), f"{_KINDS.get(tensor.code, '?')}{tensor.bits}")
    if tensor.lanes != 1 or "?" in name:
        raise LayoutError(f"unknown DLPack type: code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes")
    element = scalar_format_of(name)
    shape = tuple([int(tensor.shape[k]) for k in range(tensor.ndim)])
    if tensor.strides:
        steps = tuple([int(tensor.strides[k]) for k in range(tensor.ndim)])
    else:
        steps = tuple([prod(shape[k + 1 :]) for k in range(tensor.ndim)])
    strides = tuple([step * element.itemsize for step in steps])
    address = int(tensor.data or 0) + int(tensor.byte_offset)
    return CapsuleContents(address, shape, strides, element, int(tensor.device_type), capsule)


def from_dlpack(exporter: Any) -> Array:
    """Return a NumPy array that shares the memory of an object that exports DLPack.

    >>> values = np.arange(4)
    >>> bool(np.shares_memory(from_dlpack(values), values))
    True
    """
    try:
        array = np.from_dlpack(exporter)
    except (BufferError, RuntimeError, TypeError, ValueError) as problem:
        return _import_capsule(exporter, problem)
    if not array.flags.writeable and hasattr(exporter, "__array__"):
        # DLPack before version 1 cannot mark memory as writeable; the object's own export may
        own = np.asarray(exporter)
        if own.__array_interface__["data"][0] == array.__array_interface__["data"][0]:
            return own
    return array


def _import_capsule(exporter: Any, problem: Exception) -> Array:
    """Return an array that NumPy cannot import, if it is in host memory and its format is known."""
    try:
        contents = read_capsule(exporter.__dlpack__())
    except (BufferError, LayoutError, RuntimeError, TypeError, ValueError):
        contents = None
    if contents is None or contents.device_type not in HOST_DEVICES:
        raise LayoutError(
            f"cannot share the memory of {type(exporter).__name__} through DLPack: {problem}; copy device memory to the"
            " host first"
        ) from None
    shape, strides, size = contents.shape, contents.strides, contents.format.itemsize
    if 0 in shape:
        return np.empty(shape, dtype=contents.format.dtype)
    low, high = strided_range(shape, strides, size)
    memory: Any = (ctypes.c_uint8 * (high - low)).from_address(contents.address + low)
    memory.owner = contents.capsule  # an unused capsule frees the memory when it is deleted
    scalars: Array = np.frombuffer(memory, dtype=f"u{size}")
    return np.lib.stride_tricks.as_strided(scalars[-low // size :], shape, strides).view(contents.format.dtype)


def as_host_array(values: Any) -> Array:
    """Return `values` (an array of any library, or nested sequences) as a NumPy array, sharing memory if possible.

    Tensors of torch are detached from their graph and copied from their device.

    >>> as_host_array([[1, 2]]).shape
    (1, 2)
    """
    if isinstance(values, np.ndarray):
        return values
    for method in ("detach", "cpu"):
        values = getattr(values, method)() if hasattr(values, method) else values
    return from_dlpack(values) if hasattr(values, "__dlpack__") else np.asarray(values)


def export_dlpack(array: Array, **options: Any) -> Any:
    """Return an array as a DLPack capsule, also in formats that NumPy cannot export.

    `options` are those of `__dlpack__`.

    >>> class Exporter:
    ...     def __dlpack__(self, **options):
    ...         return export_dlpack(np.ones(2, ml_dtypes.bfloat16))
    ...
    ...     def __dlpack_device__(self):
    ...         return 1, 0
    >>> from_dlpack(Exporter()).dtype
    dtype(bfloat16)
    """
    source = array if array.flags.writeable else array.copy()  # not every capsule can mark memory as read-only
    if array.dtype not in _EXPORT_TYPES:
        return source.__dlpack__(**options)
    code, bits = _EXPORT_TYPES[array.dtype]
    capsule = source.view(bits).__dlpack__()  # exported as integers, then relabelled
    capsule_tensor(capsule).code = code
    return capsule
