# SPDX-License-Identifier: Apache-2.0
"""Transfers that run beside the caller: import, export, events that gather them, and the threads that carry them out.

A transfer is started, and goes on while the caller does something else; waiting for its event ends it. What went wrong
is raised by the wait, after every transfer of the event has stopped.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from time import perf_counter_ns
from typing import Any, Protocol

from ..errors import TransferError
from .moves import Moves, export_moves, import_moves
from .tensors import ExternalTensor, InternalTensor

INLINE_BELOW = 128 << 10
"""Bytes below which a transfer is carried out at once: handing it to a thread would take longer than the copy."""


class Transfer:
    """One import or export on its way: what it does, what must be over before it starts, and how it ended.

    >>> done = Transfer("import", 3, lambda: None)
    >>> done.run()
    >>> done.finished, done.error, str(done)
    (True, None, 'import of tile 3')
    """

    __slots__ = ("_claim", "_gate", "after", "began", "ended", "error", "kind", "nbytes", "operand", "tile", "work")

    def __init__(
        self,
        kind: str,
        tile: Any,
        work: Callable[[], None],
        nbytes: int = 0,
        after: Sequence[Transfer] = (),
        operand: int = 0,
    ) -> None:
        self.kind, self.tile, self.work, self.nbytes, self.after = kind, tile, work, nbytes, after
        self.operand = operand
        self.error: BaseException | None = None
        self.began = self.ended = 0
        self._gate = threading.Lock()  # held until the transfer is over: the cheapest thing that can be waited for
        self._gate.acquire()
        self._claim = threading.Lock()  # taken by whoever runs the transfer

    def run(self) -> None:
        """Run the transfer, after those it depends on, and note what goes wrong for whoever waits.

        Whatever the order in which an engine runs transfers, each runs once: a buffer that was filled again
        may hold another tile by then. A second call returns when the first is over.
        """
        if not self._claim.acquire(blocking=False):
            self.join()
            return
        for earlier in self.after:
            earlier.run()
            if earlier.error is not None:
                self.error = TransferError(f"not started, since the {earlier} failed: {earlier.error}")
        self.after = ()
        self.began = perf_counter_ns()
        try:
            if self.error is None:
                self.work()
        except BaseException as problem:
            self.error = problem
        finally:
            self.ended = perf_counter_ns()
            self._gate.release()

    def abandon(self, problem: BaseException) -> None:
        """End a transfer with an error, unless somebody runs it already: nobody would wait for it in vain."""
        if self._claim.acquire(blocking=False):
            self.error = problem
            self._gate.release()

    @property
    def finished(self) -> bool:
        """Return whether the transfer is over, well or badly."""
        return not self._gate.locked()

    def join(self) -> None:
        """Wait until the transfer is over."""
        with self._gate:
            pass

    def __str__(self) -> str:
        return f"{self.kind} of tile {self.tile}"


class Engine(Protocol):
    """What carries transfers out: threads, the caller itself, or a simulation of a slow machine.

    >>> isinstance(InlineEngine().wait, object)
    True
    """

    def start(self, transfer: Transfer) -> None:
        """Begin a transfer; it may run at any time from now on, after those it depends on."""

    def wait(self, transfers: Sequence[Transfer]) -> None:
        """Return when these transfers are over."""

    def close(self) -> None:
        """End whatever the engine keeps running."""


class InlineEngine:
    """An engine that carries every transfer out at once, in the thread that starts it.

    >>> engine = InlineEngine()
    >>> engine.start(Transfer("import", 0, lambda: print("moved")))
    moved
    """

    def start(self, transfer: Transfer) -> None:
        """Carry the transfer out."""
        transfer.run()

    def wait(self, transfers: Sequence[Transfer]) -> None:
        """Return at once: everything is over already."""

    def close(self) -> None:
        """Do nothing: nothing is kept running."""


class ThreadEngine:
    """An engine of a few threads that take transfers in the order they were started.

    Copies run without the GIL. A transfer of less than `inline_below` bytes is carried out by the caller.

    >>> with ThreadEngine(workers=1) as engine:
    ...     transfer = Transfer("import", 0, lambda: None, nbytes=1 << 20)
    ...     engine.start(transfer)
    ...     engine.wait([transfer])
    >>> transfer.finished
    True
    """

    def __init__(self, workers: int = 1, inline_below: int = INLINE_BELOW) -> None:
        if workers < 1:
            raise TransferError(f"{workers} transfer threads move nothing; use at least 1, or InlineEngine()")
        self.workers, self.inline_below = workers, inline_below
        self._queue: SimpleQueue[Transfer | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._opening = threading.Lock()

    def start(self, transfer: Transfer) -> None:
        """Hand the transfer to the threads, which are made on first use."""
        if transfer.nbytes < self.inline_below:
            transfer.run()
            return
        if not self._threads:
            self._open()
        self._queue.put(transfer)

    def _open(self) -> None:
        with self._opening:
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._serve, name=f"tilewright-transfer-{k}", daemon=True)
                    for k in range(self.workers)
                ]
                for thread in self._threads:
                    thread.start()

    def _serve(self) -> None:
        while True:
            transfer = self._queue.get()
            if transfer is None:
                return
            transfer.run()

    def wait(self, transfers: Sequence[Transfer]) -> None:
        """Return when these transfers are over."""
        for transfer in transfers:
            transfer.join()

    def close(self) -> None:
        """Return when everything that was started is over and every thread has ended."""
        with self._opening:
            for _ in self._threads:
                self._queue.put(None)
            for thread in self._threads:
                with suppress(RuntimeError):  # it never started
                    thread.join()
            self._threads = []

    def __enter__(self) -> ThreadEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Event:
    """What gathers transfers, so that they can be waited for together.

    >>> import numpy as np
    >>> whole, room = ExternalTensor(np.arange(8)), InternalTensor(np.zeros(4, int))
    >>> event = import_(room, whole.sub(2, 4))
    >>> event.wait()
    >>> room.array().tolist()
    [2, 3, 4, 5]
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine: Engine = default_engine() if engine is None else engine
        self.pending: list[Transfer] = []

    def add(self, transfer: Transfer) -> Transfer:
        """Return the transfer, started and gathered by this event.

        >>> event = Event(InlineEngine())
        >>> event.add(Transfer("import", 0, lambda: None)).finished
        True
        """
        self.pending.append(transfer)
        start_transfer(self.engine, transfer)
        return transfer

    def wait(self) -> None:
        """Wait until every transfer of the event is over; raise the first failure, naming its tile.

        >>> event = Event(InlineEngine())
        >>> _ = event.add(Transfer("import", 7, lambda: 1 // 0))
        >>> event.wait()
        Traceback (most recent call last):
            ...
        tilewright.errors.TransferError: import of tile 7 failed: ZeroDivisionError: ...
        """
        wait(self)

    @property
    def finished(self) -> bool:
        """Return whether nothing is under way.

        >>> Event(InlineEngine()).finished
        True
        """
        return all(transfer.finished for transfer in self.pending)


def start_transfer(engine: Engine, transfer: Transfer) -> None:
    """Start a transfer; if the engine cannot, the transfer is over, since waiting for it would not end.

    >>> start_transfer(InlineEngine(), Transfer("import", 0, lambda: print("moved")))
    moved
    """
    try:
        engine.start(transfer)
    except BaseException as problem:
        transfer.abandon(problem)
        raise


def wait(*events: Event) -> None:
    """Wait until every transfer of several events is over; raise the first failure, naming its tile.

    >>> wait(Event(), Event())
    """
    retired = []
    for event in events:
        event.engine.wait(event.pending)
        retired += event.pending
        event.pending = []
    raise_failures(retired)


def raise_failures(transfers: Iterable[Transfer]) -> None:
    """Raise a TransferError for the first transfer that failed, or that an engine has dropped, if there is one.

    >>> raise_failures([])
    >>> raise_failures([Transfer("import", 3, lambda: None)])
    Traceback (most recent call last):
        ...
    tilewright.errors.TransferError: import of tile 3 failed: the engine returned from wait() before it was over
    """
    over = list(transfers)
    for transfer in over:
        if not transfer.finished:
            transfer.abandon(TransferError("the engine returned from wait() before it was over"))
            transfer.join()
    for transfer in over:
        problem = transfer.error
        if problem is None:
            continue
        if not isinstance(problem, Exception):
            raise problem  # a KeyboardInterrupt stays one
        kind = "" if isinstance(problem, TransferError) else f"{type(problem).__name__}: "
        raise TransferError(f"{transfer} failed: {kind}{problem}") from problem


def import_(
    internal: InternalTensor,
    external: ExternalTensor,
    event: Event | None = None,
    fill: Any = None,
    after: Sequence[Transfer] = (),
) -> Event:
    """Return the event of a transfer from an external to an internal tensor, started and not waited for.

    A part of the external window that lies outside its whole gets the fill: a value, `"zero"`, `"nan"`, `"edge"`,
    `"reflect"`, `"symmetric"` or `"wrap"`; without a fill it is an error.

    >>> import numpy as np
    >>> whole, room = ExternalTensor(np.arange(1, 9)), InternalTensor(np.zeros(4, int))
    >>> import_(room, whole.sub(-2, 4), fill=0).wait()
    >>> room.array().tolist()
    [0, 0, 1, 2]
    """
    moves = import_moves(internal, external, fill)
    return _started("import", internal, external, event, moves, after)


def export(
    internal: InternalTensor,
    external: ExternalTensor,
    event: Event | None = None,
    clip: bool = False,
    after: Sequence[Transfer] = (),
) -> Event:
    """Return the event of a transfer from an internal to an external tensor, started and not waited for.

    A window that reaches outside its whole is an error, unless `clip` leaves that part out.

    >>> import numpy as np
    >>> whole, room = ExternalTensor(np.zeros(4, int)), InternalTensor(np.array([7, 8]))
    >>> export(room, whole.sub(1, 2)).wait()
    >>> whole.array().tolist()
    [0, 7, 8, 0]
    """
    return _started("export", internal, external, event, export_moves(internal, external, clip), after)


def _started(
    kind: str,
    internal: InternalTensor,
    external: ExternalTensor,
    event: Event | None,
    moves: Moves,
    after: Sequence[Transfer],
) -> Event:
    event = Event() if event is None else event
    nbytes = external.window.size * internal.dtype.itemsize
    event.add(Transfer(kind, external.window, moves, nbytes, after))
    return event


_default: list[ThreadEngine] = []
_choosing = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_default.clear)  # the threads of the parent are not in the child


def default_engine() -> ThreadEngine:
    """Return the engine that transfers use when no other is given: one thread, for as long as the process lives.

    >>> default_engine() is default_engine()
    True
    """
    with _choosing:
        if not _default:
            _default.append(ThreadEngine())
        return _default[0]
