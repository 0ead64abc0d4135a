# SPDX-License-Identifier: Apache-2.0
"""Reach: the lowest and the highest scalar of storage that a layout leads to."""

from __future__ import annotations

from typing import Any

from ..layout import Layout, Swizzle
from ..layout.bulk import chunks
from ..layout.coords import is_array
from ..layout.tuples import product, round_up


def reach_of(layout: Any, offset: int, size: int) -> tuple[int, int]:
    """Return the lowest and the highest valid place; bounds that are good enough for storage of a size.

    >>> reach_of(Layout((4, 8), (8, 1)), 2, 100)
    (2, 33)
    """
    if product(layout.shape) == 0:
        return 0, -1
    if isinstance(layout, Layout):
        low, high = layout.bounds
        if not layout.guards or (offset + low >= 0 and offset + high < size):
            return int(offset + low), int(offset + high)
    elif isinstance(layout.outer, Swizzle) and isinstance(layout.inner, Layout):
        low, high = layout.inner.bounds
        high = round_up(int(high) + 1, layout.outer.size) - 1
        if low >= 0 and offset + high < size:
            return offset, offset + high
    low, high = 0, -1
    first = True
    for _, places, valid in chunks(layout):
        inside = places[valid] if is_array(valid) else places
        if inside.size:
            low = int(inside.min()) if first else min(low, int(inside.min()))
            high = int(inside.max()) if first else max(high, int(inside.max()))
            first = False
    return (0, -1) if first else (offset + low, offset + high)
