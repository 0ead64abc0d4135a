# SPDX-License-Identifier: Apache-2.0
"""Executors of tile plans: how many calls one runs at once, submitting to it, and making a new one when it breaks."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar
from uuid import uuid4

from ..errors import TransferError

Result = TypeVar("Result")

ExecutorFactory = Callable[[], Executor]
"""A function that makes an executor, such as `functools.partial(ProcessPoolExecutor, 4)`."""


class ExecutorSource:
    """The executor of a run: one that was given, or the latest of those that a factory makes.

    What a factory made is shut down by `close`; what was given stays as it is.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> source = ExecutorSource(ThreadPoolExecutor)
    >>> first = source.current
    >>> source.replace()
    >>> source.current is first, source.made
    (False, 2)
    >>> source.close()
    """

    def __init__(self, executor: Executor | ExecutorFactory | None) -> None:
        self.made = 0
        self._factory: ExecutorFactory | None = None
        self._retired: list[Executor] = []
        self.current: Any = executor  # an Executor or None, whose public type lacks what is asked below
        if executor is None or (hasattr(executor, "submit") and not isinstance(executor, type)):
            return
        if not callable(executor):
            raise TransferError(
                f"expected an executor, or a function that makes one, got {type(executor).__name__}; pass for example"
                " functools.partial(ProcessPoolExecutor, 4)"
            )
        self._factory = executor
        self.current = self._make_executor(executor)

    def _make_executor(self, factory: ExecutorFactory) -> Executor:
        executor = factory()
        if not hasattr(executor, "submit"):
            raise TransferError(f"expected a function that makes an executor, got one that makes {executor!r}")
        self.made += 1
        return executor

    @property
    def can_replace(self) -> bool:
        """Return whether a factory can make another executor."""
        return self._factory is not None

    @property
    def owns_processes(self) -> bool:
        """Return whether the current executor was made here and runs in processes that can be killed."""
        return self.can_replace and hasattr(self.current, "_processes")

    def replace(self) -> None:
        """Make another executor; the old one may finish what it runs, until it is dismissed."""
        if self._factory is None:
            raise TransferError("no other executor can be made: one was given, not a function that makes them")
        self._retired.append(self.current)
        self.current = self._make_executor(self._factory)

    def dismiss(self, executor: Executor) -> None:
        """Shut down a retired executor, which may be stuck, without waiting for it."""
        if executor in self._retired:
            self._retired.remove(executor)
            stop_executor(executor)

    def close(self, wait: bool = True) -> None:
        """Shut down all executors that a factory made; with `wait`, after the current one has ended its calls."""
        for executor in list(self._retired):
            self.dismiss(executor)
        if self.can_replace:
            if wait:
                self.current.shutdown(wait=True)
            else:
                stop_executor(self.current)


def stop_executor(executor: Executor) -> None:
    """Shut an executor down without waiting, and kill the processes of a process pool.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> stop_executor(ThreadPoolExecutor(1))
    """
    processes = list((getattr(executor, "_processes", None) or {}).values())  # Python 3.14 has kill_workers()
    executor.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()


def submit_unique(executor: Executor, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
    """Submit a call with one more argument, a unique text, and return its future.

    Dask treats calls with equal arguments as one, so a retry would get the old failure.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(1) as pool:
    ...     submit_unique(pool, lambda number, call_id: number + 1, 3).result()
    4
    """
    return executor.submit(function, *arguments, uuid4().hex)


def count_workers(executor: Executor) -> int:
    """Return how many calls an executor runs at once: the cores of a Dask cluster, its workers, or our own cores.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(3) as pool:
    ...     count_workers(pool)
    3
    """
    client: Any = getattr(executor, "_client", None)  # Dask's executors have no public name for it
    if hasattr(client, "ncores"):
        return max(1, int(sum(client.ncores().values())))
    for name in ("_max_workers", "num_workers", "max_workers"):
        count = getattr(executor, name, None)
        if isinstance(count, int) and count > 0:
            return count
    return os.cpu_count() or 4
