# SPDX-License-Identifier: Apache-2.0
"""The Mojo dialect: TileTensor and its layouts under Mojo's own module names, and the built-ins its snippets use.

A snippet of Mojo's documentation runs with `var` and `comptime` removed, after `from tilewright.mojo import *`:

>>> from tilewright.mojo import *
>>> from tilewright.mojo.layout import TileTensor
>>> from tilewright.mojo.layout.tile_layout import row_major
>>> storage = InlineArray[Float32, 16](uninitialized=True)
>>> tensor = TileTensor(storage, row_major[4, 4]()).fill(0.0)
>>> tensor[1, 2] = 2.0
>>> print(tensor.tile[2, 2](0, 1))
[[0.0, 0.0],
[2.0, 0.0]]
"""

from .builtins import (
    Array,
    BFloat16,
    Bool,
    DType,
    Float16,
    Float32,
    Float64,
    InlineArray,
    Int,
    Int8,
    Int16,
    Int32,
    Int64,
    List,
    Scalar,
    Span,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)

__all__ = [
    "Array",
    "BFloat16",
    "Bool",
    "DType",
    "Float16",
    "Float32",
    "Float64",
    "InlineArray",
    "Int",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "List",
    "Scalar",
    "Span",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
]
