# SPDX-License-Identifier: Apache-2.0
"""Mojo's module `layout.coord`: coordinates, and integers known at compile time or at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...layout.integers import DynamicInt, Idx, StaticInt, as_integer
from ...layout.mojo import Coord, coord

__all__ = ["ComptimeInt", "Coord", "Idx", "RuntimeInt", "coord"]


class _ComptimeInt:
    """`ComptimeInt[4]()` is a static integer, the same as `Idx[4]()`.

    >>> ComptimeInt[4]()
    Idx[4]()
    """

    def __getitem__(self, value: int) -> StaticInt:
        return Idx[value]


class _RuntimeInt:
    """`RuntimeInt[dtype](n)`, or `RuntimeInt(n)`, is a dynamic integer, the same as `Idx(n)`.

    >>> RuntimeInt["int32"](4), RuntimeInt(4)
    (Idx(4), Idx(4))
    """

    def __getitem__(self, dtype: Any) -> Callable[[int], DynamicInt]:
        return self

    def __call__(self, value: int) -> DynamicInt:
        return DynamicInt(as_integer(value, "RuntimeInt(...)"))


ComptimeInt = _ComptimeInt()
RuntimeInt = _RuntimeInt()
