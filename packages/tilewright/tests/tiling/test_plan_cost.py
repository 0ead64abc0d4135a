# SPDX-License-Identifier: Apache-2.0
"""The simulation of runs on a cluster: closed formulas where there are some, and counting by hand."""

from itertools import product
from math import ceil, inf

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tilewright import TransferError
from tilewright.tiling import ClusterModel, plan_tiles, simulate_run
from tilewright.tiling.plan_cost import TaskLoads
from tilewright.tiling.plan_task import BatchRun

from ..cases import examples
from .pipelines import ORDERS, stencils


class Chunked:
    """An array in chunks that counts those that are read and written."""

    def __init__(self, shape, chunks):
        self.array = np.zeros(shape)
        self.shape, self.dtype, self.chunks = shape, self.array.dtype, chunks
        self.read = self.written = 0

    def touched(self, box):
        axes = [range(part.start // n, -(-part.stop // n)) for part, n in zip(box, self.chunks, strict=True)]
        return len(list(product(*axes)))

    def __getitem__(self, box):
        self.read += self.touched(box)
        return self.array[box]

    def __setitem__(self, box, value):
        self.written += self.touched(box)
        self.array[box] = value


@examples(60)
@given(stencils(3), st.data())
def test_requests_are_those_of_a_real_run(stencil, data):
    chunks = tuple(data.draw(st.integers(1, n)) for n in stencil.space)
    assume(all(t % c == 0 or t >= n for t, c, n in zip(stencil.tile, chunks, stencil.space, strict=True)))
    other = tuple(data.draw(st.integers(1, n)) for n in stencil.space)
    source, target = Chunked(stencil.space, other), Chunked(stencil.space, chunks)
    plan = plan_tiles(source, target, stencil.tile, stencil.halo, stencil.fill, stencil.order)
    estimate = simulate_run(plan, ClusterModel(workers=3))
    for task in plan:  # each for itself, as on many machines
        BatchRun(plan, stencil.compute).run_task(task.number)
    assert (estimate.reads, estimate.writes) == (source.read, target.written)
    assert estimate.bytes_read == source.read * 8 * np.prod(other)
    assert estimate.bytes_written == target.written * 8 * np.prod(chunks)
    n = len(plan)
    parts = [simulate_run(plan.part(i, n), ClusterModel(workers=3)) for i in range(n)]
    assert sum(part.reads for part in parts) == estimate.reads


@examples(40)
@given(stencils(3))
def test_files_are_read_by_boxes(stencil):
    plan = plan_tiles(stencil.source(), np.zeros(stencil.space), stencil.tile, stencil.halo, 0, stencil.order)
    loads = TaskLoads(plan)
    assert loads.bytes_read.tolist() == [task.bytes_in for task in plan]
    assert loads.bytes_written.tolist() == [task.bytes_out for task in plan]
    assert loads.writes.tolist() == [1] * len(plan)


def some_tasks(count, elements=1):
    return plan_tiles(np.zeros(count * elements), np.zeros(count * elements), tile=(elements,))


FREE = {"latency": 0.0, "bandwidth": inf, "submit_seconds": 0.0}


@given(st.integers(1, 200), st.integers(1, 40), st.floats(0.1, 10))
def test_equal_tasks_take_as_many_rounds_as_needed(count, workers, seconds):
    estimate = simulate_run(
        some_tasks(count), ClusterModel(workers, compute_seconds=seconds, worker_price=3600, **FREE)
    )
    rounds = ceil(count / workers)
    assert estimate.seconds == pytest.approx(rounds * seconds)
    assert estimate.utilization == pytest.approx(count / (rounds * workers))
    assert estimate.batches == count
    assert estimate.cost == pytest.approx(workers * rounds * seconds)


def test_what_bounds_a_run():
    """The slowest of workers, driver, store and network decides, and each has its formula."""
    plan = some_tasks(1000, elements=100)
    free = {"workers": 1000, "compute_seconds": 0.1, **FREE}
    cases = {
        "workers": (ClusterModel(**{**free, "workers": 10}), 1000 * 0.1 / 10),
        "driver": (ClusterModel(**{**free, "submit_seconds": 0.01}), 1000 * 0.01 + 0.1),
        "reads": (ClusterModel(**free, reads_per_second=50), 1000 / 50),
        "writes": (ClusterModel(**free, writes_per_second=20), 1000 / 20),
        "latency": (ClusterModel(**{**free, "workers": 10, "latency": 0.5}), 1000 / 10 * (0.1 + 2 * 0.5)),
        "bandwidth": (ClusterModel(**{**free, "workers": 10, "bandwidth": 800}), 1000 / 10 * (0.1 + 2 * 1.0)),
        "compressed": (
            ClusterModel(**{**free, "workers": 10, "bandwidth": 800}, stored_ratio=0.5),
            1000 / 10 * (0.1 + 2 * 0.5),
        ),
        "start": (ClusterModel(**free, start_seconds=60), 60.1),
        "batches": (ClusterModel(**{**free, "workers": 1, "submit_seconds": 5.0}, batch=100), None),
    }
    for name, (cluster, seconds) in cases.items():
        estimate = simulate_run(plan, cluster)
        if seconds is not None:
            assert estimate.seconds == pytest.approx(seconds, rel=1e-6), name
    assert simulate_run(plan, cases["batches"][0]).batches < 100


def test_requests_at_once():
    source, target = Chunked((8, 8), (1, 1)), Chunked((8, 8), (8, 8))
    plan = plan_tiles(source, target, tile=(8, 8))
    for at_once in (1, 3, 64, 100):
        cluster = ClusterModel(1, requests_at_once=at_once, latency=1.0, bandwidth=inf, submit_seconds=0)
        assert simulate_run(plan, cluster).seconds == pytest.approx(ceil(64 / at_once) + 1), at_once


@pytest.mark.parametrize("order", ORDERS[:2])
def test_failures_are_retried_and_paid(order):
    plan = plan_tiles(np.zeros((200, 100)), np.zeros((200, 100)), tile=(1, 1), order=order)
    cluster = ClusterModel(50, 1.0, failure_rate=0.2, retries=50, read_price=1.0, write_price=10.0, **FREE)
    estimate = simulate_run(plan, cluster, seed=3)
    attempts = 20_000 / (1 - 0.2)
    assert estimate.retried + 20_000 == pytest.approx(attempts, rel=0.02)
    assert estimate.failed == 0
    assert estimate.reads == estimate.writes == estimate.retried + 20_000
    assert estimate.request_cost == pytest.approx(11.0 * estimate.reads)
    assert estimate.seconds == pytest.approx(attempts / 50, rel=0.05)
    assert simulate_run(plan, cluster, seed=3) == estimate
    assert simulate_run(plan, cluster, seed=4) != estimate
    none = simulate_run(plan, ClusterModel(50, 1.0, failure_rate=0.2, retries=0, **FREE))
    assert (none.retried, none.failed) == (0, pytest.approx(4000, rel=0.1))
    once = simulate_run(plan, ClusterModel(50, 1.0, failure_rate=0.2, retries=1, **FREE))
    assert once.failed == pytest.approx(20_000 * 0.04, rel=0.15)


def test_a_timeout_pays_when_few_tasks_are_very_slow():
    """A straggler of 100 s is cut off after 3 s; waiting for the last one would take the whole time."""
    plan = some_tasks(2000)
    slow = {"slow_rate": 0.01, "slow_factor": 100.0, "retries": 5}
    patient = simulate_run(plan, ClusterModel(100, 1.0, **slow, **FREE))
    strict = simulate_run(plan, ClusterModel(100, 1.0, **slow, timeout=3.0, **FREE))
    assert patient.seconds > 100
    assert strict.seconds < 40
    assert strict.retried == pytest.approx(20, abs=15)
    assert (patient.retried, strict.failed) == (0, 0)


def test_what_is_refused():
    for wrong in ({"workers": 0}, {"failure_rate": 1.0}, {"latency": -1}, {"requests_at_once": 0}, {"batch": 0}):
        (name, _), *_ = wrong.items()
        with pytest.raises(TransferError, match=f"expected {name} .*, got"):
            ClusterModel(**{"workers": 1, **wrong})
