# SPDX-License-Identifier: Apache-2.0
"""A grid as lines of text: labels where they fit, one or two characters a cell where they do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .color_scales import CATEGORIES, Scale, cell_colours, labels_to_try
from .scene import Grid
from .terminal import Ink, plain

_SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SHADES = "@%#*+=-:. "  # dark to pale, like the ramp
_STEPS = (1, 2, 4, 8, 16, 32, 64)
_BARS = {"tile": ("│", "─", "┼"), "face": ("┊", "┄", "┼")}


@dataclass(frozen=True, slots=True)
class _Page:
    """What of a grid is shown (None stands for what is left out), and how wide a cell is."""

    rows: list[int | None]
    columns: list[int | None]
    gutter: int
    cell: int
    gap: str
    bars: dict[int, str]  # columns with a line before them
    rules: dict[int, str]  # rows with a line above them


def grid_lines(grid: Grid, scales: dict[str, Scale], ink: Ink, width: int, height: int) -> list[str]:
    """Return a grid as lines of at most `width` columns, about `height` of them.

    >>> from tilewright.views.scene import Field
    >>> grid = Grid(2, 3, (Field("offset", (0, 1, 2, 3, 4, 5), "ramp"),), label="offset")
    >>> print(*grid_lines(grid, {}, Ink(False), 80, 40), sep="\\n")
        0 1 2
      0 0 1 2
      1 3 4 5
    """
    names = [plain(grid.row_name(row)) for row in range(grid.rows)]
    gutter = max([len(name) for name in names], default=0) + 3
    page, labels = _fit(grid, gutter, width, height) or (_squeezed(grid, gutter, width, height), [])
    written = bool(labels)
    colours = cell_colours(grid, scales)
    marks = labels if written else _marks(grid, scales)

    marked = _marked(grid)

    def cell(at: int) -> str:
        if not written and at in marked:
            return ink.paint("X" * page.cell, colours[at]) if colours else "X" * page.cell
        if grid.valid and not grid.valid[at]:
            return "/" * page.cell
        word = "" if not written and ink.on else marks[at] if marks else ""
        shown = f"{word:>{page.cell}}" if written else (word or " ") * page.cell
        return ink.paint(shown, colours[at]) if colours else shown

    lines = [f"  {plain(grid.title)}"] if grid.title else []
    lines += _header(grid, page, width)
    for row in page.rows:
        if row is None:
            lines.append(" " * page.gutter + "⋮")
            continue
        if row in page.rules:
            lines.append(_rule(page, page.rules[row]))
        lines.append(_row(grid, page, row, names[row], cell, marked if written else frozenset()))
    return lines


def labels_fit(grid: Grid, width: int) -> bool:
    """Return whether labels are written into the cells of a grid at this width.

    >>> labels_fit(Grid(1, 2), 80)
    False
    """
    gutter = max([len(plain(grid.row_name(row))) for row in range(grid.rows)], default=0) + 3
    return _fit(grid, gutter, width, 1) is not None


def _fit(grid: Grid, gutter: int, width: int, height: int) -> tuple[_Page, list[str]] | None:
    """Return the page with every column, and its labels; None where the width does not do."""
    bars, rules = _boundaries(grid)
    columns: list[int | None] = list(range(grid.columns))
    for labels in labels_to_try(grid):
        labels = [plain(label) for label in labels]
        cell = max(map(len, labels))
        for kept in (bars, {}):
            if cell and gutter + grid.columns * (cell + 1) + 2 * len(kept) <= width:
                lines = rules if kept or not bars else {}
                return _Page(_elided(grid.rows, height), columns, gutter, cell, " ", kept, lines), labels
    return None


def _squeezed(grid: Grid, gutter: int, width: int, height: int) -> _Page:
    """Return the page with cells of one or two characters, and the middle columns left out if need be."""
    bars, rules = _boundaries(grid)
    room = width - gutter
    for cell in (2, 1):
        for kept in (bars, {}):
            if grid.columns * cell + len(kept) <= room:
                columns: list[int | None] = list(range(grid.columns))
                return _Page(_elided(grid.rows, height), columns, gutter, cell, "", kept, rules if kept else {})
    return _Page(_elided(grid.rows, height), _elided(grid.columns, room - 1), gutter, 1, "", {}, {})


def _elided(count: int, most: int) -> list[int | None]:
    if count <= most:
        return list(range(count))
    tail = max(1, most // 8)
    return [*range(most - tail), None, *range(count - tail, count)]


def _boundaries(grid: Grid) -> tuple[dict[int, str], dict[int, str]]:
    """Return the columns and rows before which an outline starts, with its kind; tiles win over faces."""
    bars: dict[int, str] = {}
    rules: dict[int, str] = {}
    for kind in ("face", "tile"):
        for box in grid.outlines:
            if box.kind == kind:
                bars[box.column], rules[box.row] = kind, kind
    return {k: v for k, v in bars.items() if k}, {k: v for k, v in rules.items() if k}


def _marks(grid: Grid, scales: dict[str, Scale]) -> list[str]:
    """Return a character for each cell that stands for its colour."""
    if not grid.color:
        return []
    scale, values = scales[grid.color], grid.field(grid.color).values
    if scale.kind == "category" and len(scale.values) <= len(_SYMBOLS):
        symbols = {value: _SYMBOLS[k] for k, value in enumerate(scale.values)}
        return [symbols.get(value, " ") for value in values]
    if scale.kind == "category":
        place = {value: k / max(1, len(scale.values) - 1) for k, value in enumerate(scale.values)}
    else:
        place = {value: scale.share(value) for value in set(values) if value is not None and value == value}
    shades = _SHADES if scale.kind != "heat" else _SHADES[::-1]
    return [shades[int(place[value] * (len(shades) - 1))] if value in place else " " for value in values]


def _header(grid: Grid, page: _Page, width: int) -> list[str]:
    """Return the line with the names of the columns; only some of them where cells are narrow."""
    names = [plain(grid.column_name(column)) for column in range(grid.columns)]
    room = page.cell + len(page.gap)
    longest = max(map(len, names), default=0)
    step = 1 if longest <= page.cell and page.gap else next((k for k in _STEPS if k * room > longest), grid.columns)
    out = ""
    start = page.gutter
    for column in page.columns:
        if column in page.bars:
            start += 1 + len(page.gap)
        if column is not None and column % step == 0 and start >= len(out):
            name = f"{names[column]:>{page.cell}}" if step == 1 else names[column]
            out = out.ljust(start) + name if start + len(name) <= width else out
        start += 1 if column is None else room
    return [out]


def _marked(grid: Grid) -> frozenset[int]:
    """Return the cells that are marked as single ones: bracketed where labels are written, else an X."""
    marks = [box for box in grid.outlines if box.kind == "mark" and box.rows == box.columns == 1]
    return frozenset(box.row * grid.columns + box.column for box in marks)


def _row(
    grid: Grid, page: _Page, row: int, name: str, cell: Callable[[int], str], bracketed: frozenset[int] = frozenset()
) -> str:
    parts = [f"  {name:>{page.gutter - 3}}", " "]
    for k, column in enumerate(page.columns):
        if column is None:
            parts.append("…")
            continue
        if column in page.bars:
            parts += [_BARS[page.bars[column]][0], page.gap]
        at = row * grid.columns + column
        if at in bracketed:
            parts[-1] = "["
        parts.append(cell(at))
        if at in bracketed:
            parts.append("]")
        elif page.gap and k + 1 < len(page.columns):
            parts.append(page.gap)
    return "".join(parts)


def _rule(page: _Page, kind: str) -> str:
    stroke, cross = _BARS[kind][1:]
    parts = [" " * page.gutter]
    for column in page.columns:
        if column in page.bars:
            parts.append(cross + stroke * len(page.gap))
        parts.append(stroke * (page.cell + len(page.gap)))
    return "".join(parts)[: -len(page.gap) or None]


def symbol(k: int) -> str:
    """Return the character that stands for the k-th kind where there are no colours.

    >>> symbol(11)
    'B'
    """
    return _SYMBOLS[k % len(_SYMBOLS)] if k < len(CATEGORIES) else "?"
