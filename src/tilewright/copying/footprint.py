# SPDX-License-Identifier: Apache-2.0
"""`Footprint`: exactly which bytes elements occupy. The address ranges of the left and the right half of a matrix
overlap, but they have no byte in common."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..errors import TransferError
from ..layout import Layout
from .placement import Placement

MAX_MODES = 32  # dimensions of an array in every version of NumPy
MAX_WORK: Any = 10_000  # candidates NumPy tries before it gives up; its stubs know only 0 and -1


class Footprint(NamedTuple):
    """The bytes of elements of one size at regular steps: the first address, the shape, and the steps in bytes.

    >>> left, right = Footprint(0, (4, 4), (64, 8), 8), Footprint(32, (4, 4), (64, 8), 8)
    >>> left.overlaps(right), left.overlaps(Footprint(31, (1,), (1,), 1))
    (False, True)
    """

    first: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    itemsize: int

    def overlaps(self, other: Footprint) -> bool:
        """Return whether two footprints have a byte in common; also True if that is too hard to decide."""
        low, high = self._range()
        other_low, other_high = other._range()
        if max(low, other_low) >= min(high, other_high):
            return False
        if max(len(self.shape), len(other.shape)) > MAX_MODES:
            return True
        origin = 1 - min(low, other_low)  # NumPy only compares addresses, but must not see address 0
        try:
            return bool(np.shares_memory(self._as_array(origin), other._as_array(origin), max_work=MAX_WORK))
        except np.exceptions.TooHardError:
            return True

    def _range(self) -> tuple[int, int]:
        """Return the lowest address and one past the highest; both are equal if there are no elements."""
        if 0 in self.shape:
            return self.first, self.first
        reach = [(n - 1) * step for n, step in zip(self.shape, self.steps, strict=True)]
        low = self.first + sum([step for step in reach if step < 0])
        return low, self.first + sum([step for step in reach if step > 0]) + self.itemsize

    def _as_array(self, origin: int) -> Any:
        """Return an array with these addresses that is never read."""
        interface = {
            "data": (self.first + origin, True),
            "shape": self.shape,
            "strides": self.steps,
            "typestr": f"|V{self.itemsize}",
            "version": 3,
        }
        return np.asarray(SimpleNamespace(__array_interface__=interface))


def dense_footprint(start: int, nbytes: int) -> Footprint:
    """Return the footprint of `nbytes` bytes from address `start` on.

    >>> (
    ...     dense_footprint(100, 8).overlaps(dense_footprint(107, 1)),
    ...     dense_footprint(100, 8).overlaps(dense_footprint(108, 1)),
    ... )
    (True, False)
    """
    return Footprint(start, (nbytes,), (1,), 1)


def footprint_of(place: Placement, start: int) -> Footprint:
    """Return the bytes that a placement occupies in memory from address `start` on; all bytes if it is not strided.

    >>> from tilewright import Layout
    >>> footprint_of(Placement(Layout((4, 8), (16, 1)), "float32"), 1000)
    Footprint(first=1000, shape=(4, 8), steps=(64, 4), itemsize=4)
    """
    if not isinstance(place.layout, Layout) or place.format.has_blocks:
        return dense_footprint(start, place.nbytes)
    extents, steps = place.layout.canonical_modes()
    size = place.itemsize
    pairs = [(int(n), int(step) * size) for n, step in zip(extents, steps, strict=True)]
    return Footprint(
        start + place.origin * size, tuple([n for n, _ in pairs]), tuple([step for _, step in pairs]), size
    )


def overlap_error() -> TransferError:
    """Return the error for a copy with overlapping source and target.

    >>> str(overlap_error())[:30]
    'source and target share memory'
    """
    return TransferError(
        "source and target share memory, so the copy would overwrite data it has yet to read; copy the source first"
    )
