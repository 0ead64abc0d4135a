# SPDX-License-Identifier: Apache-2.0
"""`reshard`: the plan of the library, from settings or from what ttnn prints, as text, JSON, pictures and exports."""

import json
from xml.etree import ElementTree

import pytest

import tilewright as tw
from tilewright.cli import reshard as verb
from tilewright.traffic.plan import KERNELS
from tilewright.traffic.steps import OPERATIONS
from tilewright.views.scenes.reshards import VIEWS

BLOCKS = "512x512:shard=block:grid=2x1"
ROWS = "shard=height:grid=4x2"


def plan(**options):
    spec = tw.TensorSpec((512, 512), "bfloat16", "tile", memory=tw.block_sharded((2, 1)), chip="wormhole_n150")
    return tw.reshard(spec, spec.with_memory(tw.height_sharded((4, 2))), **options)


def test_its_choices_are_those_of_the_library():
    assert (OPERATIONS, KERNELS, tuple(VIEWS)) == (verb.OPERATIONS, verb.KERNELS, verb.VIEWS)


def test_it_says_what_the_library_says(run):
    done = run("reshard", BLOCKS, ROWS, "--layout", "tile", "--kernel", "2024")
    assert " ".join(plan(kernel="2024").explain().split()) in " ".join(done.out.split())
    assert all(len(line) <= 80 for line in done.out.splitlines())
    data = run("reshard", BLOCKS, ROWS, "--layout", "tile", "--kernel", "2024", "--reads", "--json").json
    assert data.pop("assumed") == {"dtype": "bfloat16", "chip": "wormhole_n150"}
    assert data == json.loads(json.dumps(plan(kernel="2024").to_json(reads=True)))


def test_targets_are_written_in_many_ways(run):
    printed = "MemoryConfig(memory_layout=TensorMemoryLayout::INTERLEAVED,buffer_type=BufferType::DRAM,"
    printed += "shard_spec=std::nullopt)"
    wanted = run("reshard", BLOCKS, "dram", "--layout", "tile", "--json").json["target"]
    assert run("reshard", BLOCKS, "512x512", "--layout", "tile", "--json").json["target"] == wanted
    assert run("reshard", BLOCKS, "buffer=dram", "--layout", "tile", "--json").json["target"] == wanted
    for text in (printed, f"tt::tt_metal::{printed}"):
        assert run("reshard", BLOCKS, text, "--layout", "tile", "--json").json["target"] == wanted


def test_reads_and_better_ways_are_listed(run):
    done = run("reshard", "512x512:shard=height:grid=8x1", "shard=width:grid=8x1", "--reads", "--best")
    words = " ".join(done.out.split())
    assert "through block sharded in L1" in words or "less time" in words
    assert "step 1, core (0,0) BRISC NOC_1 writes" in words
    assert "step 2, core (0,0) NCRISC NOC_0 reads" in words


@pytest.mark.parametrize("view", ["map", "links", "timeline"])
def test_pictures_in_the_terminal_and_in_files(run, tmp_path, view):
    words = {"map": "bytes that arrive", "links": "NOC_0 +x", "timeline": "RISCs (estimate"}
    done = run("reshard", BLOCKS, ROWS, "--layout", "tile", f"--{view}")
    assert words[view] in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    assert "largest flows" in done.out or view != "map"  # what the picture alone says
    for told in ("6201 cycles", "bound by", "stays where it is", "while both tensors live"):
        assert done.out.count(told) == 1, told
    target = tmp_path / "picture.svg"
    done = run("reshard", BLOCKS, ROWS, "--layout", "tile", f"--{view}", "-o", str(target))
    assert "wrote" in done.out
    assert words[view] not in done.out
    ElementTree.fromstring(target.read_text(encoding="utf-8"))
    assert words[view] in target.read_text(encoding="utf-8")


def test_exports_are_those_of_the_library(run, tmp_path):
    trace, workload = tmp_path / "trace.json", tmp_path / "workload.json"
    run("reshard", BLOCKS, ROWS, "--layout", "tile", "--chrome-trace", str(trace), "--npe", str(workload))
    assert json.loads(trace.read_text()) == json.loads(json.dumps(tw.traffic.chrome_trace(plan())))
    assert json.loads(workload.read_text()) == json.loads(json.dumps(tw.traffic.npe_workload(plan())))


def test_pictures_are_data_in_json(run):
    found = run("reshard", BLOCKS, ROWS, "--layout", "tile", "--map", "--json").json
    assert "bytes that arrive" in [panel["title"] for panel in found["scene"]["panels"]]
    assert "scene" not in run("reshard", BLOCKS, ROWS, "--layout", "tile", "--json").json


def test_one_step_is_drawn(run):
    passes = ("512x512:shard=height:grid=8x1", "shard=width:grid=8x1", "--map")
    first, second = (run("reshard", *passes, "--step", number).out for number in (1, 2))
    assert "step 1 of 2" in first
    assert "step 2 of 2" in second
    assert "expected a step of the plan, from 1 to 2" in run("reshard", *passes, "--step", 3, status=2).err


@pytest.mark.parametrize("chip", ["p150", "quasar", "grayskull_e150"])
def test_any_chip_has_a_map(run, tmp_path, chip):
    done = run("reshard", "64x64", "l1", "--chip", chip, "--map")
    assert "bytes that arrive" in done.out
    run("reshard", "64x64", "l1", "--chip", chip, "-o", "map.svg")
    assert ("NOC_0" in (tmp_path / "map.svg").read_text(encoding="utf-8")) == (chip == "p150")


def test_better_ways_where_nothing_else_fits(run):
    shapes = ("16384x4096:shard=height", "shard=width", "--layout", "tile", "--best")
    assert "less time" in run("reshard", *shapes, status=1).out


def test_what_cannot_be_written_is_an_error_of_output(run, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device", "t.json")

    monkeypatch.setattr("tilewright.traffic.chrome_trace", refuse)
    done = run("reshard", BLOCKS, ROWS, "--layout", "tile", "--chrome-trace", "t.json", status=4)
    assert "t.json: no space left on device" in done.err


def test_no_fit_is_an_answer(run):
    done = run("reshard", "8192x4096:shard=height", "l1", "--layout", "tile", status=1)
    assert "does not fit" in " ".join(done.out.split())
    assert not run("reshard", "8192x4096:shard=height", "l1", "--layout", "tile", "--json", status=1).json["fits"]


def test_nothing_to_do(run):
    assert "nothing to do" in run("reshard", BLOCKS, "shard=block:grid=2x1", "--layout", "tile").out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((BLOCKS, "nowhere"), "'nowhere' is not a target; write settings as shard=height:grid=8x1"),
        ((BLOCKS, "shard=height:dtype=float32"), "a reshard moves a tensor as it is; give it to SOURCE"),
        (("abc", ROWS), "'abc' is not a shape; write extents as 4x60x90"),
        ((BLOCKS, "256x256"), "256"),
        ((BLOCKS, ROWS, "--op", "interleaved_to_sharded"), "leave the operation out"),
        ((BLOCKS, ROWS, "-o", "picture.gif"), ".svg"),
        ((BLOCKS, ROWS, "--step", "1"), "--step has no effect without a picture; add --map"),
        ((BLOCKS, "MemoryConfig(memory_layout="), "TARGET: a text of ttnn: expected a TensorMemoryLayout"),
    ],
)
def test_errors_name_the_value_and_the_remedy(run, words, part):
    done = run("reshard", *words, "--layout", "tile", status=2)
    assert part in done.err
    assert len(done.err.strip().splitlines()) == 1
