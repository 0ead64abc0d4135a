# SPDX-License-Identifier: Apache-2.0
"""`to_bytes` and `from_bytes`: arrays as the bytes of all pages of a tensor, as stored on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ..copying import Placement, execute, plan_copy
from ..copying.dlpack import as_host_array
from ..copying.host_memory import aligned_empty, placement_of
from ..errors import LayoutError
from ..formats import FormatLike, scalar_format_of
from .spec import TensorSpec

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"


def host_placement(spec: TensorSpec, fill: Any = 0) -> Placement:
    """Return the placement of the elements in the bytes of all pages; padding gets the value `fill`.

    >>> host_placement(TensorSpec((60, 90), "bfloat8_b")).nbytes
    6528
    """
    return Placement(spec.stored, spec.dtype, fill, spec.page_elements)


def to_bytes(array: Any, spec: TensorSpec, pad_value: Any = 0, out: Bytes | None = None) -> Bytes:
    """Return an array, converted and padded with `pad_value`, as the bytes of all pages of a tensor, in `out` if given.

    >>> to_bytes(np.ones((30, 40), dtype=np.float32), TensorSpec((30, 40), "bfloat8_b")).nbytes
    2176
    """
    data = validate_bytes(np.empty(0, np.uint8) if spec.nbytes == 0 else out, spec, aligned_empty)
    if spec.nbytes:
        values = as_stored_array(array, spec)
        execute(plan_copy(placement_of(values), host_placement(spec, pad_value)), values, data)
    return data


def from_bytes(data: Any, spec: TensorSpec, dtype: FormatLike | None = None) -> np.ndarray[Any, Any]:
    """Return the values of a tensor from the bytes of all its pages, as `dtype`; block formats become float32.

    >>> spec = TensorSpec((2, 3), "int16", "tile")
    >>> from_bytes(to_bytes(np.arange(6).reshape(2, 3), spec), spec).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    result = empty_result(spec, dtype)
    if spec.shape.logical_volume():
        source = validate_bytes(np.frombuffer(data, np.uint8) if isinstance(data, (bytes, bytearray)) else data, spec)
        view = as_stored_array(result, spec)
        execute(plan_copy(host_placement(spec), placement_of(view)), source, view)
    return result


def as_stored_array(array: Any, spec: TensorSpec) -> np.ndarray[Any, Any]:
    """Return a view of an array of the tensor's shape with the rank of its padded shape.

    >>> as_stored_array(np.zeros(7), TensorSpec((7,), page_layout="tile")).shape
    (1, 7)
    """
    values = as_host_array(array)
    if values.shape != spec.shape.logical:
        raise LayoutError(f"array has shape {values.shape}, tensor has shape {list(spec.shape)}: they must be equal")
    if any(step % values.itemsize for step in values.strides):
        values = np.ascontiguousarray(values)
    return values.reshape((1,) * (len(spec.padded_shape) - values.ndim) + values.shape)


def empty_result(spec: TensorSpec, dtype: FormatLike | None) -> np.ndarray[Any, Any]:
    """Return an uninitialised array for the values of a tensor, as `dtype` or in its own format.

    >>> empty_result(TensorSpec((3, 4), "bfloat8_b"), None).dtype
    dtype('float32')
    """
    element = spec.dtype.value_format if dtype is None else scalar_format_of(dtype)
    return aligned_empty(spec.shape.logical, element.dtype)


def validate_bytes(data: Any, spec: TensorSpec, allocate: Callable[[int, Any], Bytes] | None = None) -> Bytes:
    """Return data as bytes, which must have the size of all pages; None is replaced by new memory from `allocate`.

    >>> validate_bytes(np.zeros(64, np.uint8), TensorSpec((4, 8), "int16")).size
    64
    """
    if data is None and allocate is not None:
        data = allocate(spec.nbytes, np.uint8)
    array = np.asarray(data)
    if not array.flags.c_contiguous or array.nbytes != spec.nbytes:
        raise LayoutError(
            f"expected {spec.nbytes} contiguous bytes, the pages of {spec}, got {array.nbytes} with strides"
            f" {array.strides}"
        )
    return array.reshape(-1).view(np.uint8)
