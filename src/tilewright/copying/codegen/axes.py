# SPDX-License-Identifier: Apache-2.0
"""Loops of a nest as axes, and how they are dealt to the threads and repeats of a work-group, and to work-groups.

A work-group should read long runs of the source and write long runs of the target, and one index order seldom gives
both. So a box of indices is grown factor by factor, always along the side whose run is still the shorter one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

SMALL_FACTORS = (2, 3, 5, 7)
LONGEST_ODD_AXIS = 16  # up to here an axis of prime length is taken whole rather than cut with a guard


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop: its extent, and its step in bytes in each memory; a step of None is looked up in a table.

    >>> Axis(16, (4, 64)).reach(1)
    960
    """

    extent: int
    steps: tuple[int | None, ...]

    def reach(self, side: int) -> int:
        """Return the bytes from the first index to the last.

        >>> Axis(3, (-8, None)).reach(0), Axis(3, (-8, None)).reach(1)
        (16, 0)
        """
        return (self.extent - 1) * abs(self.steps[side] or 0)


@dataclass(frozen=True, slots=True)
class Digit:
    """A nest of the index of an axis: `count` values, each worth `radix` indices.

    >>> Digit(axis=0, count=4, radix=2)
    Digit(axis=0, count=4, radix=2)
    """

    axis: int
    count: int
    radix: int


class Growth:
    """A box that is grown along whichever of its sides has the shorter run; each call of `take` gives the next digits.

    Runs of the target may be given preference: they shall be `lean` times as long as those of the source.

    >>> axes = [Axis(16, (4, 4)), Axis(16, (512, 64)), Axis(2, (64, 1024))]
    >>> growth = Growth(axes, order=(0, 1))
    >>> [(digit.axis, digit.count) for digit in growth.take(64)]
    [(0, 16), (2, 2), (1, 2)]
    """

    def __init__(
        self,
        axes: Sequence[Axis],
        order: Sequence[int],
        runs: Sequence[int] | None = None,
        lean: int = 1,
        large_first: bool = False,
    ) -> None:
        self.axes, self.lean, self.large_first = axes, lean, large_first
        self.sides = [_Side(axes, side, runs[side] if runs else 0) for side in order]
        self.taken = [1] * len(axes)
        self.left = [axis.extent for axis in axes]

    def take(self, limit: int) -> list[Digit]:
        """Return digits of which there are about `limit` combinations: never twice as many, fewer at the end.

        >>> growth = Growth([Axis(37, (1, 1))], order=(0, 1))
        >>> growth.take(8), growth.left
        ([Digit(axis=0, count=8, radix=1)], [5])
        """
        digits: list[Digit] = []
        count = 1
        while count < limit:
            axis = self._next()
            if axis is None:
                break
            factor = next_factor(self.left[axis], self.large_first)
            if count * factor >= 2 * limit:
                break
            append(digits, Digit(axis, factor, self.taken[axis]))
            self.taken[axis] *= factor
            self.left[axis] = -(-self.left[axis] // factor)
            count *= factor
        return digits

    def rest(self) -> list[Digit]:
        """Return all that is left, in the order of the last side.

        >>> Growth([Axis(5, (1, 7)), Axis(7, (5, 1))], order=(0, 1)).rest()
        [Digit(axis=1, count=7, radix=1), Digit(axis=0, count=5, radix=1)]
        """
        order = self.sides[-1].order
        return [Digit(axis, self.left[axis], self.taken[axis]) for axis in order if self.left[axis] > 1]

    def _next(self) -> int | None:
        candidates = [
            (side.run(self.taken) * (self.lean if side.side == 0 else 1), k)
            for k, side in enumerate(self.sides)
            if side.next(self.left) is not None
        ]
        if not candidates:
            return None
        open_sides = [(run, k) for run, k in candidates if run]
        _, k = min(open_sides) if open_sides else candidates[-1]
        return self.sides[k].next(self.left)


class _Side:
    """One memory: its axes from the smallest step to the largest, and how long a run the box has there."""

    def __init__(self, axes: Sequence[Axis], side: int, start: int) -> None:
        self.axes, self.side, self.start = axes, side, start
        steps = [axis.steps[side] for axis in axes]
        unit = min((abs(step) for step in steps if step), default=1)
        # Neighbours in a table are mostly neighbours in memory: right after the loop with the smallest step.
        self.order = sorted(range(len(axes)), key=lambda k: (unit * 1.5 if steps[k] is None else abs(steps[k] or 0), k))
        self.order.sort(key=lambda k: steps[k] == 0)

    def next(self, left: Sequence[int]) -> int | None:
        return next((axis for axis in self.order if left[axis] > 1), None)

    def run(self, taken: Sequence[int]) -> int:
        """Return the bytes of the run that the box has here, or 0 if it cannot be made longer."""
        run = self.start
        for axis in self.order:
            step = self.axes[axis].steps[self.side]
            if not run:
                run = abs(step or 0)
            if not step or abs(step) != run:
                return 0
            run *= taken[axis]
            if taken[axis] < self.axes[axis].extent:
                return run
        return 0


def next_factor(count: int, large_first: bool = False) -> int:
    """Return by how much to cut an axis: a small factor, all of a short axis, or 2 with a nest left over.

    >>> [next_factor(n) for n in (12, 9, 35, 11, 37)], next_factor(40, large_first=True)
    ([2, 3, 5, 11, 2], 5)
    """
    for factor in reversed(SMALL_FACTORS) if large_first else SMALL_FACTORS:
        if count % factor == 0:
            return factor
    return count if count <= LONGEST_ODD_AXIS else 2


def append(digits: list[Digit], digit: Digit) -> None:
    """Append a digit, in one piece with the one before where that is the same axis.

    >>> digits = [Digit(0, 2, 1)]
    >>> append(digits, Digit(0, 2, 2))
    >>> digits
    [Digit(axis=0, count=4, radix=1)]
    """
    if digits and digits[-1].axis == digit.axis and digits[-1].radix * digits[-1].count == digit.radix:
        digits[-1] = Digit(digit.axis, digits[-1].count * digit.count, digits[-1].radix)
    else:
        digits.append(digit)


def combinations(digits: Sequence[Digit]) -> int:
    """Return how many values the digits take together.

    >>> combinations([Digit(0, 4, 1), Digit(1, 3, 1)])
    12
    """
    return prod(digit.count for digit in digits)
