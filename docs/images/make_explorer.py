# SPDX-License-Identifier: Apache-2.0
"""Photograph the explorer for docs/explorer.md, in a real browser.

    python docs/images/make_explorer.py

It needs Playwright and Chromium, like the tests of the explorer. Pixels differ from one browser to the next, so that
no test compares them.
"""

import shutil
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from tilewright.explorer.server import Explorer

HERE = Path(__file__).parent
SPEC = {
    "shape": "1x4x60x90", "dtype": "bfloat8_b", "layout": "tile", "memory": "block_sharded", "buffer": "l1",
    "grid": "8x8", "chip": "wormhole_n150", "at": "0,2,33,17", "core": "0,5",
}  # fmt: skip
OTHER = {"b.shape": "1x4x60x90", "b.dtype": "bfloat16", "b.memory": "interleaved", "b.buffer": "dram"}
MOVE = {
    "view": "reshard", "shape": "512x512", "dtype": "bfloat16", "memory": "block_sharded", "buffer": "l1",
    "grid": "2x1", "to.memory": "height_sharded", "to.buffer": "l1", "to.grid": "4x2", "to.kernel": "2024",
}  # fmt: skip
PICTURES = {
    "explorer_reshard.png": (MOVE, 1180, 1080, "light"),
    "explorer.png": (SPEC, 1180, 860, "light"),
    "explorer_compare.png": (SPEC | OTHER, 1180, 760, "dark"),
}


def main() -> None:
    with Explorer(port=0) as explorer, sync_playwright() as playwright:
        explorer.start()
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        for name, (words, width, height, scheme) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(explorer.link(urlencode(words)))
            page.wait_for_selector("html[data-ready=yes]", state="attached")
            page.locator("[aria-busy]").first.wait_for(state="detached")
            if words.get("view") == "reshard":  # what leaves core (0, 0), and what arrives there
                flows = page.locator("svg[aria-label='flows']")
                flows.focus()
                for _ in range(11):  # it is at x 1, y 1 of ten columns
                    page.keyboard.press("ArrowRight")
                page.evaluate("scrollTo(0, 0)")
            page.screenshot(path=HERE / name)
            print(f"wrote {name}, {(HERE / name).stat().st_size / 1024:.0f} KiB")
        browser.close()
        explorer.shutdown()


if __name__ == "__main__":
    main()
