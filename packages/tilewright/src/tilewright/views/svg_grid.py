# SPDX-License-Identifier: Apache-2.0
"""A grid as a drawing: cells, labels, outlines, hatching and axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from .color_scales import INK, NOTHING, PALE_INK, Scale, candidate_labels, cell_colors, text_color_on
from .scene import Grid, Outline
from .svg_elements import INK as PADDING_INK
from .svg_elements import (
    LINE,
    MARK,
    MONO,
    Drawing,
    box_path,
    draw_legend,
    escape_text,
    hatch_path,
    text_element,
    text_width,
)
from .svg_flows import draw_flows

WIDEST, WIDEST_BOXES = 900, 2000  # pixels that the cells of one grid may take, also if it is drawn in boxes
MOST_LABELS = 4096
_PLAIN, _SMALL = 352, 7  # pixels of a grid without labels, and of its cells if they have to be small
_LABEL_SIZE, _LABEL_HEIGHT = 11, 18  # of the text in an outline, and the smallest height for it
_NAME_SIZE = 9
_FLOW_WIDTH, _FLOW_HEIGHT = 44, 40  # pixels of a cell with flows, at least: arrows need space between labels
_STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_STROKES = {
    "tile": f'stroke="{INK}" stroke-width="1.8"',
    "face": f'stroke="{INK}" stroke-width="0.9"',
    "plane": f'stroke="{INK}" stroke-width="1.8"',
    "slice": f'stroke="{INK}" stroke-width="0.9"',
    "halo": f'stroke="{INK}" stroke-width="1.2" stroke-dasharray="4 3"',
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
        return (
            self.left + column * self.width,
            self.top + row * self.height,
            columns * self.width,
            rows * self.height,
        )


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
    for labels in candidate_labels(grid) if grid.rows * grid.columns <= MOST_LABELS else ():
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
    >>> from tilewright.views.color_scales import make_scales
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
        body.append(
            hatch_path([_cell_box(grid, cells, start, count) for start, count in row_runs(hidden, grid.columns)])
        )
    body += draw_flows(grid, cells.left, cells.top, cells.width, cells.height)
    if cells.type_size:
        body += _draw_labels(grid, cells, labels, colors)
    words = _fit_outline_labels(grid.outlines, cells)
    return body + [
        part for outline in grid.outlines for part in _draw_outline(outline, cells, words.get(outline.label, ""))
    ]


def _draw_boxes(
    grid: Grid, cells: CellGeometry, labels: list[str], scales: dict[str, Scale], step: tuple[int, int]
) -> tuple[list[str], list[str]]:
    """Return the titles and row names of the boxes, and what is in them; `step` leads from a box to the next."""
    names, parts = [f'<g font-family="{MONO}">'], []
    for down, row in enumerate(grid.box_grids()):
        for across, box in enumerate(row):
            here = replace(cells, left=cells.left + across * step[0], top=cells.top + down * step[1])
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


def _cell_box(grid: Grid, cells: CellGeometry, at: int, count: int = 1) -> tuple[int, int, int, int]:
    return cells.box(at // grid.columns, at % grid.columns, 1, count)


def row_runs(cells: Sequence[int], columns: int) -> Iterator[tuple[int, int]]:
    """Yield (start, count) of neighbouring `cells` of a row of `columns`.

    >>> list(row_runs([1, 2, 4, 5], 4))
    [(1, 2), (4, 2)]
    """
    for _, run in groupby(enumerate(cells), key=lambda pair: (pair[1] - pair[0], pair[1] // columns)):
        found = [at for _, at in run]
        yield found[0], len(found)


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
    return [box_path(found, f'class="tw-cell" fill="{color}"') for color, found in painted.items()]


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
    groups: dict[str, list[str]] = {INK: [], PALE_INK: [], PADDING_INK: []}
    down = cells.height / 2 + cells.type_size * 0.36
    for at, (label, color) in enumerate(zip(labels, colors, strict=True)):
        if label:
            ink = PADDING_INK if grid.valid and not grid.valid[at] else text_color_on(color)
            x = cells.left + at % grid.columns * cells.width + cells.width / 2
            y = cells.top + at // grid.columns * cells.height + down
            groups[ink].append(f'<text x="{x:g}" y="{y:.4g}">{escape_text(label)}</text>')
    start = f'font-family="{MONO}" font-size="{cells.type_size}" text-anchor="middle"'
    tones = {INK: "tw-label", PALE_INK: "tw-label", PADDING_INK: "tw-label tw-ink"}
    return [
        f'<g class="{tones[ink]}" {start} fill="{ink}">' + "".join(found) + "</g>"
        for ink, found in groups.items()
        if found
    ]


def _fit_outline_labels(outlines: Sequence[Outline], cells: CellGeometry) -> dict[str, str]:
    """Return the text for each outline label: all of it, or the last word if an outline is too narrow."""
    if cells.type_size:
        return {}
    named = [(each, cells.box(each.row, each.column, each.rows, each.columns)) for each in outlines if each.label]
    named = [(each, box) for each, box in named if box[3] >= _LABEL_HEIGHT]
    for words in (
        {each.label: each.label for each, _ in named},
        {each.label: each.label.split()[-1] for each, _ in named},
    ):
        if all(text_width(words[each.label], _LABEL_SIZE) + 8 <= box[2] for each, box in named):
            return words
    return {}


def _draw_outline(outline: Outline, cells: CellGeometry, words: str) -> list[str]:
    x, y, width, height = cells.box(outline.row, outline.column, outline.rows, outline.columns)
    stroke = _STROKES[outline.kind]
    size = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    found = [f'<rect class="tw-{outline.kind}" {size} fill="none" {stroke}/>']
    if outline.kind == "mark":  # a pale rim keeps it visible on cells of the same color
        found.insert(0, f'<rect {size} fill="none" stroke="#ffffff" stroke-width="4.5"/>')
    if words and height >= _LABEL_HEIGHT:
        rim = 'paint-order="stroke" stroke="#ffffff" stroke-opacity="0.85" stroke-width="3" stroke-linejoin="round"'
        at = f'x="{x + 5}" y="{y + 14}" font-size="{_LABEL_SIZE}"'
        found.append(f'<text {at} fill="{INK}" {rim}>{escape_text(words)}</text>')
    return found


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
