# SPDX-License-Identifier: Apache-2.0
"""What a tile plan would take on many machines over an object store: a simulation of time, requests, bytes and money.

A task takes one request for every chunk that its boxes touch, halo included, and a chunk is read or written as a whole.
The simulated machines take batches from one driver, as `TilePlan.run` hands them out; all of them share the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from heapq import heappop, heappush, heapreplace
from math import ceil, inf, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .._text import format_bytes
from ..errors import TransferError
from ..layout import Box
from .array_store import chunk_shape
from .operands import ArrayReference, ObjectReference
from .plan_runner import MIN_BATCH_SECONDS
from .tile_copies import repeated_boxes, source_box_of
from .tiler import Tiler

if TYPE_CHECKING:
    from .tile_plan import TilePlan

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ClusterModel:
    """Machines and an object store, in numbers.

    Args:
        workers: how many tasks run at once.
        compute_seconds: the compute of a full task.
        latency: the seconds of a request beside its bytes.
        bandwidth: bytes per second of a worker.
        requests_at_once: requests of a task that are under way at a time; zarr has 10 by default.
        reads_per_second: the reads that the store answers, of all workers together.
        writes_per_second: the same for writes.
        stored_ratio: bytes in the store per byte of the array, below 1 if chunks are compressed.
        submit_seconds: what handing out a batch costs the driver.
        batch: tasks per batch; by default as many as take 50 ms.
        start_seconds: until the workers are ready.
        failure_rate: the probability that a task fails, and is retried.
        slow_rate: the probability that a task is slow.
        slow_factor: how many times as long a slow task takes.
        timeout: the seconds after which a task is given up and retried.
        retries: how often a task is retried before the run fails.
        worker_price: of a worker for an hour, which is also paid while it waits.
        read_price: of a read.
        write_price: of a write.

    >>> ClusterModel(workers=100, compute_seconds=2.0).latency
    0.03
    """

    workers: int
    compute_seconds: float = 0.0
    latency: float = 0.03
    bandwidth: float = 100e6
    requests_at_once: int = 10
    reads_per_second: float = inf
    writes_per_second: float = inf
    stored_ratio: float = 1.0
    submit_seconds: float = 0.002
    batch: int | None = None
    start_seconds: float = 0.0
    failure_rate: float = 0.0
    slow_rate: float = 0.0
    slow_factor: float = 1.0
    timeout: float = inf
    retries: int = 2
    worker_price: float = 0.0
    read_price: float = 0.0
    write_price: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            is_rate = field.name in ("failure_rate", "slow_rate")
            least = 1 if field.name in ("workers", "requests_at_once", "batch") else 0
            if value is not None and not (least <= value < 1 if is_rate else least <= value):
                limit = "from 0 to below 1" if is_rate else f"of at least {least}"
                raise TransferError(f"expected {field.name} {limit}, got {value!r}")


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What a simulated run took.

    `seconds` is the time from start to end, `utilization` the share of it that workers were busy, on average. Requests
    and bytes include those of attempts that failed. `failed` tasks used up their retries: a real run would end there.

    >>> RunEstimate(8, 2, 10.0, 0.8, 16, 8, 1600, 800, 0, 0, 1.0, 0.25).cost
    1.25
    """

    tasks: int
    batches: int
    seconds: float
    utilization: float
    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    retried: int
    failed: int
    worker_cost: float
    request_cost: float

    @property
    def cost(self) -> float:
        """Return what workers and requests cost together."""
        return self.worker_cost + self.request_cost

    def __str__(self) -> str:
        lines = [
            ("tasks", f"{self.tasks} in {self.batches} batches, {self.retried} retries, {self.failed} failed"),
            ("time", f"{self.seconds:.1f} s, workers {100 * self.utilization:.0f} % busy"),
            ("reads", f"{self.reads} requests, {format_bytes(self.bytes_read)}"),
            ("writes", f"{self.writes} requests, {format_bytes(self.bytes_written)}"),
            ("cost", f"{self.cost:.2f} = workers {self.worker_cost:.2f} + requests {self.request_cost:.2f}"),
        ]
        return "\n".join(f"{name:<8}{text}" for name, text in lines)


def simulate_run(plan: TilePlan, cluster: ClusterModel, seed: int = 0) -> RunEstimate:
    """Return what a run of a plan would take on a cluster.

    Args:
        plan: the plan; nothing is read or written.
        cluster: the machines and the store.
        seed: of the failures and of the slow tasks.

    >>> from tilewright.tiling import plan_tiles
    >>> plan = plan_tiles(np.zeros(1000), np.zeros(1000), tile=(10,))
    >>> print(simulate_run(plan, ClusterModel(workers=10, compute_seconds=1, latency=0, submit_seconds=0)))
    tasks   100 in 100 batches, 0 retries, 0 failed
    time    10.0 s, workers 100 % busy
    reads   100 requests, 7.81 KiB
    writes  100 requests, 7.81 KiB
    cost    0.00 = workers 0.00 + requests 0.00
    """
    return _Simulation(plan, cluster, seed).run()


class TaskLoads:
    """What each task of a plan asks of a store and of a worker, as arrays: requests, bytes, and share of a full task.

    >>> from tilewright.tiling import plan_tiles
    >>> TaskLoads(plan_tiles(np.zeros(10), np.zeros(10), tile=(4,))).bytes_written.tolist()
    [32, 32, 16]
    """

    def __init__(self, plan: TilePlan) -> None:
        sides = (plan.sources, plan.reading, plan.sizes[0]), (plan.targets, plan.writing, plan.sizes[1])
        (self.reads, self.bytes_read), (self.writes, self.bytes_written) = [_add_loads(plan, *side) for side in sides]
        elements = _outer_product([end - start for start, end in _spans(plan.writing[0])])
        self.share = _in_order(plan, plan.writing[0], elements) / max(1, prod(plan.writing[0].largest_tile))


def _add_loads(
    plan: TilePlan, references: tuple[ArrayReference, ...], tilers: tuple[Tiler, ...], sizes: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return the requests and bytes of every task for all arrays of a side."""
    requests, nbytes = np.zeros(len(plan), np.int64), np.zeros(len(plan), np.int64)
    for reference, tiler, size in zip(references, tilers, sizes, strict=True):
        spans = _spans(tiler, plan.pad)
        chunks = chunk_shape(reference.array) if isinstance(reference, ObjectReference) else None
        if chunks is None:  # a range of a file, of which the box is read
            elements = _in_order(plan, tiler, _outer_product([end - start for start, end in spans]))
            requests += elements > 0
            nbytes += elements * size
            continue
        count = _in_order(plan, tiler, _outer_product(_touched_chunks(tiler, chunks, plan.pad)))
        requests += count
        nbytes += count * (prod(chunks) * size)
    return requests, nbytes


def _spans(tiler: Tiler, pad: Any = 0) -> list[tuple[Array, Array]]:
    """Return what the tiles read along each axis, from start to end; `pad` may repeat elements from further inside."""
    spans: list[tuple[Array, Array]] = []
    for (step, first, extent, last, rest), space in zip(tiler.axes, tiler.space, strict=True):
        starts = first + step * np.arange(last + 1)
        ends = starts + extent
        ends[last] = starts[last] + rest
        low, high = np.clip(starts, 0, space), np.clip(ends, 0, space)
        if isinstance(pad, str):
            for k, boxes in _repeated(tiler, len(spans), pad):
                low[k], high[k] = min(box.offset[0] for box in boxes), max(box.end[0] for box in boxes)
        spans.append((low, high))
    return spans


def _touched_chunks(tiler: Tiler, chunks: tuple[int, ...], pad: Any) -> list[Array]:
    """Return how many chunks the tiles read along each axis; what wraps around is read in parts, each by itself."""
    touched = []
    for axis, ((start, end), n) in enumerate(zip(_spans(tiler, pad), chunks, strict=True)):
        counts = np.where(end > start, (end - 1) // n - start // n + 1, 0)
        if isinstance(pad, str) and pad == "wrap":
            for k, boxes in _repeated(tiler, axis, pad):
                counts[k] = sum([(box.end[0] - 1) // n - box.offset[0] // n + 1 for box in boxes])
        touched.append(counts)
    return touched


def _repeated(tiler: Tiler, axis: int, pad: str) -> Iterator[tuple[int, list[Box]]]:
    """Yield the tiles that reach outside along an axis, with the boxes of the space that they repeat there."""
    (step, first, extent, last, rest), space = tiler.axes[axis], tiler.space[axis]
    for k in range(last + 1):
        start, count = first + step * k, rest if k == last else extent
        if start < 0 or start + count > space:
            tile = Box((start,), (count,))
            yield k, [source_box_of(segments) for segments in repeated_boxes(tile, (space,), pad)]


def _outer_product(axes: list[Array]) -> Array:
    """Return the product of a value per axis, for every tile of the grid."""
    product = np.ones((), np.int64)
    for axis in axes:
        product = product[..., None] * axis
    return product


def _in_order(plan: TilePlan, tiler: Tiler, grid: Array) -> Array:
    """Return the values of a grid of tiles in the order of the plan's tasks."""
    if tiler.order == "row_major":
        return grid.reshape(-1)[plan.first : plan.last]
    return np.array([grid[tiler.coords(number)] for number in range(plan.first, plan.last)], np.int64)


class _Simulation:
    """A run that is simulated: the workers by the time when they are free, and what is left to hand out."""

    def __init__(self, plan: TilePlan, cluster: ClusterModel, seed: int) -> None:
        self.cluster, self.count = cluster, len(plan)
        loads = TaskLoads(plan)
        self.requests = loads.reads, loads.writes
        self.nbytes = [np.ceil(each * cluster.stored_ratio) for each in (loads.bytes_read, loads.bytes_written)]
        rounds = np.ceil(loads.reads / cluster.requests_at_once) + np.ceil(loads.writes / cluster.requests_at_once)
        moving = rounds * cluster.latency + (self.nbytes[0] + self.nbytes[1]) / cluster.bandwidth
        self.task_seconds = moving + loads.share * cluster.compute_seconds
        self.random = np.random.default_rng(seed)
        self.attempts = np.zeros(self.count, np.int64)  # of each task, to count what they ask of the store
        self.waiting: list[tuple[float, int]] = []  # retries: when the task failed, and its number
        self.batches = self.failed = 0
        self.busy, self.driver_free, self.store_free = 0.0, 0.0, [0.0, 0.0]

    def run(self) -> RunEstimate:
        """Hand out batches to whichever worker is free first, until no task is left."""
        cluster, count = self.cluster, self.count
        mean = float(self.task_seconds.mean()) if count else 0.0
        batch = cluster.batch or max(1, ceil(MIN_BATCH_SECONDS / max(mean, 1e-6)))
        seconds, is_lost = self._draw_attempts(np.arange(count))
        ends = np.concatenate([[0.0], np.cumsum(seconds)])
        totals = [np.concatenate([[0], np.cumsum(each)]) for each in self.requests]
        lost = np.flatnonzero(is_lost)
        free = [0.0] * min(cluster.workers, max(1, count))
        start, end = 0, 0.0
        while start < count or self.waiting:
            now = free[0]
            if self.waiting and (self.waiting[0][0] <= now or start >= count):
                failed_at, task = heappop(self.waiting)
                finished = self._retry(task, max(now, failed_at))
            else:
                share = max(1, (count - start) // (2 * cluster.workers + 2))
                stop = min(count, start + min(batch, share))
                requests = [int(total[stop] - total[start]) for total in totals]
                begin, finished = self._occupy_worker(now, 0.0, float(ends[stop] - ends[start]), requests)
                for k in lost[np.searchsorted(lost, start) : np.searchsorted(lost, stop)].tolist():
                    self._lose(k, begin + float(ends[k + 1] - ends[start]))
                start = stop
            heapreplace(free, finished)
            end = max(end, finished)
        self.attempts += 1
        return self._report(cluster.start_seconds + end)

    def _draw_attempts(self, tasks: Array) -> tuple[Array, Array]:
        """Return the seconds of an attempt of each task, and whether it fails."""
        cluster = self.cluster
        is_slow = self.random.random(tasks.size) < cluster.slow_rate
        seconds = self.task_seconds[tasks] * np.where(is_slow, cluster.slow_factor, 1.0)
        is_lost = (self.random.random(tasks.size) < cluster.failure_rate) | (seconds > cluster.timeout)
        return np.minimum(seconds, cluster.timeout), is_lost

    def _retry(self, task: int, now: float) -> float:
        """Run a task again, alone, on a worker that is free from `now`; return when it is free again."""
        self.attempts[task] += 1
        seconds, is_lost = self._draw_attempts(np.array([task]))
        requests = [int(each[task]) for each in self.requests]
        begin, finished = self._occupy_worker(now, now, float(seconds[0]), requests)
        if is_lost[0]:
            self._lose(task, begin + float(seconds[0]))
        return finished

    def _lose(self, task: int, failed_at: float) -> None:
        if self.attempts[task] < self.cluster.retries:
            heappush(self.waiting, (failed_at, task))
        else:
            self.failed += 1

    def _occupy_worker(self, now: float, known_at: float, seconds: float, requests: list[int]) -> tuple[float, float]:
        """Return when a batch begins on a worker that is free from `now`, and when it ends.

        `known_at` is when the driver can hand it out at the earliest.
        """
        self.batches += 1
        self.driver_free = max(self.driver_free, known_at) + self.cluster.submit_seconds
        begin = max(now, self.driver_free)
        finished = begin + seconds
        self.busy += seconds
        for side, rate in enumerate((self.cluster.reads_per_second, self.cluster.writes_per_second)):
            # the store answers one request after another, of whichever worker
            self.store_free[side] = max(self.store_free[side], begin) + requests[side] / rate
            finished = max(finished, self.store_free[side])
        return begin, finished

    def _report(self, seconds: float) -> RunEstimate:
        cluster, attempts = self.cluster, self.attempts
        reads, writes = (int(each @ attempts) for each in self.requests)
        bytes_read, bytes_written = (int(each @ attempts) for each in self.nbytes)
        return RunEstimate(
            tasks=self.count,
            batches=self.batches,
            seconds=seconds,
            utilization=self.busy / (cluster.workers * seconds) if seconds else 0.0,
            reads=reads,
            writes=writes,
            bytes_read=bytes_read,
            bytes_written=bytes_written,
            retried=int(attempts.sum()) - self.count,
            failed=self.failed,
            worker_cost=cluster.workers * seconds / 3600 * cluster.worker_price,
            request_cost=reads * cluster.read_price + writes * cluster.write_price,
        )
