# SPDX-License-Identifier: Apache-2.0
"""`tilewright bench`: measure copies on this machine, beside memcpy, NumPy, and torch if it is installed."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, TypeVar

import click

from .console import Answer, Console
from .program import verb

GROUPS = ("copy", "layout", "stream")


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One measurement: our task, the bytes it reads, and equivalent tasks of other libraries."""

    name: str
    group: str
    nbytes: int
    task: Task
    peers: dict[str, Task] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """A result: seconds, and our time divided by that of memcpy and of each peer."""

    name: str
    group: str
    nbytes: int
    seconds: float
    ratios: dict[str, float]


@verb("bench")
@click.argument("groups", nargs=-1, type=click.Choice(GROUPS))
@click.option("--size", type=click.IntRange(32, 65536), default=4096, show_default=True, help="Side of the matrices.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Rounds; the best counts.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="Threads of every task.")
@click.option("--peers/--no-peers", default=True, help="Compare with torch, if it is installed.")
def command(groups: tuple[str, ...], size: int, rounds: int, threads: int, peers: bool) -> Answer:
    """Measure copies on this machine, as ratios to the time of memcpy and of NumPy.

    A ratio below 1 means faster. The tasks of a row take turns, and the best round of each counts. Without a GROUP,
    all groups are measured.
    """
    benchmarks = [each for each in _benchmarks(size, threads, peers) if not groups or each.group in groups]
    rows = [_run_benchmark(each, rounds, threads) for each in benchmarks]
    Console.current().show_status("")
    data = {
        "size": size,
        "rounds": rounds,
        "threads": threads,
        "rows": [
            {"name": row.name, "group": row.group, "bytes": row.nbytes, "seconds": row.seconds, "ratios": row.ratios}
            for row in rows
        ],
    }
    return Answer(lambda: _format_table(rows, size, threads), data)


def _benchmarks(size: int, threads: int, with_peers: bool) -> list[Benchmark]:
    import numpy as np

    rng = np.random.default_rng(0)
    single = rng.standard_normal((size, size), dtype=np.float32)
    return [
        *_tilize_benchmarks(single, threads, with_peers and find_spec("torch") is not None),
        _offset_benchmark(size),
        *_stream_benchmarks(single),
    ]


def _tilize_benchmarks(single: Any, threads: int, with_torch: bool) -> list[Benchmark]:
    import numpy as np

    from ..copying import aligned_empty, copy, tilize, untilize
    from ..formats import bfloat16

    size, half = len(single), bfloat16.dtype
    whole = size - size % 32  # NumPy's way with reshape needs whole tiles
    tiles = (whole // 32, 2, 16, whole // 32, 2, 16)
    grid_shape = tuple(tiles[k] for k in (0, 3, 1, 4, 2, 5))
    cut = single[:whole, :whole]
    torch_tiles: dict[str, Task] = {}
    if with_torch:
        import torch  # type: ignore[import-not-found, unused-ignore]  # optional

        torch.set_num_threads(threads)
        shared = torch.from_numpy(np.ascontiguousarray(cut))
        torch_tiles["torch"] = lambda: shared.reshape(tiles).permute(0, 3, 1, 4, 2, 5).contiguous()

    def numpy_tiles(kind: Any) -> Task:
        made = np.empty(grid_shape, kind)
        return lambda: np.copyto(made, cut.reshape(tiles).transpose(0, 3, 1, 4, 2, 5), casting="unsafe")

    tiled = {kind: tilize(single, dtype=kind) for kind in (None, "bfloat16", "bfloat8_b", "bfloat4_b")}

    def to_tiles(kind: str | None) -> Task:
        return lambda: tilize(single, dtype=kind, out=tiled[kind], threads=threads)

    def from_tiles(kind: str | None) -> Task:
        out = aligned_empty(single.shape, single.dtype)
        return lambda: untilize(tiled[kind], single.shape, dtype=kind, out=out, threads=threads)

    back, turned = np.empty((whole, whole), np.float32), np.empty_like(single)
    grid, across = tiled[None].reshape(-1)[: whole * whole].reshape(grid_shape), aligned_empty(single.shape, np.float32)
    numpy_back: Task = lambda: np.copyto(back.reshape(tiles), grid.transpose(0, 2, 4, 1, 3, 5))  # noqa: E731
    tasks: dict[str, tuple[Task, dict[str, Task]]] = {
        "float32 to tiles": (to_tiles(None), {"NumPy": numpy_tiles(np.float32), **torch_tiles}),
        "tiles to float32": (from_tiles(None), {"NumPy": numpy_back}),
        "float32 to bfloat16 tiles": (to_tiles("bfloat16"), {"NumPy": numpy_tiles(half)}),
        "float32 to bfloat8_b": (to_tiles("bfloat8_b"), {}),
        "float32 to bfloat4_b": (to_tiles("bfloat4_b"), {}),
        "bfloat8_b to float32": (from_tiles("bfloat8_b"), {}),
        "float32 transpose": (
            lambda: copy(single.T, across, threads=threads),
            {"NumPy": lambda: np.copyto(turned, single.T)},
        ),
    }
    return [Benchmark(name, "copy", single.nbytes, task, peers) for name, (task, peers) in tasks.items()]


def _offset_benchmark(size: int) -> Benchmark:
    import numpy as np

    from ..layout import tiled_layout

    layout = tiled_layout((size, size))
    down, across = layout(np.arange(size), 0), layout(0, np.arange(size))
    return Benchmark(
        f"{size * size} offsets", "layout", 8 * size * size, layout.offsets, {"NumPy": lambda: down[:, None] + across}
    )


def _stream_benchmarks(single: Any) -> list[Benchmark]:
    import numpy as np

    from ..tiling import stream

    out, same = np.zeros_like(single), np.zeros_like(single)
    tile = (min(512, len(single)), min(512, len(single)))
    return [
        Benchmark("stream, copy", "stream", single.nbytes, lambda: stream(single, out, tile=tile), {}),
        Benchmark(
            "stream, times 2",
            "stream",
            single.nbytes,
            lambda: stream(single, out, lambda x, y: np.multiply(x, 2, out=y), tile=tile),
            {"NumPy": lambda: np.multiply(single, 2, out=same)},
        ),
    ]


def _run_benchmark(benchmark: Benchmark, rounds: int, threads: int) -> Row:
    import numpy as np

    source, target = np.ones(benchmark.nbytes, np.uint8), np.ones(benchmark.nbytes, np.uint8)
    tasks = {"memcpy": memcpy(target, source, threads), "ours": benchmark.task, **benchmark.peers}
    Console.current().show_status(f"measuring {benchmark.name}")
    times = best_times(tasks, rounds)
    ratios = {name: times["ours"] / taken for name, taken in times.items() if name != "ours"}
    return Row(benchmark.name, benchmark.group, benchmark.nbytes, times["ours"], ratios)


def _format_table(rows: list[Row], size: int, threads: int) -> str:
    peers = list(dict.fromkeys(name for row in rows for name in row.ratios))
    lines = [
        f"{size} x {size} matrices, threads: {threads}; ratios of times, below 1 is faster",
        "",
        f"{'':<28}{'ms':>9}{'GB/s':>8}" + "".join(f"{'/ ' + name:>10}" for name in peers),
    ]
    for row in rows:
        ratios = "".join(f"{row.ratios[name]:>10.2f}" if name in row.ratios else f"{'-':>10}" for name in peers)
        lines.append(f"{row.name:<28}{1e3 * row.seconds:>9.2f}{row.nbytes / row.seconds / 1e9:>8.2f}{ratios}")
    return "\n".join(lines)


Task = Callable[[], Any]
Name = TypeVar("Name")


def best_times(tasks: Mapping[Name, Task], rounds: int) -> dict[Name, float]:
    """Return the best time of each task in seconds, after one round that is not counted.

    Taking turns lets a busy moment of the machine fall on all of them.

    >>> sorted(best_times({"nothing": lambda: None, "sum": lambda: sum(range(9))}, 2))
    ['nothing', 'sum']
    """
    best = dict.fromkeys(tasks, float("inf"))
    for task in tasks.values():
        task()
    for _ in range(rounds):
        for name, task in tasks.items():
            began = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def memcpy(target: Any, source: Any, threads: int) -> Task:
    """Return the task that copies the bytes of one array to another with memcpy, each thread its share.

    >>> import numpy as np
    >>> a, b = np.arange(8), np.zeros(8, int)
    >>> memcpy(b, a, 2)()
    >>> b.tolist() == a.tolist()
    True
    """
    bounds = [source.nbytes * k // threads for k in range(threads + 1)]

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
