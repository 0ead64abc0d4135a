# SPDX-License-Identifier: Apache-2.0
"""Output of scenes: to the terminal, into a notebook, or into a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .._files import as_path, write_file
from ..errors import MissingPackage, TilewrightError
from .html import embed_json, panel_data, read_asset, to_fragment, to_html, widget_markup
from .scene import Scene, to_json
from .scenes import scene_of
from .svg import to_svg
from .text import supports_color, terminal_width, to_text

if TYPE_CHECKING:
    from .animation import Animation

Renderer = TypeVar("Renderer", bound=Callable[..., str])

_NOTEBOOK_SIDE = 32  # rows and columns of automatic pictures, which are stored in the notebook


def save(scene: Scene | Animation, path: str | os.PathLike[str]) -> Path:
    """Write a `scene` to the file `path` and return its path; the suffix is .svg, .html, .txt or .json.

    An animation is written as .html, with a player.

    >>> import tempfile
    >>> from tilewright import row_major
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(scene_of(row_major(4, 8)), Path(folder) / "layout.svg").name
    'layout.svg'
    """
    target = as_path(path)
    players = {".html": import_module(f"{__package__}.animation").to_player} if not isinstance(scene, Scene) else {}
    write_file(target, _find_renderer(players or _RENDERERS, target)(scene))
    return target


def _find_renderer(renderers: dict[str, Renderer], target: Path) -> Renderer:
    render = renderers.get(target.suffix.lower())
    if render is None:
        raise ValueError(f"{target.name!r}: expected a name that ends in one of {', '.join(renderers)}")
    return render


def show(subject: object, to: str | os.PathLike[str] | None = None, **options: Any) -> None:
    """Draw `subject`: as text in a terminal, as a picture in a notebook, or into the file `to`.

    `options` are the options of its scene; all scenes have `label`, `color` and `address="hex"`.

    >>> from tilewright import row_major
    >>> show(row_major(2, 2), memory=False)
    (2,2):(2,1)
    <BLANKLINE>
      coordinates
        0 1
      0 0 1
      1 2 3
      offset:  0 to 3
    <BLANKLINE>
      layout                 (2,2):(2,1)
      elements               4
      memory                 4 elements
      contiguous, row-major  1 run of 4
      injective              yes
    """
    scene = scene_of(subject, **options)
    if to is not None:
        save(scene, to)
    elif not _display_in_notebook(scene):
        print(to_text(scene, terminal_width(sys.stdout), supports_color(sys.stdout)))


def _display_in_notebook(scene: Scene) -> bool:
    """Display a scene in the running notebook; return False if there is none."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None
    if getattr(shell, "kernel", None) is None:
        return False
    display = import_module("IPython.display")
    display.display(display.HTML(to_fragment(scene)))
    return True


def notebook_html(subject: object) -> str | None:
    """Return a small picture for a notebook, or None if `subject` cannot be drawn.

    >>> from tilewright import row_major, Layout
    >>> notebook_html(row_major(4, 8))[:4], notebook_html(Layout(0))
    ('<div', None)
    """
    if isinstance(subject, Scene):
        return to_fragment(subject)
    for options in ({"side": _NOTEBOOK_SIDE}, {}):  # which some pictures do not have
        with suppress(TilewrightError):
            return to_fragment(scene_of(subject, **options))
    return None


_RENDERERS: dict[str, Callable[[Scene], str]] = {
    ".svg": to_svg,
    ".html": to_html,
    ".txt": lambda scene: to_text(scene) + "\n",
    ".json": to_json,
}


# A picture in a notebook that answers to the pointer and the keyboard, and reports the choice to Python.


def widget(subject: object, **options: Any) -> Any:
    """Return a picture of `subject` as a widget for notebooks; `options` are its scene's.

    Pointing at a cell marks it and everything that is linked to it. `chosen` is the cell that was clicked last, as a
    dict of the cell's attributes; `widget.observe(function, "chosen")` follows it. Needs the package anywidget.

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
