# SPDX-License-Identifier: Apache-2.0
"""`ComposedLayout`: the composition of two functions that is not itself a strided layout, evaluated exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import evaluation
from .axes import Axis, Step, as_step
from .index_code import IndexExpression
from .layout import Layout, make_layout
from .layout_like import LayoutLike
from .properties import is_bijective
from .swizzle import Swizzle
from .table_layouts import PagedLayout
from .tuples import Coordinate

_UNBOUNDED = 2**62  # the extent of a layout that only adds an offset


class ComposedLayout(LayoutLike):
    """The composition of two functions: a coordinate goes through `inner`, its result through `outer`.

    `compose` returns one where no strided layout exists: 12 banks under tiles that do not divide them, or a swizzle.

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
        if isinstance(outer, ComposedLayout):  # always nested to the right, so that equal compositions compare equal
            inner = ComposedLayout(outer._inner, inner)
            outer = outer._outer
        self._outer = outer
        self._inner = inner

    @property
    def is_replicated(self) -> bool:
        return self._inner.is_replicated or (isinstance(self._outer, LayoutLike) and self._outer.is_replicated)

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
        """Return the function applied first; its shape is the shape of the composition.

        >>> from tilewright import compose, Swizzle, row_major
        >>> compose(Swizzle(2, 0, 2), row_major(4, 4)).inner
        Layout((4, 4), (4, 1))
        """
        return self._inner

    @property
    def shape(self) -> Any:  # a Shape; see Layout.shape
        return self._inner.shape

    @property
    def axes(self) -> tuple[str, ...]:
        """Return the names of the axes that places lie on.

        >>> from tilewright import bank, addr, compose, Layout
        >>> compose(Layout((12, 9), (1 @ bank, 64 @ addr)), Layout((5, 7), (7, 1))).axes
        ('bank', 'addr')
        """
        return getattr(self._outer, "axes", ())

    def project(self, axis: Axis | str) -> ComposedLayout:
        """Return the layout of the coordinates along one `axis`.

        >>> from tilewright import bank, addr, compose, Layout
        >>> compose(Layout((12, 9), (1 @ bank, 64 @ addr)), Layout((5, 7), (7, 1))).project(addr)(4, 1)
        128
        """
        return ComposedLayout(self._outer.project(axis), self._inner)

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
            covers_blocks = inner.size == outer.size
        else:
            covers_blocks = isinstance(outer, Swizzle) and inner.size % outer.size == 0
        if covers_blocks and isinstance(inner, Layout) and is_bijective(inner._with(guards=())):
            # inner only reorders, so every page, or every block that a swizzle maps to itself, is reached
            return outer.cosize if isinstance(outer, PagedLayout) else inner.cosize
        return evaluation.cosize_from_table(self)

    def __call__(self, *coord: Coordinate) -> Any:
        for c in coord:
            if c.__class__ is not int:
                return super().__call__(*coord)
        return self._apply_outer(self._inner(*coord))

    def _place(self, leaf_coords: list[Any]) -> Any:
        return self._apply_outer(self._inner._place(leaf_coords))

    def _apply_outer(self, offset: Any) -> Any:
        """Return the outer function of an offset, or of each of a set of offsets."""
        if isinstance(offset, frozenset):
            places = [self._outer.extended(element) for element in offset]
            return frozenset().union(*[place if isinstance(place, frozenset) else {place} for place in places])
        return self._outer.extended(offset)

    def _slice(self, coord: Coordinate) -> ComposedLayout:
        return ComposedLayout(self._outer, self._inner._slice(coord))

    def extended(self, *coord: Coordinate) -> Any:
        return self._apply_outer(self._inner.extended(*coord))

    def valid(self, *coord: Coordinate) -> Any:
        inside = self._inner.valid(*coord)
        if inside is False:
            return False
        offset = self._inner.extended(*coord)
        if isinstance(offset, frozenset):
            return inside & all(self._outer.valid(element) for element in offset)
        return inside & self._outer.valid(offset)

    def _table(self) -> Any:
        return self._outer.extended(self._inner._table())

    def _valid_table(self) -> Any:
        inside = self._inner._valid_table()
        if isinstance(self._outer, Swizzle):
            return inside  # every offset is valid for a swizzle, and a table of True would be large
        outer_valid = self._outer.valid(self._inner._table())
        if outer_valid is True:
            return inside
        return outer_valid if inside is None else inside & outer_valid

    def _has_padding(self) -> bool:
        if not self._inner._has_padding() and not self._outer._has_padding():
            return False
        mask = self._valid_table()  # the inner layout may never reach the padding of the outer one
        return mask is not None and not mask.all()

    def index_expression(self, arguments: tuple[IndexExpression, ...]) -> IndexExpression:
        """Return the offset as an expression of the coordinates, `arguments`.

        >>> ring = ComposedLayout(Layout((3, 5), (5, 1)), Layout(6, 2))
        >>> print(ring.index_expression((IndexExpression.argument("i"),)))
        i * 2 % 3 * 5 + i * 2 / 3
        """
        expression: IndexExpression = self._outer.index_expression((self._inner.index_expression(arguments),))
        return expression

    def _offset_bounds(self) -> tuple[int, int]:
        low, high = self._inner._offset_bounds()
        if isinstance(self._outer, LayoutLike):
            outer_low, outer_high = self._outer._offset_bounds()
            return min(low, outer_low), max(high, outer_high)
        return low, max(high, self._outer.size)

    def _restructure(self, change: Callable[[Any, Any], Any], caller: str) -> ComposedLayout:
        return ComposedLayout(self._outer, self._inner._restructure(change, caller))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComposedLayout):
            return NotImplemented
        return bool(self._outer == other._outer and self._inner == other._inner)

    def __hash__(self) -> int:
        return hash((self._outer, self._inner))

    def __add__(self, step: Step) -> ComposedLayout:
        if isinstance(step, LayoutLike):
            return NotImplemented
        amount = as_step(step, "offset")
        if isinstance(self._outer, (Layout, PagedLayout)):
            return ComposedLayout(self._outer + amount, self._inner)
        # a swizzle has no offset, so the sum is a composition with a shift
        return ComposedLayout(make_layout(_UNBOUNDED, 1, amount), self) if amount else self

    __radd__ = __add__

    def __sub__(self, step: Step) -> ComposedLayout:
        return self.__add__(-as_step(step, "offset"))

    def __repr__(self) -> str:
        return f"ComposedLayout({self._outer!r}, {self._inner!r})"

    def __str__(self) -> str:
        return f"{self._outer} o {self._inner}"
