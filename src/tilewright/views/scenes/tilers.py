# SPDX-License-Identifier: Apache-2.0
"""The scene of a tiler: the tile of every element, overlaps, and halo."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product as combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import LayoutError
from ...tiling import Tiler
from ..layout_grid import MAX_SIDE
from ..scene import Fact, Field, Grid, Outline, OutlineKind, Scene

_MOST_TILES = 400  # that are outlined


def tiler_scene(tiler: Tiler, *, tile: int | None = None, side: int = MAX_SIDE, title: str = "") -> Scene:
    """Return the tiles of a space with their overlaps and halo; `tile` marks one of them.

    Two axes are drawn: the last two, at the first tile of the others.

    >>> cut, reads = tiler_scene(Tiler((8, 8), (5, 5), overlap=2, augmentation=1)).panels
    >>> cut.rows, reads.cell(4, 4).attributes["reads"], reads.cell(0, 0).valid
    (10, 4, False)
    """
    if not tiler.count or not tiler.rank:
        raise LayoutError(f"cannot draw {tiler}: it has no tiles; give it a space of at least one element")
    axes = [_Axis(tiler, axis, side) for axis in range(max(0, tiler.rank - 2), tiler.rank)]
    down, across = axes if len(axes) == 2 else (None, axes[0])
    shape = (len(down.at) if down else 1, len(across.at))
    owner = _tile_ids(tiler, down, across)
    reads = np.outer(down.reads if down else [1], across.reads)
    inside = np.outer(down.inside if down else [True], across.inside)
    common: dict[str, Any] = {
        "valid": () if inside.all() else tuple(inside.reshape(-1).tolist()),
        "row_names": tuple(map(str, down.at)) if down else (),
        "column_names": tuple(map(str, across.at)),
        "row_axis": "row" if down else "",
        "column_axis": "column",
        "hatched": "beyond the space",
        "link": tuple(range(shape[0] * shape[1])),
    }
    fields = (
        Field("tile", tuple(owner.reshape(-1).tolist())),
        Field("reads", tuple(reads.reshape(-1).tolist()), "heat"),
    )
    outlines = tuple(_tile_outlines(tiler, down, across))
    mark = (_tile_outline(tiler, tile, down, across),) if tile is not None else ()
    panels = [Grid(*shape, fields, title="tiles", color="tile", label="tile", outlines=outlines + mark, **common)]
    if reads.max() > 1:
        counts = "tiles that read each element"
        panels.append(Grid(*shape, fields, title=counts, color="reads", label="reads", outlines=mark, **common))
    blocks = [axis.block for axis in axes]
    note = "" if max(blocks) == 1 else f"Each cell stands for {_format_extents(blocks)} elements and shows the first."
    title = title or f"{_format_extents(tiler.space)} in tiles of {_format_extents(tiler.tile)}"
    return Scene(title, tuple(panels), tuple(_facts(tiler)), note)


class _Axis:
    """One axis of the picture: the coordinates shown, including those beyond the space."""

    def __init__(self, tiler: Tiler, axis: int, side: int) -> None:
        before, after = tiler.augmentation[axis]
        self.axis, self.low, high = axis, -before, tiler.space[axis] + after
        self.block = -(-(high - self.low) // side)
        self.at = list(range(self.low, high, self.block))
        step = tiler.tile[axis] - tiler.overlap[axis]
        at = np.array(self.at)
        count = tiler.grid[axis]
        self.inside: NDArray[np.bool_] = (at >= 0) & (at < tiler.space[axis])
        # An overlap is split in half between the two tiles that share it.
        self.owner = np.clip((at + before - tiler.overlap[axis] // 2) // step, 0, count - 1)
        first = np.maximum(0, -(-(at + before - tiler.tile[axis] + 1) // step))
        last = np.minimum(count - 1, (at + before) // step)
        self.reads: NDArray[np.int64] = last - first + 1

    def span(self, start: int, extent: int) -> tuple[int, int]:
        """Return the first cell of a range of coordinates and the number of its cells."""
        first = (start - self.low) // self.block
        return first, max(1, -(-(start - self.low + extent) // self.block) - first)


def _tile_ids(tiler: Tiler, down: _Axis | None, across: _Axis) -> NDArray[Any]:
    """Return the tile id of every cell (Python integers of any size)."""
    outer = (0,) * (tiler.rank - (2 if down else 1))
    ids = {
        (r, c): tiler.number_at((*outer, r, c) if down else (*outer, c))
        for r in (np.unique(down.owner).tolist() if down else [0])
        for c in np.unique(across.owner).tolist()
    }
    rows = down.owner.tolist() if down else [0]
    return np.array([[ids[r, c] for c in across.owner.tolist()] for r in rows], dtype=object)


def _tile_outlines(tiler: Tiler, down: _Axis | None, across: _Axis) -> list[Outline]:
    grid = tiler.grid[-2:] if down else (1, tiler.grid[-1])
    if prod(grid) > _MOST_TILES:
        return []
    outer = (0,) * (tiler.rank - (2 if down else 1))
    kind: OutlineKind = "halo" if any(tiler.overlap) else "tile"
    numbers = [tiler.number_at((*outer, r, c) if down else (*outer, c)) for r, c in combinations(*map(range, grid))]
    return [_tile_outline(tiler, number, down, across, kind) for number in numbers]


def _tile_outline(tiler: Tiler, number: int, down: _Axis | None, across: _Axis, kind: OutlineKind = "mark") -> Outline:
    box = tiler[number]
    row, rows = down.span(box.offset[-2], box.shape[-2]) if down else (0, 1)
    column, columns = across.span(box.offset[-1], box.shape[-1])
    return Outline(row, column, rows, columns, kind, f"tile {number}")


def _format_extents(extents: Iterable[int]) -> str:
    return " x ".join(map(str, extents))


def _format_halo(augmentation: tuple[tuple[int, int], ...]) -> str:
    """Return the halo around the space as text, once if it is the same along every axis."""
    if not any(map(any, augmentation)):
        return "nothing"
    words = [f"{before} before, {after} after" for before, after in augmentation]
    return f"{words[0]} along each axis" if len(set(words)) == 1 and len(words) > 1 else "; ".join(words)


def _facts(tiler: Tiler) -> list[Fact]:
    last = tiler._tile_at(tuple(n - 1 for n in tiler.grid)).shape  # along each axis, all others are whole
    read = prod((n - 1) * whole + end for n, whole, end in zip(tiler.grid, tiler.tile, last, strict=True))
    share = read / max(1, prod(tiler.space))
    partial = [n for n, full in zip(last, tiler.tile, strict=True) if n < full]
    return [
        Fact("tiles", f"{tiler.count} = {_format_extents(tiler.grid)}, {tiler.order}"),
        Fact("overlap", _format_extents(tiler.overlap) if any(tiler.overlap) else "none"),
        Fact("beyond the space", _format_halo(tiler.augmentation)),
        Fact("last tile", _format_extents(last) + (" (partial)" if partial else "")),
        Fact("read amplification", f"{share:.3g}", "good" if share <= 1.5 else "bad"),
    ]
