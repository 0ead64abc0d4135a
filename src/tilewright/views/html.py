# SPDX-License-Identifier: Apache-2.0
"""A scene as one HTML file that needs nothing else: no network, keyboard or mouse, light or dark.

The server side draws the SVG of every panel; the script only moves a mark. Whoever points at a cell sees its
attributes, and every other cell that is the same thing is marked too: an element and its place in memory.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any

from .color_scales import written
from .scene import Fact, Grid, Panel, Scene
from .svg import draw_panels, to_svg
from .svg_elements import DARK, LIGHT, attribute, style

# Nothing may be loaded and nothing sent: also a hostile name has no way out.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"

_SVG = "http://www.w3.org/2000/svg"  # a name, not an address
_HOW = "Point at a cell, or move with Tab and the arrow keys. Enter or a click holds the mark, Escape lets go."


_START = """
follow([...document.querySelectorAll("svg[data-panel]")], JSON.parse(document.getElementById("scene").textContent),
  document.getElementById("told"));
"""


def to_html(scene: Scene) -> str:
    """Return a scene as a page of HTML that needs nothing else.

    >>> page = to_html(Scene("a <b>", (Grid(2, 2),)))
    >>> "<h1>a &lt;b&gt;</h1>" in page, "http:" in page.replace("http://www.w3.org", "")
    (True, False)
    """
    title = attribute(scene.title)
    note = f"<p>{attribute(scene.note)}</p>" if scene.note else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{title}</title>
<style>{_colours()}{_asset("page.css")}</style>
{style()}
</head>
<body>
<header><h1>{title}</h1>{note}</header>
<main>
{figures(scene)}
<aside>
<h2>Under the pointer</h2>
<output id="told" aria-live="polite">{_HOW}</output>
{_facts(scene.facts)}
</aside>
</main>
<script id="scene" type="application/json">{_data(scene)}</script>
<script type="module">{_asset("marks.js")}{_START}</script>
</body>
</html>
"""


def figures(scene: Scene) -> str:
    """Return the panels of a scene, each as a figure that can be reached with the keyboard.

    >>> figures(Scene("", (Grid(1, 1, title="one"),))).count("<figure>")
    1
    """
    return "\n".join(f"<figure>{svg}</figure>" for svg in panel_markup(scene))


def panel_markup(scene: Scene) -> list[str]:
    """Return every panel of a scene as an SVG element that can be reached with the keyboard.

    >>> panel_markup(Scene("", (Grid(1, 1, title="one"),)))[0][:4]
    '<svg'
    """
    parts = []
    for k, (panel, drawing) in enumerate(zip(scene.panels, draw_panels(scene), strict=True)):
        width, height = round(drawing.width), round(drawing.height)
        name = attribute(panel.title or scene.title)
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        head = f'<svg xmlns="{_SVG}" {size} tabindex="0" role="application" aria-label="{name}" data-panel="{k}">'
        parts.append(f"{head}{''.join(drawing.body)}</svg>")
    return parts


def _facts(facts: tuple[Fact, ...]) -> str:
    if not facts:
        return ""
    rows = [
        f'<div><dt>{attribute(fact.name)}</dt><dd class="{fact.tone}">{attribute(fact.value)}</dd></div>'
        for fact in facts
    ]
    return "<h2>Facts</h2><dl>" + "".join(rows) + "</dl>"


def _data(scene: Scene) -> str:
    """Return what the script needs, as JSON that cannot end the element that it stands in."""
    text = json.dumps([panel_data(panel) for panel in scene.panels], separators=(",", ":"), default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def panel_data(panel: Panel) -> dict[str, Any]:
    """Return what whoever points at a cell or a span of a panel is told.

    >>> panel_data(Grid(1, 1, title="one"))["title"]
    'one'
    """
    if not isinstance(panel, Grid):
        told = [span.note or f"{span.label} {span.start:g} to {span.end:g}" for span in panel.spans]
        notes = {note: k for k, note in enumerate(dict.fromkeys(told))}  # the same in every bank: say it once
        spans = [[notes[note], span.link] for note, span in zip(told, panel.spans, strict=True)]
        return {"title": panel.title, "notes": list(notes), "spans": spans}
    fields = {
        field.name: [written(value) if isinstance(value, (tuple, float)) else value for value in field.values]
        for field in panel.fields
    }
    # The link is usually one of the attributes: say which, rather than twice the same.
    same = next((field.name for field in panel.fields if field.values == panel.link), None)
    return {
        "title": panel.title,
        "fields": fields,
        "link": same if same is not None else list(panel.link),
        "hidden": [k for k, valid in enumerate(panel.valid) if not valid],
        "hatched": panel.hatched,
        "rows": list(panel.row_names) or panel.block[0],
        "columns": list(panel.column_names) or panel.block[1],
        "axes": [panel.row_axis, panel.column_axis],
    }


@lru_cache(maxsize=4)
def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _colours() -> str:
    light = "".join(f"--{tone}:{colour};" for tone, colour in LIGHT.items())
    dark = "".join(f"--{tone}:{colour};" for tone, colour in DARK.items())
    return f":root{{color-scheme:light dark;{light}}}@media (prefers-color-scheme: dark){{:root{{{dark}}}}}"


def to_fragment(scene: Scene) -> str:
    """Return a scene as HTML for a notebook: the picture alone, because notebooks run no script of ours.

    >>> to_fragment(Scene("", (Grid(1, 1),))).startswith("<div")
    True
    """
    return f'<div style="max-width:100%;overflow-x:auto">{to_svg(scene)}</div>'
