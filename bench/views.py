# SPDX-License-Identifier: Apache-2.0
"""How long pictures take: from the thing itself to the finished text, the best of several turns.

make bench
"""

from __future__ import annotations

import sys

# A neighbour of this file is called copy, and so is a module of the standard library: keep this folder off the path.
sys.path[:] = [folder for folder in sys.path if not folder.endswith("bench")]

import json
import time
from collections.abc import Callable

import tilewright as tw
from tilewright import views
from tilewright.explorer import spell_spec
from tilewright.explorer.answers import ANSWERS, PICTURES
from tilewright.explorer.form import render_for_page
from tilewright.layout import tiled_layout
from tilewright.tiling import Schedule, Tiler

TURNS = 7
CHIP = "blackhole_p150"
WORDS = {
    "shape": "1x4x60x90",
    "dtype": "bfloat8_b",
    "memory": "block_sharded",
    "buffer": "l1",
    "grid": "8x8",
    "chip": "wormhole_n150",
}


def busy_allocator() -> tw.Allocator:
    """Return an allocator with fifty tensors over the cores of a chip."""
    found = tw.Allocator(CHIP)
    for k in range(50):
        memory = "l1" if k % 2 else tw.height_sharded((10, 4))
        found.allocate(tw.TensorSpec((1280, 32 * (1 + k % 3)), "bfloat16", "tile", memory=memory, chip=CHIP))
    return found


def subjects() -> dict[str, tuple[Callable[[], str], float]]:
    """Return what is drawn, with the milliseconds that it may take (0: no promise)."""
    allocator = busy_allocator()
    spec = tw.TensorSpec((4096, 14336), "bfloat8_b", "tile", chip="wormhole_n150")

    def svg(thing: object, **options: object) -> Callable[[], str]:
        return lambda: views.to_svg(views.scene_of(thing, **options))

    return {
        "32 x 32 layout, SVG": (svg(tw.row_major(32, 32), memory=False), 10),
        "32 x 32 layout with memory, SVG": (svg(tw.row_major(32, 32)), 0),
        "128 x 128 layout, SVG": (svg(tw.row_major(128, 128), memory=False), 150),
        "128 x 128 tiled layout with memory, SVG": (svg(tiled_layout((128, 128))), 150),
        "128 x 128 tiled layout with memory, HTML": (
            lambda: views.to_html(views.scene_of(tiled_layout((128, 128)))),
            0,
        ),
        "4096 x 4096 tiled layout in blocks, SVG": (svg(tiled_layout((4096, 4096))), 0),
        "4096 x 14336 tensor over DRAM banks, SVG": (svg(spec), 0),
        f"L1 of {allocator.chip.banks('l1')} cores with 50 tensors, SVG": (svg(allocator, each=True), 200),
        "2000 x 3000 tiler with overlap, SVG": (svg(Tiler((2000, 3000), (512, 512), overlap=32)), 0),
        "schedule of 12 tiles, SVG": (svg(Schedule("double", 12)), 0),
        "elements of a page, SVG": (lambda: views.to_svg(views.page_scene(spec, 77)), 0),
        "explorer, all about a block-sharded tensor, JSON": (lambda: everything(WORDS), 0),
        "explorer, all about 57344 pages over DRAM, JSON": (lambda: everything(spell_spec(spec)), 0),
        "32 x 32 layout, text": (lambda: views.to_text(views.scene_of(tw.row_major(32, 32))), 0),
    }


def everything(words: dict[str, str]) -> str:
    """Return all that the page of the explorer asks for when a spec changes."""
    found: list[object] = [ANSWERS[name](words) for name in ("placement", "element")]
    found += [render_for_page(PICTURES[name](words)) for name in ("placement", "memory", "schedule", "tiles")]
    return json.dumps(found)


def best(draw: Callable[[], str]) -> tuple[float, int]:
    """Return the best time in milliseconds, and the bytes of the picture."""
    times = []
    for _ in range(TURNS):
        start = time.perf_counter()
        picture = draw()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3, len(picture.encode())


def main() -> None:
    print(f"{'picture':<50} {'ms':>8} {'at most':>8} {'KiB':>8}")
    for name, (draw, limit) in subjects().items():
        milliseconds, size = best(draw)
        print(f"{name:<50} {milliseconds:>8.1f} {limit or '':>8} {size / 1024:>8.1f}")


if __name__ == "__main__":
    main()
