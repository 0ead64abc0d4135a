# SPDX-License-Identifier: Apache-2.0
"""The quantization report: errors per block, the worst element, and what flattens its neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import FormatError
from tilewright.formats import BLOCK_FORMATS, bfloat8_b, mxfp4, mxfp8_e4m3, nvfp4, quantization_error

every_format = pytest.mark.parametrize("each", BLOCK_FORMATS.values(), ids=str)


def outlier(shape=(4, 64), at=(2, 37), value=1e6):
    values = np.random.default_rng(0).uniform(1, 2, shape).astype(np.float32)
    values[at] = value
    return values


@given(each=st.sampled_from(list(BLOCK_FORMATS.values())), seed=st.integers(0, 1000), rank=st.integers(1, 3))
def test_against_pack_and_unpack(each, seed, rank):
    """Errors of whole blocks are those of packing, whatever the axis and the shape."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 40, rank))
    axis = int(rng.integers(-rank, rank))
    values = rng.standard_normal(shape).astype(np.float32) * 100
    report = quantization_error(values, each, axis)
    lines = np.moveaxis(values, axis, -1)
    blocks = -(-lines.shape[-1] // each.block)
    padded = np.zeros((*lines.shape[:-1], blocks * each.block), dtype=np.float32)
    padded[..., : lines.shape[-1]] = lines
    stored = each.unpack(each.pack(padded, padded.shape[-1]), padded.shape[-1]).reshape(padded.shape)
    error = np.abs(padded.astype(np.float64) - stored)
    expected = np.moveaxis(error.reshape(*lines.shape[:-1], blocks, each.block).max(axis=-1), -1, axis)
    np.testing.assert_array_equal(report.max_abs_error, expected)
    assert report.shape == shape
    assert report.worst.error == error.max()
    assert report.worst.value == values[report.worst.index]
    assert abs(report.worst.value - report.worst.stored) == error.max()
    assert report.rms_error == pytest.approx(np.sqrt((error**2).sum() / values.size))
    flat = np.count_nonzero((stored == 0) & (padded != 0))
    assert report.flattened.sum() <= flat


def test_the_outlier_is_named():
    report = quantization_error(outlier(), "bfloat8_b")
    (found,) = report.flattening()
    assert (found.block, found.count, found.index, found.value) == ((2, 32), 15, (2, 37), 1e6)
    assert report.flattened.tolist() == [[0] * 4, [0] * 4, [0, 0, 15, 0], [0] * 4]
    assert report.scale_exponents[2].tolist() == [0, 0, 19, 0]
    assert report.max_relative_error[2].tolist()[2] == 1.0
    assert report.dominating[2, 2] == 37


def test_along_another_axis():
    report = quantization_error(outlier().T, "bfloat8_b", axis=0)
    (found,) = report.flattening()
    assert (found.block, found.index) == ((32, 2), (37, 2))
    assert report.flattened.shape == (4, 4)
    assert report.worst.index[1] == 2


def test_most_flattened_first_and_limited():
    values = np.ones((8, 16), dtype=np.float32)
    for row in range(8):
        values[row, : row + 1] = 1e9
    found = quantization_error(values, bfloat8_b).flattening(limit=3)
    assert [each.count for each in found] == [15, 14, 13]


def test_infinity_and_nan_dominate():
    values = np.ones(32, dtype=np.float32)
    values[3], values[20] = np.inf, np.nan
    report = quantization_error(values, "bfloat8_b")
    assert report.flattened.tolist() == [15, 15]
    assert report.dominating.tolist() == [3, 20]
    # An infinity that stays one, and a NaN that stays one, are no error.
    assert report.max_abs_error.tolist() == [1.0, 1.0]
    # In mxfp4 a NaN takes its whole block with it: an infinite error, and a scale that is no number.
    report = quantization_error(values, "mxfp4")
    assert report.scale_exponents.tolist() == [128]
    assert report.worst.error == np.inf
    assert report.summary()


def test_numbers_too_small_for_the_format_blame_no_neighbour():
    tiny = np.float32([1.0] + [1e-40] * 15)
    assert quantization_error(tiny, "bfloat8_b").flattened.tolist() == [0]
    assert quantization_error(tiny, "mxfp8_e4m3").flattened.tolist() == [15]


def test_tensor_scale_and_stochastic_rounding():
    values = np.random.default_rng(1).standard_normal(4096).astype(np.float32) * 1e5
    scale = nvfp4.tensor_scale_for(values)
    assert quantization_error(values, nvfp4, tensor_scale=scale).rms_error < quantization_error(values, nvfp4).rms_error
    options = {"rounding": "stochastic", "seed": 9}
    report = quantization_error(values, mxfp8_e4m3, **options)
    stored = mxfp8_e4m3.unpack(mxfp8_e4m3.pack(values, **options))
    assert report.worst.stored == stored[report.worst.index]
    assert report.rms_error == pytest.approx(np.sqrt(np.mean((values.astype(np.float64) - stored) ** 2)))


def test_more_than_one_chunk():
    values = np.random.default_rng(3).standard_normal((300, 500)).astype(np.float32)
    report = quantization_error(values, "bfloat4_b")
    rows = [quantization_error(row, "bfloat4_b") for row in values]
    np.testing.assert_array_equal(report.max_abs_error, [row.max_abs_error for row in rows])
    assert report.worst.error == max(row.worst.error for row in rows)


@every_format
def test_summary_fits_80_columns(each):
    for values in (
        outlier(),
        np.zeros((3, 0)),
        outlier((2, 2, 2, 2, 2, 1, 4, 64), (1, 1, 1, 1, 1, 0, 3, 63), -1.2345e38),
    ):
        text = quantization_error(values, each).summary()
        assert text.startswith(each.name)
        assert max(len(line) for line in text.splitlines()) <= 80


def test_empty():
    report = quantization_error(np.zeros((3, 0), dtype=np.float32), mxfp4)
    assert report.worst is None
    assert report.rms_error == 0
    assert report.flattening() == ()


def test_bad_input():
    with pytest.raises(FormatError, match="expected a block format"):
        quantization_error(np.zeros(4), "float32")
    with pytest.raises(FormatError, match=r"axis 2 is outside shape \(3, 4\)"):
        quantization_error(np.zeros((3, 4)), "mxfp4", axis=2)
    with pytest.raises(FormatError, match="no tensor scale"):
        quantization_error(np.zeros(4), "mxfp4", tensor_scale=2.0)
