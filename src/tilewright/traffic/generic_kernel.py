# SPDX-License-Identifier: Apache-2.0
"""The reads of the generic reshard kernel: its list of pages, compressed to ranges, divided between two RISCs.

The runtime lists for each target core, page by page, where the page comes from, and compresses the list to ranges of
runs with a stride. A range begins wherever the one before ended, and where it ends depends only on where it begins: so
all ranges that could begin are computed at once, and those that do begin are found by following them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..memory.paging import Integers
from .chains import Booleans, follow, run_lengths
from .noc import NocMap
from .page_moves import PageMoves
from .requests import Requests

LONGEST_RUN_2024 = 2  # pages; the runtime of December 2024 never joined more


@dataclass(frozen=True, slots=True, eq=False)
class PageLists:
    """The entries of all target cores, core after core: where each page comes from.

    `begins` marks the first entry of a core, `gap` an entry with holes before it; `slot` is the number of the page on
    its source core.
    """

    moves: PageMoves
    begins: Booleans
    gap: Booleans
    slot: Integers

    @classmethod
    def of(cls, moves: PageMoves, source_base: int, target_base: int, strides: tuple[int, int]) -> PageLists:
        """Return the lists of pages `strides` bytes apart on their source and target cores."""
        entries = moves.by_target()
        index = (entries.target_address - target_base) // strides[1]
        begins = np.append(True, entries.target[1:] != entries.target[:-1])[: len(entries)]
        gap = np.where(begins, index > 0, np.diff(index, prepend=0) > 1)
        return cls(entries, begins, gap, (entries.source_address - source_base) // strides[0])


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """The ranges of a list of pages: the first entry, the pages of a run, the number of runs, and their RISC.

    `per_list` is the number of ranges of each list, ranges that only skip holes included.
    """

    first: Integers
    size: Integers
    runs: Integers
    on_second: Booleans
    per_list: Integers


def find_ranges(lists: PageLists, noc: NocMap, longest: int | None) -> Ranges:
    """Return the ranges of `lists`, with runs of at most `longest` pages."""
    source, slot = lists.moves.source, lists.slot
    count = len(source)
    joined = ~(lists.begins | lists.gap)[1:]  # whether an entry directly follows the one before it
    same_core = source[1:] == source[:-1]
    length = run_lengths(joined & same_core & (np.diff(slot) == 1))
    size = length if longest is None else np.minimum(length, longest)

    # the entry after the first run, and whether a second run of the same size begins there, a stride away
    start = np.arange(count, dtype=np.int64)
    after = np.minimum(start + size, count - 1)
    is_next = (start + size < count) & np.append(joined, False)[after - 1] if count > 1 else np.zeros(count, bool)
    x, y = noc.cores[source, 0], noc.cores[source, 1]
    in_core = (source[after] == source) & (slot[after] > slot)
    over_cores = (source[after] != source) & (x[after] >= x) & (y[after] >= y) & (slot[after] == slot)
    has_second = is_next & (in_core | over_cores) & (length[after] >= size)

    # over cores, single pages go on for as long as the step between cores is the same
    steps = np.stack([np.diff(x), np.diff(y), np.diff(slot), joined], axis=1)
    alike = run_lengths((steps[1:] == steps[:-1]).all(axis=1)) if count > 1 else np.zeros(0, np.int64)
    many = np.append(alike, 0) + 1
    runs = np.where(has_second, np.where(over_cores & (size == 1), many, 2), 1)

    first = follow(start + runs * size, np.zeros(min(count, 1), dtype=np.int64))
    # holes make ranges of their own, which only skip
    list_of = np.cumsum(lists.begins)[first] - 1
    number = np.arange(len(first)) + np.cumsum(lists.gap)[first]
    firsts = np.flatnonzero(np.append(True, np.diff(list_of) > 0)[: len(first)])
    rank = number - (number - lists.gap[first])[firsts][list_of]
    per_list = np.maximum.reduceat(rank, firsts) + 1 if count else np.zeros(0, np.int64)
    on_second = rank >= -(-per_list // 2)[list_of]
    return Ranges(first, size[first], runs[first], on_second, per_list)


def generic_requests(
    moves: PageMoves, noc: NocMap, bases: tuple[int, int], strides: tuple[int, int], longest: int | None
) -> tuple[Requests, Integers]:
    """Return the reads of the generic kernel, and the number of ranges of each RISC.

    `bases` and `strides` are the addresses of the buffers and the distances of their pages, at the source and at the
    target; `longest` limits the pages of a run.
    """
    if not len(moves):
        return Requests.none(noc), np.zeros(0, dtype=np.int64)
    lists = PageLists.of(moves, *bases, strides)
    ranges = find_ranges(lists, noc, longest)
    entries = lists.moves
    of_range = np.repeat(np.arange(len(ranges.first)), ranges.runs)
    run = np.arange(len(of_range)) - np.repeat(np.cumsum(ranges.runs) - ranges.runs, ranges.runs)
    entry = ranges.first[of_range] + run * ranges.size[of_range]
    cores = entries.target[lists.begins]
    owner = 2 * (np.cumsum(lists.begins)[entry] - 1) + ranges.on_second[of_range]
    is_last = np.append(owner[1:] != owner[:-1], True)
    used = np.bincount(owner, minlength=2 * len(cores)) > 0
    risc = np.tile(np.arange(2, dtype=np.int64), len(cores))
    requests = Requests(
        noc,
        np.repeat(cores, 2),
        risc,
        risc,
        np.zeros(2 * len(cores), dtype=bool),
        np.where(used, 0, 1),  # a RISC without ranges waits all the same
        owner,
        entries.source[entry],
        entries.source_address[entry],
        entries.target_address[entry],
        ranges.size[of_range] * entries.nbytes[entry],
        is_last.astype(np.int64),
    )
    halves = np.stack([-(-ranges.per_list // 2), ranges.per_list // 2], axis=1).reshape(-1)
    return requests, halves
