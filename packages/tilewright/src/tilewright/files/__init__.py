# SPDX-License-Identifier: Apache-2.0
"""Tensors in files, read lazily and written whole."""

from ..memory.mesh import Mesh, Topology
from .file_kinds import FileKind
from .inspection import Inspection, TensorFacts, inspect
from .safetensors import write_safetensors
from .sample_model import sample_model, write_sample_llama, write_sample_model
from .source_file import SourceFile
from .stored_tensor import StoredTensor
from .tensor_file import TensorFile, open_tensors
from .tensor_values import DecodedTile, SharedElement, StoredElement
from .tensorbin import Tensorbin, parse_tensorbin, read_tensorbin, write_tensorbin

__all__ = [
    "DecodedTile",
    "FileKind",
    "Inspection",
    "Mesh",
    "SharedElement",
    "SourceFile",
    "StoredElement",
    "StoredTensor",
    "TensorFacts",
    "TensorFile",
    "Tensorbin",
    "Topology",
    "inspect",
    "open_tensors",
    "parse_tensorbin",
    "read_tensorbin",
    "sample_model",
    "write_safetensors",
    "write_sample_llama",
    "write_sample_model",
    "write_tensorbin",
]
