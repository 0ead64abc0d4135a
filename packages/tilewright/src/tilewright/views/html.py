# SPDX-License-Identifier: Apache-2.0
"""A scene as one self-contained HTML file, for keyboard and mouse, light or dark.

The panels are SVG; the script only moves a mark. Pointing at a cell shows its attributes and marks all cells linked
to it, such as an element and its address.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any

from .scene import Entry, Fact, Grid, Panel, Scene
from .scene_options import format_value
from .svg import DARK, LIGHT, Drawing, dark_style, draw_panels, escape_text, to_svg

# Nothing may be loaded or sent, whatever a hostile name contains.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"

_SVG = "http://www.w3.org/2000/svg"  # a name, not an address
_HOW = "Point at a cell, or move with Tab and the arrow keys. Enter or a click pins the mark, Escape releases it."


_START = """
follow([...document.querySelectorAll("svg[data-panel]")], JSON.parse(document.getElementById("scene").textContent),
  document.getElementById("told"));
"""


def to_html(scene: Scene) -> str:
    """Return a `scene` as a self-contained HTML page.

    >>> page = to_html(Scene("a <b>", (Grid(2, 2),)))
    >>> "<h1>a &lt;b&gt;</h1>" in page, "http:" in page.replace("http://www.w3.org", "")
    (True, False)
    """
    return page_markup(scene, draw_panels(scene))


def page_markup(scene: Scene, drawings: list[Drawing], above: str = "", script: str = "") -> str:
    """Return the page of a `scene` with its panels as they have been drawn.

    `above` is markup before the panels, and `script` the code that runs after the page's own.

    >>> page_markup(Scene("nothing"), [], "<p>above</p>").count("<p>above</p>")
    1
    """
    title = escape_text(scene.title)
    note = f"<p>{escape_text(scene.note)}</p>" if scene.note else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{title}</title>
<style>{_color_variables()}{read_asset("page.css")}</style>
{dark_style()}
</head>
<body>
<header><h1>{title}</h1>{note}</header>
{_entries_markup(scene.entries)}{above}{_main(scene, drawings)}
<script id="scene" type="application/json">{embed_json([panel_data(panel) for panel in scene.panels])}</script>
<script type="module">{read_asset("marks.js")}{_START}{script}</script>
</body>
</html>
"""


def widget_markup(scene: Scene) -> str:
    """Return a `scene` with its style, for a tree of its own within another page.

    >>> widget_markup(Scene("", (Grid(1, 1),))).startswith("<style>:host{")
    True
    """
    style = f"<style>{_color_variables(':host')}{read_asset('page.css')}</style>{dark_style()}"
    return f"{style}{_entries_markup(scene.entries)}{_main(scene, draw_panels(scene))}"


def _main(scene: Scene, drawings: list[Drawing]) -> str:
    figures = "\n".join(f"<figure>{svg}</figure>" for svg in panel_markup(scene, drawings))
    return f"""<main>
{figures}
<aside>
<h2>Under the pointer</h2>
<output id="told" aria-live="polite">{_HOW}</output>
{_facts_markup(scene.facts)}
</aside>
</main>"""


def panel_markup(scene: Scene, drawings: list[Drawing] | None = None) -> list[str]:
    """Return every panel of a scene as an SVG element that can be reached with the keyboard.

    `drawings` replace the usual drawings of its panels.

    >>> panel_markup(Scene("", (Grid(1, 1, title="one"),)))[0][:4]
    '<svg'
    """
    parts = []
    for k, (panel, drawing) in enumerate(zip(scene.panels, drawings or draw_panels(scene), strict=True)):
        width, height = round(drawing.width), round(drawing.height)
        name = escape_text(panel.title or scene.title)
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        head = f'<svg xmlns="{_SVG}" {size} tabindex="0" role="application" aria-label="{name}" data-panel="{k}">'
        parts.append(f"{head}{''.join(drawing.body)}</svg>")
    return parts


def _entries_markup(entries: tuple[Entry, ...]) -> str:
    """Return the list above the panels."""
    if not entries:
        return ""
    items = []
    for entry in entries:
        rows = [f"<div><dt>{escape_text(name)}</dt><dd>{escape_text(value)}</dd></div>" for name, value in entry.lines]
        detail = f"<dl>{''.join(rows)}</dl>" if rows else ""
        items.append(f'<li class="{entry.tone}"><p>{escape_text(entry.title)}</p>{detail}</li>')
    return f'<ol class="entries">{"".join(items)}</ol>\n'


def _facts_markup(facts: tuple[Fact, ...]) -> str:
    if not facts:
        return ""
    rows = [
        f'<div><dt>{escape_text(fact.name)}</dt><dd class="{fact.tone}">{escape_text(fact.value)}</dd></div>'
        for fact in facts
    ]
    return "<h2>Facts</h2><dl>" + "".join(rows) + "</dl>"


def embed_json(data: object) -> str:
    """Return `data` as JSON that is safe inside a script element.

    >>> embed_json(["</script>"])
    '["\\\\u003c/script\\\\u003e"]'
    """
    text = json.dumps(data, separators=(",", ":"), default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def panel_data(panel: Panel) -> dict[str, Any]:
    """Return the data shown when pointing at a cell or a span of a panel.

    >>> panel_data(Grid(1, 1, title="one"))["title"]
    'one'
    """
    if not isinstance(panel, Grid):
        notes_of_spans = [span.note or f"{span.label} {span.start:g} to {span.end:g}" for span in panel.spans]
        notes = {
            note: k for k, note in enumerate(dict.fromkeys(notes_of_spans))
        }  # stored once, since banks repeat them
        spans = [[notes[note], span.link] for note, span in zip(notes_of_spans, panel.spans, strict=True)]
        return {"title": panel.title, "notes": list(notes), "spans": spans}
    fields = {
        field.name: [format_value(value) if isinstance(value, (tuple, float)) else value for value in field.values]
        for field in panel.fields
    }
    forms = {field.name: field.form for field in panel.fields if field.form != "{}"}
    # The link is usually one of the attributes: refer to it instead of repeating it.
    same = next((field.name for field in panel.fields if field.values == panel.link), None)
    high, wide = panel.boxes or (panel.rows, panel.columns)
    boxes = {"size": [high, wide, panel.columns // max(1, wide)], "titles": panel.box_titles, "rows": panel.box_rows}
    return {
        "title": panel.title,
        "fields": fields,
        **({"forms": forms} if forms else {}),
        "link": same if same is not None else list(panel.link),
        "hidden": [k for k, valid in enumerate(panel.valid) if not valid],
        "hatched": panel.hatched,
        "rows": list(panel.row_names) or panel.block[0],
        "columns": list(panel.column_names) or panel.block[1],
        "axes": [panel.row_axis, panel.column_axis],
        **({} if panel.boxes is None else {"boxes": boxes}),
        **({"flows": [[flow.source, flow.target, flow.nbytes] for flow in panel.flows]} if panel.flows else {}),
    }


@lru_cache(maxsize=4)
def read_asset(name: str) -> str:
    """Return a file of the page's own, such as its style, by `name`.

    >>> "svg" in read_asset("page.css")
    True
    """
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _color_variables(root: str = ":root") -> str:
    light = "".join(f"--{tone}:{color};" for tone, color in LIGHT.items())
    dark = "".join(f"--{tone}:{color};" for tone, color in DARK.items())
    return f"{root}{{color-scheme:light dark;{light}}}@media (prefers-color-scheme: dark){{{root}{{{dark}}}}}"


def to_fragment(scene: Scene) -> str:
    """Return a `scene` as HTML for a notebook: the picture alone, because notebooks run no script of ours.

    >>> to_fragment(Scene("", (Grid(1, 1),))).startswith("<div")
    True
    """
    return f'<div style="max-width:100%;overflow-x:auto">{to_svg(scene)}</div>'
