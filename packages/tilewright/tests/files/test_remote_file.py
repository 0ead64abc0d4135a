# SPDX-License-Identifier: Apache-2.0
"""Files behind URLs: ranges from a server that drops connections, refuses, changes files, or knows no ranges."""

import io
import json
import pickle
import shutil

import numpy as np
import pytest

import tilewright as tw
from tilewright.files import http_ranges, open_tensors, remote_file
from tilewright.files.remote_file import ObjectRanges, RemoteFile, UrlPath, is_url, resolve_url

from ..cli.runner import invoke
from .onnx_samples import MATRIX, external, initializer, model
from .range_server import serve
from .samples import safetensors_bytes
from .test_torch_checkpoint import GOLDEN

ARRAYS = {
    "a": np.arange(1 << 18, dtype=np.float32).reshape(512, 512),
    "b": np.arange(12, dtype=np.uint8).reshape(3, 4),
    "c": np.ones((700, 300), np.float32),
}


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(http_ranges, "FIRST_WAIT", 0.001)
    monkeypatch.setenv("no_proxy", "*")
    with serve() as state:
        state.files["/m/model.safetensors"] = safetensors_bytes(ARRAYS)
        yield state


def test_only_what_is_needed_is_read(server):
    found = open_tensors(f"{server.url}/m/model.safetensors")
    assert (found.kind, list(found)) == ("safetensors", ["a", "b", "c"])
    assert str(found.path) == f"{server.url}/m/model.safetensors"
    assert server.sent <= 1 << 18
    assert len(server.requests) == 1
    server.sent = 0
    np.testing.assert_array_equal(found["b"].read(), ARRAYS["b"])
    np.testing.assert_array_equal(found["a"].read((slice(400, 402), slice(8, 9))), ARRAYS["a"][400:402, 8:9])
    assert server.sent < 10_000
    assert found["b"].raw.tobytes() == ARRAYS["b"].tobytes()


@pytest.mark.parametrize("fault", ["drop", "close", "503", "429", "500"])
def test_faults_are_retried(server, fault, caplog):
    server.faults = [fault, fault]
    found = open_tensors(f"{server.url}/m/model.safetensors")
    server.faults = [fault] * 3
    np.testing.assert_array_equal(found["a"].read(), ARRAYS["a"])
    assert not server.faults
    assert "trying again in" in caplog.text
    assert all(record.name == "tilewright.files.http_ranges" for record in caplog.records)


def test_a_dropped_range_is_continued(server):
    found = open_tensors(f"{server.url}/m/model.safetensors")
    server.sent, server.faults = 0, ["drop"] * 12
    np.testing.assert_array_equal(found["a"].read(), ARRAYS["a"])
    assert server.sent == ARRAYS["a"].nbytes  # nothing twice


def test_a_server_that_stays_away(server):
    found = open_tensors(f"{server.url}/m/model.safetensors")
    server.every = "503"
    with pytest.raises(tw.TransferError, match="after 6 attempts"):
        found["a"].read()


def test_a_server_without_ranges(server):
    server.every = "whole"
    with pytest.raises(tw.FileFormatError, match="ignores ranges of bytes"):
        open_tensors(f"{server.url}/m/model.safetensors")


def test_answers_to_other_questions(server):
    server.every = "shift"
    with pytest.raises(tw.FileFormatError, match="expected bytes from 0 on"):
        open_tensors(f"{server.url}/m/model.safetensors")


@pytest.mark.parametrize("change", [lambda data: data[:-1] + b"x", lambda data: data + b"x"])
def test_files_that_change(server, change):
    found = open_tensors(f"{server.url}/m/model.safetensors")
    server.files["/m/model.safetensors"] = change(server.files["/m/model.safetensors"])
    with pytest.raises(tw.FileFormatError, match="has changed"):
        found["a"].read()


def test_missing_and_forbidden_files(server):
    with pytest.raises(FileNotFoundError):
        open_tensors(f"{server.url}/m/none.safetensors")
    server.every = "403"
    with pytest.raises(PermissionError, match="HF_TOKEN"):
        open_tensors(f"{server.url}/m/model.safetensors")


def test_empty_files(server):
    server.files["/m/x.bin"] = b""
    with pytest.raises(tw.FileFormatError, match="is empty"):
        open_tensors(f"{server.url}/m/x.bin")


def test_every_format_by_url(server):
    for name in ("views.pth", "legacy_views.bin"):
        server.files[f"/{name}"] = (GOLDEN / name).read_bytes()
        local, remote = open_tensors(GOLDEN / name), open_tensors(f"{server.url}/{name}")
        for key, tensor in local.items():
            np.testing.assert_array_equal(remote[key].read(), tensor.read())
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, **ARRAYS)
        server.files["/x.npz"] = file.getvalue()
        np.testing.assert_array_equal(open_tensors(f"{server.url}/x.npz")["c"].read(), ARRAYS["c"])
    server.files["/w.data"] = MATRIX.tobytes()
    server.files["/m.onnx"] = model(initializer("w", (2, 3), 1, more=external(location="w.data")))
    np.testing.assert_array_equal(open_tensors(f"{server.url}/m.onnx")["w"].read(), MATRIX)
    server.files["/m.onnx"] = model(initializer("w", (2, 3), 1, more=external(location="../w.data")))
    with pytest.raises(tw.FileFormatError, match="points outside"):
        open_tensors(f"{server.url}/m.onnx")


def put_sharded_model(server, root):
    homes = {}
    for k, (key, array) in enumerate(ARRAYS.items()):
        server.files[f"{root}s{k}.safetensors"] = safetensors_bytes({key: array})
        homes[key] = f"s{k}.safetensors"
    index = json.dumps({"metadata": {}, "weight_map": homes}).encode()
    server.files[f"{root}model.safetensors.index.json"] = index


def test_models_of_the_hub(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_TOKEN", "secret")
    put_sharded_model(server, "/o/m/resolve/main/")
    found = open_tensors("hf://o/m")
    assert (found.kind, list(found)) == ("sharded safetensors", list(ARRAYS))
    np.testing.assert_array_equal(found["c"].read(), ARRAYS["c"])
    assert {token for _, _, token in server.requests} == {"Bearer secret"}
    server.files["/o/m/resolve/refs%2Fpr%2F1/x.safetensors"] = safetensors_bytes({"a": ARRAYS["b"]})
    assert list(open_tensors("hf://o/m@refs%2Fpr%2F1/x.safetensors")) == ["a"]
    assert list(open_tensors(f"{server.url}/o/m")) == list(ARRAYS)
    assert list(open_tensors(f"{server.url}/o/m/blob/main/s1.safetensors")) == ["b"]
    with pytest.raises(FileNotFoundError, match="name a file"):
        open_tensors("hf://o/other")
    with pytest.raises(tw.FileFormatError, match=r"expected hf://owner/model"):
        open_tensors("hf://o")


def test_a_token_is_not_told_to_another_host(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_TOKEN", "secret")
    with serve() as other:
        other.files["/blob"] = safetensors_bytes(ARRAYS)
        server.redirects["/o/m/resolve/main/x.safetensors"] = f"{other.url}/blob"
        assert list(open_tensors("hf://o/m/x.safetensors")) == list(ARRAYS)
        assert {token for _, _, token in other.requests} == {None}
        assert {token for _, _, token in server.requests} == {"Bearer secret"}


def test_remote_files_are_sent_to_workers(server):
    found = pickle.loads(pickle.dumps(open_tensors(f"{server.url}/m/model.safetensors")["a"]))  # noqa: S301
    np.testing.assert_array_equal(found.read(), ARRAYS["a"])
    server.files["/m/model.safetensors"] += b"x"
    with pytest.raises(tw.FileFormatError, match="has changed"):
        found.read()


def test_a_file_as_a_whole(server, monkeypatch):
    file = RemoteFile(f"{server.url}/m/model.safetensors")
    assert file.map().tobytes() == server.files["/m/model.safetensors"]
    monkeypatch.setattr(remote_file, "_MAX_MAPPED_BYTES", 10)
    with pytest.raises(tw.FileFormatError, match="download it"):
        RemoteFile(f"{server.url}/m/model.safetensors").map()


def test_ranges_near_each_other_are_one_request(server):
    file = RemoteFile(f"{server.url}/m/model.safetensors")
    server.requests.clear()
    runs = [(1000, 10), (1010, 5), (2000, 7), (900_000, 4), (500, 3)]
    out = np.zeros(sum([size for _, size in runs]), np.uint8)
    file.read_runs(runs, out)
    data = server.files["/m/model.safetensors"]
    assert out.tobytes() == b"".join([data[at : at + size] for at, size in runs])
    assert len(server.requests) == 3


def test_conversions_continue_after_a_failure(server, tmp_path):
    url = f"{server.url}/m/model.safetensors"
    server.every = None
    found = open_tensors(url)
    del found
    server.faults = [None, None, *["503"] * 200]
    with pytest.raises(tw.TransferError):
        tw.convert(url, tmp_path / "out", layout="tile", jobs=1)
    server.faults = []
    report = tw.convert(url, tmp_path / "out", layout="tile", resume=True)
    assert report
    assert tw.verify(tmp_path / "out", url)
    for key, tensor in open_tensors(tmp_path / "out").items():
        np.testing.assert_array_equal(tensor.read(), ARRAYS[key])


def test_the_command_line_takes_urls(server, tmp_path):
    url = f"{server.url}/m/model.safetensors"
    shown = invoke("inspect", url)
    assert (shown.exit_code, url in shown.stdout) == (0, True)
    facts = json.loads(invoke("inspect", url, "--json").stdout)
    assert facts["files"][0]["nbytes"] == len(server.files["/m/model.safetensors"])
    out = str(tmp_path / "out")
    commands = [
        ["convert", url, out],
        ["verify", out, url],
        ["diff", url, url],
        ["explain", url, "--tensor", "a", "--at", "3,3"],
    ]
    for words in commands:
        assert invoke(*words).exit_code == 0, words
    server.every = "404"
    assert invoke("inspect", url).exit_code != 0


def test_a_cache_is_prepared_from_a_model_of_the_hub(server, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    tw.files.write_sample_llama(tmp_path / "model")
    for path in (tmp_path / "model").iterdir():
        server.files[f"/o/m/resolve/main/{path.name}"] = path.read_bytes()
    for source, out in (("hf://o/m", "remote"), (str(tmp_path / "model"), "local")):
        found = invoke("prepare", source, str(tmp_path / out), "--for", "N150")
        assert found.exit_code == 0, found.output
    remote, local = [
        {path.name: path.read_bytes() for path in (tmp_path / out).rglob("*.tensorbin")} for out in ("remote", "local")
    ]
    assert remote == local
    assert remote


def test_without_tags_the_content_is_hashed_again(server):
    server.tags = False
    url = f"{server.url}/m/model.safetensors"
    assert RemoteFile(url).time != RemoteFile(url).time


def test_objects_through_obstore(tmp_path):
    pytest.importorskip("obstore")
    (tmp_path / "a.bin").write_bytes(bytes(range(200)))
    ranges = ObjectRanges(f"file://{tmp_path}/a.bin", 16)
    assert (ranges.size, ranges.start, bool(ranges.tag)) == (200, bytes(range(16)), True)
    out = bytearray(50)
    assert ranges.read_into(180, memoryview(out)) == 20
    assert out[:20] == bytes(range(180, 200))
    with pytest.raises(FileNotFoundError, match=r"none\.bin"):
        ObjectRanges(f"file://{tmp_path}/none.bin", 16)


def test_other_systems_through_fsspec(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://m/model.safetensors", "wb") as file:
        file.write(safetensors_bytes(ARRAYS))
    found = open_tensors("memory://m/model.safetensors")
    np.testing.assert_array_equal(found["a"].read((slice(3, 5),)), ARRAYS["a"][3:5])
    with pytest.raises(FileNotFoundError):
        open_tensors("memory://m/none.safetensors")
    shutil.rmtree(tmp_path)


def test_names():
    assert is_url("hf://a/b")
    assert not is_url("C:\\x")
    assert not is_url("a:b.npy")
    path = UrlPath("https://host/a%20b/x.safetensors")
    assert (str(path), path.name, str(path.parent)) == (
        "https://host/a%20b/x.safetensors",
        "x.safetensors",
        "https://host/a%20b",
    )
    assert str(pickle.loads(pickle.dumps(path))) == str(path)  # noqa: S301
    assert resolve_url("https://host/x") == "https://host/x"


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_server_that_sends_a_few_bytes_at_a_time_is_given_up(server, size):
    found = open_tensors(f"{server.url}/m/model.safetensors")
    server.every, before = f"few {size}", len(server.requests)
    with pytest.raises(tw.TransferError, match="after 6 attempts"):
        found["a"].read()
    assert len(server.requests) - before <= 6
    with pytest.raises(tw.TransferError, match="after 6 attempts"):
        open_tensors(f"{server.url}/m/model.safetensors")


def test_a_server_that_sends_a_share_at_a_time_is_read(server):
    found = open_tensors(f"{server.url}/m/model.safetensors")
    server.every, before = "fifth", len(server.requests)
    np.testing.assert_array_equal(found["a"].read(), ARRAYS["a"])
    assert len(server.requests) - before < 100


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/m/model.safetensors",  # nobody listens
        "http://no-such-host.invalid/m/model.safetensors",
        f"http://{'x' * 300}.invalid/model.safetensors",
        "http://127.0.0.1:99999/model.safetensors",
        "hf://owner/model",
    ],
)
def test_without_a_way_to_the_server_there_is_one_attempt(server, url, monkeypatch, tmp_path):
    monkeypatch.setattr(http_ranges, "FIRST_WAIT", 1e6)  # a wait would never end
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(tw.errors.UnreachableError, match="cannot be reached"):
        open_tensors(url)
    for words in (["inspect", url], ["convert", url, str(tmp_path / "o")], ["prepare", url, "--for", "N300"]):
        answer = invoke(*words)
        assert answer.exit_code == 3, (words, answer.output, answer.stderr)
        assert "--resume" not in answer.stderr


def test_a_conversion_that_loses_its_server_can_be_resumed(server, tmp_path):
    server.faults = [None, *["503"] * 200]
    answer = invoke("convert", f"{server.url}/m/model.safetensors", str(tmp_path / "o"), "--jobs", "1")
    assert answer.exit_code == 3
    assert "continue with --resume" in answer.stderr
