# SPDX-License-Identifier: Apache-2.0
"""Animations as a self-contained page with a player."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .animation import Animation, PanelSteps
from .html import embed_json, page_markup, read_asset
from .scene import Flow, Grid, Panel, Scene
from .svg import draw_panels, track_axis, track_height
from .svg_elements import INK, MARK, PAPER, Drawing, box_outlines
from .svg_flows import arrow_path
from .svg_grid import choose_geometry, row_runs

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
    """Return what a player needs: the panels of an `animation`, and the paths, captions and seconds of its frames.

    >>> from tilewright.tiling import Schedule
    >>> from tilewright.views.animation import animate
    >>> sorted(draw_frames(animate(Schedule("double", 3)))[1])
    ['captions', 'paths', 'seconds']
    """
    drawings = draw_panels(_without_arrows(animation.scene))
    frames = range(len(animation.captions))
    paths = [[_overlay_paths(*pair, frame) for pair in _panels(animation)] for frame in frames]
    data = {"paths": paths, "captions": animation.captions, "seconds": animation.seconds}
    return [_draw_overlay(drawing, ("", "", "")) for drawing in drawings], data


def _panels(animation: Animation) -> list[tuple[Panel, PanelSteps]]:
    return list(zip(animation.scene.panels, animation.steps, strict=True))


def _without_arrows(scene: Scene) -> Scene:
    """Return a scene whose arrows are left to the frames; its cells are as large as with them."""
    no_arrow = (Flow(0, 0, 0),)
    panels = [
        replace(panel, flows=no_arrow) if isinstance(panel, Grid) and panel.flows else panel for panel in scene.panels
    ]
    return replace(scene, panels=tuple(panels))


def _draw_overlay(drawing: Drawing, paths: tuple[str, str, str]) -> Drawing:
    """Return a panel with what one frame covers, connects and marks."""
    cover, flows, current = paths
    overlay = (
        f'<path class="tw-cover tw-paper" fill="{PAPER}" d="{cover}"/>',
        f'<path class="tw-current-flows tw-ink" fill="none" stroke="{INK}" stroke-width="1.2" d="{flows}"/>',
        f'<path class="tw-current" fill="none" stroke="{MARK}" stroke-width="2" d="{current}"/>',
    )
    return replace(drawing, body=(*drawing.body, *overlay))


def _overlay_paths(panel: Panel, steps: PanelSteps, frame: int) -> tuple[str, str, str]:
    """Return the paths of one frame over a panel: what is not there yet, the flows under way, and what is current."""
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
