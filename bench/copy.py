# SPDX-License-Identifier: Apache-2.0
"""Speed of the moves, as a ratio to memcpy of the source bytes in the same run.

    .venv/bin/python bench/copy.py --size 8192 --peers

A ratio of 1.0 means: as fast as copying the source bytes with memcpy, on as many threads. All moves of a row, memcpy
included, take turns, round after round, and the best round counts. Targets are allocated and touched beforehand, and
start at a cache line, as all arrays do that tilewright makes itself.
"""

from __future__ import annotations

import sys

# This file is called copy, and so is a module of the standard library: keep this folder off the path.
sys.path[:] = [folder for folder in sys.path if not folder.endswith("bench")]

import argparse
import ctypes
import importlib
import threading
import time
from collections.abc import Callable
from functools import partial
from math import exp, log
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import formats
from tilewright.copy import copy, native
from tilewright.copy.buffers import aligned_empty

Task = Callable[[], Any]
PERMUTATIONS = [
    (0, 2, 3, 1),
    (0, 3, 1, 2),
    (3, 2, 1, 0),
    (1, 0, 3, 2),
    (2, 0, 3, 1),
    (0, 2, 1, 3),
    (1, 3, 0, 2),
    (3, 0, 1, 2),
]


def memcpy(target: np.ndarray[Any, Any], source: np.ndarray[Any, Any], threads: int) -> Task:
    """Return a task that copies source to target with memcpy, each thread its share."""
    size = source.nbytes
    bounds = [size * k // threads for k in range(threads + 1)]

    def move(k: int) -> None:
        ctypes.memmove(target.ctypes.data + bounds[k], source.ctypes.data + bounds[k], bounds[k + 1] - bounds[k])

    def run() -> None:
        helpers = [threading.Thread(target=move, args=(k,)) for k in range(1, threads)]
        for helper in helpers:
            helper.start()
        move(0)
        for helper in helpers:
            helper.join()

    return run


def best_times(tasks: dict[str, Task], rounds: int) -> dict[str, float]:
    """Return the best time of each task over interleaved rounds, in seconds."""
    best = dict.fromkeys(tasks, float("inf"))
    for task in tasks.values():
        task()
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def random_array(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return random numbers, made in blocks so that large arrays need no second copy."""
    rng = np.random.default_rng(seed)
    flat = np.empty(int(np.prod(shape)), dtype=dtype)
    for start in range(0, flat.size, 1 << 20):
        part = flat[start : start + (1 << 20)]
        part[...] = rng.standard_normal(part.size, dtype=np.float32).astype(dtype)
    return flat.reshape(shape)


def tile_moves(rows: int, columns: int, threads: int) -> dict[str, tuple[np.ndarray[Any, Any], Task]]:
    """Return, for each move of the table, its source and the task that moves it."""
    bf16 = formats.bfloat16.dtype
    single = random_array((rows, columns), np.float32)
    half = random_array((rows, columns), bf16)
    found: dict[str, tuple[np.ndarray[Any, Any], Task]] = {}

    def add(name: str, source: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
        out = tw.tilize(source, dtype=dtype)
        found[name] = (source, lambda: tw.tilize(source, dtype=dtype, out=out, threads=threads))
        return out

    def back(name: str, data: np.ndarray[Any, Any], dtype: Any, like: np.ndarray[Any, Any]) -> None:
        out = aligned_empty(like.shape, like.dtype)
        out[...] = 0
        found[name] = (like, lambda: tw.untilize(data, like.shape, dtype=dtype, out=out, threads=threads))

    back("float32 untilize", add("float32 tilize", single, None), None, single)
    back("bfloat16 untilize", add("bfloat16 tilize", half, None), None, half)
    add("float32 -> bfloat16 tilize", single, "bfloat16")
    eight = add("float32 -> bfloat8_b", single, "bfloat8_b")
    add("float32 -> bfloat4_b", single, "bfloat4_b")
    back("bfloat8_b -> float32", eight, "bfloat8_b", single)
    across = aligned_empty((columns, rows), np.float32)
    across[...] = 0
    found["2-D transpose float32"] = (single, lambda: copy(single.T, across, threads=threads))
    return found


def permutation_moves(threads: int) -> dict[str, tuple[np.ndarray[Any, Any], Task]]:
    """Return NHWC <-> NCHW and other 4-D permutations of about 256 MiB of float32."""
    found: dict[str, tuple[np.ndarray[Any, Any], Task]] = {}
    source = random_array((20, 192, 192, 96), np.float32, 1)
    for axes in PERMUTATIONS:
        view = source.transpose(axes)
        out = aligned_empty(view.shape, np.float32)
        out[...] = 0
        found[f"permute {axes}"] = (source, partial(copy, view, out, threads=threads))
    return found


def report(moves: dict[str, tuple[np.ndarray[Any, Any], Task]], rounds: int, threads: int) -> dict[str, float]:
    """Print a row for each move, and return the ratios."""
    ratios = {}
    for name, (source, task) in moves.items():
        spare = np.ones(source.nbytes, dtype=np.uint8)
        times = best_times({"memcpy": memcpy(spare, source, threads), "ours": task}, rounds)
        ratios[name] = times["memcpy"] / times["ours"]
        speed = source.nbytes / times["ours"] / 1e9
        print(f"| {name} | {threads} | {speed:.1f} | {ratios[name]:.2f} |", flush=True)
    return ratios


def torch_tasks(single: np.ndarray[Any, Any], out: np.ndarray[Any, Any], size: int) -> dict[str, Task]:
    """Return the same tilize through torch on one thread, if it is installed."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return {}
    torch.set_num_threads(1)
    room = torch.from_numpy(out)
    view = torch.from_numpy(single).reshape(size // 32, 2, 16, size // 32, 2, 16).permute(0, 3, 1, 4, 2, 5)
    return {"torch float32 tilize": lambda: room.copy_(view)}


def ttnn_tasks(single: np.ndarray[Any, Any]) -> dict[str, Task]:
    """Return host conversions through the real ttnn, if it is installed."""
    try:
        ttnn, torch = importlib.import_module("ttnn"), importlib.import_module("torch")
    except ImportError:
        return {}
    tensor = torch.from_numpy(single)

    def convert(name: str) -> Task:
        return lambda: ttnn.from_torch(tensor, dtype=getattr(ttnn, name), layout=ttnn.TILE_LAYOUT)

    return {f"ttnn {name}": convert(name) for name in ("float32", "bfloat16", "bfloat8_b", "bfloat4_b")}


def peers_table(size: int, rounds: int) -> None:
    """Print the same moves through NumPy, torch and ttnn, where they can be imported, on one thread."""
    single = random_array((size, size), np.float32)
    out = np.empty((size // 32, size // 32, 2, 2, 16, 16), dtype=np.float32)
    tiles = single.reshape(size // 32, 2, 16, size // 32, 2, 16).transpose(0, 3, 1, 4, 2, 5)
    flat = out.reshape(-1)
    tasks: dict[str, Task] = {
        "memcpy": memcpy(np.ones(single.nbytes, dtype=np.uint8), single, 1),
        "tilewright float32 tilize": lambda: tw.tilize(single, out=flat, threads=1),
        "NumPy float32 tilize": lambda: np.copyto(out, tiles),
    }
    tasks |= torch_tasks(single, out, size) | ttnn_tasks(single)
    times = best_times(tasks, rounds)
    print("\n| one thread | GB/s of source | ratio to memcpy |\n|---|---|---|")
    for name, seconds in times.items():
        print(f"| {name} | {single.nbytes / seconds / 1e9:.1f} | {times['memcpy'] / seconds:.2f} |")


def odd_shapes(rounds: int) -> None:
    """Print odd shapes beside their aligned neighbours."""
    print("\n| float32 tilize | GB/s of source | GB/s of the aligned neighbour |\n|---|---|---|")
    for odd, even in (((1000, 1000), (1024, 1024)), ((37, 50021), (64, 50048)), ((8191, 8191), (8192, 8192))):
        tasks: dict[str, Task] = {}
        for shape in (odd, even):
            source = random_array(shape, np.float32)
            out = tw.tilize(source)
            tasks[str(shape)] = partial(tw.tilize, source, out=out, threads=1)
        times = best_times(tasks, rounds)
        speeds = [4 * shape[0] * shape[1] / times[str(shape)] / 1e9 for shape in (odd, even)]
        print(f"| {odd[0]} x {odd[1]} | {speeds[0]:.1f} | {speeds[1]:.1f} |", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--size", type=int, default=8192)
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--peers", action="store_true", help="add NumPy, torch and ttnn where installed")
    options = arguments.parse_args()
    engine = native.library().tw_cpu_features().decode() if native.available() else f"none: {native.why_not()}"
    print(f"tilewright {tw.__version__}, {options.size} x {options.size}, native engine: {engine}\n")
    print("| move | threads | GB/s of source | ratio to memcpy |\n|---|---|---|---|")
    for threads in (1, 2):
        report(tile_moves(options.size, options.size, threads), options.rounds, threads)
        ratios = report(permutation_moves(threads), max(3, options.rounds // 2), threads)
        mean = exp(sum(map(log, ratios.values())) / len(ratios))
        print(f"| 4-D permutations, geometric mean | {threads} | | {mean:.2f} |", flush=True)
    odd_shapes(options.rounds)
    if options.peers:
        peers_table(options.size, options.rounds)


if __name__ == "__main__":
    main()
