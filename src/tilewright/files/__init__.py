# SPDX-License-Identifier: Apache-2.0
"""Tensors in files, read lazily and written whole."""

from .mesh import Topology
from .stored_tensor import StoredTensor
from .tensor_file import TensorFile, open_tensors
from .tensorbin import Tensorbin, parse_tensorbin, read_tensorbin, write_tensorbin

__all__ = [
    "StoredTensor",
    "TensorFile",
    "Tensorbin",
    "Topology",
    "open_tensors",
    "parse_tensorbin",
    "read_tensorbin",
    "write_tensorbin",
]
