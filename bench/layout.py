# SPDX-License-Identifier: Apache-2.0
"""Times of the layout algebra, side by side with the peers that are installed.

    make bench

Every operation is timed in turn for every library, many times over, and the best time counts: a machine that is busy
for a while then slows all of them down, or none. Peers: CUTLASS pycute (in `nvidia-cutlass`) and `tensor-layouts`.
"""

from __future__ import annotations

import sys

# A neighbour of this file is called copy, and so is a module of the standard library: keep this folder off the path.
sys.path[:] = [folder for folder in sys.path if not folder.endswith("bench")]

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw

SHAPE = ((16, 2, 128), (16, 2, 128))
STRIDE = ((16, 512, 131072), (1, 256, 1024))
WINDOW = ((32, 32), (1, 4096))
OURS = "tilewright"
Operation = Callable[[], Any]


def installed_peers() -> dict[str, Any]:
    """Return the peer libraries that can be imported, by name."""
    found = {}
    for name, module in (("pycute", "pycute"), ("tensor-layouts", "tensor_layouts")):
        try:
            library = importlib.import_module(module)
        except ImportError:
            continue
        if hasattr(library, "Layout"):  # another package is called pycute too
            found[name] = library
    return found


def fresh(tree: Any) -> Any:
    """Return a copy of a nested tuple that shares no tuple with it."""
    return tuple([fresh(branch) for branch in tree]) if isinstance(tree, tuple) else tree


def operations(library: Any) -> dict[str, Operation]:
    """Return the operations to time, by name, on the same layouts for every library."""
    layout = library.Layout(SHAPE, STRIDE)
    window = library.Layout(*WINDOW)
    compose = getattr(library, "compose", None) or library.composition
    copies = [(fresh(SHAPE), fresh(STRIDE)) for _ in range(1000)]
    turn = iter(range(10**9))

    def construct_fresh() -> Any:
        shape, stride = copies[next(turn) % 1000]
        return library.Layout((shape[0], shape[1]), (stride[0], stride[1]))

    return {
        "construct T": lambda: library.Layout(SHAPE, STRIDE),
        "construct T, new tuples": construct_fresh,
        "T(1234, 2345)": lambda: layout(1234, 2345),
        "T(9606354)": lambda: layout(9606354),
        "compose(T, W)": lambda: compose(layout, window),
        "complement(W, 4096^2)": lambda: library.complement(window, 4096 * 4096),
        "coalesce(T)": lambda: library.coalesce(layout),
        "coalesce(new T)": lambda: library.coalesce(library.Layout(SHAPE, STRIDE)),
        "logical_divide(T, (32, 32))": lambda: library.logical_divide(layout, (32, 32)),
        "zipped_divide(T, (32, 32))": lambda: library.zipped_divide(layout, (32, 32)),
        "right_inverse(T)": lambda: library.right_inverse(layout),
        "left_inverse(W)": lambda: library.left_inverse(window),
    }


def best_times(tasks: dict[str, Operation], rounds: int, least: float) -> dict[str, float]:
    """Return the best time of one call of each task, in seconds, over interleaved rounds."""
    repeats = {}
    for name, task in tasks.items():
        start = time.perf_counter()
        task()
        repeats[name] = max(1, int(least / max(time.perf_counter() - start, 1e-7)))
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            count = repeats[name]
            start = time.perf_counter()
            for _ in range(count):
                task()
            best[name] = min(best[name], (time.perf_counter() - start) / count)
    return best


def algebra_table(rounds: int) -> None:
    """Print microseconds per operation and library, and the ratio of the peers to ours."""
    libraries = {OURS: tw, **installed_peers()}
    tables = {name: operations(library) for name, library in libraries.items()}
    peers = [name for name in libraries if name != OURS]
    print(f"T = {tw.Layout(SHAPE, STRIDE)}, W = {tw.Layout(*WINDOW)}; microseconds, best of {rounds} rounds\n")
    heads = ["operation", OURS, *(head for peer in peers for head in (peer, "ratio"))]
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for operation in tables[OURS]:
        times = best_times({name: table[operation] for name, table in tables.items()}, rounds, 0.004)
        row = [operation, f"{times[OURS] * 1e6:.2f}"]
        for peer in peers:
            row += [f"{times[peer] * 1e6:.2f}", f"{times[peer] / times[OURS]:.1f}x"]
        print("| " + " | ".join(row) + " |", flush=True)
    if not peers:
        print("\n(no peer is installed: pip install --no-deps nvidia-cutlass tensor-layouts)")


def offsets_table(rounds: int) -> None:
    """Print the time of all 16.7 million offsets of T, against the plain NumPy broadcast of two vectors."""
    layout = tw.Layout(SHAPE, STRIDE)
    rows, columns = (tw.Layout((shape,), (stride,)).offsets() for shape, stride in zip(SHAPE, STRIDE, strict=True))
    assert (layout.offsets() == rows[:, None] + columns).all()
    tasks: dict[str, Operation] = {
        "T.offsets()": layout.offsets,
        "NumPy broadcast of two vectors": lambda: rows[:, None] + columns,
    }
    times = best_times(tasks, rounds, 0.0)
    base = times["NumPy broadcast of two vectors"]
    print("\n| all 16.7 M offsets of T | seconds | ratio |\n|---|---|---|")
    for name, seconds in times.items():
        print(f"| {name} | {seconds:.4f} | {seconds / base:.2f} |")
    for name, library in installed_peers().items():
        peer = library.Layout(SHAPE, STRIDE)
        start = time.perf_counter()
        for index in range(20000):
            peer(index)
        seconds = (time.perf_counter() - start) / 20000 * 4096 * 4096
        print(f"| {name}, one call an element (from 20,000 calls) | {seconds:.0f} | {seconds / base:.0f} |")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=30, help="how often every operation is timed")
    rounds = arguments.parse_args().rounds
    print(f"tilewright {tw.__version__}, NumPy {np.__version__}")
    algebra_table(rounds)
    offsets_table(max(5, rounds // 3))


if __name__ == "__main__":
    main()
