# SPDX-License-Identifier: Apache-2.0
"""The machine: it runs blocks of threads, one at a time, and finds the defects of a kernel."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import CoroutineType, TracebackType
from typing import Any, NoReturn

import numpy as np

from tilewright._text import count_of
from tilewright.errors import CoordinateError, KernelBoundsError, KernelError, LayoutError, TilewrightError
from tilewright.layout import as_integer
from tilewright.tensor import Store, TileTensor, kernel_memory

from .access_log import IN_FLIGHT, AccessLog, BlockStack, LogTable, MemoryRegion, Site, new_region, site_of, user_frame
from .checks import BlockMemory, CostCounter, RaceFinder, TouchRecorder
from .collectives import SYNCWARP
from .kernel_report import Defect, KernelReport, Witness, find_warnings
from .kernel_thread import Dim, KernelThread, RunningMachine, Suspension, _machine, as_dim, coroutine_twin, positions


def release_threads(machine: RunningMachine) -> list[KernelThread]:
    """Return the threads that can resume, now that all wait or have returned.

    >>> release_threads.__name__
    'release_threads'
    """
    waiting = [thread for thread in machine.threads if not thread.done]
    if not waiting:
        return waiting
    requests: list[Any] = [thread.request for thread in waiting]
    first = requests[0]
    if len(waiting) == len(machine.threads) and all(
        request.kind == "barrier" and request.site == first.site for request in requests
    ):
        for thread in waiting:
            thread.epoch += 1
            thread.resume = None
        return waiting
    ready = [thread for thread, request in zip(waiting, requests, strict=True) if _is_polled(machine, thread, request)]
    if ready:
        return ready
    ready = _release_warps(machine, waiting)
    return ready or _release_block(machine, waiting)


def _is_polled(machine: RunningMachine, thread: KernelThread, request: Any) -> bool:
    """Return whether the condition that a thread polls holds."""
    if request.kind != "poll" or not request.value():
        return False
    thread.resume = True
    if request.options:  # all threads of the block take part
        thread.epoch += 1
    return True


def _release_warps(machine: RunningMachine, waiting: list[KernelThread]) -> list[KernelThread]:
    """Run the operations of warps whose threads have come, the first one in the source of each warp."""
    groups: dict[tuple[int, int, str], list[KernelThread]] = {}
    for thread in waiting:
        request: Any = thread.request
        if request.kind == "warp":
            groups.setdefault((thread.warp, request.site, request.name), []).append(thread)
    ready: list[KernelThread] = []
    done: set[int] = set()
    for (warp, site, _), members in sorted(groups.items(), key=lambda item: (item[0][0], _source(machine, item[0][1]))):
        if warp not in done:
            done.add(warp)
            _run_warp_operation(machine, warp, site, members)
            ready += members
    return ready


def _source(machine: RunningMachine, site: int) -> tuple[int, int]:
    source = machine.log.sites[site]
    return source.line, source.column


def _run_warp_operation(machine: RunningMachine, warp: int, site: int, members: list[KernelThread]) -> None:
    operation = members[0].request.options  # type: ignore[union-attr]
    values = {thread.lane: thread.request.value for thread in members}  # type: ignore[union-attr]
    answers = operation.compute(values, machine.warp)
    everyone = [
        thread for thread in machine.threads[warp * machine.warp : (warp + 1) * machine.warp] if not thread.done
    ]
    for thread in members:
        thread.resume, missing = answers[thread.lane]
        if operation is SYNCWARP and len(members) == len(everyone):
            thread.warp_epoch += 1
        if missing is not None:
            _report_inactive(machine, thread, warp, missing)


def _report_inactive(machine: RunningMachine, thread: KernelThread, warp: int, lane: int) -> None:
    number = warp * machine.warp + lane
    request: Any = thread.request
    witnesses = [machine.witness(f"{request.name} from lane {lane}", request.site, thread)]
    if number >= len(machine.threads):
        why = f"lane {lane} does not exist, since the block has {len(machine.threads)} threads"
    else:
        other = machine.threads[number]
        why = f"lane {lane} {'has returned' if other.done else 'is elsewhere'}"
        if not other.done:
            witnesses.append(machine.witness("waits", other.request.site, other))  # type: ignore[union-attr]
    machine.add_defect(
        Defect(
            "inactive lane",
            f"{request.name} reads the value of a lane that does not take part: {why}",
            tuple(witnesses),
            "let all lanes of the warp call it, outside of any condition, with a neutral value where there is none",
        )
    )


def _release_block(machine: RunningMachine, waiting: list[KernelThread]) -> list[KernelThread]:
    """Release a block whose threads all wait for each other, or report why it is stuck."""
    requests: list[Any] = [thread.request for thread in waiting]
    left = [thread for thread in machine.threads if thread.done and thread.left_at != -1]  # which were not stopped
    at_barrier = [request.kind in ("barrier", "block", "cluster") for request in requests]
    if not all(at_barrier):
        _report_deadlock(machine, waiting)
    elif left:
        _report_left(machine, waiting[0], left)
    elif len({(request.site, request.name) for request in requests}) > 1:
        _report_divergent(machine, waiting)
    machine.is_at_cluster_barrier = requests[0].kind == "cluster"
    operation = requests[0].options
    answers = None
    if operation is not None:
        values = {thread.index: thread.request.value for thread in waiting}  # type: ignore[union-attr]
        answers = operation.compute(values, len(machine.threads))
    for thread in waiting:
        thread.epoch += 1
        thread.resume = None if answers is None else answers[thread.index][0]
    return waiting


def _report_left(machine: RunningMachine, waiting: KernelThread, left: list[KernelThread]) -> None:
    other = left[0]
    witnesses = [machine.witness("waits", waiting.request.site, waiting)]  # type: ignore[union-attr]
    if other.left_at is not None:
        witnesses.append(machine.witness("returned after waiting", other.left_at, other))
    many = f"{len(left)} of {len(machine.threads)} threads of the block, such as {other.position}, have"
    who = many if len(left) > 1 else f"thread {other.position} of the block has"
    machine.stop_block(
        Defect(
            "barrier not reached",
            f"{who} returned without coming to the barrier",
            tuple(witnesses),
            "let all threads come to every barrier: do not return before it; guard the work with `if` instead",
        )
    )


def _first_of_sites(waiting: list[KernelThread]) -> list[tuple[Any, KernelThread]]:
    """Return the request and the thread of the first to wait at each place in the source."""
    requests: dict[int, tuple[Any, KernelThread]] = {}
    for thread in waiting:
        requests.setdefault(thread.request.site, (thread.request, thread))  # type: ignore[union-attr]
    return list(requests.values())


def _report_divergent(machine: RunningMachine, waiting: list[KernelThread]) -> None:
    first = _first_of_sites(waiting)
    machine.stop_block(
        Defect(
            "divergent barrier",
            f"threads of one block wait at {len(first)} different barriers",
            tuple([machine.witness("waits", request.site, thread) for request, thread in first[:4]]),
            "a barrier is for all threads of the block: move it out of the condition",
        )
    )


def _report_deadlock(machine: RunningMachine, waiting: list[KernelThread]) -> None:
    first = _first_of_sites(waiting)[:4]
    machine.stop_block(
        Defect(
            "deadlock",
            f"all {len(waiting)} threads of the block that have not returned wait for something that cannot come",
            tuple([machine.witness(f"waits in {request.name}", request.site, thread) for request, thread in first]),
            "let as many threads arrive as the barrier was initialised for, and all wait for the same",
        )
    )


_ONE = Dim(1)


@dataclass(frozen=True, slots=True)
class BlockLimits:
    """The limits of a block: threads, and bytes of shared memory, static and in all. By default an NVIDIA H100's.

    >>> small = BlockLimits(threads=512)
    >>> small.static_shared
    49152
    """

    threads: int = 1024
    static_shared: int = 48 << 10
    shared: int = 227 << 10


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """A launch: a kernel with its arguments, the extents, and the way to check it.

    `check` is True (raise at the end of a launch with errors), "lenient" (not for harmless ones), "report" (only report
    them, and go on as far as possible), or False (only what prevents the kernel from going on is noticed).

    >>> plan = LaunchPlan(print, (), Dim(1), Dim(1))
    >>> plan.warp
    32
    """

    kernel: Callable[..., Any]
    arguments: tuple[Any, ...]
    grid: Dim
    block: Dim
    shared_bytes: int = 0
    warp: int = 32
    check: bool | str = True
    limits: BlockLimits = BlockLimits()
    name: str = ""
    cluster: Dim = _ONE  # blocks that run together


_CHUNK = 400_000  # entries of the log after which it is examined
_MAX_UNWRITTEN = 10_000
_MAX_ROUNDS = 50_000  # how often the threads of a block may wait: a loop with a barrier that never ends is an error


class _BlockStopped(Exception):  # noqa: N818  (not an error: the next block follows)
    """The block was stopped."""


class _MachineLog(AccessLog):
    """The log of a machine, which reports the defects of single accesses."""

    def __init__(self, machine: SimtMachine) -> None:
        super().__init__()
        self._machine = machine

    def report_unwritten(self, region: MemoryRegion, first: int, nbytes: int) -> None:
        """Remember a read of memory without a value: only at the end is known whether it is part of a race.

        >>> issubclass(_MachineLog, AccessLog)
        True
        """
        machine = self._machine
        if len(machine.unwritten) < _MAX_UNWRITTEN:
            thread = machine.thread
            element = (machine.block_number, thread.epoch, region.number, first)
            in_flight = region.written is not None and IN_FLIGHT in region.written[first : first + nbytes]
            machine.unwritten.append((element, self.site_here(), machine.block_index, thread.position, in_flight))

    def report_misaligned(self, region: MemoryRegion, first: int, nbytes: int, needed: int) -> None:
        """Report a vector at an address that is not a multiple of its size.

        >>> issubclass(_MachineLog, AccessLog)
        True
        """
        element = region.element_text(first)
        self._machine.report(
            "misaligned vector",
            f"an access to {nbytes} bytes at {element}, byte {first} of {region.name}: not a multiple of {needed}",
            "access",
            f"let vectors start at multiples of {needed // region.itemsize} elements, or use a smaller width",
            element,
        )


class BlockSlot:
    """The state of a running block: its threads, its memory, its barriers in memory, and its position.

    >>> SimtMachine(LaunchPlan(print, (), Dim(1), Dim(4)))._slots[0].rank
    0
    """

    __slots__ = ("index", "memory", "rank", "state", "threads")

    def __init__(self, machine: SimtMachine, rank: int) -> None:
        plan = machine.plan
        self.rank = rank  # in the cluster
        self.index = Dim(0, 0, 0)
        self.threads = [KernelThread(k, position, plan.warp) for k, position in enumerate(positions(plan.block))]
        self.memory = BlockMemory(machine)
        self.state: dict[Any, Any] = {}


def clusters_of(grid: Dim, cluster: Dim) -> Iterator[list[Dim]]:
    """Yield the blocks of each cluster of a grid.

    >>> [[block.x for block in blocks] for blocks in clusters_of(Dim(4), Dim(2))]
    [[0, 1], [2, 3]]
    """
    for corner in positions(Dim(grid.x // cluster.x, grid.y // cluster.y, grid.z // cluster.z)):
        yield [
            Dim(corner.x * cluster.x + x, corner.y * cluster.y + y, corner.z * cluster.z + z)
            for x, y, z in positions(cluster)
        ]


_DONE = object()


class SimtMachine:
    """Runs a launch. `thread` is the thread that runs, `block_index` its block.

    >>> SimtMachine(LaunchPlan(lambda: None, (), Dim(2), Dim(4))).run().clean
    True
    """

    def __init__(self, plan: LaunchPlan) -> None:
        self.plan, self.warp = plan, plan.warp
        self.grid_dim: Dim = plan.grid
        self.block_dim: Dim = plan.block
        self.block_index: Dim = Dim(0, 0, 0)
        self.block_number = self.cluster_rank = 0
        self.is_at_cluster_barrier = False
        self.log = _MachineLog(self)
        count = plan.cluster.x * plan.cluster.y * plan.cluster.z
        self._slots = [BlockSlot(self, rank) for rank in range(count)]
        self.threads, self.memory = self._slots[0].threads, self._slots[0].memory
        self.thread: KernelThread = self.threads[0]
        self.block_state: dict[Any, Any] = {}  # of barriers in memory, for one block
        self._defects: dict[Any, Defect] = {}
        self._races = RaceFinder(self.log, plan.grid, plan.block, plan.warp)
        self.stack = BlockStack(None if plan.check is False else self.log)
        self._costs = CostCounter(self.log, plan.warp)
        self._touches = TouchRecorder(self.log, plan.grid)
        self.unwritten: list[tuple[tuple[int, int, int, int], int, Dim, Dim, bool]] = []

    # The launch.

    def run(self) -> KernelReport:
        """Run all blocks and return the report; raise as the launch asks for.

        >>> SimtMachine(LaunchPlan(lambda: None, (), Dim(2), Dim(4))).run().kernel
        'kernel'
        """
        token, memory = _machine.set(self), kernel_memory.set(self.stack)
        try:
            self._run_blocks()
        finally:
            _machine.reset(token)
            kernel_memory.reset(memory)
        report = self._make_report()
        serious = report.errors if self.plan.check is True else [x for x in report.errors if not x.harmless]
        if self.plan.check in (True, "lenient") and serious:
            self._raise(report)
        return report

    def _run_blocks(self) -> None:
        entry = coroutine_twin(self.plan.kernel)
        for blocks in clusters_of(self.grid_dim, self.plan.cluster):
            try:
                self._run_cluster(entry, blocks)
            finally:
                for slot in self._slots:
                    for thread in slot.threads:
                        if thread.coroutine is not None:
                            thread.coroutine.close()
            if len(self.log.entries) > _CHUNK:
                self._examine()

    def _run_cluster(self, entry: Callable[..., Any], blocks: list[Dim]) -> None:
        """Run the blocks of a cluster, usually one: each until it is done or at a barrier of the cluster."""
        pending = []
        for slot, block in zip(self._slots, blocks, strict=True):
            slot.index = block
            pending.append((slot, self._run_block(entry)))
        while pending:
            waiting = []
            for slot, run in pending:
                self._enter(slot)
                try:
                    if next(run, _DONE) is not _DONE:
                        waiting.append((slot, run))
                except _BlockStopped:
                    pass
            if waiting and len(waiting) < len(blocks):
                self._report_cluster(waiting[0][0], len(blocks) - len(waiting))
            self._races.order_cluster([self._number_of(block) for block in blocks], self.log)
            pending = waiting

    def _enter(self, slot: BlockSlot) -> None:
        """Let the block in a slot be the one that runs."""
        self.threads, self.memory, self.block_state = slot.threads, slot.memory, slot.state
        self.block_index, self.cluster_rank = slot.index, slot.rank
        self.block_number = self._number_of(slot.index)

    def _number_of(self, block: Dim) -> int:
        return block.x + self.grid_dim.x * (block.y + self.grid_dim.y * block.z)

    def _report_cluster(self, slot: BlockSlot, missing: int) -> None:
        self._enter(slot)
        thread = next(thread for thread in slot.threads if not thread.done)
        site = -1 if thread.request is None else thread.request.site
        with suppress(_BlockStopped):
            self.stop_block(
                Defect(
                    "barrier not reached",
                    f"{count_of(missing, 'block')} of the cluster returned without coming to the cluster's barrier",
                    (self.witness("waits", site, thread),),
                    "let all blocks of a cluster come to every barrier of the cluster",
                )
            )

    def _examine(self) -> None:
        """Examine what the log has recorded of whole blocks, and empty it."""
        self.log.settle()
        table = LogTable.of(self.log)
        self.log.examined += table.size
        self.log.entries.clear()
        self.log.slices.clear()
        self._races.examine(table)
        self._costs.count(table)
        self._touches.record(table, self._races.racing)

    def _make_report(self) -> KernelReport:
        self._examine()
        races = self._races.defects()
        self._add_unwritten()
        errors = (*self._defects.values(), *races)
        sites = self._costs.costs()
        return KernelReport(
            self.plan.name or "kernel",
            self.grid_dim,
            self.block_dim,
            tuple(errors),
            find_warnings(sites),
            sites,
            self._touches.maps(self._races.racing),
            self.warp,
            self.memory.static_bytes + self.plan.shared_bytes,
        )

    def _add_unwritten(self) -> None:
        """Add the reads of memory without a value, unless another thread wrote it with nothing between: a race."""
        for element, site, block, thread, in_flight in self.unwritten:
            if element in self._races.suspects and not in_flight:
                continue
            region = self.log.table.regions[element[2]]
            text = f"{region.element_text(element[3])} in {region.space} memory"
            kind, message = "uninitialised read", f"{text} is read before any thread has written it"
            remedy = "write it first, also where only a part of the memory is filled"
            if in_flight:
                kind, message = "copy in flight", f"{text} is read before its asynchronous copy is known to be done"
                remedy = "let the thread that copies wait for its copies, then put a barrier() between"
            witness = Witness("read", self.log.sites[site], block, thread)
            self.add_defect(Defect(kind, message, (witness,), remedy, region.element_text(element[3])))

    def _raise(self, report: KernelReport, cause: BaseException | None = None) -> NoReturn:
        kind = KernelBoundsError if isinstance(cause, CoordinateError) else KernelError
        text = "\n".join(str(defect) for defect in report.errors)
        raise kind(f"{report.kernel}: {count_of(len(report.errors), 'error')}\n{text}", report) from cause

    # A block.

    def _run_block(self, entry: Callable[..., Any]) -> Iterator[None]:
        """Run the threads of the block that was entered; yield at barriers of its cluster."""
        threads, log, number, arguments = self.threads, self.log, self.block_number, self.plan.arguments
        for thread in threads:
            thread.reset()
        self.block_state.clear()
        log.settle()  # of the last write, before its memory is the next block's
        self.memory.clear()
        entries, slices = log.entries, log.slices
        runnable, rounds = threads, 0
        while runnable:
            rounds += 1
            if rounds > _MAX_ROUNDS:
                self._stop_endless(runnable[0])
            for thread in runnable:
                self.thread = thread
                slices.append((len(entries), number, thread.index, thread.epoch, thread.warp_epoch))
                try:
                    if thread.coroutine is None:
                        result = entry(*arguments)
                        if result.__class__ is not CoroutineType:
                            self._finish(thread)
                            continue
                        thread.coroutine = result
                        request = result.send(None)
                    else:
                        request = thread.coroutine.send(thread.resume)
                except StopIteration:
                    self._finish(thread)
                except (KernelError, _BlockStopped):
                    raise
                except TilewrightError as problem:
                    self._stop_thread(thread, problem)
                except Exception as problem:  # of the kernel itself
                    if hasattr(problem, "add_note"):
                        problem.add_note(f"in thread {thread.position} of block {self.block_index}")
                    raise
                else:
                    thread.request, thread.pending = request, None
            runnable = release_threads(self)
            if self.is_at_cluster_barrier:
                self.is_at_cluster_barrier = False
                yield

    def _stop_endless(self, thread: KernelThread) -> NoReturn:
        site = -1 if thread.request is None else thread.request.site
        self.stop_block(
            Defect(
                "endless loop",
                f"the threads of the block have waited {_MAX_ROUNDS} times",
                (self.witness("waits", site, thread),),
                "let the condition of the loop become false",
            )
        )

    def _finish(self, thread: KernelThread) -> None:
        thread.done = True
        thread.left_at = None if thread.request is None else thread.request.site
        if thread.pending is not None:
            self._refuse_wait(thread.pending)

    def suspend(self, kind: str, name: str, value: Any, options: Any) -> Suspension:
        """Return what the running thread waits for.

        >>> machine = SimtMachine(LaunchPlan(print, (), Dim(1), Dim(1)))
        >>> machine.suspend("barrier", "barrier", None, None).kind
        'barrier'
        """
        thread = self.thread
        if thread.pending is not None:
            self._refuse_wait(thread.pending)
        frame = user_frame(sys._getframe(2))
        request = thread.pending = Suspension(kind, value, options, self.log.site_at(frame), name)
        return request

    def _refuse_wait(self, request: Suspension) -> NoReturn:
        site = self.log.sites[request.site]
        raise KernelError(
            f"{request.name}() at {site} cannot wait there: the source of the function that calls it is not available,"
            " or a function of Python or of the library calls it; write the kernel into a file or a cell, and call it"
            " from the kernel itself"
        )

    # Defects.

    def witness(self, action: str, site: int, thread: KernelThread) -> Witness:
        """Return a thread of the running block at a site, by its number.

        >>> machine = SimtMachine(LaunchPlan(print, (), Dim(1), Dim(1)))
        >>> machine.witness("read", machine.log.site_here(), machine.thread).action
        'read'
        """
        return Witness(action, self.log.sites[site], self.block_index, thread.position)

    def report(self, kind: str, message: str, action: str, remedy: str, element: str) -> None:
        """Report what the running thread does wrong at the place in the source where it is.

        >>> machine = SimtMachine(LaunchPlan(print, (), Dim(1), Dim(1)))
        >>> machine.report("race", "two threads write s[0]", "write", "", "s[0]")
        """
        witness = self.witness(action, self.log.site_here(2), self.thread)
        self.add_defect(Defect(kind, message, (witness,), remedy, element))

    def add_defect(self, defect: Defect) -> None:
        """Add a defect, or count it if there is one of its kind at the same lines.

        >>> machine = SimtMachine(LaunchPlan(print, (), Dim(1), Dim(1)))
        >>> machine.add_defect(Defect("race", "two threads write s[0]"))
        """
        key = (defect.kind, *[witness.site for witness in defect.witnesses])
        known = self._defects.get(key)
        self._defects[key] = defect if known is None else replace(known, count=known.count + 1)

    def stop_block(self, defect: Defect, cause: BaseException | None = None) -> NoReturn:
        """Add a defect that stops the block; raise unless the launch only reports.

        >>> machine = SimtMachine(LaunchPlan(print, (), Dim(1), Dim(1)))
        >>> try:
        ...     machine.stop_block(Defect("deadlock", "all threads wait"))
        ... except KernelError as problem:
        ...     print(problem)
        kernel: 1 error
        error: deadlock: all threads wait
        """
        self._defects = {("stopped", defect.kind, self.block_number): defect, **self._defects}
        if self.plan.check == "report":
            raise _BlockStopped
        self._raise(self._make_report(), cause)

    def _stop_thread(self, thread: KernelThread, problem: TilewrightError) -> None:
        """Report an error of the library in a thread, which it stops."""
        site = _innermost_site(problem.__traceback__)
        kind, remedy, action = "cannot go on", "", "stops"
        if isinstance(problem, CoordinateError):
            kind, action = "out of bounds", "access"
            remedy = "guard the access: threads beyond the end of the data must not touch it"
        elif isinstance(problem, LayoutError) and "read-only" in str(problem):
            kind, action = "read-only memory", "access"
            remedy = "write into another tensor, or make this argument mutable"
        defect = Defect(kind, str(problem), (Witness(action, site, self.block_index, thread.position),), remedy)
        thread.done, thread.left_at, thread.pending = True, -1, None
        self.add_defect(defect)
        if self.plan.check != "report":
            self._raise(self._make_report(), problem)


def _innermost_site(trace: TracebackType | None) -> Site:
    """Return the innermost place of a traceback that is outside the library."""
    site = Site("<unknown>", 0, 0)
    while trace is not None:
        if user_frame(trace.tb_frame) is trace.tb_frame:
            site = site_of(trace.tb_frame.f_code, trace.tb_lasti)
        trace = trace.tb_next
    return site


def launch(
    kernel: Callable[..., Any],
    *arguments: Any,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    shared_bytes: int = 0,
    warp: int = 32,
    check: bool | str = True,
    limits: BlockLimits | None = None,
    name: str | None = None,
    cluster: int | Sequence[int] = 1,
) -> KernelReport:
    """Run a `kernel`, a function of Python, for all threads of a `grid` of blocks; return a report about it.

    Args:
        kernel: what each thread runs. It asks `thread_idx.x` and the like who it is, and may call `barrier()`.
        arguments: the kernel's own. NumPy arrays become tensors over the same memory, so that accesses are seen.
        grid: how many blocks, as a number or up to three, `x` first.
        block: how many threads a block has, likewise.
        shared_bytes: dynamic shared memory of a block, in bytes.
        warp: how many threads run in step.
        check: True raises `KernelError` with the report if there are errors; "lenient" does not if all that is wrong is
            that several threads write the same number. "report" only reports errors: a thread that cannot go on stops,
            and so does a block that waits forever. False looks only for those, and is faster.
        limits: the limits of a block; by default as on an NVIDIA H100.
        name: the name of the kernel in the report.
        cluster: how many blocks run together, and can wait for each other with `cluster_barrier`; `x` first.

    Threads that leave a tensor, barriers that not all threads reach, and deadlocks raise even without checks; races and
    uninitialised reads, which a GPU would not notice, raise at the end of the launch.

    >>> import numpy as np
    >>> from tilewright_mojo.simt import global_idx
    >>> def double(a):
    ...     if global_idx.x < 6:
    ...         a[global_idx.x] = a[global_idx.x] * 2
    >>> numbers = np.arange(6)
    >>> report = launch(double, numbers, grid=2, block=4)
    >>> numbers.tolist(), report.clean
    ([0, 2, 4, 6, 8, 10], True)
    """
    if not callable(kernel):
        raise TypeError(f"a kernel must be a function, got {type(kernel).__name__} {kernel!r}")
    if check not in (True, False, "lenient", "report"):
        raise LayoutError(f'check must be True, False, "lenient" or "report", got {check!r}')
    limits = limits or BlockLimits()
    extents = as_dim(block, "block")
    threads = extents.x * extents.y * extents.z
    if threads > limits.threads:
        raise LayoutError(
            f"a block of {threads} threads, {extents}, is too large: at most {limits.threads}; use more blocks of fewer"
            " threads"
        )
    if as_integer(warp, "warp") < 1:
        raise LayoutError(f"a warp has at least 1 thread, got {warp!r}; GPUs have 32 or 64")
    if not 0 <= as_integer(shared_bytes, "shared_bytes") <= limits.shared:
        raise LayoutError(f"a block has 0 to {limits.shared} bytes of shared memory, got {shared_bytes!r}")
    settings = _settings.get()
    names = _argument_names(kernel, len(arguments))
    watched = tuple([_as_tensor(name, value) for name, value in zip(names, arguments, strict=True)])
    title: str = name or str(getattr(kernel, "__name__", "kernel"))
    mode = check if settings is None else settings.check
    blocks, together = as_dim(grid, "grid"), as_dim(cluster, "cluster")
    if any(n % part for n, part in zip(blocks, together, strict=True)):
        raise LayoutError(f"a grid of {blocks} blocks is not a multiple of clusters of {together}; change one of them")
    plan = LaunchPlan(kernel, watched, blocks, extents, int(shared_bytes), int(warp), mode, limits, title, together)
    machine = SimtMachine(plan)
    token = kernel_memory.set(machine.stack)  # which has the memory of devices in its reach
    try:
        _add_regions(machine, zip(names, watched, strict=True))
        report = machine.run()
    except KernelError as problem:
        if settings is not None and isinstance(problem.report, KernelReport):
            settings.reports.append(problem.report)
        raise
    finally:
        kernel_memory.reset(token)
    if settings is not None:
        settings.reports.append(report)
    return report


@dataclass(frozen=True, slots=True)
class _Settings:
    """The checks of all launches, and their reports."""

    check: bool | str
    reports: list[KernelReport]


_settings: ContextVar[_Settings | None] = ContextVar("settings", default=None)


@contextmanager
def collect_reports(check: bool | str = "report") -> Iterator[list[KernelReport]]:
    """Do all launches inside a `with` block with this `check`, whatever they ask for, and collect their reports.

    >>> with collect_reports() as reports:
    ...     _ = launch(lambda: None, grid=1, block=1)
    >>> len(reports)
    1
    """
    settings = _Settings(check, [])
    token = _settings.set(settings)
    try:
        yield settings.reports
    finally:
        _settings.reset(token)


def _as_tensor(name: str, value: Any) -> Any:
    if type(value) is list and value and all(isinstance(number, (int, float)) for number in value):
        raise TypeError(
            f"{name} is a list of numbers, in which accesses cannot be checked; use a NumPy array, or a tuple of"
            " constants"
        )
    return TileTensor(value) if isinstance(value, np.ndarray) else value


def _argument_names(kernel: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the first parameters of a kernel; numbers where they are not known."""
    try:
        names = [
            parameter.name
            for parameter in inspect.signature(kernel).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        names = []
    return [names[k] if k < len(names) else f"argument {k}" for k in range(count)]


def _add_regions(machine: SimtMachine, arguments: Iterable[tuple[str, Any]]) -> None:
    """Tell the machine the memory of its arguments, so that reports can name it; overlapping memory is one region."""
    known = []
    for name, value in arguments:
        store = value._store if isinstance(value, TileTensor) else getattr(value, "memory", None)
        if isinstance(store, Store) and store.is_on_host and store.size:
            known.append((int(store.host.ctypes.data), name, value, store))
    last: MemoryRegion | None = None
    regions: dict[str, MemoryRegion] = {}
    for address, name, value, store in sorted(known, key=lambda entry: entry[0]):
        if last is not None and address < last.address + last.nbytes:
            last.include(store.host)
            continue
        last = regions[name] = new_region(name, store)
        last.view = value if isinstance(value, TileTensor) else None
    for _, name, _, _ in known:  # in the order of the arguments, for reports
        if name in regions:
            machine.log.table.add(regions.pop(name))
