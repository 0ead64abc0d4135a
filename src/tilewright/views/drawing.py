# SPDX-License-Identifier: Apache-2.0
"""Strokes of a picture: SVG elements as strings, with every word escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

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
