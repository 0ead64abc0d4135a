# SPDX-License-Identifier: Apache-2.0
"""`PagedLayout`: pages of neighbours, each of which starts anywhere. A page table is a layout, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import CoordinateError, LayoutError
from . import bulk
from .base import LayoutLike
from .coords import is_array, leaf_coordinates
from .integers import as_integer
from .strided import Layout

_SHOWN = 6


class PagedLayout(LayoutLike):
    """A layout whose index runs through pages of `page` neighbours each; page k starts at `starts[k]`.

    It is what strides cannot say: pages over banks in a shuffled order, the blocks of a paged cache.

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
            raise LayoutError(f"a page of {size} elements holds nothing; use at least 1")
        given = np.asarray(starts if hasattr(starts, "__array__") or not isinstance(starts, Iterable) else [*starts])
        if given.size and (given.dtype.kind not in "iu" or int(given.max()) >= 2**63):
            raise LayoutError(f"pages start at whole places below 2^63, got {starts!r}")
        table = given.astype(np.int64).reshape(-1)
        table.flags.writeable = False
        self._page = int(size)
        self._starts = table

    @property
    def page(self) -> int:
        """Return the number of neighbours in a page.

        >>> PagedLayout(4, [100, 0, 50]).page
        4
        """
        return self._page

    @property
    def starts(self) -> Any:
        """Return where each page starts, as an array that cannot be written to.

        >>> PagedLayout(4, [100, 0, 50]).starts.tolist()
        [100, 0, 50]
        """
        return self._starts

    @property
    def shape(self) -> Any:
        return (self._page, len(self._starts))

    @property
    def axes(self) -> tuple[str, ...]:
        """Return no axes: places are plain integers.

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
        whole: tuple[Any, ...] = (Layout(self._page), PagedLayout(1, self._starts))
        k = as_integer(path[0], "a mode number")
        if not -2 <= k < 2:
            raise CoordinateError(f"{self} has no mode {k}: it has modes 0 and 1, inside a page and the pages")
        return whole[k].mode(*path[1:])

    def extended(self, *coord: Any) -> Any:
        return self._place(leaf_coordinates(self._coordinate(coord), self.shape))

    def _place(self, at: list[Any]) -> Any:
        inside, page = at
        place = self._starts[page] + inside
        return place if is_array(place) else int(place)

    def valid(self, *coord: Any) -> Any:
        try:
            at = leaf_coordinates(self._coordinate(coord), self.shape)
        except IndexError:
            return bulk.inside(self, coord) if any(map(is_array, coord)) else False
        return bulk.all_true(at)

    def _slice(self, coord: Any) -> Any:
        raise LayoutError(f"{self} cannot be sliced by {coord}; compose it with the layout of the slice instead")

    def _table(self) -> Any:
        import numpy as np

        return np.arange(self._page, dtype=np.int64)[:, None] + self._starts

    def _valid_table(self) -> Any:
        return None

    def __add__(self, step: int) -> PagedLayout:
        return PagedLayout(self._page, self._starts + as_integer(step, "an offset"))

    __radd__ = __add__

    def __sub__(self, step: int) -> PagedLayout:
        return self + -as_integer(step, "an offset")

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
        shown = [str(start) for start in self._starts[:_SHOWN]] + (["..."] if len(self._starts) > _SHOWN else [])
        return f"pages({self._page},{len(self._starts)}):({','.join(shown)})"
