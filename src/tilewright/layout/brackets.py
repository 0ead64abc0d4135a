# SPDX-License-Identifier: Apache-2.0
"""Methods with brackets: `t.tile[2, 2](1, 0)`. Brackets hold what is fixed, parentheses what varies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar, overload

Result = TypeVar("Result")


class Bracketed(Generic[Result]):
    """A method of one object that takes its fixed arguments in brackets, or none at all.

    >>> method = Bracketed(lambda self, fixed, *free: (self, fixed, free), "t")
    >>> method[2, 2](1, 0), method(5)
    (('t', (2, 2), (1, 0)), ('t', (), (5,)))
    """

    __slots__ = ("_method", "_owner")

    def __init__(self, method: Callable[..., Result], owner: Any) -> None:
        self._method = method
        self._owner = owner

    def __getitem__(self, fixed: Any) -> Callable[..., Result]:
        return partial(self._method, self._owner, fixed if isinstance(fixed, tuple) else (fixed,))

    def __call__(self, *free: Any, **options: Any) -> Result:
        return self._method(self._owner, (), *free, **options)


class brackets(Generic[Result]):  # noqa: N801  (used like `property`)
    """Turn a function `f(self, fixed, ...)` into a method called `self.f[fixed](...)`, or `self.f(...)` without.

    >>> class Ruler:
    ...     steps = brackets(lambda self, fixed, n: [step * n for step in fixed])
    >>> Ruler().steps[1, 2](10)
    [10, 20]
    """

    def __init__(self, method: Callable[..., Result]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, owner: None, kind: Any = None) -> brackets[Result]: ...

    @overload
    def __get__(self, owner: object, kind: Any = None) -> Bracketed[Result]: ...

    def __get__(self, owner: object, kind: Any = None) -> brackets[Result] | Bracketed[Result]:
        return self if owner is None else Bracketed(self._method, owner)
