# SPDX-License-Identifier: Apache-2.0
"""The places that a layout uses: where they lie, the gaps between them, and which of them elements share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import LayoutError
from ..layout import LayoutLike, chunks
from ..tensor import View
from .accesses import Array, access_offsets

MAX_ELEMENTS = 1 << 20
"""The most elements of a layout whose places are listed."""


@dataclass(frozen=True, slots=True)
class FootprintReport:
    """The places that the `elements` of a layout use.

    `runs` are the intervals of consecutive places, (first, last) each; `sharing` says how many places have so many
    elements, as (elements, places) pairs; `shared` are the places with more than one.

    >>> report = FootprintReport(6, ((0, 1), (4, 4)), ((1, 1), (3, 1)), (4,))
    >>> print(report, report.gaps)
    6 elements in 3 places from 0 to 4, 2 holes, up to 3 elements in a place (2,)
    """

    elements: int
    runs: tuple[tuple[int, int], ...]
    sharing: tuple[tuple[int, int], ...]
    shared: tuple[int, ...]

    @property
    def places(self) -> int:
        """Return how many different places are used."""
        return sum([last - first + 1 for first, last in self.runs])

    @property
    def span(self) -> int:
        """Return how many places there are from the lowest to the highest one."""
        return self.runs[-1][1] - self.runs[0][0] + 1 if self.runs else 0

    @property
    def gaps(self) -> tuple[int, ...]:
        """Return how many places are free between each run and the next."""
        return tuple([after[0] - before[1] - 1 for before, after in zip(self.runs, self.runs[1:], strict=False)])

    @property
    def holes(self) -> int:
        """Return how many places between the lowest and the highest one are free."""
        return self.span - self.places

    @property
    def most_shared(self) -> int:
        """Return how many elements the place with the most has: 1 if none is shared."""
        return max([ways for ways, _ in self.sharing], default=0)

    def __str__(self) -> str:
        if not self.runs:
            return "no elements"
        where = f"{self.elements} elements in {self.places} places from {self.runs[0][0]} to {self.runs[-1][1]}"
        sharing = f", up to {self.most_shared} elements in a place" if self.shared else ""
        return f"{where}, {self.holes} holes{sharing}"


def footprint(layout: LayoutLike | View) -> FootprintReport:
    """Return which places a `layout`, or a tensor, uses; padding uses none.

    >>> from tilewright import Layout
    >>> print(footprint(Layout((4, 2), (2, 16))))
    8 elements in 8 places from 0 to 22, 15 holes
    >>> footprint(Layout((4, 2), (2, 16))).gaps
    (1, 1, 1, 9, 1, 1, 1)
    """
    places, valid = index_places(layout, "footprint")
    used, counts = np.unique(places[valid], return_counts=True)
    starts = np.flatnonzero(np.diff(used, prepend=used[:1] - 2) != 1)
    ends = np.append(starts[1:], len(used)) - 1
    ways, numbers = np.unique(counts, return_counts=True)
    return FootprintReport(
        int(counts.sum()),
        tuple(zip(used[starts].tolist(), used[ends].tolist(), strict=True)) if used.size else (),
        tuple(zip(ways.tolist(), numbers.tolist(), strict=True)),
        tuple(used[counts > 1].tolist()),
    )


def index_places(layout: LayoutLike | View, caller: str) -> tuple[Array, Array]:
    """Return the place of each index of a `layout`, or of a tensor's, and whether it is data; `caller` is for errors.

    >>> from tilewright import Layout
    >>> index_places(Layout((2, 2), (2, 1)), "this")[0].tolist()
    [0, 2, 1, 3]
    """
    function, base = (layout.layout, int(layout.offset)) if isinstance(layout, View) else (layout, 0)
    if not isinstance(function, LayoutLike):
        raise LayoutError(f"{caller}: expected a layout or a tensor, got {type(layout).__name__}")
    if function.size > MAX_ELEMENTS:
        raise LayoutError(f"{caller}: {function} has {function.size} elements; at most {MAX_ELEMENTS} are listed")
    if function.axes or function.is_replicated:
        raise LayoutError(f"{caller}: {function} has copies or maps to named axes; choose one with .project(axis)")
    parts = [(np.asarray(places), valid) for _, places, valid in chunks(function)]
    if not parts:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    return np.concatenate([places for places, _ in parts]) + base, np.concatenate([valid for _, valid in parts])


@dataclass(frozen=True, slots=True)
class ThreadStrides:
    """The steps from each thread to the next: `steps` has a row for each value of a thread.

    >>> strides = ThreadStrides(((1, 1, 1), (1, 5, 1)))
    >>> print(strides, strides.constant)
    steps of 1, 5 between neighbouring threads (1, None)
    """

    steps: tuple[tuple[int, ...], ...]

    @property
    def constant(self) -> tuple[int | None, ...]:
        """Return, for each value, the one step between all neighbours; None if they differ or there is one thread."""
        return tuple([row[0] if len(set(row)) == 1 else None for row in self.steps])

    @property
    def distinct(self) -> tuple[int, ...]:
        """Return the different steps, smallest first."""
        return tuple(sorted({step for row in self.steps for step in row}))

    @property
    def is_uniform(self) -> bool:
        """Return whether there is at most one step."""
        return len(self.distinct) < 2

    def __str__(self) -> str:
        if not self.distinct:
            return "one thread"
        steps = ", ".join(map(str, self.distinct))
        return f"{'a step' if self.is_uniform else 'steps'} of {steps} between neighbouring threads"


def thread_strides(memory: object, threads: object = None) -> ThreadStrides:
    """Return how far apart, in elements, neighbouring threads access memory; 0 means that they access the same.

    `memory` and `threads` are as for `bank_conflicts`: layouts, a tensor, or a table of offsets.

    >>> from tilewright import Layout
    >>> print(thread_strides(Layout((8, 2), (4, 1))))
    a step of 4 between neighbouring threads
    """
    places, touched = access_offsets(memory, threads, "thread_strides")
    if not touched.all():
        raise LayoutError("thread_strides: some elements are padding, which is not accessed; give those that are")
    return ThreadStrides(tuple([tuple(row) for row in np.diff(places, axis=0).T.tolist()]))
