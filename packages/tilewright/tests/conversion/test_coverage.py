# SPDX-License-Identifier: Apache-2.0
"""Nothing of a checkpoint is dropped or guessed: every tensor and field is used, named with the reason, or refused."""

import json
import re
import string
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import FileFormatError, FormatError, format_of, open_tensors
from tilewright.conversion import plan_cache
from tilewright.conversion.cache import Checkpoint, WeightCache
from tilewright.copying.assembly import Assembly
from tilewright.files import read_tensorbin
from tilewright.files.safetensors import sample_llama

from ..cli.runner import invoke
from ..files.samples import write_safetensors
from .llamas import NAME, numbers, write_model
from .recorded_caches import list_tensors

CONFIG = {
    "torch_dtype": "bfloat16", "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 8,
    "num_key_value_heads": 8, "head_dim": 32, "num_hidden_layers": 2, "vocab_size": 1003, "tie_word_embeddings": False,
}  # fmt: skip
FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "phi3", "mixtral")


def checkpoint_of(model_type, changes=None, config=None, tensors_of=None):
    """Return a small checkpoint of a family by names and shapes, with some tensors added, or removed by None."""
    held = {**CONFIG, "model_type": model_type, **(config or {})}
    if model_type == "mixtral":
        held["num_local_experts"] = 8
    listed = {"config": {**held, **(tensors_of or {})}, "family": model_type}
    shapes = {name: shape for name, shape, _ in list_tensors(listed)}
    shapes = {name: shape for name, shape in {**shapes, **(changes or {})}.items() if shape is not None}
    formats = dict.fromkeys(shapes, format_of("bfloat16"))
    return Checkpoint("Model-1B", held, {name: Assembly.of(name, shape) for name, shape in shapes.items()}, formats)


def plan(model_type, changes=None, config=None, tensors_of=None):
    """Return the tensors that files are made from, and the notes; for eight devices, which Mixtral needs."""
    cache = WeightCache(checkpoint_of(model_type, changes, config, tensors_of), "P150x8")
    return {name for file in cache.files for name in file.value.sources}, cache.describe_unused({})


def assert_seen(model_type, name, shape):
    """Assert that a tensor which is added to a checkpoint is used, named or refused by its name."""
    try:
        used, notes = plan(model_type, {name: shape})
    except (FormatError, FileFormatError) as refusal:
        used, notes = set(), (str(refusal),)
    assert name in used or any(name in note for note in notes), (model_type, name, notes)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_ordinary_checkpoint_uses_every_tensor_and_gives_no_note(family):
    used, notes = plan(family)
    assert (used, notes) == (set(checkpoint_of(family).tensors), ())


ADDED = {
    **{f"model.layers.{k}.self_attn.{p}_proj.bias": (256,) for k in (0, 1) for p in ("q", "k", "v", "o", "qkv")},
    **{f"model.layers.1.mlp.{p}_proj.bias": (256,) for p in ("gate", "up", "down", "gate_up")},
    **{f"model.layers.{k}.self_attn.{n}_norm.weight": (32,) for k in (0, 1) for n in "qk"},
    **{f"model.layers.0.{p}_feedforward_layernorm.weight": (256,) for p in ("pre", "post")},
    "model.layers.0.self_attn.rotary_emb.inv_freq": (16,),
    "model.layers.0.self_attn.sinks": (8,),
    "model.layers.0.self_attn.q_proj.lora_A.weight": (8, 256),
    "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight": (256, 8),
    "model.layers.0.self_attn.q_proj.weight_scale": (256,),
    "model.layers.0.self_attn.k_scale": (1,),
    "model.layers.0.block_sparse_moe.experts.8.w1.weight": (512, 256),
    "model.layers.0.block_sparse_moe.gate.bias": (8,),
    "model.layers.0.mlp.experts.0.gate_proj.weight": (512, 256),
    "model.layers.0.input_layernorm.bias": (256,),
    "model.layers.2.self_attn.q_proj.weight": (256, 256),
    "model.layers.61.eh_proj.weight": (256, 512),
    "model.mtp.0.norm.weight": (256,),
    "model.norm.bias": (256,),
    "model.embed_positions.weight": (64, 256),
    "model.vision_tower.blocks.0.attn.weight": (64, 64),
    "multi_modal_projector.linear_1.weight": (64, 64),
    "language_model.model.layers.0.mlp.up_proj.weight": (512, 256),
    "lm_head.bias": (1003,),
    "score.weight": (2, 256),
    "model.empty": (0, 4),
    "x": (),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_any_tensor_that_is_added_is_used_named_or_refused(family):
    for name, shape in ADDED.items():
        assert_seen(family, name, shape)


WORDS = st.sampled_from(
    ("model", "layers", "0", "1", "2", "17", "self_attn", "mlp", "q_proj", "experts", "bias", "weight")
)
PARTS = st.one_of(WORDS, st.text(string.ascii_letters + "_", min_size=1, max_size=6))


@given(st.sampled_from(FAMILIES), st.lists(PARTS, min_size=1, max_size=6).map(".".join))
def test_a_tensor_of_any_name_is_used_named_or_refused(family, name):
    if name not in checkpoint_of(family).tensors:
        assert_seen(family, name, (256,))


@pytest.mark.parametrize("family", FAMILIES)
def test_any_tensor_that_is_removed_is_missed_by_name(family):
    for name in checkpoint_of(family).tensors:
        with pytest.raises((FormatError, FileFormatError)) as told:
            plan(family, {name: None})
        assert name in str(told.value)


def test_tensors_that_a_family_always_has_are_missed_when_none_is_left():
    for family, pattern in {
        "qwen2": "_proj.bias",
        "qwen3": "_norm.weight",
        "gemma2": "pre_feedforward_layernorm.weight",
    }.items():
        gone = {name: None for name in checkpoint_of(family).tensors if pattern in name and "model.norm" not in name}
        with pytest.raises(FormatError, match=f"all models of family {family} have"):
            plan(family, gone)


def test_biases_of_some_projections_only_are_refused():
    for kept in ("q", "k", "v", "qk", "qv", "kv"):
        added = {f"model.layers.{k}.self_attn.{n}_proj.bias": (256,) for k in (0, 1) for n in kept}
        with pytest.raises(FormatError, match=rf"has model\.layers\.0\.self_attn\.{kept[0]}_proj\.bias, but not"):
            plan("llama", added)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("model.layers.0.self_attn.q_proj.lora_A.weight", "an adapter that is not merged"),
        ("base_model.model.lm_head.modules_to_save.weight", "an adapter that is not merged"),
        ("model.layers.1.mlp.up_proj.weight_scale", "a quantised weight that was read without it"),
        ("model.layers.1.mlp.up_proj.weight_scale_inv", "a quantised weight that was read without it"),
        ("model.layers.1.mlp.up_proj.qzeros", "a quantised weight that was read without it"),
    ],
)
def test_what_changes_the_weights_is_refused(name, reason):
    with pytest.raises(FormatError, match=f"{re.escape(name)} cannot be left out: it belongs to {reason}"):
        plan("mistral", {name: (1,)})


def test_an_adapter_beside_the_model_is_refused(tmp_path):
    source = write_model(tmp_path / NAME)
    (source / "adapter_config.json").write_text("{}")
    with pytest.raises(FormatError, match=r"has adapter_config\.json: transformers adds such an adapter"):
        plan_cache(source, "out", "N300")


def test_the_files_are_those_that_transformers_chooses(tmp_path):
    source = write_model(tmp_path / NAME)
    stray = {"model.layers.0.mlp.up_proj.weight": numbers(4, 4), "score.weight": numbers(2, 256)}
    write_safetensors(source / "model-00001-of-00001.safetensors", stray)
    index = {"weight_map": dict.fromkeys(stray, "model-00001-of-00001.safetensors")}
    (source / "model.safetensors.index.json").write_text(json.dumps(index))
    (note,) = plan_cache(source, "out", "N300").notes
    assert note.endswith("also has 'model-00001-of-00001.safetensors', which is not read")


def test_a_vision_tower_is_one_group():
    tower = {f"model.vision_tower.layers.{k}.{n}.weight": (4, 4) for k in range(9) for n in ("q", "k", "norm")}
    (note,) = plan("llama", tower)[1]
    assert note.startswith("unused: model.vision_tower.* (27 tensors): it belongs to images")


def test_tensors_without_a_number_format_are_named(tmp_path):
    source = write_model(tmp_path / NAME, weights={"model.layers.0.self_attn.masked": np.ones((4, 4), np.uint8)})
    data = (source / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header["model.layers.0.self_attn.masked"]["dtype"] = "F8_E8M0"
    text = json.dumps(header).encode()
    (source / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
    assert open_tensors(source)["model.layers.0.self_attn.masked"].format is None
    (note,) = plan_cache(source, "out", "N300").notes
    assert note.startswith("unused: model.layers.0.self_attn.masked: family llama has no weight")


def test_a_tensor_that_is_used_in_part_is_named():
    plain = checkpoint_of("mixtral")
    stack = Assembly.of("blk.0.ffn_gate_exps.weight", (9, 512, 256))
    pattern = "model.layers.0.block_sparse_moe.experts.{}.w1.weight"
    parts = {pattern.format(k): stack.slice(k, k + 1).reshape(512, 256) for k in range(9)}
    tensors = {**plain.tensors, "blk.0.ffn_gate_exps.weight": stack, **parts}
    formats = dict.fromkeys(tensors, format_of("bfloat16"))
    cache = WeightCache(replace(plain, tensors=tensors, formats=formats), "P150x8")
    assert cache.describe_unused({}) == (
        "only 1048576 of 1179648 elements of blk.0.ffn_gate_exps.weight are used; the others are in no file",
    )


def test_fewer_layers_than_config_json_says_are_refused():
    with pytest.raises(FormatError, match=r"model\.layers\.2\.self_attn\.q_proj.*says that the model has 3 layers"):
        plan("llama", {name: None for name in checkpoint_of("llama", config={"num_hidden_layers": 3}).tensors
                       if ".layers.2." in name}, {"num_hidden_layers": 3})  # fmt: skip


def biases(layers=(0, 1), dim=256, keys=128):
    rows = {"q": dim, "k": keys, "v": keys}
    return {
        f"model.layers.{k}.self_attn.{n}_proj.bias": numbers(count, seed=k) for k in layers for n, count in rows.items()
    }


def test_biases_follow_the_tensors_in_every_family():
    for family in FAMILIES:
        used, notes = plan(family, {f"model.layers.{k}.self_attn.qkv_proj.bias": (768,) for k in (0, 1)}
                           if family == "phi3" else {f"model.layers.{k}.self_attn.{n}_proj.bias": (256,)
                                                     for k in (0, 1) for n in "qkv"})  # fmt: skip
        assert [note.partition(":")[0] for note in notes] == ([] if family == "qwen2" else ["used"]), family
        assert "model.layers.1.self_attn.q" in " ".join(sorted(name for name in used if name.endswith("bias"))), family


def test_norms_follow_the_tensors_in_every_family():
    norms = {f"model.layers.{k}.self_attn.{n}_norm.weight": (32,) for k in (0, 1) for n in "qk"}
    norms |= {f"model.layers.{k}.{n}_feedforward_layernorm.weight": (256,) for k in (0, 1) for n in ("pre", "post")}
    for family in FAMILIES:
        used, notes = plan(family, norms)
        assert set(norms) <= used, family
        foreign = (family != "qwen3") + (family != "gemma2")  # to the model of that type in transformers
        assert [note.partition(":")[0] for note in notes] == ["used"] * foreign, family
    cache = WeightCache(checkpoint_of("gemma2", norms), "P150")
    assert {file.value.added for file in cache.files if "_norm." in file.name or "layernorm" in file.name} == {1.0}


def test_a_llama_with_biases_has_the_files_of_a_qwen_with_the_same_weights(tmp_path):
    made = {}
    for kind, config in {"llama": {"attention_bias": True}, "qwen2": {"model_type": "qwen2"}}.items():
        source = write_model(tmp_path / kind / NAME, config, biases())
        report = tw.prepare(source, tmp_path / kind / "out", "N300")
        assert (report.converted, report.notes) == (26, ())
        name = "layers.1.attention.wqkv_bias_decode_sharded_32_dtype_BFLOAT16_layout_TILE.tensorbin"
        made[kind] = read_tensorbin(f"{report.out}/{name}").array()
        assert tw.check_cache(tmp_path / kind / "out", source, full=True)
    assert np.array_equal(made["llama"], made["qwen2"])
    assert made["llama"].any()


def test_a_cache_without_the_biases_of_its_checkpoint_is_not_complete(tmp_path):
    tw.prepare(write_model(tmp_path / "plain" / NAME), tmp_path / "cache", "N300")
    report = tw.check_cache(tmp_path / "cache", write_model(tmp_path / NAME, {"attention_bias": True}, biases()))
    missing = [each.file for each in report.problems if each.problem == "is missing"]
    assert len(missing) == 4
    assert all("wqkv_bias" in file for file in missing)


UNUSED = {
    **{f"model.layers.{k}.mlp.down_proj.bias": numbers(256, seed=k) for k in (0, 1)},
    **{f"model.layers.2.{n}": numbers(256) for n in ("input_layernorm.weight", "post_attention_layernorm.weight")},
    "model.rotary_emb.inv_freq": numbers(32),
}
NAMED = {
    "model.layers.*.mlp.down_proj.bias (2 tensors)": "the card adds no bias there",
    "model.layers.2.* (2 tensors)": "config.json says that the model has 2 layers",
    "model.rotary_emb.inv_freq": "rotary frequencies are computed from the configuration",
}


def test_prepare_dry_run_and_check_list_unused_tensors_by_groups(tmp_path):
    source, out = write_model(tmp_path / NAME, {"mlp_bias": True}, UNUSED), tmp_path / "out"
    texts = [invoke("prepare", str(source), str(out), "--for", "N300", *more).stdout for more in (["--dry-run"], [])]
    texts.append(invoke("prepare", "--check", str(out), str(source)).stdout)
    texts.append(invoke("prepare", "--check", str(out)).stdout)
    texts.append(invoke("prepare", "--retarget", str(out), str(tmp_path / "other"), "--for", "P300").stdout)
    for text in texts:
        for pattern, reason in NAMED.items():
            assert f"note: unused: {pattern}: " in " ".join(text.split()), text
            assert reason in " ".join(text.split())
    for words in ([str(source), str(tmp_path / "more"), "--dry-run"], ["--check", str(out), str(source)]):
        data = json.loads(invoke("--json", "prepare", "--for", "N300", *words).stdout)
        assert all(any(pattern in note for note in data["notes"]) for pattern in NAMED)
    assert plan_cache(source, "out", "N300").skipped == tuple(UNUSED)
    assert len(plan_cache(source, "out", "N300", layers=[1]).skipped) == len(UNUSED)


def test_a_head_that_is_not_the_tied_embedding_is_refused(tmp_path):
    tied = {"tie_word_embeddings": True}
    with pytest.raises(FormatError, match=r"lm_head\.weight differs from model\.embed_tokens\.weight"):
        plan_cache(write_model(tmp_path / "other" / NAME, tied), "out", "N300")
    same = {"lm_head.weight": sample_llama()["model.embed_tokens.weight"]}
    plan = plan_cache(write_model(tmp_path / "same" / NAME, tied, same), "out", "N300")
    assert plan.notes == (
        "unused: lm_head.weight: config.json ties the head to the embedding, which is written in its place",
    )


def test_gemma_ties_its_head_unless_config_json_says_otherwise():
    assert plan("gemma2", {"lm_head.weight": None}, {"tie_word_embeddings": None}) is not None
    with pytest.raises(FormatError, match=r"no tensor 'lm_head\.weight'"):
        plan("llama", {"lm_head.weight": None}, {"tie_word_embeddings": None})


def test_rows_that_a_fused_tensor_has_too_many_are_refused():
    with pytest.raises(FormatError, match=r"wv\.weight has shape \[512, 256\]"):
        plan("phi3", {"model.layers.1.self_attn.qkv_proj.weight": (1024, 256)})


ORDINARY = {
    "llama": {
        "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 1,
        "eos_token_id": [128001, 128008], "hidden_act": "silu", "initializer_range": 0.02, "mlp_bias": False,
        "max_position_embeddings": 131072, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
        "rope_scaling": {"factor": 8.0, "rope_type": "llama3"}, "transformers_version": "4.43.0", "use_cache": True,
        "_name_or_path": "x", "_attn_implementation_autoset": True,
    },
    "qwen2": {
        "architectures": ["Qwen2ForCausalLM"], "max_window_layers": 28, "sliding_window": 131072,
        "use_sliding_window": False, "use_mrope": False, "dtype": "bfloat16", "layer_types": ["full_attention"] * 2,
    },
    "mistral": {"architectures": ["MistralForCausalLM"], "sliding_window": 4096},
    "gemma2": {
        "architectures": ["Gemma2ForCausalLM"], "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
        "cache_implementation": "hybrid", "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 256,
        "sliding_window_size": None, "pad_token_id": 0,
    },
    "phi3": {
        "architectures": ["Phi3ForCausalLM"], "auto_map": {"AutoConfig": "c.P"}, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
        "original_max_position_embeddings": 4096, "partial_rotary_factor": 1.0, "tie_word_embeddings": False,
    },
    "mixtral": {
        "architectures": ["MixtralForCausalLM"], "num_experts_per_tok": 2, "output_router_logits": False,
        "router_aux_loss_coef": 0.02, "router_jitter_noise": 0.0,
    },
}  # fmt: skip


@pytest.mark.parametrize("family", ORDINARY)
def test_the_config_of_an_ordinary_model_gives_no_note(family):
    assert plan(family, config=ORDINARY[family])[1] == ()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_experts", 60, "nothing here reads num_experts = 60"),
        ("num_local_experts", 8, "nothing here reads num_local_experts = 8"),
        ("audio_config", {"hidden_size": 64}, "nothing here reads audio_config"),
        ("num_nextn_predict_layers", 1, "nothing here reads num_nextn_predict_layers = 1"),
        ("pruned_heads", {"0": [1]}, "nothing here reads pruned_heads"),
        ("architectures", ["Qwen2ForCausalLM"], "architectures = Qwen2ForCausalLM, but model_type = llama"),
        ("dtype", "float32", "torch_dtype = bfloat16, but dtype = float32: the dtype counts"),
        ("partial_rotary_factor", 0.75, "partial_rotary_factor = 0.75"),
        ("rope_parameters", {"partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5"),
        ("torch_dtype", None, ""),
    ],
)
def test_fields_that_contradict_or_that_nothing_reads_are_named_once(field, value, message):
    _, notes = plan("llama", config={field: value})
    assert [message in note for note in notes] == ([True] if message else [])


def test_names_of_meta_count_first_as_in_tt_transformers():
    _, (note,) = plan("llama", config={"n_layers": 1})
    assert note.startswith("unused: model.layers.1.* (9 tensors): config.json says that the model has 1 layer")
    with pytest.raises(FormatError, match=r"config\.json says \[1003, 128\]"):
        plan("llama", config={"dim": 128})


@pytest.mark.parametrize(
    ("family", "field", "value"),
    [("qwen3", "head_dim", 128), ("gemma2", "head_dim", 256), ("gemma", "num_key_value_heads", 16)],
)
def test_what_config_json_lacks_is_as_in_transformers(family, field, value):
    tensors = {name: each.shape for name, each in checkpoint_of(family, config={field: value}).tensors.items()}
    held = {key: each for key, each in checkpoint_of(family).config.items() if key != field}
    formats = dict.fromkeys(tensors, format_of("bfloat16"))
    stored = {name: Assembly.of(name, shape) for name, shape in tensors.items()}
    assert WeightCache(Checkpoint("Model-1B", held, stored, formats), "P150x8").describe_unused({}) == ()


def test_more_layers_than_tensors_are_refused_at_once():
    for layers in (10**9, 10**30):
        with pytest.raises(FormatError, match=f"the model has {layers} layers, but the checkpoint has 21 tensors"):
            plan("llama", config={"num_hidden_layers": layers}, tensors_of={"num_hidden_layers": 2})


@pytest.mark.parametrize("name", ["int8", "float8_e4m3fn", "float64", "auto", ["bfloat16"]])
def test_a_dtype_that_no_model_is_loaded_as_is_refused(name):
    with pytest.raises(FileFormatError, match="expected one of bfloat16, float16, float32 as torch_dtype"):
        plan("llama", config={"torch_dtype": name})


@pytest.mark.parametrize("stored", [np.int32, np.uint8, np.bool_])
def test_a_weight_of_integers_is_refused(tmp_path, stored):
    weights = {"model.layers.1.mlp.up_proj.weight": np.ones((512, 256), stored)}
    with pytest.raises(FormatError, match=rf"model\.layers\.1\.mlp\.up_proj\.weight holds {np.dtype(stored).name}"):
        plan_cache(write_model(tmp_path / NAME, weights=weights), "out", "N300")


def test_a_tensor_is_not_both_used_and_unused():
    tower = {"vision_tower.encoder.layers.0.self_attn.q_proj.bias": (8,)}
    for family, added in (
        ("phi3", {f"model.layers.{k}.self_attn.q_proj.bias": (256,) for k in (0, 1)}),
        ("llama", tower),
    ):
        used, (note,) = plan(family, added)
        assert not used & set(added)
        assert note.startswith("unused:")
    with pytest.raises(FileFormatError, match="attention_bias = true, but the checkpoint has no such tensor"):
        plan("llama", tower, {"attention_bias": True})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("logit_scale", "family llama has no weight"),
        ("model.layers.0.self_attn.k_scale", "it scales activations or a KV cache"),
        ("model.layers.0.mlp.up_proj.input_global_scale", "it scales activations or a KV cache"),
        ("model.layers.0.mlp.up_proj.input_zero_point", "it scales activations or a KV cache"),
    ],
)
def test_only_scales_of_activations_are_said_to_be_such(name, reason):
    (note,) = plan("llama", {name: (1,)})[1]
    assert note.startswith(f"unused: {name}: {reason}")


@pytest.mark.parametrize("value", [True, 1, "yes"])
@pytest.mark.parametrize("field", ["attention_bias", "mlp_bias", "qk_norm"])
def test_a_config_that_announces_tensors_that_do_not_exist_is_refused(field, value):
    said = json.dumps(value)
    with pytest.raises(
        FileFormatError, match=f"config.json says {field} = {said}, but the checkpoint has no such tensor as"
    ):
        plan("llama", config={field: value})


def test_a_quantization_config_without_quantised_tensors_is_named(tmp_path):
    source = write_model(tmp_path / NAME, {"quantization_config": {"quant_method": "fp8"}})
    assert plan_cache(source, "out", "N300").notes == (
        "config.json has a quantization_config, but no tensor is quantised: it is not used",
    )


def test_tensors_that_a_config_denies_are_used_and_named():
    added = {f"model.layers.{k}.self_attn.{n}_proj.bias": (256,) for k in (0, 1) for n in "qkv"}
    used, notes = plan("llama", added, {"attention_bias": False})
    assert set(added) <= used
    (note,) = notes
    assert note.startswith("used: model.layers.*.self_attn.q_proj.bias")
    assert "of type llama unless config.json says attention_bias = true" in note
    assert plan("llama", added, {"attention_bias": True})[1] == ()


def test_a_checkpoint_without_a_dtype_is_loaded_as_it_is_stored(tmp_path):
    for stored in (np.float32, np.float16):
        source = write_model(tmp_path / np.dtype(stored).name / NAME, {"torch_dtype": None}, dtype=stored)
        plan = plan_cache(source, "out", "N300")
        (marker,) = [json.loads(body) for body in plan.beside.values()]
        assert {kind for _, kind in marker["weights"].values()} == {f"torch.{np.dtype(stored).name}"}
        assert plan.notes == ()
    mixed = {"model.norm.weight": np.ones(256, np.float32)}
    plan = plan_cache(write_model(tmp_path / "mixed" / NAME, {"torch_dtype": None}, mixed), "out", "N300")
    assert plan.notes == (
        "config.json has no dtype, and the tensors have bfloat16 and float32: it is taken as loaded in bfloat16",
    )


def test_a_model_of_no_family_is_refused_before_its_tensors_are_looked_at(tmp_path):
    home = tmp_path / "DeepSeek-V3"
    home.mkdir()
    (home / "config.json").write_text(json.dumps({"model_type": "deepseek_v3"}))
    (home / "model.safetensors").write_bytes(b"not a header")
    ended = invoke("prepare", str(home), str(tmp_path / "out"), "--for", "T3K")
    assert ended.exit_code == 2
    assert "no family for model_type 'deepseek_v3'" in ended.stderr
    assert "hidden_size is missing" in invoke("fit", str(home), "--for", "T3K").stderr  # which estimates it


@pytest.mark.parametrize(
    ("rename", "remark"),
    [
        ("language_model.{}".format, "it has 'language_model.model.embed_tokens.weight', under another prefix"),
        (lambda name: name.removeprefix("model."), "it has 'embed_tokens.weight', under another prefix"),
        (lambda name: f"h.{len(name)}.{name[::-1]}", "none of its names starts with 'model': they are such as 'h."),
    ],
)
def test_names_that_are_not_those_of_transformers_are_shown(rename, remark):
    plain = checkpoint_of("llama")
    tensors = {rename(name): Assembly.of(rename(name), each.shape) for name, each in plain.tensors.items()}
    with pytest.raises(FormatError, match=r"no tensor 'model\.embed_tokens\.weight'") as told:
        _ = WeightCache(replace(plain, tensors=tensors, formats={}), "P150x8").files
    assert remark in str(told.value)


def test_heads_that_do_not_divide_a_weight_are_compared_with_its_shape():
    checkpoint = checkpoint_of("llama", None, {"num_attention_heads": 7}, {"num_attention_heads": 8})
    with pytest.raises(FormatError, match=r"says that layers\.0\.attention\.wq\.weight has shape \[224, 256\]"):
        _ = WeightCache(checkpoint, "P150").files


def test_8_bit_floats_without_scales_are_named(tmp_path):
    codes = {f"model.layers.{k}.mlp.up_proj.weight": np.ones((512, 256), ml_dtypes.float8_e4m3fn) for k in (0, 1)}
    (note,) = plan_cache(write_model(tmp_path / NAME, weights=codes), "out", "N300").notes
    assert note.startswith("model.layers.0.mlp.up_proj.weight and 1 more: 8-bit floats without scales")
