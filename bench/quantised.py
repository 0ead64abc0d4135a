# SPDX-License-Identifier: Apache-2.0
"""Speed of recoding quantised weights to bfloat8_b tiles, as a ratio to memcpy of the larger side in the same run.

    .venv/bin/python bench/quantised.py

A ratio of 1.0 means: as fast as copying the codes or the tiles, whichever are more bytes, with memcpy, on one thread.
`recode` goes straight from codes to tiles; `decode + pack` makes float32 of them and tiles of these, in memory that was
touched before. All of a row take turns, round after round, and the best round counts.
"""

from __future__ import annotations

import sys

# This folder has a copy.py, and so has the standard library: have the one above on the path.
sys.path[:] = [folder.removesuffix("bench") for folder in sys.path]

import argparse
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from bench.timing import Task, best_times, memcpy
from numpy.typing import NDArray

import tilewright as tw
from tilewright.copying.native import decode_codes, recode_codes
from tilewright.copying.placement import aligned_empty


@dataclass(frozen=True, slots=True)
class Weights:
    """Codes as a checkpoint has them."""

    name: str
    code: str
    codes: NDArray[np.uint8]
    scales: NDArray[np.float32] | None = None
    group: tuple[int, int] = (1, 1)


def make_weights(size: int) -> list[Weights]:
    """Return random weights of each convention."""
    rng = np.random.default_rng(0)

    def random_bytes(*shape: int) -> NDArray[np.uint8]:
        return np.frombuffer(rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)

    def halves(spread: float, *shape: int) -> NDArray[np.uint8]:
        return (spread * (1 + rng.random(shape))).astype(np.float16)[..., None].view(np.uint8)

    floats = random_bytes(size, size).copy()
    floats[(floats & 127) == 127] = 0  # there are no NaN in weights
    grid = rng.random((size // 128, size // 128), dtype=np.float32) * 1e-3 + 1e-4
    channels = rng.random((size, 1), dtype=np.float32) * 1e-3 + 1e-4
    powers = np.ldexp(np.float32(1), rng.integers(-12, -4, (size, size // 32))).astype(np.float32)
    eight = random_bytes(size, size // 32, 34).copy()
    eight[(eight == 128)] = 0
    eight[..., :2] = halves(1e-3, size, size // 32)
    four = random_bytes(size, size // 256, 144).copy()
    four[..., :2], four[..., 2:4] = halves(1e-4, size, size // 256), halves(7e-4, size, size // 256)
    return [
        Weights("FP8 E4M3, blocks of 128 x 128", "float8_e4m3", floats, grid, (128, 128)),
        Weights("FP8 E4M3, a scale for each row", "float8_e4m3", floats, channels, (1, size)),
        Weights("MXFP4", "e2m1", random_bytes(size, size // 2), powers, (1, 32)),
        Weights("ggml Q8_0", "Q8_0", eight.reshape(size, -1)),
        Weights("ggml Q4_K", "Q4_K", four.reshape(size, -1)),
    ]


def report(weights: Weights, size: int, rounds: int) -> None:
    """Print the row of some weights."""
    tiles = aligned_empty(size * size // 1024 * 1088, np.uint8)
    packed: NDArray[Any] = tw.tilize(np.zeros((size, size), np.float32), dtype="bfloat8_b")
    values = aligned_empty((size, size), np.float32)
    tiles[...], values[...] = 0, 0
    codes = (weights.code, weights.codes, size, weights.scales, weights.group)
    larger = max(weights.codes, tiles, key=lambda array: array.nbytes)
    tasks: dict[str, Task] = {
        "memcpy": memcpy(np.ones(larger.nbytes, np.uint8), larger.reshape(-1), 1),
        "recode": partial(recode_codes, *codes, out=tiles),
        "pair": lambda: tw.tilize(decode_codes(*codes, out=values), dtype="bfloat8_b", out=packed, threads=1),
    }
    times = best_times(tasks, rounds)
    assert np.array_equal(tiles, packed.reshape(-1).view(np.uint8)), weights.name
    ratio, pair = times["memcpy"] / times["recode"], times["memcpy"] / times["pair"]
    speed = size * size / times["recode"] / 1e9
    print(f"| {weights.name} | {speed:.1f} | {ratio:.2f} | {pair:.2f} |", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--size", type=int, default=8192, help="rows and columns; a multiple of 256")
    arguments.add_argument("--rounds", type=int, default=7)
    options = arguments.parse_args()
    print(f"{options.size} x {options.size} weights to bfloat8_b tiles, 1 thread\n")
    print("| weights | G elements/s | recode, ratio to memcpy | decode + pack |\n|---|---|---|---|")
    for weights in make_weights(options.size):
        report(weights, options.size, options.rounds)


if __name__ == "__main__":
    main()
