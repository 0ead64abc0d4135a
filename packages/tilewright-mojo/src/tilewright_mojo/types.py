# SPDX-License-Identifier: Apache-2.0
"""The types of values: `type_of`, text, and functions whose parameters are types."""

from __future__ import annotations

from typing import Any, ClassVar

from tilewright.errors import CoordinateError, FormatError
from tilewright.layout import as_integer
from tilewright.mojo import SIMD, Bool, DType, Int, MojoValue, SIMDType, brackets, format_value

from .exports import is_of_dialect


class _StringMeta(type):
    """`String(a, b, ...)` is the text of the values, one after another."""

    def __call__(cls, *values: Any, sep: str = "", end: str = "", capacity: int = 0, **_: Any) -> str:
        return sep.join(map(_convert_to_string, values)) + end

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, str)

    def __repr__(cls) -> str:
        return "String"


class String(metaclass=_StringMeta):
    """Python's text: `String(x)` is the text that `print` shows for a value.

    >>> String(3), String("a", 1.0), isinstance("a", String)
    ('3', 'a1.0', True)
    """


def _convert_to_string(value: object) -> str:
    own = getattr(value, "convert_to_string", None)  # of a tensor
    return format_value(value) if own is None else str(own())


def represent(value: object) -> str:
    """Return the text of an expression that makes a value.

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


def name_type(value: object) -> str:
    """Return the name of the type of a value as Mojo prints it.

    >>> name_type(3), name_type("a")
    ('SIMD[DType.int, 1]', 'String')
    """
    kind = type_of(value)
    return "SIMD[DType.int, 1]" if kind is Int else repr(kind)


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


_PLAIN_TYPES = frozenset({type(None), tuple, list, dict, set, range, slice})


_LANGUAGE_TYPES = ("Codepoint",)  # of the front end, whose other classes are no types


_UNNAMED = {
    "AtomicType", "BlockFunction", "CopyPlan", "FailedAssertion", "IndexListType", "LabelledStore", "MemoryArray",
    "MemoryWindow", "RaisedValue", "RuntimeLayoutType", "RuntimeTupleType", "StaticExtents", "StoreMethod", "Stream",
    "WarpFunction",
}  # fmt: skip
"""Public classes of the dialect that Mojo has no name for."""


def type_of(value: object) -> MojoValue:
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
    if kind.__module__.startswith("tilewright_mojo.language."):
        return kind.__name__ in _LANGUAGE_TYPES
    return is_of_dialect(kind.__module__) and not (kind.__name__.startswith("_") or kind.__name__ in _UNNAMED)


@brackets
def rebind(parameters: tuple[Any, ...], value: object, **named: Any) -> MojoValue:
    """`rebind[type](value)`: the same value; what a compiler cannot prove, it need not prove here.

    >>> rebind[Int](3)
    3
    """
    kind = parameters[0] if parameters else named.get("dest_type")
    if isinstance(kind, SIMDType) and not isinstance(value, SIMD):
        return kind(value)  # a literal gets its type
    return value


rebind_var = trait_downcast = rebind


@brackets
def materialize(parameters: tuple[Any, ...], **named: Any) -> MojoValue:
    """`materialize[value]()`: the value, which compile time and run time share here.

    >>> materialize[3]()
    3
    """
    return (*parameters, *named.values())[0]


class StaticTuple(list[Any]):
    """`StaticTuple[T, size](...)`: a list of a fixed length; one value fills it.

    >>> entries = StaticTuple[int, 3](7)
    >>> entries[1] = 5
    >>> print(entries)
    (7, 5, 7)
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("element_type", "size")

    def __class_getitem__(cls, parameters: Any) -> Any:
        _, size = parameters
        count = as_integer(size, "the size of a StaticTuple")

        def create(*values: Any, fill: object = 0) -> StaticTuple:
            if len(values) == 1:
                fill, values = values[0], ()
            if values and len(values) != count:
                raise CoordinateError(f"a StaticTuple of {count} takes one value or {count}, got {len(values)}")
            return cls(values or [fill] * count)

        return create

    def __getitem__(self, k: Any) -> Any:
        return super().__getitem__(self._check_index(k))

    def __setitem__(self, k: object, value: object) -> None:
        super().__setitem__(self._check_index(k), value)

    get_subscript = __getitem__

    @property
    def size(self) -> int:
        """The number of entries.

        >>> StaticTuple[int, 3](7).size
        3
        """
        return len(self)

    def _check_index(self, k: object) -> int:
        index = int(as_integer(k, "an index"))
        if not 0 <= index < len(self):
            raise CoordinateError(f"index {index} is outside {len(self)} entries")
        return index

    def __str__(self) -> str:
        return f"({', '.join(map(str, self))})"
