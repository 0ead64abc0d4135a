# SPDX-License-Identifier: Apache-2.0
"""Who watches accesses to memory: a machine that runs kernels learns here of every scalar that is read or written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from ..formats import ScalarFormat
from .store import Store


class Watcher(Protocol):
    """Told of every access before it happens; it may raise to prevent it.

    `places` is the position of a scalar in `store`, or an array of positions. `width` is how many consecutive scalars
    one instruction accesses from each place on.
    """

    def read(self, store: Store, places: Any, width: int = 1) -> None:
        """Learn of a read."""
        ...

    def write(self, store: Store, places: Any, width: int = 1) -> None:
        """Learn of a write."""
        ...


class KernelStack(Protocol):
    """Memory that a running kernel has on its stack: for a block ("shared") or for a thread ("local")."""

    def allocate_stack(self, space: str, count: int, element: ScalarFormat) -> Store:
        """Return memory for `count` scalars, without values."""
        ...

    def share_tensor(self, store: Store, layout: Any, make: Callable[[], Any]) -> Any:
        """Return the one tensor that all threads of a block have over shared memory, made on the first call."""
        ...


kernel_stack: ContextVar[KernelStack | None] = ContextVar("kernel_stack", default=None)
"""The stack of the kernel that runs, set by the machine that runs it."""
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
current_watcher = _watcher.get  # None outside `watched_by`


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Tell `watcher` of all accesses inside a `with` block.

    >>> class Counter:
    ...     count = 0
    ...
    ...     def read(self, store, places, width=1):
    ...         self.count += width
    ...
    ...     write = read
    >>> counter = Counter()
    >>> with watched_by(counter):
    ...     current_watcher().read(Store.of([1, 2]), 0)
    >>> counter.count, current_watcher()
    (1, None)
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)
