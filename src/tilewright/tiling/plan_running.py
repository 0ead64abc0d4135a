# SPDX-License-Identifier: Apache-2.0
"""Running the tasks of a plan: here or on an executor, again where one failed, and not where its result is there.

What is submitted is a batch: as many tasks as take about 50 ms together, since handing one over to another process or
machine takes milliseconds. Each task still has its own retries and its own line in the manifest.
"""

from __future__ import annotations

import os
import pickle
import platform
import time
import traceback
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, wait
from functools import cached_property
from math import ceil
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from ..errors import TransferError
from ..layout.box import Box
from .execution import CancelledError, Gate, Progress, Step, Switch, run_compute
from .executors import count_workers, submit_anew
from .manifest import Checksums, Manifest
from .ports import Port, Room

if TYPE_CHECKING:
    from .plans import Task, TilePlan

BATCH_SECONDS = 0.05
"""What a submission should take at least: ten times what handing it to a worker of a cluster does."""

ASK_AGAIN = 1.0
"""Seconds after which a cluster is asked again how many workers it has."""

SEEN_WITHIN = 10.0
"""Seconds within which this process must see what another machine has written; network file systems take their time."""


class Outcome(NamedTuple):
    """What became of a task: its number, what it read and wrote, whether it had to run, and the seconds it took.

    `worker` names another process in which it ran, if this process should look whether it sees the same.

    >>> Outcome(3, Checksums(0, 0), ran=True).ran
    True
    """

    number: int
    checksums: Checksums
    ran: bool
    seconds: float = 0.0
    worker: str = ""


class Failure(NamedTuple):
    """A task that raised, its number and the error.

    >>> Failure(3, ValueError("no")).number
    3
    """

    number: int
    problem: Exception


class SourceChangedError(TransferError):
    """A source that is not what it was when a task was done; trying again would not help."""


class Ticket(NamedTuple):
    """Where a batch comes from: the run it belongs to, and the process that asks."""

    run: str
    process: str


class _Slots(NamedTuple):
    """Buffers of one side of a task, with the ports they are filled from or written to."""

    ports: list[Port]
    boxes: Sequence[Box]
    buffers: list[Room]

    def arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        return tuple([buffer.view(box.shape, port.dtype) for port, box, buffer in zip(*self, strict=True)])

    def fill(self, pad: Any) -> None:
        for port, box, buffer in zip(*self, strict=True):
            port.importing(box, buffer, pad)()

    def checksum(self) -> int:
        total = 0
        for port, box, buffer in zip(*self, strict=True):
            total = zlib.crc32(buffer.bytes[: box.size * port.dtype.itemsize].data, total)
        return total

    def is_constant(self) -> bool:
        """Return whether all elements that lie inside are the same: those of a store that is empty are, too."""
        for port, box, array in zip(self.ports, self.boxes, self.arrays(), strict=True):
            inside = np.ascontiguousarray(array[box.within(port.shape).relative_to(box.offset).slices])
            elements = inside.reshape(-1).view(np.uint8).reshape(inside.size, -1)
            if inside.size and (elements != elements[0]).any():
                return False
        return True


class _Ports:
    """The ports of a plan, opened once for the tasks of a batch."""

    def __init__(self, plan: TilePlan) -> None:
        self._plan = plan

    @cached_property
    def _reading(self) -> list[Port]:
        return [end.port(writing=False) for end in self._plan.sources]

    @cached_property
    def _writing(self) -> list[Port]:
        return [end.port(writing=True) for end in self._plan.targets]

    def inputs(self, task: Task) -> _Slots:
        return _slots(self._reading, task.inputs)

    def outputs(self, task: Task) -> _Slots:
        return _slots(self._writing, task.outputs)


def _slots(ports: list[Port], boxes: Sequence[Box]) -> _Slots:
    return _Slots(ports, boxes, [Room(box.size * port.dtype.itemsize) for port, box in zip(ports, boxes, strict=True)])


def run_task(
    plan: TilePlan,
    task: Task,
    compute: Callable[..., Any],
    remember: bool = False,
    known: Checksums | None = None,
    gate: Gate | None = None,
    ticket: Ticket | None = None,
    ports: _Ports | None = None,
) -> Outcome:
    """Return what became of a task: read, compute, write. This is what travels to a worker.

    To `remember` a task takes checksums. One whose result is `known`, and still there, does not run again. Nothing is
    written once the `gate` is closed.

    >>> from tilewright.tiling import plan_tiles
    >>> a, b = np.arange(10), np.zeros(10, int)
    >>> plan = plan_tiles(a, b, tile=(4,))
    >>> run_task(plan, plan[1], lambda x, y: np.negative(x, out=y)).number
    1
    >>> b.tolist()
    [0, 0, 0, 0, -4, -5, -6, -7, 0, 0]
    """
    began = time.perf_counter()
    worker = "" if ticket is None or ticket.process == _process() or ticket.run in _SEEN else _process()
    ports = _Ports(plan) if ports is None else ports
    leaving, arriving = ports.outputs(task), ports.inputs(task)
    is_there = False
    if known is not None:
        leaving.fill(None)
        is_there = leaving.checksum() == known.wrote
    arriving.fill(plan.pad)
    read = arriving.checksum() if remember or worker else 0
    if is_there and known is not None:
        if read != known.read:
            raise SourceChangedError(
                f"a source is not what it was when task {task.number} was done; remove the manifest to start from the"
                " beginning, or restore the source"
            )
        return Outcome(task.number, known, False, time.perf_counter() - began)
    informative = bool(worker) and not arriving.is_constant()
    run_compute(compute, Step(task.number, arriving.arrays(), leaving.arrays()), task.number == plan.first)
    with gate or Gate():
        for port, box, buffer in zip(*leaving, strict=True):
            port.exporting(box, buffer)()
    wrote = leaving.checksum() if remember or worker else 0
    if informative and ticket is not None and not leaving.is_constant():
        _SEEN.add(ticket.run)  # neither side was empty: once is enough
    return Outcome(task.number, Checksums(read, wrote), True, time.perf_counter() - began, worker)


def run_batch(
    plan: TilePlan,
    batch: Sequence[tuple[Task, Checksums | None]],
    compute: Callable[..., Any],
    remember: bool,
    gate: Gate,
    ticket: Ticket,
    call: str = "",
) -> list[Outcome | Failure]:
    """Return what became of several tasks, each on its own: one that fails leaves the others alone.

    `call` only makes a call unlike others (see `submit_anew`).

    >>> from tilewright.tiling import plan_tiles
    >>> plan = plan_tiles(np.arange(10), np.zeros(10, int), tile=(4,))
    >>> batch = [(task, None) for task in plan]
    >>> [each.number for each in run_batch(plan, batch, np.negative, False, Gate(), Ticket("", ""))]
    [0, 1, 2]
    """
    found: list[Outcome | Failure] = []
    ports = _Ports(plan)
    for task, known in batch:
        try:
            found.append(run_task(plan, task, compute, remember, known, gate, ticket, ports))
        except CancelledError:
            raise
        except Exception as problem:
            found.append(Failure(task.number, problem if ticket.process == _process() else _sendable(problem)))
    return found


def _sendable(problem: Exception) -> Exception:
    """Return an error that can be sent to another process, with a note of where it was raised."""
    if hasattr(problem, "add_note"):  # Python 3.11
        problem.add_note("".join(traceback.format_exception(problem)))
    try:
        pickle.loads(pickle.dumps(problem))  # noqa: S301  (our own)
    except Exception:
        return TransferError(f"{type(problem).__name__}: {problem}")
    return problem


_SEEN: set[str] = set()
"""Runs for which this process has sent a result from which the caller can tell whether it sees the same arrays."""

_TOKEN = uuid4().hex


def _process() -> str:
    return f"process {os.getpid()} on {platform.node()} ({_TOKEN[:8]})"


def _is_here(process: str) -> bool:
    return f" on {platform.node()} (" in process


class PlanRun:
    """One run of a plan: which tasks are under way, how often each was tried, and what is done."""

    def __init__(
        self,
        plan: TilePlan,
        compute: Callable[..., Any],
        executor: Executor | None,
        record: Manifest | None,
        progress: Progress | None,
        cancel: Switch | None,
        retries: int,
        in_flight: int | None,
    ) -> None:
        self.plan, self.compute, self.executor, self.record = plan, compute, executor, record
        self.progress, self.cancel, self.retries, self.in_flight = progress, cancel, retries, in_flight
        self.ran = self.skipped = self.retried = 0
        self._gate = Gate()
        self._next = plan.first
        self._again: deque[tuple[Task, int]] = deque()  # to be tried again, with the number of attempts so far
        self._under_way: dict[Future[list[Outcome | Failure]], list[tuple[Task, int]]] = {}
        self._over: SimpleQueue[Future[list[Outcome | Failure]]] = SimpleQueue()
        self._ticket = Ticket(uuid4().hex, _process())
        self._batch, self._seconds = 1, 0.0  # tasks of a submission, and seconds of a task
        self._workers, self._asked = 1, float("-inf")

    def go(self) -> None:
        """Run all tasks; whatever ends the run, nothing of it writes to a target of this process afterwards."""
        try:
            while self._next < self.plan.last or self._again or self._under_way:
                while (self._next < self.plan.last or self._again) and len(self._under_way) < self._most_in_flight():
                    self._check_cancel()
                    self._submit()
                self._collect()
        except Exception:
            # what is cancelled in time never runs, and may never say so: waiting for it would not end
            wait([future for future in self._under_way if not future.cancel()])
            raise
        except BaseException:  # an interruption waits for nobody
            for future in self._under_way:
                future.cancel()
            raise
        finally:
            self._gate.close()

    def _most_in_flight(self) -> int:
        if self.executor is None:
            return 1
        now = time.monotonic()
        if now - self._asked > ASK_AGAIN:
            self._workers, self._asked = count_workers(self.executor), now
        return self.in_flight or 2 * self._workers + 2

    def _check_cancel(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError(f"cancelled with {self.ran + self.skipped} of {len(self.plan)} tasks done")

    def _submit(self) -> None:
        """Submit the next batch; what failed is tried again alone, lest it take others with it."""
        if self._again:
            tasks = [self._again.popleft()]
        else:
            share = (self.plan.last - self._next) // self._most_in_flight()  # leave some for everybody
            size = 1 if self.executor is None else max(1, min(self._batch, share))
            numbers = range(self._next, min(self._next + size, self.plan.last))
            self._next = numbers.stop
            tasks = [(self.plan._task(number), 0) for number in numbers]
        done = {} if self.record is None else self.record.done
        batch = [(task, done.get(task.number)) for task, _ in tasks]
        work = (self.plan, batch, self.compute, self.record is not None, self._gate, self._ticket)
        if self.executor is None:
            future: Future[list[Outcome | Failure]] = Future()
            future.set_result(run_batch(*work))
        else:
            try:
                future = submit_anew(self.executor, run_batch, *work)
            except RuntimeError as problem:  # it is broken, or was shut down
                raise self._broken(problem) from problem
        self._under_way[future] = tasks
        future.add_done_callback(self._over.put)

    def _collect(self) -> None:
        """Take in what is over, and put down what failed to be tried again; look around now and then meanwhile."""
        self._check_cancel()
        try:
            future = self._over.get(timeout=ASK_AGAIN)
        except Empty:
            return
        tasks = self._under_way.pop(future)
        problem = TransferError("the executor cancelled it") if future.cancelled() else future.exception()
        if isinstance(problem, BrokenExecutor):
            raise self._broken(problem) from problem
        if problem is not None:
            for task, attempt in tasks:
                self._retry(task, attempt, problem)
            return
        results = future.result()
        self._adapt([each.seconds for each in results if isinstance(each, Outcome)])
        for (task, attempt), result in zip(tasks, results, strict=True):
            if isinstance(result, Failure):
                self._retry(task, attempt, result.problem)
            else:
                self._done(task, result)

    def _adapt(self, seconds: list[float]) -> None:
        """Let the next batch take as long as a submission should, but grow no faster than twofold."""
        for each in seconds:
            self._seconds = each if not self._seconds else 0.8 * self._seconds + 0.2 * each
        if seconds:
            self._batch = max(1, min(2 * self._batch, ceil(BATCH_SECONDS / max(self._seconds, 1e-6))))

    def _retry(self, task: Task, attempt: int, problem: BaseException) -> None:
        if isinstance(problem, SourceChangedError):
            raise problem
        if attempt < self.retries and isinstance(problem, Exception):
            self.retried += 1
            self._again.append((task, attempt + 1))
            return
        raise TransferError(
            f"task {task.number}, which writes {', '.join(map(str, task.outputs))}, failed {attempt + 1} times;"
            f" the last time with {type(problem).__name__}: {problem}"
        ) from problem

    def _broken(self, problem: BaseException) -> TransferError:
        done = self.ran + self.skipped
        remedy = (
            f"run the plan again with a new executor and manifest={str(self.record.path)!r}, and only the rest is run"
            if self.record is not None
            else "run the plan again with a new executor; with manifest='...' it would go on where it stopped"
        )
        return TransferError(
            f"the executor is broken, with {done} of {len(self.plan)} tasks done: {type(problem).__name__}: {problem}."
            f" A worker may have been killed, or have run out of memory; {remedy}"
        )

    def _done(self, task: Task, outcome: Outcome) -> None:
        if outcome.worker:
            self._check_seen(task, outcome)
        self.ran += outcome.ran
        self.skipped += not outcome.ran
        if self.record is not None and outcome.ran:
            self.record.add(outcome.number, outcome.checksums)
        if self.progress is not None:
            self.progress(self.ran + self.skipped, len(self.plan))

    def _check_seen(self, task: Task, outcome: Outcome) -> None:
        """Raise unless this process finds what a worker has read and written: it could be in the worker's memory."""
        ports = _Ports(self.plan)
        sides = (
            ("source", ports.inputs(task), self.plan.pad, outcome.checksums.read),
            ("target", ports.outputs(task), None, outcome.checksums.wrote),
        )
        for what, slots, pad, wanted in sides:
            until = time.monotonic() + (0 if _is_here(outcome.worker) else SEEN_WITHIN)
            while True:
                slots.fill(pad)
                if slots.checksum() == wanted:
                    break
                if time.monotonic() > until:
                    raise TransferError(
                        f"{outcome.worker}, which ran task {task.number}, has another {what} than this process: it is"
                        " in the memory of one process, or on a disk of one machine; use a file, or a zarr array in"
                        " files, that all workers reach by the same path, or an executor of threads"
                    )
                time.sleep(0.1)
