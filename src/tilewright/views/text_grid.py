# SPDX-License-Identifier: Apache-2.0
"""A grid as lines of text: labels if they fit, otherwise one or two characters per cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .color_scales import CATEGORIES, Scale, candidate_labels, cell_colors
from .scene import Grid
from .terminal import TerminalStyle, replace_control_characters

_SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SHADES = "@%#*+=-:. "  # dark to pale, like the ramp
_STEPS = (1, 2, 4, 8, 16, 32, 64)
_BARS = {"tile": ("│", "─", "┼"), "face": ("┊", "┄", "┼")}


@dataclass(frozen=True, slots=True)
class _TextGeometry:
    """The rows and columns that are shown (None for an ellipsis), and the width of a cell."""

    rows: list[int | None]
    columns: list[int | None]
    gutter: int
    cell: int
    gap: str
    bars: dict[int, str]  # columns with a line before them
    rules: dict[int, str]  # rows with a line above them


def grid_lines(grid: Grid, scales: dict[str, Scale], ink: TerminalStyle, width: int, height: int) -> list[str]:
    """Return a grid as lines of at most `width` columns, about `height` of them.

    >>> from tilewright.views.scene import Field
    >>> grid = Grid(2, 3, (Field("offset", (0, 1, 2, 3, 4, 5), "ramp"),), label="offset")
    >>> print(*grid_lines(grid, {}, TerminalStyle(False), 80, 40), sep="\\n")
        0 1 2
      0 0 1 2
      1 3 4 5
    """
    names = [replace_control_characters(grid.row_name(row)) for row in range(grid.rows)]
    gutter = max([len(name) for name in names], default=0) + 3
    page, labels = _fit_labels(grid, gutter, width, height) or (_fit_symbols(grid, gutter, width, height), [])
    written = bool(labels)
    colors = cell_colors(grid, scales)
    marks = labels if written else _cell_symbols(grid, scales)

    marked = _mark_cell(grid)

    def cell(at: int) -> str:
        if not written and at in marked:
            return ink.paint("X" * page.cell, colors[at]) if colors else "X" * page.cell
        if grid.valid and not grid.valid[at]:
            return "/" * page.cell
        word = "" if not written and ink.on else marks[at] if marks else ""
        shown = f"{word:>{page.cell}}" if written else (word or " ") * page.cell
        return ink.paint(shown, colors[at]) if colors else shown

    lines = [f"  {replace_control_characters(grid.title)}"] if grid.title else []
    lines += _header_lines(grid, page, width)
    for row in page.rows:
        if row is None:
            lines.append(" " * page.gutter + "⋮")
            continue
        if row in page.rules:
            lines.append(_rule_line(page, page.rules[row]))
        lines.append(_row(grid, page, row, names[row], cell, marked if written else frozenset()))
    return lines


def labels_fit(grid: Grid, width: int) -> bool:
    """Return whether labels are written into the cells of a grid at this width.

    >>> labels_fit(Grid(1, 2), 80)
    False
    """
    gutter = max([len(replace_control_characters(grid.row_name(row))) for row in range(grid.rows)], default=0) + 3
    return _fit_labels(grid, gutter, width, 1) is not None


def _fit_labels(grid: Grid, gutter: int, width: int, height: int) -> tuple[_TextGeometry, list[str]] | None:
    """Return the geometry with every column and its labels; None if they do not fit."""
    bars, rules = _outline_starts(grid)
    columns: list[int | None] = list(range(grid.columns))
    for labels in candidate_labels(grid):
        labels = [replace_control_characters(label) for label in labels]
        cell = max(map(len, labels))
        for shown_bars in (bars, {}):
            if cell and gutter + grid.columns * (cell + 1) + 2 * len(shown_bars) <= width:
                lines = rules if shown_bars or not bars else {}
                return _TextGeometry(
                    _elide_indices(grid.rows, height), columns, gutter, cell, " ", shown_bars, lines
                ), labels
    return None


def _fit_symbols(grid: Grid, gutter: int, width: int, height: int) -> _TextGeometry:
    """Return the geometry with one or two characters per cell; the middle columns are elided if necessary."""
    bars, rules = _outline_starts(grid)
    available = width - gutter
    for cell in (2, 1):
        for shown_bars in (bars, {}):
            if grid.columns * cell + len(shown_bars) <= available:
                columns: list[int | None] = list(range(grid.columns))
                return _TextGeometry(
                    _elide_indices(grid.rows, height),
                    columns,
                    gutter,
                    cell,
                    "",
                    shown_bars,
                    rules if shown_bars else {},
                )
    return _TextGeometry(
        _elide_indices(grid.rows, height), _elide_indices(grid.columns, available - 1), gutter, 1, "", {}, {}
    )


def _elide_indices(count: int, most: int) -> list[int | None]:
    if count <= most:
        return list(range(count))
    tail = max(1, most // 8)
    return [*range(most - tail), None, *range(count - tail, count)]


def _outline_starts(grid: Grid) -> tuple[dict[int, str], dict[int, str]]:
    """Return the columns and rows before which an outline starts, with its kind; tiles win over faces."""
    bars: dict[int, str] = {}
    rules: dict[int, str] = {}
    for kind in ("face", "tile"):
        for box in grid.outlines:
            if box.kind == kind:
                bars[box.column], rules[box.row] = kind, kind
    return {k: v for k, v in bars.items() if k}, {k: v for k, v in rules.items() if k}


def _cell_symbols(grid: Grid, scales: dict[str, Scale]) -> list[str]:
    """Return the character that stands for the color of each cell."""
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


def _header_lines(grid: Grid, page: _TextGeometry, width: int) -> list[str]:
    """Return the line with the names of the columns; only some of them where cells are narrow."""
    names = [replace_control_characters(grid.column_name(column)) for column in range(grid.columns)]
    available = page.cell + len(page.gap)
    longest = max(map(len, names), default=0)
    step = (
        1 if longest <= page.cell and page.gap else next((k for k in _STEPS if k * available > longest), grid.columns)
    )
    out = ""
    start = page.gutter
    for column in page.columns:
        if column in page.bars:
            start += 1 + len(page.gap)
        if column is not None and column % step == 0 and start >= len(out):
            name = f"{names[column]:>{page.cell}}" if step == 1 else names[column]
            out = out.ljust(start) + name if start + len(name) <= width else out
        start += 1 if column is None else available
    return [out]


def _mark_cell(grid: Grid) -> frozenset[int]:
    """Return the marked cells, which are bracketed, or drawn as X without labels."""
    marks = [box for box in grid.outlines if box.kind == "mark" and box.rows == box.columns == 1]
    return frozenset(box.row * grid.columns + box.column for box in marks)


def _row(
    grid: Grid,
    page: _TextGeometry,
    row: int,
    name: str,
    cell: Callable[[int], str],
    bracketed: frozenset[int] = frozenset(),
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


def _rule_line(page: _TextGeometry, kind: str) -> str:
    stroke, cross = _BARS[kind][1:]
    parts = [" " * page.gutter]
    for column in page.columns:
        if column in page.bars:
            parts.append(cross + stroke * len(page.gap))
        parts.append(stroke * (page.cell + len(page.gap)))
    return "".join(parts)[: -len(page.gap) or None]


def kind_symbol(k: int) -> str:
    """Return the character that stands for the k-th kind where there are no colors.

    >>> kind_symbol(11)
    'B'
    """
    return _SYMBOLS[k % len(_SYMBOLS)] if k < len(CATEGORIES) else "?"
