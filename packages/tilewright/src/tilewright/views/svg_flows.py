# SPDX-License-Identifier: Apache-2.0
"""The flows of a grid as arrows between cells, thicker where more bytes go."""

from __future__ import annotations

from math import hypot

from .color_scales import INK
from .scene import MOST_FLOWS, Grid

_CURVE = 0.15  # how far an arrow bends, so that there and back are apart
_APART, _HEAD, _SPREAD = 11, 6, 3  # pixels from the middle of a cell, where its label is, and of the head
_FEW = 64  # flows that are drawn darker


def draw_flows(grid: Grid, left: float, top: float, width: float, height: float) -> list[str]:
    """Return the largest flows of a `grid` as one group; `left` and `top` are those of its cells, each of this size.

    >>> from tilewright.views.scene import Flow
    >>> draw_flows(Grid(1, 2, flows=(Flow(0, 1, 64),)), 0, 0, 40, 40)[0].count("<path")
    1
    """
    flows = sorted([flow for flow in grid.flows if flow.source != flow.target], key=lambda flow: -flow.nbytes)
    if not flows:
        return []
    paths: dict[float, list[str]] = {}
    for flow in flows[:MOST_FLOWS]:
        ends = [
            (left + (cell % grid.columns + 0.5) * width, top + (cell // grid.columns + 0.5) * height)
            for cell in (flow.source, flow.target)
        ]
        stroke = 0.6 + round(1.4 * flow.nbytes / flows[0].nbytes, 1)
        paths.setdefault(stroke, []).append(arrow_path(*ends))
    body = [f'<path stroke-width="{stroke:g}" d="{"".join(parts)}"/>' for stroke, parts in paths.items()]
    style = f'fill="none" stroke="{INK}" stroke-opacity="{0.55 if len(flows) <= _FEW else 0.3}"'
    return [f'<g class="tw-flows" {style}>{"".join(body)}</g>']


def arrow_path(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return the path of an arrow between two points, a little apart from both; it bends to the right.

    >>> arrow_path((0, 0), (40, 0))
    'M10.5 3.2Q20 6 29.5 3.2M22.9 2L29.5 3.2L24.6 7.8'
    """
    (x0, y0), (x1, y1) = start, end
    cx, cy = (x0 + x1) / 2 - _CURVE * (y1 - y0), (y0 + y1) / 2 + _CURVE * (x1 - x0)
    away = hypot(x1 - cx, y1 - cy) or 1.0  # the same at both ends
    x0, y0 = x0 + _APART * (cx - x0) / away, y0 + _APART * (cy - y0) / away
    dx, dy = (x1 - cx) / away, (y1 - cy) / away
    x, y = x1 - _APART * dx, y1 - _APART * dy
    back_x, back_y = x - _HEAD * dx, y - _HEAD * dy
    points = (x0, y0, cx, cy, x, y, back_x + _SPREAD * dy, back_y - _SPREAD * dx, x, y)
    words = [f"{round(value, 1):g}" for value in (*points, back_x - _SPREAD * dy, back_y + _SPREAD * dx)]
    return "M{} {}Q{} {} {} {}M{} {}L{} {}L{} {}".format(*words)
