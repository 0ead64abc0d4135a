# SPDX-License-Identifier: Apache-2.0
"""Random pipelines for a long time, with faults, delays and cancellations: right or refused, and nothing piles up.

    python -m tools.fuzz.soak --seconds 1800 --seed 1
    python -m tools.fuzz.soak --again 1/4711

Every pipeline is drawn from a seed of its own: a stencil with any tile, halo, order, type and padding; from memory,
files or slow stores; by any scheme, in workers or by schedule, as a stream or a tile plan. Half of them meet a fault:
in a read, a compute, a write or a callback, an interruption, a cancellation or a time limit. What completes must be
what NumPy says. What fails must raise what it should, and whatever was written by then must be whole tiles that are
right. Threads, open files and resident memory are printed every minute and must stay flat.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import gc
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from tests.tiling.chunked import Chunked
from tests.tiling.pipelines import FILLS, ORDERS, SCHEMES, Stencil

from tilewright import TransferError
from tilewright.tiling import CancelledError, SimulatedQueue, ThreadQueue, Tiler, plan_tiles, stream, workers
from tilewright.tiling.transfers import COMPLETIONS

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "uint8"]
POISON = -7
HANGS_AFTER = 900  # seconds without the end of a pipeline, on however busy a machine
ENDS = ["memory", "memory", "strided", "map", "file", "store", "chunks"]
FAULTS = ["read", "compute", "write", "progress", "interrupt", "cancel", "time"]


class DiskError(OSError):
    """What a store raises."""


class Store:
    """Something that slices, takes its time, and may fail at a box that holds one element."""

    def __init__(self, array: Any, delay: float, fails_at: tuple[int, ...] | None, times: int) -> None:
        self.array, self.delay, self.fails_at, self.left = array, delay, fails_at, times
        self.shape, self.dtype = array.shape, array.dtype
        self._counting = threading.Lock()

    def meets(self, box: Any) -> None:
        time.sleep(self.delay)
        if self.fails_at is None or not all(s.start <= at < s.stop for s, at in zip(box, self.fails_at, strict=True)):
            return
        with self._counting:
            if self.left == 0:
                return
            self.left -= 1
        raise DiskError("the disk is gone")

    def __getitem__(self, box: Any) -> Any:
        self.meets(box)
        return self.array[box].copy()

    def __setitem__(self, box: Any, value: Any) -> None:
        self.meets(box)
        self.array[box] = value


@dataclass(frozen=True)
class TypedStencil(Stencil):
    """A stencil over elements of a type; everything is computed in that type, here and by NumPy."""

    dtype: str = "int32"

    def source(self) -> Any:
        size = int(np.prod(self.space))
        return (np.arange(size) * 7 % 101).astype(self.dtype).reshape(self.space)


@dataclass
class Case:
    """One pipeline, drawn from a seed: what it computes, between which ends, how, and what goes wrong."""

    seed: str
    folder: Path
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = rng = random.Random(self.seed)
        rank = rng.choice([1, 1, 2, 2, 3])
        largest = {1: 60_000, 2: 300, 3: 40}[rank] if rng.random() < 0.8 else {1: 400_000, 2: 900, 3: 90}[rank]
        space = tuple([rng.randint(1, largest) for _ in range(rank)])
        tile = tuple([max(1, min(n + 1, n // rng.randint(1, 6) + rng.randint(0, 2))) for n in space])
        halo = tuple([(rng.randint(0, 2), rng.randint(0, 2)) for _ in range(rank)])
        if rng.random() < 0.4:
            halo = ((0, 0),) * rank
        self.stencil = TypedStencil(space, tile, halo, rng.choice(ORDERS), rng.choice(FILLS), rng.choice(DTYPES))
        self.tiler = Tiler(space, tile, order=self.stencil.order)
        self.fault = rng.choice(FAULTS) if rng.random() < 0.5 else "none"
        self.ends = [rng.choice(ENDS), rng.choice(ENDS)]
        if self.fault in ("read", "write"):
            self.ends[self.fault == "write"] = "store"
        self.delay = rng.choice([0.0, 0.0, 0.0, 0.0005, 0.003]) if self.tiler.count < 200 else 0.0
        self.bad_tile = rng.randrange(self.tiler.count)
        self.way = rng.choice(["stream", "stream", "stream", "stream", "plan", "pool"])
        self.workers = rng.choice([0, 1, 1, 2, 3])
        self.scheme = rng.choice(SCHEMES)
        self.depth = rng.randint(1, 4) if self.scheme == "buffered" else None
        self.concurrent = rng.random() < 0.3
        self.retries = rng.choice([0, 2])
        self.copies = self.way == "stream" and not any(map(sum, halo)) and rng.random() < 0.2
        self.queue = self._engine() if self.way == "stream" and rng.random() < 0.25 else None
        self.calls = count()  # of the compute, by any thread
        self.switch = threading.Event()

    def _engine(self) -> Any:
        if self.rng.random() < 0.5:
            return SimulatedQueue(self.rng.choice(COMPLETIONS), self.rng.choice([None, 1]))
        return ThreadQueue(max(1, self.workers), inline_below=0)

    def __str__(self) -> str:
        how = f"{self.way} {'copy' if self.copies else self.scheme} depth={self.depth} workers={self.workers}"
        return f"{self.stencil}, {' -> '.join(self.ends)}, {how}, queue={self.queue}, fault={self.fault}"

    # What is read and written.

    def end(self, kind: str, array: Any, writing: bool) -> Any:
        """Return an array in a place of some kind."""
        path = self.folder / ("out" if writing else "in")
        if kind == "strided":
            wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
            wide[..., ::-2] = array
            return wide[..., ::-2]
        if kind == "map":
            mapped = np.memmap(path, array.dtype, "w+", shape=array.shape)
            mapped[...] = array
            return mapped
        if kind == "file":
            np.save(path.with_suffix(".npy"), array)
            return path.with_suffix(".npy")
        if kind == "store":
            at = self.tiler[self.bad_tile].offset if self.fault == ("write" if writing else "read") else None
            times = 1 if self.way != "stream" and self.retries else -1
            return Store(array, self.delay, at, times)
        if kind == "chunks":
            chunks = [self.rng.randint(1 + n // 9, n) for n in array.shape]
            if self.way != "stream":  # tile plans refuse to cut chunks
                chunks = [min(t, n) for t, n in zip(self.stencil.tile, array.shape, strict=True)]
            return Chunked(array, chunks, self.delay / 10)
        return array

    def compute(self, tile: Any, out: Any) -> None:
        call = next(self.calls)
        if self.rng.random() < 0.05:
            time.sleep(self.delay)
        if self.fault in ("compute", "interrupt") and call == self.bad_tile:
            raise KeyboardInterrupt if self.fault == "interrupt" else ZeroDivisionError("no")
        self.stencil.compute(tile, out)

    def progress(self, done: int, tiles: int) -> None:
        assert 1 <= done <= tiles
        if done > self.bad_tile:  # a copy straight from memory to memory counts several tiles at once
            if self.fault == "progress":
                raise RuntimeError("no more")
            if self.fault == "cancel":
                self.switch.set()

    # Running it.

    def run(self) -> str:
        """Run the pipeline and check what it did; return how it ended."""
        source = self.stencil.source()
        wanted = source if self.copies else self.stencil.expected()
        start = np.full(self.stencil.space, POISON, np.int64).astype(source.dtype if self.copies else np.int64)
        before, after = self.end(self.ends[0], source, False), self.end(self.ends[1], start, True)
        problem: BaseException | None = None
        timer = threading.Timer(self.rng.uniform(0, 0.05), self.switch.set) if self.fault == "time" else None
        try:
            if timer is not None:
                timer.start()
            self.carry_out(before, after)
        except BaseException as found:
            problem = found
        finally:
            if timer is not None:
                timer.cancel()
                timer.join()
            if self.queue is not None:
                self.queue.close()
        if problem is not None and not self.is_right(problem):
            raise AssertionError(f"{type(problem).__name__}: {problem}") from problem
        assert not getattr(self.queue, "under_way", ()), "a transfer is still under way"
        if isinstance(after, Path):
            made = np.load(after)
            assert sorted(path.name for path in self.folder.glob(".*")) == [], "a draft is left"
        else:
            made = np.asarray(getattr(after, "array", after))
        if problem is None:
            assert not self.must_fail(), f"the fault {self.fault} went unnoticed"
            assert np.array_equal(made, wanted), f"{int((made != wanted).sum())} elements are wrong"
            return "completed"
        self.check_written(made, wanted, start, isinstance(after, Path) and self.way == "stream")
        return type(problem).__name__

    def carry_out(self, before: Any, after: Any) -> None:
        shared: dict[str, Any] = {"tile": self.stencil.tile, "overlap": self.stencil.halo, "pad": self.stencil.fill}
        shared["order"] = self.stencil.order
        watch: dict[str, Any] = {"progress": self.progress, "cancel": self.switch}
        if self.way == "stream":
            stream(
                before,
                after,
                None if self.copies else self.compute,
                **shared,
                **watch,
                scheme=None if self.copies else self.scheme,
                depth=self.depth,
                workers=self.workers,
                dtype=None if self.copies else np.int64,
                queue=self.queue,
                concurrent=self.concurrent,
            )
            return
        plan = plan_tiles(before, after, **shared)
        manifest = self.folder / "manifest" if self.rng.random() < 0.3 else None
        if self.way == "plan":
            plan.run(self.compute, retries=self.retries, manifest=manifest, **watch)
            return
        with ThreadPoolExecutor(self.workers + 1) as pool:
            plan.run(self.compute, pool, retries=self.retries, manifest=manifest, **watch)

    # Judging it.

    def must_fail(self) -> bool:
        """Return whether the fault cannot have been missed; a cancellation or a time limit can come too late."""
        if self.fault in ("none", "cancel", "time"):
            return False
        if self.fault in ("compute", "interrupt") and self.copies:
            return False  # there is no compute
        if self.fault in ("read", "compute", "write"):
            return self.way == "stream" or not self.retries
        return True

    def is_right(self, problem: BaseException) -> bool:
        """Return whether a problem is the one that the fault of this case has to raise."""
        if self.fault in ("cancel", "time"):
            return isinstance(problem, CancelledError)
        if self.fault == "progress":
            return type(problem) is RuntimeError
        if self.fault == "interrupt":
            found = problem.__cause__ if self.way == "pool" else problem
            return isinstance(found, KeyboardInterrupt)
        if self.fault == "compute" and self.way == "stream":
            return type(problem) is ZeroDivisionError
        if self.fault in ("read", "write", "compute") and type(problem) is TransferError:
            kind = {"read": "import", "write": "export"}.get(self.fault, "")
            named = f"{kind} of tile" in str(problem) if self.way == "stream" else "task" in str(problem)
            return named and isinstance(problem.__cause__, ZeroDivisionError if self.fault == "compute" else DiskError)
        return False

    def check_written(self, made: Any, wanted: Any, start: Any, is_old: bool) -> None:
        """Assert that every tile is either as it was or as it should be."""
        if is_old:
            assert (made == start).all(), "a target file was replaced by one that is not complete"
            return
        for tile in self.tiler:
            part = tile.within(self.stencil.space).slices
            if not np.array_equal(made[part], wanted[part]):
                assert (made[part] == np.array(POISON).astype(made.dtype)).all(), f"{tile} is half written"


# Watching.


@contextmanager
def workers_for_any_size(rng: random.Random) -> Iterator[None]:
    """Let small tiles have workers of their own, half of the time."""
    before = workers.MIN_TILE_BYTES
    workers.MIN_TILE_BYTES = 0 if rng.random() < 0.5 else before
    try:
        yield
    finally:
        workers.MIN_TILE_BYTES = before


def run_case(seed: str, home: Path, outcomes: Counter[str]) -> None:
    """Run the pipeline of a seed, and assert that it leaves no thread."""
    running = threading.active_count()
    with tempfile.TemporaryDirectory(dir=home) as name:
        case = Case(seed, Path(name))
        try:
            with workers_for_any_size(case.rng):
                ended = case.run()
            assert threading.active_count() == running, f"threads are left: {threading.enumerate()}"
        except BaseException:
            print(f"FAILED {seed}: {case}", file=sys.stderr, flush=True)
            raise
        outcomes[ended] += 1
        outcomes[f"fault {case.fault}"] += 1


@dataclass(frozen=True)
class Sample:
    """What the process holds at one moment."""

    threads: int
    files: int
    objects: int
    memory: int

    @classmethod
    def now(cls) -> Sample:
        gc.collect()
        with suppress(OSError, AttributeError):  # what malloc keeps for later is no leak
            ctypes.CDLL(None).malloc_trim(0)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        files = len(os.listdir("/proc/self/fd"))
        return cls(threading.active_count(), files, len(gc.get_objects()), pages * os.sysconf("SC_PAGE_SIZE"))

    def __str__(self) -> str:
        held = f"{self.threads} threads, {self.files} files, {self.objects} objects"
        return f"{held}, {self.memory / 2**20:.1f} MiB"


def keep_memory_together() -> None:
    """Let threads share one heap: what each of them leaves scattered over its own is no leak, but looks like one."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(-8, 1)  # M_ARENA_MAX of glibc


def trends(samples: list[Sample]) -> list[str]:
    """Return what grows: threads and files must not at all; in half of the time objects by 5 %, memory by 10 %."""
    first, last = samples[: len(samples) // 2], samples[len(samples) // 2 :]
    found = [
        f"{what} grew: {[getattr(each, what) for each in samples]}"
        for what in ("threads", "files")
        if max(getattr(each, what) for each in last) > max(getattr(each, what) for each in first)
    ]
    for what, most in (("objects", 1.05), ("memory", 1.10)):
        if median(getattr(each, what) for each in last) > most * median(getattr(each, what) for each in first):
            found.append(f"{what} grew: {[getattr(each, what) for each in samples]}")
    return found


def soak(seconds: float, seed: int, home: Path, every: float) -> int:
    """Run pipelines for so long, and return the exit status."""
    outcomes: Counter[str] = Counter()
    samples: list[Sample] = []
    failures = number = 0
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        faulthandler.dump_traceback_later(HANGS_AFTER, exit=True)
        try:
            run_case(f"{seed}/{number}", home, outcomes)
        except AssertionError as problem:
            failures += 1
            print(f"  {problem}", file=sys.stderr, flush=True)
        number += 1
        if time.monotonic() - started > every * (len(samples) + 1):
            samples.append(Sample.now())
            print(f"{time.monotonic() - started:5.0f} s: {number} pipelines, {samples[-1]}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    settled = samples[len(samples) // 3 :]  # caches fill up first
    grown = trends(settled) if len(settled) >= 4 else []
    took = time.monotonic() - started
    print(f"seed {seed}: {number} pipelines in {took:.0f} s ({time.process_time():.0f} s of CPU time)")
    print(", ".join(f"{n} {name}" for name, n in outcomes.most_common()), f"; {failures} failed")
    print("\n".join(grown) if grown else f"flat over {len(settled)} samples")
    return 1 if failures or grown else 0


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=1800)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument(
        "--every", type=float, default=60, help="seconds between two looks at what the process holds"
    )
    arguments.add_argument("--again", metavar="SEED", help="run the one pipeline of this seed")
    options = arguments.parse_args()
    keep_memory_together()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        if options.again:
            print(Case(options.again, Path(name)))
            run_case(options.again, Path(name), Counter())
            return 0
        return soak(options.seconds, options.seed, Path(name), options.every)


if __name__ == "__main__":
    sys.exit(main())
