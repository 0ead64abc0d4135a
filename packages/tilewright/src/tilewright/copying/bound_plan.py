# SPDX-License-Identifier: Apache-2.0
"""`BoundPlan`: a plan with the two arrays it copies between, checked once, to be run again and again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np  # noqa: F401  (for the examples)

from ..errors import FormatError
from . import cuda_engine
from .device_array import DeviceArray
from .engine import (
    DEVICE_ENGINES,
    common_backend,
    execute,
    find_device_array,
    make_runner,
    resolve_engine,
    resolve_threads,
    validate_operands,
)
from .plan import Plan


class BoundPlan:
    """A function without arguments that runs a plan on the memory of two arrays.

    Whatever `execute` checks is checked here, once. The arrays must stay where they are: the bound plan keeps them
    alive, and reads and writes whatever they hold when it is called. On a CUDA device a call only enqueues kernels on
    the current stream, so it can be captured in a graph.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(2, 3), "int8"), Placement(col_major(2, 3), "int8"))
    >>> values, copied = np.arange(6, dtype=np.int8), np.zeros(6, dtype=np.int8)
    >>> run = plan.bind(values, copied)
    >>> run()
    >>> copied.tolist()
    [0, 3, 1, 4, 2, 5]
    >>> values += 10
    >>> run()
    >>> copied.tolist()
    [10, 13, 11, 14, 12, 15]
    """

    __slots__ = ("_run", "plan", "source", "target")

    def __init__(
        self, plan: Plan, source: Any, target: Any, threads: int | None = None, engine: str | None = None
    ) -> None:
        """Check that `plan` can run on the memory of `source` and `target`.

        Args:
            plan: the copy to run.
            source: an array in host or device memory.
            target: another one, writeable.
            threads: those of `execute`.
            engine: that of `execute`.
        """
        self.plan, self.source, self.target = plan, source, target
        self._run = _bind_plan(plan, source, target, threads, engine)

    def __call__(self) -> None:
        """Run the plan; on a device, enqueue it."""
        self._run()


def _bind_plan(plan: Plan, source: Any, target: Any, threads: int | None, engine: str | None) -> Callable[[], None]:
    """Return a function that runs a plan on two arrays: without checks, but for copies through other memory."""
    name = resolve_engine(engine)
    read, written = find_device_array(source) or source, find_device_array(target) or target
    backend = common_backend(read, written)
    buffers = validate_operands(plan, read, written)
    if backend is None and name not in DEVICE_ENGINES:
        run = make_runner(plan, resolve_threads(threads), name)
        return partial(run, buffers[0].address, buffers[1].address)
    on_device = isinstance(read, DeviceArray) and isinstance(written, DeviceArray)
    if on_device and isinstance(backend, cuda_engine.CudaBackend) and name in ("auto", "cuda") and not plan.stages:
        try:
            runner = cuda_engine.make_runner(plan, read, written)
        except FormatError:  # execute copies through the host, with a warning
            pass
        else:
            return runner.bind(buffers[0].address, buffers[1].address)
    return partial(execute, plan, read, written, threads, engine)
