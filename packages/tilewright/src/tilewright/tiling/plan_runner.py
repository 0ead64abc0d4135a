# SPDX-License-Identifier: Apache-2.0
"""`PlanRunner`: runs the tasks of a plan, here or on an executor, retries failures and skips finished tasks.

Tasks are submitted in batches that take about 50 ms, since handing one to another process or machine takes
milliseconds. Each task still has its own retries and its own line in the manifest.

When an executor breaks, everything that was submitted is lost, and nobody says which task was to blame. If a new
executor can be made, all of it is submitted again. What was there at two breaks is from then on submitted task by task
and one at a time; so a task that kills its worker is soon the only one that was there every time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, wait
from math import ceil
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from ..errors import TransferError
from ..logs import log_of
from .plan_executor import ExecutorSource, count_workers, submit_unique
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
from .task_manifest import TaskManifest
from .tile_compute import CancelFlag, CancelledError, ProgressCallback, WriteGate

if TYPE_CHECKING:
    from .tile_plan import TilePlan

_log = log_of(__name__)

MIN_BATCH_SECONDS = 0.05
"""How long a submission should take at least: ten times the cost of handing it to a worker of a cluster."""

POLL_SECONDS = 1.0
"""How often a cluster is queried for its number of workers, and the cancel flag is checked."""

VISIBLE_WITHIN_SECONDS = 10.0
"""How soon this process must see what another machine has written; network file systems are slow."""

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
    """One run of a plan: the submitted tasks, the retries, and what is done. Arguments as of `TilePlan.run`."""

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
        """Raise unless this process sees what a worker has read and written, which could be in the worker's memory."""
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
