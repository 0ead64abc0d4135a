# SPDX-License-Identifier: Apache-2.0
"""Speed of the moves on a CUDA device, as a ratio to the device-to-device copy of the same bytes in the same run.

    PYTHONPATH=src python bench/gpu.py                  # all rows, with torch eager and torch.compile beside
    PYTHONPATH=src python bench/gpu.py --no-peers       # ours only
    PYTHONPATH=src python bench/gpu.py --sweep          # ours, cut in several ways, to choose the defaults

A ratio of 1.0 means: the bytes read and written, over the time, are as many as those of a plain copy. All moves of a
row take turns, round after round, each timed by events on the device, and the median round counts. Every result is
compared with torch's once, after its memory was poisoned.
"""

from __future__ import annotations

import argparse
import importlib
import random
import statistics
import time
from collections.abc import Callable
from math import exp, log
from typing import Any

import tilewright as tw
from tilewright.copy import Placement, cuda_engine, plan_copy, tiled_layout
from tilewright.copy.buffers import placement_of
from tilewright.copy.codegen import Tuning
from tilewright.copy.device_array import admitted

Task = Callable[[], Any]
SHAPE = (64, 96, 128, 160)
SWEEP = {
    "defaults": Tuning(),
    "plain stores": Tuning(store="plain"),
    "streaming loads": Tuning(load="stream"),
    "128 threads": Tuning(threads=128),
    "512 threads": Tuning(threads=512, shared=24576),
    "32 bytes in flight": Tuning(in_flight=32),
    "128 bytes in flight": Tuning(in_flight=128),
    "12 KiB shared": Tuning(shared=12288),
    "no clusters": Tuning(cluster=1),
    "clusters of 64": Tuning(cluster=64),
    "clusters of 256": Tuning(cluster=256),
}


class Bench:
    """A device, the rounds to run, and the peers to run beside ours."""

    def __init__(self, torch: Any, rounds: int, peers: bool, sweep: bool) -> None:
        self.torch, self.rounds, self.peers, self.sweep = torch, rounds, peers, sweep

    def times(self, tasks: dict[str, Task]) -> dict[str, float]:
        """Return the median time of each task over interleaved rounds, in seconds."""
        cuda = self.torch.cuda
        found: dict[str, list[float]] = {name: [] for name in tasks}
        for task in tasks.values():
            task()
            task()
        for _ in range(self.rounds):
            for name, task in tasks.items():
                start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
                start.record()
                task()
                end.record()
                end.synchronize()
                found[name].append(start.elapsed_time(end) / 1e3)
        return {name: statistics.median(each) for name, each in found.items()}

    def row(self, name: str, moved: int, source: Any, target: Any, plan: Any, peer: Task | None) -> float:
        """Print the ratios of one move to a copy that reads and writes as many bytes, and return ours."""
        torch = self.torch
        half = moved // 2
        room = torch.empty(2 * half, dtype=torch.uint8, device="cuda")
        near, far = room[:half], room[half:]
        ends = admitted(source), admitted(target)
        tasks: dict[str, Task] = {"copy": lambda: far.copy_(near)}
        if self.sweep:
            for label, tuning in SWEEP.items():
                tasks[label] = lambda tuning=tuning: cuda_engine.run(plan, *ends, tuning=tuning)
        else:
            tasks["ours"] = lambda: cuda_engine.run(plan, *ends)
            if self.peers and peer is not None:
                tasks["eager"] = peer
                tasks["compiled"] = torch.compile(peer, dynamic=False)
        try:
            found = self.times(tasks)
        except Exception as problem:
            print(f"| {name} | {type(problem).__name__}: {str(problem)[:200]} |", flush=True)
            return 0.0
        base = found.pop("copy")
        cells = " | ".join(f"{label} {base / each:.3f}" for label, each in found.items())
        print(f"| {name} | {2 * half / base / 1e12:.2f} TB/s | {cells} |", flush=True)
        return base / found.get("ours", found.get("defaults", base))


def tile_rows(bench: Bench, size: int) -> None:
    """Print tilize, untilize and transpose in float32 and bfloat16."""
    torch = bench.torch
    for name in ("float32", "bfloat16"):
        dtype = getattr(torch, name)
        source = torch.randn(size, size, device="cuda").to(dtype)
        moved = 2 * source.numel() * source.element_size()
        tiles = torch.full((source.numel(),), -7, dtype=dtype, device="cuda")
        tiled = Placement(tiled_layout((size, size)), name)
        plain = placement_of(admitted(source))
        cut = source.view(size // 32, 2, 16, size // 32, 2, 16)
        wanted = cut.permute(0, 3, 1, 4, 2, 5)
        bench.row(f"{name} tilize", moved, source, tiles, plan_copy(plain, tiled), wanted.contiguous)
        check(torch, f"{name} tilize", tiles, wanted.reshape(-1))
        back = torch.full_like(source, -7)
        spread = tiles.view(size // 32, size // 32, 2, 2, 16, 16).permute(0, 2, 4, 1, 3, 5)
        bench.row(f"{name} untilize", moved, tiles, back, plan_copy(tiled, plain), spread.contiguous)
        check(torch, f"{name} untilize", back, source)
        back.fill_(-7)
        turned = plan_copy(placement_of(admitted(source.T)), plain)
        bench.row(f"{name} transpose", moved, source, back, turned, source.T.contiguous)
        check(torch, f"{name} transpose", back, source.T)


def block_rows(bench: Bench, size: int) -> None:
    """Print packing to blocks and back; the bytes are those read plus those written."""
    torch = bench.torch
    source = torch.randn(size, size, device="cuda")
    plain = placement_of(admitted(source))
    for name in ("bfloat8_b", "bfloat4_b"):
        place = Placement(tiled_layout((size, size)), name, tile_elements=1024)
        packed = torch.full((place.nbytes,), 0xA5, dtype=torch.uint8, device="cuda")
        moved = source.numel() * 4 + place.nbytes
        peer = (lambda: torch_packed(torch, source)) if name == "bfloat8_b" else None
        bench.row(f"float32 -> {name}", moved, source, packed, plan_copy(plain, place), peer)
        corner = tw.tilize(source[:64, :].contiguous().cpu().numpy(), dtype=name)
        check(torch, name, packed[: corner.size].cpu(), torch.from_numpy(corner))
        back = torch.full_like(source, -7)
        bench.row(f"{name} -> float32", moved, packed, back, plan_copy(place, plain), None)
        near = tw.untilize(packed[: corner.size].cpu().numpy(), (64, size), dtype=name)
        check(torch, f"{name} -> float32", back[:64].cpu(), torch.from_numpy(near))


def torch_packed(torch: Any, source: Any) -> Any:
    """Return bfloat8_b codes and exponents by torch operations: what a user would write."""
    size = source.shape[0]
    tiles = source.view(size // 32, 2, 16, size // 32, 2, 16).permute(0, 3, 1, 4, 2, 5).reshape(-1, 16)
    bits = tiles.view(torch.int32)
    magnitude = bits & 0x7FFFFFFF
    shared = (magnitude.amax(dim=1, keepdim=True)) >> 23
    mantissa = torch.where(magnitude >= 0x800000, (magnitude & 0x7FFFFF) | 0x800000, 0)
    aligned = mantissa >> (shared - (magnitude >> 23)).clamp(max=31)
    rounded = ((aligned + 0xFFFF + ((aligned >> 17) & 1)) >> 17).clamp(max=127)
    codes = torch.where(rounded == 0, 0, rounded | ((bits >> 24) & 0x80)).to(torch.uint8)
    return torch.cat([shared.to(torch.uint8).view(-1, 64), codes.view(-1, 1024)], dim=1)


def permutation_rows(bench: Bench, count: int) -> None:
    """Print random permutations of four dimensions, and their geometric mean and least."""
    torch = bench.torch
    axes_of = [tuple(random.Random(7 + k).sample(range(4), 4)) for k in range(4 * count)]
    chosen = [axes for axes in dict.fromkeys(axes_of) if axes != (0, 1, 2, 3)][:count]
    for name in ("float32", "bfloat16"):
        source = torch.randn(*SHAPE, device="cuda").to(getattr(torch, name))
        moved = 2 * source.numel() * source.element_size()
        ratios = []
        for axes in chosen:
            view = source.permute(axes)
            target = torch.full(tuple(view.shape), -7, dtype=source.dtype, device="cuda")
            plan = plan_copy(placement_of(admitted(view)), placement_of(admitted(target)))
            ratios.append(bench.row(f"{name} permute {axes}", moved, source, target, plan, view.contiguous))
            check(torch, f"{name} permute {axes}", target, view)
        mean = exp(sum(map(log, [max(each, 1e-9) for each in ratios])) / len(ratios))
        print(f"| {name} permutations: geometric mean {mean:.3f}, least {min(ratios):.3f} |", flush=True)


def check(torch: Any, name: str, got: Any, wanted: Any) -> None:
    """Say so if a result is wrong: a fast wrong answer is no answer."""
    if not torch.equal(got, wanted):
        print(f"| {name} | WRONG RESULT |", flush=True)


def first_calls(torch: Any) -> None:
    """Print the time from a shape never seen before to its result, from nothing and from the cache on disk."""
    for label, shape in (
        ("fresh process", (4000, 4064)),
        ("new shape", (4096, 4192)),
        ("another new shape", (3200, 32 * 77)),
    ):
        source = torch.randn(*shape, device="cuda")
        torch.cuda.synchronize()
        start = time.perf_counter()
        tw.tilize(source)
        torch.cuda.synchronize()
        print(f"| first call, {label} | {time.perf_counter() - start:.3f} s |", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--size", type=int, default=16384)
    arguments.add_argument("--rounds", type=int, default=20)
    arguments.add_argument("--permutations", type=int, default=8)
    arguments.add_argument("--no-peers", action="store_true", help="without torch eager and torch.compile")
    arguments.add_argument("--sweep", action="store_true", help="ours only, cut in several ways")
    arguments.add_argument("--only", choices=("tiles", "blocks", "permutations", "first"), help="one part of the table")
    options = arguments.parse_args()
    problem = cuda_engine.why_not()
    if problem:
        raise SystemExit(problem)
    torch = importlib.import_module("torch")
    cupy = importlib.import_module("cupy")
    print(f"tilewright {tw.__version__}, torch {torch.__version__}, CuPy {cupy.__version__}")
    print(f"{torch.cuda.get_device_name()}, {options.size} x {options.size}, {time.strftime('%Y-%m-%d')}\n", flush=True)
    bench = Bench(torch, options.rounds, not options.no_peers, options.sweep)
    parts: dict[str, Task] = {
        "first": lambda: first_calls(torch),
        "tiles": lambda: tile_rows(bench, options.size),
        "blocks": lambda: block_rows(bench, options.size),
        "permutations": lambda: permutation_rows(bench, options.permutations),
    }
    for name, part in parts.items():
        if options.only in (None, name):
            part()


if __name__ == "__main__":
    main()
