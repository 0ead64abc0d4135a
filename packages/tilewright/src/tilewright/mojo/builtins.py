# SPDX-License-Identifier: Apache-2.0
"""Built-ins of Mojo: `Int`, `Bool` and `String`, origins, and functions that know about types."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import FormatError
from .brackets import Bracketed
from .dtype import DType
from .language.raising import Error
from .simd import SIMD, SIMDType
from .simd_arithmetic import plain_number

_WRAP = DType.int64.round_number


def atol(text: Any, base: int = 10) -> int:
    """Return the integer that a text says, in a base.

    >>> atol(" 12 "), atol("ff", 16)
    (12, 255)
    """
    try:
        return int(_WRAP(int(str(text), base)))
    except ValueError:
        raise Error(f"String is not convertible to integer with base {base}: '{text}'") from None


class _IntMeta(type):
    """`Int(x)` is an integer of Python, wrapped around to 64 bits; `isinstance(3, Int)`."""

    number_type = DType.int
    MAX, MIN, BITWIDTH = 2**63 - 1, -(2**63), 64

    def __call__(cls, value: Any = 0, base: int = 10) -> int:
        if value.__class__ is int and Int.MIN <= value <= Int.MAX:
            return value
        if isinstance(value, str):
            return atol(value, base)
        if hasattr(value, "__int__") and not isinstance(value, (SIMD, float, np.generic, np.ndarray)):
            return int(_WRAP(int(value)))
        number = plain_number(value)
        if number != number or number in (float("inf"), float("-inf")):
            raise FormatError(f"{number} is not an integer")
        return int(_WRAP(int(number)))

    def __instancecheck__(cls, value: object) -> bool:
        if isinstance(value, SIMD):
            return value.dtype.mojo_name == "int" and value.size == 1
        return isinstance(value, int) and not isinstance(value, bool)

    def __repr__(cls) -> str:
        return "Int"


class Int(metaclass=_IntMeta):
    """The integers of 64 bits, which are Python's: `Int(3.9)` is 3.

    >>> Int(3.9), Int("12"), Int(2**63), isinstance(3, Int)
    (3, 12, -9223372036854775808, True)
    """


class _BoolMeta(type):
    """`Bool(x)` is a bool of Python."""

    number_type = DType.bool

    def __call__(cls, value: Any = False) -> bool:
        return bool(value)

    def __instancecheck__(cls, value: object) -> bool:
        if isinstance(value, SIMD):
            return value.dtype.kind == "bool" and value.size == 1
        return isinstance(value, (bool, np.bool_))

    def __repr__(cls) -> str:
        return "Bool"


class Bool(metaclass=_BoolMeta):
    """The bools, which are Python's.

    >>> Bool(1), isinstance(True, Bool), isinstance(1, Bool)
    (True, True, False)
    """


class _StringMeta(type):
    """`String(a, b, ...)` is the text of the values, one after another."""

    def __call__(cls, *values: Any, sep: str = "", end: str = "", capacity: int = 0, **_: Any) -> str:
        return sep.join(map(_convert_to_string, values)) + end

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, str)

    def __repr__(cls) -> str:
        return "String"


class String(metaclass=_StringMeta):
    """Text, which is Python's: `String(x)` is what `print` shows of a value.

    >>> String(3), String("a", 1.0), isinstance("a", String)
    ('3', 'a1.0', True)
    """


def _convert_to_string(value: Any) -> str:
    own = getattr(value, "convert_to_string", None)  # of a tensor
    return format_value(value) if own is None else str(own())


def format_value(value: Any) -> str:
    """Return the text of a value as Mojo prints it.

    >>> format_value((1, "a", [1.5, True]))
    '(1, a, [1.5, True])'
    """
    if type(value) is tuple:
        return f"({', '.join(map(format_value, value))})"
    if type(value) is list:
        return f"[{', '.join(map(format_value, value))}]"
    if type(value) is dict:
        return f"{{{', '.join(f'{format_value(key)}: {format_value(each)}' for key, each in value.items())}}}"
    in_mojo = getattr(value, "mojo_text", None)
    return str(value) if in_mojo is None else in_mojo()


def represent(value: Any) -> str:
    """Return the text that says how to make a value.

    >>> represent(1.5), represent("a"), represent(3), represent((1, True))
    ('Float64(1.5)', "'a'", 'Int(3)', 'Tuple[SIMD[DType.int, 1], Bool](Int(1), True)')
    """
    if isinstance(value, float):
        return f"Float64({value})"
    if type(value) is int:
        return f"Int({value})"
    if type(value) is tuple:
        return f"Tuple[{', '.join(map(name_type, value))}]({', '.join(map(represent, value))})"
    in_mojo = getattr(value, "represent_in_mojo", None)
    return repr(value) if in_mojo is None else str(in_mojo())


def name_type(value: Any) -> str:
    """Return the name of the type of a value as Mojo prints it.

    >>> name_type(3), name_type("a")
    ('SIMD[DType.int, 1]', 'String')
    """
    kind = type_of(value)
    return "SIMD[DType.int, 1]" if kind is Int else repr(kind)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a pointer comes from: `owner` is the object that holds the memory, which a tensor keeps alive.

    `mut` says whether it can be written through the pointer. An origin without an owner stands for any:
    `MutAnyOrigin`, `ImmutAnyOrigin`.

    >>> MutAnyOrigin.mut, Origin(False) == ImmutAnyOrigin
    (True, True)
    """

    mut: bool
    owner: Any = field(default=None, repr=False, compare=False)

    def __class_getitem__(cls, mut: bool) -> Origin:
        return cls(bool(mut))

    @classmethod
    def with_parameters(cls, mut: bool = True) -> Origin:
        """Return `Origin[mut=mut]`.

        >>> Origin.with_parameters(mut=False)
        Origin(mut=False)
        """
        return cls(bool(mut))


MutAnyOrigin, ImmutAnyOrigin = Origin(True), Origin(False)
MutOrigin = MutUntrackedOrigin = MutExternalOrigin = MutableAnyOrigin = StaticConstantOrigin = MutAnyOrigin
ImmutOrigin = ImmutUntrackedOrigin = ImmutExternalOrigin = ImmutableAnyOrigin = ImmutAnyOrigin


class _FunctionMeta(type):
    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise FormatError("a function cannot be made from its type; define it with def")

    def __instancecheck__(cls, value: object) -> bool:
        return callable(value)

    def __repr__(cls) -> str:
        return "def(...)"


class FunctionValue(metaclass=_FunctionMeta):
    """The type of functions and of types, from which none can be made: Python's own types stay out of reach.

    >>> type_of(print), isinstance(print, FunctionValue)
    (def(...), True)
    """


class _HiddenMeta(type):
    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise FormatError("this value is the library's own: Mojo has no type for it, and makes no others of it")

    def __repr__(cls) -> str:
        return "AnyType"


class HiddenValue(metaclass=_HiddenMeta):
    """The type of values for which Mojo has none, such as modules and arrays of NumPy: none can be made from it.

    >>> import types
    >>> type_of(types)
    AnyType
    """


_DIALECT = f"{__name__.rpartition('.')[0]}."
_PLAIN_TYPES = frozenset({type(None), tuple, list, dict, set, range, slice})
_LANGUAGE_TYPES = ("Codepoint", "Error")  # of the front end, whose other classes are no types


def type_of(value: Any) -> Any:
    """Return the type of a value, with all its parameters: `type_of(tensor)`, `type_of(Float32(1))`.

    >>> from tilewright.mojo import Float32
    >>> type_of(Float32(1)), type_of(3), type_of("a")
    (SIMD[DType.float32, 1], Int, String)
    """
    if isinstance(value, SIMD):
        return SIMDType(value.dtype, value.size)
    parametrized = getattr(type(value), "parametrized_type", None)
    if parametrized is not None:
        return parametrized(value)
    if isinstance(value, bool):
        return Bool
    if isinstance(value, int) and type(value) is int:
        return Int
    if isinstance(value, float):
        return SIMDType(DType.float64, 1)
    if isinstance(value, str):
        return String
    kind = type(value)
    if callable(value) and not hasattr(kind, "copy"):
        return FunctionValue
    return kind if kind in _PLAIN_TYPES or _is_type_of_mojo(kind) else HiddenValue


def _is_type_of_mojo(kind: type) -> bool:
    """Return whether a program may make values of a class: of its own structs, and of classes that Mojo names."""
    if hasattr(kind, "__fields__"):
        return True
    if kind.__module__.startswith(f"{_DIALECT}language."):
        return kind.__name__ in _LANGUAGE_TYPES
    listed = getattr(sys.modules[kind.__module__], "__all__", None) if kind.__module__.startswith(_DIALECT) else ()
    return listed is None or kind.__name__ in listed


def _rebind(_: Any, parameters: tuple[Any, ...], value: Any, **named: Any) -> Any:
    kind = parameters[0] if parameters else named.get("dest_type")
    if isinstance(kind, SIMDType) and not isinstance(value, SIMD):
        return kind(value)  # a literal gets its type
    return value


class _Rebind(Bracketed[Any]):
    """`rebind[type](value)`: the same value; what a compiler cannot prove, it need not prove here.

    >>> rebind[Int](3)
    3
    """


rebind = _Rebind(_rebind)
rebind_var = trait_downcast = rebind


class _Materialize:
    """`materialize[value]()`: the value, which compile time and run time share here.

    >>> materialize[3]()
    3
    """

    def __getitem__(self, value: Any) -> Callable[[], Any]:
        return lambda: value

    def with_parameters(self, *values: Any, **named: Any) -> Callable[[], Any]:
        """Return the function that gives the value."""
        (value,) = (*values, *named.values())
        return lambda: value

    def __repr__(self) -> str:
        return "materialize"


materialize = _Materialize()
