# SPDX-License-Identifier: Apache-2.0
"""Lines: which rows and columns of some matrices make the rows or columns of another, in which order.

Few elements of each line are compared, with a tolerance for formats that round: enough to find the lines, and no proof.
The result is an expression over the matrices, as rules and recipes write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import isqrt, prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..copying import Assembly
from ..files import StoredTensor
from ..formats import Format, cast
from ..layout import Box
from .recipe import parse_signature
from .rules import evaluate
from .source import stored_assembly
from .tensor_diff import Array, ComparedTensor, row_major_slabs

Flags: TypeAlias = "NDArray[np.bool_]"

HELPERS = {
    "as_rank(x, rank)": "reshape(x, *[1 for k in range(rank - len(shape(x)))], *shape(x))",
    "rows_of(x, size)": "reshape(x, shape(x)[0] // size, size)",
    "rest(x, start)": "slice(x, start, shape(x)[0])",
    "item(x, k)": "reshape(slice(x, k, k + 1), *shape(x)[1:])",
    "paired(x, size)": "pairs(x, shape(x)[0] // size)",
    "halved(x, size)": (
        "reshape(transpose(reshape(x, shape(x)[0] // size, size // 2, 2, *shape(x)[1:]),"
        " [0, 2, 1, *[d + 2 for d in range(1, len(shape(x)))]]), *shape(x))"
    ),
    "every(x, size, step, k)": (
        "reshape(slice(reshape(x, shape(x)[0] // (size * step), step, size, *shape(x)[1:]), k, k + 1, 1),"
        " shape(x)[0] // step, *shape(x)[1:])"
    ),
    "interleave(tensors, count)": "join([chunk(each, count)[d] for d in range(count) for each in tensors])",
}
"""Functions of the expressions that are found, as a recipe defines them; only the short names of a longer text."""

_SAMPLES = 32  # elements of a line that are compared
_SLAB = 1 << 22  # elements in memory at a time
_SEEDS = 12  # lines by which the matrices are found
_MAX_STARTS = 64  # of runs that are tried for one line
_MAX_RUNS = 1 << 12
_LONG, _SHORT_RUNS = 8, 4  # elements of a vector that must be found together, but for some runs


@cache
def helper_functions() -> dict[str, Callable[..., Any]]:
    """Return the functions of `HELPERS` by name.

    >>> helper_functions()["as_rank"](Assembly.of("w", (4, 6)), 4).shape
    (1, 1, 4, 6)
    """

    def define(text: str, parameters: Sequence[str]) -> Callable[..., Any]:
        return lambda *values: evaluate(text, dict(zip(parameters, values, strict=True)))

    return {name: define(text, own) for key, text in HELPERS.items() for name, own in [parse_signature(key)]}


def assemble(text: str, tensors: Mapping[str, StoredTensor]) -> Assembly:
    """Return the value of an expression over `tensors`, which may use `HELPERS`.

    >>> from tilewright.files import store_arrays
    >>> assemble("as_rank(tensor('w'), 3)", store_arrays({"w": np.ones((2, 3))})).text
    "reshape(tensor('w'), 1, 2, 3)"
    """
    value: Assembly = evaluate(text, {"tensor": lambda name: stored_assembly(tensors[name]), **helper_functions()})
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """A matrix or vector of a tensor, by an expression: all of it, or the part at `lead` of its first dimensions.

    >>> x = ComparedTensor(np.arange(24).reshape(2, 3, 4), (2, 3, 4), None)
    >>> [(panel.text, panel.shape) for panel in Panel.of("x", x)]
    [("item(tensor('x'), 0)", (3, 4)), ("item(tensor('x'), 1)", (3, 4))]
    """

    name: str
    text: str
    tensor: ComparedTensor
    lead: tuple[int, ...]  # of the dimensions that are longer than 1
    shape: tuple[int, ...]

    @classmethod
    def of(cls, name: str, tensor: ComparedTensor) -> list[Panel]:
        """Return the panels of a tensor; none if it has too many."""
        long = tuple([n for n in tensor.shape if n != 1]) or (1,)
        if prod(long[:-2]) > _MAX_RUNS:
            return []
        source = f"tensor({name!r})"
        flat = source if tensor.shape == long else f"reshape({source}, {', '.join(map(str, long))})"
        result = []
        for lead in np.ndindex(*long[:-2]):
            text = flat
            for k in lead:
                text = f"item({text}, {k})"
            result.append(cls(name, text, tensor, lead, long[-2:]))
        return result

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """Return the values of the rows from `start` to `stop`, by default all."""
        return self._read(self.tensor.read, start, stop)

    def steps(self, start: int, stop: int) -> Array | None:
        """Return the steps of the values of some rows, which bound their rounding errors; None if they are exact."""
        has_blocks = self.tensor.format is not None and self.tensor.format.has_blocks
        return self._read(self.tensor.step_sizes, start, stop) if has_blocks else None

    def _read(self, read: Callable[[Box], Any], start: int, stop: int | None) -> Array:
        end = self.shape[0] if stop is None else stop
        window = iter([*[(k, 1) for k in self.lead], (start, end - start), *[(0, n) for n in self.shape[1:]]])
        ranges = [next(window) if n != 1 else (0, 1) for n in self.tensor.shape]
        values: Array = read(Box(tuple([at for at, _ in ranges]), tuple([n for _, n in ranges])))
        return values.reshape(end - start, -1)


class Lines(NamedTuple):
    """Some elements of each row or column of a panel, their steps, and which lines are not zero."""

    values: Array
    steps: Array | None
    used: Flags
    length: int

    def rounded(self, element: Format | None) -> Lines:
        """Return the lines in the format that they are compared in."""
        if element is None or element.has_blocks or element.kind != "float" or element.value_dtype == np.float32:
            return self
        return self._replace(values=cast(self.values, element).astype(np.float32))


def sample_lines(panel: Panel, lengths: tuple[int, int] | None = None) -> tuple[Lines, Lines]:
    """Return the rows and the columns of a panel; their first elements, up to `lengths`, by default all.

    >>> x = ComparedTensor(np.eye(3, 4, dtype=np.float32), (3, 4), None)
    >>> rows, columns = sample_lines(*Panel.of("x", x))
    >>> rows.values.tolist()[0], columns.used.tolist(), columns.length
    ([1.0, 0.0, 0.0, 0.0], [True, True, True, False], 3)
    """
    height, width = panel.shape[0], prod(panel.shape[1:])
    long = lengths or (width, height)
    at = [np.unique(np.linspace(0, n - 1, _SAMPLES).astype(np.int64)) for n in long]
    values = [np.zeros((n, len(own)), np.float32) for n, own in zip((height, width), at, strict=True)]
    steps = [np.zeros_like(array) for array in values]
    used = [np.zeros(n, np.bool_) for n in (height, width)]
    has_steps = False
    for box in row_major_slabs((height, width), max(_SLAB, width)):
        start, stop = box.offset[0], box.end[0]
        inside = slice(*np.searchsorted(at[1], (start, stop)))
        for target, read in ((values, panel.read(start, stop)), (steps, panel.steps(start, stop))):
            if read is None:
                continue
            target[0][start:stop], target[1][:, inside] = read[:, at[0]], read[at[1][inside] - start].T
            if target is values:
                used[0][start:stop], used[1][:] = read.any(axis=1), used[1] | read.any(axis=0)
            else:
                has_steps = True
    rows, columns = (Lines(values[k], steps[k] if has_steps else None, used[k], long[k]) for k in (0, 1))
    return rows, columns


class LineIndex:
    """Lines in the order of their first element, so that equal ones are found fast.

    >>> rows = np.float32([[3, 1], [1, 2], [3, 1]])
    >>> LineIndex(rows).find(np.float32([3, 1]), None).tolist()
    [0, 2]
    """

    def __init__(self, values: Array) -> None:
        self.values = values
        self.order = np.argsort(values[:, 0], kind="stable")
        self.first = values[self.order, 0]

    def find(self, line: Array, steps: Array | None) -> NDArray[np.int64]:
        """Return which lines are equal to a `line`, or within `steps` of it."""
        apart = np.zeros_like(line) if steps is None else steps
        low = np.searchsorted(self.first, line[0] - apart[0], "left")
        high = np.searchsorted(self.first, line[0] + apart[0], "right")
        hits = self.order[low:high]
        for part in (slice(1, 3), slice(3, None)) if len(hits) else ():  # most differ at once
            hits = hits[(np.abs(self.values[hits, part] - line[part]) <= apart[part]).all(axis=1)]
        return np.sort(hits)


# Runs: lines that follow each other in both, in order or in the order of heads.


class LineRun(NamedTuple):
    """Lines of a panel in an order: from `start` on, `length` of them, in heads of `size` where that is not 0.

    `panel` is a number; -1 stands for lines of zeros.
    """

    panel: int
    order: str
    size: int
    start: int
    length: int

    def after(self, steps: int) -> LineRun:
        """Return the run that follows it in its panel as far as `steps` such runs."""
        return self._replace(start=self.start + steps * self.length)


def order_of_lines(order: str, size: int, count: int) -> NDArray[np.int64]:
    """Return the positions of `count` lines, in heads of `size` in pairs or halves where that is not 0.

    >>> order_of_lines("paired", 4, 4).tolist()
    [0, 2, 1, 3]
    """
    at = np.arange(count, dtype=np.int64)
    if not size:
        return at
    head, inside = at // size * size, at % size
    half = size // 2
    return head + (inside % 2 * half + inside // 2 if order == "paired" else inside % half * 2 + inside // half)


def _length_of_run(ours: Array, wanted: Lines, at: int, index: Array) -> int:
    """Return how many lines from `at` on are the lines `index` of ours, in order."""
    count, size = 0, 64
    index = index[: len(wanted.values) - at]
    index = index[: int(np.argmax(index >= len(ours)))] if len(index) and index.max() >= len(ours) else index
    while count < len(index):
        part = slice(at + count, at + min(count + size, len(index)))
        apart = 0.0 if wanted.steps is None else wanted.steps[part]
        good = np.asarray((np.abs(ours[index[count : count + size]] - wanted.values[part]) <= apart).all(axis=1))
        if not good.all():
            return count + int(good.argmin())
        count += len(good)
        size *= 4
    return count


def find_runs(wanted: Lines, sources: Sequence[Lines]) -> list[LineRun] | None:
    """Return the runs of lines of `sources` that make up the `wanted` ones; None if they do not, or too many would.

    >>> def lines(*numbers):
    ...     return Lines(np.float32(numbers)[:, None], None, np.array(numbers) != 0, 1)
    >>> runs = find_runs(lines(3, 5, 4, 6, 9, 0), [lines(9, 8), lines(3, 4, 5, 6)])
    >>> [(run.panel, run.order, run.start, run.length) for run in runs]
    [(1, 'paired', 0, 4), (0, '', 0, 1), (-1, '', 0, 1)]
    """
    indices = [LineIndex(source.values) for source in sources]
    runs: list[LineRun] = []
    at, total = 0, len(wanted.values)
    while at < total:
        # a vector can be made of single elements of any others: most of its runs have to be long
        if len(runs) > _MAX_RUNS or (wanted.length == 1 and at < _LONG * (len(runs) - _SHORT_RUNS)):
            return None
        zeros = wanted.used[at:]
        count = int(zeros.argmax()) if zeros.any() else len(zeros)
        nothing = [LineRun(-1, "", 0, 0, count)] if count else []  # unless a source also has zeros there
        longest = max(
            [*nothing, *_runs_at(wanted, at, sources, indices, runs)], key=lambda run: run.length, default=None
        )
        if longest is None:
            return None
        runs.append(longest)
        at += runs[-1].length
    return runs


def _runs_at(
    wanted: Lines, at: int, sources: Sequence[Lines], indices: list[LineIndex], before: list[LineRun]
) -> Iterator[LineRun]:
    """Yield the runs that may begin at a line; continuations of earlier runs come first."""

    def starts(k: int, line: int) -> list[int]:
        steps = None if wanted.steps is None else wanted.steps[line]
        lines = indices[k].find(wanted.values[line], steps).tolist()
        ends = {run.start + run.length for run in before[-2 * len(sources) :] if run.panel == k}
        return sorted(lines, key=lambda start: start not in ends)[:_MAX_STARTS]

    for k, own in enumerate(sources):
        tried: set[tuple[int, str, int]] = set()
        for start in starts(k, at):
            plain = _length_of_run(own.values, wanted, at, start + np.arange(len(own.values) - start))
            yield LineRun(k, "", 0, start, plain)
            if plain > 1 or at + 1 >= len(wanted.values):
                continue
            for second in starts(k, at + 1):
                half = second - start
                sizes = [("paired", 2 * half)] if half > 1 else []
                if half == 2:
                    strided = _length_of_run(own.values, wanted, at, start + 2 * np.arange(len(own.values)))
                    sizes += [("halved", 2 * strided)]
                for order, size in sizes:
                    if (start, order, size) in tried:
                        continue
                    tried.add((start, order, size))
                    index = start + order_of_lines(order, size, (len(own.values) - start) // size * size)
                    count = _length_of_run(own.values, wanted, at, index) // size * size
                    if count:
                        yield LineRun(k, order, size, start, count)


# Expressions of runs.


def divisors(number: int) -> list[int]:
    """Return all divisors of a number.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    low = [k for k in range(1, isqrt(number) + 1) if number % k == 0]
    return sorted({*low, *[number // k for k in low]})


def _spell_source(run: LineRun, text: str, extent: int) -> str:
    """Return the lines of a run as an expression, whose source is a `text` with an `extent`."""
    part = text if run.length == extent else f"slice({text}, {run.start}, {run.start + run.length})"
    if 0 < run.start == extent - run.length:
        part = f"rest({text}, {run.start})"
    return f"{run.order}({part}, {run.size})" if run.order else part


def _count_regular(runs: Sequence[LineRun], extents: Sequence[int]) -> int:
    """Return how many of the first runs are equal blocks at equal distances, all over their source."""
    if len(runs) < 2 or runs[0].panel < 0 or runs[0].order or runs[1].start <= runs[0].start:
        return 0
    (panel, _, _, start, length), step = runs[0], runs[1].start - runs[0].start
    count = extents[panel] // step
    regular = [runs[0]._replace(start=start + k * step) for k in range(count)]
    whole = extents[panel] % step == step % length == start % length == 0 and start < step > length
    return count if whole and list(runs[:count]) == regular else 0


def spell_runs(runs: Sequence[LineRun], texts: Sequence[str], extents: Sequence[int]) -> str | None:
    """Return the expression of some runs over panels with `texts` and `extents`; None if zeros come first.

    >>> runs = [LineRun(0, "", 0, 0, 2), LineRun(1, "", 0, 0, 1), LineRun(0, "", 0, 2, 2), LineRun(1, "", 0, 1, 1)]
    >>> spell_runs([*runs, LineRun(-1, "", 0, 0, 2)], ["q", "k"], [4, 2])
    'pad(interleave([q, k], 2), 8, 0)'
    """
    zeros = runs[-1].length if runs and runs[-1].panel < 0 else 0
    body = list(runs[:-1] if zeros else runs)
    if not body or body[0].panel < 0:
        return None
    total = sum(run.length for run in runs)
    candidates = [_spell_joined(body, texts, extents)]
    for size in divisors(len(body))[1:-1]:
        groups = len(body) // size
        if all(run.panel >= 0 and run == body[k % size].after(k // size) for k, run in enumerate(body)):
            whole = [run._replace(length=run.length * groups) for run in body[:size]]
            parts = [_spell_source(run, texts[run.panel], extents[run.panel]) for run in whole]
            candidates.append(f"interleave([{', '.join(parts)}], {groups})")
            break
    text = min(candidates, key=len)
    return f"pad({text}, {total}, 0)" if zeros else text


def _spell_joined(body: Sequence[LineRun], texts: Sequence[str], extents: Sequence[int]) -> str:
    """Return runs as an expression, one after the other."""
    parts: list[str] = []
    at = 0
    while at < len(body):
        run, every = body[at], _count_regular(body[at:], extents)
        if run.panel < 0:
            parts[-1] = f"pad({parts[-1]}, {body[at - 1].length + run.length}, 0)"
        elif every > 1:
            step = (body[at + 1].start - run.start) // run.length
            parts.append(f"every({texts[run.panel]}, {run.length}, {step}, {run.start // run.length})")
        else:
            parts.append(_spell_source(run, texts[run.panel], extents[run.panel]))
        at += max(every, 1)
    return parts[0] if len(parts) == 1 else f"join([{', '.join(parts)}])"


class Wanted:
    """A panel to be found in others: its lines, without the zeros at their ends.

    >>> x = ComparedTensor(np.pad(np.ones((2, 3), np.float32), 1)[1:], (3, 5), None)
    >>> Wanted(Panel.of("x", x)[0]).lengths
    (4, 2)
    """

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self.lines = sample_lines(panel)
        ends = [int(np.max(np.flatnonzero(lines.used), initial=0)) + 1 for lines in self.lines]
        self.lengths = (ends[1], ends[0])
        if self.lengths != tuple([lines.length for lines in self.lines]):
            self.lines = sample_lines(panel, self.lengths)

    @property
    def axes(self) -> list[int]:
        """The axes with lines that can be told apart: both of a matrix, and the elements of a vector."""
        return [0, 1] if len(self.panel.shape) > 1 else [0]

    def seeds(self, axis: int) -> list[int]:
        """Return some lines along an axis that are not zero, evenly spread."""
        used = np.flatnonzero(self.lines[axis].used)
        return used[np.unique(np.linspace(0, len(used) - 1, _SEEDS).astype(np.int64))].tolist() if len(used) else []

    def hits(self, lines: tuple[Lines, Lines]) -> set[tuple[int, int]]:
        """Return the pairs of its axes and axes of another panel along which some lines of the two are equal."""
        pairs = set()
        for axis, theirs in product(self.axes, (0, 1)):
            own, other = self.lines[axis], lines[theirs]
            if own.length != other.length or (len(self.panel.shape) == 1) != (other.length == 1):
                continue
            index = LineIndex(other.rounded(self.panel.tensor.format).values)
            for seed in self.seeds(axis):
                if len(index.find(own.values[seed], None if own.steps is None else own.steps[seed])):
                    pairs.add((axis, theirs))
                    break
        return pairs

    def express(self, axis: int, sources: Sequence[tuple[Panel, int, Lines]]) -> str | None:
        """Return the expression that makes the panel from the lines of others; None if there is none.

        Args:
            axis: the axis of the panel whose lines are looked for.
            sources: the other panels, along which axis they are taken, and their lines.
        """
        rounded = [lines.rounded(self.panel.tensor.format) for _, _, lines in sources]
        runs = find_runs(self.lines[axis], rounded)
        if runs is None:
            return None
        if self.lines[axis].length == 1 and sum(run.length for run in runs) < _LONG * len(runs):
            return None
        texts = [panel.text if along == 0 else f"transpose({panel.text})" for panel, along, _ in sources]
        text = spell_runs(runs, texts, [len(lines.used) for _, _, lines in sources])
        if text is None:
            return None
        shape = self.panel.shape
        if len(shape) > 1 and self.lengths[axis] < shape[1 - axis]:
            text = f"pad({text}, {shape[1 - axis]})"
        return f"transpose({text})" if axis else text
