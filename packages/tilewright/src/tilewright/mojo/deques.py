# SPDX-License-Identifier: Apache-2.0
"""Mojo's `Deque`: a list that is quick at both ends."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

from .builtins import format_value
from .language.raising import Error
from .parametrized import ParametrizedMeta


class Deque(deque[Any], metaclass=ParametrizedMeta):
    """`Deque[Int](1, 2)`, from its `values` or from a list `elements`; at most `maxlen` of them if that is positive.

    >>> numbers = Deque[int](1, 2)
    >>> numbers.appendleft(0)
    >>> print(numbers, numbers.peek(), numbers.peekleft())
    [0, 1, 2] 2 0
    """

    __bracketed__: ClassVar[tuple[str, ...]] = ("ElementType",)

    def __init__(self, *values: Any, elements: Any = (), maxlen: int = -1, **_: Any) -> None:
        super().__init__([*values, *elements], maxlen=maxlen if maxlen > 0 else None)

    @classmethod
    def _with_parameters(cls, *_: Any, **__: Any) -> type[Deque]:
        return cls

    def pop(self) -> Any:  # type: ignore[override]  # positions do not exist in Mojo's either
        """Remove the last element and return it.

        >>> Deque(1, 2).pop()
        2
        """
        self._check_filled("pop")
        return super().pop()

    def popleft(self) -> Any:
        """Remove the first element and return it.

        >>> Deque(1, 2).popleft()
        1
        """
        self._check_filled("popleft")
        return super().popleft()

    def peek(self) -> Any:
        """Return the last element.

        >>> Deque(1, 2).peek()
        2
        """
        self._check_filled("peek")
        return self[-1]

    def peekleft(self) -> Any:
        """Return the first element.

        >>> Deque(1, 2).peekleft()
        1
        """
        self._check_filled("peekleft")
        return self[0]

    def copy(self) -> Deque:
        """Return a deque of the same elements.

        >>> print(Deque(1).copy())
        [1]
        """
        return Deque(*self, maxlen=self.maxlen or -1)

    def _check_filled(self, action: str) -> None:
        if not self:
            raise Error(f"IndexError: {action} from an empty Deque")

    def __str__(self) -> str:
        return format_value(list(self))
