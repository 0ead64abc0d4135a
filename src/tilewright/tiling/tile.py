# SPDX-License-Identifier: Apache-2.0
"""`Tile`: a box of a space, which may reach beyond it; and how plain numbers become extents, one an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import index
from typing import Any

from ..errors import LayoutError


@dataclass(frozen=True, slots=True)
class Tile:
    """A box of a space: where it starts, which may be outside, and how far it goes along each axis.

    >>> Tile((-1, 4), (3, 4)).end
    (2, 8)
    """

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def end(self) -> tuple[int, ...]:
        """Return the first coordinate beyond the tile, along each axis.

        >>> Tile((2, 0), (3, 5)).end
        (5, 5)
        """
        return tuple([start + n for start, n in zip(self.offset, self.shape, strict=True)])

    @property
    def size(self) -> int:
        """Return the number of elements.

        >>> Tile((2, 0), (3, 5)).size
        15
        """
        return prod(self.shape)

    @property
    def empty(self) -> bool:
        """Return whether the tile holds nothing.

        >>> Tile((0, 0), (5, 0)).empty
        True
        """
        return 0 in self.shape

    @property
    def slices(self) -> tuple[slice, ...]:
        """Return the tile as an index of an array; only for a tile that starts inside.

        >>> Tile((2, 0), (3, 5)).slices
        (slice(2, 5, None), slice(0, 5, None))
        """
        return tuple([slice(start, start + n) for start, n in zip(self.offset, self.shape, strict=True)])

    def within(self, space: tuple[int, ...]) -> Tile:
        """Return the part of the tile that lies inside a space; empty where there is none.

        >>> Tile((-1, 4), (3, 4)).within((10, 6))
        Tile(offset=(0, 4), shape=(2, 2))
        """
        low = tuple([min(max(start, 0), n) for start, n in zip(self.offset, space, strict=True)])
        high = [min(max(end, 0), n) for end, n in zip(self.end, space, strict=True)]
        return Tile(low, tuple([b - a for a, b in zip(low, high, strict=True)]))

    def relative_to(self, offset: tuple[int, ...]) -> Tile:
        """Return the same box, counted from another start.

        >>> Tile((5, 4), (3, 4)).relative_to((4, 4))
        Tile(offset=(1, 0), shape=(3, 4))
        """
        return Tile(tuple([a - b for a, b in zip(self.offset, offset, strict=True)]), self.shape)

    def __str__(self) -> str:
        return "[" + ", ".join([f"{a}:{a + n}" for a, n in zip(self.offset, self.shape, strict=True)]) + "]"


def empty_tile(rank: int) -> Tile:
    """Return the tile that holds nothing: what an id out of range gives.

    >>> empty_tile(2)
    Tile(offset=(0, 0), shape=(0, 0))
    """
    return Tile((0,) * rank, (0,) * rank)


def extents(value: Any, what: str, rank: int | None = None) -> tuple[int, ...]:
    """Return a number for each axis: a sequence as it is, or one number for all of them.

    >>> extents(2, "overlap", 3), extents([4, 5], "space")
    ((2, 2, 2), (4, 5))
    """
    numbers = value if isinstance(value, Sequence) and not isinstance(value, str) else None
    try:
        found = (index(value),) * (rank or 1) if numbers is None else tuple([index(n) for n in numbers])
    except TypeError:
        raise LayoutError(f"{what} is {value!r}; give an integer, or one integer for each axis") from None
    if rank is not None and len(found) != rank:
        raise LayoutError(f"{what} {found} has {len(found)} axes, but the space has {rank}; give one number an axis")
    return found
