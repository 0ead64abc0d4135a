# SPDX-License-Identifier: Apache-2.0
"""Which engine runs a plan: the one asked for, the one the environment names, or the fastest that can."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..errors import TransferError
from . import native, native_engine, reference
from .buffers import Buffer
from .device_array import DeviceArray, on_device
from .device_moves import run_on_device
from .drivers import DEVICE_ENGINES, driver
from .footprints import footprint_of, shared_memory
from .plan import Plan
from .slabs import ends_of

Array: TypeAlias = "np.ndarray[Any, Any]"
ENGINES = ("auto", "native", "reference", *DEVICE_ENGINES)


def execute(
    plan: Plan,
    source: Any,
    target: Any,
    threads: int | None = None,
    engine: str | None = None,
) -> None:
    """Carry out a plan on the memory of two arrays, of the host or of a device.

    The engine is "native", "reference", "opencl", "cuda" or "auto": the device that holds an array, otherwise native
    where it can. Without the argument the environment variable TILEWRIGHT_ENGINE decides. `threads` of the host
    default to all cores, or to TILEWRIGHT_THREADS. Work on a device is enqueued, and not waited for unless an array
    is on the host.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(2, 3), "int8"), Placement(col_major(2, 3), "int8"))
    >>> moved = np.zeros(6, dtype=np.int8)
    >>> execute(plan, np.arange(6, dtype=np.int8), moved)
    >>> moved.tolist()
    [0, 3, 1, 4, 2, 5]
    """
    ends = [on_device(source) or source, on_device(target) or target]
    name = _named(engine)
    device = next((end.home for end in ends if isinstance(end, DeviceArray)), None)
    if device is not None and name != "auto" and name != device.engine:
        raise TransferError(
            f"an array in the memory of {device.engine} cannot be moved by engine={name!r}; use engine='auto', or copy"
            " it to the host first"
        )
    if device is None and name not in DEVICE_ENGINES:
        _run_on_host(plan, source, target, threads, name)
        return
    _threads(threads)
    if device is None:
        _check_host(plan, Buffer.of(source), Buffer.of(target))
    on_host = partial(_run_on_host, threads=threads)
    there = driver(name if device is None else device.engine)
    run_on_device(plan, ends[0], ends[1], there, device or there.home(), on_host, name == "auto")


def _run_on_host(plan: Plan, source: Array, target: Array, threads: int | None = None, name: str = "auto") -> None:
    before, after = Buffer.of(source), Buffer.of(target)
    _check_host(plan, before, after)
    _run(plan, before, after, threads, name)


def _check_host(plan: Plan, before: Buffer, after: Buffer) -> None:
    """Raise if the memory of two arrays of the host does not suit a plan."""
    if not after.writeable:
        raise TransferError("cannot write to a read-only target; pass a writeable array as out")
    for what, buffer, place in (("source", before, plan.source), ("target", after, plan.target)):
        if buffer.nbytes < place.nbytes:
            need = f"its layout {place.layout} of {place.format.name} reaches {place.nbytes}"
            raise TransferError(f"the {what} has {buffer.nbytes} bytes, but {need}; give it that many")
    if before.overlaps(after):
        read, written = footprint_of(plan.source, before.address), footprint_of(plan.target, after.address)
        if read.meets(written):
            raise shared_memory()


def _run(plan: Plan, before: Buffer, after: Buffer, threads: int | None, engine: str) -> None:
    count = _threads(threads)
    is_native = _chosen(plan, engine) == "native"
    for step, read, written in ends_of(plan, before, after, _scratch):
        if is_native:
            native_engine.run(step, read.address, written.address, count)
        else:
            reference.run(step, read.bytes, written.bytes)


def _scratch(count: int) -> Buffer:
    return Buffer.of(np.empty(count, dtype=np.float32))


def _named(engine: str | None) -> str:
    name = engine or os.environ.get("TILEWRIGHT_ENGINE") or "auto"
    if name not in ENGINES:
        raise TransferError(f"there is no engine {name!r}; choose one of {', '.join(ENGINES)}")
    return name


def chosen_on_host(plan: Plan, engine: str | None = None) -> str:
    """Return the engine that runs a plan on memory of the host: "native" or "reference".

    Engines of devices, which the environment may name for everything, leave such memory to the fastest one here.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> chosen_on_host(plan_copy(Placement(Layout(4), "int8"), Placement(Layout(4), "int8")), "reference")
    'reference'
    """
    name = _named(engine)
    return _chosen(plan, "auto" if name in DEVICE_ENGINES else name)


def _chosen(plan: Plan, name: str) -> str:
    if name == "auto":
        return "native" if native_engine.can_run(plan) else "reference"
    if name == "native" and not native_engine.can_run(plan):
        reason = native.why_not() or f"it does not know {plan.source.format.name} to {plan.target.format.name}"
        raise TransferError(f"the native engine cannot run this plan: {reason}; use engine='auto'")
    return name


def _threads(threads: int | None) -> int:
    given = os.environ.get("TILEWRIGHT_THREADS") or "0" if threads is None else threads
    name = "TILEWRIGHT_THREADS" if threads is None else "threads"
    try:
        count = int(given)
    except ValueError:
        count = -1
    if count < 0:
        raise TransferError(f"{name}={given!r}: use a positive number, or 0 for all cores")
    return count
