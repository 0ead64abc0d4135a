# SPDX-License-Identifier: Apache-2.0
"""How the loops of a nest are distributed over threads, repeats and work-groups.

A work-group should read long runs of the source and write long runs of the target. One index order seldom gives both,
so a box of indices is grown factor by factor, always along the side with the shorter run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

SMALL_FACTORS = (2, 3, 5, 7)
MAX_PRIME_EXTENT = 16  # up to here an axis of prime extent is not split


@dataclass(frozen=True, slots=True)
class LoopAxis:
    """A loop: its extent, and its step in bytes on each side; a step of None comes from a table.

    >>> LoopAxis(16, (4, 64)).reach(1)
    960
    """

    extent: int
    steps: tuple[int | None, ...]

    def reach(self, side: int) -> int:
        """Return the distance in bytes from the first index to the last.

        >>> LoopAxis(3, (-8, None)).reach(0), LoopAxis(3, (-8, None)).reach(1)
        (16, 0)
        """
        return (self.extent - 1) * abs(self.steps[side] or 0)


@dataclass(frozen=True, slots=True)
class Digit:
    """A digit of the index of an axis: `count` values with a step of `radix` indices.

    >>> Digit(axis=0, count=4, radix=2)
    Digit(axis=0, count=4, radix=2)
    """

    axis: int
    count: int
    radix: int


class BoxGrowth:
    """A box that grows along the side with the shorter run; each call of `take` returns the next digits.

    `order` has the sides, `runs` their initial runs in bytes. Runs of the target should be `lean` times as long as
    those of the source.

    >>> axes = [LoopAxis(16, (4, 4)), LoopAxis(16, (512, 64)), LoopAxis(2, (64, 1024))]
    >>> growth = BoxGrowth(axes, order=(0, 1))
    >>> [(digit.axis, digit.count) for digit in growth.take(64)]
    [(0, 16), (2, 2), (1, 2)]
    """

    def __init__(
        self,
        axes: Sequence[LoopAxis],
        order: Sequence[int],
        runs: Sequence[int] | None = None,
        lean: int = 1,
    ) -> None:
        self.axes, self.lean = axes, lean
        self.sides = [_Side(axes, side, runs[side] if runs else 0) for side in order]
        self.taken = [1] * len(axes)
        self.left = [axis.extent for axis in axes]

    def take(self, limit: int) -> list[Digit]:
        """Return the next digits, with about `limit` combinations: less than twice as many.

        >>> growth = BoxGrowth([LoopAxis(37, (1, 1))], order=(0, 1))
        >>> growth.take(8), growth.left
        ([Digit(axis=0, count=8, radix=1)], [5])
        """
        digits: list[Digit] = []
        count = 1
        while count < limit:
            axis = self._next_axis()
            if axis is None:
                break
            factor = next_factor(self.left[axis])
            if count * factor >= 2 * limit:
                break
            append_digit(digits, Digit(axis, factor, self.taken[axis]))
            self.taken[axis] *= factor
            self.left[axis] = -(-self.left[axis] // factor)
            count *= factor
        return digits

    def rest(self) -> list[Digit]:
        """Return digits for the rest of all axes, in the order of the last side.

        >>> BoxGrowth([LoopAxis(5, (1, 7)), LoopAxis(7, (5, 1))], order=(0, 1)).rest()
        [Digit(axis=1, count=7, radix=1), Digit(axis=0, count=5, radix=1)]
        """
        order = self.sides[-1].order
        return [Digit(axis, self.left[axis], self.taken[axis]) for axis in order if self.left[axis] > 1]

    def _next_axis(self) -> int | None:
        candidates = [
            (side.run(self.taken) * (self.lean if side.side == 0 else 1), k)
            for k, side in enumerate(self.sides)
            if side.next_axis(self.left) is not None
        ]
        if not candidates:
            return None
        open_sides = [(run, k) for run, k in candidates if run]
        _, k = min(open_sides) if open_sides else candidates[-1]
        return self.sides[k].next_axis(self.left)


class _Side:
    """One side of a copy: its axes by increasing step, and the run of the box there."""

    def __init__(self, axes: Sequence[LoopAxis], side: int, initial_run: int) -> None:
        self.axes, self.side, self.initial_run = axes, side, initial_run
        steps = [axis.steps[side] for axis in axes]
        unit = min((abs(step) for step in steps if step), default=1)
        # Neighbouring entries of a table are mostly neighbours in memory: right after the axis with the smallest step.
        self.order = sorted(range(len(axes)), key=lambda k: (unit * 1.5 if steps[k] is None else abs(steps[k] or 0), k))
        self.order.sort(key=lambda k: steps[k] == 0)

    def next_axis(self, left: Sequence[int]) -> int | None:
        return next((axis for axis in self.order if left[axis] > 1), None)

    def run(self, taken: Sequence[int]) -> int:
        """Return the bytes of the run of the box on this side, or 0 if it cannot grow."""
        run = self.initial_run
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


def next_factor(count: int) -> int:
    """Return the factor to split an axis by: a small prime factor, all of a short axis, or 2 with a rest.

    >>> [next_factor(n) for n in (12, 9, 35, 11, 37)]
    [2, 3, 5, 11, 2]
    """
    for factor in SMALL_FACTORS:
        if count % factor == 0:
            return factor
    return count if count <= MAX_PRIME_EXTENT else 2


def append_digit(digits: list[Digit], digit: Digit) -> None:
    """Append a digit, merged with the previous one if it continues the same axis.

    >>> digits = [Digit(0, 2, 1)]
    >>> append_digit(digits, Digit(0, 2, 2))
    >>> digits
    [Digit(axis=0, count=4, radix=1)]
    """
    if digits and digits[-1].axis == digit.axis and digits[-1].radix * digits[-1].count == digit.radix:
        digits[-1] = Digit(digit.axis, digits[-1].count * digit.count, digits[-1].radix)
    else:
        digits.append(digit)


def digit_combinations(digits: Sequence[Digit]) -> int:
    """Return the number of combinations of the digits.

    >>> digit_combinations([Digit(0, 4, 1), Digit(1, 3, 1)])
    12
    """
    return prod(digit.count for digit in digits)
