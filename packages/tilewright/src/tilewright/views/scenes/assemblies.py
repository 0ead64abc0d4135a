# SPDX-License-Identifier: Apache-2.0
"""The scene of a converted tensor: which source every piece of it comes from, and which device holds it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from ...conversion import ItemExplanation, Piece, format_box
from ...layout import Box
from ..layout_grid import MAX_SIDE
from ..scene import Fact, Field, Grid, Outline, Scene, Tracks
from ..scene_options import SceneOptions, scene_function
from .meshes import mesh_scene

if TYPE_CHECKING:
    from typing_extensions import Unpack

_ZERO = "zero"
_MAX_FACTS = 12  # pieces that are listed below the picture


@scene_function
def assembly_scene(
    explanation: ItemExplanation, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the pieces of a tensor, from its `explanation`, colored by source, and the devices of its mesh.

    Cells are the largest boxes that lie in one piece and on one device: their names are where they begin. `side` is the
    most rows and columns that are drawn, and `title` that of the picture. `options` are those of every scene: cells
    have the attributes `source`, `label`, `piece` and `from`.

    >>> import tempfile, numpy
    >>> from tilewright.conversion import plan_conversion
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numpy.savez(f"{folder}/m.npz", q=numpy.zeros((64, 32)), k=numpy.zeros((32, 32)))
    ...     rules = {"qk": {"value": "join(tensor('q'), tensor('k'))"}}
    ...     plan = plan_conversion(f"{folder}/m.npz", f"{folder}/out", rules=rules)
    >>> pieces = assembly_scene(plan.explain("qk")[0]).panels[0]
    >>> [cell.attributes["source"] for cell in (pieces.cell(0, 0), pieces.cell(1, 0))]
    ['q', 'k']
    """
    item = explanation.item
    shape = item.source.value.shape
    windows = list(explanation.devices) or [Box((0,) * len(shape), shape)]
    grid, cut = _piece_grid(explanation.pieces, windows, shape, side)
    panels: list[Grid | Tracks] = [grid]
    if len(explanation.devices) > 1 and item.target.mesh is not None:
        panels.append(mesh_scene(item.target.mesh).panels[0])
    facts = [
        Fact("file", item.slot.file or item.name),
        Fact("tensor", f"{_format_extents(shape)}, {' -> '.join(explanation.steps)}"),
        *[Fact(format_box(piece.box), str(piece)) for piece in explanation.pieces[:_MAX_FACTS]],
    ]
    if explanation.zeros:
        facts.append(Fact("zero", f"{explanation.zeros} elements of padding"))
    notes = [f"{len(explanation.pieces) - _MAX_FACTS} more pieces are not listed."] * (
        len(explanation.pieces) > _MAX_FACTS
    )
    if cut:
        notes.append(f"Only the first {side} rows and columns of boxes are drawn.")
    return Scene(title or item.name, tuple(panels), tuple(facts), " ".join(notes))


def _piece_grid(
    pieces: Sequence[Piece], windows: Sequence[Box], shape: tuple[int, ...], side: int
) -> tuple[Grid, bool]:
    """Return the tensor, cut where pieces and parts begin, and whether some of it is not drawn."""
    boxes = [*[piece.box for piece in pieces], *windows]
    flat = [_fold(box, shape) for box in boxes]
    extents = _fold(Box((0,) * len(shape), shape), shape).shape
    edges = [sorted({0, *[each.offset[d] for each in flat], *[each.end[d] for each in flat]}) for d in (0, 1)]
    starts = [[at for at in own if at < extent] for own, extent in zip(edges, extents, strict=True)]
    rows, columns = (each[:side] for each in starts)
    folded = flat[: len(pieces)]
    owners: list[int | None] = []
    for row in rows:
        for column in columns:
            at = Box((row, column), (1, 1))
            owners.append(next((k for k, box in enumerate(folded) if not box.intersection(at).empty), None))
    sources = tuple([None if k is None else pieces[k].source for k in owners])
    labels = _label_pieces(pieces)
    grid = Grid(
        len(rows),
        len(columns),
        (
            Field("source", sources),
            Field("label", tuple([_ZERO if k is None else labels[k] for k in owners])),
            Field("piece", tuple(owners)),
            Field("from", tuple([None if k is None else str(pieces[k]) for k in owners])),
        ),
        title="pieces, by their source",
        color="source" if len({piece.source for piece in pieces}) > 1 else "piece",
        label="label",
        valid=tuple([k is not None for k in owners]),
        link=tuple([None if k is None else f"piece {k}" for k in owners]),
        outlines=_outline_windows([_fold(box, shape) for box in windows], rows, columns),
        row_names=tuple(map(str, rows)),
        column_names=tuple(map(str, columns)),
        row_axis="starts at",
        hatched="zeros",
    )
    return grid, (len(rows), len(columns)) != tuple(map(len, starts))


def _outline_windows(windows: Sequence[Box], rows: Sequence[int], columns: Sequence[int]) -> tuple[Outline, ...]:
    """Return an outline around the cells of each device's part, if there are several."""
    outlines = []
    for k, box in enumerate(windows if len(windows) > 1 else ()):
        spans = []
        for d, starts in enumerate((rows, columns)):
            inside = [at for at, start in enumerate(starts) if box.offset[d] <= start < box.end[d]]
            spans.append((inside[0], len(inside)) if inside else (0, 0))
        (row, height), (column, width) = spans
        if height and width:
            outlines.append(Outline(row, column, height, width, "tile", f"part {k}"))
    return tuple(outlines)


def _fold(box: Box, shape: tuple[int, ...]) -> Box:
    """Return a box of a tensor as one of the matrix of its rows; of a box in several rows of planes, the hull."""
    offset, extents = (0,) * (2 - len(shape)) + box.offset, (1,) * (2 - len(shape)) + box.shape
    whole = (1,) * (2 - len(shape)) + shape
    steps = [prod(whole[d + 1 : -1]) for d in range(len(whole) - 1)]
    first = sum([a * step for a, step in zip(offset, steps, strict=False)])
    last = sum([(a + n - 1) * step for a, n, step in zip(offset, extents, steps, strict=False)])
    return Box((first, offset[-1]), (last - first + 1, extents[-1]))


def _label_pieces(pieces: Sequence[Piece]) -> list[str]:
    """Return a short label for each piece: its source, or its range where all have the same source."""
    boxes = [piece.source_box for piece in pieces]
    if len({piece.source for piece in pieces}) > 1 or len(pieces) < 2 or None in boxes:
        return [_short_name(piece.source) for piece in pieces]
    ranges = [list(zip(box.offset, box.end, strict=True)) for box in boxes if box is not None]
    varying = [d for d in range(len(ranges[0])) if len({own[d] for own in ranges}) > 1]
    return [" ".join(f"{own[d][0]}:{own[d][1]}" for d in varying) for own in ranges]


def _short_name(name: str) -> str:
    """Return the part of a name that tells tensors of a layer apart.

    >>> _short_name("model.layers.0.self_attn.q_proj.weight"), _short_name("lm_head.weight"), _short_name("q")
    ('q_proj', 'lm_head', 'q')
    """
    parts = name.split(".")
    return parts[-2] if len(parts) > 1 and parts[-1] in ("weight", "bias") else parts[-1]


def _format_extents(extents: Sequence[int]) -> str:
    return " x ".join(map(str, extents)) or "scalar"
