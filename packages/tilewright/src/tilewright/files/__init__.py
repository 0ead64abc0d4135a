# SPDX-License-Identifier: Apache-2.0
"""Tensors in files, read lazily and written whole."""

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from ..memory import Mesh, Topology
    from .array_file import create_array, map_file, open_array
    from .inspection import Inspection, TensorFacts, inspect
    from .manifest import (
        MARKER_PREFIX,
        ByteRange,
        ConversionManifest,
        ManifestEntry,
        SourceEntry,
        open_converted_tensor,
        read_manifest,
    )
    from .npy import read_npy_layout
    from .quantized import PendingTensor, QuantizedTensor, RefusedTensor, decode_small_floats
    from .remote_file import open_model_file
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
        MANIFEST_NAME,
        ByteArray,
        FilePath,
        SourceFile,
        absolute_name,
        as_source_file,
        find_checkpoint_folder,
        is_url,
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

_NAMES = {
    ".memory": ("Mesh", "Topology"),
    "array_file": ("create_array", "map_file", "open_array"),
    "inspection": ("Inspection", "TensorFacts", "inspect"),
    "manifest": (
        "MARKER_PREFIX", "ByteRange", "ConversionManifest", "ManifestEntry", "SourceEntry",
        "open_converted_tensor", "read_manifest",
    ),
    "npy": ("read_npy_layout",),
    "quantized": ("PendingTensor", "QuantizedTensor", "RefusedTensor", "decode_small_floats"),
    "remote_file": ("open_model_file",),
    "safetensors": (
        "MAX_HEADER_BYTES", "METADATA_KEY", "SafetensorsEntry", "encode_header", "read_safetensors", "sample_model",
        "write_safetensors", "write_sample_llama", "write_sample_model",
    ),
    "source": (
        "MANIFEST_NAME", "is_url",
        "ByteArray", "FilePath", "SourceFile", "absolute_name", "as_source_file", "find_checkpoint_folder",
        "parse_array_name", "read_json", "resolve_inside", "unique_file_names",
    ),
    "stored_tensor": (
        "IMAGE_SUFFIX", "INDEX_SUFFIX", "BankImage", "DevicePart", "PagedBoxes", "PartReading", "StoredTensor",
        "as_box", "inverse_order",
    ),
    "tensor_file": (
        "SUFFIXES", "FileKind", "TensorFile", "find_caches_below", "find_file_kind", "open_tensors", "select_names",
        "store_arrays",
    ),
    "tensor_values": (
        "DecodedTile", "SharedElement", "StoredElement", "decode_step_sizes", "read_element", "read_step_sizes",
        "spec_on_chip",
    ),
    "tensorbin": (
        "Tensorbin", "dtype_code", "encode_file_start", "parse_tensorbin", "read_tensorbin", "read_tensorbin_tensor",
        "write_tensorbin",
    ),
}  # fmt: skip
if not TYPE_CHECKING:  # a type checker knows the names from above, and that there are no others
    __getattr__, __dir__ = lazy_names(__name__, _NAMES)

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
