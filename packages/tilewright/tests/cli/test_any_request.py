# SPDX-License-Identifier: Apache-2.0
"""Whatever is asked, the answer is an answer or a one-line error: never a bug, never a traceback."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.cli.console import ExitCode
from tilewright.files import write_sample_llama, write_sample_model

from ..cases import examples
from .runner import invoke
from .test_program import COMMANDS

numbers = st.integers(-1, 100).map(str) | st.sampled_from(["0", "1", "32", "999999999999", "x", ""])
shapes = st.lists(st.integers(0, 200).map(str) | numbers, max_size=4).map("x".join)
OPTIONS = {
    "--dtype": st.sampled_from(
        ["bfloat16", "float32", "bfloat8_b", "bfloat4_b", "mxfp6_e2m3", "nvfp4", "bool", "int9"]
    ),
    "--layout": st.sampled_from(["tile", "row_major", "diagonal"]),
    "--tile": st.sampled_from(["32x32", "16x32", "1x16", "5x5", "32", "32x32x32"]),
    "--alignment": st.sampled_from(["32x32", "0x0", "1", "64x64x64x64x64", "7x3"]),
    "--shard": st.sampled_from(["height", "width", "block", "nd", "dims", "none"]),
    "--grid": st.sampled_from(["8x8", "1x1", "0x0", "99x99", "0,0-3,1", "3,1-0,0", "0,0-1,1+1,1-2,2", "8"]),
    "--shard-shape": shapes,
    "--shard-dims": st.sampled_from(["0", "0,1", "-1", "7", "a"]),
    "--orientation": st.sampled_from(["row_major", "col_major"]),
    "--distribution": st.sampled_from(["round_robin_1d", "grid_2d", "contiguous_1d"]),
    "--buffer": st.sampled_from(["l1", "dram", "tape"]),
    "--chip": st.sampled_from(["wormhole_n150", "p150", "quasar", "abacus"]),
    "--dispatch": st.sampled_from(["fast", "slow"]),
    "--harvested": numbers,
}
placements = st.lists(st.sampled_from(sorted(OPTIONS)), unique=True, max_size=6).flatmap(
    lambda names: st.tuples(*[OPTIONS[name].map(lambda value, name=name: [name, value]) for name in names])
)


def asked(*arguments):
    """Return the outcome of a request, which must not be a bug, nor more than one line of errors."""
    found = invoke(*arguments)
    assert found.exit_code in (0, 1, 2, 3), f"{arguments}: {found.stderr}"
    assert found.exit_code < 2 or len(found.stderr.splitlines()) == 1, f"{arguments}: {found.stderr}"
    return found


@examples(150)
@given(shapes, placements, st.lists(numbers, max_size=4).map(",".join))
def test_explain(shape, placement, at):
    options = [word for pair in placement for word in pair]
    asked("explain", *options, f"--at={at}", "--", shape)
    asked("explain", *options, "--bank", "0", "--address", "1048640", "--", shape)


@examples(80)
@given(st.lists(shapes, min_size=1, max_size=2), placements, st.sampled_from(["0", "100KiB", "9GiB", "-1"]))
def test_fit(tensors, placement, circular):
    options = [word for pair in placement for word in pair]
    found = asked("fit", *options, f"--cb={circular}", "--json", "--", *tensors)
    json.loads(found.stdout)


targets = st.sampled_from(
    ["dram", "l1", "", "shard=height:grid=2x1", "shard=width", "buffer=tape", "dtype=float32", "64x64:buffer=l1",
     "here", "MemoryConfig(", "TensorSpec()", "{}", "shard", ":", "[64,64]"]
)  # fmt: skip


@examples(60)
@given(shapes, targets, placements, st.sampled_from([[], ["--reads"], ["--map"], ["--links"], ["--best"]]))
def test_reshard(shape, target, placement, more):
    options = [word for pair in placement for word in pair]
    found = asked("reshard", *options, *more, "--json", "--", shape, target)
    json.loads(found.stdout)
    asked("reshard", *options, *more, "--", shape, target)


def test_every_verb_answers_in_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sample_model("model.safetensors", layers=1)
    write_sample_llama("small-llama")
    np.save("a.npy", np.arange(12.0).reshape(3, 4))
    Path("report.json").write_text('[{"counter": 0, "node_type": "capture_start"}]', encoding="utf-8")
    Path("a.layouts").write_text("(4,8):(8,1)", encoding="utf-8")
    Path("small.mojo").write_text("print(1)", encoding="utf-8")
    requests = {
        "convert": ["model.safetensors", "tiles", "--dtype", "bfloat8_b"],
        "prepare": ["small-llama", "cache", "--for", "N300"],
        "verify": ["tiles"],
        "inspect": ["tiles"],
        "diff": ["model.safetensors", "tiles", "--ulp", "1"],
        "match": ["model.safetensors", "tiles"],
        "explain": ["4x60x90", "--at", "2,33,17"],
        "fit": ["64x64"],
        "reshard": ["64x64", "l1"],
        "conflicts": ["(32,32):(32,1)", "--threads", "32:1", "--fix"],
        "translate": ["(4,8):(8,1)"],
        "audit": ["report.json"],
        "show": ["64x64"],
        "stream": ["copy", "a.npy", "b.npy"],
        "run": ["small.mojo"],
        "doctor": [],
        "completion": ["bash"],
        "check": ["a.layouts"],
    }
    # explore and mcp serve until they are stopped, and rehearse needs ttnn
    assert set(COMMANDS) - {"explore", "mcp", "rehearse"} <= set(requests)
    for name in [name for name in requests if name in COMMANDS]:
        found = invoke(name, *requests[name], "--json")
        assert found.exit_code == ExitCode.OK, f"{name}: {found.stderr}"
        lines = [json.loads(line) for line in found.stdout.splitlines()]
        assert lines, name
        assert all(isinstance(line, dict) for line in lines)


@pytest.mark.parametrize("name", ["bfloat8_b", "nvfp4", "mxint8"])
def test_every_block_format_is_explained(name):
    spec = tw.TensorSpec((64, 64), name, chip="wormhole_n150")
    found = json.loads(asked("explain", "64x64", "--dtype", name, "--at", "33,17", "--json").stdout)
    assert found["byte"] == spec.where(33, 17).byte
