# SPDX-License-Identifier: Apache-2.0
"""What a conversion says of its exactness equals what a comparison of its output with its source finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.conversion.source import Rounding, compare_values
from tilewright.files import write_safetensors

GOLDEN = Path(__file__).parents[1] / "golden" / "quantised"


def differences(source: Any, made: Any) -> Rounding:
    a, b = source.astype(np.float64), made.astype(np.float64)
    differs = (a != b) & ~(np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        away = np.abs(a - b)[differs]
    return Rounding(a.size, int(differs.sum()), float(away[np.isfinite(away)].max(initial=0)))


@pytest.mark.parametrize("dtype", ["bfloat8_b", "bfloat4_b", "bfloat16", "float32", "mxfp8_e4m3"])
@pytest.mark.parametrize("transpose", [False, True])
def test_rounding_is_what_the_files_say(tmp_path: Path, dtype: str, transpose: bool) -> None:
    rng = np.random.default_rng(5)
    arrays = {
        "bf16": rng.normal(size=(70, 90)).astype(ml_dtypes.bfloat16),
        "f32": rng.normal(size=(3, 40, 33)).astype(np.float32),
        "f16": rng.normal(size=(64, 64)).astype(np.float16),
        "f64": rng.normal(size=(33, 5)),
        "vector": np.arange(7, dtype=np.float32),
    }
    arrays["f32"][0, 0, :3] = [np.nan, np.inf, -np.inf]
    write_safetensors(tmp_path / "m.safetensors", arrays)
    to = "safetensors" if dtype.startswith("mx") else "tensorbin"
    out = tmp_path / ("out.safetensors" if to == "safetensors" else "out")
    report = tw.convert(tmp_path / "m.safetensors", out, dtype=dtype, transpose=transpose)
    made = tw.open_tensors(out)
    for name, array in arrays.items():
        source = np.swapaxes(array, -1, -2) if transpose and array.ndim > 1 else array
        expected = differences(source, made[name].read())
        found = report.rounding[name]
        assert (found.values, found.rounded) == (expected.values, expected.rounded), name
        assert found.largest_error == pytest.approx(expected.largest_error, rel=1e-6), name


def test_mxfp4_to_bfloat8_b_is_exact(tmp_path: Path) -> None:
    for path in (GOLDEN / "compressed_tensors" / "mxfp4", GOLDEN / "checkpoints" / "torchao_mx_fp4"):
        report = tw.convert(path, tmp_path / path.name, dtype="bfloat8_b")
        quantised = [each for name, each in report.rounding.items() if "norm" not in name]
        assert quantised
        assert all(str(each) == "exact" for each in quantised), report.rounding


def test_rounding_is_counted_again_after_resume(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", w=np.linspace(0, 1, 2048, dtype=np.float32).reshape(32, 64))
    first = tw.convert(tmp_path / "m.npz", tmp_path / "out", dtype="bfloat8_b")
    again = tw.convert(tmp_path / "m.npz", tmp_path / "out", dtype="bfloat8_b", force=True)
    assert first.rounding == again.rounding
    assert not first.rounding["w"].is_exact


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float64])
def test_compare_values(dtype: Any) -> None:
    a = np.array([1, 2, np.nan, np.inf, -np.inf, 0.0, np.inf, 5], dtype)
    b = np.array([1, 2.5, np.nan, np.inf, np.inf, -0.0, 3, np.nan], dtype)
    assert compare_values(a, b) == Rounding(8, 4, 0.5, nan=1, infinite=3)
