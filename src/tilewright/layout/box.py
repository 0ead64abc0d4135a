# SPDX-License-Identifier: Apache-2.0
"""`Box`: a range of coordinates along every axis of an array, which may extend beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True, slots=True)
class Box:
    """A box of coordinates: its start, which may be negative, and its extent along each axis.

    >>> Box((-1, 4), (3, 4)).end
    (2, 8)
    """

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def between(cls, offset: tuple[int, ...], end: tuple[int, ...]) -> Box:
        """Return the box from one coordinate up to, not including, another.

        >>> Box.between((2, 0), (5, 5))
        Box(offset=(2, 0), shape=(3, 5))
        """
        return cls(offset, tuple([max(0, b - a) for a, b in zip(offset, end, strict=True)]))

    @property
    def end(self) -> tuple[int, ...]:
        """Return the first coordinate beyond the box, along each axis.

        >>> Box((2, 0), (3, 5)).end
        (5, 5)
        """
        return tuple([start + n for start, n in zip(self.offset, self.shape, strict=True)])

    @property
    def size(self) -> int:
        """Return the number of elements.

        >>> Box((2, 0), (3, 5)).size
        15
        """
        return prod(self.shape)

    @property
    def empty(self) -> bool:
        """Return whether the box has no elements.

        >>> Box((0, 0), (5, 0)).empty
        True
        """
        return 0 in self.shape

    @property
    def slices(self) -> tuple[slice, ...]:
        """Return the box as an index of an array; only for a box that starts inside.

        >>> Box((2, 0), (3, 5)).slices
        (slice(2, 5, None), slice(0, 5, None))
        """
        return tuple([slice(start, start + n) for start, n in zip(self.offset, self.shape, strict=True)])

    def within(self, space: tuple[int, ...]) -> Box:
        """Return the part of the box inside an array of that shape, which may be empty.

        >>> Box((-1, 4), (3, 4)).within((10, 6))
        Box(offset=(0, 4), shape=(2, 2))
        """
        low = tuple([min(max(start, 0), n) for start, n in zip(self.offset, space, strict=True)])
        high = [min(max(end, 0), n) for end, n in zip(self.end, space, strict=True)]
        return Box(low, tuple([b - a for a, b in zip(low, high, strict=True)]))

    def relative_to(self, offset: tuple[int, ...]) -> Box:
        """Return the same box relative to another start.

        >>> Box((5, 4), (3, 4)).relative_to((4, 4))
        Box(offset=(1, 0), shape=(3, 4))
        """
        return Box(tuple([a - b for a, b in zip(self.offset, offset, strict=True)]), self.shape)

    def intersection(self, other: Box) -> Box:
        """Return the common part of two boxes, which may be empty.

        >>> Box((0, 0), (4, 4)).intersection(Box((2, 3), (4, 4)))
        Box(offset=(2, 3), shape=(2, 1))
        """
        return Box.between(tuple(map(max, self.offset, other.offset)), tuple(map(min, self.end, other.end)))

    def permute(self, order: tuple[int, ...]) -> Box:
        """Return the box with its axes in another order, as `numpy.transpose` has it.

        >>> Box((2, 3), (5, 9)).permute((1, 0))
        Box(offset=(3, 2), shape=(9, 5))
        """
        return Box(tuple([self.offset[axis] for axis in order]), tuple([self.shape[axis] for axis in order]))

    def __str__(self) -> str:
        return "[" + ", ".join([f"{a}:{a + n}" for a, n in zip(self.offset, self.shape, strict=True)]) + "]"


def empty_box(rank: int) -> Box:
    """Return an empty box of that rank.

    >>> empty_box(2)
    Box(offset=(0, 0), shape=(0, 0))
    """
    return Box((0,) * rank, (0,) * rank)
