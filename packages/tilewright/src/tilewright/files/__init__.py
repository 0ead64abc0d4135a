# SPDX-License-Identifier: Apache-2.0
"""Tensors in files, read lazily and written whole."""

from ..memory import Mesh, Topology
from .array_file import create_array, map_file, open_array
from .inspection import Inspection, TensorFacts, inspect
from .manifest import (
    MANIFEST_NAME,
    MARKER_PREFIX,
    ByteRange,
    ConversionManifest,
    ManifestEntry,
    SourceEntry,
    open_converted_tensor,
    read_manifest,
)
from .npy import read_npy_layout
from .quantized import QuantizedTensor, RefusedTensor, decode_small_floats
from .remote_file import is_url, open_model_file
from .safetensors import (
    MAX_HEADER_BYTES,
    METADATA_KEY,
    SafetensorsEntry,
    encode_header,
    read_safetensors,
    sample_model,
    write_safetensors,
    write_sample_llama,
    write_sample_model,
)
from .source import (
    ByteArray,
    FilePath,
    SourceFile,
    absolute_name,
    as_source_file,
    find_checkpoint_folder,
    parse_array_name,
    read_json,
    resolve_inside,
    unique_file_names,
)
from .stored_tensor import (
    IMAGE_SUFFIX,
    INDEX_SUFFIX,
    BankImage,
    DevicePart,
    PagedBoxes,
    PartReading,
    StoredTensor,
    as_box,
    inverse_order,
)
from .tensor_file import (
    SUFFIXES,
    FileKind,
    TensorFile,
    find_caches_below,
    find_file_kind,
    open_tensors,
    select_names,
    store_arrays,
)
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
    dtype_code,
    encode_file_start,
    parse_tensorbin,
    read_tensorbin,
    read_tensorbin_tensor,
    write_tensorbin,
)

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
