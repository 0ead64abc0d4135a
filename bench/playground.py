# SPDX-License-Identifier: Apache-2.0
"""Measure how long the playground takes to its first picture and to its first answer, in a real browser.

    .venv/bin/python bench/playground.py [--rounds 5] [--megabits 40]

Needs a built playground (`make playground`), playwright and chromium. Every round is a browser that has seen nothing.
The peers load the same files in the same browser: Pyodide alone, until Python answers; and Pyodide that unpacks and
imports tilewright, as the playground would do without a snapshot. With --megabits the server is as slow as that, and
answers each request 20 ms late.
"""

import argparse
import gzip
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

BUILT = Path(__file__).resolve().parents[1] / "build" / "playground"
LINK = "#shape=1x4x60x128"  # whose picture the page does not come with
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
LATENCY = 0.02  # seconds
PEER = """
import { loadPyodide } from "./pyodide.mjs";
const here = new URL("./", import.meta.url).href;
const python = await loadPyodide({ indexURL: here });
if (location.search === "?import") {
  const archive = await (await fetch("tilewright.zip")).arrayBuffer();
  python.unpackArchive(archive, "zip", { extractDir: python.runPython("import site; site.getsitepackages()[0]") });
  const engine = python.pyimport("tilewright.explorer.in_browser");
  engine.answer_fields("picture/placement", '{"shape": "1x4x60x128"}');
}
postMessage(python.runPython("1 + 1"));
"""
PAGE = """<!DOCTYPE html><script type="module">
new Worker(`peer.js${location.search}`, { type: "module" }).onmessage = () => { document.body.dataset.done = "yes"; };
</script><body></body>"""


class Handler(SimpleHTTPRequestHandler):
    """Serves files, all together as fast as a line of so many bytes a second."""

    protocol_version = "HTTP/1.1"
    rate: float | None = None
    line = threading.Lock()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def handle(self) -> None:
        """Answer until the browser has gone."""
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        """Answer as late as a distant server."""
        time.sleep(LATENCY if self.rate else 0)
        super().do_GET()

    def copyfile(self, source: Any, outputfile: IO[bytes]) -> None:  # type: ignore[override]
        """Send a file."""
        while piece := source.read(16384):
            if self.rate:
                with self.line:
                    time.sleep(len(piece) / self.rate)
            outputfile.write(piece)


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder; yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def first_picture(page: Page, address: str) -> float:
    """Return when the page painted its picture."""
    page.goto(address)
    page.locator("#sides .panels svg").first.wait_for()
    return float(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"))


def live_picture(page: Page, address: str) -> float:
    """Return when the page showed the picture of a link, which Python drew."""
    start = time.perf_counter()
    page.goto(f"{address}{LINK}")
    page.locator("#sides .side:not(.drawn) .panels svg").first.wait_for()
    return time.perf_counter() - start


def second_visit(page: Page, address: str) -> float:
    """Return when a page that the browser has kept showed the picture of a link."""
    page.goto(address)
    page.wait_for_function("() => navigator.serviceWorker.controller !== null")
    page.goto("about:blank")
    return live_picture(page, address)


def peer(query: str, page: Page, address: str) -> float:
    """Return when a worker with Pyodide answered."""
    start = time.perf_counter()
    page.goto(f"{address}peer/index.html{query}")
    page.wait_for_selector("body[data-done]", state="attached")
    return time.perf_counter() - start


def prepare(folder: Path) -> None:
    """Put the playground into a folder, and the pages of the peers with the same files."""
    shutil.copytree(BUILT, folder, dirs_exist_ok=True)
    version = json.loads((folder / "playground.json").read_text(encoding="utf-8"))["version"]
    shutil.copytree(folder / version, folder / "peer")
    packed = folder / "peer" / "pyodide.asm.wasm.gz"
    packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    (folder / "peer" / "peer.js").write_text(PEER)
    (folder / "peer" / "index.html").write_text(PAGE)


def fresh(browser: Browser) -> BrowserContext:
    """Return a profile that has seen nothing."""
    context = browser.new_context(viewport={"width": 1366, "height": 900})
    context.set_default_timeout(60_000)
    return context


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabits", type=float, help="of the line, a second; default: as fast as this machine")
    options = parser.parse_args()
    Handler.rate = options.megabits and options.megabits * 1e6 / 8
    measures: dict[str, Callable[[Page, str], float]] = {
        "first picture": first_picture,
        "picture of a link, drawn by Python": live_picture,
        "the same at the second visit": second_visit,
        "peer: Pyodide alone answers": partial(peer, ""),
        "peer: Pyodide imports tilewright and draws it": partial(peer, "?import"),
    }
    times: dict[str, list[float]] = {name: [] for name in measures}
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        prepare(Path(scratch))
        with serve(Path(scratch)) as address:
            for _ in range(options.rounds):
                for name, measure in measures.items():
                    browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
                    times[name].append(measure(fresh(browser).new_page(), address))
                    browser.close()
    line = f"{options.megabits:g} Mbit/s" if options.megabits else "local"
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, best of {options.rounds}, {line}\n")
    print("| playground | best, s | median, s |\n|---|---|---|")
    for name, found in times.items():
        print(f"| {name} | {min(found):.2f} | {sorted(found)[len(found) // 2]:.2f} |")


if __name__ == "__main__":
    main()
