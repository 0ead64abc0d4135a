# SPDX-License-Identifier: Apache-2.0
"""A copy plan as text: its loop nests, bytes read and written, padding and cropping."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ..layout.axes import format_tree

if TYPE_CHECKING:
    from .loop_nest import LoopNest
    from .placement import Placement
    from .plan import Plan


def describe_plan(plan: Plan) -> str:
    """Return a description of a plan, one line per fact and per loop.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> print(describe_plan(plan_copy(Placement(row_major(4, 8), "int8"), Placement(col_major(4, 8), "int8"))))
    copy (4,8) int8 -> int8
    32 elements, 32 bytes read, 32 written
    copy 32 elements in runs of 1
      for 8: source +1, target +4
      for 4: source +8, target +1
    """
    read = sum(
        _bytes_accessed(step.source, nest)
        for step in plan.steps
        if not (plan.stages and step.packs)
        for nest in step.nests
        if nest.operation not in ("fill", "clear")
    )
    written = sum(_bytes_accessed(step.target, nest) for step, nest in plan.written)
    lines = [
        f"copy {format_tree(plan.source.layout.shape)} {plan.source.format} -> {plan.target.format}",
        f"{plan.moved} elements, {read} bytes read, {written} written",
    ]
    if plan.filled:
        share = 100 * plan.filled / max(1, prod(plan.target.extents))
        lines.append(f"{plan.filled} elements of padding are filled with {plan.target.fill!r} ({share:.1f} %)")
    if plan.cropped:
        lines.append(f"{plan.cropped} elements of the source are cropped")
    if plan.stages:
        lines.append(f"in {len(plan.stages)} stages, through {plan.scratch} float32 of scratch memory")
    for step in plan.steps:
        for nest in step.nests:
            lines += _describe_nest(step, nest)
    return "\n".join(lines)


def _bytes_accessed(place: Placement, nest: LoopNest) -> int:
    """Return the number of bytes of one side that a nest accesses: whole blocks with their scales, or elements."""
    if nest.operation == "clear":
        return nest.elements
    if place.format.has_blocks:
        block = place.format.block
        return prod(nest.extents) * (place.format.sections(block).data + 1)
    return nest.elements * place.itemsize


def _describe_nest(plan: Plan, nest: LoopNest) -> list[str]:
    head = f"{nest.operation} {nest.elements} {'bytes' if nest.operation == 'clear' else 'elements'}"
    if nest.operation == "copy":
        head += f" in runs of {run_length(plan, nest)}"
    if nest.operation in ("pack", "unpack"):
        block, data = len(nest.element_offsets), nest.data_mask.bit_count()
        head += f", blocks of {block}" + (f" of which {data} are data" if data < block else "")
    lines = [head]
    if nest.tabulated is not None:
        lines.append(f"  for {nest.tabulated.count} offsets from a table")
    scale = nest.scale or (0,) * len(nest.extents)
    for n, source, target, step in zip(nest.extents, nest.source, nest.target, scale, strict=True):
        scales = f", scale {step:+d}" if nest.scale else ""
        lines.append(f"  for {n}: source {source:+d}, target {target:+d}{scales}")
    return lines


def run_length(plan: Plan, nest: LoopNest) -> int:
    """Return the number of elements that are contiguous in source and target.

    >>> from tilewright import row_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(4, 8), "int8"), Placement(row_major(4, 8), "int16"))
    >>> run_length(plan, plan.nests[0])
    32
    """
    run = 1
    for n, read, written in reversed(list(zip(nest.extents, nest.source, nest.target, strict=True))):
        if read != run * plan.source.itemsize or written != run * plan.target.itemsize:
            break
        run *= n
    return run
