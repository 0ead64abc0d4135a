# SPDX-License-Identifier: Apache-2.0
"""Texts of other systems as objects of the library, such as values that ttnn prints and layouts in tt-mlir's IR."""

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from ..ttnn.errors import ErrorReport, ExplainedError, explain_error, find_errors
    from ..ttnn.text import (
        TtnnText,
        find_ttnn_values,
        parse_core_ranges,
        parse_dtype,
        parse_memory_config,
        parse_shape,
        parse_tensor_spec,
        parse_ttnn,
    )
    from .any_text import WRITABLE, ParsedText, writable_notations, write
    from .cute_texts import CuteText, parse_cute, write_cute
    from .ir_file import LayoutUse, MetalLayout, MlirNdLayout, ShardStrides, find_layouts, parse_mlir_attribute
    from .kernel_arguments import KernelArguments, parse_kernel_arguments
    from .maps import (
        AffineMap,
        IndexMap,
        StridedMemref,
        Term,
        parse_affine_map,
        parse_index_expressions,
        parse_index_map,
        parse_strided_memref,
        write_index_map,
    )
    from .parsing import NOTATIONS, Notation, notation_names, parse
    from .shardings import Cut, DeviceSharding, parse_sharding
    from .tilings import MosaicTiling, OnednnTag, XlaShape, parse_mosaic, parse_onednn, parse_xla, write_onednn
    from .triton import (
        TritonEncoding,
        TritonType,
        linear_of_encoding,
        memory_layout_of_encoding,
        parse_encoding,
        parse_triton_type,
    )
    from .ttmlir import (
        LayoutVerdict,
        Memref,
        MlirLayout,
        TensorType,
        check_layout,
        expected_memref,
        mlir_layout_of,
        mlir_tensor_type,
        parse_mlir_layout,
        parse_tensor_type,
    )

_NAMES = {
    "any_text": ("WRITABLE", "ParsedText", "writable_notations", "write"),
    "parsing": ("NOTATIONS", "Notation", "notation_names", "parse"),
    "cute_texts": ("CuteText", "parse_cute", "write_cute"),
    "ir_file": ("LayoutUse", "MetalLayout", "MlirNdLayout", "ShardStrides", "find_layouts", "parse_mlir_attribute"),
    "kernel_arguments": ("KernelArguments", "parse_kernel_arguments"),
    "maps": (
        "AffineMap", "IndexMap", "StridedMemref", "Term", "parse_affine_map", "parse_index_expressions",
        "parse_index_map", "parse_strided_memref", "write_index_map",
    ),
    "shardings": ("Cut", "DeviceSharding", "parse_sharding"),
    "tilings": ("MosaicTiling", "OnednnTag", "XlaShape", "parse_mosaic", "parse_onednn", "parse_xla", "write_onednn"),
    "triton": (
        "TritonEncoding", "TritonType", "linear_of_encoding", "memory_layout_of_encoding", "parse_encoding",
        "parse_triton_type",
    ),
    "ttmlir": (
        "LayoutVerdict", "Memref", "MlirLayout", "TensorType", "check_layout", "expected_memref", "mlir_layout_of",
        "mlir_tensor_type", "parse_mlir_layout", "parse_tensor_type",
    ),
    ".ttnn.errors": ("ErrorReport", "ExplainedError", "explain_error", "find_errors"),
    ".ttnn.text": (
        "TtnnText", "find_ttnn_values", "parse_core_ranges", "parse_dtype", "parse_memory_config", "parse_shape",
        "parse_tensor_spec", "parse_ttnn",
    ),
}  # fmt: skip
if not TYPE_CHECKING:  # a type checker knows the names from above, and that there are no others
    __getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = [
    "NOTATIONS", "WRITABLE", "AffineMap", "Cut", "CuteText", "DeviceSharding", "ErrorReport", "ExplainedError",
    "IndexMap", "KernelArguments", "LayoutUse", "LayoutVerdict", "Memref", "MetalLayout", "MlirLayout", "MlirNdLayout",
    "MosaicTiling", "Notation", "OnednnTag", "ParsedText", "ShardStrides", "StridedMemref", "TensorType", "Term",
    "TritonEncoding", "TritonType", "TtnnText", "XlaShape", "check_layout", "expected_memref", "explain_error",
    "find_errors", "find_layouts", "find_ttnn_values", "linear_of_encoding", "memory_layout_of_encoding",
    "mlir_layout_of", "mlir_tensor_type", "notation_names", "parse", "parse_affine_map", "parse_core_ranges",
    "parse_cute", "parse_dtype", "parse_encoding", "parse_index_expressions", "parse_index_map",
    "parse_kernel_arguments", "parse_memory_config", "parse_mlir_attribute", "parse_mlir_layout", "parse_mosaic",
    "parse_onednn", "parse_shape", "parse_sharding", "parse_strided_memref", "parse_tensor_spec", "parse_tensor_type",
    "parse_triton_type", "parse_ttnn", "parse_xla", "writable_notations", "write", "write_cute", "write_index_map",
    "write_onednn",
]  # fmt: skip
