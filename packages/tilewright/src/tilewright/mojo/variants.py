# SPDX-License-Identifier: Apache-2.0
"""Mojo's `Variant`: a value of one of several types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import LayoutError
from .brackets import brackets
from .builtins import format_value
from .parametrized import ParametrizedMeta
from .simd import SIMDType


@dataclass(frozen=True, slots=True)
class VariantType:
    """`Variant[Int, String]`: the type of values of one of some `types`.

    >>> kind = VariantType((int, str))
    >>> kind("a").isa[str](), kind("a")[str], isinstance(kind(3), kind)
    (True, 'a', True)
    """

    types: tuple[Any, ...]

    def __call__(self, value: Any) -> Variant:
        if isinstance(value, Variant):
            return Variant(self, value.value)
        if not any(isinstance(value, kind) for kind in self.types):  # a literal takes the first type that takes it
            takers = [kind for kind in self.types if isinstance(kind, SIMDType) and isinstance(value, (int, float))]
            if not takers:
                raise LayoutError(f"{format_value(value)} has none of the types of {self}")
            value = takers[0](value)
        return Variant(self, value)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, Variant) and value.kind == self

    convert_implicitly = __call__

    def converts_implicitly(self, value: Any) -> bool:
        """Return whether a value has one of the types.

        >>> VariantType((int,)).converts_implicitly(3)
        True
        """
        return any(isinstance(value, kind) for kind in self.types)

    def is_type_supported(self, kind: Any) -> bool:
        """Return whether a type is one of the types.

        >>> VariantType((int,)).is_type_supported(str)
        False
        """
        return kind in self.types

    def __str__(self) -> str:
        return f"Variant[{', '.join(map(repr, self.types))}]"


class Variant(metaclass=ParametrizedMeta):
    """A `value` of one of the types of its `kind`: `Variant[Int, String](3)`.

    >>> number = Variant[int, str](3)
    >>> number.isa[int](), number[int], str(number)
    (True, 3, '3')
    """

    __slots__ = ("kind", "value")

    def __init__(self, kind: VariantType, value: Any) -> None:
        self.kind, self.value = kind, value

    @classmethod
    def _with_parameters(cls, *types: Any) -> VariantType:
        return VariantType(types)

    @brackets
    def isa(self, parameters: tuple[Any, ...]) -> bool:
        """Return whether the value has a type: `variant.isa[Int]()`.

        >>> Variant[int, str](3).isa[str]()
        False
        """
        return isinstance(self.value, parameters[0])

    def __getitem__(self, kind: Any) -> Any:
        if not isinstance(self.value, kind):
            raise LayoutError(f"the variant has a value of another type than {kind!r}; ask with isa first")
        return self.value

    @brackets
    def set(self, parameters: tuple[Any, ...], value: Any) -> None:
        """Replace the value: `variant.set[Int](3)`.

        >>> number = Variant[int, str](3)
        >>> number.set[str]("a")
        >>> number[str]
        'a'
        """
        self.value = self.kind(value).value

    @brackets
    def unsafe_get(self, parameters: tuple[Any, ...]) -> Any:
        """Return the value: `variant.unsafe_get[Int]()`.

        >>> Variant[int, str](3).unsafe_get[int]()
        3
        """
        return self[parameters[0]]

    @brackets
    def take(self, parameters: tuple[Any, ...]) -> Any:
        """Return the value: `variant.take[Int]()`.

        >>> Variant[int, str](3).take[int]()
        3
        """
        return self[parameters[0]]

    def copy(self) -> Variant:
        """Return an equal variant.

        >>> Variant[int, str](3).copy()[int]
        3
        """
        return Variant(self.kind, self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Variant) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return format_value(self.value)
