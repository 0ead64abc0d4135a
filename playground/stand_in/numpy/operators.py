# SPDX-License-Identifier: Apache-2.0
"""The operators of arrays and scalars: each is a call of the universal function of the same meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

UFUNCS: dict[str, Any] = {}  # by name; the module of universal functions fills it


def _forward(name: str) -> Callable[..., Any]:
    def operate(self: Any, other: Any) -> Any:
        return UFUNCS[name](self, other)

    return operate


def _reflected(name: str) -> Callable[..., Any]:
    def operate(self: Any, other: Any) -> Any:
        return UFUNCS[name](other, self)

    return operate


def _in_place(name: str) -> Callable[..., Any]:
    def operate(self: Any, other: Any) -> Any:
        return UFUNCS[name](self, other, out=(self,))

    return operate


def _single(name: str) -> Callable[..., Any]:
    def operate(self: Any) -> Any:
        return UFUNCS[name](self)

    return operate


class Comparisons:
    """The comparisons, which return arrays of bools."""

    __slots__ = ()
    __eq__ = _forward("equal")
    __ne__ = _forward("not_equal")
    __lt__ = _forward("less")
    __le__ = _forward("less_equal")
    __gt__ = _forward("greater")
    __ge__ = _forward("greater_equal")
    __hash__ = None  # type: ignore[assignment]


class Operators:
    """The arithmetic operators, with the operand on either side."""

    __slots__ = ()
    __add__, __radd__ = _forward("add"), _reflected("add")
    __sub__, __rsub__ = _forward("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _forward("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _forward("true_divide"), _reflected("true_divide")
    __floordiv__, __rfloordiv__ = _forward("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _forward("remainder"), _reflected("remainder")
    __divmod__, __rdivmod__ = _forward("divmod"), _reflected("divmod")
    __pow__, __rpow__ = _forward("power"), _reflected("power")
    __lshift__, __rlshift__ = _forward("left_shift"), _reflected("left_shift")
    __rshift__, __rrshift__ = _forward("right_shift"), _reflected("right_shift")
    __and__, __rand__ = _forward("bitwise_and"), _reflected("bitwise_and")
    __or__, __ror__ = _forward("bitwise_or"), _reflected("bitwise_or")
    __xor__, __rxor__ = _forward("bitwise_xor"), _reflected("bitwise_xor")
    __neg__, __pos__, __abs__ = _single("negative"), _single("positive"), _single("absolute")
    __invert__ = _single("invert")


class NDArrayOperatorsMixin(Comparisons, Operators):
    """All operators, those in place included: what arrays have, and classes that define `__array_ufunc__`."""

    __slots__ = ()
    __iadd__, __isub__, __imul__ = _in_place("add"), _in_place("subtract"), _in_place("multiply")
    __itruediv__, __ifloordiv__ = _in_place("true_divide"), _in_place("floor_divide")
    __imod__, __ipow__ = _in_place("remainder"), _in_place("power")
    __ilshift__, __irshift__ = _in_place("left_shift"), _in_place("right_shift")
    __iand__, __ior__, __ixor__ = _in_place("bitwise_and"), _in_place("bitwise_or"), _in_place("bitwise_xor")
