# SPDX-License-Identifier: Apache-2.0
"""What plans and conversions ask of any executor: how many workers it has, and that no call is taken for an old one."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar
from uuid import uuid4

Result = TypeVar("Result")


def submit_anew(executor: Executor, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
    """Return the future of a call with one more argument, a text that no other call has.

    Dask takes calls with equal arguments for one: what is tried again would get its old failure back.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(1) as pool:
    ...     submit_anew(pool, lambda number, call: number + 1, 3).result()
    4
    """
    return executor.submit(function, *arguments, uuid4().hex)


def count_workers(executor: Executor) -> int:
    """Return how many calls an executor runs at once: the cores of a Dask cluster, or its workers, if it says so.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(3) as pool:
    ...     count_workers(pool)
    3
    """
    client: Any = getattr(executor, "_client", None)  # Dask's executors have no public name for it
    if hasattr(client, "ncores"):
        return max(1, int(sum(client.ncores().values())))
    for name in ("_max_workers", "num_workers", "max_workers"):
        found = getattr(executor, name, None)
        if isinstance(found, int) and found > 0:
            return found
    return os.cpu_count() or 4
