# SPDX-License-Identifier: Apache-2.0
"""Text of other systems, as objects of the library: what ttnn prints, and the layouts in the IR of tt-mlir."""

from .affine_map import AffineMap, parse_affine_map
from .mlir_attributes import MetalLayout, MlirNdLayout, ShardStrides, parse_mlir_attribute
from .mlir_file import LayoutUse, find_layouts
from .mlir_from_spec import mlir_layout_of, mlir_tensor_type
from .mlir_layouts import MlirLayout, parse_mlir_layout
from .mlir_rule import LayoutVerdict, check_layout, expected_memref
from .mlir_types import Memref, TensorType, parse_tensor_type
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

__all__ = [
    "AffineMap",
    "LayoutUse",
    "LayoutVerdict",
    "Memref",
    "MetalLayout",
    "MlirLayout",
    "MlirNdLayout",
    "ShardStrides",
    "TensorType",
    "TtnnText",
    "check_layout",
    "expected_memref",
    "find_layouts",
    "find_ttnn_values",
    "mlir_layout_of",
    "mlir_tensor_type",
    "parse_affine_map",
    "parse_core_ranges",
    "parse_dtype",
    "parse_memory_config",
    "parse_mlir_attribute",
    "parse_mlir_layout",
    "parse_shape",
    "parse_tensor_spec",
    "parse_tensor_type",
    "parse_ttnn",
]
