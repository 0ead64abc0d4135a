# SPDX-License-Identifier: Apache-2.0
"""`tilewright convert` and `tilewright verify` as people and programs call them."""

import json
import os
import pty
import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw
from tilewright.cli import main

from ..files.samples import write_safetensors
from .checkpoints import checkpoint, command, contents


@pytest.fixture
def run(capsys):
    """Return a function that runs the command line and returns (exit status, stdout, stderr)."""

    def runs(*arguments):
        with pytest.raises(SystemExit) as end:
            main([str(each) for each in arguments])
        said = capsys.readouterr()
        return end.value.code, said.out, said.err

    return runs


@pytest.fixture
def source(tmp_path):
    return checkpoint(tmp_path / "m.safetensors", tensors=3)


def test_convert_verify_and_inspect(tmp_path, source, run):
    out = tmp_path / "out"
    code, said, _ = run("convert", source, out, "--dtype", "bfloat8_b")
    assert code == 0
    assert "4 tensors converted" in said
    assert f"{out} is complete" in said
    code, said, _ = run("verify", out, "--source", source)
    assert code == 0
    assert "good" in said
    assert "largest error" in said
    code, said, _ = run("convert", source, out, "--dtype", "bfloat8_b", "--resume")
    assert "0 tensors converted, 4 already done" in said
    os.truncate(out / "norm.bias.tensorbin", 100)
    code, said, _ = run("verify", out)
    assert code == 1
    assert "bad: norm.bias" in said


def test_events_for_programs(tmp_path, source, run):
    code, said, err = run("convert", source, tmp_path / "out", "--dtype", "bfloat8_b", "--json")
    events = [json.loads(line) for line in said.splitlines()]
    assert code == 0
    assert err == ""
    assert [each["event"] for each in events] == ["start", *["tensor"] * 4, "done", "report"]
    assert events[-2]["bytes_done"] == events[-2]["bytes_total"] == tw.open_tensors(source).nbytes
    assert events[-1]["complete"]
    code, said, _ = run("verify", tmp_path / "out", "--source", source, "--json")
    found = json.loads(said)
    assert found["good"]
    assert len(found["verdicts"]) == 4


def test_a_dry_run_writes_nothing(tmp_path, source, run):
    before = contents(tmp_path)
    code, said, _ = run("convert", source, tmp_path / "out", "--dtype", "bfloat8_b", "--transpose", "--dry-run")
    assert code == 0
    assert contents(tmp_path) == before
    assert all(len(line) <= 80 for line in said.splitlines()[1:])  # the first names the output
    assert "bfloat8_b 300x400 in 32x32" in said
    for word in ("reads 1.5", "writes", "padding", "takes about"):
        assert word in said
    code, said, _ = run("convert", source, tmp_path / "out", "--dtype", "bfloat8_b", "--dry-run", "--json")
    plan = json.loads(said)
    assert plan["bytes_in"] == tw.open_tensors(source).nbytes
    assert [each["name"] for each in plan["tensors"]] == list(tw.open_tensors(source))
    assert plan["seconds"] > 0


def test_rules_and_what_they_miss(tmp_path, source, run):
    rules = tmp_path / "rules.toml"
    rules.write_text('"*" = {dtype = "bfloat8_b"}\n"norm*" = {dtype = "float32"}\n"*.wieght" = {skip = true}\n')
    code, _, err = run("convert", source, tmp_path / "out", "--rules", rules)
    assert code == 0
    assert "note: no tensor matches the pattern '*.wieght'" in err
    made = tw.open_tensors(tmp_path / "out")
    assert made["norm.bias"].format.name == "float32"
    assert made["layer.0.weight"].format.name == "bfloat8_b"
    rules.write_text('"*" = {dtpye = "bfloat8_b"}\n')
    code, _, err = run("convert", source, tmp_path / "other", "--rules", rules)
    assert code == 2
    assert "did you mean 'dtype'" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["OUT"], 2, "name at least one source"),
        (["SOURCE", "OUT", "--part", "4/4"], 2, "is not a part"),
        (["SOURCE", "OUT", "--part", "x"], 2, "is not a part"),
        (["SOURCE", "OUT", "--to", "zip"], 2, "zip"),
        (["SOURCE", "OUT", "--dtype", "bfloat17"], 2, "bfloat17"),
        (["SOURCE", "OUT", "--memory", "1KiB"], 2, "expected at least"),
        (["SOURCE", "OUT", "--memory", "much"], 2, "much"),
        (["SOURCE", "OUT", "--alignment", "32x32"], 2, "padded"),
        (["SOURCE", "OUT", "--shard", "nd", "--grid", "2x2"], 2, "shard_shape"),
        (["gone.safetensors", "OUT"], 3, "gone.safetensors: no such file"),
        (["BROKEN", "OUT"], 3, "BROKEN"),
        (["SOURCE", "OUT", "--rules", "gone.toml"], 3, "gone.toml"),
        (["SOURCE", "FULL"], 4, "contains other files"),
    ],
)
def test_errors_are_one_line_with_a_status(tmp_path, source, run, arguments, code, message):
    (tmp_path / "BROKEN.safetensors").write_bytes(b"zebra")
    (tmp_path / "FULL").mkdir()
    (tmp_path / "FULL" / "file").write_text("")
    paths = {"SOURCE": source, "BROKEN": tmp_path / "BROKEN.safetensors", "OUT": tmp_path / "OUT"}
    paths["FULL"] = tmp_path / "FULL"
    found, _, err = run("convert", *[paths.get(each, each) for each in arguments])
    assert found == code
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "OUT").exists()


def test_placements(tmp_path, source, run):
    settings = ["--dtype", "bfloat16", "--shard", "height", "--grid", "4x4", "--tile", "16x32", "--pad-value", "1"]
    code, _, err = run("convert", source, tmp_path / "o.safetensors", *settings)
    assert code == 0, err
    spec = tw.open_tensors(tmp_path / "o.safetensors")["layer.0.weight"].spec
    assert (spec.tile.shape, spec.memory.sharding.grid.num_cores, spec.chip.name) == ((16, 32), 16, "wormhole_n150")
    code, _, _ = run("convert", source, tmp_path / "plain", "--dtype", "bfloat16")
    assert "chip" not in (tmp_path / "plain" / "tilewright.json").read_text()


def on_terminal(arguments, **variables):
    """Return what a process writes to a terminal as its stderr, and its exit status."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", **variables},
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            chunk = os.read(ours, 4096)
        except OSError:  # how a terminal ends
            break
        if not chunk:
            break
        said += chunk
    process.communicate()
    os.close(ours)
    return said.decode(), process.returncode


def test_a_bar_on_a_terminal_and_plain_lines_elsewhere(tmp_path, source):
    said, code = on_terminal([*command(source, tmp_path / "a"), "--dtype", "bfloat8_b"])
    assert code == 0
    assert "converting" in said
    assert "/4" in said
    quiet = subprocess.run(command(source, tmp_path / "b"), capture_output=True, text=True, check=True)
    assert "\x1b" not in quiet.stdout + quiet.stderr


def test_a_terminal_without_rich(tmp_path, source):
    script = "import sys; sys.modules['rich'] = None; from tilewright.cli import main; main(sys.argv[1:])"
    said, code = on_terminal([sys.executable, "-c", script, "convert", str(source), str(tmp_path / "a")])
    assert code == 0, said
    assert "Traceback" not in said


def test_hostile_names_are_refused_and_nothing_is_written_outside(tmp_path, run):
    inside = tmp_path / "inside"
    inside.mkdir()
    for name in ("../../evil", "/etc/evil", "..\\evil", "a/../../../evil"):
        path = write_safetensors(inside / "m.safetensors", {name: np.zeros((4, 4), np.float32)})
        code, _, err = run("convert", path, inside / "out")
        assert code == 3
        assert "points outside of its directory" in err
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["inside", "m.safetensors"]


def test_a_plan_has_one_line_for_like_tensors(tmp_path, run):
    write_safetensors(
        tmp_path / "model.safetensors",
        {f"layers.{layer}.{name}": np.zeros((64, 32), np.float32) for layer in range(40) for name in ("up", "down")}
        | {"layers.40.up": np.zeros((32, 32), np.float32)},
    )
    plan = ["convert", tmp_path / "model.safetensors", tmp_path / "out", "--dtype", "bfloat8_b", "--dry-run"]
    _, said, _ = run(*plan)
    rows = [line.split() for line in said.splitlines() if line.startswith("  ")]
    assert [(row[0], row[2], row[-4]) for row in rows] == [
        ("layers.*.up", "64x32", "40"), ("layers.*.down", "64x32", "40"), ("layers.40.up", "32x32", "1"),
    ]  # fmt: skip
    _, said, _ = run(*plan, "--files")
    assert len([line for line in said.splitlines() if line.startswith("  ")]) == 81
    code, _, said = run(*plan[:-1], "--files")
    assert code == 2
    assert "--files has no effect without --dry-run" in said
