# SPDX-License-Identifier: Apache-2.0
"""A plan on a real Dask cluster of processes, one of which is killed in the middle: the result is complete."""

import os
import signal
import time

import numpy as np
import pytest

from tilewright.tiling import plan_tiles

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

# What the cluster says while a worker dies is not ours to judge.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def client(tmp_path):
    settings = {"distributed.scheduler.allowed-failures": 3, "temporary-directory": str(tmp_path)}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


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
