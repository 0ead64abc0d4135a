# SPDX-License-Identifier: Apache-2.0
"""`match`: matches in a terminal and in JSON, the rules and the recipe that it writes, and what has no effect."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.files import write_safetensors, write_sample_llama


@pytest.fixture(name="files")
def write_files(tmp_path):
    rng = np.random.default_rng(0)
    a = {f"layers.{n}.{name}": rng.standard_normal((32, 16)).astype(np.float32) for n in (0, 1) for name in "qk"}
    b = {f"{n}.qk": np.concatenate([a[f"layers.{n}.q"], a[f"layers.{n}.k"]]).T.copy() for n in (0, 1)}
    b = {f"blk.{name}": values for name, values in b.items()}
    write_safetensors(tmp_path / "a.safetensors", a, {})
    write_safetensors(tmp_path / "b.safetensors", b, {})
    write_safetensors(tmp_path / "c.safetensors", {**b, "other": rng.standard_normal((4, 4))}, {})


def test_like_layers_are_one_line_and_rules_make_b(run, files):
    done = run("match", "a.safetensors", "b.safetensors", "-o", "rules.toml")
    said = " ".join(done.out.split())
    assert said.startswith("2 of 2 tensors of B are made of tensors of A, by all their elements blk.*.qk = ")
    assert "(2 tensors)" in said
    run("convert", "a.safetensors", "made.safetensors", "--rules", "rules.toml")
    run("diff", "made.safetensors", "b.safetensors")


def test_what_is_not_found_is_the_exit_status(run, files):
    done = run("match", "a.safetensors", "c.safetensors", "--json", status=1)
    assert done.json["unmatched"] == ["other"]
    sources = [each.get("sources") for each in done.json["matches"]]
    assert sources == [["layers.0.q", "layers.0.k"], ["layers.1.q", "layers.1.k"], None]


def test_a_recipe_is_inferred_and_prepares_the_model(run, tmp_path):
    write_sample_llama("Llama-3.2-1B")
    tw.prepare("Llama-3.2-1B", "cache", "N300")
    done = run("match", "Llama-3.2-1B", "cache", "--recipe", "own.toml", "--for", "N300")
    assert done.out.startswith("a recipe for N300: 22 of 22 files reproduced byte for byte")
    assert "ambiguous: layers: count 2: num_hidden_layers, or " in " ".join(done.out.split())
    run("prepare", "Llama-3.2-1B", "again", "--for", "N300", "--recipe", "own.toml")
    made, wanted = (
        {path.name: path.read_bytes() for path in (tmp_path / folder).rglob("*.tensorbin")}
        for folder in ("again", "cache")
    )
    assert made == wanted


def test_options_that_have_no_effect_are_refused(run, files):
    assert (
        "--for has no effect without --recipe"
        in run("match", "a.safetensors", "b.safetensors", "--for", "N300", status=2).err
    )
    assert (
        "-o has no effect with --recipe"
        in run("match", "a.safetensors", "b.safetensors", "-o", "x.toml", "--recipe", "y.toml", status=2).err
    )
