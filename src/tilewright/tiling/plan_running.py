# SPDX-License-Identifier: Apache-2.0
"""Running the tasks of a plan: here or on an executor, again where one failed, and not where its result is there."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import TransferError
from ..layout.boxes import Box
from .execution import CancelledError, Progress, Step, Switch, check_result
from .manifest import Manifest
from .operands import port_of
from .ports import Port, Room

if TYPE_CHECKING:
    from .plans import Task, TilePlan


class Outcome(NamedTuple):
    """What became of a task: its number, the checksum of what it wrote, and whether it had to run.

    >>> Outcome(3, 0, ran=True).ran
    True
    """

    number: int
    checksum: int
    ran: bool


def run_task(
    plan: TilePlan, task: Task, compute: Callable[..., Any], remember: bool = False, known: int | None = None
) -> Outcome:
    """Return what became of a task: read, compute, write. This is what travels to a worker.

    To `remember` a task takes a checksum. One whose result is `known`, and still there, does not run again.

    >>> import numpy as np
    >>> from tilewright.tiling import plan_tiles
    >>> a, b = np.arange(10), np.zeros(10, int)
    >>> plan = plan_tiles(a, b, tile=(4,))
    >>> run_task(plan, plan[1], lambda x, y: np.negative(x, out=y)).number
    1
    >>> b.tolist()
    [0, 0, 0, 0, -4, -5, -6, -7, 0, 0]
    """
    leaving = []
    for reference, box in zip(plan.targets, task.outputs, strict=True):
        port = port_of(reference.open(writing=True), writing=True)
        leaving.append((port, box, Room(prod(box.shape) * port.dtype.itemsize)))
    if known is not None:
        for port, box, room in leaving:
            port.importing(box, room, None)()
        if _checksum(leaving) == known:
            return Outcome(task.number, known, ran=False)
    arrays = []
    for reference, box in zip(plan.sources, task.inputs, strict=True):
        port = port_of(reference.open(writing=False))
        room = Room(prod(box.shape) * port.dtype.itemsize)
        port.importing(box, room, plan.pad)()
        arrays.append(room.view(box.shape, port.dtype))
    outputs = tuple([room.view(box.shape, port.dtype) for port, box, room in leaving])
    result = compute(*arrays, *outputs)
    if result is not None:
        check_result(result, Step(task.number, tuple(arrays), outputs))
    for port, box, room in leaving:
        port.exporting(box, room)()
    return Outcome(task.number, _checksum(leaving) if remember else 0, ran=True)


def _checksum(leaving: list[tuple[Port, Box, Room]]) -> int:
    found = 0
    for port, box, room in leaving:
        found = zlib.crc32(room.bytes[: box.size * port.dtype.itemsize].data, found)
    return found


def tasks_in_flight(executor: Executor | None) -> int:
    """Return how many tasks keep an executor busy: a few more than it has workers, where it says how many."""
    if executor is None:
        return 1
    workers = getattr(executor, "_max_workers", None)
    return 2 * (workers if isinstance(workers, int) else os.cpu_count() or 4) + 2


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
    ) -> None:
        self.plan, self.compute, self.executor, self.record = plan, compute, executor, record
        self.progress, self.cancel, self.retries = progress, cancel, retries
        self.under_way: dict[Future[Outcome], tuple[Task, int]] = {}
        self.ran = self.skipped = self.retried = 0

    def go(self, in_flight: int) -> None:
        try:
            for number in range(self.plan.first, self.plan.last):
                while len(self.under_way) >= in_flight:
                    self._collect()
                self._check_cancel()
                self._submit(self.plan._task(number), 0)
            while self.under_way:
                self._collect()
        finally:
            # what is cancelled in time never runs, and may never say so: waiting for it would not end
            wait([future for future in self.under_way if not future.cancel()])

    def _check_cancel(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError(f"cancelled with {self.ran + self.skipped} of {len(self.plan)} tasks done")

    def _submit(self, task: Task, attempt: int) -> None:
        known = None if self.record is None else self.record.done.get(task.number)
        work = (self.plan, task, self.compute, self.record is not None, known)
        if self.executor is not None:
            self.under_way[self.executor.submit(run_task, *work)] = (task, attempt)
            return
        future: Future[Outcome] = Future()
        self.under_way[future] = (task, attempt)
        try:
            future.set_result(run_task(*work))
        except Exception as problem:
            future.set_exception(problem)

    def _collect(self) -> None:
        """Take in what is over, and try again what failed."""
        self._check_cancel()
        over, _ = wait(list(self.under_way), return_when=FIRST_COMPLETED)
        for future in over:
            task, attempt = self.under_way.pop(future)
            problem = future.exception()
            if problem is None:
                self._done(future.result())
            elif attempt < self.retries and isinstance(problem, Exception):
                self.retried += 1
                self._submit(task, attempt + 1)
            else:
                raise TransferError(
                    f"task {task.number}, which writes {', '.join(map(str, task.outputs))}, failed {attempt + 1} times;"
                    f" the last time with {type(problem).__name__}: {problem}"
                ) from problem

    def _done(self, outcome: Outcome) -> None:
        self.ran += outcome.ran
        self.skipped += not outcome.ran
        if self.record is not None and outcome.ran:
            self.record.add(outcome.number, outcome.checksum)
        if self.progress is not None:
            self.progress(self.ran + self.skipped, len(self.plan))
