# SPDX-License-Identifier: Apache-2.0
"""`TilePlan`: a computation cut into independent tasks, to run on one machine or on many.

A task reads its input boxes with their halo from storage, computes, and writes its output boxes. It depends on no other
task, so it may run anywhere, in any order, and twice.
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

from ..display import Shown
from ..errors import LayoutError, TransferError
from ..layout import Box
from .array_store import chunk_shape, share_bytes, validate_separate_targets
from .endpoints import Endpoint
from .fingerprint import UnidentifiedError, fingerprint_compute, name_compute
from .operands import (
    ArrayReference,
    as_list,
    make_reference,
    open_operand,
    tiler_with_halo,
    validate_equal_shapes,
    validate_operand,
    validate_sendable,
)
from .plan_executor import ExecutorFactory, ExecutorSource
from .plan_runner import PlanRunner
from .sliced_endpoint import SlicedEndpoint
from .task_manifest import MergedManifests, TaskManifest, merge_manifests
from .tile_compute import CancelFlag, ProgressCallback
from .tiler import Extents, Margins, Tiler, as_extents, as_margins


@dataclass(frozen=True, slots=True)
class Task:
    """An independent task: the boxes it reads, halo included, the boxes it writes, and the bytes it takes.

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
    """What a run of a plan did: tasks run, tasks skipped because they were done before, retries, and seconds.

    `replaced` is the number of executors that broke or were stuck, and that a new one took the place of.

    >>> PlanReport(tasks=9, skipped=1, retried=0, seconds=0.5).tasks
    9
    """

    tasks: int
    skipped: int
    retried: int
    seconds: float
    replaced: int = 0


@dataclass(frozen=True)
class TilePlan(Shown, Sequence[Task]):
    """A sequence of independent tasks, generated on demand, over sources and targets.

    `reading` and `writing` are their tilers, `sizes` the bytes of a tile of each; elements outside a source are `pad`.
    The plan has the tasks from `first` up to but not including `last`.

    >>> a, b = np.arange(10.0), np.zeros(10)
    >>> plan = plan_tiles(a, b, tile=(4,), overlap=1, pad="edge")
    >>> len(plan), plan[1].inputs
    (3, (Box(offset=(3,), shape=(6,)),))
    >>> plan.run(lambda x, y: np.add(x[:-2], x[2:], out=y)).tasks
    3
    >>> b.tolist()
    [1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 17.0]
    """

    sources: tuple[ArrayReference, ...]
    targets: tuple[ArrayReference, ...]
    reading: tuple[Tiler, ...]
    writing: tuple[Tiler, ...]
    sizes: tuple[tuple[int, ...], tuple[int, ...]]
    pad: Any = 0
    first: int = 0
    last: int = 0

    def __len__(self) -> int:
        return self.last - self.first

    def __getitem__(self, index: Any) -> Any:  # a Task, or a list of them for a slice
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"task {index} is outside the {len(self)} tasks of this plan")
        return self.task(self.first + index % len(self))

    def __iter__(self) -> Iterator[Task]:
        return map(self.task, range(self.first, self.last))

    def task(self, number: int) -> Task:
        """Return task `number` of the undivided plan.

        >>> plan_tiles(np.zeros(10), np.zeros(10), tile=(4,)).task(2).outputs
        (Box(offset=(8,), shape=(2,)),)
        """
        inputs = tuple([tiler[number] for tiler in self.reading])
        outputs = tuple([tiler[number] for tiler in self.writing])
        read = [box.within(tiler.space).size for box, tiler in zip(inputs, self.reading, strict=True)]
        written = [box.size for box in outputs]
        into, out = self.sizes
        bytes_in = sum([n * size for n, size in zip(read, into, strict=True)])
        bytes_out = sum([n * size for n, size in zip(written, out, strict=True)])
        buffers = sum([box.size * size for box, size in zip(inputs, into, strict=True)])
        # a sliced source is in memory beside its buffer for a moment
        return Task(number, inputs, outputs, bytes_in, bytes_out, bytes_in + buffers + bytes_out)

    @property
    def tasks(self) -> list[Task]:
        """Return all tasks as a list.

        >>> [task.number for task in plan_tiles(np.zeros(10), np.zeros(10), tile=(4,)).tasks]
        [0, 1, 2]
        """
        return list(self)

    @property
    def peak_memory(self) -> int:
        """Return the most memory that the tiles of a task take.

        >>> plan_tiles(np.zeros(10), np.zeros(10), tile=(4,)).peak_memory
        96
        """
        return max([task.peak_memory for task in self], default=0)

    def part(self, i: int, n: int) -> TilePlan:
        """Return part `i` of `n` about equal parts of neighbouring tasks, for batch systems.

        >>> plan = plan_tiles(np.zeros(10), np.zeros(10), tile=(2,))
        >>> [len(plan.part(i, 3)) for i in range(3)]
        [1, 2, 2]
        """
        if not 0 <= i < n:
            raise LayoutError(f"part {i} of {n} does not exist; use 0 to {n - 1}")
        count = len(self)
        return replace(self, first=self.first + count * i // n, last=self.first + count * (i + 1) // n)

    def run(
        self,
        compute: Callable[..., Any],
        executor: Executor | ExecutorFactory | None = None,
        in_flight: int | None = None,
        retries: int = 2,
        manifest: str | Path | None = None,
        progress: ProgressCallback | None = None,
        cancel: CancelFlag | None = None,
        tag: str | None = None,
        timeout: float | None = None,
    ) -> PlanReport:
        """Run every task, here or on any `concurrent.futures` executor, and return a report.

        Args:
            compute: a function of the arrays of a task's inputs, then of its outputs, which it writes into. The next
                task may use the same memory.
            executor: runs the tasks; without one they run here, one after another. Short tasks are submitted in
                batches. A function that makes executors, such as `functools.partial(ProcessPoolExecutor, 4)`, is
                called again when an executor breaks, and only unfinished tasks are submitted again.
            in_flight: the most submissions that may run at once; by default two per worker and two more. A Dask
                cluster is queried again while it grows.
            retries: how often a failed task is tried again, perhaps on another worker.
            manifest: a file that records finished tasks, so that a run that was killed resumes. It belongs to this
                compute and these sources and targets; others are rejected.
            progress: called with the number of finished tasks, and the number of all tasks.
            cancel: stops the run when it is set, after submitted tasks have ended.
            tag: a name for the compute in the manifest, in place of its code: for lambdas, compiled functions, and
                changes that do not matter.
            timeout: the seconds that a task may take; one that takes longer has failed, and is retried elsewhere. Its
                result is not written, but its thread cannot be stopped. A pool of processes that a function has made
                is replaced, and its processes are killed.

        >>> a, b = np.arange(10), np.zeros(10, int)
        >>> with ThreadPoolExecutor(2) as pool:
        ...     plan_tiles(a, b, tile=(4,)).run(lambda x, y: np.negative(x, out=y), pool).tasks
        3
        >>> b.tolist()
        [0, -1, -2, -3, -4, -5, -6, -7, -8, -9]
        """
        if in_flight is not None and in_flight < 1:
            raise TransferError(f"expected in_flight of at least 1, got {in_flight}")
        if timeout is not None and not timeout > 0:
            raise TransferError(f"expected a timeout of more than 0 seconds, got {timeout}")
        started = perf_counter()
        source = ExecutorSource(executor)
        is_over = False
        try:
            self._validate_references(source.current)
            with ExitStack() as files:
                record = None
                if manifest is not None:
                    record = files.enter_context(self._open_manifest(manifest, compute, tag))
                runner = PlanRunner(self, compute, source, record, progress, cancel, retries, in_flight, timeout)
                runner.run()
            is_over = True
        finally:
            source.close(wait=is_over)
        replaced = max(0, source.made - 1)
        return PlanReport(runner.ran, runner.skipped, runner.retried, perf_counter() - started, replaced)

    def _validate_references(self, executor: Executor | None) -> None:
        """Raise if an array has changed since the plan was made, or cannot be sent to the workers of an executor."""
        for role, references in (("source", self.sources), ("target", self.targets)):
            for reference in references:
                reference.verify()
                if executor is not None and not isinstance(executor, ThreadPoolExecutor):
                    validate_sendable(reference, role)

    def merge_manifests(self, paths: Sequence[str | Path], target: str | Path) -> MergedManifests:
        """Merge the manifests of parts into one, from which a run of this plan resumes; return what it holds.

        Args:
            paths: the manifests of parts of this plan, all of one compute; others are rejected.
            target: the manifest to write; if it exists, it is merged, too.

        >>> import tempfile
        >>> plan = plan_tiles(np.arange(10), np.zeros(10, int), tile=(2,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for i in range(2):
        ...         _ = plan.part(i, 3).run(np.negative, manifest=f"{folder}/{i}")
        ...     print(plan.merge_manifests([f"{folder}/0", f"{folder}/1"], f"{folder}/all"))
        ...     plan.run(np.negative, manifest=f"{folder}/all").tasks
        3 of 5 tasks are done; missing: 3 to 4
        2
        """
        return merge_manifests(paths, target, self._identity(), range(self.first, self.last))

    def _open_manifest(self, path: str | Path, compute: Callable[..., Any], tag: str | None) -> TaskManifest:
        """Return the manifest of this plan and compute; raise if it belongs to others, or that is unknown."""
        unknown = ""
        work: dict[str, Any] = {"name": name_compute(compute)}
        if tag is not None:
            work = {"tag": str(tag)}
        else:
            try:
                work["code"] = fingerprint_compute(compute)
            except UnidentifiedError as problem:
                unknown = str(problem)
        span = {"the range of tasks": [self.first, self.last]}
        record = TaskManifest(path, {"compute": work, **self._identity(), **span})
        if unknown and len(record.done):
            record.close()
            raise TransferError(
                f"cannot tell whether {path} was made by this compute: {unknown}; name the compute with tag='...' in"
                " every run, or remove the manifest to start over"
            )
        return record

    def _identity(self) -> dict[str, Any]:
        """Return plain data that identifies the plan, whatever its range of tasks: sources, targets and tilers."""
        return {
            **{f"source {k}": source.identity(reading=True) for k, source in enumerate(self.sources)},
            **{f"target {k}": target.identity(reading=False) for k, target in enumerate(self.targets)},
            "tilers": [repr(tiler) for tiler in (*self.reading, *self.writing)],
            "pad": repr(self.pad),
        }


def plan_tiles(
    source: Any, target: Any, tile: Extents, overlap: Margins = 0, pad: Any = 0, order: str = "row_major"
) -> TilePlan:
    """Return the plan that cuts sources and targets of one shape into independent tasks.

    Args:
        source: an array or anything that slices, a memory map, or a name such as `a.npy`, `a.zarr`, `a.h5::x` or
            `s3://bucket/a.zarr`; or a list of them.
        target: the same; it must exist.
        tile: the extents of an output tile.
        overlap: how far an input tile extends beyond its output tile, on both sides or as (before, after) per axis.
        pad: what an input tile holds outside the source: a value, "edge", "reflect", "symmetric" or "wrap".
        order: the order of the tasks, as of `Tiler`.

    >>> plan_tiles(np.zeros((100, 100)), np.zeros((100, 100)), tile=(30, 50), overlap=2)[0].bytes_in
    13312
    """
    for role, arrays in (("source", as_list(source)), ("target", as_list(target))):
        for array in arrays:
            if not isinstance(array, (str, Path)):
                validate_operand(open_operand(array), role)
    sources = [make_reference(array) for array in as_list(source)]
    targets = [make_reference(array) for array in as_list(target)]
    if not sources or not targets:
        raise TransferError("a tile plan needs at least one source and one target")
    written = [target.open(writing=True) for target in targets]  # first: HDF5 opens a file for reading only once
    read = [source.open(writing=False) for source in sources]
    validate_equal_shapes(read, written)
    _validate_no_overlap(read, written)
    shape = read[0].shape
    for endpoint in written:
        _validate_chunks(endpoint, shape, tile)
    halo = as_margins(overlap, "overlap", len(shape))
    reading = (tiler_with_halo(shape, tile, halo, order),) * len(sources)
    writing = (Tiler(shape, tile, order=order),) * len(targets)
    sizes = tuple([end.dtype.itemsize for end in read]), tuple([end.dtype.itemsize for end in written])
    return TilePlan(tuple(sources), tuple(targets), reading, writing, sizes, pad, 0, writing[0].count)


def _validate_no_overlap(sources: list[Endpoint], targets: list[Endpoint]) -> None:
    """Raise if a target overwrites a source or another target: a task may run twice and must read the same."""
    validate_separate_targets(targets)
    if any(share_bytes(source, target) for source in sources for target in targets):
        raise TransferError(
            "a source and a target of the plan share bytes, so a task that is tried again would read what it has"
            " written; write to another array, or use stream, which works in place where that is safe"
        )


def _validate_chunks(target: Endpoint, space: tuple[int, ...], tile: Extents) -> None:
    """Raise if two tasks would write to one chunk of a target, which is not safe."""
    chunks = chunk_shape(target.array) if isinstance(target, SlicedEndpoint) else None
    if chunks is None:
        return
    shape = as_extents(tile, "tile", len(chunks))
    if any(t % c and t < n for t, c, n in zip(shape, chunks, space, strict=True)):
        raise LayoutError(
            f"tiles of {shape} are not multiples of the target's chunks of {chunks}, so two tasks would write to one"
            " chunk; use multiples of the chunks"
        )
