# SPDX-License-Identifier: Apache-2.0
"""A scene as text for terminals, with colors or without.

Cells of a grid have their labels if they fit, otherwise one or two characters.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from textwrap import wrap

from .._text import color_setting
from .scene import Entry, Fact, Grid, Scene, Tracks
from .scene_options import (
    CATEGORIES,
    Scale,
    candidate_labels,
    cell_colors,
    colored_kinds,
    format_value,
    hatched_kinds,
    make_scales,
    text_color_on,
)
from .svg import format_position

# The boxes of a grid as text: each in its frame, side by side, with its title and the names of its rows.

_GAP = "  "  # between boxes


def box_lines(grid: Grid, scales: dict[str, Scale], ink: TerminalStyle, width: int, height: int) -> list[str] | None:
    """Return the boxes of a grid as lines of at most `width` columns, about `height`; None if no label fits.

    >>> from tilewright.views.scene import Field
    >>> grid = Grid(1, 4, (Field("page", (0, 1, 2, 3)),), label="page", boxes=(1, 2), box_titles=("a", "b"))
    >>> print(*box_lines(grid, {}, TerminalStyle(False), 80, 40), sep="\\n")
      a        b
      ┌─────┐  ┌─────┐
      │ 0 1 │  │ 2 3 │
      └─────┘  └─────┘
    """
    rows = grid.box_grids()
    names = max([len(replace_control_characters(name)) for box in grid.box_rows for name in box], default=-1) + 1
    titles = max(map(len, map(replace_control_characters, grid.box_titles)), default=0)
    candidates = list(candidate_labels(grid))
    for candidate in range(len(candidates)):
        cell = max(len(replace_control_characters(label)) for label in candidates[candidate])
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
            boxes = row[first : first + across]
            drawn = [_draw_box(part, candidate, scales, ink, names, cell, inside, box) for part in boxes]
            if not grid.box_titles and lines:
                lines.append("")
            lines += ["  " + _GAP.join(parts).rstrip() for parts in zip(*drawn, strict=True)]
    return lines


def _draw_box(
    box: Grid,
    candidate: int,
    scales: dict[str, Scale],
    ink: TerminalStyle,
    names: int,
    cell: int,
    inside: int,
    width: int,
) -> list[str]:
    """Return one box as lines of the same width."""
    labels = [replace_control_characters(label) for label in list(candidate_labels(box))[candidate]]
    colors = cell_colors(box, scales) if box.color in scales else []
    marked = {mark.row * box.columns + mark.column for mark in box.outlines if mark.kind == "mark"}
    rules = {part.row for part in box.outlines if part.kind == "face" and part.row}
    indent, rest = " " * names, " " * (width - names - inside - 2)
    lines = [f"{indent}┌{'─' * inside}┐{rest}"]
    if box.title:
        lines.insert(0, indent + replace_control_characters(box.title).ljust(width - names))
    for row in range(box.rows):
        if row in rules:
            lines.append(f"{indent}├{'─' * inside}┤{rest}")
        words = " "
        for column in range(box.columns):
            at = row * box.columns + column
            word = "/" * cell if box.valid and not box.valid[at] else f"{labels[at]:>{cell}}"
            if at in marked:
                words = words[:-1] + "["
            words += (ink.paint(word, colors[at]) if colors else word) + ("]" if at in marked else " ")
        name = f"{replace_control_characters(box.row_names[row]):>{names - 1}} " if box.row_names else ""
        lines.append(f"{name or indent}│{words}│{rest}")
    lines.append(f"{indent}└{'─' * inside}┘{rest}")
    return lines


_MAX_NAMES = 32
_FEWEST = 8  # columns of a band
_MAX_RULED = 16  # rows that may all have a line above them

_SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SHADES = "@%#*+=-:. "  # dark to pale, like the ramp
_STEPS = (1, 2, 4, 8, 16, 32, 64)
_BARS = {"tile": ("│", "─", "┼"), "face": ("┊", "┄", "┼"), "plane": ("│", "─", "┼"), "slice": ("┊", "┄", "┼")}


def to_text(scene: Scene, width: int = 80, color: int = False, height: int = 64) -> str:
    """Return a `scene` as text of at most `width` columns; a panel takes about `height` lines.

    With `color`, cells have background colors: of 24 bits, or of the palette if it is 256.

    >>> from tilewright.views.scene import Field
    >>> grid = Grid(1, 3, (Field("offset", (0, 1, 2), "ramp"),), label="offset")
    >>> print(to_text(Scene("three", (grid,), (Fact("elements", "3"),))))
    three
    <BLANKLINE>
        0 1 2
      0 0 1 2
    <BLANKLINE>
      elements  3
    """
    ink = TerminalStyle(color)
    scales = make_scales(scene)
    blocks = [
        [ink.strong(line) for line in wrap(replace_control_characters(scene.title), width)]
        + wrap(replace_control_characters(scene.note), width)
    ]
    if scene.entries:
        blocks.append(_entry_lines(scene.entries, width))
    for panel in scene.panels:
        if isinstance(panel, Grid):
            requested = bool(set(panel.labels) & set(scene.labels))
            lines = grid_lines(panel, scales, ink, width, height, requested)
            labelled = labels_fit(panel, width) or bool(_split_bands(panel, scales, width, height, requested))
            legend = _grid_legend(panel, scales, ink, width, labelled)
            if requested and not _first_labels_fit(panel, scales, width, height):
                names = ", ".join(panel.labels)
                legend.append(f"  {names} does not fit in {width} columns; a wider terminal or an .svg shows it")
        else:
            lines = _track_lines(panel, scales, ink, width, height)
            legend = _track_legend(panel, scales, ink, width)
        blocks.append(lines + legend)
    if scene.facts:
        blocks.append(_fact_lines(scene.facts, width, ink))
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks)


def _entry_lines(entries: tuple[Entry, ...], width: int) -> list[str]:
    lines = []
    for number, entry in enumerate(entries, start=1):
        mark = f"{number}. "
        lines += wrap(replace_control_characters(entry.title), width, initial_indent=mark, subsequent_indent="   ")
        for name, value in entry.lines:
            text = replace_control_characters(f"{name}: {value}")
            lines += wrap(text, width, initial_indent="   ", subsequent_indent="     ")
    return lines


def _fact_lines(facts: tuple[Fact, ...], width: int, ink: TerminalStyle) -> list[str]:
    names = max(len(replace_control_characters(fact.name)) for fact in facts)
    names = min(names, width // 2)
    lines = []
    for fact in facts:
        name = replace_control_characters(fact.name)[:names]
        value = wrap(replace_control_characters(fact.value), width - names - 4) or [""]
        value = [ink.judge(line, fact.tone) for line in value]
        lines.append(f"  {ink.judge(f'{name:<{names}}', 'name')}  {value[0]}")
        lines += [" " * (names + 4) + more for more in value[1:]]
    return lines


def _grid_legend(grid: Grid, scales: dict[str, Scale], ink: TerminalStyle, width: int, labelled: bool) -> list[str]:
    entries = []
    if grid.color:
        scale = scales[grid.color]
        values = set(grid.field(grid.color).values)
        if scale.has_distinct_colors and (
            ink.on or not labelled
        ):  # without colors, only bare cells need to be explained
            seen = [(k, value) for k, value in enumerate(scale.values) if value in values][:_MAX_NAMES]
            entries = [
                _legend_entry(ink, kind_symbol(k), scale.color(value), format_value(value, scale.form))
                for k, value in seen
            ]
        elif not scale.has_distinct_colors and scale.kind != "category":
            entries = [f"{format_value(scale.low, scale.form)} to {format_value(scale.high, scale.form)}"]
        entries = [grid.color + ":", *entries] if entries else []
    if grid.valid and not all(grid.valid):
        entries.append(f"/ {grid.hatched}")
    return _wrap_entries(entries, width)


def _track_legend(tracks: Tracks, scales: dict[str, Scale], ink: TerminalStyle, width: int) -> list[str]:
    kinds = [kind for kind in colored_kinds(tracks) if kind]
    letters = _kind_letters(scales["kind"])
    entries = [_legend_entry(ink, letters[kind], scales["kind"].color(kind), kind) for kind in kinds]
    hatches = [f"{mark} {replace_control_characters(kind)}" for kind, mark in _hatch_marks(tracks).items()]
    return _wrap_entries([*entries[:_MAX_NAMES], *hatches], width)


def _hatch_marks(tracks: Tracks) -> dict[str, str]:
    """Return the character of each kind of hatched span."""
    return {kind: "x" if k else "/" for k, kind in enumerate(hatched_kinds(tracks))}


def _legend_entry(ink: TerminalStyle, mark: str, color: str, word: str) -> str:
    word = replace_control_characters(word)
    swatch = ink.paint("  ", color) if ink.on else mark
    return f"{swatch} {word}" if ink.on or mark != word else word


def _wrap_entries(entries: list[str], width: int) -> list[str]:
    """Return legend entries in lines of at most `width` characters, not counting escape sequences."""
    lines: list[str] = []
    used = 0
    for entry in entries:
        size = len(entry) if "\x1b" not in entry else 3 + len(entry.rsplit("\x1b[0m", 1)[-1])
        entry = entry if size <= width - 2 else entry[: width - 3] + "…"
        if lines and used + 2 + size <= width:
            lines[-1] += "  " + entry
            used += 2 + size
        else:
            lines.append("  " + entry)
            used = 2 + min(size, width - 2)
    return lines


def _track_lines(tracks: Tracks, scales: dict[str, Scale], ink: TerminalStyle, width: int, height: int) -> list[str]:
    names = [replace_control_characters(name) for name in tracks.names]
    gutter = min(max([len(name) for name in names], default=0), width // 3) + 3
    columns = width - gutter - 1
    scale = columns / (tracks.end - tracks.start)
    colors = scales["kind"].colors(span.kind for span in tracks.spans if not span.hatched)
    letters, hatches = _kind_letters(scales["kind"]), _hatch_marks(tracks)
    lines = [f"  {replace_control_characters(tracks.title)}"] if tracks.title else []
    start, end = (format_position(at, hexadecimal=tracks.hexadecimal) for at in (tracks.start, tracks.end))
    end = f"{end} {replace_control_characters(tracks.unit)}".rstrip()
    lines.append(" " * gutter + f"{start}{end:>{columns - len(start)}}")
    for track, name in list(enumerate(names))[:height]:
        row = [(" ", "")] * columns
        for span in tracks.spans:
            if span.track != track:
                continue
            first = min(columns - 1, int((span.start - tracks.start) * scale))
            last = max(first + 1, min(columns, round((span.end - tracks.start) * scale)))
            mark = hatches[span.kind or "unused"] if span.hatched else " " if ink.on else letters[span.kind]
            body = _span_text(
                replace_control_characters(span.label), mark, last - first, framed=not (ink.on or span.hatched)
            )
            row[first:last] = [(letter, "" if span.hatched else colors[span.kind]) for letter in body]
        lines.append(f"  {name[: gutter - 3]:>{gutter - 3}} " + _paint_runs(row, ink))
    if len(names) > height:
        lines.append(" " * gutter + f"⋮ and {len(names) - height} more")
    return lines


def _span_text(word: str, mark: str, columns: int, framed: bool) -> str:
    """Return the characters of a span: its label, centered and filled with its mark."""
    bar = "│" if framed and columns > 2 else ""
    inside = columns - len(bar)
    return bar + (word if len(word) <= inside - (0 if bar else 2) else "").center(inside, mark)


def _kind_letters(scale: Scale) -> dict[str, str]:
    """Return a distinct letter for each kind of span, from its name if possible."""
    letters: dict[str, str] = {}
    for k, kind in enumerate(scale.values):
        own = "".join(re.findall("[a-z]{2,}", str(kind).lower()))  # of its words, not of "512x512"
        spare = [chr(ord("a") + j) for j in range(26)]
        free = [letter for letter in (*own, *spare) if letter not in letters.values()]
        letters[kind] = free[0] if free else kind_symbol(k)
    return letters


def _paint_runs(row: list[tuple[str, str]], ink: TerminalStyle) -> str:
    """Return characters on their background colors, with one escape sequence per run."""
    out = []
    start = 0
    for k in range(1, len(row) + 1):
        if k == len(row) or row[k][1] != row[start][1]:
            words = "".join(letter for letter, _ in row[start:k])
            out.append(ink.paint(words, row[start][1]) if row[start][1] else words)
            start = k
    return "".join(out)


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


def grid_lines(
    grid: Grid, scales: dict[str, Scale], ink: TerminalStyle, width: int, height: int, requested: bool = False
) -> list[str]:
    """Return a grid as lines of at most `width` columns, about `height` of them.

    Labels that were `requested` are written in bands of columns rather than left out.

    >>> from tilewright.views.scene import Field
    >>> grid = Grid(2, 3, (Field("offset", (0, 1, 2, 3, 4, 5), "ramp"),), label="offset")
    >>> print(*grid_lines(grid, {}, TerminalStyle(False), 80, 40), sep="\\n")
        0 1 2
      0 0 1 2
      1 3 4 5
    """
    title = [f"  {replace_control_characters(grid.title)}"] if grid.title else []
    if grid.boxes is not None:
        boxes = box_lines(grid, scales, ink, width, height)
        if boxes is not None:
            return title + boxes
        grid = replace(grid, boxes=None)
    bands = _split_bands(grid, scales, width, height, requested)
    if bands:
        drawn = [grid_lines(band, scales, ink, width, height) for band in bands]
        return title + [line for k, lines in enumerate(drawn) for line in ([""] * bool(k) + lines)]
    names = [replace_control_characters(grid.row_name(row)) for row in range(grid.rows)]
    gutter = max([len(name) for name in names], default=0) + 3
    page, labels = _fit_labels(grid, gutter, width, height) or (_fit_symbols(grid, gutter, width, height), [])
    labelled = bool(labels)
    colors = cell_colors(grid, scales)
    marks = labels if labelled else _cell_symbols(grid, scales)

    marked = _marked_cells(grid)

    def cell(at: int) -> str:
        if not labelled and at in marked:
            return ink.paint("X" * page.cell, colors[at]) if colors else "X" * page.cell
        if grid.valid and not grid.valid[at]:
            return "/" * page.cell
        word = "" if not labelled and ink.on else marks[at] if marks else ""
        text = f"{word:>{page.cell}}" if labelled else (word or " ") * page.cell
        return ink.paint(text, colors[at]) if colors else text

    lines = title + _header_lines(grid, page, width)
    for row in page.rows:
        if row is None:
            lines.append(" " * page.gutter + "⋮")
            continue
        if row in page.rules:
            lines.append(_rule_line(page, page.rules[row]))
        lines.append(_row_line(grid, page, row, names[row], cell, marked if labelled else frozenset()))
    return lines


def _split_bands(grid: Grid, scales: dict[str, Scale], width: int, height: int, requested: bool = False) -> list[Grid]:
    """Return a grid as bands of columns, one below the other, if only so its labels can be read; otherwise nothing.

    Cells whose color is one of a few categories have a character each, which can be read as well, unless the labels
    were `requested`.
    """
    distinct = not requested and (not grid.color or scales[grid.color].kind == "category")
    if distinct or grid.boxes or not grid.labels or _fit_alone(grid, width, requested):
        return []
    for count in range(2, max(2, height // max(1, grid.rows)) + 1):
        columns = -(-grid.columns // count)
        if grid.rows * count > height or columns < (_FEWEST // 2 if requested else _FEWEST):
            return []
        bands = [
            _cut_columns(grid, first, min(columns, grid.columns - first)) for first in range(0, grid.columns, columns)
        ]
        if all(_fit_alone(band, width, requested) for band in bands):
            return bands
    return []


def _fit_alone(grid: Grid, width: int, requested: bool) -> bool:
    """Return whether the labels of a grid fit; requested labels may not be replaced by the labels of its color."""
    return labels_fit(replace(grid, color="") if requested else grid, width)


def _first_labels_fit(grid: Grid, scales: dict[str, Scale], width: int, height: int) -> bool:
    """Return whether a grid's own labels, rather than the labels of its color, are written into its cells."""
    alone = replace(grid, color="")
    if grid.boxes is not None:
        return box_lines(alone, scales, TerminalStyle(False), width, height) is not None
    return labels_fit(alone, width) or bool(_split_bands(grid, scales, width, height, requested=True))


def _cut_columns(grid: Grid, first: int, count: int) -> Grid:
    """Return some columns of a grid, without its title."""
    rows = tuple(grid.row_name(row) for row in range(grid.rows))
    columns = tuple(grid.column_name(column) for column in range(first, first + count))
    return grid.crop(0, first, grid.rows, count, title="", row_names=rows, column_names=columns)


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
        empty = bool(grid.valid) and not any(grid.valid)
        cell = max(map(len, labels)) or int(empty)  # hatching also needs a width
        for shown_bars in (bars, {}):
            if cell and gutter + grid.columns * (cell + 1) + 2 * len(shown_bars) <= width:
                lines, rows = rules if shown_bars or not bars else {}, _elide_indices(grid.rows, height)
                return _TextGeometry(rows, columns, gutter, cell, " ", shown_bars, lines), labels
    return None


def _fit_symbols(grid: Grid, gutter: int, width: int, height: int) -> _TextGeometry:
    """Return the geometry with one or two characters per cell; the middle columns are elided if necessary."""
    bars, rules = _outline_starts(grid)
    rows, available = _elide_indices(grid.rows, height), width - gutter
    for cell in (2, 1):
        for shown_bars in (bars, {}):
            if grid.columns * cell + len(shown_bars) <= available:
                columns: list[int | None] = list(range(grid.columns))
                return _TextGeometry(rows, columns, gutter, cell, "", shown_bars, rules if shown_bars else {})
    return _TextGeometry(rows, _elide_indices(grid.columns, available - 1), gutter, 1, "", {}, {})


def _elide_indices(count: int, most: int) -> list[int | None]:
    if count <= most:
        return list(range(count))
    tail = max(1, most // 8)
    return [*range(most - tail), None, *range(count - tail, count)]


def _outline_starts(grid: Grid) -> tuple[dict[int, str], dict[int, str]]:
    """Return the columns and rows before which an outline starts, with its kind; tiles win over faces."""
    bars: dict[int, str] = {}
    rules: dict[int, str] = {}
    for kind in ("face", "slice", "plane", "tile"):
        for box in grid.outlines:
            if box.kind == kind:
                bars[box.column], rules[box.row] = kind, kind
    if grid.rows > _MAX_RULED and len(rules) == grid.rows:
        rules = {}  # a rule above every row conveys nothing
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
        share = {value: k / max(1, len(scale.values) - 1) for k, value in enumerate(scale.values)}
    else:
        share = {value: scale.share(value) for value in set(values) if value is not None and value == value}
    shades = _SHADES if scale.kind != "heat" else _SHADES[::-1]
    return [shades[int(share[value] * (len(shades) - 1))] if value in share else " " for value in values]


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


def _marked_cells(grid: Grid) -> frozenset[int]:
    """Return the marked cells, which are bracketed, or drawn as X without labels."""
    marks = [box for box in grid.outlines if box.kind == "mark" and box.rows == box.columns == 1]
    return frozenset(box.row * grid.columns + box.column for box in marks)


def _row_line(
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


@dataclass(frozen=True, slots=True)
class TerminalStyle:
    """Colors text for a terminal, if colors are on.

    >>> TerminalStyle(False).paint("7", "#77aadd"), TerminalStyle(True).paint("7", "#77aadd")
    ('7', '\\x1b[48;2;119;170;221;38;2;0;0;0m7\\x1b[0m')
    """

    on: int  # how many colors there are; True is all

    def paint(self, words: str, color: str) -> str:
        """Return text on a background color.

        >>> TerminalStyle(False).paint("7", "#000000")
        '7'
        """
        if not self.on:
            return words
        form = _palette_code if self.on == 256 else _rgb_codes
        return f"\x1b[48;{form(color)};38;{form(text_color_on(color))}m{words}\x1b[0m"

    def strong(self, words: str) -> str:
        """Return words in bold.

        >>> TerminalStyle(True).strong("a")
        '\\x1b[1ma\\x1b[0m'
        """
        return f"\x1b[1m{words}\x1b[0m" if self.on else words

    def judge(self, words: str, tone: str) -> str:
        """Return words in the color of a fact's tone: green for good, red for bad.

        >>> TerminalStyle(True).judge("8-way", "bad"), TerminalStyle(True).judge("8", "plain")
        ('\\x1b[31m8-way\\x1b[0m', '8')
        """
        code = {"good": 32, "bad": 31, "name": 36}.get(tone)
        return f"\x1b[{code}m{words}\x1b[0m" if self.on and code else words


def _rgb_codes(color: str) -> str:
    return f"2;{int(color[1:3], 16)};{int(color[3:5], 16)};{int(color[5:7], 16)}"


def _palette_code(color: str) -> str:
    """Return the nearest color of the 6 x 6 x 6 cube in the palette of 256."""
    parts = [int(color[k : k + 2], 16) for k in (1, 3, 5)]
    red, green, blue = [min(range(6), key=lambda step: abs(_CUBE[step] - part)) for part in parts]
    return f"5;{16 + 36 * red + 6 * green + blue}"


_CUBE = (0, 95, 135, 175, 215, 255)  # what terminals make of the steps


def replace_control_characters(words: str) -> str:
    """Return text with control characters replaced, so that a name cannot send commands to the terminal.

    >>> replace_control_characters("a\\x1b[31mb")
    'a\\ufffd[31mb'
    """
    return words if words.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in words)


def terminal_width(stream: object) -> int:
    """Return the number of columns of a terminal; 80 for anything else, so that files do not depend on a window.

    >>> import io
    >>> terminal_width(io.StringIO())
    80
    """
    if not getattr(stream, "isatty", lambda: False)():
        return 80
    return max(40, shutil.get_terminal_size((80, 24)).columns)


def supports_color(stream: object) -> int:
    """Return how many colors a stream shows: 2**24 or 256 on a terminal, 0 elsewhere; the environment can override it.

    >>> import io
    >>> supports_color(io.StringIO()) in (0, 256, 1 << 24)
    True
    """
    setting = color_setting()
    if setting is False or (setting is None and not getattr(stream, "isatty", lambda: False)()):
        return 0
    return 1 << 24 if os.environ.get("COLORTERM", "") in ("truecolor", "24bit") else 256
