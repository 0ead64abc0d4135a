# SPDX-License-Identifier: Apache-2.0
"""Recasting: the same memory seen as wider or narrower elements."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from .integers import as_integer
from .regrouping import require_strided
from .strided import Layout, make
from .tuples import ceil_div, leaves, like


def upcast(layout: Layout, factor: int) -> Layout:
    """Return the layout over elements that are factor times wider: contiguous extents and all strides shrink.

    >>> upcast(Layout((32, 32), (32, 1)), 16)
    Layout((32, 2), (2, 1))
    """
    factor = _check_factor(factor)
    require_strided(layout, "upcast")
    extents, steps = [], []
    inside_one = 0  # how far into a wide element the places of all modes together reach
    for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        size = abs(_plain(d, layout))
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
                    f"upcast of {layout} by {factor}: the stride {d} runs backwards inside an element; flip it"
                )
            inside_one += (min(n, inside) - 1) * size
            extents.append(ceil_div(n, inside))
            steps.append(1 if d > 0 else -1)
        else:
            raise LayoutError(
                f"upcast of {layout} by {factor}: stride {d} is not divisible by it, nor it by the stride"
            )
    if inside_one >= factor:
        raise LayoutError(f"upcast of {layout} by {factor}: modes together run past the end of a wide element")
    offset = _plain(layout.offset, layout)
    if offset % factor:
        raise LayoutError(f"upcast of {layout} by {factor}: the offset {offset} is not divisible by it")
    return _rebuilt(layout, extents, steps, offset // factor)


def downcast(layout: Layout, factor: int) -> Layout:
    """Return the layout over elements that are factor times narrower, the parts of an element in order of memory.

    The mode whose stride is 1 takes the parts up; every other stride grows. Where only a stride of -1 touches, the
    parts become a mode inside that one. Elements that do not touch at all are seen by their first part alone, as in
    CuTe.

    >>> downcast(Layout((32, 2), (2, 1)), 16), downcast(Layout(4, -1) + 3, 2)
    (Layout((32, 32), (32, 1)), Layout((2, 4), (1, -2), offset=6))
    """
    factor = _check_factor(factor)
    require_strided(layout, "downcast")
    extents, steps = leaves(layout.shape), [_plain(step, layout) for step in leaves(layout.stride)]
    touching = [k for k, step in enumerate(steps) if abs(step) == 1]
    # of several, one that moves: the others have a single element, whose stride means nothing, or repeat places
    takes = min(touching, key=lambda k: (extents[k] == 1, steps[k] < 0), default=None)
    shape: list[Any] = list(extents)
    stride: list[Any] = [step * factor for step in steps]
    if takes is not None and factor > 1:
        upward = steps[takes] > 0 or extents[takes] == 1
        shape[takes] = extents[takes] * factor if upward else (factor, extents[takes])
        stride[takes] = 1 if upward else (1, stride[takes])
    return _rebuilt(layout, shape, stride, _plain(layout.offset, layout) * factor)


def recast(layout: Layout, old_bits: int, new_bits: int) -> Layout:
    """Return the layout of the same memory for elements of new_bits instead of old_bits.

    >>> recast(Layout((4, 8), (8, 1)), 16, 32), recast(Layout((4, 8), (8, 1)), 16, 8)
    (Layout((4, 4), (4, 1)), Layout((4, 16), (16, 1)))
    """
    old, new = _check_factor(old_bits), _check_factor(new_bits)
    if new % old == 0:
        return upcast(layout, new // old)
    if old % new == 0:
        return downcast(layout, old // new)
    raise LayoutError(
        f"recast from {old} to {new} bits: the widths are not divisible, one must be a multiple of the other"
    )


def _check_factor(factor: Any) -> int:
    number = int(as_integer(factor, "an element width"))
    if number < 1:
        raise LayoutError(f"{number} is not an element width: it must be at least 1")
    return number


def _plain(step: Any, layout: Layout) -> int:
    if not isinstance(step, int):
        raise LayoutError(f"{layout} lies on named axes; recast one of them with .on(axis)")
    return step


def _rebuilt(layout: Layout, extents: list[Any], steps: list[Any], offset: int) -> Layout:
    if layout.guards or layout.replicas:
        raise LayoutError(f"{layout} is padded or replicated; recast it before that")
    shape = layout.shape
    return make(like(shape, iter(extents)), like(shape, iter(steps)), offset)
