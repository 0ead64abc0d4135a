# SPDX-License-Identifier: Apache-2.0
"""A grid as a drawing: cells painted in runs of one colour, their labels, outlines, hatching and names of the axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from .color_scales import INK, NOTHING, PALE_INK, Scale, cell_colours, ink_on, labels_to_try
from .scene import Grid, Outline
from .svg_elements import INK as PADDING_INK
from .svg_elements import LINE, MARK, MONO, Drawing, attribute, boxes, hatching, legend_of, text, width_of

WIDEST = 900  # pixels that the cells of one grid may take
MOST_LABELS = 4096
_PLAIN, _SMALL = 352, 7  # pixels of a grid without labels, and of its cells if they have to be small
_LABEL_SIZE, _LABEL_HEIGHT = 11, 18  # of the words in an outline, and the least height that it needs for them
_NAME_SIZE = 9
_STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_STROKES = {
    "tile": f'stroke="{INK}" stroke-width="1.8"',
    "face": f'stroke="{INK}" stroke-width="0.9"',
    "halo": f'stroke="{INK}" stroke-width="1.2" stroke-dasharray="4 3"',
    "mark": f'stroke="{MARK}" stroke-width="2.4"',
}


@dataclass(frozen=True, slots=True)
class Cells:
    """The geometry of a grid in pixels: where its first cell starts, how large a cell is, the size of type in it.

    >>> Cells(30, 40, 20, 20, 9).box(1, 2, 1, 1)
    (70, 60, 20, 20)
    """

    left: int
    top: int
    width: int
    height: int
    type_size: int

    def box(self, row: int, column: int, rows: int, columns: int) -> tuple[int, int, int, int]:
        """Return x, y, width and height of a block of cells.

        >>> Cells(0, 0, 10, 20, 0).box(1, 1, 2, 2)
        (10, 20, 20, 40)
        """
        return (
            self.left + column * self.width,
            self.top + row * self.height,
            columns * self.width,
            rows * self.height,
        )


def cells_of(grid: Grid) -> tuple[Cells, list[str]]:
    """Return the geometry of a grid and its labels: shorter ones, or none, where they would be too small to read.

    >>> cells_of(Grid(2, 2))[0].type_size
    0
    """
    gutter = max([width_of(name, _NAME_SIZE) for name in _row_names(grid)], default=0)
    gutter = max(gutter, width_of(f"{grid.row_axis} ↓", _NAME_SIZE) if grid.row_axis else 0)
    left, top = int(gutter) + 8, (22 if grid.title else 4) + (12 if grid.column_axis else 0) + 14
    for labels in labels_to_try(grid) if grid.rows * grid.columns <= MOST_LABELS else ():
        longest = max(map(len, labels))
        for size in (11, 10, 9, 8):
            width = max(int(longest * 0.61 * size) + 7, size + 9)
            if longest and width * grid.columns <= WIDEST:
                return Cells(left, top, width, min(max(size + 9, width), size + 17), size), labels
    least = max(3, min(_SMALL, WIDEST // max(1, grid.columns)))
    side = max(least, min(22, _PLAIN // max(1, grid.columns, grid.rows)))
    return Cells(left, top, side, side, 0), []


def _row_names(grid: Grid) -> list[str]:
    return [grid.row_name(row) for row in range(grid.rows)]


def draw_grid(grid: Grid, scales: dict[str, Scale], number: int = 0, again: bool = False) -> Drawing:
    """Return a grid as a drawing; `number` is what a page calls the panel, `again` that its colours are explained.

    >>> from tilewright.views.scene import Field
    >>> grid = Grid(1, 2, (Field("bank", (0, 1)),), color="bank", label="bank")
    >>> from tilewright.views.color_scales import scales_of
    >>> from tilewright.views.scene import Scene
    >>> drawing = draw_grid(grid, scales_of(Scene("", (grid,))))
    >>> drawing.width > drawing.height
    True
    """
    cells, labels = cells_of(grid)
    colours = cell_colours(grid, scales) or [NOTHING] * (grid.rows * grid.columns)
    width, height = cells.width * grid.columns, cells.height * grid.rows
    data = f'data-panel="{number}" data-rows="{grid.rows}" data-columns="{grid.columns}"'
    data += f' data-left="{cells.left}" data-top="{cells.top}" data-width="{cells.width}" data-height="{cells.height}"'
    body = [text(0, 14, grid.title, 13, bold=True)] if grid.title else []
    body += _axes(grid, cells)
    body.append(f'<g class="tw-cells" {data}>')
    body += _paint(grid, cells, colours)
    body.append(_rules(grid, cells))
    hidden = [k for k, valid in enumerate(grid.valid) if not valid]
    if hidden:
        body.append(hatching([_cell(grid, cells, start, count) for start, count in _runs(hidden, grid.columns)]))
    if cells.type_size:
        body += _labels(grid, cells, labels, colours)
    words = _outline_words(grid.outlines, cells)
    body += [part for outline in grid.outlines for part in _outline(outline, cells, words.get(outline.label, ""))]
    body.append("</g>")
    legend = legend_of(grid, scales, max(width, 240), again)
    body.append(legend.placed(cells.left, cells.top + height + 8))
    full = max(cells.left + width + 2, cells.left + legend.width, width_of(grid.title, 13))
    return Drawing(full, cells.top + height + 8 + legend.height, tuple(body))


def _cell(grid: Grid, cells: Cells, at: int, count: int = 1) -> tuple[int, int, int, int]:
    return cells.box(at // grid.columns, at % grid.columns, 1, count)


def _runs(cells: Sequence[int], columns: int) -> Iterator[tuple[int, int]]:
    """Yield (start, count) of neighbouring cells of a row."""
    for _, run in groupby(enumerate(cells), key=lambda pair: (pair[1] - pair[0], pair[1] // columns)):
        found = [at for _, at in run]
        yield found[0], len(found)


def _paint(grid: Grid, cells: Cells, colours: list[str]) -> list[str]:
    """Return a path for each colour: neighbours of one colour in a row are one box."""
    painted: dict[str, list[tuple[float, float, float, float]]] = {}
    for row in range(grid.rows):
        start = row * grid.columns
        column = 0
        for colour, run in groupby(colours[start : start + grid.columns]):
            count = sum(1 for _ in run)
            painted.setdefault(colour, []).append(cells.box(row, column, 1, count))
            column += count
    return [boxes(found, f'class="tw-cell" fill="{colour}"') for colour, found in painted.items()]


def _rules(grid: Grid, cells: Cells) -> str:
    """Return the thin lines between cells, left out where cells are small."""
    if min(cells.width, cells.height) < 6:
        return ""
    x, y, width, height = cells.box(0, 0, grid.rows, grid.columns)
    lines = [f"M{x} {y + k * cells.height}h{width}" for k in range(1, grid.rows)]
    lines += [f"M{x + k * cells.width} {y}v{height}" for k in range(1, grid.columns)]
    return f'<path stroke="#ffffff" stroke-opacity="0.75" stroke-width="0.8" fill="none" d="{"".join(lines)}"/>'


def _labels(grid: Grid, cells: Cells, labels: list[str], colours: list[str]) -> list[str]:
    # Padding lies under a veil of paper, so that its labels have to change with the paper.
    groups: dict[str, list[str]] = {INK: [], PALE_INK: [], PADDING_INK: []}
    down = cells.height / 2 + cells.type_size * 0.36
    for at, (label, colour) in enumerate(zip(labels, colours, strict=True)):
        if label:
            ink = PADDING_INK if grid.valid and not grid.valid[at] else ink_on(colour)
            x = cells.left + at % grid.columns * cells.width + cells.width / 2
            y = cells.top + at // grid.columns * cells.height + down
            groups[ink].append(f'<text x="{x:g}" y="{y:.4g}">{attribute(label)}</text>')
    start = f'font-family="{MONO}" font-size="{cells.type_size}" text-anchor="middle"'
    tones = {INK: "tw-label", PALE_INK: "tw-label", PADDING_INK: "tw-label tw-ink"}
    return [
        f'<g class="{tones[ink]}" {start} fill="{ink}">' + "".join(found) + "</g>"
        for ink, found in groups.items()
        if found
    ]


def _outline_words(outlines: Sequence[Outline], cells: Cells) -> dict[str, str]:
    """Return what is written into outlines by their labels: all of it, or where one is too narrow the last words."""
    if cells.type_size:
        return {}
    named = [(each, cells.box(each.row, each.column, each.rows, each.columns)) for each in outlines if each.label]
    named = [(each, box) for each, box in named if box[3] >= _LABEL_HEIGHT]
    for words in (
        {each.label: each.label for each, _ in named},
        {each.label: each.label.split()[-1] for each, _ in named},
    ):
        if all(width_of(words[each.label], _LABEL_SIZE) + 8 <= box[2] for each, box in named):
            return words
    return {}


def _outline(outline: Outline, cells: Cells, words: str) -> list[str]:
    x, y, width, height = cells.box(outline.row, outline.column, outline.rows, outline.columns)
    stroke = _STROKES[outline.kind]
    size = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    found = [f'<rect class="tw-{outline.kind}" {size} fill="none" {stroke}/>']
    if outline.kind == "mark":  # a pale rim, or it would drown in cells of its own colour
        found.insert(0, f'<rect {size} fill="none" stroke="#ffffff" stroke-width="4.5"/>')
    if words and height >= _LABEL_HEIGHT:
        rim = 'paint-order="stroke" stroke="#ffffff" stroke-opacity="0.85" stroke-width="3" stroke-linejoin="round"'
        at = f'x="{x + 5}" y="{y + 14}" font-size="{_LABEL_SIZE}"'
        found.append(f'<text {at} fill="{INK}" {rim}>{attribute(words)}</text>')
    return found


def _axes(grid: Grid, cells: Cells) -> list[str]:
    body = []
    if grid.column_axis:
        body.append(text(cells.left, cells.top - 16, f"{grid.column_axis} →", _NAME_SIZE, "soft"))
    if grid.row_axis:
        body.append(text(cells.left - 5, cells.top - 4, f"{grid.row_axis} ↓", _NAME_SIZE, "soft", "end"))
    names = [grid.column_name(column) for column in range(grid.columns)]
    step = _step(max([width_of(name, _NAME_SIZE) for name in names], default=0) + 4, cells.width)
    for column in range(0, grid.columns, step):
        x = cells.left + (column + 0.5) * cells.width
        body.append(text(x, cells.top - 4, names[column], _NAME_SIZE, "soft", "middle"))
    step = _step(_NAME_SIZE + 2, cells.height)
    for row in range(0, grid.rows, step):
        y = cells.top + (row + 0.5) * cells.height + 3
        body.append(text(cells.left - 5, y, grid.row_name(row), _NAME_SIZE, "soft", "end"))
    return [f'<g font-family="{MONO}">', *body, "</g>"]


def _step(needed: float, room: float) -> int:
    """Return of how many names one is written, so that they do not touch."""
    return next((step for step in _STEPS if step * room >= needed), _STEPS[-1])


def frame(width: float, height: float) -> str:
    """Return the paper under a picture.

    >>> 'rx="8"' in frame(10, 10)
    True
    """
    size = f'width="{width - 1:g}" height="{height - 1:g}" rx="8"'
    return f'<rect class="tw-paper tw-line" x="0.5" y="0.5" {size} fill="#fdfcf9" stroke="{LINE}"/>'
