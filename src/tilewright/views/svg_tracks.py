# SPDX-License-Identifier: Apache-2.0
"""Lanes as a drawing: spans on a common axis, for memory maps and schedules."""

from __future__ import annotations

from math import floor, log10

from .color_scales import INK, NOTHING, Scale, hatched_kinds, ink_on
from .scene import Lanes, Span
from .svg_elements import LINE, MONO, SOFT, Drawing, attribute, hatching, legend_of, text, width_of

WIDTH = 640  # pixels of the axis
_NAME_SIZE = 10
_GUTTER = 56  # pixels at least, so that the axes of several panels stand under each other
_MOST_NOTES = 400  # spans that tell about themselves in the picture; a page always does
_WIDE = 20_000  # pixels of hatched lanes beyond which strokes are fewer


def lane_height(lanes: Lanes) -> int:
    """Return the height of a lane in pixels: lower where there are many.

    >>> lane_height(Lanes(("bank 0",))), lane_height(Lanes(tuple("abcdefgh" * 20)))
    (24, 6)
    """
    return max(6, min(24, 960 // max(1, len(lanes.names))))


def ticks(start: float, end: float, most: int = 8) -> list[float]:
    """Return round numbers between two, at most so many; powers of two for what looks like bytes.

    >>> ticks(0, 100), ticks(0, 1 << 20)
    ([0, 20, 40, 60, 80, 100], [0, 131072, 262144, 393216, 524288, 655360, 786432, 917504, 1048576])
    """
    width = end - start
    if width >= 4096 and float(width).is_integer():
        step: float = 1 << max(0, (int(width) // most - 1).bit_length())
    else:
        base = 10.0 ** floor(log10(width / most))
        step = next(base * factor for factor in (1, 2, 5, 10) if base * factor * most >= width)
        step = int(step) if step >= 1 else step
    first = int(-(-start // step))
    return [k * step for k in range(first, int(end // step) + 1)]


def amount(value: float, step: float = 0) -> str:
    """Return a position on an axis as text: in K or M (1024 or 1024 x 1024) where steps are multiples of it.

    >>> amount(2048, 1024), amount(1500), amount(0.25), amount(3 << 20, 1 << 20)
    ('2K', '1500', '0.25', '3M')
    """
    for unit, size in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if step and step % size == 0 and value % size == 0:
            return f"{value // size:d}{unit}" if value else "0"
    return f"{value:.7g}"


def draw_lanes(lanes: Lanes, scales: dict[str, Scale], number: int = 0, again: bool = False) -> Drawing:
    """Return lanes as a drawing; `number` is what a page calls the panel, `again` that its colours are explained.

    >>> from tilewright.views.scene import Scene
    >>> from tilewright.views.color_scales import scales_of
    >>> lanes = Lanes(("bank 0",), (Span(0, 0, 64, "a", "a"),), end=128)
    >>> draw_lanes(lanes, scales_of(Scene("", (lanes,)))).height > 24
    True
    """
    height = lane_height(lanes)
    left = int(max([_GUTTER, *(width_of(name, _NAME_SIZE) for name in lanes.names)])) + 10
    top = 40 if lanes.title else 18
    scale = WIDTH / (lanes.end - lanes.start)
    body = [text(0, 14, lanes.title, 13, bold=True)] if lanes.title else []
    body += _axis(lanes, left, top, scale, height)
    body.append(f'<g class="tw-lanes" data-panel="{number}" stroke="{INK}" stroke-width="0.5">')
    told = len(lanes.spans) <= _MOST_NOTES
    kinds = hatched_kinds(lanes)
    hatches: dict[str, list[tuple[float, float, float, float]]] = {kind: [] for kind in kinds}
    colours = scales["kind"].colours(span.kind for span in lanes.spans if not span.hatched)
    for k, span in enumerate(lanes.spans):
        x, width = left + (span.start - lanes.start) * scale, max((span.end - span.start) * scale, 0.75)
        y = top + span.lane * height
        box = (round(x, 2), y + 1, round(width, 2), height - 2)
        if span.hatched:
            hatches[span.kind or "unused"].append(box)
        body.append(_span(k, span.note if told else "", box, NOTHING if span.hatched else colours[span.kind]))
    body.append("</g>")
    for kind, boxes in hatches.items():
        gap = 7 if sum(box[2] for box in boxes) < _WIDE else 21
        body.append(hatching(boxes, gap, crossed=kind != kinds[0]))
    body += [part for span in lanes.spans if (part := _label(lanes, span, left, top, scale, height, colours))]
    bottom = top + len(lanes.names) * height
    legend = legend_of(lanes, scales, WIDTH, again)
    body.append(legend.placed(left, bottom + 8))
    return Drawing(left + WIDTH + 30, bottom + 8 + legend.height, tuple(body))


def _span(k: int, note: str, box: tuple[float, float, float, float], colour: str) -> str:
    x, y, width, height = box
    rect = f'<rect data-span="{k}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{colour}"'
    return f"{rect}><title>{attribute(note)}</title></rect>" if note else f"{rect}/>"


def _label(
    lanes: Lanes, span: Span, left: float, top: float, scale: float, height: int, colours: dict[str, str]
) -> str:
    """Return the words on a span, shortened to fit; none where nothing readable would fit."""
    width = (span.end - span.start) * scale
    fits = int((width - 6) / (10 * 0.61))
    if height < 14 or fits < min(3, len(span.label)) or not span.label:
        return ""
    words = span.label if len(span.label) <= fits else span.label[: fits - 1] + "…"
    x = left + (span.start - lanes.start) * scale + width / 2
    y = top + span.lane * height + height / 2 + 3.5
    ink = INK if span.hatched else ink_on(colours[span.kind])
    tone = 'class="tw-ink" ' if span.hatched else ""
    return (
        f'<text {tone}x="{x:.5g}" y="{y:g}" font-size="10" fill="{ink}" text-anchor="middle">{attribute(words)}</text>'
    )


def _axis(lanes: Lanes, left: int, top: int, scale: float, height: int) -> list[str]:
    body = [f'<g font-family="{MONO}">']
    step = max(1, -(-(_NAME_SIZE + 2) // height))
    for lane in range(0, len(lanes.names), step):
        y = top + (lane + 0.5) * height + 3.5
        body.append(text(left - 6, y, lanes.names[lane], _NAME_SIZE, "soft", "end"))
    lines = []
    bottom = len(lanes.names) * height
    marks = ticks(lanes.start, lanes.end)
    apart = marks[1] - marks[0] if len(marks) > 1 else 0
    for tick in marks:
        x = round(left + (tick - lanes.start) * scale, 2)
        lines.append(f"M{x:g} {top - 3}v{bottom + 3}")
        body.append(text(x, top - 6, amount(tick, apart), 9, "soft", "middle"))
    if lanes.unit:
        body.append(text(left - 16, top - 6, f"{lanes.unit} →", 9, "soft", "end"))
    body.append("</g>")
    body.append(f'<path class="tw-line" stroke="{LINE}" stroke-width="0.7" fill="none" d="{"".join(lines)}"/>')
    rules = "".join(f"M{left} {top + k * height}h{WIDTH}" for k in range(len(lanes.names) + 1))
    body.append(f'<path class="tw-line" stroke="{SOFT}" stroke-opacity="0.35" stroke-width="0.5" d="{rules}"/>')
    return body
