# SPDX-License-Identifier: Apache-2.0
"""What an access pattern costs, in numbers: bank conflicts, coalescing, runs, padding, balance."""

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
SIZES = (1, 2, 4, 8, 16)  # bytes that an instruction moves for a thread
MOST_BYTES = SIZES[-1]
_CHUNK = 1 << 20  # coordinates looked at in one go


# An access: which elements each thread touches, given as offsets, a layout or a tensor.


def _access(given: Any, what: str, active: Any = None) -> tuple[Array, Array]:
    """Return the offsets of an access, a row for each thread, and which are touched: not padding, by active threads."""
    places, touched = _offsets(given, what)
    if active is None:
        return places, touched
    threads = np.asarray(active, dtype=bool).reshape(-1)
    if len(threads) != len(places):
        raise LayoutError(f"{what}: active has {len(threads)} entries for {len(places)} threads; give one for each")
    return places, touched & threads[:, None]


def _offsets(given: Any, what: str) -> tuple[Array, Array]:
    if isinstance(given, View):
        places, touched = _places(given.layout)
        inside = given.element_layout
        vector = np.asarray(inside(np.arange(inside.size, dtype=np.int64))).reshape(-1)
        places = (places[..., None] + int(given.offset) + vector).reshape(len(places), -1)
        return places, np.repeat(touched, vector.size, axis=1)
    if isinstance(given, LayoutLike):
        return _places(given)
    found = np.asarray(given)
    if found.dtype.kind not in "iu" and not (found.dtype.kind == "f" and bool((found == np.round(found)).all())):
        raise LayoutError(
            f"{what} takes the offsets of the elements that each thread touches: integers, a Layout or a TileTensor;"
            f" got {type(given).__name__} of {found.dtype}"
        )
    threads = len(found) if found.ndim else 1
    places = found.astype(np.int64).reshape(threads, found.size // max(1, threads))
    return places, np.ones(places.shape, dtype=bool)


def _places(layout: LayoutLike) -> tuple[Array, Array]:
    """Return the offsets of a layout whose first mode counts threads, and which of them are not padding."""
    modes = [np.arange(layout.mode(k).size, dtype=np.int64) for k in range(int(layout.rank))]
    grid = np.ix_(*modes)
    shape = tuple(len(each) for each in modes)
    places = np.asarray(layout(*grid))
    if places.dtype.kind not in "iu":
        raise LayoutError(f"{layout} leads to named axes; take one of them with .project(axis)")
    flat = (shape[0] if shape else 1, prod(shape[1:]))
    touched = np.asarray(layout.valid(*grid))
    return tuple(np.broadcast_to(each, shape).reshape(flat) for each in (places, touched))  # type: ignore[return-value]


def _instructions(places: Array, touched: Array, itemsize: int) -> Iterator[tuple[Array, Array, int]]:
    """Yield the instructions of each warp, as (offset of each thread, active threads, bytes of each thread).

    A thread moves at most 16 bytes in one, of elements that follow each other from a multiple of their size on; all
    threads of a warp do the same.
    """
    for start in range(0, len(places), WARP):
        rows, active = places[start : start + WARP], touched[start : start + WARP]
        column, count = 0, rows.shape[1]
        while column < count:
            wide = _vector(rows[:, column:], active[:, column:], itemsize)
            yield rows[:, column], active[:, column], wide * itemsize
            column += wide


def _vector(rows: Array, active: Array, itemsize: int) -> int:
    """Return how many elements one instruction can move for every thread of a warp, from the first column on."""
    wide = 1
    while wide * 2 * itemsize <= MOST_BYTES and wide * 2 <= rows.shape[1]:
        more = wide * 2
        alike = bool((active[:, :more] == active[:, :1]).all())
        used = rows[active[:, 0], :more]
        follows = bool((used == used[:, :1] + np.arange(more)).all())
        if not (alike and follows and bool((used[:, 0] % more == 0).all())):
            break
        wide = more
    return wide


def _checked_size(itemsize: Any, given: Any, what: str) -> int:
    """Return the bytes of an element: what was said, what the tensor says, or 4."""
    if itemsize is None:
        itemsize = np.dtype(given.dtype).itemsize if isinstance(given, View) else 4
    if itemsize not in SIZES:
        raise LayoutError(f"{what}: expected an itemsize of {', '.join(map(str, SIZES))} bytes, got {itemsize!r}")
    return int(itemsize)


@dataclass(frozen=True, slots=True)
class BankReport:
    """How an access of all threads meets the banks of a shared memory.

    `ways` is the most words that any bank has to give in one phase: 1 is free of conflicts. `wavefronts` is how often
    the memory is read in all, `ideal` how often it would be without conflicts. `words` counts the words of each bank.
    `instructions` is how many loads or stores of a warp the access takes.

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
    """Return how an access meets the banks of a shared memory.

    `offsets` has an element for each thread, or a row of elements each: numbers, a layout whose first mode counts
    threads, or a `TileTensor` (where its elements lie, not what they are). `itemsize` is the bytes of an element: that
    of the tensor, or 4. Bank b holds the bytes whose word number, of `width` bytes, is b modulo `banks`.

    Threads that want the same word share it. An instruction moves up to 16 bytes a thread, if they follow each other
    and are aligned; what is more takes several. When all threads together want more bytes than the banks give at once,
    they are served in phases, in order; loads of 8 and 16 bytes in half as many where neighbours want the same. What an
    instruction costs is as counted on an NVIDIA H200; which ones a compiler would choose is assumed to be the widest.
    `store` counts a store, and `active` says which threads take part.

    >>> print(bank_conflicts(Layout(32)))
    no conflict
    >>> print(bank_conflicts(Layout(32, 32)))  # a column of a 32 x 32 tile
    32-way conflict
    >>> print(bank_conflicts(np.arange(32) * 33))  # the same with a column of padding
    no conflict
    >>> bank_conflicts(Layout((32, 8), (8, 1))).instructions  # 32 bytes a thread
    2
    """
    size = _checked_size(itemsize, offsets, "bank_conflicts")
    places, touched = _access(offsets, "bank_conflicts", active)
    if min(as_integer(banks, "banks"), as_integer(width, "width")) < 1 or not places.size:
        raise LayoutError(
            f"bank_conflicts needs lanes and positive sizes, got {places.size} offsets, banks={banks!r},"
            f" width={width!r}"
        )
    words, ways, count = np.zeros(banks, dtype=np.int64), [], 0
    for first, active, moved in _instructions(places, touched, size):
        count += 1
        lanes = min(WARP, max(1, banks * width // moved))
        if not store and moved > 4 and lanes < WARP and _merges(first, active):
            lanes *= 2
        for start in range(0, len(first), lanes):
            chosen = first[start : start + lanes][active[start : start + lanes]]
            if chosen.size:
                wanted = np.unique((chosen[:, None] * size + np.arange(moved)) // width)
                counts = np.bincount(wanted % banks, minlength=banks)
                words += counts
                ways.append(int(counts.max()))
    return BankReport(max(ways, default=0), sum(ways), len(ways), tuple(words.tolist()), count)


def _merges(first: Array, active: Array) -> bool:
    """Return whether a wide load is served in phases of twice the length: threads want what a neighbour wants."""
    lanes = np.arange(len(first))
    for bit in (1, 2):
        other = lanes ^ bit
        paired = other < len(first)
        mine, theirs = lanes[paired], other[paired]
        both = active[mine] & active[theirs]
        if bool((first[mine][both] == first[theirs][both]).all()):
            return True
    return False


@dataclass(frozen=True, slots=True)
class CoalescingReport:
    """How an access of all threads meets global memory, which moves whole sectors.

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
        """Return the share of the moved bytes that a thread asked for.

        >>> CoalescingReport(4, 4, 1, 128, 128).efficiency
        1.0
        """
        return self.used / self.moved if self.moved else 1.0

    def __str__(self) -> str:
        return f"{self.sectors} sectors ({self.efficiency:.0%} of the bytes are used)"


def coalescing(
    offsets: Any, itemsize: int | None = None, sector: int = 32, line: int = 128, active: Any = None
) -> CoalescingReport:
    """Return how an access of all threads meets global memory, in sectors of 32 bytes and lines of 128.

    `offsets`, `itemsize` and `active` are as for `bank_conflicts`. Every instruction of a warp asks for sectors anew.

    >>> print(coalescing(Layout(32)))
    4 sectors (100% of the bytes are used)
    >>> print(coalescing(Layout(32, 32)))
    32 sectors (12% of the bytes are used)
    """
    size = _checked_size(itemsize, offsets, "coalescing")
    places, touched = _access(offsets, "coalescing", active)
    if min(as_integer(sector, "sector"), as_integer(line, "line")) < 1 or not places.size:
        raise LayoutError(
            f"coalescing needs lanes and positive sizes, got {places.size} offsets, sector={sector!r}, line={line!r}"
        )
    total = np.zeros(5, dtype=np.int64)
    for first, active, moved in _instructions(places, touched, size):
        wanted = np.unique(first[active][:, None] * size + np.arange(moved))
        sectors = len(np.unique(wanted // sector))
        total += (sectors, -(-len(wanted) // sector), len(np.unique(wanted // line)), len(wanted), 1)
    sectors, ideal, lines, used, count = total.tolist()
    return CoalescingReport(sectors, ideal, lines, used, sectors * sector, count)


@dataclass(frozen=True, slots=True)
class RunReport:
    """How long the stretches are that can be moved in one go, in elements.

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
    """Return the runs of places that follow each other, read row by row; padding ends a run.

    `offsets` are numbers, a layout or a `TileTensor`; `valid` says of numbers which are not padding.

    >>> from tilewright import row_major, col_major
    >>> print(contiguous_runs(row_major(4, 8).offsets()), contiguous_runs(col_major(4, 8).offsets()), sep=", ")
    1 run of 32, 32 runs of 1
    """
    places, touched = (each.reshape(-1) for each in _access(offsets, "contiguous_runs"))
    data = touched if valid is None else np.asarray(valid, dtype=bool).reshape(-1)
    if not data.any():
        return RunReport(0, 0, 0, 0.0)
    starts = data.copy()
    starts[1:] &= ~(data[:-1] & (np.diff(places) == 1))
    number = np.cumsum(starts)[data]
    lengths = np.bincount(number)[1:]
    return RunReport(len(lengths), int(lengths.min()), int(lengths.max()), float(lengths.mean()))


def padding_share(layout: LayoutLike) -> float:
    """Return the share of the coordinates of a layout that are padding.

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
    """How evenly bytes lie over cores or banks.

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
        """Return how much more the fullest holds than the average: 1 is even.

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
    """Return how evenly amounts, such as the bytes of every core, are spread.

    >>> balance([2048, 2048, 1024, 0]).imbalance
    1.6
    """
    if isinstance(amounts, (LayoutLike, View)):
        raise LayoutError(f"balance takes amounts, such as the bytes of every core, not {amounts!r}")
    found = [int(amount) for amount in amounts]
    if not found:
        raise LayoutError("balance needs at least one amount: give the bytes of every core, 0 where there are none")
    return BalanceReport(len(found), min(found), max(found), sum(found) / len(found), found.count(0))
