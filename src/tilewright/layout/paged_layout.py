# SPDX-License-Identifier: Apache-2.0
"""`PagedLayout`: pages of consecutive places, each with its own start. A page table is a layout, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import CoordinateError, LayoutError
from . import tables
from .coordinate import Coordinate, leaf_coordinates
from .layout import Layout
from .layout_like import LayoutLike
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

    def __init__(self, page: int, starts: Any) -> None:
        import numpy as np

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
    def axes(self) -> tuple[str, ...]:
        """Return (): places are plain integers.

        >>> PagedLayout(4, [100, 0, 50]).axes
        ()
        """
        return ()

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
            return tables.valid_coordinates(self, coord) if any(map(is_array, coord)) else False
        return tables.true_like(leaf_coords)

    def _slice(self, coord: Coordinate) -> Any:
        raise LayoutError(f"cannot slice {self} by {coord}; compose it with the layout of the slice instead")

    def _table(self) -> Any:
        import numpy as np

        return np.arange(self._page, dtype=np.int64)[:, None] + self._starts

    def _valid_table(self) -> Any:
        return None

    def __add__(self, step: int) -> PagedLayout:
        return PagedLayout(self._page, self._starts + as_integer(step, "the offset"))

    __radd__ = __add__

    def __sub__(self, step: int) -> PagedLayout:
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
