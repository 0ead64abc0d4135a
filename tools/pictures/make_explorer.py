# SPDX-License-Identifier: Apache-2.0
"""Photograph the explorer for docs/explorer.md, and record it for the README, in a real browser.

    python tools/pictures/make_explorer.py

It needs Playwright and Chromium, like the tests of the explorer, and Pillow. Pixels differ from one browser to the
next, so that no test compares them.
"""

import io
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tilewright.explorer.server import Explorer

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SPEC = {
    "shape": "1x4x60x90", "dtype": "bfloat8_b", "layout": "tile", "memory": "block_sharded", "buffer": "l1",
    "grid": "8x8", "chip": "wormhole_n150", "at": "0,2,33,17", "core": "0,5",
}  # fmt: skip
OTHER = {"b.shape": "1x4x60x90", "b.dtype": "bfloat16", "b.memory": "interleaved", "b.buffer": "dram"}
MOVE = {
    "view": "reshard", "shape": "512x512", "dtype": "bfloat16", "memory": "block_sharded", "buffer": "l1",
    "grid": "2x1", "to.memory": "height_sharded", "to.buffer": "l1", "to.grid": "4x2", "to.kernel": "2024",
}  # fmt: skip
DIVIDE = {"view": "layout", "notation": "(8,12):(12,1)", "layout.op": "zipped_divide", "layout.other": "<4,6>"}
PICTURES = {
    "explorer_reshard.png": (MOVE, 1180, 1080, "light"),
    "explorer.png": (SPEC, 1180, 860, "light"),
    "explorer_compare.png": (SPEC | OTHER, 1180, 760, "dark"),
    "explorer_layout.png": (DIVIDE, 1180, 1000, "light"),
    "explorer_kernel.png": ({"view": "kernel"}, 1180, 760, "dark"),
}
CONFLICT = "(8,32):(32,1)"
WIDTH, HEIGHT = 900, 620  # of the recording
STEP = 160  # milliseconds of a frame while somebody types


def main() -> None:
    with Explorer(port=0) as explorer, sync_playwright() as playwright:
        explorer.start()
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        for name, (words, width, height, scheme) in PICTURES.items():
            photograph(browser, explorer.link(urlencode(words)), IMAGES / name, (width, height), scheme)
        record(browser, explorer.link(urlencode({"shape": "256", "memory": "interleaved", "buffer": "dram"})))
        browser.close()
        explorer.shutdown()


def photograph(browser: Browser, link: str, path: Path, size: tuple[int, int], scheme: Any) -> None:
    """Write a picture of what a link shows."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page.goto(link)
    settle(page)
    if "view=reshard" in link:  # what leaves core (0, 0), and what arrives there
        page.locator("svg[aria-label='flows']").focus()
        for _ in range(11):  # it is at x 1, y 1 of ten columns
            page.keyboard.press("ArrowRight")
        page.evaluate("scrollTo(0, 0)")
    if "view=kernel" in link:
        page.get_by_role("button", name="Run").click()
        settle(page)
        page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=path)
    page.close()
    print(f"wrote {path.name}, {path.stat().st_size / 1024:.0f} KiB")


def record(browser: Browser, link: str) -> None:
    """Record a spec that is typed, an element that is pointed at, and a layout whose bank conflicts are removed."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    page.goto(link)
    settle(page)
    frames: list[tuple[bytes, int]] = []

    def take(milliseconds: int) -> None:
        settle(page)
        frames.append((page.screenshot(), milliseconds))

    take(400)
    shape = page.locator("[name=shape]").first
    for text in ("256x3", "256x32", "256x320"):
        shape.fill(text)
        take(STEP)
    page.locator("[name=memory]").first.select_option("block_sharded")
    page.locator("[name=buffer]").first.select_option("l1")
    page.locator("[name=grid]").first.fill("5x4")
    take(1000)
    pages = page.locator("svg[aria-label^='pages of']")
    pages.scroll_into_view_if_needed()
    for x in (70, 110, 150):
        pages.hover(position={"x": x, "y": 90})
        take(450)
    page.evaluate("scrollTo(0, 0)")
    page.get_by_role("tab", name="Layout").click()
    take(500)
    layout = page.locator("[name=notation]")
    for text in ("(8,32)", CONFLICT):
        layout.fill(text)
        take(350)
    page.locator("[name=threads]").fill("8:1")
    take(1100)
    page.locator(".remedy button").scroll_into_view_if_needed()
    take(700)
    page.locator(".remedy button").click()
    page.evaluate("scrollTo(0, 0)")
    take(1800)
    page.close()
    write_gif(frames, IMAGES / "explorer.gif")


def settle(page: Page) -> None:
    """Wait until everything asked for is shown."""
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    page.wait_for_timeout(200)  # for what was typed to be asked
    page.locator("[aria-busy]").first.wait_for(state="detached")


def write_gif(frames: list[tuple[bytes, int]], path: Path) -> None:
    """Write screenshots with their durations as one GIF."""
    images = [Image.open(io.BytesIO(data)).convert("RGB") for data, _ in frames]
    sheet = Image.new("RGB", (WIDTH, HEIGHT * len(images)))  # one palette for all, so that nothing flickers
    for k, image in enumerate(images):
        sheet.paste(image, (0, HEIGHT * k))
    palette = sheet.quantize(colors=128, method=Image.Quantize.FASTOCTREE)
    flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    durations = [milliseconds for _, milliseconds in frames]
    flat[0].save(path, save_all=True, append_images=flat[1:], duration=durations, loop=0, optimize=True)
    print(f"wrote {path.name}, {path.stat().st_size / 1024:.0f} KiB, {sum(durations) / 1000:.1f} s")


if __name__ == "__main__":
    main()
