# SPDX-License-Identifier: Apache-2.0
"""A scene as SVG: panels side by side if they fit, facts beside or below them.

Tracks, for memory maps and schedules, are spans on a common axis; grids are drawn by `svg_grid`.
"""

from __future__ import annotations

from math import floor, log10
from textwrap import wrap

from .color_scales import (
    HEXADECIMAL,
    INK,
    NOTHING,
    Scale,
    colored_kinds,
    format_value,
    hatched_kinds,
    make_scales,
    text_color_on,
)
from .scene import Fact, Grid, Scene, Span, Tracks
from .svg_elements import (
    LINE,
    MONO,
    SANS,
    SOFT,
    Drawing,
    dark_style,
    draw_legend,
    escape_text,
    hatch_path,
    text_element,
    text_width,
)
from .svg_grid import draw_frame, draw_grid

PAGE = 1020  # pixels within which panels are set side by side
_MARGIN, _GAP = 18, 28
_FACT_SIZE, _FACT_COLUMNS = 11, 46
_SHORT = 300  # pixels of facts that may stand beside anything

WIDTH = 640  # pixels of the axis
_NAME_SIZE = 10
_GUTTER = 56  # pixels at least, so that the axes of several panels stand under each other
_MOST_NOTES = 400  # spans that tell about themselves in the picture; a page always does
_WIDE = 20_000  # pixels of hatched tracks beyond which strokes are fewer


def draw_panels(scene: Scene) -> list[Drawing]:
    """Return every panel of a scene as a drawing; the legend of a color is drawn once.

    >>> len(draw_panels(Scene("", (Grid(2, 2), Grid(1, 1)))))
    2
    """
    scales = make_scales(scene)
    explained: set[str] = set()
    found = []
    for k, panel in enumerate(scene.panels):
        if isinstance(panel, Grid):
            found.append(draw_grid(panel, scales, k, panel.color in explained))
            explained.add(panel.color)
        else:
            found.append(draw_tracks(panel, scales, k, "kind" in explained))
            explained |= {"kind"} if set(scales["kind"].values) == set(colored_kinds(panel)) else set()
    return found


def draw_facts(facts: tuple[Fact, ...], columns: int = 1) -> Drawing:
    """Return the facts as a drawing in `columns` columns: each name with its value below it.

    >>> draw_facts((Fact("size", "32"),)).height
    37.0
    """
    blocks = [[fact.name, *(wrap(fact.value, _FACT_COLUMNS) or [""])] for fact in facts]
    width = text_width("x" * max([len(line) for block in blocks for line in block], default=0), _FACT_SIZE)
    each = sum(_fact_height(block) for block in blocks) / columns
    body = []
    x = y = lowest = 0.0
    column = 0
    for fact, block in zip(facts, blocks, strict=True):
        if y and y + _fact_height(block) / 2 > each and column + 1 < columns:
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
    left = int(max([_GUTTER, *(text_width(name, _NAME_SIZE) for name in tracks.names)])) + 10
    return left, 40 if tracks.title else 18, WIDTH / (tracks.end - tracks.start)


def draw_tracks(tracks: Tracks, scales: dict[str, Scale], number: int = 0, colors_explained: bool = False) -> Drawing:
    """Return tracks as a drawing; `number` identifies the panel, `colors_explained` omits the legend of colors.

    >>> from tilewright.views.scene import Scene
    >>> from tilewright.views.color_scales import make_scales
    >>> tracks = Tracks(("bank 0",), (Span(0, 0, 64, "a", "a"),), end=128)
    >>> draw_tracks(tracks, make_scales(Scene("", (tracks,)))).height > 24
    True
    """
    height = track_height(tracks)
    left, top, scale = track_axis(tracks)
    body = [text_element(0, 14, tracks.title, 13, bold=True)] if tracks.title else []
    body += _draw_axis(tracks, left, top, scale, height)
    body.append(f'<g class="tw-tracks" data-panel="{number}" stroke="{INK}" stroke-width="0.5">')
    with_notes = len(tracks.spans) <= _MOST_NOTES
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
    ink = INK if span.hatched else text_color_on(colors[span.kind])
    tone = 'class="tw-ink" ' if span.hatched else ""
    at = f'x="{x:.5g}" y="{y:g}" font-size="10" fill="{ink}" text-anchor="middle"'
    return f"<text {tone}{at}>{escape_text(words)}</text>"


def _draw_axis(tracks: Tracks, left: int, top: int, scale: float, height: int) -> list[str]:
    body = [f'<g font-family="{MONO}">']
    step = max(1, -(-(_NAME_SIZE + 2) // height))
    for track in range(0, len(tracks.names), step):
        y = top + (track + 0.5) * height + 3.5
        body.append(text_element(left - 6, y, tracks.names[track], _NAME_SIZE, "soft", "end"))
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
