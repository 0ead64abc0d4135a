# SPDX-License-Identifier: Apache-2.0
"""`LayoutLike`: what every layout offers, strided or not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import LayoutError
from ..showing import Shown
from . import bulk
from .coords import coordinates, is_slice, leaf_coordinates
from .integers import Count
from .tuples import as_tree, leaves, like, product, tree_depth


class LayoutLike(Shown):
    """What every layout offers: a shape, and a place for each of its coordinates.

    >>> from tilewright import row_major
    >>> isinstance(row_major(4, 8), LayoutLike)
    True
    """

    __slots__ = ()

    @property
    def shape(self) -> Any:
        """Return the shape of the domain.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).shape
        (4, (2, 3))
        """
        raise NotImplementedError

    @property
    def axes(self) -> tuple[str, ...]:
        """Return the names of the axes that places lie on; none when places are plain integers.

        >>> from tilewright import Layout
        >>> Layout((4, 8)).axes
        ()
        """
        raise NotImplementedError

    @property
    def replicated(self) -> bool:
        """Return whether places are sets, with a place for each copy of an element.

        >>> from tilewright import Layout, replicate
        >>> replicate(Layout(4), 2, 100).replicated, Layout(4).replicated
        (True, False)
        """
        return False

    @property
    def cosize(self) -> Any:
        """Return the size of the smallest buffer that holds every place and place 0; over named axes, of each axis.

        >>> from tilewright import Layout
        >>> Layout((4, 8), (1, 5)).cosize, Layout(4, -1).cosize
        (39, 4)
        """
        raise NotImplementedError

    def extended(self, *coord: Any) -> Any:
        """Return the place of a coordinate, continued past the edge of the domain.

        The outermost mode of the coalesced layout goes on without end; below 0 the function is odd, as in CuTe.

        >>> from tilewright import Layout
        >>> Layout((4, 3), (3, 1)).extended(12), Layout((4, 3), (3, 1)).extended(-1)
        (3, -3)
        """
        raise NotImplementedError

    def valid(self, *coord: Any) -> Any:
        """Return whether a coordinate is inside the shape and is data rather than padding.

        >>> from tilewright import Layout
        >>> Layout((4, 8)).valid(3, 7), Layout((4, 8)).valid(4, 0)
        (True, False)
        """
        raise NotImplementedError

    def mode(self, *path: int) -> Any:
        """Return one mode as a layout, all other coordinates at 0; further numbers lead into nested modes.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3)), (6, (3, 1))).mode(1), Layout((4, (2, 3)), (6, (3, 1))).mode(1, 0)
        (Layout((2, 3), (3, 1)), Layout(2, 3))
        """
        raise NotImplementedError

    def _place(self, at: list[Any]) -> Any:
        """Return the place of a coordinate given leaf by leaf, known to be in range."""
        raise NotImplementedError

    def _slice(self, coord: Any) -> Any:
        """Return the layout over the modes that coord keeps, with the offset of those that it fixes."""
        raise NotImplementedError

    def _places(self, index: Any) -> Any:
        """Return the places of an array of indices, anything where they are no data."""
        return self(index)

    def _table(self) -> Any:
        """Return the place of every coordinate as an array with one dimension a mode, or a Place of arrays."""
        raise NotImplementedError

    def _valid_table(self) -> Any:
        """Return which coordinates are data as an array with one dimension a mode; None when all are."""
        raise NotImplementedError

    @property
    def size(self) -> Count:
        """Return the number of coordinates.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).size
        24
        """
        return Count(product(self.shape))

    @property
    def rank(self) -> int:
        """Return the number of top-level modes.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).rank, Layout(4).rank
        (2, 1)
        """
        shape = self.shape
        return len(shape) if shape.__class__ is tuple else 1

    @property
    def depth(self) -> int:
        """Return how deep the shape nests.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).depth, Layout(4).depth
        (2, 0)
        """
        return tree_depth(self.shape)

    @property
    def flat_rank(self) -> int:
        """Return the number of leaves.

        >>> from tilewright import Layout
        >>> Layout((4, (2, 3))).flat_rank
        3
        """
        return len(leaves(self.shape))

    def __call__(self, *coord: Any) -> Any:
        at = self._coordinate(coord)
        return self._slice(at) if is_slice(at) else self._place(leaf_coordinates(at, self.shape))

    def _coordinate(self, coord: tuple[Any, ...]) -> Any:
        """Return the arguments of a call as one coordinate that nests like the shape, or less deep."""
        at = as_tree(coord[0]) if len(coord) == 1 else as_tree(coord)
        shape = self.shape
        if at.__class__ is tuple and shape.__class__ is tuple and len(at) != len(shape):
            flat = leaves(shape)
            if len(at) != len(flat) or any(part.__class__ is tuple for part in at):
                counts = {1, len(shape), len(flat)}
                raise LayoutError(
                    f"coordinate {at} of rank {len(at)} does not fit shape {shape}, which takes {_either(counts)}"
                    " entries: an index, one entry a mode, or one a leaf"
                )
            return like(shape, iter(at))
        return at

    def __getitem__(self, key: Any) -> Any:
        """Return mode `key` for an integer, as in CuTe; slice for a tuple that holds `:`, as in NumPy.

        >>> from tilewright import Layout
        >>> Layout((4, 8))[1], Layout((4, 8))[:, 3]
        (Layout(8, 4), Layout((4,), (1,), offset=12))
        """
        if key.__class__ is tuple and is_slice(key):
            return self(*key)
        if key.__class__ is tuple:
            raise LayoutError(f"[{key}] is ambiguous: write L{key} for an offset, L.mode{key} for a nested mode")
        if key is Ellipsis or key.__class__ is slice:
            return self(None if key is Ellipsis else key)
        return self.mode(key)

    def locate(self, *coord: Any) -> tuple[Any, Any]:
        """Return (place, valid): where a coordinate lives, and whether it is data rather than padding.

        >>> from tilewright import Layout, logical_divide
        >>> tiles = logical_divide(Layout(100), 32)
        >>> tiles.locate(3, 3), tiles.locate(4, 3)
        ((99, True), (100, False))
        """
        valid = self.valid(*coord)
        return (self.extended(*coord) if valid is False else self(*coord)), valid

    def offsets(self, fill: Any = None, dtype: Any = None) -> Any:
        """Return the place of every coordinate as a NumPy array with one dimension per mode.

        With fill, coordinates that are padding get that value. A layout over named axes gives a `Place` of arrays.

        >>> from tilewright import Layout
        >>> Layout((2, 3), (3, 1)).offsets().tolist()
        [[0, 1, 2], [3, 4, 5]]
        """
        return bulk.offsets(self, fill, dtype)

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return coordinates(self.shape)


def _either(counts: set[int]) -> str:
    *most, last = sorted(counts)
    return f"{', '.join(map(str, most))} or {last}" if most else str(last)


def require_layout(value: Any, who: str) -> Any:
    """Return value if it is a layout, else raise a TypeError that names the function.

    >>> from tilewright import Layout
    >>> require_layout(Layout(4), "coalesce")
    Layout(4, 1)
    """
    if not isinstance(value, LayoutLike):
        raise TypeError(f"{who} takes a layout, got {type(value).__name__} {value!r}")
    return value
