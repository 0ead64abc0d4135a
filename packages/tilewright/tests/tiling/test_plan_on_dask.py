# SPDX-License-Identifier: Apache-2.0
"""A plan on a real Dask cluster of processes: retries run again, tasks are batched, a killed worker does not matter."""

import os
import signal
import time

import numpy as np
import pytest

from tilewright import TransferError
from tilewright.tiling import plan_tiles
from tilewright.tiling.tile_plan import count_workers

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

# What the cluster says while a worker dies is not ours to judge.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("dask")
    settings = {"distributed.scheduler.allowed-failures": 3, "temporary-directory": str(tmp_path)}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


def made(tmp_path, shape):
    source = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    np.save(tmp_path / "in.npy", source)
    np.lib.format.open_memmap(tmp_path / "out.npy", "w+", np.float32, shape).flush()
    return source, tmp_path / "in.npy", tmp_path / "out.npy"


def test_retries_run_again(client, tmp_path):
    """Dask takes equal calls for one: a task that was tried again got its old failure back."""
    source, before, after = made(tmp_path, (60, 40))
    folder = str(tmp_path)

    def flaky(x, y):
        import os
        import pathlib

        name = pathlib.Path(folder, f"{abs(float(x[0, 0])):.6f}")
        tries = len(list(pathlib.Path(folder).glob(f"{name.name}.*")))
        pathlib.Path(f"{name}.{tries}-{os.getpid()}").touch()
        if tries < 2:
            raise OSError("not now")
        y[...] = -x

    report = plan_tiles(before, after, tile=(20, 20)).run(flaky, client.get_executor(), retries=2)
    assert (report.tasks, report.retried) == (6, 12)
    assert (np.load(after) == -source).all()
    with pytest.raises(TransferError, match="failed 2 times; last error: ZeroDivisionError") as caught:
        plan_tiles(before, after, tile=(20, 20)).run(lambda x, y: 1 // 0, client.get_executor(), retries=1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_short_tasks_are_submitted_together_and_as_many_as_the_cluster_takes(client, tmp_path):
    source, before, after = made(tmp_path, (400, 100))
    executor, sizes, most = client.get_executor(), [], []
    submit = executor.submit

    def watched(*work):
        sizes.append(len(work[2]))  # of the batch
        future = submit(*work)
        under_way.append(future)
        most.append(sum(not each.done() for each in under_way))
        return future

    under_way = []
    executor.submit = watched
    plan = plan_tiles(before, after, tile=(5, 5))
    began = time.monotonic()
    report = plan.run(np.negative, executor, manifest=tmp_path / "done")
    took = time.monotonic() - began
    assert report.tasks == len(plan) == 1600
    assert 1600 <= sum(sizes) < 2000  # a batch may give back tasks that it has no time for
    assert max(sizes) >= 8  # they take a millisecond each
    assert len(sizes) < 600, f"{len(sizes)} submissions in {took:.2f} s"
    assert count_workers(executor) == 2
    assert max(most) <= 2 * 2 + 2
    assert (np.load(after) == -source).all()
    assert len((tmp_path / "done").read_bytes().splitlines()) == 1 + 1600  # one line for each task


def test_a_cluster_that_grows_gets_more_to_do(client, tmp_path):
    _, before, after = made(tmp_path, (100, 100))
    executor, under_way, most = client.get_executor(), [], []
    submit = executor.submit

    def watched(*work):
        under_way.append(submit(*work))
        most.append(sum(not each.done() for each in under_way))
        return under_way[-1]

    executor.submit = watched
    pause = time.sleep
    grown = []

    def slow(x, y):
        pause(0.04)
        y[...] = x

    def progress(done, _):
        if done >= 5 and not grown:  # tasks may end several at a time
            grown.append(done)
            client.cluster.scale(3)
            client.wait_for_workers(3)

    plan_tiles(before, after, tile=(5, 10)).run(slow, executor, progress=progress)
    assert max(most[:9]) == 6
    assert max(most) == 8
    client.cluster.scale(2)


def test_a_killed_worker_does_not_matter(client, tmp_path):
    source = np.random.default_rng(7).standard_normal((200, 120)).astype(np.float32)
    np.save(tmp_path / "in.npy", source)
    np.lib.format.open_memmap(tmp_path / "out.npy", "w+", np.float32, source.shape).flush()
    pause = time.sleep  # what a worker needs travels with the function

    def blurred(x, y):
        pause(0.02)
        y[...] = x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]

    plan = plan_tiles(tmp_path / "in.npy", tmp_path / "out.npy", tile=(20, 20), overlap=1, pad="reflect")
    killed = []

    def progress(done, _):
        if done >= 10 and not killed:
            victim = next(iter(client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    report = plan.run(
        blurred, client.get_executor(), in_flight=8, retries=5, manifest=tmp_path / "done", progress=progress
    )
    assert killed
    assert report.tasks == len(plan) == 60
    around = np.pad(source, 1, mode="reflect")
    expected = source + around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)
    assert plan.run(blurred, manifest=tmp_path / "done").skipped == 60
