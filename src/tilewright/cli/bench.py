# SPDX-License-Identifier: Apache-2.0
"""`tilewright bench`: how fast the moves are here, beside memcpy, NumPy, and torch where it is installed."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import click

from .console import Answer, Console
from .measuring import Task, best_times, memcpy
from .verb import verb

GROUPS = ("copy", "layout", "stream")


@dataclass(frozen=True, slots=True)
class Subject:
    """Something to measure: our task, the bytes it reads, and the tasks of others that do the same."""

    name: str
    group: str
    nbytes: int
    task: Task
    peers: dict[str, Task] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured: seconds, and our time as a multiple of that of memcpy and of each peer."""

    name: str
    group: str
    nbytes: int
    seconds: float
    ratios: dict[str, float]


@verb("bench")
@click.argument("groups", nargs=-1, type=click.Choice(GROUPS))
@click.option("--size", type=click.IntRange(32, 65536), default=4096, show_default=True, help="Side of the matrices.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Rounds; the best counts.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="Threads of everyone.")
@click.option("--peers/--no-peers", default=True, help="Compare with torch, if it is installed.")
def command(groups: tuple[str, ...], size: int, rounds: int, threads: int, peers: bool) -> Answer:
    """Measure the moves on this machine, as multiples of the time of memcpy and of NumPy.

    A ratio below 1 means faster. All tasks of a row take turns, and the best round of each counts. Without a GROUP
    all are measured.
    """
    subjects = [each for each in _subjects(size, threads, peers) if not groups or each.group in groups]
    rows = [_measured(each, rounds, threads) for each in subjects]
    Console.current().passing_note("")
    data = {
        "size": size,
        "rounds": rounds,
        "threads": threads,
        "rows": [
            {"name": row.name, "group": row.group, "bytes": row.nbytes, "seconds": row.seconds, "ratios": row.ratios}
            for row in rows
        ],
    }
    return Answer(lambda: _table(rows, size, threads), data)


def _subjects(size: int, threads: int, with_peers: bool) -> list[Subject]:
    import numpy as np

    rng = np.random.default_rng(0)
    single = rng.standard_normal((size, size), dtype=np.float32)
    return [
        *_tile_moves(single, threads, with_peers and find_spec("torch") is not None),
        _offsets(size),
        *_streams(single),
    ]


def _tile_moves(single: Any, threads: int, with_torch: bool) -> list[Subject]:
    import numpy as np

    from ..copying import copy, tilize, untilize
    from ..copying.host_memory import aligned_empty
    from ..formats import bfloat16

    size, half = len(single), bfloat16.dtype
    whole = size - size % 32  # NumPy's way with reshape needs whole tiles
    tiles = (whole // 32, 2, 16, whole // 32, 2, 16)
    cut = single[:whole, :whole]
    torch_tiles: dict[str, Task] = {}
    if with_torch:
        import torch  # type: ignore[import-not-found, unused-ignore]  # optional

        torch.set_num_threads(threads)
        shared = torch.from_numpy(np.ascontiguousarray(cut))
        torch_tiles["torch"] = lambda: shared.reshape(tiles).permute(0, 3, 1, 4, 2, 5).contiguous()

    def numpy_tiles(kind: Any) -> Task:
        made = np.empty(tuple(tiles[k] for k in (0, 3, 1, 4, 2, 5)), kind)
        return lambda: np.copyto(made, cut.reshape(tiles).transpose(0, 3, 1, 4, 2, 5), casting="unsafe")

    def to_tiles(name: str, kind: Any, peers: dict[str, Task]) -> tuple[Subject, Any]:
        made = tilize(single, dtype=kind)
        return Subject(
            name, "copy", single.nbytes, lambda: tilize(single, dtype=kind, out=made, threads=threads), peers
        ), made

    def from_tiles(name: str, made: Any, kind: Any, peers: dict[str, Task]) -> Subject:
        out = aligned_empty(single.shape, single.dtype)
        return Subject(
            name,
            "copy",
            single.nbytes,
            lambda: untilize(made, single.shape, dtype=kind, out=out, threads=threads),
            peers,
        )

    plain, in_tiles = to_tiles("float32 to tiles", None, {"NumPy": numpy_tiles(np.float32), **torch_tiles})
    halves, _ = to_tiles("float32 to bfloat16 tiles", "bfloat16", {"NumPy": numpy_tiles(half)})
    eights, packed = to_tiles("float32 to bfloat8_b", "bfloat8_b", {})
    fours, _ = to_tiles("float32 to bfloat4_b", "bfloat4_b", {})
    back = np.empty((whole, whole), np.float32)
    grid = in_tiles.reshape(-1)[: whole * whole].reshape(tuple(tiles[k] for k in (0, 3, 1, 4, 2, 5)))
    numpy_back: Task = lambda: np.copyto(back.reshape(tiles), grid.transpose(0, 2, 4, 1, 3, 5))  # noqa: E731
    across, turned = aligned_empty(single.shape, single.dtype), np.empty_like(single)
    transpose = Subject(
        "float32 transpose",
        "copy",
        single.nbytes,
        lambda: copy(single.T, across, threads=threads),
        {"NumPy": lambda: np.copyto(turned, single.T)},
    )
    return [
        plain,
        from_tiles("tiles to float32", in_tiles, None, {"NumPy": numpy_back}),
        halves,
        eights,
        fours,
        from_tiles("bfloat8_b to float32", packed, "bfloat8_b", {}),
        transpose,
    ]


def _offsets(size: int) -> Subject:
    import numpy as np

    from ..copying import tiled_layout

    layout = tiled_layout((size, size))
    down, across = layout(np.arange(size), 0), layout(0, np.arange(size))
    return Subject(
        f"{size * size} offsets", "layout", 8 * size * size, layout.offsets, {"NumPy": lambda: down[:, None] + across}
    )


def _streams(single: Any) -> list[Subject]:
    import numpy as np

    from ..tiling import stream

    out, same = np.zeros_like(single), np.zeros_like(single)
    tile = (min(512, len(single)), min(512, len(single)))
    return [
        Subject("stream, copy", "stream", single.nbytes, lambda: stream(single, out, tile=tile), {}),
        Subject(
            "stream, double it",
            "stream",
            single.nbytes,
            lambda: stream(single, out, lambda x, y: np.multiply(x, 2, out=y), tile=tile),
            {"NumPy": lambda: np.multiply(single, 2, out=same)},
        ),
    ]


def _measured(subject: Subject, rounds: int, threads: int) -> Row:
    import numpy as np

    source, target = np.ones(subject.nbytes, np.uint8), np.ones(subject.nbytes, np.uint8)
    tasks = {"memcpy": memcpy(target, source, threads), "ours": subject.task, **subject.peers}
    Console.current().passing_note(f"measuring {subject.name}")
    times = best_times(tasks, rounds)
    ratios = {name: times["ours"] / taken for name, taken in times.items() if name != "ours"}
    return Row(subject.name, subject.group, subject.nbytes, times["ours"], ratios)


def _table(rows: list[Row], size: int, threads: int) -> str:
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
