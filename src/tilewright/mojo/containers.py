# SPDX-License-Identifier: Apache-2.0
"""Mojo's `Dict`, `Set` and `Optional`: Python's, with Mojo's methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from ..errors import CoordinateError, LayoutError
from .builtins import format_value
from .parametrized import ParametrizedMeta


class DictEntry(NamedTuple):
    """A key with its value.

    >>> DictEntry("a", 1).key
    'a'
    """

    key: Any
    value: Any


class Dict(dict[Any, Any], metaclass=ParametrizedMeta):
    """A dictionary: `Dict[String, Int]()`. A key that is not there is an error of ours.

    >>> counts = Dict[str, int]()
    >>> counts["a"] = 1
    >>> [(entry.key, entry.value) for entry in counts.items()], str(counts), counts.find("b") == None
    ([('a', 1)], '{a: 1}', True)
    """

    PARAMETERS: ClassVar[tuple[str, ...]] = ("K", "V")

    @classmethod
    def _with_parameters(cls, *_: Any, **__: Any) -> Any:
        """Return the type itself: keys and values may be anything.

        >>> Dict.with_parameters(str, V=int) is Dict
        True
        """
        return cls

    def __missing__(self, key: Any) -> Any:
        raise CoordinateError(f"the dictionary has no key {key!r}")

    def items(self) -> Any:
        """Return the entries, each with `key` and `value`.

        >>> next(Dict({1: 2}).items()).value
        2
        """
        return (DictEntry(key, value) for key, value in super().items())

    def find(self, key: Any) -> Optional:
        """Return the value of a key, or none.

        >>> Dict({1: 2}).find(1).value()
        2
        """
        return Optional(super().get(key))

    def __str__(self) -> str:
        return format_value(dict(self))


class Set(set[Any], metaclass=ParametrizedMeta):
    """A set: `Set[Int](1, 2)`.

    >>> print(Set[int](1))
    {1}
    """

    PARAMETERS: ClassVar[tuple[str, ...]] = ("T",)

    def __init__(self, *values: Any) -> None:
        super().__init__(values)

    @classmethod
    def _with_parameters(cls, *_: Any, **__: Any) -> Any:
        return cls

    def __str__(self) -> str:
        return f"{{{', '.join(map(format_value, self))}}}"


class Optional(metaclass=ParametrizedMeta):
    """A value or none: `Optional(3)`, `Optional()`.

    >>> Optional(3).value(), bool(Optional()), Optional[int](None).or_else(5), Optional() == None
    (3, False, 5, True)
    """

    __slots__ = ("_value",)
    PARAMETERS: ClassVar[tuple[str, ...]] = ("T",)

    _value: Any

    def __init__(self, value: Any = None) -> None:
        self._value = value._value if isinstance(value, Optional) else value

    @classmethod
    def _with_parameters(cls, *_: Any, **__: Any) -> type[Optional]:
        """Return the type itself.

        >>> Optional.with_parameters(int) is Optional
        True
        """
        return cls

    def value(self) -> Any:
        """Return the value; raise if there is none.

        >>> Optional(3).value()
        3
        """
        if self._value is None:
            raise LayoutError("the optional value is none")
        return self._value

    take = unsafe_value = unsafe_take = get_subscript = value

    def or_else(self, default: Any) -> Any:
        """Return the value, or `default` if there is none.

        >>> Optional().or_else(5)
        5
        """
        return default if self._value is None else self._value

    def copy(self) -> Optional:
        """Return an equal optional value.

        >>> Optional(3).copy() == Optional(3)
        True
        """
        return Optional(self._value)

    def __bool__(self) -> bool:
        return self._value is not None

    def __iter__(self) -> Iterator[Any]:
        return iter(() if self._value is None else (self._value,))

    def __eq__(self, other: object) -> bool:
        return bool(self._value == (other._value if isinstance(other, Optional) else other))

    def __hash__(self) -> int:
        return hash(self._value)

    def __str__(self) -> str:
        return format_value(self._value)

    def __repr__(self) -> str:
        return f"Optional({self._value!r})"
