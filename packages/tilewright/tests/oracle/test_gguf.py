# SPDX-License-Identifier: Apache-2.0
"""The `gguf` package of llama.cpp as an oracle: values of random blocks, bit for bit, and files that it writes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.files import open_tensors
from tilewright.formats.ggml import GGML_TYPES

gguf = pytest.importorskip("gguf", reason="the gguf package is not installed")
DECODED = [kind for kind in GGML_TYPES.values() if kind.unpack is not None]


def test_sizes_are_those_of_the_package():
    sizes = {int(kind): size for kind, size in gguf.GGML_QUANT_SIZES.items()}
    for kind in GGML_TYPES.values():
        assert (kind.elements, kind.nbytes) == sizes[kind.number], kind.name
        assert gguf.GGMLQuantizationType(kind.number).name == kind.name


@given(st.sampled_from(DECODED), st.integers(0, 2**32))
def test_random_blocks_have_the_same_bits(kind, seed):
    records = np.random.default_rng(seed).integers(0, 256, (64, kind.nbytes), dtype=np.uint8)
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(records, gguf.GGMLQuantizationType(kind.number)).reshape(64, -1)
    values, is_nan = kind.decode(records), np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(values), is_nan)
    np.testing.assert_array_equal(values.view(np.uint32)[~is_nan], expected.view(np.uint32)[~is_nan])


def test_files_of_the_package_are_read(tmp_path):
    rng = np.random.default_rng(0)
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_block_count(2)
    writer.add_token_list([f"token {k}" for k in range(300)])
    values = rng.standard_normal((4, 512)).astype(np.float32)
    writer.add_tensor("plain", values)
    writer.add_tensor("half", values.astype(np.float16))
    expected = {"plain": values, "half": values.astype(np.float16)}
    for name in ("Q4_0", "Q5_1", "Q8_0", "TQ1_0", "MXFP4", "BF16"):
        kind = gguf.GGMLQuantizationType[name]
        packed = gguf.quants.quantize(values, kind)
        writer.add_tensor(name, packed, raw_dtype=kind)
        expected[name] = gguf.quants.dequantize(packed, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    opened = open_tensors(tmp_path / "x.gguf")
    assert opened.metadata["tokenizer.ggml.tokens"] == "array of 300 strings"
    assert opened.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(opened[name].read().astype(np.float32), array, name)
