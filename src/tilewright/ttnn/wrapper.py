# SPDX-License-Identifier: Apache-2.0
"""`Wrapper`: a core value with the names of ttnn."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

Plain = TypeVar("Plain")
_Wrapper = TypeVar("_Wrapper", bound="Wrapper[Any]")


class Wrapper(Generic[Plain]):
    """A value of the dialect around a core value, `plain`; equal if the core values are.

    >>> Wrapper.wrap(5) == Wrapper.wrap(5), Wrapper.wrap(5).plain
    (True, 5)
    """

    __slots__ = ("plain",)
    plain: Plain

    @classmethod
    def wrap(cls: type[_Wrapper], value: Any) -> _Wrapper:
        """Return a core value wrapped; a wrapper is returned as it is.

        >>> Wrapper.wrap(Wrapper.wrap(5)).plain
        5
        """
        if isinstance(value, cls):
            return value
        self = object.__new__(cls)
        self.plain = value
        return self

    def __eq__(self, other: object) -> bool:
        return bool(self.plain == unwrap(other)) if isinstance(other, (Wrapper, type(self.plain))) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.plain)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __str__(self) -> str:
        return str(self.plain)


def unwrap(value: Any) -> Any:
    """Return the core value of a wrapper, and anything else as it is.

    >>> unwrap(Wrapper.wrap(5)), unwrap(5)
    (5, 5)
    """
    return value.plain if isinstance(value, Wrapper) else value
