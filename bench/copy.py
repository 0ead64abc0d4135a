# SPDX-License-Identifier: Apache-2.0
"""Speed of the moves, as a ratio to memcpy of the source bytes in the same run.

    .venv/bin/python bench/copy.py --size 8192 --peers

A ratio of 1.0 means: as fast as copying the source bytes with memcpy, on as many threads. All moves of a row, memcpy
included, take turns, round after round, and the best round counts. Targets are allocated and touched beforehand, and
start at a cache line, as all arrays do that tilewright makes itself.
"""

from __future__ import annotations

import sys

# This file is called copy, and so is a module of the standard library: have the one above on the path.
sys.path[:] = [folder.removesuffix("bench") for folder in sys.path]

import argparse
import ctypes
import importlib
import os
import struct
import subprocess
from collections.abc import Callable
from functools import partial
from itertools import product
from math import exp, log
from typing import Any

import numpy as np
from bench.timing import Task, best_times, memcpy

import tilewright as tw
from tilewright import Layout, formats
from tilewright.copying import Placement, copy, native, plan_copy
from tilewright.copying.native import NativeRunner
from tilewright.copying.placement import aligned_empty

SCALED = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp4", "nvfp4")
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
    for name in SCALED:
        back(f"{name} -> float32", add(f"float32 -> {name}", single, name), name, single)
    for name in SCALED:
        back(f"{name} -> bfloat16", add(f"bfloat16 -> {name}", half, name), name, half)
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


def near_transposes(rounds: int) -> None:
    """Print transposes that stay in the caches: ours called in a loop in C, memcpy in one in Python, less its share."""
    print("\n| transpose inside the caches | threads | GB/s of source | ratio to memcpy |\n|---|---|---|---|")
    library, turn, empty = native.load_library(), ctypes.c_int64(0), np.zeros(1, np.uint8)
    for size, dtype in product((256, 512, 1024), (np.float32, formats.bfloat16.dtype, np.uint8)):
        source = random_array((size, size), np.float32).astype(dtype)
        across, spare = aligned_empty(source.shape, source.dtype), np.ones(source.nbytes, np.uint8)
        times = max(1, (8 << 20) // source.nbytes)
        plan = plan_copy(
            Placement(Layout((size, size), (1, size)), dtype), Placement(Layout((size, size), (size, 1)), dtype)
        )
        runner = NativeRunner(plan, 1, streaming=False)
        # a transfer of the C ABI is nests, source, target, count, streaming; a pipeline would run each of them once
        transfer = struct.pack("PPPii", runner.nests, source.ctypes.data, across.ctypes.data, runner.count, 0)
        transfers = ctypes.create_string_buffer(transfer * times)
        tasks: dict[str, Task] = {
            "ours": partial(
                library.tw_run_transfers, ctypes.addressof(turn), 0, ctypes.addressof(transfers), times, None, 0, 0
            ),
            "memcpy": partial(_repeat, memcpy(spare, source, 1), times),
            "nothing": partial(_repeat, memcpy(empty[:0], empty[:0], 1), times),
        }
        best = best_times(tasks, 3 * rounds)
        assert np.array_equal(across.view(np.uint8), np.ascontiguousarray(source.T).view(np.uint8))
        ratio = (best["memcpy"] - best["nothing"]) / best["ours"]
        speed = source.nbytes * times / best["ours"] / 1e9
        print(f"| {size} x {size} {source.dtype} | 1 | {speed:.1f} | {ratio:.2f} |", flush=True)


def small_calls(rounds: int, times: int = 200) -> None:
    """Print the time of calls that tilize a small matrix, the call itself included."""
    print(
        "\n| float32 tilize, us per call | bound plan | tilize into `out` | tilize | NumPy | plain copy of the bytes |"
    )
    print("|---|---|---|---|---|---|")
    for size in (32, 64, 128, 256):
        source = random_array((size, size), np.float32)
        tiles = tw.tilize(source)
        target, spare = aligned_empty(tiles.shape, tiles.dtype), aligned_empty(tiles.shape, tiles.dtype)
        grid = size // 32
        plan = plan_copy(
            Placement(tw.row_major(size, size), np.float32), Placement(tw.tiled_layout((size, size)), np.float32)
        )
        calls: dict[str, Task] = {
            "bound plan": plan.bind(source, target),
            "into out": lambda s=source, t=target: tw.tilize(s, out=t),
            "tilize": lambda s=source: tw.tilize(s),
            "NumPy": lambda s=source, n=grid: np.ascontiguousarray(
                s.reshape(n, 2, 16, n, 2, 16).transpose(0, 3, 1, 4, 2, 5)
            ),
            "copy": lambda s=source, t=spare: np.copyto(t, s.reshape(-1)),
        }
        best = best_times({name: partial(_repeat, call, times) for name, call in calls.items()}, rounds)
        assert np.array_equal(target, tiles)
        cells = " | ".join([f"{1e6 * seconds / times:.1f}" for seconds in best.values()])
        print(f"| {size} x {size} | {cells} |", flush=True)


def small_kinds(rounds: int, times: int = 200) -> None:
    """Print the same for other shapes and types, there and back; NumPy makes the same tiles."""
    print("\n| us per call | tilize | NumPy | untilize | NumPy |\n|---|---|---|---|---|")
    kinds = [*product(((64, 64), (96, 64)), (formats.bfloat16.dtype, np.uint8)), ((96, 64), np.float32)]
    for shape, dtype in (*kinds, ((4, 32, 32), np.float32), ((50, 60), np.float32)):
        source = random_array(shape, np.float32).astype(dtype)
        *outer, rows, columns = [-(-n // 32) for n in (*[32 * n for n in shape[:-2]], *shape[-2:])]
        padded, data = (*outer, 32 * rows, 32 * columns), tuple([slice(n) for n in shape])
        faces, first = (*outer, rows, 2, 16, columns, 2, 16), len(outer)
        order = (*range(first), *[first + k for k in (0, 3, 1, 4, 2, 5)])
        stored, inverse = tuple([faces[k] for k in order]), tuple(np.argsort(order).tolist())
        tiles = tw.tilize(source)

        def there(s: Any = source, p: Any = padded, d: Any = data, f: Any = faces, o: Any = order) -> Any:
            whole = s
            if s.shape != p:
                whole = np.zeros(p, s.dtype)
                whole[d] = s
            return np.ascontiguousarray(whole.reshape(f).transpose(o))

        def back(
            t: Any = tiles, s: Any = shape, p: Any = padded, d: Any = data, f: Any = stored, o: Any = inverse
        ) -> Any:
            whole = t.reshape(f).transpose(o).reshape(p)
            return whole if whole.shape == s else np.ascontiguousarray(whole[d])

        calls: dict[str, Task] = {
            "tilize": partial(tw.tilize, source),
            "NumPy": there,
            "untilize": partial(tw.untilize, tiles, shape),
            "NumPy back": back,
        }
        assert there().tobytes() == tiles.tobytes()
        assert back().tobytes() == source.tobytes() == tw.untilize(tiles, shape).tobytes()
        best = best_times({name: partial(_repeat, call, times) for name, call in calls.items()}, rounds)
        cells = " | ".join([f"{1e6 * seconds / times:.1f}" for seconds in best.values()])
        print(f"| {' x '.join(map(str, shape))} {source.dtype} | {cells} |", flush=True)


def _repeat(task: Task, times: int) -> None:
    for _ in range(times):
        task()


def compare_levels(size: int, rounds: int) -> None:
    """Print the one-thread rows with each set of instructions, each in a process of its own: they are chosen once."""
    ratios: dict[str, dict[str, float]] = {}
    for level in ("", "avx2", "portable"):
        command = [sys.executable, __file__, "--one-thread", "--size", str(size), "--rounds", str(rounds)]
        run = subprocess.run(
            command, env={**os.environ, "TILEWRIGHT_CPU": level}, capture_output=True, text=True, check=True
        )
        rows = [line.strip("| ").split(" | ") for line in run.stdout.splitlines() if line.startswith("| ")]
        ratios[level] = {row[0]: float(row[3]) for row in rows if len(row) == 4 and row[1] == "1"}
    print("\n| ratio to memcpy, one thread | best | AVX2 | portable | AVX2's time / best |\n|---|---|---|---|---|")
    for name, best in ratios[""].items():
        avx2, portable = ratios["avx2"][name], ratios["portable"][name]
        print(f"| {name} | {best:.2f} | {avx2:.2f} | {portable:.2f} | {best / avx2:.2f} |", flush=True)


def peer_moves(size: int) -> dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Task]]:
    """Return moves that any array library can do: a view of the source, the target in its shape, and ours."""
    single = random_array((size, size), np.float32)
    tiles = single.reshape(size // 32, 2, 16, size // 32, 2, 16).transpose(0, 3, 1, 4, 2, 5)
    found = {}

    def add(name: str, view: np.ndarray[Any, Any], dtype: Any, ours: Callable[[np.ndarray[Any, Any]], Task]) -> None:
        out = aligned_empty(view.shape, dtype)
        out[...] = 0
        found[name] = (view, out, ours(out))

    add("float32 tilize", tiles, np.float32, lambda out: partial(tw.tilize, single, out=out.reshape(-1), threads=1))
    half = "float16"  # NumPy and torch share no array of bfloat16
    add(
        "float32 -> float16 tilize",
        tiles,
        half,
        lambda out: partial(tw.tilize, single, dtype=half, out=out.reshape(-1), threads=1),
    )
    add("2-D transpose float32", single.T, np.float32, lambda out: partial(copy, single.T, out, threads=1))
    block = random_array((20, 192, 192, 96), np.float32, 1)
    for axes in ((0, 3, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0)):
        view = block.transpose(axes)
        add(f"permute {axes}", view, np.float32, lambda out, view=view: partial(copy, view, out, threads=1))
    return found


def peers_table(size: int, rounds: int) -> None:
    """Print the same moves through NumPy and torch, where it can be imported, on one thread."""
    try:
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
    except ImportError:
        torch = None
    print("\n| one thread, ratio to memcpy | tilewright | NumPy | torch |\n|---|---|---|---|")
    for name, (view, out, ours) in peer_moves(size).items():
        tasks: dict[str, Task] = {
            "memcpy": memcpy(np.ones(view.nbytes, dtype=np.uint8), view.base if view.base is not None else view, 1),
            "tilewright": ours,
            "NumPy": partial(np.copyto, out, view),
        }
        if torch is not None:
            target, given = torch.from_numpy(out), torch.from_numpy(view)
            tasks["torch"] = partial(target.copy_, given)
        times = best_times(tasks, rounds)
        shown = [
            f"{times['memcpy'] / times[peer]:.2f}" if peer in times else "-"
            for peer in ("tilewright", "NumPy", "torch")
        ]
        print(f"| {name} | {' | '.join(shown)} |", flush=True)


def ttnn_table(size: int, rounds: int) -> None:
    """Print host conversions through the real ttnn beside ours, on one thread, if it can be imported."""
    try:
        ttnn = importlib.import_module("ttnn")
    except ImportError:
        return
    single = random_array((size, size), np.float32)
    print("\n| float32 tilize to | tilewright GB/s | ttnn GB/s | times as fast |\n|---|---|---|---|")
    for name in ("float32", "bfloat16", "bfloat8_b", "bfloat4_b"):
        out = tw.tilize(single, dtype=name)
        real = partial(ttnn.Tensor, single, data_type=getattr(ttnn, name), layout=ttnn.TILE_LAYOUT)
        times = best_times({"ours": partial(tw.tilize, single, dtype=name, out=out, threads=1), "ttnn": real}, rounds)
        speeds = [single.nbytes / times[peer] / 1e9 for peer in ("ours", "ttnn")]
        print(f"| {name} | {speeds[0]:.1f} | {speeds[1]:.2f} | {speeds[0] / speeds[1]:.0f} |", flush=True)


def odd_moves(shape: tuple[int, int], threads: int = 1) -> dict[str, Task]:
    """Return moves of one matrix, into targets as plain NumPy allocates them: 16 bytes past a cache line."""
    source = random_array(shape, np.float32)
    packed = tw.tilize(source, dtype="bfloat8_b")
    tiles, back, across = (np.zeros(form, np.float32) for form in (tw.tilize(source).size, shape, shape[::-1]))
    return {
        "tilize": partial(tw.tilize, source, out=tiles, threads=threads),
        "untilize": partial(tw.untilize, tiles, shape, out=back, threads=threads),
        "bfloat8_b": partial(tw.tilize, source, dtype="bfloat8_b", out=packed.copy(), threads=threads),
        "transpose": partial(copy, source.T, across, threads=threads),
    }


def odd_shapes(rounds: int) -> None:
    """Print the time of odd shapes as a multiple of that of their aligned neighbours."""
    print("\n| time against the aligned neighbour | tilize | untilize | bfloat8_b | transpose |\n|---|---|---|---|---|")
    pairs = (((1000, 1000), (1024, 1024)), ((37, 50021), (64, 50048)), ((3001, 3001), (3008, 3008)))
    for odd, even in pairs:
        ours, neighbour = best_times(odd_moves(odd), 3 * rounds), best_times(odd_moves(even), 3 * rounds)
        ratios = " | ".join(f"{ours[move] / neighbour[move]:.2f}" for move in ours)
        print(f"| {odd[0]} x {odd[1]} ({even[0]} x {even[1]}) | {ratios} |", flush=True)
    many = {}
    for shape in ((60, 50), (64, 64)):
        arrays = [random_array(shape, np.float32, seed) for seed in range(1000)]
        outs = [tw.tilize(array) for array in arrays]
        many[shape] = partial(_tilize_all, arrays, outs)
    times = best_times(many, rounds)
    print(f"| 1000 times 60 x 50 (64 x 64) | {times[60, 50] / times[64, 64]:.2f} | | | |")


def _tilize_all(arrays: list[np.ndarray[Any, Any]], outs: list[np.ndarray[Any, Any]]) -> None:
    for array, out in zip(arrays, outs, strict=True):
        tw.tilize(array, out=out, threads=1)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--size", type=int, default=8192)
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--peers", action="store_true", help="add NumPy, torch and ttnn where installed")
    arguments.add_argument("--one-thread", action="store_true", help="only the moves on one thread")
    arguments.add_argument("--levels", action="store_true", help="only a comparison of the sets of instructions")
    options = arguments.parse_args()
    if options.levels:
        compare_levels(options.size, options.rounds)
        return
    engine = (
        native.load_library().tw_cpu_features().decode()
        if native.is_available()
        else f"none: {native.unavailable_reason()}"
    )
    print(f"tilewright {tw.__version__}, {options.size} x {options.size}, native engine: {engine}\n")
    print("| move | threads | GB/s of source | ratio to memcpy |\n|---|---|---|---|")
    for threads in (1,) if options.one_thread else (1, 2):
        report(tile_moves(options.size, options.size, threads), options.rounds, threads)
        ratios = report(permutation_moves(threads), max(3, options.rounds // 2), threads)
        mean = exp(sum(map(log, ratios.values())) / len(ratios))
        print(f"| 4-D permutations, geometric mean | {threads} | | {mean:.2f} |", flush=True)
    if native.is_available():
        near_transposes(options.rounds)
    small_calls(options.rounds)
    small_kinds(options.rounds)
    if options.one_thread:
        return
    odd_shapes(options.rounds)
    if options.peers:
        peers_table(options.size, max(3, options.rounds // 2))
        ttnn_table(options.size // 2, 3)


if __name__ == "__main__":
    main()
