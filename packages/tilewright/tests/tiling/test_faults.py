# SPDX-License-Identifier: Apache-2.0
"""Faults in source, target and compute: a clean error, no thread left, nothing reported that is not done."""

import threading

import numpy as np
import pytest

from tilewright import TransferError
from tilewright.tiling import CancelledError, Input, Output, Pipeline, SimulatedQueue, Tiler
from tilewright.tiling.transfers import COMPLETIONS

from .pipelines import SCHEMES

SIZE, TILE = 400_000, 20_000
TILES = SIZE // TILE


class Store:
    """Something that slices, keeps what is written, and fails at one tile."""

    def __init__(self, fails_at=None):
        self.data = np.arange(SIZE, dtype=np.float64)
        self.shape, self.dtype, self.fails_at = self.data.shape, self.data.dtype, fails_at
        self.written = set()

    def check(self, box):
        if self.fails_at is not None and box[0].start == self.fails_at * TILE:
            raise OSError("the disk is gone")

    def __getitem__(self, box):
        self.check(box)
        return self.data[box]

    def __setitem__(self, box, value):
        self.check(box)
        self.data[box] = value
        self.written.add(box[0].start // TILE)


def pipeline(source, target, **options):
    tiler = Tiler((SIZE,), (TILE,))
    return Pipeline([Input(source, tiler)], [Output(target, tiler)], **options)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("at", [0, 1, 7, TILES - 1])
@pytest.mark.parametrize("where", ["source", "target"])
def test_a_fault_in_a_transfer_names_the_tile(scheme, where, at, workers):
    source, target = Store(at if where == "source" else None), Store(at if where == "target" else None)
    done = []
    kind = "import" if where == "source" else "export"
    with pytest.raises(TransferError, match=f"{kind} of tile {at} failed: OSError: the disk is gone"):
        pipeline(source, target, scheme=scheme, workers=workers).run(
            lambda x, y: np.negative(x, out=y), progress=lambda n, _: done.append(n)
        )
    assert (done[-1] if done else 0) <= at
    assert len(target.written) >= (done[-1] if done else 0)
    for tile in target.written:
        part = slice(tile * TILE, (tile + 1) * TILE)
        assert (target.data[part] == -source.data[part]).all()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("at", [0, 1, 7, TILES - 1])
def test_a_fault_in_the_compute_is_raised_as_it_is(scheme, at):
    target = Store()
    calls = []

    def compute(x, y):
        calls.append(1)
        if len(calls) == at + 1:
            raise ZeroDivisionError("no")
        np.negative(x, out=y)

    with pytest.raises(ZeroDivisionError) as caught:
        pipeline(Store(), target, scheme=scheme).run(compute)
    if hasattr(caught.value, "add_note"):  # Python 3.11
        assert caught.value.__notes__ == [f"while computing tile {at}"]
    assert target.written == set(range(at))  # what was computed before is exported whole, and nothing else


@pytest.mark.parametrize("completion", COMPLETIONS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_faults_leave_nothing_under_way(scheme, completion):
    queue = SimulatedQueue(completion)
    with pytest.raises(TransferError, match="tile 3"):
        pipeline(Store(3), Store(), scheme=scheme, queue=queue).run(lambda x, y: np.copyto(y, x))
    assert not queue.pending


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_run_can_be_cancelled(scheme):
    switch = threading.Event()
    target = Store()
    done = []

    def progress(count, _):
        done.append(count)
        if count >= 5:
            switch.set()

    with pytest.raises(CancelledError, match="after exporting"):
        pipeline(Store(), target, scheme=scheme).run(lambda x, y: np.copyto(y, x), progress=progress, cancel=switch)
    assert 5 <= done[-1] <= len(target.written) < TILES


def test_progress_counts_up_to_the_end():
    done = []
    pipeline(Store(), Store()).run(lambda x, y: np.copyto(y, x), progress=lambda n, of: done.append((n, of)))
    assert done == sorted(done)
    assert done[-1] == (TILES, TILES)
