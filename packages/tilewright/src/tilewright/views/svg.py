# SPDX-License-Identifier: Apache-2.0
"""A scene as SVG: panels side by side if they fit, facts beside or below them.

Tracks, for memory maps and schedules, are spans on a common axis; grids are drawn by `svg_grid`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from math import floor, hypot, log10
from textwrap import wrap

from .scene import MAX_FLOWS, Fact, Grid, Outline, Scene, Span, Tracks
from .scene_options import (
    DARK_INK,
    HEXADECIMAL,
    NOTHING,
    PALE_INK,
    Scale,
    candidate_labels,
    cell_colors,
    colored_kinds,
    format_value,
    hatched_kinds,
    make_scales,
    ramp_color,
    text_color_on,
)

# SVG elements as strings, with all text escaped; and legends made of them.

SANS = "ui-sans-serif, system-ui, Helvetica, Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
ADVANCE = 0.61  # width of a character relative to the font size: exact for monospaced fonts, generous for others

PAPER, INK, SOFT, LINE, MARK, GOOD = "#fdfcf9", "#1f2328", "#57606a", "#c4cad1", "#b3261e", "#1a7f37"
DARK = {"paper": "#16191d", "ink": "#e8eaed", "soft": "#a3adb8", "line": "#3d444d", "bad": "#ff8a80", "good": "#6fdd8b"}
LIGHT = {"paper": PAPER, "ink": INK, "soft": SOFT, "line": LINE, "bad": MARK, "good": GOOD}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A part of a picture, placed at the origin: its size in pixels, and its elements.

    >>> Drawing(10, 10, ("<rect/>",)).translate(5, 6)
    '<g transform="translate(5 6)"><rect/></g>'
    """

    width: float
    height: float
    body: tuple[str, ...]

    def translate(self, x: float, y: float) -> str:
        """Return the elements translated to a point.

        >>> Drawing(1, 1, ("<a/>", "<b/>")).translate(0, 2)
        '<g transform="translate(0 2)"><a/>\\n<b/></g>'
        """
        return f'<g transform="translate({x:g} {y:g})">' + "\n".join(self.body) + "</g>"


def text_width(words: str, size: float) -> float:
    """Return the width of a text in pixels at a font size.

    >>> text_width("offset", 10)
    36.6
    """
    return round(len(words) * ADVANCE * size, 2)


def escape_text(value: str) -> str:
    """Return text escaped for use in an attribute or an element.

    >>> escape_text('<script>"')
    '&lt;script&gt;&quot;'
    """
    if not value.isprintable():  # XML forbids control characters, even escaped
        value = "".join(c if c.isprintable() else "\ufffd" for c in value)
    return escape(value)


def text_element(
    x: float, y: float, words: str, size: float = 12, tone: str = "ink", anchor: str = "start", bold: bool = False
) -> str:
    """Return a text at a point; `tone` is ink, soft, good or bad.

    >>> text_element(0, 12, "a < b")
    '<text class="tw-ink" x="0" y="12" font-size="12" fill="#1f2328">a &lt; b</text>'
    """
    more = (f' text-anchor="{anchor}"' if anchor != "start" else "") + (' font-weight="600"' if bold else "")
    words = escape_text(words)
    return f'<text class="tw-{tone}" x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{LIGHT[tone]}"{more}>{words}</text>'


def box_path(cells: Sequence[tuple[float, float, float, float]], attributes: str) -> str:
    """Return one path with many boxes, each as (x, y, width, height).

    >>> box_path([(0, 0, 4, 2), (4, 0, 4, 2)], 'fill="red"')
    '<path fill="red" d="M0 0h4v2h-4zM4 0h4v2h-4z"/>'
    """
    return f'<path {attributes} d="{box_outlines(cells)}"/>'


def box_outlines(cells: Sequence[tuple[float, float, float, float]]) -> str:
    """Return the outlines of boxes, each as (x, y, width, height), as the data of a path.

    >>> box_outlines([(0, 0, 4, 2)])
    'M0 0h4v2h-4z'
    """
    return "".join([f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z" for x, y, w, h in cells])


def hatch_path(cells: Sequence[tuple[float, float, float, float]], gap: float = 7, crossed: bool = False) -> str:
    """Return diagonal strokes over boxes, which mark padding and unused cells.

    `crossed` adds the other diagonal, for a second kind. Strokes are drawn one by one, because SVG patterns need ids,
    which would clash if several pictures share a page.

    >>> hatch_path([(0, 0, 7, 7)]).count("M")
    2
    """
    strokes = []
    for x, y, w, h in cells:
        # lines x + y = c, on one raster for all boxes so that neighbours join
        c = (x + y) // gap * gap + gap
        while c < x + y + w + h:
            x0, x1 = max(x, c - y - h), min(x + w, c - y)
            strokes.append(f"M{x0:g} {c - x0:g}L{x1:g} {c - x1:g}")
            if crossed:  # the same strokes, mirrored
                strokes.append(f"M{x0:g} {2 * y + h - c + x0:g}L{x1:g} {2 * y + h - c + x1:g}")
            c += gap
    veil = box_path(cells, f'class="tw-paper" fill="{PAPER}" fill-opacity="0.62"')
    line = f'class="tw-hatch" stroke="{SOFT}" stroke-opacity="0.6" stroke-width="0.8"'
    return f'{veil}<path {line} fill="none" d="{"".join(strokes)}"/>'


def dark_style() -> str:
    """Return the style sheet for dark backgrounds; it affects only classes of our own.

    >>> "prefers-color-scheme: dark" in dark_style()
    True
    """
    rules = "".join(f".tw-{tone}{{fill:{color}}}" for tone, color in DARK.items() if tone != "line")
    rules += f".tw-line{{stroke:{DARK['line']}}}.tw-hatch{{stroke:{DARK['soft']}}}"
    return f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"


_SIZE = 10
_MAX_ENTRIES = 32
_BAR = 120


def draw_legend(
    panel: Grid | Tracks, scales: dict[str, Scale], width: float, colors_explained: bool = False
) -> Drawing:
    """Return the legend of a panel, at most `width` pixels wide; empty if there is nothing to explain.

    `colors_explained` omits the colors, which an earlier panel has explained.

    >>> draw_legend(Grid(1, 1), {}, 100).height
    0
    """
    if isinstance(panel, Tracks):
        scale = scales["kind"]
        entries = [(scale.color(kind), kind) for kind in colored_kinds(panel) if kind]
        return _draw_swatches(
            "", [] if colors_explained else entries, () if colors_explained else hatched_kinds(panel), width
        )
    hatched = (panel.hatched,) if panel.valid and not all(panel.valid) and panel.hatched else ()
    if not panel.color or colors_explained:
        return _draw_swatches("", [], hatched, width)
    scale = scales[panel.color]
    if scale.has_distinct_colors:
        seen = set(panel.field(panel.color).values)
        entries = [(scale.color(value), format_value(value, scale.form)) for value in scale.values if value in seen]
        return _draw_swatches(panel.color, entries, hatched, width)
    return _draw_color_bar(panel.color, scale, "".join(hatched))


def _draw_swatches(name: str, entries: Sequence[tuple[str, str]], hatched: Sequence[str], width: float) -> Drawing:
    body = []
    x, y = 0.0, 0
    if name and entries:
        body.append(text_element(0, 11, name, _SIZE, "soft"))
        x = text_width(name, _SIZE) + 10
    indent = x
    more = len(entries) - _MAX_ENTRIES
    listed = [*entries[:_MAX_ENTRIES], *([("", f"and {more} more")] if more > 0 else [])]
    widest = x
    hatches = [("crossed" if k else "hatched", word) for k, word in enumerate(hatched)]
    for color, word in [*listed, *hatches]:
        needed = 18 + text_width(word, _SIZE) + 8
        if x > indent and x + needed > width:
            x, y = indent, y + 16
        if color:
            body.append(_draw_swatch(x, y + 2, color))
        body.append(text_element(x + 15, y + 11, word, _SIZE))
        x += needed
        widest = max(widest, x)
    return Drawing(widest, y + 16 if body else 0, tuple(body))


def _draw_swatch(x: float, y: float, color: str) -> str:
    hatched = color in ("hatched", "crossed")
    fill = "none" if hatched else color
    box = f'<rect x="{x:g}" y="{y:g}" width="11" height="11" rx="2" fill="{fill}" class="tw-line" stroke="{LINE}"/>'
    return box + (hatch_path([(x, y, 11, 11)], 4, color == "crossed") if hatched else "")


def _draw_color_bar(name: str, scale: Scale, hatched: str) -> Drawing:
    """Return a color bar with its lowest and highest value."""
    low, high = (scale.values[0], scale.values[-1]) if scale.kind == "category" else (scale.low, scale.high)
    kind = "ramp" if scale.kind == "category" else scale.kind
    name += " (log)" if scale.log else ""
    lowest, highest = format_value(low, scale.form), format_value(high, scale.form)
    start = text_width(f"{name} {lowest}", _SIZE) + 6
    body = [text_element(0, 11, name, _SIZE, "soft"), text_element(start - 6, 11, lowest, _SIZE, "soft", "end")]
    step = _BAR // 16
    for k in range(16):
        color = escape_text(ramp_color(kind, k * 63 // 15))
        body.append(f'<rect x="{start + k * step:g}" y="2" width="{step}" height="11" fill="{color}"/>')
    end = start + 16 * step + 6
    body.append(text_element(end, 11, highest, _SIZE, "soft"))
    end += text_width(highest, _SIZE) + 12
    if hatched:
        body += [_draw_swatch(end, 2, "hatched"), text_element(end + 15, 11, hatched, _SIZE)]
        end += 15 + text_width(hatched, _SIZE)
    return Drawing(end, 16, tuple(body))


# The flows of a grid as arrows between cells, thicker where more bytes go.

_CURVE = 0.15  # how far an arrow bends, so that there and back are apart
_APART, _HEAD, _SPREAD = 11, 6, 3  # pixels from the middle of a cell, where its label is, and of the head
_FEW = 64  # flows that are drawn darker


def draw_flows(grid: Grid, left: float, top: float, width: float, height: float) -> list[str]:
    """Return the largest flows of a `grid` as one group; its cells start at `left` and `top`, each of this size.

    >>> from tilewright.views.scene import Flow
    >>> draw_flows(Grid(1, 2, flows=(Flow(0, 1, 64),)), 0, 0, 40, 40)[0].count("<path")
    1
    """
    flows = sorted([flow for flow in grid.flows if flow.source != flow.target], key=lambda flow: -flow.nbytes)
    if not flows:
        return []
    paths: dict[float, list[str]] = {}
    for flow in flows[:MAX_FLOWS]:
        ends = [
            (left + (cell % grid.columns + 0.5) * width, top + (cell // grid.columns + 0.5) * height)
            for cell in (flow.source, flow.target)
        ]
        stroke = 0.6 + round(1.4 * flow.nbytes / flows[0].nbytes, 1)
        paths.setdefault(stroke, []).append(arrow_path(*ends))
    body = [f'<path stroke-width="{stroke:g}" d="{"".join(parts)}"/>' for stroke, parts in paths.items()]
    style = f'fill="none" stroke="{DARK_INK}" stroke-opacity="{0.55 if len(flows) <= _FEW else 0.3}"'
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


# A grid as a drawing: cells, labels, outlines, hatching and axes.

WIDEST, WIDEST_BOXES = 900, 2000  # pixels that the cells of one grid may take, also if it is drawn in boxes
MAX_LABELS = 4096
_PLAIN, _SMALL = 352, 7  # pixels of a grid without labels, and of its cells if they have to be small
_LABEL_SIZE, _LABEL_HEIGHT = 11, 18  # of the text in an outline, and the smallest height for it
_NAME_SIZE = 9
_FLOW_WIDTH, _FLOW_HEIGHT = 44, 40  # pixels of a cell with flows, at least: arrows need space between labels
_STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_STROKES = {
    "tile": f'stroke="{DARK_INK}" stroke-width="1.8"',
    "face": f'stroke="{DARK_INK}" stroke-width="0.9"',
    "plane": f'stroke="{DARK_INK}" stroke-width="1.8"',
    "slice": f'stroke="{DARK_INK}" stroke-width="0.9"',
    "halo": f'stroke="{DARK_INK}" stroke-width="1.2" stroke-dasharray="4 3"',
    "mark": f'stroke="{MARK}" stroke-width="2.4"',
}


@dataclass(frozen=True, slots=True)
class CellGeometry:
    """The geometry of a grid in pixels: position of the first cell, size of a cell, font size of its label.

    >>> CellGeometry(30, 40, 20, 20, 9).box(1, 2, 1, 1)
    (70, 60, 20, 20)
    """

    left: int
    top: int
    width: int
    height: int
    type_size: int

    def box(self, row: int, column: int, rows: int, columns: int) -> tuple[int, int, int, int]:
        """Return x, y, width and height of a block of cells.

        >>> CellGeometry(0, 0, 10, 20, 0).box(1, 1, 2, 2)
        (10, 20, 20, 40)
        """
        return (self.left + column * self.width, self.top + row * self.height, columns * self.width, rows * self.height)


def choose_geometry(grid: Grid) -> tuple[CellGeometry, list[str]]:
    """Return the geometry of a grid and its labels: shorter or none if they would be too small to read.

    >>> choose_geometry(Grid(2, 2))[0].type_size
    0
    """
    gutter = max([text_width(name, _NAME_SIZE) for name in _row_names(grid)], default=0)
    gutter = max(gutter, text_width(f"{grid.row_axis} ↓", _NAME_SIZE) if grid.row_axis else 0)
    left, top = int(gutter) + 8, (22 if grid.title else 4) + (12 if grid.column_axis else 0) + 14
    wide = grid.boxes[1] if grid.boxes else grid.columns
    gaps = (grid.columns // wide - 1) * _box_margins(grid)[0]
    for labels in candidate_labels(grid) if grid.rows * grid.columns <= MAX_LABELS else ():
        longest = max(map(len, labels))
        for size in (11, 10, 9, 8):
            width = max(int(longest * 0.61 * size) + 7, size + 9)
            if grid.flows:
                width = max(width, _FLOW_WIDTH)
            if longest and width * grid.columns + gaps <= (WIDEST if grid.boxes is None else WIDEST_BOXES):
                height = _FLOW_HEIGHT if grid.flows else min(max(size + 9, width), size + 17)
                return CellGeometry(left, top, width, height, size), labels
    least = max(3, min(_SMALL, WIDEST // max(1, grid.columns)))
    side = max(least, min(22, _PLAIN // max(1, grid.columns, grid.rows)))
    return CellGeometry(left, top, side, side, 0), []


def _row_names(grid: Grid) -> list[str]:
    if grid.boxes is not None:
        return [name for names in grid.box_rows for name in names]
    return [grid.row_name(row) for row in range(grid.rows)]


def _box_margins(grid: Grid) -> tuple[int, int]:
    """Return the space to the left of a box, for the names of its rows, and above it, for its title."""
    names = max([text_width(name, _NAME_SIZE) for name in _row_names(grid)], default=0) if grid.boxes else 0
    return int(names) + 14, 20 if grid.box_titles else 12


def draw_grid(grid: Grid, scales: dict[str, Scale], number: int = 0, colors_explained: bool = False) -> Drawing:
    """Return a grid as a drawing; `number` identifies the panel, `colors_explained` omits the legend of colors.

    >>> from tilewright.views.scene import Field
    >>> grid = Grid(1, 2, (Field("bank", (0, 1)),), color="bank", label="bank")
    >>> from tilewright.views.scene_options import make_scales
    >>> from tilewright.views.scene import Scene
    >>> drawing = draw_grid(grid, make_scales(Scene("", (grid,))))
    >>> drawing.width > drawing.height
    True
    """
    cells, labels = choose_geometry(grid)
    data = f'data-panel="{number}" data-rows="{grid.rows}" data-columns="{grid.columns}"'
    body = [text_element(0, 14, grid.title, 13, bold=True)] if grid.title else []
    if grid.boxes is None:
        width, height = cells.width * grid.columns, cells.height * grid.rows
        body += _draw_axes(grid, cells)
        parts = _draw_contents(grid, cells, labels, scales)
    else:
        high, wide = grid.boxes
        left, above = _box_margins(grid)
        cells = replace(cells, left=left, top=(24 if grid.title else 0) + above)
        titles = max([text_width(title, _LABEL_SIZE) for title in grid.box_titles], default=0)
        right, down = max(cells.width * wide + left, int(titles) + 10), cells.height * high + above
        data += f' data-tall="{high}" data-wide="{wide}" data-right="{right}" data-down="{down}"'
        names, parts = _draw_boxes(grid, cells, labels, scales, (right, down))
        body += names
        width = (grid.columns // wide - 1) * right + max(cells.width * wide, int(titles))
        height = grid.rows // high * down - above
    data += f' data-left="{cells.left}" data-top="{cells.top}" data-width="{cells.width}" data-height="{cells.height}"'
    body += [f'<g class="tw-cells" {data}>', *parts, "</g>"]
    legend = draw_legend(grid, scales, max(width, 240), colors_explained)
    body.append(legend.translate(cells.left, cells.top + height + 8))
    full = max(cells.left + width + 2, cells.left + legend.width, text_width(grid.title, 13))
    return Drawing(full, cells.top + height + 8 + legend.height, tuple(body))


def _draw_contents(grid: Grid, cells: CellGeometry, labels: list[str], scales: dict[str, Scale]) -> list[str]:
    """Return the cells of a grid, or of a box of it, with their labels and outlines."""
    colors = cell_colors(grid, scales) or [NOTHING] * (grid.rows * grid.columns)
    body = [*_draw_cells(grid, cells, colors), _draw_grid_lines(grid, cells)]
    hidden = [k for k, valid in enumerate(grid.valid) if not valid]
    if hidden:
        runs = row_runs(hidden, grid.columns)
        body.append(hatch_path([cells.box(*divmod(start, grid.columns), 1, count) for start, count in runs]))
    body += draw_flows(grid, cells.left, cells.top, cells.width, cells.height)
    if cells.type_size:
        body += _draw_labels(grid, cells, labels, colors)
    words = _fit_outline_labels(grid.outlines, cells)
    return body + [
        part for outline in grid.outlines for part in _draw_outline(outline, cells, words.get(outline.label, ""))
    ]


def _draw_boxes(
    grid: Grid, cells: CellGeometry, labels: list[str], scales: dict[str, Scale], stride: tuple[int, int]
) -> tuple[list[str], list[str]]:
    """Return the titles and row names of the boxes, and their content; `stride` leads from a box to the next."""
    names, parts = [f'<g font-family="{MONO}">'], []
    for down, row in enumerate(grid.box_grids()):
        for across, box in enumerate(row):
            here = replace(cells, left=cells.left + across * stride[0], top=cells.top + down * stride[1])
            start = (down * box.rows * grid.columns) + across * box.columns
            own = [
                label
                for k in range(box.rows if labels else 0)
                for label in labels[start + k * grid.columns : start + k * grid.columns + box.columns]
            ]
            parts += _draw_contents(box, here, own, scales)
            parts += _draw_outline(Outline(0, 0, box.rows, box.columns), here, "")
            if box.title:
                names.append(text_element(here.left, here.top - 5, box.title, _LABEL_SIZE))
            for k, name in enumerate(box.row_names):
                y = here.top + (k + 0.5) * here.height + 3
                names.append(text_element(here.left - 5, y, name, _NAME_SIZE, "soft", "end"))
    return [*names, "</g>"], parts


def row_runs(cells: Sequence[int], columns: int) -> Iterator[tuple[int, int]]:
    """Yield (start, count) of neighbouring `cells` of a row of `columns`.

    >>> list(row_runs([1, 2, 4, 5], 4))
    [(1, 2), (4, 2)]
    """
    for _, run in groupby(enumerate(cells), key=lambda pair: (pair[1] - pair[0], pair[1] // columns)):
        positions = [at for _, at in run]
        yield positions[0], len(positions)


def _draw_cells(grid: Grid, cells: CellGeometry, colors: list[str]) -> list[str]:
    """Return one path per color; neighbouring cells of a row form one box."""
    painted: dict[str, list[tuple[float, float, float, float]]] = {}
    for row in range(grid.rows):
        start = row * grid.columns
        column = 0
        for color, run in groupby(colors[start : start + grid.columns]):
            count = sum(1 for _ in run)
            painted.setdefault(color, []).append(cells.box(row, column, 1, count))
            column += count
    return [box_path(boxes, f'class="tw-cell" fill="{color}"') for color, boxes in painted.items()]


def _draw_grid_lines(grid: Grid, cells: CellGeometry) -> str:
    """Return the thin lines between cells; none if cells are small."""
    if min(cells.width, cells.height) < 6:
        return ""
    x, y, width, height = cells.box(0, 0, grid.rows, grid.columns)
    lines = [f"M{x} {y + k * cells.height}h{width}" for k in range(1, grid.rows)]
    lines += [f"M{x + k * cells.width} {y}v{height}" for k in range(1, grid.columns)]
    return f'<path stroke="#ffffff" stroke-opacity="0.75" stroke-width="0.8" fill="none" d="{"".join(lines)}"/>'


def _draw_labels(grid: Grid, cells: CellGeometry, labels: list[str], colors: list[str]) -> list[str]:
    # Padding is covered by the background color, so its labels follow the theme.
    groups: dict[str, list[str]] = {DARK_INK: [], PALE_INK: [], INK: []}
    down = cells.height / 2 + cells.type_size * 0.36
    for at, (label, color) in enumerate(zip(labels, colors, strict=True)):
        if label:
            ink = INK if grid.valid and not grid.valid[at] else text_color_on(color)
            x = cells.left + at % grid.columns * cells.width + cells.width / 2
            y = cells.top + at // grid.columns * cells.height + down
            groups[ink].append(f'<text x="{x:g}" y="{y:.4g}">{escape_text(label)}</text>')
    start = f'font-family="{MONO}" font-size="{cells.type_size}" text-anchor="middle"'
    tones = {DARK_INK: "tw-label", PALE_INK: "tw-label", INK: "tw-label tw-ink"}
    return [
        f'<g class="{tones[ink]}" {start} fill="{ink}">' + "".join(texts) + "</g>"
        for ink, texts in groups.items()
        if texts
    ]


def _fit_outline_labels(outlines: Sequence[Outline], cells: CellGeometry) -> dict[str, str]:
    """Return the text for each outline label: all of it, or the last word if an outline is too narrow."""
    if cells.type_size:
        return {}
    labelled = [(mark, cells.box(mark.row, mark.column, mark.rows, mark.columns)) for mark in outlines if mark.label]
    labelled = [(outline, box) for outline, box in labelled if box[3] >= _LABEL_HEIGHT]
    for words in (
        {outline.label: outline.label for outline, _ in labelled},
        {outline.label: outline.label.split()[-1] for outline, _ in labelled},
    ):
        if all(text_width(words[outline.label], _LABEL_SIZE) + 8 <= box[2] for outline, box in labelled):
            return words
    return {}


def _draw_outline(outline: Outline, cells: CellGeometry, words: str) -> list[str]:
    x, y, width, height = cells.box(outline.row, outline.column, outline.rows, outline.columns)
    stroke = _STROKES[outline.kind]
    size = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    elements = [f'<rect class="tw-{outline.kind}" {size} fill="none" {stroke}/>']
    if outline.kind == "mark":  # a pale rim keeps it visible on cells of the same color
        elements.insert(0, f'<rect {size} fill="none" stroke="#ffffff" stroke-width="4.5"/>')
    if words and height >= _LABEL_HEIGHT:
        rim = 'paint-order="stroke" stroke="#ffffff" stroke-opacity="0.85" stroke-width="3" stroke-linejoin="round"'
        at = f'x="{x + 5}" y="{y + 14}" font-size="{_LABEL_SIZE}"'
        elements.append(f'<text {at} fill="{DARK_INK}" {rim}>{escape_text(words)}</text>')
    return elements


def _draw_axes(grid: Grid, cells: CellGeometry) -> list[str]:
    body = []
    if grid.column_axis:
        body.append(text_element(cells.left, cells.top - 16, f"{grid.column_axis} →", _NAME_SIZE, "soft"))
    if grid.row_axis:
        body.append(text_element(cells.left - 5, cells.top - 4, f"{grid.row_axis} ↓", _NAME_SIZE, "soft", "end"))
    names = [grid.column_name(column) for column in range(grid.columns)]
    step = _label_step(max([text_width(name, _NAME_SIZE) for name in names], default=0) + 4, cells.width)
    for column in range(0, grid.columns, step):
        x = cells.left + (column + 0.5) * cells.width
        body.append(text_element(x, cells.top - 4, names[column], _NAME_SIZE, "soft", "middle"))
    step = _label_step(_NAME_SIZE + 2, cells.height)
    for row in range(0, grid.rows, step):
        y = cells.top + (row + 0.5) * cells.height + 3
        body.append(text_element(cells.left - 5, y, grid.row_name(row), _NAME_SIZE, "soft", "end"))
    return [f'<g font-family="{MONO}">', *body, "</g>"]


def _label_step(needed: float, available: float) -> int:
    """Return the step between labels so that they do not overlap."""
    return next((step for step in _STEPS if step * available >= needed), _STEPS[-1])


def draw_frame(width: float, height: float) -> str:
    """Return the background of a picture.

    >>> 'rx="8"' in draw_frame(10, 10)
    True
    """
    size = f'width="{width - 1:g}" height="{height - 1:g}" rx="8"'
    return f'<rect class="tw-paper tw-line" x="0.5" y="0.5" {size} fill="#fdfcf9" stroke="{LINE}"/>'


PAGE = 1020  # pixels within which panels are set side by side
_MARGIN, _GAP = 18, 28
_FACT_SIZE, _FACT_COLUMNS = 11, 46
_SHORT = 300  # pixels of facts that may stand beside anything

WIDTH = 640  # pixels of the axis
_TITLE_SIZE = 10
_GUTTER = 56  # pixels at least, so that the axes of several panels stand under each other
_MAX_NOTES = 400  # spans that tell about themselves in the picture; a page always does
_WIDE = 20_000  # pixels of hatched tracks beyond which strokes are fewer


def draw_panels(scene: Scene) -> list[Drawing]:
    """Return every panel of a scene as a drawing; the legend of a color is drawn once.

    >>> len(draw_panels(Scene("", (Grid(2, 2), Grid(1, 1)))))
    2
    """
    scales = make_scales(scene)
    explained: set[str] = set()
    drawings = []
    for k, panel in enumerate(scene.panels):
        if isinstance(panel, Grid):
            drawings.append(draw_grid(panel, scales, k, panel.color in explained))
            explained.add(panel.color)
        else:
            drawings.append(draw_tracks(panel, scales, k, "kind" in explained))
            explained |= {"kind"} if set(scales["kind"].values) == set(colored_kinds(panel)) else set()
    return drawings


def draw_facts(facts: tuple[Fact, ...], columns: int = 1) -> Drawing:
    """Return the facts as a drawing in `columns` columns: each name with its value below it.

    >>> draw_facts((Fact("size", "32"),)).height
    37.0
    """
    blocks = [[fact.name, *(wrap(fact.value, _FACT_COLUMNS) or [""])] for fact in facts]
    width = text_width("x" * max([len(line) for block in blocks for line in block], default=0), _FACT_SIZE)
    average = sum(_fact_height(block) for block in blocks) / columns
    body = []
    x = y = lowest = 0.0
    column = 0
    for fact, block in zip(facts, blocks, strict=True):
        if y and y + _fact_height(block) / 2 > average and column + 1 < columns:
            x, y, column = x + width + _GAP, 0.0, column + 1
        body.append(text_element(x, y + 11, block[0], 10, "soft"))
        tone = "ink" if fact.tone == "plain" else fact.tone
        for k, line in enumerate(block[1:]):
            body.append(text_element(x, y + 25 + 15 * k, line, _FACT_SIZE, tone, bold=fact.tone != "plain"))
        y += _fact_height(block)
        lowest = max(lowest, y)
    return Drawing(x + width, lowest, tuple(body))


def _fact_height(block: list[str]) -> int:
    return 22 + 15 * (len(block) - 1)


def to_svg(scene: Scene) -> str:
    """Return a `scene` as SVG.

    >>> to_svg(Scene("nothing", (Grid(2, 2),)))[:4]
    '<svg'
    """
    return compose_svg(scene, draw_panels(scene))


def compose_svg(scene: Scene, panels: list[Drawing]) -> str:
    """Return a `scene` as SVG, with its `panels` as they have been drawn.

    >>> compose_svg(Scene("nothing"), [])[:4]
    '<svg'
    """
    drawings = list(panels)
    if scene.facts:
        column = draw_facts(scene.facts)
        tallest = max([drawing.height for drawing in drawings], default=column.height)
        beside = sum(drawing.width + _GAP for drawing in drawings) + column.width + _MARGIN <= PAGE
        beside &= column.height <= max(2 * tallest, _SHORT)  # beside a much lower picture most would be empty
        drawings.append(draw_facts(scene.facts, 1 if beside else min(3, len(scene.facts))))
    body = [text_element(_MARGIN, _MARGIN + 13, scene.title, 15, bold=True)]
    y: float = _MARGIN + 30
    for line in wrap(scene.note, 150):
        body.append(text_element(_MARGIN, y + 4, line, 11, "soft"))
        y += 16
    x: float = _MARGIN
    y, row_height = y + 4, 0.0
    right = _MARGIN + max(
        text_width(scene.title, 15), *(text_width(line, 11) * 0.92 for line in wrap(scene.note, 150)), 0
    )
    for k, drawing in enumerate(drawings):
        if x > _MARGIN and (x + drawing.width > PAGE or k in scene.breaks):
            x, y, row_height = _MARGIN, y + row_height + _GAP, 0.0
        body.append(drawing.translate(x, round(y, 1)))
        right = max(right, x + drawing.width)
        x = round(x + drawing.width + _GAP, 1)
        row_height = max(row_height, drawing.height)
    width, height = round(right + _MARGIN), round(y + row_height + _MARGIN)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    title = f"<title>{escape_text(scene.title)}</title>"
    return "\n".join(
        [f'{head} role="img" font-family="{SANS}">{title}', dark_style(), draw_frame(width, height), *body, "</svg>\n"]
    )


def track_height(tracks: Tracks) -> int:
    """Return the height of a track in pixels: smaller if there are many.

    >>> track_height(Tracks(("bank 0",))), track_height(Tracks(tuple("abcdefgh" * 20)))
    (24, 6)
    """
    return max(6, min(24, 960 // max(1, len(tracks.names))))


def axis_ticks(start: float, end: float, most: int = 8, binary: bool = True) -> list[float]:
    """Return round numbers between two, at most `most`; for large ones powers of two, if `binary`, as for byte counts.

    >>> axis_ticks(0, 6202, binary=False)
    [0, 1000, 2000, 3000, 4000, 5000, 6000]
    >>> axis_ticks(0, 100), axis_ticks(0, 1 << 20)
    ([0, 20, 40, 60, 80, 100], [0, 131072, 262144, 393216, 524288, 655360, 786432, 917504, 1048576])
    """
    width = end - start
    if binary and width >= 4096 and float(width).is_integer():
        step: float = 1 << max(0, (int(width) // most - 1).bit_length())
    else:
        base = 10.0 ** floor(log10(width / most))
        step = next(base * factor for factor in (1, 2, 5, 10) if base * factor * most >= width)
        step = int(step) if step >= 1 else step
    first = int(-(-start // step))
    return [k * step for k in range(first, int(end // step) + 1)]


def format_position(value: float, step: float = 0, hexadecimal: bool = False) -> str:
    """Return a position on an axis as text: in K or M (1024 or 1024 x 1024) where steps are multiples of it.

    With `hexadecimal` it is written as an address.

    >>> format_position(2048, 1024, hexadecimal=True)
    '0x800'
    >>> format_position(2048, 1024), format_position(1500), format_position(0.25), format_position(3 << 20, 1 << 20)
    ('2K', '1500', '0.25', '3M')
    """
    if hexadecimal:
        return format_value(int(value), HEXADECIMAL)
    for unit, size in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if step and step % size == 0 and value % size == 0:
            return f"{value // size:d}{unit}" if value else "0"
    return f"{value:.7g}"


def track_axis(tracks: Tracks) -> tuple[int, int, float]:
    """Return where the axis of `tracks` begins, from the left and the top, and the pixels of a unit.

    >>> track_axis(Tracks(("bank 0",), end=128))
    (66, 18, 5.0)
    """
    left = int(max([_GUTTER, *(text_width(name, _TITLE_SIZE) for name in tracks.names)])) + 10
    return left, 40 if tracks.title else 18, WIDTH / (tracks.end - tracks.start)


def draw_tracks(tracks: Tracks, scales: dict[str, Scale], number: int = 0, colors_explained: bool = False) -> Drawing:
    """Return tracks as a drawing; `number` identifies the panel, `colors_explained` omits the legend of colors.

    >>> from tilewright.views.scene import Scene
    >>> from tilewright.views.scene_options import make_scales
    >>> tracks = Tracks(("bank 0",), (Span(0, 0, 64, "a", "a"),), end=128)
    >>> draw_tracks(tracks, make_scales(Scene("", (tracks,)))).height > 24
    True
    """
    height = track_height(tracks)
    left, top, scale = track_axis(tracks)
    body = [text_element(0, 14, tracks.title, 13, bold=True)] if tracks.title else []
    body += _draw_axis(tracks, left, top, scale, height)
    body.append(f'<g class="tw-tracks" data-panel="{number}" stroke="{DARK_INK}" stroke-width="0.5">')
    with_notes = len(tracks.spans) <= _MAX_NOTES
    kinds = hatched_kinds(tracks)
    hatches: dict[str, list[tuple[float, float, float, float]]] = {kind: [] for kind in kinds}
    colors = scales["kind"].colors(span.kind for span in tracks.spans if not span.hatched)
    for k, span in enumerate(tracks.spans):
        x, width = left + (span.start - tracks.start) * scale, max((span.end - span.start) * scale, 0.75)
        y = top + span.track * height
        box = (round(x, 2), y + 1, round(width, 2), height - 2)
        if span.hatched:
            hatches[span.kind or "unused"].append(box)
        body.append(_draw_span(k, span.note if with_notes else "", box, NOTHING if span.hatched else colors[span.kind]))
    body.append("</g>")
    for kind, boxes in hatches.items():
        gap = 7 if sum(box[2] for box in boxes) < _WIDE else 21
        body.append(hatch_path(boxes, gap, crossed=kind != kinds[0]))
    body += [
        part for span in tracks.spans if (part := _draw_span_label(tracks, span, left, top, scale, height, colors))
    ]
    bottom = top + len(tracks.names) * height
    legend = draw_legend(tracks, scales, WIDTH, colors_explained)
    body.append(legend.translate(left, bottom + 8))
    return Drawing(left + WIDTH + 30, bottom + 8 + legend.height, tuple(body))


def _draw_span(k: int, note: str, box: tuple[float, float, float, float], color: str) -> str:
    x, y, width, height = box
    rect = f'<rect data-span="{k}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{color}"'
    return f"{rect}><title>{escape_text(note)}</title></rect>" if note else f"{rect}/>"


def _draw_span_label(
    tracks: Tracks, span: Span, left: float, top: float, scale: float, height: int, colors: dict[str, str]
) -> str:
    """Return the words on a span, shortened to fit; none where nothing readable would fit."""
    width = (span.end - span.start) * scale
    fits = int((width - 6) / (10 * 0.61))
    if height < 14 or fits < min(3, len(span.label)) or not span.label:
        return ""
    words = span.label if len(span.label) <= fits else span.label[: fits - 1] + "…"
    x = left + (span.start - tracks.start) * scale + width / 2
    y = top + span.track * height + height / 2 + 3.5
    ink = DARK_INK if span.hatched else text_color_on(colors[span.kind])
    tone = 'class="tw-ink" ' if span.hatched else ""
    at = f'x="{x:.5g}" y="{y:g}" font-size="10" fill="{ink}" text-anchor="middle"'
    return f"<text {tone}{at}>{escape_text(words)}</text>"


def _draw_axis(tracks: Tracks, left: int, top: int, scale: float, height: int) -> list[str]:
    body = [f'<g font-family="{MONO}">']
    step = max(1, -(-(_TITLE_SIZE + 2) // height))
    for track in range(0, len(tracks.names), step):
        y = top + (track + 0.5) * height + 3.5
        body.append(text_element(left - 6, y, tracks.names[track], _TITLE_SIZE, "soft", "end"))
    lines = []
    bottom = len(tracks.names) * height
    marks = axis_ticks(tracks.start, tracks.end, binary=tracks.unit == "bytes")
    apart = marks[1] - marks[0] if len(marks) > 1 else 0
    for tick in marks:
        x = round(left + (tick - tracks.start) * scale, 2)
        lines.append(f"M{x:g} {top - 3}v{bottom + 3}")
        body.append(text_element(x, top - 6, format_position(tick, apart, tracks.hexadecimal), 9, "soft", "middle"))
    if tracks.unit:
        body.append(text_element(left - 16, top - 6, f"{tracks.unit} →", 9, "soft", "end"))
    body.append("</g>")
    body.append(f'<path class="tw-line" stroke="{LINE}" stroke-width="0.7" fill="none" d="{"".join(lines)}"/>')
    rules = "".join(f"M{left} {top + k * height}h{WIDTH}" for k in range(len(tracks.names) + 1))
    body.append(f'<path class="tw-line" stroke="{SOFT}" stroke-opacity="0.35" stroke-width="0.5" d="{rules}"/>')
    return body
