# SPDX-License-Identifier: Apache-2.0
"""Scenes and animations as plain data for the page, which builds its elements from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..views.html import panel_data, panel_markup
from ..views.scene import Fact, Scene


def render_for_page(scene: Scene) -> dict[str, Any]:
    """Return a scene for the page: every panel as SVG, with the data shown on pointing.

    >>> from tilewright import row_major
    >>> from tilewright.views import scene_of
    >>> sorted(render_for_page(scene_of(row_major(2, 2))))
    ['facts', 'note', 'panels', 'title']
    """
    return {
        "title": scene.title,
        "note": scene.note,
        "facts": render_facts(scene.facts),
        "panels": [
            {"svg": svg, "data": panel_data(panel)}
            for svg, panel in zip(panel_markup(scene), scene.panels, strict=True)
        ],
    }


def render_facts(facts: Iterable[Fact]) -> list[dict[str, str]]:
    """Return `facts` for the page.

    >>> render_facts([Fact("threads", "32")])
    [{'name': 'threads', 'value': '32', 'tone': 'plain'}]
    """
    return [{"name": fact.name, "value": fact.value, "tone": fact.tone} for fact in facts]
