# SPDX-License-Identifier: Apache-2.0
"""Verification: it finds what is wrong, and says what."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.files.manifest import ConversionManifest

from ..cases import examples
from ..files.samples import write_safetensors
from .checkpoints import checkpoint

KINDS = {"tensorbin": "out", "safetensors": "out.safetensors", "banks": "out", "npy": "out"}


def made(folder, to):
    source, out = checkpoint(folder / "m.safetensors", tensors=3), folder / KINDS[to]
    dtype = "float32" if to == "npy" else "bfloat8_b"
    tw.convert(source, out, to, dtype=dtype, chip="wormhole_n150" if to == "banks" else None)
    return source, out


@pytest.mark.parametrize("to", KINDS)
def test_what_is_well(tmp_path, to):
    source, out = made(tmp_path, to)
    for report in (tw.verify(out), tw.verify(out, source), tw.verify(out, source, memory=2 << 17)):
        assert bool(report)
        assert len(report.verdicts) == 4
    for (
        each
    ) in report.verdicts:  # half a step of 7 bits below the largest value of a block; nothing where nothing is lost
        assert each.largest_error <= (0 if to == "npy" else each.largest_value / 64)


@pytest.mark.parametrize("to", KINDS)
def test_one_changed_bit_is_found_wherever_it_is(tmp_path_factory, to):
    folder = tmp_path_factory.mktemp("verify")
    source, out = made(folder, to)
    paths = [out] if out.is_file() else [each for each in out.iterdir() if each.suffix != ".json"]
    rng = np.random.default_rng(3)
    for path in paths:
        whole = path.read_bytes()
        for at in [*rng.integers(0, len(whole), 12), len(whole) - 1]:
            damaged = bytearray(whole)
            damaged[at] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            try:
                assert not tw.verify(out), f"byte {at} of {path}"
            except tw.FileFormatError:
                assert out.is_file()  # the header of the one file: nothing in it can be believed
        path.write_bytes(whole)
    assert bool(tw.verify(out, source))


@pytest.mark.parametrize("to", ["tensorbin", "banks", "npy"])
def test_files_that_are_gone_or_short(tmp_path, to):
    _, out = made(tmp_path, to)
    files = sorted(each for each in out.iterdir() if each.suffix != ".json" and "layer" in each.name)
    files[0].unlink()
    os.truncate(files[1], 50)
    problems = {each.name: each.problem for each in tw.verify(out).problems}
    assert set(problems) == {"layer.0.weight", "layer.1.weight"}
    assert "missing" in problems["layer.0.weight"] or "not there" in problems["layer.0.weight"]


def test_another_source(tmp_path):
    source, out = made(tmp_path, "tensorbin")
    values = {name: each.read() for name, each in tw.open_tensors(source).items()}
    del values["layer.1.weight"]
    values["layer.0.weight"] = values["layer.0.weight"].T.copy()
    values["layer.2.weight"] = values["layer.2.weight"] + 1
    problems = {each.name: each.problem for each in tw.verify(out, write_safetensors(source, values)).problems}
    assert set(problems) == {"layer.0.weight", "layer.1.weight", "layer.2.weight"}
    assert "shape" in problems["layer.0.weight"]
    assert "no tensor" in problems["layer.1.weight"]
    assert "has changed" in problems["layer.2.weight"]


def test_a_manifest_that_lies_about_the_output(tmp_path):
    """A file with the right hash that was not made from the source as the manifest says."""
    source, out = made(tmp_path, "tensorbin")
    other = tmp_path / "other"
    tw.convert(source, other, dtype="bfloat8_b", pad_value=1)
    name = "layer.0.weight.tensorbin"
    (out / name).write_bytes((other / name).read_bytes())
    lies = json.loads((out / "tilewright.json").read_text())
    told = json.loads((other / "tilewright.json").read_text())["tensors"]["layer.0.weight"]
    lies["tensors"]["layer.0.weight"]["output"] = told["output"]
    (out / "tilewright.json").write_text(json.dumps(lies))
    assert bool(tw.verify(out))
    (problem,) = tw.verify(out, source).problems
    assert "different bytes" in problem.problem


def test_what_was_not_converted(tmp_path):
    with pytest.raises(FileNotFoundError):
        tw.verify(tmp_path / "gone")
    with pytest.raises(tw.FileFormatError, match=r"no tilewright\.json"):
        tw.verify(tmp_path)
    with pytest.raises(tw.FileFormatError, match="no manifest"):
        tw.verify(checkpoint(tmp_path / "m.safetensors", tensors=1))


@examples(60)
@given(st.data())
def test_a_damaged_manifest_never_surprises(tmp_path_factory, data):
    """Whatever a manifest says, the answer is a report or a FileFormatError, and no file outside is read."""
    folder = tmp_path_factory.getbasetemp() / "damaged"
    out = folder / "out"
    if not folder.exists():
        folder.mkdir()
        made(folder, "tensorbin")
        (folder / "whole.json").write_bytes((out / "tilewright.json").read_bytes())
    text = bytearray((folder / "whole.json").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 4))] = data.draw(
            st.sampled_from([b"", b"0", b"-", b'"', b"../", b"{", b"9"])
        )
    (out / "tilewright.json").write_bytes(text)
    try:
        report = tw.verify(out, jobs=1)
    except tw.FileFormatError:
        return
    if text != (folder / "whole.json").read_bytes():
        ConversionManifest.from_bytes(bytes(text))
    assert isinstance(bool(report), bool)


def test_files_that_no_chip_takes_are_bad(tmp_path, monkeypatch):
    """Release 0.1 wrote them: shards in DRAM on the grid of cores, shards larger than L1."""
    np.save(tmp_path / "x.npy", np.zeros((2048, 1024), np.float32))
    for number, asked in enumerate(
        [{"shard": "width", "buffer": "dram", "grid": (8, 8)}, {"shard": "height", "grid": (1, 1)}]
    ):
        out = tmp_path / f"out{number}"
        with monkeypatch.context() as patch:
            for module in ("conversion.rules", "files.tensorbin"):
                patch.setattr(f"tilewright.{module}.validate_placement", lambda spec: None)
            tw.convert(tmp_path / "x.npy", out, **asked)
        report = tw.verify(out)
        assert not report
        assert "invalid placement" in report.problems[0].problem


def test_damage_is_located_with_the_source(tmp_path):
    values = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    np.savez(tmp_path / "m.npz", w=values)
    tw.convert(tmp_path / "m.npz", tmp_path / "out", dtype="float32")
    path = tmp_path / "out" / "w.tensorbin"
    place = tw.explain(tw.open_tensors(tmp_path / "out")["w"], (40, 70)).offset
    data = bytearray(path.read_bytes())
    data[place + 3] ^= 0x80
    path.write_bytes(data)
    (verdict,) = tw.verify(tmp_path / "out", tmp_path / "m.npz").problems
    assert "1 of 6144 values, the first at (40, 70): -3910 instead of 3910" in verdict.problem
    assert "its bytes have changed" in verdict.problem


def test_a_conversion_that_was_found_below_is_named(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 4), np.float32))
    tw.convert(tmp_path / "x.npy", tmp_path / "all" / "one")
    assert tw.verify(tmp_path / "all" / "one").notes == ()
    found = tw.verify(tmp_path / "all")
    assert found
    assert f"checked {tmp_path / 'all' / 'one'}, the only conversion below {tmp_path / 'all'}" in found.notes
