# SPDX-License-Identifier: Apache-2.0
"""`ComposedLayout`: the composition of two functions that is not itself a strided layout, evaluated exactly."""

from __future__ import annotations

from typing import Any

from . import bulk
from .axes import Axis
from .base import LayoutLike
from .paged import PagedLayout
from .properties import is_bijective
from .steps import check_step
from .strided import Layout, make
from .swizzle import Swizzle

_ANYWHERE = 2**62  # the extent of a layout that only adds an offset, to whatever place


class ComposedLayout(LayoutLike):
    """A layout that takes a coordinate through inner and then through outer.

    `compose` makes one where no strided layout exists: 12 banks under tiles that do not divide them, or a swizzle.

    >>> from tilewright import compose, Layout
    >>> R = compose(Layout((3, 5), (5, 1)), Layout(6, 2))
    >>> print(R)
    (3,5):(5,1) o 6:2
    >>> [R(i) for i in range(6)]
    [0, 10, 6, 2, 12, 8]
    """

    __slots__ = ("_inner", "_outer")
    _outer: Any
    _inner: LayoutLike

    def __init__(self, outer: LayoutLike | Swizzle, inner: LayoutLike) -> None:
        if not isinstance(outer, (LayoutLike, Swizzle)):
            raise TypeError(f"the outer function must be a layout or a Swizzle, got {type(outer).__name__} {outer!r}")
        if not isinstance(inner, LayoutLike):
            raise TypeError(f"the inner function must be a layout, got {type(inner).__name__} {inner!r}")
        if isinstance(outer, ComposedLayout):  # nested to the right always, so that equal things are equal
            inner = ComposedLayout(outer._inner, inner)
            outer = outer._outer
        self._outer = outer
        self._inner = inner

    @property
    def replicated(self) -> bool:
        return self._inner.replicated or (isinstance(self._outer, LayoutLike) and self._outer.replicated)

    @property
    def outer(self) -> Any:
        """Return the function applied last.

        >>> from tilewright import compose, Swizzle, row_major
        >>> compose(Swizzle(2, 0, 2), row_major(4, 4)).outer
        Swizzle(2, 0, 2)
        """
        return self._outer

    @property
    def inner(self) -> Any:
        """Return the function applied first; its domain is the domain of the whole.

        >>> from tilewright import compose, Swizzle, row_major
        >>> compose(Swizzle(2, 0, 2), row_major(4, 4)).inner
        Layout((4, 4), (4, 1))
        """
        return self._inner

    @property
    def shape(self) -> Any:
        return self._inner.shape

    @property
    def axes(self) -> tuple[str, ...]:
        """Return the names of the axes that places lie on.

        >>> from tilewright import bank, addr, compose, Layout
        >>> compose(Layout((12, 9), (1 @ bank, 64 @ addr)), Layout((5, 7), (7, 1))).axes
        ('bank', 'addr')
        """
        return getattr(self._outer, "axes", ())

    def on(self, axis: Axis | str) -> ComposedLayout:
        """Return the coordinate along one axis.

        >>> from tilewright import bank, addr, compose, Layout
        >>> compose(Layout((12, 9), (1 @ bank, 64 @ addr)), Layout((5, 7), (7, 1))).on(addr)(4, 1)
        128
        """
        return ComposedLayout(self._outer.on(axis), self._inner)

    def mode(self, *path: int) -> ComposedLayout:
        inner = self._inner.mode(*path)
        return ComposedLayout(self._outer, inner + self._inner.offset if isinstance(self._inner, Layout) else inner)

    @property
    def cosize(self) -> Any:
        """Return the size of the smallest buffer that holds every place and place 0.

        >>> from tilewright import compose, Swizzle, row_major
        >>> compose(Swizzle(2, 0, 2), row_major(4, 4)).cosize
        16
        """
        inner, outer = self._inner, self._outer
        if isinstance(outer, PagedLayout):
            whole = inner.size == outer.size
        else:
            whole = isinstance(outer, Swizzle) and inner.size % outer.size == 0
        if whole and isinstance(inner, Layout) and is_bijective(inner._with(guards=())):
            # inner only reorders, so every page, or every block that a swizzle maps to itself, is reached
            return outer.cosize if isinstance(outer, PagedLayout) else inner.cosize
        return bulk.cosize(self)

    def _place(self, at: list[Any]) -> Any:
        return self._through(self._inner._place(at))

    def _through(self, offset: Any) -> Any:
        """Return where outer takes an offset, or each of a set of offsets."""
        if isinstance(offset, frozenset):
            found = [self._outer.extended(one) for one in offset]
            return frozenset().union(*[one if isinstance(one, frozenset) else {one} for one in found])
        return self._outer.extended(offset)

    def _slice(self, coord: Any) -> ComposedLayout:
        return ComposedLayout(self._outer, self._inner._slice(coord))

    def extended(self, *coord: Any) -> Any:
        return self._through(self._inner.extended(*coord))

    def valid(self, *coord: Any) -> Any:
        inside = self._inner.valid(*coord)
        if inside is False:
            return False
        offset = self._inner.extended(*coord)
        if isinstance(offset, frozenset):
            return inside & all(self._outer.valid(one) for one in offset)
        return inside & self._outer.valid(offset)

    def _table(self) -> Any:
        return self._outer.extended(self._inner._table())

    def _valid_table(self) -> Any:
        inside = self._inner._valid_table()
        if isinstance(self._outer, Swizzle):
            return inside  # it leaves nothing out, and the table would be as large as the tensor
        outside = self._outer.valid(self._inner._table())
        if outside is True:
            return inside
        return outside if inside is None else inside & outside

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComposedLayout):
            return NotImplemented
        return bool(self._outer == other._outer and self._inner == other._inner)

    def __hash__(self) -> int:
        return hash((self._outer, self._inner))

    def __add__(self, step: Any) -> ComposedLayout:
        if isinstance(step, LayoutLike):
            return NotImplemented
        amount = check_step(step, "offset")
        if isinstance(self._outer, (Layout, PagedLayout)):
            return ComposedLayout(self._outer + amount, self._inner)
        # a swizzle has no offset of its own
        return ComposedLayout(make(_ANYWHERE, 1, amount), self) if amount else self

    __radd__ = __add__

    def __sub__(self, step: Any) -> ComposedLayout:
        return self.__add__(-check_step(step, "offset"))

    def __repr__(self) -> str:
        return f"ComposedLayout({self._outer!r}, {self._inner!r})"

    def __str__(self) -> str:
        return f"{self._outer} o {self._inner}"
