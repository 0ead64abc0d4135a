# SPDX-License-Identifier: Apache-2.0
"""The modules that `import` finds, and explanations of unknown names."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from tilewright.mojo import MojoValue

from ..exports import MODULES, is_module
from .members import HOME, Exports, is_exported
from .tokens import NOT_YET, suggest, words

PACKAGES = ("layout", "std", "max", "buffer")
OLD_NAMES = words(
    "algorithm benchmark bit builtin collections gpu hashlib iter itertools math memory os pathlib random "
    "reflection runtime subprocess sys tempfile testing time utils"
)
"""Packages of the standard library that older programs import without `std`."""
REFUSED = {
    "python": f"Python inside Mojo is refused: {NOT_YET}; write that part in Python around tilewright.mojo.run",
    "compiler": f"the graph compiler's package is refused: {NOT_YET}",
    "tensor": f"the graph compiler's package is refused: {NOT_YET}",
    "ffi": f"calling C is refused: {NOT_YET}",
}


def import_from_dialect(name: str) -> ModuleType | None:
    """Return the module of the dialect that Mojo calls by this name; None if it is not one of Mojo's packages.

    >>> import_from_dialect("layout").__name__
    'tilewright_mojo.layout'
    >>> import_from_dialect("shapes") is None
    True
    """
    parts = name.split(".")
    root = parts[1] if parts[0] == "std" and len(parts) > 1 else parts[0]
    if root in REFUSED:
        raise ImportError(f"module {name!r}: {REFUSED[root]}")
    if parts[0] in OLD_NAMES:
        candidates = [f"std.{name}", f"max.{name}"]
    elif parts[0] in PACKAGES or name in MODULES:
        candidates = [name]
        if parts[0] == "std":
            candidates.append(".".join(["max", *parts[1:]]))
        elif parts[0] == "max":
            candidates.append(".".join(["std", *parts[1:]]))
    else:
        return None
    for candidate in candidates:
        if is_module(candidate):
            return import_module(f"{HOME}.{candidate}")
    raise ImportError(f"module {name!r} is not part of tilewright; if Mojo has it, tilewright does not run it yet")


SEARCHED = (
    *("std.gpu", "std.gpu.host", "std.gpu.memory", "std.gpu.primitives.warp", "std.gpu.sync", "layout"),
    *("layout.tile_tensor", "layout.layout_tensor", "layout.swizzle", "std.math", "std.memory", "std.sys"),
    *("std.testing", "std.random", "std.collections", "std.utils", "std.algorithm", "std.bit", "std.time", "std.os"),
    *("std.atomic", "std.benchmark", "std.itertools"),
)
"""Modules whose names people use and forget to import."""


def find_module_of(name: str) -> str | None:
    """Return the module that has to be imported for a name; None if no usual one has it.

    >>> find_module_of("sqrt"), find_module_of("no_such_name")
    ('std.math', None)
    """
    return next((module for module in SEARCHED if name in exported_names(import_module(f"{HOME}.{module}"))), None)


def get_member(module: object, name: str, module_name: str) -> MojoValue:
    """Return a name that a module exports, or a module inside it.

    >>> get_member(import_from_dialect("layout"), "TileTensor", "layout").__name__
    'TileTensor'
    """
    if isinstance(module, Exports) and name in module.exported_names():
        return module[name]  # which is not an attribute of ours by that name
    if isinstance(module, ModuleType):
        inner = f"{module.__name__.removeprefix(HOME)[1:]}.{name}"
        if not hasattr(module, name) and is_module(inner):
            import_module(f"{HOME}.{inner}")
        if is_exported(module, name):
            return getattr(module, name)
    hint = suggest(name, exported_names(module)) or "; if Mojo has it, tilewright does not run it yet"
    raise ImportError(f"module {module_name!r} has no name {name!r} here{hint}")


def exported_names(module: Any) -> list[str]:
    """Return the names that `from module import *` brings from a module of the dialect, or from another program.

    >>> "TileTensor" in exported_names(import_from_dialect("layout"))
    True
    """
    if isinstance(module, Exports):
        return list(module.exported_names())
    return [name for name in module.__all__ if is_exported(module, name)]


OTHER_LANGUAGES = {"true": "True", "false": "False", "null": "None", "nil": "None", "nullptr": "None", "str": "String"}
"""Names of other languages, and what Mojo calls them."""

NUMBERS = words("Int UInt Float16 Float32 Float64 BFloat16 Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64")
"""Types that take numbers; those that are not called Float take no fractions."""


def explain_name(name: str, visible: Sequence[str]) -> str:
    """Return what an unknown name needs, or which of the visible ones is similar; nothing if neither is known.

    >>> explain_name("sqrt", [])
    "; write 'from std.math import sqrt' at the top"
    >>> explain_name("true", []), explain_name("cuont", ["count"])
    ('; Mojo writes True', '; did you mean count?')
    """
    if name in OTHER_LANGUAGES:
        return f"; Mojo writes {OTHER_LANGUAGES[name]}"
    module = find_module_of(name)
    return suggest(name, visible) if module is None else f"; write 'from {module} import {name}' at the top"


def explain_literal(value: object, wanted: str) -> str:
    """Return why a literal cannot be the value of a variable of the type `wanted`; nothing if it can.

    >>> explain_literal("three", "Int")
    "expected a value of type Int, got the text 'three'; change the type or the value"
    >>> explain_literal(1.5, "Int")
    'expected a value of type Int, got 1.5; Int(1.5) converts it'
    >>> explain_literal(3, "Float32")
    ''
    """
    if wanted in NUMBERS and isinstance(value, str):
        return f"expected a value of type {wanted}, got the text {value!r}; change the type or the value"
    is_fraction = isinstance(value, float) and "Float" not in wanted
    if (wanted in NUMBERS and is_fraction) or (wanted == "String" and isinstance(value, (int, float))):
        return f"expected a value of type {wanted}, got {value!r}; {wanted}({value!r}) converts it"
    return ""
