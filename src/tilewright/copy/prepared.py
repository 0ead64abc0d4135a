# SPDX-License-Identifier: Apache-2.0
"""Plans made ready to run many times at different addresses, with everything checked and chosen beforehand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..errors import TransferError
from ..formats import BlockFormat
from . import native, native_engine, reference
from .buffers import Buffer
from .engine import chosen_on_host
from .plan import Plan

Runner: TypeAlias = Callable[[int, int], None]


def prepared(plan: Plan, threads: int = 1, engine: str | None = None, streaming: bool = False) -> Runner:
    """Return a function that carries out a plan from one address to another.

    `execute` looks at the arrays it is given every time. Here the caller answers for the memory: both sides hold
    what the plan reaches, the target may be written, and they share nothing. Tiles that differ only in where they
    start share one such function. `streaming` says that the target is larger than the caches, although the plan is
    not, so that what is written should go past them.

    >>> import numpy as np
    >>> from tilewright import Layout
    >>> from tilewright.copy import Placement, plan_copy
    >>> row = prepared(plan_copy(Placement(Layout(2), "int16"), Placement(Layout(2), "int16")))
    >>> a, b = np.arange(6, dtype=np.int16), np.zeros(6, dtype=np.int16)
    >>> row(a.ctypes.data + 4, b.ctypes.data)
    >>> b.tolist()
    [2, 3, 0, 0, 0, 0]
    """
    if isinstance(plan.target.format, BlockFormat):
        raise TransferError(f"packing {plan.target.format} takes more than one run of a plan; use execute")
    if chosen_on_host(plan, engine) == "native":
        library = native.library()
        run_native = library.tw_run_streaming if streaming else library.tw_run
        known = native_engine.compiled(plan)  # held by the function, with the tables that its parts point to
        count = len(plan.parts)

        def run(source: int, target: int) -> None:
            if run_native(known[1], count, source, target, threads):
                native_engine.run(plan, source, target, threads)  # says what is wrong

        return run
    reach, room = plan.source.nbytes, plan.target.nbytes

    def run_in_numpy(source: int, target: int) -> None:
        reference.run(plan, Buffer(source, reach, None, False).bytes, Buffer(target, room, None, True).bytes)

    return run_in_numpy
