# SPDX-License-Identifier: Apache-2.0
"""The reference engine: runs plans in NumPy. It is always available, and all other engines must match it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formats import ScalarFormat, block_format_of, cast, scalar_format_of
from .loop_nest import LoopNest
from .placement import Placement, fill_value
from .plan import Plan

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
CHUNK = 1 << 20  # elements converted at a time, which bounds the temporary arrays


def run_plan(plan: Plan, source: Bytes, target: Bytes) -> None:
    """Run a plan of one step on the bytes of source and target.

    >>> from tilewright import row_major, col_major
    >>> from tilewright.copying import Placement, plan_copy
    >>> plan = plan_copy(Placement(row_major(2, 3), "uint8"), Placement(col_major(2, 3), "uint8"))
    >>> moved = np.zeros(6, dtype=np.uint8)
    >>> run_plan(plan, np.arange(6, dtype=np.uint8), moved)
    >>> moved.tolist()
    [0, 3, 1, 4, 2, 5]
    """
    for nest in plan.nests:
        if nest.elements or nest.operation == "pack":
            for chunk in _split_into_chunks(nest):
                _OPERATIONS[chunk.operation](plan, chunk, source, target)


def _split_into_chunks(nest: LoopNest) -> Iterator[LoopNest]:
    """Yield the nest in chunks of its outermost loops, each with a bounded number of elements."""
    inner = prod(nest.extents[1:]) * len(nest.element_offsets)
    if not nest.extents or nest.extents[0] * inner <= CHUNK:
        yield nest
        return
    step = max(1, CHUNK // inner)
    for start in range(0, nest.extents[0], step):
        count = min(step, nest.extents[0] - start)
        slab = replace(
            nest,
            extents=(count, *nest.extents[1:]),
            source_offset=nest.source_offset + start * nest.source[0],
            target_offset=nest.target_offset + start * nest.target[0],
            scale_offset=nest.scale_offset + (start * nest.scale[0] if nest.scale else 0),
        )
        if count * inner <= CHUNK:
            yield slab
        else:  # a single row is too long: split the next loop
            yield from _split_into_chunks(
                replace(
                    slab, extents=nest.extents[1:], source=nest.source[1:], target=nest.target[1:], scale=nest.scale[1:]
                )
            )


def _nest_view(data: Bytes, dtype: Any, nest: LoopNest, steps: tuple[int, ...], offset: int) -> np.ndarray[Any, Any]:
    return np.ndarray(nest.extents, dtype, data.data, offset, steps)


def _run_copy(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    before, after = scalar_format_of(plan.source.format), scalar_format_of(plan.target.format)
    if nest.tabulated:
        offsets = _table_offsets(nest, plan.source, nest.source, nest.source_offset)
        target_offsets = _table_offsets(nest, plan.target, nest.target, nest.target_offset)
        for start in range(0, offsets.size, CHUNK):
            picked = _unaligned_elements(source, before)[offsets[start : start + CHUNK]]
            _unaligned_elements(target, after)[target_offsets[start : start + CHUNK]] = cast(picked, after)
        return
    _nest_view(target, after.dtype, nest, nest.target, nest.target_offset)[...] = cast(
        _nest_view(source, before.dtype, nest, nest.source, nest.source_offset), after
    )


def _run_fill(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    after = scalar_format_of(plan.target.format)
    value = fill_value(plan.source, plan.target)
    if nest.tabulated:
        target_offsets = _table_offsets(nest, plan.target, nest.target, nest.target_offset)
        _unaligned_elements(target, after)[target_offsets] = value
        return
    _nest_view(target, after.dtype, nest, nest.target, nest.target_offset)[...] = value


def _run_pack(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    before, blocks = scalar_format_of(plan.source.format), block_format_of(plan.target.format)
    values = np.empty((*nest.extents, blocks.block), dtype=np.float32)
    for element, offset in enumerate(nest.element_offsets):
        if nest.data_mask >> element & 1:
            values[..., element] = cast(
                _nest_view(source, before.dtype, nest, nest.source, nest.source_offset + offset), "float32"
            )
        else:
            values[..., element] = fill_value(plan.source, plan.target)
    sections = blocks.sections(blocks.block)
    packed = blocks.pack(values, tile_elements=blocks.block).reshape(*nest.extents, sections.total)
    _nest_view(target, np.uint8, nest, nest.scale, nest.scale_offset)[...] = packed[..., 0]
    for k in range(sections.data):
        _nest_view(target, np.uint8, nest, nest.target, nest.target_offset + k)[...] = packed[
            ..., sections.data_offset + k
        ]


def _run_unpack(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    blocks, after = block_format_of(plan.source.format), scalar_format_of(plan.target.format)
    sections = blocks.sections(blocks.block)
    packed = np.zeros((*nest.extents, sections.total), dtype=np.uint8)
    packed[..., 0] = _nest_view(source, np.uint8, nest, nest.scale, nest.scale_offset)
    for k in range(sections.data):
        packed[..., sections.data_offset + k] = _nest_view(source, np.uint8, nest, nest.source, nest.source_offset + k)
    values = cast(blocks.unpack(packed.reshape(-1), tile_elements=blocks.block), after)
    values = values.reshape(*nest.extents, blocks.block)
    for element, offset in enumerate(nest.element_offsets):
        if nest.data_mask >> element & 1:
            _nest_view(target, after.dtype, nest, nest.target, nest.target_offset + offset)[...] = values[..., element]


def _run_clear(plan: Plan, nest: LoopNest, source: Bytes, target: Bytes) -> None:
    _nest_view(target, np.uint8, nest, nest.target, nest.target_offset)[...] = 0


_OPERATIONS = {"copy": _run_copy, "fill": _run_fill, "pack": _run_pack, "unpack": _run_unpack, "clear": _run_clear}


def _table_offsets(nest: LoopNest, place: Placement, steps: Sequence[int], offset: int) -> NDArray[np.int64]:
    """Return the byte offset of every element of a nest with tabulated modes."""
    assert nest.tabulated is not None
    total = place.table_offsets(nest.tabulated) * place.itemsize + offset
    for n, step in zip(nest.extents, steps, strict=True):
        total = (total[:, None] + np.arange(n, dtype=np.int64) * step).reshape(-1)
    return total


def _unaligned_elements(data: Bytes, element: ScalarFormat) -> np.ndarray[Any, Any]:
    """Return a view in which index i is the element that starts at byte i."""
    return np.ndarray((max(0, data.size - element.itemsize + 1),), element.dtype, data.data, 0, (1,))
