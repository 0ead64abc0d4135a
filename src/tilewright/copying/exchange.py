# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules: where another library's memory is, in any of our formats."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from math import prod
from typing import Any

from ..errors import LayoutError
from ..formats import ScalarFormat, format_of

HOST_DEVICES = (1, 3)  # plain and pinned memory of the host
CUDA_DEVICES = (2, 13)  # plain and managed memory of a CUDA device
_KINDS = {0: "int", 1: "uint", 2: "float"}
_NAMED = {(4, 16): "bfloat16", (6, 8): "bool", (10, 8): "float8_e4m3", (12, 8): "float8_e5m2"}


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
class Contents:
    """What a capsule says: address, shape, strides in bytes, format, device; the capsule keeps the memory alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    format: ScalarFormat
    device_type: int
    capsule: Any


def tensor_in(capsule: Any) -> CapsuleTensor:
    """Return the tensor that a capsule holds, itself: what is changed in it is changed in the capsule.

    >>> import numpy as np
    >>> tensor_in(np.zeros((2, 3)).__dlpack__()).ndim
    2
    """
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return CapsuleTensor.from_address(pointer(capsule, b"dltensor"))


def capsule_contents(capsule: Any) -> Contents:
    """Return what a DLPack capsule says about its memory.

    >>> import numpy as np
    >>> contents = capsule_contents(np.arange(6, dtype=np.int16).reshape(2, 3).__dlpack__())
    >>> contents.shape, contents.strides, contents.format.name
    ((2, 3), (6, 2), 'int16')
    """
    tensor = tensor_in(capsule)
    name = _NAMED.get((tensor.code, tensor.bits), f"{_KINDS.get(tensor.code, '?')}{tensor.bits}")
    if tensor.lanes != 1 or "?" in name:
        raise LayoutError(f"DLPack type {tensor.code} of {tensor.bits} bits x {tensor.lanes} is not a known format")
    element = format_of(name)
    assert not element.has_blocks
    shape = tuple([int(tensor.shape[k]) for k in range(tensor.ndim)])
    if tensor.strides:
        steps = tuple([int(tensor.strides[k]) for k in range(tensor.ndim)])
    else:
        steps = tuple([prod(shape[k + 1 :]) for k in range(tensor.ndim)])
    strides = tuple([step * element.itemsize for step in steps])
    address = int(tensor.data or 0) + int(tensor.byte_offset)
    return Contents(address, shape, strides, element, int(tensor.device_type), capsule)
