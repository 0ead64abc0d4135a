# SPDX-License-Identifier: Apache-2.0
"""`WeightCache`: the files of a model's weight cache for one machine: how each is put together, stored and shared.

It is derived from a recipe, config.json, and the names, shapes and types of tensors; no tensor is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

from .. import files
from .._files import as_path
from .._integers import ceil_div
from .._json import expect_integers, expect_string
from .._text import NUMBER_IN_NAME, canonical_word, count_of, list_some, suggest
from ..copying import Assembly, count_elements
from ..errors import FileFormatError, FormatError, LayoutError
from ..files import (
    MARKER_PREFIX,
    FilePath,
    PendingTensor,
    QuantizedTensor,
    RefusedTensor,
    SourceFile,
    StoredTensor,
    find_checkpoint_folder,
    is_url,
    open_tensors,
    read_json,
)
from ..formats import Format, ScalarFormat, format_of, scalar_format_of
from ..memory import Chip, MemoryConfig, Mesh, Sharding, TensorSpec, Topology, interleaved, width_sharded
from .gguf_names import NamedModel, model_spelling, name_gguf_model
from .recipe import DEFAULT_RECIPE, Optimizations, Recipe
from .recipe_logic import Choices
from .recipe_run import RecipeOutput, RecipeRun, find_family
from .source import stored_assembly
from .text_tower import is_part, merge_text_config, name_language_model

if TYPE_CHECKING:
    from typing_extensions import Unpack


# The tensors and config fields of a checkpoint that its cache does not use: named with the reason, or refused.

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
# Tensors that a server of the language model leaves out as well, and why. A pattern that ends with a dot is of a whole
# module.
_IGNORED = (
    (r"inv_freq|rotary_emb|rope_(freqs|factors)", "rotary frequencies are computed from the configuration"),
    (_IMAGES, "it belongs to images or sound, and the cache is of the language model"),
    (r"(^|\.)(score|classifier|qa_outputs|(?!lm_)\w+_head)\.weight$", "it is another head than the language model's"),
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
_OF_IMAGES = re.compile(r"_|(vision(?!_config)|image|video|mm|boi|eoi|(multimodal_)?projector|spatial_merge)_")

# Fields that announce tensors: the pattern of their names, and an example.
_QKV_BIAS = (r"\.(q|k|v|qkv)_proj\.bias$", "model.layers.0.self_attn.q_proj.bias")
_HEAD_NORM = (r"\.[qk]_norm\.weight$", "model.layers.0.self_attn.q_norm.weight")
_ANNOUNCED = {
    "attention_bias": _QKV_BIAS,
    "qkv_bias": _QKV_BIAS,
    "mlp_bias": (r"\.mlp\.\w+\.bias$", "model.layers.0.mlp.down_proj.bias"),
    "use_qk_norm": _HEAD_NORM,
    "qk_norm": _HEAD_NORM,
}

# Weights that the cache has wherever there are tensors, and the models that have them in transformers if config.json
# has attention_bias = true; some families always have them.
_OPTIONAL = (
    (_QKV_BIAS[0], ("llama", "gemma", "gemma2", "gemma3", "qwen3", "qwen3_vl")),
    (_HEAD_NORM[0], ()),
    (r"\.(pre|post)_feedforward_layernorm\.weight$", ()),
)


def describe_tensors(
    names: Iterable[str],
    family: str,
    layers: int | None,
    experts: int | None,
    tied: Collection[str] = (),
    unused: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yield a note for every group of tensors that no file is made from; raise if one of them may not be left out.

    Args:
        names: the names of the tensors.
        family: the family of the model.
        layers: the number of layers of the model, None if the recipe has no such number.
        experts: the number of experts of a layer, likewise.
        tied: tensors that the embedding replaces.
        unused: patterns of tensors that the family leaves out, and why.

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
            groups.setdefault(_classify(name, family, layers, experts, unused or {}), []).append(name)
    for (pattern, reason), group in list(groups.items())[:_MAX_GROUPS]:
        yield f"unused: {_describe_group(pattern, group)}: {reason}"
    if len(groups) > _MAX_GROUPS:
        yield f"unused: {len(groups) - _MAX_GROUPS} more groups of tensors; prepare --dry-run --json lists all"


def _describe_group(pattern: str, names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    if pattern == _BEYOND:
        numbers = [int(match[1]) for name in names if (match := _LAYER.match(name)) is not None]
        pattern = " to ".join([f"{_BEYOND}.{number}.*" for number in sorted({min(numbers), max(numbers)})])
    return f"{pattern} ({len(names)} tensors)"


def _classify(
    name: str, family: str, layers: int | None, experts: int | None, unused: Mapping[str, str]
) -> tuple[str, str]:
    """Return the pattern that a tensor shares with its like, and the reason why it is left out."""
    layer, expert = _LAYER.match(name), _EXPERT.match(name)
    if layer is not None and layers is not None and int(layer[1]) >= layers:
        return _BEYOND, f"config.json says that the model has {count_of(layers, 'layer')}"
    if expert is not None and experts and int(expert[1]) >= experts:
        return NUMBER_IN_NAME.sub("*", name), f"config.json says that a layer has {experts} experts"
    for pattern, reason in (*unused.items(), *_IGNORED):
        if (match := re.search(pattern, name)) is not None:
            return NUMBER_IN_NAME.sub("*", f"{name[: match.end()]}*" if match[0].endswith(".") else name), reason
    return (
        NUMBER_IN_NAME.sub("*", name),
        f"family {family} has no weight that is made from it; if the model computes with it, the results differ",
    )


def describe_config(
    config: Mapping[str, Any],
    used: Collection[str],
    tensors: Collection[str],
    unused: Collection[str] = (),
    required: Collection[str] = (),
) -> Iterator[str]:
    """Yield notes about fields of a config.json that contradict each other, or that nothing reads.

    Raise if it announces tensors that do not exist.

    Args:
        config: the content of config.json.
        used: the fields that the recipe has read.
        tensors: the names of the tensors of the checkpoint.
        unused: those that no file is made from.
        required: some that all models of the family have.

    >>> list(describe_config({"model_type": "llama", "num_experts": 4, "rope_theta": 10000.0}, ["model_type"], []))
    ['config.json: nothing here reads num_experts = 4; if it changes the weights, the cache is not of this model']
    """
    own = [name for name in tensors if re.search(_IMAGES, name) is None]
    for field, (pattern, example) in _ANNOUNCED.items():
        tensor = next((name for name in own if re.search(pattern, name)), None)
        if config.get(field) and tensor is None:  # any true value counts in transformers
            raise FileFormatError(
                f"config.json says {field} = {json.dumps(config[field])[:20]}, but the checkpoint has no such tensor as"
                f" {example}; use the config.json of this checkpoint"
            )
        if field in config and not config[field] and tensor is not None and pattern != _QKV_BIAS[0]:
            text = json.dumps(config[field])
            yield f"config.json says {field} = {text}, but the checkpoint has {tensor}: the tensors count"
    dropped = set(unused)
    yield from _describe_optional(config, [name for name in own if name not in dropped], required)
    yield from _describe_contradictions(config)
    if unread := list_unread(config, used):
        yield (
            f"config.json: nothing here reads {', '.join(unread)}; if it changes the weights, the cache is not of this"
            " model"
        )


def list_unread(config: Mapping[str, Any], used: Collection[str]) -> list[str]:
    """Return the fields of a config.json that are not among the `used` ones, but may say something about weights.

    >>> list_unread({"model_type": "llama", "num_experts": 4, "rope_theta": 10000.0}, ["model_type"])
    ['num_experts = 4']
    """
    return [
        f"{field} = {repr(value)[:40]}"
        for field, value in config.items()
        if value and field not in used and field not in _UNRELATED and _OF_IMAGES.match(field) is None
    ]


def _describe_optional(config: Mapping[str, Any], tensors: Collection[str], required: Collection[str]) -> Iterator[str]:
    """Yield a note for weights that the tensors ask for, and that transformers would not give such a model."""
    model_type = str(config.get("model_type"))
    for pattern, announced in _OPTIONAL:
        tensor = next((name for name in tensors if re.search(pattern, name)), None)
        if tensor is None or tensor in required or (model_type in announced and config.get("attention_bias")):
            continue
        unless = " unless config.json says attention_bias = true" if model_type in announced else ""
        yield (
            f"used: {NUMBER_IN_NAME.sub('*', tensor)} and the like, since the checkpoint has them; transformers leaves"
            f" them out of a model of type {model_type}{unless}, so tt_transformers would compute without them"
        )


def _describe_contradictions(config: Mapping[str, Any]) -> Iterator[str]:
    model_type, classes = str(config.get("model_type")), config.get("architectures")
    for name in classes if isinstance(classes, list) else ():
        stem = re.sub(r"(For[A-Z]|Model$|LMHead).*", "", str(name)).lower()
        if stem.replace("_", "") != re.sub("[_-]", "", model_type).lower():
            yield f"config.json says architectures = {name}, but model_type = {model_type}: the model_type counts"
    old, new = config.get("torch_dtype"), config.get("dtype")
    if old and new and old != new:
        yield f"config.json says torch_dtype = {old}, but dtype = {new}: the dtype counts, as in transformers"
    ropes = [
        config,
        *[rope for key in ("rope_parameters", "rope_scaling") if isinstance(rope := config.get(key), dict)],
    ]
    for rope in ropes:
        share = rope.get("partial_rotary_factor")
        if share not in (None, 1):
            yield (
                f"config.json says partial_rotary_factor = {repr(share)[:20]}, but the rows of heads are ordered for a"
                " rotation of whole heads, which is another model"
            )
            return


_MAX_CONFIG_BYTES = 1 << 20
_HUB_FOLDER = re.compile(r"models--([^/]+?)--([^/]+)")
_HUB_URL = re.compile(r"hf://([^/@]+/[^/@]+)(?:@[^/]+)?/?")
_SNAPSHOT = re.compile(r".*models--[^/]*?--([^/]+)/snapshots/[^/]+")
_MODEL_DTYPES = ("bfloat8_b", "bfloat16")
_LOADED_DTYPES = {"bfloat16", "float16", "float32"}
_ADAPTER = "adapter_config.json"
_HEAD, _EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"  # that transformers ties
_COMPARED_BYTES = 1 << 26  # at a time


class CacheOptions(TypedDict, total=False):
    """The choices behind a weight cache besides the checkpoint and the machine.

    `recipe` is the name of a recipe, or the path of its file or folder; `optimizations` the number formats:
    "performance" (the default), "accuracy", a decoder config (JSON), or text such as "precision_cfg = {wqkv: bf16}";
    `model_dtype` the format of the head, "bfloat8_b" or "bfloat16"; `hf_rope` keeps the order of rotary halves;
    `instruct` takes the directory of instruct models; `hf_model` is what HF_MODEL will be where the model is served,
    by default the source as it is spelled, and the names of the model and of the directory go by it; `mesh` is the
    shape of the mesh, if not the machine's; `layers` are the only layers to make; `pad_mlp_cores` is
    PAD_MLP_CORES, by default from the environment; `max_batch_size` is recorded in the cache's completion marker.

    >>> options: CacheOptions = {"optimizations": "accuracy", "layers": [0, 1]}
    """

    recipe: FilePath
    optimizations: FilePath | Optimizations
    model_dtype: str
    hf_rope: bool
    instruct: bool
    hf_model: str
    mesh: Sequence[int]
    layers: Sequence[int]
    pad_mlp_cores: int
    max_batch_size: int


@dataclass(frozen=True)
class Machine:
    """The machine that a cache is for: its name, chip, and mesh of devices.

    >>> Machine.of("N300", Recipe.load()).mesh
    (1, 2)
    """

    name: str
    chip: Chip
    mesh: tuple[int, int]
    ring: bool = False

    @classmethod
    def of(cls, name: str, recipe: Recipe, mesh: Sequence[int] | None = None) -> Machine:
        """Return the machine of a `name` that the recipe knows, with another shape of its mesh if one is given."""
        words = {machine: [machine, *table.also] for machine, table in recipe.devices.items()}
        machines = {canonical_word(word): machine for machine in words for word in words[machine]}
        if canonical_word(name) not in machines:
            hint = suggest(name, [*chain(*words.values())], f"recipe {recipe.name} has {', '.join(recipe.devices)}")
            raise FormatError(f"unknown machine {name!r}; {hint}")
        machine = machines[canonical_word(name)]
        table = recipe.devices[machine]
        shape = tuple(table.mesh if mesh is None else mesh)
        if len(shape) != 2 or prod(shape) != prod(table.mesh):
            raise FormatError(
                f"{machine} has {prod(table.mesh)} devices, which do not make a mesh of {list(shape)}; it is"
                f" {list(table.mesh)} by default"
            )
        return cls(machine, Chip.named(table.chip), (shape[0], shape[1]), table.ring)


@dataclass(frozen=True)
class Checkpoint:
    """The facts about a checkpoint that a recipe needs: the user's spelling, its config.json, and its tensors.

    `tensors` are assemblies of one source each, and `formats` their number formats; those without one are `unread`.
    `notes` are about the checkpoint itself. Without `has_tensors`, only `config` is known.
    """

    spelling: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Assembly]
    formats: Mapping[str, Format]
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    has_tensors: bool = True

    @classmethod
    def of_config(cls, spelling: str, config: Mapping[str, Any]) -> Checkpoint:
        """Return a checkpoint of which only the config.json is known, which implies the shapes of weights.

        >>> Checkpoint.of_config("model", {}).has_tensors
        False
        """
        return cls(
            spelling, merge_text_config(config), {}, defaultdict(partial(format_of, "bfloat16")), has_tensors=False
        )

    @classmethod
    def of(cls, spelling: str, model: NamedModel, notes: Iterable[str] = ()) -> Checkpoint:
        """Return the checkpoint with a user's `spelling`, and the config and tensors of a model."""
        numbers = {name: tensor for name, tensor in model.tensors.items() if tensor.format is not None}
        whole = {name: stored_assembly(tensor) for name, tensor in numbers.items()}
        formats = {name: format_of(tensor.dtype) for name, tensor in numbers.items()}
        formats |= {name: formats[value.sources[0]] for name, value in model.weights.items()}
        unread = tuple([name for name in model.tensors if name not in numbers])
        return cls(spelling, model.config, {**whole, **model.weights}, formats, unread, (*model.notes, *notes))

    @property
    def sources(self) -> list[str]:
        """The names of all stored tensors; a tensor that is cut into several weights counts once."""
        # one without elements has no source
        names = [name for own, tensor in self.tensors.items() for name in tensor.sources or [own]]
        return list(dict.fromkeys([*names, *self.unread]))

    @cached_property
    def memory_dtype(self) -> ScalarFormat:
        """The type that the checkpoint is loaded as: from config.json, or else the type of its tensors."""
        stored = {element.name for element in self.formats.values()} & _LOADED_DTYPES
        own = stored.pop() if len(stored) == 1 else "bfloat16"
        name = self.config.get("dtype") or self.config.get("torch_dtype") or own
        dtypes = sorted(_LOADED_DTYPES)
        if name not in dtypes:  # nor does torch compute in others
            raise FileFormatError(
                f"config.json: expected one of {', '.join(dtypes)} as torch_dtype, got {repr(name)[:40]}"
            )
        return scalar_format_of(name)

    def to_json(self) -> dict[str, Any]:
        """Return the checkpoint as plain data, which is enough to plan its cache again."""
        cut = {source for name, value in self.tensors.items() for source in value.sources if source != name}
        tensors = {
            name: [self.formats[name].name, list(value.shape)]
            for name, value in self.tensors.items()
            if name not in cut
        }
        return {"config": self.config, "tensors": tensors}

    @classmethod
    def from_json(cls, data: object, name: str) -> Checkpoint:
        """Return the checkpoint of plain data, with the name of its model, or raise a `FileFormatError`."""
        if not isinstance(data, dict) or not isinstance(data.get("config"), dict):
            raise FileFormatError("the manifest does not describe the checkpoint")
        tensors, formats = {}, {}
        for key, entry in dict(data.get("tensors") or {}).items():
            dtype, shape = entry if isinstance(entry, list) and len(entry) == 2 else (None, None)
            tensors[key] = Assembly.of(key, expect_integers(shape, f"the shape of {key!r}"))
            formats[key] = format_of(expect_string(dtype, f"the dtype of {key!r}"))
        return cls(name, data["config"], tensors, formats)


@dataclass(frozen=True)
class CacheFile:
    """A file of a cache: its sources, the spec of each device's part, and how devices share it."""

    name: str
    file: str
    value: Assembly
    through: tuple[ScalarFormat, ...]
    spec: TensorSpec
    mesh: Mesh
    layer: int | None
    made_as: tuple[str, ...] = ()  # the expressions of the recipe

    def has_same_pages(self, other: CacheFile) -> bool:
        """Return whether two files differ in their headers at most."""
        mine, others = (
            (file.value, file.through, file.spec.shape, file.spec.dtype, file.spec.page_layout, file.mesh)
            for file in (self, other)
        )
        return mine == others


class WeightCache:
    """The weight cache of a checkpoint for a machine, as a recipe describes it.

    Args:
        checkpoint: the checkpoint.
        machine: the name of the machine.
        options: the other choices that decide the cache.

    >>> from tilewright.files.safetensors import LLAMA_CONFIG, sample_llama
    >>> weights = sample_llama()
    >>> tensors = {name: Assembly.of(name, values.shape) for name, values in weights.items()}
    >>> checkpoint = Checkpoint("Llama-3.2-1B", LLAMA_CONFIG, tensors, dict.fromkeys(weights, format_of("bfloat16")))
    >>> cache = WeightCache(checkpoint, "N300")
    >>> cache.directory, len(cache.files), cache.files[1].mesh.part_shape
    ('N300/tensor_cache_bfp8', 22, (1, 1, 256, 256))
    """

    def __init__(self, checkpoint: Checkpoint, machine: str, **options: Unpack[CacheOptions]) -> None:
        unknown = options.keys() - CacheOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"unknown option {min(unknown)!r}; there are {', '.join(CacheOptions.__annotations__)}")
        self.checkpoint, self.options = checkpoint, options
        self.hf_model = options.get("hf_model", checkpoint.spelling)
        self.recipe = Recipe.load(options.get("recipe", DEFAULT_RECIPE))
        self.machine = Machine.of(machine, self.recipe, options.get("mesh"))
        self.optimizations = Optimizations.of(options.get("optimizations", "performance"), self.recipe)
        model_dtype = options.get("model_dtype", _MODEL_DTYPES[0])
        if model_dtype not in _MODEL_DTYPES:
            raise FormatError(f"expected one of {', '.join(_MODEL_DTYPES)} as model_dtype, got {model_dtype!r}")
        self.run = RecipeRun(
            self.recipe,
            checkpoint.config,
            checkpoint.tensors if checkpoint.has_tensors else None,
            Choices(
                device=self.machine.name,
                rows=self.machine.mesh[0],
                columns=self.machine.mesh[1],
                devices=prod(self.machine.mesh),
                ring=self.machine.ring,
                architecture=self.machine.chip.arch,
                banks=self.machine.chip.banks("dram"),
                source_name=self.hf_model,
                model_name=model_name(self.hf_model),
                mode=self.optimizations.mode,
                model_dtype=model_dtype,
                hf_rope=options.get("hf_rope", False),
                instruct=options.get("instruct", False),
                pad_mlp_cores=options.get("pad_mlp_cores"),
            ),
            self.optimizations,
        )

    @property
    def directory(self) -> str:
        """The directory of the files, below the one that the user names."""
        return "" if self.recipe.directory is None else str(self.run.evaluate(self.recipe.directory))

    @cached_property
    def files(self) -> tuple[CacheFile, ...]:
        """The files."""
        return tuple([self._build_file(output) for output in self.run.outputs(self.options.get("layers"))])

    @cached_property
    def unused(self) -> tuple[str, ...]:
        """The tensors of the checkpoint that no file is made from, in any layer."""
        outputs = self.files if self.options.get("layers") is None else self.run.outputs()
        used = {name for output in outputs for name in output.value.sources}
        return tuple([name for name in self.checkpoint.sources if name not in used])

    def describe_unused(self, tensors: Mapping[str, StoredTensor]) -> tuple[str, ...]:
        """Return notes on the parts of the checkpoint that the cache does not use; raise if it needs one.

        Args:
            tensors: the opened tensors of the checkpoint; empty if only their names are known.
        """
        names, config, family = self.run.names, self.checkpoint.config, self.run.family
        own = range(names.get("layers", 0))
        required = {name for k in own for key in self.run.required(k) for name in self.run.weight(key).sources}
        layers = names.get("stored_layers", names.get("layers"))
        head = self.run.all_weights().get("output.weight")
        tied = [_HEAD] if head is not None and head.sources == [_EMBEDDING] and _HEAD in self.unused else []
        if tied and tensors:
            _compare_head(tensors[_HEAD], tensors[_EMBEDDING])
        return (
            *self._describe_family(),
            *describe_tensors(self.unused, family.name, layers, names.get("experts"), tied, family.unused),
            *self._describe_parts(),
            *describe_config(config, self.run.config_fields, self.checkpoint.sources, self.unused, required),
            *self.checkpoint.notes,
            *self._describe_dtype(),
        )

    def _describe_family(self) -> Iterator[str]:
        """Yield a note if the files of the family were never compared with the original's files."""
        if self.run.family.recorded is False:
            yield (
                f"family {self.run.family.name} follows the source of the original; it was not compared with a cache"
                " that the original wrote"
            )

    def _describe_parts(self) -> Iterator[str]:
        """Yield notes on tensors that weights use only in part."""
        sizes: dict[str, int] = {}
        for tensor in self.checkpoint.tensors.values():  # whole ones, and parts of stacked ones
            sizes |= {name: max(sizes.get(name, 0), prod(tensor.shape)) for name in tensor.sources}
        for name, count in count_elements(self.run.all_weights().values()).items():
            if count < sizes[name]:
                yield f"only {count} of {sizes[name]} elements of {name} are used; the others are in no file"

    def _describe_dtype(self) -> Iterator[str]:
        """Yield a note if the type that the checkpoint is loaded as is an assumption, or that codes have no scale."""
        stored = {element.name for element in self.checkpoint.formats.values()} & _LOADED_DTYPES
        if not (self.checkpoint.config.get("dtype") or self.checkpoint.config.get("torch_dtype")) and len(stored) != 1:
            types = " and ".join(sorted(stored)) or "no floating-point type"
            yield f"config.json has no dtype, and the tensors have {types}: it is taken as loaded in bfloat16"
        dropped = set(self.unused)
        small = [
            name
            for name, element in self.checkpoint.formats.items()
            if element.name.startswith("float8") and name not in dropped
        ]
        if small:
            yield f"{list_some(small)}: 8-bit floats without scales, of which the values are taken as they are"

    def whole_tensors(self) -> dict[str, CacheFile]:
        """Return the tensors of the checkpoint that a file holds as they are loaded, and that file.

        Other files can be made from these: the head of a tied model, from the embedding.
        """
        result: dict[str, CacheFile] = {}
        for file in self.files if self.checkpoint.memory_dtype.name == "bfloat16" else ():
            size = prod(file.value.shape)
            whole = self.checkpoint.tensors[file.value.sources[0]] if len(file.value.parts) == 1 else None
            if whole is None or file.spec.dtype.name != "bfloat16" or file.value.added or prod(whole.shape) != size:
                continue
            if file.value.reshape(size).parts == whole.reshape(size).parts:
                result.setdefault(file.value.sources[0], file)
        return result

    def _build_file(self, output: RecipeOutput) -> CacheFile:
        mesh = self._build_mesh(output)
        dtype = format_of(output.dtype)
        try:
            memory = self._choose_memory(output, mesh.part_shape)
            spec = TensorSpec(mesh.part_shape, dtype, output.layout, memory=memory)
        except (LayoutError, FormatError) as problem:
            raise FormatError(f"{output.where}: {problem}") from None
        file = f"{output.name}_dtype_{dtype.name.upper()}_layout_{output.layout.upper()}.tensorbin"
        return CacheFile(
            output.name, file, output.value, self._rounding(output, dtype), spec, mesh, output.layer, output.made_as
        )

    def _choose_memory(self, output: RecipeOutput, part_shape: tuple[int, ...]) -> MemoryConfig | Sharding:
        if output.memory == "interleaved":
            return interleaved("dram")
        if output.memory != "dram_sharded":
            raise FormatError(f"expected interleaved or dram_sharded as memory, got {output.memory!r}")
        banks = self.machine.chip.banks("dram")
        height, width = part_shape[-2:]
        return width_sharded((banks, 1), (height, ceil_div(width, 32 * banks) * 32), buffer_type="dram")

    def _build_mesh(self, output: RecipeOutput) -> Mesh:
        """Return how the devices share an output."""
        if output.mesh == "replicated":  # on any mesh
            return Mesh((1, 1), Topology.replicated([(0, 0)]), output.value.shape)
        try:
            return Mesh.dividing(output.value.shape, self.machine.mesh, output.mesh)
        except (LayoutError, TypeError) as problem:
            raise FormatError(f"{output.where}: {output.name}: {problem}") from None

    def _rounding(self, output: RecipeOutput, dtype: Format) -> tuple[ScalarFormat, ...]:
        """Return the formats that values are rounded to between the checkpoint and the cache.

        The checkpoint is loaded as the type of its config, and sharded block formats are packed from bfloat16.
        """
        loaded = self.checkpoint.memory_dtype
        stored = [self.checkpoint.formats[name] for name in output.value.sources]
        for name, element in zip(output.value.sources, stored, strict=True):
            if not element.has_blocks and element.kind != "float":
                raise FormatError(
                    f"{name} holds {element}, but {output.name} is made from floating-point numbers; use a checkpoint"
                    " with plain weights, or one whose scales are stored beside the integers"
                )
        rounding = () if all(element == loaded for element in stored) else (loaded,)
        if dtype.has_blocks and output.memory == "dram_sharded" and loaded.name != "bfloat16":
            rounding = (*rounding, scalar_format_of("bfloat16"))
        return rounding

    @property
    def is_complete(self) -> bool:
        """Whether all layers are made."""
        layers = self.options.get("layers")
        return layers is None or set(layers) == set(range(self.run.names["layers"]))

    def describe_layers(self) -> tuple[str, ...]:
        """Return a note if only some layers are made."""
        layers, count = self.options.get("layers"), self.run.names.get("layers", 0)
        if layers is None or self.is_complete:
            return ()
        listed = ", ".join(map(str, layers[:8])) + (", ..." if layers[8:] else "")
        return (
            f"only {count_of(len(layers), 'layer')} of {count} ({listed}): tt_transformers converts the others itself",
        )

    def marker(self) -> dict[str, bytes]:
        """Return the file that marks the cache as complete, by name; none if it is not, or the recipe has none."""
        if not self.recipe.marker or not self.is_complete or is_part(self.checkpoint.config):
            return {}
        names = self.run.names
        spelled = []
        for layer in range(names["layers"]):
            formats = self.run.formats(layer)
            chosen = [formats.get(group) for group in self.recipe.groups]
            spelled += [f"DataType.{name.upper()}" if name else "None" for name in chosen]
        variant = {
            "prefetcher": False,
            "precision": _short_hash("|".join(spelled)),
            "batch": self.options.get("max_batch_size", 1),
            "fused_ag": bool(names["fused"]),
            "hf_rope": names["hf_rope"],
        }
        loaded = f"torch.{self.checkpoint.memory_dtype.name}"
        body = {
            "format_version": 3,
            "model_name": names["model_name"],
            "n_layers": names["layers"],
            "mesh_shape": str(self.machine.mesh),
            "components": ["all"],
            "build_variant": variant,
            "cache_files": sorted([file.file for file in self.files]),
            "is_moe": bool(names["experts"]),
            "host_weights": [],
            "weights": {key: [list(value.shape), loaded] for key, value in self.run.all_weights().items()},
        }
        return {marker_name(variant): json.dumps(body).encode()}

    def record(self) -> dict[str, Any]:
        """Return the manifest's record of the cache: the recipe, the machine, the options, and the checkpoint."""
        # without where the user has the checkpoint: the same everywhere
        options: dict[str, Any] = {
            key: value for key, value in self.options.items() if key not in ("recipe", "hf_model")
        }
        options |= {"optimizations": self.optimizations.to_json(), "instruct": self.run.names.get("instruct", False)}
        return {
            **self.recipe.to_json(),
            "family": self.run.family.name,
            "recorded": self.run.family.recorded,
            "machine": self.machine.name,
            "directory": self.directory,
            "model": self.run.names["model_name"],
            "options": options,
            "checkpoint": self.checkpoint.to_json(),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], machine: str, recipe: FilePath) -> WeightCache:
        """Return the cache that the `record` of a manifest describes, made by a `recipe` for a `machine`."""
        name = expect_string(record.get("model"), "the name of the model")
        options = read_options(record)
        options["recipe"] = recipe
        return cls(Checkpoint.from_json(record.get("checkpoint"), name), machine, **options)


def read_options(record: Mapping[str, Any]) -> CacheOptions:
    """Return the options of a cache that its manifest records, without the recipe."""
    options = record.get("options")
    if not isinstance(options, dict) or not options.keys() <= CacheOptions.__annotations__.keys():
        raise FileFormatError(f"expected the options of a cache in the manifest, got {repr(options)[:60]}")
    result = cast("CacheOptions", dict(options))
    result["optimizations"] = Optimizations.from_json(options.get("optimizations"))
    return result


def _compare_head(head: StoredTensor, embedding: StoredTensor) -> None:
    """Raise unless the head of a tied model is the embedding: transformers ties equal tensors only."""
    if is_url(head.file.path):  # not worth a download: the note on the head remains
        return
    pairs = list(zip(head.sections, embedding.sections, strict=False))
    if len(head.sections) != len(embedding.sections) or not all(_have_same_bytes(*pair) for pair in pairs):
        raise FormatError(
            f"{head.name} differs from {embedding.name}, to which config.json ties it (tie_word_embeddings);"
            " transformers would use it; set tie_word_embeddings to false in config.json, or remove the tensor"
        )


def _have_same_bytes(a: StoredTensor, b: StoredTensor) -> bool:
    (start, end), (second, _) = a.byte_range, b.byte_range
    if (a.shape, a.kind, end - start) != (b.shape, b.kind, b.byte_range[1] - second):
        return False
    for at in range(0, end - start, _COMPARED_BYTES):
        size = min(_COMPARED_BYTES, end - start - at)
        chunk = a.file.map_range(start + at, start + at + size)
        if not np.array_equal(chunk, b.file.map_range(second + at, second + at + size)):
            return False
    return True


def read_config(source: FilePath) -> Mapping[str, Any] | None:
    """Return the config.json of a checkpoint, or the file itself if `source` is one; None if there is none.

    Behind a URL, it is the one beside the tensors.
    """
    try:
        if is_url(source):
            file = files.open_model_file(os.fspath(source)).open_beside("config.json")
        elif as_path(source).suffix == ".json":
            file = SourceFile(source)
        else:
            file = SourceFile(find_checkpoint_folder(as_path(source)) / "config.json")
    except (FileNotFoundError, NotADirectoryError):
        return None
    config = read_json(file, str(file.path), _MAX_CONFIG_BYTES)
    if not isinstance(config, dict):
        raise FileFormatError(f"{file.path}: expected an object, got {repr(config)[:40]}")
    return config


def _refuse_adapter(source: FilePath) -> None:
    """Raise if there is an adapter beside the model, which transformers adds to it."""
    if not is_url(source) and (find_checkpoint_folder(as_path(source)) / _ADAPTER).is_file():
        raise FormatError(
            f"{source} has {_ADAPTER}: transformers adds such an adapter to the weights where PEFT is installed; merge"
            " it and save the model again, or remove the file"
        )


def _may_be_gguf(source: FilePath) -> bool:
    path = as_path(source)
    return path.suffix == ".gguf" or any(path.glob("*.gguf"))


def spell_checkpoint(source: FilePath) -> str:
    """Return the user's spelling of a checkpoint; owner/model for a checkpoint of the hub."""
    text = os.fspath(source)
    if remote := _HUB_URL.fullmatch(text):
        return remote[1]
    hub = _HUB_FOLDER.fullmatch(Path(source).name)
    return "/".join(hub.groups()) if hub else text


def open_checkpoint(
    source: FilePath, recipe: FilePath = DEFAULT_RECIPE
) -> tuple[Checkpoint, Mapping[str, StoredTensor]]:
    """Return the checkpoint at a path, and its tensors; links of a hub snapshot are followed.

    A model of no family of the `recipe` is refused by its config.json, before any tensor is looked at.
    """
    as_path(source)
    config = None if _may_be_gguf(source) else read_config(source)
    if config is not None:
        config = merge_text_config(config)
        find_family(Recipe.load(recipe), config)
        _refuse_adapter(source)
    tensors = open_tensors(source, follow_symlinks=True)
    if tensors.kind == "gguf":
        model = name_gguf_model(tensors.metadata, tensors)
        if "vocab_size" not in model.config:
            raise FileFormatError(f"{source} has no tensor 'token_embd.weight'; use a file with all tensors")
        return Checkpoint.of(model_spelling(spell_checkpoint(source)), model, tensors.notes), model.tensors
    for tensor in tensors.headers:
        if isinstance(tensor, RefusedTensor):  # a weight; what has no number format for another reason may not be one
            raise FormatError(f"{tensor.name} cannot be read: {tensor.problem}")
    if config is None:
        raise FileFormatError(f"{source} has no config.json; give the directory of a Hugging Face model")
    is_quantized = any(isinstance(tensor, (QuantizedTensor, PendingTensor)) for tensor in tensors.headers)
    is_ignored = config.get("quantization_config") and not is_quantized
    notes = ["config.json has a quantization_config, but no tensor is quantised: it is not used"] if is_ignored else []
    named = name_language_model(tensors) if is_part(config) else tensors
    model = NamedModel(config, named, {}, tuple(notes))
    return Checkpoint.of(spell_checkpoint(source), model, tensors.notes), model.tensors


def model_name(source: FilePath) -> str:
    """Return the name of a model: the last part of its path, or the name of a hub snapshot.

    >>> model_name("cache/models--org--Llama-3.1-8B/snapshots/0e9e39f2"), model_name("models/phi-4/")
    ('Llama-3.1-8B', 'phi-4')
    """
    path = os.fspath(source).rstrip("/")
    snapshot = _SNAPSHOT.fullmatch(path)
    return snapshot[1] if snapshot else path.rpartition("/")[2]


def marker_name(variant: Mapping[str, Any]) -> str:
    """Return the name of the file that marks a build as complete: a hash of the options that distinguish builds.

    >>> marker_name({})
    '.weights_complete.bf21a9e8fbc5'
    """
    return f"{MARKER_PREFIX}{_short_hash(json.dumps(variant, sort_keys=True))}"


def _short_hash(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:12]
