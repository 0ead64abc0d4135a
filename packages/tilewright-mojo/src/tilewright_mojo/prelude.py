# SPDX-License-Identifier: Apache-2.0
"""The names that a Mojo program has without an import: types, functions, traits and origins."""

from __future__ import annotations

import builtins as python
import operator
from functools import cmp_to_key, partial
from typing import Any

from tilewright.mojo import Error, builtins, memory, simd
from tilewright.mojo.brackets import brackets

from . import collections, types
from .errors import fail_assertion
from .language.structs import Codepoint, Trait, conforms_to
from .library import math


def print_values(*values: Any, sep: str = " ", end: str = "\n", flush: bool = False, file: Any = None) -> None:
    """Print values as Mojo does.

    >>> print_values(1, (2.0, True), sep=", ")
    1, (2.0, True)
    """
    print(*[builtins.format_value(value) for value in values], sep=sep, end=end, flush=flush, file=file)


def origin_of(*_: Any) -> Any:
    """Return the origin of a value: any, since Python keeps memory alive.

    >>> origin_of(3).mut
    True
    """
    return builtins.MutAnyOrigin


def swap(left: object, right: object) -> None:
    """Exchange two variables; the compiler does it, so that a call elsewhere is an error.

    >>> swap(1, 2)
    Traceback (most recent call last):
    TypeError: swap exchanges two variables; it cannot be passed as a value
    """
    raise TypeError("swap exchanges two variables; it cannot be passed as a value")


def atof(text: object) -> Any:
    """Return the number that a text says.

    >>> float(atof("1.5"))
    1.5
    """
    try:
        return simd.Float64(float(str(text)))
    except ValueError:
        raise Error(f"String is not convertible to float: '{text}'") from None


@brackets
def sort(parameters: tuple[Any, ...], values: Any, cmp_fn: object = None, **__: Any) -> None:
    """Sort a list or a span in place: `sort(values)`, `sort(values, is_less)` or `sort[is_less](values)`.

    >>> sort(numbers := collections.List(3, 1, 2))
    >>> print(numbers)
    [1, 2, 3]
    """
    is_less = next((each for each in (cmp_fn, *parameters) if callable(each) and not isinstance(each, type)), None)
    ordered = sorted(values, key=None if is_less is None else cmp_to_key(partial(_compare, is_less)))
    for k, value in enumerate(ordered):
        values[k] = value


def _compare(is_less: Any, left: Any, right: Any) -> int:
    return -1 if is_less(left, right) else int(bool(is_less(right, left)))


class DebugAssert:
    """`debug_assert(condition, message)`; its parameters, which choose when it is checked, have no meaning here.

    >>> DebugAssert()["safe"](True, "never")
    """

    def __call__(self, condition: object, *message: Any, **_: Any) -> None:
        holds = condition() if callable(condition) else condition
        if not holds:
            fail_assertion(lambda: "".join(map(str, message)) or "assertion failed")

    def with_parameters(self, *_: Any, **__: Any) -> DebugAssert:
        """Return the function itself, whatever the parameters.

        >>> DebugAssert().with_parameters(assert_mode="safe")(True)
        """
        return self

    __getitem__ = with_parameters


class Constrained:
    """`constrained[condition, message]()`: an assertion at compile time.

    >>> Constrained()[True, "never"]()
    """

    def with_parameters(self, condition: object, *message: Any, **named: Any) -> Any:
        """Return a function that checks the condition.

        >>> Constrained().with_parameters(True)()
        """
        text = [*message, *named.values()]
        return lambda: None if condition else fail_assertion(lambda: "".join(map(str, text)) or "constraint failed")

    def __getitem__(self, parameters: Any) -> Any:
        return self.with_parameters(*(parameters if isinstance(parameters, tuple) else (parameters,)))


class Some:
    """`Some[Trait]`: any type with a trait, in the type of an argument.

    >>> Some()[int] is int
    True
    """

    def __getitem__(self, trait: Any) -> Any:
        return trait


def _trait(name: str, *methods: str) -> Trait:
    return Trait(name, lambda: (), lambda _: None, methods)


def _take(module: object, names: str) -> dict[str, Any]:
    return {name: getattr(module, name) for name in names.split() if hasattr(module, name)}


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
    **_take(python, "range enumerate zip divmod any all reversed iter next len hash map ord chr hex bin oct"),
    **_take(python, "ascii input slice StopIteration"),
    **_take(math, "abs min max pow round"),
    **{name: _trait(name, method) for method, names in _TRAITS.items() for name in names.split()},
    **_take(builtins, "AnyType Copyable DevicePassable ImplicitlyCopyable ImplicitlyDestructible Movable Writable"),
    **_take(builtins, "RegisterPassable TrivialRegisterPassable UnknownDestructibility"),
    **_take(simd, "DType SIMD Scalar Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 UInt Byte"),
    **_take(simd, "Float16 BFloat16 Float32 Float64"),
    **_take(builtins, "size_of align_of bit_width_of simd_width_of sizeof alignof simdwidthof bitwidthof"),
    **_take(builtins, "IndexList Index"),
    **_take(collections, "Dict List Optional Set"),
    **_take(memory, "Array InlineArray Span AddressSpace Pointer UnsafePointer alloc"),
    **_take(builtins, "Int Bool Origin"),
    **_take(types, "StaticTuple String type_of rebind rebind_var trait_downcast materialize"),
    **{name: value for name, value in vars(builtins).items() if isinstance(value, builtins.Origin)},
    "print": print_values,
    "repr": types.represent,
    "atof": atof,
    "atol": builtins.atol,
    "index": operator.index,
    "sort": sort,
    "origin_of": origin_of,
    "__origin_of": origin_of,
    "__type_of": types.type_of,
    "swap": swap,
    "debug_assert": DebugAssert(),
    "constrained": Constrained(),
    "Some": Some(),
    "Error": Error,
    "Codepoint": Codepoint,
    "conforms_to": conforms_to,
    "NoneType": type(None),
    "Tuple": tuple,
    "StringLiteral": types.String,
    "StaticString": types.String,
    "StringSlice": types.String,
    "IntLiteral": builtins.Int,
    "SIMDLength": builtins.Int,
    "FloatLiteral": simd.Float64,
}  # fmt: skip
"""What every program starts with, by name."""
