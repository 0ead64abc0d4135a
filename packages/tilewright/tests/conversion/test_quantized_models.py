# SPDX-License-Identifier: Apache-2.0
"""Quantised models: `prepare` makes the same cache from them as from their dequantised values."""

import json

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.conversion import plan_cache
from tilewright.files import open_tensors, write_safetensors
from tilewright.files.safetensors import LLAMA_CONFIG, sample_llama
from tilewright.formats.scalars import E2M1

from .llamas import files_of

BLOCK = 32


def spread(grid, shape, rows, columns):
    """Return the scale of each element of a matrix."""
    return grid[np.arange(shape[0])[:, None] // rows, np.arange(shape[1]) // columns]


def quantize_fp8(values):
    """Return the sections of FP8 in blocks, and the configuration."""
    grid = np.abs(values).reshape(-1, BLOCK, values.shape[1] // BLOCK, BLOCK).max(axis=(1, 3)) / np.float32(448)
    codes = (values / spread(grid, values.shape, BLOCK, BLOCK)).astype(ml_dtypes.float8_e4m3fn)
    return {"weight": codes, "weight_scale_inv": grid.astype(np.float32)}


def quantize_nvfp4(values):
    """Return the sections of NVFP4 as compressed-tensors stores it."""
    largest = np.float32(448 * 6) / np.abs(values).max()
    grid = np.abs(values).reshape(len(values), -1, 16).max(axis=2) * largest / np.float32(6)
    scales = np.maximum(grid, np.float32(2**-9)).astype(ml_dtypes.float8_e4m3fn)
    factors = spread(scales.astype(np.float32) / largest, values.shape, 1, 16)
    codes = E2M1.encode((values / factors).astype(np.float64))
    packed = codes[:, ::2] | codes[:, 1::2] << np.uint8(4)
    return {"weight_packed": packed, "weight_scale": scales, "weight_global_scale": np.array([largest], np.float32)}


CONFIGS = {
    quantize_fp8: {"quant_method": "fp8", "weight_block_size": [BLOCK, BLOCK]},
    quantize_nvfp4: {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
}


def write_models(folder, quantize):
    """Write a quantised model, and one with the values that it stands for."""
    arrays = {}
    for name, values in sample_llama().items():
        single = values.astype(np.float32)
        if name.endswith("proj.weight"):
            arrays |= {f"{name.removesuffix('weight')}{key}": each for key, each in quantize(single).items()}
        else:
            arrays[name] = values
    quantised = folder / "quantised"
    quantised.mkdir()
    write_safetensors(quantised / "model.safetensors", arrays)
    config = {**LLAMA_CONFIG, "quantization_config": CONFIGS[quantize]}
    (quantised / "config.json").write_text(json.dumps(config), encoding="utf-8")
    plain = folder / "plain"
    plain.mkdir()
    write_safetensors(plain / "model.safetensors", {n: t.read() for n, t in open_tensors(quantised).items()})
    (plain / "config.json").write_text(json.dumps(LLAMA_CONFIG), encoding="utf-8")
    return quantised, plain


@pytest.mark.parametrize("quantize", list(CONFIGS))
def test_the_cache_is_that_of_the_values(tmp_path, quantize):
    quantised, plain = write_models(tmp_path, quantize)
    made = {}
    for model in (quantised, plain):
        out = tmp_path / f"cache-{model.name}"
        report = tw.prepare(model, out, "N150")
        assert report.rounding
        made[model.name] = {name: data for name, data in files_of(out).items() if name.endswith(".tensorbin")}
    assert made["quantised"]
    assert made["quantised"] == made["plain"]


def test_a_tensor_that_cannot_be_read_is_named(tmp_path):
    quantised, _ = write_models(tmp_path, quantize_fp8)
    arrays = {name: each.read() for name, each in open_tensors(quantised).items() if not name.endswith("q_proj.weight")}
    codes = np.zeros((256, 256), np.int8)
    layers = range(LLAMA_CONFIG["num_hidden_layers"])
    arrays |= {f"model.layers.{k}.self_attn.q_proj.weight": codes for k in layers}
    write_safetensors(quantised / "model.safetensors", arrays)
    with pytest.raises(tw.FormatError, match=r"q_proj.*there is no 'model.layers.0.self_attn.q_proj.weight_scale'"):
        plan_cache(quantised, None, "N150")
