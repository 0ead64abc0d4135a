# SPDX-License-Identifier: Apache-2.0
"""Static and dynamic integers: extents and strides that are fixed, or that become run-time arguments.

A plain `int` is static. `Idx(n)` is an `int` that remembers it is only known at run time; arithmetic with it stays
dynamic, so a stride computed from a dynamic extent is dynamic too. Both compare and hash by value.
"""

from __future__ import annotations

import operator
from typing import Any, cast


class StaticInt(int):
    """A fixed integer as `Idx[4]` makes it; calling it returns itself, so `Idx[4]()` reads as in Mojo.

    >>> Idx[4]() + 1
    5
    """

    __slots__ = ()

    def __call__(self) -> StaticInt:
        return self

    def __repr__(self) -> str:
        return f"Idx[{int(self)}]()"

    __str__ = int.__repr__


class Count(int):
    """A number that a layout has; calling it returns it, so that `L.size` and Mojo's `L.size()` are the same.

    >>> Count(24), Count(24)() + 1
    (24, 25)
    """

    __slots__ = ()

    def __call__(self) -> int:
        return int(self)


class DynamicInt(int):
    """An integer known only at run time, made by `Idx(n)`.

    >>> Idx(6) * 4, 3 + Idx(1), Idx(6) == 6
    (Idx(24), Idx(4), True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Idx({int(self)})"

    __str__ = int.__repr__

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def __add__(self, other: Any) -> Any:
        return _dynamic(int.__add__(self, other))

    def __sub__(self, other: Any) -> Any:
        return _dynamic(int.__sub__(self, other))

    def __rsub__(self, other: Any) -> Any:
        return _dynamic(int.__rsub__(self, other))

    def __mul__(self, other: Any) -> Any:
        return _dynamic(int.__mul__(self, other))

    def __floordiv__(self, other: Any) -> Any:
        return _dynamic(int.__floordiv__(self, other))

    def __rfloordiv__(self, other: Any) -> Any:
        return _dynamic(int.__rfloordiv__(self, other))

    def __mod__(self, other: Any) -> Any:
        return _dynamic(int.__mod__(self, other))

    def __rmod__(self, other: Any) -> Any:
        return _dynamic(int.__rmod__(self, other))

    def __neg__(self) -> Any:
        return DynamicInt(int.__neg__(self))

    def __abs__(self) -> Any:
        return DynamicInt(int.__abs__(self))

    __radd__ = __add__
    __rmul__ = __mul__


def _dynamic(value: Any) -> Any:
    return value if value is NotImplemented else DynamicInt(value)


class _IdxMaker:
    """`Idx[4]()` is a static integer, `Idx(n)` a dynamic one.

    >>> Idx[4](), Idx(6)
    (Idx[4](), Idx(6))
    """

    __slots__ = ()

    def __getitem__(self, value: int) -> StaticInt:
        return StaticInt(as_integer(value, "Idx[...]"))

    def __call__(self, value: int) -> DynamicInt:
        return DynamicInt(as_integer(value, "Idx(...)"))

    def __repr__(self) -> str:
        return "Idx"


Idx = _IdxMaker()


def is_bool(value: object) -> bool:
    """Return whether value is a truth value, Python's or NumPy's, which some releases of NumPy take for an integer.

    >>> is_bool(True), is_bool(1)
    (True, False)
    """
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"


def as_integer(value: object, what: str) -> int:
    """Return value as an exact integer; static ones become plain ints, dynamic ones stay dynamic.

    >>> as_integer(Idx[4](), "shape"), as_integer(Idx(4), "shape")
    (4, Idx(4))
    """
    if type(value) is int or type(value) is DynamicInt:
        return value
    if is_bool(value):
        raise TypeError(f"{what} must be an integer, got the bool {value!r}; write 0 or 1 if a number is meant")
    try:
        return operator.index(cast(Any, value))
    except TypeError:
        raise TypeError(f"{what} must be an integer, got {type(value).__name__} {value!r}") from None


def is_dynamic(value: object) -> bool:
    """Return whether value is an integer known only at run time.

    >>> is_dynamic(Idx(6)), is_dynamic(Idx[6]()), is_dynamic(6)
    (True, False, False)
    """
    return type(value) is DynamicInt
