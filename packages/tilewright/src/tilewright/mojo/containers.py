# SPDX-License-Identifier: Apache-2.0
"""Mojo's `Dict`, `Set` and `Optional`: Python's, with Mojo's methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

from ..errors import CoordinateError, LayoutError
from .builtins import format_value, name_type, represent
from .language.raising import Error
from .parametrized import ParametrizedMeta

_NO_DEFAULT = object()


class DictKeyError(Error, CoordinateError):
    """A `key` that a dictionary does not have; a program can catch it.

    >>> print(DictKeyError("a"))
    the dictionary has no key 'a'
    """

    def __init__(self, key: Any) -> None:
        super().__init__(f"the dictionary has no key {key!r}")
        self.key = key

    def mojo_text(self) -> str:
        """Return what Mojo prints: the type of the key.

        >>> DictKeyError("a").mojo_text()
        'DictKeyError[String]()'
        """
        return f"DictKeyError[{name_type(self.key)}]()"


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

    __bracketed__: ClassVar[tuple[str, ...]] = ("K", "V")

    @classmethod
    def _with_parameters(cls, *_: Any, **__: Any) -> Any:
        """Return the type itself: keys and values may be anything.

        >>> Dict.with_parameters(str, V=int) is Dict
        True
        """
        return cls

    def __missing__(self, key: Any) -> Any:
        raise DictKeyError(key)

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

    def get(self, key: Any, default: Any = _NO_DEFAULT) -> Any:
        """Return the value of a key, or `default`; an optional value where there is no default.

        >>> Dict({1: 2}).get(1).value(), Dict({1: 2}).get(5, 0)
        (2, 0)
        """
        return self.find(key) if default is _NO_DEFAULT else super().get(key, default)

    def pop(self, key: Any, default: Any = _NO_DEFAULT) -> Any:
        """Remove a key and return its value, or `default` if the key is not there.

        >>> Dict({1: 2}).pop(1), Dict({1: 2}).pop(5, 0)
        (2, 0)
        """
        if default is _NO_DEFAULT and key not in self:
            raise DictKeyError(key)
        return super().pop(key, default)

    def popitem(self) -> Any:
        """Remove the newest entry and return it.

        >>> Dict({1: 2}).popitem().value
        2
        """
        if not self:
            raise Error("EmptyDictError()")
        return DictEntry(*super().popitem())

    def copy(self) -> Dict:
        """Return a dictionary of the same entries.

        >>> print(Dict({1: 2}).copy())
        {1: 2}
        """
        return Dict(self)

    def __str__(self) -> str:
        return format_value(dict(self))


class Set(set[Any], metaclass=ParametrizedMeta):
    """A set: `Set[Int](1, 2)`.

    >>> print(Set[int](1))
    {1}
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("T",)

    def __init__(self, *values: Any) -> None:
        super().__init__(values)

    @classmethod
    def _with_parameters(cls, *_: Any, **__: Any) -> Any:
        return cls

    def remove(self, value: Any) -> None:
        """Remove an element, `value`, which must be there.

        >>> numbers = Set(1, 2)
        >>> numbers.remove(1)
        >>> print(numbers)
        {2}
        """
        if value not in self:
            raise DictKeyError(value)
        self.discard(value)

    def pop(self) -> Any:
        """Remove an element and return it.

        >>> Set(1).pop()
        1
        """
        if not self:
            raise Error("Pop on empty set")
        return super().pop()

    def copy(self) -> Set:
        """Return a set of the same elements.

        >>> print(Set(1).copy())
        {1}
        """
        return Set(*self)

    def union(self, *others: Any) -> Any:
        """Return the elements of this set and of the `others`.

        >>> print(Set(1).union(Set(2)))
        {1, 2}
        """
        return Set(*super().union(*others))

    def intersection(self, *others: Any) -> Any:
        """Return the elements that are in this set and in all `others`.

        >>> print(Set(1, 2).intersection(Set(2)))
        {2}
        """
        return Set(*super().intersection(*others))

    def difference(self, *others: Any) -> Any:
        """Return the elements that are in none of the `others`.

        >>> print(Set(1, 2).difference(Set(2)))
        {1}
        """
        return Set(*super().difference(*others))

    def symmetric_difference(self, other: Any) -> Any:
        """Return the elements that are in this set or in the `other` one, but not in both.

        >>> print(Set(1, 2).symmetric_difference(Set(2, 3)))
        {1, 3}
        """
        return Set(*super().symmetric_difference(other))

    __or__, __and__, __sub__, __xor__ = union, intersection, difference, symmetric_difference

    def __str__(self) -> str:
        return f"{{{', '.join(map(format_value, self))}}}"


class Optional(metaclass=ParametrizedMeta):
    """A value or none: `Optional(3)`, `Optional()`.

    >>> Optional(3).value(), bool(Optional()), Optional[int](None).or_else(5), Optional() == None
    (3, False, 5, True)
    """

    __slots__ = ("_value",)
    __bracketed__: ClassVar[tuple[str, ...]] = ("T",)

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

    unsafe_value = value

    def get_subscript(self) -> Any:
        """Return the value: `optional[]`; a program can catch the error if there is none.

        >>> Optional(3).get_subscript()
        3
        """
        if self._value is None:
            raise Error("the optional value is none")
        return self._value

    def take(self) -> Any:
        """Return the value and leave none.

        >>> number = Optional(3)
        >>> number.take(), bool(number)
        (3, False)
        """
        value = self.value()
        self._value = None
        return value

    unsafe_take = take

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

    def represent_in_mojo(self) -> str:
        """Return what Mojo's `repr` shows.

        >>> Optional(3).represent_in_mojo()
        'Optional[SIMD[DType.int, 1]](Int(3))'
        """
        if self._value is None:
            return repr(self)
        return f"Optional[{name_type(self._value)}]({represent(self._value)})"

    def __repr__(self) -> str:
        return f"Optional({self._value!r})"
