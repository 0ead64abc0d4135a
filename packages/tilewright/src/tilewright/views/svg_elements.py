# SPDX-License-Identifier: Apache-2.0
"""SVG elements as strings, with all text escaped; and legends made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .color_scales import Scale, colored_kinds, format_value, hatched_kinds, ramp_color
from .scene import Grid, Tracks

SANS = "ui-sans-serif, system-ui, Helvetica, Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
ADVANCE = 0.61  # width of a character relative to the font size: exact for monospaced fonts, generous for others

PAPER, INK, SOFT, LINE, MARK, GOOD = "#fdfcf9", "#1f2328", "#57606a", "#c4cad1", "#b3261e", "#1a7f37"
DARK = {"paper": "#16191d", "ink": "#e8eaed", "soft": "#a3adb8", "line": "#3d444d", "bad": "#ff8a80", "good": "#6fdd8b"}
LIGHT = {"paper": PAPER, "ink": INK, "soft": SOFT, "line": LINE, "bad": MARK, "good": GOOD}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A part of a picture, placed at the origin: its size in pixels, and its elements.

    >>> Drawing(10, 10, ("<rect/>",)).translate(5, 6)
    '<g transform="translate(5 6)"><rect/></g>'
    """

    width: float
    height: float
    body: tuple[str, ...]

    def translate(self, x: float, y: float) -> str:
        """Return the elements translated to a point.

        >>> Drawing(1, 1, ("<a/>", "<b/>")).translate(0, 2)
        '<g transform="translate(0 2)"><a/>\\n<b/></g>'
        """
        return f'<g transform="translate({x:g} {y:g})">' + "\n".join(self.body) + "</g>"


def text_width(words: str, size: float) -> float:
    """Return the width of a text in pixels at a font size.

    >>> text_width("offset", 10)
    36.6
    """
    return round(len(words) * ADVANCE * size, 2)


def escape_text(value: str) -> str:
    """Return text escaped for use in an attribute or an element.

    >>> escape_text('<script>"')
    '&lt;script&gt;&quot;'
    """
    if not value.isprintable():  # XML forbids control characters, even escaped
        value = "".join(c if c.isprintable() else "\ufffd" for c in value)
    return escape(value)


def text_element(
    x: float, y: float, words: str, size: float = 12, tone: str = "ink", anchor: str = "start", bold: bool = False
) -> str:
    """Return a text at a point; `tone` is ink, soft, good or bad.

    >>> text_element(0, 12, "a < b")
    '<text class="tw-ink" x="0" y="12" font-size="12" fill="#1f2328">a &lt; b</text>'
    """
    more = (f' text-anchor="{anchor}"' if anchor != "start" else "") + (' font-weight="600"' if bold else "")
    words = escape_text(words)
    return f'<text class="tw-{tone}" x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{LIGHT[tone]}"{more}>{words}</text>'


def box_path(cells: Sequence[tuple[float, float, float, float]], attributes: str) -> str:
    """Return one path with many boxes, each as (x, y, width, height).

    >>> box_path([(0, 0, 4, 2), (4, 0, 4, 2)], 'fill="red"')
    '<path fill="red" d="M0 0h4v2h-4zM4 0h4v2h-4z"/>'
    """
    return f'<path {attributes} d="{box_outlines(cells)}"/>'


def box_outlines(cells: Sequence[tuple[float, float, float, float]]) -> str:
    """Return the outlines of boxes, each as (x, y, width, height), as the data of a path.

    >>> box_outlines([(0, 0, 4, 2)])
    'M0 0h4v2h-4z'
    """
    return "".join([f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z" for x, y, w, h in cells])


def hatch_path(cells: Sequence[tuple[float, float, float, float]], gap: float = 7, crossed: bool = False) -> str:
    """Return diagonal strokes over boxes, which mark padding and unused cells.

    `crossed` adds the other diagonal, for a second kind. Strokes are drawn one by one, because SVG patterns need ids,
    which would clash if several pictures share a page.

    >>> hatch_path([(0, 0, 7, 7)]).count("M")
    2
    """
    strokes = []
    for x, y, w, h in cells:
        # lines x + y = c, on one raster for all boxes so that neighbours join
        c = (x + y) // gap * gap + gap
        while c < x + y + w + h:
            x0, x1 = max(x, c - y - h), min(x + w, c - y)
            strokes.append(f"M{x0:g} {c - x0:g}L{x1:g} {c - x1:g}")
            if crossed:  # the same strokes, mirrored
                strokes.append(f"M{x0:g} {2 * y + h - c + x0:g}L{x1:g} {2 * y + h - c + x1:g}")
            c += gap
    veil = box_path(cells, f'class="tw-paper" fill="{PAPER}" fill-opacity="0.62"')
    line = f'class="tw-hatch" stroke="{SOFT}" stroke-opacity="0.6" stroke-width="0.8"'
    return f'{veil}<path {line} fill="none" d="{"".join(strokes)}"/>'


def dark_style() -> str:
    """Return the style sheet for dark backgrounds; it affects only classes of our own.

    >>> "prefers-color-scheme: dark" in dark_style()
    True
    """
    rules = "".join(f".tw-{tone}{{fill:{color}}}" for tone, color in DARK.items() if tone != "line")
    rules += f".tw-line{{stroke:{DARK['line']}}}.tw-hatch{{stroke:{DARK['soft']}}}"
    return f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"


_SIZE = 10
_MOST = 32
_BAR = 120


def draw_legend(
    panel: Grid | Tracks, scales: dict[str, Scale], width: float, colors_explained: bool = False
) -> Drawing:
    """Return the legend of a panel, at most `width` pixels wide; empty if there is nothing to explain.

    `colors_explained` omits the colors, which an earlier panel has explained.

    >>> draw_legend(Grid(1, 1), {}, 100).height
    0
    """
    if isinstance(panel, Tracks):
        scale = scales["kind"]
        entries = [(scale.color(kind), kind) for kind in colored_kinds(panel) if kind]
        return _draw_swatches(
            "", [] if colors_explained else entries, () if colors_explained else hatched_kinds(panel), width
        )
    hatched = (panel.hatched,) if panel.valid and not all(panel.valid) and panel.hatched else ()
    if not panel.color or colors_explained:
        return _draw_swatches("", [], hatched, width)
    scale = scales[panel.color]
    if scale.has_distinct_colors:
        seen = set(panel.field(panel.color).values)
        entries = [(scale.color(value), format_value(value, scale.form)) for value in scale.values if value in seen]
        return _draw_swatches(panel.color, entries, hatched, width)
    return _draw_color_bar(panel.color, scale, "".join(hatched))


def _draw_swatches(name: str, entries: Sequence[tuple[str, str]], hatched: Sequence[str], width: float) -> Drawing:
    body = []
    x, y = 0.0, 0
    if name and entries:
        body.append(text_element(0, 11, name, _SIZE, "soft"))
        x = text_width(name, _SIZE) + 10
    indent = x
    shown = [*entries[:_MOST], *([("", f"and {len(entries) - _MOST} more")] if len(entries) > _MOST else [])]
    widest = x
    hatches = [("crossed" if k else "hatched", word) for k, word in enumerate(hatched)]
    for color, word in [*shown, *hatches]:
        needed = 18 + text_width(word, _SIZE) + 8
        if x > indent and x + needed > width:
            x, y = indent, y + 16
        if color:
            body.append(_draw_swatch(x, y + 2, color))
        body.append(text_element(x + 15, y + 11, word, _SIZE))
        x += needed
        widest = max(widest, x)
    return Drawing(widest, y + 16 if body else 0, tuple(body))


def _draw_swatch(x: float, y: float, color: str) -> str:
    hatched = color in ("hatched", "crossed")
    fill = "none" if hatched else color
    box = f'<rect x="{x:g}" y="{y:g}" width="11" height="11" rx="2" fill="{fill}" class="tw-line" stroke="{LINE}"/>'
    return box + (hatch_path([(x, y, 11, 11)], 4, color == "crossed") if hatched else "")


def _draw_color_bar(name: str, scale: Scale, hatched: str) -> Drawing:
    """Return a color bar with its lowest and highest value."""
    low, high = (scale.values[0], scale.values[-1]) if scale.kind == "category" else (scale.low, scale.high)
    kind = "ramp" if scale.kind == "category" else scale.kind
    name += " (log)" if scale.log else ""
    lowest, highest = format_value(low, scale.form), format_value(high, scale.form)
    start = text_width(f"{name} {lowest}", _SIZE) + 6
    body = [
        text_element(0, 11, name, _SIZE, "soft"),
        text_element(start - 6, 11, lowest, _SIZE, "soft", "end"),
    ]
    step = _BAR // 16
    for k in range(16):
        color = escape_text(ramp_color(kind, k * 63 // 15))
        body.append(f'<rect x="{start + k * step:g}" y="2" width="{step}" height="11" fill="{color}"/>')
    end = start + 16 * step + 6
    body.append(text_element(end, 11, highest, _SIZE, "soft"))
    end += text_width(highest, _SIZE) + 12
    if hatched:
        body += [_draw_swatch(end, 2, "hatched"), text_element(end + 15, 11, hatched, _SIZE)]
        end += 15 + text_width(hatched, _SIZE)
    return Drawing(end, 16, tuple(body))
