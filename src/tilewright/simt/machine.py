# SPDX-License-Identifier: Apache-2.0
"""`Machine`: runs the threads of a kernel, block by block, and examines what they did.

The threads of a block run one after another, each until it waits or returns; then all that can go on do. Blocks run one
after another. What can be wrong at one access is noticed at once, what needs two threads when some blocks are done.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import CoroutineType, TracebackType
from typing import Any, NoReturn

import numpy as np

from ..errors import CoordinateError, KernelBoundsError, KernelError, LayoutError, TilewrightError
from ..formats import ScalarFormat
from ..tables import count_of
from ..tensor.store import Store
from ..tensor.watching import watched_by
from .access_log import AccessLog, Site, call_path, name_assigned_at, site_of, user_frame
from .collectives import SYNCWARP
from .coroutines import Suspension, coroutine_twin
from .kernel_report import Defect, KernelReport, Witness
from .kernel_thread import Dim, KernelThread, _machine, positions
from .log_table import LogTable
from .memory_region import SHARED, MemoryRegion
from .races import RaceFinder
from .report_warnings import find_warnings
from .site_costs import CostCounter
from .touch_maps import TouchRecorder

_CHUNK = 400_000  # entries of the log after which it is examined
_MOST_UNWRITTEN = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a block may use: threads, and bytes of shared memory, static and in all. By default those of an NVIDIA H100.

    >>> small = Limits(threads=512)
    >>> small.static_shared
    49152
    """

    threads: int = 1024
    static_shared: int = 48 << 10
    shared: int = 227 << 10


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run: a kernel with its arguments, the extents of the launch, and how it is checked.

    `check` is True (raise at the end of a launch with errors), "report" (only report them, and go on as far as
    possible), or False (only what prevents the kernel from going on is noticed).

    >>> plan = Launch(print, (), Dim(1), Dim(1))
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
    limits: Limits = Limits()
    name: str = ""


class _BlockStopped(Exception):  # noqa: N818  (not an error: the machine goes on with the next block)
    """The block cannot go on."""


class _MachineLog(AccessLog):
    """The log of a machine, which reports what is wrong at one access."""

    def __init__(self, machine: Machine) -> None:
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
            machine.unwritten.append((element, self.site_here(), machine.block_index, thread.position))

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


class Machine:
    """Runs a launch. `thread` is the thread that runs, `block_index` its block.

    >>> Machine(Launch(lambda: None, (), Dim(2), Dim(4))).run().clean
    True
    """

    def __init__(self, plan: Launch) -> None:
        self.plan, self.warp = plan, plan.warp
        self.grid_dim, self.block_dim = plan.grid, plan.block
        self.block_index = Dim(0, 0, 0)
        self.block_number = 0
        self.threads = [KernelThread(k, place, plan.warp) for k, place in enumerate(positions(plan.block))]
        self.thread = self.threads[0]
        self.log = _MachineLog(self)
        self.block_state: dict[Any, Any] = {}  # of barriers in memory, for one block
        self._shared: dict[Any, Store] = {}
        self._local: dict[Any, list[tuple[Store, int]]] = {}  # with the references to memory that is not in use
        self.static_shared = 0
        self._defects: dict[Any, Defect] = {}
        self._races = RaceFinder(self.log, plan.grid, plan.block, plan.warp)
        self._costs = CostCounter(self.log, plan.warp)
        self._touches = TouchRecorder(self.log, plan.grid)
        self.unwritten: list[tuple[tuple[int, int, int, int], int, Dim, Dim]] = []

    # The launch.

    def run(self) -> KernelReport:
        """Run all blocks and return the report; raise as the launch asks for.

        >>> Machine(Launch(lambda: None, (), Dim(2), Dim(4))).run().kernel
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
        if self.plan.check is True and report.errors:
            self._raise(report)
        return report

    def _run_blocks(self) -> None:
        entry = coroutine_twin(self.plan.kernel)
        for number, place in enumerate(positions(self.grid_dim)):
            self.block_number, self.block_index = number, place
            try:
                self._run_block(entry)
            except _BlockStopped:
                pass
            finally:
                for thread in self.threads:
                    if thread.coroutine is not None:
                        thread.coroutine.close()
            if len(self.log.entries) > _CHUNK:
                self._examine()

    def _examine(self) -> None:
        """Examine what the log has recorded of whole blocks, and empty it."""
        table = LogTable.of(self.log)
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
            self.static_shared + self.plan.shared_bytes,
        )

    def _add_unwritten(self) -> None:
        """Add the reads of memory without a value, unless another thread wrote it with nothing between: a race."""
        for element, place, block, thread in self.unwritten:
            if element not in self._races.suspects:
                region = self.log.table.regions[element[2]]
                text = region.element_text(element[3])
                self.add_defect(
                    Defect(
                        "uninitialised read",
                        f"{text} in {region.space} memory is read before any thread has written it",
                        (Witness("read", self.log.sites[place], block, thread),),
                        "write it first, also where only a part of the memory is filled",
                        text,
                    )
                )

    def _raise(self, report: KernelReport, cause: BaseException | None = None) -> NoReturn:
        kind = KernelBoundsError if isinstance(cause, CoordinateError) else KernelError
        text = "\n".join(str(defect) for defect in report.errors)
        raise kind(f"{report.kernel}: {count_of(len(report.errors), 'error')}\n{text}", report) from cause

    # A block.

    def _run_block(self, entry: Callable[..., Any]) -> None:
        threads, log, number, arguments = self.threads, self.log, self.block_number, self.plan.arguments
        for thread in threads:
            thread.reset()
        self.block_state.clear()
        for store in self._shared.values():
            self.log.table.find(store)[0].clear()
        entries, slices = log.entries, log.slices
        runnable = threads
        while runnable:
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
                else:
                    thread.request, thread.pending = request, None
            runnable = self._release()

    def _finish(self, thread: KernelThread) -> None:
        thread.done = True
        thread.left_at = None if thread.request is None else thread.request.place
        if thread.pending is not None:
            self._refuse_wait(thread.pending)

    def suspend(self, kind: str, name: str, value: Any, options: Any) -> Suspension:
        """Return what the running thread waits for.

        >>> machine = Machine(Launch(print, (), Dim(1), Dim(1)))
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

    # Waiting threads.

    def _release(self) -> list[KernelThread]:
        """Return the threads that can go on, now that all wait or have returned."""
        waiting = [thread for thread in self.threads if not thread.done]
        if not waiting:
            return waiting
        requests: list[Any] = [thread.request for thread in waiting]
        first = requests[0]
        if len(waiting) == len(self.threads) and all(
            request.kind == "barrier" and request.place == first.place for request in requests
        ):
            for thread in waiting:
                thread.epoch += 1
                thread.resume = None
            return waiting
        ready = [thread for thread, request in zip(waiting, requests, strict=True) if self._is_polled(thread, request)]
        if ready:
            return ready
        ready = self._release_warps(waiting)
        return ready or self._release_block(waiting)

    def _is_polled(self, thread: KernelThread, request: Any) -> bool:
        """Return whether what a thread waits for in memory has come."""
        if request.kind != "poll" or not request.value():
            return False
        thread.resume = True
        if request.options:  # all threads of the block take part
            thread.epoch += 1
        return True

    def _release_warps(self, waiting: list[KernelThread]) -> list[KernelThread]:
        """Run the operations of warps whose threads have come, the first one in the source of each warp."""
        groups: dict[tuple[int, int, str], list[KernelThread]] = {}
        for thread in waiting:
            request: Any = thread.request
            if request.kind == "warp":
                groups.setdefault((thread.warp, request.place, request.name), []).append(thread)
        ready: list[KernelThread] = []
        done: set[int] = set()
        for (warp, place, _), members in sorted(
            groups.items(), key=lambda item: (item[0][0], self._source(item[0][1]))
        ):
            if warp not in done:
                done.add(warp)
                self._run_warp_operation(warp, place, members)
                ready += members
        return ready

    def _source(self, place: int) -> tuple[int, int]:
        site = self.log.sites[place]
        return site.line, site.column

    def _run_warp_operation(self, warp: int, place: int, members: list[KernelThread]) -> None:
        operation = members[0].request.options  # type: ignore[union-attr]
        values = {thread.lane: thread.request.value for thread in members}  # type: ignore[union-attr]
        answers = operation.compute(values, self.warp)
        everyone = [thread for thread in self.threads[warp * self.warp : (warp + 1) * self.warp] if not thread.done]
        for thread in members:
            thread.resume, missing = answers[thread.lane]
            if operation is SYNCWARP and len(members) == len(everyone):
                thread.warp_epoch += 1
            if missing is not None:
                self._report_inactive(thread, warp, missing)

    def _report_inactive(self, thread: KernelThread, warp: int, lane: int) -> None:
        number = warp * self.warp + lane
        request: Any = thread.request
        witnesses = [self._witness(f"{request.name} from lane {lane}", request.place, thread)]
        if number >= len(self.threads):
            why = f"lane {lane} does not exist, since the block has {len(self.threads)} threads"
        else:
            other = self.threads[number]
            why = f"lane {lane} {'has returned' if other.done else 'is elsewhere'}"
            if not other.done:
                witnesses.append(self._witness("waits", other.request.place, other))  # type: ignore[union-attr]
        self.add_defect(
            Defect(
                "inactive lane",
                f"{request.name} reads the value of a lane that does not take part: {why}",
                tuple(witnesses),
                "let all lanes of the warp call it, outside of any condition, with a neutral value where there is none",
            )
        )

    def _release_block(self, waiting: list[KernelThread]) -> list[KernelThread]:
        """Let a block go on whose threads all wait for each other; report why it cannot."""
        requests: list[Any] = [thread.request for thread in waiting]
        left = [thread for thread in self.threads if thread.done and not self._was_stopped(thread)]
        at_barrier = [request.kind in ("barrier", "block") for request in requests]
        if not all(at_barrier):
            self._report_deadlock(waiting)
        elif left:
            self._report_left(waiting[0], left)
        elif len({(request.place, request.name) for request in requests}) > 1:
            self._report_divergent(waiting)
        operation = requests[0].options
        answers = None
        if operation is not None:
            values = {thread.index: thread.request.value for thread in waiting}  # type: ignore[union-attr]
            answers = operation.compute(values, len(self.threads))
        for thread in waiting:
            thread.epoch += 1
            thread.resume = None if answers is None else answers[thread.index][0]
        return waiting

    def _was_stopped(self, thread: KernelThread) -> bool:
        return thread.left_at == -1

    def _report_left(self, waiting: KernelThread, left: list[KernelThread]) -> None:
        other = left[0]
        witnesses = [self._witness("waits", waiting.request.place, waiting)]  # type: ignore[union-attr]
        if other.left_at is not None:
            witnesses.append(self._witness("returned after waiting", other.left_at, other))
        count = f"{len(left)} of {len(self.threads)} threads"
        self.stop_block(
            Defect(
                "barrier not reached",
                f"{count} of the block, such as {other.position}, have returned without coming to the barrier",
                tuple(witnesses),
                "let all threads come to every barrier: do not return before it; guard the work with `if` instead",
            )
        )

    def _report_divergent(self, waiting: list[KernelThread]) -> None:
        by_place: dict[int, KernelThread] = {}
        for thread in waiting:
            by_place.setdefault(thread.request.place, thread)  # type: ignore[union-attr]
        witnesses = [self._witness("waits", place, thread) for place, thread in by_place.items()]
        self.stop_block(
            Defect(
                "divergent barrier",
                f"threads of one block wait at {len(by_place)} different barriers",
                tuple(witnesses[:4]),
                "a barrier is for all threads of the block: move it out of the condition",
            )
        )

    def _report_deadlock(self, waiting: list[KernelThread]) -> None:
        by_place: dict[int, KernelThread] = {}
        for thread in waiting:
            by_place.setdefault(thread.request.place, thread)  # type: ignore[union-attr]
        witnesses = [self._witness(f"waits in {thread.request.name}", k, thread) for k, thread in by_place.items()]  # type: ignore[union-attr]
        self.stop_block(
            Defect(
                "deadlock",
                f"all {len(waiting)} threads of the block that have not returned wait for something that cannot come",
                tuple(witnesses[:4]),
                "let as many threads arrive as the barrier was initialised for, and all wait for the same",
            )
        )

    # What is wrong.

    def _witness(self, action: str, place: int, thread: KernelThread) -> Witness:
        return Witness(action, self.log.sites[place], self.block_index, thread.position)

    def report(self, kind: str, message: str, action: str, remedy: str, element: str) -> None:
        """Report what the running thread does wrong at the place in the source where it is.

        >>> machine = Machine(Launch(print, (), Dim(1), Dim(1)))
        >>> machine.report("race", "two threads write s[0]", "write", "", "s[0]")
        >>> machine.run().errors[0].kind
        """
        witness = self._witness(action, self.log.site_here(2), self.thread)
        self.add_defect(Defect(kind, message, (witness,), remedy, element))

    def add_defect(self, defect: Defect) -> None:
        """Add a defect; those of the same kind at the same lines are counted.

        >>> machine = Machine(Launch(print, (), Dim(1), Dim(1)))
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

        >>> machine = Machine(Launch(print, (), Dim(1), Dim(1)))
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
        kind, remedy = "error", ""
        if isinstance(problem, CoordinateError):
            kind, remedy = "out of bounds", "guard the access: threads beyond the end of the data must not touch it"
        elif isinstance(problem, LayoutError) and "read-only" in str(problem):
            kind, remedy = "read-only memory", "write into another tensor, or make this argument mutable"
        action = "access" if kind != "error" else "error"
        defect = Defect(kind, str(problem), (Witness(action, site, self.block_index, thread.position),), remedy)
        thread.done, thread.left_at, thread.pending = True, -1, None
        self.add_defect(defect)
        if self.plan.check != "report":
            self._raise(self._make_report(), problem)

    # Memory of a block and of a thread.

    def allocate(self, space: str, count: int, element: ScalarFormat, make: Callable[[int, Any], Any]) -> Store:
        """Return memory without values: one for all threads of a block that come here the same way, or one per thread.

        `make(count, dtype)` returns a new array.

        >>> from tilewright.formats import format_of
        >>> machine = Machine(Launch(print, (), Dim(1), Dim(1)))
        >>> machine.allocate("shared", 4, format_of("int8"), np.empty).size
        4
        """
        place = self.log.site_here(2)
        key = (call_path(sys._getframe(1)), count, element.name)
        if space == SHARED:
            store = self._shared.get(key)
            if store is None:
                store = self._shared[key] = self._new_memory(space, place, make(count, element.dtype))
                self.static_shared += count * element.itemsize
                self._check_shared_memory(self.log.sites[place])
            return store
        free = self._local.setdefault((*key, self.thread.index), [])
        for store, references in free:
            if sys.getrefcount(store.data) <= references:  # nobody refers to that of an earlier call any more
                self.log.table.find(store)[0].clear()
                return store
        store = self._new_memory(space, place, make(count, element.dtype))
        free.append((store, sys.getrefcount(store.data)))
        return store

    def dynamic_memory(self, make: Callable[[int, Any], Any]) -> Store:
        """Return the bytes of the dynamic shared memory of the block, as many as the launch asks for.

        >>> machine = Machine(Launch(print, (), Dim(1), Dim(1), shared_bytes=64))
        >>> machine.dynamic_memory(np.empty).size
        64
        """
        store = self._shared.get("dynamic")
        if store is None:
            data = make(self.plan.shared_bytes, np.uint8)
            store = self._shared["dynamic"] = self._new_memory(SHARED, self.log.site_here(2), data)
        return store

    def _new_memory(self, space: str, place: int, data: Any) -> Store:
        site = self.log.sites[place]
        store = Store.of(data)
        name = name_assigned_at(site) or f"{space} array of line {site.line}"
        self.log.table.add(MemoryRegion(name, space, store.data)).clear()
        return store

    def _check_shared_memory(self, site: Site) -> None:
        limits, dynamic = self.plan.limits, self.plan.shared_bytes
        if self.static_shared > limits.static_shared or self.static_shared + dynamic > limits.shared:
            limit = limits.static_shared if self.static_shared > limits.static_shared else limits.shared
            self.add_defect(
                Defect(
                    "shared memory",
                    f"a block uses {self.static_shared + dynamic} bytes of shared memory, more than {limit}",
                    (Witness("allocation", site, self.block_index, self.thread.position),),
                    "use smaller tiles; dynamic shared memory may be larger than static",
                )
            )


def _innermost_site(trace: TracebackType | None) -> Site:
    """Return the innermost place of a traceback that is outside the library."""
    site = Site("<unknown>", 0, 0)
    while trace is not None:
        if user_frame(trace.tb_frame) is trace.tb_frame:
            site = site_of(trace.tb_frame.f_code, trace.tb_lasti)
        trace = trace.tb_next
    return site
