# SPDX-License-Identifier: Apache-2.0
"""A dtype, layout or chip that nobody stated is named in the answer, once, as text and as data; a stated one is not."""

from itertools import product

import numpy as np
import pytest

import tilewright as tw
from tilewright.files import Tensorbin, write_tensorbin

DTYPES = {(): "bfloat16", ("--dtype", "float32"): None, ("--dtype", "bfloat8_b"): None}
LAYOUTS = {(): "row_major", ("--layout", "tile"): None, ("--layout", "row_major"): None, ("--tile", "16x32"): None}
CHIPS = {(): "wormhole_n150", ("--chip", "p150"): None}
VERBS = {"fit": (), "explain": ("--at", "1,2"), "show": (), "reshard": ("shard=height:grid=1x1",)}


def assumed_by(run, *command):
    """Return what an answer assumes: its data, after a look at its text."""
    data, text = run(*command, "--json").json, run(*command).out
    facts = {fact["name"]: fact["value"] for fact in data.get("facts", ())}
    stated = facts.get("assumed", "") if "facts" in data else ", ".join(data["assumed"].values())
    lines = [line for line in text.splitlines() if line.strip().startswith("assumed")]
    assert [line.split(maxsplit=1)[1] for line in lines] == ([stated.replace("_major", "-major")] if stated else [])
    return set(stated.replace("-", "_").split(", ")) - {""}


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_not_typed_is_named(run, verb):
    for (dtype, one), (layout, two), (chip, three) in product(DTYPES.items(), LAYOUTS.items(), CHIPS.items()):
        if dtype[1:] == ("bfloat8_b",):
            if layout[1:] == ("row_major",):
                continue
            two = None  # blocks are in tiles
        wanted = {one, two, three} - {None}
        assert assumed_by(run, verb, "64x64", *VERBS[verb], *dtype, *layout, *chip) == wanted


def test_settings_after_a_shape_are_stated(run):
    assert assumed_by(run, "fit", "64x64:dtype=float32:layout=tile") == {"wormhole_n150"}
    assert assumed_by(run, "fit", "64x64:dtype=float32", "32x32:layout=tile") == {
        "bfloat16",
        "row_major",
        "wormhole_n150",
    }
    assert assumed_by(run, "show", "64x64:dtype=float32:layout=tile", "--chip", "n150") == set()
    assert assumed_by(run, "reshard", "64x64:dtype=float32:layout=tile", "l1") == {"wormhole_n150"}
    assert assumed_by(run, "show", "64x64", "64x64:layout=tile", "--memory", "dram") == {
        "bfloat16",
        "row_major",
        "wormhole_n150",
    }


def test_files_state_what_they_hold(run, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((40, 40), np.float32))
    spec = tw.TensorSpec((40, 40), "bfloat8_b")
    write_tensorbin(tmp_path / "y.tensorbin", Tensorbin(spec, tw.to_bytes(np.zeros((40, 40), np.float32), spec)))
    for verb, options in VERBS.items() - {("reshard", VERBS["reshard"])}:  # which takes no files
        assert assumed_by(run, verb, "x.npy", *options) == {"row_major", "wormhole_n150"}
        assert assumed_by(run, verb, "y.tensorbin", *options) == {"wormhole_n150"}
        assert assumed_by(run, verb, "y.tensorbin", *options, "--chip", "n300") == set()
    assert "wormhole_n150" in str(tw.inspect(tmp_path / "x.npy").element("x", (1, 2)))


def test_printed_tensors_state_all_but_the_chip(run):
    text = (
        "TensorSpec(logical_shape=Shape([64, 64]),tensor_layout=TensorLayout(dtype=DataType::BFLOAT16,page_config="
        "PageConfig(config=TilePageConfig(tile=Tile(tile_shape={32, 32},face_shape={16, 16},num_faces=4))),"
        "memory_config=MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::DRAM),"
        "alignment=Alignment([32, 32])))"
    )
    for verb, options in VERBS.items():
        assert assumed_by(run, verb, text, *options) == {"wormhole_n150"}


def test_reports_in_python_state_pages_and_chip():
    words = str(tw.fit(tw.TensorSpec((64, 64)), "n300"))
    assert words.startswith("fits wormhole_n300")
    assert "[64, 64] bfloat16 in rows, interleaved in DRAM" in words
    assert "in tiles of 32 x 32" in str(tw.fit(tw.TensorSpec((64, 64), page_layout="tile"), "n300"))


def test_played_reshards_name_them(run, tmp_path):
    for number, command in enumerate(
        (
            ("show", "64x64:shard=height:grid=2x1", "64x64:shard=height:grid=1x1", "--animate"),
            ("reshard", "64x64:shard=height:grid=2x1", "shard=height:grid=1x1", "--animate"),
            ("reshard", "64x64:shard=height:grid=2x1", "shard=height:grid=1x1"),
        )
    ):
        path = tmp_path / f"{number}.html"
        run(*command, "-o", str(path))
        assert "bfloat16, row-major, wormhole_n150" in path.read_text()
        run(*command, "-o", str(path), "--dtype", "uint8", "--layout", "row_major", "--chip", "n300")
        assert "assumed" not in path.read_text()
