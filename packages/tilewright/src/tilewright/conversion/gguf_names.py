# SPDX-License-Identifier: Apache-2.0
"""GGUF models under the names of Hugging Face: tables for the common architectures, and what llama.cpp's converter did.

The converter renames tensors, stacks experts, and changes some values: rows of query and key projections are in another
order in the Llama family, norms of Gemma have 1 added. All of it is undone here, as assemblies over the tensors of the
file: nothing is moved. (Facts: conversion/ and gguf-py of ggml-org/llama.cpp.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeAlias

from ..copying import Assembly
from ..errors import FileFormatError, FormatError
from ..files import StoredTensor
from .source import stored_assembly

Names: TypeAlias = Mapping[str, str]
Config: TypeAlias = "dict[str, Any]"  # plain data of JSON

MODEL_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_ATTENTION = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}
_HEAD_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
_GATED = {"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
_LLAMA = {**_ATTENTION, **_NORMS, **_GATED}
_MIXTRAL_EXPERTS = {
    "ffn_gate_exps": "block_sparse_moe.experts.{}.w1",
    "ffn_down_exps": "block_sparse_moe.experts.{}.w2",
    "ffn_up_exps": "block_sparse_moe.experts.{}.w3",
}
_QWEN_EXPERTS = {f"ffn_{part}_exps": f"mlp.experts.{{}}.{part}_proj" for part in ("gate", "up", "down")}
_SHARED_EXPERT = {
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    **{f"ffn_{part}_shexp": f"mlp.shared_expert.{part}_proj" for part in ("gate", "up", "down")},
}
_FOUR_NORMS = {
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


@dataclass(frozen=True)
class Architecture:
    """An architecture of GGUF: its name at Hugging Face, its modules, and the changes to undo.

    `layers` has the modules in a layer. `experts` are stacked, and have the number of the expert in their name.
    `paired` query and key projections have the two halves of a head interleaved; `norm_shift` was added to all norms.

    >>> ARCHITECTURES["qwen3"].layers["attn_q_norm"]
    'self_attn.q_norm'
    """

    model_type: str
    class_name: str
    layers: Names
    experts: Names = field(default_factory=dict)
    paired: bool = False
    norm_shift: float = 0


_MIXTRAL = Architecture(
    "mixtral",
    "MixtralForCausalLM",
    {**_LLAMA, "ffn_gate_inp": "block_sparse_moe.gate"},
    experts=_MIXTRAL_EXPERTS,
    paired=True,
)
ARCHITECTURES: dict[str, Architecture] = {
    "llama": Architecture("llama", "LlamaForCausalLM", _LLAMA, paired=True),
    "mistral3": Architecture("mistral", "MistralForCausalLM", _LLAMA, paired=True),
    "granite": Architecture("granite", "GraniteForCausalLM", _LLAMA, paired=True),
    "qwen2": Architecture("qwen2", "Qwen2ForCausalLM", _LLAMA),
    "qwen3": Architecture("qwen3", "Qwen3ForCausalLM", {**_LLAMA, **_HEAD_NORMS}),
    "qwen2moe": Architecture(
        "qwen2_moe",
        "Qwen2MoeForCausalLM",
        {**_ATTENTION, **_NORMS, **_SHARED_EXPERT, "ffn_gate_inp": "mlp.gate"},
        experts=_QWEN_EXPERTS,
    ),
    "qwen3moe": Architecture(
        "qwen3_moe",
        "Qwen3MoeForCausalLM",
        {**_ATTENTION, **_HEAD_NORMS, **_NORMS, "ffn_gate_inp": "mlp.gate"},
        experts=_QWEN_EXPERTS,
    ),
    "gemma": Architecture("gemma", "GemmaForCausalLM", _LLAMA, norm_shift=1),
    "gemma2": Architecture("gemma2", "Gemma2ForCausalLM", {**_ATTENTION, **_FOUR_NORMS, **_GATED}, norm_shift=1),
    "gemma3": Architecture(
        "gemma3_text", "Gemma3ForCausalLM", {**_ATTENTION, **_HEAD_NORMS, **_FOUR_NORMS, **_GATED}, norm_shift=1
    ),
    "phi3": Architecture(
        "phi3",
        "Phi3ForCausalLM",
        {
            **_NORMS,
            "attn_qkv": "self_attn.qkv_proj",
            "attn_output": "self_attn.o_proj",
            "ffn_up": "mlp.gate_up_proj",
            "ffn_down": "mlp.down_proj",
        },
    ),
    "starcoder2": Architecture(
        "starcoder2", "Starcoder2ForCausalLM", {**_ATTENTION, **_NORMS, "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}
    ),
}
"""The architectures by their name in GGUF. Mistral is "llama" there, and so is Mixtral, which has experts."""

# The keys of config.json, and the metadata keys after the name of the architecture.
_INTEGERS = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "max_position_embeddings": "context_length",
    "sliding_window": "attention.sliding_window",
    "num_local_experts": "expert_count",
    "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": "expert_feed_forward_length",
    "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
}
_NUMBERS = {
    "rope_theta": "rope.freq_base",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "layer_norm_eps": "attention.layer_norm_epsilon",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
# Other metadata of an architecture, which do not change weights or their order.
_UNRELATED = re.compile(
    r"vocab_size|tensor_data_layout|use_parallel_residual|pooling_type|rope\..+"
    r"|attention\.(causal|scale|layer_norm\w*|sliding_window\w*|group_norm\w*)|expert_(group|weights)\w*"
)
_REQUIRED = ("hidden_size", "num_hidden_layers", "num_attention_heads")
_LAYER = re.compile(r"blk\.(\d+)\.([a-z_0-9]+)\.(weight|bias)")
_EXPERT = re.compile(r"blk\.(\d+)\.ffn_(gate|up|down)\.(\d+)\.weight")  # of files from before experts were stacked
_MODULE = re.compile(r"([a-z_0-9]+)\.(weight|bias)")
_MAX_EXPERTS = 4096
# What people add to the name of a model when they quantise it.
_LABEL = re.compile(r"(-\d{5}-of-\d{5})?\.gguf$|[-._](GGUF|I?Q\d\w*|TQ\d_\d|MXFP4\w*|NVFP4|B?F16|F32)$", re.IGNORECASE)


@dataclass(frozen=True)
class NamedModel:
    """A GGUF model under the names of Hugging Face: its config, its stored tensors, and how weights are made of them.

    `weights` has an assembly for every name; its sources are names of `tensors`. `notes` are about the metadata.
    """

    config: Config
    tensors: Mapping[str, StoredTensor]
    weights: Mapping[str, Assembly]
    notes: tuple[str, ...] = ()


def name_gguf_model(metadata: Mapping[str, str], stored: Mapping[str, StoredTensor]) -> NamedModel:
    """Return the GGUF model with some `metadata` and `stored` tensors under the names of Hugging Face.

    Tensors that the table does not have remain as they are.

    >>> from tilewright.files.tensor_file import store_arrays
    >>> import numpy
    >>> stored = store_arrays({"token_embd.weight": numpy.zeros((7, 4), numpy.float32)})
    >>> sizes = {"embedding_length": 4, "block_count": 0, "attention.head_count": 2}
    >>> metadata = {f"qwen2.{key}": str(value) for key, value in sizes.items()}
    >>> model = name_gguf_model({"general.architecture": "qwen2", **metadata}, stored)
    >>> list(model.weights), model.config["vocab_size"]
    (['model.embed_tokens.weight'], 7)
    """
    architecture = find_architecture(metadata)
    config = build_config(architecture, metadata, stored)
    tensors: dict[str, StoredTensor] = {}
    weights: dict[str, Assembly] = {}
    for name, tensor in stored.items():
        if (match := _LAYER.fullmatch(name)) is not None and match[2] in architecture.experts:
            tensors[name] = tensor
            weights |= _name_experts(
                f"model.layers.{int(match[1])}.{architecture.experts[match[2]]}.{match[3]}", tensor
            )
            continue
        renamed, module = _rename(architecture, name)
        if renamed in tensors:
            raise FileFormatError(
                f"the model has two tensors that Hugging Face names {renamed!r}; one of them is {name!r}"
            )
        tensors[renamed] = replace(tensor, name=renamed)
        if tensor.format is not None:
            weights[renamed] = _undo_changes(architecture, module, stored_assembly(tensors[renamed]), config)
    return NamedModel(config, tensors, weights, tuple(_note_unread(metadata, config)))


def _note_unread(metadata: Mapping[str, str], config: Config) -> Iterator[str]:
    """Yield a note on metadata of an architecture that `config` does not have."""
    start = f"{metadata['general.architecture']}."
    read_keys = {*_INTEGERS.values(), *_NUMBERS.values()}
    if metadata.get(f"{start}attention.value_length") == metadata.get(f"{start}attention.key_length"):
        read_keys.add("attention.value_length")
    entries = {key.removeprefix(start): text for key, text in metadata.items() if key.startswith(start)}
    unread = [
        f"{start}{key} = {text[:40]}"
        for key, text in entries.items()
        if key not in read_keys and _UNRELATED.fullmatch(key) is None
    ]
    if unread:
        yield f"nothing here reads {', '.join(unread)}; if it changes the weights, the cache is not of this model"
    rotated, size = entries.get("rope.dimension_count"), config["head_dim"]
    if rotated is not None and rotated != str(size or config["hidden_size"] // (config["num_attention_heads"] or 1)):
        yield (
            f"{start}rope.dimension_count is {rotated[:20]}, but the rows of heads are ordered for a rotation of whole"
            " heads, which is another model"
        )


def find_architecture(metadata: Mapping[str, str]) -> Architecture:
    """Return the architecture that metadata name, or raise a `FormatError`.

    >>> find_architecture({"general.architecture": "llama", "llama.expert_count": "8"}).model_type
    'mixtral'
    """
    name = metadata.get("general.architecture", "")
    if name not in ARCHITECTURES:
        raise FormatError(
            f"tilewright has no table of names for the GGUF architecture {name[:40]!r}; it has"
            f" {', '.join(ARCHITECTURES)}; use the safetensors that the model was made from"
        )
    return _MIXTRAL if name == "llama" and metadata.get("llama.expert_count", "0") != "0" else ARCHITECTURES[name]


def build_config(architecture: Architecture, metadata: Mapping[str, str], stored: Mapping[str, StoredTensor]) -> Config:
    """Return the equivalent of config.json for a model of an `architecture`.

    >>> metadata = {"general.architecture": "llama", "llama.embedding_length": "4096", "llama.block_count": "32"}
    >>> build_config(ARCHITECTURES["llama"], {**metadata, "llama.attention.head_count": "32"}, {})["hidden_size"]
    4096
    """
    name = metadata["general.architecture"]
    config: Config = {"model_type": architecture.model_type, "architectures": [architecture.class_name]}
    for keys, parse in ((_INTEGERS, int), (_NUMBERS, float)):
        for key, own in keys.items():
            if (text := metadata.get(f"{name}.{own}")) is not None:
                config[key] = _parse_number(text, f"{name}.{own}", parse)
    for key in _REQUIRED:
        if key not in config:
            raise FileFormatError(f"the metadata do not say {name}.{_INTEGERS[key]}, which the model's names depend on")
    if not config.get("num_local_experts"):
        config.pop("num_local_experts", None)
    elif architecture is not _MIXTRAL:
        config["num_experts"] = config.pop("num_local_experts")
    if (embedding := stored.get("token_embd.weight")) is not None:
        config["vocab_size"] = embedding.shape[0]
    for key in ("num_key_value_heads", "head_dim"):  # as many as there are heads, or their share of the columns
        config.setdefault(key, None)
    config["tie_word_embeddings"] = "output.weight" not in stored
    config["torch_dtype"] = _choose_dtype(stored)
    return config


def _choose_dtype(stored: Mapping[str, StoredTensor]) -> str:
    """Return the type to load the model as: the type of its matrices, bfloat16 if they have several."""
    file_types = {tensor.kind: tensor.format for tensor in stored.values() if len(tensor.shape) > 1}
    file_type, element = next(iter(file_types.items())) if len(file_types) == 1 else ("", None)
    return element.name if element is not None and file_type in ("F32", "F16") else "bfloat16"


def _parse_number(text: str, key: str, parse: Callable[[str], float]) -> float:
    try:
        return parse(text)
    except ValueError:
        raise FileFormatError(f"expected one number as {key}, got {text[:60]}") from None


def _rename(architecture: Architecture, name: str) -> tuple[str, str]:
    """Return the name of a tensor in Hugging Face, and its module in GGUF; what no table has stays as it is."""
    if (match := _LAYER.fullmatch(name)) is not None and match[2] in architecture.layers:
        return f"model.layers.{int(match[1])}.{architecture.layers[match[2]]}.{match[3]}", match[2]
    if (match := _EXPERT.fullmatch(name)) is not None and architecture.experts:
        expert = architecture.experts[f"ffn_{match[2]}_exps"].format(int(match[3]))
        return f"model.layers.{int(match[1])}.{expert}.weight", ""
    if (match := _MODULE.fullmatch(name)) is not None and match[1] in MODEL_NAMES:
        return f"{MODEL_NAMES[match[1]]}.{match[2]}", match[1]
    return name, ""


def _name_experts(pattern: str, stacked: StoredTensor) -> dict[str, Assembly]:
    """Return the weights of experts that are stacked in one tensor."""
    shape = stacked.shape
    if len(shape) < 2 or not 0 < shape[0] <= _MAX_EXPERTS or not prod(shape):
        raise FileFormatError(f"expected 1 to {_MAX_EXPERTS} experts in {stacked.name}, got shape {list(shape)}")
    if stacked.format is None:
        return {}
    whole = stored_assembly(stacked)
    return {pattern.format(expert): whole.slice(expert, expert + 1).reshape(*shape[1:]) for expert in range(shape[0])}


def _undo_changes(architecture: Architecture, module: str, value: Assembly, config: Config) -> Assembly:
    """Return a tensor of a module as Hugging Face has it."""
    if not prod(value.shape) or not value.shape:
        return value  # there is nothing to change; the recipe refuses it
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or heads
    if architecture.paired and module in ("attn_q", "attn_k"):
        return separate_halves(value, heads if module == "attn_q" else kv_heads)
    if architecture.norm_shift and module.endswith("norm"):
        return value + -architecture.norm_shift
    if module == "ffn_gate_inp_shexp" and len(value.shape) == 1:  # the converter drops dimensions of extent 1
        return value.reshape(1, *value.shape)
    return value


def separate_halves(projection: Assembly, heads: int) -> Assembly:
    """Return a projection with the interleaved halves of each head separated.

    >>> separate_halves(Assembly.of("q", (8,)), 2).parts[0].modes
    (((2, 4), (2, 1), (2, 2)),)
    """
    rows, *rest = projection.shape
    if heads < 1 or rows % (2 * heads):
        raise FileFormatError(f"{projection.text} of shape {list(projection.shape)} does not have {heads} even heads")
    axes = range(3, 3 + len(rest))
    half = rows // heads // 2
    return projection.reshape(heads, half, 2, *rest).transpose((0, 2, 1, *axes)).reshape(rows, *rest)


def model_spelling(path: str) -> str:
    """Return the name of a model from the `path` of its GGUF file or folder: without suffix, part, and type.

    >>> model_spelling("models/Llama-3.2-1B-Instruct-Q4_K_M.gguf"), model_spelling("qwen2.5-7b-00001-of-00002.gguf")
    ('models/Llama-3.2-1B-Instruct', 'qwen2.5-7b')
    """
    return _LABEL.sub("", _LABEL.sub("", path.rstrip("/")))
