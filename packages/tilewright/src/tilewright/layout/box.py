# SPDX-License-Identifier: Apache-2.0
"""`Box`: a range of coordinates along every axis of an array, which may extend beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod


@dataclass(frozen=True, slots=True)
class Box:
    """A box of coordinates: its start `offset`, which may be negative, and its `shape`, the extent along each axis.

    >>> Box((-1, 4), (3, 4)).end
    (2, 8)
    """

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def between(cls, offset: tuple[int, ...], end: tuple[int, ...]) -> Box:
        """Return the box from `offset` up to, not including, `end`.

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
        """Return the part of the box inside an array of shape `space`, which may be empty.

        >>> Box((-1, 4), (3, 4)).within((10, 6))
        Box(offset=(0, 4), shape=(2, 2))
        """
        low = tuple([min(max(start, 0), n) for start, n in zip(self.offset, space, strict=True)])
        high = [min(max(end, 0), n) for end, n in zip(self.end, space, strict=True)]
        return Box(low, tuple([b - a for a, b in zip(low, high, strict=True)]))

    def relative_to(self, offset: tuple[int, ...]) -> Box:
        """Return the same box relative to the start `offset`.

        >>> Box((5, 4), (3, 4)).relative_to((4, 4))
        Box(offset=(1, 0), shape=(3, 4))
        """
        return Box(tuple([a - b for a, b in zip(self.offset, offset, strict=True)]), self.shape)

    def intersection(self, other: Box) -> Box:
        """Return the common part of this box and `other`, which may be empty.

        >>> Box((0, 0), (4, 4)).intersection(Box((2, 3), (4, 4)))
        Box(offset=(2, 3), shape=(2, 1))
        """
        return Box.between(tuple(map(max, self.offset, other.offset)), tuple(map(min, self.end, other.end)))

    def permute(self, order: tuple[int, ...]) -> Box:
        """Return the box with its axes in another `order`, as `numpy.transpose` has it.

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


def largest_slab(shape: tuple[int, ...], units: Sequence[int], fits: Callable[[list[int]], bool]) -> tuple[int, ...]:
    """Return the extents of the largest slab of an array that `fits`, cut from the outermost axis inwards.

    Extents are multiples of `units`, or those of the array; if even one unit per axis does not fit, that is returned.

    >>> largest_slab((100, 64), (32, 32), lambda extents: prod(extents) <= 5000)
    (64, 64)
    """
    extents = [max(1, n) for n in shape]
    for d, unit in enumerate(units):
        if fits(extents):
            break
        low, high = 1, -(-extents[d] // unit)  # in units: the largest number that fits, at least one
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits([*extents[:d], middle * unit, *extents[d + 1 :]]) else (low, middle - 1)
        extents[d] = min(low * unit, extents[d])
    return tuple(extents)


def cut_into_slabs(shape: tuple[int, ...], extents: tuple[int, ...]) -> Iterator[Box]:
    """Yield boxes of these extents that cover an array in row-major order; those at its end may be smaller.

    >>> [slab.shape for slab in cut_into_slabs((100, 64), (64, 64))]
    [(64, 64), (36, 64)]
    """
    for start in product(*[range(0, max(1, n), step) for n, step in zip(shape, extents, strict=True)]):
        yield Box(start, tuple([min(step, n - at) for at, step, n in zip(start, extents, shape, strict=True)]))
