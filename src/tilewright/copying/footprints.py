# SPDX-License-Identifier: Apache-2.0
"""Footprints: exactly which bytes elements lie on. The left and the right half of a matrix reach across each other in
memory and have no byte in common."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..errors import TransferError
from ..formats import BlockFormat
from ..layout import Layout
from .placement import Placement

MOST_MODES = 32
"""Dimensions of an array in every version of NumPy."""

MOST_WORK: Any = 10_000  # to NumPy's stubs only 0 and -1 exist
"""Candidates to try before two footprints count as shared; nearly all need none."""


class Footprint(NamedTuple):
    """The bytes of elements of one size at regular steps: where the first begins, how many, and how far apart.

    >>> left, right = Footprint(0, (4, 4), (64, 8), 8), Footprint(32, (4, 4), (64, 8), 8)
    >>> left.meets(right), left.meets(Footprint(31, (1,), (1,), 1))
    (False, True)
    """

    first: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    itemsize: int

    def meets(self, other: Footprint) -> bool:
        """Return whether two footprints have a byte in common; True, too, where that is too hard to tell."""
        low, high = self._ends()
        other_low, other_high = other._ends()
        if max(low, other_low) >= min(high, other_high):
            return False
        if max(len(self.shape), len(other.shape)) > MOST_MODES:
            return True
        origin = 1 - min(low, other_low)  # NumPy only compares; but to it address 0 is none at all
        try:
            return bool(np.shares_memory(self._seen(origin), other._seen(origin), max_work=MOST_WORK))
        except np.exceptions.TooHardError:
            return True

    def _ends(self) -> tuple[int, int]:
        """Return the lowest byte and the end of the highest; the same where there are no elements."""
        if 0 in self.shape:
            return self.first, self.first
        reach = [(n - 1) * step for n, step in zip(self.shape, self.steps, strict=True)]
        low = self.first + sum([step for step in reach if step < 0])
        return low, self.first + sum([step for step in reach if step > 0]) + self.itemsize

    def _seen(self, origin: int) -> Any:
        """Return an array that lies so, and is never looked into."""
        described = {
            "data": (self.first + origin, True),
            "shape": self.shape,
            "strides": self.steps,
            "typestr": f"|V{self.itemsize}",
            "version": 3,
        }
        return np.asarray(SimpleNamespace(__array_interface__=described))


def dense(start: int, nbytes: int) -> Footprint:
    """Return the footprint of all bytes from one on.

    >>> dense(100, 8).meets(dense(107, 1)), dense(100, 8).meets(dense(108, 1))
    (True, False)
    """
    return Footprint(start, (nbytes,), (1,), 1)


def footprint_of(place: Placement, start: int) -> Footprint:
    """Return the bytes that a placement takes of a memory that starts at an address; all, if not at regular steps.

    >>> from tilewright import Layout
    >>> footprint_of(Placement(Layout((4, 8), (16, 1)), "float32"), 1000)
    Footprint(first=1000, shape=(4, 8), steps=(64, 4), itemsize=4)
    """
    if not isinstance(place.layout, Layout) or place.format.has_blocks:
        return dense(start, place.nbytes)
    extents, steps = place.layout.canonical_modes()
    size = place.itemsize
    pairs = [(int(n), int(step) * size) for n, step in zip(extents, steps, strict=True)]
    return Footprint(
        start + place.origin * size, tuple([n for n, _ in pairs]), tuple([step for _, step in pairs]), size
    )


def shared_memory() -> TransferError:
    """Return the error that a copy raises which would write where it reads.

    >>> str(shared_memory())[:30]
    'source and target share memory'
    """
    return TransferError(
        "source and target share memory, and a copy in place would read what it has written; copy the source first"
    )
