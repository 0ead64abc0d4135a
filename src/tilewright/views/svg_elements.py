# SPDX-License-Identifier: Apache-2.0
"""Strokes of a picture: SVG elements as strings, with every word escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .color_scales import Scale, along, hatched_kinds, kinds_of, written
from .scene import Grid, Lanes

SANS = "ui-sans-serif, system-ui, Helvetica, Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
ADVANCE = 0.61  # width of a letter over the size of its type: exact for monospaced type, generous for the other

PAPER, INK, SOFT, LINE, MARK, GOOD = "#fdfcf9", "#1f2328", "#57606a", "#c4cad1", "#b3261e", "#1a7f37"
DARK = {"paper": "#16191d", "ink": "#e8eaed", "soft": "#a3adb8", "line": "#3d444d", "bad": "#ff8a80", "good": "#6fdd8b"}
LIGHT = {"paper": PAPER, "ink": INK, "soft": SOFT, "line": LINE, "bad": MARK, "good": GOOD}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A part of a picture at the origin: its size in pixels, and its elements.

    >>> Drawing(10, 10, ("<rect/>",)).placed(5, 6)
    '<g transform="translate(5 6)"><rect/></g>'
    """

    width: float
    height: float
    body: tuple[str, ...]

    def placed(self, x: float, y: float) -> str:
        """Return the elements moved to a point.

        >>> Drawing(1, 1, ("<a/>", "<b/>")).placed(0, 2)
        '<g transform="translate(0 2)"><a/>\\n<b/></g>'
        """
        return f'<g transform="translate({x:g} {y:g})">' + "\n".join(self.body) + "</g>"


def width_of(words: str, size: float) -> float:
    """Return the width in pixels of words in type of a size.

    >>> width_of("offset", 10)
    36.6
    """
    return round(len(words) * ADVANCE * size, 2)


def attribute(value: str) -> str:
    """Return text that is safe inside an attribute or an element.

    >>> attribute('<script>"')
    '&lt;script&gt;&quot;'
    """
    if not value.isprintable():  # control characters have no place in XML, not even escaped
        value = "".join(c if c.isprintable() else "\ufffd" for c in value)
    return escape(value)


def text(
    x: float, y: float, words: str, size: float = 12, tone: str = "ink", anchor: str = "start", bold: bool = False
) -> str:
    """Return words at a point, in a tone of the paper: ink, soft, good or bad.

    >>> text(0, 12, "a < b")
    '<text class="tw-ink" x="0" y="12" font-size="12" fill="#1f2328">a &lt; b</text>'
    """
    more = (f' text-anchor="{anchor}"' if anchor != "start" else "") + (' font-weight="600"' if bold else "")
    words = attribute(words)
    return f'<text class="tw-{tone}" x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{LIGHT[tone]}"{more}>{words}</text>'


def boxes(cells: Sequence[tuple[float, float, float, float]], attributes: str) -> str:
    """Return one path with many boxes, each given as x, y, width, height.

    >>> boxes([(0, 0, 4, 2), (4, 0, 4, 2)], 'fill="red"')
    '<path fill="red" d="M0 0h4v2h-4zM4 0h4v2h-4z"/>'
    """
    path = "".join([f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z" for x, y, w, h in cells])
    return f'<path {attributes} d="{path}"/>'


def hatching(cells: Sequence[tuple[float, float, float, float]], gap: float = 7, crossed: bool = False) -> str:
    """Return diagonal strokes over boxes, on a veil of paper: what is there and is not data.

    `crossed` adds the other diagonal, for a second kind of it. Strokes are drawn one by one, because patterns need
    names, which would clash when pictures share a page.

    >>> hatching([(0, 0, 7, 7)]).count("M")
    2
    """
    strokes = []
    for x, y, w, h in cells:
        # lines x + y = c, on one raster for all boxes so that neighbours join
        c = (x + y) // gap * gap + gap
        while c < x + y + w + h:
            x0, x1 = max(x, c - y - h), min(x + w, c - y)
            strokes.append(f"M{x0:g} {c - x0:g}L{x1:g} {c - x1:g}")
            if crossed:  # the same strokes, seen in a mirror
                strokes.append(f"M{x0:g} {2 * y + h - c + x0:g}L{x1:g} {2 * y + h - c + x1:g}")
            c += gap
    veil = boxes(cells, f'class="tw-paper" fill="{PAPER}" fill-opacity="0.62"')
    line = f'class="tw-hatch" stroke="{SOFT}" stroke-opacity="0.6" stroke-width="0.8"'
    return f'{veil}<path {line} fill="none" d="{"".join(strokes)}"/>'


def style() -> str:
    """Return the style sheet that gives a picture its dark version; it touches no class that is not its own.

    >>> "prefers-color-scheme: dark" in style()
    True
    """
    rules = "".join(f".tw-{tone}{{fill:{colour}}}" for tone, colour in DARK.items() if tone != "line")
    rules += f".tw-line{{stroke:{DARK['line']}}}.tw-hatch{{stroke:{DARK['soft']}}}"
    return f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"


_SIZE = 10
_MOST = 32
_BAR = 120


def legend_of(panel: Grid | Lanes, scales: dict[str, Scale], room: float, again: bool = False) -> Drawing:
    """Return the legend of a panel within a width, empty where there is nothing to say.

    `again` leaves out the colours, where a panel before it has explained them.

    >>> legend_of(Grid(1, 1), {}, 100).height
    0
    """
    if isinstance(panel, Lanes):
        scale = scales["kind"]
        entries = [(scale.colour(kind), kind) for kind in kinds_of(panel) if kind]
        return _swatches("", [] if again else entries, () if again else hatched_kinds(panel), room)
    hatched = (panel.hatched,) if panel.valid and not all(panel.valid) and panel.hatched else ()
    if not panel.color or again:
        return _swatches("", [], hatched, room)
    scale = scales[panel.color]
    if scale.named:
        seen = set(panel.field(panel.color).values)
        entries = [(scale.colour(value), written(value)) for value in scale.values if value in seen]
        return _swatches(panel.color, entries, hatched, room)
    return _bar(panel.color, scale, "".join(hatched))


def _swatches(name: str, entries: Sequence[tuple[str, str]], hatched: Sequence[str], room: float) -> Drawing:
    body = []
    x, y = 0.0, 0
    if name and entries:
        body.append(text(0, 11, name, _SIZE, "soft"))
        x = width_of(name, _SIZE) + 10
    indent = x
    shown = [*entries[:_MOST], *([("", f"and {len(entries) - _MOST} more")] if len(entries) > _MOST else [])]
    widest = x
    hatches = [("crossed" if k else "hatched", word) for k, word in enumerate(hatched)]
    for colour, word in [*shown, *hatches]:
        needed = 18 + width_of(word, _SIZE) + 8
        if x > indent and x + needed > room:
            x, y = indent, y + 16
        if colour:
            body.append(_swatch(x, y + 2, colour))
        body.append(text(x + 15, y + 11, word, _SIZE))
        x += needed
        widest = max(widest, x)
    return Drawing(widest, y + 16 if body else 0, tuple(body))


def _swatch(x: float, y: float, colour: str) -> str:
    hatched = colour in ("hatched", "crossed")
    fill = "none" if hatched else colour
    box = f'<rect x="{x:g}" y="{y:g}" width="11" height="11" rx="2" fill="{fill}" class="tw-line" stroke="{LINE}"/>'
    return box + (hatching([(x, y, 11, 11)], 4, colour == "crossed") if hatched else "")


def _bar(name: str, scale: Scale, hatched: str) -> Drawing:
    """Return a ramp of colours with its ends; values too many to name are a ramp, too."""
    low, high = (scale.values[0], scale.values[-1]) if scale.kind == "category" else (scale.low, scale.high)
    kind = "ramp" if scale.kind == "category" else scale.kind
    name += " (log)" if scale.log else ""
    start = width_of(f"{name} {written(low)}", _SIZE) + 6
    body = [text(0, 11, name, _SIZE, "soft"), text(start - 6, 11, written(low), _SIZE, "soft", "end")]
    step = _BAR // 16
    for k in range(16):
        colour = attribute(along(kind, k * 63 // 15))
        body.append(f'<rect x="{start + k * step:g}" y="2" width="{step}" height="11" fill="{colour}"/>')
    end = start + 16 * step + 6
    body.append(text(end, 11, written(high), _SIZE, "soft"))
    end += width_of(written(high), _SIZE) + 12
    if hatched:
        body += [_swatch(end, 2, "hatched"), text(end + 15, 11, hatched, _SIZE)]
        end += 15 + width_of(hatched, _SIZE)
    return Drawing(end, 16, tuple(body))
