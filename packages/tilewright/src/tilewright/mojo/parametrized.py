# SPDX-License-Identifier: Apache-2.0
"""Classes that take parameters in brackets: `List[Int]`, `LayoutTensor[dtype, layout]`."""

from __future__ import annotations

from typing import Any


class ParametrizedMeta(type):
    """The class of such classes: brackets, with names or without, go to the class method `_with_parameters`.

    Instances have no brackets for parameters: their own are subscripts.

    >>> class Box(metaclass=ParametrizedMeta):
    ...     @classmethod
    ...     def _with_parameters(cls, *parameters, **named):
    ...         return parameters, named
    >>> Box[1, 2], Box.with_parameters(1, size=2)
    (((1, 2), {}), ((1,), {'size': 2}))
    """

    def __getitem__(cls, parameters: Any) -> Any:
        return cls.with_parameters(*(parameters if type(parameters) is tuple else (parameters,)))

    def with_parameters(cls, *parameters: Any, **named: Any) -> Any:
        """Return the class with parameters: a type that makes and checks its values."""
        kind: Any = cls
        return kind._with_parameters(*parameters, **named)
