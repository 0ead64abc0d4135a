# SPDX-License-Identifier: Apache-2.0
"""The names that a Mojo program has without an import: types, functions, traits and origins."""

from __future__ import annotations

import operator
from functools import cmp_to_key, partial
from typing import Any

from tilewright.mojo import Error, Float64, Int, MojoValue, MutAnyOrigin, Origin, TypeBrackets, brackets, format_value

from . import types
from .errors import fail_assertion
from .exports import load_names
from .language.structs import Trait


def print_values(*values: Any, sep: str = " ", end: str = "\n", flush: bool = False, file: Any = None) -> None:
    """Print values as Mojo does.

    >>> print_values(1, (2.0, True), sep=", ")
    1, (2.0, True)
    """
    print(*[format_value(value) for value in values], sep=sep, end=end, flush=flush, file=file)


def origin_of(*_: Any) -> Origin:
    """Return the origin of a value: any, since Python keeps memory alive.

    >>> origin_of(3).mut
    True
    """
    return MutAnyOrigin


def swap(left: object, right: object) -> None:
    """Exchange two variables; the compiler does it, so that a call elsewhere is an error.

    >>> swap(1, 2)
    Traceback (most recent call last):
    TypeError: swap exchanges two variables; it cannot be passed as a value
    """
    raise TypeError("swap exchanges two variables; it cannot be passed as a value")


def atof(text: object) -> MojoValue:
    """Return the number that a text spells.

    >>> float(atof("1.5"))
    1.5
    """
    try:
        return Float64(float(str(text)))
    except ValueError:
        raise Error(f"String is not convertible to float: '{text}'") from None


@brackets
def sort(parameters: tuple[Any, ...], values: Any, cmp_fn: object = None, **__: Any) -> None:
    """Sort a list or a span in place: `sort(values)`, `sort(values, is_less)` or `sort[is_less](values)`.

    >>> from tilewright.mojo import List
    >>> sort(numbers := List(3, 1, 2))
    >>> print(numbers)
    [1, 2, 3]
    """
    is_less = next((entry for entry in (cmp_fn, *parameters) if callable(entry) and not isinstance(entry, type)), None)
    ordered = sorted(values, key=None if is_less is None else cmp_to_key(partial(_compare, is_less)))
    for k, value in enumerate(ordered):
        values[k] = value


def _compare(is_less: Any, left: Any, right: Any) -> int:
    return -1 if is_less(left, right) else int(bool(is_less(right, left)))


@brackets
def debug_assert(parameters: object, condition: object, *message: Any, **_: Any) -> None:
    """`debug_assert(condition, message)`; its parameters, which choose when it is checked, have no meaning here.

    >>> debug_assert["safe"](True, "never")
    """
    holds = condition() if callable(condition) else condition
    if not holds:
        fail_assertion(lambda: "".join(map(str, message)) or "assertion failed")


@brackets
def constrained(parameters: tuple[Any, ...], cond: object = True, **named: Any) -> None:
    """`constrained[condition, message]()`: an assertion at compile time.

    >>> constrained[True, "never"]()
    """
    condition, *message = (*parameters, *named.values()) if parameters else (cond, *named.values())
    if not condition:
        fail_assertion(lambda: "".join(map(str, message)) or "constraint failed")


Some = TypeBrackets(lambda trait: trait)
"""`Some[Trait]`: any type with a trait, in the type of an argument."""


def _trait(name: str, *methods: str) -> Trait:
    return Trait(name, lambda: (), lambda _: None, methods)


_TRAITS = {  # by a method that their types have
    "__abs__": "Absable",
    "__bool__": "Boolable ImplicitlyBoolable",
    "__divmod__": "DivModable",
    "__eq__": "Equatable EqualityComparable EqualityComparableCollectionElement",
    "__float__": "Floatable FloatableRaising",
    "__hash__": "Hashable KeyElement",
    "__index__": "Indexer",
    "__int__": "Intable IntableRaising ImplicitlyIntable",
    "__iter__": "Iterable IterableOwned",
    "__len__": "Sized SizedRaising UIntSized",
    "__lt__": "Comparable LessThanComparable",
    "__next__": "Iterator",
    "__pow__": "Powable",
    "__repr__": "Representable",
    "__round__": "Roundable",
    "__str__": "Stringable StringableRaising",
    "write": "Writer",
    "__class__": "CollectionElement Defaultable Deinitable ExplicitlyCopyable Identifiable StringableCollectionElement",
}

PRELUDE: dict[str, Any] = {
    **load_names(
        {
            "builtins": (
                "all any ascii chr divmod enumerate hash hex bin input iter len map next oct ord range reversed slice "
                "StopIteration zip"
            ),
            "tilewright.mojo.builtins": (
                "AnyType Bool Copyable DevicePassable ImplicitlyCopyable ImplicitlyDestructible Index IndexList Int "
                "Movable Origin RegisterPassable TrivialRegisterPassable Writable align_of alignof atol bit_width_of "
                "bitwidthof simd_width_of simdwidthof size_of sizeof ImmutAnyOrigin ImmutExternalOrigin ImmutOrigin "
                "ImmutUntrackedOrigin ImmutableAnyOrigin MutAnyOrigin MutExternalOrigin MutOrigin MutUntrackedOrigin "
                "MutableAnyOrigin StaticConstantOrigin"
            ),
            "tilewright.mojo.memory": "AddressSpace Array InlineArray Pointer Span UnsafePointer alloc",
            "tilewright.mojo.simd": (
                "BFloat16 Byte DType Error Float16 Float32 Float64 Int8 Int16 Int32 Int64 SIMD Scalar UInt UInt8 "
                "UInt16 UInt32 UInt64"
            ),
            "tilewright_mojo.collections": "Dict List Optional Set",
            "tilewright_mojo.language.structs": "Codepoint conforms_to",
            "tilewright_mojo.library.math": "abs max min pow round",
            "tilewright_mojo.types": "StaticTuple String materialize rebind rebind_var trait_downcast type_of",
        }
    ),
    **{name: _trait(name, method) for method, names in _TRAITS.items() for name in names.split()},
    "print": print_values,
    "repr": types.represent,
    "atof": atof,
    "index": operator.index,
    "sort": sort,
    "origin_of": origin_of,
    "__origin_of": origin_of,
    "__type_of": types.type_of,
    "swap": swap,
    "debug_assert": debug_assert,
    "constrained": constrained,
    "Some": Some,
    "NoneType": type(None),
    "Tuple": tuple,
    "StringLiteral": types.String,
    "StaticString": types.String,
    "StringSlice": types.String,
    "IntLiteral": Int,
    "SIMDLength": Int,
    "FloatLiteral": Float64,
}  # fmt: skip
"""What every program starts with, by name."""
