# SPDX-License-Identifier: Apache-2.0
"""`TilePlan`: work cut into independent tasks, to run on one machine or on many.

A task reads its input boxes with their halo from storage, computes, and writes its output box; it needs nothing from
any other task, so it may run anywhere, in any order, and twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ..errors import LayoutError, TransferError
from ..layout.boxes import Box
from ..showing import Shown
from .execution import Progress, Switch
from .extents import extents
from .manifest import Manifest
from .operands import halo_of, listed, port_of, tiler_with_halo
from .plan_running import PlanRun, tasks_in_flight
from .ports import chunks_of
from .sharing import check_targets_apart, share_storage
from .storage import Stored, StoredFile, check_sendable, stored
from .tiler import Tiler


@dataclass(frozen=True, slots=True)
class Task:
    """One independent piece of work: the boxes it reads, halo included, the boxes it writes, and what that takes.

    >>> Task(3, (Box((3,), (6,)),), (Box((4,), (4,)),), 48, 32, 80).outputs[0]
    Box(offset=(4,), shape=(4,))
    """

    number: int
    inputs: tuple[Box, ...]
    outputs: tuple[Box, ...]
    bytes_in: int
    bytes_out: int
    peak_memory: int


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What a run of a plan did: tasks run, tasks that were done before, attempts beyond the first, and seconds.

    >>> PlanReport(tasks=9, skipped=1, retried=0, seconds=0.5).tasks
    9
    """

    tasks: int
    skipped: int
    retried: int
    seconds: float


@dataclass(frozen=True)
class TilePlan(Shown, Sequence[Task]):
    """A list of independent tasks, made on demand, over stored sources and targets.

    >>> a, b = np.arange(10.0), np.zeros(10)
    >>> plan = plan_tiles(a, b, tile=(4,), overlap=1, pad="edge")
    >>> len(plan), plan[1].inputs
    (3, (Box(offset=(3,), shape=(6,)),))
    >>> plan.run(lambda x, y: np.add(x[:-2], x[2:], out=y)).tasks
    3
    >>> b.tolist()
    [1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 17.0]
    """

    sources: tuple[Stored, ...]
    targets: tuple[Stored, ...]
    reading: tuple[Tiler, ...]
    writing: tuple[Tiler, ...]
    sizes: tuple[tuple[int, ...], tuple[int, ...]]
    pad: Any = 0
    first: int = 0
    last: int = 0

    def __len__(self) -> int:
        return self.last - self.first

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"task {index} is outside the {len(self)} tasks of this plan")
        return self._task(self.first + index % len(self))

    def __iter__(self) -> Iterator[Task]:
        return map(self._task, range(self.first, self.last))

    def _task(self, number: int) -> Task:
        inputs = tuple([tiler[number] for tiler in self.reading])
        outputs = tuple([tiler[number] for tiler in self.writing])
        read = [box.within(tiler.space).size for box, tiler in zip(inputs, self.reading, strict=True)]
        written = [box.size for box in outputs]
        into, out = self.sizes
        bytes_in = sum([n * size for n, size in zip(read, into, strict=True)])
        bytes_out = sum([n * size for n, size in zip(written, out, strict=True)])
        rooms = sum([box.size * size for box, size in zip(inputs, into, strict=True)])
        # what is read piece by piece lies beside its room for a moment
        return Task(number, inputs, outputs, bytes_in, bytes_out, bytes_in + rooms + bytes_out)

    @property
    def tasks(self) -> list[Task]:
        """Return all tasks as a list.

        >>> [task.number for task in plan_tiles(np.zeros(10), np.zeros(10), tile=(4,)).tasks]
        [0, 1, 2]
        """
        return list(self)

    @property
    def peak_memory(self) -> int:
        """Return the most memory that a task takes for its tiles.

        >>> plan_tiles(np.zeros(10), np.zeros(10), tile=(4,)).peak_memory
        96
        """
        return max([task.peak_memory for task in self], default=0)

    def part(self, i: int, n: int) -> TilePlan:
        """Return the i-th of n parts, for batch systems: neighbouring tasks, as many as the other parts have.

        >>> plan = plan_tiles(np.zeros(10), np.zeros(10), tile=(2,))
        >>> [len(plan.part(i, 3)) for i in range(3)]
        [1, 2, 2]
        """
        if not 0 <= i < n:
            raise LayoutError(f"part {i} of {n} does not exist; parts are counted from 0 to {n - 1}")
        count = len(self)
        return replace(self, first=self.first + count * i // n, last=self.first + count * (i + 1) // n)

    def run(
        self,
        compute: Callable[..., Any],
        executor: Executor | None = None,
        in_flight: int | None = None,
        retries: int = 2,
        manifest: str | Path | None = None,
        progress: Progress | None = None,
        cancel: Switch | None = None,
    ) -> PlanReport:
        """Return what happened when every task ran, here or on any `concurrent.futures` executor.

        At most `in_flight` tasks are submitted at a time. A task that fails is tried again, `retries` times, perhaps
        on another worker. A `manifest` remembers what is done, so that a run that was killed goes on where it was;
        what a task wrote is read again then, and if it is no longer there the task is done again.

        >>> a, b = np.arange(10), np.zeros(10, int)
        >>> with ThreadPoolExecutor(2) as pool:
        ...     plan_tiles(a, b, tile=(4,)).run(lambda x, y: np.negative(x, out=y), pool).tasks
        3
        >>> b.tolist()
        [0, -1, -2, -3, -4, -5, -6, -7, -8, -9]
        """
        if executor is not None and not isinstance(executor, ThreadPoolExecutor):
            for reference in self.sources:
                check_sendable(reference, "source")
            for reference in self.targets:
                check_sendable(reference, "target")
        started = perf_counter()
        record = None if manifest is None else Manifest(manifest, self._identity())
        try:
            run = PlanRun(self, compute, executor, record, progress, cancel, retries)
            run.go(in_flight or tasks_in_flight(executor))
        finally:
            if record is not None:
                record.close()
        return PlanReport(run.ran, run.skipped, run.retried, perf_counter() - started)

    def _identity(self) -> dict[str, Any]:
        """Return what tells this plan from others: what is read and written, and how it is cut."""
        ends = [repr(end) if isinstance(end, StoredFile) else type(end.thing).__name__ for end in self._ends()]
        return {
            "the list of sources and targets": ends,
            "the time at which sources were written": [
                os.stat(end.path).st_mtime_ns for end in self.sources if isinstance(end, StoredFile)
            ],
            "tilers": [repr(tiler) for tiler in (*self.reading, *self.writing)],
            "pad": repr(self.pad),
            "the range of tasks": [self.first, self.last],
        }

    def _ends(self) -> tuple[Stored, ...]:
        return (*self.sources, *self.targets)


def plan_tiles(
    source: Any, target: Any, tile: Any, overlap: Any = 0, pad: Any = 0, order: str = "row_major"
) -> TilePlan:
    """Return the plan that cuts sources and targets, of one shape each, into independent tasks.

    Sources and targets are `.npy` files, memory maps, arrays or anything that slices, one or a list; the targets
    exist. `overlap` and `pad` are those of `stream`.

    >>> plan_tiles(np.zeros((100, 100)), np.zeros((100, 100)), tile=(30, 50), overlap=2)[0].bytes_in
    13312
    """
    sources, targets = [stored(thing) for thing in listed(source)], [stored(thing) for thing in listed(target)]
    if not sources or not targets:
        raise TransferError("a tile plan needs at least one source and one target")
    seen = [[end.open(writing) for end in ends] for ends, writing in ((sources, False), (targets, True))]
    _check_apart(*seen)
    for thing in seen[1]:
        _check_chunks(thing, tile)
    halo = halo_of(overlap, len(seen[0][0].shape))
    reading = tuple([tiler_with_halo(thing.shape, tile, halo, order) for thing in seen[0]])
    writing = tuple([Tiler([int(n) for n in thing.shape], tile, order=order) for thing in seen[1]])
    counts = {tiler.count for tiler in (*reading, *writing)}
    if len(counts) > 1:
        raise LayoutError(f"sources and targets are cut into {sorted(counts)} tiles; they must have one shape")
    sizes = tuple([tuple([np.dtype(thing.dtype).itemsize for thing in things]) for things in seen])
    return TilePlan(tuple(sources), tuple(targets), reading, writing, sizes, pad, 0, counts.pop())  # type: ignore[arg-type]


def _check_apart(sources: list[Any], targets: list[Any]) -> None:
    """Raise if a target overwrites a source: a task may run after its neighbours, or twice, and must find the same."""
    reading, writing = [port_of(thing) for thing in sources], [port_of(thing, writing=True) for thing in targets]
    check_targets_apart(writing)
    if any(share_storage(source, target) for source in reading for target in writing):
        raise TransferError(
            "a source and a target of the plan are the same array or file, and a task that is tried again would read"
            " what it has written; write to another one, or use stream, which works in place where that is safe"
        )


def _check_chunks(thing: Any, tile: Any) -> None:
    """Raise if two tasks would write one chunk of a chunked target, which is not safe."""
    chunks = chunks_of(thing)
    if chunks is None:
        return
    shape = extents(tile, "tile", len(chunks))
    if any(t % c and t < n for t, c, n in zip(shape, chunks, thing.shape, strict=True)):
        raise LayoutError(
            f"tiles of {shape} cut the chunks of {chunks} that the target is stored in, and two tasks would write one"
            " chunk; use tiles that are multiples of the chunks"
        )
