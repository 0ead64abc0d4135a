# SPDX-License-Identifier: Apache-2.0
"""A real browser for tests: Debian's chromium, or one that Playwright has installed."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# Nothing that the browser does on its own may reach the network.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def open_browser() -> Iterator:
    """Yield a browser; the test is skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        try:
            browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        except api.Error as problem:
            pytest.skip(f"no browser: {problem.message.splitlines()[0]}")
        yield browser
        browser.close()


@contextmanager
def watched(page, allowed: Callable[[str], bool], expected: tuple[str, ...] = ()) -> Iterator:
    """Yield a page; fail on errors in its console, but for expected ones, on dialogs, and on requests elsewhere."""
    problems: list[str] = []

    def said(message) -> None:
        if message.type == "error" and not any(text in message.text for text in expected):
            problems.append(message.text)

    def asked(dialog) -> None:
        problems.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    page.on("console", said)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", asked)
    page.on("request", lambda request: None if allowed(request.url) else problems.append(request.url))
    yield page
    assert not problems, problems


@contextmanager
def open_page(browser, path: Path, width: int = 1280, height: int = 800, scheme: str = "light") -> Iterator:
    """Yield a page showing a file; fail on any error in its console and on any request beyond the file itself."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    with watched(page, lambda url: url == path.as_uri()):
        page.goto(path.as_uri())
        yield page
    page.close()
