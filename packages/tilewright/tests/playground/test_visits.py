# SPDX-License-Identifier: Apache-2.0
"""How the playground begins: its first picture, a second visit, an update, and what keeps it from starting."""

import json
import shutil
from contextlib import contextmanager

import pytest

from .conftest import LONGEST, served, settled

pytestmark = pytest.mark.slow
WIDTHS = (1366, 390)
SHIFTS = """
() => new Promise((done) => {
    let sum = 0;
    new PerformanceObserver((list) => { for (const each of list.getEntries()) sum += each.value; })
        .observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(sum), 100);
})
"""


@contextmanager
def opened(browser, **options):
    """Yield a page in a profile of its own."""
    context = browser.new_context(**options)
    context.set_default_timeout(LONGEST)
    yield context.new_page()
    context.close()


def pictures(page):
    """Return the size of the pictures on a page, and where the first one is."""
    boxes = [picture.bounding_box() for picture in page.locator("#sides .panels svg").all()]
    return [(box["width"], box["height"]) for box in boxes], (boxes[0]["x"], boxes[0]["y"])


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_picture_needs_no_script_and_stays_where_it_is(browser, site, width):
    window = {"viewport": {"width": width, "height": 900}}
    with opened(browser, **window, java_script_enabled=False) as page:
        page.goto(site)
        still = pictures(page)
    with opened(browser, **window) as page:
        page.goto(site)
        settled(page)
        assert page.locator(".drawn").count() == 0
        sizes, place = pictures(page)
        assert sizes == still[0]
        assert place == pytest.approx(still[1], abs=1)
        assert page.evaluate(SHIFTS) < 0.01


def test_a_link_never_shows_the_picture_of_something_else(browser, site):
    with opened(browser) as page:
        page.route("**/main.js", lambda route: route.abort())
        page.goto(f"{site}#shape=64x96")
        assert page.locator(".drawn").is_hidden()


def test_how_much_is_loaded_is_said_and_announced_once(browser, site):
    with opened(browser) as page:
        page.add_init_script(LISTEN)
        page.route("**/snapshot.bin.gz", lambda route: None)  # it never comes
        page.goto(f"{site}#shape=64x96")
        line = page.locator("#progress")
        line.get_by_text("MB").wait_for()
        assert " of " in line.inner_text()
        bar = line.locator("progress")
        assert 0 < bar.evaluate("(bar) => bar.value") < 1
        assert bar.get_attribute("aria-label") == "Loading Python"
        assert page.evaluate("said").count("Loading Python") == 1


@pytest.fixture
def copy(built, tmp_path):
    """Return a playground that a test may change, and its version."""
    shutil.copytree(built, tmp_path / "playground")
    return tmp_path / "playground", json.loads((built / "playground.json").read_text(encoding="utf-8"))["version"]


def wait_until_kept(page, version):
    """Wait until the worker of a version is at work, and nothing of another is kept."""
    page.wait_for_function("(version) => navigator.serviceWorker.controller?.scriptURL.endsWith(version)", arg=version)
    page.evaluate(
        "async () => { while ((await caches.keys()).length > 1) await new Promise((on) => setTimeout(on, 50)); }"
    )
    assert page.evaluate("caches.keys()") == [version]


def test_a_second_visit_needs_no_server_and_an_update_is_seen_at_once(browser, copy):
    folder, version = copy
    with opened(browser) as page:
        with served(folder) as address:
            page.goto(address)
            wait_until_kept(page, version)
        port = int(address.rstrip("/").rpartition(":")[2])
        page.goto("about:blank")
        page.goto(f"{address}#shape=64x160")  # and nobody answers
        settled(page)
        assert page.locator("#tensor dl").first.inner_text().count("64") > 0
        page.get_by_role("tab", name="Kernel").click()
        page.get_by_role("button", name="Run").click()  # with modules that are not in the snapshot
        settled(page)
        assert page.locator("#kernel .defect").count()

        (folder / version).rename(folder / "next")
        for name in ("index.html", "playground.json"):
            text = (folder / name).read_text(encoding="utf-8").replace(version, "next")
            (folder / name).write_text(
                text.replace("playground</title>", "playground, the next</title>"), encoding="utf-8"
            )
        page.goto("about:blank")
        with served(folder, port):
            page.goto(address)
            assert "the next" in page.title()
            wait_until_kept(page, "next")
        page.goto("about:blank")
        page.goto(f"{address}#shape=64x160")
        settled(page)
        assert "the next" in page.title()


@pytest.mark.parametrize("name", ["snapshot.bin.gz", "pyodide.asm.wasm.gz", "pyodide.asm.mjs", "files.zip"])
def test_a_file_that_does_not_arrive_is_named_with_the_remedy(browser, site, name):
    with opened(browser) as page:
        page.route(f"**/{name}", lambda route: route.abort())
        page.goto(site)
        trouble = page.locator("#trouble")
        trouble.wait_for()
        assert name in trouble.inner_text()
        assert "reload" in trouble.inner_text()
        assert page.locator("#sides .panels svg").first.is_visible()  # and the first picture stays


def test_a_browser_without_webassembly_is_told(browser, site):
    with opened(browser) as page:
        page.add_init_script("delete globalThis.WebAssembly")
        page.goto(f"{site}#shape=64x96")
        page.locator("#trouble").wait_for()
        assert "WebAssembly" in page.locator("#trouble").inner_text()
        assert "pip install tilewright" in page.locator("#trouble").inner_text()


def test_a_file_in_place_of_a_server_is_told(browser, built):
    with opened(browser) as page:
        page.goto((built / "index.html").as_uri())
        assert "python3 -m http.server" in page.locator("#trouble").inner_text()
        assert page.locator(".drawn .panels svg").first.is_visible()


def test_a_browser_that_cannot_use_the_snapshot_starts_python_itself(browser, site):
    with opened(browser) as page:
        page.route("**/snapshot.bin.gz", lambda route: route.fulfill(body=NO_SNAPSHOT))
        page.goto(f"{site}#shape=64x160")
        settled(page)
        assert page.locator("#tensor .panels svg").count()


LISTEN = """
globalThis.said = [];
new MutationObserver((changes) => said.push(...changes.filter(({ target }) => target.id === "status")
    .flatMap(({ addedNodes }) => [...addedNodes].map((node) => node.textContent))))
    .observe(document, { childList: true, subtree: true });
"""
NO_SNAPSHOT = bytes.fromhex("1f8b08000000000000ff03000000000000000000")  # nothing, in gzip
