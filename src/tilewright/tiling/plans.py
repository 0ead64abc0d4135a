# SPDX-License-Identifier: Apache-2.0
"""`TilePlan`: work cut into independent tasks, to run on one machine or on many.

A task reads its input boxes with their halo from storage, computes, and writes its output box; it needs nothing from
any other task, so it may run anywhere, in any order, and twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np  # noqa: F401  (for the examples)

from ..errors import LayoutError, TransferError
from ..layout.box import Box
from ..showing import Shown
from .execution import Progress, Switch
from .extents import extents
from .fingerprint import UnidentifiedError, fingerprint_compute, name_compute
from .manifest import Manifest
from .operands import check_one_shape, check_operand, halo_of, listed, tiler_with_halo
from .plan_running import PlanRun
from .ports import Port, chunks_of
from .sharing import check_targets_apart, share_storage
from .storage import Handle, Stored, check_sendable, stored
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
        tag: str | None = None,
    ) -> PlanReport:
        """Return what happened when every task ran, here or on any `concurrent.futures` executor.

        Args:
            compute: a function of the arrays of a task's inputs, then of its outputs, which it writes into.
            executor: what runs the tasks; without one they run here, one after another. Short tasks are submitted
                several at a time.
            in_flight: how many submissions may be under way at once. By default twice as many as the executor has
                workers, and two more; a Dask cluster is asked again while it grows.
            retries: how often a task that failed is tried again, perhaps on another worker.
            manifest: a file that remembers what is done, so that a run that was killed goes on where it was. It
                belongs to this compute and to these sources and targets: other ones are refused.
            progress: called with the number of tasks that are done, and that of all tasks.
            cancel: stops the run when it is set, after what was in flight has ended.
            tag: a name for the compute in the manifest, in place of its code: for lambdas, compiled functions, and
                changes that do not matter.

        >>> a, b = np.arange(10), np.zeros(10, int)
        >>> with ThreadPoolExecutor(2) as pool:
        ...     plan_tiles(a, b, tile=(4,)).run(lambda x, y: np.negative(x, out=y), pool).tasks
        3
        >>> b.tolist()
        [0, -1, -2, -3, -4, -5, -6, -7, -8, -9]
        """
        if in_flight is not None and in_flight < 1:
            raise TransferError(f"expected at least 1 task in flight, got {in_flight}; leave it out for the default")
        for what, ends in (("source", self.sources), ("target", self.targets)):
            for end in ends:
                end.verify()
                if executor is not None and not isinstance(executor, ThreadPoolExecutor):
                    check_sendable(end, what)
        started = perf_counter()
        with ExitStack() as files:
            record = None
            if manifest is not None:
                record = files.enter_context(self._open_manifest(manifest, compute, tag))
            run = PlanRun(self, compute, executor, record, progress, cancel, retries, in_flight)
            run.go()
        return PlanReport(run.ran, run.skipped, run.retried, perf_counter() - started)

    def _open_manifest(self, path: str | Path, compute: Callable[..., Any], tag: str | None) -> Manifest:
        """Return the manifest of this work; raise if it belongs to other work, or nobody can tell."""
        unknown = ""
        work: dict[str, Any] = {"name": name_compute(compute)}
        if tag is not None:
            work = {"tag": str(tag)}
        else:
            try:
                work["code"] = fingerprint_compute(compute)
            except UnidentifiedError as problem:
                unknown = str(problem)
        found = Manifest(path, {"compute": work, **self._identity()})
        if unknown and found.done:
            found.close()
            raise TransferError(
                f"cannot tell whether {path} was made by this compute: {unknown}; name the compute with tag='...', here"
                " and when the work is begun, or remove the manifest to start from the beginning"
            )
        return found

    def _identity(self) -> dict[str, Any]:
        """Return what tells the work from other work, beside the compute: what is read and written, in what parts."""
        return {
            **{f"source {k}": end.identity(reading=True) for k, end in enumerate(self.sources)},
            **{f"target {k}": end.identity(reading=False) for k, end in enumerate(self.targets)},
            "tilers": [repr(tiler) for tiler in (*self.reading, *self.writing)],
            "pad": repr(self.pad),
            "the range of tasks": [self.first, self.last],
        }


def plan_tiles(
    source: Any, target: Any, tile: Any, overlap: Any = 0, pad: Any = 0, order: str = "row_major"
) -> TilePlan:
    """Return the plan that cuts sources and targets, of one shape each, into independent tasks.

    Sources and targets are `.npy` files, memory maps, arrays or anything that slices, one or a list; the targets
    exist. `overlap` and `pad` are those of `stream`.

    >>> plan_tiles(np.zeros((100, 100)), np.zeros((100, 100)), tile=(30, 50), overlap=2)[0].bytes_in
    13312
    """
    for what, things in (("source", listed(source)), ("target", listed(target))):
        for thing in things:
            if not isinstance(thing, (str, Path)):
                check_operand(thing, what)
    sources, targets = [stored(thing) for thing in listed(source)], [stored(thing) for thing in listed(target)]
    if not sources or not targets:
        raise TransferError("a tile plan needs at least one source and one target")
    read, written = [end.port(False) for end in sources], [end.port(True) for end in targets]
    check_one_shape(read, written)
    _check_apart(read, written)
    shape = read[0].shape
    for end in targets:
        _check_chunks(end, shape, tile)
    halo = halo_of(overlap, len(shape))
    reading = (tiler_with_halo(shape, tile, halo, order),) * len(sources)
    writing = (Tiler(shape, tile, order=order),) * len(targets)
    sizes = tuple([port.dtype.itemsize for port in read]), tuple([port.dtype.itemsize for port in written])
    return TilePlan(tuple(sources), tuple(targets), reading, writing, sizes, pad, 0, writing[0].count)


def _check_apart(reading: list[Port], writing: list[Port]) -> None:
    """Raise if a target overwrites a source: a task may run after its neighbours, or twice, and must find the same."""
    check_targets_apart(writing)
    if any(share_storage(source, target) for source in reading for target in writing):
        raise TransferError(
            "a source and a target of the plan are the same array or file, and a task that is tried again would read"
            " what it has written; write to another one, or use stream, which works in place where that is safe"
        )


def _check_chunks(end: Stored, whole: tuple[int, ...], tile: Any) -> None:
    """Raise if two tasks would write one chunk of a chunked target, which is not safe."""
    chunks = chunks_of(end.thing) if isinstance(end, Handle) else None
    if chunks is None:
        return
    shape = extents(tile, "tile", len(chunks))
    if any(t % c and t < n for t, c, n in zip(shape, chunks, whole, strict=True)):
        raise LayoutError(
            f"tiles of {shape} cut the chunks of {chunks} that the target is stored in, and two tasks would write one"
            " chunk; use tiles that are multiples of the chunks"
        )
