# SPDX-License-Identifier: Apache-2.0
"""Tensors in files, read lazily and written whole."""

from ..memory import Mesh, Topology
from .array_file import create_array, map_file, open_array
from .array_name import absolute_name, parse_array_name
from .bank_image import IMAGE_SUFFIX, INDEX_SUFFIX, BankImage
from .conversion_manifest import (
    MANIFEST_NAME,
    MARKER_PREFIX,
    ByteRange,
    ConversionManifest,
    ManifestEntry,
    SourceEntry,
    open_converted_tensor,
    read_manifest,
)
from .file_kinds import SUFFIXES, FileKind
from .file_names import find_checkpoint_folder, resolve_inside, unique_file_names
from .inspection import Inspection, TensorFacts, inspect
from .npy import read_npy_layout
from .paged_boxes import PagedBoxes
from .part_reading import PartReading
from .quantized_checkpoint import RefusedTensor
from .quantized_tensor import QuantizedTensor, decode_small_floats
from .remote_file import is_url, open_model_file
from .safetensors import (
    MAX_HEADER_BYTES,
    METADATA_KEY,
    SafetensorsEntry,
    encode_header,
    read_safetensors,
    write_safetensors,
)
from .sample_model import sample_model, write_sample_llama, write_sample_model
from .source_file import ByteArray, FilePath, SourceFile, as_source_file, read_json
from .stored_arrays import store_arrays
from .stored_tensor import DevicePart, StoredTensor, as_box, inverse_order
from .tensor_file import TensorFile, find_caches_below, open_tensors, select_names
from .tensor_values import (
    DecodedTile,
    SharedElement,
    StoredElement,
    decode_step_sizes,
    read_element,
    read_step_sizes,
    spec_on_chip,
)
from .tensorbin import (
    Tensorbin,
    encode_file_start,
    parse_tensorbin,
    read_tensorbin,
    read_tensorbin_tensor,
    write_tensorbin,
)
from .tensorbin_header import dtype_code
from .tensorstore_array import TensorStoreArray, is_tensorstore

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
