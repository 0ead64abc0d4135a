# SPDX-License-Identifier: Apache-2.0
"""`launch`: run a kernel on the machine, on tensors and arrays of the host."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import KernelError, LayoutError
from ..layout import as_integer
from ..tensor import Store, TileTensor, View, reach_device_memory
from .kernel_report import KernelReport
from .kernel_thread import as_dim
from .launch_plan import BlockLimits, LaunchPlan
from .machine import SimtMachine
from .memory_region import MemoryRegion, new_region


def launch(
    kernel: Callable[..., Any],
    *arguments: Any,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    shared_bytes: int = 0,
    warp: int = 32,
    check: bool | str = True,
    limits: BlockLimits | None = None,
    name: str | None = None,
    cluster: int | Sequence[int] = 1,
) -> KernelReport:
    """Run a `kernel`, a function of Python, for all threads of a `grid` of blocks; return a report about it.

    Args:
        kernel: what each thread runs. It asks `thread_idx.x` and the like who it is, and may call `barrier()`.
        arguments: those of the kernel. NumPy arrays become tensors over the same memory, so that accesses are seen.
        grid: how many blocks, as a number or up to three, `x` first.
        block: how many threads a block has, likewise.
        shared_bytes: dynamic shared memory of a block, in bytes.
        warp: how many threads run in step.
        check: True raises `KernelError` with the report if there are errors; "lenient" does not if all that is wrong is
            that several threads write the same number. "report" only reports errors: a thread that cannot go on stops,
            and so does a block that waits forever. False looks only for those, and is faster.
        limits: what a block may use; by default that of an NVIDIA H100.
        name: that of the kernel, for the report.
        cluster: how many blocks run together, and can wait for each other with `cluster_barrier`; `x` first.

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
    if check not in (True, False, "lenient", "report"):
        raise LayoutError(f'check must be True, False, "lenient" or "report", got {check!r}')
    limits = limits or BlockLimits()
    extents = as_dim(block, "block")
    threads = extents.x * extents.y * extents.z
    if threads > limits.threads:
        raise LayoutError(
            f"a block of {threads} threads, {extents}, is too large: at most {limits.threads}; use more blocks of fewer"
            " threads"
        )
    if as_integer(warp, "warp") < 1:
        raise LayoutError(f"a warp has at least 1 thread, got {warp!r}; GPUs have 32 or 64")
    if not 0 <= as_integer(shared_bytes, "shared_bytes") <= limits.shared:
        raise LayoutError(f"a block has 0 to {limits.shared} bytes of shared memory, got {shared_bytes!r}")
    settings = _settings.get()
    names = _argument_names(kernel, len(arguments))
    watched = tuple([_as_tensor(name, value) for name, value in zip(names, arguments, strict=True)])
    title: str = name or str(getattr(kernel, "__name__", "kernel"))
    mode = check if settings is None else settings.check
    blocks, together = as_dim(grid, "grid"), as_dim(cluster, "cluster")
    if any(n % part for n, part in zip(blocks, together, strict=True)):
        raise LayoutError(f"a grid of {blocks} blocks is not a multiple of clusters of {together}; change one of them")
    plan = LaunchPlan(kernel, watched, blocks, extents, int(shared_bytes), int(warp), mode, limits, title, together)
    machine = SimtMachine(plan)
    with reach_device_memory():
        _add_regions(machine, zip(names, watched, strict=True))
        try:
            report = machine.run()
        except KernelError as problem:
            if settings is not None and isinstance(problem.report, KernelReport):
                settings.reports.append(problem.report)
            raise
    if settings is not None:
        settings.reports.append(report)
    return report


@dataclass(frozen=True, slots=True)
class _Settings:
    """How all launches are checked, and their reports."""

    check: bool | str
    reports: list[KernelReport]


_settings: ContextVar[_Settings | None] = ContextVar("settings", default=None)


@contextmanager
def collect_reports(check: bool | str = "report") -> Iterator[list[KernelReport]]:
    """Do all launches inside a `with` block with this `check`, whatever they ask for, and collect their reports.

    >>> with collect_reports() as reports:
    ...     _ = launch(lambda: None, grid=1, block=1)
    >>> len(reports)
    1
    """
    settings = _Settings(check, [])
    token = _settings.set(settings)
    try:
        yield settings.reports
    finally:
        _settings.reset(token)


def _as_tensor(name: str, value: Any) -> Any:
    if type(value) is list and value and all(isinstance(each, (int, float)) for each in value):
        raise TypeError(
            f"{name} is a list of numbers, in which accesses cannot be checked; use a NumPy array, or a tuple of"
            " constants"
        )
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


def _add_regions(machine: SimtMachine, arguments: Iterable[tuple[str, Any]]) -> None:
    """Tell the machine the memory of its arguments, so that reports can name it; overlapping memory is one region."""
    known = []
    for name, value in arguments:
        store = value._store if isinstance(value, View) else getattr(value, "memory", None)
        if isinstance(store, Store) and store.is_on_host and store.size:
            known.append((int(store.host.ctypes.data), name, value, store))
    last: MemoryRegion | None = None
    regions: dict[str, MemoryRegion] = {}
    for address, name, value, store in sorted(known, key=lambda entry: entry[0]):
        if last is not None and address < last.address + last.nbytes:
            last.include(store.host)
            continue
        last = regions[name] = new_region(name, store)
        last.view = value if isinstance(value, View) else None
    for _, name, _, _ in known:  # in the order of the arguments, for reports
        if name in regions:
            machine.log.table.add(regions.pop(name))
