# SPDX-License-Identifier: Apache-2.0
"""`store_arrays`: arrays in memory as the tensors of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..copying import as_host_array
from ..errors import FormatError
from ..formats import find_scalar_format
from .array_source import ArraySource
from .stored_tensor import StoredTensor
from .tensor_file import TensorFile


def store_arrays(arrays: Mapping[str, Any]) -> TensorFile:
    """Return arrays, also those of other libraries on the host, as if they had been read from a file.

    >>> import numpy as np
    >>> store_arrays({"w": np.ones((2, 3), np.float32)})["w"].read().tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    return TensorFile(Path("arrays"), "arrays", [_store(str(name), array) for name, array in arrays.items()])


def _store(name: str, value: Any) -> StoredTensor:
    if isinstance(value, StoredTensor):
        return value
    array = as_host_array(value)
    element = find_scalar_format(array)
    if element is None:
        raise FormatError(f"{name}: expected an array of numbers, got one of {array.dtype}")
    source = ArraySource(name, array.astype(array.dtype.newbyteorder("="), copy=False))
    return StoredTensor.dense(name, str(array.dtype), array.shape, element, source, 0, source.size)
