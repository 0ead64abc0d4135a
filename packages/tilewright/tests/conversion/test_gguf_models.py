# SPDX-License-Identifier: Apache-2.0
"""GGUF models: `prepare` makes the same cache from them as from the Hugging Face model that they were converted from.

The models are converted here as llama.cpp does it, by the facts of its converter, with names spelled out.
"""

import json
import re

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.conversion import check_cache, plan_cache
from tilewright.conversion.gguf_names import ARCHITECTURES, name_gguf_model
from tilewright.files import open_tensors
from tilewright.files.safetensors import LLAMA_CONFIG, sample_llama
from tilewright.formats.ggml import GGML_TYPES

from ..files.gguf_files import write_gguf
from .llamas import NAME, files_of, numbers, write_model

pytestmark = pytest.mark.slow

MODULES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "block_sparse_moe.gate": "ffn_gate_inp",
}
GEMMA2_MODULES = {
    **MODULES,
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
KEYS = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "num_hidden_layers": "block_count",
    "num_local_experts": "expert_count",
}


def interleave_halves(values, heads):
    """Return a projection with the two halves of its heads interleaved, as llama.cpp wants it."""
    rows = values.reshape(heads, 2, len(values) // heads // 2, -1)
    return np.ascontiguousarray(rows.swapaxes(1, 2)).reshape(values.shape)


def convert_to_gguf(model, path, architecture, modules=None, dtype=np.float32, paired=False, shift=0):
    """Write the GGUF of a model folder: matrices as `dtype`, everything else as float32."""
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    named = {}
    experts = {}
    for name, tensor in open_tensors(model).items():
        found = re.fullmatch(r"(?:model\.layers\.(\d+)\.)?(.+)\.(weight|bias)", name)
        values = tensor.read().astype(np.float32)
        if (expert := re.fullmatch(r"block_sparse_moe\.experts\.(\d+)\.w([123])", found[2])) is not None:
            kind = {"1": "gate", "2": "down", "3": "up"}[expert[2]]
            experts.setdefault(f"blk.{found[1]}.ffn_{kind}_exps.weight", {})[int(expert[1])] = values
            continue
        if paired and found[2] in ("self_attn.q_proj", "self_attn.k_proj"):
            key = "num_attention_heads" if "q_proj" in name else "num_key_value_heads"
            values = interleave_halves(values, config[key])
        if found[2].endswith("norm"):
            values = values + np.float32(shift)
        layer = "" if found[1] is None else f"blk.{found[1]}."
        stored = values.astype(dtype) if values.ndim > 1 else values
        named[f"{layer}{(modules or MODULES)[found[2]]}.{found[3]}"] = stored
    for name, each in experts.items():
        named[name] = np.stack([each[k] for k in range(len(each))]).astype(dtype)
    named["rope_freqs.weight"] = np.ones(32, np.float32)
    metadata = {f"{architecture}.{KEYS[key]}": value for key, value in config.items() if key in KEYS}
    return write_gguf(path, named, {"general.architecture": architecture, **metadata, "x.words": ["a", "b"]})


def cache_files(source, out, machine="N300", **options):
    """Return the files of a cache without the manifest, which names its sources, and the marker by its content."""
    tw.prepare(source, out, machine, hf_model=NAME, **options)
    return {name: data for name, data in files_of(out).items() if not name.endswith("tilewright.json")}


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_llama_gives_the_same_cache(dtype, tmp_path):
    exact = {name: values.astype(np.float16).astype(dtype) for name, values in sample_llama().items()}
    name = "bfloat16" if dtype is ml_dtypes.bfloat16 else np.dtype(dtype).name
    model = write_model(tmp_path / NAME, {"torch_dtype": name}, exact)
    path = convert_to_gguf(model, tmp_path / f"{NAME}-F16.gguf", "llama", dtype=dtype, paired=True)
    for machine in ("N150", "N300"):
        expected = cache_files(model, tmp_path / machine / "a", machine)
        assert len(expected) > 20
        assert cache_files(path, tmp_path / machine / "b", machine) == expected


def qwen3():
    heads = {f"model.layers.{k}.self_attn.{n}_norm.weight": numbers(64, seed=k) for k in range(2) for n in "qk"}
    return {"model_type": "qwen3"}, heads


def qwen2():
    sizes = {"q": 256, "k": 128, "v": 128}
    biases = {
        f"model.layers.{k}.self_attn.{n}_proj.bias": numbers(size, seed=k)
        for k in range(2)
        for n, size in sizes.items()
    }
    return {"model_type": "qwen2"}, biases


def gemma2():
    names = ("pre_feedforward_layernorm", "post_feedforward_layernorm")
    norms = {f"model.layers.{k}.{name}.weight": numbers(256, seed=k) for k in range(2) for name in names}
    return {"model_type": "gemma2", "tie_word_embeddings": True}, {**norms, "lm_head.weight": None}


def phi3():
    weights = {}
    for k in range(2):
        base = f"model.layers.{k}"
        weights |= dict.fromkeys([f"{base}.self_attn.{n}_proj.weight" for n in "qkv"])
        weights |= dict.fromkeys([f"{base}.mlp.{n}_proj.weight" for n in ("gate", "up")])
        weights[f"{base}.self_attn.qkv_proj.weight"] = numbers(512, 256, seed=k)
        weights[f"{base}.mlp.gate_up_proj.weight"] = numbers(1024, 256, seed=k)
    return {"model_type": "phi3"}, weights


@pytest.mark.parametrize(
    ("make", "architecture", "options"),
    [
        (qwen2, "qwen2", {}),
        (qwen3, "qwen3", {}),
        (gemma2, "gemma2", {"modules": GEMMA2_MODULES, "shift": 1}),
        (phi3, "phi3", {}),
    ],
)
def test_other_families_give_the_same_cache(make, architecture, options, tmp_path):
    config, weights = make()
    model = write_model(tmp_path / NAME, config, weights)
    path = convert_to_gguf(model, tmp_path / "x.gguf", architecture, dtype=ml_dtypes.bfloat16, **options)
    expected = cache_files(model, tmp_path / "a")
    assert len(expected) > 20
    assert cache_files(path, tmp_path / "b") == expected
    asked = {"users": 4, "context": 4096, "hf_model": NAME}
    sizes = {each: tw.capacity(each, "N300", **asked).used() for each in (model, model / "config.json", path)}
    assert len(set(sizes.values())) == 1, sizes  # what a checkpoint holds is what its config.json implies


def test_a_mixtral_gives_the_same_cache(tmp_path):
    weights = {}
    for k in range(2):
        base = f"model.layers.{k}"
        weights |= dict.fromkeys([f"{base}.mlp.{n}_proj.weight" for n in ("gate", "up", "down")])
        weights[f"{base}.block_sparse_moe.gate.weight"] = numbers(8, 256, seed=k)
        for e in range(8):
            for n, shape in (("w1", (256, 256)), ("w2", (256, 256)), ("w3", (256, 256))):
                weights[f"{base}.block_sparse_moe.experts.{e}.{n}.weight"] = numbers(*shape, seed=10 * e + k)
    config = {"model_type": "mixtral", "num_local_experts": 8, "num_attention_heads": 8, "num_key_value_heads": 8}
    config |= {"intermediate_size": 256, "head_dim": 32}
    for k in range(2):
        for n in "kv":
            weights[f"model.layers.{k}.self_attn.{n}_proj.weight"] = numbers(256, 256, seed=k)
    model = write_model(tmp_path / NAME, config, weights)
    path = convert_to_gguf(model, tmp_path / "x.gguf", "llama", dtype=ml_dtypes.bfloat16, paired=True)
    expected = cache_files(model, tmp_path / "a", "T3K")
    assert cache_files(path, tmp_path / "b", "T3K") == expected


def test_experts_that_are_not_stacked_have_names(tmp_path):
    sizes = {"embedding_length": 4, "block_count": 1, "attention.head_count": 2, "expert_count": 2}
    metadata = {"general.architecture": "llama", **{f"llama.{name}": value for name, value in sizes.items()}}
    arrays = {f"blk.0.ffn_{n}.{e}.weight": np.zeros((8, 4), np.float32) for n in ("gate", "up", "down") for e in (0, 1)}
    opened = open_tensors(write_gguf(tmp_path / "x.gguf", arrays, metadata))
    experts = [f"model.layers.0.block_sparse_moe.experts.{e}.w{n}.weight" for n in (1, 3, 2) for e in (0, 1)]
    assert list(name_gguf_model(opened.metadata, opened).weights) == experts


def quantize_q8_0(values):
    """Return blocks of Q8_0 and the values that they stand for."""
    blocks = values.reshape(-1, 32).astype(np.float32)
    scales = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype(np.float16)
    codes = np.rint(blocks / np.maximum(scales.astype(np.float32), 1e-30)).clip(-127, 127).astype(np.int8)
    data = np.concatenate([scales.view(np.uint8), codes.view(np.uint8)], axis=1)
    return data, GGML_TYPES[8].decode(data).reshape(values.shape)


def test_a_quantised_llama_gives_the_cache_of_its_values(tmp_path):
    exact, stored = {}, {}
    for name, values in sample_llama().items():
        exact[name] = values
        if values.ndim > 1:
            exact[name] = quantize_q8_0(values)[1].astype(ml_dtypes.bfloat16)
    model = write_model(tmp_path / NAME, None, exact)
    gguf = open_tensors(convert_to_gguf(write_model(tmp_path / "b" / NAME), tmp_path / "x.gguf", "llama", paired=True))
    for name, tensor in gguf.items():
        values = tensor.read()
        stored[name] = (8, values.shape, quantize_q8_0(values)[0].tobytes()) if values.ndim > 1 else values
    config = {f"llama.{key}": LLAMA_CONFIG[name] for name, key in KEYS.items() if name in LLAMA_CONFIG}
    path = write_gguf(tmp_path / "q.gguf", stored, {"general.architecture": "llama", **config})
    expected = cache_files(model, tmp_path / "out" / "a")
    assert cache_files(path, tmp_path / "out" / "b") == expected
    assert cache_files(path, tmp_path / "out" / "c", memory=1 << 20, jobs=1) == expected
    assert check_cache(tmp_path / "out" / "b", path, full=True, hf_model=NAME)


def test_a_cache_is_checked_and_retargeted_like_any_other(tmp_path):
    model = write_model(tmp_path / "hf" / NAME, {"tie_word_embeddings": True}, {"lm_head.weight": None})
    path = convert_to_gguf(model, tmp_path / f"{NAME}.gguf", "llama", dtype=ml_dtypes.bfloat16, paired=True)
    tw.prepare(path, tmp_path / "cache", "N150")
    assert check_cache(tmp_path / "cache", path)
    assert check_cache(tmp_path / "cache")
    tw.conversion.retarget_cache(tmp_path / "cache", tmp_path / "other", "P150")
    assert check_cache(tmp_path / "other", path, full=True)


def test_the_plan_goes_by_the_name_without_the_type(tmp_path):
    model = write_model(tmp_path / NAME)
    path = convert_to_gguf(model, tmp_path / f"{NAME}-Q4_K_M.gguf", "llama", paired=True)
    plan = plan_cache(path, None, "N150")
    assert plan.recipe["model"] == NAME
    assert "instruct" in str(plan.out)


def test_architectures_without_a_table_are_refused(tmp_path):
    path = write_gguf(tmp_path / "x.gguf", {"a": np.zeros(3, np.float32)}, {"general.architecture": "rwkv7"})
    with pytest.raises(tw.FormatError, match="rwkv7"):
        plan_cache(path, None, "N150")
    path = write_gguf(tmp_path / "x.gguf", {"a": np.zeros(3, np.float32)}, {"general.architecture": "llama"})
    with pytest.raises(tw.FileFormatError, match=r"llama\.embedding_length"):
        plan_cache(path, None, "N150")
    sizes = {"embedding_length": "wide", "block_count": 1, "attention.head_count": 2}
    metadata = {"general.architecture": "llama", **{f"llama.{key}": value for key, value in sizes.items()}}
    with pytest.raises(tw.FileFormatError, match="expected one number"):
        plan_cache(write_gguf(tmp_path / "x.gguf", {"a": np.zeros(3, np.float32)}, metadata), None, "N150")


def test_every_architecture_names_its_modules_once(tmp_path):
    for key, architecture in ARCHITECTURES.items():
        modules = [*[f"blk.0.{name}" for name in architecture.layers], *architecture.model]
        arrays = {f"{name}.weight": np.zeros((16, 4), np.float32) for name in modules}
        arrays |= {f"blk.0.{name}.weight": np.zeros((3, 8, 4), np.float32) for name in architecture.experts}
        sizes = {"embedding_length": 4, "block_count": 1, "attention.head_count": 4, "attention.head_count_kv": 2}
        metadata = {"general.architecture": key, **{f"{key}.{name}": value for name, value in sizes.items()}}
        opened = open_tensors(write_gguf(tmp_path / "x.gguf", arrays, metadata))
        model = name_gguf_model(opened.metadata, opened)
        assert len(model.weights) == len(modules) + 3 * len(architecture.experts), key
        assert not [name for name in model.weights if name in arrays], key
        assert model.config["num_key_value_heads"] == 2, key


def test_metadata_that_nothing_reads_are_named(tmp_path):
    path = convert_to_gguf(write_model(tmp_path / NAME), tmp_path / "x.gguf", "llama", paired=True)
    opened = open_tensors(path)
    arrays = {name: np.array(tensor.read()) for name, tensor in opened.items()}
    sizes = {key: int(text) for key, text in opened.metadata.items() if key.startswith("llama.")}
    metadata = {"general.architecture": "llama", **sizes, "llama.context_length": 8192}
    facts = {"llama.rope.dimension_count": 64, "llama.rope.freq_base": 1e4, "llama.attention.value_length": 64}
    notes = plan_cache(write_gguf(path, arrays, {**metadata, **facts}), "out", "N300").notes
    assert notes == ("unused: rope_freqs.weight: rotary frequencies are computed from the configuration",)
    facts = {"llama.rope.dimension_count": 32, "llama.logit_scale": 3.0, "llama.attention.value_length": 32}
    _, unread, partial = plan_cache(write_gguf(path, arrays, {**metadata, **facts}), "out", "N300").notes
    assert unread.startswith("nothing here reads llama.logit_scale = 3.0, llama.attention.value_length = 32; if it")
    assert partial.startswith("llama.rope.dimension_count is 32, but the rows of heads are ordered for a rotation of")
    del arrays["token_embd.weight"]
    with pytest.raises(tw.FileFormatError, match=r"has no tensor 'token_embd\.weight'; use a file with all tensors"):
        plan_cache(write_gguf(path, arrays, metadata), "out", "N300")


def test_a_gguf_without_counts_of_keys_has_one_for_each_head(tmp_path):
    config, biases = qwen2()
    changes = {name: None for name in sample_llama() if ".k_proj." in name or ".v_proj." in name}
    for k in range(2):
        for n in "kv":
            changes[f"model.layers.{k}.self_attn.{n}_proj.weight"] = numbers(256, 256, seed=k)
            biases[f"model.layers.{k}.self_attn.{n}_proj.bias"] = numbers(256, seed=k)
    model = write_model(tmp_path / NAME, {**config, "num_key_value_heads": None}, {**changes, **biases})
    with pytest.raises(tw.FormatError, match=r"but config\.json says \[2048\]"):  # as transformers has it
        plan_cache(model, "out", "N150")
    path = convert_to_gguf(model, tmp_path / "x.gguf", "qwen2")
    assert plan_cache(path, "out", "N150").items
