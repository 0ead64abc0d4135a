# SPDX-License-Identifier: Apache-2.0
"""Text of other systems, as objects of the library: what ttnn prints, and the layouts in the IR of tt-mlir."""

from .affine_map import AffineMap, parse_affine_map
from .any_text import NOTATIONS, WRITABLE, ParsedText, parse, write
from .cute_texts import CuteText, parse_cute, write_cute
from .index_maps import IndexMap, Term
from .mlir_attributes import MetalLayout, MlirNdLayout, ShardStrides, parse_mlir_attribute
from .mlir_file import LayoutUse, find_layouts
from .mlir_from_spec import mlir_layout_of, mlir_tensor_type
from .mlir_layouts import MlirLayout, parse_mlir_layout
from .mlir_maps import StridedMemref, parse_index_expressions, parse_strided_memref
from .mlir_rule import LayoutVerdict, check_layout, expected_memref
from .mlir_types import Memref, TensorType, parse_tensor_type
from .mosaic import MosaicTiling, parse_mosaic
from .onednn import OnednnTag, parse_onednn, write_onednn
from .triton_encodings import linear_of_encoding, memory_layout_of_encoding
from .triton_texts import TritonEncoding, TritonType, parse_encoding, parse_triton_type
from .ttnn_texts import (
    TtnnText,
    find_ttnn_values,
    parse_core_ranges,
    parse_dtype,
    parse_memory_config,
    parse_shape,
    parse_tensor_spec,
    parse_ttnn,
)
from .tvm import parse_index_map, write_index_map
from .xla import XlaShape, parse_xla

__all__ = [
    "NOTATIONS",
    "WRITABLE",
    "AffineMap",
    "CuteText",
    "IndexMap",
    "LayoutUse",
    "LayoutVerdict",
    "Memref",
    "MetalLayout",
    "MlirLayout",
    "MlirNdLayout",
    "MosaicTiling",
    "OnednnTag",
    "ParsedText",
    "ShardStrides",
    "StridedMemref",
    "TensorType",
    "Term",
    "TritonEncoding",
    "TritonType",
    "TtnnText",
    "XlaShape",
    "check_layout",
    "expected_memref",
    "find_layouts",
    "find_ttnn_values",
    "linear_of_encoding",
    "memory_layout_of_encoding",
    "mlir_layout_of",
    "mlir_tensor_type",
    "parse",
    "parse_affine_map",
    "parse_core_ranges",
    "parse_cute",
    "parse_dtype",
    "parse_encoding",
    "parse_index_expressions",
    "parse_index_map",
    "parse_memory_config",
    "parse_mlir_attribute",
    "parse_mlir_layout",
    "parse_mosaic",
    "parse_onednn",
    "parse_shape",
    "parse_strided_memref",
    "parse_tensor_spec",
    "parse_tensor_type",
    "parse_triton_type",
    "parse_ttnn",
    "parse_xla",
    "write",
    "write_cute",
    "write_index_map",
    "write_onednn",
]
