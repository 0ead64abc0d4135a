# SPDX-License-Identifier: Apache-2.0
"""What the memory package costs: single questions, page tables, and a large tensor placed on a device, against memcpy.

    python bench/memory.py [--megabytes 1024]

Moves are given as the time of a memcpy of the same bytes over their own time, both into memory that was written before
and into memory that is touched for the first time.
"""

from __future__ import annotations

import sys

sys.path.pop(0)  # the folder of this script, where copy.py would hide the standard library's

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.memory import Device, block_sharded, height_sharded, nd_sharded, to_bytes

SIDE = 32768
MEMORIES = {
    "interleaved": "dram",
    "height": height_sharded((8, 8)),
    "block, ragged": block_sharded((7, 7)),
    "nd, ragged": nd_sharded((96, 160), (7, 7)),
}


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def best(run: Callable[[], Any], repeat: int = 5) -> float:
    """Return the shortest time of a few runs, in seconds."""
    return min(timed(run) for _ in range(repeat))


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any], repeat: int = 5) -> float:
    """Return the best time of theirs over the best of ours, taken in turn, so that a busy machine slows both."""
    pairs = [(timed(theirs), timed(ours)) for _ in range(repeat)]
    return min(first for first, _ in pairs) / min(second for _, second in pairs)


def questions() -> None:
    print(f"{'32768 x 32768 bfloat16 tiles':<30}{'pages() ms':>12}{'where us':>12}{'element_at us':>15}")
    for name, memory in MEMORIES.items():
        spec = tw.TensorSpec((SIDE, SIDE), "bfloat16", "tile", memory=memory, chip="wormhole_n150")
        table = best(lambda spec=spec: spec.pages(base=0))
        where = best(lambda spec=spec: [spec.where(k, 7 * k, base=0) for k in range(1000)]) / 1000
        place = spec.where(12345, 321, base=0)
        back = best(lambda spec=spec, place=place: [spec.element_at(place, base=0) for _ in range(1000)]) / 1000
        print(f"{name:<30}{1e3 * table:>12.1f}{1e6 * where:>12.1f}{1e6 * back:>15.1f}")


def moves(megabytes: int) -> None:
    side = max(1024, int((megabytes * 2**20 / 2) ** 0.5) // 1024 * 1024)
    values = np.random.default_rng(0).integers(0, 60000, (side, side), dtype=np.uint16)
    print(f"\n{values.nbytes / 2**20:.0f} MiB of uint16, time of a memcpy / time{'ready':>17}{'fresh':>10}")
    for layout in ("tile", "row_major"):
        spec = tw.TensorSpec((side, side), "uint16", layout, chip="wormhole_n150")
        host, other = to_bytes(values, spec), to_bytes(values, spec)

        def fresh_write(run: Any, spec: Any = spec) -> None:
            device = Device("wormhole_n150")
            run(device, device.allocate(spec))

        device = Device("wormhole_n150")
        tensor = device.put(values, spec)
        writes = {
            "write pages": lambda d, t, h=host: d.write(t, h),
            "write array": lambda d, t: d.write_array(t, values),
        }
        for name, run in writes.items():
            ready = ratio(lambda run=run: run(device, tensor), lambda a=other, b=host: np.copyto(a, b))  # noqa: B023
            fresh = ratio(lambda run=run: fresh_write(run), host.copy, 3)
            print(f"{layout + ', ' + name:<46}{ready:>10.2f}{fresh:>10.2f}")
        for name, run in {"read pages": device.read, "get array": device.get}.items():
            print(f"{layout + ', ' + name:<46}{'':>10}{ratio(lambda run=run: run(tensor), host.copy, 3):>10.2f}")  # noqa: B023


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the tensor that is moved")
    arguments = parser.parse_args()
    questions()
    moves(arguments.megabytes)
