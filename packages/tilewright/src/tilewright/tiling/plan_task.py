# SPDX-License-Identifier: Apache-2.0
"""Tasks of a tile plan where they run: read the boxes, compute, write; a batch of them at a time.

What travels to a worker is the plan and a range of numbers; the boxes are made there. The arrays are opened once for a
batch, and its tasks share their buffers.

A task may run in another process, which might have its own copy of an array. So the first result of a process whose
bytes are not all equal is compared with the view of the calling process.

A thread cannot be stopped from outside. With a timeout, the tasks of a batch run in a thread of their own. When one
takes too long, the batch ends without it; that thread may go on computing, but its result is not written.
"""

from __future__ import annotations

import os
import pickle
import platform
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from ..errors import TransferError
from ..layout import Box
from .endpoints import Endpoint
from .manifest import Checksums
from .tile_compute import CancelledError, Step, WriteGate, run_compute
from .tile_copies import Fill, TileBuffer
from .tiler import Tiler

if TYPE_CHECKING:
    from .tile_plan import TilePlan

MAX_BATCH_SECONDS = 0.5
"""How long a batch may take before it gives back the tasks that it has not started."""


class TaskOutcome(NamedTuple):
    """A finished task: its number, its checksums, and whether it had to run.

    >>> TaskOutcome(3, Checksums(0, 0), ran=True).ran
    True
    """

    number: int
    checksums: Checksums
    ran: bool


class TaskFailure(NamedTuple):
    """A task that raised: its number and the error.

    >>> TaskFailure(3, ValueError("no")).number
    3
    """

    number: int
    problem: Exception


class BatchResult(NamedTuple):
    """The outcome of a batch: finished and failed tasks, those not started, and the seconds it took.

    `worker` is the process that ran it; `witness` is a finished task whose arrays the caller should compare with what
    it sees itself, None if that is not necessary.

    >>> BatchResult([], [], range(3, 5), 0.0, "").not_started
    range(3, 5)
    """

    outcomes: list[TaskOutcome]
    failures: list[TaskFailure]
    not_started: range
    seconds: float
    worker: str
    witness: TaskOutcome | None = None


class SourceChangedError(TransferError):
    """A source that has changed since a task was done; trying again would not help."""


class TaskTimeoutError(TransferError):
    """A task that took longer than it may."""


class BatchOrigin(NamedTuple):
    """The origin of a batch of tasks: the run it belongs to, and the process that submitted it."""

    run: str
    process: str


class TaskBuffers(NamedTuple):
    """The inputs or the outputs of a task: endpoints, boxes and buffers, one per operand."""

    endpoints: list[Endpoint]
    boxes: Sequence[Box]
    buffers: list[TileBuffer]

    def arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        """Return the buffers as arrays."""
        return tuple([buffer.view(box.shape, endpoint.dtype) for endpoint, box, buffer in zip(*self, strict=True)])

    def read(self, pad: Fill) -> None:
        """Fill the buffers from the endpoints."""
        for endpoint, box, buffer in zip(*self, strict=True):
            endpoint.plan_import(box, buffer, pad)()

    def write(self) -> None:
        """Write the buffers to the endpoints."""
        for endpoint, box, buffer in zip(*self, strict=True):
            endpoint.plan_export(box, buffer)()

    def checksum(self) -> int:
        """Return the CRC-32 of all buffers."""
        total = 0
        for endpoint, box, buffer in zip(*self, strict=True):
            total = zlib.crc32(buffer.bytes[: box.size * endpoint.dtype.itemsize].data, total)
        return total

    def is_constant(self) -> bool:
        """Return whether all elements inside the arrays are equal, as in an empty store."""
        for endpoint, box, array in zip(self.endpoints, self.boxes, self.arrays(), strict=True):
            inside = np.ascontiguousarray(array[box.within(endpoint.shape).relative_to(box.offset).slices])
            elements = inside.reshape(-1).view(np.uint8).reshape(inside.size, -1)
            if inside.size and (elements != elements[0]).any():
                return False
        return True


class PlanOperands:
    """The arrays of a plan, opened once, with a buffer each that one task after another uses."""

    def __init__(self, plan: TilePlan) -> None:
        self._plan = plan

    @cached_property
    def _sources(self) -> tuple[list[Endpoint], list[TileBuffer]]:
        return _with_buffers([source.open(writing=False) for source in self._plan.sources], self._plan.reading)

    @cached_property
    def _targets(self) -> tuple[list[Endpoint], list[TileBuffer]]:
        return _with_buffers([target.open(writing=True) for target in self._plan.targets], self._plan.writing)

    def inputs(self, number: int) -> TaskBuffers:
        """Return the inputs of a task, not yet read."""
        endpoints, buffers = self._sources
        return TaskBuffers(endpoints, [tiler[number] for tiler in self._plan.reading], buffers)

    def outputs(self, number: int) -> TaskBuffers:
        """Return the outputs of a task, not yet computed."""
        endpoints, buffers = self._targets
        return TaskBuffers(endpoints, [tiler[number] for tiler in self._plan.writing], buffers)


def _with_buffers(endpoints: list[Endpoint], tilers: Sequence[Tiler]) -> tuple[list[Endpoint], list[TileBuffer]]:
    """Return endpoints with buffers that hold any of their tiles."""
    sizes = [
        Box((0,) * tiler.rank, tiler.largest_tile).size * endpoint.dtype.itemsize
        for endpoint, tiler in zip(endpoints, tilers, strict=True)
    ]
    return endpoints, [TileBuffer(size) for size in sizes]


class BatchRun:
    """A batch of tasks while it runs in this process. Arguments as in `run_batch`.

    >>> from tilewright.tiling import plan_tiles
    >>> a, b = np.arange(10), np.zeros(10, int)
    >>> BatchRun(plan_tiles(a, b, tile=(4,)), np.negative).run_task(1).number
    1
    >>> b.tolist()
    [0, 0, 0, 0, -4, -5, -6, -7, 0, 0]
    """

    def __init__(
        self,
        plan: TilePlan,
        compute: Callable[..., Any],
        recorded: dict[int, Checksums] | None = None,
        record: bool = False,
        gate: WriteGate | None = None,
        origin: BatchOrigin | None = None,
    ) -> None:
        self.plan, self.compute, self.recorded, self.record = plan, compute, recorded or {}, record
        self.outcomes: list[TaskOutcome] = []
        self.failures: list[TaskFailure] = []
        self.witness: TaskOutcome | None = None
        self._operands = PlanOperands(plan)
        self._gate, self._own_gate = gate or WriteGate(), WriteGate()
        self._origin = origin or BatchOrigin("", this_process())
        self._is_local = self._origin.process == this_process()
        # whether a result is still needed that shows the caller if both see the same arrays
        self._seeks_witness = not self._is_local and self._origin.run not in _VERIFIED_RUNS
        self._lock = threading.Lock()
        self._current: tuple[int, float] | None = None  # the task that runs, and when it began
        self._abandoned = threading.Event()
        self._crash: BaseException | None = None

    def run(self, numbers: range) -> None:
        """Run tasks one after another; one that fails does not affect the others."""
        deadline = time.perf_counter() + MAX_BATCH_SECONDS
        for number in numbers:
            self._current = number, time.perf_counter()
            if self._abandoned.is_set() or self._current[1] > deadline:
                break
            outcome = failure = None
            try:
                outcome = self.run_task(number)
            except CancelledError:
                raise
            except Exception as problem:
                failure = TaskFailure(number, problem if self._is_local else _make_picklable(problem))
            with self._lock:
                if self._abandoned.is_set():
                    break
                if outcome is not None:
                    self.outcomes.append(outcome)
                elif failure is not None:
                    self.failures.append(failure)
        self._current = None

    def run_task(self, number: int) -> TaskOutcome:
        """Run a task and return its outcome; it does not run if it is recorded and its result is still there."""
        outputs, inputs = self._operands.outputs(number), self._operands.inputs(number)
        recorded = self.recorded.get(number)
        is_done = False
        if recorded is not None:
            outputs.read(None)
            is_done = outputs.checksum() == recorded.wrote
        inputs.read(self.plan.pad)
        needs_checksums = self.record or self._seeks_witness
        read = inputs.checksum() if needs_checksums else 0
        if is_done and recorded is not None:
            if read != recorded.read:
                raise SourceChangedError(
                    f"a source has changed since task {number} was done; restore the source, or remove the manifest to"
                    " start over"
                )
            return TaskOutcome(number, recorded, False)
        is_distinct = self._seeks_witness and not inputs.is_constant()
        run_compute(self.compute, Step(number, inputs.arrays(), outputs.arrays()), number == self.plan.first)
        with self._gate, self._own_gate:
            outputs.write()
        outcome = TaskOutcome(number, Checksums(read, outputs.checksum() if needs_checksums else 0), True)
        if self._seeks_witness:
            self.witness = outcome
            if is_distinct and not outputs.is_constant():
                _VERIFIED_RUNS.add(self._origin.run)  # one such result is enough
                self._seeks_witness = False
        return outcome

    def run_within(self, numbers: range, timeout: float) -> None:
        """Run tasks in a thread of their own, and return without the one that takes longer than `timeout` seconds."""

        def run() -> None:
            try:
                self.run(numbers)
            except BaseException as problem:
                self._crash = problem
            finally:
                ended.set()

        ended = threading.Event()
        self._current = numbers.start, time.perf_counter()
        threading.Thread(target=run, name="tilewright batch", daemon=True).start()
        while not ended.wait(max(0.001, timeout - self._task_age())):
            with self._lock:
                if self._task_age() <= timeout or self._current is None:
                    continue
                number = self._current[0]
                self._abandoned.set()  # from here on the thread adds nothing
            self._own_gate.close(timeout=0)
            self.failures.append(TaskFailure(number, TaskTimeoutError(f"task {number} took longer than {timeout:g} s")))
            return
        if self._crash is not None:
            raise self._crash

    def _task_age(self) -> float:
        """Return for how many seconds the current task has been running."""
        current = self._current
        return 0.0 if current is None else time.perf_counter() - current[1]


def run_batch(
    plan: TilePlan,
    numbers: range,
    compute: Callable[..., Any],
    recorded: dict[int, Checksums],
    record: bool,
    gate: WriteGate,
    origin: BatchOrigin,
    timeout: float | None = None,
    call_id: str = "",
) -> BatchResult:
    """Run several tasks and return their outcome; this call travels to a worker.

    Args:
        plan: the plan that the tasks belong to.
        numbers: the tasks to run.
        compute: the user's function.
        recorded: checksums of earlier runs; a task whose result is still there does not run again.
        record: compute checksums of all data read and written.
        gate: nothing is written after it is closed.
        origin: where the batch was submitted.
        timeout: the most seconds that a task may take.
        call_id: makes the call unique (see `submit_unique`).

    >>> from tilewright.tiling import plan_tiles
    >>> plan = plan_tiles(np.arange(10), np.zeros(10, int), tile=(4,))
    >>> result = run_batch(plan, range(3), np.negative, {}, False, WriteGate(), BatchOrigin("", ""))
    >>> [outcome.number for outcome in result.outcomes]
    [0, 1, 2]
    """
    began = time.perf_counter()
    batch = BatchRun(plan, compute, recorded, record, gate, origin)
    if timeout is None:
        batch.run(numbers)
    else:
        batch.run_within(numbers, timeout)
    ended = len(batch.outcomes) + len(batch.failures)
    seconds = time.perf_counter() - began
    return BatchResult(batch.outcomes, batch.failures, numbers[ended:], seconds, this_process(), batch.witness)


def _make_picklable(problem: Exception) -> Exception:
    """Return an error that can be sent to another process, with a note of where it was raised."""
    if hasattr(problem, "add_note"):  # Python 3.11
        problem.add_note("".join(traceback.format_exception(problem)))
    try:
        pickle.loads(pickle.dumps(problem))  # noqa: S301  (our own)
    except Exception:
        return TransferError(f"{type(problem).__name__}: {problem}")
    return problem


_VERIFIED_RUNS: set[str] = set()
"""Runs for which this process has sent a result that shows the caller whether both see the same arrays."""

_PROCESS_TOKEN = uuid4().hex


def this_process() -> str:
    """Return a text that identifies this process among the processes of all machines."""
    return f"process {os.getpid()} on {platform.node()} ({_PROCESS_TOKEN[:8]})"


def is_on_this_machine(process: str) -> bool:
    """Return whether a text of `this_process` comes from this machine."""
    return f" on {platform.node()} (" in process
