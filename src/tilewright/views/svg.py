# SPDX-License-Identifier: Apache-2.0
"""A scene as SVG: panels side by side if they fit, facts beside or below them."""

from __future__ import annotations

from textwrap import wrap

from .color_scales import colored_kinds, make_scales
from .scene import Fact, Grid, Scene
from .svg_elements import SANS, Drawing, dark_style, escape_text, text_element, text_width
from .svg_grid import draw_frame, draw_grid
from .svg_tracks import draw_tracks

PAGE = 1020  # pixels within which panels are set side by side
_MARGIN, _GAP = 18, 28
_FACT_SIZE, _FACT_COLUMNS = 11, 46


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
    """Return a scene as SVG.

    >>> to_svg(Scene("nothing", (Grid(2, 2),)))[:4]
    '<svg'
    """
    drawings = draw_panels(scene)
    if scene.facts:
        beside = sum(drawing.width + _GAP for drawing in drawings) + draw_facts(scene.facts).width + _MARGIN <= PAGE
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
    for drawing in drawings:
        if x > _MARGIN and x + drawing.width > PAGE:
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
