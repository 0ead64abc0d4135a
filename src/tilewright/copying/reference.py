# SPDX-License-Identifier: Apache-2.0
"""The reference engine: plans in plain NumPy. It is always there, and it is the oracle for every other engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ..formats import BlockFormat, ScalarFormat, cast
from .loop_nest import TabulatedModes, LoopNest
from .placement import Placement
from .plan import Plan

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
AT_ONCE = 1 << 20  # elements that are converted at a time, so that no temporary grows with the tensor


def run(plan: Plan, source: Bytes, target: Bytes) -> None:
    """Carry out a plan of one step on the bytes of source and target.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(2, 3), "uint8"), Placement(col_major(2, 3), "uint8"))
    >>> moved = np.zeros(6, dtype=np.uint8)
    >>> run(plan, np.arange(6, dtype=np.uint8), moved)
    >>> moved.tolist()
    [0, 3, 1, 4, 2, 5]
    """
    for nest in plan.nests:
        if nest.elements or nest.operation == "pack":
            for piece in _pieces(nest):
                _OPERATIONS[piece.operation](plan, piece, source, target)


def _pieces(nest: LoopNest) -> Iterator[LoopNest]:
    """Yield the nest in pieces, slabs of its outermost mode, each of a bounded number of elements."""
    inner = prod(nest.extents[1:]) * len(nest.element_offsets)
    if not nest.extents or nest.extents[0] * inner <= AT_ONCE:
        yield nest
        return
    step = max(1, AT_ONCE // inner)
    for start in range(0, nest.extents[0], step):
        count = min(step, nest.extents[0] - start)
        slab = replace(
            nest,
            extents=(count, *nest.extents[1:]),
            source_offset=nest.source_offset + start * nest.source[0],
            target_offset=nest.target_offset + start * nest.target[0],
            scale_offset=nest.scale_offset + (start * nest.scale[0] if nest.scale else 0),
        )
        if count * inner <= AT_ONCE:
            yield slab
        else:  # a single row is too long already: go on inside it
            yield from _pieces(
                replace(
                    slab, extents=nest.extents[1:], source=nest.source[1:], target=nest.target[1:], scale=nest.scale[1:]
                )
            )


def table(place: Placement, tabulated: TabulatedModes) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the places of all tabulated digits, in elements, with every strided leaf at 0.

    >>> from tilewright import Layout
    >>> table(Placement(Layout((4, 3), (3, 1)), "int8"), TabulatedModes(((), ((1, 0, 3),)))).tolist()
    [0, 1, 2]
    """
    spans = [(radix, start, count) for mode in tabulated.digits for radix, start, count in mode]
    grid = np.indices([count for _, _, count in spans], dtype=np.int64).reshape(len(spans), -1)
    indices = []
    k = 0
    for mode in tabulated.digits:
        index = np.zeros(grid.shape[1], dtype=np.int64)
        for radix, start, _ in mode:
            index += (grid[k] + start) * radix
            k += 1
        indices.append(index)
    places = place.layout.extended(*indices) if len(indices) > 1 else place.layout.extended(indices[0])
    return np.broadcast_to(np.asarray(places, dtype=np.int64), grid.shape[1:])


def _view(data: Bytes, dtype: Any, nest: LoopNest, steps: tuple[int, ...], offset: int) -> np.ndarray[Any, Any]:
    return np.ndarray(nest.extents, dtype, data.data, offset, steps)


def _copy(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    before, after = _scalar(plan.source), _scalar(plan.target)
    if nest.tabulated:
        at = _hot_offsets(nest, nest.tabulated, plan.source, nest.source, nest.source_offset, before.itemsize)
        to = _hot_offsets(nest, nest.tabulated, plan.target, nest.target, nest.target_offset, after.itemsize)
        for start in range(0, at.size, AT_ONCE):
            picked = _anywhere(source, before)[at[start : start + AT_ONCE]]
            _anywhere(target, after)[to[start : start + AT_ONCE]] = cast(picked, after)
        return
    _view(target, after.dtype, nest, nest.target, nest.target_offset)[...] = cast(
        _view(source, before.dtype, nest, nest.source, nest.source_offset), after
    )


def _fill(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    after = _scalar(plan.target)
    value = fill_value(plan)
    if nest.tabulated:
        to = _hot_offsets(nest, nest.tabulated, plan.target, nest.target, nest.target_offset, after.itemsize)
        _anywhere(target, after)[to] = value
        return
    _view(target, after.dtype, nest, nest.target, nest.target_offset)[...] = value


def fill_value(plan: Plan) -> np.ndarray[Any, Any]:
    """Return the padding value as one element: of the target, or float32 where the target has blocks.

    The value is taken as an element of the source first, then converted like the data.

    >>> from tilewright import Layout
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(Layout(4), "float32"), Placement(Layout(4), "int32", fill=-3.7))
    >>> fill_value(plan).item()
    -3
    """
    value = np.asarray(plan.target.fill)
    if not plan.source.format.has_blocks:
        value = cast(value, plan.source.format)
    return cast(value, "float32" if plan.target.format.has_blocks else plan.target.format)


def _pack(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    before, blocks = _scalar(plan.source), plan.target.format
    assert blocks.has_blocks
    values = np.empty((*nest.extents, blocks.block), dtype=np.float32)
    for lane, offset in enumerate(nest.element_offsets):
        if nest.data_mask >> lane & 1:
            values[..., lane] = cast(
                _view(source, before.dtype, nest, nest.source, nest.source_offset + offset), "float32"
            )
        else:
            values[..., lane] = fill_value(plan)
    sections = blocks.sections(blocks.block)
    packed = blocks.pack(values, tile_elements=blocks.block).reshape(*nest.extents, sections.total)
    _view(target, np.uint8, nest, nest.scale, nest.scale_offset)[...] = packed[..., 0]
    for k in range(sections.data):
        _view(target, np.uint8, nest, nest.target, nest.target_offset + k)[...] = packed[..., sections.data_offset + k]


def _unpack(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    blocks, after = plan.source.format, _scalar(plan.target)
    assert blocks.has_blocks
    sections = blocks.sections(blocks.block)
    packed = np.zeros((*nest.extents, sections.total), dtype=np.uint8)
    packed[..., 0] = _view(source, np.uint8, nest, nest.scale, nest.scale_offset)
    for k in range(sections.data):
        packed[..., sections.data_offset + k] = _view(source, np.uint8, nest, nest.source, nest.source_offset + k)
    values = cast(blocks.unpack(packed.reshape(-1), tile_elements=blocks.block), after)
    values = values.reshape(*nest.extents, blocks.block)
    for lane, offset in enumerate(nest.element_offsets):
        if nest.data_mask >> lane & 1:
            _view(target, after.dtype, nest, nest.target, nest.target_offset + offset)[...] = values[..., lane]


def _clear(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    _view(target, np.uint8, nest, nest.target, nest.target_offset)[...] = 0


_OPERATIONS = {"copy": _copy, "fill": _fill, "pack": _pack, "unpack": _unpack, "clear": _clear}


def _scalar(place: Placement) -> ScalarFormat:
    assert not place.format.has_blocks
    return place.format


def _hot_offsets(nest: LoopNest, tabulated: TabulatedModes, place: Placement, steps: Any, offset: int, size: int) -> Any:
    """Return the byte offset of every element of a nest with a table."""
    total = table(place, tabulated) * size + offset
    for n, step in zip(nest.extents, steps, strict=True):
        total = (total[:, None] + np.arange(n, dtype=np.int64) * step).reshape(-1)
    return total


def _anywhere(data: Bytes, element: ScalarFormat) -> np.ndarray[Any, Any]:
    """Return a view in which index i is the element that starts at byte i."""
    return np.ndarray((max(0, data.size - element.itemsize + 1),), element.dtype, data.data, 0, (1,))
