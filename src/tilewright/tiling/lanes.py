# SPDX-License-Identifier: Apache-2.0
"""Lanes: each thread takes its tiles from import to export, so that a tile never leaves the caches of one core.

Where transfers are copies in memory, threads that do nothing else gain little: the tile crosses from core to core
twice, which takes longer than the copy. Here lane j of n carries the tiles j, j + n, ... in buffers of its own. Lanes
import and export at the same time, and compute in turns, in the order of the tiles, unless the compute may be called
for several tiles at once. Between two computes a lane makes one call of the native library, without the GIL: it passes
the turn on, exports, imports the next tile and waits for its turn.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from ..copying import native_library
from ..errors import TransferError
from .execution import CancelledError, Gate, Progress, Step, Switch, run_compute
from .lane_moves import NOTHING, End, Native, Transfers
from .ports import MemoryPort, Room, Work
from .schedule import Kind
from .trace import Span, Trace
from .transfers import Transfer, raise_failures

if TYPE_CHECKING:
    from .pipeline import Pipeline

WORTH_A_THREAD = 256 << 10
"""Bytes that a tile must take, in and out, before a second lane gains more than passing the turn costs. A quarter of it
is enough where computes may meet, so that no turn is passed, and where tiles come from files, which takes longer."""

LEAVE_AFTER = 100_000_000
"""Nanoseconds that an interruption waits for the workers to end; one that is in a long compute ends on its own."""

_STOPPED = 1 << 62


def lanes_for(pipeline: Pipeline, concurrent: bool = False) -> int:
    """Return how many lanes suit a pipeline; 0 where its transfers are better left to threads of their own.

    >>> from tilewright.tiling import Input, Output, Pipeline, Tiler
    >>> a, tiler = np.zeros((512, 512)), Tiler((512, 512), (128, 128))
    >>> lanes_for(Pipeline([Input(a, tiler)], [Output(a.copy(), tiler)])) == (2 if native_library.is_available() else 0)
    True
    """
    if pipeline.engine is not None or not native_library.is_available():
        return 0
    if any(any(item.tiler.overlap) for _, item in pipeline.writing()):
        return 0  # exports that share elements have to keep their order
    ports = [port for port, _ in (*pipeline.reading(), *pipeline.writing())]
    in_memory = all(type(port) is MemoryPort for port in ports)
    if pipeline.scheme in ("duplex", "simplex"):
        return 1 if in_memory else 0
    if not all(isinstance(port, MemoryPort) for port in ports):
        return 0
    worth = WORTH_A_THREAD if in_memory and not concurrent else WORTH_A_THREAD // 4
    if pipeline.buffer_bytes < pipeline.depth * worth:
        return 1
    return max(1, min(pipeline.depth, pipeline.workers + 1, pipeline.tiles))


def _keep_off(thread: threading.Thread, core: int) -> None:
    """Keep a thread off a core, if it may run on others.

    A thread that wakes up is often put on the core of the one that woke it, and two lanes there would take turns.
    """
    with suppress(AttributeError, OSError):  # not every system has this, or allows it, and the thread may have ended
        others = os.sched_getaffinity(0) - {core}
        if others and thread.native_id is not None:
            os.sched_setaffinity(thread.native_id, others)


class Lanes:
    """A run of a pipeline in lanes.

    >>> from tilewright.tiling import Input, Output, Pipeline, Tiler
    >>> a, b, tiler = np.arange(4), np.zeros(4, int), Tiler((4,), (2,))
    >>> lanes = Lanes(Pipeline([Input(a, tiler)], [Output(b, tiler)]), lambda x, y: np.negative(x, out=y), 1)
    >>> if native_library.is_available():
    ...     lanes.run()
    ...     assert (b == -a).all()
    """

    def __init__(
        self,
        pipeline: Pipeline,
        compute: Callable[..., Any],
        count: int,
        concurrent: bool = False,
        trace: Trace | None = None,
        progress: Progress | None = None,
        cancel: Switch | None = None,
    ) -> None:
        self.pipeline, self.compute, self.count, self.concurrent = pipeline, compute, count, concurrent
        self.trace, self.progress, self.cancel = trace, progress, cancel
        self.done = 0
        self._gate = Gate()
        self._others: list[threading.Thread] = []
        self._checks = pipeline.scheme != "direct"  # there is no compute, and buffers leave as they came
        self._watched = progress is not None or cancel is not None
        self._carry: Any = native_library.load_library().tw_run_transfers if native_library.is_available() else None
        self._turn = ctypes.c_int64(0)  # tiles that are computed; only the library writes it
        self._turn_at = ctypes.addressof(self._turn)
        self._counting = threading.Lock()
        self._failure: tuple[int, BaseException] | None = None

    def run(self) -> None:
        """Run all tiles; whatever happens, nothing is written once this has returned.

        Several workers have a thread each, and this one waits for them: a worker that computes, or waits for its turn
        in the native library, would not notice an interruption. After one, workers in a compute are left to it.
        """
        into, out = (list(rooms.values()) for rooms in self.pipeline.rooms())
        if self.pipeline.scheme == "simplex":
            out = out[1:]  # its buffers are both in turn: the second can be the output of the first
        if self.count == 1:
            self._carry_tiles(0, into[0], out[0])
        else:
            self._run_threads(into, out)
        if self._failure is not None:
            raise self._failure[1]

    def _run_threads(self, into: list[list[Room]], out: list[list[Room]]) -> None:
        treatment = np.geterr()  # NumPy keeps what it does about errors for each thread
        threads = [
            threading.Thread(
                target=copy_context().run,
                args=(self._follow, k, into[k], out[k], treatment),
                name=f"tilewright-{k}",
                daemon=True,
            )
            for k in range(self.count)
        ]
        self._others = threads[1:]
        try:
            for thread in reversed(threads):  # the first keeps the others off its core
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException as problem:  # no thread to be had, or an interruption
            self._fail(-1, problem)
            self._gate.close()
            until = perf_counter_ns() + LEAVE_AFTER
            for thread in threads:
                with suppress(RuntimeError):  # it never started
                    thread.join(None if isinstance(problem, Exception) else max(0, until - perf_counter_ns()) / 1e9)

    def _follow(self, lane: int, into: list[Room], out: list[Room], treatment: Any) -> None:
        if lane == 0:
            core = native_library.load_library().tw_current_core()
            for thread in self._others:
                _keep_off(thread, core)
        with np.errstate(**treatment):
            self._carry_tiles(lane, into, out)

    def _carry_tiles(self, lane: int, into: list[Room], out: list[Room]) -> None:
        tile = lane
        try:
            tiles, count = self.pipeline.tiles, self.count
            arriving = Transfers(self._ends(into, self.pipeline.reading()), tiles, importing=True)
            leaving = Transfers(self._ends(out, self.pipeline.writing()), tiles, importing=False)
            self._between(leaving, arriving, tile - count)
            # From here to the next compute everyone waits for this thread: no step too many.
            for tile in range(lane, tiles, count):
                if self._turn.value >= _STOPPED:
                    return
                if self._watched:
                    self._check_cancelled(tile)
                began = perf_counter_ns()
                step = Step(tile, arriving.arrays(tile), leaving.arrays(tile))
                run_compute(self.compute, step, check=not tile and self._checks)
                if self.trace is not None:
                    self.trace.spans.append(Span("compute", tile, 0, began, perf_counter_ns()))
                with self._gate:
                    self._between(leaving, arriving, tile)
                if self._watched:
                    self._count()
        except BaseException as problem:
            self._fail(tile, problem)

    @staticmethod
    def _ends(rooms: list[Room], operands: Any) -> list[End]:
        # a simplex buffer has a room for each operand of the side that has more: zip takes as many as there are
        return [End(port, item.tiler, room, getattr(item, "fill", None)) for room, (port, item) in zip(rooms, operands)]  # noqa: B905

    def _check_cancelled(self, tile: int) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError(f"cancelled at tile {tile} of {self.pipeline.tiles}; {self.done} are exported")

    def _between(self, leaving: Transfers, arriving: Transfers, tile: int) -> None:
        """Pass the turn on after the compute of a tile, export it, import the lane's next, and wait for its turn.

        Before the first compute of the lane, the tile is negative.
        """
        coming = tile + self.count
        first, more = tile < 0, coming < self.pipeline.tiles
        done, awaited = 0 if first else tile + 1, coming if more else 0
        if self.concurrent:
            done = awaited = 0
        if self.trace is None:
            outward = NOTHING if first else leaving.native(tile)
            inward = arriving.native(coming) if more else NOTHING
            if outward is not None and inward is not None:
                self._call(done, outward, inward, awaited)
                return
        self._call(done, NOTHING, NOTHING, 0)
        if not first:
            self._transfer("export", tile, leaving.works(tile))
        if more:
            self._transfer("import", coming, arriving.works(coming))
        began = perf_counter_ns()
        self._call(0, NOTHING, NOTHING, awaited)
        if self.trace is not None and more:
            self.trace.spans.append(Span("wait", coming, 0, began, perf_counter_ns()))

    def _call(self, done: int, leaving: Native, arriving: Native, awaited: int) -> None:
        status = self._carry(self._turn_at, done, *leaving, *arriving, awaited)
        if status:
            raise TransferError(f"there was no memory to move a tile with (status {status}); use smaller tiles")

    def _transfer(self, kind: Kind, tile: int, works: list[Work]) -> None:
        """Carry out the transfers of a tile, one for each operand."""
        for operand, work in enumerate(works):
            transfer = Transfer(kind, tile, work, operand=operand)
            transfer.run()
            if self.trace is not None:
                self.trace.add_transfer(transfer)
            raise_failures([transfer])

    def _count(self) -> None:
        """Count a tile whose export is over."""
        with self._counting:
            self.done += 1
            if self.progress is not None:
                self.progress(self.done, self.pipeline.tiles)

    def _fail(self, tile: int, problem: BaseException) -> None:
        """Keep the failure of the earliest tile, and stop all lanes."""
        with self._counting:
            if self._failure is None or tile < self._failure[0]:
                self._failure = (tile, problem)
        self._call(_STOPPED, NOTHING, NOTHING, 0)
