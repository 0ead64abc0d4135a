# SPDX-License-Identifier: Apache-2.0
"""`SimtMachine`: runs the threads of a kernel, block by block, and examines what they did.

The threads of a block run one after another, each until it waits or returns; then all that can go on do. Blocks run one
after another. What can be wrong at one access is noticed at once, what needs two threads when some blocks are done.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CoroutineType, TracebackType
from typing import Any, NoReturn

from .._text import count_of
from ..errors import CoordinateError, KernelBoundsError, KernelError, LayoutError, TilewrightError
from ..tensor import watched_by
from .access_log import IN_FLIGHT, AccessLog, Site, site_of, user_frame
from .block_memory import BlockMemory
from .coroutines import Suspension, coroutine_twin
from .kernel_report import Defect, KernelReport, Witness
from .kernel_thread import Dim, KernelThread, _machine, positions
from .launch_plan import LaunchPlan
from .log_table import LogTable
from .memory_region import MemoryRegion
from .races import RaceFinder
from .report_warnings import find_warnings
from .site_costs import CostCounter
from .touch_maps import TouchRecorder
from .waiting import release_threads

_CHUNK = 400_000  # entries of the log after which it is examined
_MOST_UNWRITTEN = 10_000
_MOST_ROUNDS = 50_000  # how often the threads of a block may wait: a loop with a barrier that never ends is an error


class _BlockStopped(Exception):  # noqa: N818  (not an error: the machine goes on with the next block)
    """The block cannot go on."""


class _MachineLog(AccessLog):
    """The log of a machine, which reports what is wrong at one access."""

    def __init__(self, machine: SimtMachine) -> None:
        super().__init__()
        self._machine = machine

    def report_unwritten(self, region: MemoryRegion, first: int, nbytes: int) -> None:
        """Remember a read of memory without a value: only at the end is known whether it is part of a race.

        >>> issubclass(_MachineLog, AccessLog)
        True
        """
        machine = self._machine
        if len(machine.unwritten) < _MOST_UNWRITTEN:
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
    """What belongs to a block while it runs: its threads, its memory, its barriers in memory, and where it is.

    >>> SimtMachine(LaunchPlan(print, (), Dim(1), Dim(4)))._slots[0].rank
    0
    """

    __slots__ = ("index", "memory", "rank", "state", "threads")

    def __init__(self, machine: SimtMachine, rank: int) -> None:
        plan = machine.plan
        self.rank = rank  # in the cluster
        self.index = Dim(0, 0, 0)
        self.threads = [KernelThread(k, place, plan.warp) for k, place in enumerate(positions(plan.block))]
        self.memory = BlockMemory(machine)
        self.state: dict[Any, Any] = {}


def clusters_of(grid: Dim, cluster: Dim) -> Iterator[list[Dim]]:
    """Yield the blocks of each cluster of a grid.

    >>> [[place.x for place in blocks] for blocks in clusters_of(Dim(4), Dim(2))]
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
        self._costs = CostCounter(self.log, plan.warp)
        self._touches = TouchRecorder(self.log, plan.grid)
        self.unwritten: list[tuple[tuple[int, int, int, int], int, Dim, Dim, bool]] = []

    # The launch.

    def run(self) -> KernelReport:
        """Run all blocks and return the report; raise as the launch asks for.

        >>> SimtMachine(LaunchPlan(lambda: None, (), Dim(2), Dim(4))).run().kernel
        'kernel'
        """
        token = _machine.set(self)
        try:
            if self.plan.check is False:
                self._run_blocks()
            else:
                with watched_by(self.log):
                    self._run_blocks()
        except KernelError:
            raise
        finally:
            _machine.reset(token)
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
        for slot, place in zip(self._slots, blocks, strict=True):
            slot.index = place
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
            self._races.order_cluster([self._number_of(place) for place in blocks], self.log)
            pending = waiting

    def _enter(self, slot: BlockSlot) -> None:
        """Let the block in a slot be the one that runs."""
        self.threads, self.memory, self.block_state = slot.threads, slot.memory, slot.state
        self.block_index, self.cluster_rank = slot.index, slot.rank
        self.block_number = self._number_of(slot.index)

    def _number_of(self, place: Dim) -> int:
        return place.x + self.grid_dim.x * (place.y + self.grid_dim.y * place.z)

    def _report_cluster(self, slot: BlockSlot, missing: int) -> None:
        self._enter(slot)
        thread = next(thread for thread in slot.threads if not thread.done)
        place = -1 if thread.request is None else thread.request.place
        with suppress(_BlockStopped):
            self.stop_block(
                Defect(
                    "barrier not reached",
                    f"{count_of(missing, 'block')} of the cluster returned without coming to the cluster's barrier",
                    (self.witness("waits", place, thread),),
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
        for element, place, block, thread, in_flight in self.unwritten:
            if element in self._races.suspects and not in_flight:
                continue
            region = self.log.table.regions[element[2]]
            text = f"{region.element_text(element[3])} in {region.space} memory"
            kind, message = "uninitialised read", f"{text} is read before any thread has written it"
            remedy = "write it first, also where only a part of the memory is filled"
            if in_flight:
                kind, message = "copy in flight", f"{text} is read before its asynchronous copy is known to be done"
                remedy = "let the thread that copies wait for its copies, then put a barrier() between"
            witness = Witness("read", self.log.sites[place], block, thread)
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
            if rounds > _MOST_ROUNDS:
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
        place = -1 if thread.request is None else thread.request.place
        self.stop_block(
            Defect(
                "endless loop",
                f"the threads of the block have waited {_MOST_ROUNDS} times",
                (self.witness("waits", place, thread),),
                "let the condition of the loop become false",
            )
        )

    def _finish(self, thread: KernelThread) -> None:
        thread.done = True
        thread.left_at = None if thread.request is None else thread.request.place
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
        site = self.log.sites[request.place]
        raise KernelError(
            f"{request.name}() at {site} cannot wait there: the source of the function that calls it is not available,"
            " or a function of Python or of the library calls it; write the kernel into a file or a cell, and call it"
            " from the kernel itself"
        )

    # What is wrong.

    def witness(self, action: str, place: int, thread: KernelThread) -> Witness:
        """Return a thread of the running block at a site, by its number.

        >>> machine = SimtMachine(LaunchPlan(print, (), Dim(1), Dim(1)))
        >>> machine.witness("read", machine.log.site_here(), machine.thread).action
        'read'
        """
        return Witness(action, self.log.sites[place], self.block_index, thread.position)

    def report(self, kind: str, message: str, action: str, remedy: str, element: str) -> None:
        """Report what the running thread does wrong at the place in the source where it is.

        >>> machine = SimtMachine(LaunchPlan(print, (), Dim(1), Dim(1)))
        >>> machine.report("race", "two threads write s[0]", "write", "", "s[0]")
        """
        witness = self.witness(action, self.log.site_here(2), self.thread)
        self.add_defect(Defect(kind, message, (witness,), remedy, element))

    def add_defect(self, defect: Defect) -> None:
        """Add a defect; those of the same kind at the same lines are counted.

        >>> machine = SimtMachine(LaunchPlan(print, (), Dim(1), Dim(1)))
        >>> machine.add_defect(Defect("race", "two threads write s[0]"))
        """
        key = (defect.kind, *[witness.site for witness in defect.witnesses])
        known = self._defects.get(key)
        if known is None:
            self._defects[key] = defect
        else:
            self._defects[key] = Defect(
                known.kind, known.message, known.witnesses, known.remedy, known.element, known.count + 1
            )

    def stop_block(self, defect: Defect, cause: BaseException | None = None) -> NoReturn:
        """Add a defect with which the block cannot go on; raise unless the launch only reports.

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
        """Report an error of the library in a thread, which cannot go on."""
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
