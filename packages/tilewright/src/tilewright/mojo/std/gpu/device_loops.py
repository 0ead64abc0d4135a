# SPDX-License-Identifier: Apache-2.0
"""Loops that run on the device: a thread for each vector of a shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....simt import launch
from ....simt.kernel_thread import AWAITABLE, coroutine_twin, current_machine

_BLOCK = 256  # threads


async def _visit(calls: Sequence[tuple[Callable[..., Any], Any]]) -> None:
    """Make the call of the running thread, and wait for it."""
    machine = current_machine("elementwise()")
    number = machine.block_index.x * machine.block_dim.x + machine.thread.index
    if number < len(calls):
        function, index = calls[number]
        result: Any = coroutine_twin(function)(index)
        waits = result.__class__ in AWAITABLE
        if waits:
            await result


def launch_calls(calls: Sequence[tuple[Callable[..., Any], Any]], name: str) -> None:
    """Launch a thread for each pair of a function and its argument; `name` is for the report.

    >>> launch_calls([(print, 1), (print, 2)], "show")
    1
    2
    """
    if calls:
        threads = min(_BLOCK, len(calls))
        launch(_visit, calls, grid=-(-len(calls) // threads), block=threads, name=name, check="lenient")
