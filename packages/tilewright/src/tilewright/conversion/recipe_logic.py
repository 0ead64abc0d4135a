# SPDX-License-Identifier: Apache-2.0
"""`TtTransformers`: the values and functions of the recipe of tt_transformers; its files and families are TOML."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from .._integers import ceil_div, round_up
from ..copying import Assembly, join
from ..errors import FormatError
from .rules import match_start, rows_in_pairs

# The feed-forward network is padded for these models, so that as many cores divide its columns.
_MLP_CORES = {
    **dict.fromkeys(["Qwen2.5-72B", "Qwen2.5-VL-72B"], 32),
    **dict.fromkeys(["Qwen2.5-7B", "Qwen2.5-32B", "Qwen2.5-VL-32B", "QwQ-32B"], 16),
}

# Models that tt_transformers refuses on a machine.
_TOO_LARGE = (
    "Llama-3.1-70B", "Llama-3.2-90B", "DeepSeek-R1-Distill-Llama-70B", "Qwen2.5-32B", "Qwen2.5-Coder-32B",
    "Qwen2.5-72B", "Qwen2.5-VL-32B", "Qwen2.5-VL-72B", "Qwen3-VL-32B", "QwQ-32B", "Qwen3-32B",
)  # fmt: skip
_SMALL_VISION = ("Qwen2.5-VL-3B", "Qwen2.5-VL-7B")
_UNTESTED = (*_SMALL_VISION, "Qwen2.5-VL-32B", "Qwen2.5-VL-72B", "Qwen3-VL-32B", "DeepSeek-R1-Distill-Qwen-14B")
_UNSUPPORTED = {
    "N150": _TOO_LARGE,
    "N300": _TOO_LARGE,
    "T3K": _SMALL_VISION,
    "TG": _UNTESTED,
    "P150x4": _UNTESTED,
}


class Choices(NamedTuple):
    """The choices of the user and the machine, by the names that expressions use."""

    device: str
    rows: int
    columns: int
    devices: int
    ring: bool
    architecture: str
    banks: int
    source_name: str
    model_name: str
    mode: str
    model_dtype: str
    hf_rope: bool
    instruct: bool
    pad_mlp_cores: int | None


class RecipeLogic:
    """The values and functions that a recipe has in Python: its attributes, in their order, none by default.

    Args:
        choices: the choices of the user and the machine.
        config: the checkpoint's config.json.
        config_size: a function that returns a size of it, or a default.
        has_weight: a function that returns whether the checkpoint has a weight.

    >>> TtTransformers.names()[:3], RecipeLogic.names()
    (['rotary', 'interleave', 'matrix'], [])
    """

    def __init__(
        self,
        choices: Choices,
        config: Mapping[str, Any],
        config_size: Callable[..., int],
        has_weight: Callable[[str], bool],
    ) -> None:
        self.choices, self.config, self.config_size, self.has_weight = choices, config, config_size, has_weight

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the values and functions; later values may depend on earlier ones."""
        return [name for name in vars(cls) if not name.startswith("_") and name not in vars(RecipeLogic)]

    def refusals(self) -> Iterator[str]:
        """Yield a message for each reason why the recipe does not cover the model."""
        return iter(())


class TtTransformers(RecipeLogic):
    """The weight cache of tt_transformers: how heads, devices and cores divide weights.

    Names of Meta take precedence in config.json, as in tt_transformers; defaults are as in transformers.
    """

    def rotary(self, weight: Assembly, heads: int) -> Assembly:
        """Return the rows of queries or keys in the order of tt_transformers."""
        return weight if self.choices.hf_rope else rows_in_pairs(weight, heads)

    @staticmethod
    def interleave(tensors: Sequence[Assembly], count: int) -> Assembly:
        """Return equal parts of tensors: for each device a part of each tensor, one tensor after the other."""
        chunks = zip(*[tensor.chunk(count) for tensor in tensors], strict=True)
        return join([part for parts in chunks for part in parts])

    @staticmethod
    def matrix(tensor: Assembly) -> Assembly:
        """Return a tensor of four dimensions."""
        return tensor.reshape(1, 1, *tensor.shape)

    @staticmethod
    def rows_of_32(weight: Assembly) -> Assembly:
        """Return a vector as rows of 32 elements."""
        return weight.reshape(1, 1, weight.shape[0] // 32, 32)

    def split_width(self, split: int) -> int:
        """Return the columns of a split of the head, on each device."""
        return min(self.split_columns, self.device_columns - split * self.split_columns)

    @staticmethod
    def gate_of(gate: Assembly, d: int) -> Assembly:
        """Return the gate of device `d`, which has the device's own expert in column 0."""
        ranges = ((d, d + 1), (1, d), (0, 1), (d + 1, 64))
        return gate if d == 0 else join([gate.slice(first, last, axis=1) for first, last in ranges], 1)

    @cached_property
    def galaxy(self) -> bool:
        """Whether the machine is a Galaxy."""
        return self.choices.devices == 32

    @cached_property
    def wormhole(self) -> bool:
        """Whether the chips are Wormhole chips."""
        return self.choices.architecture.startswith("wormhole")

    @cached_property
    def instruct(self) -> bool:
        """Whether the model is tuned for instructions."""
        name = self.choices.source_name.lower()
        return self.choices.instruct or "instruct" in name or "it" in name

    @cached_property
    def rope_folder(self) -> str:
        """The folder of caches whose rotary halves keep their order."""
        return "hf_rope/" if self.choices.hf_rope else ""

    @cached_property
    def tuning(self) -> str:
        """The part of the directory's name that is about instructions."""
        return "instruct_" if self.instruct else ""

    @cached_property
    def short_dtype(self) -> str:
        """The number format of the head, in the directory's name."""
        return "bfp8" if self.choices.model_dtype == "bfloat8_b" else "bf16"

    @cached_property
    def base_name(self) -> str:
        """The name of the model without its version, such as Llama-3.1-8B."""
        name = self.choices.model_name
        return "Phi-4" if "phi-4" in name.lower() else match_start("(.*?[0-9]+[Bb])-", name) or name

    @cached_property
    def dim(self) -> int:
        """The hidden size."""
        return self.config_size("dim", self.config_size("hidden_size"))

    @cached_property
    def hidden(self) -> int:
        """The columns of the feed-forward network."""
        return self.config_size("intermediate_size")

    @cached_property
    def heads(self) -> int:
        """The heads of queries."""
        return self.config_size("n_heads", self.config_size("num_attention_heads"))

    @cached_property
    def kv_heads(self) -> int:
        """The heads of keys and values."""
        return self.config_size("n_kv_heads", self.config_size("num_key_value_heads", self.heads))

    @cached_property
    def head_dim(self) -> int:
        """The size of a head."""
        return self.config_size("head_dim", self.dim // self.heads)

    @cached_property
    def layers(self) -> int:
        """The layers of the model."""
        return self.config_size("n_layers", self.config_size("num_hidden_layers"))

    @cached_property
    def vocabulary(self) -> int:
        """The rows of the embedding."""
        return self.config_size("vocab_size")

    @cached_property
    def experts(self) -> int:
        """The experts of a layer; families that have any replace it."""
        return 0

    @cached_property
    def head_norms(self) -> list[str]:
        """The norms of queries and keys that the checkpoint has."""
        return [n for n in ("q_norm", "k_norm") if self.has_weight(f"layers.0.attention.{n}.weight")]

    @cached_property
    def biases(self) -> list[str]:
        """The projections of queries, keys and values that have a bias."""
        return [n for n in "qkv" if self.has_weight(f"layers.0.attention.w{n}.bias")]

    @cached_property
    def layer_norms(self) -> list[str]:
        """The norms of a layer."""
        optional = ("pre_feedforward_layernorm", "post_feedforward_layernorm")
        return ["attention_norm", "ffn_norm", *[n for n in optional if self.has_weight(f"layers.0.{n}.weight")]]

    @cached_property
    def mlp_cores(self) -> int:
        """The cores that the columns of the feed-forward network are padded for; 0 for none."""
        text = os.environ.get("PAD_MLP_CORES")
        if self.choices.pad_mlp_cores or not text:
            return self.choices.pad_mlp_cores or _MLP_CORES.get(self.base_name, 0)
        try:
            return int(text)
        except ValueError:
            raise FormatError(f"expected a number of cores in PAD_MLP_CORES, got {text!r}") from None

    @cached_property
    def padded_hidden(self) -> int:
        """The columns of the feed-forward network with padding."""
        return round_up(self.hidden, self.mlp_cores * 32 * self.choices.devices) if self.mlp_cores else self.hidden

    @cached_property
    def hidden_suffix(self) -> str:
        """The end of the names of files with padding."""
        return f".hidden_dim_{self.padded_hidden}" if self.padded_hidden != self.hidden else ""

    @cached_property
    def fused(self) -> bool:
        """Whether the output projection is fused with the exchange before it, on a ring of eight devices."""
        return self.choices.devices == 8 and self.dim // 32 // 8 % 8 == 0 and self.choices.ring

    @cached_property
    def head_cores(self) -> int:
        """The cores of the largest grid that divides the tiles of the head."""
        most = 8
        if self.galaxy and self.wormhole:
            most = next((n for n in (4, 3, 2, 1) if self.dim % (1024 * n) == 0), 1)
        sizes = (r * c for c in range(8, 0, -1) for r in range(most if c == 8 else 8, 0, -1))
        return next(cores for cores in sizes if self.dim // 32 % cores == 0)

    @cached_property
    def split_columns(self) -> int:
        """The most columns of a split of the head, on each device."""
        return 668 * self.head_cores if self.wormhole else 128256 // {4: 32, 8: 128}.get(self.choices.devices, 8)

    @cached_property
    def padded_vocabulary(self) -> int:
        """The columns of the head with padding."""
        return 131072 if self.galaxy else round_up(self.vocabulary, 32 * self.choices.devices)

    @cached_property
    def device_columns(self) -> int:
        """The columns of the head on each device."""
        return self.padded_vocabulary // self.choices.devices

    @cached_property
    def splits(self) -> int:
        """The splits of the head."""
        return ceil_div(self.device_columns, self.split_columns)

    def refusals(self) -> Iterator[str]:
        """Yield a message for each reason why tt_transformers does not run the model on the machine."""
        device, rows, columns, devices = self.choices[:4]
        if self.heads % columns or self.kv_heads % columns:
            yield (
                f"{self.heads} heads and {self.kv_heads} key-value heads cannot be divided among {columns} devices in a"
                " row of the mesh; use a machine or a mesh with fewer in a row"
            )
        parts = rows if self.galaxy else devices
        if self.padded_hidden % (32 * parts):
            yield (
                f"{self.padded_hidden} columns of the feed-forward network cannot be divided into whole tiles of 32"
                f" columns on each of {parts} devices"
            )
        if self.galaxy and self.wormhole and self.dim % 1024:
            yield f"{device} needs a hidden size that is a multiple of 1024, not {self.dim}"
        if self.dim % 32 or self.head_dim % 32:
            yield f"a hidden size of {self.dim} and heads of {self.head_dim} must be multiples of 32"
        if self.base_name in ("Qwen2.5-7B", "Qwen2.5-VL-7B") and devices not in (2, 4):
            yield f"{self.base_name} runs on 2 or 4 devices only"
        if self.base_name in _UNSUPPORTED.get(device, ()) and not os.environ.get("MAX_PREFILL_CHUNK_SIZE"):
            yield (
                f"tt_transformers does not run {self.base_name} on {device} unless MAX_PREFILL_CHUNK_SIZE is set in the"
                " environment; choose another machine, or set it here too"
            )
        if 0 < len(self.biases) < 3:
            lost = next(n for n in "qkv" if n not in self.biases)
            yield (
                f"the checkpoint has model.layers.0.self_attn.{self.biases[0]}_proj.bias, but not"
                f" model.layers.0.self_attn.{lost}_proj.bias; tt_transformers joins the biases of q, k and v, so use a"
                " checkpoint with all of them"
            )
