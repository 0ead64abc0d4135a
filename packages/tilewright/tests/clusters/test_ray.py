# SPDX-License-Identifier: Apache-2.0
"""Tile plans on a real Ray cluster: batches, retries, killed workers, timeouts, cancelled calls."""

import os
import signal
import time
from concurrent.futures import wait
from pathlib import Path

import numpy as np
import pytest

from tilewright import TransferError
from tilewright.tiling import RayExecutor, plan_tiles
from tilewright.tiling.plan_executor import count_workers

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own


@pytest.fixture(scope="module")
def executor(tmp_path_factory):
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
    with RayExecutor() as executor:
        yield executor
    assert ray.is_initialized(), "an executor leaves a cluster that it has not started"
    ray.shutdown()


def make_files(tmp_path, shape):
    source = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    np.save(tmp_path / "in.npy", source)
    np.lib.format.open_memmap(tmp_path / "out.npy", "w+", np.float32, shape).flush()
    return source, tmp_path / "in.npy", tmp_path / "out.npy"


def make_first(folder):
    """Return a function that says whether a tile is seen for the first time by any process."""
    folder = str(folder)

    def is_first(x):
        try:
            Path(folder, f"seen {float(x.flat[0]):.6f}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    return is_first


def test_short_tasks_are_batched(executor, tmp_path):
    source, before, after = make_files(tmp_path, (400, 100))
    assert count_workers(executor) == 2
    plan = plan_tiles(before, after, tile=(5, 5))
    report = plan.run(np.negative, executor, manifest=tmp_path / "done")
    assert report.tasks == 1600
    assert (np.load(after) == -source).all()
    assert len((tmp_path / "done").read_bytes().splitlines()) == 1601


def test_failures_and_killed_workers_are_tried_again(executor, tmp_path):
    source, before, after = make_files(tmp_path, (60, 40))
    is_first, kill, process = make_first(tmp_path), os.kill, os.getpid

    def compute(x, y):
        if is_first(x):
            if abs(float(x.flat[0])) < 0.5:
                kill(process(), signal.SIGKILL)
            raise OSError("not now")
        y[...] = -x

    report = plan_tiles(before, after, tile=(10, 10)).run(compute, executor, retries=4)
    assert report.tasks == 24
    assert report.retried >= 24
    assert (np.load(after) == -source).all()


def test_a_task_that_always_kills_its_worker_is_named(executor, tmp_path):
    source, before, after = make_files(tmp_path, (60, 40))
    victim, kill, process = source[20, 30], os.kill, os.getpid

    def compute(x, y):
        if x[0, 0] == victim:
            kill(process(), signal.SIGKILL)
        y[...] = -x

    message = r"task 11, which writes \[20:30, 30:40\], failed 3 times; last error: WorkerCrashedError"
    with pytest.raises(TransferError, match=message):
        plan_tiles(before, after, tile=(10, 10)).run(compute, executor)


def test_a_task_that_takes_too_long_is_tried_again(executor, tmp_path):
    source, before, after = make_files(tmp_path, (60, 40))
    is_first, victim, pause = make_first(tmp_path), source[20, 30], time.sleep

    def compute(x, y):
        if x[0, 0] == victim and is_first(x):
            pause(3)
            y[...] = 7
            return
        y[...] = -x

    report = plan_tiles(before, after, tile=(10, 10)).run(compute, executor, timeout=1)
    assert report.tasks == 24
    assert report.retried >= 1
    time.sleep(3)
    assert (np.load(after) == -source).all()


def test_an_error_of_a_task_keeps_its_type(executor, tmp_path):
    _, before, after = make_files(tmp_path, (60, 40))
    with pytest.raises(TransferError, match="failed 1 times; last error: ZeroDivisionError") as caught:
        plan_tiles(before, after, tile=(20, 20)).run(lambda x, y: 1 // 0, executor, retries=0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_cancelled_calls_end(executor):
    pause = time.sleep

    def wait_long():
        for _ in range(600):
            pause(0.1)

    futures = [executor.submit(wait_long) for _ in range(4)]
    time.sleep(1)
    assert all(future.cancel() for future in futures)
    assert all(future.cancelled() for future in futures)
    assert executor.submit(int, "11", base=8).result(timeout=30) == 9, "what was cancelled still holds the workers"


def test_an_executor_that_is_shut_down_takes_no_more(executor):
    with RayExecutor(num_cpus=2) as other:
        assert other.num_workers == 1
        future = other.submit(sum, [1, 2])
    assert future.result() == 3
    with pytest.raises(RuntimeError, match="after shutdown"):
        other.submit(sum, [])
    assert not wait([executor.submit(sum, [1])]).not_done
