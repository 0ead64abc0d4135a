# SPDX-License-Identifier: Apache-2.0
"""A scene as text for terminals, with 24-bit colors or without."""

from __future__ import annotations

import re
from textwrap import wrap

from .color_scales import Scale, colored_kinds, format_value, hatched_kinds, make_scales
from .scene import Fact, Grid, Scene, Tracks
from .svg_tracks import format_position
from .terminal import TerminalStyle, replace_control_characters
from .text_grid import grid_lines, kind_symbol, labels_fit

_MOST_NAMES = 32


def to_text(scene: Scene, width: int = 80, color: bool = False, height: int = 64) -> str:
    """Return a scene as text of at most `width` columns; a panel takes about `height` lines.

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
    for panel in scene.panels:
        if isinstance(panel, Grid):
            lines = grid_lines(panel, scales, ink, width, height)
            legend = _grid_legend(panel, scales, ink, width, labels_fit(panel, width))
        else:
            lines = _track_lines(panel, scales, ink, width, height)
            legend = _track_legend(panel, scales, ink, width)
        blocks.append(lines + legend)
    if scene.facts:
        blocks.append(_fact_lines(scene.facts, width))
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks)


def _fact_lines(facts: tuple[Fact, ...], width: int) -> list[str]:
    names = max(len(replace_control_characters(fact.name)) for fact in facts)
    names = min(names, width // 2)
    lines = []
    for fact in facts:
        name = replace_control_characters(fact.name)[:names]
        value = wrap(replace_control_characters(fact.value), width - names - 4) or [""]
        lines.append(f"  {name:<{names}}  {value[0]}")
        lines += [" " * (names + 4) + more for more in value[1:]]
    return lines


def _grid_legend(grid: Grid, scales: dict[str, Scale], ink: TerminalStyle, width: int, labelled: bool) -> list[str]:
    entries = []
    if grid.color:
        scale = scales[grid.color]
        values = set(grid.field(grid.color).values)
        if scale.named and (ink.on or not labelled):  # without colors, only bare cells need to be explained
            seen = [(k, value) for k, value in enumerate(scale.values) if value in values][:_MOST_NAMES]
            entries = [_legend_entry(ink, kind_symbol(k), scale.color(value), format_value(value)) for k, value in seen]
        elif not scale.named and scale.kind != "category":
            entries = [f"{format_value(scale.low)} to {format_value(scale.high)}"]
        entries = [grid.color + ":", *entries] if entries else []
    if grid.valid and not all(grid.valid):
        entries.append(f"/ {grid.hatched}")
    return _wrap_entries(entries, width)


def _track_legend(tracks: Tracks, scales: dict[str, Scale], ink: TerminalStyle, width: int) -> list[str]:
    kinds = [kind for kind in colored_kinds(tracks) if kind]
    letters = _kind_letters(scales["kind"])
    entries = [_legend_entry(ink, letters[kind], scales["kind"].color(kind), kind) for kind in kinds]
    hatches = [f"{mark} {replace_control_characters(kind)}" for kind, mark in _hatch_marks(tracks).items()]
    return _wrap_entries([*entries[:_MOST_NAMES], *hatches], width)


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
    end = f"{format_position(tracks.end)} {replace_control_characters(tracks.unit)}".rstrip()
    lines.append(" " * gutter + f"{format_position(tracks.start)}{end:>{columns - len(format_position(tracks.start))}}")
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
    found: dict[str, str] = {}
    for k, kind in enumerate(scale.values):
        own = "".join(re.findall("[a-z]{2,}", str(kind).lower()))  # of its words, not of "512x512"
        spare = [chr(ord("a") + j) for j in range(26)]
        free = [letter for letter in (*own, *spare) if letter not in found.values()]
        found[kind] = free[0] if free else kind_symbol(k)
    return found


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
