# SPDX-License-Identifier: Apache-2.0
"""`Wrapper`: a core value with the names of ttnn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

if TYPE_CHECKING:
    from typing_extensions import Self

Plain = TypeVar("Plain")
_Value = TypeVar("_Value")


class Wrapper(Generic[Plain]):
    """A ttnn value around a core value, `plain`; two are equal if their core values are.

    >>> Wrapper.wrap(5) == Wrapper.wrap(5), Wrapper.wrap(5).plain
    (True, 5)
    """

    __slots__ = ("plain",)
    plain: Plain

    @classmethod
    def wrap(cls, value: Plain | Self) -> Self:
        """Return `value` wrapped; a wrapper is returned unchanged.

        >>> Wrapper.wrap(Wrapper.wrap(5)).plain
        5
        """
        if isinstance(value, cls):
            return value
        wrapper = object.__new__(cls)
        wrapper.plain = cast(Plain, value)
        return wrapper

    def __eq__(self, other: object) -> bool:
        return bool(self.plain == unwrap(other)) if isinstance(other, (Wrapper, type(self.plain))) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.plain)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __str__(self) -> str:
        return str(self.plain)


@overload
def unwrap(value: Wrapper[Plain]) -> Plain: ...
@overload
def unwrap(value: _Value) -> _Value: ...
def unwrap(value: Any) -> Any:
    """Return the core value of a wrapper, and any other `value` unchanged.

    >>> unwrap(Wrapper.wrap(5)), unwrap(5)
    (5, 5)
    """
    return value.plain if isinstance(value, Wrapper) else value
