# SPDX-License-Identifier: Apache-2.0
"""Casts: against ml_dtypes and NumPy over every bit pattern, and the rules that are tilewright's own."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tilewright.errors import FormatError
from tilewright.formats import SCALAR_FORMATS, cast, format_of

from ..cases import all_cases

FLOATS = [name for name, each in SCALAR_FORMATS.items() if each.kind == "float"]
INTEGERS = [name for name, each in SCALAR_FORMATS.items() if each.kind in ("int", "uint")]
EVERY_16 = np.arange(2**16, dtype=np.uint16)
EVERY_8 = np.arange(2**8, dtype=np.uint8)
PATTERNS = {
    "bfloat16": EVERY_16.view(ml_dtypes.bfloat16),
    "float16": EVERY_16.view(np.float16),
    "float8_e4m3": EVERY_8.view(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": EVERY_8.view(ml_dtypes.float8_e5m2),
}
SINGLES = hnp.arrays(np.uint32, st.integers(0, 64)).map(lambda bits: bits.view(np.float32))


def bits(array):
    return array.view(f"u{array.dtype.itemsize}")


def quietly(array, dtype):
    with np.errstate(all="ignore"):
        return np.asarray(array).astype(dtype)


@all_cases(("target", ["float64", "float32", "float16", "bfloat16"]), ("source", PATTERNS))
def test_every_pattern_to_a_float(source, target):
    values = PATTERNS[source]
    result, expected = cast(values, target), quietly(values, format_of(target).dtype)
    number = ~np.isnan(quietly(values, np.float64))
    np.testing.assert_array_equal(bits(result)[number], bits(expected)[number])
    assert np.isnan(quietly(result[~number], np.float64)).all()


@all_cases(("source", [name for name in PATTERNS if name != "float8_e5m2"]))
def test_every_pattern_to_float8_e5m2(source):
    values = PATTERNS[source]
    wide = quietly(values, np.float32)
    number = ~np.isnan(wide)
    # ml_dtypes goes to infinity where we stop at the largest number.
    expected = quietly(np.clip(wide, -57344, 57344), ml_dtypes.float8_e5m2)
    result = cast(values, "float8_e5m2")
    np.testing.assert_array_equal(bits(result)[number], bits(expected)[number])
    assert (bits(result)[~number] == 0x7E).all()


@all_cases(("source", [name for name in PATTERNS if name != "float8_e4m3"]))
def test_every_pattern_to_float8_e4m3(source):
    values = PATTERNS[source]
    wide = quietly(values, np.float32)
    number = ~np.isnan(wide)
    flushed = np.where(np.abs(wide) < 2**-6, np.copysign(np.float32(0), wide), np.clip(wide, -448, 448))
    result = cast(values, "float8_e4m3")
    np.testing.assert_array_equal(bits(result)[number], bits(quietly(flushed, ml_dtypes.float8_e4m3fn))[number])
    assert (bits(result)[~number] == 0x7F).all()


@all_cases(("name", FLOATS))
def test_the_same_format_keeps_every_bit(name):
    size = format_of(name).itemsize
    values = np.random.default_rng(0).integers(0, 256, size * 4096, dtype=np.uint8).view(format_of(name).dtype)
    result = cast(values, name)
    assert result.tobytes() == values.tobytes()
    assert not np.shares_memory(result, values)


@given(SINGLES)
def test_float32_to_smaller_floats(values):
    number = ~np.isnan(values)
    for name in ("float16", "bfloat16"):
        expected = quietly(values, format_of(name).dtype)
        np.testing.assert_array_equal(bits(cast(values, name))[number], bits(expected)[number])


QUIET_NAN = {
    "float64": 0x7FF8 << 48,
    "float32": 0x7FC00000,
    "float16": 0x7E00,
    "bfloat16": 0x7FC0,
    "float8_e4m3": 0x7F,
    "float8_e5m2": 0x7E,
}


@all_cases(("source", FLOATS), ("target, pattern", QUIET_NAN.items()))
def test_nan_has_one_pattern(source, target, pattern):
    if source == target or (source, target) == ("bfloat16", "float32"):
        return
    dtype = format_of(source).dtype
    quiet = np.array([np.nan], dtype=dtype)
    for nans in (quiet, -quiet, (bits(quiet) | 1).view(dtype), -(bits(quiet) | 1).view(dtype)):
        assert np.isnan(quietly(nans, np.float64)).all()
        assert bits(cast(nans, target)).tolist() == [pattern]


def test_bfloat16_to_float32_appends_zeros():
    np.testing.assert_array_equal(bits(cast(PATTERNS["bfloat16"], "float32")), EVERY_16.astype(np.uint32) << 16)


def test_integers_round_twice_on_the_way_to_bfloat16():
    # 2^24 + 2^16 + 1 is just above a tie of bfloat16, but float32 drops the 1 and the tie goes down to even.
    value = 2**24 + 2**16 + 1
    assert cast(np.array([value], dtype=np.int32), "bfloat16").astype(np.float64)[0] == 2**24
    assert cast(np.array([value], dtype=np.float64), "bfloat16").astype(np.float64)[0] == 2**24


def test_float64_rounds_twice_on_the_way_to_float16():
    value = np.array([1 + 2**-11 + 2**-30])
    assert value.astype(np.float16)[0] == 1 + 2**-10
    assert cast(value, "float16")[0] == 1.0


@all_cases(("target", INTEGERS), ("source", [*INTEGERS, "bool"]))
def test_integers_keep_the_low_bits(source, target):
    if source == "bool":
        values, wanted = np.array([True, False]), [1, 0]
    else:
        limits = np.iinfo(source)
        values = np.array([limits.min, limits.min // 2, 0, 1, limits.max // 3, limits.max], dtype=source)
        size = 2 ** format_of(target).bits
        wanted = [int(v) % size for v in values.tolist()]
        if target.startswith("int"):
            wanted = [v - size if v >= size // 2 else v for v in wanted]
    result = cast(values, target)
    assert result.dtype == target
    assert result.tolist() == wanted


@all_cases(("source", FLOATS), ("target", INTEGERS))
def test_floats_become_integers_by_one_rule(source, target):
    dtype, limits = format_of(source).dtype, np.iinfo(target)
    rng = np.random.default_rng(1)
    values = rng.integers(0, 256, 4096 * dtype.itemsize, dtype=np.uint8).view(dtype)
    close = quietly(np.ldexp(rng.uniform(-1, 1, 4096), rng.integers(0, 66, 4096)), dtype)
    values = np.concatenate([values, close])
    expected = [
        0 if v != v else max(int(limits.min), min(int(limits.max), v if v in (np.inf, -np.inf) else int(v)))
        for v in quietly(values, np.float64).tolist()
    ]
    assert cast(values, target).tolist() == expected
    # The rule does not look at positions, as ttnn's does: any part of the array gives the same answers.
    assert cast(values[::-3], target).tolist() == expected[::-3]


def test_edges_of_64_bits():
    values = np.array([2.0**63, 2.0**63 - 1024, -(2.0**63), 2.0**64, 2.0**64 - 2048, -0.9])
    assert cast(values, "int64").tolist() == [2**63 - 1, 2**63 - 1024, -(2**63), 2**63 - 1, 2**63 - 1, 0]
    assert cast(values, "uint64").tolist() == [2**63, 2**63 - 1024, 0, 2**64 - 1, 2**64 - 2048, 0]


@all_cases(("source", SCALAR_FORMATS))
def test_bool(source):
    dtype = format_of(source).dtype
    values = np.array([0, 1, 0, 1]).astype(dtype)
    assert cast(values, "bool").tolist() == [False, True, False, True]
    assert cast(np.array([True, False]), source).astype(np.float64).tolist() == [1.0, 0.0]
    if format_of(source).kind == "float":
        special = np.array([-0.0, np.nan]).astype(dtype)
        assert cast(special, "bool").tolist() == [False, True]


def test_float8_saturates():
    values = np.float32([448, 464, 480, 1e30, np.inf, -np.inf, 2**-6, 2**-6 - 2**-30, -(2**-7), np.nan])
    expected = [0x7E, 0x7E, 0x7E, 0x7E, 0x7E, 0xFE, 0x08, 0x00, 0x80, 0x7F]
    assert bits(cast(values, "float8_e4m3")).tolist() == expected
    values = np.float32([57344, 61440, 1e30, np.inf, -np.inf, 2**-16, 2**-17, 1.1 * 2**-17, np.nan])
    assert bits(cast(values, "float8_e5m2")).tolist() == [0x7B, 0x7B, 0x7B, 0x7B, 0xFB, 1, 0, 1, 0x7E]


def test_shapes_strides_and_byte_orders():
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for view in (values, values.T, values[:, ::-2], values[:0], values[0, 0, 0], values.astype(">f4"), 3.0, [[1, 2]]):
        for target in ("bfloat16", "float16", "float8_e4m3", "float64", "uint8", "bool"):
            result = cast(view, target)
            assert isinstance(result, np.ndarray)
            assert result.shape == np.shape(view)
            assert result.dtype == format_of(target).dtype
            assert result.dtype.isnative
            np.testing.assert_array_equal(
                result.astype(np.float64), np.asarray(view).astype(result.dtype).astype(float)
            )
    readonly = np.frombuffer(np.float16([1, np.nan]).tobytes(), dtype=np.float16)
    assert cast(readonly, "float32")[0] == 1
    assert cast(readonly, "float64")[0] == 1


@given(hnp.arrays(np.float32, st.integers(1, 8), elements=st.floats(width=32)), st.sampled_from(INTEGERS))
def test_raise_agrees_with_saturate_in_range(values, target):
    limits = np.iinfo(target)
    inside = [np.isfinite(v) and limits.min <= int(v) <= limits.max for v in values]
    if all(inside):
        assert cast(values, target, on_overflow="raise").tolist() == cast(values, target).tolist()
    else:
        with pytest.raises(FormatError, match=rf" at {inside.index(False)} is outside {limits.min} to {limits.max}"):
            cast(values, target, on_overflow="raise")
