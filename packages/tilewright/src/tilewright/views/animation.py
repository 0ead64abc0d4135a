# SPDX-License-Identifier: Apache-2.0
"""Pictures that can be played: a scene, and when each of its cells, flows and times appears."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

from .._text import count_of, format_bytes
from ..copying import Plan
from ..errors import LayoutError
from ..tiling import Pipeline, Schedule, Trace
from ..traffic import ReshardPlan, ReshardStep
from .html import embed_json, page_markup, read_asset
from .scene import Flow, Grid, Panel, Scene, Tracks
from .scenes import scene_of
from .scenes.reshards import ChipMap, reshard_facts
from .svg import (
    INK,
    MARK,
    PAPER,
    Drawing,
    arrow_path,
    box_outlines,
    choose_geometry,
    draw_panels,
    row_runs,
    track_axis,
    track_height,
)

MAX_FRAMES = 48


@dataclass(frozen=True, slots=True)
class PanelSteps:
    """When the parts of one panel appear.

    Of a grid: the frame in which the turn of each cell comes (`cells`: None for a cell without a turn, empty if none
    has one), whether cells are hidden until then (`fills`), and the numbers of the flows that each frame draws. Of
    tracks: the time that each frame has reached.

    >>> steps = PanelSteps(cells=(0, 1, None))
    >>> steps.hidden(0), steps.current(1)
    ([1], [1])
    """

    cells: tuple[int | None, ...] = ()
    fills: bool = True
    flows: tuple[tuple[int, ...], ...] = ()
    times: tuple[float, ...] = ()

    def hidden(self, frame: int) -> list[int]:
        """Return the cells that are not there yet in a `frame`.

        >>> PanelSteps(cells=(0, 2, 1)).hidden(1)
        [1]
        """
        return [cell for cell, step in enumerate(self.cells) if self.fills and step is not None and step > frame]

    def current(self, frame: int) -> list[int]:
        """Return the cells whose turn comes in a `frame`.

        >>> PanelSteps(cells=(0, 2, 1)).current(1)
        [2]
        """
        return [cell for cell, step in enumerate(self.cells) if step == frame]


@dataclass(frozen=True, slots=True)
class Animation:
    """A scene that can be played: for each frame its caption, and for each panel the steps in which it is drawn.

    The last frame shows everything. `seconds` is the time from a frame to the next.

    >>> from tilewright.views import Grid, Scene
    >>> animation = Animation(Scene("two", (Grid(1, 2),)), ("one", "two"), (PanelSteps(cells=(0, 1)),))
    >>> len(animation.captions)
    2
    """

    scene: Scene
    captions: tuple[str, ...]
    steps: tuple[PanelSteps, ...]
    seconds: float = 0.25

    def __post_init__(self) -> None:
        if not self.captions or len(self.steps) != len(self.scene.panels):
            raise LayoutError(
                f"an animation of {len(self.scene.panels)} panels needs as many steps and at least one frame, "
                f"got {len(self.steps)} steps and {len(self.captions)} frames"
            )


@singledispatch
def animate(subject: object, **options: Any) -> Animation:
    """Animate a `subject`, step by step: a schedule, pipeline or trace, a copy plan, or a reshard.

    `options` are the options of its scene. `views.save` writes the result as a page that plays it (.html).

    >>> from tilewright.tiling import Schedule
    >>> animate(Schedule("double", 3)).captions[-1]
    'time 5 of 5'
    """
    types = "a Schedule, Pipeline, Trace, copy Plan or ReshardPlan"
    raise TypeError(f"cannot animate an object of type {type(subject).__name__!r}; expected {types}")


@animate.register(Schedule)
@animate.register(Pipeline)
@animate.register(Trace)
def _animate_times(subject: Schedule | Pipeline | Trace, **options: Any) -> Animation:
    scene = scene_of(subject, **options)
    tracks = [panel for panel in scene.panels if isinstance(panel, Tracks)]
    start, end = tracks[0].start, max(panel.end for panel in tracks)
    times = tuple(start + (end - start) * frame / MAX_FRAMES for frame in range(MAX_FRAMES + 1))
    captions = tuple(f"{tracks[0].unit} {time:.3g} of {end:.6g}" for time in times)
    captions = (*captions[:-1], f"{tracks[0].unit} {end:.6g} of {end:.6g}")
    return Animation(scene, captions, tuple(PanelSteps(times=times) for _ in scene.panels), 0.12)


@animate.register
def _animate_copy(subject: Plan, **options: Any) -> Animation:
    """Return the copy in the order of the target's addresses, which is the order of its loops."""
    scene = scene_of(subject, **options)
    source, target = (_only_grid(panel) for panel in scene.panels[:2])
    order = _order_of_addresses(target)
    group = -(-len(order) // MAX_FRAMES)
    frame_of = {link: rank // group for rank, link in enumerate(order)}
    reads, writes = (tuple(frame_of.get(link) for link in grid.link) for grid in (source, target))
    what = "elements" if target.block == (1, 1) else "blocks"
    counts = [min((frame + 1) * group, len(order)) for frame in range(-(-len(order) // group))]
    captions = tuple(f"{count} of {len(order)} {what} copied" for count in counts)
    return Animation(scene, captions, (PanelSteps(reads, fills=False), PanelSteps(writes)), 0.2)


def _only_grid(panel: Grid | Tracks) -> Grid:
    assert isinstance(panel, Grid)  # a copy plan is drawn as two grids
    return panel


def _order_of_addresses(grid: Grid) -> list[Any]:
    """Return the contents of the cells of a memory, in the order of their addresses."""
    names = [field.name for field in grid.fields]
    cells: Sequence[int] = range(len(grid.link))
    if "offset" in names:  # a grid of coordinates, painted by place
        offsets = grid.field("offset").values
        cells = sorted(cells, key=lambda cell: (offsets[cell] is None, offsets[cell]))
    return list(dict.fromkeys(grid.link[cell] for cell in cells if grid.link[cell] is not None))


@animate.register
def _animate_reshard(subject: ReshardPlan, **options: Any) -> Animation:
    """Return the requests of all RISCs in the order in which they issue them, on the chip."""
    if subject.is_empty:
        raise LayoutError(f"cannot animate {subject}: source and target are equal, so nothing moves")
    whole = scene_of(subject, **options)
    chip_map = ChipMap.of(subject, subject.steps)
    flows, arriving, _ = chip_map.panels()
    numbers: dict[tuple[int, int], int] = {}
    frames: list[tuple[int, ...]] = []
    captions: list[str] = []
    first: dict[int, int] = {}
    done, total = 0, sum(int(step.requests.nbytes.sum()) for step in subject.steps)
    for number, step in enumerate(subject.steps, 1):
        which = f"step {number} of {len(subject.steps)}: " if len(subject.steps) > 1 else ""
        for moves, nbytes in _request_rounds(step, chip_map, MAX_FRAMES // len(subject.steps) or 1):
            for _, target in moves:
                first.setdefault(target, len(frames))
            frames.append(tuple(numbers.setdefault(pair, len(numbers)) for pair in moves if pair[0] != pair[1]))
            done += nbytes
            captions.append(f"{which}{format_bytes(done)} of {format_bytes(total)} requested")
    arrows = tuple(Flow(source, target, 1) for source, target in numbers)
    panels = (replace(flows, flows=arrows, title="requests"), arriving)
    cells = tuple(first.get(cell) for cell in range(arriving.rows * arriving.columns))
    scene = Scene(whole.title, panels, tuple(reshard_facts(subject)), f"{count_of(len(arrows), 'flow')} in all.")
    frames.append(())
    captions.append(f"done: {format_bytes(total)}")
    return Animation(scene, tuple(captions), (PanelSteps(flows=tuple(frames)), PanelSteps(cells=cells)), 0.4)


def _request_rounds(step: ReshardStep, chip_map: ChipMap, most: int) -> list[tuple[list[tuple[int, int]], int]]:
    """Return the simultaneous flows, round by round: pairs of cells from and to, and their bytes; at most `most`."""
    requests = step.requests
    endpoints = requests.noc_map.endpoints
    positions = requests.position.tolist()
    rounds = max(positions, default=-1) + 1
    group = -(-rounds // most) or 1
    groups: list[tuple[dict[tuple[int, int], None], list[int]]] = [({}, []) for _ in range(-(-rounds // group))]
    rows = zip(positions, requests.owner.tolist(), requests.remote.tolist(), requests.nbytes.tolist(), strict=True)
    for position, owner, remote, nbytes in rows:
        cell = chip_map.cells[endpoints[int(requests.core[owner])]]
        remote_cell = chip_map.cells[endpoints[remote]]
        pairs, sizes = groups[position // group]
        pairs[(cell, remote_cell) if requests.writes[owner] else (remote_cell, cell)] = None
        sizes.append(nbytes)
    return [(list(pairs), sum(sizes)) for pairs, sizes in groups]


# Animations as a self-contained page with a player.

_START = """
const frames = JSON.parse(document.getElementById("frames").textContent);
play([...document.querySelectorAll("svg[data-panel]")], frames.paths, frames.captions,
  document.getElementById("player"), frames.seconds);
"""


def to_player(animation: Animation) -> str:
    """Return an `animation` as a self-contained HTML page with a button, a slider and captions.

    >>> from tilewright.tiling import Schedule
    >>> from tilewright.views.animation import animate
    >>> "<button" in to_player(animate(Schedule("double", 3)))
    True
    """
    drawings, data = draw_frames(animation)
    frames = len(animation.captions)
    controls = (
        '<div id="player"><button type="button">Play</button>'
        f'<input type="range" aria-label="frame" min="0" max="{frames - 1}" value="0"><output></output></div>'
    )
    return page_markup(
        animation.scene,
        drawings,
        above=f'{controls}<script id="frames" type="application/json">{embed_json(data)}</script>',
        script=read_asset("player.js") + _START,
    )


def draw_frames(animation: Animation) -> tuple[list[Drawing], dict[str, Any]]:
    """Return the data of a player: the panels of an `animation`, and the paths, captions and seconds of its frames.

    >>> from tilewright.tiling import Schedule
    >>> from tilewright.views.animation import animate
    >>> sorted(draw_frames(animate(Schedule("double", 3)))[1])
    ['captions', 'paths', 'seconds']
    """
    drawings = draw_panels(_without_arrows(animation.scene))
    frames = range(len(animation.captions))
    paths = [[_overlay_paths(*pair, frame) for pair in _panels(animation)] for frame in frames]
    data = {"paths": paths, "captions": animation.captions, "seconds": animation.seconds}
    return list(map(_draw_overlay, drawings)), data


def _panels(animation: Animation) -> list[tuple[Panel, PanelSteps]]:
    return list(zip(animation.scene.panels, animation.steps, strict=True))


def _without_arrows(scene: Scene) -> Scene:
    """Return a scene whose arrows are left to the frames; its cells are as large as with them."""
    no_arrow = (Flow(0, 0, 0),)
    panels = [
        replace(panel, flows=no_arrow) if isinstance(panel, Grid) and panel.flows else panel for panel in scene.panels
    ]
    return replace(scene, panels=tuple(panels))


def _draw_overlay(drawing: Drawing) -> Drawing:
    """Return a panel with the paths, still empty, of what a frame covers, connects and marks."""
    overlay = (
        f'<path class="tw-cover tw-paper" fill="{PAPER}" d=""/>',
        f'<path class="tw-current-flows tw-ink" fill="none" stroke="{INK}" stroke-width="1.2" d=""/>',
        f'<path class="tw-current" fill="none" stroke="{MARK}" stroke-width="2" d=""/>',
    )
    return replace(drawing, body=(*drawing.body, *overlay))


def _overlay_paths(panel: Panel, steps: PanelSteps, frame: int) -> tuple[str, str, str]:
    """Return the paths of one frame over a panel: the cells still missing, the current flows and cells."""
    if not isinstance(panel, Grid):
        left, top, scale = track_axis(panel)
        x, end = (left + (time - panel.start) * scale for time in (steps.times[frame], panel.end))
        height = track_height(panel) * len(panel.names)
        last = frame == len(steps.times) - 1
        return box_outlines([(x, top, end - x + 1, height)]), "", "" if last else f"M{x:g} {top - 4}v{height + 8}"
    cells = choose_geometry(panel)[0]

    def boxes(chosen: list[int]) -> str:
        return box_outlines([cells.box(*divmod(at, panel.columns), 1, n) for at, n in row_runs(chosen, panel.columns)])

    def middle(cell: int) -> tuple[float, float]:
        x, y, width, height = cells.box(*divmod(cell, panel.columns), 1, 1)
        return x + width / 2, y + height / 2

    flows = [panel.flows[number] for number in steps.flows[frame]] if steps.flows else []
    arrows = "".join([arrow_path(middle(flow.source), middle(flow.target)) for flow in flows])
    return boxes(steps.hidden(frame)), arrows, boxes(steps.current(frame))
