# SPDX-License-Identifier: Apache-2.0
"""Tasks that take too long, workers that die, batches that are given back: the run goes on, or names the culprit."""

import ctypes
import functools
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from tilewright import TransferError
from tilewright.tiling import plan_task, plan_tiles, tile_plan

processes = functools.partial(ProcessPoolExecutor, 2, mp_context=get_context("spawn"))


@pytest.fixture
def files(tmp_path):
    source = np.arange(1, 41, dtype=np.int64)
    np.save(tmp_path / "in.npy", source)
    np.lib.format.open_memmap(tmp_path / "out.npy", "w+", np.int64, source.shape).flush()
    return tmp_path / "in.npy", tmp_path / "out.npy", source


def once(folder, x):
    """Return whether this is the first call for a tile, in any process; the file that says so has the process's id."""
    path = Path(folder, f"started-{int(x.flat[0])}")
    try:
        with path.open("x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return False
    return True


def negate(x, y):
    np.negative(x, out=y)


class Slow:
    """Takes far too long for one tile, at first or always, and would then write something wrong."""

    def __init__(self, folder, first, always=False, seconds=1.5, sleep=time.sleep):
        self.folder, self.first, self.always, self.seconds, self.sleep = str(folder), first, always, seconds, sleep

    def __call__(self, x, y):
        if int(x.flat[0]) == self.first and (once(self.folder, x) or self.always):
            self.sleep(self.seconds)
            y[...] = 7
            return
        np.negative(x, out=y)


def hold_the_interpreter(seconds):
    """Wait without letting any other thread of the process run."""
    ctypes.PyDLL(None).sleep(int(seconds))


@pytest.mark.parametrize("place", ["here", "threads", "processes", "pools of processes"])
def test_a_task_that_takes_too_long_is_tried_again(files, tmp_path, place):
    before, after, source = files
    plan = plan_tiles(before, after, tile=(2,))
    with ExitStack() as stack:
        executor = {
            "here": lambda: None,
            "threads": lambda: stack.enter_context(ThreadPoolExecutor(2)),
            "processes": lambda: stack.enter_context(processes()),
            "pools of processes": lambda: processes,
        }[place]()
        report = plan.run(Slow(tmp_path, first=9), executor, timeout=0.5, retries=5, manifest=tmp_path / "done")
        assert report.tasks == 20
        assert report.retried >= 1  # more where the machine is so busy that others take too long
        assert (report.replaced > 0) == (place == "pools of processes")
        assert (np.load(after) == -source).all()
        if place == "pools of processes":
            stuck = int((tmp_path / "started-9").read_text())
            assert not is_alive(stuck), "the process of the task that took too long was not killed"
        else:
            time.sleep(1.5)  # until the one that took too long has ended
    assert (np.load(after) == -source).all(), "a task that had been given up has written"
    assert plan.run(Slow(tmp_path, first=9), manifest=tmp_path / "done").skipped == 20


def is_alive(process):
    """Return whether a process runs, waiting a moment for one that is about to end."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        if state == "Z":
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("place", ["here", "threads", "pools of threads"])
def test_a_task_that_always_takes_too_long_is_named(files, tmp_path, place):
    before, after, _ = files
    with ExitStack() as stack:
        executor = {
            "here": None,
            "threads": stack.enter_context(ThreadPoolExecutor(2)),
            "pools of threads": functools.partial(ThreadPoolExecutor, 2),
        }[place]
        message = r"task 4, which writes \[8:10\], failed 2 times; last error: TaskTimeoutError: task 4 took longer"
        with pytest.raises(TransferError, match=message):
            plan_tiles(before, after, tile=(2,)).run(
                Slow(tmp_path, first=9, always=True, seconds=0.6), executor, retries=1, timeout=0.1
            )
    time.sleep(0.6)
    assert 7 not in np.load(after)


def test_a_worker_that_does_not_answer_at_all_is_killed(files, tmp_path, monkeypatch):
    """In native code that never lets another thread run, not even the timeout of the worker works."""
    monkeypatch.setattr(tile_plan, "ANSWER_WITHIN_SECONDS", 1.0)
    before, after, source = files
    compute = Slow(tmp_path, first=9, seconds=60, sleep=hold_the_interpreter)
    began = time.monotonic()
    report = plan_tiles(before, after, tile=(2,)).run(compute, processes, timeout=1.5, retries=5)
    assert report.replaced >= 1
    assert time.monotonic() - began < 40
    assert not is_alive(int((tmp_path / "started-9").read_text()))
    assert (np.load(after) == -source).all()


class Deadly:
    """Kills its process for one tile, at first or always."""

    def __init__(self, folder, first, always=False):
        self.folder, self.first, self.always = str(folder), first, always

    def __call__(self, x, y):
        if int(x.flat[0]) == self.first and (once(self.folder, x) or self.always):
            os.kill(os.getpid(), signal.SIGKILL)
        np.negative(x, out=y)


def test_a_new_pool_takes_the_place_of_one_that_broke(files, tmp_path):
    before, after, source = files
    plan = plan_tiles(before, after, tile=(2,))
    report = plan.run(Deadly(tmp_path, first=9), processes, manifest=tmp_path / "done")
    assert (report.tasks, report.replaced) == (20, 1)
    assert (np.load(after) == -source).all()
    lines = (tmp_path / "done").read_bytes().splitlines()
    assert len(lines) == 1 + 20, "only unfinished tasks are submitted again"
    with pytest.raises(TransferError, match=r"executor broke after .* of 20 tasks .*functools\.partial"):
        plan.run(Deadly(tmp_path / "..", first=9, always=True), processes, retries=0)


def test_a_task_that_kills_every_worker_is_named(files, tmp_path):
    before, after, source = files
    plan = plan_tiles(before, after, tile=(1,))
    message = r"task 33, which writes \[33:34\], was submitted each of the 3 times that the executor broke"
    with pytest.raises(TransferError, match=message):
        plan.run(Deadly(tmp_path, first=34, always=True), processes, manifest=tmp_path / "done", tag="negate")
    report = plan.run(negate, manifest=tmp_path / "done", tag="negate")
    assert report.skipped >= 33 - 6, "what was finished is recorded"
    assert (np.load(after) == -source).all()


def test_a_task_that_kills_every_worker_is_found_in_its_batch(tmp_path):
    """Hundreds of tasks were submitted with it each time; then they are tried one at a time."""
    source = np.arange(1, 1501)
    np.save(tmp_path / "in.npy", source)
    np.save(tmp_path / "out.npy", np.zeros_like(source))
    plan = plan_tiles(tmp_path / "in.npy", tmp_path / "out.npy", tile=(1,))
    sizes, submit = [], ProcessPoolExecutor.submit

    class Watched(ProcessPoolExecutor):
        def submit(self, function, plan, numbers, *rest):
            sizes.append((numbers, len(numbers)))
            return submit(self, function, plan, numbers, *rest)

    factory = functools.partial(Watched, 2, mp_context=get_context("spawn"))
    message = r"task 700, which writes \[700:701\], was submitted each of the 3 times that the executor broke"
    with pytest.raises(TransferError, match=message):
        plan.run(Deadly(tmp_path, first=701, always=True), factory)
    with_it = [size for numbers, size in sizes if 700 in numbers]
    assert len(with_it) == 3
    assert with_it[0] > 1, "it was not in a batch with others, so this test shows nothing"
    assert with_it[-1] == 1


def test_what_a_factory_makes_is_shut_down(files):
    before, after, _ = files
    made = []

    def factory():
        made.append(ThreadPoolExecutor(2))
        return made[-1]

    assert plan_tiles(before, after, tile=(2,)).run(negate, factory).tasks == 20
    with pytest.raises(TransferError, match="failed 1 times"):
        plan_tiles(before, after, tile=(2,)).run(lambda x, y: 1 // 0, factory, retries=0)
    for pool in made:
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(print)
    for wrong, message in ((7, "got int"), (lambda: 7, "one that makes 7")):
        with pytest.raises(TransferError, match=message):
            plan_tiles(before, after, tile=(2,)).run(negate, wrong)
    for seconds in (0, -1, float("nan")):
        with pytest.raises(TransferError, match="timeout of more than 0"):
            plan_tiles(before, after, tile=(2,)).run(negate, timeout=seconds)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_takes_long_gives_the_rest_back(monkeypatch, tmp_path, workers):
    """Tasks that turn out slow after many quick ones do not wait behind each other in one batch."""
    monkeypatch.setattr(plan_task, "MAX_BATCH_SECONDS", 0.05)
    monkeypatch.setattr(tile_plan, "MIN_BATCH_SECONDS", 100)  # batches are as large as they can be
    batches, lock = [], threading.Lock()
    run_batch = tile_plan.run_batch

    def watched(plan, numbers, *rest):
        result = run_batch(plan, numbers, *rest)
        with lock:
            batches.append((len(numbers), len(result.not_started)))
        return result

    monkeypatch.setattr(tile_plan, "run_batch", watched)
    source, target = np.arange(400), np.zeros(400, int)

    def compute(x, y):
        if x[0] >= 300 and x[0] % 10 == 0:
            time.sleep(0.03)
        np.negative(x, out=y)

    with ExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(workers)) if workers else None
        progress = []
        plan = plan_tiles(source, target, tile=(1,))
        report = plan.run(compute, executor, manifest=tmp_path / "m", progress=lambda n, _: progress.append(n))
    assert report.tasks == 400
    assert (target == -source).all()
    assert progress == list(range(1, 401))
    assert max(size for size, _ in batches) > 8
    assert sum(rest > 0 for _, rest in batches) >= 1
    assert len((tmp_path / "m").read_bytes().splitlines()) == 401


class HangingStore:
    """An array whose first write of one box does not return for a while."""

    def __init__(self, count):
        self.array = np.zeros(count, int)
        self.shape, self.dtype, self.released, self.hangs = self.array.shape, self.array.dtype, threading.Event(), 1

    def __getitem__(self, box):
        return self.array[box]

    def __setitem__(self, box, value):
        if box[0].start == 8 and self.hangs:
            self.hangs = 0
            self.released.wait(30)
        self.array[box] = value


@pytest.mark.parametrize("workers", [0, 2])
def test_a_write_that_hangs_is_not_waited_for(workers):
    target = HangingStore(40)
    with ExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(workers)) if workers else None
        report = plan_tiles(np.arange(40), target, tile=(2,)).run(negate, executor, timeout=0.5, retries=5)
        assert not target.released.is_set()
        target.released.set()
    assert (report.tasks, target.hangs) == (20, 0)
    assert report.retried >= 1
    time.sleep(0.2)
    assert (target.array == -np.arange(40)).all()


def test_a_timeout_costs_no_thread_per_task():
    threads = set()

    def compute(x, y):
        threads.add(threading.get_ident())
        np.negative(x, out=y)

    target = np.zeros(2000, int)
    plan_tiles(np.arange(2000), target, tile=(1,)).run(compute, timeout=30)
    assert len(threads) < 100
    assert (target == -np.arange(2000)).all()
