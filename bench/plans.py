# SPDX-License-Identifier: Apache-2.0
"""What a task of a tile plan costs: very many tiny tasks, here, on threads, on processes and on a Dask cluster.

    .venv/bin/python bench/plans.py                    # 100000 tasks of 4 x 4 elements, from file to file
    .venv/bin/python bench/plans.py --tasks 1000000

Every task reads its tile, computes, writes it and has its line in a manifest; the result is checked. `growth` is by how
much the resident set of the process that hands out the tasks grew during the run, at most.
"""

from __future__ import annotations

import sys

# This folder has a copy.py, and so has the standard library: keep the folder off the path.
sys.path[:] = [folder for folder in sys.path if not folder.endswith("bench")]

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from math import isqrt
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.tiling import plan_tiles

TILE = 4
PLACES = ("here", "threads", "processes", "dask")


def negate(x: Any, out: Any) -> None:
    """Write the elements with their signs changed."""
    np.negative(x, out=out)


@contextmanager
def executor_of(place: str, workers: int, folder: str) -> Iterator[Executor | None]:
    """Yield an executor of a kind with some workers."""
    if place == "here":
        yield None
    elif place == "threads":
        with ThreadPoolExecutor(workers) as pool:
            yield pool
    elif place == "processes":
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            yield pool
    else:
        import dask
        from distributed import Client, LocalCluster

        with (
            dask.config.set({"temporary-directory": folder}),
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
            Client(cluster) as client,
        ):
            yield client.get_executor()


def resident(name: str) -> int:
    """Return a figure of this process's memory in MiB: VmRSS is what is resident, VmHWM the most that was."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name))) // 1024


def measure(place: str, tasks: int, workers: int, record: bool) -> None:
    """Print a row: tasks, seconds, and microseconds per task."""
    side = TILE * isqrt(tasks)
    with tempfile.TemporaryDirectory() as folder, executor_of(place, workers, folder) as executor:
        before, after = Path(folder, "in.npy"), Path(folder, "out.npy")
        np.save(before, np.arange(side * side, dtype=np.float32).reshape(side, side))
        np.lib.format.open_memmap(after, "w+", np.float32, (side, side)).flush()
        plan = plan_tiles(before, after, tile=(TILE, TILE))
        plan.part(0, max(1, len(plan) // 100)).run(negate, executor)  # starts the workers
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak is counted from here
        before_run, began = resident("VmRSS"), time.perf_counter()
        report = plan.run(negate, executor, manifest=Path(folder, "done") if record else None)
        seconds = time.perf_counter() - began
        growth = resident("VmHWM") - before_run
        if report.tasks != len(plan) or not (np.load(after, mmap_mode="r") == -np.load(before, mmap_mode="r")).all():
            raise SystemExit(f"{place}: the result is wrong")
        lines = Path(folder, "done").read_bytes().count(b"\n") - 1 if record else 0
        if record and lines != len(plan):
            raise SystemExit(f"{place}: {lines} lines in the manifest for {len(plan)} tasks")
    with_record = "yes" if record else "no"
    print(
        f"| {place} | {len(plan)} | {with_record} | {seconds:.1f} | {1e6 * seconds / len(plan):.1f} | {growth} |",
        flush=True,
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--tasks", type=int, default=100_000)
    arguments.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    arguments.add_argument("--on", choices=PLACES, nargs="*", default=PLACES)
    options = arguments.parse_args()
    print(f"{TILE} x {TILE} float32, file to file, {options.workers} workers\n")
    print("| on | tasks | manifest | seconds | us per task | growth, MiB |\n|---|---|---|---|---|---|", flush=True)
    for place in options.on:
        for record in (False, True):
            measure(place, options.tasks, options.workers, record)


if __name__ == "__main__":
    main()
