# SPDX-License-Identifier: Apache-2.0
"""Transposes of any extents and alignment, through a box of the tensor in shared memory.

Both sides are accessed in whole words, whatever the alignment of their runs. A run of the source is stored in shared
memory at an address that agrees with its own modulo a word, so that the pitch of each row agrees with its stride in the
source: then every offset in the box is a sum of digits times constants. Words at the ends of a run may hold bytes of
its neighbours, which nobody reads. In the order of the target, a thread puts the elements of an aligned word together;
what is left at the ends of runs is stored element by element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from .c_code import (
    Digit,
    LoopAxis,
    NamedDigit,
    conditional,
    declare_digits,
    digit_combinations,
    digit_expressions,
    guard_expression,
    indent,
    index_expression,
    offset_expression,
    raw_type,
    unrolled_loop,
)
from .kernel import (
    BANK_BYTES,
    WARP,
    Kernel,
    KernelJob,
    bank_passes,
    common_alignment,
    elements_type,
    least_conflicts,
    vector_type,
)

READ_WORD = 8  # bytes that a thread reads at once
WRITTEN_WORD = 8  # bytes that a thread writes at once
SECTOR = 32  # bytes that memory transfers at once
RUN_GOALS = (64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096)  # bytes of a run that are tried
MIN_WORDS = 3  # that each thread should have
SHARED = 2  # the side of an axis that has its stride in shared memory


@dataclass(frozen=True, slots=True)
class StagedBox:
    """How many indices of each axis a box has, and on each side the axes of its runs and of its rows."""

    taken: tuple[int, ...]
    runs: tuple[tuple[int, ...], tuple[int, ...]]
    rows: tuple[tuple[int, ...], tuple[int, ...]]
    cost: float = 0

    def run_length(self, side: int) -> int:
        """Return the number of elements of a run on one side."""
        return prod([self.taken[k] for k in self.runs[side]])

    def shared_bytes(self, size: int, word: int) -> int:
        """Return an upper bound of the bytes that the box takes in shared memory."""
        return prod([self.taken[k] for k in self.rows[0]]) * (self.run_length(0) * size + 3 * word)


def make_staged_kernel(job: KernelJob) -> tuple[Kernel, set[str]]:
    """Return the kernel of a copy with source and target contiguous along different axes, and its type definitions."""
    before, after = job.sizes
    words = max(READ_WORD, before), max(WRITTEN_WORD, after)
    box = choose_box(job.axes, job.sizes, job.tuning.shared, words)
    digits = [_word_digits(job, box, side, words[side]) for side in (0, 1)]
    threads = choose_thread_count(digits, job.tuning.threads)
    dealt = split_digits(digits[1], threads)[0]
    axes, shared_bytes = _with_shared_steps(job, box, words, dealt)
    extents = [axis.extent for axis in axes]
    # neighbours in a run of either side meet in one sector of memory, so they follow each other
    order = dict.fromkeys([*box.runs[1], *box.runs[0], *_order(axes, 1, extents)])
    groups = [Digit(k, -(-extents[k] // box.taken[k]), box.taken[k]) for k in order if extents[k] > box.taken[k]]
    lines, in_group = declare_digits("group", groups, "g")
    body = [
        *lines,
        f"GLOBAL const u8 *from = source + ({offset_expression(in_group, axes, 0, job.nest.source_offset)});",
        f"GLOBAL u8 *to = target + ({offset_expression(in_group, axes, 1, job.nest.target_offset)});",
        f"const i32 skew = (i32)(ADDRESS(from) & {words[0] - 1}u);",
        "LOCAL u8 *tile = (LOCAL u8 *)shared_tile;",
        "{",
        *indent(_load_box(_Phase(job, axes, box, 0, words[0], digits[0], threads, in_group))),
        "}",
        "BARRIER;",
        "{",
        *indent(_store_box(_Phase(job, axes, box, 1, words[1], digits[1], threads, in_group))),
        "}",
    ]
    if words[1] > after:
        ends = [Digit(len(axes), 2 * words[1] // after, 1), *digits[1][1:]]
        body += ["{", *indent(_store_ends(_Phase(job, axes, box, 1, words[1], ends, threads, in_group))), "}"]
    shape = " x ".join(str(box.taken[k]) for k in reversed(_order(axes, 1, box.taken)))
    note = (
        f"copy {job.nest.elements} elements in boxes of {shape}, in words of {words[0]} bytes of the source and"
        f" {words[1]} of the target"
    )
    needs = {elements_type(words[1] // after, after)[1]} if words[1] > after else set()
    shared = (("shared_tile", shared_bytes),)
    return Kernel(job.name, note, tuple(body), digit_combinations(groups), threads, (), shared), needs


def _order(axes: Sequence[LoopAxis], side: int, counts: Sequence[int]) -> list[int]:
    """Return the axes with more than one index, by increasing stride on one side."""
    used = [k for k in range(len(axes)) if counts[k] > 1]
    return sorted(used, key=lambda k: (axes[k].strides[side] == 0, abs(axes[k].strides[side] or 0), k))


def choose_box(axes: Sequence[LoopAxis], sizes: Sequence[int], limit: int, words: Sequence[int]) -> StagedBox:
    """Return the box of at most `limit` bytes with the lowest cost.

    The cost counts what memory transfers beyond the ends of runs, and indices beyond the ends of axes.

    >>> axes = [LoopAxis(509, (1, 189)), LoopAxis(189, (509, 1))]
    >>> choose_box(axes, (1, 1), 24576, (8, 8)).taken
    (102, 189)
    """
    boxes = [_make_box(axes, sizes, goals, words) for goals in product(RUN_GOALS, RUN_GOALS)]
    fitting = [box for box in boxes if box.shared_bytes(sizes[0], words[0]) <= limit]
    return min(fitting or boxes, key=lambda box: (box.cost, box.shared_bytes(sizes[0], words[0])))


def _make_box(axes: Sequence[LoopAxis], sizes: Sequence[int], goals: Sequence[int], words: Sequence[int]) -> StagedBox:
    """Return the box whose runs have about the bytes of `goals` on the two sides."""
    taken = [1] * len(axes)
    for side in (0, 1):
        _grow_run(axes, side, sizes[side], goals[side], taken)
    runs = _run_axes(axes, 0, sizes[0], taken), _run_axes(axes, 1, sizes[1], taken)
    rows = tuple([tuple([k for k in _order(axes, side, taken) if k not in runs[side]]) for side in (0, 1)])
    box = StagedBox(tuple(taken), runs, (rows[0], rows[1]))
    read, written = (box.run_length(side) * sizes[side] for side in (0, 1))
    ragged = prod([-(-axis.extent // n) * n / axis.extent for axis, n in zip(axes, taken, strict=True)]) - 1
    small = 256 / prod(taken)  # the cost of a work-group beside its elements
    cost = (SECTOR + words[0]) / 4 / read + (SECTOR + words[1]) * 1.5 / written + ragged / 2 + small
    return StagedBox(box.taken, box.runs, box.rows, cost)


def _grow_run(axes: Sequence[LoopAxis], side: int, size: int, goal: int, taken: list[int]) -> None:
    """Take indices along the contiguous axes of one side until their run has about `goal` bytes."""
    run = size
    for k in _order(axes, side, [axis.extent for axis in axes]):
        axis = axes[k]
        if axis.strides[side] != run:
            return
        if run * axis.extent * 2 > goal * 3:
            pieces = max(1, round(axis.extent * run / goal))
            taken[k] = max(taken[k], -(-axis.extent // pieces))
            return
        taken[k] = axis.extent
        run *= axis.extent


def _run_axes(axes: Sequence[LoopAxis], side: int, size: int, taken: Sequence[int]) -> tuple[int, ...]:
    """Return the axes whose taken indices are one contiguous run on one side, fastest first."""
    run, expected = [], size
    for k in _order(axes, side, [axis.extent for axis in axes]):
        if axes[k].strides[side] != expected or taken[k] == 1:
            break
        run.append(k)
        if taken[k] < axes[k].extent:
            break
        expected *= axes[k].extent
    return tuple(run)


def _word_digits(job: KernelJob, box: StagedBox, side: int, word: int) -> list[Digit]:
    """Return the digits of the words of a box in the order of one side: the word of a run, and the rows.

    The word has the number of an axis after the last one.
    """
    size = job.sizes[side]
    words = -(-(box.run_length(side) * size + word - size) // word)
    return [Digit(len(job.axes), words, 1), *[Digit(k, box.taken[k], 1) for k in box.rows[side]]]


def split_digits(digits: Sequence[Digit], threads: int) -> tuple[list[Digit], list[Digit]]:
    """Return the digits of at most `threads` threads, and those that each thread repeats.

    >>> split_digits([Digit(0, 20, 1), Digit(1, 9, 1), Digit(2, 4, 1)], 64)
    ([Digit(axis=0, count=20, radix=1), Digit(axis=1, count=3, radix=1)], [Digit(axis=1, count=3, radix=3), \
Digit(axis=2, count=4, radix=1)])
    """
    dealt: list[Digit] = []
    repeated: list[Digit] = []
    left = threads
    for digit in digits:
        if repeated or left == 1:
            repeated.append(digit)
        elif digit.count <= left:
            dealt.append(digit)
            left //= digit.count
        else:
            passes = -(-digit.count // left)
            count = -(-digit.count // passes)
            dealt.append(Digit(digit.axis, count, digit.radix))
            repeated.append(Digit(digit.axis, passes, digit.radix * count))
    return dealt, repeated


def choose_thread_count(phases: Sequence[Sequence[Digit]], most: int) -> int:
    """Return a number of threads, whole warps, such that few are idle in all phases.

    >>> choose_thread_count([[Digit(0, 50, 1), Digit(1, 40, 1)]], 256)
    256
    """

    def work(threads: int) -> float:
        return sum([digit_combinations(split_digits(digits, threads)[1]) for digits in phases]) * threads

    # with few words, fewer threads have several each, which hides the latency of memory
    words = max([digit_combinations(digits) for digits in phases])
    most = max(WARP, min(most, words // MIN_WORDS // WARP * WARP))
    counts = range(max(WARP, most // 2 // WARP * WARP), most + 1, WARP)
    return min(counts, key=lambda threads: (work(threads) / (1 + threads / most / 8), -threads))


def _with_shared_steps(
    job: KernelJob, box: StagedBox, words: Sequence[int], dealt: Sequence[Digit]
) -> tuple[list[LoopAxis], int]:
    """Return the axes with their strides in shared memory, and the bytes of the box there.

    Of the pitches that agree with the source modulo a word, those with the fewest bank conflicts are chosen. `dealt`
    are the digits of the threads that write.
    """
    axes, size, word = job.axes, job.sizes[0], words[0]

    def options() -> Iterator[tuple[int, int, list[int]]]:
        for pads in _paddings(len(box.rows[0])):
            strides = [axis.strides[0] or 0 for axis in axes]
            end = box.run_length(0) * size + word - 1
            for k, pad in zip(box.rows[0], pads, strict=True):
                strides[k] = end + (strides[k] - end) % word + pad * word
                end += strides[k] * (box.taken[k] - 1)
            read = _first_warp(box, dealt, words[1] // job.sizes[1], strides)
            yield bank_passes(read, size) - max(1, size // BANK_BYTES), end, strides

    end, strides = least_conflicts(options())
    return [
        LoopAxis(axis.extent, (*axis.strides[:2], stride)) for axis, stride in zip(axes, strides, strict=True)
    ], end + word


def _paddings(rows: int) -> Iterator[tuple[int, ...]]:
    """Yield words of padding before each row axis: of the first one, and of the second."""
    for pads in product(*[range(9)] * min(rows, 2)):
        yield (*reversed(pads), *[0] * (rows - len(pads)))


def _first_warp(box: StagedBox, dealt: Sequence[Digit], per_word: int, strides: Sequence[int]) -> list[int]:
    """Return the offset in shared memory of the first element that each thread of the first warp reads."""
    offsets = []
    for thread in range(WARP):
        rest, offset = thread, 0
        for digit in dealt:
            rest, value = divmod(rest, digit.count)
            index = value * digit.radix
            if digit.axis < len(strides):
                offset += index * strides[digit.axis]
                continue
            index *= per_word
            for k in box.runs[1]:
                index, within = divmod(index, box.taken[k])
                offset += within * strides[k]
        offsets.append(offset)
    return offsets


class _Phase:
    """The reading or the writing of a box: which words of which rows a thread has.

    `named` are the digits of a thread and of its repeats, the word among them as the axis after the last one; `rows`
    are the digits of rows.
    """

    def __init__(
        self,
        job: KernelJob,
        axes: Sequence[LoopAxis],
        box: StagedBox,
        side: int,
        word: int,
        digits: Sequence[Digit],
        threads: int,
        in_group: Sequence[NamedDigit],
    ) -> None:
        self.job, self.axes, self.box, self.side, self.word = job, axes, box, side, word
        self.threads, self.in_group = threads, in_group
        self.dealt, self.repeated = split_digits(digits, threads)
        self.lines, in_thread = declare_digits("thread", self.dealt, "t")
        self.named = [*in_thread, *digit_expressions("r", self.repeated)]
        self.rows = [digit for digit in self.named if digit.digit.axis < len(axes)]

    def offset(self, side: int) -> str:
        """Return the offset of the row on one side, from the start of the box."""
        return offset_expression(self.rows, self.axes, side)

    def word_start(self, unit: int) -> str:
        """Return where the word starts in its row, in units of bytes: before it if the row starts inside a word."""
        start = f"(i32)({index_expression(self.named, len(self.axes))}) * {self.word // unit}"
        offset = (self.job.nest.source_offset, self.job.nest.target_offset)[self.side]
        own = self.box.runs[self.side]
        strides = [
            (self.axes[k].strides[self.side] or 0) * (n if k in own else 1) for k, n in enumerate(self.box.taken)
        ]
        if common_alignment(self.job.aligned[self.side], offset, *strides) % self.word == 0:
            return start
        return f"{start} - (i32)(ADDRESS(row) & {self.word - 1}u)" + (f" / {unit}" if unit > 1 else "")

    def repeat(self, statements: Sequence[str]) -> list[str]:
        """Return statements for every repeat of a thread, if its row is inside the box and the tensor."""
        outer = [digit for digit in self.in_group if digit.digit.axis not in self.box.runs[self.side]]
        conditions = [guard_expression([*outer, *self.rows], self.axes)]
        for k in dict.fromkeys(digit.digit.axis for digit in self.rows):
            own = [digit for digit in self.rows if digit.digit.axis == k]
            if sum((digit.digit.count - 1) * digit.digit.radix for digit in own) >= self.box.taken[k]:
                conditions.append(f"{index_expression(own, k)} < {self.box.taken[k]}u")
        holding = digit_combinations(self.dealt)
        if holding < self.threads:
            conditions.append(f"thread < {holding}u")
        condition = " && ".join(filter(None, conditions))
        return unrolled_loop("r", digit_combinations(self.repeated), conditional(condition, statements))


def _load_box(phase: _Phase) -> list[str]:
    """Return the statements that copy the words of a box into shared memory."""
    job, axes, box, word = phase.job, phase.axes, phase.box, phase.word
    size, run = job.source.nbytes, box.run_length(0) * job.sizes[0]
    reaches = [(box.taken[k] - 1) * (axes[k].strides[0] or 0) for k in box.rows[0]]
    low, high = sum(n for n in reaches if n < 0) - word, sum(n for n in reaches if n > 0) + run + word
    load = [
        f"GLOBAL const u8 *row = from + ({phase.offset(0)});",
        f"const i32 first = {phase.word_start(1)};",
        f"if (first < {run}) {{",
        "    GLOBAL const u8 *at = row + first;",
        f"    LOCAL u8 *place = tile + (skew + ({phase.offset(SHARED)}) + first);",
        f"    if (inside || (u64)(at - source) <= {max(0, size - word)}u) COPY_ASYNC_{word}(place, at);",
        "    else {",
        f"        ROLLED for (i32 k = 0; k < {word}; ++k)",
        f"            if ((u64)(at + k - source) < {size}u) place[k] = LOAD(u8, at + k);",
        "    }",
        "}",
    ]
    return [
        *phase.lines,
        "const i64 start = (i64)(from - source);",
        f"const i32 inside = start >= {-low} && start <= {size - high};  // all words of the box are in the source",
        *phase.repeat(load),
        "STARTED;",
        "ARRIVED(0);",
    ]


def _store_box(phase: _Phase) -> list[str]:
    """Return the statements that write the whole words of a box in the order of the target."""
    job, size = phase.job, phase.job.sizes[1]
    per_word = phase.word // size
    start, advance = _walk_run(phase.axes, phase.box, per_word)
    elements = unrolled_loop("k", per_word, [f"y.each[k] = {_staged_value(job)};", *advance])
    if phase.box.runs[0][:1] == phase.box.runs[1] and job.source.format == job.target.format:
        elements = _join_words(phase)
    union, stored, all_of_it = elements_type(per_word, size)[0], vector_type(phase.word), "y.all"
    if per_word == 1:
        union, stored, all_of_it = raw_type(size), raw_type(size), "y"
        elements = [f"y = {_staged_value(job)};"]
    store = [
        *_row_statements(phase),
        f"i32 i = {phase.word_start(size)};",
        *start,
        f"if (i >= 0 && i + {per_word} <= (i32)length) {{",
        *indent([f"{union} y;", *elements, f"STORE({stored}, row + i * {size}, {all_of_it});"]),
        "}",
    ]
    return [*phase.lines, *_run_end(phase.axes, phase.box, phase.in_group), *phase.repeat(store)]


def _store_ends(phase: _Phase) -> list[str]:
    """Return the statements that write what is left at the ends of runs, each thread an element.

    Threads that write words would all wait for the few that have an end.
    """
    size = phase.job.sizes[1]
    per_word = phase.word // size
    past = f"& {phase.word - 1}u) / {size}u)"
    store = [
        *_row_statements(phase),
        f"const i32 place = (i32)({index_expression(phase.named, len(phase.axes))});",
        f"const i32 head = (i32)((0u - (u32)ADDRESS(row) {past};",
        f"const i32 tail = (i32)length - (i32)(((u32)ADDRESS(row) + length * {size}u {past};",
        f"const i32 i = place < {per_word} ? place : tail + place - {per_word};",
        f"if (i < (i32)length && (i < head) == (place < {per_word})) {{",
        *indent(_walk_run(phase.axes, phase.box, 1)[0]),
        f"    STORE({raw_type(size)}, row + i * {size}, {_staged_value(phase.job)});",
        "}",
    ]
    return [*phase.lines, *_run_end(phase.axes, phase.box, phase.in_group), *phase.repeat(store)]


def _row_statements(phase: _Phase) -> list[str]:
    """Return the declarations of a row in the target, and of its elements in shared memory."""
    return [
        f"GLOBAL u8 *row = to + ({phase.offset(1)});",
        f"LOCAL const u8 *own = tile + (skew + ({phase.offset(SHARED)}));",
    ]


def _staged_value(job: KernelJob) -> str:
    """Return the expression of the element `at` as it is stored."""
    value = f"*(LOCAL const {raw_type(job.sizes[0])} *)(own + at)"
    return value if job.source.format == job.target.format else f"converted({value})"


def _join_words(phase: _Phase) -> list[str]:
    """Return the statements that put a word together from those it lies in: of a run that both sides share."""
    size = phase.job.sizes[1]
    each = [
        "const u64 both = (u64)words[k + 1] << 32 | words[k];",
        "const u32 joined = (u32)(both >> place % 4u * 8u);",
        *unrolled_loop(
            "j",
            BANK_BYTES // size,
            [f"y.each[k * {BANK_BYTES // size} + j] = ({raw_type(size)})(joined >> j * {8 * size});"],
        ),
    ]
    return [
        f"const u32 place = (u32)(skew + ({phase.offset(SHARED)}) + at);",
        "LOCAL const u32 *words = (LOCAL const u32 *)tile + place / 4u;",
        *unrolled_loop("k", phase.word // BANK_BYTES, each),
    ]


def _walk_run(axes: Sequence[LoopAxis], box: StagedBox, per_word: int) -> tuple[list[str], list[str]]:
    """Return statements that declare `at`, the place of element `i` of a run in shared memory, and that advance it.

    `i` may be up to `per_word - 1` before the run; its digits are taken from a later index, which is not negative.
    """
    axes_of_run = box.runs[1]
    strides = [axes[k].strides[SHARED] or 0 for k in axes_of_run]
    if len(axes_of_run) == 1:
        return [f"i32 at = i * {strides[0]};"], [f"at += {strides[0]};"]
    inner = prod([box.taken[k] for k in axes_of_run[:-1]])
    later = -(-(per_word - 1) // inner)
    digits = [Digit(k, box.taken[k], 1) for k in axes_of_run]
    start = [f"const u32 later = (u32)(i + {later * inner});"]
    start += [f"i32 d{n} = (i32)({digit.name});" for n, digit in enumerate(digit_expressions("later", digits))]
    start[-1] = start[-1].replace(";", f" - {later};")
    start.append(f"i32 at = {' + '.join(f'd{n} * {stride}' for n, stride in enumerate(strides))};")
    advance: list[str] = []
    for n in reversed(range(len(strides) - 1)):
        wrap = strides[n + 1] - box.taken[axes_of_run[n]] * strides[n]
        advance = [
            f"if (++d{n} == {box.taken[axes_of_run[n]]}) {{",
            *indent([f"d{n} = 0; at += {wrap};", *advance]),
            "}",
        ]
    return start, [f"at += {strides[0]};", *advance]


def _run_end(axes: Sequence[LoopAxis], box: StagedBox, in_group: Sequence[NamedDigit]) -> list[str]:
    """Return the declaration of `length`, the elements of a run of the target that are inside the tensor."""
    length, last = box.run_length(1), box.runs[1][-1]
    own = [digit for digit in in_group if digit.digit.axis == last]
    if not own or axes[last].extent % box.taken[last] == 0:
        return [f"const u32 length = {length}u;"]
    left = f"({axes[last].extent}u - ({index_expression(own, last)})) * {length // box.taken[last]}u"
    return [f"const u32 left = {left}, length = left < {length}u ? left : {length}u;"]
