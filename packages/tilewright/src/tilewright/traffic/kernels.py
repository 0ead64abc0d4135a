# SPDX-License-Identifier: Apache-2.0
"""The kernels that move pages: which RISC of which core reads or writes which pages, in which order, and its barriers.

The order of interleaved-to-sharded and of the generic reshard (`generic_kernel`) was recorded on a card; the others
follow the kernels' source. Each function takes a `KernelInput` and returns the requests with the number of words of
runtime arguments of each RISC.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from .._integers import round_up
from ..memory import (
    CoreCoord,
    CoreRangeSet,
    Integers,
    ShardOrientation,
    TensorMemoryLayout,
    TensorSpec,
    first_cores,
)
from .dram_workers import dram_workers
from .moves import Booleans, PageMoves, Requests, follow, has_equal_pages, page_moves, run_lengths
from .noc import NocMap

# The reads of the generic reshard kernel: its list of pages, compressed to ranges, divided between two RISCs.

MAX_RUN_2024 = 2  # pages; the runtime of December 2024 never joined more
WORDS_PER_RANGE = 3  # of runtime arguments
WORDS_PER_BLOCK, WORDS_PER_FOLDED = 2, 5  # of a block of folded ranges, and of each range of its pattern


@dataclass(frozen=True, slots=True, eq=False)
class PageLists:
    """The entries of all target cores, core after core: where each page comes from.

    `begins` marks the first entry of a core, and `holes` counts the holes before an entry; `slot` is the number of the
    page on its source core.

    >>> from tilewright import TensorSpec, block_sharded, height_sharded
    >>> from tilewright.traffic.moves import page_moves
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
        """A mask of the entries with holes before them.

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
    only skips), the step from a run to the next (`core_step`: x and y, `slot_step`), and where it begins (`origin`: x,
    y and slot).

    >>> Ranges(*[np.zeros(0, dtype=np.int64)] * 7).runs.tolist()
    []
    """

    list_of: Integers
    first: Integers
    size: Integers
    runs: Integers
    core_step: Integers
    slot_step: Integers
    origin: Integers


def find_ranges(lists: PageLists, noc: NocMap, longest: int | None) -> Ranges:
    """Return the ranges of `lists`, with runs of at most `longest` pages.

    >>> from tilewright import TensorSpec, block_sharded, height_sharded
    >>> from tilewright.traffic.moves import page_moves
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

    # over cores, single pages form one range while the step between cores stays the same
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
    for name in ("list_of", "first", "size", "origin"):
        values = getattr(ranges, name)
        parts[name] = np.insert(values, holes, values[holes], axis=0)
    at = holes + np.arange(len(holes))  # where the new ones are
    parts["size"][at] = lists.holes[ranges.first[holes]]
    parts["origin"][at] = 0
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
    >>> from tilewright.traffic.moves import page_moves
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
    # a RISC without ranges waits all the same
    of_riscs = (np.repeat(cores, 2), risc, risc, np.zeros(2 * len(cores), dtype=bool), np.where(used, 0, 1))
    reads = (entries.source[entry], entries.source_address[entry], entries.target_address[entry])
    nbytes, barriers = ranges.size[of_range] * entries.nbytes[entry], is_last.astype(np.int64)
    return Requests(noc, *of_riscs, owner, *reads, nbytes, barriers), words


def divide_blocks(ranges: Ranges, lists: int) -> tuple[Booleans, Integers]:
    """Return which ranges go to the second RISC if lists are folded to blocks, and the words of arguments per RISC.

    >>> two = np.zeros((2, 2), dtype=np.int64)
    >>> ranges = Ranges(two[0], two[0], two[0] + 1, two[0] + 1, two, two[0], np.array([[0, 0, 0], [0, 0, 4]]))
    >>> [part.tolist() for part in divide_blocks(ranges, 1)]
    [[False, False], [7, 0]]
    """
    shape = np.column_stack([ranges.size, ranges.runs, ranges.core_step, ranges.slot_step])
    form = np.unique(shape, axis=0, return_inverse=True)[1].reshape(-1)
    ends = np.searchsorted(ranges.list_of, np.arange(lists + 1))
    folded: dict[bytes, list[tuple[int, int]]] = {}  # most cores have the same pattern, from another origin on
    on_second = np.zeros(len(form), dtype=bool)
    words = np.zeros(2 * lists, dtype=np.int64)
    for number in range(lists):
        here = slice(ends[number], ends[number + 1])
        origin = ranges.origin[here]
        key = form[here].tobytes() + np.diff(origin, axis=0).tobytes()
        blocks = folded.get(key)
        if blocks is None:
            blocks = folded[key] = fold_ranges(form[here], origin)
        half = -(-len(blocks) // 2)
        first = sum(pattern * repeats for pattern, repeats in blocks[:half])
        on_second[ends[number] + first : ends[number + 1]] = True
        for risc, part in enumerate((blocks[:half], blocks[half:])):
            words[2 * number + risc] = sum(WORDS_PER_BLOCK + WORDS_PER_FOLDED * pattern for pattern, _ in part)
    return on_second, words


def fold_ranges(form: Integers, origin: Integers) -> list[tuple[int, int]]:
    """Return blocks (ranges of a pattern, repeats) of a list: each time the pattern that covers most ranges.

    A pattern is repeated if ranges of the same `form` follow, each the same step away from the `origin` before.

    >>> fold_ranges(np.array([0, 1, 0, 1, 2]), np.array([[0, 0, k] for k in (0, 10, 1, 11, 5)]))
    [(2, 2), (1, 1)]
    """
    blocks: list[tuple[int, int]] = []
    at, count = 0, len(form)
    while at < count:
        left, pattern, repeats = count - at, 1, 1
        for size in range(1, left // 2 + 1):
            same = form[at + size :] == form[at : count - size]
            times = 1 + _true_prefix(same) // size
            if times < 2:
                continue
            step = origin[at + size :] - origin[at : count - size]
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


NCRISC, BRISC = 0, 1
_READS_UNDER_WAY, _BYTES_PER_READ = 512, 1152  # of all cores together, between two barriers of interleaved-to-sharded


class KernelCalls(NamedTuple):
    """The work of a kernel: its `requests`, and the words of runtime `arguments` of each RISC, if they are known.

    >>> KernelCalls(Requests.none(NocMap.of("n150")), None).arguments is None
    True
    """

    requests: Requests
    arguments: Integers | None


@dataclass(frozen=True)
class KernelInput:
    """The tensors that a kernel moves between: specs, addresses, and the version of the kernels ("2024", "current").

    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> KernelInput(spec, spec.with_memory("l1"), 0, 0, "current").version
    'current'
    """

    source: TensorSpec
    target: TensorSpec
    source_address: int
    target_address: int
    version: str

    @cached_property
    def noc(self) -> NocMap:
        """The network of the chip.

        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> call = KernelInput(spec, spec.with_memory("l1"), 0, 0, "current")
        >>> call.noc.size
        (10, 12)
        """
        return NocMap.of(self.source.known_chip)

    @cached_property
    def pieces(self) -> PageMoves:
        """The pages, or the pieces of rows with pages of different widths.

        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> call = KernelInput(spec, spec.with_memory("l1"), 0, 0, "current")
        >>> len(call.pieces)
        4
        """
        return page_moves(self.source, self.target, self.source_address, self.target_address)

    @cached_property
    def units(self) -> PageMoves:
        """The pages, or the units of the greatest common divisor of both page widths.

        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> call = KernelInput(spec, spec.with_memory("l1"), 0, 0, "current")
        >>> len(call.units)
        4
        """
        return page_moves(self.source, self.target, self.source_address, self.target_address, cut="units")

    @cached_property
    def has_equal_pages(self) -> bool:
        """Whether both tensors have the same pages.

        >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
        >>> call = KernelInput(spec, spec.with_memory("l1"), 0, 0, "current")
        >>> call.has_equal_pages
        True
        """
        return has_equal_pages(self.source, self.target)


def _issue(
    noc: NocMap, entries: PageMoves, core: Integers, risc: Integers, net: Integers, writes: bool, barriers: Integers
) -> Requests:
    """Return requests from entries in order: the core, RISC and network of each, and the barriers after it.

    The entries of a RISC must follow each other. A core that writes has the entry at its source address.
    """
    change = np.append(True, (core[1:] != core[:-1]) | (risc[1:] != risc[:-1]))[: len(core)]
    first = np.flatnonzero(change)
    far, near = (entries.target, entries.source_address) if writes else (entries.source, entries.target_address)
    far_address = entries.target_address if writes else entries.source_address
    no_barriers = np.zeros(len(first), dtype=np.int64)
    of_riscs = (core[first], risc[first], net[first], np.full(len(first), writes), no_barriers)
    return Requests(noc, *of_riscs, np.cumsum(change) - 1, far, far_address, near, entries.nbytes, barriers)


def _ends(core: Integers, risc: Integers | int = 0) -> Integers:
    """Return 1 at the last entry of each core (and RISC), 0 elsewhere: one barrier when everything is issued."""
    owner = 2 * core + risc
    ends: Integers = np.append(owner[1:] != owner[:-1], True)[: len(owner)].astype(np.int64)
    return ends


def _rank(core: Integers) -> Integers:
    """Return the position of each entry among the entries of its core."""
    begins = np.append(True, core[1:] != core[:-1])[: len(core)]
    first = np.flatnonzero(begins)
    rank: Integers = np.arange(len(core)) - first[np.cumsum(begins) - 1]
    return rank


def _on_workers(noc: NocMap, endpoint: Integers) -> Integers:
    """Return the core that moves the data of each endpoint: a core itself, or the worker of a DRAM bank."""
    banks = int(endpoint.max(initial=0)) + 1 - noc.num_l1
    if banks <= 0:
        return endpoint
    workers = np.array([noc.number_of[core] for core in dram_workers(noc, banks)])
    cores: Integers = np.where(endpoint < noc.num_l1, endpoint, workers[np.maximum(endpoint - noc.num_l1, 0)])
    return cores


def interleaved_to_sharded(call: KernelInput) -> KernelCalls:
    """Return the reads of each target core from interleaved memory, page by page (NCRISC on NOC_0).

    The worker of a DRAM bank reads into a buffer, and writes it (BRISC on NOC_1).

    >>> from tilewright import block_sharded, height_sharded, nd_sharded, width_sharded
    >>> spec = TensorSpec((128, 128), page_layout="tile", memory="dram", chip="n150")
    >>> call = KernelInput(spec, spec.with_memory(height_sharded((2, 1))), 0, 0, "current")
    >>> interleaved_to_sharded(call).requests.counts.tolist()
    [8, 8]
    """
    entries = call.pieces.by_target()
    if not call.source.is_tiled and call.target.memory.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        entries = replace(entries, nbytes=np.full(len(entries), call.target.page_bytes))  # also beyond narrower rows
    core = _on_workers(call.noc, entries.target)
    barriers = _ends(core)
    if call.source.is_tiled:
        sharding = call.target.memory.sharding
        paging = call.target.paging
        cores = max(1, min(len(paging.cores), paging.num_shards))
        if call.version == "2024" and sharding is not None:
            cores = sharding.grid.num_cores
        between = (_READS_UNDER_WAY // cores * _BYTES_PER_READ) // call.source.page_bytes
        if between:
            barriers = barriers + ((_rank(core) + 1) % between == 0)
    reader = np.full(len(core), NCRISC, dtype=np.int64)
    if call.source.is_tiled:
        reads = _issue(call.noc, entries, core, reader, reader, False, barriers)
    else:
        reads = _read_aligned(call, entries, core, barriers)
    if call.target.memory.buffer_type.is_l1:
        return KernelCalls(reads, np.full(len(reads.core), 8) if call.source.is_tiled else None)
    writes = _issue(call.noc, entries, core, reader + BRISC, reader + 1, True, _ends(core))
    joined = Requests.join([reads, writes])
    return KernelCalls(joined, np.full(len(joined.core), 8) if call.source.is_tiled else None)


def _read_aligned(call: KernelInput, entries: PageMoves, core: Integers, barriers: Integers) -> Requests:
    """Return the reads of parts of rows by NCRISC of each core, from aligned addresses on.

    A core with a part, or a distance of parts, that is not aligned reads from the aligned address before into a
    scratch buffer, and copies its part from there.
    """
    unit = call.noc.chip.page_alignment(call.source.memory.buffer_type)
    before = (entries.source_address - call.source_address) % call.source.aligned_page_bytes % unit
    stride = round_up(call.target.page_bytes, call.noc.chip.l1_alignment)
    scratch = np.flatnonzero((before > 0) | bool(stride % unit))
    reads = replace(entries, source_address=entries.source_address - before, nbytes=entries.nbytes + before)
    barriers[scratch] = 1
    waits = barriers, np.ones(len(scratch), dtype=np.int64)
    return _read_and_copy(call.noc, reads, core, np.zeros_like(core), entries.take(scratch), scratch, waits)


def _read_and_copy(
    noc: NocMap,
    reads: PageMoves,
    core: Integers,
    risc: Integers,
    copies: PageMoves,
    after: Integers,
    barriers: tuple[Integers, Integers],
) -> Requests:
    """Return `reads` of cores and RISCs with `copies` from buffers of the same cores, by reads from themselves.

    Each copy follows the read whose position is in `after`; `barriers` are those after reads and after copies.
    """
    copies = replace(copies, source=core[after])
    order = np.concatenate([2 * np.arange(len(core)), 2 * after + 1])
    sorted_by = np.argsort(order, kind="stable")
    number = np.concatenate([np.arange(len(core)), after])[sorted_by]
    requests = PageMoves.join([reads, copies]).take(sorted_by)
    return _issue(noc, requests, core[number], risc[number], risc[number], False, np.concatenate(barriers)[sorted_by])


def sharded_to_interleaved(call: KernelInput) -> KernelCalls:
    """Return the writes of each source core to interleaved memory, page by page (BRISC on NOC_1).

    >>> from tilewright import block_sharded, height_sharded, nd_sharded, width_sharded
    >>> spec = TensorSpec((128, 128), page_layout="tile", memory=height_sharded((2, 1)), chip="n150")
    >>> call = KernelInput(spec, spec.with_memory("dram"), 0, 0, "current")
    >>> sharded_to_interleaved(call).requests.writes.tolist()
    [True, True]
    """
    entries = call.pieces.by_source()
    core = _on_workers(call.noc, entries.source)
    risc = np.full(len(core), BRISC, dtype=np.int64)
    writes = _issue(call.noc, entries, core, risc, risc, True, _ends(core))
    return KernelCalls(writes, np.full(len(writes.core), 9) if call.source.is_tiled else None)


def reshard_generic(call: KernelInput) -> KernelCalls:
    """Return the reads of the generic reshard: ranges of pages, half of them on each RISC of a target core.

    >>> from tilewright import block_sharded, height_sharded, nd_sharded, width_sharded
    >>> spec = TensorSpec((128, 128), page_layout="tile", memory=height_sharded((2, 1)), chip="n150")
    >>> call = KernelInput(spec, spec.with_memory(block_sharded((2, 2))), 0, 0, "current")
    >>> reshard_generic(call).requests.counts.tolist()
    [2, 0, 2, 0, 2, 0, 2, 0]
    """
    bases = call.source_address, call.target_address
    longest = MAX_RUN_2024 if call.version == "2024" else None
    if call.has_equal_pages:
        strides = call.source.aligned_page_bytes, call.target.aligned_page_bytes
        requests, words = generic_requests(call.pieces, call.noc, bases, strides, longest, folds=False)
    else:
        unit = int(np.gcd(call.source.page_bytes, call.target.page_bytes))
        requests, words = generic_requests(call.units, call.noc, bases, (unit, unit), longest, folds=True)
    grid = call.noc.chip.shard_grid(call.source.memory.buffer_type)
    scalars = 4 if call.version == "2024" else 3
    return KernelCalls(requests, grid.x + grid.y + scalars + words)


def same_width(call: KernelInput, reads: bool) -> KernelCalls:
    """Return the requests of a reshard between shards of equal width: pieces as long as the remote shard allows.

    The pages of a local shard are divided into two halves: NCRISC on NOC_0, and BRISC on NOC_1.

    >>> from tilewright import block_sharded, height_sharded, nd_sharded, width_sharded
    >>> spec = TensorSpec((128, 128), page_layout="tile", memory=height_sharded((2, 1)), chip="n150")
    >>> call = KernelInput(spec, spec.with_memory(height_sharded((4, 1))), 0, 0, "current")
    >>> same_width(call, reads=True).requests.nbytes.tolist()
    [4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096]
    """
    entries = call.pieces.by_target() if reads else call.pieces.by_source()
    core = entries.target if reads else entries.source
    rank, size = _rank(core), np.bincount(core)
    risc = (rank >= -(-size[core] // 2)).astype(np.int64)
    unaligned = any(spec.page_bytes != spec.aligned_page_bytes for spec in (call.source, call.target))
    far = entries.source if reads else entries.target
    address = entries.source_address if reads else entries.target_address
    joins = (core[1:] == core[:-1]) & (risc[1:] == risc[:-1]) & (far[1:] == far[:-1])
    if unaligned and reads:  # rows with their padding into a scratch buffer, then row by row into the shard
        joins &= np.diff(address) == call.source.aligned_page_bytes
        starts = _merged_starts(joins)[: len(entries)]
        part = np.cumsum(np.append(True, ~joins))[: len(entries)] - 1
        rows = entries.take(starts)
        rows = replace(rows, nbytes=np.bincount(part) * call.source.aligned_page_bytes)
        waits = np.ones(len(starts), dtype=np.int64), _ends(part)
        requests = _read_and_copy(call.noc, rows, core[starts], risc[starts], entries, part, waits)
        requests = _with_idle_partners(requests)
        pieces = np.bincount(2 * core[starts] + risc[starts], minlength=2 * len(call.noc.endpoints))
        return KernelCalls(requests, 3 + 3 * pieces[2 * requests.core + requests.risc])
    if unaligned or not call.has_equal_pages:  # row by row
        requests = _issue(call.noc, entries, core, risc, risc, not reads, np.ones(len(core), dtype=np.int64))
        requests = _with_idle_partners(requests)
        return KernelCalls(requests, 3 + 3 * _pieces_per_risc(requests))
    joins &= np.diff(address) == call.source.page_bytes
    starts = _merged_starts(joins)[: len(entries)]
    core, risc = core[starts], risc[starts]
    requests = _issue(call.noc, _merge(entries, joins), core, risc, risc, not reads, _ends(core, risc))
    requests = _with_idle_partners(requests)
    return KernelCalls(requests, 3 + 3 * requests.counts)


def _pieces_per_risc(requests: Requests) -> Integers:
    """Return in how many pieces the requests of each RISC are listed: one for all from the same endpoint in a row."""
    owner, remote = requests.owner, requests.remote
    begins = np.append(True, (owner[1:] != owner[:-1]) | (remote[1:] != remote[:-1]))[: len(owner)]
    return np.bincount(owner[begins], minlength=len(requests.core))


def _merged_starts(joins: Booleans) -> Integers:
    return np.flatnonzero(np.append(True, ~joins))


def _merge(entries: PageMoves, joins: Booleans) -> PageMoves:
    """Return the entries with each run of neighbours that join as one."""
    if not len(entries):
        return entries
    starts = _merged_starts(joins)
    merged = entries.take(starts)
    sizes = np.add.reduceat(entries.nbytes, starts)
    return PageMoves(merged.source, merged.source_address, merged.target, merged.target_address, sizes, merged.page)


def same_height(call: KernelInput, reads: bool) -> KernelCalls:
    """Return the requests of a row-major reshard between shards of full height: segment by segment, row by row.

    NCRISC on NOC_0 takes the upper half of the rows, BRISC on NOC_1 the lower half, which is larger if they are odd.

    >>> from tilewright import width_sharded
    >>> rows = TensorSpec((4, 64), memory=width_sharded((2, 1)), chip="n150")
    >>> call = KernelInput(rows, rows.with_memory(width_sharded((1, 1))), 0, 0, "current")
    >>> same_height(call, reads=True).requests.counts.tolist()
    [4, 4]
    """
    pieces = call.pieces
    core = pieces.target if reads else pieces.source
    address = pieces.target_address if reads else pieces.source_address
    local = call.target if reads else call.source
    base = call.target_address if reads else call.source_address
    row, byte = np.divmod(address - base, local.aligned_page_bytes)
    risc = (row >= local.physical_shape[0] // 2).astype(np.int64)
    order = np.lexsort((row, byte, risc, core))
    entries, core, risc, byte = pieces.take(order), core[order], risc[order], byte[order]
    requests = _issue(call.noc, entries, core, risc, risc, not reads, _ends(core, risc))
    owner = requests.owner
    begins = np.append(True, (owner[1:] != owner[:-1]) | (byte[1:] != byte[:-1]))[: len(owner)]
    segments = np.zeros(len(call.noc.endpoints), dtype=np.int64)  # of a core: both RISCs are told all of them
    np.maximum.at(segments, requests.core, np.bincount(owner[begins], minlength=len(requests.core)))
    requests = _with_idle_partners(requests)
    return KernelCalls(requests, 5 + 4 * segments[requests.core])


def copy_local_shards(call: KernelInput, reads: bool) -> KernelCalls:
    """Return the requests of a reshard page by page by the cores that hold the shards of one side.

    With several shards on a core, BRISC on NOC_0 takes the first, the third and so on, NCRISC on NOC_1 the others. The
    kernel deals shards in turn, also where cores hold runs of them.

    >>> from tilewright import block_sharded, height_sharded, nd_sharded, width_sharded
    >>> spec = TensorSpec((128, 128), page_layout="tile", memory=height_sharded((2, 1)), chip="n150")
    >>> call = KernelInput(spec, spec.with_memory(nd_sharded((32, 32), (2, 2))), 0, 0, "current")
    >>> copy_local_shards(call, reads=True).requests.counts.tolist()
    [2, 2, 2, 2, 2, 2, 2, 2]
    """
    entries = call.units.by_target() if reads else call.units.by_source()
    endpoint = entries.target if reads else entries.source
    local = call.target if reads else call.source
    paging, noc = local.paging, call.noc
    address = entries.target_address - call.target_address if reads else entries.source_address - call.source_address
    inside = address // (paging.shard_pages * local.aligned_page_bytes)
    holders = noc.numbers(np.array(local.banks), local.memory.buffer_type)
    position = np.argsort(holders)[np.searchsorted(np.sort(holders), endpoint)]
    count = min(len(holders), paging.num_shards)
    shard = position * paging.shards_per_core + inside if paging.in_runs else position + inside * len(holders)
    core, turn = _on_workers(noc, holders)[shard % count], shard // count % 2
    risc = np.where(turn == 0, BRISC, NCRISC)
    order = np.argsort(2 * core + turn, kind="stable")
    entries, core, risc = entries.take(order), core[order], risc[order]
    requests = _issue(call.noc, entries, core, risc, 1 - risc, not reads, _ends(core, risc))
    requests = _with_idle_partners(requests)
    return KernelCalls(requests, np.full(len(requests.core), 1))


def _with_idle_partners(requests: Requests) -> Requests:
    """Return requests with the other RISC of each core that has only one that works: it waits at one barrier."""
    cores, count = np.unique(requests.core, return_counts=True)
    alone = cores[count == 1]
    single = np.flatnonzero(np.isin(requests.core, alone))
    others = (requests.core[single], 1 - requests.risc[single], 1 - requests.noc[single], requests.writes[single])
    of_requests = [np.zeros(0, dtype=np.int64)] * 6
    idle = Requests(requests.noc_map, *others, np.ones(len(single), dtype=np.int64), *of_requests)
    return Requests.join([requests, idle])


def _deal(noc: NocMap, count: int, cores: list[CoreCoord], rank: Iterable[int]) -> Integers:
    """Return the core that gets each of `count` units, dealt in the order of `cores`; by `rank` the first get more."""
    share, more = divmod(count, len(cores))
    numbers = np.array([noc.number_of[core] for core in cores], dtype=np.int64)
    return np.repeat(numbers, [share + (place < more) for place in rank])


def _deal_to_columns(noc: NocMap, count: int) -> Integers:
    """Return the core that gets each of `count` units as the runtime splits work over cores.

    It uses whole columns of cores, and the top of the next; the first cores column by column have a unit more than
    the others. But units are dealt row by row in the whole columns, then down the last one.
    """
    grid = noc.chip.compute_grid
    cores = first_cores(max(1, min(count, prod(grid))), grid).cores()
    return _deal(noc, count, cores, [core.x * grid.y + core.y for core in cores])


def _through_buffer(noc: NocMap, entries: PageMoves, core: Integers) -> KernelCalls:
    """Return the requests of cores that take `entries` through a buffer, one by one, with a barrier after each.

    NCRISC on NOC_0 reads, BRISC on NOC_1 writes.
    """
    reader, barriers = np.full(len(core), NCRISC, dtype=np.int64), np.ones(len(core), dtype=np.int64)
    reads = _issue(noc, entries, core, reader, reader, False, barriers)
    writes = _issue(noc, entries, core, reader + BRISC, reader + 1, True, barriers)
    return KernelCalls(Requests.join([reads, writes]), None)


def copy_tiles(call: KernelInput) -> KernelCalls:
    """Return the requests of a copy of tiles by all cores.

    >>> spec = TensorSpec((128, 128), page_layout="tile", memory="dram", chip="n150")
    >>> call = KernelInput(spec, spec.with_memory("l1"), 0, 0, "current")
    >>> len(copy_tiles(call).requests)
    32
    """
    return _through_buffer(call.noc, call.pieces, _deal_to_columns(call.noc, call.target.num_pages))


def copy_pages(call: KernelInput) -> KernelCalls:
    """Return the requests of a reshard between shards in DRAM by all cores, page by page, with the padding of pages.

    >>> from tilewright import height_sharded, width_sharded
    >>> spec = TensorSpec(
    ...     (128, 128), page_layout="tile", memory=height_sharded((2, 1), buffer_type="dram"), chip="n150"
    ... )
    >>> call = KernelInput(spec, spec.with_memory(width_sharded((2, 1), buffer_type="dram")), 0, 0, "current")
    >>> len(copy_pages(call).requests)
    32
    """
    sharding = call.source.memory.sharding
    row_wise = sharding is None or sharding.orientation is ShardOrientation.ROW_MAJOR
    cores = CoreRangeSet.of(call.noc.chip.compute_grid).cores(row_wise)
    padded = np.full(len(call.pieces), call.source.aligned_page_bytes, dtype=np.int64)
    core = _deal(call.noc, len(padded), cores, range(len(cores)))
    return _through_buffer(call.noc, replace(call.pieces, nbytes=padded), core)


_MAX_UNIT = 1 << 18  # bytes of a unit that is copied by itself


def row_bytes(spec: TensorSpec) -> int:
    """Return the bytes of the data of a row.

    >>> row_bytes(TensorSpec((4, 8), "float32"))
    32
    """
    return (spec.shape.logical[-1] if spec.shape.rank else 1) * spec.dtype.storage_format.itemsize


def row_page(spec: TensorSpec) -> int:
    """Return the bytes of a page as the copy of rows sees it: of a height-sharded tensor, the data of a row.

    >>> from tilewright import height_sharded
    >>> row_page(TensorSpec((4, 8), memory=height_sharded((2, 1), (2, 16)), chip="n150"))
    16
    """
    is_whole = not spec.memory.is_sharded or spec.memory.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    return row_bytes(spec) if is_whole else spec.page_bytes


def copied_unit(source: TensorSpec, target: TensorSpec) -> int | None:
    """Return the bytes of the units in which few rows are copied; None if rows are copied page by page.

    >>> from tilewright import nd_sharded
    >>> rows = TensorSpec((4, 64), chip="n150")
    >>> copied_unit(rows, rows.with_memory(nd_sharded((4, 32), (2, 1)))), copied_unit(rows, rows.with_memory("l1"))
    (64, None)
    """
    chip = source.known_chip
    unit = gcd(row_page(source), row_page(target))
    alignment = max(chip.page_alignment(spec.memory.buffer_type) for spec in (source, target))
    is_short = source.physical_shape[0] < prod(chip.compute_grid)
    fits = 0 < unit < row_bytes(source) and unit <= _MAX_UNIT and unit % alignment == 0
    return unit if is_short and fits else None


def copy_rows(call: KernelInput) -> KernelCalls:
    """Return the requests of a copy of rows by all cores, each through two buffers.

    Of each row, NCRISC on NOC_0 reads the source's pages, and copies what is in a page of the target to the second
    buffer, by a read from its own core if both are equally aligned; BRISC on NOC_1 writes the target's pages. Few rows
    in narrow pages are copied in units instead, and through one buffer.

    >>> spec = TensorSpec((4, 64), memory="dram", chip="n150")
    >>> call = KernelInput(spec, spec.with_memory("l1"), 0, 0, "current")
    >>> reads = copy_rows(call).requests.reads
    >>> reads[CoreCoord(0, 0), "NCRISC", "NOC_0"]
    ((0, 128, 1), ('barrier', 1), (CoreCoord(x=0, y=0), 128, 1), ('barrier', 1))
    """
    noc, source, target = call.noc, call.source, call.target
    unit, rows = copied_unit(source, target), source.physical_shape[0]
    pieces = page_moves(source, target, call.source_address, call.target_address, unit or row_page(source))
    if unit is not None:
        return _through_buffer(noc, pieces, _deal_to_columns(noc, len(pieces)))
    core = np.repeat(_deal_to_columns(noc, rows), len(pieces) // max(rows, 1))
    offsets = (
        (pieces.source_address - call.source_address) % source.aligned_page_bytes,
        (pieces.target_address - call.target_address) % target.aligned_page_bytes,
    )
    pages, written = [_merge(pieces, offset[1:] != 0) for offset in offsets]
    first, last = [np.flatnonzero(offset == 0) for offset in offsets]
    copied = np.flatnonzero((offsets[0] - offsets[1]) % noc.chip.l1_alignment == 0)
    after = (np.cumsum(offsets[0] == 0) - 1)[copied]
    waits = np.ones(len(first), dtype=np.int64), np.ones(len(copied), dtype=np.int64)
    reads = _read_and_copy(noc, pages, core[first], np.zeros_like(first), pieces.take(copied), after, waits)
    writer = np.full(len(written), BRISC, dtype=np.int64)
    writes = _issue(noc, written, core[last], writer, writer, True, np.ones(len(last), dtype=np.int64))
    return KernelCalls(Requests.join([reads, writes]), None)
