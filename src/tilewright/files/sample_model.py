# SPDX-License-Identifier: Apache-2.0
"""`write_sample_model`: a small checkpoint for examples, the same everywhere."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

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
