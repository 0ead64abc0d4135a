# SPDX-License-Identifier: Apache-2.0
"""`show`: every kind of thing, in the terminal, in files and as data."""

import json
import sqlite3
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import views

from ..cases import examples
from .test_any_request import asked, numbers, placements, shapes

BLOCK = ("4x60x90", "--dtype", "bfloat8_b", "--shard", "block", "--grid", "8x8")
THINGS = {
    "layout": ("(4,8):(8,1)",),
    "swizzle": ("Sw<3,0,3> o (8,8):(8,1)", "--side", "8"),
    "painted": ("((4,2),(4,3)):((4,48),(1,16))", "--color", "tile", "--label", "coordinate"),
    "spec": (*BLOCK, "--at", "2,33,17"),
    "page": (*BLOCK, "--page", "15"),
    "vector": ("640",),
    "tiles": ("200x300", "--tiles", "64x64", "--overlap", "2", "--halo", "1"),
    "pipeline": ("200x300", "--tiles", "64x64", "--pipeline", "buffered", "--depth", "4", "--times", "1,2,1"),
    "memory": ("512x512:buffer=l1", "4096x64:shard=height", "--layout", "tile", "--memory", "l1", "--cb", "64KiB"),
    "banks": ("512x512", "--memory", "dram", "--each"),
    "file": ("w.npy", "--layout", "tile"),
    "placed file": ("bfloat8_b.tensorbin",),
    "error": ("w.npy", "--error", "--dtype", "bfloat4_b"),
}


@pytest.mark.parametrize("name", THINGS)
def test_everything_is_shown_in_80_columns_and_as_data(run, files, name):
    text = run("show", *THINGS[name]).out
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    scene = run("show", *THINGS[name], "--json").json
    assert scene["panels"]
    assert {panel["kind"] for panel in scene["panels"]} <= {"grid", "tracks"}
    assert text.split()[0] == scene["title"].split()[0]


@pytest.mark.parametrize("suffix", ["svg", "html", "txt", "json"])
def test_pictures_go_into_files(run, tmp_path, suffix):
    answer = run("show", *BLOCK, "-o", f"x.{suffix}", "--json").json
    text = (tmp_path / f"x.{suffix}").read_text(encoding="utf-8")
    assert answer["bytes"] == len(text.encode())
    if suffix == "svg":
        assert ElementTree.fromstring(text).tag.endswith("svg")
    elif suffix == "json":
        assert json.loads(text)["title"] == answer["title"]
    assert [path.name for path in tmp_path.iterdir()] == [f"x.{suffix}"]


def test_the_scene_is_that_of_the_library(run):
    found = run("show", *BLOCK, "--chip", "wormhole_n150", "--at", "2,33,17", "--json").json
    spec = tw.TensorSpec((4, 60, 90), "bfloat8_b", "tile", memory=tw.block_sharded((8, 8)), chip="wormhole_n150")
    assert found == json.loads(views.to_json(views.spec_scene(spec, at=(2, 33, 17))))


def test_a_file_keeps_its_placement_until_told_otherwise(run, files):
    title = run("show", "bfloat8_b.tensorbin", "--json").json["title"]
    assert "height sharded in L1" in title
    assert "interleaved in DRAM" in run("show", "bfloat8_b.tensorbin", "--layout", "tile", "--json").json["title"]
    assert "float32" in run("show", "w.npy", "--json").json["title"]


def test_one_of_many_tensors_has_to_be_chosen(run, tmp_path):
    np.savez(tmp_path / "two.npz", a=np.zeros((4, 4)), b=np.zeros((2, 2)))
    assert "--tensor NAME: it has a, b" in run("show", "two.npz", status=2).err
    assert "it has a, b" in run("show", "two.npz", "--tensor", "c", status=2).err
    assert run("show", "two.npz", "--tensor", "b", "--json").json["title"].startswith("b: [2, 2]")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("foo",), 2, "'foo' is not a layout in any of the notations"),
        (("missing.npy",), 3, "check the path"),
        (("4x8", "-o", "x.gif"), 2, "expected a name that ends in"),
        (
            ("4x8", "--label", "taste"),
            2,
            "is not an attribute of the picture of a TensorSpec; it has page, bank",
        ),
        (("4x8", "--memory", "dram", "--color", "taste"), 2, "it has name, kind, start, end, size"),
        (("4x8", "--depth", "3"), 2, "--depth has no effect on the picture of a tensor; add --pipeline"),
        (("4x8", "--times", "1,2,1"), 2, "add --pipeline"),
        (("4x8", "--overlap", "1"), 2, "add --tiles"),
        (("4x8", "--each"), 2, "add --memory l1 or dram"),
        (("4x8", "--cb", "64"), 2, "add --memory l1 or dram"),
        (("4x8", "--tiles", "2x2", "--at", "1,1"), 2, "--at has no effect with --tiles; remove it"),
        (("4x8", "--tiles", "2x2", "--dtype", "uint8"), 2, "--dtype has no effect with --tiles; remove it"),
        (("4x8:dtype=uint8", "--tiles", "2x2"), 2, "settings have no effect with --tiles; give only the shape"),
        (("4x8", "--page", "1", "--side", "4"), 2, "--side has no effect with --page"),
        (("4x8", "--tiles", "2x2", "--pipeline", "double", "--depth", "4"), 2, "no effect on double buffering"),
        (("4x8", "--tensor", "a"), 2, "--tensor needs a file, but 4x8 is not one"),
        (("(4,8):(8,1)", "--at", "1,1"), 2, "--at has no effect on the picture of a layout"),
        (("(4,8):(8,1)", "--page", "1"), 2, "--page needs a tensor"),
        (("(4,8):(8,1)", "--chip", "n150"), 2, "--chip has no effect on the picture of a layout"),
        (("4x8", "--chip", "none", "--dispatch", "slow"), 2, "--dispatch needs a chip"),
        (("4x8", "--chip", "none", "--memory", "dram"), 2, "this needs a chip; remove --chip none"),
        (("4x8", "--layout", "tile", "--tile", "2x2", "--chip", "n150"), 2, "chips have no tiles of 2 x 2"),
        (("(4,8):(8,1)", "--tiles", "2x2"), 2, "expected the shape of a tensor"),
        (("4x8", "--error"), 2, "--error needs values"),
        (("4x8", "--tiles", "2x2", "--overlap", "2"), 2, "must be larger than overlap"),
        (("4x8", "--tiles", "2x2", "--pipeline", "double", "--times", "1,2"), 2, "three positive integers"),
        (("4x8:colour=red",), 2, "not a setting of a tensor"),
        (("4x8", "--at", "9,9"), 2, "outside shape"),
        (("4x8", "--page", "99"), 2, "page 99 does not exist"),
        (("99999x99999:buffer=l1", "--memory", "l1"), 2, "largest free block"),
        (("(4,8):(8,1)", "--color", "taste"), 2, "is not an attribute"),
        (("Sw<3,0,3>",), 2, "compose it with a layout"),
        (("9999999999x4", "--layout", "tile", "--shard", "nd", "--shard-shape", "32x32"), 2, "too many to draw"),
        (("0x5",), 2, "cannot draw"),
        (("empty.npy", "--error", "--dtype", "bfloat8_b"), 2, "has no blocks"),
        (("4x8", "--ttnn-visualizer", "empty.npy/report"), 4, "empty.npy"),
        (("4x8", "-o", "nowhere/x.svg"), 4, "does not exist; create it"),
    ],
)
def test_what_cannot_be_shown_is_said_with_the_remedy(run, tmp_path, arguments, status, words):
    np.save(tmp_path / "empty.npy", np.zeros((0, 4)))
    said = run("show", *arguments, status=status).err
    assert words in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", THINGS)
def test_addresses_are_hexadecimal_where_there_are_some(run, files, name):
    if name in ("tiles", "pipeline", "error"):
        assert "--address has no effect" in run("show", *THINGS[name], "--address", "hex", status=2).err
        return
    before, after = (run("show", *THINGS[name], *more, "--json").json for more in ((), ("--address", "hex")))
    for one, other in zip(before["panels"], after["panels"], strict=True):
        if one["kind"] == "tracks":
            assert other["hexadecimal"] == (one["unit"] == "bytes")
            continue
        for was, now in zip(one["fields"], other["fields"], strict=True):
            assert was["values"] == now["values"]
            assert now["form"] == ("0x{:X}" if was["name"] in ("address", "offset") else was["form"])
    run("show", *THINGS[name], "--address", "hex")


def test_labels_and_colors_in_every_mode(run, files):
    for name, label, color in (
        ("layout", "row_major", "column"),
        ("swizzle", "offset", "bank"),
        ("spec", "core", "page"),
        ("page", "address", "face"),
        ("tiles", "tile", "tile"),
        ("pipeline", "kind", "name"),
        ("memory", "start,end", "kind"),
        ("file", "bank,page", "page"),
        ("error", "exponent", "exponent"),
    ):
        scene = run("show", *THINGS[name], "--label", label, "--color", color, "--json").json
        grids = [panel for panel in scene["panels"] if panel["kind"] == "grid"]
        chosen = label if "," not in label else label.split(",")
        assert not grids or any(grid["label"] == chosen for grid in grids), name
        assert not grids or any(grid["color"] == color for grid in grids), name
    spans = run("show", *THINGS["memory"], "--label", "start,end", "--address", "hex", "--json").json["panels"][0][
        "spans"
    ]
    assert all(span["label"] == f"0x{span['start']:X} 0x{span['end']:X}" for span in spans)


def test_several_things_are_drawn_side_by_side(run):
    scene = run("show", "64x64:layout=tile", "64x64:layout=tile:shard=height:grid=2x1", "--json").json
    assert [panel["title"] for panel in scene["panels"]] == [
        "A: pages of 32 x 32 elements",
        "A: DRAM banks and their pages",
        "B: pages of 32 x 32 elements",
        "B: cores and the pages they hold",
    ]
    assert scene["breaks"] == [2]


def test_words_may_be_spelled_as_people_do(run):
    spelled = run("show", "64x64", "--layout", "Tiled", "--shard", "HEIGHT", "--orientation", "COLUMN-MAJOR", "--json")
    plain = run("show", "64x64", "--layout", "tile", "--shard", "height", "--orientation", "col_major", "--json")
    assert spelled.json == plain.json


def test_memory_becomes_a_report_for_ttnn_visualizer(run, tmp_path, files):
    run("show", "512x512:buffer=l1", "w.npy", "--layout", "tile", "--ttnn-visualizer", "report")
    with sqlite3.connect(tmp_path / "report" / "db.sqlite") as found:
        names = found.execute("select name from operations order by operation_id").fetchall()
    found.close()
    assert names == [("512x512 bfloat16",), ("w",)]


def test_names_of_files_are_only_words(run, tmp_path):
    evil = "<script>alert(1)<%2fscript>"
    np.savez(tmp_path / "evil.npz", **{evil: np.zeros((4, 4))})
    run("show", "evil.npz", "-o", "x.html")
    run("show", "evil.npz", "-o", "x.svg")
    for name in ("x.html", "x.svg"):
        assert "<script>alert" not in (tmp_path / name).read_text(encoding="utf-8")
    assert (
        "alert"
        in ElementTree.fromstring((tmp_path / "x.svg").read_text(encoding="utf-8"))
        .find("{http://www.w3.org/2000/svg}title")
        .text
    )


@examples(40)
@given(shapes, placements, st.lists(numbers, max_size=4).map(",".join), shapes)
def test_whatever_is_asked_is_shown_or_refused_in_one_line(shape, placement, at, tile):
    options = [word for pair in placement for word in pair]
    asked("show", *options, "--side", "16", "--", shape)
    asked("show", *options, f"--at={at}", "--side", "16", "--", shape)
    asked("show", *options, "--page", "1", "--", shape)
    asked("show", *options, "--memory", "l1", "--", shape)
    asked("show", f"--tiles={tile}", "--overlap", "2", "--", shape)
    asked("show", f"--tiles={tile}", "--pipeline", "simplex", "--", shape)


@examples(100)
@given(st.text("(),:@o 0123456789abankSw<>", max_size=24))
def test_whatever_is_written_as_a_layout_is_drawn_or_refused(text):
    if not Path(text).exists() and not text.startswith("-"):
        asked("show", "--side", "16", "--", text)


def test_one_byte_is_one(run):
    shown = run("show", "Sw<3,4,3> o smem_ptr[8b](unset) o (_8,_128):(_128,_1)").out
    assert "elements               1 byte each\n" in shown


def test_a_memory_map_names_tensors_of_the_other_memory(run):
    done = run("show", "64x96:buffer=l1", "64x96", "--memory", "dram")
    assert "not drawn" in done.out
    assert "64x96:buffer=l1, in L1" in done.out
    assert "not drawn" not in run("show", "64x96", "--memory", "dram").out


def test_pictures_name_transposed_tiles(run):
    assert "pages of 32 x 32 elements, transposed" in run("show", "64x96", "--transpose-tile").out
