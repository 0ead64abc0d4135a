# SPDX-License-Identifier: Apache-2.0
"""Every verb on tensors that a mesh of devices shares: what is where, and what one device holds."""

import numpy as np
import pytest

import tilewright as tw


@pytest.fixture
def shared(tmp_path):
    """Write a tensor that four devices share, two replicas of two parts, and its source."""
    values = np.random.default_rng(1).standard_normal((64, 96)).astype(np.float32)
    np.savez(tmp_path / "m.npz", w=values, b=values[0])
    rules = {"w": {"mesh": [2, 2], "cut": [None, 1], "dtype": "bfloat8_b"}, "b": {"mesh": [2, 2]}}
    tw.convert(tmp_path / "m.npz", tmp_path / "out", rules=rules)
    return tmp_path


def test_inspect(run, shared):
    listing = run("inspect", "out").out
    assert "2x2, 2 along 1" in listing
    one = run("inspect", "out", "--tensor", "w").out
    assert "shape     64 x 96" in one
    assert "(0, 1), (1, 1)  [0:64, 48:96]" in one
    assert "TensorSpec((64, 48)" in one
    data = run("inspect", "out", "--tensor", "w", "--json").json
    assert data["parts"][1]["devices"] == [[0, 1], [1, 1]]
    assert "shape     64 x 48" in run("inspect", "out", "--tensor", "w", "--device", "1,1").out
    assert "64x48" in run("inspect", "out", "--device", "3").out
    for text, message in (("7", "not on a mesh of 2 x 2 devices"), ("a,b", "is not a device of a mesh")):
        assert message in run("inspect", "out", "--device", text, status=2).err


def test_inspect_takes_patterns(run, shared):
    assert run("inspect", "m.npz", "--tensor", "[wb]").out.count("\n") == 3
    assert [each["name"] for each in run("inspect", "m.npz", "--tensor", "*", "--json").json["tensors"]] == ["w", "b"]
    assert "no tensor matches 'v*'" in run("inspect", "m.npz", "--tensor", "v*", status=2).err
    assert (
        "--tile needs --tensor with one name" in run("inspect", "m.npz", "--tensor", "*", "--tile", "0,0", status=2).err
    )


def test_explain(run, shared):
    found = run("explain", "out", "--tensor", "w", "--at", "33,50").out
    for words in ("element   (33, 50) of [64, 96]", "(0, 1), (1, 1) of 2 x 2 devices", "part      element (33, 2)"):
        assert words in found
    whole = run("explain", "out", "--tensor", "w", "--at", "33,50", "--json").json
    part = run("explain", "out", "--tensor", "w", "--at", "33,2", "--device", "0,1", "--json").json
    assert (whole["offset"], whole["address"], whole["value"]) == (part["offset"], part["address"], part["value"])
    assert whole["shape"] == [64, 96]
    assert part["shape"] == [64, 48]
    there = run("explain", "out", "--tensor", "w", "--bank", whole["bank"], "--address", whole["address"]).out
    assert "(33, 2) on devices (0, 0), (1, 0)" in there
    assert "(33, 50) on devices (0, 1), (1, 1)" in there
    assert "--device needs a file" in run("explain", "4x4", "--at", "0,0", "--device", "0", status=2).err


def test_verify_names_the_devices_of_a_damaged_part(run, shared):
    assert "match their manifest and source" in run("verify", "out", "m.npz").out
    assert run("verify", "out", "m.npz", "--device", "1,0").status == 0
    place = tw.explain(tw.open_tensors(shared / "out")["w"], (5, 60)).offset
    data = bytearray((shared / "out" / "w.tensorbin").read_bytes())
    data[place] ^= 0x40
    (shared / "out" / "w.tensorbin").write_bytes(data)
    said = run("verify", "out", "m.npz", status=1).out
    assert "bad: w: its bytes have changed" in said
    assert "on devices (0, 1), (1, 1)" in said
    assert "not on a mesh of 2 x 2" in run("verify", "out", "--device", "9", status=2).err
    tw.convert(shared / "m.npz", shared / "plain")
    assert "no tensor on a mesh" in run("verify", "plain", "--device", "0", status=2).err


def test_diff(run, shared):
    assert run("diff", "m.npz", "out", "--ulp", "1").out.startswith("2 of 2 tensors are the same")
    assert "64 x 48" in run("diff", "m.npz", "out", "--ulp", "1", "--device", "0,1", "--tensor", "w").out
    assert "on devices" in run("diff", "m.npz", "out", "--tensor", "w", status=1).out


def test_show(run, shared):
    drawn = run("show", "out", "--tensor", "w", "--at", "33,50").out
    for words in ("devices and their parts", "part 0", "= 0,1", "the tensor, part by part", "0,1 1,1", "[P2]"):
        assert words in drawn
    one = run("show", "out", "--tensor", "w", "--device", "1,1").out
    assert "devices and their parts" not in one
    assert one.startswith("w: [64, 48[64]] bfloat8_b")
    run("show", "out", "--tensor", "w", "-o", "w.svg")
    assert "part by part" in (shared / "w.svg").read_text(encoding="utf-8")
    assert "--device needs a file" in run("show", "4x4", "--device", "0", status=2).err


def test_fit_counts_what_one_device_holds(run, shared):
    data = run("fit", "out", "--json").json
    assert data["mesh"] == [2, 2]
    assert {each["name"]: each["tensor"].split("]")[0] for each in data["tensors"]}["w"] == "[64, 48[64"
    assert run("fit", "out").out.startswith("fits wormhole_n150, on each of 4 devices (2 x 2)")
