# SPDX-License-Identifier: Apache-2.0
"""A real browser for tests: Debian's chromium, or one that Playwright has installed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# Nothing that the browser does on its own may reach the network.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def open_page(path: Path, width: int = 1280, height: int = 800, scheme: str = "light") -> Iterator:
    """Yield a page showing a file; fail on any error in its console and on any request beyond the file itself."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        try:
            browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        except api.Error as problem:
            pytest.skip(f"no browser: {problem.message.splitlines()[0]}")
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        yield page
        browser.close()
    assert not problems
