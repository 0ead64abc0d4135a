# SPDX-License-Identifier: Apache-2.0
"""Layouts given by tables: `PagedLayout`, pages that each have their own start, and `InverseLayout`, from places back.

A page table is a layout, too; so is the exact inverse of a layout that has no strided one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import CoordinateError, LayoutError
from . import evaluation
from .axes import Step
from .coordinate import leaf_coordinates
from .layout import Layout
from .layout_like import LayoutLike
from .tuples import Coordinate, IntArray, index_strides, leaves
from .validation import as_integer, is_array

_MAX_PRINTED = 6


class PagedLayout(LayoutLike):
    """A layout of pages with `page` consecutive places each; page k starts at `starts[k]`.

    It expresses what strides cannot: pages over banks in shuffled order, the blocks of a paged cache.

    >>> scattered = PagedLayout(4, [100, 0, 50])
    >>> scattered(5), scattered(1, 2), scattered.cosize
    (1, 51, 104)
    >>> from tilewright import compose, row_major
    >>> compose(scattered, row_major(3, 4))(2, 1)
    51
    """

    __slots__ = ("_page", "_starts")
    _page: int
    _starts: Any

    def __init__(self, page: int, starts: Iterable[int] | IntArray) -> None:
        size = as_integer(page, "the size of a page")
        if size < 1:
            raise LayoutError(f"the size of a page must be at least 1, got {size}")
        table = np.asarray(starts if hasattr(starts, "__array__") or not isinstance(starts, Iterable) else [*starts])
        if table.size and (table.dtype.kind not in "iu" or int(table.max()) >= 2**63):
            raise LayoutError(f"the starts of pages must be integers below 2^63, got {starts!r}")
        table = table.astype(np.int64).reshape(-1)
        table.flags.writeable = False
        self._page = int(size)
        self._starts = table

    @property
    def page(self) -> int:
        """Return the number of places in a page.

        >>> PagedLayout(4, [100, 0, 50]).page
        4
        """
        return self._page

    @property
    def starts(self) -> Any:
        """Return the place where each page starts, as a read-only array.

        >>> PagedLayout(4, [100, 0, 50]).starts.tolist()
        [100, 0, 50]
        """
        return self._starts

    @property
    def shape(self) -> tuple[int, int]:
        return (self._page, len(self._starts))

    @property
    def cosize(self) -> int:
        """Return the size of the smallest buffer that holds every page and place 0.

        >>> PagedLayout(4, [100, 0, 50]).cosize
        104
        """
        if not self.size:
            return 0
        lowest, highest = int(self._starts.min()), int(self._starts.max()) + self._page - 1
        return max(0, highest) + 1 - min(0, lowest)

    def mode(self, *path: int) -> Any:
        if not path:
            return self
        modes: tuple[Any, ...] = (Layout(self._page), PagedLayout(1, self._starts))
        k = as_integer(path[0], "a mode number")
        if not -2 <= k < 2:
            raise CoordinateError(f"{self} has no mode {k}: it has mode 0 (within a page) and mode 1 (the pages)")
        return modes[k].mode(*path[1:])

    def extended(self, *coord: Coordinate) -> Any:
        return self._place(leaf_coordinates(self._nest_coordinate(coord), self.shape))

    def _place(self, leaf_coords: list[Any]) -> Any:
        inside, page = leaf_coords
        place = self._starts[page] + inside
        return place if is_array(place) else int(place)

    def valid(self, *coord: Coordinate) -> Any:
        try:
            leaf_coords = leaf_coordinates(self._nest_coordinate(coord), self.shape)
        except IndexError:
            return evaluation.valid_coordinates(self, coord) if any(map(is_array, coord)) else False
        return evaluation.true_like(leaf_coords)

    def _slice(self, coord: Coordinate) -> Any:
        raise LayoutError(f"cannot slice {self} by {coord}; compose it with the layout of the slice instead")

    def _table(self) -> Any:
        return np.arange(self._page, dtype=np.int64)[:, None] + self._starts

    def _valid_table(self) -> Any:
        return None

    def __add__(self, step: Step) -> PagedLayout:
        return PagedLayout(self._page, self._starts + as_integer(step, "the offset"))

    __radd__ = __add__

    def __sub__(self, step: Step) -> PagedLayout:
        return self + -as_integer(step, "the offset")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PagedLayout):
            return NotImplemented
        return self._page == other._page and self._starts.tobytes() == other._starts.tobytes()

    def __hash__(self) -> int:
        ends = self._starts[[0, -1]].tolist() if len(self._starts) else []
        return hash(("pages", self._page, len(self._starts), *ends, int(self._starts.sum())))

    def __repr__(self) -> str:
        return f"PagedLayout({self._page}, {self._starts.tolist()})"

    def __str__(self) -> str:
        printed = [str(start) for start in self._starts[:_MAX_PRINTED]] + (
            ["..."] if len(self._starts) > _MAX_PRINTED else []
        )
        return f"pages({self._page},{len(self._starts)}):({','.join(printed)})"


class InverseLayout(LayoutLike):
    """The exact inverse of an injective `layout`: from a place to the index that lives there.

    Its arguments are places, negative ones too where the layout has them; unused places are not `valid`.

    >>> back = InverseLayout(Layout((2, 2), (2, 3)))
    >>> [back(x) for x in (0, 2, 3, 5)], back.valid(4)
    ([0, 1, 2, 3], False)
    """

    __slots__ = ("_layout", "_sorted")
    _layout: Any
    _sorted: tuple[Any, Any] | None

    def __init__(self, layout: LayoutLike) -> None:
        if not isinstance(layout, LayoutLike):
            raise TypeError(f"InverseLayout takes a layout, got {type(layout).__name__} {layout!r}")
        self._layout = layout
        self._sorted = None

    @property
    def layout(self) -> Any:
        """Return the layout that this is the inverse of.

        >>> InverseLayout(Layout((2, 2), (2, 3))).layout
        Layout((2, 2), (2, 3))
        """
        return self._layout

    @property
    def shape(self) -> Any:  # of a layout over named axes, a Place
        return self._layout.cosize

    @property
    def cosize(self) -> int:
        """Return the number of indices.

        >>> InverseLayout(Layout((2, 2), (2, 3))).cosize
        4
        """
        return int(self._layout.size)

    def mode(self, *path: int) -> InverseLayout:
        return self

    def __call__(self, *coord: Coordinate) -> Any:
        if len(coord) != 1:
            raise CoordinateError(f"{self} takes one place, got {len(coord)}: {coord}")
        place = coord[0]
        if place is None or place.__class__ is slice:
            return self
        index, used = self._find(place)
        if is_array(place):
            if not used.all():
                unused = int((~used).sum())
                raise CoordinateError(f"{unused} of {used.size} places are unused in {self._layout}; check valid(...)")
        elif not used:
            raise CoordinateError(f"place {place} is unused in {self._layout}; check valid({place}) first")
        return index

    def extended(self, *coord: Coordinate) -> Any:
        """Return the same as a call with `coord`: outside its domain an inverse has no values."""
        return self(*coord)

    def valid(self, *coord: Coordinate) -> Any:
        return self._find(coord[0])[1]

    def _find(self, place: Coordinate) -> tuple[Any, Any]:
        """Return (index, used) of a place, or of an array of places."""
        if not is_array(place):
            place = int(as_integer(place, "a place"))
            if isinstance(self._layout, Layout) and not self._layout.guards:
                index = find_index(self._layout, place)
                return index, index is not None
        if self._sorted is None:
            # padding has no place of its own: its place may be that of data
            data = [(places[valid], index[valid]) for index, places, valid in evaluation.chunks(self._layout)]
            empty = np.empty(0, np.int64)
            table, indices = (np.concatenate([empty, *column]) for column in zip(*data, strict=True))
            order = np.argsort(table, kind="stable")
            self._sorted = table[order], indices[order]
        places, order = self._sorted
        if not len(places):
            return (
                (np.zeros(np.shape(place), np.int64), np.zeros(np.shape(place), bool))
                if is_array(place)
                else (0, False)
            )
        position = np.clip(np.searchsorted(places, place), 0, len(places) - 1)
        used = places[position] == place
        return (order[position], used) if is_array(place) else (int(order[position]), bool(used))

    def _place(self, leaf_coords: list[Any]) -> Any:
        return self(leaf_coords[0])

    def _slice(self, coord: Coordinate) -> Any:
        return self

    def _places(self, index: IntArray) -> Any:
        return self._find(index)[0]

    def _table(self) -> Any:
        index, used = self._find(np.arange(self.shape))
        return np.where(used, index, -1)

    def _valid_table(self) -> Any:
        return self._find(np.arange(self.shape))[1]

    def __eq__(self, other: object) -> bool:
        return bool(self._layout == other._layout) if isinstance(other, InverseLayout) else NotImplemented

    def __hash__(self) -> int:
        return hash(("inverse", self._layout))

    def __repr__(self) -> str:
        return f"InverseLayout({self._layout!r})"

    def __str__(self) -> str:
        return f"inverse({self._layout})"


def find_index(layout: Layout, place: int) -> int | None:
    """Return an index that a strided layout maps to `place`; None if there is none.

    >>> find_index(Layout((4, 8), (1, 5)), 37), find_index(Layout((4, 8), (1, 5)), 4)
    (30, None)
    """
    index = leaves(index_strides(layout.shape))
    modes = [
        (d, n - 1, at) for n, d, at in zip(leaves(layout.shape), leaves(layout.stride), index, strict=True) if n != 1
    ]
    if any(count < 0 for _, count, _ in modes):
        return None
    modes = sorted([mode for mode in modes if mode[0]], key=lambda mode: -abs(mode[0]))
    low = [0] * (len(modes) + 1)
    high = [0] * (len(modes) + 1)
    for i in reversed(range(len(modes))):
        step, count, _ = modes[i]
        low[i] = low[i + 1] + min(0, step * count)
        high[i] = high[i + 1] + max(0, step * count)

    def search(i: int, rest: int) -> int | None:
        if i == len(modes):
            return 0 if rest == 0 else None
        step, count, at = modes[i]
        # the first coordinate with a rest that the smaller modes can still reach
        first = -((high[i + 1] - rest) // step) if step > 0 else -((rest - low[i + 1]) // -step)
        for c in range(max(0, first), count + 1):
            left = rest - c * step
            if not low[i + 1] <= left <= high[i + 1]:
                break
            rest_index = search(i + 1, left)
            if rest_index is not None:
                return int(rest_index + c * at)
        return None

    return search(0, place - layout.offset)
