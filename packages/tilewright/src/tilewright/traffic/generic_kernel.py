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
WORDS_PER_RANGE = 3  # of runtime arguments
WORDS_PER_BLOCK, WORDS_PER_FOLDED = 2, 5  # of a block of folded ranges, and of each range of its pattern


@dataclass(frozen=True, slots=True, eq=False)
class PageLists:
    """The entries of all target cores, core after core: where each page comes from.

    `begins` marks the first entry of a core, and `holes` counts the holes before an entry; `slot` is the number of the
    page on its source core.

    >>> from tilewright import TensorSpec, block_sharded, height_sharded
    >>> from tilewright.traffic.page_moves import page_moves
    >>> spec = TensorSpec((64, 64), page_layout="tile", memory=block_sharded((2, 2)), chip="n150")
    >>> moves = page_moves(spec, spec.with_memory(height_sharded((2, 1))))
    >>> PageLists.of(moves, 0, 0, (2048, 2048)).begins.tolist()
    [True, False, True, False]
    """

    moves: PageMoves
    begins: Booleans
    holes: Integers
    slot: Integers

    @property
    def gap(self) -> Booleans:
        """Return which entries have holes before them.

        >>> none = np.zeros(0, dtype=np.int64)
        >>> PageLists(PageMoves(*[none] * 6), none > 0, none, none).gap.tolist()
        []
        """
        return self.holes > 0

    @classmethod
    def of(cls, moves: PageMoves, source_base: int, target_base: int, strides: tuple[int, int]) -> PageLists:
        """Return the lists of pages `strides` bytes apart on their source and target cores.

        >>> one = np.zeros(1, dtype=np.int64)
        >>> PageLists.of(PageMoves(one, one, one, one + 4096, one + 2048, one), 0, 0, (2048, 2048)).holes.tolist()
        [2]
        """
        entries = moves.by_target()
        index = (entries.target_address - target_base) // strides[1]
        begins = np.append(True, entries.target[1:] != entries.target[:-1])[: len(entries)]
        holes = np.where(begins, index, np.diff(index, prepend=0) - 1)
        return cls(entries, begins, holes, (entries.source_address - source_base) // strides[0])


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """The ranges of lists of pages, those that only skip holes included, in order.

    Of each range: its list (`list_of`), the first entry, the pages of a run (`size`), the number of `runs` (0 if it
    only skips), the step from a run to the next (`core_step`: x and y, `slot_step`), and where it begins (`place`: x, y
    and slot).

    >>> Ranges(*[np.zeros(0, dtype=np.int64)] * 7).runs.tolist()
    []
    """

    list_of: Integers
    first: Integers
    size: Integers
    runs: Integers
    core_step: Integers
    slot_step: Integers
    place: Integers


def find_ranges(lists: PageLists, noc: NocMap, longest: int | None) -> Ranges:
    """Return the ranges of `lists`, with runs of at most `longest` pages.

    >>> from tilewright import TensorSpec, block_sharded, height_sharded
    >>> from tilewright.traffic.page_moves import page_moves
    >>> spec = TensorSpec((64, 64), page_layout="tile", memory=block_sharded((2, 2)), chip="n150")
    >>> moves = page_moves(spec, spec.with_memory(height_sharded((2, 1))))
    >>> ranges = find_ranges(PageLists.of(moves, 0, 0, (2048, 2048)), NocMap.of("n150"), None)
    >>> ranges.runs.tolist(), ranges.core_step.tolist()
    ([2, 2], [[1, 0], [1, 0]])
    """
    source, slot = lists.moves.source, lists.slot
    count = len(source)
    joined = ~(lists.begins | lists.gap)[1:]  # whether an entry directly follows the one before it
    length = run_lengths(joined & (source[1:] == source[:-1]) & (np.diff(slot) == 1))
    size = length if longest is None else np.minimum(length, longest)

    # the entry after the first run, and whether a second run of the same size begins there, a stride away
    start = np.arange(count, dtype=np.int64)
    after = np.minimum(start + size, count - 1)
    is_next = (start + size < count) & np.append(joined, False)[after - 1]
    x, y = noc.cores[source, 0], noc.cores[source, 1]
    in_core = is_next & (source[after] == source) & (slot[after] > slot)
    over_cores = is_next & (source[after] != source) & (x[after] >= x) & (y[after] >= y) & (slot[after] == slot)
    has_second = (in_core | over_cores) & (length[after] >= size)

    # over cores, single pages go on for as long as the step between cores is the same
    steps = np.stack([np.diff(x), np.diff(y), np.diff(slot), joined], axis=1)
    alike = run_lengths((steps[1:] == steps[:-1]).all(axis=1)) if count > 1 else np.zeros(0, np.int64)
    many = np.append(alike, 0) + 1
    runs = np.where(has_second, np.where(over_cores & (size == 1), many, 2), 1)

    first = follow(start + runs * size, np.zeros(1, dtype=np.int64))
    then = after[first]
    ranges = Ranges(
        np.cumsum(lists.begins)[first] - 1,
        first,
        size[first],
        runs[first],
        np.where(over_cores[first], [x[then] - x[first], y[then] - y[first]], 0).T,
        np.where(in_core[first], slot[then] - slot[first] - size[first], 0),
        np.stack([x[first], y[first], slot[first]], axis=1),
    )
    return _with_skips(ranges, lists) if lists.gap.any() else ranges


def _with_skips(ranges: Ranges, lists: PageLists) -> Ranges:
    """Return the ranges with one more, which only skips, before each that begins after holes."""
    holes = np.flatnonzero(lists.gap[ranges.first])
    parts = {name: np.insert(getattr(ranges, name), holes, 0, axis=0) for name in ("runs", "core_step", "slot_step")}
    for name in ("list_of", "first", "size", "place"):
        values = getattr(ranges, name)
        parts[name] = np.insert(values, holes, values[holes], axis=0)
    at = holes + np.arange(len(holes))  # where the new ones are
    parts["size"][at] = lists.holes[ranges.first[holes]]
    parts["place"][at] = 0
    return Ranges(**parts)


def divide(list_of: Integers, lists: int) -> tuple[Booleans, Integers]:
    """Return which parts of lists go to the second RISC: all but the first half, rounded up; and how many each has.

    >>> second, counts = divide(np.array([0, 0, 0, 1]), 2)
    >>> second.tolist(), counts.tolist()
    ([False, False, True, False], [2, 1, 1, 0])
    """
    total = np.bincount(list_of, minlength=lists)
    rank = np.arange(len(list_of)) - (np.cumsum(total) - total)[list_of]
    half = -(-total // 2)
    return rank >= half[list_of], np.stack([half, total - half], axis=1).reshape(-1)


def generic_requests(
    moves: PageMoves, noc: NocMap, bases: tuple[int, int], strides: tuple[int, int], longest: int | None, folds: bool
) -> tuple[Requests, Integers]:
    """Return the reads of the generic kernel, and the words of arguments for the ranges of each RISC.

    `bases` and `strides` are the addresses of the buffers and the distances of their pages, at the source and at the
    target; `longest` limits the pages of a run. With `folds`, repeated patterns of ranges are folded to blocks.

    >>> from tilewright import TensorSpec, block_sharded, height_sharded
    >>> from tilewright.traffic.page_moves import page_moves
    >>> spec = TensorSpec((64, 64), page_layout="tile", memory=block_sharded((2, 2)), chip="n150")
    >>> moves = page_moves(spec, spec.with_memory(height_sharded((2, 1))))
    >>> requests, words = generic_requests(moves, NocMap.of("n150"), (0, 0), (2048, 2048), None, folds=False)
    >>> requests.counts.tolist(), words.tolist()
    ([2, 0, 2, 0], [3, 0, 3, 0])
    """
    if not len(moves):
        return Requests.none(noc), np.zeros(0, dtype=np.int64)
    lists = PageLists.of(moves, *bases, strides)
    ranges = find_ranges(lists, noc, longest)
    cores = lists.moves.target[lists.begins]
    if folds:
        on_second, words = divide_blocks(ranges, len(cores))
    else:
        on_second, counts = divide(ranges.list_of, len(cores))
        words = WORDS_PER_RANGE * counts
    entries = lists.moves
    of_range = np.repeat(np.arange(len(ranges.first)), ranges.runs)
    run = np.arange(len(of_range)) - np.repeat(np.cumsum(ranges.runs) - ranges.runs, ranges.runs)
    entry = ranges.first[of_range] + run * ranges.size[of_range]
    owner = 2 * ranges.list_of[of_range] + on_second[of_range]
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
    return requests, words


def divide_blocks(ranges: Ranges, lists: int) -> tuple[Booleans, Integers]:
    """Return which ranges go to the second RISC if lists are folded to blocks, and the words of arguments per RISC.

    >>> two = np.zeros((2, 2), dtype=np.int64)
    >>> ranges = Ranges(two[0], two[0], two[0] + 1, two[0] + 1, two, two[0], np.array([[0, 0, 0], [0, 0, 4]]))
    >>> [part.tolist() for part in divide_blocks(ranges, 1)]
    [[False, False], [7, 0]]
    """
    shape = np.column_stack([ranges.size, ranges.runs, ranges.core_step, ranges.slot_step])
    kind = np.unique(shape, axis=0, return_inverse=True)[1].reshape(-1)
    ends = np.searchsorted(ranges.list_of, np.arange(lists + 1))
    folded: dict[bytes, list[tuple[int, int]]] = {}  # most cores have the same pattern, from another place on
    on_second = np.zeros(len(kind), dtype=bool)
    words = np.zeros(2 * lists, dtype=np.int64)
    for number in range(lists):
        here = slice(ends[number], ends[number + 1])
        place = ranges.place[here]
        key = kind[here].tobytes() + np.diff(place, axis=0).tobytes()
        blocks = folded.get(key)
        if blocks is None:
            blocks = folded[key] = fold_ranges(kind[here], place)
        half = -(-len(blocks) // 2)
        first = sum(pattern * repeats for pattern, repeats in blocks[:half])
        on_second[ends[number] + first : ends[number + 1]] = True
        for risc, part in enumerate((blocks[:half], blocks[half:])):
            words[2 * number + risc] = sum(WORDS_PER_BLOCK + WORDS_PER_FOLDED * pattern for pattern, _ in part)
    return on_second, words


def fold_ranges(kind: Integers, place: Integers) -> list[tuple[int, int]]:
    """Return blocks (ranges of a pattern, repeats) of a list: each time the pattern that covers most ranges.

    A pattern is repeated if ranges of the same `kind` follow, each the same step away from the `place` before.

    >>> fold_ranges(np.array([0, 1, 0, 1, 2]), np.array([[0, 0, k] for k in (0, 10, 1, 11, 5)]))
    [(2, 2), (1, 1)]
    """
    blocks: list[tuple[int, int]] = []
    at, count = 0, len(kind)
    while at < count:
        left, pattern, repeats = count - at, 1, 1
        for size in range(1, left // 2 + 1):
            same = kind[at + size :] == kind[at : count - size]
            times = 1 + _true_prefix(same) // size
            if times < 2:
                continue
            step = place[at + size :] - place[at : count - size]
            times = min(times, 2 + _true_prefix((step[size:] == step[:-size]).all(axis=1)) // size)
            if size * times > (pattern * repeats if repeats > 1 else 0):
                pattern, repeats = size, times
            if pattern * repeats == left:
                break
        blocks.append((pattern, repeats))
        at += pattern * repeats
    return blocks


def _true_prefix(flags: Booleans) -> int:
    """Return how many flags are true from the start on."""
    return int(flags.argmin()) if len(flags) and not flags.all() else len(flags)
