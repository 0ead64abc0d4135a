# SPDX-License-Identifier: Apache-2.0
"""Asynchronous copies: done at once, but their targets may not be read before the thread has waited for them."""

from __future__ import annotations

from typing import Any

from ..tensor import Store
from .access_log import IN_FLIGHT, WRITTEN
from .kernel_thread import current_machine, is_inside_kernel


def start_copy(store: Store, places: Any) -> None:
    """Say that the running thread copies into scalars of a store, and has not waited for it yet.

    >>> start_copy(Store.of([1, 2]), [0])  # outside of a kernel nothing has to be waited for
    """
    if is_inside_kernel():
        machine = current_machine("an asynchronous copy")
        machine.thread.copies[-1].append((store, places))
        machine.log.mark_copies(store, places, IN_FLIGHT)


def commit_copies() -> None:
    """End a group of copies of the running thread.

    >>> commit_copies()
    """
    if is_inside_kernel():
        current_machine("an asynchronous copy").thread.copies.append([])


def wait_for_copies(remaining: int | None = None) -> None:
    """Wait for the copies of the running thread: all, or all but those of the last `remaining` groups.

    >>> wait_for_copies()
    """
    if not is_inside_kernel():
        return
    machine = current_machine("an asynchronous copy")
    groups = machine.thread.copies
    committed = len(groups) if remaining is None else max(0, len(groups) - 1 - remaining)
    for group in groups[:committed]:
        for store, places in group:
            machine.log.mark_copies(store, places, WRITTEN)
        group.clear()
