# SPDX-License-Identifier: Apache-2.0
"""The number formats of groups of weights: modes, decoder configs of tt-metal, and one setting for all layers."""

import json

import pytest

from tilewright import FileFormatError, FormatError
from tilewright.conversion import Optimizations, Recipe, plan_cache
from tilewright.conversion.cache import Checkpoint, WeightCache
from tilewright.copying.assembly import Assembly
from tilewright.files.safetensors import LLAMA_CONFIG, sample_llama
from tilewright.formats import format_of

from .llamas import NAME, write_model


def describe(name, layers=2, model_type="llama", **options):
    """Return the cache of a model of this name, of which only shapes exist."""
    base = {key: values.shape for key, values in sample_llama().items() if "layers." not in key}
    layer = {key: values.shape for key, values in sample_llama().items() if "layers.0." in key}
    shapes = base | {
        key.replace("layers.0.", f"layers.{k}."): shape for k in range(layers) for key, shape in layer.items()
    }
    config = {**LLAMA_CONFIG, "num_hidden_layers": layers, "model_type": model_type}
    tensors = {key: Assembly.of(key, shape) for key, shape in shapes.items()}
    return WeightCache(
        Checkpoint(name, config, tensors, dict.fromkeys(tensors, format_of("bfloat16"))), "N300", **options
    )


def formats(cache, layer):
    """Return the short names of the formats of a layer: WQKV, WO, FF1_FF3, FF2."""
    short = {"bfloat4_b": "4", "bfloat8_b": "8", "bfloat16": "16"}
    chosen = cache.run.formats(layer)
    return " ".join(short[chosen[group]] for group in ("WQKV", "WO", "FF1_FF3", "FF2"))


def written(folder, decoders):
    path = folder / "formats.json"
    path.write_text(json.dumps({"decoders": decoders}), encoding="utf-8")
    return path


def test_the_formats_of_modes_go_by_the_base_name():
    cases = {
        ("Llama-3.1-8B", "performance"): "8 8 4 8",
        ("Llama-3.1-8B", "accuracy"): "8 8 8 8",
        ("Llama-3.1-70B-Instruct", "accuracy"): "8 8 4 8",
        ("DeepSeek-R1-Distill-Llama-70B", "accuracy"): "8 8 4 8",
        ("Meta-Llama-3-8B", "accuracy"): "8 8 8 8",
        ("Mistral-7B-Instruct-v0.3", "accuracy"): "8 8 8 8",
        ("Qwen2.5-7B", "performance"): "16 16 8 8",
        ("Qwen3-8B", "performance"): "8 8 4 8",
        ("Qwen3-8B", "accuracy"): "16 16 8 8",
        ("Phi-4", "accuracy"): "16 16 8 8",
        ("gemma-2-2b-it", "accuracy"): "16 16 8 8",
        ("Mixtral-8x7B-Instruct-v0.1", "accuracy"): "16 16 8 8",
    }
    large = {"Llama-3.1-70B-Instruct", "DeepSeek-R1-Distill-Llama-70B"}
    for (name, mode), expected in cases.items():
        with pytest.MonkeyPatch.context() as patch:
            if name in large:  # which this machine is too small for
                patch.setenv("MAX_PREFILL_CHUNK_SIZE", "4")
            assert formats(describe(name, optimizations=mode), 0) == expected, (name, mode)


def test_decoder_configs_of_single_models_are_found_by_the_exact_name():
    cache = describe("Llama-3.1-8B-Instruct", layers=32)
    assert [formats(cache, layer) for layer in (0, 30, 31)] == ["8 8 4 8", "8 8 4 8", "8 8 8 8"]
    assert formats(describe("Llama-3.1-8B", layers=32), 31) == "8 8 4 8"
    cache = describe("phi-4", layers=40, optimizations="accuracy")
    assert [formats(cache, layer) for layer in (0, 1, 38, 39)] == ["8 8 8 8", "16 16 8 8", "16 16 8 8", "8 8 8 8"]
    assert formats(describe("Phi-4", layers=40, optimizations="accuracy"), 0) == "16 16 8 8"
    assert formats(describe("Qwen2.5-7B-Instruct", layers=28, optimizations="accuracy"), 27) == "16 16 8 8"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAX_PREFILL_CHUNK_SIZE", "4")
        cache = describe("Llama-3.2-90B-Instruct", layers=80, optimizations="accuracy")
        assert {formats(cache, layer) for layer in range(80)} == {"8 8 4 8"}


def test_a_decoder_config_sets_the_layers_that_it_lists(tmp_path):
    path = written(
        tmp_path,
        {"1": {"precision_cfg": {"WQKV": "BF16", "FF2": "BFP4"}}, "3": {"fidelity_cfg": {"LI_FF2": "LOFI"}}},
    )
    cache = describe("Llama-3.2-1B-Instruct", layers=4, optimizations=path)
    # not listed, or without formats: those of a model called "model"
    assert [formats(cache, layer) for layer in range(4)] == ["8 8 4 8", "16 8 8 4", "8 8 4 8", "8 8 4 8"]
    names = {file.file for file in cache.files}
    assert "layers.1.attention.wqkv_sharded_2d_dtype_BFLOAT16_layout_TILE.tensorbin" in names
    assert "layers.1.feed_forward.w2_sharded_dtype_BFLOAT4_B_layout_TILE.tensorbin" in names
    assert cache.marker().keys() != describe("Llama-3.2-1B-Instruct", layers=4).marker().keys()


def test_a_decoder_config_replaces_that_of_the_model(tmp_path):
    path = written(tmp_path, {"31": {"precision_cfg": {"WO": "BFP4"}}})
    cache = describe("Llama-3.1-8B-Instruct", layers=32, optimizations=path)
    assert formats(cache, 31) == "8 4 8 8"


def test_a_decoder_config_that_ends_early_is_refused_as_the_original_does(tmp_path):
    cache = describe("Llama-3.2-1B-Instruct", layers=4, optimizations=written(tmp_path, {"1": {}}))
    with pytest.raises(
        FormatError, match=r"ends at layer 1, but the model has 4 layers, .* use one that lists layer 3"
    ):
        assert cache.files


def test_one_setting_for_all_layers():
    text = "precision_cfg = {ff1_3: bfp4, ff2: bfp4, wqkv: bf16, activation: mixed}, fidelity_cfg = {li_ff2: lofi}"
    cache = describe("Qwen3-8B", optimizations=text)
    assert {formats(cache, layer) for layer in range(2)} == {"16 8 4 4"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fast", "expected performance, accuracy, a decoder config that ends in .json"),
        ("precision_cfg = {wq: bf16}", "unknown group of weights 'WQ'; did you mean 'WQKV'?"),
        ("precision_cfg = {wqkv: bf16}, flavour = {a: b}", "unknown setting 'flavour'; there are precision_cfg and"),
        ("precision_cfg = {wqkv: bf16} and more", "expected performance, accuracy"),
        ("precision_cfg = {wqkv: bf16, WQKV: bfp8}", "WQKV is set 2 times"),
        ("precision_cfg = {wo: bf16}, precision_cfg = {wo: bfp8}", "precision_cfg is set 2 times"),
        ("precision_cfg = {wqkv: fp8}", "expected one of BFP4, BFP8, BF16 for WQKV, got 'fp8'"),
    ],
)
def test_settings_that_are_wrong(text, message):
    with pytest.raises((FormatError, FileFormatError)) as told:
        Optimizations.of(text, Recipe.load())
    assert message in str(told.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", 'expected {"decoders": {"0": ...}}'),
        ('{"decoders": {"first": {}}}', "expected a number of a layer and its settings, got 'first'"),
        ('{"decoders": {"0": {"precision_cfg": {"FF1": "BFP8"}}}}', "layer 0: unknown group of weights 'FF1'"),
        ('{"decoders": {"0": {"precision_cfg": {"WO": "BFP2"}}}}', "layer 0: expected one of BFP4, BFP8, BF16 for WO"),
        ('{"decoders": {"0": {"precision_cfg": 3}}}', "layer 0: expected an object as precision_cfg, got 3"),
        ('{"decoders": {"0": {"precison_cfg": {}}}}', "layer 0: unknown setting 'precison_cfg'"),
        ('{"decoders": {"0": {}}, "layers": 4}', "unknown key 'layers' beside 'decoders'"),
        ("{", "is not JSON"),
    ],
)
def test_decoder_configs_that_are_wrong(tmp_path, content, message):
    path = tmp_path / "formats.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises((FormatError, FileFormatError)) as told:
        Optimizations.of(path, Recipe.load())
    assert message in str(told.value)
    assert str(path) in str(told.value)


def test_the_plan_and_the_manifest_know_the_settings(tmp_path):
    path = written(tmp_path, {"1": {"precision_cfg": {"WO": "BF16"}}})
    plan = plan_cache(write_model(tmp_path / NAME), "out", "N150", optimizations=path)
    settings = plan.recipe["options"]["optimizations"]
    assert settings == {"mode": "performance", "layers": {1: {"WO": "bfloat16"}}}
    assert Optimizations.from_json(json.loads(json.dumps(settings))).layers == {1: {"WO": "bfloat16"}}
