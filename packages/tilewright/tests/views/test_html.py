# SPDX-License-Identifier: Apache-2.0
"""HTML and SVG against hostile names, and the hook by which other packages are shown."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import tilewright as tw
from tilewright import views
from tilewright.layout import tiled_layout

from .pictures import parse
from .things import scenes

SCENES = scenes()
EVIL = "</title></script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&\x00"


class Tags(HTMLParser):
    """Collects every tag and attribute, as a browser would."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]


def evil_scene() -> views.Scene:
    field = views.Field(EVIL, (EVIL, 1), "category")
    grid = views.Grid(
        1, 2, (field,), title=EVIL, color=EVIL, label=EVIL, link=(EVIL, EVIL), valid=(True, False), hatched=EVIL,
        outlines=(views.Outline(0, 0, 1, 2, "tile", EVIL),), row_names=(EVIL,), column_names=(EVIL, EVIL),
        row_axis=EVIL, column_axis=EVIL,
    )  # fmt: skip
    tracks = views.Tracks((EVIL,), (views.Span(0, 0, 1, EVIL, EVIL, note=EVIL, link=EVIL),), unit=EVIL, title=EVIL)
    entries = (views.Entry(EVIL, ((EVIL, EVIL),), "bad"),)
    return views.Scene(EVIL, (grid, tracks), (views.Fact(EVIL, EVIL, "bad"),), note=EVIL, entries=entries)


def test_names_cannot_become_markup():
    page = views.to_html(evil_scene())
    tags = Tags(page)
    assert tags.tags.count("script") == 2  # the data and the program, both ours
    assert not {"img", "iframe", "object", "link"} & set(tags.tags)
    assert not [name for name in tags.attributes if name.startswith("on")]
    for svg in (views.to_svg(evil_scene()), views.to_fragment(evil_scene())):
        root = parse(svg)
        assert not [node for node in root.iter() if node.tag.endswith(("script", "img"))]


@pytest.mark.parametrize("name", SCENES)
def test_pages_are_small_and_stand_alone(name):
    page = views.to_html(SCENES[name])
    assert len(page.encode()) < 1_000_000
    assert not re.search(r"""(src|href)\s*=|@import|url\(""", page)


def test_the_largest_page_is_below_a_megabyte():
    for layout in (tiled_layout((128, 128)), tw.col_major(128, 128), tw.Layout((128, 128), (1000, 3))):
        assert len(views.to_html(views.layout_scene(layout)).encode()) < 1_000_000


def test_a_map_of_every_core_is_below_a_megabyte_too():
    allocator = tw.Allocator("blackhole_p150")
    for k in range(50):
        memory = "l1" if k % 2 else tw.height_sharded((10, 4))
        shape = (1280, 32 * (1 + k % 3))
        allocator.allocate(tw.TensorSpec(shape, "bfloat16", "tile", memory=memory, chip="blackhole_p150"))
    assert len(views.to_html(views.scene_of(allocator, each=True)).encode()) < 1_000_000


def test_importing_layouts_imports_no_pictures():
    code = "import sys, tilewright as tw; tw.Layout(4); assert not [m for m in sys.modules if 'tilewright.views' in m]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_things_show_themselves(tmp_path, capsys):
    tensor = tw.TileTensor(np.arange(48), tw.row_major(6, 8))
    for thing in (tw.row_major(4, 8), tensor, tw.compose(tw.Swizzle(2, 0, 2), tw.row_major(4, 4))):
        assert thing._repr_html_().startswith("<div")
        thing.show()
        assert "\x1b" not in capsys.readouterr().out
        for name in ("picture.svg", "picture.html", "picture.txt"):
            thing.show(tmp_path / name)
            assert (tmp_path / name).stat().st_size > 100
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(ValueError, match=r"picture\.jpg.*\.svg"):
        tensor.show(tmp_path / "picture.jpg")


def test_things_whose_pictures_have_no_side_show_themselves_in_notebooks():
    registers = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>"
    conflicts = tw.analysis.bank_conflicts(tw.row_major(32, 32), tw.Layout(32))
    for thing in (conflicts, next(iter(tw.atoms.values())), tw.parse(registers, shape=(64, 64))):
        assert thing._repr_html_().startswith("<div")


def test_notebook_pictures_are_capped():
    assert len(tw.row_major(4096, 4096)._repr_html_()) < 150_000
    assert tw.Layout(0)._repr_html_() is None


def test_scene_of_can_learn():
    class Thing:
        pass

    views.register_scene(Thing, lambda thing, **options: views.Scene("a thing"))
    assert views.scene_of(Thing()).title == "a thing"
