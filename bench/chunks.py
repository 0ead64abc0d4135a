# SPDX-License-Identifier: Apache-2.0
"""Speed of streams between zarr arrays, in memory and between npy files beside Dask, and beside numba with its compute.

    .venv/bin/python bench/chunks.py

Everything runs at its default settings: `tw.stream` chooses tile, threads and memory.
Dask runs on its threaded scheduler, written with care: without trimming what need not be computed, without locks, and
where several ways or sizes of chunks are common, the fastest one counts. Both read the same arrays, take turns, and the
best round counts; results are compared.
"""

from __future__ import annotations

import sys

# This folder has a copy.py, and so has the standard library: have the one above on the path.
sys.path[:] = [folder.removesuffix("bench") for folder in sys.path]

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from bench.timing import Task, best_times

import tilewright as tw

SIDE = 8192


def cross(tile: Any, out: Any) -> None:
    """The five-point cross, as one would write it in NumPy."""
    out[...] = tile[1:-1, 1:-1] + tile[:-2, 1:-1] + tile[2:, 1:-1] + tile[1:-1, :-2] + tile[1:-1, 2:]


def crossed(tile: Any) -> Any:
    """The same as a function that returns its result."""
    return tile[1:-1, 1:-1] + tile[:-2, 1:-1] + tile[2:, 1:-1] + tile[1:-1, :-2] + tile[1:-1, 2:]


def random_numbers() -> Any:
    return np.random.default_rng(0).standard_normal((SIDE, SIDE), dtype=np.float32)


def smooth_numbers() -> Any:
    """Return numbers that compress well, as those of a simulation do."""
    x = np.linspace(0, 30, SIDE, dtype=np.float32)
    return np.round(1000 * np.sin(x)[:, None] * np.cos(x)).astype(np.float32)


class Stores:
    """Zarr arrays of one size in a folder."""

    def __init__(self, folder: str, zarr_format: int) -> None:
        import zarr

        self.zarr, self.folder, self.zarr_format = zarr, Path(folder), zarr_format

    def make(self, name: str, chunks: tuple[int, int], values: Any = None) -> Any:
        array = self.zarr.create_array(
            self.folder / f"{name}.zarr",
            shape=(SIDE, SIDE),
            dtype="f4",
            chunks=chunks,
            zarr_format=self.zarr_format,
            overwrite=True,
        )
        if values is not None:
            array[...] = values
        return array


def store(array: Any, target: Any) -> None:
    """Compute a Dask array on threads, into another array."""
    import dask.array as da

    da.store(array, target, lock=False, scheduler="threads")


def dask_stencil(array: Any, target: Any) -> None:
    """Store the five-point cross of a Dask array, zeros around it."""
    import dask.array as da

    store(da.map_overlap(crossed, array, depth=1, boundary=0, trim=False, dtype="f4"), target)


# The tasks of a row, and the arrays or files that ours and theirs write.
Row = tuple[dict[str, Task], Any, Any]


def compare_zarr(title: str, stores: Stores, values: Any, rounds: int) -> None:
    """Print a stencil between zarr arrays."""
    import dask.array as da

    squares = stores.make("squares", (1024, 1024), values)
    ours, theirs = stores.make("ours", (1024, 1024)), stores.make("theirs", (1024, 1024))

    rows: dict[str, Row] = {
        "five-point stencil, chunks of 1024 x 1024": (
            {
                "ours": lambda: tw.stream(squares, ours, cross, overlap=1),
                "dask": lambda: dask_stencil(da.from_zarr(squares), theirs),
            },
            ours,
            theirs,
        ),
    }
    report({f"{name}, {title}": row for name, row in rows.items()}, rounds)


def compare_plain(folder: Path, rounds: int) -> None:
    """Print a stencil from memory to memory, and from one npy file to another."""
    import dask.array as da

    values = random_numbers()
    source, mine, other = folder / "source.npy", folder / "ours.npy", folder / "theirs.npy"
    np.save(source, values)
    ours, theirs = np.zeros_like(values), np.zeros_like(values)

    def with_chunks(chunk: int) -> dict[str, tuple[Task, Task]]:
        def from_memory() -> None:
            dask_stencil(da.from_array(values, chunks=chunk, name=False), theirs)

        def from_file() -> None:
            array = da.from_array(np.load(source, mmap_mode="r"), chunks=chunk, name=False)
            target = np.lib.format.open_memmap(other, "w+", np.float32, values.shape)
            dask_stencil(array, target)
            target.flush()

        return {f"dask, chunks of {chunk} x {chunk}": (from_memory, from_file)}

    peers = {**with_chunks(1024), **with_chunks(2048), **with_chunks(4096)}
    rows: dict[str, Row] = {
        "five-point stencil, memory to memory": (
            {"ours": lambda: tw.stream(values, ours, cross, overlap=1)}
            | {name: task for name, (task, _) in peers.items()},
            ours,
            theirs,
        ),
        "five-point stencil, npy to npy": (
            {"ours": lambda: tw.stream(str(source), str(mine), cross, overlap=1)}
            | {name: task for name, (_, task) in peers.items()},
            mine,
            other,
        ),
    }
    report(rows, rounds)


def report(rows: dict[str, Row], rounds: int) -> None:
    """Print the time of each row, beside the fastest way of Dask."""
    for name, (tasks, one, other) in rows.items():
        times = best_times(tasks, rounds)
        mine = times.pop("ours")
        assert np.array_equal(*(np.load(made) if isinstance(made, Path) else made[...] for made in (one, other))), name
        theirs = min(times.values())
        print(f"| {name} | {mine:.2f} | {theirs:.2f} | {theirs / mine:.2f} |", flush=True)


def compare_with_numba(rounds: int) -> None:
    """Print a stencil in memory with a compiled compute, beside the same function over the whole array."""
    import numba

    @numba.njit(nogil=True)  # type: ignore[misc, unused-ignore]
    def compiled(tile: Any, out: Any) -> None:
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = (
                    tile[i + 1, j + 1] + tile[i, j + 1] + tile[i + 2, j + 1] + tile[i + 1, j] + tile[i + 1, j + 2]
                )

    source = random_numbers()
    around, target, expected = np.pad(source, 1), np.zeros_like(source), np.zeros_like(source)
    times = best_times(
        {
            "numba": lambda: compiled(around, expected),
            "stream": lambda: tw.stream(source, target, compiled, overlap=1),
            "no threads": lambda: tw.stream(source, target, compiled, overlap=1, workers=0),
        },
        3 * rounds,
    )
    assert np.array_equal(target, expected)
    print("\n| five-point stencil in memory, compiled by numba | ms | time / numba |\n|---|---|---|")
    for name, seconds in times.items():
        print(f"| {name} | {1e3 * seconds:.1f} | {seconds / times['numba']:.2f} |", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--folder", help="where to put the arrays; default: the folder for temporary files")
    options = arguments.parse_args()
    print(f"{SIDE} x {SIDE} float32, {os.cpu_count()} cores\n")
    print("| default settings | tilewright, s | dask, s | dask / tilewright |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        kinds: dict[str, tuple[Callable[[], Any], int]] = {
            "random numbers": (random_numbers, 3),
            "smooth numbers": (smooth_numbers, 3),
            "random numbers, format 2": (random_numbers, 2),
        }
        for title, (values, zarr_format) in kinds.items():
            compare_zarr(title, Stores(folder, zarr_format), values(), options.rounds)
        compare_plain(Path(folder), options.rounds)
    compare_with_numba(options.rounds)


if __name__ == "__main__":
    main()
