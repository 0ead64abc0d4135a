# SPDX-License-Identifier: Apache-2.0
"""The boxes of a grid as text: each in its frame, side by side, with its title and the names of its rows."""

from __future__ import annotations

from collections.abc import Callable

from .color_scales import Scale, candidate_labels, cell_colors
from .scene import Grid

_GAP = "  "  # between boxes


def box_lines(
    grid: Grid,
    scales: dict[str, Scale],
    paint: Callable[[str, str], str],
    clean: Callable[[str], str],
    width: int,
    height: int,
) -> list[str] | None:
    """Return the boxes of a grid as lines of at most `width` columns, about `height`; None if no label fits.

    `paint` puts text on a color, and `clean` makes text safe for a terminal.

    >>> from tilewright.views.scene import Field
    >>> grid = Grid(1, 4, (Field("page", (0, 1, 2, 3)),), label="page", boxes=(1, 2), box_titles=("a", "b"))
    >>> print(*box_lines(grid, {}, lambda words, color: words, str, 80, 40), sep="\\n")
      a        b
      ┌─────┐  ┌─────┐
      │ 0 1 │  │ 2 3 │
      └─────┘  └─────┘
    """
    rows = grid.box_grids()
    names = max([len(clean(name)) for box in grid.box_rows for name in box], default=-1) + 1
    titles = max(map(len, map(clean, grid.box_titles)), default=0)
    for candidate in range(len(list(candidate_labels(grid)))):
        cell = max(len(clean(label)) for label in list(candidate_labels(grid))[candidate])
        inside = rows[0][0].columns * (cell + 1) + 1
        box = max(names + inside + 2, titles)
        if cell and box + 2 <= width:
            break
    else:
        return None
    across = max(1, (width - 2 + len(_GAP)) // (box + len(_GAP)))
    lines: list[str] = []
    for number, row in enumerate(rows):
        if lines and len(lines) + rows[0][0].rows + 2 > height:
            return [*lines, f"  ⋮ and {len(rows) - number} more rows of boxes"]
        for first in range(0, len(row), across):
            drawn = [
                _draw_box(each, candidate, scales, paint, clean, names, cell, inside, box)
                for each in row[first : first + across]
            ]
            if not grid.box_titles and lines:
                lines.append("")
            lines += ["  " + _GAP.join(parts).rstrip() for parts in zip(*drawn, strict=True)]
    return lines


def _draw_box(
    box: Grid,
    candidate: int,
    scales: dict[str, Scale],
    paint: Callable[[str, str], str],
    clean: Callable[[str], str],
    names: int,
    cell: int,
    inside: int,
    width: int,
) -> list[str]:
    """Return one box as lines of the same width."""
    labels = [clean(label) for label in list(candidate_labels(box))[candidate]]
    colors = cell_colors(box, scales) if box.color in scales else []
    marked = {mark.row * box.columns + mark.column for mark in box.outlines if mark.kind == "mark"}
    rules = {part.row for part in box.outlines if part.kind == "face" and part.row}
    indent, rest = " " * names, " " * (width - names - inside - 2)
    found = [f"{indent}┌{'─' * inside}┐{rest}"]
    if box.title:
        found.insert(0, indent + clean(box.title).ljust(width - names))
    for row in range(box.rows):
        if row in rules:
            found.append(f"{indent}├{'─' * inside}┤{rest}")
        words = " "
        for column in range(box.columns):
            at = row * box.columns + column
            word = "/" * cell if box.valid and not box.valid[at] else f"{labels[at]:>{cell}}"
            if at in marked:
                words = words[:-1] + "["
            words += (paint(word, colors[at]) if colors else word) + ("]" if at in marked else " ")
        name = f"{clean(box.row_names[row]):>{names - 1}} " if box.row_names else ""
        found.append(f"{name or indent}│{words}│{rest}")
    found.append(f"{indent}└{'─' * inside}┘{rest}")
    return found
