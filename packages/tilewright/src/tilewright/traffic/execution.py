# SPDX-License-Identifier: Apache-2.0
"""Reshards that run: the bytes of a step moved between the banks of a simulated device, by copy plans."""

from __future__ import annotations

import numpy as np

from ..copying import Placement, execute, plan_copy
from ..copying.host_memory import aligned_empty
from ..errors import MemoryConfigError
from ..layout import Layout, PagedLayout, compose
from ..memory import Allocation, Device
from ..memory.paging import Integers
from .noc import NocMap
from .page_moves import page_moves
from .steps import ReshardStep
from .transfer_runs import TransferRuns


def run_steps(steps: tuple[ReshardStep, ...], device: Device, allocation: Allocation) -> Allocation:
    """Run `steps` on a `device` from the tensor at `allocation`, and return the allocation of the last one.

    Every step allocates its target, before the tensor between two steps is freed.

    >>> from tilewright import TensorSpec, reshard
    >>> device = Device("n150")
    >>> spec = TensorSpec((2, 4), "uint8", chip="n150")
    >>> before = device.put(np.arange(8).reshape(2, 4), spec)
    >>> device.get(run_steps(reshard(spec, spec.with_memory("l1")).steps, device, before)).tolist()
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    here = allocation
    for step in steps:
        there = device.allocate(step.target)
        run_step(step, device, here, there)
        if here is not allocation:
            device.free(here)
        here = there
    return here


def run_step(step: ReshardStep, device: Device, source: Allocation, target: Allocation) -> None:
    """Move the bytes of a `step` on a `device` from the allocation `source` to `target`, run by run.

    >>> from tilewright import TensorSpec, reshard
    >>> device, spec = Device("n150"), TensorSpec((2, 4), "uint8", chip="n150")
    >>> before, after = device.put(np.ones((2, 4)), spec), device.allocate(spec.with_memory("l1"))
    >>> run_step(reshard(spec, after.spec).steps[0], device, before, after)
    >>> int(device.get(after).sum())
    8
    """
    if device.chip != step.source.known_chip:
        raise MemoryConfigError(f"the plan is for {step.source.known_chip}, the device is {device.chip}; plan for it")
    noc_map = NocMap.of(device.chip)
    moves = page_moves(step.source, step.target, source.address, target.address)
    pieces = TransferRuns.of(moves, noc_map).pieces()
    memories = [device.bank_memory(part.buffer_type) for part in (source, target)]
    starts = [
        noc_map.banks(endpoint) * memory.stride + address - memory.start
        for memory, endpoint, address in (
            (memories[0], pieces.source, pieces.source_address),
            (memories[1], pieces.target, pieces.target_address),
        )
    ]
    for size in np.unique(pieces.nbytes).tolist():
        chosen = np.flatnonzero(pieces.nbytes == size)
        here, there = [_paged(size, start[chosen]) for start in starts]
        read, written = [memory.bytes for memory in memories]
        if memories[0] is memories[1]:  # a copy within the same array goes through a buffer
            staged = aligned_empty(size * len(chosen), np.uint8)
            flat = Placement(Layout((size, len(chosen))), "uint8")
            execute(plan_copy(here, flat), read, staged)
            here, read = flat, staged
        execute(plan_copy(here, there), read, written)


def _paged(size: int, starts: Integers) -> Placement:
    """Return the placement of pieces of `size` bytes that begin at `starts`."""
    flat = Layout((size, len(starts)))
    return Placement(compose(PagedLayout(size, starts), flat), "uint8")
