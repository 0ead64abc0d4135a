# SPDX-License-Identifier: Apache-2.0
"""Families of models: the language models of larger ones, and sets of rules for those that no recipe knows."""

import json

import ml_dtypes
import numpy as np
import pytest

from tilewright import FileFormatError, FormatError, convert, open_tensors, verify
from tilewright.conversion import Recipe, capacity, check_cache, fit, plan_cache, plan_conversion, prepare
from tilewright.conversion.rules import rule_sets

from ..files.samples import write_safetensors
from .llamas import NAME, files_of, numbers, write_model
from .recorded_caches import records, write_checkpoint

RECORDED = ("gemma3-N150", "mistral3-N300", "mllama-N300", "qwen25vl-N150", "qwen3vl-N300")


def recorded_model(name, folder):
    checkpoint = records()[name]["checkpoint"]
    write_checkpoint(checkpoint, folder)
    return folder / checkpoint["name"]


@pytest.mark.parametrize("name", [f"{name}-performance" for name in RECORDED])
def test_plan_fit_and_capacity_of_a_language_model_agree(name, tmp_path):
    model, machine = recorded_model(name, tmp_path), records()[name]["run"]["device"]
    plan = plan_cache(model, "out", machine)
    used = {source for item in plan.items for source in item.source.tensors}
    stored = {each[0] for each in records()[name]["checkpoint"]["tensors"]}
    assert len(used) + len(plan.skipped) == len(stored)  # nothing is dropped
    assert not any(note.startswith("used:") or "nothing here reads" in note for note in plan.notes)
    assert any("it belongs to images or sound" in note for note in plan.notes)
    assert plan.beside == {}  # no marker: the cache is not of the whole model
    whole, bare = capacity(model, machine), capacity(model / "config.json", machine)
    assert (whole.is_estimate, bare.is_estimate) == (False, False)
    assert whole.by_kind() == bare.by_kind()
    assert f"DRAM: {whole.by_kind()['weights']} of" in str(fit(model, machine=machine))


def test_a_language_model_may_have_the_names_of_either_version_of_transformers(tmp_path):
    weights = open_tensors(write_model(tmp_path / "plain"))
    arrays = {name: tensor.read() for name, tensor in weights.items()}
    config = json.loads((tmp_path / "plain" / "config.json").read_text())
    nested = {"model_type": "mistral3", "text_config": {**config, "model_type": "mistral"}, "vision_config": {}}
    caches = []
    for kind, prefix, head in (
        ("old", "language_model.model.", "language_model.lm_head.weight"),
        ("new", "model.language_model.", "lm_head.weight"),
    ):
        home = tmp_path / kind / NAME
        home.mkdir(parents=True)
        renamed = {f"{prefix}{name.removeprefix('model.')}": values for name, values in arrays.items()}
        renamed[head] = renamed.pop(f"{prefix}lm_head.weight")
        write_safetensors(home / "model.safetensors", {**renamed, "vision_tower.w": numbers(4, 4)})
        (home / "config.json").write_text(json.dumps(nested))
        report = prepare(home, tmp_path / kind / "cache", "N300")
        assert report.notes == (
            "unused: vision_tower.w: it belongs to images or sound, and the cache is of the language model",
        )
        assert check_cache(tmp_path / kind / "cache", home)
        assert verify(report.out, home)
        (norm,) = (tmp_path / kind / "cache").rglob("norm.weight_dtype*")
        (norm.parent / f"visual.merger.{norm.name}").write_bytes(norm.read_bytes())  # as tt_transformers adds them
        assert check_cache(tmp_path / kind / "cache", home)
        caches.append(
            {
                name: data
                for name, data in files_of(report.out).items()
                if "visual" not in name and name.endswith(".tensorbin")
            }
        )
    plain = prepare(tmp_path / "plain", tmp_path / "cache", "N300", hf_model=NAME)
    expected = {name: data for name, data in files_of(plain.out).items() if name.endswith(".tensorbin")}
    assert caches[0] == caches[1] == expected
    write_safetensors(home / "model.safetensors", {**renamed, "model.norm.weight": numbers(256)})
    with pytest.raises(FileFormatError, match=r"two tensors are 'model\.norm\.weight' of the language model"):
        plan_cache(home, "out", "N300")
    (home / "config.json").write_text(json.dumps({**nested, "hidden_size": 512}))
    write_safetensors(home / "model.safetensors", renamed)
    with pytest.raises(FormatError, match="hidden_size is 512, but its text_config says 256"):
        plan_cache(home, "out", "N300")
    lost = {name: values for name, values in renamed.items() if "layers.1.mlp.up_proj" not in name}
    (home / "config.json").write_text(json.dumps(nested))
    write_safetensors(home / "model.safetensors", lost)
    with pytest.raises(FormatError, match=r"has no tensor 'model\.layers\.1\.mlp\.up_proj\.weight'"):
        plan_cache(home, "out", "N300")


def test_a_family_that_was_not_recorded_says_so(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('model_types = ["olmo"]\nextends = "llama"\nrecorded = false\n')
    source = write_model(tmp_path / NAME, {"model_type": "olmo"})
    report = prepare(source, tmp_path / "out", "N300", recipe=path)
    assert "family mine follows the source of the original; it was not compared" in report.notes[0]
    recipe = json.loads((tmp_path / "out" / "N300" / "tensor_cache_instruct_bfp8" / "tilewright.json").read_text())
    assert recipe["recipe"]["recorded"] is False
    assert all(family.recorded for family in Recipe.load().families.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('required = ["layers.{layer}.w"]', r"required: mine has no weight 'layers\.\{layer\}\.w'"),
        ("[unused]\n'(' = 'why'", r"unused: expected a regular expression, got '\('"),
        ("[unused]\n'w' = 3", "unused: 'w': expected a text"),
        ("config = 3", "config: expected a table"),
    ],
)
def test_what_is_wrong_with_a_family_is_said(text, message, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(f'model_types = ["olmo"]\nextends = "llama"\n{text}\n')
    with pytest.raises(FileFormatError, match=message):
        Recipe.load(path)


def test_an_unknown_family_names_the_nearest_or_a_set_of_rules():
    recipe = Recipe.load()
    with pytest.raises(FormatError, match="to which 'gemma3' is the nearest; it has gemma, gemma2, gemma3, llama"):
        recipe.family("gemma3_text")
    for name, model_types in rule_sets().items():
        for model_type in set(model_types) - {"mixtral"}:
            with pytest.raises(FormatError, match=f"convert --rules {name} cuts and tiles its weights"):
                recipe.family(model_type)
    plan = plan_conversion({"model.norm.weight": np.zeros(3)}, "out", rules="deepseek")
    assert "no tensor matches the pattern 'model.layers.{layer}.self_attn.q_kv_a_proj.weight'" in plan.notes
    with pytest.raises(FormatError, match="the name of a set: did you mean 'gpt_oss'"):
        plan_conversion({"w": np.zeros(3)}, "out", rules="gpt_os")


# Sets of rules: what `convert --rules NAME` makes of small models, computed here with NumPy.

EXPERTS, WIDTH, SIZE = 3, 64, 96
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def converted(folder, tensors, rules, config=None, dtype="bfloat16"):
    """Return what the rules make of tensors, and the notes of the plan."""
    home = folder / "model"
    home.mkdir()
    write_safetensors(home / "model.safetensors", tensors)
    (home / "config.json").write_text(json.dumps(config or {}))
    plan = plan_conversion(home, folder / "out", rules=rules, dtype=dtype)
    used = {name for item in plan.items for name in item.source.tensors}
    assert len(used) == len(open_tensors(home))  # nothing is dropped
    convert(home, folder / "out.safetensors", rules=rules, dtype=dtype)
    return {name: tensor.read() for name, tensor in open_tensors(folder / "out.safetensors").items()}, plan


def mxfp4(shape, seed):
    """Return the blocks and scales of a random tensor, and its values."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 16, shape, np.uint8)
    scales = rng.integers(124, 130, (*shape[:-1], shape[-1] // 32), np.uint8)
    blocks = (codes[..., ::2] | codes[..., 1::2] << 4).reshape(*scales.shape, 16)
    return blocks, scales, E2M1[codes] * np.repeat(np.exp2(scales.astype(np.float32) - 127), 32, axis=-1)


@pytest.mark.parametrize("is_packed", [True, False])
def test_gpt_oss(is_packed, tmp_path):
    start = "model.layers.0"
    (gate_up, gate_up_scales, both), (down, down_scales, second) = (
        mxfp4((EXPERTS, 2 * SIZE, WIDTH), 1),
        mxfp4((EXPERTS, WIDTH, SIZE), 2),
    )
    experts = {"gate_up_proj_bias": numbers(EXPERTS, 2 * SIZE), "down_proj_bias": numbers(EXPERTS, WIDTH)}
    packed = {
        "gate_up_proj_blocks": gate_up, "gate_up_proj_scales": gate_up_scales,
        "down_proj_blocks": down, "down_proj_scales": down_scales,
    }  # fmt: skip
    plain = {"gate_up_proj": np.swapaxes(both, 1, 2), "down_proj": np.swapaxes(second, 1, 2)}
    experts |= packed if is_packed else {name: values.astype(ml_dtypes.bfloat16) for name, values in plain.items()}
    tensors = {f"{start}.mlp.experts.{name}": np.ascontiguousarray(values) for name, values in experts.items()}
    tensors |= {
        f"{start}.mlp.router.weight": numbers(EXPERTS, WIDTH),
        f"{start}.mlp.router.bias": numbers(EXPERTS),
        f"{start}.self_attn.sinks": numbers(8),
        f"{start}.self_attn.q_proj.weight": numbers(128, WIDTH),
        f"{start}.input_layernorm.weight": numbers(WIDTH),
        "model.embed_tokens.weight": numbers(70, WIDTH),
    }
    config = {"model_type": "gpt_oss"} | ({"quantization_config": {"quant_method": "mxfp4"}} if is_packed else {})
    out, plan = converted(tmp_path, tensors, "gpt_oss", config)
    assert not plan.notes
    bias = tensors[f"{start}.mlp.experts.gate_up_proj_bias"]
    expected = {
        f"{start}.mlp.experts.gate_proj": np.swapaxes(both[:, 0::2], 1, 2),
        f"{start}.mlp.experts.up_proj": np.swapaxes(both[:, 1::2], 1, 2),
        f"{start}.mlp.experts.down_proj": np.swapaxes(second, 1, 2),
        f"{start}.mlp.experts.gate_proj_bias": bias[:, 0::2],
        f"{start}.mlp.experts.up_proj_bias": bias[:, 1::2],
        f"{start}.mlp.experts.down_proj_bias": tensors[f"{start}.mlp.experts.down_proj_bias"],
        f"{start}.mlp.router.weight": tensors[f"{start}.mlp.router.weight"].T,
        f"{start}.self_attn.q_proj.weight": tensors[f"{start}.self_attn.q_proj.weight"].T,
        "model.embed_tokens.weight": tensors["model.embed_tokens.weight"],
    }
    assert len(out) == len(expected) + 3
    for name, values in expected.items():
        assert (out[name].astype(np.float32) == values.astype(np.float32)).all(), name
    specs = {item.name: item.spec for item in plan.items}
    assert specs["model.embed_tokens.weight"].page_layout.name == "ROW_MAJOR"
    small = plan_conversion(tmp_path / "model", tmp_path / "o", rules="gpt_oss", dtype="bfloat4_b")
    formats = {item.name: item.spec.dtype.name for item in small.items}
    assert formats[f"{start}.mlp.experts.up_proj"] == "bfloat4_b"
    assert {
        formats[f"{start}.{name}"] for name in ("self_attn.sinks", "mlp.router.weight", "input_layernorm.weight")
    } == {"bfloat16"}


def test_experts_of_qwen_and_mixtral(tmp_path):
    parts = {"gate": (SIZE, WIDTH), "up": (SIZE, WIDTH), "down": (WIDTH, SIZE)}
    single = {
        f"model.layers.0.mlp.experts.{e}.{part}_proj.weight": numbers(*shape, seed=e)
        for e in range(EXPERTS)
        for part, shape in parts.items()
    }
    fused, down = numbers(EXPERTS, 2 * SIZE, WIDTH), numbers(EXPERTS, WIDTH, SIZE)
    mixtral = {
        f"model.layers.2.block_sparse_moe.experts.{e}.w2.weight": numbers(WIDTH, SIZE, seed=e) for e in range(EXPERTS)
    }
    for e in range(EXPERTS):
        for part in ("w1", "w3"):
            mixtral[f"model.layers.2.block_sparse_moe.experts.{e}.{part}.weight"] = numbers(SIZE, WIDTH, seed=e)
    tensors = {
        **single, **mixtral,
        "model.layers.0.mlp.gate.weight": numbers(EXPERTS, WIDTH),
        "model.layers.1.mlp.gate.weight": numbers(EXPERTS, WIDTH),
        "model.layers.2.block_sparse_moe.gate.weight": numbers(EXPERTS, WIDTH),
        "model.layers.1.mlp.experts.gate_up_proj": fused,
        "model.layers.1.mlp.experts.down_proj": down,
        "model.layers.1.mlp.shared_expert.up_proj.weight": numbers(SIZE, WIDTH),
        "model.layers.1.mlp.shared_expert_gate.weight": numbers(1, WIDTH),
        "model.layers.3.mlp.up_proj.weight": numbers(SIZE, WIDTH),
    }  # fmt: skip
    out, plan = converted(tmp_path, tensors, "moe")
    assert not plan.notes
    for part in parts:
        stack = [single[f"model.layers.0.mlp.experts.{e}.{part}_proj.weight"].T for e in range(EXPERTS)]
        assert (out[f"model.layers.0.mlp.experts.{part}_proj.weight"] == np.stack(stack)).all()
    assert (out["model.layers.1.mlp.experts.gate_proj.weight"] == np.swapaxes(fused[:, :SIZE], 1, 2)).all()
    assert (out["model.layers.1.mlp.experts.up_proj.weight"] == np.swapaxes(fused[:, SIZE:], 1, 2)).all()
    assert (out["model.layers.1.mlp.experts.down_proj.weight"] == np.swapaxes(down, 1, 2)).all()
    w2 = [mixtral[f"model.layers.2.block_sparse_moe.experts.{e}.w2.weight"].T for e in range(EXPERTS)]
    assert (out["model.layers.2.block_sparse_moe.experts.w2.weight"] == np.stack(w2)).all()
    assert out["model.layers.1.mlp.shared_expert_gate.weight"].shape == (WIDTH, 1)
    assert (out["model.layers.3.mlp.up_proj.weight"] == tensors["model.layers.3.mlp.up_proj.weight"].T).all()
    assert len(out) == 15
    lost = {name: values for name, values in tensors.items() if "0.mlp.experts.2.down_proj" not in name}
    with pytest.raises(FormatError, match=r"has no tensor 'model\.layers\.0\.mlp\.experts\.2\.down_proj\.weight'"):
        plan_conversion(lost, tmp_path / "o", rules="moe")


@pytest.mark.parametrize("has_latent_queries", [True, False])
def test_the_attention_and_experts_of_deepseek(has_latent_queries, tmp_path):
    heads, key, rotary, value, rank, query_rank = 4, 16, 8, 24, 32, 48
    attention = "model.layers.1.self_attn"
    own = {
        "kv_a_proj_with_mqa.weight": (rank + rotary, WIDTH), "kv_a_layernorm.weight": (rank,),
        "kv_b_proj.weight": (heads * (key + value), rank), "o_proj.weight": (WIDTH, heads * value),
    }  # fmt: skip
    if has_latent_queries:
        own |= {"q_a_proj.weight": (query_rank, WIDTH), "q_a_layernorm.weight": (query_rank,)}
        own |= {"q_b_proj.weight": (heads * (key + rotary), query_rank)}
    else:
        own |= {"q_proj.weight": (heads * (key + rotary), WIDTH)}
    tensors = {f"{attention}.{name}": numbers(*shape) for name, shape in own.items()}
    experts = {
        f"model.layers.1.mlp.experts.{e}.{part}_proj.weight": numbers(SIZE, WIDTH, seed=e)
        for e in range(EXPERTS)
        for part in ("gate", "up")
    }
    experts |= {f"model.layers.1.mlp.experts.{e}.down_proj.weight": numbers(WIDTH, SIZE) for e in range(EXPERTS)}
    tensors |= {**experts, "model.layers.1.mlp.gate.weight": numbers(EXPERTS, WIDTH)}
    tensors |= {"model.layers.1.mlp.gate.e_score_correction_bias": np.arange(EXPERTS, dtype=np.float32)}
    out, plan = converted(tmp_path, tensors, "deepseek")
    assert not plan.notes
    both = tensors[f"{attention}.kv_b_proj.weight"].reshape(heads, key + value, rank)
    assert (out[f"{attention}.k_b_proj.weight"] == both[:, :key]).all()
    assert (out[f"{attention}.v_b_proj.weight"] == np.swapaxes(both[:, key:], 1, 2)).all()
    latent = tensors[f"{attention}.kv_a_proj_with_mqa.weight"]
    if has_latent_queries:
        latent = np.concatenate([tensors[f"{attention}.q_a_proj.weight"], latent])
        assert (out[f"{attention}.q_kv_a_proj.weight"] == latent.T).all()
        assert (out[f"{attention}.q_b_proj.weight"] == tensors[f"{attention}.q_b_proj.weight"].T).all()
    else:
        assert (out[f"{attention}.kv_a_proj_with_mqa.weight"] == latent.T).all()
    stack = [experts[f"model.layers.1.mlp.experts.{e}.up_proj.weight"].T for e in range(EXPERTS)]
    assert (out["model.layers.1.mlp.experts.up_proj.weight"] == np.stack(stack)).all()
    assert out["model.layers.1.mlp.gate.e_score_correction_bias"].dtype == np.float32


def test_loops_may_use_the_numbers_of_tensors_and_earlier_names(tmp_path):
    tensors = {f"blocks.{k}.w{n}": numbers(4, 6, seed=k) for k in (0, 2, 10) for n in range(k + 1)}
    tensors |= {f"blocks.{k}.x.v": numbers(4, 6) for k in (0, 2, 10)}
    each = {"k": "numbers('blocks.*.x.v')", "n": "range(k)"}
    rules = {"of.{k}.{n}": {"value": "tensor(f'blocks.{k}.w{n}')", "each": each}}
    names = [item.name for item in plan_conversion(tensors, tmp_path / "o", rules=rules).items]
    assert [name for name in names if name.startswith("of")] == [f"of.{k}.{n}" for k in (0, 2, 10) for n in range(k)]
    none = {"of.{k}": {"value": "tensor(f'{k}')", "each": {"k": "numbers('layers.*.w')"}}}
    plan = plan_conversion(tensors, tmp_path / "o", rules=none)
    assert "no tensor matches the pattern 'of.{k}'" in plan.notes
    assert len(plan.items) == len(tensors)
