# SPDX-License-Identifier: Apache-2.0
"""`explore`: it serves until it is interrupted, starts with what was asked, and prints the only address that works."""

import json
import signal
import urllib.error
import urllib.request
from urllib.parse import parse_qsl

import numpy as np

import tilewright as tw
from tilewright.cli.explore import remove_key
from tilewright.explorer.server import Explorer


def test_it_serves_until_it_is_interrupted(start):
    shape = ("4x60x90", "--dtype", "bfloat8_b", "--shard", "block", "--grid", "8x8")
    process = start("explore", *shape, "--no-browser", "--port", "0", "--json")
    serving = json.loads(process.stdout.readline())
    url, _, fragment = serving["link"].partition("#")
    words = dict(part.split("=", 1) for part in fragment.split("&"))
    assert serving["url"] == url
    assert (words["shape"], words["memory"], words["grid"]) == ("4x60x90", "block_sharded", "8x8")
    question = f"{url}api/answer/placement?shape=64x64"
    with urllib.request.urlopen(urllib.request.Request(question, headers={"X-Tilewright-Key": words["key"]})) as answer:
        assert json.load(answer)["fit"]["fits"]
    try:
        urllib.request.urlopen(question)
        refused = None
    except urllib.error.HTTPError as problem:
        refused = problem.code
        problem.close()
    assert refused == 401
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert json.loads(out) == {"event": "ended"}
    assert err == ""


def test_a_shared_link_opens_without_the_other_ones_key(start):
    link = "http://127.0.0.1:8654/#key=theirs&shape=64x64&dtype=bfloat16"
    process = start("explore", link, "--no-browser", "--port", "0")
    lines = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert lines[2].strip().endswith("&shape=64x64&dtype=bfloat16")
    assert "theirs" not in lines[2]


def test_the_key_is_all_that_is_left_out():
    assert remove_key("a=1&key=x&b=%26key%3D") == "a=1&b=%26key%3D"


def test_what_cannot_be_explored_is_said(run):
    assert "shipped chips" in run("explore", "4x4", "--harvested", "2", status=2).err
    assert "shard" in run("explore", "100x64", "--layout", "tile", "--shard", "height", "--shard-shape", "25x64",
                          "--grid", "4x1", status=2).err  # fmt: skip


def test_a_port_that_is_taken_is_said(run):
    with Explorer(port=0) as other:
        said = run("explore", "--port", other.server_port, "--no-browser", status=2).err
        assert "cannot listen on port" in said


def test_without_a_port_any_free_one_will_do():
    with Explorer() as first, Explorer() as second:
        assert first.server_port != second.server_port


def test_it_starts_with_a_tensor_of_a_file_and_its_mesh(start, run, tmp_path):
    rules = {"w": {"mesh": [1, 2], "cut": 1, "shard": "width", "buffer": "dram", "chip": "n150"}}
    tw.convert({"w": np.zeros((64, 768), np.float32), "b": np.zeros(64)}, tmp_path / "out", rules=rules)
    process = start("explore", "out", "--tensor", "w", "--device", "1", "--no-browser", "--port", "0", "--json")
    serving = json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    words = dict(parse_qsl(serving["link"].partition("#")[2]))
    assert (words["shape"], words["mesh"], words["cut"], words["device"]) == ("64x768", "1x2", "1", "0,1")
    assert (words["memory"], words["grid"], words["buffer"]) == ("width_sharded", "12x1", "dram")
    assert "not on a mesh of 1 x 2" in run("explore", "out", "--tensor", "w", "--device", "5", status=2).err
    assert "not on a mesh" in run("explore", "out", "--tensor", "b", "--device", "0", status=2).err
    assert "--device needs a file" in run("explore", "4x4", "--device", "0", status=2).err
