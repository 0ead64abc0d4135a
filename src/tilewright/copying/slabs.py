# SPDX-License-Identifier: Apache-2.0
"""Blocks to blocks: both sides share scales between neighbours, so data goes through float32, slab by slab.

A slab is a window along the first mode, so that scratch memory stays bounded however large the tensor is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import lcm, prod
from typing import TYPE_CHECKING, TypeVar

from ..layout import Layout, compose, row_major, with_logical_shape
from .leaves import cut_mode
from .placement import Placement

if TYPE_CHECKING:
    from .plan import Plan

SLAB_BYTES = 16 << 20
Ends = tuple[Placement, Placement]
Memory = TypeVar("Memory")


def slabs(source: Placement, target: Placement) -> Iterator[list[Ends]]:
    """Yield the ends of the copies of each slab: from the source to scratch, unless all is padding, and to the target.

    >>> from tilewright.copying import tiled_layout
    >>> tiles = Placement(tiled_layout((64, 32)), "bfloat8_b", tile_elements=1024)
    >>> [[(str(a.format), str(b.format)) for a, b in slab] for slab in slabs(tiles, tiles)]
    [[('bfloat8_b', 'float32'), ('float32', 'bfloat8_b')]]
    """
    data = [min(a, b) for a, b in zip(source.data_extents, target.data_extents, strict=True)]
    step = lcm(_period(source), _period(target))
    count = max(1, SLAB_BYTES // max(1, 4 * prod(data[1:]) * step)) * step
    for start in range(0, target.extents[0], count):
        here = [max(0, min(count, data[0] - start)), *data[1:]]
        scratch = Placement(with_logical_shape(row_major(*[max(1, n) for n in here]), tuple(here)), "float32")
        unpacking = [(_rows_of(source, start, count), scratch)] if all(here) else []
        yield [*unpacking, (scratch, _rows_of(target, start, count))]


def ends_of(
    plan: Plan, source: Memory, target: Memory, empty: Callable[[int], Memory]
) -> list[tuple[Plan, Memory, Memory]]:
    """Return the steps of a plan, each with the memory that it reads and that it writes.

    `empty` makes scratch memory for so many float32, where the data live; steps that share it run in their order.

    >>> from tilewright import Layout
    >>> from tilewright.copying import plan_copy
    >>> plan = plan_copy(*[Placement(Layout(32), name, tile_elements=32) for name in ("bfloat8_b", "bfloat4_b")])
    >>> [(read, written) for _, read, written in ends_of(plan, "source", "target", lambda count: f"{count} float32")]
    [('source', '32 float32'), ('32 float32', 'target')]
    """
    if not plan.stages:
        return [(plan, source, target)]
    scratch = empty(plan.scratch)
    return [(step, scratch, target) if step.packs else (step, source, scratch) for step in plan.stages]


def _period(place: Placement) -> int:
    """Return after how many indices of the first mode its inner leaves repeat, and tiles begin anew."""
    return prod([n for n, _ in cut_mode(place.modes[0], place.tile_elements)][:-1])


def _rows_of(place: Placement, start: int, count: int) -> Placement:
    window = Layout(min(count, place.extents[0] - start)) + start
    return Placement(compose(place.layout, (window,)), place.format, place.fill, place.tile_elements)
