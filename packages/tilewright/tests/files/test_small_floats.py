# SPDX-License-Identifier: Apache-2.0
"""Float8 types that are read only, and complex numbers: opened, listed, read where they have values, or named."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tests.cli.runner import invoke
from tests.files import onnx_samples
from tilewright.files.quantized import decode_small_floats

CODES = np.arange(256, dtype=np.uint8).reshape(8, 32)
NAMES = {
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 18),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 20),
    "F8_E8M0": ("float8_e8m0fnu", 24),
}
# The oldest ml_dtypes that is supported does not have the last one.
TYPES = {kind: (getattr(ml_dtypes, name), code) for kind, (name, code) in NAMES.items() if hasattr(ml_dtypes, name)}


def write(path: Path, kind: str, shape: tuple[int, ...], data: bytes) -> Path:
    header = json.dumps({"x": {"dtype": kind, "shape": list(shape), "data_offsets": [0, len(data)]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_every_code_is_the_number_of_ml_dtypes(tmp_path: Path, kind: str) -> None:
    dtype, number = TYPES[kind]
    expected = CODES.view(dtype).astype(np.float32)
    (tmp_path / "m.onnx").write_bytes(
        onnx_samples.model(onnx_samples.initializer("x", CODES.shape, number, 9, CODES.tobytes()))
    )
    for path in (write(tmp_path / "m.safetensors", kind, CODES.shape, CODES.tobytes()), tmp_path / "m.onnx"):
        stored = tw.open_tensors(path)["x"]
        assert stored.raw.tobytes() == CODES.tobytes()
        x = decode_small_floats(stored)
        assert x.problem is None
        assert x.format_name == np.dtype(dtype).name
        assert x.nbytes == 256
        np.testing.assert_array_equal(x.read(), expected)
        np.testing.assert_array_equal(x.read((slice(2, 5), slice(7, 30))), expected[2:5, 7:30])
        assert x.file_offsets((3, 4)) == (x.byte_range[0] + 3 * 32 + 4, None)
        out = tmp_path / f"{path.suffix[1:]}.d"
        report = tw.convert(path, out)
        np.testing.assert_array_equal(tw.open_tensors(out)["x"].read(), expected)
        assert report.rounding["x"].nan == np.isnan(expected).sum()
        assert tw.verify(out, path)
        assert tw.diff(path, out).same


def test_complex_numbers_are_listed_and_refused_with_a_reason(tmp_path: Path) -> None:
    path = write(tmp_path / "m.safetensors", "C64", (2,), np.ones(2, np.complex64).tobytes())
    opened = tw.open_tensors(path)["x"]
    assert opened.raw.tobytes() == np.ones(2, np.complex64).tobytes()
    assert "complex" in str(opened.problem)
    assert "C64" in invoke("inspect", str(path)).output
    with pytest.raises(tw.FormatError, match=r"real and imaginary.*skip = true"):
        tw.convert(path, tmp_path / "out")
