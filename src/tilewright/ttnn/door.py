# SPDX-License-Identifier: Apache-2.0
"""`Door`: a value of tilewright under ttnn's names."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

Plain = TypeVar("Plain")
_Door = TypeVar("_Door", bound="Door[Any]")


class Door(Generic[Plain]):
    """A value of the dialect around the plain value that does the work; equal if the plain values are.

    >>> Door.around(5) == Door.around(5), Door.around(5).plain
    (True, 5)
    """

    __slots__ = ("plain",)
    plain: Plain

    @classmethod
    def around(cls: type[_Door], value: Any) -> _Door:
        """Return the door around a plain value; a door is its own.

        >>> Door.around(Door.around(5)).plain
        5
        """
        if isinstance(value, cls):
            return value
        self = object.__new__(cls)
        self.plain = value
        return self

    def __eq__(self, other: object) -> bool:
        return bool(self.plain == plain(other)) if isinstance(other, (Door, type(self.plain))) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.plain)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __str__(self) -> str:
        return str(self.plain)


def plain(thing: Any) -> Any:
    """Return the plain value behind a door, and anything else as it is.

    >>> plain(Door.around(5)), plain(5)
    (5, 5)
    """
    return thing.plain if isinstance(thing, Door) else thing
