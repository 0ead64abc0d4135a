# SPDX-License-Identifier: Apache-2.0
"""What may have been meant: for unknown names, and for literals of another type than the declared one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .modules import find_module_of
from .stream import suggest
from .tokens import words

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


def explain_literal(value: Any, wanted: str) -> str:
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
