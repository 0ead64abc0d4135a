# SPDX-License-Identifier: Apache-2.0
"""Pages in a real browser: pointing, keys, both ends of a link, light and dark, wide and narrow."""

import pytest

import tilewright as tw
from tilewright import views

from .browser import open_browser, open_page
from .test_html import EVIL, evil_scene
from .things import tracks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser():
    with open_browser() as found:
        yield found


@pytest.fixture
def saved(tmp_path):
    def save(scene):
        return views.save(scene, tmp_path / "page.html")

    return save


def middle(page, panel: int, row: int, column: int) -> tuple[float, float]:
    """Return where on the screen the middle of a cell is."""
    box = page.locator(f"svg[data-panel='{panel}']").bounding_box()
    cells = page.locator(f"svg[data-panel='{panel}'] .tw-cells")
    left, top, width, height = (
        float(cells.get_attribute(f"data-{name}")) for name in ("left", "top", "width", "height")
    )
    return box["x"] + left + (column + 0.5) * width, box["y"] + top + (row + 0.5) * height


def test_pointing_at_an_element_marks_its_place_in_memory(browser, saved):
    with open_page(browser, saved(views.scene_of(tw.col_major(4, 8)))) as page:
        page.mouse.move(*middle(page, 0, 1, 2))
        told = page.locator("#told").inner_text()
        assert "row 1, column 2" in told
        assert "offset: 9" in told
        assert "memory:" in told
        assert page.locator("svg[data-panel='0'] .mark").count() == 1
        mark = page.locator("svg[data-panel='1'] .mark")
        assert mark.count() == 1
        # and back: pointing at that place tells the element
        box = mark.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert "element: 1,2" in page.locator("#told").inner_text()
        assert page.locator("svg[data-panel='0'] .mark").count() == 1


def test_boxes_are_pointed_at_one_by_one(browser, saved):
    cores = tw.TensorSpec((128, 128), "bfloat16", "tile", memory=tw.block_sharded((2, 2)), chip="wormhole_n150")
    scene = views.scene_of(cores, address="hex")
    with open_page(browser, saved(scene)) as page:
        page.mouse.move(*middle(page, 0, 2, 3))  # page 11, in the box of core (1, 1)
        told = page.locator("#told").inner_text()
        assert "page: P11" in told
        assert "address: 0x16C800" in told
        assert "cores and the pages they hold: Core (1,1)" in told
        mark = page.locator("svg[data-panel='1'] .mark").bounding_box()
        page.mouse.move(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
        told = page.locator("#told").inner_text()
        assert told.startswith("Core (1,1)")
        assert "host page: H11" in told
        page.mouse.move(mark["x"] - 6, mark["y"] + mark["height"] / 2)  # its neighbour in the box
        assert "page: P10" in page.locator("#told").inner_text()


def test_a_click_holds_the_mark_until_escape(browser, saved):
    with open_page(browser, saved(views.scene_of(tw.row_major(4, 8)))) as page:
        page.mouse.click(*middle(page, 0, 2, 3))
        held = page.locator("#told").inner_text()
        page.mouse.move(*middle(page, 0, 0, 0))
        assert page.locator("#told").inner_text() == held
        page.keyboard.press("Escape")
        page.mouse.move(*middle(page, 0, 0, 1))
        assert "column 1" in page.locator("#told").inner_text()


def test_the_keyboard_is_enough(browser, saved):
    with open_page(browser, saved(views.scene_of(tw.row_major(4, 8)))) as page:
        page.keyboard.press("Tab")
        assert "row 0, column 0" in page.locator("#told").inner_text()
        for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
            page.keyboard.press(key)
        assert "row 1, column 2" in page.locator("#told").inner_text()
        page.keyboard.press("End")
        assert "offset: 31" in page.locator("#told").inner_text()
        page.keyboard.press("ArrowDown")  # past the edge: stays
        assert "offset: 31" in page.locator("#told").inner_text()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.dataset.panel") == "1"


def test_spans_are_linked_too(browser, saved):
    with open_page(browser, saved(views.Scene("tracks", (tracks(),)))) as page:
        page.locator("[data-span='0']").hover()
        assert page.locator("#told").inner_text() == "weights: 0 to 4096"
        assert page.locator(".mark").count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_and_has_contrast(browser, saved, width, scheme):
    with open_page(browser, saved(views.scene_of(tw.row_major(32, 32))), width=width, scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper, ink = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('h1')).color]"
        )
        dark, light = sorted((paper, ink), key=lambda color: sum(map(int, color[4:-1].split(","))))
        assert (paper, ink) == ((dark, light) if scheme == "dark" else (light, dark))
        title = page.evaluate("getComputedStyle(document.querySelector('svg text.tw-ink')).fill")
        assert title == ink


def test_hostile_names_are_only_words(browser, saved):
    with open_page(browser, saved(evil_scene())) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a name ran: {dialog.message}"))
        page.mouse.move(*middle(page, 0, 0, 0))
        assert EVIL[:20] in page.locator("#told").inner_text()
        assert page.locator("img").count() == 0
        assert page.locator("h1").inner_text().startswith("</title>")
