# SPDX-License-Identifier: Apache-2.0
"""Tensors in files, read lazily and written whole."""

from .element_reading import ElementReading
from .inspection import Inspection, TensorFacts, inspect
from .mesh import Topology
from .safetensors_writer import write_safetensors
from .sample_model import sample_model, write_sample_model
from .stored_tensor import StoredTensor
from .tensor_file import TensorFile, open_tensors
from .tensorbin import Tensorbin, parse_tensorbin, read_tensorbin, write_tensorbin
from .tile_reading import TileReading

__all__ = [
    "ElementReading",
    "Inspection",
    "StoredTensor",
    "TensorFacts",
    "TensorFile",
    "Tensorbin",
    "TileReading",
    "Topology",
    "inspect",
    "open_tensors",
    "parse_tensorbin",
    "read_tensorbin",
    "sample_model",
    "write_safetensors",
    "write_sample_model",
    "write_tensorbin",
]
