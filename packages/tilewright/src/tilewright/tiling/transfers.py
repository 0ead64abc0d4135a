# SPDX-License-Identifier: Apache-2.0
"""Asynchronous transfers: imports and exports of tiles, the queues that run them, and the events to wait for.

A transfer is started, and runs while the caller does something else; waiting for its event ends it. The wait raises
what went wrong, after every transfer of the event has stopped.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from random import Random
from time import perf_counter_ns
from typing import Any, Literal, Protocol, get_args

from ..errors import TransferError
from .tile_copies import CopyList, ExternalTensor, Fill, InternalTensor, export_copies, import_copies

INLINE_BELOW = 128 << 10
"""Bytes below which the caller runs a transfer itself: handing it to a thread would take longer than the copy."""

Completion = Literal["immediate", "fifo", "lifo", "imports_first", "exports_first"]
COMPLETIONS: tuple[Completion, ...] = get_args(Completion)


class Transfer:
    """One import or export: its work, the transfers it must follow, and how it ended.

    >>> transfer = Transfer("import", 3, lambda: None)
    >>> transfer.run()
    >>> transfer.finished, transfer.error, str(transfer)
    (True, None, 'import of tile 3')
    """

    __slots__ = (
        "_claim_lock",
        "_finish_lock",
        "after",
        "began",
        "ended",
        "error",
        "kind",
        "nbytes",
        "operand",
        "tile",
        "work",
    )

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
        self._finish_lock = threading.Lock()  # held until the transfer is over: the cheapest object to wait for
        self._finish_lock.acquire()
        self._claim_lock = threading.Lock()  # taken by the thread that runs the transfer

    def run(self) -> None:
        """Run the transfer after the ones it follows, and store an error for the wait.

        A transfer runs once, in whatever order a queue runs transfers: its buffer may hold another tile later. A
        second call returns when the first is over.
        """
        if not self._claim_lock.acquire(blocking=False):
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
            self._finish_lock.release()

    def abandon(self, problem: BaseException) -> None:
        """End a transfer with an error, unless it is running or over, so that no wait for it lasts forever."""
        if self._claim_lock.acquire(blocking=False):
            self.error = problem
            self._finish_lock.release()

    @property
    def finished(self) -> bool:
        """Whether the transfer is over, with or without an error."""
        return not self._finish_lock.locked()

    def join(self) -> None:
        """Wait until the transfer is over."""
        with self._finish_lock:
            pass

    def __str__(self) -> str:
        return f"{self.kind} of tile {self.tile}"


class TransferQueue(Protocol):
    """The runner of transfers: threads, the caller itself, or a simulation.

    >>> isinstance(InlineQueue().wait, object)
    True
    """

    def start(self, transfer: Transfer) -> None:
        """Start a `transfer`; it may run at any time from now on, after the ones it follows."""

    def wait(self, transfers: Sequence[Transfer]) -> None:
        """Return when `transfers` are over."""

    def close(self) -> None:
        """Finish all transfers and stop."""


class InlineQueue:
    """A queue that runs every transfer at once, in the thread that starts it.

    >>> InlineQueue().start(Transfer("import", 0, lambda: print("copied")))
    copied
    """

    def start(self, transfer: Transfer) -> None:
        """Run the `transfer`."""
        transfer.run()

    def wait(self, transfers: Sequence[Transfer]) -> None:
        """Return at once: all `transfers` are over already."""

    def close(self) -> None:
        """Do nothing: nothing is running."""


class ThreadQueue:
    """A queue served by a few threads, first in, first out. Copies run without the GIL.

    Args:
        workers: the number of threads.
        inline_below: the caller runs transfers of fewer bytes itself.

    >>> with ThreadQueue(workers=1) as queue:
    ...     transfer = Transfer("import", 0, lambda: None, nbytes=1 << 20)
    ...     queue.start(transfer)
    ...     queue.wait([transfer])
    >>> transfer.finished
    True
    """

    def __init__(self, workers: int = 1, inline_below: int = INLINE_BELOW) -> None:
        if workers < 1:
            raise TransferError(f"expected at least 1 transfer thread, got {workers}; InlineQueue() uses none")
        self.workers, self.inline_below = workers, inline_below
        self._pending: SimpleQueue[Transfer | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._threads_lock = threading.Lock()

    def start(self, transfer: Transfer) -> None:
        """Hand the `transfer` to the threads, which are started on first use."""
        if transfer.nbytes < self.inline_below:
            transfer.run()
            return
        if not self._threads:
            self._start_threads()
        self._pending.put(transfer)

    def _start_threads(self) -> None:
        with self._threads_lock:
            if not self._threads:
                self._threads = [
                    threading.Thread(target=self._run_transfers, name=f"tilewright-transfer-{k}", daemon=True)
                    for k in range(self.workers)
                ]
                for thread in self._threads:
                    thread.start()

    def _run_transfers(self) -> None:
        while (transfer := self._pending.get()) is not None:
            transfer.run()

    def wait(self, transfers: Sequence[Transfer]) -> None:
        """Return when `transfers` are over."""
        for transfer in transfers:
            transfer.join()

    def close(self) -> None:
        """Return when all transfers are over and all threads have ended."""
        with self._threads_lock:
            for _ in self._threads:
                self._pending.put(None)
            for thread in self._threads:
                with suppress(RuntimeError):  # it never started
                    thread.join()
            self._threads = []

    def __enter__(self) -> ThreadQueue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SimulatedQueue:
    """A queue without threads in which transfers complete in a chosen order, as late as possible.

    Real copies are often over before anyone looks, which hides a missing wait. A schedule that is right under every
    completion order, and under random delays, does not depend on luck.

    Args:
        completion: "immediate"; "fifo" or "lifo", at the wait; "imports_first" or "exports_first", which completes
            one kind immediately and the other at the wait.
        seed: with a seed, any pending transfer may also complete at any start or wait.

    >>> queue = SimulatedQueue("lifo")
    >>> a, b = (Transfer("import", k, lambda k=k: print("tile", k)) for k in (0, 1))
    >>> queue.start(a), queue.start(b)
    (None, None)
    >>> queue.wait([a])
    tile 1
    tile 0
    """

    def __init__(self, completion: Completion, seed: int | None = None) -> None:
        if completion not in COMPLETIONS:
            raise TransferError(f"unknown completion {completion!r}; choose one of {', '.join(COMPLETIONS)}")
        self.completion = completion
        self.pending: list[Transfer] = []
        self._random = None if seed is None else Random(seed)

    def start(self, transfer: Transfer) -> None:
        """Start a `transfer`, and complete it if the order requires that."""
        self.pending.append(transfer)
        eager = {"immediate": ("import", "export"), "imports_first": ("import",), "exports_first": ("export",)}
        if transfer.kind in eager.get(self.completion, ()):
            self._complete(transfer)
        self._complete_at_random()

    def wait(self, transfers: Sequence[Transfer]) -> None:
        """Complete `transfers`; "lifo" also completes the ones started after them, last first."""
        self._complete_at_random()
        awaited = [transfer for transfer in self.pending if transfer in transfers]
        if self.completion == "lifo" and awaited:
            awaited = self.pending[self.pending.index(awaited[0]) :][::-1]
        for transfer in awaited:
            self._complete(transfer)

    def close(self) -> None:
        """Complete all transfers."""
        self.wait(list(self.pending))

    def _complete(self, transfer: Transfer) -> None:
        """Complete a transfer after the ones it follows."""
        if transfer not in self.pending:
            return
        for earlier in transfer.after:
            self._complete(earlier)
        self.pending.remove(transfer)
        transfer.run()

    def _complete_at_random(self) -> None:
        if self._random is None:
            return
        for transfer in list(self.pending):
            if self._random.random() < 0.3:
                self._complete(transfer)


class TransferEvent:
    """Gathers transfers, so that they can be waited for together; `queue` runs them.

    >>> import numpy as np
    >>> space, buffer = ExternalTensor(np.arange(8)), InternalTensor(np.zeros(4, int))
    >>> event = import_(buffer, space.sub(2, 4))
    >>> event.wait()
    >>> buffer.array().tolist()
    [2, 3, 4, 5]
    """

    def __init__(self, queue: TransferQueue | None = None) -> None:
        self.queue: TransferQueue = default_queue() if queue is None else queue
        self.pending: list[Transfer] = []

    def add(self, transfer: Transfer) -> Transfer:
        """Start a `transfer`, gather it, and return it.

        >>> event = TransferEvent(InlineQueue())
        >>> event.add(Transfer("import", 0, lambda: None)).finished
        True
        """
        self.pending.append(transfer)
        start_transfer(self.queue, transfer)
        return transfer

    def wait(self) -> None:
        """Wait until every transfer of the event is over; raise the first failure, naming its tile.

        >>> event = TransferEvent(InlineQueue())
        >>> _ = event.add(Transfer("import", 7, lambda: 1 // 0))
        >>> event.wait()
        Traceback (most recent call last):
            ...
        tilewright.errors.TransferError: import of tile 7 failed: ZeroDivisionError: ...
        """
        wait(self)

    @property
    def finished(self) -> bool:
        """Whether all transfers are over.

        >>> TransferEvent(InlineQueue()).finished
        True
        """
        return all(transfer.finished for transfer in self.pending)


def start_transfer(queue: TransferQueue, transfer: Transfer) -> None:
    """Start a transfer; if the queue raises, abandon the transfer, since waiting for it would not end.

    >>> start_transfer(InlineQueue(), Transfer("import", 0, lambda: print("copied")))
    copied
    """
    try:
        queue.start(transfer)
    except BaseException as problem:
        transfer.abandon(problem)
        raise


def wait(*events: TransferEvent) -> None:
    """Wait until every transfer of the `events` is over; raise the first failure, naming its tile.

    >>> wait(TransferEvent(), TransferEvent())
    """
    awaited = []
    for event in events:
        event.queue.wait(event.pending)
        awaited += event.pending
        event.pending = []
    raise_failures(awaited)


def raise_failures(transfers: Iterable[Transfer]) -> None:
    """Raise a TransferError for the first transfer that failed or that its queue has dropped.

    >>> raise_failures([])
    >>> raise_failures([Transfer("import", 3, lambda: None)])
    Traceback (most recent call last):
        ...
    tilewright.errors.TransferError: import of tile 3 failed: the queue returned from wait() before it was over
    """
    awaited = list(transfers)
    for transfer in awaited:
        if not transfer.finished:
            transfer.abandon(TransferError("the queue returned from wait() before it was over"))
            transfer.join()
    for transfer in awaited:
        problem = transfer.error
        if problem is None:
            continue
        if not isinstance(problem, Exception):
            raise problem  # a KeyboardInterrupt stays one
        prefix = "" if isinstance(problem, TransferError) else f"{type(problem).__name__}: "
        raise TransferError(f"{transfer} failed: {prefix}{problem}") from problem


def import_(
    internal: InternalTensor,
    external: ExternalTensor,
    event: TransferEvent | None = None,
    fill: Fill = None,
    after: Sequence[Transfer] = (),
) -> TransferEvent:
    """Start a transfer from an external to an internal tensor, and return its event.

    Args:
        internal: the tensor to write.
        external: the tensor to read, of the same shape.
        event: gathers the transfer; by default a new one.
        fill: the values where the external window lies outside its space: a value, "zero", "nan", "edge",
            "reflect", "symmetric" or "wrap". Without a fill that is an error.
        after: transfers that must be over before this one starts.

    >>> import numpy as np
    >>> space, buffer = ExternalTensor(np.arange(1, 9)), InternalTensor(np.zeros(4, int))
    >>> import_(buffer, space.sub(-2, 4), fill=0).wait()
    >>> buffer.array().tolist()
    [0, 0, 1, 2]
    """
    return _start_copies("import", internal, external, event, import_copies(internal, external, fill), after)


def export(
    internal: InternalTensor,
    external: ExternalTensor,
    event: TransferEvent | None = None,
    clip: bool = False,
    after: Sequence[Transfer] = (),
) -> TransferEvent:
    """Start a transfer from an internal to an external tensor, and return its event.

    Args:
        internal: the tensor to read.
        external: the tensor to write, of the same shape.
        event: gathers the transfer; by default a new one.
        clip: skip what lies outside the external space, which is an error otherwise.
        after: transfers that must be over before this one starts.

    >>> import numpy as np
    >>> space, buffer = ExternalTensor(np.zeros(4, int)), InternalTensor(np.array([7, 8]))
    >>> export(buffer, space.sub(1, 2)).wait()
    >>> space.array().tolist()
    [0, 7, 8, 0]
    """
    return _start_copies("export", internal, external, event, export_copies(internal, external, clip), after)


def _start_copies(
    kind: str,
    internal: InternalTensor,
    external: ExternalTensor,
    event: TransferEvent | None,
    copies: CopyList,
    after: Sequence[Transfer],
) -> TransferEvent:
    event = TransferEvent() if event is None else event
    nbytes = external.window.size * internal.dtype.itemsize
    event.add(Transfer(kind, external.window, copies, nbytes, after))
    return event


_default: list[ThreadQueue] = []
_default_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_default.clear)  # the threads of the parent are not in the child


def default_queue() -> ThreadQueue:
    """Return the queue that transfers use by default: one thread, for as long as the process lives.

    >>> default_queue() is default_queue()
    True
    """
    with _default_lock:
        if not _default:
            _default.append(ThreadQueue())
        return _default[0]
