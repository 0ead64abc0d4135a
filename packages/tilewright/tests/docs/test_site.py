# SPDX-License-Identifier: Apache-2.0
"""The built site: complete, without a broken link, and without anything that a browser would fetch elsewhere.

`make docs` builds it, names it in TILEWRIGHT_SITE and runs this; a site from yesterday is nobody's mistake.
"""

import doctest
import html
import os
import re
import runpy
from contextlib import contextmanager
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from threading import Thread
from urllib.parse import quote, unquote, urlsplit

import pytest

from ..views.browser import open_browser, watched
from .pages import DOCS, ROOT, Block, blocks_of
from .running import FLAGS, UNANSWERED, Checker

SITE = ROOT / os.environ.get("TILEWRIGHT_SITE", "none")
pytestmark = pytest.mark.skipif("TILEWRIGHT_SITE" not in os.environ, reason="make docs builds a site and checks it")
ADDRESS = urlsplit(re.search(r"^site_url: (\S+)", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)[1])
PAGES = sorted(SITE.rglob("*.html")) if SITE.is_dir() else []

# What a browser loads by itself; a link that somebody has to click may lead anywhere.
LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}


class Seen(HTMLParser):
    """The ids of a page, its links, and what it loads."""

    def __init__(self):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found.get("id"), found.get("name")}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in LOADED and found.get(LOADED[tag]):
            self.loads.append(found[LOADED[tag]])
        if tag == "link" and found.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(found["href"])


@cache
def seen(path):
    parser = Seen()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def names(path):
    return path.relative_to(SITE).as_posix()


@pytest.mark.parametrize("path", PAGES, ids=names)
def test_nothing_is_fetched_from_elsewhere(path):
    for address in seen(path).loads:
        assert not urlsplit(address).netloc, f"{address} would be fetched"
        if not address.startswith("data:"):
            start = SITE if address.startswith(ADDRESS.path) else path.parent  # as the page for what is not found
            file = unquote(urlsplit(address).path.removeprefix(ADDRESS.path))
            assert (start / file).exists(), f"{address} is not there"


@pytest.mark.parametrize("path", [path for path in PAGES if path.name != "404.html"], ids=names)
def test_links_lead_somewhere(path):
    for address in seen(path).links:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        assert target.exists(), f"{address} leads nowhere"
        if parts.fragment and target.suffix == ".html":
            assert unquote(parts.fragment) in seen(target).ids, f"{address}: there is no such place on the page"


def test_style_sheets_fetch_nothing():
    sheets = list(SITE.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        for address in re.findall(r"url\((['\"]?)(.*?)\1\)", sheet.read_text(encoding="utf-8")):
            assert not urlsplit(address[1]).netloc, f"{sheet.name} would fetch {address[1]}"


def test_every_public_name_is_in_the_reference():
    reference = runpy.run_path(str(DOCS / "site" / "reference.py"))
    missing = []
    for title, modules in reference["PACKAGES"].items():
        ids = seen(SITE / "api" / f"{title}.html").ids
        for module in map(import_module, map(reference["full_name"], modules)):
            public = reference["public_names"](module)
            assert public
            names = [reference["source_name"](module, name) for name in public]
            missing += [name for name in names if name not in ids]
    assert not missing


def test_every_page_is_built():
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert pages <= {path.relative_to(SITE) for path in PAGES}


def test_search_engines_find_every_page():
    listed = re.findall(r"<loc>(.*?)</loc>", (SITE / "sitemap.xml").read_text(encoding="utf-8"))
    pages = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")}
    assert {ADDRESS.geturl() + page for page in pages - {"index.html"}} <= set(listed)
    heads = {page: (SITE / page).read_text(encoding="utf-8") for page in pages}
    found = {page: re.findall(r'<meta name="description" content="([^"]*)">', head) for page, head in heads.items()}
    descriptions = [html.unescape(description) for [description] in found.values()]
    assert len(set(descriptions)) == len(pages)
    assert all(40 <= len(description) <= 160 for description in descriptions), min(descriptions, key=len)
    assert "<title>How large is the KV cache?" in heads["questions/kv-cache.html"]


def test_the_playground_is_in_the_navigation():
    assert "playground/index.html" in seen(SITE / "index.html").links
    assert "../playground/index.html" in seen(SITE / "guides" / "find-an-address.html").links


TOO_WIDE = """
() => {
    const name = (e) => e.textContent.trim().split("\\n").sort((a, b) => b.length - a.length)[0].slice(0, 130);
    const blocks = [...document.querySelectorAll("pre, pre > code")].filter((e) => e.scrollWidth > e.clientWidth + 1);
    return blocks.map(name);
}
"""
WIDER_THAN_THE_PAGE = "() => document.scrollingElement.scrollWidth - document.documentElement.clientWidth"


def test_nothing_is_cut_off_in_a_browser():
    """At 1366 pixels no code is cut off; on a phone no page is wider than the screen: the rest scrolls in its box."""
    written = sorted({path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")})
    problems = []
    with open_browser() as browser:
        page = browser.new_page()
        for path in written:
            page.set_viewport_size({"width": 1366, "height": 768})
            page.goto((SITE / path).as_uri())
            page.wait_for_function(
                "document.querySelectorAll('.md-typeset__table').length >= "
                "document.querySelectorAll('.md-typeset table:not([class])').length"
            )
            problems += [f"{path}: {line}" for line in page.evaluate(TOO_WIDE)]
            for width, height in ((1366, 768), (390, 844)):
                page.set_viewport_size({"width": width, "height": height})
                if page.evaluate(WIDER_THAN_THE_PAGE) > 0:
                    problems.append(f"{path} is wider than {width} pixels")
    assert not problems


COPIES = {
    "index.html": [">>> spec.element_at", "$ tilewright convert"],
    "tutorials/write-an-operation.html": ["--animate"],
    "guides/write-a-tiled-kernel.html": ["edge.load"],
}
"""Pages with sessions, and a word of the blocks whose copies are compared."""


def test_copy_buttons_copy_the_input_only():
    with open_browser() as browser:
        page = browser.new_context(permissions=["clipboard-read", "clipboard-write"]).new_page()
        for path, marks in COPIES.items():
            page.goto((SITE / path).as_uri())
            for mark in marks:
                block = page.locator("div.highlight", has_text=mark).first
                block.hover()
                block.locator("[data-clipboard-target]").click()
                copied = page.evaluate("navigator.clipboard.readText()") + "\n"
                typed = expected_input(block.locator("code").text_content())
                assert copied == typed, f"{path}, {mark}"
                assert len(typed) < len(block.locator("code").text_content())


@contextmanager
def served():
    """Serve the site on this machine; yield its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


PATHS = [*sorted((DOCS / "questions").glob("*.md")), *sorted((DOCS / "tutorials").glob("*.md")), DOCS / "puzzles.md"]
RUNNABLE = [path.relative_to(DOCS).with_suffix("").as_posix() for path in PATHS if path.stem != "serve-a-model"]
SHOWS_OUTPUT = "k => document.querySelectorAll('output.run-output')[k].dataset.state === 'done'"


def test_blocks_run_in_the_page_and_print_what_the_page_shows():
    with open_browser() as browser, served() as address:
        for name in RUNNABLE:
            with watched(browser.new_page(), lambda url: url.startswith((address, "blob:", "data:"))) as page:
                page.goto(f"{address}/{name}.html")
                page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
                page.locator("button.run").first.wait_for()
                blocks = [block for block in blocks_of(DOCS / f"{name}.md") if block.language == "python"]
                assert page.locator("button.run").count() == len(blocks) > 0, name
                for k, block in enumerate(blocks):
                    page.locator("button.run").nth(k).click()
                    page.wait_for_function(SHOWS_OUTPUT, arg=k, timeout=60_000)
                    printed = page.locator("output.run-output").nth(k).text_content()
                    assert is_expected(printed, block), f"{name}:{block.line} printed\n{printed}"


def is_expected(printed: str, block: Block) -> bool:
    """Return whether a block printed in the page what it shows, or what it does without a word."""
    if block.file is not None:
        return printed == f"saved {block.file}"
    if ">>> " not in block.text:
        return ("AssertionError" if UNANSWERED in block.text else "nothing to print") in printed
    wanted = "".join(example.exc_msg or example.want for example in doctest.DocTestParser().get_examples(block.text))
    wanted = wanted.replace("<BLANKLINE>", "")
    printed = re.sub(r"^Traceback .*\n(?:  line \d+\n)?", "", printed, flags=re.MULTILINE)
    return Checker().check_output(wanted, printed, FLAGS) or (not wanted and ">>>" not in printed)


def test_an_answer_to_a_puzzle_can_be_written_into_the_page():
    with open_browser() as browser, served() as address:
        page = browser.new_page()
        page.goto(f"{address}/puzzles.html")
        cell = page.locator("div.highlight", has_text="check_1(answer)").first.locator("code")
        for answer, verdict in (("tw.Layout((3, 5), (1, 3))", "AssertionError"), ("tw.Layout((3, 5), (1, 4))", "Ran")):
            text = cell.text_content()
            cell.click()
            cell.fill(re.sub(r"^answer = .*$", f"answer = {answer}", text, flags=re.MULTILINE))
            cell.press("Control+Enter")
            page.wait_for_function(SHOWS_OUTPUT, arg=1, timeout=60_000)
            assert verdict in page.locator("output.run-output").nth(1).text_content()


def test_a_block_can_be_stopped_and_pages_stay_as_they_are_without_the_playground():
    with open_browser() as browser, served() as address:
        page = browser.new_page()
        page.goto(f"{address}/puzzles.html")
        button, output = page.locator("button.run").first, page.locator("output.run-output").first
        button.click()
        page.wait_for_function(SHOWS_OUTPUT, arg=0, timeout=60_000)
        page.locator("div.highlight code").first.fill("while True: pass")
        button.click()
        assert (button.text_content(), output.text_content()) == ("Stop", "Running …")
        button.click()
        assert (button.text_content(), output.text_content()) == ("Run", "Stopped.")
        without = browser.new_page()
        without.route("**/playground.json", lambda route: route.fulfill(status=404))
        with without.expect_response("**/playground.json"):
            without.goto(f"{address}/puzzles.html")
        without.wait_for_timeout(200)
        assert without.locator("button.run").count() == 0


QUESTIONS = {
    "KV cache": "kv-cache",
    "circular buffers clash": "circular-buffers-clash",
    "bank conflict": "bank-conflict",
    "TensorAccessor": "tensor-accessor",
    "rope order": "rope-order",
}


def test_the_search_finds_the_pages_of_questions_first():
    with open_browser() as browser, served() as address:
        page = browser.new_page()
        for words, name in QUESTIONS.items():
            page.goto(f"{address}/index.html?q={quote(words)}")
            first = page.locator(".md-search-result__item:first-child > a").first
            first.wait_for(timeout=10_000)
            assert f"questions/{name}.html" in first.get_attribute("href"), words


def test_every_page_leads_to_the_playground_and_to_the_source():
    for path in PAGES:
        if "playground" not in path.parts and path.name != "404.html":
            links = seen(path).links
            assert "https://github.com/tilewright/tilewright" in links, path
            assert any(link.endswith("playground/index.html") for link in links), path


def test_the_reference_links_to_the_lines_of_each_source():
    links = [link for path in (SITE / "api").glob("*.html") for link in seen(path).links if "#L" in link]
    assert len(links) > 1000
    for link in links:
        name, first, last = re.fullmatch(r"https://github\.com/.*/blob/main/(.*)#L(\d+)-L(\d+)", link).groups()
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()[int(first) - 1 : int(last)]
        assert re.match(r"\s*(?:@|(?:async )?def |class )", lines[0]), link


def test_operations_of_the_algebra_have_pictures():
    page = seen(SITE / "api" / "layout.html")
    pictures = {address for address in page.loads if address.startswith("operations/")}
    assert {
        f"operations/{name}.svg" for name in ("compose", "complement", "logical_divide", "left_inverse")
    } <= pictures
    assert len(pictures) > 20


def expected_input(shown: str) -> str:
    """Return what a reader types of a session: Python by its own parser, commands up to their last line."""
    if shown.startswith(">>>"):
        return "".join(example.source for example in doctest.DocTestParser().get_examples(shown))
    return "".join(re.findall(r"^\$ ((?:.*\\\n)*.*\n)", shown, re.MULTILINE))
