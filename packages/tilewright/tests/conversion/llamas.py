# SPDX-License-Identifier: Apache-2.0
"""Small models of several families: the sample Llama with other weights, types and configs."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np

from tilewright.files.safetensors import LLAMA_CONFIG, sample_llama

from ..files.samples import write_safetensors

NAME = "Llama-3.2-1B-Instruct"


def write_model(folder, config=None, weights=None, dtype=ml_dtypes.bfloat16):
    """Write the sample Llama into a folder, with other entries of its config and other weights; None removes one."""
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    held = {**LLAMA_CONFIG, **(config or {})}
    (home / "config.json").write_text(json.dumps({k: v for k, v in held.items() if v is not None}), encoding="utf-8")
    tensors = {**{name: values.astype(dtype) for name, values in sample_llama().items()}, **(weights or {})}
    write_safetensors(home / "model.safetensors", {k: v for k, v in tensors.items() if v is not None})
    return home


def files_of(folder):
    """Return the bytes of every file below a folder, hidden ones too."""
    home = Path(folder)
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(ml_dtypes.bfloat16)
