# SPDX-License-Identifier: Apache-2.0
"""Helpers for `concurrent.futures` executors of any kind: unique submissions, and the number of workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar
from uuid import uuid4

Result = TypeVar("Result")


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
