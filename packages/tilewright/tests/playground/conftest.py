# SPDX-License-Identifier: Apache-2.0
"""The playground, built and served, and a browser to open it in."""

import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ..views.browser import open_browser

ROOT = Path(__file__).parents[4]
BUILT = ROOT / "build" / "playground"
LONGEST = 60_000  # milliseconds; on a machine that does nothing else, Python is there after 1000


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def built():
    """Return the folder of the playground; build it if it can be built, and is not."""
    sources = [*(ROOT / "packages" / "tilewright" / "src").rglob("*"), *(ROOT / "playground").rglob("*")]
    facts = BUILT / "playground.json"
    if not facts.is_file() or facts.stat().st_mtime < max(path.stat().st_mtime for path in sources if path.is_file()):
        command = [sys.executable, str(ROOT / "playground" / "build.py")]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        if run.returncode:
            pytest.skip(f"the playground cannot be built: {run.stderr.strip().splitlines()[-1:]}")
    return BUILT


@contextmanager
def served(folder, port=0):
    """Serve a folder as `python3 -m http.server` does; yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", port), partial(QuietHandler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="session")
def site(built):
    with served(built) as address:
        yield address


@pytest.fixture(scope="module")  # while it is open, no other event loop runs in the process
def browser():
    with open_browser() as browser:
        yield browser


def settled(page) -> None:
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    page.locator("[aria-busy]").first.wait_for(state="detached")
