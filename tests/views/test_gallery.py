# SPDX-License-Identifier: Apache-2.0
"""The gallery in docs/ is what its script writes today, and shows every kind of scene."""

import runpy
from pathlib import Path

import pytest

from tilewright import views

SCRIPT = Path(__file__).parents[2] / "docs" / "images" / "make_gallery.py"
FILES = runpy.run_path(str(SCRIPT))["files"]()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_gallery_is_up_to_date(path):
    again = "run python docs/images/make_gallery.py"
    assert path.is_file(), f"{path.name} is missing; {again}"
    assert path.read_text(encoding="utf-8") == FILES[path], f"{path.name} is out of date; {again}"


def test_no_picture_is_left_over():
    assert {path.name for path in SCRIPT.parent.glob("gallery_*.svg")} == {p.name for p in FILES if p.suffix == ".svg"}


def test_every_kind_of_scene_is_shown():
    text = "".join(FILES.values()) + SCRIPT.read_text(encoding="utf-8")
    named = [name for name in views.__all__ if name.endswith("_scene")]
    by_type = {"layout", "swizzle", "tensor", "plan", "spec", "memory", "tiler", "schedule", "trace", "values"}
    by_type |= {"comparison", "comparisons", "inspection", "tile"}
    assert {name for name in named if name not in text} == {f"{kind}_scene" for kind in by_type}
