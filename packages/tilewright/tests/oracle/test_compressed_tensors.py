# SPDX-License-Identifier: Apache-2.0
"""The `compressed-tensors` package as an oracle: what it compresses is read as what it decompresses, rounded alike."""

import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewright.files import open_tensors

torch = pytest.importorskip("torch", reason="torch is not installed")
compressors = pytest.importorskip("compressed_tensors.compressors", reason="compressed-tensors is not installed")
quantization = pytest.importorskip("compressed_tensors.quantization")
safetensors = pytest.importorskip("safetensors.torch")

NUMPY = {torch.float32: np.float32, torch.bfloat16: ml_dtypes.bfloat16, torch.float16: np.float16}
SHAPES = st.tuples(st.sampled_from([8, 33, 100, 192]), st.sampled_from([64, 96, 160, 256, 320]))


def grid(strategy, shape, group, block):
    rows, columns = shape
    return {
        "tensor": (1,),
        "channel": (rows, 1),
        "group": (rows, columns // group),
        "block": (-(-rows // block[0]), -(-columns // block[1])),
    }[strategy]


@st.composite
def integers(draw):
    """Draw the arguments of integers, and the sections that a compressor takes."""
    shape, packed = draw(SHAPES), draw(st.booleans())
    strategy = draw(st.sampled_from(["tensor", "channel", "group"]))
    bits = draw(st.integers(1, 8)) if packed else 8
    arguments = {"num_bits": bits, "type": "int", "symmetric": draw(st.booleans()), "strategy": strategy}
    arguments["group_size"] = 32 if strategy == "group" else None
    scales = grid(strategy, shape, 32, (1, 1))
    sections = {"weight_scale": torch.rand(*scales) * 0.05 + 1e-3}
    if not arguments["symmetric"]:
        sections["weight_zero_point"] = torch.randint(-(2 ** (bits - 1)), 2 ** (bits - 1), scales).to(torch.int8)
    return "pack-quantized" if packed else "int-quantized", shape, arguments, sections


@st.composite
def floats(draw):
    """Draw the same for float8 with scales of any grid."""
    shape, strategy = draw(SHAPES), draw(st.sampled_from(["tensor", "channel", "group", "block"]))
    block = draw(st.sampled_from([(128, 128), (64, 64), (32, 128)]))
    arguments = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": strategy}
    arguments |= {"group_size": 32 if strategy == "group" else None}
    arguments |= {"block_structure": list(block) if strategy == "block" else None}
    sections = {"weight_scale": torch.rand(*grid(strategy, shape, 32, block)) * 0.05 + 1e-3}
    return "float-quantized", shape, arguments, sections


@st.composite
def blocks(draw):
    """Draw the same for NVFP4 and the MX types."""
    name = draw(
        st.sampled_from(["nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp6-pack-quantized", "mxfp8-quantized"])
    )
    shape = rows, columns = draw(SHAPES)
    if name.startswith("nv"):
        arguments = {"num_bits": 4, "strategy": "tensor_group", "group_size": 16, "scale_dtype": torch.float8_e4m3fn}
        scales = (torch.rand(rows, columns // 16) * 400 + 1).to(torch.float8_e4m3fn).float()
        sections = {"weight_scale": scales, "weight_global_scale": torch.tensor([draw(st.floats(1, 5000))])}
    else:
        arguments = {"num_bits": int(name[4]), "strategy": "group", "group_size": 32, "scale_dtype": torch.uint8}
        sections = {"weight_scale": torch.pow(2.0, torch.randint(-20, 10, (rows, columns // 32)).float())}
    return name, shape, {**arguments, "type": "float", "symmetric": True}, sections


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.one_of(integers(), floats(), blocks()), st.sampled_from(list(NUMPY)), st.booleans(), st.integers(0, 2**31))
def test_values_are_those_of_the_package(tmp_path, drawn, dtype, has_config, seed):
    name, shape, arguments, sections = drawn
    torch.manual_seed(seed)
    sections = {key: value.to(dtype) if key == "weight_scale" else value for key, value in sections.items()}
    weights = quantization.QuantizationArgs(**arguments)
    scheme = quantization.QuantizationScheme(targets=["Linear"], weights=weights, format=name)
    compressor = compressors.BaseCompressor.get_value_from_registry(name)
    stored = compressor.compress({"weight": torch.randn(*shape).to(dtype), **sections}, scheme)
    expected = compressor.decompress(stored, scheme)["weight"]
    safetensors.save_file(
        {f"m.{key}": value.contiguous() for key, value in stored.items() if value is not None},
        tmp_path / "model.safetensors",
    )
    groups = {"group_0": {"weights": json.loads(weights.model_dump_json())}}
    config = {"quantization_config": {"quant_method": "compressed-tensors", "format": name, "config_groups": groups}}
    (tmp_path / "config.json").write_text(json.dumps(config if has_config else {}))
    tensor = open_tensors(tmp_path)["m.weight"]
    if tensor.problem is not None:  # blocks of unusual sizes need the configuration
        assert not has_config, tensor.problem
        return
    rounded = tensor.read().astype(NUMPY[expected.dtype]).astype(np.float32)
    np.testing.assert_array_equal(rounded, expected.float().numpy())
