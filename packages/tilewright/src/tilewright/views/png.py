# SPDX-License-Identifier: Apache-2.0
"""Pictures as PNG, by whatever on this machine can draw SVG."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from .scene import Scene
from .svg import to_svg

SCALE = 2  # dots of the picture to a pixel of the SVG
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PATIENCE = 120  # seconds
PICTURE_SIZE = re.compile(r'width="(\d+)" height="(\d+)"')


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
    return render_svg(to_svg(scene))


def render_svg(svg: str, scale: float = SCALE) -> bytes:
    """Return a picture in `svg` as PNG, with `scale` dots to a pixel.

    >>> from tilewright.views import Grid, Scene
    >>> png_converter() is None or render_svg(to_svg(Scene("one", (Grid(1, 1),))), 1)[:4] == b"\\x89PNG"
    True
    """
    converter = png_converter()
    if converter is None:
        raise ValueError("writing .png needs cairosvg or Chromium; pip install cairosvg, or save an .svg")
    if converter == "cairosvg":
        data: bytes = import_module("cairosvg").svg2png(svg.encode("utf-8"), scale=scale)
        return data
    return _render_in_browser(svg, converter, scale)


def _render_in_browser(svg: str, browser: str, scale: float) -> bytes:
    size = PICTURE_SIZE.search(svg)
    assert size is not None  # to_svg writes it
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        source, target = Path(folder, "picture.svg"), Path(folder, "picture.png")
        source.write_text(svg, encoding="utf-8")
        flags = ["--headless", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"]
        flags += ["--no-first-run", f"--user-data-dir={folder}/profile", f"--force-device-scale-factor={scale:g}"]
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
