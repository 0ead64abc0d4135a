# SPDX-License-Identifier: Apache-2.0
"""The gallery in docs/ is what its script writes today, and shows every kind of scene."""

import re
import runpy
from pathlib import Path

import pytest

from tilewright import views

ROOT = Path(__file__).parents[4]
SCRIPT = ROOT / "tools" / "pictures" / "make_gallery.py"
FILES = runpy.run_path(str(SCRIPT))["files"]()
FIGURES = runpy.run_path(str(SCRIPT.with_name("make_conformance_figures.py")))["files"]()


@pytest.mark.parametrize("path", [*FILES, *FIGURES], ids=lambda path: path.name)
def test_the_gallery_is_up_to_date(path):
    again = "run python tools/pictures/make_gallery.py and make_conformance_figures.py"
    assert path.is_file(), f"{path.name} is missing; {again}"
    assert path.read_text(encoding="utf-8") == {**FILES, **FIGURES}[path], f"{path.name} is out of date; {again}"


@pytest.mark.parametrize(("pattern", "files"), [("gallery_*.svg", FILES), ("conformance_*.svg", FIGURES)])
def test_no_picture_is_left_over(pattern, files):
    kept = {path.name for path in (ROOT / "docs" / "images").glob(pattern)}
    assert kept == {path.name for path in files if path.suffix == ".svg"}


def test_every_figure_says_what_it_illustrates():
    (page,) = [text for path, text in FIGURES.items() if path.suffix == ".md"]
    sections = page.split("\n## ")[1:]
    assert len(sections) == len(FIGURES) - 1
    for section in sections:
        assert re.search(r"^\*[\w. ]+\*, lines \d+(-\d+)?\. ", section, re.MULTILINE), section.splitlines()[0]


def test_every_kind_of_scene_is_shown():
    text = "".join(FILES.values()) + SCRIPT.read_text(encoding="utf-8")
    named = [name for name in views.__all__ if name.endswith("_scene") and name != "register_scene"]
    by_type = {"layout", "swizzle", "tensor", "plan", "spec", "memory", "tiler", "schedule", "trace", "values"}
    by_type |= {"reshard", "comparison", "comparisons", "inspection", "tile"}
    assert {name for name in named if name not in text} == {f"{kind}_scene" for kind in by_type}
