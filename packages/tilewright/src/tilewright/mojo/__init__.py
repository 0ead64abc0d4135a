# SPDX-License-Identifier: Apache-2.0
"""The Mojo dialect: Mojo source runs with `run(text)`, and its vocabulary is a package of Python.

Python has no keywords in brackets: there they go to the parentheses. `install()` makes Mojo's own module names known:

>>> from tilewright.mojo import *
>>> install()
>>> from layout import TileTensor
>>> from layout.tile_layout import row_major
>>> storage = InlineArray[Float32, 16](uninitialized=True)
>>> tensor = TileTensor(storage, row_major[4, 4]()).fill(0.0)
>>> tensor[1, 2] = 2.0
>>> print(tensor.tile[2, 2](0, 1))
[[0.0, 0.0],
[2.0, 0.0]]
>>> uninstall()
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .._lazy import companion_name
from .brackets import MojoValue, ParametrizedMeta, TypeBrackets, brackets
from .builtins import (
    AnyType,
    Bool,
    Copyable,
    DevicePassable,
    ImmutAnyOrigin,
    ImplicitlyCopyable,
    ImplicitlyDestructible,
    Index,
    IndexList,
    Int,
    MemoryType,
    Movable,
    MutAnyOrigin,
    Origin,
    RegisterPassable,
    TrivialRegisterPassable,
    Writable,
    align_of,
    format_value,
    simd_width_of,
    size_of,
)
from .memory import (
    AddressSpace,
    Array,
    InlineArray,
    MemoryArray,
    Pointer,
    Span,
    UnsafePointer,
    alloc,
    allocate_on_stack,
    tensor_on_stack,
)
from .scalar_memory import Cells
from .simd import (
    SIMD,
    BFloat16,
    DType,
    Error,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Scalar,
    SIMDType,
    UInt,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    map_numbers,
    operand_of,
)

_COMPANION = ("List", "Optional", "String", "imports", "install", "run", "uninstall")
"""Names of the companion, which are imported on first use."""


def __getattr__(name: str) -> Any:
    if name in (*_COMPANION, "std", "max"):
        return companion_name(f"{__name__}.{name}", "tilewright_mojo", "mojo")
    if name[:1].isalpha() and name != "layout":
        package = import_module(f"{__name__}.layout")
        if hasattr(package, name):
            return getattr(package, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; Mojo's packages are layout, std and max")


__all__ = [
    "SIMD", "AddressSpace", "AnyType", "Array", "BFloat16", "Bool", "Copyable", "DType", "DevicePassable", "Error",
    "Float16", "Float32", "Float64", "ImmutAnyOrigin", "ImplicitlyCopyable", "ImplicitlyDestructible", "Index",
    "IndexList", "InlineArray", "Int", "Int8", "Int16", "Int32", "Int64", "Movable", "MutAnyOrigin", "Origin",
    "Pointer", "RegisterPassable", "SIMDType", "Scalar", "Span", "TrivialRegisterPassable", "UInt", "UInt8", "UInt16",
    "UInt32", "UInt64", "UnsafePointer", "Writable", "align_of", "alloc", "brackets", "simd_width_of", "size_of",
]  # fmt: skip
if find_spec("tilewright_mojo") is not None:  # which `import *` brings as well
    __all__.extend(_COMPANION)
