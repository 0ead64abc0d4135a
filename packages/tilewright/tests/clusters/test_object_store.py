# SPDX-License-Identifier: Apache-2.0
"""Zarr to zarr over a real object store server, by a few processes: dropped connections, a killed worker, a resume."""

import functools
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from tilewright import TransferError
from tilewright.tiling import ClusterModel, plan_tiles, simulate_run

zarr = pytest.importorskip("zarr", minversion="3")
s3fs = pytest.importorskip("s3fs")
pytest.importorskip("moto")
pytest.importorskip("flask")

from .object_server import ObjectServer  # noqa: E402  (needs moto)

pytestmark = pytest.mark.filterwarnings("default")  # those of the clients

SHAPE, CHUNK, TILE = (256, 192), (32, 32), (64, 64)
processes = functools.partial(ProcessPoolExecutor, 3, mp_context=get_context("spawn"))


@pytest.fixture
def credentials(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")


def make_arrays(server):
    """Return a source and a target in a bucket."""
    plain = s3fs.S3FileSystem(endpoint_url=server.url)
    plain.makedirs("data", exist_ok=True)
    source = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    arrays = []
    for name in ("in", "out"):
        # s3fs tries five times; botocore below it would try five times each, which takes a minute
        once = {"retries": {"total_max_attempts": 1}}
        files = s3fs.S3FileSystem(asynchronous=True, endpoint_url=server.url, config_kwargs=once)
        store = zarr.storage.FsspecStore(files, path=f"data/{name}.zarr")
        arrays.append(zarr.create_array(store, shape=SHAPE, chunks=CHUNK, dtype="f4", compressors=None, overwrite=True))
    arrays[0][...] = source
    return source, *arrays


def cross(x, y):
    """Write the sum of each element and its four neighbours."""
    y[...] = x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]


def expected(source):
    around, out = np.pad(source, 1), np.empty_like(source)
    cross(around, out)
    return out


class Deadly:
    """Kills its process the first time that it sees one tile."""

    def __init__(self, folder, element):
        self.folder, self.element = str(folder), element

    def __call__(self, x, y):
        if x[1, 1] == self.element:
            try:
                Path(self.folder, "killed").touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        cross(x, y)


@pytest.mark.parametrize("client", ["s3fs", "obstore"])
def test_the_estimate_counts_what_the_server_counts(credentials, client):
    with ObjectServer() as server:
        source, before, after = make_arrays(server)
        if client == "obstore":
            before, after = (open_with_obstore(server, name, mode) for name, mode in (("in", "r"), ("out", "r+")))
        plan = plan_tiles(before, after, TILE, overlap=1)
        estimate = simulate_run(plan, ClusterModel(workers=3))
        server.requests.clear()
        plan.run(cross)
        assert (server.requests["GET chunk"], server.requests["PUT chunk"]) == (estimate.reads, estimate.writes)
        assert np.array_equal(after[...], expected(source))
        after[...] = 0
        server.requests.clear()
        report = plan.run(cross, processes, in_flight=3)
        asked = dict(server.requests)
        assert report.tasks == len(plan) == 12
        assert np.array_equal(after[...], expected(source))
    first_looks = 3 * (4 * 4 + 4)  # each worker's first result is compared: its source and target are read once here
    assert estimate.writes == asked["PUT chunk"] == 48
    assert estimate.reads <= asked["GET chunk"] <= estimate.reads + first_looks


def open_with_obstore(server, name, mode):
    store = pytest.importorskip("obstore.store")
    bucket = store.S3Store("data", prefix=f"{name}.zarr", endpoint=server.url, client_options={"allow_http": True})
    return zarr.open_array(zarr.storage.ObjectStore(bucket), mode=mode)


def test_dropped_connections_and_a_killed_worker_do_not_matter(credentials, tmp_path):
    with ObjectServer(latency=0.01) as server:
        source, before, after = make_arrays(server)
        plan = plan_tiles(before, after, TILE, overlap=1)
        server.dropped = 31  # the client tries again by itself
        server.outages["/data/out.zarr/c/2/2"] = 100  # and gives up after ten requests
        with pytest.raises(TransferError, match=r"task 4, which writes \[64:128, 64:128\], failed 1 times"):
            plan.run(cross, processes, retries=0, manifest=tmp_path / "first")
        server.outages["/data/out.zarr/c/2/2"] = 25
        report = plan.run(
            Deadly(tmp_path, source[128, 64]), processes, retries=4, timeout=60, manifest=tmp_path / "done"
        )
        server.dropped = 0
        assert (tmp_path / "killed").exists()
        assert report.replaced == 1
        assert report.tasks == 12
        assert server.requests["dropped"] >= 3
        assert report.retried >= 1
        assert np.array_equal(after[...], expected(source))
        again = plan.run(Deadly(tmp_path, source[128, 64]), processes, manifest=tmp_path / "done")
        assert again.skipped == 12


def test_parts_of_a_plan_meet_in_one_manifest(credentials, tmp_path):
    with ObjectServer() as server:
        source, before, after = make_arrays(server)
        plan = plan_tiles(before, after, TILE, overlap=1)
        for i in (0, 2):
            plan.part(i, 3).run(cross, processes, manifest=tmp_path / f"part{i}")
        merged = plan.merge_manifests([tmp_path / "part0", tmp_path / "part2"], tmp_path / "all")
        assert str(merged) == "8 of 12 tasks are done; missing: 4 to 7"
        assert plan.run(cross, processes, manifest=tmp_path / "all").tasks == 4
        assert np.array_equal(after[...], expected(source))
