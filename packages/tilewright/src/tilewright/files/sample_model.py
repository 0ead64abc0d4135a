# SPDX-License-Identifier: Apache-2.0
"""Small checkpoints for examples, the same everywhere: `write_sample_model`, and `write_sample_llama` with a config."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np

from .._files import as_path, write_file
from .safetensors import write_safetensors
from .source_file import FilePath

Array = np.ndarray[Any, Any]
WORDS, WIDTH, HIDDEN = 1000, 192, 768  # 1000 is not a multiple of a tile, so there is padding


def sample_model(layers: int = 2) -> dict[str, Array]:
    """Return the weights of a small transformer of `layers` by name: float32 matrices, bfloat16 norms, integers.

    They are drawn from fixed seeds and distributed like real weights: scaled by the matrix width, with a column of
    outliers, which are hard for block formats.

    >>> model = sample_model()
    >>> len(model), model["layers.0.mlp.up.weight"].shape, round(sum(each.nbytes for each in model.values()) / 1e6, 1)
    (18, (768, 192), 4.3)
    """
    result: dict[str, Array] = {
        "embed.positions": np.arange(512, dtype=np.int32),
        "embed.weight": _weight_matrix(WORDS, WIDTH, 0),
    }
    for layer in range(layers):
        base, seed = f"layers.{layer}", 100 * (layer + 1)
        for k, name in enumerate("qkvo"):
            result[f"{base}.attention.{name}.weight"] = _weight_matrix(WIDTH, WIDTH, seed + k)
        result[f"{base}.mlp.up.weight"] = _weight_matrix(HIDDEN, WIDTH, seed + 10)
        result[f"{base}.mlp.down.weight"] = _weight_matrix(WIDTH, HIDDEN, seed + 11)
        result[f"{base}.norm.weight"] = np.linspace(0.5, 1.5, WIDTH, dtype=np.float32).astype(ml_dtypes.bfloat16)
        result[f"{base}.norm.bias"] = np.zeros(WIDTH, ml_dtypes.bfloat16)
    return result


def _weight_matrix(rows: int, columns: int, seed: int) -> Array:
    values = _normal_values(rows * columns, seed).reshape(rows, columns) / np.float32(np.sqrt(columns))
    values[:, seed % columns] *= 12
    return values


def _normal_values(count: int, seed: int) -> Array:
    """Return nearly normal numbers of mean 0 and variance 1, the same in every release of NumPy."""
    bits = np.arange(count, dtype=np.uint64) + np.uint64(seed << 32)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # the mixing of SplitMix64
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    total = sum([(bits >> np.uint64(16 * k) & np.uint64(0xFFFF)).astype(np.float64) for k in range(4)])
    result: Array = ((total / 65535 - 2) * np.sqrt(3)).astype(np.float32)
    return result


def write_sample_model(path: FilePath, layers: int = 2) -> None:
    """Write the sample model of `layers` to a .safetensors file at `path`; its bytes are the same wherever it is made.

    >>> import tempfile
    >>> from tilewright.files import open_tensors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample_model(f"{folder}/model.safetensors")
    ...     len(open_tensors(folder))
    18
    """
    write_safetensors(path, sample_model(layers), {"made by": "tilewright, as a sample"})


LLAMA_CONFIG = {
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "num_hidden_layers": 2,
    "vocab_size": 1003,
    "tie_word_embeddings": False,
}
"""The config.json of the sample Llama: heads that share keys, as in the large ones, and an odd vocabulary."""


def sample_llama() -> dict[str, Array]:
    """Return the weights of a small Llama by their Hugging Face names, as bfloat16.

    >>> model = sample_llama()
    >>> len(model), model["model.layers.0.self_attn.k_proj.weight"].shape
    (21, (128, 256))
    """
    dim, hidden, words, keys = 256, 512, 1003, 128
    shapes = {
        "self_attn.q_proj": (dim, dim),
        "self_attn.k_proj": (keys, dim),
        "self_attn.v_proj": (keys, dim),
        "self_attn.o_proj": (dim, dim),
        "mlp.gate_proj": (hidden, dim),
        "mlp.up_proj": (hidden, dim),
        "mlp.down_proj": (dim, hidden),
    }
    result = {"model.embed_tokens.weight": _weight_matrix(words, dim, 0)}
    for layer in range(2):
        base = f"model.layers.{layer}"
        for seed, (name, shape) in enumerate(shapes.items(), 100 * (layer + 1)):
            result[f"{base}.{name}.weight"] = _weight_matrix(*shape, seed)
        for seed, name in enumerate(("input_layernorm", "post_attention_layernorm"), 100 * layer + 50):
            result[f"{base}.{name}.weight"] = 1 + _normal_values(dim, seed) / 8
    result["model.norm.weight"] = 1 + _normal_values(dim, 3) / 8
    result["lm_head.weight"] = _weight_matrix(words, dim, 1)
    return {name: values.astype(ml_dtypes.bfloat16) for name, values in result.items()}


def write_sample_llama(folder: FilePath) -> None:
    """Write the small Llama to `folder` as Hugging Face does: config.json and model.safetensors.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample_llama(f"{folder}/Llama-3.2-1B-Instruct")
    ...     sorted(path.name for path in Path(folder, "Llama-3.2-1B-Instruct").iterdir())
    ['config.json', 'model.safetensors']
    """
    home = as_path(folder)
    home.mkdir(parents=True, exist_ok=True)
    write_file(home / "config.json", json.dumps(LLAMA_CONFIG, indent=2).encode())
    write_safetensors(home / "model.safetensors", sample_llama(), {"format": "pt"})
