# SPDX-License-Identifier: Apache-2.0
"""Mojo's `OwnedPointer` and `ArcPointer`: pointers that own one value, alone or together."""

from __future__ import annotations

from typing import Any

from .builtins import format_value
from .parametrized import ParametrizedMeta


class OwnedPointer(metaclass=ParametrizedMeta):
    """`OwnedPointer(value)`: the only owner of a `value`, which is read and written with empty brackets.

    >>> box = OwnedPointer(5)
    >>> box.set_subscript(6)
    >>> box.get_subscript()
    6
    """

    __slots__ = ("_value",)

    def __init__(self, value: Any = None, **named: Any) -> None:
        self._value = named.get("copy_value", value)

    @classmethod
    def _with_parameters(cls, *_: Any, **__: Any) -> Any:
        return cls

    def get_subscript(self) -> Any:
        """Return the value: `pointer[]`.

        >>> OwnedPointer(5).get_subscript()
        5
        """
        return self._value

    def set_subscript(self, value: Any) -> None:
        """Replace the value: `pointer[] = value`.

        >>> OwnedPointer(5).set_subscript(6)
        """
        self._value = value

    def take(self) -> Any:
        """Return the value; the pointer is not used afterwards.

        >>> OwnedPointer(5).take()
        5
        """
        return self._value

    def __str__(self) -> str:
        return f"{type(self).__name__}({format_value(self._value)})"


class ArcPointer(OwnedPointer):
    """`ArcPointer(value)`: one of several owners of a value; `a is b` says whether two own the same.

    >>> first = ArcPointer(5)
    >>> second = first.copy()
    >>> second.set_subscript(6)
    >>> first.get_subscript()
    6
    """

    __slots__ = ()

    def copy(self) -> ArcPointer:
        """Return another owner of the same value, which here is the same pointer.

        >>> ArcPointer(5).copy().get_subscript()
        5
        """
        return self
