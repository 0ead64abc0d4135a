# SPDX-License-Identifier: Apache-2.0
"""The scenes of a pipeline: its tiles, and the timeline of its imports, computes and exports, planned or measured."""

from __future__ import annotations

from itertools import product as combinations
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._text import format_extents
from ...errors import LayoutError
from ...tiling import Compute, Export, Import, Pipeline, Schedule, TilePlan, Tiler, Trace, TransferKey, Wait
from ..layout_grid import MAX_SIDE
from ..scene import Fact, Field, Grid, Outline, OutlineKind, Scene, Span, Tracks
from ..scene_options import SceneOptions, scene_function

if TYPE_CHECKING:
    from typing_extensions import Unpack

_UNITS = ("import", "compute", "export")
_MAX_DRAWN = 12  # tiles of a schedule that are drawn without being asked

_MAX_TILES = 400  # that are outlined


@scene_function
def schedule_scene(
    schedule: Schedule | Pipeline,
    *,
    times: tuple[float, float, float] = (1, 1, 1),
    tiles: int = _MAX_DRAWN,
    side: int = MAX_SIDE,
    **options: Unpack[SceneOptions],
) -> Scene:
    """Return the timeline of a `schedule` if an import, a compute and an export take these `times`.

    One import and one export run at a time, in order. Only the first `tiles` are drawn, and at most `side` buffers.
    `options` are the common scene options.

    >>> scene = schedule_scene(Schedule("duplex", 4))
    >>> [(span.label, span.start) for span in scene.panels[0].spans if span.track == 1]
    [('0', 1), ('1', 3), ('2', 5), ('3', 7)]
    """
    plan = schedule.schedule() if isinstance(schedule, Pipeline) else schedule
    if not plan.tiles:
        raise LayoutError(f"cannot draw {plan}: it has no tiles; give it at least one")
    drawn = Schedule(plan.scheme, min(plan.tiles, tiles), plan.inputs, plan.outputs, plan.depth)
    run = _ScheduleRun(drawn, dict(zip(_UNITS, times, strict=True)))
    units = Tracks(_UNITS, tuple(run.units), 0, run.now, "time", "timeline")
    buffers = Tracks(drawn.buffers, tuple(run.buffers), 0, run.now, "time", "use of buffers").first(side)
    busy = sum(span.end - span.start for span in run.units if span.kind == "compute")
    facts = [
        Fact("scheme", f"{plan.scheme}, {len(plan.buffers)} buffers per operand"),
        Fact("tiles", f"{plan.tiles}" + (f", the first {drawn.tiles} drawn" if drawn.tiles < plan.tiles else "")),
        Fact("time", f"{run.now:g}, against {drawn.tiles * sum(times):g} without overlap"),
        Fact("compute utilization", f"{busy / run.now:.0%}"),
    ]
    return Scene(f"{plan.scheme} buffering", (units, buffers), tuple(facts))


class _ScheduleRun:
    """The times of a schedule on a machine with one import, one compute and one export unit."""

    def __init__(self, schedule: Schedule, times: dict[str, float]) -> None:
        self.times = times
        self.now: float = 0
        self.free: dict[str, float] = {"import": 0, "export": 0}
        self.ends: dict[TransferKey, float] = {}
        self.units: list[Span] = []
        self.buffers: list[Span] = []
        self.track = {name: k for k, name in enumerate(schedule.buffers)}
        for action in schedule.actions():
            if isinstance(action, Import):
                self._run_transfer("import", action)
            elif isinstance(action, Export):
                self._run_transfer("export", action)
            elif isinstance(action, Compute):
                self._run_compute(action)
            elif isinstance(action, Wait):
                self.now = max([self.now, *(self.ends[key] for key in action.retires)])
        self.now = max([self.now, *self.ends.values()])

    def _run_transfer(self, unit: str, action: Import | Export) -> None:
        begin = max([self.now, self.free[unit], *(self.ends[key] for key in action.after)])
        end = begin + self.times[unit]
        self.free[unit] = end
        self.ends[TransferKey("import" if unit == "import" else "export", action.tile, action.operand)] = end
        self._add_spans(unit, action.tile, begin, end, action.buffer, f"{unit} {action.tile}, operand {action.operand}")

    def _run_compute(self, action: Compute) -> None:
        begin, self.now = self.now, self.now + self.times["compute"]
        note = f"compute {action.tile}"
        self._add_spans("compute", action.tile, begin, self.now, action.read_buffer, note)
        if action.write_buffer != action.read_buffer:
            track = self.track[action.write_buffer]
            self.buffers.append(Span(track, begin, self.now, str(action.tile), "compute", note=note, link=action.tile))

    def _add_spans(self, unit: str, tile: int, begin: float, end: float, buffer: str, note: str) -> None:
        note = f"{note}: {begin:g} to {end:g}"
        self.units.append(Span(_UNITS.index(unit), begin, end, str(tile), unit, note=note, link=tile))
        self.buffers.append(Span(self.track[buffer], begin, end, str(tile), unit, note=note, link=tile))


@scene_function
def trace_scene(trace: Trace, *, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]) -> Scene:
    """Return the timeline of a `trace`, in microseconds, and the share of transfer time that was hidden.

    `side` is the most tracks that are drawn, and `title` the picture's title. `options` are the common scene options.

    >>> from tilewright.tiling.schedule import TraceSpan as Happened
    >>> scene = trace_scene(Trace([Happened("import", 0, 0, 0, 10_000), Happened("compute", 0, 0, 4_000, 20_000)]))
    >>> [(fact.name, fact.value) for fact in scene.facts][-1]
    ('transfer time hidden', '60%')
    """
    if not trace.spans:
        raise LayoutError("cannot draw an empty trace; record one with run(..., trace=trace)")
    start = min(span.began for span in trace.spans)
    names = tuple(unit for unit in (*_UNITS, "wait") if any(span.kind == unit for span in trace.spans))
    spans = []
    for span in trace.spans:
        begin, end = (span.began - start) / 1e3, (span.ended - start) / 1e3
        note = f"{span.kind} {span.tile}: {begin:.6g} to {end:.6g} us"
        spans.append(Span(names.index(span.kind), begin, end, str(span.tile), span.kind, note=note, link=span.tile))
    end = max([span.end for span in spans]) or 1
    summary = trace.summary()
    facts = [Fact(unit, f"{summary[unit] * 1e6:.6g} us") for unit in (*names, "wall")]
    facts.append(Fact("transfer time hidden", f"{summary['hidden']:.0%}"))
    timeline = Tracks(names, tuple(spans), 0, end, "us", "timeline").first(side)
    return Scene(title or "pipeline run", (timeline,), tuple(facts))


@scene_function
def tiler_scene(
    tiler: Tiler, *, tile: int | None = None, side: int = MAX_SIDE, title: str = "", **options: Unpack[SceneOptions]
) -> Scene:
    """Return the tiles of a `tiler` with their overlaps and halo; `tile` marks one of them.

    Two axes are drawn: the last two, at the first tile of the others. `side` is the most rows and columns that are
    drawn, and `title` the picture's title. `options` are the common scene options.

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
    fields = (Field.of_table("tile", owner), Field.of_table("reads", reads, "heat"))
    outlines = tuple(_tile_outlines(tiler, down, across))
    mark = (_tile_outline(tiler, tile, down, across),) if tile is not None else ()
    panels = [Grid(*shape, fields, title="tiles", color="tile", label="tile", outlines=outlines + mark, **common)]
    if reads.max() > 1:
        counts = "tiles that read each element"
        panels.append(Grid(*shape, fields, title=counts, color="reads", label="reads", outlines=mark, **common))
    blocks = [axis.block for axis in axes]
    note = "" if max(blocks) == 1 else f"Each cell stands for {format_extents(blocks)} elements and shows the first."
    title = title or f"{format_extents(tiler.space)} in tiles of {format_extents(tiler.tile)}"
    return Scene(title, tuple(panels), tuple(_tiler_facts(tiler)), note)


class _Axis:
    """One axis of the picture: the coordinates shown, including those beyond the space."""

    def __init__(self, tiler: Tiler, axis: int, side: int) -> None:
        before, after = tiler.augmentation[axis]
        self.axis, self.low, high = axis, -before, tiler.space[axis] + after
        self.block = -(-(high - self.low) // side)
        self.at = list(range(self.low, high, self.block))
        stride = tiler.tile[axis] - tiler.overlap[axis]
        at = np.array(self.at)
        count = tiler.grid[axis]
        self.inside: NDArray[np.bool_] = (at >= 0) & (at < tiler.space[axis])
        # An overlap is split in half between the two tiles that share it.
        self.owner = np.clip((at + before - tiler.overlap[axis] // 2) // stride, 0, count - 1)
        first = np.maximum(0, -(-(at + before - tiler.tile[axis] + 1) // stride))
        last = np.minimum(count - 1, (at + before) // stride)
        self.reads: NDArray[np.int64] = last - first + 1

    def cell_span(self, start: int, extent: int) -> tuple[int, int]:
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
    if prod(grid) > _MAX_TILES:
        return []
    outer = (0,) * (tiler.rank - (2 if down else 1))
    kind: OutlineKind = "halo" if any(tiler.overlap) else "tile"
    numbers = [tiler.number_at((*outer, r, c) if down else (*outer, c)) for r, c in combinations(*map(range, grid))]
    return [_tile_outline(tiler, number, down, across, kind) for number in numbers]


def _tile_outline(tiler: Tiler, number: int, down: _Axis | None, across: _Axis, kind: OutlineKind = "mark") -> Outline:
    box = tiler[number]
    row, rows = down.cell_span(box.offset[-2], box.shape[-2]) if down else (0, 1)
    column, columns = across.cell_span(box.offset[-1], box.shape[-1])
    return Outline(row, column, rows, columns, kind, f"tile {number}")


def _format_halo(augmentation: tuple[tuple[int, int], ...]) -> str:
    """Return the halo around the space as text, once if it is the same along every axis."""
    if not any(map(any, augmentation)):
        return "nothing"
    words = [f"{before} before, {after} after" for before, after in augmentation]
    return f"{words[0]} along each axis" if len(set(words)) == 1 and len(words) > 1 else "; ".join(words)


def _tiler_facts(tiler: Tiler) -> list[Fact]:
    last = tiler._tile_at(tuple(n - 1 for n in tiler.grid)).shape  # along each axis, all others are whole
    elements_read = prod((n - 1) * whole + end for n, whole, end in zip(tiler.grid, tiler.tile, last, strict=True))
    share = elements_read / max(1, prod(tiler.space))
    partial = [n for n, full in zip(last, tiler.tile, strict=True) if n < full]
    return [
        Fact("tiles", f"{tiler.count} = {format_extents(tiler.grid)}, {tiler.order}"),
        Fact("overlap", format_extents(tiler.overlap) if any(tiler.overlap) else "none"),
        Fact("beyond the space", _format_halo(tiler.augmentation)),
        Fact("last tile", format_extents(last) + (" (partial)" if partial else "")),
        Fact("read amplification", f"{share:.3g}", "good" if share <= 1.5 else "bad"),
    ]


def tile_plan_scene(subject: TilePlan, **options: Any) -> Scene:
    """Return the tiles that the tasks of a plan read, or write where nothing is read."""
    tiler = (*subject.reading, *subject.writing)[0]
    title = f"{len(subject)} tasks, which read these tiles" if subject.reading else f"{len(subject)} tasks"
    return tiler_scene(tiler, **{"title": title, **options})
