# SPDX-License-Identifier: Apache-2.0
"""The playground in a real browser: a static page that runs tilewright itself, in Pyodide, with nobody to ask."""

import json
import re
import struct
from time import perf_counter
from urllib.parse import urlencode

import pytest

from ..views.browser import watched
from .conftest import LONGEST, settled

pytestmark = pytest.mark.slow

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture(scope="module")
def page(site, browser):
    """Return a page with the playground, whose Python has started; a request that leaves the site fails the test."""
    context = browser.new_context(viewport={"width": 1366, "height": 900})
    page = context.new_page()
    page.set_default_timeout(LONGEST)
    with watched(page, lambda url: url.startswith((site, "blob:"))):
        start = perf_counter()
        page.goto(f"{site}#{urlencode({'shape': '64x96', 'dtype': 'bfloat8_b', 'at': '33,5'})}")
        assert page.locator("#progress").inner_text().startswith("Loading")
        page.locator(".panels svg").first.wait_for()
        print(f"first picture of a link after {perf_counter() - start:.1f} s")
        settled(page)
        yield page
    context.close()


def follow(page, **words) -> None:
    """Follow a link, as one that somebody was given; the page stays, and its Python with it."""
    page.evaluate("(hash) => new Promise((done) => { location.hash = hash; setTimeout(done, 50); })", urlencode(words))
    settled(page)


def test_every_tab_has_a_link(page):
    assert page.locator(".pill").first.inner_text().startswith("Fits")
    assert page.locator(".chain li").count() >= 6
    follow(page, view="layout", notation="(8,12):(12,1)", **{"layout.op": "zipped_divide", "layout.other": "<4,6>"})
    assert page.locator(".steps li").count() == 8
    follow(page, view="layout", notation="(32,32):(32,1)", **{"layout.threads": "32:1"})
    assert "32-way conflict" in page.locator("#layout").inner_text()
    follow(page, view="reshard", shape="128x64", dtype="bfloat16", **{"to.memory": "interleaved", "to.buffer": "l1"})
    assert "cycles" in page.locator("#reshard .plan").inner_text()
    follow(page, example="kv-cache")
    page.locator(".pill").get_by_text("does not fit N150 with 8 users").wait_for()
    follow(page, view="file")
    assert "not sent anywhere" in page.locator("#file").inner_text()
    page.get_by_role("button", name="Share").click()
    assert page.get_by_label("The link").input_value() == page.url
    page.get_by_role("button", name="Share").click()


def test_kernels_of_both_languages_run_and_one_that_does_not_end_is_stopped(page):
    follow(page, view="kernel")
    run = page.get_by_role("button", name="Run")
    run.click()
    settled(page)
    assert "race" in page.locator("#kernel .defect").first.inner_text()
    page.get_by_role("button", name="an early return").click()
    run.click()
    settled(page)
    assert "barrier not reached" in page.locator("#kernel .defect").first.inner_text()
    follow(page, example="map")
    page.get_by_role("button", name="Show a solution").click()
    run.click()
    settled(page)
    assert "Right." in page.locator("#kernel .plan").inner_text()
    follow(page, view="kernel", **{"kernel.language": "python", "kernel.source": "while True:\n    pass\n"})
    run.click()
    stop = page.locator("#progress button")
    stop.wait_for()
    stop.click()
    settled(page)
    assert "Stopped" in page.locator("#kernel [role=alert]").inner_text()
    follow(page, view="layout", notation="(4,8):(1,4)")  # by another Python
    assert "(4,8):(1,4)" in page.locator("#layout dl").first.inner_text()


def test_a_file_is_read_here(page, tmp_path):
    follow(page, view="file")
    tensors = {EVIL: {"dtype": "BF16", "shape": [64, 96], "data_offsets": [0, 12288]}}
    head = json.dumps(tensors).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(12288))
    for _ in range(2):  # a second one takes the place of the first
        page.set_input_files("#chosen", path)
        settled(page)
        page.get_by_role("button", name=EVIL).click()
        settled(page)
        assert page.locator("#file svg[aria-label^='pages of 32 x 32']").count() == 1
    assert page.locator("img").count() == 1


HOSTILE = (
    {"shape": EVIL, "b.shape": "64x64", "b.grid": EVIL},
    {"shape": "9" * 400},
    {"shape": "999999999999x999999999999"},
    {"view": "layout", "notation": EVIL},
    {"view": "layout", "notation": "(" * 3000},
    {"view": "layout", "notation": "(4096,4096):(4096,1)", "layout.threads": "(1024,1024):(1,0)", "layout.tile": "9x9"},
    {"view": "layout", "notation": "4:1", "layout.op": "compose", "layout.other": f"<{'<' * 900}"},
    {"view": EVIL, EVIL: EVIL},
    {"view": "reshard", "shape": "1000000x100000", "to.memory": EVIL},
)


def test_hostile_links_are_only_words(page):
    for words in HOSTILE:
        follow(page, **words)
        assert page.locator("img").count() == 1, words
        assert page.locator("script:not([src])").count() == 0, words
        assert "this is a bug" not in page.locator("main").inner_text(), words


def test_it_fits_a_phone_and_remembers_the_way_back(page):
    page.set_viewport_size({"width": 390, "height": 844})
    for view in ("tensor", "layout", "reshard", "kernel", "file"):
        follow(page, view=view, shape="64x96")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, view
    page.get_by_role("tab", name="Layout").click()
    page.wait_for_url(re.compile(".*view=layout.*"))
    page.go_back()
    page.wait_for_url(re.compile(".*view=file.*"))
    assert page.get_by_role("tabpanel", name="File").is_visible()
