# SPDX-License-Identifier: Apache-2.0
"""Workers: each takes its tiles from import to export, and they compute in turns; nothing is lost when one fails."""

import threading
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.copying import native
from tilewright.tiling import CancelledError, Input, Output, Pipeline, Tiler, Trace, stream, workers
from tilewright.tiling import workers as transfer_table
from tilewright.tiling.workers import choose_worker_count

from ..cases import examples
from .pipelines import SCHEMES, stencils

pytestmark = pytest.mark.skipif(not native.is_available(), reason="workers are carried by the native library")

SIZE, TILE = 40_000, 1_000
TILES = SIZE // TILE


@pytest.fixture(autouse=True)
def worth_it_for_any_tile(monkeypatch):
    monkeypatch.setattr(workers, "MIN_TILE_BYTES", 0)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def numbers(count=SIZE):
    return np.arange(count, dtype=np.float64)


def pipeline(source, target, **options):
    tiler = Tiler(source.shape, (TILE,))
    return Pipeline([Input(source, tiler)], [Output(target, tiler)], **options)


@examples(150)
@given(stencils(4), st.sampled_from(SCHEMES), st.integers(0, 3), st.integers(1, 4), st.booleans())
def test_every_scheme_is_right_in_any_number_of_workers(stencil, scheme, workers, depth, concurrent):
    target = np.full(stencil.space, -1, np.int64)
    options = {"depth": depth} if scheme == "buffered" else {}
    chosen = stencil.pipeline(target, scheme=scheme, workers=workers, **options)
    assert choose_worker_count(chosen) >= 1
    chosen.run(stencil.compute, concurrent=concurrent)
    assert (target == stencil.expected()).all()


@examples(40)
@given(stencils(3), st.integers(1, 5))
def test_batches_meet(stencil, batch):
    before, transfer_table.BATCH_TILES = transfer_table.BATCH_TILES, batch
    try:
        target = np.full(stencil.space, -1, np.int64)
        stencil.pipeline(target, workers=1).run(stencil.compute)
    finally:
        transfer_table.BATCH_TILES = before
    assert (target == stencil.expected()).all()


@examples(60)
@given(
    st.integers(0, 9),
    st.sampled_from([0, 3, 200, "edge", "reflect"]),
    st.sampled_from(["u1", "u2", "f4"]),
    st.integers(0, 2),
)
def test_what_is_remembered_of_a_run_serves_other_memory(shift, fill, kind, workers):
    buffer = np.zeros(shift + 60 * 45 * 4, np.uint8)[shift:]  # at any address, with any fill: the tiles are the same
    source = buffer.view(np.uint8)[: 60 * 45 * np.dtype(kind).itemsize].view(kind).reshape(60, 45)
    source[...] = np.arange(60 * 45).reshape(60, 45) % 251
    target = np.zeros_like(source)
    stream(
        source,
        target,
        lambda x, y: np.add(x[:-2, 1:-1], x[2:, 2:], out=y),
        tile=(16, 16),
        overlap=1,
        pad=fill,
        workers=workers,
    )
    around = np.pad(source, 1, "constant", constant_values=fill) if isinstance(fill, int) else np.pad(source, 1, fill)
    assert (target == around[:-2, 1:-1] + around[2:, 2:]).all()


def test_a_pipeline_without_outputs_runs_in_the_library(monkeypatch):
    monkeypatch.setattr(workers.TileWorkers, "_run_transfers", None)  # the other way, which would fail
    total = []
    Pipeline([Input(numbers(), Tiler((SIZE,), (TILE,)))], []).run(lambda x: total.append(x.sum()))
    assert sum(total) == numbers().sum()


@pytest.mark.parametrize("source", [numbers()[::-1], numbers(2 * SIZE)[::2], np.broadcast_to(7.0, SIZE)])
def test_sources_of_any_stride(source):
    target = np.zeros(2 * SIZE)[::-2]
    pipeline(source, target).run(lambda x, y: np.add(x, 1, out=y))
    assert (target == source + 1).all()


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_computes_come_in_order_and_one_at_a_time(workers):
    seen, busy, threads = [], [], set()

    def compute(x, y):
        assert not busy
        busy.append(1)
        time.sleep(0.0002)
        seen.append(int(x[0]) // TILE)
        threads.add(threading.get_ident())
        np.negative(x, out=y)
        busy.pop()

    target = numbers()
    pipeline(numbers(), target, scheme="buffered", depth=4, workers=workers).run(compute)
    assert seen == list(range(TILES))
    assert len(threads) == min(4, workers + 1)
    assert (target == -numbers()).all()


def test_computes_may_be_allowed_to_meet():
    together = threading.Barrier(2, timeout=20)

    def compute(x, y):
        together.wait()  # ends only if another tile is computed at the same time
        np.negative(x, out=y)

    target = numbers()
    pipeline(numbers(), target, workers=1).run(compute, concurrent=True)
    assert (target == -numbers()).all()


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("at", [0, 1, 7, TILES - 1])
def test_a_fault_in_a_compute_stops_all_workers(workers, at):
    target = np.zeros(SIZE)

    def compute(x, y):
        if x[0] == at * TILE:
            raise ZeroDivisionError("no")
        np.add(x, 1, out=y)

    with pytest.raises(ZeroDivisionError) as caught:
        pipeline(numbers(), target, scheme="buffered", depth=4, workers=workers).run(compute)
    if hasattr(caught.value, "add_note"):  # Python 3.11
        assert caught.value.__notes__ == [f"while computing tile {at}"]
    assert (target[: at * TILE] == numbers()[: at * TILE] + 1).all()  # what was computed before is exported
    assert (target[at * TILE :] == 0).all()


def test_an_interruption_stops_all_workers():
    calls = []

    def compute(x, y):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        np.copyto(y, x)

    with pytest.raises(KeyboardInterrupt):
        pipeline(numbers(), numbers()).run(compute)
    assert len(calls) == 5


@pytest.mark.parametrize("workers", [0, 1])
def test_a_fault_in_a_progress_callback_stops_all_workers(workers):
    def progress(done, tiles):
        if done == 3:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        pipeline(numbers(), numbers(), workers=workers).run(_copied, progress=progress)


@pytest.mark.parametrize("concurrent", [False, True])
@pytest.mark.parametrize("workers", [0, 1])
def test_progress_and_cancelling(workers, concurrent):
    done, switch, target = [], threading.Event(), np.zeros(SIZE)
    work = pipeline(numbers() + 1, target, workers=workers)
    work.run(_copied, progress=lambda n, of: done.append((n, of)), concurrent=concurrent)
    assert done == [(n, TILES) for n in range(1, TILES + 1)]
    target[:] = 0
    with pytest.raises(CancelledError, match="after exporting"):
        work.run(_copied, progress=lambda n, _: n < 5 or switch.set(), cancel=switch, concurrent=concurrent)
    exported = [tile for tile in range(TILES) if target[tile * TILE]]
    assert 5 <= len(exported) < TILES
    for tile in exported:
        part = slice(tile * TILE, (tile + 1) * TILE)
        assert (target[part] == numbers()[part] + 1).all()


def _copied(x, y):
    np.copyto(y, x)


def test_numpy_treats_errors_as_the_caller_does():
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        pipeline(numbers(), np.zeros(SIZE)).run(lambda x, y: np.divide(1, x, out=y))
    target = np.zeros(SIZE)
    with np.errstate(divide="ignore", invalid="ignore"):  # a warning would be an error here
        pipeline(np.zeros(SIZE), target).run(lambda x, y: np.divide(x, x, out=y))
    assert np.isnan(target).all()


def test_a_trace_holds_every_transfer_of_every_operand():
    tiler = Tiler((SIZE,), (TILE,))
    sources, targets = [numbers(), -numbers()], [np.zeros(SIZE), np.zeros(SIZE, np.int32), np.zeros(SIZE, np.int8)]

    def compute(a, b, x, y, z):
        x[...], y[...], z[...] = a, b, 1

    trace = Trace()
    work = Pipeline([Input(each, tiler) for each in sources], [Output(each, tiler) for each in targets])
    report = work.run(compute, trace)
    found = Counter(span.kind for span in trace.spans)
    assert (found["import"], found["export"], found["compute"]) == (2 * TILES, 3 * TILES, TILES)
    assert (report.bytes_in, report.bytes_out) == (16 * SIZE, 13 * SIZE)
    assert (targets[0] == sources[0]).all() and (targets[1] == sources[1]).all() and (targets[2] == 1).all()  # noqa: PT018


def test_files_are_carried_too(tmp_path):
    np.save(tmp_path / "in.npy", numbers())
    trace = Trace()
    stream(tmp_path / "in.npy", tmp_path / "out.npy", lambda x, y: np.negative(x, out=y), tile=(TILE,), trace=trace)
    assert (np.load(tmp_path / "out.npy") == -numbers()).all()


def test_outputs_that_overlap_are_left_to_the_schedule():
    tiler = Tiler((10,), (4,), overlap=1)
    assert choose_worker_count(Pipeline([Input(np.zeros(10), tiler)], [Output(np.zeros(10), tiler)])) == 0
