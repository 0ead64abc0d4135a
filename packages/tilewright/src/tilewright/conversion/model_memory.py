# SPDX-License-Identifier: Apache-2.0
"""The memory of a model by its config.json: its caches by kind of attention, and its weights, estimated.

A recipe knows the weights of its families exactly; other weights are estimated here, and reported as estimates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from .._integers import ceil_div
from .._text import count_of
from ..errors import FileFormatError

_MAX_SIZE = 1 << 24  # a number of config.json


class CacheLayers(NamedTuple):
    """Layers of one kind of attention: what each keeps of every token, or of every user.

    `width` is the size of a head, of which `heads` are kept in each of `tensors`, such as K and V. Layers with a
    `window` keep that many tokens, and those with a `state` keep tensors of that shape for each user instead.

    >>> CacheLayers("full attention", 32, 8, 128).tensors
    2
    """

    kind: str
    layers: int
    heads: int
    width: int
    tensors: int = 2
    window: int = 0
    state: tuple[tuple[int, ...], ...] = ()


class EstimatedWeight(NamedTuple):
    """Matrices that are alike: a `number` of `shape`, of which devices share axis `cut`; `group` is as in a recipe."""

    name: str
    group: str
    shape: tuple[int, int]
    cut: int
    number: int = 1

    def on(self, devices: int) -> tuple[int, ...]:
        """Return the shape of the part of each of some `devices`.

        >>> EstimatedWeight("w2", "FF2", (14336, 4096), 0).on(8)
        (1, 1, 1792, 4096)
        """
        parts = [ceil_div(n, devices) if axis == self.cut else n for axis, n in enumerate(self.shape)]
        return (1, 1, *parts)


@dataclass(frozen=True)
class ModelSizes:
    """The numbers of a model that decide how much memory it takes, as a config.json states them.

    For a model of several parts, its language model counts.

    >>> sizes = ModelSizes.of({"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99})
    >>> sizes.head_dim, sizes.kv_heads, sizes.cache_layers()
    (16, 4, [CacheLayers(kind='full attention', layers=2, heads=4, width=16, tensors=2, window=0, state=())])
    """

    config: Mapping[str, Any]
    dim: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    read: set[str] = field(default_factory=set, repr=False, compare=False)  # fields of config.json

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ModelSizes:
        """Return the numbers of a `config`; raise if one is missing, or no size."""
        inner = config.get("text_config")
        own = {**config, **inner} if isinstance(inner, Mapping) else config
        read = {"text_config", "layer_types"}
        size = partial(_size, own, read)
        dim, heads = size("hidden_size", "dim", "n_embd"), size("num_attention_heads", "n_heads", "n_head")
        layers = size("num_hidden_layers", "n_layers", "n_layer", most=1 << 12)
        kv_heads = size("num_key_value_heads", "n_kv_heads", default=heads)
        head_dim = size("head_dim", default=max(1, dim // heads))
        size("intermediate_size", default=dim)  # which recipes read as well
        return cls(own, dim, layers, heads, kv_heads, head_dim, size("vocab_size"), read)

    def size(self, *keys: str, default: int | None = None) -> int:
        """Return the first of some `keys` of the config, or the `default`."""
        return _size(self.config, self.read, *keys, default=default)

    def layer_kinds(self, cached: bool = False) -> dict[str, int]:
        """Return the number of layers of each kind, counting only layers with a cache of their own if `cached`."""
        kinds = self.config.get("layer_types")
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
            kinds = []
        if kinds and len(kinds) != self.layers:
            raise FileFormatError(f"config.json: layer_types has {len(kinds)} layers, but the model has {self.layers}")
        every = self.size("full_attention_interval", default=0) if self.config.get("linear_num_value_heads") else 0
        rest = ["linear_attention"] * (every - 1) + ["full_attention"]  # for each interval
        kinds = kinds or (rest * self.layers)[: self.layers]
        shared = self.size("num_kv_shared_layers", default=0) if cached else 0  # the last ones, with earlier caches
        crossed = self.config.get("cross_attention_layers") if cached else None  # they see images, not the context
        shared += len(crossed) if isinstance(crossed, list) else 0
        return dict(Counter(kinds[: max(0, self.layers - shared)]))

    def cache_layers(self) -> list[CacheLayers]:
        """Return the caches of the layers: K and V, a latent vector (MLA), K and V of a window, or a state."""
        if rank := self.size("kv_lora_rank", default=0):
            width = rank + self.size("qk_rope_head_dim", default=0)
            return [CacheLayers("latent attention (MLA)", self.layers, 1, width, 1)]
        result = []
        for kind, layers in self.layer_kinds(cached=True).items():
            heads, width = self._attention_of(kind)
            name = kind.replace("_", " ")
            if kind.startswith("linear"):
                result.append(CacheLayers(name, layers, 0, 0, 0, 0, self._state()))
            elif kind.startswith("sliding") and str(self.config.get("model_type")).startswith("gemma4"):
                result.append(CacheLayers(name, layers, heads, width, 2, self.size("sliding_window", default=0)))
            elif "attention" in kind:  # windows of other models are cached as a whole
                whole = "" if kind.startswith("full") else ", cached as a whole"
                result.append(CacheLayers(name + whole, layers, heads, width, 2))
        return result

    def unread(self) -> dict[str, Any]:
        """Return the fields of the config that are sizes, or have sizes in them, and were not read."""
        ids = ("_id", "_ids", "_index")
        return {
            name: value
            for name, value in self.config.items()
            if name not in self.read and type(value) in (int, list, dict) and not name.endswith(ids)
        }

    def uncounted_layers(self) -> Iterator[str]:
        """Yield a remark on each kind of layer without attention, whose state is not counted."""
        for kind, layers in self.layer_kinds().items():
            if "attention" not in kind:
                yield f"{count_of(layers, 'layer')} of kind {kind[:40]!r}: what they keep of users is not counted"

    def _attention_of(self, kind: str) -> tuple[int, int]:
        """Return the KV heads and their size in layers of a kind."""
        if kind.startswith("full"):  # which some models have in other sizes than their windows
            heads = self.size("num_global_key_value_heads", "global_kv_heads", default=self.kv_heads)
            return heads, self.size("global_head_dim", default=self.head_dim)
        return self.kv_heads, self.head_dim

    def _state(self) -> tuple[tuple[int, ...], ...]:
        """Return the tensors that a layer of linear attention keeps for each user."""
        key_heads, heads = self.size("linear_num_key_heads"), self.size("linear_num_value_heads")
        key, value = self.size("linear_key_head_dim"), self.size("linear_value_head_dim")
        channels = 2 * key_heads * key + heads * value
        return (heads, key, value), (self.size("linear_conv_kernel_dim", default=4), channels)

    def weights(self) -> Iterator[EstimatedWeight]:
        """Yield the matrices of the model, as models of its kind have them."""
        yield from self._attention_weights()
        yield from self._network_weights()
        yield EstimatedWeight("norms", "norms", (ceil_div(self.dim, 32), 32), -1, 2 * self.layers + 1)
        yield EstimatedWeight("embedding", "embedding", (self.vocabulary, self.dim), 1)
        yield EstimatedWeight("head", "head", (self.dim, self.vocabulary), 1)

    def _attention_weights(self) -> Iterator[EstimatedWeight]:
        dim, heads = self.dim, self.heads
        if rank := self.size("kv_lora_rank", default=0):
            rope, nope = self.size("qk_rope_head_dim", default=0), self.size("qk_nope_head_dim", default=self.head_dim)
            value, query = self.size("v_head_dim", default=self.head_dim), self.size("q_lora_rank", default=0)
            shapes = [(dim, query), (query, heads * (nope + rope))] if query else [(dim, heads * (nope + rope))]
            for shape in (*shapes, (dim, rank + rope), (rank, heads * (nope + value))):
                yield EstimatedWeight("attention", "WQKV", shape, 1, self.layers)
            yield EstimatedWeight("attention output", "WO", (heads * value, dim), 0, self.layers)
            return
        for kind, layers in self.layer_kinds().items():
            if kind.startswith("linear"):
                (value_heads, _, value), (_, channels) = self._state()
                columns = channels + value_heads * value + 2 * value_heads
                yield EstimatedWeight("linear attention", "WQKV", (dim, columns), 1, layers)
                yield EstimatedWeight("linear attention output", "WO", (value_heads * value, dim), 0, layers)
            else:
                kv_heads, width = self._attention_of(kind)
                yield EstimatedWeight("attention", "WQKV", (dim, (heads + 2 * kv_heads) * width), 1, layers)
                yield EstimatedWeight("attention output", "WO", (heads * width, dim), 0, layers)

    def _network_weights(self) -> Iterator[EstimatedWeight]:
        experts = self.size("num_local_experts", "n_routed_experts", "num_experts", default=0)
        dense = self.size("first_k_dense_replace", default=0) if experts else self.layers
        hidden = self.size("intermediate_size", "n_inner", default=4 * self.dim)
        narrow = self.size("moe_intermediate_size", default=hidden)
        shared = self.size("n_shared_experts", default=0)
        moe = max(0, self.layers - dense)
        for name, width, count in (("network", hidden, dense), ("experts", narrow, moe * (experts + shared))):
            if count:
                yield EstimatedWeight(name, "FF1_FF3", (self.dim, width), 1, 2 * count)
                yield EstimatedWeight(name, "FF2", (width, self.dim), 0, count)
        if experts:
            yield EstimatedWeight("router", "norms", (self.dim, experts), -1, moe)


def _size(
    config: Mapping[str, Any], read: set[str], *keys: str, default: int | None = None, most: int = _MAX_SIZE
) -> int:
    """Return the first of some keys of a config that it has; raise if that is no size, or if it has none."""
    read.update(keys)
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        if type(value) is not int or not 0 <= value <= most or (value == 0 and default is None):
            raise FileFormatError(f"config.json: {key} is {repr(value)[:40]}; expected a whole number from 1 to {most}")
        return value
    if default is None:
        raise FileFormatError(f"config.json: {keys[0]} is missing, without which the memory of the model is not known")
    return default
