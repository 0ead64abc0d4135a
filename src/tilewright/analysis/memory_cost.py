# SPDX-License-Identifier: Apache-2.0
"""What a layout costs in memory: bank conflicts, coalescing, contiguous runs, the share of padding, and balance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ..errors import LayoutError
from ..layout import Layout, LayoutLike
from ..layout.validation import as_integer
from ..tensor.view import View

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
WARP = 32  # threads that run in step
SIZES = (1, 2, 4, 8, 16)  # bytes that an instruction loads or stores per thread
MAX_BYTES = SIZES[-1]


# An access: which elements each thread touches, given as offsets, a layout or a tensor.

_CHUNK = 1 << 20  # coordinates evaluated at a time


def _access_offsets(access: Any, caller: str, active: Any = None) -> tuple[Array, Array]:
    """Return the offsets of an access, one row per thread, and which of them are data of active threads."""
    places, touched = _offsets_of(access, caller)
    if active is None:
        return places, touched
    threads = np.asarray(active, dtype=bool).reshape(-1)
    if len(threads) != len(places):
        raise LayoutError(f"{caller}: active has {len(threads)} entries for {len(places)} threads; give one per thread")
    return places, touched & threads[:, None]


def _offsets_of(access: Any, caller: str) -> tuple[Array, Array]:
    if isinstance(access, View):
        places, touched = _layout_offsets(access.layout)
        inside = access.element_layout
        vector = np.asarray(inside(np.arange(inside.size, dtype=np.int64))).reshape(-1)
        places = (places[..., None] + int(access.offset) + vector).reshape(len(places), -1)
        return places, np.repeat(touched, vector.size, axis=1)
    if isinstance(access, LayoutLike):
        return _layout_offsets(access)
    table = np.asarray(access)
    if table.dtype.kind not in "iu" and not (table.dtype.kind == "f" and bool((table == np.round(table)).all())):
        raise LayoutError(
            f"{caller} takes the offsets of the elements that each thread touches: integers, a Layout or a TileTensor;"
            f" got {type(access).__name__} of {table.dtype}"
        )
    threads = len(table) if table.ndim else 1
    places = table.astype(np.int64).reshape(threads, table.size // max(1, threads))
    return places, np.ones(places.shape, dtype=bool)


def _layout_offsets(layout: LayoutLike) -> tuple[Array, Array]:
    """Return the offsets of a layout whose first mode counts threads, and which of them are not padding."""
    modes = [np.arange(layout.mode(k).size, dtype=np.int64) for k in range(int(layout.rank))]
    grid = np.ix_(*modes)
    shape = tuple(map(len, modes))
    places = np.asarray(layout(*grid))
    if places.dtype.kind not in "iu":
        raise LayoutError(f"{layout} maps to named axes; choose one with .project(axis)")
    flat = (shape[0] if shape else 1, prod(shape[1:]))
    touched = np.asarray(layout.valid(*grid))
    return np.broadcast_to(places, shape).reshape(flat), np.broadcast_to(touched, shape).reshape(flat)


def _warp_instructions(places: Array, touched: Array, itemsize: int) -> Iterator[tuple[Array, Array, int]]:
    """Yield the instructions of each warp, as (offset of each thread, active threads, bytes of each thread).

    An instruction accesses at most 16 bytes per thread, of consecutive elements aligned to that size; all threads of a
    warp use the same width.
    """
    for start in range(0, len(places), WARP):
        rows, active = places[start : start + WARP], touched[start : start + WARP]
        column, count = 0, rows.shape[1]
        while column < count:
            wide = _vector_width(rows[:, column:], active[:, column:], itemsize)
            yield rows[:, column], active[:, column], wide * itemsize
            column += wide


def _vector_width(rows: Array, active: Array, itemsize: int) -> int:
    """Return how many elements, from the first column on, one instruction can access for every thread of a warp."""
    wide = 1
    while wide * 2 * itemsize <= MAX_BYTES and wide * 2 <= rows.shape[1]:
        more = wide * 2
        alike = bool((active[:, :more] == active[:, :1]).all())
        used = rows[active[:, 0], :more]
        follows = bool((used == used[:, :1] + np.arange(more)).all())
        if not (alike and follows and bool((used[:, 0] % more == 0).all())):
            break
        wide = more
    return wide


def _validate_itemsize(itemsize: int | None, access: Any, caller: str) -> int:
    """Return the bytes of an element: `itemsize`, that of the tensor, or 4."""
    if itemsize is None:
        itemsize = np.dtype(access.dtype).itemsize if isinstance(access, View) else 4
    if itemsize not in SIZES:
        raise LayoutError(f"{caller}: expected an itemsize of {', '.join(map(str, SIZES))} bytes, got {itemsize!r}")
    return int(itemsize)


@dataclass(frozen=True, slots=True)
class BankReport:
    """The bank conflicts of an access to shared memory.

    `ways` is the largest number of words that one bank serves in one phase: 1 means no conflict. `wavefronts` is the
    number of passes over the memory, `ideal` that without conflicts. `words` counts the words per bank, and
    `instructions` the loads or stores of a warp.

    >>> BankReport(1, 1, 1, (1, 1)).conflict_free
    True
    """

    ways: int
    wavefronts: int
    ideal: int
    words: tuple[int, ...]
    instructions: int = 1

    @property
    def conflict_free(self) -> bool:
        """Return whether no thread has to wait for another.

        >>> BankReport(8, 8, 1, (8, 0)).conflict_free
        False
        """
        return self.wavefronts == self.ideal

    def __str__(self) -> str:
        return "no conflict" if self.conflict_free else f"{self.ways}-way conflict"


def bank_conflicts(
    offsets: Any,
    itemsize: int | None = None,
    banks: int = 32,
    width: int = 4,
    store: bool = False,
    active: Any = None,
) -> BankReport:
    """Return the bank conflicts of an access to shared memory.

    `offsets` are the element offsets of each thread: a list with one entry or one row per thread, a layout whose first
    mode counts threads, or a `TileTensor` (the offsets of its elements, not its values). `itemsize` is the bytes of an
    element: by default that of the tensor, or 4. Bank b holds the words of `width` bytes whose index is b modulo
    `banks`.

    Threads that read the same word share it (broadcast). An instruction accesses up to 16 contiguous, aligned bytes per
    thread; more take several instructions. If all threads together need more bytes than the banks give at once, they
    are served in phases, in order; loads of 8 and 16 bytes take half as many phases if neighbouring threads read the
    same. Costs are those measured on an NVIDIA H200; the widest possible instructions are assumed. `store` counts a
    store instead of a load, and `active` says which threads take part.

    >>> from tilewright import Layout
    >>> print(bank_conflicts(Layout(32)))
    no conflict
    >>> print(bank_conflicts(Layout(32, 32)))  # a column of a 32 x 32 tile
    32-way conflict
    >>> print(bank_conflicts(np.arange(32) * 33))  # the same with a column of padding
    no conflict
    >>> bank_conflicts(Layout((32, 8), (8, 1))).instructions  # 32 bytes per thread
    2
    """
    size = _validate_itemsize(itemsize, offsets, "bank_conflicts")
    places, touched = _access_offsets(offsets, "bank_conflicts", active)
    if min(as_integer(banks, "banks"), as_integer(width, "width")) < 1 or not places.size:
        raise LayoutError(
            f"bank_conflicts needs offsets and positive sizes, got {places.size} offsets, banks={banks!r},"
            f" width={width!r}"
        )
    words, ways, count = np.zeros(banks, dtype=np.int64), [], 0
    for first, active, moved in _warp_instructions(places, touched, size):
        count += 1
        phase = min(WARP, max(1, banks * width // moved))
        if not store and moved > 4 and phase < WARP and _merges_phases(first, active):
            phase *= 2
        for start in range(0, len(first), phase):
            chosen = first[start : start + phase][active[start : start + phase]]
            if chosen.size:
                wanted = np.unique((chosen[:, None] * size + np.arange(moved)) // width)
                counts = np.bincount(wanted % banks, minlength=banks)
                words += counts
                ways.append(int(counts.max()))
    return BankReport(max(ways, default=0), sum(ways), len(ways), tuple(words.tolist()), count)


def _merges_phases(first: Array, active: Array) -> bool:
    """Return whether a wide load takes half as many phases, since neighbouring threads read the same."""
    threads = np.arange(len(first))
    for bit in (1, 2):
        other = threads ^ bit
        paired = other < len(first)
        mine, theirs = threads[paired], other[paired]
        both = active[mine] & active[theirs]
        if bool((first[mine][both] == first[theirs][both]).all()):
            return True
    return False


@dataclass(frozen=True, slots=True)
class CoalescingReport:
    """The sectors that an access to global memory transfers.

    >>> CoalescingReport(sectors=32, ideal=4, lines=32, used=128, moved=1024).efficiency
    0.125
    """

    sectors: int
    ideal: int
    lines: int
    used: int
    moved: int
    instructions: int = 1

    @property
    def efficiency(self) -> float:
        """Return the share of the transferred bytes that threads asked for.

        >>> CoalescingReport(4, 4, 1, 128, 128).efficiency
        1.0
        """
        return self.used / self.moved if self.moved else 1.0

    def __str__(self) -> str:
        return f"{self.sectors} sectors ({self.efficiency:.0%} of the bytes are used)"


def coalescing(
    offsets: Any, itemsize: int | None = None, sector: int = 32, line: int = 128, active: Any = None
) -> CoalescingReport:
    """Return the sectors that an access to global memory transfers.

    Sectors have `sector` bytes, in lines of `line`. `offsets`, `itemsize` and `active` are as for `bank_conflicts`.
    Instructions do not share sectors.

    >>> from tilewright import Layout
    >>> print(coalescing(Layout(32)))
    4 sectors (100% of the bytes are used)
    >>> print(coalescing(Layout(32, 32)))
    32 sectors (12% of the bytes are used)
    """
    size = _validate_itemsize(itemsize, offsets, "coalescing")
    places, touched = _access_offsets(offsets, "coalescing", active)
    if min(as_integer(sector, "sector"), as_integer(line, "line")) < 1 or not places.size:
        raise LayoutError(
            f"coalescing needs offsets and positive sizes, got {places.size} offsets, sector={sector!r}, line={line!r}"
        )
    total = np.zeros(5, dtype=np.int64)
    for first, active, moved in _warp_instructions(places, touched, size):
        wanted = np.unique(first[active][:, None] * size + np.arange(moved))
        sectors = len(np.unique(wanted // sector))
        total += (sectors, -(-len(wanted) // sector), len(np.unique(wanted // line)), len(wanted), 1)
    sectors, ideal, lines, used, count = total.tolist()
    return CoalescingReport(sectors, ideal, lines, used, sectors * sector, count)


@dataclass(frozen=True, slots=True)
class RunReport:
    """The lengths of contiguous runs, in elements.

    >>> print(RunReport(4, 8, 8, 8.0))
    4 runs of 8
    """

    runs: int
    shortest: int
    longest: int
    mean: float

    def __str__(self) -> str:
        if self.shortest == self.longest:
            return f"{self.runs} run{'s' * (self.runs != 1)} of {self.longest}"
        return f"{self.runs} runs of {self.shortest} to {self.longest}, {self.mean:.3g} on average"


def contiguous_runs(offsets: Any, valid: Any = None) -> RunReport:
    """Return the runs of consecutive offsets, in row-major order; padding ends a run.

    `offsets` are integers, a layout or a `TileTensor`; `valid` says which integers are not padding.

    >>> from tilewright import row_major, col_major
    >>> print(contiguous_runs(row_major(4, 8).offsets()), contiguous_runs(col_major(4, 8).offsets()), sep=", ")
    1 run of 32, 32 runs of 1
    """
    places, touched = (table.reshape(-1) for table in _access_offsets(offsets, "contiguous_runs"))
    data = touched if valid is None else np.asarray(valid, dtype=bool).reshape(-1)
    if not data.any():
        return RunReport(0, 0, 0, 0.0)
    starts = data.copy()
    starts[1:] &= ~(data[:-1] & (np.diff(places) == 1))
    number = np.cumsum(starts)[data]
    lengths = np.bincount(number)[1:]
    return RunReport(len(lengths), int(lengths.min()), int(lengths.max()), float(lengths.mean()))


def padding_share(layout: LayoutLike) -> float:
    """Return the share of the coordinates of a `layout` that are padding.

    >>> from tilewright import row_major, with_logical_shape
    >>> padding_share(with_logical_shape(row_major(64, 96), (60, 90)))
    0.12109375
    """
    size = int(layout.size)
    if not size:
        return 0.0
    if isinstance(layout, Layout):
        try:
            return 1 - prod(layout.logical_shape) / size
        except LayoutError:
            pass  # padded across modes: count
    data = 0
    for start in range(0, size, _CHUNK):
        index = np.arange(start, min(size, start + _CHUNK), dtype=np.int64)
        data += int(np.count_nonzero(np.broadcast_to(layout.valid(index), index.shape)))
    return 1 - data / size


@dataclass(frozen=True, slots=True)
class BalanceReport:
    """How evenly amounts, such as bytes, are spread over cores or banks.

    >>> print(BalanceReport(8, 0, 2048, 1536.0, 2))
    1536 on average, 0 to 2048, 2 of 8 idle
    """

    count: int
    least: int
    most: int
    mean: float
    idle: int

    @property
    def imbalance(self) -> float:
        """Return the largest amount divided by the mean: 1 is even.

        >>> BalanceReport(4, 0, 100, 50.0, 2).imbalance
        2.0
        """
        return self.most / self.mean if self.mean else 1.0

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.most} on each of {self.count}"
        idle = f", {self.idle} of {self.count} idle" if self.idle else ""
        mean = f"{self.mean:g}" if self.mean < 1000 else f"{self.mean:.0f}"
        return f"{mean} on average, {self.least} to {self.most}{idle}"


def balance(amounts: Iterable[int]) -> BalanceReport:
    """Return how evenly `amounts`, such as the bytes of every core, are spread.

    >>> balance([2048, 2048, 1024, 0]).imbalance
    1.6
    """
    if isinstance(amounts, (LayoutLike, View)):
        raise LayoutError(f"expected amounts, such as the bytes per core, got {amounts!r}")
    values = [int(amount) for amount in amounts]
    if not values:
        raise LayoutError("expected at least one amount, such as the bytes per core, got none")
    return BalanceReport(len(values), min(values), max(values), sum(values) / len(values), values.count(0))
