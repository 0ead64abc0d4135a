# SPDX-License-Identifier: Apache-2.0
"""The same plan over processes, over machines and in parts: the same files."""

import json
import os
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import tilewright as tw
from tilewright.conversion import plan_conversion, run_plan
from tilewright.conversion.work_folder import WorkFolder

from ..files.samples import write_safetensors
from .checkpoints import checkpoint, contents, converted, started

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    checkpoint(folder / "m.safetensors", tensors=6)
    np.savez_compressed(folder / "z.npz", packed=np.arange(400 * 40, dtype=np.float32).reshape(400, 40))
    return [folder / "m.safetensors", folder / "z.npz"]


@pytest.fixture(scope="module")
def expected(source, tmp_path_factory):
    """Return what one process makes of the source, for each kind of output."""
    folder = tmp_path_factory.mktemp("expected")
    outs = {"tensorbin": folder / "out", "safetensors": folder / "out.safetensors"}
    for to, out in outs.items():
        tw.convert(source, out, to, dtype="bfloat8_b")
    return {to: contents(out) for to, out in outs.items()}


class Clumsy(Executor):
    """An executor that loses the first attempt at everything."""

    def __init__(self):
        self.seen = set()

    def submit(self, function, item, *arguments):
        future = Future()
        if item.name not in self.seen:
            self.seen.add(item.name)
            future.set_exception(ConnectionError("the worker is gone"))
        else:
            future.set_result(function(item, *arguments))
        return future


def executors():
    yield "threads", lambda: ThreadPoolExecutor(2)
    yield "processes", lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    yield "clumsy", Clumsy


@pytest.mark.parametrize(("name", "make"), list(executors()), ids=lambda each: each if isinstance(each, str) else "")
@pytest.mark.parametrize("to", ["tensorbin", "safetensors"])
def test_executors(tmp_path, source, expected, name, make, to):
    out = tmp_path / ("out" if to == "tensorbin" else "out.safetensors")
    events = []
    with make() as executor:
        report = tw.convert(source, out, to, dtype="bfloat8_b", executor=executor, progress=events.append)
    assert report.complete
    assert contents(out) == expected[to]
    assert events[-1].bytes_done == events[-1].bytes_total


def elsewhere():
    os.chdir("/")


def test_workers_in_another_directory(tmp_path, source, expected, monkeypatch):
    monkeypatch.chdir(tmp_path)
    relative = [os.path.relpath(each) for each in source]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=elsewhere) as executor:
        tw.convert(relative, "out", dtype="bfloat8_b", executor=executor)
    assert contents(tmp_path / "out") == expected["tensorbin"]


def test_errors_of_workers_are_raised(tmp_path):
    write_safetensors(tmp_path / "m.safetensors", {"ids": np.array([2**40])})
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor,
        pytest.raises(tw.FormatError, match="ids"),
    ):
        tw.convert(tmp_path / "m.safetensors", tmp_path / "out", executor=executor)


@pytest.mark.parametrize("to", ["tensorbin", "safetensors"])
def test_parts(tmp_path, source, expected, to):
    out = tmp_path / ("out" if to == "tensorbin" else "out.safetensors")
    plan = plan_conversion(source, out, to, dtype="bfloat8_b")
    for i in (2, 0, 1):
        report = run_plan(plan, part=(i, 3))
        assert report.complete == (i == 1)
        assert report.converted == len(plan.part(i, 3))
        assert (out.exists() if to == "safetensors" else (out / "tilewright.json").exists()) == report.complete
        if not report.complete:
            assert run_plan(plan, part=(i, 3)).converted == 0  # once more does no harm
    assert contents(out) == expected[to]
    with pytest.raises(tw.MemoryConfigError, match="force"):
        run_plan(plan, part=(0, 3), force=True)


@pytest.mark.parametrize("to", ["tensorbin", "safetensors"])
def test_parts_at_the_same_time(tmp_path, source, expected, to):
    out = tmp_path / ("out" if to == "tensorbin" else "out.safetensors")
    processes = [started(*source, out, "--dtype", "bfloat8_b", "--part", f"{i}/3", "--json") for i in range(3)]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said
    assert any(json.loads(text.splitlines()[-1])["complete"] for text, _ in said)
    assert contents(out) == expected[to]


def test_parts_of_a_file_that_was_lost(tmp_path, source, expected):
    """The journal of a part says that its tensors are done, and the file they were in is gone."""
    out = tmp_path / "out.safetensors"
    plan = plan_conversion(source, out, dtype="bfloat8_b")
    run_plan(plan, part=(0, 2))
    (WorkFolder(out, single=True).drafts / "payload").unlink()
    assert not run_plan(plan, part=(1, 2)).complete
    assert run_plan(plan, part=(0, 2)).complete
    assert contents(out) == expected["safetensors"]


@pytest.mark.filterwarnings("default")  # what the cluster says when it starts and ends is not ours to judge
def test_a_dask_cluster_of_processes(tmp_path, source, expected):
    distributed = pytest.importorskip("distributed")
    out = tmp_path / "out"
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
    ):
        ended = converted(*source, out, "--dtype", "bfloat8_b", "--dask", cluster.scheduler_address)
    assert ended.returncode == 0, ended.stderr
    assert contents(out) == expected["tensorbin"]


def test_a_dask_cluster_that_is_not_there(tmp_path, source):
    pytest.importorskip("distributed")
    impatient = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    process = started(*source, tmp_path / "out", "--dask", "tcp://127.0.0.1:9", **impatient)
    _, said = process.communicate()
    assert process.returncode == 2, said
    assert "no Dask scheduler at" in said
    assert not os.path.exists(tmp_path / "out")
