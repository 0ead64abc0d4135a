# SPDX-License-Identifier: Apache-2.0
"""Caches of one chip made into those of another: the same files as prepared from the checkpoint."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright import FileFormatError, FormatError
from tilewright.conversion import prepare, retarget_cache
from tilewright.files import Tensorbin, read_tensorbin, write_tensorbin

from ..cli.runner import invoke
from .llamas import NAME, files_of, numbers, write_model

pytestmark = pytest.mark.slow

EIGHT = {"num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 32}
PAIRS = [("N150", "P100"), ("P150", "N150"), ("N300", "P300"), ("T3K", "P150x8")]


def model(folder):
    """Write a model whose heads can be divided among eight devices."""
    fused = {f"model.layers.{k}.self_attn.{n}_proj.weight": numbers(256, 256, seed=k) for k in (0, 1) for n in "kv"}
    return write_model(folder / NAME, EIGHT, fused)


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_retargeted_cache_is_the_prepared_one(tmp_path, old, new):
    source = model(tmp_path)
    prepare(source, tmp_path / "old", old)
    prepare(source, tmp_path / "new", new)
    report = retarget_cache(tmp_path / "old", tmp_path / "out", new)
    assert report.notes == ("22 of 22 files differ in their headers at most",)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "new")  # with manifest and marker
    assert retarget_cache(tmp_path / "old", tmp_path / "out", new, resume=True).reused == 22


def test_a_cache_of_ttnn_needs_the_checkpoint_to_know_the_model(tmp_path):
    source = model(tmp_path)
    out = Path(prepare(source, tmp_path / "old", "N300", optimizations="accuracy").out)
    prepare(source, tmp_path / "new", "P300", optimizations="accuracy")
    (out / "tilewright.json").unlink()
    with pytest.raises(FormatError, match="has no manifest to identify its model; give the checkpoint"):
        retarget_cache(tmp_path / "old", tmp_path / "out", "P300")
    made = retarget_cache(tmp_path / "old", tmp_path / "out", "P300", source).out
    found, expected = files_of(tmp_path / "out"), files_of(tmp_path / "new")
    manifest = f"P300/{out.name}/tilewright.json"
    assert {**found, manifest: b""} == {**expected, manifest: b""}
    assert tw.verify(made, out)  # the cache it was made from


def wide_model(folder, tied):
    """Write a model with so large a vocabulary that eight Blackholes split the head: into 1002 columns at most."""
    weights = {f"model.layers.{k}.self_attn.{n}_proj.weight": numbers(256, 256) for k in (0, 1) for n in "kv"}
    weights |= {"model.embed_tokens.weight": numbers(9000, 256), "lm_head.weight": None if tied else numbers(9000, 256)}
    return write_model(folder / NAME, {**EIGHT, "vocab_size": 9000, "tie_word_embeddings": tied}, weights)


def test_splits_of_the_head_that_differ_are_made_from_the_checkpoint(tmp_path):
    source = wide_model(tmp_path, tied=False)
    prepare(source, tmp_path / "old", "T3K")
    prepare(source, tmp_path / "new", "P150x8")
    with pytest.raises(FormatError) as told:
        retarget_cache(tmp_path / "old", tmp_path / "out", "P150x8")
    assert "2 of 23 files differ in more than their headers, or are missing: output_lm_head_2_split" in str(told.value)
    assert "give the checkpoint, to make them from it" in str(told.value)
    assert not (tmp_path / "out").exists()
    retarget_cache(tmp_path / "old", tmp_path / "out", "P150x8", source)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "new")


def test_splits_of_a_tied_head_are_made_from_the_embedding(tmp_path):
    source = wide_model(tmp_path, tied=True)
    prepare(source, tmp_path / "old", "T3K")
    prepare(source, tmp_path / "new", "P150x8")
    report = retarget_cache(tmp_path / "old", tmp_path / "out", "P150x8")
    assert report.notes == ("21 of 23 files differ in their headers at most",)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "new")
    assert tw.verify(report.out, source)


def test_parts_and_interrupted_runs_give_the_same_cache(tmp_path):
    source = model(tmp_path)
    prepare(source, tmp_path / "old", "N150")
    prepare(source, tmp_path / "new", "P150")
    for part in ((0, 2), (1, 2)):
        retarget_cache(tmp_path / "old", tmp_path / "out", "P150", part=part)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "new")

    def stop(event):
        if event.tensors_done == 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        retarget_cache(tmp_path / "old", tmp_path / "again", "P150", progress=stop)
    assert retarget_cache(tmp_path / "old", tmp_path / "again", "P150", resume=True).reused
    assert files_of(tmp_path / "again") == files_of(tmp_path / "new")


def test_machines_with_other_meshes_are_refused(tmp_path):
    prepare(model(tmp_path), tmp_path / "old", "N300")
    with pytest.raises(FormatError, match=r"N300 is a mesh of \[1, 2\], and P150 one of \[1, 1\]: every file differs"):
        retarget_cache(tmp_path / "old", tmp_path / "out", "P150")


def test_a_damaged_cache_is_not_passed_on(tmp_path):
    out = Path(prepare(model(tmp_path), tmp_path / "old", "N150").out)
    path = out / "layers.0.attention.wo_dtype_BFLOAT8_B_layout_TILE.tensorbin"
    good = path.read_bytes()
    held = read_tensorbin(path)
    write_tensorbin(path, Tensorbin(held.spec, np.roll(held.pages(), 1088), held.mesh_shape, held.topology))
    with pytest.raises(FileFormatError, match="has changed since it was made; prepare it again"):
        retarget_cache(tmp_path / "old", tmp_path / "out", "P150")
    path.write_bytes(good)
    shutil.copy(path.with_name(path.name.replace("attention.wo", "attention.wqkv_sharded_2d")), path)
    (out / "tilewright.json").unlink()
    with pytest.raises(FileFormatError, match="does not match the recipe; run prepare --check"):
        retarget_cache(tmp_path / "old", tmp_path / "out", "P150", tmp_path / NAME)
    assert not (tmp_path / "out").exists()


def test_the_command_writes_beside_the_old_cache(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepare(model(tmp_path), "cache", "N300")
    ended = invoke("prepare", "--retarget", "cache", "--for", "P300")
    assert (ended.exit_code, ended.stdout.splitlines()[2]) == (0, "cache/P300/tensor_cache_instruct_bfp8 is complete")
    assert (tmp_path / "cache/N300/tensor_cache_instruct_bfp8/tilewright.json").exists()
    ended = invoke("prepare", "--retarget", "cache/N300", "--for", "P300")
    assert (ended.exit_code, "already finished" in ended.stderr) == (4, True)
    shutil.move("cache/N300/tensor_cache_instruct_bfp8", "files")
    ended = invoke("prepare", "--retarget", "files", "--for", "P300")
    assert "does not end in N300/tensor_cache_instruct_bfp8; name the output" in ended.stderr
