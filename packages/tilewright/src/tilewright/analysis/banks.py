# SPDX-License-Identifier: Apache-2.0
"""Bank conflicts: how often shared memory is asked, because threads want different words of one bank."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..display import Shown
from ..errors import LayoutError
from ..layout import as_integer
from .accesses import Array, Instruction, WarpAccess, access_offsets, validate_itemsize, validate_vector, warp_accesses


@dataclass(frozen=True)
class BankModel:
    """How a memory with banks serves a warp of `warp` threads.

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
class BankReport(Shown):
    """The bank conflicts of an access to shared memory.

    `wavefronts` is the number of passes over the memory, `ideal` that without conflicts, and `phases` those of each
    phase. `ways` is the largest number of words that one bank serves in one phase: 1 means no conflict. `words` counts
    the words per bank, `instructions` the loads or stores of a warp. `collisions` are the threads that wait.

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
        """Return the passes that conflicts cost.

        >>> BankReport(8, 8, 1, (8, 0)).excess
        7
        """
        return self.wavefronts - self.ideal

    @property
    def conflict_free(self) -> bool:
        """Return whether no thread has to wait for another.

        >>> BankReport(8, 8, 1, (8, 0)).conflict_free
        False
        """
        return self.wavefronts == self.ideal

    def __str__(self) -> str:
        found = "no conflict" if self.conflict_free else f"{self.ways}-way conflict"
        return f"{found}, {self.assumption}" if self.assumption else found


def bank_conflicts(
    memory: Any,
    threads: Any = None,
    *,
    itemsize: int | None = None,
    vector: int | None = None,
    instruction: str = "ld",
    active: Any = None,
    machine: BankModel = NVIDIA,
) -> BankReport:
    """Return the bank conflicts of an access to shared memory.

    `memory` is the layout of the elements, and `threads` a layout from threads and their values to its coordinates,
    such as the thread-value layout of a matrix instruction. Without `threads`, `memory` is the whole access: the
    offsets of each thread as a list with one entry or one row per thread, a layout whose first mode counts threads, or
    a `TileTensor` (the offsets of its elements, not its values).

    `itemsize` is the bytes of an element: by default those of the tensor; otherwise 4 are assumed, and the report says
    so. `vector` is how many elements an
    instruction moves per thread: by default as many as are consecutive and aligned, up to 16 bytes. `instruction` is
    "ld", "st", or a matrix instruction such as "ldmatrix.x4", whose threads name rows of 16 bytes. `active` says which
    threads take part. `machine` is the model: banks, phases, and whether loads merge.

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
    places, touched, request = _request(memory, threads, itemsize, vector, instruction, active, machine)
    return _report(places, touched, request)


def conflicts_by_warp(
    memory: Any,
    threads: Any = None,
    *,
    itemsize: int | None = None,
    vector: int | None = None,
    instruction: str = "ld",
    active: Any = None,
    machine: BankModel = NVIDIA,
) -> tuple[BankReport, ...]:
    """Return the bank conflicts of each warp of an access; the parameters are those of `bank_conflicts`.

    `memory` and `threads` say what is accessed; `itemsize`, `vector` and `instruction` how, `active` by which threads,
    and `machine` on what.

    >>> from tilewright import Layout
    >>> print(*conflicts_by_warp(Layout(((32, 2),), ((1, 32),)), itemsize=4), sep=", ")
    no conflict, no conflict
    """
    places, touched, request = _request(memory, threads, itemsize, vector, instruction, active, machine)
    warps = range(0, len(places), machine.warp)
    return tuple([_report(places, touched, request, slice(start, start + machine.warp)) for start in warps])


@dataclass(frozen=True)
class _Request:
    """How the elements of an access are asked for."""

    itemsize: int
    vector: int | None
    instruction: Instruction
    machine: BankModel
    assumption: str


def _request(
    memory: Any, threads: Any, itemsize: Any, vector: Any, instruction: str, active: Any, machine: BankModel
) -> tuple[Array, Array, _Request]:
    size, assumption = validate_itemsize(itemsize, memory, "bank_conflicts")
    kind = Instruction.of(instruction)
    if not isinstance(machine, BankModel):
        raise LayoutError(f"expected a machine such as BankModel(banks=32, width=4), got {machine!r}")
    width = kind.vector_of(validate_vector(vector, "bank_conflicts"), size, "bank_conflicts")
    places, touched = access_offsets(memory, threads, "bank_conflicts", active)
    if not places.size:
        raise LayoutError("bank_conflicts needs at least one thread with an offset, got none")
    return places, touched, _Request(size, width, kind, machine, assumption)


def _report(places: Array, touched: Array, request: _Request, threads: slice = slice(None)) -> BankReport:
    """Return the conflicts of some threads of an access."""
    kind, machine = request.instruction, request.machine
    tables: list[Array] = []  # words per bank, of each phase
    collisions: list[Collision] = []
    count = 0
    chosen_places, chosen_touched = places[threads], touched[threads]
    accesses = warp_accesses(
        chosen_places, chosen_touched, request.itemsize, machine.warp, request.vector, kind, "bank_conflicts"
    )
    for access in accesses:
        count += 1
        for chosen in _phases(access, kind, machine):
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


def _phases(access: WarpAccess, kind: Instruction, machine: BankModel) -> list[Array]:
    """Return the threads of each phase."""
    size = access.bytes_per_thread
    together = machine.phase_threads(size)
    is_plain_load = not kind.is_store and kind.rows is None
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
    found = []
    threads = chosen[access.active[chosen]]
    for bank in np.flatnonzero(counts > 1):
        groups: dict[int, list[int]] = {}
        for thread, row in zip(threads, _words_of(access, threads, machine), strict=True):
            for word in np.unique(row[row % machine.banks == bank]):
                groups.setdefault(int(word), []).append(first + access.first + int(thread))
        found.append(Collision(phase, int(bank), tuple([tuple(group) for _, group in sorted(groups.items())])))
    return found
