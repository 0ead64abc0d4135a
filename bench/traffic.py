# SPDX-License-Identifier: Apache-2.0
"""What a reshard plan costs: transfers, traffic, reads and time, of a small pair of specs and of a million pages.

    python bench/traffic.py [--pages 1048576]

Each number is the shortest time of a few runs, in milliseconds, of a plan that was not made before. Running a plan is
given as the time of a memcpy of the same bytes over its own time.
"""

from __future__ import annotations

import sys

sys.path.pop(0)  # the folder of this script, where copy.py would hide the standard library's

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.memory import Device, block_sharded, height_sharded, nd_sharded, width_sharded

MEMORIES = {
    "height": height_sharded((8, 8)),
    "width": width_sharded((8, 4)),
    "block": block_sharded((4, 8)),
    "nd, ragged": nd_sharded((96, 160), (7, 7)),
    "interleaved L1": "l1",
    "interleaved DRAM": "dram",
}
PARTS = ("transfers", "traffic", "reads", "cycles")


def best(run: Callable[[], Any], repeat: int = 5) -> float:
    """Return the shortest time of a few runs, in seconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def make(source: tw.TensorSpec, target: tw.TensorSpec, parts: tuple[str, ...], kernel: str) -> None:
    """Make a plan and ask it for some of its parts."""
    plan = tw.reshard(source, target, kernel=kernel)
    for part in parts:
        getattr(plan, part)


def plans(pages: int) -> None:
    columns = max(1, int((pages / 2) ** 0.5))
    shape = (32 * (pages // columns), 32 * columns)
    source = tw.TensorSpec(shape, "bfloat16", "tile", memory=block_sharded((8, 8)), chip="wormhole_n150")
    print(
        f"\n{source.num_pages} pages, block sharded on 8 x 8 cores to{'all':>12}" + "".join(f"{p:>12}" for p in PARTS)
    )
    for name, memory in MEMORIES.items():
        target = source.with_memory(memory)
        for kernel in ("current", "2024") if name in ("height", "width") else ("current",):
            times = [best(partial(make, source, target, parts, kernel)) for parts in (PARTS, *zip(PARTS, strict=True))]
            print(f"{name + ', ' + kernel:<52}" + "".join(f"{1e3 * each:>12.2f}" for each in times))


def chains() -> None:
    spec = tw.TensorSpec((1024, 1024), "bfloat16", "tile", memory=height_sharded((8, 1)), chip="wormhole_n150")
    stages = [spec, None, None, spec.with_memory(block_sharded((4, 4)))]
    start = time.perf_counter()
    tw.traffic.best_layout(stages)
    print(f"\nbest_layout, two free stages: {time.perf_counter() - start:.2f} s")


def runs() -> None:
    spec = tw.TensorSpec((4096, 4096), "bfloat16", "tile", memory=block_sharded((8, 8)), chip="wormhole_n150")
    device = Device("wormhole_n150")
    before = device.put(np.zeros((4096, 4096), np.float32), spec)
    host, other = np.ones(spec.nbytes, np.uint8), np.ones(spec.nbytes, np.uint8)
    print(f"\n{spec.nbytes / 2**20:.0f} MiB moved on a device, time of a memcpy / time")
    for name in ("height", "interleaved L1", "interleaved DRAM"):
        plan = tw.reshard(spec, spec.with_memory(MEMORIES[name]))

        def run(plan: tw.traffic.ReshardPlan = plan) -> None:
            device.free(plan.run(before, device))

        print(f"{name:<52}{best(lambda: np.copyto(other, host)) / best(run):>12.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=1 << 20, help="pages of the large tensor")
    arguments = parser.parse_args()
    plans(2048)
    plans(arguments.pages)
    chains()
    runs()
