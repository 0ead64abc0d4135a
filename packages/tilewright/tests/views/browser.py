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


# What the browser refuses, as an event of the page: the words in its console change from one version to the next.
REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (e) => reportViolation(`${e.effectiveDirective}: ${e.blockedURI}`), true);
"""


@contextmanager
def watched(page, allowed: Callable[[str], bool], refused: tuple[int, ...] = ()) -> Iterator:
    """Yield a page; fail on exceptions, dialogs, requests elsewhere, and whatever the page's own policy forbids.

    So does an answer with an error's status, unless it is among those `refused`. The console is not read: what it says
    and when depends on the browser's version, and each of these is known without it.
    """
    problems: list[str] = []

    def asked(dialog) -> None:
        problems.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def violated(directive: str) -> None:
        problems.append(f"against the page's policy: {directive}")

    def answered(response) -> None:
        if response.status >= 400 and response.status not in refused:
            problems.append(f"status {response.status} of {response.url}")

    page.expose_function("reportViolation", violated)
    page.add_init_script(REPORT_VIOLATIONS)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", asked)
    page.on("request", lambda request: None if allowed(request.url) else problems.append(request.url))
    page.on("response", answered)
    yield page
    assert not problems, problems


@contextmanager
def open_page(browser, path: Path, width: int = 1280, height: int = 800, scheme: str = "light") -> Iterator:
    """Yield a page showing a file; fail as `watched` does, and on any request beyond the file itself."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    with watched(page, lambda url: url == path.as_uri()):
        page.goto(path.as_uri())
        yield page
    page.close()
