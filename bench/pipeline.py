# SPDX-License-Identifier: Apache-2.0
"""Speed of pipelines, as ratios to memcpy, to NumPy and to `cp` in the same run.

    .venv/bin/python bench/pipeline.py --file-gib 8

All tasks of a table take turns, round after round, and the best round counts. Targets are allocated and touched
beforehand. The last table writes two files of the given size; it is left out when the disk is too full for them.
"""

from __future__ import annotations

import sys

# This folder has a copy.py, and so has the standard library: have the one above on the path.
sys.path[:] = [folder.removesuffix("bench") for folder in sys.path]

import argparse
import ctypes
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench.timing import Task, best_times

from tilewright.copying import native
from tilewright.copying.placement import aligned_empty
from tilewright.tiling import Input, Output, Pipeline, Tiler, Trace, stream

SIDE, TILE = 4096, 256
LIMIT = 256 << 20


def touched(dtype: Any) -> np.ndarray[Any, Any]:
    """Return an array at a cache line, every page of it written."""
    array = aligned_empty((SIDE, SIDE), dtype)
    array[...] = 1
    return array


def copy_tile(source: Any, target: Any) -> None:
    np.copyto(target, source)


def copies(rounds: int) -> None:
    """Print the copy: with a compute that copies tiles, and without a compute."""
    print("| copy, 256 x 256 tiles | type | transfer threads | time / memcpy |\n|---|---|---|---|")
    for dtype in (np.float32, np.uint8):
        source, target = touched(dtype), touched(dtype)
        tiler = Tiler((SIDE, SIDE), (TILE, TILE))
        tasks: dict[str, Task] = {
            "memcpy": lambda source=source, target=target: ctypes.memmove(
                target.ctypes.data, source.ctypes.data, source.nbytes
            )
        }
        for workers in (0, 1, 2):
            for scheme in ("double", "duplex", "simplex"):
                pipeline = Pipeline([Input(source, tiler)], [Output(target, tiler)], scheme=scheme, workers=workers)
                tasks[f"{scheme} | {np.dtype(dtype)} | {workers}"] = lambda run=pipeline.run: run(copy_tile)
            plain = Pipeline([Input(source, tiler)], [Output(target, tiler)], workers=workers)
            tasks[f"double, no compute | {np.dtype(dtype)} | {workers}"] = lambda run=plain.run: run(None)
        times = best_times(tasks, rounds)
        memcpy = times.pop("memcpy")
        for name, seconds in times.items():
            print(f"| {name} | {seconds / memcpy:.2f} |", flush=True)
        print(f"| memcpy, ms | {np.dtype(dtype)} | 0 | {1e3 * memcpy:.2f} ms |", flush=True)


def cross(tile: Any, out: Any) -> None:
    """The five-point cross, as one would write it in NumPy."""
    out[...] = tile[1:-1, 1:-1] + tile[:-2, 1:-1] + tile[2:, 1:-1] + tile[1:-1, :-2] + tile[1:-1, 2:]


def crosses(rounds: int) -> None:
    """Print the cross: tiles with a halo, and their computes alone, beside the same expression over the whole array."""
    print("\n| cross, 256 x 256 tiles | type | transfer threads | time / NumPy on the whole |\n|---|---|---|---|")
    for dtype in (np.float32, np.uint8):
        source, target = touched(dtype), touched(dtype)
        around = np.pad(source, 1)
        out = np.empty((TILE, TILE), dtype)
        tasks: dict[str, Task] = {
            "whole": lambda around=around, target=target: cross(around, target),
            f"computes alone | {np.dtype(dtype)} | ": lambda around=around, out=out: [
                cross(around[: TILE + 2, : TILE + 2], out) for _ in range((SIDE // TILE) ** 2)
            ],
        }
        for workers in (0, 1, 2):
            for scheme in ("double", "duplex", "simplex"):
                tasks[f"{scheme} | {np.dtype(dtype)} | {workers}"] = (
                    lambda source=source, target=target, scheme=scheme, workers=workers: stream(
                        source, target, cross, tile=(TILE, TILE), overlap=1, scheme=scheme, workers=workers
                    )
                )
        times = best_times(tasks, max(3, rounds // 2))
        whole = times.pop("whole")
        for name, seconds in times.items():
            print(f"| {name} | {seconds / whole:.2f} |", flush=True)


def overhead(rounds: int) -> None:
    """Print what a tile costs beside its copies and its compute, from short runs of 40 and 120 tiles of 16 x 16."""
    print("\n| overhead | us per tile |\n|---|---|")
    for scheme in ("double", "duplex", "simplex"):
        tasks: dict[str, Task] = {}
        for rows in (4, 12):
            source, target = (np.ones((16 * rows, 160), np.float32) for _ in range(2))
            tiler = Tiler(source.shape, (16, 16))
            pipeline = Pipeline([Input(source, tiler)], [Output(target, tiler)], scheme=scheme)
            tasks[f"run {rows}"] = lambda p=pipeline: p.run(idle())
            tasks[f"copies {rows}"] = _copies_alone(pipeline)
        times = best_times(tasks, 20 * rounds)
        extra = times["run 12"] - times["run 4"] - (times["copies 12"] - times["copies 4"])
        print(f"| {scheme}, 16 x 16 tiles | {1e6 * extra / 80:.1f} |", flush=True)


def idle() -> Callable[..., Any]:
    """Return a compute that does nothing but write the first tile, which is checked."""
    first = [True]

    def compute(x: Any, y: Any) -> None:
        if first:
            first.clear()
            y[...] = x

    return compute


def _copies_alone(pipeline: Pipeline) -> Task:
    """Return a task that carries out the copies of a pipeline and nothing else."""
    buffers_in, buffers_out = pipeline.make_buffers()
    into, out = next(iter(buffers_in.values()))[0], next(iter(buffers_out.values()))[0]
    tiler = pipeline.inputs[0].tiler
    work = [pipeline.sources[0][0].plan_import(tile, into, 0) for tile in tiler]
    work += [pipeline.targets[0][0].plan_export(tile, out) for tile in tiler]

    def run() -> None:
        for each in work:
            each()

    return run


def overlapped(rounds: int) -> None:
    """Print a stream whose compute takes as long as its transfers, made so by repeating it."""
    print("\n| compute as long as the transfers | workers | wall / larger of the two |\n|---|---|---|")
    source, target = touched(np.float32), touched(np.float32)
    for side in (TILE, 2 * TILE):
        tiler = Tiler((SIDE, SIDE), (side, side))

        def run(compute: Callable[..., Any], workers: int, concurrent: bool = False, tiler: Tiler = tiler) -> None:
            pipeline = Pipeline([Input(source, tiler)], [Output(target, tiler)], workers=workers)
            pipeline.run(compute, concurrent=concurrent)

        values = np.ones((side, side), np.float32)
        out = np.ones_like(values)
        alone = {
            "transfers": lambda run=run: run(idle(), 0),
            "once": lambda values=values, out=out: np.sqrt(values, out=out),
        }
        transfers, once = best_times(alone, rounds).values()
        repeats = max(1, round(transfers / tiler.count / once))

        def compute(x: Any, y: Any, repeats: int = repeats) -> None:
            for _ in range(repeats):
                np.sqrt(x, out=y)

        tasks: dict[str, Task] = {
            "compute": lambda values=values, out=out, compute=compute, count=tiler.count: [
                compute(values, out) for _ in range(count)
            ],
            "0": lambda run=run, compute=compute: run(compute, 0),
            "1": lambda run=run, compute=compute: run(compute, 1),
            "1, concurrent": lambda run=run, compute=compute: run(compute, 1, concurrent=True),
        }
        times = best_times(tasks, rounds)
        larger = max(transfers, times.pop("compute"))
        for name, seconds in times.items():
            print(f"| {repeats} x sqrt, {side} x {side} tiles | {name} | {seconds / larger:.2f} |", flush=True)


class SlowStore:
    """Something that slices and takes its time, without keeping a core busy."""

    def __init__(self, tiles: int, seconds: float) -> None:
        self.shape, self.dtype, self.seconds = (tiles * (1 << 16),), np.dtype(np.float32), seconds
        self.tile = np.ones(1 << 16, np.float32)

    def __getitem__(self, box: Any) -> np.ndarray[Any, Any]:
        time.sleep(self.seconds)
        return self.tile

    def __setitem__(self, box: Any, value: Any) -> None:
        time.sleep(self.seconds)


def slow_compute(tile: Any, out: Any) -> None:
    """Copy a tile and take as long as its transfers."""
    out[...] = tile
    time.sleep(0.01)


def slow_store(tiles: int = 100) -> None:
    """Print a stream from and to a slow store, whose compute takes as long as its transfers."""
    print("\n| slow store: 5 ms in and out, 10 ms compute | workers | wall / larger | hidden |\n|---|---|---|---|")
    tiler = Tiler((tiles * (1 << 16),), (1 << 16,))
    for scheme in ("duplex", "double", "simplex"):
        for workers in (1, 2):
            operands = [Input(SlowStore(tiles, 0.005), tiler)], [Output(SlowStore(tiles, 0.005), tiler)]
            trace = Trace()
            report = Pipeline(*operands, scheme=scheme, workers=workers).run(slow_compute, trace)
            larger = max(trace.seconds("compute"), trace.seconds("import", "export") / workers)
            print(f"| {scheme} | {workers} | {report.seconds / larger:.2f} | {trace.hidden:.2f} |", flush=True)


def file_to_file(gib: float, folder: str | None) -> None:
    """Print a memory-mapped copy of a large file beside `cp`, and how much memory it took."""
    nbytes = int(gib * (1 << 30)) // (1 << 20) * (1 << 20)
    with tempfile.TemporaryDirectory(dir=folder) as where:
        if shutil.disk_usage(where).free < 2.5 * nbytes:
            print(f"\nnot enough space for two files of {gib} GiB in {where}")
            return
        source, target = Path(where, "in.npy"), Path(where, "out.npy")
        made = np.lib.format.open_memmap(source, "w+", np.float32, (nbytes // (1 << 14), 1 << 12))
        for start in range(0, made.shape[0], 1 << 13):
            made[start : start + (1 << 13)] = start
        made.flush()
        del made
        script = (
            "import sys, numpy as np; from tilewright.tiling import stream;"
            "compute = None if sys.argv[3] == 'none' else (lambda x, y: np.multiply(x, 2, out=y));"
            f"report = stream(sys.argv[1], sys.argv[2], compute, memory_limit={LIMIT}, workers=2);"
            "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
        )
        found: dict[str, list[float]] = {"cp": [], "none": [], "double": []}
        peak = dict.fromkeys(found, 0.0)
        for _ in range(2):
            for name, times in found.items():
                target.unlink(missing_ok=True)
                os.sync()
                start_time = time.perf_counter()
                if name == "cp":
                    subprocess.run(["cp", "--reflink=never", source, target], check=True)
                else:
                    done = subprocess.run(
                        [sys.executable, "-c", script, source, target, name], check=True, capture_output=True, text=True
                    )
                    peak[name] = max(peak[name], float(done.stdout) / 1024)
                times.append(time.perf_counter() - start_time)
        print(f"\n| {gib:g} GiB file to file | GB/s | throughput / cp | peak RSS, MiB |\n|---|---|---|---|")
        for name, seconds in found.items():
            title = {"cp": "cp", "none": "stream, no compute", "double": "stream, x * 2"}[name]
            ratio = min(found["cp"]) / min(seconds)
            print(f"| {title} | {nbytes / min(seconds) / 1e9:.2f} | {ratio:.2f} | {peak[name]:.0f} |", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--file-gib", type=float, default=0, help="size of the file of the last table; 0: leave out")
    arguments.add_argument("--folder", help="where to put the files; default: the folder for temporary files")
    options = arguments.parse_args()
    engine = (
        native.load_library().tw_cpu_features().decode()
        if native.is_available()
        else f"none: {native.unavailable_reason()}"
    )
    print(f"{SIDE} x {SIDE}, native engine: {engine}, {os.cpu_count()} cores\n")
    copies(options.rounds)
    crosses(options.rounds)
    overhead(options.rounds)
    overlapped(options.rounds)
    slow_store()
    if options.file_gib:
        file_to_file(options.file_gib, options.folder)
    print(f"\npeak RSS of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


if __name__ == "__main__":
    main()
