# SPDX-License-Identifier: Apache-2.0
"""One task of a tile plan: read its boxes, compute, write; and the manifest that records finished tasks.

A task may run in another process, which might have its own copy of an array. So the first result of a process whose
bytes are not all equal is compared with what the calling process sees.

The first line of a manifest identifies the work: the compute, the sources and targets, and their tilers. A line follows
when a task finishes, and never changed. An incomplete last line is ignored, and its task runs again, which is harmless.
The checksum of the written bytes tells whether the result is still there: a script that is started again may have made
its target anew. The checksum of the read bytes tells whether the sources are the same.
"""

from __future__ import annotations

import json
import os
import pickle
import platform
import time
import traceback
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np

from ..atomic import write_file
from ..errors import TransferError
from ..files.source_file import SourceFile
from ..layout import Box
from .endpoints import Endpoint
from .tile_compute import CancelledError, Step, WriteGate, run_compute
from .transfer_tensors import TileBuffer

if TYPE_CHECKING:
    from .tile_plan import Task, TilePlan


_FIRST_BYTES = b'{"plan": '


class Checksums(NamedTuple):
    """The CRC-32 of the bytes that a task read, and of those it wrote.

    >>> Checksums(read=7, wrote=8).wrote
    8
    """

    read: int
    wrote: int


class TaskManifest:
    """The finished tasks of a plan by number, with their checksums.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with TaskManifest(Path(folder, "run.jsonl"), {"tiles": 4}) as manifest:
    ...         manifest.add(2, Checksums(1, 0xCBF43926))
    ...     with TaskManifest(Path(folder, "run.jsonl"), {"tiles": 4}) as again:
    ...         print(again.done)
    {2: Checksums(read=1, wrote=3421780262)}
    """

    def __init__(self, path: str | Path, plan: dict[str, Any]) -> None:
        self.path = Path(path)
        self.done: dict[int, Checksums] = {}
        plan = json.loads(json.dumps(plan))  # as it will be read back
        lines = self._read_lines(plan) if self.path.exists() else b""
        if not lines:
            lines = json.dumps({"plan": plan}).encode() + b"\n"
        # an incomplete last line is removed, so that the next line starts on its own
        write_file(self.path, lines)
        self._file = self.path.open("ab", buffering=0)

    def _read_lines(self, plan: dict[str, Any]) -> bytes:
        """Return the complete lines of the file, and fill `done` from them."""
        file = SourceFile(self.path)  # rejects a pipe or a folder
        text = file.read(0, file.size)
        complete = text[: text.rfind(b"\n") + 1]
        lines = complete.splitlines()
        if not lines and text[: len(_FIRST_BYTES)] == _FIRST_BYTES[: len(text)]:
            return b""
        try:
            recorded = json.loads(lines[0])["plan"]
            records = [json.loads(line) for line in lines[1:]]
            self.done = {
                int(record["done"]): Checksums(int(record["read"]), int(record["wrote"])) for record in records
            }
            changed = [key for key in {**plan, **recorded} if recorded.get(key) != plan.get(key)]
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            raise TransferError(
                f"{self.path} is not a tile plan manifest, or is from another version; give another path"
            ) from None
        if changed:
            changes = [_describe_change(key, recorded.get(key), plan.get(key)) for key in changed]
            raise TransferError(
                f"{self.path} belongs to another plan: {'; '.join(changes)}. Remove it to start over, or give another"
                " path"
            )
        return complete

    def add(self, number: int, checksums: Checksums) -> None:
        """Record that task `number` is done, with its checksums.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, TaskManifest(Path(folder, "m"), {}) as manifest:
        ...     manifest.add(7, Checksums(0, 0))
        ...     manifest.done
        {7: Checksums(read=0, wrote=0)}
        """
        self.done[number] = checksums
        line = json.dumps({"done": number, **checksums._asdict()}).encode() + b"\n"
        while line:  # a write may be partial
            line = line[self._file.write(line) or 0 :]

    def close(self) -> None:
        """Flush the file to disk and close it."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def __enter__(self) -> TaskManifest:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _describe_change(name: str, recorded: Any, current: Any) -> str:
    """Return a text with the entries of a value that differ."""
    if isinstance(recorded, dict) and isinstance(current, dict):
        keys = [key for key in {**recorded, **current} if recorded.get(key) != current.get(key)]
        recorded, current = ({key: value.get(key) for key in keys} for value in (recorded, current))
    return f"{name} was {recorded} and is now {current}"


class TaskOutcome(NamedTuple):
    """A finished task: its number, its checksums, whether it had to run, and the seconds it took.

    `worker` names another process in which it ran, if the caller should check that it sees the same arrays.

    >>> TaskOutcome(3, Checksums(0, 0), ran=True).ran
    True
    """

    number: int
    checksums: Checksums
    ran: bool
    seconds: float = 0.0
    worker: str = ""


class TaskFailure(NamedTuple):
    """A task that raised: its number and the error.

    >>> TaskFailure(3, ValueError("no")).number
    3
    """

    number: int
    problem: Exception


class SourceChangedError(TransferError):
    """A source that has changed since a task was done; trying again would not help."""


class BatchOrigin(NamedTuple):
    """Where a batch of tasks comes from: the run it belongs to, and the process that submitted it."""

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

    def read(self, pad: Any) -> None:
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


class PlanEndpoints:
    """The endpoints of a plan, opened once for the tasks of a batch."""

    def __init__(self, plan: TilePlan) -> None:
        self._plan = plan

    @cached_property
    def _sources(self) -> list[Endpoint]:
        return [source.open(writing=False) for source in self._plan.sources]

    @cached_property
    def _targets(self) -> list[Endpoint]:
        return [target.open(writing=True) for target in self._plan.targets]

    def input_buffers(self, task: Task) -> TaskBuffers:
        """Return new buffers for the inputs of a task."""
        return _allocate_buffers(self._sources, task.inputs)

    def output_buffers(self, task: Task) -> TaskBuffers:
        """Return new buffers for the outputs of a task."""
        return _allocate_buffers(self._targets, task.outputs)


def _allocate_buffers(endpoints: list[Endpoint], boxes: Sequence[Box]) -> TaskBuffers:
    sizes = [box.size * endpoint.dtype.itemsize for endpoint, box in zip(endpoints, boxes, strict=True)]
    return TaskBuffers(endpoints, boxes, [TileBuffer(size) for size in sizes])


def run_task(
    plan: TilePlan,
    task: Task,
    compute: Callable[..., Any],
    record: bool = False,
    recorded: Checksums | None = None,
    gate: WriteGate | None = None,
    origin: BatchOrigin | None = None,
    endpoints: PlanEndpoints | None = None,
) -> TaskOutcome:
    """Run a task and return its outcome.

    Args:
        plan: the plan that the task belongs to.
        task: the task to run.
        compute: the user's function.
        record: compute checksums of what is read and written.
        recorded: the checksums of an earlier run; if the result is still there, the task does not run again.
        gate: nothing is written after it is closed.
        origin: where the task was submitted.
        endpoints: the opened arrays of the plan; by default they are opened for this task.

    >>> from tilewright.tiling import plan_tiles
    >>> a, b = np.arange(10), np.zeros(10, int)
    >>> plan = plan_tiles(a, b, tile=(4,))
    >>> run_task(plan, plan[1], lambda x, y: np.negative(x, out=y)).number
    1
    >>> b.tolist()
    [0, 0, 0, 0, -4, -5, -6, -7, 0, 0]
    """
    began = time.perf_counter()
    is_remote = origin is not None and origin.process != this_process() and origin.run not in _VERIFIED_RUNS
    worker = this_process() if is_remote else ""
    endpoints = PlanEndpoints(plan) if endpoints is None else endpoints
    outputs, inputs = endpoints.output_buffers(task), endpoints.input_buffers(task)
    is_done = False
    if recorded is not None:
        outputs.read(None)
        is_done = outputs.checksum() == recorded.wrote
    inputs.read(plan.pad)
    read = inputs.checksum() if record or worker else 0
    if is_done and recorded is not None:
        if read != recorded.read:
            raise SourceChangedError(
                f"a source has changed since task {task.number} was done; restore the source, or remove the manifest"
                " to start over"
            )
        return TaskOutcome(task.number, recorded, False, time.perf_counter() - began)
    is_distinct = bool(worker) and not inputs.is_constant()
    run_compute(compute, Step(task.number, inputs.arrays(), outputs.arrays()), task.number == plan.first)
    with gate or WriteGate():
        outputs.write()
    wrote = outputs.checksum() if record or worker else 0
    if is_distinct and origin is not None and not outputs.is_constant():
        _VERIFIED_RUNS.add(origin.run)  # one such result is enough
    return TaskOutcome(task.number, Checksums(read, wrote), True, time.perf_counter() - began, worker)


def run_batch(
    plan: TilePlan,
    batch: Sequence[tuple[Task, Checksums | None]],
    compute: Callable[..., Any],
    record: bool,
    gate: WriteGate,
    origin: BatchOrigin,
    call_id: str = "",
) -> list[TaskOutcome | TaskFailure]:
    """Run several tasks and return their outcomes; one that fails does not affect the others.

    `batch` has the tasks with their recorded checksums; `call_id` makes the call unique (see `submit_unique`); the
    other arguments are those of `run_task`.

    >>> from tilewright.tiling import plan_tiles
    >>> plan = plan_tiles(np.arange(10), np.zeros(10, int), tile=(4,))
    >>> batch = [(task, None) for task in plan]
    >>> [outcome.number for outcome in run_batch(plan, batch, np.negative, False, WriteGate(), BatchOrigin("", ""))]
    [0, 1, 2]
    """
    results: list[TaskOutcome | TaskFailure] = []
    endpoints = PlanEndpoints(plan)
    for task, recorded in batch:
        try:
            results.append(run_task(plan, task, compute, record, recorded, gate, origin, endpoints))
        except CancelledError:
            raise
        except Exception as problem:
            is_local = origin.process == this_process()
            results.append(TaskFailure(task.number, problem if is_local else _make_picklable(problem)))
    return results


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
    """Return a text that identifies this process among those of all machines."""
    return f"process {os.getpid()} on {platform.node()} ({_PROCESS_TOKEN[:8]})"


def is_on_this_machine(process: str) -> bool:
    """Return whether a text of `this_process` comes from this machine."""
    return f" on {platform.node()} (" in process
