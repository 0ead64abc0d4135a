# SPDX-License-Identifier: Apache-2.0
"""Arrays to the bytes of a tensor's pages, back to back, and back: how a tensor lies on the host."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ..copying import Placement, execute, plan_copy
from ..copying.dlpack import as_host_array
from ..copying.host_memory import aligned_empty, placement_of
from ..errors import FormatError, LayoutError
from ..formats import BlockFormat, ScalarFormat, format_of
from .spec import TensorSpec

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"


def host_placement(spec: TensorSpec, fill: Any = 0) -> Placement:
    """Return where the elements of a tensor lie in the bytes of its pages.

    >>> host_placement(TensorSpec((60, 90), "bfloat8_b")).nbytes
    6528
    """
    return Placement(spec.stored, spec.dtype, fill, spec.page_elements if isinstance(spec.dtype, BlockFormat) else 0)


def to_bytes(array: Any, spec: TensorSpec, pad_value: Any = 0, out: Bytes | None = None) -> Bytes:
    """Return the bytes of a tensor on the host: an array converted, padded and put in pages.

    >>> to_bytes(np.ones((30, 40), dtype=np.float32), TensorSpec((30, 40), "bfloat8_b")).nbytes
    2176
    """
    data = checked_bytes(np.empty(0, np.uint8) if spec.nbytes == 0 else out, spec, aligned_empty)
    if spec.nbytes:
        values = as_stored(array, spec)
        execute(plan_copy(placement_of(values), host_placement(spec, pad_value)), values, data)
    return data


def from_bytes(data: Any, spec: TensorSpec, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Return the logical array of a tensor from its bytes on the host; block formats become float32.

    >>> spec = TensorSpec((2, 3), "int16", "tile")
    >>> from_bytes(to_bytes(np.arange(6).reshape(2, 3), spec), spec).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    result = empty_result(spec, dtype)
    if spec.shape.logical_volume():
        source = checked_bytes(np.frombuffer(data, np.uint8) if isinstance(data, (bytes, bytearray)) else data, spec)
        view = as_stored(result, spec)
        execute(plan_copy(host_placement(spec), placement_of(view)), source, view)
    return result


def as_stored(array: Any, spec: TensorSpec) -> np.ndarray[Any, Any]:
    """Return a view of an array of the tensor's shape with the rank that it is stored with.

    >>> as_stored(np.zeros(7), TensorSpec((7,), layout="tile")).shape
    (1, 7)
    """
    values = as_host_array(array)
    if values.shape != spec.shape.logical:
        raise LayoutError(f"an array of shape {values.shape} is not the tensor of shape {list(spec.shape)}; reshape it")
    if any(step % values.itemsize for step in values.strides):
        values = np.ascontiguousarray(values)
    return values.reshape((1,) * (len(spec.padded_shape) - values.ndim) + values.shape)


def empty_result(spec: TensorSpec, dtype: Any) -> np.ndarray[Any, Any]:
    """Return an array for the values of a tensor, of dtype or of the tensor's own type.

    >>> empty_result(TensorSpec((3, 4), "bfloat8_b"), None).dtype
    dtype('float32')
    """
    own = "float32" if isinstance(spec.dtype, BlockFormat) else spec.dtype
    element = format_of(own if dtype is None else dtype)
    if not isinstance(element, ScalarFormat):
        raise FormatError(f"an array holds a scalar format, not {element}; read bytes instead")
    return aligned_empty(spec.shape.logical, element.dtype)


def checked_bytes(data: Any, spec: TensorSpec, make: Any = None) -> Bytes:
    """Return bytes that are as many as the tensor's pages, made where none are given.

    >>> checked_bytes(np.zeros(64, np.uint8), TensorSpec((4, 8), "int16")).size
    64
    """
    if data is None and make is not None:
        data = make(spec.nbytes, np.uint8)
    array = np.asarray(data)
    if not array.flags.c_contiguous or array.nbytes != spec.nbytes:
        raise LayoutError(
            f"the pages of {spec} are {spec.nbytes} contiguous bytes, got {array.nbytes} with strides {array.strides}"
        )
    return array.reshape(-1).view(np.uint8)
