# SPDX-License-Identifier: Apache-2.0
"""Which engine runs a plan: the one asked for, the one the environment names, or the fastest that can."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..errors import TransferError
from ..formats import BlockFormat
from . import native, native_engine, reference
from .buffers import Buffer
from .plan import Plan
from .staged import needs_stages, run_in_stages

Array: TypeAlias = "np.ndarray[Any, Any]"
ENGINES = ("auto", "native", "reference")


def execute(
    plan: Plan,
    source: Array,
    target: Array,
    threads: int | None = None,
    engine: str | None = None,
) -> None:
    """Carry out a plan on the memory of two arrays.

    The engine is "native", "reference" or "auto" (native where it can); without the argument the environment variable
    TILEWRIGHT_ENGINE decides. `threads` defaults to all cores, or to TILEWRIGHT_THREADS.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copy import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(2, 3), "int8"), Placement(col_major(2, 3), "int8"))
    >>> moved = np.zeros(6, dtype=np.int8)
    >>> execute(plan, np.arange(6, dtype=np.int8), moved)
    >>> moved.tolist()
    [0, 3, 1, 4, 2, 5]
    """
    before, after = Buffer.of(source), Buffer.of(target)
    if not after.writeable:
        raise TransferError("cannot write to a read-only target; pass a writeable array as out")
    for what, buffer, place in (("source", before, plan.source), ("target", after, plan.target)):
        if buffer.nbytes < place.nbytes:
            need = f"its layout {place.layout} of {place.format.name} reaches {place.nbytes}"
            raise TransferError(f"the {what} has {buffer.nbytes} bytes, but {need}; give it that many")
    if before.overlaps(after):
        raise TransferError(
            "source and target share memory, and a copy in place would read what it has written; copy the source first"
        )
    if needs_stages(plan.source, plan.target):
        run_in_stages(plan.source, plan.target, partial(execute, threads=threads, engine=engine), source, target)
    else:
        _run(plan, before, after, threads, engine)


def _run(plan: Plan, before: Buffer, after: Buffer, threads: int | None, engine: str | None) -> None:
    count = _threads(threads)
    if _chosen(plan, engine) == "native":
        native_engine.run(plan, before.address, after.address, count)
    else:
        reference.run(plan, before.bytes, after.bytes)
    _clear_gaps(plan, after)


def _clear_gaps(plan: Plan, target: Buffer) -> None:
    """Write zeros between the scales and the data of every tile, where a format leaves room there."""
    place = plan.target
    if not isinstance(place.format, BlockFormat):
        return
    sections = place.format.sections(place.tile_elements)
    if sections.padding:
        tiles = target.bytes[: place.nbytes].reshape(-1, sections.total)
        tiles[:, sections.scales : sections.data_offset] = 0


def _chosen(plan: Plan, engine: str | None) -> str:
    name = engine or os.environ.get("TILEWRIGHT_ENGINE") or "auto"
    if name not in ENGINES:
        raise TransferError(f"there is no engine {name!r}; choose one of {', '.join(ENGINES)}")
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
