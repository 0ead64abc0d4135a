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
from typing import TYPE_CHECKING, Any

from .builtins import (
    AnyType,
    Bool,
    Copyable,
    DevicePassable,
    ImmutAnyOrigin,
    ImplicitlyCopyable,
    ImplicitlyDestructible,
    IndexList,
    Int,
    Movable,
    MutAnyOrigin,
    Origin,
    RegisterPassable,
    String,
    TrivialRegisterPassable,
    Writable,
    align_of,
    simd_width_of,
    size_of,
)
from .collections import List, Optional
from .memory import Array, InlineArray, Span, UnsafePointer
from .simd import (
    SIMD,
    BFloat16,
    DType,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Scalar,
    UInt,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)

if TYPE_CHECKING:
    from .importing import imports, install, uninstall
    from .running import run

_LATE = {"imports": "importing", "install": "importing", "uninstall": "importing", "run": "running"}


def __getattr__(name: str) -> Any:
    """Return what runs Mojo source, or a name of `tilewright.mojo.layout`; both are loaded on first use."""
    if name in _LATE:
        return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
    if name[:1].isalpha() and name != "layout":
        package = import_module(f"{__name__}.layout")
        if name in package.__all__:
            return getattr(package, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; Mojo's packages are layout, std and max")


__all__ = [
    "SIMD",
    "AnyType",
    "Array",
    "BFloat16",
    "Bool",
    "Copyable",
    "DType",
    "DevicePassable",
    "Float16",
    "Float32",
    "Float64",
    "ImmutAnyOrigin",
    "ImplicitlyCopyable",
    "ImplicitlyDestructible",
    "IndexList",
    "InlineArray",
    "Int",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "List",
    "Movable",
    "MutAnyOrigin",
    "Optional",
    "Origin",
    "RegisterPassable",
    "Scalar",
    "Span",
    "String",
    "TrivialRegisterPassable",
    "UInt",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UnsafePointer",
    "Writable",
    "align_of",
    "imports",
    "install",
    "run",
    "simd_width_of",
    "size_of",
    "uninstall",
]
