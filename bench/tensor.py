# SPDX-License-Identifier: Apache-2.0
"""Speed of TileTensor: what a view and an element cost, and whole tensors as a ratio to memcpy in the same run.

.venv/bin/python bench/tensor.py
"""

from __future__ import annotations

import sys

# copy.py in this folder would hide the module of the standard library: keep the folder off the path.
sys.path[:] = [folder for folder in sys.path if not folder.endswith("bench")]

import argparse
import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.copying.placement import aligned_empty

SIDE = 4096


def microseconds(task: Callable[[], Any], rounds: int, calls: int = 2000) -> float:
    """Return the best mean time of a call."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            task()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def small_things(rounds: int) -> None:
    """Print what views and elements cost."""
    flat = tw.TileTensor(np.zeros(SIDE * SIDE, np.float32), tw.row_major(SIDE, SIDE))
    nested = tw.TileTensor(
        np.zeros(SIDE * SIDE, np.float32), tw.blocked_product(tw.row_major(32, 32), tw.row_major(128, 128))
    )
    tile, vectors, threads = flat.tile[32, 32](1, 2), flat.vectorize[1, 4](), tw.row_major(8, 8)
    tasks: dict[str, Callable[[], Any]] = {
        "t[i, j]": lambda: flat[3, 5],
        "t[i, j] = x": lambda: flat.__setitem__((3, 5), 1.0),
        "t[i, j] of a nested layout": lambda: nested[3, 5],
        "a vector element": lambda: vectors[3, 5],
        "t.tile[32, 32](1, 2)": lambda: flat.tile[32, 32](1, 2),
        "the same at a ragged edge": lambda: flat.tile[100, 100](40, 40),
        "the same of a nested layout": lambda: nested.tile[32, 32](1, 2),
        "tile.distribute[8 x 8](5)": lambda: tile.distribute[threads](5),
        "t.vectorize[1, 4]()": flat.vectorize[1, 4],
        "t[0:32, 0:32]": lambda: flat[0:32, 0:32],
        "tile.fill(0)": lambda: tile.fill(0),
    }
    print("| operation | us |\n|---|---|")
    for name, task in tasks.items():
        print(f"| {name} | {microseconds(task, rounds):.2f} |", flush=True)


def whole_tensors(rounds: int) -> None:
    """Print whole tensors of 64 MiB against memcpy."""
    source, target = aligned_empty(SIDE * SIDE, np.float32), aligned_empty(SIDE * SIDE, np.float32)
    source[...], target[...] = 1, 0
    blocks = tw.blocked_product(tw.row_major(32, 32), tw.row_major(SIDE // 32, SIDE // 32))
    rows, into = tw.TileTensor(source, tw.row_major(SIDE, SIDE)), tw.TileTensor(target, tw.row_major(SIDE, SIDE))
    tiled, across = tw.TileTensor(target, blocks), tw.TileTensor(target, tw.col_major(SIDE, SIDE))
    swizzled = tw.TileTensor(target, tw.compose(tw.Swizzle(3, 2, 3), tw.row_major(SIDE, SIDE)))
    tasks: dict[str, Callable[[], Any]] = {
        "memcpy": lambda: ctypes.memmove(target.ctypes.data, source.ctypes.data, source.nbytes),
        "copy_from, the same layout": lambda: into.copy_from(rows),
        "copy_from, row-major to 32 x 32 tiles": lambda: tiled.copy_from(rows),
        "copy_from, row-major to column-major": lambda: across.copy_from(rows),
        "copy_from, row-major to swizzled": lambda: swizzled.copy_from(rows),
        "fill": lambda: into.fill(1.0),
        "to_numpy of 32 x 32 tiles (allocates)": tiled.to_numpy,
        "to_numpy of swizzled (allocates)": swizzled.to_numpy,
    }
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - start)
    print(f"\n| {SIDE} x {SIDE} float32 | memcpy's time / ours |\n|---|---|")
    for name, seconds in best.items():
        print(f"| {name} | {best['memcpy'] / seconds:.2f} |", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=7)
    options = arguments.parse_args()
    small_things(options.rounds)
    whole_tensors(options.rounds)


if __name__ == "__main__":
    main()
