# SPDX-License-Identifier: Apache-2.0
"""`reshard`: makes the plan of moving a tensor between two memories, or refuses with the numbers."""

from __future__ import annotations

from typing import Any

from ..errors import MemoryConfigError
from ..memory import BufferType, TensorSpec
from ..memory.placement_rules import placement_violations
from ..memory.spec import as_spec
from .page_moves import validate_pair
from .reshard_plan import ReshardPlan
from .step_choice import OPERATIONS, alone_address

KERNELS = ("current", "2024")


def reshard(
    source: Any,  # a spec or a tensor, of any kind
    target: Any,
    op: str = "to_memory_config",
    kernel: str = "current",
    *,
    profiler: bool | None = None,
    source_address: int | None = None,
    target_address: int | None = None,
    devices: int = 1,
) -> ReshardPlan:
    """Return the plan of moving a tensor from `source` to `target`, two specs of the same tensor on one chip.

    Args:
        source: the spec of the tensor where it is, or the tensor.
        target: the spec of the tensor where it should be.
        op: the operation: "to_memory_config" (what the runtime would choose), "reshard", "interleaved_to_sharded",
            "sharded_to_interleaved", "copy", "read" (target cores read page by page) or "write" (source cores write).
        kernel: "current", or "2024": the kernels of December 2024, which most recordings were made with.
        profiler: whether the profiler of NoC events is on, which slows down each request; by default for "2024" only,
            since recordings are made with it.
        source_address: the address of the source buffer, by default that on an empty chip.
        target_address: the address of the target buffer, by default beside the source on an empty chip.
        devices: the number of devices of a mesh that hold such a tensor each; the plan is that of one of them.

    >>> from tilewright import height_sharded, width_sharded
    >>> rows = TensorSpec((64, 64), memory=height_sharded((2, 1)), chip="n150")
    >>> plan = reshard(rows, rows.with_memory(width_sharded((2, 1))))
    >>> [step.operation for step in plan.steps]
    ['ShardedToInterleavedDeviceOperation', 'InterleavedToShardedDeviceOperation']
    >>> plan.fits, plan.local
    (True, 0.5)
    """
    before, after = as_spec(source), as_spec(target)
    if op not in OPERATIONS:
        raise MemoryConfigError(f"unknown operation {op!r}; use one of {', '.join(OPERATIONS)}")
    if devices < 1:
        raise MemoryConfigError(f"a mesh has at least one device, got {devices}")
    if kernel not in KERNELS:
        raise MemoryConfigError(f"unknown kernels {kernel!r}; use one of {', '.join(KERNELS)}")
    if before.chip is None and after.chip is not None:
        before = before.with_chip(after.chip)
    elif after.chip is None and before.chip is not None:
        after = after.with_chip(before.chip)
    validate_pair(before, after)
    for spec in (before, after):
        for violation in placement_violations(spec, any_size=True):  # whether both fit is part of the answer
            raise violation.error(str(violation))
    at = alone_address(before) if source_address is None else source_address
    plan = ReshardPlan(
        before,
        after,
        op,
        kernel,
        kernel == "2024" if profiler is None else profiler,
        at,
        _beside(before, after, at) if target_address is None else target_address,
        devices,
    )
    _ = plan.steps  # refuses what the runtime cannot do
    return plan


def _beside(source: TensorSpec, target: TensorSpec, address: int) -> int:
    """Return where the allocator puts the target on a chip that has only the source."""
    buffer = target.memory.buffer_type
    if buffer.is_l1 != source.memory.buffer_type.is_l1 or buffer is BufferType.L1_SMALL:
        return alone_address(target)
    return address - target.allocated_bytes if buffer.is_l1 else address + source.allocated_bytes
