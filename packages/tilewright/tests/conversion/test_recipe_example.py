# SPDX-License-Identifier: Apache-2.0
"""Recipes from examples: inferred from one size of a family, they make the recorded cache of another, byte for byte."""

import copy
import hashlib
import json
import os
import shutil

import pytest

import tilewright as tw
from tilewright.conversion import infer_recipe, prepare
from tilewright.conversion.recipe_example import Numbers
from tilewright.files import read_tensorbin, write_tensorbin
from tilewright.files.manifest import MANIFEST_NAME, MARKER_PREFIX
from tilewright.files.safetensors import sample_llama

from .llamas import NAME, write_model
from .recorded_caches import cache_options, records, write_checkpoint

SMALL = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 8, "num_key_value_heads": 4}
SHORT = SMALL | {"intermediate_size": 704, "num_key_value_heads": 2}
NARROW = {"hidden_size": 128, "intermediate_size": 1100, "num_attention_heads": 4, "num_key_value_heads": 2}
FAMILIES = {  # the recorded cache that a recipe has to make, and the sizes of the examples that it is inferred from
    "llama31-N300-performance": [SMALL | {"vocab_size": 2100, "head_dim": 64}],
    "llama_f32-N150-performance": [SMALL | {"vocab_size": 1100, "num_hidden_layers": 2, "head_dim": 32}],
    "gemma2-N150-performance": [SMALL | {"vocab_size": 2600, "head_dim": 128}],
    "qwen25_7b-N300-performance": [
        SHORT | {"vocab_size": 3100},
        NARROW | {"vocab_size": 3070},
    ],  # one leaves a unit open
    "qwen3_06b-N300-performance": [SMALL | {"vocab_size": 2100, "head_dim": 64}],
    "phi3mini-N150-performance": [SMALL | {"vocab_size": 2100}],
    "mistral7-N300-accuracy": [SMALL | {"vocab_size": 2450, "head_dim": 64}],
}
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
BRIEF = [name for name in FAMILIES if THOROUGH or not name.startswith(("llama_f32", "mistral"))]


def make_example(name, folder, monkeypatch, **sizes):
    """Return a checkpoint of other sizes than a recorded one, and the files that its cache has."""
    record = copy.deepcopy(records()[name])
    checkpoint = record["checkpoint"]
    checkpoint["config"].update(sizes)
    checkpoint["seed"] += 1000
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_checkpoint(checkpoint, folder)
    report = prepare(record["run"]["HF_MODEL"], "cache", record["run"]["device"], **cache_options(record))
    out = folder / report.out
    for path in out.iterdir():
        if path.name == MANIFEST_NAME or path.name.startswith(MARKER_PREFIX):
            path.unlink()  # the real software writes none, or another
    return folder / record["run"]["HF_MODEL"], out


@pytest.mark.parametrize("name", BRIEF)
def test_a_recipe_from_one_size_makes_the_recorded_cache_of_another(name, tmp_path, monkeypatch):
    examples = [
        make_example(name, tmp_path / f"example{n}", monkeypatch, **sizes) for n, sizes in enumerate(FAMILIES[name])
    ]
    recipe = infer_recipe(examples)
    record = records()[name]
    assert recipe.reproduced, str(recipe)
    assert (recipe.machine, recipe.files) == (record["run"]["device"], sum(len(list(b.iterdir())) for _, b in examples))
    recipe.save(tmp_path / "family.toml")
    assert write_checkpoint(record["checkpoint"], tmp_path) == record["checkpoint_sha256"]
    source = tmp_path / record["run"]["HF_MODEL"]
    report = prepare(source, tmp_path / "out", recipe.machine, recipe=tmp_path / "family.toml")
    assert {path.name for path in (tmp_path / "out").glob("*.tensorbin")} == set(record["files"])
    assert report.complete
    for file, expected in record["files"].items():
        held = read_tensorbin(tmp_path / "out" / file)
        hashes = {",".join(map(str, at)): hashlib.sha256(part.data).hexdigest() for at, part in held.shards.items()}
        assert hashes == expected["shards"], file
    for folder in (source, tmp_path / "out", *[path for pair in examples for path in pair]):
        shutil.rmtree(folder)


LLAMA = "llama31-N300-performance"
TINY = SMALL | {"hidden_size": 128, "intermediate_size": 256, "vocab_size": 600, "head_dim": 32, "num_hidden_layers": 1}


@pytest.fixture(name="tiny")
def make_tiny_example(tmp_path, monkeypatch):
    return make_example(LLAMA, tmp_path / "tiny", monkeypatch, **TINY)


def test_what_one_example_leaves_open_is_listed_and_another_decides(tiny, tmp_path, monkeypatch):
    one = infer_recipe([tiny])
    heads = next(choice for choice in one.choices if choice.where.endswith("paired"))
    assert (heads.values, heads.text) == ((32,), "head_dim")
    assert "hidden_size // num_key_value_heads" in heads.others
    assert f"# ambiguous: {heads}" in one.text
    assert "# a recipe for N300: 13 of 13 files reproduced byte for byte" in one.text
    other = make_example(LLAMA, tmp_path / "other", monkeypatch, **TINY | {"head_dim": 64, "num_key_value_heads": 2})
    two = infer_recipe([tiny, other])
    heads = next(choice for choice in two.choices if choice.where.endswith("paired"))
    assert (heads.values, heads.text) == ((32, 64), "head_dim")
    assert sum(len(choice.others) for choice in two.choices) < sum(len(choice.others) for choice in one.choices)
    assert json.loads(json.dumps(two.to_json()))["reproduced"] is True


def test_a_head_that_may_be_cut_is_refused_beyond_what_was_seen(tiny, tmp_path, monkeypatch):
    recipe = infer_recipe([tiny])
    recipe.save(tmp_path / "tiny.toml")
    source, _ = make_example(LLAMA, tmp_path / "wide", monkeypatch, **TINY | {"vocab_size": 700})
    with pytest.raises(tw.FormatError, match="numbers up to 640, not 704"):
        prepare(source, tmp_path / "out", "N300", recipe=tmp_path / "tiny.toml")


def test_numbers_without_an_expression_bind_the_recipe_to_the_sizes_of_the_example(tmp_path, monkeypatch):
    sizes = TINY | {"hidden_size": 256, "vocab_size": 11001, "num_attention_heads": 8}  # in two splits
    example = make_example("llama31_vocab-N300-performance", tmp_path / "cut", monkeypatch, **sizes)
    recipe = infer_recipe([example])
    assert recipe.reproduced
    assert "11001" in recipe.text
    recipe.save(tmp_path / "cut.toml")
    other, _ = make_example(
        "llama31_vocab-N300-performance", tmp_path / "other", monkeypatch, **sizes | {"vocab_size": 12001}
    )
    with pytest.raises(tw.FormatError, match=r"no expression of the sizes.*vocab_size 11001"):
        prepare(other, tmp_path / "out", "N300", recipe=tmp_path / "cut.toml")


def test_layers_that_are_stored_otherwise_are_listed(tmp_path, monkeypatch):
    name, sizes = "llama31_32layers-N150-performance", TINY | {"num_hidden_layers": 32, "hidden_size": 64}
    sizes |= {"intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 600}
    example = make_example(name, tmp_path / "one", monkeypatch, **sizes)  # the last layer has another dtype
    recipe = infer_recipe([example])
    assert recipe.reproduced
    recipe.save(tmp_path / "own.toml")
    source, wanted = make_example(name, tmp_path / "two", monkeypatch, **sizes | {"hidden_size": 96, "head_dim": 64})
    prepare(source, tmp_path / "out", "N150", recipe=tmp_path / "own.toml")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.tensorbin")} == {
        path.name: path.read_bytes() for path in wanted.iterdir()
    }
    source, _ = make_example(name, tmp_path / "three", monkeypatch, **sizes | {"num_hidden_layers": 2})
    with pytest.raises(tw.FormatError, match=r"layers of the examples differ in layers\.\{layer\}"):
        prepare(source, tmp_path / "other", "N150", recipe=tmp_path / "own.toml")


def test_sources_of_equal_contents_are_listed(tmp_path):
    tensors = sample_llama()
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    source = write_model(tmp_path / NAME, None, tensors)
    recipe = infer_recipe([(source, tmp_path / prepare(source, tmp_path / "cache", "N300").out)])
    (embedding,) = [each for each in recipe.equal if each.startswith("tok_embeddings")]
    assert embedding == "tok_embeddings.weight: model.embed_tokens.weight equals lm_head.weight"
    assert f"# ambiguous: {embedding}" in recipe.text


def test_files_that_nothing_explains_are_named_and_left_out(tiny):
    source, cache = tiny
    path = next(path for path in cache.iterdir() if ".attention.wo_" in path.name)
    held = read_tensorbin(path)
    changed = {at: bytes(part.data)[::-1] for at, part in held.shards.items()}
    write_tensorbin(path, tw.files.Tensorbin(held.spec, changed, held.mesh.shape, held.mesh.topology))
    recipe = infer_recipe([(source, cache)])
    assert list(recipe.unexplained) == [path.name]
    assert (recipe.reproduced, recipe.different) == (False, ())
    assert f"not explained: {path.name}" in str(recipe)
    assert 'name = "layers.{layer}.attention.wo' not in recipe.text


def test_files_of_keys_and_values_are_no_part_of_a_recipe_and_other_names_are_refused(tiny):
    source, cache = tiny
    path = next(path for path in cache.iterdir() if ".attention.wo_" in path.name)
    shutil.copy(path, cache / "kvcache_torch.Size([1, 2, 64, 32])_dtype_BFLOAT8_B_layout_TILE.tensorbin")
    assert infer_recipe([(source, cache)]).reproduced
    path.rename(cache / "wo.tensorbin")
    recipe = infer_recipe([(source, cache)])
    assert "does not end with _dtype_DTYPE_layout_LAYOUT" in recipe.unexplained["wo.tensorbin"]


def test_examples_that_contradict_each_other_are_named(tiny, tmp_path, monkeypatch):
    other = make_example(LLAMA + "-hf_rope", tmp_path / "other", monkeypatch, **TINY)
    recipe = infer_recipe([tiny, other])
    assert {name.partition("_dtype")[0] for name in recipe.unexplained} == {"layers.0.attention.wqkv_sharded_2d"}
    assert "not so in all layers and examples" in str(recipe)


def test_examples_without_a_configuration_or_a_machine_are_refused(tiny):
    source, cache = tiny
    with pytest.raises(tw.FormatError, match="at least one example"):
        infer_recipe([])
    with pytest.raises(tw.FormatError, match="unknown machine"):
        infer_recipe([tiny], "N301")
    (source / "config.json").unlink()
    with pytest.raises(tw.FileFormatError, match=r"no config\.json"):
        infer_recipe([(source, cache)])


def test_numbers_are_explained_by_what_they_measure():
    config = {"hidden_size": 64, "head_dim": 8, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 100}
    numbers = Numbers([config], devices=4)
    assert numbers.explain((8,))[0] == "head_dim"
    assert numbers.explain((8,), counts=True)[0] == "num_attention_heads"
    assert numbers.explain((80,))[0] == "(num_attention_heads + num_key_value_heads) * head_dim"
    assert numbers.explain((4,), counts=True)[0] == "devices"
    assert numbers.explain((32,), literal=True)[0] == "32"
    assert numbers.explain((128,), padded=(100,))[0] == "round_up(vocab_size, 32 * devices)"
    assert numbers.explain((97,)) == ["97"]
    assert Numbers([config, config | {"hidden_size": 128}], 4).explain((7, 9)) == []
