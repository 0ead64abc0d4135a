# SPDX-License-Identifier: Apache-2.0
"""Plans made ready to run many times at different addresses, with everything checked and chosen beforehand."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeAlias

from ..errors import TransferError
from ..formats import BlockFormat
from . import native, native_engine, reference
from .buffers import Buffer
from .engine import chosen_on_host
from .plan import Plan

Runner: TypeAlias = Callable[[int, int], None]


class NativeRunner:
    """A plan as the native library takes it: the address of its nests, how many they are, and how to run them.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> run = prepared(plan_copy(Placement(Layout(2), "int16"), Placement(Layout(2), "int16")))
    >>> run.count if isinstance(run, NativeRunner) else 1
    1
    """

    __slots__ = ("_known", "_run", "count", "nests", "streaming", "threads")

    def __init__(self, plan: Plan, threads: int, streaming: bool) -> None:
        library = native.library()
        self._run = library.tw_run_streaming if streaming else library.tw_run
        self._known = native_engine.compiled(plan)  # held here, with the tables that its nests point to
        self.nests: int = ctypes.addressof(self._known[1])
        self.count, self.threads, self.streaming = len(plan.nests), threads, streaming

    def __call__(self, source: int, target: int) -> None:
        if self._run(self.nests, self.count, source, target, self.threads):
            native_engine.run(self._known[0], source, target, self.threads)  # says what is wrong


def prepared(plan: Plan, threads: int = 1, engine: str | None = None, streaming: bool = False) -> Runner:
    """Return a function that carries out a plan from one address to another.

    `execute` looks at the arrays it is given every time. Here the caller answers for the memory: both sides hold
    what the plan reaches, the target may be written, and they share nothing. Tiles that differ only in where they
    start share one such function. `streaming` says that the target is larger than the caches, although the plan is
    not, so that what is written should go past them.

    >>> import numpy as np
    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> row = prepared(plan_copy(Placement(Layout(2), "int16"), Placement(Layout(2), "int16")))
    >>> a, b = np.arange(6, dtype=np.int16), np.zeros(6, dtype=np.int16)
    >>> row(a.ctypes.data + 4, b.ctypes.data)
    >>> b.tolist()
    [2, 3, 0, 0, 0, 0]
    """
    if plan.target.format.has_blocks:
        raise TransferError(f"packing {plan.target.format} takes more than one run of a plan; use execute")
    if chosen_on_host(plan, engine) == "native":
        return NativeRunner(plan, threads, streaming)
    reach, room = plan.source.nbytes, plan.target.nbytes

    def run_in_numpy(source: int, target: int) -> None:
        reference.run(plan, Buffer(source, reach, None, False).bytes, Buffer(target, room, None, True).bytes)

    return run_in_numpy
