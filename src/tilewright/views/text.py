# SPDX-License-Identifier: Apache-2.0
"""A scene as text for terminals: with 24-bit colours or without any, within 80 columns."""

from __future__ import annotations

import re
from textwrap import wrap

from .color_scales import Scale, hatched_kinds, kinds_of, scales_of, written
from .scene import Fact, Grid, Lanes, Scene
from .svg_tracks import amount
from .terminal import Ink, plain
from .text_grid import grid_lines, labels_fit, symbol

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
    ink = Ink(color)
    scales = scales_of(scene)
    blocks = [[ink.strong(line) for line in wrap(plain(scene.title), width)] + wrap(plain(scene.note), width)]
    for panel in scene.panels:
        if isinstance(panel, Grid):
            lines = grid_lines(panel, scales, ink, width, height)
            legend = _grid_legend(panel, scales, ink, width, labels_fit(panel, width))
        else:
            lines = _lane_lines(panel, scales, ink, width, height)
            legend = _lane_legend(panel, scales, ink, width)
        blocks.append(lines + legend)
    if scene.facts:
        blocks.append(_fact_lines(scene.facts, width))
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks)


def _fact_lines(facts: tuple[Fact, ...], width: int) -> list[str]:
    names = max(len(plain(fact.name)) for fact in facts)
    names = min(names, width // 2)
    lines = []
    for fact in facts:
        name = plain(fact.name)[:names]
        value = wrap(plain(fact.value), width - names - 4) or [""]
        lines.append(f"  {name:<{names}}  {value[0]}")
        lines += [" " * (names + 4) + more for more in value[1:]]
    return lines


def _grid_legend(grid: Grid, scales: dict[str, Scale], ink: Ink, width: int, labelled: bool) -> list[str]:
    entries = []
    if grid.color:
        scale = scales[grid.color]
        values = set(grid.field(grid.color).values)
        if scale.named and (ink.on or not labelled):  # without colours, only bare cells need to be explained
            seen = [(k, value) for k, value in enumerate(scale.values) if value in values][:_MOST_NAMES]
            entries = [_entry(ink, symbol(k), scale.colour(value), written(value)) for k, value in seen]
        elif not scale.named and scale.kind != "category":
            entries = [f"{written(scale.low)} to {written(scale.high)}"]
        entries = [grid.color + ":", *entries] if entries else []
    if grid.valid and not all(grid.valid):
        entries.append(f"/ {grid.hatched}")
    return _flow(entries, width)


def _lane_legend(lanes: Lanes, scales: dict[str, Scale], ink: Ink, width: int) -> list[str]:
    kinds = [kind for kind in kinds_of(lanes) if kind]
    letters = _letters(scales["kind"])
    entries = [_entry(ink, letters[kind], scales["kind"].colour(kind), kind) for kind in kinds]
    hatches = [f"{mark} {plain(kind)}" for kind, mark in _hatches(lanes).items()]
    return _flow([*entries[:_MOST_NAMES], *hatches], width)


def _hatches(lanes: Lanes) -> dict[str, str]:
    """Return the mark of each kind of hatched spans."""
    return {kind: "x" if k else "/" for k, kind in enumerate(hatched_kinds(lanes))}


def _entry(ink: Ink, mark: str, colour: str, word: str) -> str:
    word = plain(word)
    swatch = ink.paint("  ", colour) if ink.on else mark
    return f"{swatch} {word}" if ink.on or mark != word else word


def _flow(entries: list[str], width: int) -> list[str]:
    """Return entries in lines; escape sequences take no room."""
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


def _lane_lines(lanes: Lanes, scales: dict[str, Scale], ink: Ink, width: int, height: int) -> list[str]:
    names = [plain(name) for name in lanes.names]
    gutter = min(max([len(name) for name in names], default=0), width // 3) + 3
    room = width - gutter - 1
    scale = room / (lanes.end - lanes.start)
    colours = scales["kind"].colours(span.kind for span in lanes.spans if not span.hatched)
    letters, hatches = _letters(scales["kind"]), _hatches(lanes)
    lines = [f"  {plain(lanes.title)}"] if lanes.title else []
    end = f"{amount(lanes.end)} {plain(lanes.unit)}".rstrip()
    lines.append(" " * gutter + f"{amount(lanes.start)}{end:>{room - len(amount(lanes.start))}}")
    for lane, name in list(enumerate(names))[:height]:
        row = [(" ", "")] * room
        for span in lanes.spans:
            if span.lane != lane:
                continue
            first = min(room - 1, int((span.start - lanes.start) * scale))
            last = max(first + 1, min(room, round((span.end - lanes.start) * scale)))
            mark = hatches[span.kind or "unused"] if span.hatched else " " if ink.on else letters[span.kind]
            body = _body(plain(span.label), mark, last - first, framed=not (ink.on or span.hatched))
            row[first:last] = [(letter, "" if span.hatched else colours[span.kind]) for letter in body]
        lines.append(f"  {name[: gutter - 3]:>{gutter - 3}} " + _painted(row, ink))
    if len(names) > height:
        lines.append(" " * gutter + f"⋮ and {len(names) - height} more")
    return lines


def _body(word: str, mark: str, room: int, framed: bool) -> str:
    """Return the characters of a span: its word amid its mark, and where there are no colours a bar before it."""
    bar = "│" if framed and room > 2 else ""
    inside = room - len(bar)
    return bar + (word if len(word) <= inside - (0 if bar else 2) else "").center(inside, mark)


def _letters(scale: Scale) -> dict[str, str]:
    """Return a letter for each kind of span: the first of its own that no other has, since labels are often numbers."""
    found: dict[str, str] = {}
    for k, kind in enumerate(scale.values):
        own = "".join(re.findall("[a-z]{2,}", str(kind).lower()))  # of its words, not of "512x512"
        spare = [chr(ord("a") + j) for j in range(26)]
        free = [letter for letter in (*own, *spare) if letter not in found.values()]
        found[kind] = free[0] if free else symbol(k)
    return found


def _painted(row: list[tuple[str, str]], ink: Ink) -> str:
    """Return letters on their grounds, with one escape sequence for each run."""
    out = []
    start = 0
    for k in range(1, len(row) + 1):
        if k == len(row) or row[k][1] != row[start][1]:
            words = "".join(letter for letter, _ in row[start:k])
            out.append(ink.paint(words, row[start][1]) if row[start][1] else words)
            start = k
    return "".join(out)
