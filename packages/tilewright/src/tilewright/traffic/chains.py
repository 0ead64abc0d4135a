# SPDX-License-Identifier: Apache-2.0
"""Arrays cut into runs: how long equal neighbours go on, and where the runs of a greedy cut begin."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ..memory.paging import Integers

Booleans: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


def run_lengths(continues: Booleans) -> Integers:
    """Return for each entry how many entries there are from it on to the end of its run.

    `continues[k]` says whether entry k + 1 belongs to the run of entry k; there is one entry more than these.

    >>> run_lengths(np.array([True, True, False, True])).tolist()
    [3, 2, 1, 2, 1]
    """
    ends = np.append(np.flatnonzero(~continues), len(continues))
    sizes = np.diff(ends, prepend=-1)
    return np.repeat(ends, sizes) - np.arange(len(continues) + 1, dtype=np.int64) + 1


def follow(following: Integers, starts: Integers) -> Integers:
    """Return all entries that are reached from `starts` by going from an entry k to `following[k]`, in order.

    An entry is followed by a later one, or by `len(following)`, which ends the chain; chains must not meet.

    >>> follow(np.array([2, 2, 3, 5, 5]), np.array([0])).tolist()
    [0, 2, 3]
    """
    count = len(following)
    jump = np.append(following, count)
    reached, frontier = starts, starts
    while frontier.size:  # twice as far each time
        frontier = jump[reached]
        frontier = frontier[frontier < count]
        reached = np.concatenate([reached, frontier])
        jump = jump[jump]
    return np.sort(reached)
