# SPDX-License-Identifier: Apache-2.0
"""Output of scenes: to the terminal, into a notebook, or into a file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..atomic import write_file
from ..errors import TilewrightError
from .html import to_fragment, to_html
from .scene import Scene, to_json
from .scenes import scene_of
from .svg import to_svg
from .text import supports_color, terminal_width, to_text

_NOTEBOOK_SIDE = 32  # rows and columns of automatic pictures, which are stored in the notebook


def save(scene: Scene, path: str | os.PathLike[str]) -> Path:
    """Write a `scene` to the file `path` and return its path; the suffix is .svg, .html, .txt, .json or .png.

    >>> import tempfile
    >>> from tilewright import row_major
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(scene_of(row_major(4, 8)), Path(folder) / "layout.svg").name
    'layout.svg'
    """
    target = Path(path)
    render = _RENDERERS.get(target.suffix.lower())
    if render is None:
        raise ValueError(f"{target.name!r}: expected a name that ends in one of {', '.join(_RENDERERS)}")
    data = render(scene)
    write_file(target, data)
    return target


def show(subject: Any, to: str | os.PathLike[str] | None = None, **options: Any) -> None:
    """Draw `subject`: as text in a terminal, as a picture in a notebook, or into the file `to`.

    `options` are those of its scene; all scenes have `label`, `color` and `address="hex"`.

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
    shown = import_module("IPython.display")
    shown.display(shown.HTML(to_fragment(scene)))
    return True


def notebook_html(subject: Any) -> str | None:
    """Return a small picture for a notebook, or None if `subject` cannot be drawn.

    >>> from tilewright import row_major, Layout
    >>> notebook_html(row_major(4, 8))[:4], notebook_html(Layout(0))
    ('<div', None)
    """
    try:
        return to_fragment(subject if isinstance(subject, Scene) else scene_of(subject, side=_NOTEBOOK_SIDE))
    except TilewrightError:
        return None


SCALE = 2  # dots of the picture to a pixel of the SVG
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PATIENCE = 120  # seconds
_SIZE = re.compile(r'width="(\d+)" height="(\d+)"')


def png_converter() -> str | None:
    """Return what can write PNG here: "cairosvg", the path of a browser, or None.

    >>> png_converter() is None or isinstance(png_converter(), str)
    True
    """
    if find_spec("cairosvg") is not None:
        return "cairosvg"
    return next((found for name in _BROWSERS if (found := shutil.which(name))), None)


def to_png(scene: Scene) -> bytes:
    """Return a `scene` as PNG, on light paper; it needs cairosvg or a Chromium browser.

    >>> from tilewright.views import Grid, Scene
    >>> png_converter() is None or to_png(Scene("one", (Grid(1, 1),)))[:4] == b"\\x89PNG"
    True
    """
    converter = png_converter()
    if converter is None:
        raise ValueError("writing .png needs cairosvg or Chromium; pip install cairosvg, or save an .svg")
    svg = to_svg(scene)
    if converter == "cairosvg":
        data: bytes = import_module("cairosvg").svg2png(svg.encode("utf-8"), scale=SCALE)
        return data
    return _render_in_browser(svg, converter)


def _render_in_browser(svg: str, browser: str) -> bytes:
    size = _SIZE.search(svg)
    assert size is not None  # to_svg writes it
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        source, target = Path(folder, "picture.svg"), Path(folder, "picture.png")
        source.write_text(svg, encoding="utf-8")
        flags = ["--headless", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"]
        flags += ["--no-first-run", f"--user-data-dir={folder}/profile", f"--force-device-scale-factor={SCALE}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            flags.append("--no-sandbox")  # a browser has none for root, and the picture is our own
        flags += [f"--window-size={size[1]},{size[2]}", f"--screenshot={target}", source.as_uri()]
        try:
            ended = subprocess.run([browser, *flags], capture_output=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise ValueError(f"{browser} could not write the .png ({problem}); save an .svg") from None
        if not target.is_file():
            reason = ended.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise ValueError(f"{browser} wrote no .png ({''.join(reason)}); pip install cairosvg, or save an .svg")
        return target.read_bytes()


_RENDERERS: dict[str, Callable[[Scene], str | bytes]] = {
    ".svg": to_svg,
    ".html": to_html,
    ".txt": lambda scene: to_text(scene) + "\n",
    ".png": to_png,
    ".json": to_json,
}
