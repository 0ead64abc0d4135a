# SPDX-License-Identifier: Apache-2.0
"""Bank conflicts: the passes over shared memory that threads need for different words of one bank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..copying import Array
from ..display import Drawable
from ..errors import LayoutError
from ..layout import ComposedLayout, Layout, LayoutLike, Linear, Swizzle, as_integer, compose, leaves, map_leaves
from ..tensor import View
from .accesses import (
    Access,
    Instruction,
    Threads,
    WarpAccess,
    access_offsets,
    validate_itemsize,
    validate_vector,
    warp_accesses,
)


@dataclass(frozen=True)
class BankModel:
    """A memory with banks that serves a warp of `warp` threads.

    Bank b holds the words of `width` bytes whose index is b modulo `banks`. Threads are served in phases, in order: as
    many at a time as the banks have bytes for. `merges_loads`: a load of 8 or 16 bytes takes half as many phases if
    neighbouring threads read the same.

    >>> machine = BankModel()
    >>> machine.phase_threads(16), AMD.warp
    (8, 64)
    """

    banks: int = 32
    width: int = 4
    warp: int = 32
    merges_loads: bool = True

    def __post_init__(self) -> None:
        for name in ("banks", "width", "warp"):
            if as_integer(getattr(self, name), name) < 1:
                raise LayoutError(f"a memory with banks needs positive sizes, got {name}={getattr(self, name)!r}")

    def phase_threads(self, size: int) -> int:
        """Return how many threads are served at a time if each accesses `size` bytes."""
        return min(self.warp, max(1, self.banks * self.width // size))


NVIDIA = BankModel()
"""Measured on an H200: 2145 accesses, all as predicted."""
AMD = BankModel(warp=64, merges_loads=False)
"""Local data share of CDNA and RDNA: 32 banks, waves of 64 threads; not measured."""


@dataclass(frozen=True, slots=True)
class Collision:
    """Threads that one bank serves one after the other: `threads` in groups, each of which wants the same word.

    `phase` counts the phases of the report, over all its instructions.

    >>> clash = Collision(0, 3, ((0,), (8, 9)))
    >>> str(clash)
    'bank 3, phase 0: threads 0 | 8, 9'
    """

    phase: int
    bank: int
    threads: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        groups = " | ".join([", ".join(map(str, group)) for group in self.threads])
        return f"bank {self.bank}, phase {self.phase}: threads {groups}"


@dataclass(frozen=True, slots=True)
class BankReport(Drawable):
    """The bank conflicts of an access to shared memory.

    `wavefronts` is the number of passes over the memory, `ideal` the number without conflicts, and `phases` the passes
    of each phase. `ways` is the largest number of words that one bank serves in one phase: 1 means no conflict. `words`
    counts the words per bank, `instructions` the loads or stores of a warp. `collisions` are the threads that wait.

    >>> BankReport(1, 1, 1, (1, 1)).conflict_free
    True
    """

    ways: int
    wavefronts: int
    ideal: int
    words: tuple[int, ...]
    instructions: int = 1
    phases: tuple[int, ...] = ()
    collisions: tuple[Collision, ...] = field(default=(), repr=False, compare=False)
    phase_words: tuple[tuple[int, ...], ...] = field(default=(), repr=False, compare=False)  # per bank, of each phase
    assumption: str = field(default="", repr=False, compare=False)  # about elements whose size nobody stated

    @property
    def excess(self) -> int:
        """The passes that conflicts cost.

        >>> BankReport(8, 8, 1, (8, 0)).excess
        7
        """
        return self.wavefronts - self.ideal

    @property
    def conflict_free(self) -> bool:
        """Whether no thread has to wait for another.

        >>> BankReport(8, 8, 1, (8, 0)).conflict_free
        False
        """
        return self.wavefronts == self.ideal

    def __str__(self) -> str:
        text = "no conflict" if self.conflict_free else f"{self.ways}-way conflict"
        return f"{text}, {self.assumption}" if self.assumption else text


def bank_conflicts(
    memory: Access,
    threads: Threads | None = None,
    *,
    itemsize: int | None = None,
    vector: int | None = None,
    instruction: str = "ld",
    active: ArrayLike | None = None,
    machine: BankModel = NVIDIA,
) -> BankReport:
    """Return the bank conflicts of an access to shared memory.

    `memory` is the layout of the elements, and `threads` a layout from threads and their values to its coordinates,
    such as the thread-value layout of a matrix instruction. Without `threads`, `memory` is the whole access: the
    offsets of each thread as a list with one entry or one row per thread, a layout whose first mode counts threads, or
    a `TileTensor` (the offsets of its elements, not its values).

    `itemsize` is the bytes of an element: by default the tensor's; otherwise 4 are assumed, and the report states that.
    `vector` is the number of elements that an instruction moves per thread: by default as many as are consecutive and
    aligned, up to 16 bytes. `instruction` is "ld", "st", or a matrix instruction such as "ldmatrix.x4", whose threads
    name rows of 16 bytes. `active` tells which threads take part. `machine` is the model: banks, phases, and whether
    loads merge.

    Threads that read the same word share it. If all threads together need more bytes than the banks give at once, they
    are served in phases, in order.

    >>> from tilewright import Layout, Swizzle, compose
    >>> print(bank_conflicts(Layout(32)))
    no conflict, assuming elements of 4 bytes
    >>> print(bank_conflicts(Layout(32, 32), itemsize=4))  # a column of a 32 x 32 tile
    32-way conflict
    >>> tile = compose(Swizzle(3, 3, 3), Layout((16, 64), (64, 1)))
    >>> rows = Layout(((16, 2),), ((1, 16 * 8),))  # lanes 0 to 15: rows, at column 0; 16 to 31: at column 8
    >>> bank_conflicts(tile, rows, itemsize=2, instruction="ldmatrix.x4").wavefronts
    4
    """
    offsets, touched, request = _request(memory, threads, itemsize, vector, instruction, active, machine)
    return _report(offsets, touched, request)


def conflicts_by_warp(
    memory: Access,
    threads: Threads | None = None,
    *,
    itemsize: int | None = None,
    vector: int | None = None,
    instruction: str = "ld",
    active: ArrayLike | None = None,
    machine: BankModel = NVIDIA,
) -> tuple[BankReport, ...]:
    """Return the bank conflicts of each warp of an access; the parameters are as in `bank_conflicts`.

    `memory` and `threads` give the elements; `itemsize`, `vector` and `instruction` the access, `active` the threads,
    and `machine` the model.

    >>> from tilewright import Layout
    >>> print(*conflicts_by_warp(Layout(((32, 2),), ((1, 32),)), itemsize=4), sep=", ")
    no conflict, no conflict
    """
    offsets, touched, request = _request(memory, threads, itemsize, vector, instruction, active, machine)
    warps = range(0, len(offsets), machine.warp)
    return tuple([_report(offsets, touched, request, slice(start, start + machine.warp)) for start in warps])


@dataclass(frozen=True)
class _Request:
    """The elements of an access, as they are requested."""

    itemsize: int
    vector: int | None
    instruction: Instruction
    machine: BankModel
    assumption: str


def _request(
    memory: Access,
    threads: Threads | None,
    itemsize: int | None,
    vector: int | None,
    instruction: str,
    active: ArrayLike | None,
    machine: BankModel,
) -> tuple[Array, Array, _Request]:
    size, assumption = validate_itemsize(itemsize, memory, "bank_conflicts")
    form = Instruction.of(instruction)
    if not isinstance(machine, BankModel):
        raise LayoutError(f"expected a machine such as BankModel(banks=32, width=4), got {machine!r}")
    width = form.vector_of(validate_vector(vector, "bank_conflicts"), size, "bank_conflicts")
    offsets, touched = access_offsets(memory, threads, "bank_conflicts", active)
    if not offsets.size:
        raise LayoutError("bank_conflicts needs at least one thread with an offset, got none")
    return offsets, touched, _Request(size, width, form, machine, assumption)


def _report(offsets: Array, touched: Array, request: _Request, threads: slice = slice(None)) -> BankReport:
    """Return the conflicts of some threads of an access."""
    instruction, machine = request.instruction, request.machine
    tables: list[Array] = []  # words per bank, of each phase
    collisions: list[Collision] = []
    count = 0
    chosen_offsets, chosen_touched = offsets[threads], touched[threads]
    accesses = warp_accesses(
        chosen_offsets, chosen_touched, request.itemsize, machine.warp, request.vector, instruction, "bank_conflicts"
    )
    for access in accesses:
        count += 1
        for chosen in _phases(access, instruction, machine):
            wanted, counts = _count_words(access, chosen, machine)
            if wanted.size:
                collisions += _collisions(access, chosen, len(tables), counts, machine, threads.start or 0)
                tables.append(counts)
    phases = tuple([int(counts.max()) for counts in tables])
    words = tuple([int(total) for total in sum(tables, np.zeros(machine.banks, dtype=np.int64))])
    held = tuple([tuple(counts.tolist()) for counts in tables])
    ways, wavefronts = max(phases, default=0), sum(phases)
    more = (tuple(collisions), held, request.assumption)
    return BankReport(ways, wavefronts, len(phases), words, count, phases, *more)


def _phases(access: WarpAccess, instruction: Instruction, machine: BankModel) -> list[Array]:
    """Return the threads of each phase."""
    size = access.bytes_per_thread
    together = machine.phase_threads(size)
    is_plain_load = not instruction.is_store and instruction.rows is None
    if is_plain_load and machine.merges_loads and size > machine.width and _merges(access):
        together = min(machine.warp, together * 2)
    threads = np.arange(len(access.addresses))
    return [threads[start : start + together] for start in range(0, len(threads), together)]


def _merges(access: WarpAccess) -> bool:
    """Return whether neighbouring threads read the same wherever both are active, over the whole warp."""
    threads = np.arange(len(access.addresses))
    for bit in (1, 2):
        other = threads ^ bit
        mine = threads[other < len(threads)]
        both = access.active[mine] & access.active[mine ^ bit]
        if bool((access.addresses[mine][both] == access.addresses[mine ^ bit][both]).all()):
            return True
    return False


def _words_of(access: WarpAccess, threads: Array, machine: BankModel) -> Array:
    """Return the words that each of some threads touches, one row per thread."""
    first = access.addresses[threads] // machine.width
    last = (access.addresses[threads] + access.bytes_per_thread - 1) // machine.width
    span = int((last - first).max()) + 1 if len(threads) else 1
    words: Array = np.minimum(first[:, None] + np.arange(span), last[:, None])
    return words


def _count_words(access: WarpAccess, chosen: Array, machine: BankModel) -> tuple[Array, Array]:
    wanted = np.unique(_words_of(access, chosen[access.active[chosen]], machine))
    return wanted, np.bincount(wanted % machine.banks, minlength=machine.banks)


def _collisions(
    access: WarpAccess, chosen: Array, phase: int, counts: Array, machine: BankModel, first: int
) -> list[Collision]:
    """Return which threads each bank with several words serves one after the other."""
    collisions = []
    threads = chosen[access.active[chosen]]
    for bank in np.flatnonzero(counts > 1):
        groups: dict[int, list[int]] = {}
        for thread, row in zip(threads, _words_of(access, threads, machine), strict=True):
            for word in np.unique(row[row % machine.banks == bank]):
                groups.setdefault(int(word), []).append(first + access.first + int(thread))
        collisions.append(Collision(phase, int(bank), tuple([tuple(group) for _, group in sorted(groups.items())])))
    return collisions


# The smallest swizzle or padding that frees given accesses to shared memory of bank conflicts, with a certificate.

MAX_MAPS = 1 << 16
"""The most linear maps that are tried one by one."""
MAX_REMEDIED = 1 << 12
"""The most elements of an access for which a remedy is searched, of one warp if what helps it helps all."""
_MAX_ROWS = 4  # sizes of rows after which padding is tried


@dataclass(frozen=True, eq=False)
class Pattern:
    """An access to unswizzled memory: the offsets of each thread, one row each, and the instruction.

    >>> column = Pattern(np.arange(32) * 32)
    >>> column.instruction
    'ld'
    """

    offsets: Any = field(repr=False)
    instruction: str = "ld"
    vector: int | None = None

    def _key(self) -> tuple[Any, ...]:
        table = np.asarray(self.offsets)
        return table.shape, tuple(table.ravel().tolist()), self.instruction, self.vector

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Pattern) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())


Remedy: TypeAlias = "Swizzle | Linear | int | None"  # a number is the padding of rows; None where nothing is needed


@dataclass(frozen=True)
class Certificate:
    """The result of a search: a `remedy`, the wavefronts of each access with it, the ideal ones, and the attempts.

    `verify` counts everything again. If the wavefronts are the ideal ones, no remedy can be better; otherwise it is the
    best of `searched` candidates.

    >>> found = find_swizzle([np.arange(32) * 32, np.arange(32)])
    >>> found.remedy, found.is_conflict_free, found.verify()
    (Swizzle(5, 0, 5), True, True)
    """

    remedy: Remedy
    wavefronts: tuple[int, ...]
    ideal: tuple[int, ...]
    searched: int
    patterns: tuple[Pattern, ...] = field(repr=False)
    itemsize: int = 4
    machine: BankModel = NVIDIA
    row: int | None = None  # after which padding goes
    assumption: str = field(default="", repr=False, compare=False)  # about elements whose size nobody stated

    @property
    def is_conflict_free(self) -> bool:
        """Whether no access has a conflict."""
        return self.wavefronts == self.ideal

    @property
    def excess(self) -> int:
        """The wavefronts that are left beyond the ideal ones."""
        return sum(self.wavefronts) - sum(self.ideal)

    def place(self, offsets: object) -> int | Any:
        """Return where the remedy puts elements: offsets of unswizzled memory, as integers or arrays."""
        placed: int | Array = _place(self.remedy, self.row, offsets)
        return placed

    def apply(self, layout: LayoutLike) -> LayoutLike | None:
        """Return a `layout` of memory with the remedy in place of its swizzle; None if there is no such layout.

        >>> print(find_swizzle([np.arange(32) * 32]).apply(Layout((32, 32), (32, 1))))
        Sw<5,0,5> o (32,32):(32,1)
        >>> print(find_padding([np.arange(32) * 32], 32).apply(Layout((32, 32), (32, 1))))
        (32,32):(33,1)
        """
        plain = _without_swizzle(layout)
        if isinstance(self.remedy, int) and isinstance(plain, Layout):
            row, more = self.row or 1, self.remedy
            return Layout(plain.shape, map_leaves(lambda stride: stride + stride // row * more, plain.stride))
        if isinstance(self.remedy, Swizzle):
            swizzled: LayoutLike = compose(self.remedy, plain)
            return swizzled
        return plain if self.remedy is None else None

    def verify(self) -> bool:
        """Return whether the accesses, counted again, cost as much as certified, and elements stay apart."""
        counted = [_count(pattern, self.place, self.itemsize, self.machine) for pattern in self.patterns]
        span = 1 + max(int(np.max(pattern.offsets)) for pattern in self.patterns)
        offsets = np.asarray(self.place(np.arange(min(span, 1 << 20), dtype=np.int64)))
        return (
            tuple([wavefronts for wavefronts, _ in counted]) == self.wavefronts
            and tuple([ideal for _, ideal in counted]) == self.ideal
            and len(np.unique(offsets)) == offsets.size
        )

    def __str__(self) -> str:
        remedy = {True: "nothing to do", False: str(self.remedy)}[self.remedy is None]
        state = "no conflicts" if self.is_conflict_free else f"{self.excess} wavefronts more than ideal"
        accesses = "1 access" if len(self.patterns) == 1 else f"{len(self.patterns)} accesses"
        tried = f"{state} in {accesses}, {self.searched} candidates tried"
        return f"{remedy}: {tried}" + (f", {self.assumption}" if self.assumption else "")


def find_swizzle(
    patterns: Iterable[Any], *, itemsize: int | None = None, machine: BankModel = NVIDIA, size: int | None = None
) -> Certificate:
    """Return the smallest swizzle with which all accesses are free of conflicts, or else have the fewest wavefronts.

    `patterns` are accesses to unswizzled memory: layouts or tables of offsets as for `bank_conflicts`, or `Pattern`s
    with an instruction. `itemsize` is the bytes of an element (4 are assumed without it, as the certificate tells),
    `machine` the model of the banks, and `size` the elements of the memory, a power of two that the swizzle must stay
    inside: by default the smallest that holds all accesses.

    All swizzles `Sw<bits,base,shift>` are tried, those that exchange the fewest bits first; vectors stay whole. If none
    is free of conflicts, the linear maps that XOR higher bits into the bits of the bank are tried, if there are no more
    than `MAX_MAPS`.

    >>> from tilewright import Layout
    >>> rows, columns = Layout((32, 1), (1, 0)), Layout((32, 1), (32, 0))
    >>> print(find_swizzle([rows, columns], itemsize=4))
    Sw<5,0,5>: no conflicts in 2 accesses, 96 candidates tried
    """
    bytes_each, assumption = validate_itemsize(itemsize, None, "find_swizzle")
    accesses = _as_patterns(patterns, bytes_each, machine)
    limit = _memory_size(accesses, size)
    low = _vector_bits(accesses, bytes_each, machine)
    bits = limit.bit_length() - 1
    candidates: Iterator[Remedy] = chain([None], _swizzles(bits, low), _linear_maps(bits, low, bytes_each, machine))
    return _best_of(candidates, accesses, bytes_each, machine, None, assumption)


def find_padding(
    patterns: Iterable[Any],
    row: int,
    *,
    itemsize: int | None = None,
    machine: BankModel = NVIDIA,
    most: int | None = None,
) -> Certificate:
    """Return the fewest elements of padding after each `row` with which all accesses are free of conflicts.

    `row` is the number of elements after which padding goes; `patterns`, `itemsize` and `machine` are as for
    `find_swizzle`. At most `most` elements are tried, by default as many as the banks hold, in steps that leave vectors
    aligned. If no padding is free of conflicts, the certificate has the one with the fewest wavefronts.

    >>> found = find_padding([np.arange(32) * 32], 32)
    >>> found.remedy, found.is_conflict_free
    (1, True)
    """
    if as_integer(row, "row") < 1:
        raise LayoutError(f"a row has at least 1 element, got {row}")
    bytes_each, assumption = validate_itemsize(itemsize, None, "find_padding")
    accesses = _as_patterns(patterns, bytes_each, machine)
    step = 1 << _vector_bits(accesses, bytes_each, machine)
    limit = machine.banks * machine.width // bytes_each if most is None else as_integer(most, "most")
    if limit < 0:
        raise LayoutError(f"most is a number of elements of padding, at least 0, got {limit}")
    return _best_of(range(0, limit + 1, step), accesses, bytes_each, machine, row, assumption)


def find_remedy(
    memory: Access,
    threads: Threads | None = None,
    *,
    itemsize: int | None = None,
    vector: int | None = None,
    instruction: str = "ld",
    machine: BankModel = NVIDIA,
) -> Certificate:
    """Return the swizzle that frees an access of bank conflicts, or else padding that does, or else the best of them.

    `memory`, `threads`, `itemsize`, `vector`, `instruction` and `machine` are as in `bank_conflicts`. A swizzle that
    `memory` has is replaced. Padding is tried after the rows of a strided layout, the longest first. At most
    `MAX_REMEDIED` elements are searched.

    >>> from tilewright import Layout
    >>> memory = Layout((32, 32), (32, 1))
    >>> print(find_remedy(memory, Layout(32), itemsize=4).apply(memory))
    Sw<5,0,5> o (32,32):(32,1)
    """
    plain = _without_swizzle(memory)
    offsets, touched = access_offsets(plain, threads, "find_remedy")
    whole = Pattern(offsets[touched.all(axis=1)], instruction, vector)
    first = replace(whole, offsets=whole.offsets[: machine.warp])
    best = _search_remedies(plain, first, itemsize, machine)
    wavefronts, ideal = _count(whole, best.place, best.itemsize, machine)
    if wavefronts > ideal and len(first.offsets) < len(whole.offsets):
        return _search_remedies(plain, whole, itemsize, machine)
    return replace(best, wavefronts=(wavefronts,), ideal=(ideal,), patterns=(whole,))


def _search_remedies(plain: Access, pattern: Pattern, itemsize: int | None, machine: BankModel) -> Certificate:
    if (count := pattern.offsets.size) > MAX_REMEDIED:
        raise LayoutError(
            f"the threads access {count} elements; a remedy is searched for at most {MAX_REMEDIED}: give fewer threads"
        )
    best = find_swizzle([pattern], itemsize=itemsize, machine=machine)
    for row in _row_sizes(plain):
        if best.is_conflict_free:
            break
        padded = find_padding([pattern], row, itemsize=itemsize, machine=machine)
        best = min(best, padded, key=lambda report: report.excess)
    return best


def _without_swizzle(memory: Access) -> Any:
    return memory.inner if isinstance(memory, ComposedLayout) and isinstance(memory.outer, Swizzle) else memory


def _row_sizes(memory: object) -> list[int]:
    """Return the strides of a strided layout that are sizes of rows, which padding can follow, the largest first."""
    if not isinstance(memory, Layout) or memory.axes or memory != Layout(memory.shape, memory.stride):
        return []
    modes = [(n, stride) for n, stride in zip(leaves(memory.shape), leaves(memory.stride), strict=True) if n > 1]
    rows = sorted({stride for _, stride in modes if stride > 1}, reverse=True)

    def is_row(row: int) -> bool:
        inside = sum([(n - 1) * stride for n, stride in modes if stride < row])
        return inside < row and all(stride % row == 0 for _, stride in modes if stride >= row)

    return [row for row in rows if is_row(row)][:_MAX_ROWS]


def _best_of(
    candidates: Iterable[Remedy],
    patterns: Sequence[Pattern],
    itemsize: int,
    machine: BankModel,
    row: int | None,
    assumption: str,
) -> Certificate:
    """Return the candidate with the fewest wavefronts; the first with the ideal ones ends the search."""
    best: Certificate | None = None
    for number, remedy in enumerate(candidates, 1):
        counts: list[tuple[int, int]] = []
        for pattern in patterns:
            counts.append(_count(pattern, partial(_place, remedy, row), itemsize, machine))
            if best is not None and sum([wavefronts for wavefronts, _ in counts]) >= sum(best.wavefronts):
                break
        else:
            wavefronts, ideal = zip(*counts, strict=True)
            best = Certificate(remedy, wavefronts, ideal, number, tuple(patterns), itemsize, machine, row, assumption)
        assert best is not None
        if best.is_conflict_free:
            break
    assert best is not None
    return replace(best, searched=number)


def _place(remedy: Remedy, row: int | None, offsets: Any) -> Any:
    """Return where a remedy puts elements: offsets of unswizzled memory, as integers or arrays."""
    if remedy is None:
        return offsets
    if isinstance(remedy, Swizzle):
        return remedy(offsets)
    return _apply_linear(remedy, offsets) if isinstance(remedy, Linear) else offsets + offsets // (row or 1) * remedy


def _as_patterns(patterns: object, itemsize: int, machine: BankModel) -> list[Pattern]:
    """Return the accesses with their offsets as tables; raise if one is not an access that the machine can do."""
    if isinstance(patterns, (LayoutLike, Pattern, View)) or (isinstance(patterns, np.ndarray) and patterns.ndim < 3):
        patterns = [patterns]
    if not isinstance(patterns, Iterable):
        raise LayoutError(f"expected a list of accesses, such as layouts or tables of offsets, got {patterns!r}")
    accesses = []
    for access in patterns:
        pattern = access if isinstance(access, Pattern) else Pattern(access)
        if isinstance(pattern.offsets, (int, np.integer)):
            raise LayoutError(
                f"an access has the offsets of all its threads, got {pattern.offsets}; write [[...], ...]"
            )
        offsets, touched = access_offsets(pattern.offsets, None, "a pattern")
        if not touched.all() or not offsets.size or int(offsets.min()) < 0:
            raise LayoutError("a pattern needs offsets of at least 0 for all its threads, without padding")
        accesses.append(Pattern(offsets, pattern.instruction, pattern.vector))
        _count_conflicts(accesses[-1], offsets, itemsize, machine)
    if not accesses:
        raise LayoutError("expected at least one access, such as a layout whose first mode counts threads, got none")
    return accesses


def _memory_size(patterns: Sequence[Pattern], size: int | None) -> int:
    span = 1 + max(int(np.max(pattern.offsets)) + (pattern.vector or 1) - 1 for pattern in patterns)
    if size is None:
        return 1 << (span - 1).bit_length()
    if as_integer(size, "size") & (size - 1) or size < span:
        raise LayoutError(
            f"size must be a power of two of at least {span} elements, which the accesses reach, got {size}"
        )
    return size


def _vector_bits(patterns: Sequence[Pattern], itemsize: int, machine: BankModel) -> int:
    """Return how many low bits of an offset must stay, so that the vectors of all accesses stay whole."""
    low = 0
    for pattern in patterns:
        instruction, every = Instruction.of(pattern.instruction), np.ones(pattern.offsets.shape, dtype=bool)
        vector = instruction.vector_of(pattern.vector, itemsize, "a pattern")
        accesses = warp_accesses(pattern.offsets, every, itemsize, machine.warp, vector, instruction, "a pattern")
        low = max([low, *[(access.bytes_per_thread // itemsize).bit_length() - 1 for access in accesses]])
    return low


def _swizzles(bits: int, low: int) -> Iterator[Swizzle]:
    """Yield the swizzles of this many address bits that leave the low ones alone, the fewest bits first."""
    for width in range(1, bits + 1):
        for base in range(low, bits):
            for shift in range(width, bits - base - width + 1):
                yield Swizzle(width, base, shift)


def _linear_maps(bits: int, low: int, itemsize: int, machine: BankModel) -> Iterator[Linear]:
    """Yield maps that XOR higher bits into the bits of the bank, as many as `MAX_MAPS`; none if there are more."""
    word = max(0, (machine.width // itemsize).bit_length() - 1)
    first = max(low, word)
    last = min(bits, word + machine.banks.bit_length() - 1)
    targets, sources = range(first, last), range(last, bits)
    free = len(targets) * len(sources)
    if not free or 1 << free > MAX_MAPS:
        return
    for choice in sorted(range(1, 1 << free), key=lambda number: number.bit_count()):
        images = [1 << k for k in range(bits)]
        for position in range(free):
            if choice >> position & 1:
                images[sources[position // len(targets)]] |= 1 << targets[position % len(targets)]
        yield Linear({"offset": images}, {"offset": 1 << bits})


def _apply_linear(linear: Linear, offsets: Any) -> Any:
    size = linear.inputs["offset"]
    inside = linear(offset=np.asarray(offsets, dtype=np.int64) % size)["offset"]
    moved = np.asarray(offsets) // size * size + inside
    return int(moved) if np.ndim(offsets) == 0 else moved


def _count(pattern: Pattern, offset: Callable[[Any], Any], itemsize: int, machine: BankModel) -> tuple[int, int]:
    """Return the wavefronts of an access after elements were moved, and the ideal ones."""
    try:
        return _count_conflicts(pattern, offset(pattern.offsets), itemsize, machine)
    except LayoutError:
        return 1 << 30, 1  # vectors would not be aligned


def _count_conflicts(pattern: Pattern, offsets: Array, itemsize: int, machine: BankModel) -> tuple[int, int]:
    options: dict[str, Any] = {"vector": pattern.vector, "instruction": pattern.instruction, "machine": machine}
    report = bank_conflicts(np.asarray(offsets), itemsize=itemsize, **options)
    return report.wavefronts, report.ideal
