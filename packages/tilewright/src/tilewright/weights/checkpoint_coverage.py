# SPDX-License-Identifier: Apache-2.0
"""The tensors and config fields of a checkpoint that its cache does not use: named with the reason, or refused.

Nothing is left out silently. A tensor in no file, and a field of config.json that no rule reads, gets a note; what
changes the weights that are written (an adapter, a scale) is refused, and so is a config that contradicts the tensors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ..errors import FileFormatError, FormatError
from ..tables import count_of

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
_LAYER = re.compile(r"model\.layers\.(\d+)\.")
_BEYOND = "model.layers"  # the pattern of layers that the model does not have
_EXPERT = re.compile(r".*\bexperts\.(\d+)\.")
_MAX_GROUPS = 100  # of tensors that are listed

# What changes the weights that are written, so that these would be wrong.
_REFUSED = (
    (
        r"lora_|\bdora_|\bia3_|\badapters?\b|modules_to_save|base_model\.",
        "belongs to an adapter that is not merged into the weights; merge it, and save the model again",
    ),
    (
        r"(weight|proj)_(scale|scales|scale_inv|scale_2|zero_point|zeros)$|\.(scales|qzeros|g_idx|absmax|SCB|quant_map)$",
        "belongs to a quantised weight that was read without it; use a checkpoint of the model in another format",
    ),
)
_IMAGES = r"(^|\.)(vision\w*|visual|image\w*|audio\w*|\w*projector)\."
# What a server of the language model leaves out as well, and why. A pattern that ends with a dot is of a whole module.
_IGNORED = (
    (r"inv_freq|rotary_emb|rope_(freqs|factors)", "rotary frequencies are computed from the configuration"),
    (_IMAGES, "it belongs to images or sound, and the cache is of the language model"),
    (
        r"(^|\.)(score|classifier|qa_outputs|(?!lm_)\w+_head)\.weight$",
        "it is another head than the language model's",
    ),
    (r"\b(mtp|nextn\w*|eh_proj|[eh]norm|shared_head)\b", "it predicts further tokens, which the cache is not for"),
    (
        r"(^|[._])(input|output|activation|act|attn|prob|k|q|v|kv)_(global_)?(scale|zero_point)$",
        "it scales activations or a KV cache, which have their own formats on the card",
    ),
    (r"\.bias$", "the card adds no bias there, and computes another model if the bias is not 0"),
)

_UNRELATED = frozenset((
    "architectures", "model_type", "torch_dtype", "dtype", "transformers_version", "auto_map", "tokenizer_class",
    "task_specific_params", "id2label", "label2id", "finetuning_task", "problem_type", "quantization_config",
    "compression_config", "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "unk_token_id",
    "decoder_start_token_id", "use_cache", "return_dict", "output_attentions", "output_hidden_states",
    "chunk_size_feed_forward", "is_decoder", "max_length", "min_length", "num_beams", "num_beam_groups",
    "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "num_return_sequences", "diversity_penalty", "hidden_act", "hidden_activation",
    "initializer_range", "rms_norm_eps", "layer_norm_eps", "max_position_embeddings",
    "original_max_position_embeddings", "rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq",
    "partial_rotary_factor", "sliding_window", "use_sliding_window", "max_window_layers", "layer_types",
    "sliding_window_pattern", "attention_dropout", "hidden_dropout", "embd_pdrop", "resid_pdrop", "attn_pdrop",
    "pretraining_tp", "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping",
    "cache_implementation", "attn_implementation", "use_bidirectional_attention", "attention_bias", "mlp_bias",
    "qkv_bias", "use_qk_norm", "qk_norm", "tie_word_embeddings", "num_experts_per_tok", "output_router_logits",
    "router_aux_loss_coef", "router_jitter_noise", "is_llama_config", "transformers.js_config",
    "max_sequence_length", "do_sample", "use_flash_attention_2", "unsloth_fixed", "unsloth_version",
))  # fmt: skip
"""Fields of config.json that are read elsewhere, or that change neither weights nor their order."""

# Fields that say whether there are tensors: the pattern of their names, and an example.
_QKV_BIAS = (r"\.(q|k|v|qkv)_proj\.bias$", "model.layers.0.self_attn.q_proj.bias")
_HEAD_NORM = (r"\.[qk]_norm\.weight$", "model.layers.0.self_attn.q_norm.weight")
_ANNOUNCED = {
    "attention_bias": _QKV_BIAS,
    "qkv_bias": _QKV_BIAS,
    "mlp_bias": (r"\.mlp\.\w+\.bias$", "model.layers.0.mlp.down_proj.bias"),
    "use_qk_norm": _HEAD_NORM,
    "qk_norm": _HEAD_NORM,
}

# Weights that the cache has wherever there are tensors, and the models that have them in transformers: of these types,
# or of these if config.json says attention_bias = true.
_OPTIONAL = (
    (_QKV_BIAS[0], ("qwen2",), ("llama", "gemma", "gemma2", "qwen3")),
    (_HEAD_NORM[0], ("qwen3",), ()),
    (r"\.(pre|post)_feedforward_layernorm\.weight$", ("gemma2",), ()),
)


def describe_tensors(
    names: Iterable[str], family: str, layers: int | None, experts: int | None, tied: Collection[str] = ()
) -> Iterator[str]:
    """Yield a note for every group of tensors that no file is made from; raise if one of them may not be left out.

    Args:
        names: the names of the tensors.
        family: the family of the model.
        layers: the number of layers of the model, None if the recipe has no such number.
        experts: the number of experts of a layer, likewise.
        tied: tensors in the place of which the embedding is written.

    >>> list(describe_tensors(["model.layers.2.mlp.up_proj.weight"], "llama", 2, 0))
    ['unused: model.layers.2.mlp.up_proj.weight: config.json says that the model has 2 layers']
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        for pattern, reason in _REFUSED:
            if re.search(pattern, name) is not None:
                raise FormatError(f"{name} cannot be left out: it {reason}")
        if name in tied:
            reason = "config.json ties the head to the embedding, which is written in its place"
            groups.setdefault((name, reason), []).append(name)
        else:
            groups.setdefault(_classify(name, family, layers, experts), []).append(name)
    for (pattern, reason), found in list(groups.items())[:_MAX_GROUPS]:
        yield f"unused: {_describe_group(pattern, found)}: {reason}"
    if len(groups) > _MAX_GROUPS:
        yield f"unused: {len(groups) - _MAX_GROUPS} more groups of tensors; prepare --dry-run --json lists all"


def _describe_group(pattern: str, names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    if pattern == _BEYOND:
        numbers = [int(found[1]) for name in names if (found := _LAYER.match(name)) is not None]
        pattern = " to ".join([f"{_BEYOND}.{number}.*" for number in sorted({min(numbers), max(numbers)})])
    return f"{pattern} ({len(names)} tensors)"


def _classify(name: str, family: str, layers: int | None, experts: int | None) -> tuple[str, str]:
    """Return the pattern that a tensor shares with its like, and the reason why it is left out."""
    layer, expert = _LAYER.match(name), _EXPERT.match(name)
    if layer is not None and layers is not None and int(layer[1]) >= layers:
        return _BEYOND, f"config.json says that the model has {count_of(layers, 'layer')}"
    if expert is not None and experts and int(expert[1]) >= experts:
        return _NUMBER.sub("*", name), f"config.json says that a layer has {experts} experts"
    for pattern, reason in _IGNORED:
        if (found := re.search(pattern, name)) is not None:
            return _NUMBER.sub("*", f"{name[: found.end()]}*" if found[0].endswith(".") else name), reason
    return (
        _NUMBER.sub("*", name),
        f"family {family} has no weight that is made from it; if the model computes with it, the results differ",
    )


def describe_config(
    config: Mapping[str, Any], used: Collection[str], tensors: Collection[str], unused: Collection[str] = ()
) -> Iterator[str]:
    """Yield notes about fields of a config.json that contradict each other, or that nothing reads.

    Raise if it announces tensors that do not exist.

    Args:
        config: the content of config.json.
        used: the fields that the recipe has read.
        tensors: the names of the tensors of the checkpoint.
        unused: those that no file is made from.

    >>> list(describe_config({"model_type": "llama", "num_experts": 4, "rope_theta": 10000.0}, ["model_type"], []))
    ['config.json: nothing here reads num_experts = 4; if it changes the weights, the cache is not of this model']
    """
    own = [name for name in tensors if re.search(_IMAGES, name) is None]
    for field, (pattern, example) in _ANNOUNCED.items():
        found = next((name for name in own if re.search(pattern, name)), None)
        if config.get(field) and found is None:  # any true value counts in transformers
            raise FileFormatError(
                f"config.json says {field} = {json.dumps(config[field])[:20]}, but the checkpoint has no such tensor as"
                f" {example}; use the config.json of this checkpoint"
            )
        if field in config and not config[field] and found is not None and pattern != _QKV_BIAS[0]:
            said = json.dumps(config[field])
            yield f"config.json says {field} = {said}, but the checkpoint has {found}: the tensors count"
    dropped = set(unused)
    yield from _describe_optional(config, [name for name in own if name not in dropped])
    yield from _describe_contradictions(config)
    unread = [
        f"{field} = {repr(value)[:40]}"
        for field, value in config.items()
        if value and field not in used and field not in _UNRELATED and not field.startswith("_")
    ]
    if unread:
        yield (
            f"config.json: nothing here reads {', '.join(unread)}; if it changes the weights, the cache is not of this"
            " model"
        )


def _describe_optional(config: Mapping[str, Any], tensors: Collection[str]) -> Iterator[str]:
    """Yield a note for weights that the tensors ask for, and that transformers would not give such a model."""
    kind = str(config.get("model_type"))
    for pattern, always, announced in _OPTIONAL:
        found = next((name for name in tensors if re.search(pattern, name)), None)
        if found is None or kind in always or (kind in announced and config.get("attention_bias")):
            continue
        unless = " unless config.json says attention_bias = true" if kind in announced else ""
        yield (
            f"used: {_NUMBER.sub('*', found)} and the like, since the checkpoint has them; transformers leaves them out"
            f" of a model of type {kind}{unless}, so tt_transformers would compute without them from this checkpoint"
        )


def _describe_contradictions(config: Mapping[str, Any]) -> Iterator[str]:
    kind, classes = str(config.get("model_type")), config.get("architectures")
    for name in classes if isinstance(classes, list) else ():
        stem = re.sub(r"(For[A-Z]|Model$|LMHead).*", "", str(name)).lower()
        if stem != re.sub("[_-]", "", kind).lower():
            yield f"config.json says architectures = {name}, but model_type = {kind}: the model_type counts"
    old, new = config.get("torch_dtype"), config.get("dtype")
    if old and new and old != new:
        yield f"config.json says torch_dtype = {old}, but dtype = {new}: the dtype counts, as in transformers"
    ropes = [
        config,
        *[each for key in ("rope_parameters", "rope_scaling") if isinstance(each := config.get(key), dict)],
    ]
    for each in ropes:
        share = each.get("partial_rotary_factor")
        if share not in (None, 1):
            yield (
                f"config.json says partial_rotary_factor = {repr(share)[:20]}, but the rows of heads are ordered for a"
                " rotation of whole heads, which is another model"
            )
            return
