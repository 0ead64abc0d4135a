# SPDX-License-Identifier: Apache-2.0
"""Blocks to blocks: through float32, a slab of bounded size at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import lcm, prod
from typing import Any

import numpy as np

from ..formats import BlockFormat
from ..layout import Layout, compose, row_major, within
from .placement import Placement
from .plan import Plan, plan_copy

SLAB_BYTES = 16 << 20
_HOST_MEMORY = partial(np.empty, dtype=np.float32)


def needs_stages(source: Placement, target: Placement) -> bool:
    """Return whether a copy goes through float32, since both sides share scales between neighbours.

    >>> from tilewright import row_major
    >>> needs_stages(Placement(row_major(4, 4), "float32"), Placement(row_major(4, 4), "bfloat8_b", tile_elements=16))
    False
    """
    return isinstance(source.format, BlockFormat) and isinstance(target.format, BlockFormat)


def run_in_stages(
    source: Placement,
    target: Placement,
    run: Callable[[Plan, Any, Any], None],
    data: Any,
    out: Any,
    empty: Callable[[int], Any] = _HOST_MEMORY,
) -> None:
    """Carry out a copy from blocks to blocks: unpack a slab to float32, pack it, and go on.

    `empty` makes room for so many float32, where the data live.

    >>> from tilewright.copy import execute, tiled_layout, tilize
    >>> eight = tilize(np.ones((40, 40), dtype=np.float32), dtype="bfloat8_b")
    >>> four = np.empty(4 * 576, dtype=np.uint8)
    >>> places = [Placement(tiled_layout((40, 40)), name, tile_elements=1024) for name in ("bfloat8_b", "bfloat4_b")]
    >>> run_in_stages(*places, execute, eight, four)
    >>> bool((four == tilize(np.ones((40, 40), dtype=np.float32), dtype="bfloat4_b")).all())
    True
    """
    for first, second in slabs(source, target):
        slab = empty(prod(second.source.extents))
        if first is not None:
            run(first, data, slab)
        run(second, slab, out)


def slabs(source: Placement, target: Placement) -> Iterator[tuple[Plan | None, Plan]]:
    """Yield, slab by slab along the first mode, the plan to float32 (None if all is padding) and the plan from there.

    >>> from tilewright.copy import tiled_layout
    >>> tiles = Placement(tiled_layout((64, 32)), "bfloat8_b", tile_elements=1024)
    >>> [(first.moved, second.moved) for first, second in slabs(tiles, tiles)]
    [(2048, 2048)]
    """
    data = [min(a, b) for a, b in zip(source.data_extents, target.data_extents, strict=True)]
    step = lcm(_period(source), _period(target))
    rows = target.extents[0]
    count = max(1, SLAB_BYTES // max(1, 4 * prod(data[1:]) * step)) * step
    for start in range(0, rows, count):
        here = [max(0, min(count, data[0] - start)), *data[1:]]
        middle = Placement(within(row_major(*[max(1, n) for n in here]), tuple(here)), "float32")
        first = plan_copy(_rows_of(source, start, count), middle) if all(here) else None
        yield first, plan_copy(middle, _rows_of(target, start, count))


def _period(place: Placement) -> int:
    """Return after how many indices of the first mode its inner leaves repeat."""
    return prod([n for n, _ in place.modes[0]][:-1])


def _rows_of(place: Placement, start: int, count: int) -> Placement:
    window = Layout(min(count, place.extents[0] - start)) + start
    return Placement(compose(place.layout, (window,)), place.format, place.fill, place.tile_elements)
