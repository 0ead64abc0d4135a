# SPDX-License-Identifier: Apache-2.0
"""Tile plans: independent tasks, on any executor, tried again, remembered, in parts."""

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given

from tilewright import LayoutError, TransferError
from tilewright.tiling import CancelledError, plan_tiles
from tilewright.tiling.plan_task import BatchRun

from ..cases import examples
from .pipelines import stencils

pytestmark = pytest.mark.slow


def negated(x, y):
    np.negative(x, out=y)


@examples(60)
@given(stencils(4))
def test_a_plan_computes_what_numpy_says_in_any_order(stencil):
    target = np.zeros(stencil.space, np.int64)
    plan = plan_tiles(stencil.source(), target, stencil.tile, stencil.halo, stencil.fill, stencil.order)
    for task in reversed(plan.tasks):
        BatchRun(plan, stencil.compute).run_task(task.number)
    assert (target == stencil.expected()).all()
    BatchRun(plan, stencil.compute).run_task(0)  # once more does no harm
    assert (target == stencil.expected()).all()


@examples(60)
@given(stencils(3))
def test_tasks_say_what_they_read_and_write(stencil):
    target = np.zeros(stencil.space, np.int64)
    plan = plan_tiles(stencil.source(), target, stencil.tile, stencil.halo, stencil.fill, stencil.order)
    written = np.zeros(stencil.space, int)
    for task in plan:
        (box,), (out,) = task.inputs, task.outputs
        written[out.slices] += 1
        assert box.offset == tuple(a - b for a, (b, _) in zip(out.offset, stencil.halo, strict=True))
        assert box.end == tuple(a + b for a, (_, b) in zip(out.end, stencil.halo, strict=True))
        assert task.bytes_in == 4 * box.within(stencil.space).size
        assert task.bytes_out == 8 * out.size
        assert task.peak_memory >= 4 * box.size + 8 * out.size
    assert (written == 1).all()


def test_parts_are_a_partition():
    plan = plan_tiles(np.zeros((10, 7)), np.zeros((10, 7)), (3, 2))
    for n in range(1, 20):
        parts = [plan.part(i, n) for i in range(n)]
        assert [task for part in parts for task in part] == plan.tasks
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert plan.part(1, 2).part(0, 2).tasks == plan.part(1, 2).tasks[: len(plan.part(1, 2)) // 2]
    with pytest.raises(LayoutError, match="part 3 of 3"):
        plan.part(3, 3)


def test_a_plan_is_a_list():
    plan = plan_tiles(np.zeros(10), np.zeros(10), (3,))
    assert [plan[k].number for k in range(4)] == [0, 1, 2, 3]
    assert plan[-1] == plan[3]
    assert plan[1:3] == plan.tasks[1:3]
    with pytest.raises(IndexError):
        plan[4]


@pytest.fixture
def files(tmp_path):
    source = np.random.default_rng(5).integers(0, 1000, (60, 50)).astype(np.int32)
    np.save(tmp_path / "in.npy", source)
    np.lib.format.open_memmap(tmp_path / "out.npy", "w+", np.int32, source.shape).flush()
    return tmp_path / "in.npy", tmp_path / "out.npy", source


def test_threads(files):
    before, after, source = files
    with ThreadPoolExecutor(3) as pool:
        report = plan_tiles(before, after, (7, 50)).run(negated, pool)
    assert report.tasks == 9
    assert (np.load(after) == -source).all()


def test_processes(files):
    before, after, source = files
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        report = plan_tiles(before, np.load(after, mmap_mode="r+"), (20, 20)).run(negated, pool)
    assert report.tasks == 9
    assert (np.load(after) == -source).all()


def test_arrays_are_not_sent_to_other_processes(files):
    before, after, source = files
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(TransferError, match="the target is an array in the memory"):
            plan_tiles(before, np.zeros_like(source), (20, 20)).run(negated, pool)
        with pytest.raises(TransferError, match="the source is an array in the memory"):
            plan_tiles(source, after, (20, 20)).run(negated, pool)


def test_failures_are_tried_again(files):
    before, after, source = files
    seen = set()
    lock = threading.Lock()

    def flaky(x, y):
        with lock:
            key = int(x[0, 0])
            first = key not in seen
            seen.add(key)
        if first:
            raise OSError("not now")
        negated(x, y)

    with ThreadPoolExecutor(2) as pool:
        report = plan_tiles(before, after, (20, 20)).run(flaky, pool)
    assert report.retried == len(seen)
    assert (np.load(after) == -source).all()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_task_that_keeps_failing_is_named(files, workers):
    before, after, source = files
    ran = []

    def broken(x, y):
        ran.append(1)
        if x[0, 0] == source[20, 20]:
            raise OSError("never")
        negated(x, y)

    plan = plan_tiles(before, after, (20, 20))
    message = r"task 4, which writes \[20:40, 20:40\], failed 3 times; last error: OSError: never"
    with ExitStack() as open_pools:
        pool = open_pools.enter_context(ThreadPoolExecutor(workers)) if workers else None
        with pytest.raises(TransferError, match=message):
            plan.run(broken, pool)
    assert len(ran) <= 9 + 2


def test_a_manifest_resumes(files, tmp_path):
    before, after, source = files
    plan = plan_tiles(before, after, (20, 20))
    calls = []

    def stops(x, y):
        calls.append(1)
        if len(calls) > 5:
            raise OSError("power cut")
        negated(x, y)

    with pytest.raises(TransferError, match="power cut"):
        plan.run(stops, retries=0, manifest=tmp_path / "done", tag="negate")
    with (tmp_path / "done").open("ab") as file:
        file.write(b'{"done": 8')  # a line that was cut off
    done = []
    report = plan.run(negated, manifest=tmp_path / "done", progress=lambda n, of: done.append((n, of)), tag="negate")
    assert (report.tasks, report.skipped) == (4, 5)
    assert done == [(n, 9) for n in range(1, 10)]
    assert (np.load(after) == -source).all()
    assert plan.run(negated, manifest=tmp_path / "done", tag="negate").tasks == 0


def test_what_is_no_longer_there_is_done_again(files, tmp_path):
    """A script that is started again makes its target anew; the manifest knows more than the target then."""
    before, after, source = files
    plan = plan_tiles(before, after, (20, 20))
    plan.run(negated, manifest=tmp_path / "done")
    whole = np.lib.format.open_memmap(after, "r+")
    whole[25, 25] += 1
    whole.flush()
    report = plan.run(negated, manifest=tmp_path / "done")
    assert (report.tasks, report.skipped) == (1, 8)
    np.lib.format.open_memmap(after, "w+", source.dtype, source.shape).flush()
    report = plan.run(negated, manifest=tmp_path / "done")
    assert (report.tasks, report.skipped) == (9, 0)
    assert (np.load(after) == -source).all()
    with ThreadPoolExecutor(2) as pool:
        assert plan.run(negated, pool, manifest=tmp_path / "done").skipped == 9


def test_every_target_counts(tmp_path):
    a, lower, upper = np.arange(10.0), np.zeros(10), np.zeros(10)
    plan = plan_tiles(a, [lower, upper], tile=(4,))

    def split(x, down, up):
        down[...], up[...] = x - 1, x + 1

    plan.run(split, manifest=tmp_path / "done")
    for damaged in (lower, upper):
        damaged[9] = 0
        assert plan.run(split, manifest=tmp_path / "done").tasks == 1
    assert (lower == a - 1).all()
    assert (upper == a + 1).all()


def test_a_source_that_was_written_since_is_another_plan(files, tmp_path):
    before, after, source = files
    plan_tiles(before, after, (20, 20)).run(negated, manifest=tmp_path / "done")
    np.save(before, source + 1)
    os.utime(before, ns=(0, 12345))
    with pytest.raises(TransferError, match=r"another plan: source 0 was .*modified_ns.* and is now .*12345"):
        plan_tiles(before, after, (20, 20)).run(negated, manifest=tmp_path / "done")


def test_a_manifest_belongs_to_its_plan(files, tmp_path):
    before, after, _ = files
    plan_tiles(before, after, (20, 20)).run(negated, manifest=tmp_path / "done")
    for other in (plan_tiles(before, after, (20, 10)), plan_tiles(before, after, (20, 20)).part(0, 2)):
        with pytest.raises(TransferError, match="another plan: t"):
            other.run(negated, manifest=tmp_path / "done")
    (tmp_path / "text").write_text("something else\n")
    with pytest.raises(TransferError, match="not a tile plan manifest"):
        plan_tiles(before, after, (20, 20)).run(negated, manifest=tmp_path / "text")


@pytest.mark.parametrize(
    "text",
    [
        b"my notes",
        b"my notes\n",
        b'{"plan": 1}\n',
        b'{"plan": {}}\n{"done": Infinity}\n',
        b"[" * 100_000 + b"\n",
        b"[]\n",
    ],
)
def test_a_file_of_others_is_no_manifest(tmp_path, text):
    path = tmp_path / "notes"
    path.write_bytes(text)
    with pytest.raises(TransferError, match=r"manifest|other work"):
        plan_tiles(np.zeros(4), np.zeros(4), tile=(2,)).run(negated, manifest=path)
    assert path.read_bytes() == text


@pytest.mark.parametrize("kept", range(0, 60, 7))
def test_a_manifest_that_was_cut_off_is_begun_again(tmp_path, kept):
    path, plan = tmp_path / "m.jsonl", plan_tiles(np.zeros(4), np.zeros(4), tile=(2,))
    plan.run(negated, manifest=path)
    path.write_bytes(path.read_bytes()[:kept])
    assert plan.run(negated, manifest=path).tasks == 2


def test_parts_write_one_result(files, tmp_path):
    before, after, source = files
    plan = plan_tiles(before, after, (7, 9))
    for i in (2, 0, 1):
        plan.part(i, 3).run(negated, manifest=tmp_path / f"done{i}")
    assert (np.load(after) == -source).all()


def test_work_in_flight_is_bounded():
    most = [0, 0]
    lock = threading.Lock()

    def watched(x, y):
        with lock:
            most[0] += 1
            most[1] = max(most)
        negated(x, y)
        with lock:
            most[0] -= 1

    class Counting(ThreadPoolExecutor):
        queued = 0

        def submit(self, *given):
            waiting = self._work_queue.qsize()
            Counting.queued = max(Counting.queued, waiting)
            return super().submit(*given)

    with Counting(2) as pool:
        plan_tiles(np.arange(1000), np.zeros(1000, int), (2,)).run(watched, pool, in_flight=5)
    assert Counting.queued <= 5
    assert most[1] <= 2


def _killed(x, y):
    os.kill(os.getpid(), signal.SIGKILL)


def test_an_executor_that_breaks_is_an_error_of_ours(files, tmp_path):
    before, after, _ = files
    plan = plan_tiles(before, after, (20, 20))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(TransferError, match=r"executor broke after 0 of 9 tasks .*with manifest='\.\.\.'"):
            plan.run(_killed, pool)
        with pytest.raises(TransferError, match=r"executor broke.*again with a new executor and manifest='.*done'"):
            plan.run(_killed, pool, manifest=tmp_path / "done")
    with pytest.raises(TransferError, match="executor broke"):
        plan.run(negated, pool)


def test_equal_calls_are_never_the_same_call():
    """An executor that remembers what it was asked, as Dask does, must run what is tried again."""

    class Remembering(ThreadPoolExecutor):
        def submit(self, *work):
            key = tuple([repr(each) for each in work])
            if key not in known:
                known[key] = super().submit(*work)
            return known[key]

    known: dict = {}
    calls = []

    def flaky(x, y):
        calls.append(1)
        if len(calls) % 3:
            raise OSError("not now")
        negated(x, y)

    target = np.zeros(40, int)
    with Remembering(1) as pool:
        assert plan_tiles(np.arange(40), target, (4,)).run(flaky, pool, retries=9).retried > 10
    assert (target == -np.arange(40)).all()


def test_a_plan_can_be_cancelled():
    switch = threading.Event()
    target = np.zeros(100, int)
    with pytest.raises(CancelledError, match="of 50 tasks"):
        plan_tiles(np.arange(1, 101), target, (2,)).run(
            negated, cancel=switch, progress=lambda n, _: n < 10 or switch.set()
        )
    assert 10 <= np.count_nonzero(target) / 2 < 50


class Chunked:
    def __init__(self, array, chunks):
        self.array, self.shape, self.dtype, self.chunks = array, array.shape, array.dtype, chunks

    def __getitem__(self, box):
        return self.array[box]

    def __setitem__(self, box, value):
        self.array[box] = value


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_an_interruption_ends_a_plan(workers):
    """Without an executor it hung: it waited for the task that was interrupted; found by make soak."""
    calls = []

    def compute(x, y):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        np.negative(x, out=y)

    plan = plan_tiles(np.zeros(40), np.zeros(40), tile=(4,))
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(workers)) if workers else None
        outcome = stack.enter_context(ThreadPoolExecutor(1)).submit(plan.run, compute, pool)
        with pytest.raises((KeyboardInterrupt, TransferError)) as caught:
            outcome.result(timeout=60)
    assert isinstance(caught.value, KeyboardInterrupt) or isinstance(caught.value.__cause__, KeyboardInterrupt)


def test_tiles_must_not_cut_the_chunks_of_a_target():
    source, target = np.arange(100), Chunked(np.zeros(100, int), (10,))
    with pytest.raises(LayoutError, match="multiples of the chunks"):
        plan_tiles(source, target, (15,))
    plan_tiles(source, target, (20,)).run(negated)
    assert (target.array == -source).all()


def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    source = np.random.default_rng(5).standard_normal((60, 50))
    before = zarr.open(str(tmp_path / "in.zarr"), mode="w", shape=(60, 50), chunks=(16, 16), dtype="f8")
    before[...] = source
    after = zarr.open(str(tmp_path / "out.zarr"), mode="w", shape=(60, 50), chunks=(10, 10), dtype="f8")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        plan_tiles(before, after, (20, 20)).run(negated, pool)
    assert (after[...] == -source).all()


def test_what_is_refused():
    with pytest.raises(LayoutError, match=r"source has shape \(10,\), target has shape \(20,\)"):
        plan_tiles(np.zeros(10), np.zeros(20), (5,))
    with pytest.raises(TransferError, match="at least one"):
        plan_tiles([], np.zeros(20), (5,))
    fixed = np.zeros(10)
    fixed.flags.writeable = False
    with pytest.raises(TransferError, match="read-only"):
        plan_tiles(np.zeros(10), fixed, (5,))
