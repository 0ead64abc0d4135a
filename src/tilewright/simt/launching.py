# SPDX-License-Identifier: Apache-2.0
"""`launch`: run a kernel on the machine, on tensors and arrays of the host."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import LayoutError
from ..tensor import TileTensor
from ..tensor.store import Store
from ..tensor.view import View
from .kernel_report import KernelReport
from .kernel_thread import as_dim
from .machine import Launch, Limits, Machine
from .memory_region import GLOBAL, MemoryRegion


def launch(
    kernel: Callable[..., Any],
    *arguments: Any,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    shared_bytes: int = 0,
    warp: int = 32,
    check: bool | str = True,
    limits: Limits | None = None,
    name: str | None = None,
) -> KernelReport:
    """Run a `kernel`, a function of Python, for all threads of a `grid` of blocks; return a report about it.

    Args:
        kernel: what each thread runs. It asks `thread_idx.x` and the like who it is, and may call `barrier()`.
        arguments: those of the kernel. NumPy arrays become tensors over the same memory, so that accesses are seen.
        grid: how many blocks, as a number or up to three, `x` first.
        block: how many threads a block has, likewise.
        shared_bytes: dynamic shared memory of a block, in bytes.
        warp: how many threads run in step.
        check: True raises `KernelError` with the report if there are errors. "report" only reports them: a thread that
            cannot go on stops, and so does a block that waits forever. False looks for nothing but those, and is faster.
        limits: what a block may use; by default that of an NVIDIA H100.
        name: that of the kernel, for the report.

    Threads that leave a tensor, barriers that not all threads reach, and deadlocks raise even without checks; races and
    uninitialised reads, which a GPU would not notice, raise at the end of the launch.

    >>> import numpy as np
    >>> from tilewright.simt import global_idx
    >>> def double(a):
    ...     if global_idx.x < 6:
    ...         a[global_idx.x] = a[global_idx.x] * 2
    >>> numbers = np.arange(6)
    >>> report = launch(double, numbers, grid=2, block=4)
    >>> numbers.tolist(), report.clean
    ([0, 2, 4, 6, 8, 10], True)
    """
    if not callable(kernel):
        raise TypeError(f"a kernel must be a function, got {type(kernel).__name__} {kernel!r}")
    if check not in (True, False, "report"):
        raise LayoutError(f'check must be True, False or "report", got {check!r}')
    limits = limits or Limits()
    extents = as_dim(block, "block")
    threads = extents.x * extents.y * extents.z
    if threads > limits.threads:
        raise LayoutError(
            f"a block of {threads} threads, {extents}, is too large: at most {limits.threads}; use more blocks of fewer"
            " threads"
        )
    watched = tuple([_as_tensor(value) for value in arguments])
    title = name or getattr(kernel, "__name__", "kernel")
    plan = Launch(kernel, watched, as_dim(grid, "grid"), extents, int(shared_bytes), int(warp), check, limits, title)
    machine = Machine(plan)
    for argument, value in zip(_argument_names(kernel, len(watched)), watched, strict=True):
        _add_region(machine, argument, value)
    return machine.run()


def _as_tensor(value: Any) -> Any:
    return TileTensor(value) if isinstance(value, np.ndarray) else value


def _argument_names(kernel: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the first parameters of a kernel; numbers where they are not known."""
    try:
        names = [
            parameter.name
            for parameter in inspect.signature(kernel).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        names = []
    return [names[k] if k < len(names) else f"argument {k}" for k in range(count)]


def _add_region(machine: Machine, name: str, value: Any) -> None:
    """Tell the machine the memory of an argument, so that reports can name it."""
    store = value._store if isinstance(value, View) else getattr(value, "store", None)
    if not isinstance(store, Store) or not store.is_on_host or not store.size:
        return
    data = _owner(store.data)
    table = machine.log.table
    address = int(data.ctypes.data)
    for region in table.regions:
        if region.address <= address < region.address + region.nbytes:
            return  # two arguments share their memory
    start = int(store.data.ctypes.data) - address
    view = value if isinstance(value, View) else None
    region = table.add(MemoryRegion(name, GLOBAL, data, view, start))
    region.itemsize = store.format.itemsize
    region.written = getattr(store.origin, "written", None)


def _owner(data: Any) -> Any:
    """Return the array that owns the memory of `data`, as flat scalars, if it is contiguous."""
    owner = data
    while isinstance(owner.base, np.ndarray) and owner.base.flags.c_contiguous:
        owner = owner.base
    return owner.reshape(-1)


