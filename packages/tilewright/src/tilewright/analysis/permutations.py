# SPDX-License-Identifier: Apache-2.0
"""Layouts whose places are consecutive, as permutations of their indices."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np

from ..errors import LayoutError
from ..layout import LayoutLike
from .footprints import index_places

_MOST = 8  # cycles, and elements of a cycle, that text shows


@dataclass(frozen=True, slots=True)
class Permutation:
    """A permutation as its `cycles`: each leads from an index to its place, and from there on, until it closes.

    A cycle begins with its smallest index, and cycles are in the order of these. `start` is the place of index 0 of the
    permutation, which is not 0 if strides are negative or the layout has an offset.

    >>> swap = Permutation(((0,), (1, 2), (3,)))
    >>> print(swap, swap.parity)
    (1 2), 2 fixed points, order 2 -1
    """

    cycles: tuple[tuple[int, ...], ...]
    start: int = 0

    @property
    def size(self) -> int:
        """Return how many indices are permuted."""
        return sum(map(len, self.cycles))

    @property
    def fixed_points(self) -> tuple[int, ...]:
        """Return the indices that stay where they are."""
        return tuple([cycle[0] for cycle in self.cycles if len(cycle) == 1])

    @property
    def order(self) -> int:
        """Return how often the permutation has to be applied until everything is back in its place."""
        return lcm(*map(len, self.cycles))

    @property
    def parity(self) -> int:
        """Return 1 for an even permutation, one that takes an even number of swaps, and -1 for an odd one."""
        return -1 if (self.size - len(self.cycles)) % 2 else 1

    def __str__(self) -> str:
        moved = [cycle for cycle in self.cycles if len(cycle) > 1]
        text = "".join([_format_cycle(cycle) for cycle in moved[:_MOST]]) or "identity"
        more = f" and {len(moved) - _MOST} more cycles" if len(moved) > _MOST else ""
        fixed = len(self.fixed_points)
        return f"{text}{more}, {fixed} fixed point{'s' * (fixed != 1)}, order {self.order}"


def _format_cycle(cycle: tuple[int, ...]) -> str:
    return f"({' '.join(map(str, cycle[:_MOST]))}{' ...' * (len(cycle) > _MOST)})"


def permutation(layout: LayoutLike) -> Permutation:
    """Return the permutation of indices that a `layout` with consecutive places is; places count from the lowest.

    >>> from tilewright import Layout
    >>> print(permutation(Layout((2, 2), (2, 1))))  # a transpose
    (1 2), 2 fixed points, order 2
    >>> permutation(Layout(4, -1)).cycles
    ((0, 3), (1, 2))
    """
    places, valid = index_places(layout, "permutation")
    if not valid.all():
        raise LayoutError(f"permutation of {layout}: it is padded; permute the data first, then pad")
    start = int(places.min()) if places.size else 0
    if len(np.unique(places)) != places.size:
        raise LayoutError(f"permutation of {layout}: it is not injective, some indices share a place")
    if places.size and int(places.max()) - start != places.size - 1:
        raise LayoutError(f"permutation of {layout}: its places are not a dense interval; there are gaps between them")
    return Permutation(_cycles((places - start).tolist()), start)


def _cycles(images: list[int]) -> tuple[tuple[int, ...], ...]:
    cycles = []
    seen = bytearray(len(images))
    for first in range(len(images)):
        if not seen[first]:
            cycle, index = [], first
            while not seen[index]:
                seen[index] = 1
                cycle.append(index)
                index = images[index]
            cycles.append(tuple(cycle))
    return tuple(cycles)
