# SPDX-License-Identifier: Apache-2.0
"""Functions, methods and classes with brackets: Mojo's parameters in brackets, arguments in parentheses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any, Generic, TypeAlias, TypeVar

MojoValue: TypeAlias = Any
"""A value that a Mojo program works with: a number, a text, a struct, a type. What it is, only the program knows."""
Result = TypeVar("Result")
Bound = TypeVar("Bound", bound="brackets[Any]")


class brackets(Generic[Result]):  # noqa: N801  (used like `property`)
    """A function or a method with parameters in brackets, or none: `f[2, 2](1, 0)`, `f(5)`.

    The `function` that is decorated takes the tuple of the parameters before its arguments, a method after `self`, its
    `owner`.

    >>> @brackets
    ... def steps(parameters, n):
    ...     return [step * n for step in parameters]
    >>> steps[1, 2](10), steps(10)
    ([10, 20], [])
    >>> class Ruler:
    ...     ticks = brackets(lambda self, parameters, n: steps[parameters](n))
    >>> Ruler().ticks[1, 2](10)
    [10, 20]
    """

    def __init__(self, function: Callable[..., Result], *owner: Any) -> None:
        self._function, self._owner = function, owner
        if not owner:
            update_wrapper(self, function)

    def __get__(self: Bound, instance: object, owner: type | None = None) -> Bound:
        return self if instance is None else type(self)(self._function, instance)

    def __getitem__(self, parameters: object) -> Callable[..., Result]:
        return self.with_parameters(*(parameters if isinstance(parameters, tuple) else (parameters,)))

    def with_parameters(self, *parameters: object, **named: object) -> Callable[..., Result]:
        """Return the function with its parameters bound; named ones, for which Python has no brackets, are options.

        >>> function = brackets(lambda parameters, x, width=1: (parameters, x, width))
        >>> function.with_parameters(2, width=4)(7)
        ((2,), 7, 4)
        """
        return partial(self._function, *self._owner, parameters, **named)

    def __call__(self, *arguments: Any, **options: Any) -> Result:
        return self._function(*self._owner, (), *arguments, **options)

    def __repr__(self) -> str:
        return getattr(self, "__name__", "brackets")

    @staticmethod
    def bind(function: Any, parameters: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return `function[*parameters, **named]`: Mojo's brackets have keywords, Python's have not.

        What takes named parameters has a method `with_parameters(*parameters, **named)`; others take plain brackets.

        >>> function = brackets(lambda parameters, *, width=1: (parameters, width))
        >>> brackets.bind(function, (2, 2), {"width": 4})()
        ((2, 2), 4)
        """
        with_parameters = getattr(function, "with_parameters", None)
        if with_parameters is not None:
            return with_parameters(*parameters, **named)
        if named:
            raise TypeError(f"{function!r} takes no named parameters, got {', '.join(named)}")
        return function[parameters[0] if len(parameters) == 1 else parameters]


class TypeBrackets(brackets[Result]):
    """A type that follows from its parameters, or a value, which has brackets but is not called: `Pair[2, 4]`.

    >>> Pair = TypeBrackets(lambda first, second: (first, second))
    >>> Pair[2, 4], Pair.with_parameters(2, second=4)
    ((2, 4), (2, 4))
    """

    def __getitem__(self, parameters: object) -> Result:  # type: ignore[override]
        return self.with_parameters(*(parameters if isinstance(parameters, tuple) else (parameters,)))

    def with_parameters(self, *parameters: object, **named: object) -> Result:  # type: ignore[override]
        """Return the type."""
        return self._function(*self._owner, *parameters, **named)


class ParametrizedMeta(type):
    """The class of classes with brackets: parameters go to the class method `_with_parameters`, or mean nothing.

    Instances have no brackets for parameters: their own are subscripts.

    >>> class Box(metaclass=ParametrizedMeta):
    ...     @classmethod
    ...     def _with_parameters(cls, *parameters, **named):
    ...         return parameters, named
    >>> Box[1, 2], Box.with_parameters(1, size=2)
    (((1, 2), {}), ((1,), {'size': 2}))
    """

    def __getitem__(cls, parameters: object) -> Any:
        return cls.with_parameters(*(parameters if type(parameters) is tuple else (parameters,)))

    def with_parameters(cls, *parameters: Any, **named: Any) -> Any:
        """Return the class with parameters, a type that makes and checks its values; the class if it takes none."""
        make = getattr(cls, "_with_parameters", None)
        return cls if make is None else make(*parameters, **named)
