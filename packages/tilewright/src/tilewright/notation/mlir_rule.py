# SPDX-License-Identifier: Apache-2.0
"""The shape rule of tt-mlir: the memref that a layout must have for a tensor, and a verdict on the one it has."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from .._integers import ceil_div, round_up
from .mlir_layouts import MlirLayout
from .mlir_types import TensorType

Severity = Literal["ok", "note", "warning", "error"]


@dataclass(frozen=True, slots=True)
class LayoutVerdict:
    """Whether a layout satisfies the shape rule for a tensor, and how much that matters.

    >>> LayoutVerdict("satisfied", "ok", (1, 1), (1, 1))
    LayoutVerdict(rule='satisfied', severity='ok', memref=(1, 1), expected=(1, 1), reason='')
    """

    rule: Literal["satisfied", "violated", "ignored"]  # ignored: the layout asks for it, or extents are not known
    severity: Severity
    memref: tuple[int, ...]  # that of the layout
    expected: tuple[int, ...] | None  # that of the rule; None if it gives none
    reason: str = ""


def check_layout(layout: MlirLayout, tensor: TensorType) -> LayoutVerdict:
    """Return the verdict of the compiler's shape rule on a `layout` of a `tensor` type.

    Layouts written by hand, and those of older compilers, often use another convention: that is a note. A memref that
    reserves more than the tensor needs is a warning, one that is too small is an error.

    >>> from tilewright.notation import parse_mlir_layout, parse_tensor_type
    >>> layout = parse_mlir_layout(
    ...     "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4x4x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>"
    ... )
    >>> verdict = check_layout(layout, parse_tensor_type("tensor<32x64xf32>"))
    >>> verdict.severity, verdict.expected
    ('warning', (1, 2))
    >>> print(verdict.reason)
    memref is 4x4, rule gives 1x2: it reserves 16 tiles, the tensor needs 2
    """
    memref, problems = layout.memref.shape, layout.problems()
    shape = tuple([n for n in tensor.shape if n is not None])
    if layout.ignore_physical or len(shape) < len(tensor.shape):
        reason = (
            "ignorePhysicalLayout is set" if layout.ignore_physical else "the tensor has extents that are not known"
        )
        return LayoutVerdict("ignored", "error" if problems else "ok", memref, None, "; ".join([reason, *problems]))
    verdict = _check_shape(layout, shape)
    if not problems:
        return verdict
    reasons = [verdict.reason] if verdict.reason else []
    return LayoutVerdict(verdict.rule, "error", memref, verdict.expected, "; ".join([*problems, *reasons]))


def _check_shape(layout: MlirLayout, shape: tuple[int, ...]) -> LayoutVerdict:
    memref = layout.memref.shape
    if layout.map.dims != len(shape):
        reason = f"map has {layout.map.dims} dims, tensor has rank {len(shape)}"
        return LayoutVerdict("violated", "error", memref, None, reason)
    if layout.is_sharded and len(layout.map.constants) != len(layout.grid):
        reason = f"map has {len(layout.map.constants)} results, the grid {_by(layout.grid)} has rank {len(layout.grid)}"
        return LayoutVerdict("violated", "error", memref, None, reason)
    expected = expected_memref(layout, shape)
    if _needs_unit_grid(layout) and set(layout.grid) - {1}:
        reason = f"grid must be {_by((1,) * len(layout.grid))}, got {_by(layout.grid)}"
        return LayoutVerdict("violated", "error", memref, expected, reason)
    if memref == expected:
        return LayoutVerdict("satisfied", "ok", memref, expected)
    severity, remark = _grade(layout, shape, expected)
    reason = f"memref is {_by(memref)}, rule gives {_by(expected)}: {remark}"
    return LayoutVerdict("violated", severity, memref, expected, reason)


def _needs_unit_grid(layout: MlirLayout) -> bool:
    return not layout.is_sharded and not layout.is_in_l1


def expected_memref(layout: MlirLayout, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents that the rule gives to the memref of a `layout`, for a tensor of `shape`.

    >>> from tilewright.notation import parse_mlir_layout
    >>> layout = parse_mlir_layout(
    ...     "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <8x8>, memref<1x1x!ttcore.tile<32x32, f32>, #l1>, <interleaved>>"
    ... )
    >>> expected_memref(layout, (32, 4096))
    (1, 2)
    """
    extents = layout.map.extents(_padded(layout, shape))
    if layout.is_sharded:
        return _shard_of(layout, extents, layout.grid)
    counts = _in_tiles(layout, extents)
    if layout.is_in_l1:
        return (*[1] * (len(layout.grid) - 1), ceil_div(prod(counts), max(1, prod(layout.grid))))
    return counts


def _shard_of(layout: MlirLayout, extents: tuple[int, ...], grid: tuple[int, ...]) -> tuple[int, ...]:
    return _in_tiles(layout, tuple([ceil_div(n, max(1, parts)) for n, parts in zip(extents, grid, strict=True)]))


def _padded(layout: MlirLayout, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape with its last two extents rounded up to the tile."""
    tile = layout.memref.tile or (1, 1)
    units = tile[-len(shape) :] if shape else ()
    return (*shape[: len(shape) - len(units)], *map(round_up, shape[len(shape) - len(units) :], units))


def _in_tiles(layout: MlirLayout, extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return extents with the last two counted in tiles."""
    tile = layout.memref.tile or (1, 1)
    units = tile[-len(extents) :] if extents else ()
    return (*extents[: len(extents) - len(units)], *map(ceil_div, extents[len(extents) - len(units) :], units))


def _grade(layout: MlirLayout, shape: tuple[int, ...], expected: tuple[int, ...]) -> tuple[Severity, str]:
    """Return how much a memref other than the expected one matters, and why."""
    memref, cores = layout.memref.shape, 1 if _needs_unit_grid(layout) else prod(layout.grid)
    unit = "element" if layout.memref.tile is None else "tile"
    padded = _padded(layout, shape)
    if layout.memory_layout in ("height_sharded", "width_sharded") and len(layout.grid) == 2:
        line = (cores, 1) if layout.memory_layout == "height_sharded" else (1, cores)
        if memref == _shard_of(layout, layout.map.extents(padded), line):
            return "note", f"an older convention, in which a grid {_by(layout.grid)} is {cores} cores in a line"
    reserved, needed = prod(memref) * cores, prod(_in_tiles(layout, padded))
    if prod(memref) == prod(expected) or reserved == needed:
        return "note", f"another convention for the same {_count(reserved, unit)}"
    where = "" if cores == 1 else f" on {cores} cores"
    if reserved > needed:
        return "warning", f"it reserves {_count(reserved, unit)}{where}, the tensor needs {needed}"
    return "error", f"it holds {_count(reserved, unit)}{where}, the tensor needs {needed} and does not fit its layout"


def _by(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"
