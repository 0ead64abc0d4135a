# SPDX-License-Identifier: Apache-2.0
"""Caches with one defect: each is found, by the name of its file, with what the card would do."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import FileFormatError, FormatError
from tilewright.conversion import prepare, retarget_cache
from tilewright.conversion.source import hash_range
from tilewright.files import Tensorbin, read_tensorbin, write_safetensors, write_tensorbin

from ..cli.runner import invoke
from .llamas import NAME, numbers, write_model

GATE = "layers.0.feed_forward.w1_sharded_dtype_BFLOAT4_B_layout_TILE.tensorbin"
WO = "layers.0.attention.wo_dtype_BFLOAT8_B_layout_TILE.tensorbin"
NORM = "norm.weight_distributed_dtype_BFLOAT16_layout_ROW_MAJOR.tensorbin"
HEAD = "output_lm_head_1_split_shard_0_1024_mode_0_dtype_BFLOAT8_B_layout_TILE.tensorbin"
WAYS = ("with the source", "with the manifest", "alone")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    config = {"tie_word_embeddings": True}
    return write_model(tmp_path_factory.mktemp("source") / NAME, config, {"lm_head.weight": None})


@pytest.fixture(scope="module")
def caches(source, tmp_path_factory):
    """Return the directories of the caches of three machines."""
    folder = tmp_path_factory.mktemp("caches")
    return {machine: Path(prepare(source, folder, machine).out) for machine in ("N300", "P300", "N150")}


@pytest.fixture
def cache(caches, tmp_path):
    return Path(shutil.copytree(caches["N300"], tmp_path / "N300" / "tensor_cache_instruct_bfp8"))


def change(path, edit):
    """Write a file again with other pages: `edit` gets those of all devices."""
    held = read_tensorbin(path)
    shards = edit({device: pages.copy() for device, pages in held.shards.items()})
    write_tensorbin(path, Tensorbin(held.spec, shards, held.mesh_shape, held.topology))


def swap(shards):
    return dict(zip(shards, reversed(list(shards.values())), strict=True))


def zeros(shards):
    return {device: np.zeros_like(pages) for device, pages in shards.items()}


def garbage(shards):
    rng = np.random.default_rng(0)
    return {device: rng.integers(0, 256, pages.size, np.uint8) for device, pages in shards.items()}


def one_byte(shards):
    first = next(iter(shards))
    shards[first][len(shards[first]) // 2] ^= 16
    return shards


def rotate(shards):
    return {device: np.roll(pages, 2) for device, pages in shards.items()}


def turn_tiles(shards):
    return {device: np.roll(pages, 1088) for device, pages in shards.items()}


def of_machine(machine):
    return lambda path, caches: shutil.copy(caches[machine] / path.name, path)


def remove(path, caches):
    path.unlink()


def cut_to(size):
    return lambda path, caches: os.truncate(path, size if size > 0 else path.stat().st_size + size)


DEFECTS = {
    # what is done to which file: what is said of it in each of the ways, None where it cannot be seen
    "swapped shards": (GATE, swap, "differs from the checkpoint on device", "has changed since it was made", None),
    "a placeholder": (GATE, zeros, "is a placeholder: all values are 0", "is a placeholder", "is a placeholder"),
    "uninitialised memory": (GATE, garbage, "is a placeholder: ", "is a placeholder", "is a placeholder"),
    "a changed byte": (NORM, one_byte, "differs from the checkpoint", "has changed", "has other values than norm"),
    "another norm": (NORM, rotate, "differs from the checkpoint", "has changed since", "has other values than norm"),
    "a stale dtype": (
        GATE, lambda path, caches: shutil.copy(path.with_name(WO), path),
        *["its name says BFLOAT4_B in TILE, but it holds BFLOAT8_B in TILE"] * 3,
    ),
    "another chip": (GATE, of_machine("P300"), *["on 8 banks, expected"] * 2, "is sharded over 8 banks, while"),
    "another mesh": (
        GATE, of_machine("N150"),
        *["is for a mesh of [1, 1], expected [1, 2]"] * 2, "is for a mesh of [1, 1], while",
    ),
    "a missing file": (GATE, remove, "is missing", "is missing", "is missing, while other layers"),
    "a missing norm": (
        "norm.weight_dtype_BFLOAT16_layout_ROW_MAJOR.tensorbin", remove, "is missing", "is missing", None,
    ),
    "a truncated file": (GATE, cut_to(-9), *["cannot be read: the shard"] * 3),
    "a cut header": (GATE, cut_to(40), *["cannot be read: the header size"] * 3),
    "another head": (HEAD, turn_tiles, "differs from the checkpoint", "has changed since it was made", None),
    "of another layer": (
        GATE, lambda path, caches: shutil.copy(path.with_name(path.name.replace("layers.0", "layers.1")), path),
        "differs from the checkpoint", "has changed since it was made", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS)
def test_one_defect_is_found_by_name(source, caches, cache, defect):
    file, edit, with_source, with_manifest, alone = DEFECTS[defect]
    path = cache / file
    if edit in (swap, zeros, garbage, one_byte, rotate, turn_tiles):
        change(path, edit)
    else:
        edit(path, caches)
    expected = dict(zip(WAYS, (with_source, with_manifest, alone), strict=True))
    for way, message in expected.items():
        if way == "alone":
            (cache / "tilewright.json").unlink()
        given = source if "source" in way else None
        report = tw.check_cache(cache, given, full=edit is swap)
        about = [each for each in report.problems if each.file.startswith(file.partition("_dtype_")[0])]
        if message is None:
            assert not about, (way, about)
            continue
        assert about, (way, report.problems)
        assert message in about[0].problem, way
        assert about[0].effect, way
        others = [each for each in report.problems if each not in about and not each.file.startswith(".weights")]
        assert not others, (way, others)


def test_a_good_cache_is_good_in_every_way(source, cache):
    assert tw.check_cache(cache, source)
    assert tw.check_cache(cache.parents[1], source, full=True)
    assert tw.check_cache(cache).compared.startswith("headers, and all bytes with the manifest; only the cache itself")
    (cache / "tilewright.json").unlink()
    report = tw.check_cache(cache)
    assert (bool(report), report.machine, report.compared) == (
        True,
        "N300",
        "names and headers, and files with each other; only the cache itself, since the checkpoint was not given",
    )


def test_a_tied_head_is_compared_with_the_embedding(source, cache):
    """The manifest of a cache whose head was replaced with its hash, as a faulty tool would leave it."""
    change(cache / HEAD, turn_tiles)
    manifest = json.loads((cache / "tilewright.json").read_text())
    entry = manifest["tensors"][HEAD.partition("_dtype_")[0]]["output"]
    entry["sha256"] = hash_range(cache / HEAD, 0, entry["range"][1])
    (cache / "tilewright.json").write_text(json.dumps(manifest))
    (problem,) = tw.check_cache(cache).problems
    assert (problem.file, problem.problem) == (HEAD, "is not tok_embeddings.weight, to which the model ties it")


EXTRA = {
    "layers.0.feed_forward.w1_sharded_dtype_BFLOAT8_B_layout_TILE.tensorbin": (None, "is of another mode, or stale"),
    "layers.0.attention.wo_width_sharded_2d_dtype_BFLOAT8_B_layout_TILE.tensorbin": (
        "attention.wo takes its place here", None,
    ),
    "output_lm_head_2_split_shard_0_512_mode_0_dtype_BFLOAT8_B_layout_TILE.tensorbin": (
        "one of 2 splits of the head, which has 1 here", None,
    ),
    "layers.0.feed_forward.w2_sharded.hidden_dim_1024_dtype_BFLOAT8_B_layout_TILE.tensorbin": (
        "padded to another width", None,
    ),
    "layers.2.attention.wo_dtype_BFLOAT8_B_layout_TILE.tensorbin": ("the model has 2 layers", None),
    "mine.tensorbin": ("its name matches no weight", None),
    "kvcache_torch.Size([1, 2, 64, 64])_dtype_BFLOAT8_B_layout_TILE.tensorbin": (None, None),
    "empty_kcache_paged_attention(1, 2)_t0_dtype_BFLOAT8_B_layout_TILE.tensorbin": (None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", EXTRA)
def test_files_of_another_build_are_told_apart(source, cache, name):
    shutil.copy(cache / WO, cache / name)
    problem, note = EXTRA[name]
    for given in (source, None):
        report = tw.check_cache(cache, given)
        assert [each.file for each in report.problems] == ([name] if problem else [])
        assert problem is None or problem in report.problems[0].problem
        assert bool(report.notes) == bool(note)
        assert note is None or note in report.notes[0]


def test_two_builds_are_told_apart_without_a_manifest(cache):
    (cache / "tilewright.json").unlink()
    shutil.copy(cache / WO, cache / WO.replace("wo_dtype", "wo_width_sharded_2d_dtype"))
    shutil.copy(cache / HEAD, cache / HEAD.replace("head_1", "head_2"))
    shutil.copy(cache / GATE, cache / GATE.replace("FLOAT4", "FLOAT8"))
    report = tw.check_cache(cache)
    said = [each.problem for each in report.problems]
    assert "exists beside attention.wo_width_sharded_2d: they are of two builds" in said
    assert said.count("is one of two splittings of the head, into 1 and 2") == 2
    assert "is missing, while other splits exist" in said
    assert report.notes == (
        "layers.0.feed_forward.w1_sharded exists in 2 formats, of several modes: BFLOAT4_B, BFLOAT8_B",
    )
    (cache / NORM.replace("_distributed", "")).unlink()
    (cache / NORM).unlink()
    assert "norm.weight*" in [each.file for each in tw.check_cache(cache).problems]


def marker(cache):
    (path,) = cache.glob(".weights_complete.*")
    return path


def test_a_marker_must_be_that_of_the_build(source, cache):
    path = marker(cache)
    body = json.loads(path.read_text())
    cases = {
        "says n_layers 3, expected 2": {"n_layers": 3},
        "says mesh_shape '(2, 1)', expected '(1, 2)'": {"mesh_shape": "(2, 1)"},
        "says model_name 'other'": {"model_name": "other"},
        "lists other weights than the checkpoint has": {"weights": {}},
        f"does not list {body['cache_files'][0]}": {"cache_files": body["cache_files"][1:]},
        "lists gone.tensorbin, which does not exist": {"cache_files": [*body["cache_files"], "gone.tensorbin"]},
        "is named for another build than it describes": {"build_variant": {**body["build_variant"], "batch": 2}},
    }
    for message, edit in cases.items():
        path.write_text(json.dumps({**body, **edit}))
        (problem,) = tw.check_cache(cache, source).problems
        assert problem.file == path.name
        assert message in problem.problem
    path.write_text("{")
    (problem,) = tw.check_cache(cache, source).problems
    assert problem.problem.startswith("cannot be read")
    path.write_text(json.dumps(body))
    assert tw.check_cache(cache, source)


def test_the_mode_and_the_mesh_are_seen_from_the_files(tmp_path):
    config = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32}
    weights = {"lm_head.weight": None}
    source = write_model(tmp_path / NAME, {**config, "tie_word_embeddings": True}, weights)
    prepare(source, tmp_path / "out", "N150x4", mesh=(2, 2), optimizations="accuracy")
    report = tw.check_cache(tmp_path / "out", source)
    assert (bool(report), report.mode, report.machine) == (True, "accuracy", "N150x4")
    assert report.notes == ("the files are for a mesh of [2, 2], and N150x4 is [1, 4]",)
    assert not tw.check_cache(tmp_path / "out", source, mesh=(1, 4))
    assert not tw.check_cache(tmp_path / "out", source, optimizations="performance")


def test_devices_that_hold_only_padding_are_no_placeholders(tmp_path):
    """The head is padded to whole tiles for each device, so that some get nothing of a small vocabulary."""
    config = {"num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 32, "vocab_size": 70}
    weights = {f"model.layers.{k}.self_attn.{n}_proj.weight": numbers(256, 256) for k in (0, 1) for n in "kv"}
    weights |= {"model.embed_tokens.weight": numbers(70, 256), "lm_head.weight": numbers(70, 256, seed=1)}
    out = Path(prepare(write_model(tmp_path / NAME, config, weights), tmp_path / "out", "T3K").out)
    (head,) = out.glob("output_lm_head*")
    assert not read_tensorbin(head).pages((0, 7)).any()
    (out / "tilewright.json").unlink()
    assert tw.check_cache(out)


def test_another_model_under_the_same_path(source, cache, tmp_path):
    other = write_model(
        tmp_path / NAME, {"num_hidden_layers": 1, "tie_word_embeddings": True}, {"lm_head.weight": None}
    )
    report = tw.check_cache(cache, other)
    assert sum(each.problem.endswith("the model has 1 layer") for each in report.problems) == 9


def test_a_cache_that_cannot_be_placed(source, cache, tmp_path):
    (cache / "tilewright.json").unlink()
    moved = cache.rename(tmp_path / "files")
    with pytest.raises(FormatError, match=r"cannot tell from .* which machine it is for; name it, such as N300"):
        tw.check_cache(moved, source)
    assert tw.check_cache(moved, source, "N300", instruct=True)
    with pytest.raises(FileFormatError, match=r"expected one cache of tensorbin files below .* got none"):
        tw.check_cache(source)
    with pytest.raises(FileFormatError, match="is not a directory"):
        tw.check_cache(tmp_path / "nowhere")


def test_the_command_lists_what_is_wrong(source, cache):
    ended = invoke("prepare", "--check", str(cache), str(source))
    assert (ended.exit_code, ended.stdout.splitlines()[-1]) == (
        0,
        f"good: {cache} for N300: 22 files; compared: headers, and a sample of each file's values",
    )
    (cache / GATE).unlink()
    ended = invoke("prepare", "--check", str(cache), str(source))
    assert ended.exit_code == 1
    assert f"bad: {GATE}: is missing\n     on the card: tt_transformers converts it at the next start" in ended.stdout
    assert ended.stdout.splitlines()[-1] == f"{cache} for N300: 2 problems in 22 files"
    data = json.loads(invoke("prepare", "--check", str(cache), str(source), "--json").stdout)
    assert (data["good"], data["problems"][0]["file"], data["recipe"]["name"]) == (False, GATE, "tt_transformers")


def test_long_lists_are_cut_and_unfinished_runs_are_noted(source, caches, tmp_path):
    ended = invoke("prepare", "--check", str(caches["N150"]), str(source), "--for", "N300")
    assert "tensorbin: is for a mesh of [1, 1], expected [1, 2]" in ended.stdout
    prepare(source, tmp_path, "N300", part=(0, 2))
    report = tw.check_cache(tmp_path, source)
    assert report.notes == ("a run of prepare is not finished; continue it with --resume",)
    assert {each.problem for each in report.problems} == {"is missing"}


def test_retargeted_caches_are_good(source, cache, tmp_path):
    retarget_cache(cache, tmp_path / "out", "P300")
    assert tw.check_cache(tmp_path / "out", source, full=True)
    assert tw.check_cache(tmp_path / "out")


def test_a_changed_value_is_named_and_another_model_is_suspected(source, cache, tmp_path):
    change(cache / NORM, one_byte)
    report = tw.check_cache(cache, source)
    (problem,) = report.problems
    assert re.search(r"1 of \d+ values, the first at \(.*\): \S+ instead of \S+$", problem.problem), problem
    assert not any("was the cache" in note or "made from" in note for note in report.notes)
    other = tmp_path / source.name
    shutil.copytree(source, other)
    weights = {name: np.asarray(each.read()) * 2 for name, each in tw.open_tensors(source).items()}
    write_safetensors(other / "model.safetensors", weights)
    report = tw.check_cache(cache, other)
    assert any("was the cache made from " + str(other) + "?" in note for note in report.notes)


def test_values_that_are_not_finite_are_counted(tmp_path):
    model = write_model(tmp_path / NAME)
    tensors = {name: np.array(tensor.read()) for name, tensor in tw.open_tensors(model).items()}
    tensors["model.layers.0.mlp.down_proj.weight"][0, :3] = np.nan, np.inf, -np.inf
    tensors["model.norm.weight"][5] = np.nan
    for path in model.glob("*.safetensors*"):
        path.unlink()
    write_safetensors(model / "model.safetensors", tensors)
    out = tmp_path / "cache"
    report = prepare(model, out, "N300")
    expected = [
        "layers.0.feed_forward.w2_sharded: 1 value is NaN, 2 values are infinite",
        "norm.weight: 1 value is NaN",
        "norm.weight_distributed: 1 value is NaN",
    ]
    assert sorted(note for note in report.notes if "NaN" in note) == expected
    full = tw.check_cache(out, model, full=True)
    assert full, full.problems
    assert sorted(note for note in full.notes if "NaN" in note) == expected
    sampled = [note for note in tw.check_cache(out, model).notes if "NaN" in note]
    assert all(note.endswith("in the sample that was compared") for note in sampled)
    assert len(sampled) == 3
    alone = [note for note in tw.check_cache(out).notes if "NaN" in note]
    assert sorted(alone) == [f"{note}, by the manifest" for note in expected]
    said = invoke("prepare", "--check", "--full", str(out), str(model))
    assert said.exit_code == 0
    assert f"note: {expected[1]}" in said.output
    again = retarget_cache(out, tmp_path / "other", "P300")
    assert [note for note in again.notes if note.startswith("norm")] == expected[1:]


def test_values_out_of_range_are_of_the_format_that_is_too_small(tmp_path):
    large = numbers(512, 256)
    large[3, :7], large[4, 4] = 1e6, np.nan
    model = write_model(tmp_path / NAME, {"torch_dtype": "float16"}, {"model.layers.0.mlp.up_proj.weight": large})
    made = tw.prepare(model, tmp_path / "out", "N300")
    said = "layers.0.feed_forward.w3_sharded: 1 value is NaN, 7 values are out of range of"
    wanted = [f"{said} float16, bfloat16 or bfloat4_b"]
    assert [*made.notes] == [*tw.check_cache(tmp_path / "out", model, full=True).notes] == wanted
    alone = tw.check_cache(tmp_path / "out")
    assert (alone.problems, [*alone.notes]) == ((), [f"{wanted[0]}, by the manifest"])
