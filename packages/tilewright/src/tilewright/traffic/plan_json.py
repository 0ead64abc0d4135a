# SPDX-License-Identifier: Apache-2.0
"""A reshard plan as plain values, for JSON: what a command prints, and what a page draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import MemoryConfigError
from .estimate import Estimate
from .noc import Endpoint, Link
from .requests import RequestLists

if TYPE_CHECKING:
    from .reshard_plan import ReshardPlan
    from .steps import ReshardStep


def plan_to_json(plan: ReshardPlan, transfers: bool = False, reads: bool = False) -> dict[str, Any]:
    """Return a `plan` as plain values: a core is [x, y], a DRAM bank its number.

    With `transfers`, also every run; with `reads`, also the lists of all RISCs. Both may be long.

    >>> from tilewright import TensorSpec, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> plan_to_json(reshard(spec, spec.with_memory("l1")))["traffic"][0]
    [[4, 1], 2, 2048]
    """
    data: dict[str, Any] = {
        "shape": list(plan.source.shape),
        "dtype": str(plan.source.dtype),
        "chip": plan.noc_map.chip.name,
        "source": str(plan.source.memory),
        "target": str(plan.target.memory),
        "operation": plan.operation,
        "kernel": plan.kernel,
        "profiler": plan.profiler,
        "devices": plan.devices,
        "bytes": plan.total_bytes,
        "local": plan.local,
        "noc_bytes": plan.noc_bytes,
        "runs": len(plan.transfers),
        "traffic": [[_place(reader), _place(source), size] for (reader, source), size in plan.traffic.items()],
        "steps": [_step(step, plan.profiler) for step in plan.steps],
        "banks": plan.banks,
        "peak_l1": max(plan.peak_l1.values(), default=0),
        "fits": plan.fits,
    }
    try:
        data["estimate"] = _estimate(plan.cycles)
        data["links"] = [[*link, size] for link, size in plan.links.items()]
    except MemoryConfigError as problem:
        data["estimate"], data["links"], data["not_estimated"] = None, None, str(problem)
    if transfers:
        names = ("source_address", "source_stride", "target_address", "target_stride", "nbytes", "count")
        data["transfers"] = [
            {"source": _place(run.source), "target": _place(run.target)} | {name: getattr(run, name) for name in names}
            for run in plan.transfers
        ]
    if reads:
        data["reads"], data["writes"] = _lists(plan.reads), _lists(plan.writes)
    return data


def _place(endpoint: Endpoint) -> list[int] | int:
    return endpoint if isinstance(endpoint, int) else list(endpoint)


def _step(step: ReshardStep, profiler: bool) -> dict[str, Any]:
    """Return a step as plain values."""
    try:
        estimate = _estimate(step.estimate(profiler))
    except MemoryConfigError:
        estimate = None
    return {
        "operation": step.operation,
        "factory": step.factory,
        "source": str(step.source.memory),
        "target": str(step.target.memory),
        "reads": step.num_reads,
        "writes": step.num_writes,
        "barriers": step.num_barriers,
        "request_bytes": list(step.request_bytes),
        "runtime_arguments": step.runtime_arguments,
        "extra_l1": step.extra_l1,
        "buffers": [[item.kind, item.nbytes, item.borrowed, str(item.cores)] for item in step.buffers],
        "warnings": list(step.warnings),
        "estimate": estimate,
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as plain values."""
    bound = estimate.bound_by
    which = list(bound.which) if isinstance(bound.which, Link) else None if bound.which is None else _place(bound.which)
    return {
        "cycles": estimate.cycles,
        "microseconds": estimate.microseconds,
        "calibrated": estimate.calibrated,
        "expected_error": estimate.expected_error,
        "bound_by": {"resource": bound.resource, "which": which, "noc": bound.noc, "bytes": bound.nbytes},
    }


def _lists(lists: RequestLists) -> list[dict[str, Any]]:
    """Return the lists of RISCs as plain values: [endpoint, bytes, count], or ["barrier", count]."""
    return [
        {
            "core": list(risc.core),
            "risc": risc.risc,
            "noc": risc.noc,
            "runs": [[_place(run[0]), *run[1:]] if len(run) == 3 else list(run) for run in runs],
        }
        for risc, runs in lists.items()
    ]
