# SPDX-License-Identifier: Apache-2.0
"""`TilePlan`: a computation cut into independent tasks, to run on one machine or on many.

A task reads its input boxes with their halo from storage, computes, and writes its output boxes. It depends on no other
task, so it may run anywhere, in any order, and twice.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np  # noqa: F401  (for the examples)

from ..display import Drawable
from ..errors import LayoutError, TransferError
from ..layout import Box
from ..logs import log_of
from .endpoints import (
    ArrayReference,
    Endpoint,
    SlicedEndpoint,
    as_list,
    make_reference,
    tiler_with_halo,
    validate_equal_shapes,
    validate_operand,
    validate_sendable,
)
from .manifest import (
    MergedManifests,
    TaskManifest,
    UnidentifiedError,
    fingerprint_compute,
    merge_manifests,
    name_compute,
)
from .plan_task import (
    MAX_BATCH_SECONDS,
    BatchOrigin,
    BatchResult,
    PlanOperands,
    SourceChangedError,
    TaskOutcome,
    TaskTimeoutError,
    is_on_this_machine,
    run_batch,
    this_process,
)
from .stores import chunk_shape, share_bytes, validate_separate_targets
from .tile_compute import CancelFlag, CancelledError, ProgressCallback, WriteGate
from .tile_copies import Fill
from .tiler import Extents, Margins, Tiler, as_extents, as_margins

# Executors of tile plans: how many calls one runs at once, submitting to it, and making a new one when it breaks.

Result = TypeVar("Result")

ExecutorFactory = Callable[[], Executor]
"""A function that makes an executor, such as `functools.partial(ProcessPoolExecutor, 4)`."""


class ExecutorSource:
    """The executor of a run: a given one, or the latest one from a factory.

    An executor made by a factory is shut down by `close`; a given one stays as it is.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> source = ExecutorSource(ThreadPoolExecutor)
    >>> first = source.current
    >>> source.replace()
    >>> source.current is first, source.made
    (False, 2)
    >>> source.close()
    """

    def __init__(self, executor: Executor | ExecutorFactory | None) -> None:
        self.made = 0
        self._factory: ExecutorFactory | None = None
        self._retired: list[Executor] = []
        self.current: Any = executor  # an Executor or None, whose public type lacks the attributes used below
        if executor is None or (hasattr(executor, "submit") and not isinstance(executor, type)):
            return
        if not callable(executor):
            raise TransferError(
                f"expected an executor, or a function that makes one, got {type(executor).__name__}; pass for example"
                " functools.partial(ProcessPoolExecutor, 4)"
            )
        self._factory = executor
        self.current = self._make_executor(executor)

    def _make_executor(self, factory: ExecutorFactory) -> Executor:
        executor = factory()
        if not hasattr(executor, "submit"):
            raise TransferError(f"expected a function that makes an executor, got one that makes {executor!r}")
        self.made += 1
        return executor

    @property
    def can_replace(self) -> bool:
        """Whether a factory can make another executor."""
        return self._factory is not None

    @property
    def owns_processes(self) -> bool:
        """Whether the current executor was made here and runs in processes that can be killed."""
        return self.can_replace and hasattr(self.current, "_processes")

    def replace(self) -> None:
        """Make another executor; the old one may finish its tasks, until it is dismissed."""
        if self._factory is None:
            raise TransferError("no other executor can be made: one was given, not a function that makes them")
        self._retired.append(self.current)
        self.current = self._make_executor(self._factory)

    def dismiss(self, executor: Executor) -> None:
        """Shut down a retired executor, which may be stuck, without waiting for it."""
        if executor in self._retired:
            self._retired.remove(executor)
            stop_executor(executor)

    def close(self, wait: bool = True) -> None:
        """Shut down all executors that a factory made; with `wait`, after the current one has ended its calls."""
        for executor in list(self._retired):
            self.dismiss(executor)
        if self.can_replace:
            if wait:
                self.current.shutdown(wait=True)
            else:
                stop_executor(self.current)


def stop_executor(executor: Executor) -> None:
    """Shut an executor down without waiting, and kill the processes of a process pool.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> stop_executor(ThreadPoolExecutor(1))
    """
    processes = list((getattr(executor, "_processes", None) or {}).values())  # Python 3.14 has kill_workers()
    executor.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()


def submit_unique(executor: Executor, function: Callable[..., Result], *arguments: object) -> Future[Result]:
    """Submit a call with one more argument, a unique text, and return its future.

    Dask treats calls with equal arguments as one, so a retry would get the old failure.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(1) as pool:
    ...     submit_unique(pool, lambda number, call_id: number + 1, 3).result()
    4
    """
    return executor.submit(function, *arguments, uuid4().hex)


def count_workers(executor: Executor) -> int:
    """Return how many calls an executor runs at once: the cores of a Dask cluster, its workers, or our own cores.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(3) as pool:
    ...     count_workers(pool)
    3
    """
    client: Any = getattr(executor, "_client", None)  # Dask's executors have no public name for it
    if hasattr(client, "ncores"):
        return max(1, int(sum(client.ncores().values())))
    for name in ("_max_workers", "num_workers", "max_workers"):
        count = getattr(executor, name, None)
        if isinstance(count, int) and count > 0:
            return count
    return os.cpu_count() or 4


# `PlanRunner`: runs the tasks of a plan, here or on an executor, retries failures and skips finished tasks.

_log = log_of(__name__)

MIN_BATCH_SECONDS = 0.05
"""How long a submission should take at least: ten times the cost of handing it to a worker of a cluster."""

POLL_SECONDS = 1.0
"""How often a cluster is queried for its number of workers, and the cancel flag is checked."""

VISIBLE_WITHIN_SECONDS = 10.0
"""How soon this process must see the writes of another machine; network file systems are slow."""

ANSWER_WITHIN_SECONDS = 10.0
"""How long a pool of processes may be silent beyond the timeout of a task before it is replaced."""

START_WITHIN_SECONDS = 120.0
"""The same for a pool that has not answered yet: its processes may have large libraries to import."""


class Batch(NamedTuple):
    """Tasks to submit together: their numbers, failed attempts so far, and executors that broke under them."""

    numbers: range
    attempts: int = 0
    breaks: int = 0

    def split(self) -> list[Batch]:
        """Return a batch for each task."""
        return [self._replace(numbers=range(number, number + 1)) for number in self.numbers]


class Submission(NamedTuple):
    """A batch that was submitted, and the executor it was submitted to."""

    batch: Batch
    executor: Executor | None


class PlanRunner:
    """One run of a plan: the submitted tasks, the retries, and the finished ones. Arguments as in `TilePlan.run`."""

    def __init__(
        self,
        plan: TilePlan,
        compute: Callable[..., Any],
        source: ExecutorSource,
        record: TaskManifest | None,
        progress: ProgressCallback | None,
        cancel: CancelFlag | None,
        retries: int,
        in_flight: int | None,
        timeout: float | None,
    ) -> None:
        self.plan, self.compute, self.source, self.record = plan, compute, source, record
        self.progress, self.cancel, self.retries, self.in_flight = progress, cancel, retries, in_flight
        self.timeout = timeout
        self.ran = self.skipped = self.retried = 0
        self._gate = WriteGate()
        self._next = plan.first
        self._again: deque[Batch] = deque()  # retries, and tasks that were given back
        self._suspects: deque[Batch] = deque()  # tasks under which two executors broke: one at a time
        self._submitted: dict[Future[BatchResult], Submission] = {}
        self._finished: SimpleQueue[Future[BatchResult]] = SimpleQueue()
        self._withdrawn: set[Future[BatchResult]] = set()  # futures that were cancelled here
        self._origin = BatchOrigin(uuid4().hex, this_process())
        self._batch_size, self._task_seconds = 1, 0.0
        self._worker_count, self._counted_at = 1, float("-inf")
        self._heard_at = time.monotonic()  # when a batch last finished
        self._heard_from: Executor | None = None  # and on which executor
        self._refusals = 0  # submissions in a row that an executor did not take

    def run(self) -> None:
        """Run all tasks; nothing writes to a target of this process after this has returned or raised.

        Except for a write that was given up as it took too long: it ends when it ends, with the bytes of its task.
        """
        try:
            while self._has_work() or self._submitted:
                while self._has_work() and len(self._submitted) < self._max_in_flight():
                    self._raise_if_cancelled()
                    self._submit(self._next_batch())
                self._collect_finished()
        except Exception:
            # a cancelled future may never report that it is over, so do not wait for it
            running = [future for future in self._submitted if not future.cancel()]
            wait(running, None if self.timeout is None else self.timeout + MAX_BATCH_SECONDS + ANSWER_WITHIN_SECONDS)
            raise
        except BaseException:  # an interruption does not wait
            for future in self._submitted:
                future.cancel()
            raise
        finally:
            self._gate.close(self.timeout)

    def _max_in_flight(self) -> int:
        if self.source.current is None:
            return 1
        now = time.monotonic()
        if now - self._counted_at > POLL_SECONDS:
            self._worker_count, self._counted_at = count_workers(self.source.current), now
        return self.in_flight or 2 * self._worker_count + 2

    def _raise_if_cancelled(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError(f"cancelled after {self.ran + self.skipped} of {len(self.plan)} tasks")

    # Submitting.

    def _has_work(self) -> bool:
        """Return whether there is a batch that may be submitted now."""
        return self._next < self.plan.last or bool(self._again) or self._may_submit_suspect()

    def _may_submit_suspect(self) -> bool:
        return bool(self._suspects) and not any(sent.batch.breaks > 1 for sent in self._submitted.values())

    def _next_batch(self) -> Batch:
        if self._may_submit_suspect():
            return self._suspects.popleft()
        if self._again:
            return self._again.popleft()
        share = (self.plan.last - self._next) // self._max_in_flight()  # so that every worker gets some
        size = max(1, min(self._batch_size, share))
        numbers = range(self._next, min(self._next + size, self.plan.last))
        self._next = numbers.stop
        return Batch(numbers)

    def _submit(self, batch: Batch) -> None:
        recorded = {} if self.record is None else self.record.done.find(batch.numbers)
        work = (self.plan, batch.numbers, self.compute, recorded, self.record is not None, self._gate, self._origin)
        executor = self.source.current
        if executor is None:
            future: Future[BatchResult] = Future()
            future.set_result(run_batch(*work, self.timeout))
        else:
            try:
                future = submit_unique(executor, run_batch, *work, self.timeout)
            except RuntimeError as problem:  # it is broken or shut down
                self._refusals += 1
                if self._refusals > self.retries or not self.source.can_replace:
                    raise self._broken_executor_error(problem) from problem
                self._again.appendleft(batch)
                self.source.replace()
                return
        self._refusals = 0
        if not self._submitted:
            self._heard_at = time.monotonic()
        self._submitted[future] = Submission(batch, executor)
        future.add_done_callback(self._finished.put)

    # Collecting.

    def _collect_finished(self) -> None:
        """Wait a while for a batch to finish; record its results and schedule retries."""
        self._raise_if_cancelled()
        try:
            future = self._finished.get(timeout=POLL_SECONDS)
        except Empty:
            self._replace_silent_executor()
            return
        self._heard_at = time.monotonic()
        submission = self._submitted.pop(future, None)
        if submission is None:  # it was given up, and reported after all
            return
        batch, executor = submission
        if future in self._withdrawn:
            self._withdrawn.remove(future)
            self._again.append(batch)
        elif future.cancelled():
            self._retry_all(batch, TransferError("the executor cancelled it"))
        elif isinstance(problem := future.exception(), BrokenExecutor):
            self._resubmit_after_break(submission, problem)
        elif problem is not None:
            self._retry_all(batch, problem)
        else:
            self._heard_from = executor
            self._take_result(submission, future.result())
        if executor is not None and not any(sent.executor is executor for sent in self._submitted.values()):
            self.source.dismiss(executor)

    def _take_result(self, submission: Submission, result: BatchResult) -> None:
        batch = submission.batch
        if result.witness is not None:
            self._check_visible(result.witness, result.worker)
        if self.record is not None:
            self.record.add([(outcome.number, outcome.checksums) for outcome in result.outcomes if outcome.ran])
        for outcome in result.outcomes:
            self.ran += outcome.ran
            self.skipped += not outcome.ran
            if self.progress is not None:
                self.progress(self.ran + self.skipped, len(self.plan))
        if result.not_started:
            self._again.appendleft(batch._replace(numbers=result.not_started))
        self._adapt_batch_size(len(result.outcomes), result.seconds)
        for failure in result.failures:
            if isinstance(failure.problem, TaskTimeoutError):
                self._retire_executor(submission.executor)
            self._retry_or_raise(failure.number, batch, failure.problem)

    def _adapt_batch_size(self, count: int, seconds: float) -> None:
        """Choose the size of the next batch by the seconds of recent tasks, at most twice the last size."""
        if count:
            latest = seconds / count
            self._task_seconds = 0.5 * self._task_seconds + 0.5 * latest if self._task_seconds else latest
            fitting = ceil(MIN_BATCH_SECONDS / max(self._task_seconds, 1e-6))
            self._batch_size = max(1, min(2 * self._batch_size, fitting))

    def _retry_all(self, batch: Batch, problem: BaseException) -> None:
        for number in batch.numbers:
            self._retry_or_raise(number, batch, problem)

    def _retry_or_raise(self, number: int, batch: Batch, problem: BaseException) -> None:
        """Schedule another attempt of a task, alone, so that it does not affect others; raise after the last."""
        if isinstance(problem, SourceChangedError):
            raise problem
        attempts = batch.attempts + 1
        if attempts <= self.retries and isinstance(problem, Exception):
            self.retried += 1
            _log.warning("task %d failed (%s: %s); trying again", number, type(problem).__name__, problem)
            self._again.append(Batch(range(number, number + 1), attempts, batch.breaks))
            return
        raise TransferError(
            f"{self._describe_task(number)} failed {attempts} times; last error: {type(problem).__name__}: {problem}"
        ) from problem

    def _describe_task(self, number: int) -> str:
        return f"task {number}, which writes {', '.join(map(str, self.plan.task(number).outputs))},"

    # Executors that break, get stuck, or fall silent.

    def _resubmit_after_break(self, submission: Submission, problem: BaseException) -> None:
        batch, executor = submission
        if not self.source.can_replace or not self.retries:
            raise self._broken_executor_error(problem) from problem
        if executor is self.source.current:
            self.source.replace()
        batch = batch._replace(breaks=batch.breaks + 1)
        if batch.breaks > self.retries and len(batch.numbers) == 1:
            raise TransferError(
                f"{self._describe_task(batch.numbers.start)} was submitted each of the {batch.breaks} times that the"
                f" executor broke ({type(problem).__name__}: {problem}): it may kill its worker, or take more memory"
                " than there is; run the compute on its boxes alone to see"
            ) from problem
        if batch.breaks == 1:
            self._again.append(batch)
        else:
            self._suspects += batch.split()

    def _retire_executor(self, executor: Executor | None) -> None:
        """Replace a pool of processes in which a task is stuck; it is killed when its other tasks are over."""
        if executor is not self.source.current or not self.source.owns_processes:
            return
        self.source.replace()
        for future, sent in self._submitted.items():
            if sent.executor is executor and future.cancel():  # not started; the others are waited for
                self._withdrawn.add(future)

    def _replace_silent_executor(self) -> None:
        """Replace a pool of processes that has not answered for too long: even its timeouts do not work."""
        if self.timeout is None or not self.source.owns_processes or not self._submitted:
            return
        has_started = self._heard_from is self.source.current
        silence = self.timeout + MAX_BATCH_SECONDS + (ANSWER_WITHIN_SECONDS if has_started else START_WITHIN_SECONDS)
        if time.monotonic() - self._heard_at <= silence:
            return
        lost, self._submitted = self._submitted, {}
        self.source.replace()
        self._heard_at = time.monotonic()
        problem = TaskTimeoutError(f"its worker did not answer for {silence:g} s")
        for sent in lost.values():
            if sent.executor is not None:
                self.source.dismiss(sent.executor)
            self._retry_all(sent.batch, problem)

    def _broken_executor_error(self, problem: BaseException) -> TransferError:
        done = self.ran + self.skipped
        remedy = (
            f"run the plan again with a new executor and manifest={str(self.record.path)!r} to resume"
            if self.record is not None
            else "run the plan again with a new executor; with manifest='...' it could resume"
        )
        return TransferError(
            f"the executor broke after {done} of {len(self.plan)} tasks ({type(problem).__name__}: {problem}): a worker"
            f" may have been killed or run out of memory; {remedy}. A function that makes executors, such as"
            " functools.partial(ProcessPoolExecutor, 4), is called again when one breaks"
        )

    def _check_visible(self, outcome: TaskOutcome, worker: str) -> None:
        """Raise unless this process sees a worker's data, which could be in the worker's memory."""
        operands = PlanOperands(self.plan)
        sides = (
            ("source", operands.inputs(outcome.number), self.plan.pad, outcome.checksums.read),
            ("target", operands.outputs(outcome.number), None, outcome.checksums.wrote),
        )
        for role, buffers, pad, checksum in sides:
            deadline = time.monotonic() + (0 if is_on_this_machine(worker) else VISIBLE_WITHIN_SECONDS)
            while True:
                buffers.read(pad)
                if buffers.checksum() == checksum:
                    break
                if time.monotonic() > deadline:
                    raise TransferError(
                        f"{worker}, which ran task {outcome.number}, sees another {role} than this process: it is in"
                        " the memory of one process or on a disk of one machine; use an .npy file or a zarr array that"
                        " all workers open by the same path, or an executor of threads"
                    )
                time.sleep(0.1)


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
    """The record of a run of a plan: tasks run, tasks skipped because they were done before, retries, and seconds.

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
class TilePlan(Drawable, Sequence[Task]):
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
        """All tasks as a list.

        >>> [task.number for task in plan_tiles(np.zeros(10), np.zeros(10), tile=(4,)).tasks]
        [0, 1, 2]
        """
        return list(self)

    @property
    def peak_memory(self) -> int:
        """The most memory that the tiles of a task take.

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
        """Merge the manifests of parts into one, from which a run of this plan resumes; return its content.

        Args:
            paths: the manifests of parts of this plan, all of one compute; others are rejected.
            target: the manifest to write; if it exists, it is merged as well.

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
    source: object, target: object, tile: Extents, overlap: Margins = 0, pad: Fill = 0, order: str = "row_major"
) -> TilePlan:
    """Return the plan that cuts sources and targets of one shape into independent tasks.

    Args:
        source: an array or anything that slices, a memory map, or a name such as `a.npy`, `a.zarr`, `a.h5::x` or
            `s3://bucket/a.zarr`; or a list of them.
        target: the same; it must exist.
        tile: the extents of an output tile.
        overlap: how far an input tile extends beyond its output tile, on both sides or as (before, after) per axis.
        pad: the content of an input tile outside the source: a value, "edge", "reflect", "symmetric" or "wrap".
        order: the order of the tasks, as in `Tiler`.

    >>> plan_tiles(np.zeros((100, 100)), np.zeros((100, 100)), tile=(30, 50), overlap=2)[0].bytes_in
    13312
    """
    for role, arrays in (("source", as_list(source)), ("target", as_list(target))):
        for array in arrays:
            if not isinstance(array, (str, Path)):
                validate_operand(array, role)
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
