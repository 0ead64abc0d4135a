# SPDX-License-Identifier: Apache-2.0
"""A plan in words: its loop nests, the bytes it reads and writes, what is filled and what is cut off."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ..formats import BlockFormat
from ..layout.axes import format_tree

if TYPE_CHECKING:
    from .part import Part
    from .placement import Placement
    from .plan import Plan


def explain(plan: Plan) -> str:
    """Return a description of a plan, a line for each fact and each loop.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> print(explain(plan_copy(Placement(row_major(4, 8), "int8"), Placement(col_major(4, 8), "int8"))))
    copy (4,8) int8 -> int8
    32 elements, 32 bytes read, 32 written
    copy 32 elements in runs of 1
      for 8: source +1, target +4
      for 4: source +8, target +1
    """
    read = sum(
        _bytes(step.source, part)
        for step in plan.steps
        if not (plan.stages and step.packs)
        for part in step.parts
        if part.operation not in ("fill", "clear")
    )
    written = sum(_bytes(step.target, part) for step, part in plan.written)
    lines = [
        f"copy {format_tree(plan.source.layout.shape)} {plan.source.format} -> {plan.target.format}",
        f"{plan.moved} elements, {read} bytes read, {written} written",
    ]
    if plan.filled:
        share = 100 * plan.filled / max(1, prod(plan.target.extents))
        lines.append(f"{plan.filled} elements of padding are filled with {plan.target.fill!r} ({share:.1f} %)")
    if plan.cropped:
        lines.append(f"{plan.cropped} elements of the source have no place in the target and are left out")
    if plan.stages:
        lines.append(f"in {len(plan.stages)} stages, through {plan.scratch} float32 of scratch memory")
    for step in plan.steps:
        for part in step.parts:
            lines += _nest(step, part)
    return "\n".join(lines)


def _bytes(place: Placement, part: Part) -> int:
    """Return how many bytes of one side a part touches: whole blocks with their scales, or single elements."""
    if part.operation == "clear":
        return part.elements
    if isinstance(place.format, BlockFormat):
        block = place.format.block
        return prod(part.extents) * (place.format.sections(block).data + 1)
    return part.elements * place.itemsize


def _nest(plan: Plan, part: Part) -> list[str]:
    head = f"{part.operation} {part.elements} {'bytes' if part.operation == 'clear' else 'elements'}"
    if part.operation == "copy":
        head += f" in runs of {run_length(plan, part)}"
    if part.operation in ("pack", "unpack"):
        lanes, data = len(part.lanes), part.mask.bit_count()
        head += f", blocks of {lanes}" + (f" of which {data} are data" if data < lanes else "")
    lines = [head]
    if part.hot is not None:
        lines.append(f"  for {part.hot.count} places looked up in a table")
    scale = part.scale or (0,) * len(part.extents)
    for n, source, target, step in zip(part.extents, part.source, part.target, scale, strict=True):
        scales = f", scale {step:+d}" if part.scale else ""
        lines.append(f"  for {n}: source {source:+d}, target {target:+d}{scales}")
    return lines


def run_length(plan: Plan, part: Part) -> int:
    """Return how many elements lie one after the other in source and target alike.

    >>> from tilewright import row_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(4, 8), "int8"), Placement(row_major(4, 8), "int16"))
    >>> run_length(plan, plan.parts[0])
    32
    """
    run = 1
    for n, read, written in reversed(list(zip(part.extents, part.source, part.target, strict=True))):
        if read != run * plan.source.itemsize or written != run * plan.target.itemsize:
            break
        run *= n
    return run
