# SPDX-License-Identifier: Apache-2.0
"""The text of a reshard plan: what moves, what the runtime does, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..byte_sizes import format_bytes
from ..errors import MemoryConfigError

if TYPE_CHECKING:
    from .reshard_plan import ReshardPlan
    from .steps import ReshardStep


def explain_plan(plan: ReshardPlan) -> str:
    """Return what a `plan` does and what it costs, line by line.

    >>> from tilewright import TensorSpec, reshard
    >>> spec = TensorSpec((64, 64), page_layout="tile", chip="n150")
    >>> print(explain_plan(reshard(spec, spec.with_memory("l1"))).splitlines()[3])
    8 KiB in 4 runs between 4 pairs, 0 % of it stays where it is
    """
    spec = plan.source
    pages = f"tiles of {spec.tile}" if spec.is_tiled else "rows"
    mesh = f", on each of {plan.devices} devices" if plan.devices > 1 else ""
    lines = [
        f"{spec.shape} {spec.dtype} in {pages}, {plan.noc_map.chip.name}{mesh}",
        f"from {plan.source.memory}",
        f"to   {plan.target.memory}",
    ]
    if plan.is_empty:
        return "\n".join([*lines, "source and target are equal: nothing to do"])
    lines.append(
        f"{format_bytes(plan.total_bytes)} in {len(plan.transfers)} runs between {len(plan.traffic)} pairs,"
        f" {100 * plan.local:.0f} % of it stays where it is"
    )
    if len(plan.steps) > 1:
        lines.append(f"{len(plan.steps)} passes: the runtime goes through {plan.steps[0].target.memory}")
    for number, step in enumerate(plan.steps, 1):
        lines += [f"step {number}: {step}", *[f"  {line}" for line in _explain_step(step)]]
    try:
        lines.append(f"time: {plan.cycles}")
        if plan.busiest_link is not None and plan.cycles.bound_by.resource != "link":  # which the time names already
            link, size = plan.busiest_link
            lines.append(f"busiest link: {link}, {format_bytes(size)}")
    except MemoryConfigError as problem:
        lines.append(f"time: not estimated, since {problem}")
    peak = max(plan.peak_l1.values(), default=0)
    available = plan.noc_map.chip.bank_bytes("l1")
    verdict = "fits" if plan.fits else "does not fit"
    lines.append(f"L1: at most {peak} of {available} bytes per core while both tensors live: {verdict}")
    return "\n".join(lines)


def _explain_step(step: ReshardStep) -> list[str]:
    """Return what a step does, line by line."""
    smallest, largest = step.request_bytes
    sizes = f"{smallest} bytes each" if smallest == largest else f"{smallest} to {largest} bytes each"
    requests = f"{step.num_reads} reads, {step.num_writes} writes of {sizes}, {step.num_barriers} barriers"
    lines = [f"{requests}, {len(step.requests.core)} RISCs"]
    if step.runtime_arguments is not None:
        lines.append(f"{step.runtime_arguments} words of runtime arguments, at most {step.most_arguments} for a RISC")
    lines += [f"warning: {warning}" for warning in step.warnings]
    lines += [
        f"extra L1: {buffer.kind} of {buffer.nbytes} bytes on {buffer.cores.num_cores} cores"
        for buffer in step.buffers
        if not buffer.borrowed
    ]
    return lines
