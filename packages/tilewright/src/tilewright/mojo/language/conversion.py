# SPDX-License-Identifier: Apache-2.0
"""Values where Mojo expects a type: which types a value has, what converts implicitly, and what is copied."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

from ..arrays import Span
from ..containers import Optional
from ..lists import List
from ..memory_type import MemoryType
from ..simd import SIMD, SIMDType
from ..simd_arithmetic import build_vector

EXACT, GENERAL, CONVERTED = 3, 2, 1  # how well a value fits a type


class Initializer:
    """The arguments of a type that is not known yet: `{1, 2}`, `{x = 1}`; on its own it is a set.

    >>> Initializer((1, 2), {}).make(complex)
    (1+2j)
    """

    __slots__ = ("arguments", "keywords")

    def __init__(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.arguments, self.keywords = arguments, keywords

    def make(self, kind: Any) -> Any:
        """Return a value of a type from the arguments.

        >>> Initializer((), {"real": 1.0}).make(complex)
        (1+0j)
        """
        return kind(*self.arguments, **self.keywords)

    def __iter__(self) -> Any:
        return iter(self.arguments)

    def __len__(self) -> int:
        return len(self.arguments)

    def __contains__(self, value: Any) -> bool:
        return value in self.arguments


class FunctionType:
    """The type of every function.

    >>> isinstance(print, FunctionType())
    True
    """

    def __instancecheck__(self, value: object) -> bool:
        return callable(value)

    def __repr__(self) -> str:
        return "def(...)"


def convert(value: Any, kind: Any) -> Any:
    """Return a value as one of a type, if Mojo converts it without being asked to; else the value itself.

    >>> from tilewright.mojo.simd import Float32
    >>> float(convert(1, Float32)), convert("a", Float32)
    (1.0, 'a')
    """
    kind_class = kind.__class__
    if kind_class is SIMDType:
        if value.__class__ in (int, float, bool):
            return kind(value)
        if isinstance(value, SIMD) and kind.size != 1 and value.size == 1:
            return kind(value)
        return value
    if value.__class__ is Initializer:
        return value.make(kind)
    if kind is Optional:
        return value if isinstance(value, Optional) else Optional(value)
    if kind_class is MemoryType and isinstance(value, List) and not isinstance(value, kind):
        return kind(value) if kind.kind is Span else kind(*value)  # a list literal takes the type it is given
    if fits(value, kind) == EXACT:
        return value
    implicit = getattr(kind, "convert_implicitly", None)
    return value if implicit is None else implicit(value)


def convert_like(value: Any, other: Any) -> Any:
    """Return a number as one of the type that a variable has already.

    >>> from tilewright.mojo.simd import Float32
    >>> float(convert_like(2, Float32(1))), convert_like(2, 1), convert_like(2, None)
    (2.0, 2, 2)
    """
    if isinstance(other, SIMD):
        return SIMDType(other.dtype, other.size)(value)
    return value


def fits(value: Any, kind: Any) -> int:
    """Return how well a value fits a type: exactly, as one of many, after a conversion, or 0: not at all.

    >>> fits(1, int), fits(1.5, int), fits(True, int)
    (3, 0, 0)
    """
    if kind is None or kind is ...:
        return GENERAL
    if kind.__class__ is SIMDType:
        if isinstance(value, SIMD):
            return EXACT if value.dtype == kind.dtype and value.size == kind.size else 0
        if value.__class__ is float:
            return EXACT if kind.dtype.name == "float64" else CONVERTED * ("float" in kind.dtype.name)
        return CONVERTED if value.__class__ is int or (value.__class__ is bool and kind.dtype.name == "bool") else 0
    if kind is int:
        return EXACT if value.__class__ is int else 0
    check = getattr(kind, "conforms", None)
    if check is not None:
        return GENERAL if check(value) else 0
    try:
        if isinstance(value, kind):
            return GENERAL if isinstance(kind, ABCMeta) else EXACT
    except TypeError:  # an alias of Python's typing, or anything that is no type
        return GENERAL
    if isinstance(kind, ABCMeta):  # a trait of the library, which cannot tell for numbers of Python
        return CONVERTED
    converts = getattr(kind, "converts_implicitly", None)
    if converts is not None:
        return CONVERTED if converts(value) else 0
    return CONVERTED if value.__class__ is Initializer else 0


def copy_value(value: Any) -> Any:
    """Return what a second variable gets: a copy of a struct that is copied implicitly, else the value itself.

    >>> copy_value(3)
    3
    """
    kind = value.__class__
    if kind is SIMD:  # elements of a vector can be assigned; a scalar cannot change
        return value if value.size == 1 else build_vector(SIMD, value.dtype, value.value.copy())
    copy = getattr(kind, "copy_implicitly", None)
    return value if copy is None else copy(value)
