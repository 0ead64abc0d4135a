# SPDX-License-Identifier: Apache-2.0
"""Text of other systems, as objects of the library: what ttnn prints."""

from .ttnn_texts import (
    TtnnText,
    parse_core_ranges,
    parse_dtype,
    parse_memory_config,
    parse_shape,
    parse_tensor_spec,
    parse_ttnn,
)

__all__ = [
    "TtnnText",
    "parse_core_ranges",
    "parse_dtype",
    "parse_memory_config",
    "parse_shape",
    "parse_tensor_spec",
    "parse_ttnn",
]
