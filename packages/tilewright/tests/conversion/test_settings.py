# SPDX-License-Identifier: Apache-2.0
"""Settings of a conversion and what comes of them: sources in memory, placements, rounding, notes."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.conversion import plan_conversion

RNG = np.random.default_rng(3)


def pages_of(folder):
    (tensor,) = tw.open_tensors(folder).values()
    return bytes(tensor.raw)


def test_arrays_are_a_source(tmp_path):
    arrays = {"w": RNG.standard_normal((60, 90)).astype(np.float32), "a/b": np.arange(6), "h": np.ones(3, np.float16)}
    np.savez(tmp_path / "m.npz", **{"w": arrays["w"], "a/b": arrays["a/b"], "h": arrays["h"]})
    for name, source in (("one", arrays), ("other", tmp_path / "m.npz")):
        tw.convert(source, tmp_path / name, dtype="bfloat8_b")
    for name in ("w", "a/b", "h"):
        ours, theirs = (tw.open_tensors(tmp_path / folder)[name] for folder in ("one", "other"))
        assert bytes(ours.raw) == bytes(theirs.raw), name
    assert tw.verify(tmp_path / "one", arrays)
    assert tw.verify(tmp_path / "one", tmp_path / "m.npz")
    assert not tw.verify(tmp_path / "one", {**arrays, "w": 2 * arrays["w"]})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"x": "text"}, "x: expected an array of numbers, got dtype <U4"),
        ({"x": np.array([1, None], dtype=object)}, "x: expected an array of numbers, got dtype object"),
        ({"../x": np.zeros(3)}, "points outside of its directory"),
        ({}, "nothing to convert: the source has no tensors"),
    ],
)
def test_what_is_no_source(tmp_path, source, message):
    with pytest.raises(tw.TilewrightError, match=message):
        tw.convert(source, tmp_path / "out")


def test_arrays_of_any_order_are_read_by_value(tmp_path):
    values = RNG.standard_normal((5, 40, 30)).astype(np.float32)
    orders = {
        "big": values.astype(">f4"),
        "fortran": np.asfortranarray(values),
        "strided": np.repeat(values, 2, 2)[..., ::2],
    }
    tw.convert(orders, tmp_path / "out")
    for name in orders:
        assert np.array_equal(tw.open_tensors(tmp_path / "out")[name].read(), values), name


def test_arrays_and_files_go_together(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 4), np.float32))
    report = tw.convert([tmp_path / "x.npy", {"y": np.zeros((3, 5), ml_dtypes.bfloat16)}], tmp_path / "out")
    assert report.converted == 2
    assert tw.open_tensors(tmp_path / "out")["y"].format.name == "bfloat16"


def test_other_arrays_are_not_taken_for_what_was_converted(tmp_path):
    first, second = (np.full((40, 40), value, np.float32) for value in (1, 2))
    tw.convert({"w": first}, tmp_path / "out")
    report = tw.convert({"w": first}, tmp_path / "out", resume=True)
    assert (report.converted, report.reused) == (0, 1)
    report = tw.convert({"w": second}, tmp_path / "out", resume=True)
    assert (report.converted, report.reused) == (1, 0)
    assert np.array_equal(tw.open_tensors(tmp_path / "out")["w"].read(), second)


@pytest.mark.parametrize(("chip", "banks"), [("n150", 12), ("p150", 8), ("p100", 7)])
def test_shards_in_dram_take_the_row_of_banks(tmp_path, chip, banks):
    tw.convert({"w": np.zeros((64, 32 * 24), np.float32)}, tmp_path / "out", shard="width", buffer="dram", chip=chip)
    sharding = tw.open_tensors(tmp_path / "out")["w"].spec.memory.sharding
    assert sharding.grid == tw.CoreRangeSet.of((banks, 1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shard": "width", "buffer": "dram"}, "row of DRAM banks such as"),
        ({"shard": "width"}, "a grid such as"),
        ({"shard": "width", "buffer": "dram", "grid": "8x8"}, r"core \(0, 1\) is not a DRAM bank"),
        ({"shard": "height", "grid": "1x1"}, "needs 4194304 bytes per L1 bank"),
        ({"shard": "height", "grid": "eight"}, "'eight' is not a grid; write columns x rows as 8x4"),
        ({"memory_layout": "width_sharded"}, "did you mean 'shard'"),
        ({"memory_config": "l1"}, "did you mean 'shard'"),
        ({"like_ttnn": "yes"}, "expected true or false as like_ttnn"),
    ],
)
def test_impossible_placements_are_refused_before_anything_is_written(tmp_path, settings, message):
    with pytest.raises(tw.TilewrightError, match=message):
        tw.convert({"w": np.zeros((1024, 1024), np.float32)}, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_a_memory_config_is_not_a_budget(tmp_path):
    with pytest.raises(
        tw.MemoryConfigError, match=r"expected a number of bytes as memory, .*; place tensors with shard"
    ):
        tw.convert({"w": np.zeros((4, 4))}, tmp_path / "out", memory=tw.interleaved("l1"))


def test_grids_are_written_as_on_the_command_line(tmp_path):
    rules = tmp_path / "rules.toml"
    values = {"w": np.zeros((64, 384), np.float32)}
    specs = []
    for grid in ('"12x1"', "[12, 1]", '"0,0-11,0"'):
        rules.write_text(f'"*" = {{shard = "width", buffer = "dram", grid = {grid}}}')
        specs.append(plan_conversion(values, tmp_path / "out", rules=rules).items[0].target.spec)
    assert specs[0] == specs[1] == specs[2]


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_like_ttnn_rounds_to_bfloat16_before_sharded_blocks(tmp_path, kind):
    values = RNG.standard_normal((96, 384)).astype(kind)
    rounded = values.astype(np.float32).astype(ml_dtypes.bfloat16)
    sharded = {"dtype": "bfloat8_b", "shard": "width", "buffer": "dram", "chip": "n150"}
    outputs = {
        "plain": (values, {}),
        "like": (values, {"like_ttnn": True}),
        "rounded": (rounded, {}),
        "rounded_like": (rounded, {"like_ttnn": True}),
    }
    pages = {}
    for name, (source, more) in outputs.items():
        tw.convert({"w": source}, tmp_path / name, **sharded, **more)
        pages[name] = pages_of(tmp_path / name)
    assert pages["like"] == pages["rounded"] == pages["rounded_like"]
    assert pages["like"] != pages["plain"]
    assert tw.verify(tmp_path / "like", {"w": values})  # the manifest has the rounding
    for settings in ({"dtype": "bfloat8_b"}, {"dtype": "float32", "shard": "width", "grid": [4, 1]}):  # ttnn does not
        found = [plan_conversion({"w": values}, tmp_path / "o", like_ttnn=like, **settings) for like in (False, True)]
        assert found[0].items[0].source.through == found[1].items[0].source.through == ()


def test_an_output_does_not_hold_its_own_name(tmp_path):
    values = {"w": RNG.standard_normal((60, 90)).astype(np.float32)}
    for name in ("one.safetensors", "another_name.safetensors"):
        tw.convert(values, tmp_path / name, dtype="bfloat8_b")
    data = (tmp_path / "one.safetensors").read_bytes()
    assert data == (tmp_path / "another_name.safetensors").read_bytes()
    assert b"one.safetensors" not in data
    assert tw.verify(tmp_path / "another_name.safetensors", values)
    assert tw.convert(values, tmp_path / "one.safetensors", dtype="bfloat8_b", resume=True).reused == 1


def test_padding_that_outweighs_the_data_is_noted(tmp_path):
    rows = {f"t{k}": np.zeros(1000, np.float32) for k in range(300)}
    plan = plan_conversion(rows, tmp_path / "out")
    assert "are padding, most in t0: [1000] is padded to [32, 1024]" in plan.notes[0]
    assert "layout = 'row_major'" in plan.notes[0]
    assert not plan_conversion(rows, tmp_path / "out", layout="row_major").notes
    assert not plan_conversion({"w": np.zeros((640, 640), np.float32)}, tmp_path / "out").notes


def test_padding_of_a_mesh_counts_every_part(tmp_path):
    plan = plan_conversion({"w": np.zeros((40, 40), np.float32)}, tmp_path / "out", mesh=[1, 2], cut=0)
    assert plan.padding_bytes == 2 * (32 * 64 - 20 * 40) * 4


def test_notes_say_what_was_not_done_as_asked(tmp_path):
    source = {"n": np.arange(6, dtype=np.int64).reshape(2, 3)}
    (note,) = tw.conversion.plan_conversion(source, tmp_path / "out", dtype="uint16").notes
    assert note == (
        "n: int64 becomes int32, since tensorbin files cannot store int64; a rule with the tensor's own name chooses"
        " another format"
    )
    for name, is_noted in {"w.npz": True, "w.pt": True, "w.gguf": True, "w.v2": False, "w.safetensors": False}.items():
        notes = tw.conversion.plan_conversion({"x": np.zeros((2, 2), np.float32)}, tmp_path / name).notes
        assert any("is a directory" in note for note in notes) == is_noted, name
