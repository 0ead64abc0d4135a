# SPDX-License-Identifier: Apache-2.0
"""A picture in a notebook that answers to the pointer and the keyboard, and tells Python what was chosen.

It is a widget of anywidget, which is optional: without it a notebook shows the same picture, at rest.
"""

from __future__ import annotations

from typing import Any

from ..errors import MissingPackage
from .html import embed_json, panel_data, read_asset, widget_markup
from .scene import Scene
from .scenes import scene_of


def widget(subject: Any, **options: Any) -> Any:
    """Return a picture of `subject` as a widget for notebooks; `options` are those of its scene.

    Pointing at a cell marks it and everything that is linked to it. `chosen` is what was clicked last, as a dict of the
    cell's attributes; `widget.observe(function, "chosen")` follows it. Needs the package anywidget.

    >>> from importlib.util import find_spec
    >>> from tilewright import row_major
    >>> find_spec("anywidget") is None or widget(row_major(4, 8)).chosen == {}
    True
    """
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise MissingPackage("widgets need anywidget, which is not installed; install tilewright[notebook]") from None
    scene = subject if isinstance(subject, Scene) else scene_of(subject, **options)
    # A class of its own, made here: its base is known only where anywidget is installed.
    traits = {
        "_esm": read_asset("marks.js") + read_asset("widget.js"),
        "markup": traitlets.Unicode(widget_markup(scene)).tag(sync=True),
        "panels": traitlets.Unicode(embed_json([panel_data(panel) for panel in scene.panels])).tag(sync=True),
        "chosen": traitlets.Dict().tag(sync=True),
    }
    return type("PictureWidget", (anywidget.AnyWidget,), traits)()
