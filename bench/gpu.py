# SPDX-License-Identifier: Apache-2.0
"""Speed of the moves on a CUDA device, as a ratio to the device-to-device copy of the same bytes in the same run.

    sh tools/cuda.sh bench                  # all rows, with torch eager and torch.compile beside
    sh tools/cuda.sh bench --no-peers       # ours only
    sh tools/cuda.sh bench --sweep          # ours, cut in several ways, to choose the defaults
    sh tools/cuda.sh bench --only calls     # what a call takes on the host

A ratio of 1.0 means: the bytes read and written, over the time, are as many as those of a plain copy. The moves of a
row take turns, round after round, several calls between two events of the device, and the median round counts. Every
result is checked: made twice, over two different poisons, and compared with torch's or the reference engine's.
"""

from __future__ import annotations

import sys

# This folder has a copy.py, and so has the standard library: keep the folder off the path.
sys.path[:] = [folder for folder in sys.path if not folder.endswith("bench")]

import argparse
import importlib
import json
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from itertools import product
from math import exp, log, prod
from typing import Any

import tilewright as tw
from tilewright.copying import Placement, Plan, copy, execute, load_engine, placement_of, plan_copy, tilize_batch
from tilewright.copying.engine import as_operand
from tilewright.layout import tiled_layout
from tilewright_gpu.codegen import DEFAULTS, Tuning, generate_program
from tilewright_gpu.codegen.program import WIDE

Task = Callable[[], Any]
Move = Callable[[Any], Any]
SHAPE = (64, 96, 128, 160)
POISONS = (0xA5, 0x5A)
CALLS = 4  # between two events
BEST = 8  # of a sweep that are printed
EVERYTHING = 1 << 20  # a lean that follows the order of the target alone


def sweep_of(kind: str) -> dict[str, Tuning]:
    """Return the ways to cut a kind of kernel that are tried, by name."""
    found = {"default": DEFAULTS[kind]}
    if kind in ("transpose", "wide"):
        choices = product((256, 512), (64, 128), (24576, 49152), (1, 2, 4), (16,))
    elif kind.startswith("pack"):
        choices = product((64, 128, 256), (32, 64, 128), (24576,), (1, 2, 8), (16,))
    else:
        choices = product((128, 256, 512), (16, 32), (24576,), (1, 2, 4, 16, EVERYTHING), (1, 16))
    for threads, in_flight, shared, lean, cluster in choices:
        name = f"t{threads} f{in_flight} s{shared // 1024} l{lean if lean < EVERYTHING else 'all'}"
        name += f" c{cluster}"
        found[name] = Tuning(threads=threads, in_flight=in_flight, shared=shared, lean=lean, cluster=cluster)
    return found


def distinct(plan: Plan) -> dict[str, Tuning]:
    """Return the ways to cut a plan that give different programs."""
    kernel = generate_program(plan, "cuda").kernels[0]
    kind = kernel.note.partition(" ")[0]
    if kind in ("pack", "unpack"):
        scalar = plan.source if kind == "pack" else plan.target
        kind += " narrow" if scalar.itemsize < WIDE else ""
    elif "boxes" in kernel.note:
        kind = "staged"
    elif kernel.shared:
        kind = "wide" if plan.target.itemsize >= WIDE else "transpose"
    else:
        kind = "copy"
    programs: dict[str, str] = {}
    found: dict[str, Tuning] = {}
    for label, tuning in sweep_of(kind).items():
        text = generate_program(plan, "cuda", tuning=tuning).text
        if text not in programs.values():
            programs[label], found[label] = text, tuning
    return found


class Bench:
    """A device, the rounds to run, the peers to run beside ours, and the rows so far."""

    def __init__(self, torch: Any, rounds: int, peers: bool, sweep: bool, seconds: float) -> None:
        self.torch, self.rounds, self.peers, self.sweep = torch, rounds, peers, sweep
        self.end = time.perf_counter() + seconds
        self.rows: list[dict[str, Any]] = []

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
                cuda._sleep(1_000_000)  # the device is busy while the host enqueues, so that no launch is waited for
                start.record()
                for _ in range(CALLS):
                    task()
                end.record()
                end.synchronize()
                found[name].append(start.elapsed_time(end) / 1e3 / CALLS)
        return {name: statistics.median(each) for name, each in found.items()}

    def row(
        self,
        name: str,
        source: Any,
        target: Any,
        plan: Any,
        check: Callable[[], bool],
        peer: Callable[[Any], Any] | None,
    ) -> None:
        """Measure one move and print it; what goes wrong is printed too, and the next row is tried."""
        row: dict[str, Any] = {"move": name}
        try:
            self._measure(row, source, target, plan, check, peer)
        except Exception as problem:
            row["failed"] = f"{type(problem).__name__}: {str(problem)[:300]}"
        self.rows.append(row)
        print(_line(row), flush=True)

    def _measure(self, row: dict[str, Any], source: Any, target: Any, plan: Any, check: Any, peer: Any) -> None:
        torch = self.torch
        half = (plan.source.nbytes + plan.target.nbytes) // 2
        ends = as_operand(source), as_operand(target)
        row["right"] = self._is_right(ends, target, plan, check)
        memory = torch.randint(0, 256, (2 * half,), dtype=torch.uint8, device="cuda")
        near, far = memory[:half], memory[half:]
        tasks: dict[str, Task] = {"copy": lambda: far.copy_(near)}
        if self.sweep:
            for label, tuning in distinct(plan).items():
                tasks[label] = lambda tuning=tuning: ends[1].backend.run_plan(plan, *ends, tuning=tuning)
        else:
            tasks["ours"] = lambda: ends[1].backend.run_plan(plan, *ends)
            if self.peers and peer is not None and time.perf_counter() < self.end:
                torch._dynamo.reset()
                compiled = torch.compile(peer, dynamic=False)
                tasks["eager"] = lambda: peer(source)
                tasks["compiled"] = lambda: compiled(source)
        found = self.times(tasks)
        base = found.pop("copy")
        row["TB/s"] = 2 * half / base / 1e12
        row["ratios"] = {label: base / each for label, each in found.items()}

    def call_row(self, name: str, nbytes: int, check: Callable[[], bool], tasks: dict[str, Task]) -> dict[str, float]:
        """Measure public calls that read and write `nbytes` beside a copy that does; print and return the ratios."""
        torch = self.torch
        memory = torch.randint(0, 256, (nbytes // 2 * 2,), dtype=torch.uint8, device="cuda")
        near, far = memory[: nbytes // 2], memory[nbytes // 2 : nbytes // 2 * 2]
        if not self.peers or time.perf_counter() > self.end:
            tasks = {label: task for label, task in tasks.items() if label.startswith("ours")}
        found = self.times({"copy": lambda: far.copy_(near), **tasks})
        base = found.pop("copy")
        ratios = {label: base / seconds for label, seconds in found.items()}
        row = {"move": name, "TB/s": nbytes / base / 1e12, "ratios": ratios, "right": check()}
        self.rows.append(row)
        print(_line(row), flush=True)
        return ratios

    def _is_right(self, ends: Any, target: Any, plan: Any, check: Callable[[], bool]) -> bool:
        """Return whether every byte is written, whatever was there, and is the right one."""
        made = []
        for poison in POISONS:
            target.view(self.torch.uint8).fill_(poison)
            ends[1].backend.run_plan(plan, *ends)
            made.append(target.view(self.torch.uint8).clone() if not made else target.view(self.torch.uint8))
        return bool(self.torch.equal(*made)) and check()


def _line(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"| {row['move']:34} | FAILED {row['failed']} |"
    ratios = row["ratios"]
    if "default" in ratios:  # of a sweep the best ones
        best = sorted(ratios, key=lambda label: -ratios[label])[:BEST]
        ratios = {label: ratios[label] for label in ["default", *[label for label in best if label != "default"]]}
    cells = " | ".join(f"{label} {ratio:.3f}" for label, ratio in ratios.items())
    return f"| {row['move']:34} | copy {row['TB/s']:.2f} TB/s | {cells} | {'right' if row['right'] else 'WRONG'} |"


def tile_rows(bench: Bench, size: int) -> None:
    """Print tilize, untilize and transpose in float32 and bfloat16."""
    torch = bench.torch
    for name in ("float32", "bfloat16"):
        source = torch.randn(size, size, device="cuda").to(getattr(torch, name))
        tiled = Placement(tiled_layout((size, size)), name)
        plain = placement_of(as_operand(source))
        n = size // 32

        def tilized(x: Any, n: int = n) -> Any:
            return x.view(n, 2, 16, n, 2, 16).permute(0, 3, 1, 4, 2, 5).contiguous()

        def untilized(x: Any, n: int = n) -> Any:
            return x.view(n, n, 2, 2, 16, 16).permute(0, 2, 4, 1, 3, 5).contiguous()

        def transposed(x: Any) -> Any:
            return x.T.contiguous()

        tiles, back = torch.empty_like(source).view(-1), torch.empty_like(source)
        bench.row(
            f"{name} tilize", source, tiles, plan_copy(plain, tiled),
            lambda s=source, t=tiles: torch.equal(t, tilized(s).view(-1)), tilized,
        )  # fmt: skip
        bench.row(
            f"{name} untilize",
            tiles,
            back,
            plan_copy(tiled, plain),
            lambda s=source, b=back: torch.equal(b, s),
            untilized,
        )
        bench.row(
            f"{name} transpose", source, back, plan_copy(placement_of(as_operand(source.T)), plain),
            lambda s=source, b=back: torch.equal(b, s.T), transposed,
        )  # fmt: skip


BLOCKS = ("bfloat8_b", "bfloat4_b", "mxfp8_e4m3", "mxfp8_e5m2", "mxfp4", "nvfp4")


def block_rows(bench: Bench, size: int) -> None:
    """Print packing to blocks and back, with and without tiles; the bytes are those read plus those written."""
    torch = bench.torch
    size //= 2
    wide = torch.randn(size, size, device="cuda") * torch.exp2(torch.randint(-9, 10, (size, size), device="cuda"))
    for dtype, name, tiled in product(("float32", "bfloat16"), BLOCKS, (True, False)):
        if not tiled and name.startswith("bfloat"):
            continue
        source = wide.to(getattr(torch, dtype))
        plain = placement_of(as_operand(source))
        place = Placement(tiled_layout((size, size)) if tiled else tw.row_major(size, size), name, tile_elements=1024)
        packed, back = torch.empty(place.nbytes, dtype=torch.uint8, device="cuda"), torch.empty_like(source)
        there, again = plan_copy(plain, place), plan_copy(place, plain)

        def packed_right(source: Any = source, packed: Any = packed, name: str = name, tiled: bool = tiled) -> bool:
            return strips_are_right(torch, source, packed, name, tiled, packing=True)

        def unpacked_right(packed: Any = packed, back: Any = back, name: str = name, tiled: bool = tiled) -> bool:
            return strips_are_right(torch, back, packed, name, tiled, packing=False)

        peer = torch_packed if name == "bfloat8_b" and dtype == "float32" else None
        label = "tiles" if tiled else "rows"
        bench.row(f"{dtype} -> {name} {label}", source, packed, there, packed_right, peer)
        bench.row(f"{name} {label} -> {dtype}", packed, back, again, unpacked_right, None)


def strips_are_right(torch: Any, plain: Any, packed: Any, name: str, tiled: bool, packing: bool) -> bool:
    """Return whether some strips of 32 rows are those that the reference engine makes."""
    size = plain.shape[0]
    layout = tiled_layout((32, size)) if tiled else tw.row_major(32, size)
    strip = Placement(tw.row_major(32, size), str(plain.dtype).removeprefix("torch."))
    blocks = Placement(layout, name, tile_elements=1024)
    for k in (0, size // 64, size // 32 - 1):
        values = plain[32 * k : 32 * k + 32].cpu().contiguous().view(torch.uint8).reshape(-1)
        codes = packed[k * blocks.nbytes : (k + 1) * blocks.nbytes].cpu()
        source, wanted, ends = (values, codes, (strip, blocks)) if packing else (codes, values, (blocks, strip))
        made = torch.zeros_like(wanted)
        execute(plan_copy(*ends), source.numpy(), made.numpy(), engine="reference")
        if not torch.equal(made, wanted):
            return False
    return True


def torch_packed(source: Any) -> Any:
    """Return bfloat8_b codes and exponents by torch operations, in two tensors: what a careful user would write."""
    torch = importlib.import_module("torch")
    size = source.shape[0]
    tiles = source.view(size // 32, 2, 16, size // 32, 2, 16).permute(0, 3, 1, 4, 2, 5).reshape(-1, 16)
    bits = tiles.view(torch.int32)
    magnitude = bits & 0x7FFFFFFF
    shared = (magnitude.amax(dim=1, keepdim=True)) >> 23
    mantissa = torch.where(magnitude >= 0x800000, (magnitude & 0x7FFFFF) | 0x800000, 0)
    aligned = mantissa >> (shared - (magnitude >> 23)).clamp(max=31)
    rounded = ((aligned + 0xFFFF + ((aligned >> 17) & 1)) >> 17).clamp(max=127)
    codes = torch.where(rounded == 0, 0, rounded | ((bits >> 24) & 0x80)).to(torch.uint8)
    return shared.to(torch.uint8), codes


def compiled_peer(torch: Any, move: Move, source: Any) -> Task:
    """Return a call of a function that torch compiles for one shape."""
    torch._dynamo.reset()
    compiled = torch.compile(move, dynamic=False)
    return lambda: compiled(source)


def weight_rows(bench: Bench) -> None:
    """Print weights of a usual size through the public call."""
    torch = bench.torch
    for name, rows, columns in (("bfloat16", 14336, 4096), ("uint8", 14336, 4096), ("float32", 8190, 4100)):
        source = torch.randint(0, 100, (rows, columns), device="cuda").to(getattr(torch, name))
        high, wide = -rows % 32, -columns % 32

        def tilized(x: Any, high: int = high, wide: int = wide) -> Any:
            x = torch.nn.functional.pad(x, (0, wide, 0, high)) if high or wide else x
            down, across = x.shape[0] // 32, x.shape[1] // 32
            return x.view(down, 2, 16, across, 2, 16).permute(0, 3, 1, 4, 2, 5).contiguous()

        made = tw.tilize(source)
        bench.call_row(
            f"tilize {rows} x {columns} {name}",
            source.nbytes + made.nbytes,
            lambda s=source, m=made: torch.equal(m, tilized(s).view(-1)),
            {
                "ours": lambda s=source: tw.tilize(s),
                "eager": lambda s=source: tilized(s),
                "compiled": compiled_peer(torch, tilized, source),
            },
        )


def odd_permutation_rows(bench: Bench, count: int) -> None:
    """Print random permutations of three to five odd extents through the public call, and their geometric mean."""
    torch, choose, cases = bench.torch, random.Random(5), []
    while len(cases) < count:
        rank, total = choose.choice([3, 4, 5]), choose.choice([1 << 25, 1 << 26])
        extents = [choose.randrange(3, 600) | 1 for _ in range(rank)]
        axes = choose.sample(range(rank), rank)
        if 0.5 * total < prod(extents) < 1.5 * total and axes != sorted(axes):
            cases.append((tuple(extents), tuple(axes)))
    for name in ("float32", "bfloat16", "uint8"):
        every = []
        for extents, axes in cases:
            source = torch.randint(0, 100, extents, device="cuda", dtype=torch.int16).to(getattr(torch, name))
            view = source.permute(axes)
            target = torch.empty(tuple(view.shape), dtype=source.dtype, device="cuda")
            move = lambda x, axes=axes: x.permute(axes).contiguous()  # noqa: E731
            tasks = {"ours": lambda v=view, t=target: copy(v, t), "compiled": compiled_peer(torch, move, source)}
            check = lambda v=view, t=target: torch.equal(v, t)  # noqa: E731
            every.append(bench.call_row(f"{name} {extents} {axes}", 2 * source.nbytes, check, tasks))
        for label in ("ours", "compiled"):
            ratios = [ratio[label] for ratio in every if label in ratio]
            if ratios:
                mean = exp(sum(map(log, ratios)) / len(ratios))
                print(f"| {name} odd permutations, {label}: geometric mean {mean:.3f}, least {min(ratios):.3f} |")


def batch_rows(bench: Bench) -> None:
    """Print the experts of a layer, packed by one call and one by one."""
    torch = bench.torch
    tensors = [torch.randn(2880, 5760, device="cuda").to(torch.bfloat16) for _ in range(128)]
    made = tilize_batch(tensors, dtype="bfloat8_b")
    bench.call_row(
        "128 x (2880 x 5760) bfloat16 -> bfloat8_b",
        sum(tensor.nbytes for tensor in (*tensors, *made)),
        lambda: all(torch.equal(made[k], tw.tilize(tensors[k], dtype="bfloat8_b")) for k in (0, 31, 32, 77, 127)),
        {
            "ours, a batch": lambda: tilize_batch(tensors, dtype="bfloat8_b"),
            "ours, each": lambda: [tw.tilize(tensor, dtype="bfloat8_b") for tensor in tensors],
        },
    )


def host_times(torch: Any) -> None:
    """Print what a call that is repeated takes on the host: the best of several rounds, without waiting."""
    cupy = importlib.import_module("cupy")
    x, y = torch.randn(64, 64, device="cuda"), torch.empty(64, 64, device="cuda")
    c, d, turned = cupy.asarray(x), cupy.empty((64, 64), "float32"), x.T
    tiles, blocks = torch.empty(4096, device="cuda"), torch.empty(4 * 1088, dtype=torch.uint8, device="cuda")
    plain, tiled = tw.Placement(tw.row_major(64, 64), "float32"), tiled_layout((64, 64))
    calls: dict[str, Task] = {
        "torch: tilize": lambda: tw.tilize(x),
        "torch: copy, transposed": lambda: copy(turned, y),
        "torch: tilize to bfloat8_b": lambda: tw.tilize(x, dtype="bfloat8_b"),
        "CuPy: tilize": lambda: tw.tilize(c),
        "CuPy: copy, transposed": lambda: copy(c.T, d),
        "CuPy: tilize to bfloat8_b": lambda: tw.tilize(c, dtype="bfloat8_b"),
        "torch: bound tilize": plan_copy(plain, Placement(tiled, "float32")).bind(x, tiles),
        "torch: bound copy": plan_copy(placement_of(as_operand(turned)), plain).bind(turned, y),
        "torch: bound pack": plan_copy(plain, Placement(tiled, "bfloat8_b", tile_elements=1024)).bind(x, blocks),
        "CuPy: bound tilize": plan_copy(plain, Placement(tiled, "float32")).bind(c, cupy.empty(4096, "float32")),
        "torch eager: transpose": x.T.contiguous,
        "torch eager: tilize": lambda: x.view(2, 2, 16, 2, 2, 16).permute(0, 3, 1, 4, 2, 5).contiguous(),
        "torch.empty alone": lambda: torch.empty(4096, device="cuda"),
    }
    jax = importlib.import_module("jax")
    j = jax.device_put(x.cpu().numpy())
    turn = jax.jit(lambda a: a.T + 0)
    calls |= {"JAX: tilize": lambda: tw.tilize(j), "JAX jit: transpose": lambda: turn(j)}
    calls |= {"JAX: from_dlpack alone": lambda: jax.dlpack.from_dlpack(c)}
    for name, call in calls.items():
        for _ in range(20):
            call()
        best = float("inf")
        for _ in range(9):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(200):
                call()
            best = min(best, (time.perf_counter() - start) / 200)
        torch.cuda.synchronize()
        print(f"| {name:28} | {best * 1e6:6.1f} us on the host |", flush=True)


def permutation_rows(bench: Bench, count: int) -> None:
    """Print random permutations of four dimensions, and their geometric mean and least."""
    torch = bench.torch
    every = [tuple(random.Random(7 + k).sample(range(4), 4)) for k in range(8 * count)]
    chosen = [axes for axes in dict.fromkeys(every) if axes != (0, 1, 2, 3)][:count]
    for name in ("float32", "bfloat16"):
        source = torch.randn(*SHAPE, device="cuda").to(getattr(torch, name))
        first = len(bench.rows)
        for axes in chosen:
            view = source.permute(axes)
            target = torch.empty(tuple(view.shape), dtype=source.dtype, device="cuda")
            plan = plan_copy(placement_of(as_operand(view)), placement_of(as_operand(target)))
            bench.row(
                f"{name} permute {axes}", source, target, plan,
                lambda t=target, v=view: torch.equal(t, v), lambda x, axes=axes: x.permute(axes).contiguous(),
            )  # fmt: skip
        for label in ("ours", "default", "eager", "compiled"):
            ratios = [row["ratios"][label] for row in bench.rows[first:] if label in row.get("ratios", {})]
            if ratios:
                mean = exp(sum(map(log, ratios)) / len(ratios))
                print(
                    f"| {name} permutations, {label}: geometric mean {mean:.3f}, least {min(ratios):.3f} |", flush=True
                )


def first_calls(peers: bool) -> None:
    """Print the time from a shape never seen to its result, in fresh processes, without and with kernels on disk."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [("no kernels on disk", "ours"), ("kernels on disk", "ours")]
        if peers:
            runs.append(("no kernels on disk", "compiled"))
        for label, who in runs:
            variables = {**os.environ, "TILEWRIGHT_CACHE": folder, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
            command = [sys.executable, __file__, "--first-call", who]
            report = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=120)
            for line in report.stdout.splitlines() or [report.stderr.strip()[-300:] or "nothing printed"]:
                print(f"| first call, {who}, {label} | {line} |", flush=True)


def first_call(who: str) -> None:
    """Print how long first calls take in this process; the device is already awake, as torch makes the arrays."""
    torch = importlib.import_module("torch")
    for label, shape in (("fresh process", (4000, 4064)), ("new shape", (4096, 4192)), ("new shape", (3200, 32 * 77))):
        source = torch.randn(*shape, device="cuda")
        moves: list[tuple[str, Move]] = [
            ("tilize", tw.tilize),
            ("transpose", lambda x: copy(x.T, torch.empty(x.T.shape, device="cuda"))),
            ("pack", lambda x: tw.tilize(x, dtype="bfloat8_b")),
        ]
        if who == "compiled":
            moves = [("transpose", torch.compile(lambda x: x.T.contiguous(), dynamic=False))]
        for name, move in moves:
            torch.cuda.synchronize()
            start = time.perf_counter()
            move(source)
            torch.cuda.synchronize()
            spent = time.perf_counter() - start
            start = time.perf_counter()
            move(source)
            host = time.perf_counter() - start
            torch.cuda.synchronize()
            print(f"{label}: {name} {spent * 1e3:.0f} ms, called again {host * 1e6:.0f} us on the host", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--size", type=int, default=16384)
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--permutations", type=int, default=8)
    arguments.add_argument("--seconds", type=float, default=240, help="after so many, no more peers are compiled")
    arguments.add_argument("--no-peers", action="store_true", help="without torch eager and torch.compile")
    arguments.add_argument("--sweep", action="store_true", help="ours only, cut in several ways")
    parts_of_table = ("calls", "weights", "odd", "batch", "tiles", "blocks", "permutations", "first")
    arguments.add_argument("--only", choices=parts_of_table, nargs="+", help="some parts of the table")
    arguments.add_argument("--odd", type=int, default=14, help="so many odd permutations of each type")
    arguments.add_argument("--first-call", choices=("ours", "compiled"), help=argparse.SUPPRESS)
    arguments.add_argument("--json", help="write all ratios to this file as well")
    options = arguments.parse_args()
    problem = load_engine("cuda").unavailable_reason()
    if problem:
        raise SystemExit(problem)
    if options.first_call:
        first_call(options.first_call)
        return
    torch = importlib.import_module("torch")
    cupy = importlib.import_module("cupy")
    print(f"tilewright {tw.__version__}, torch {torch.__version__}, CuPy {cupy.__version__}")
    print(f"{torch.cuda.get_device_name()}, {options.size} x {options.size}, {time.strftime('%Y-%m-%d')}\n", flush=True)
    bench = Bench(torch, options.rounds, not options.no_peers, options.sweep, options.seconds)
    parts: dict[str, Task] = {
        "calls": lambda: host_times(torch),
        "weights": lambda: weight_rows(bench),
        "odd": lambda: odd_permutation_rows(bench, options.odd),
        "batch": lambda: batch_rows(bench),
        "tiles": lambda: tile_rows(bench, options.size),
        "blocks": lambda: block_rows(bench, options.size),
        "permutations": lambda: permutation_rows(bench, options.permutations),
        "first": lambda: first_calls(not options.no_peers),
    }
    for name, part in parts.items():
        if (options.only is None or name in options.only) and not (name == "first" and options.sweep):
            try:
                part()
            except Exception as failure:
                print(f"| {name} | FAILED {type(failure).__name__}: {failure} |", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(bench.rows, file, indent=1)


if __name__ == "__main__":
    main()
