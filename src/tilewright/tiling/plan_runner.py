# SPDX-License-Identifier: Apache-2.0
"""`PlanRunner`: runs the tasks of a plan, here or on an executor, retries failures and skips finished tasks.

Tasks are submitted in batches that take about 50 ms, since handing one to another process or machine takes
milliseconds. Each task still has its own retries and its own line in the manifest.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, wait
from math import ceil
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from ..errors import TransferError
from .plan_task import (
    BatchOrigin,
    PlanEndpoints,
    SourceChangedError,
    TaskFailure,
    TaskManifest,
    TaskOutcome,
    is_on_this_machine,
    run_batch,
    this_process,
)
from .tile_compute import CancelFlag, CancelledError, ProgressCallback, WriteGate

if TYPE_CHECKING:
    from .tile_plan import Task, TilePlan

MIN_BATCH_SECONDS = 0.05
"""How long a submission should take at least: ten times the cost of handing it to a worker of a cluster."""

POLL_SECONDS = 1.0
"""How often a cluster is queried for its number of workers, and the cancel flag is checked."""

VISIBLE_WITHIN_SECONDS = 10.0
"""How soon this process must see what another machine has written; network file systems are slow."""

Result = TypeVar("Result")


class PlanRunner:
    """One run of a plan: the submitted tasks, the retries, and what is done. Arguments as of `TilePlan.run`."""

    def __init__(
        self,
        plan: TilePlan,
        compute: Callable[..., Any],
        executor: Executor | None,
        record: TaskManifest | None,
        progress: ProgressCallback | None,
        cancel: CancelFlag | None,
        retries: int,
        in_flight: int | None,
    ) -> None:
        self.plan, self.compute, self.executor, self.record = plan, compute, executor, record
        self.progress, self.cancel, self.retries, self.in_flight = progress, cancel, retries, in_flight
        self.ran = self.skipped = self.retried = 0
        self._gate = WriteGate()
        self._next = plan.first
        self._retries: deque[tuple[Task, int]] = deque()  # with the number of attempts so far
        self._submitted: dict[Future[list[TaskOutcome | TaskFailure]], list[tuple[Task, int]]] = {}
        self._finished: SimpleQueue[Future[list[TaskOutcome | TaskFailure]]] = SimpleQueue()
        self._origin = BatchOrigin(uuid4().hex, this_process())
        self._batch_size, self._task_seconds = 1, 0.0
        self._worker_count, self._counted_at = 1, float("-inf")

    def run(self) -> None:
        """Run all tasks; nothing writes to a target of this process after this has returned or raised."""
        try:
            while self._next < self.plan.last or self._retries or self._submitted:
                while (self._next < self.plan.last or self._retries) and len(self._submitted) < self._max_in_flight():
                    self._raise_if_cancelled()
                    self._submit_batch()
                self._collect_finished()
        except Exception:
            # a cancelled future may never report that it is over, so do not wait for it
            wait([future for future in self._submitted if not future.cancel()])
            raise
        except BaseException:  # an interruption does not wait
            for future in self._submitted:
                future.cancel()
            raise
        finally:
            self._gate.close()

    def _max_in_flight(self) -> int:
        if self.executor is None:
            return 1
        now = time.monotonic()
        if now - self._counted_at > POLL_SECONDS:
            self._worker_count, self._counted_at = count_workers(self.executor), now
        return self.in_flight or 2 * self._worker_count + 2

    def _raise_if_cancelled(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError(f"cancelled after {self.ran + self.skipped} of {len(self.plan)} tasks")

    def _submit_batch(self) -> None:
        """Submit the next batch; a failed task is retried alone, so that it does not affect others."""
        if self._retries:
            tasks = [self._retries.popleft()]
        else:
            share = (self.plan.last - self._next) // self._max_in_flight()  # so that every worker gets some
            size = 1 if self.executor is None else max(1, min(self._batch_size, share))
            numbers = range(self._next, min(self._next + size, self.plan.last))
            self._next = numbers.stop
            tasks = [(self.plan.task(number), 0) for number in numbers]
        done = {} if self.record is None else self.record.done
        batch = [(task, done.get(task.number)) for task, _ in tasks]
        work = (self.plan, batch, self.compute, self.record is not None, self._gate, self._origin)
        if self.executor is None:
            future: Future[list[TaskOutcome | TaskFailure]] = Future()
            future.set_result(run_batch(*work))
        else:
            try:
                future = submit_unique(self.executor, run_batch, *work)
            except RuntimeError as problem:  # it is broken or shut down
                raise self._broken_executor_error(problem) from problem
        self._submitted[future] = tasks
        future.add_done_callback(self._finished.put)

    def _collect_finished(self) -> None:
        """Wait a while for a batch to finish; record its results and schedule retries."""
        self._raise_if_cancelled()
        try:
            future = self._finished.get(timeout=POLL_SECONDS)
        except Empty:
            return
        tasks = self._submitted.pop(future)
        problem = TransferError("the executor cancelled it") if future.cancelled() else future.exception()
        if isinstance(problem, BrokenExecutor):
            raise self._broken_executor_error(problem) from problem
        if problem is not None:
            for task, attempt in tasks:
                self._retry_or_raise(task, attempt, problem)
            return
        results = future.result()
        self._adapt_batch_size([result.seconds for result in results if isinstance(result, TaskOutcome)])
        for (task, attempt), result in zip(tasks, results, strict=True):
            if isinstance(result, TaskFailure):
                self._retry_or_raise(task, attempt, result.problem)
            else:
                self._finish_task(task, result)

    def _adapt_batch_size(self, seconds: list[float]) -> None:
        """Choose the size of the next batch by the seconds of recent tasks, at most twice the last size."""
        for task_seconds in seconds:
            self._task_seconds = 0.8 * self._task_seconds + 0.2 * task_seconds if self._task_seconds else task_seconds
        if seconds:
            self._batch_size = max(
                1, min(2 * self._batch_size, ceil(MIN_BATCH_SECONDS / max(self._task_seconds, 1e-6)))
            )

    def _retry_or_raise(self, task: Task, attempt: int, problem: BaseException) -> None:
        if isinstance(problem, SourceChangedError):
            raise problem
        if attempt < self.retries and isinstance(problem, Exception):
            self.retried += 1
            self._retries.append((task, attempt + 1))
            return
        raise TransferError(
            f"task {task.number}, which writes {', '.join(map(str, task.outputs))}, failed {attempt + 1} times; last"
            f" error: {type(problem).__name__}: {problem}"
        ) from problem

    def _broken_executor_error(self, problem: BaseException) -> TransferError:
        done = self.ran + self.skipped
        remedy = (
            f"run the plan again with a new executor and manifest={str(self.record.path)!r} to resume"
            if self.record is not None
            else "run the plan again with a new executor; with manifest='...' it could resume"
        )
        return TransferError(
            f"the executor broke after {done} of {len(self.plan)} tasks ({type(problem).__name__}: {problem}): a worker"
            f" may have been killed or run out of memory; {remedy}"
        )

    def _finish_task(self, task: Task, outcome: TaskOutcome) -> None:
        if outcome.worker:
            self._check_visible(task, outcome)
        self.ran += outcome.ran
        self.skipped += not outcome.ran
        if self.record is not None and outcome.ran:
            self.record.add(outcome.number, outcome.checksums)
        if self.progress is not None:
            self.progress(self.ran + self.skipped, len(self.plan))

    def _check_visible(self, task: Task, outcome: TaskOutcome) -> None:
        """Raise unless this process sees what a worker has read and written, which could be in the worker's memory."""
        endpoints = PlanEndpoints(self.plan)
        sides = (
            ("source", endpoints.input_buffers(task), self.plan.pad, outcome.checksums.read),
            ("target", endpoints.output_buffers(task), None, outcome.checksums.wrote),
        )
        for role, buffers, pad, checksum in sides:
            deadline = time.monotonic() + (0 if is_on_this_machine(outcome.worker) else VISIBLE_WITHIN_SECONDS)
            while True:
                buffers.read(pad)
                if buffers.checksum() == checksum:
                    break
                if time.monotonic() > deadline:
                    raise TransferError(
                        f"{outcome.worker}, which ran task {task.number}, sees another {role} than this process: it is"
                        " in the memory of one process or on a disk of one machine; use an .npy file or a zarr array"
                        " that all workers open by the same path, or an executor of threads"
                    )
                time.sleep(0.1)


def submit_unique(executor: Executor, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
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
