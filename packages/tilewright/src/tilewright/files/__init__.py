# SPDX-License-Identifier: Apache-2.0
"""Tensors in files, read lazily and written whole."""

from .file_kinds import FileKind
from .inspection import Inspection, TensorFacts, inspect
from .mesh import Mesh, Topology
from .safetensors import write_safetensors
from .sample_model import sample_model, write_sample_llama, write_sample_model
from .source_file import FilePath, SourceFile, as_source_file
from .stored_tensor import StoredTensor
from .strict_json import parse_json, strict_decoder
from .tensor_file import TensorFile, open_tensors
from .tensor_values import DecodedTile, SharedElement, StoredElement
from .tensorbin import Tensorbin, parse_tensorbin, read_tensorbin, write_tensorbin

__all__ = [
    "DecodedTile",
    "FileKind",
    "FilePath",
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
    "as_source_file",
    "inspect",
    "open_tensors",
    "parse_json",
    "parse_tensorbin",
    "read_tensorbin",
    "sample_model",
    "strict_decoder",
    "write_safetensors",
    "write_sample_llama",
    "write_sample_model",
    "write_tensorbin",
]
