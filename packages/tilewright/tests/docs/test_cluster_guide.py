# SPDX-License-Identifier: Apache-2.0
"""The guide to clusters keeps its word on a real one: a Dask cluster of processes."""

import os

import numpy as np
import pytest

from .pages import DOCS
from .running import run_page, working_in

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


@pytest.mark.filterwarnings("default")  # Dask's own
def test_the_plan_of_the_guide_runs_on_dask(tmp_path, monkeypatch):
    names = run_page(DOCS / "guides" / "run-on-a-cluster.md", tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    with working_in(tmp_path):
        wanted = np.load("out.npy")
        np.lib.format.open_memmap("out.npy", "w+", np.float32, wanted.shape).flush()
        with (
            dask.config.set({"temporary-directory": str(tmp_path)}),
            distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        ):
            report = names["on_dask"](cluster.scheduler_address)
        assert report.tasks == 16
        assert wanted.any()
        assert (np.load("out.npy") == wanted).all()
