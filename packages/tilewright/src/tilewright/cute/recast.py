# SPDX-License-Identifier: Apache-2.0
"""CuTe's layouts of the same memory for wider or narrower elements."""

from __future__ import annotations

from math import gcd
from typing import Any

from .._integers import ceil_div
from ..errors import LayoutError
from ..layout import Layout as CoreLayout
from ..layout.modes import require_strided
from ..layout.tuples import leaves
from ..layout.validation import as_integer
from .layout import Layout, replace_leaves


def upcast(layout: CoreLayout, factor: int) -> Layout:
    """Return `layout` over elements that are `factor` times wider: contiguous extents and all strides shrink.

    >>> print(upcast(Layout((32, 32), (32, 1)), 16))
    (32,2):(2,1)
    """
    factor = _check_factor(factor)
    require_strided(layout, "upcast")
    extents, steps = [], []
    inside_one = 0  # how far the offsets of all modes together reach into a wide element
    for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        size = abs(_require_int(d, layout))
        if d == 0:
            extents.append(n)
            steps.append(0)
        elif size % factor == 0:
            extents.append(n)
            steps.append(d // factor)
        elif factor % size == 0:
            inside = factor // size
            if d < 0 and n > 1:
                raise LayoutError(
                    f"upcast of {layout} by {factor}: the negative stride {d} lies inside an element; reverse it"
                )
            inside_one += (min(n, inside) - 1) * size
            extents.append(ceil_div(n, inside))
            steps.append(1 if d > 0 else -1)
        else:
            raise LayoutError(f"upcast of {layout} by {factor}: neither stride {d} nor the factor divides the other")
    if inside_one >= factor:
        raise LayoutError(f"upcast of {layout} by {factor}: several modes together exceed a wide element")
    offset = _require_int(layout.offset, layout)
    if offset % factor:
        raise LayoutError(f"upcast of {layout} by {factor}: the offset {offset} is not divisible by the factor")
    return replace_leaves(layout, extents, steps, offset // factor)


def downcast(layout: CoreLayout, factor: int) -> Layout:
    """Return `layout` over elements that are `factor` times narrower: modes of stride 1 or -1 widen, others scale.

    >>> print(downcast(Layout((32, 2), (2, 1)), 16))
    (32,32):(32,1)
    """
    factor = _check_factor(factor)
    require_strided(layout, "downcast")
    steps = [_require_int(step, layout) for step in leaves(layout.stride)]
    pairs = [
        (n * factor, d) if abs(d) == 1 else (n, d * factor) for n, d in zip(leaves(layout.shape), steps, strict=True)
    ]
    extents, strides = [n for n, _ in pairs], [d for _, d in pairs]
    return replace_leaves(layout, extents, strides, _require_int(layout.offset, layout) * factor)


def recast(layout: CoreLayout, old_bits: int, new_bits: int) -> Layout:
    """Return `layout` of the same memory for elements of `new_bits` instead of `old_bits`.

    >>> print(recast(Layout((4, 8), (8, 1)), 16, 32), recast(Layout((4, 8), (8, 1)), 16, 8))
    (4,4):(4,1) (4,16):(16,1)
    """
    old, new = _check_factor(old_bits), _check_factor(new_bits)
    if new % old == 0:
        return upcast(layout, new // old)
    if old % new == 0:
        return downcast(layout, old // new)
    raise LayoutError(f"recast from {old} to {new} bits: one width must be a multiple of the other (divisible)")


def recast_layout(new_bits: int, old_bits: int, layout: CoreLayout) -> Layout:
    """Return `recast(layout, old_bits, new_bits)`, with the arguments in the order of CuTe's `recast_layout`.

    Where neither width is a multiple of the other, the layout is first cast to their common divisor.

    >>> print(recast_layout(32, 16, Layout((4, 8), (8, 1))), recast_layout(6, 4, Layout(24)))
    (4,4):(4,1) 16:1
    """
    old, new = _check_factor(old_bits), _check_factor(new_bits)
    common = gcd(old, new)
    return (
        downcast(upcast(layout, new // common), old // common) if common not in (old, new) else recast(layout, old, new)
    )


def _check_factor(factor: object) -> int:
    number = int(as_integer(factor, "an element width or factor"))
    if number < 1:
        raise LayoutError(f"an element width or factor must be at least 1, got {number}")
    return number


def _require_int(step: Any, layout: CoreLayout) -> int:
    """Return a stride or offset if it is an integer."""
    if not isinstance(step, int):
        raise LayoutError(f"{layout} lies on named axes; recast one of them with .project(axis)")
    return step
