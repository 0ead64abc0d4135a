# SPDX-License-Identifier: Apache-2.0
"""OCP MX and nvfp4: worked examples, the elements against ml_dtypes, and what NaN and infinity become."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.copying import pack, unpack
from tilewright.formats import (
    BLOCK_FORMATS,
    SmallFloat,
    mxfp4,
    mxfp6_e2m3,
    mxfp6_e3m2,
    mxfp8_e4m3,
    mxfp8_e5m2,
    mxint8,
    nvfp4,
)
from tilewright.formats.scalars import E2M1, E2M3, E3M2, E4M3, E5M2, unpack_codes

MX = [each for name, each in BLOCK_FORMATS.items() if name.startswith("mx")]
PEERS = {
    "float4_e2m1fn": E2M1,
    "float6_e2m3fn": E2M3,
    "float6_e3m2fn": E3M2,
    "float8_e4m3fn": E4M3,
    "float8_e5m2": E5M2,
    "float8_e3m4": SmallFloat(3, 4, "ieee"),
    "float8_e4m3": SmallFloat(4, 3, "ieee"),
}


def peer(name):
    """Return a dtype of ml_dtypes, which older releases do not all have."""
    found = getattr(ml_dtypes, name, None)
    if found is None:
        pytest.skip(f"ml_dtypes {ml_dtypes.__version__} has no {name}")
    return np.dtype(found)


def block(*values, size=32):
    return np.float32([*values, *[0.0] * (size - len(values))])


# Elements.


@pytest.mark.parametrize("name", PEERS)
def test_every_element_code(name):
    dtype, encoding = peer(name), PEERS[name]
    codes = np.arange(2**encoding.bits, dtype=np.uint8)
    np.testing.assert_array_equal(encoding.decode(codes), codes.view(dtype).astype(np.float64))
    finite = np.isfinite(encoding.decode(codes))
    np.testing.assert_array_equal(encoding.encode(encoding.decode(codes))[finite], codes[finite])


@pytest.mark.parametrize("name", PEERS)
def test_every_float16_as_an_element(name):
    """All 2^16 float16 numbers include every tie of these small formats, and numbers beyond both their ends."""
    dtype, encoding = peer(name), PEERS[name]
    values = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float64)
    values = values[np.isfinite(values)]
    for factor in (1.0, 2.0**-14):
        limited = np.clip(values * factor, -encoding.largest, encoding.largest)
        expected = limited.astype(np.float32).astype(dtype).view(np.uint8)
        np.testing.assert_array_equal(encoding.encode(values * factor), expected)


def test_every_scale():
    scales = np.arange(256, dtype=np.uint8)
    expected = scales.view(peer("float8_e8m0fnu")).astype(np.float64)
    np.testing.assert_array_equal(mxfp4.scale.value(scales), expected)
    np.testing.assert_array_equal(nvfp4.scale.value(scales), scales.view(ml_dtypes.float8_e4m3fn).astype(np.float64))


@pytest.mark.parametrize(
    ("each", "top_exponent", "largest", "smallest"),
    [
        (mxfp8_e4m3, 8, 448.0, 2.0**-9),
        (mxfp8_e5m2, 15, 57344.0, 2.0**-16),
        (mxfp6_e2m3, 2, 7.5, 0.125),
        (mxfp6_e3m2, 4, 28.0, 0.0625),
        (mxfp4, 2, 6.0, 0.5),
        (mxint8, 0, 127 / 64, 2.0**-6),
    ],
    ids=str,
)
def test_table_of_concrete_formats(each, top_exponent, largest, smallest):
    assert (each.block, each.element.top_exponent) == (32, top_exponent)
    assert (each.element.largest, each.element.smallest) == (largest, smallest)


# Worked examples: the shared scale is 2^(floor(log2(largest)) - top exponent), elements are value / scale.


def test_mxfp4_example():
    # largest 10: floor(log2) = 3, minus 2 gives 2^1. 10/2 = 5 is a tie of 4 and 6: to 4, whose code is even.
    scales, codes = mxfp4.encode(block(10, -7, 1, 0.5, 0.4, 3, -0.0))
    assert scales.tolist() == [128]
    #                    5->4     -3.5->-4    0.5      0.25->0  0.2->0  1.5     -0
    assert codes[0, :7].tolist() == [0b0110, 0b1110, 0b0001, 0b0000, 0b0000, 0b0011, 0b1000]
    assert mxfp4.decode(scales, codes)[0, :6].tolist() == [8, -8, 1, 0, 0, 3]
    packed = mxfp4.pack(block(10, -7, 1, 0.5, 0.4, 3, -0.0), 32)
    assert packed[:5].tolist() == [128, 0xE6, 0x01, 0x30, 0x08]


def test_mxfp4_saturates():
    # 7.9 has scale 1 and rounds to 8, which is not there: the largest element is 6.
    assert mxfp4.decode(*mxfp4.encode(block(7.9, -7.1)))[0, :2].tolist() == [6, -6]


def test_mxfp8_e4m3_example():
    # largest 1000: floor(log2) = 9, minus 8 gives 2^1. 500 is beyond 448 and saturates; 0.3/2 = 0.15 -> 0.15625.
    scales, codes = mxfp8_e4m3.encode(block(1000, 0.3, -896, 2**-9))
    assert scales.tolist() == [128]
    assert codes[0, :4].tolist() == [0x7E, 0x22, 0xFE, 0x00]  # 2^-10 is a tie of 0 and 2^-9
    assert mxfp8_e4m3.decode(scales, codes)[0, :4].tolist() == [896, 0.3125, -896, 0]


def test_mxfp8_e5m2_example():
    # largest 1.5: 0 - 15 gives 2^-15. 1.5 * 2^15 = 49152 = 1.5 x 2^15: exponent field 30, mantissa 10.
    scales, codes = mxfp8_e5m2.encode(block(1.5, 1.9, -(2**-31)))
    assert scales.tolist() == [112]
    assert codes[0, :3].tolist() == [0b0_11110_10, 0b0_11110_11, 0b1_00000_01]  # 1.9 saturates at 1.75


def test_mxfp6_examples():
    # e2m3: largest 3, 1 - 2 gives 2^-1: 6 is 1.5 x 2^2. e3m2: 1 - 4 gives 2^-3: 24 is 1.5 x 2^4.
    scales, codes = mxfp6_e2m3.encode(block(3, -1, 0.0625))
    assert (scales.tolist(), codes[0, :3].tolist()) == ([126], [0b0_11_100, 0b1_10_000, 0b0_00_001])
    scales, codes = mxfp6_e3m2.encode(block(3, -1, 0.0078125))
    assert (scales.tolist(), codes[0, :3].tolist()) == ([124], [0b0_111_10, 0b1_110_00, 0b0_000_01])


def test_six_bits_are_packed_without_gaps():
    values = block(3, -1, 0.0625, 3)
    packed = mxfp6_e2m3.pack(values, 32)
    codes = [0b011100, 0b110000, 0b000001, 0b011100]
    word = sum(code << (6 * i) for i, code in enumerate(codes))
    assert packed.size == 1 + 24
    assert packed[1:4].tobytes() == word.to_bytes(3, "little")


def test_mxint8_example():
    # largest 1.99: scale 1. 1.99 * 64 = 127.36 -> 127; 1.999 rounds to 128 and saturates; -2 is never made.
    scales, codes = mxint8.encode(block(1.999, 1.99, -1, 0.0078125, 0.0234375, -1.999))
    assert scales.tolist() == [127]
    assert codes[0, :6].view(np.int8).tolist() == [127, 127, -64, 0, 2, -127]
    assert mxint8.decode([127], [[0x80] * 32])[0, 0] == -2.0


def test_nvfp4_example():
    # largest 10: 10 / 6 = 1.666 is 1.625 in E4M3 (0x3D). 10 / 1.625 = 6.15 -> 6; 1 / 1.625 = 0.615 -> 0.5.
    scales, codes = nvfp4.encode(block(10, 1, -3, size=16))
    assert scales.tolist() == [0x3D]
    assert codes[0, :3].tolist() == [7, 1, 0b1100]
    assert nvfp4.decode(scales, codes)[0, :3].tolist() == [9.75, 0.8125, -3.25]


def test_nvfp4_tensor_scale():
    values = np.random.default_rng(0).standard_normal(4096).astype(np.float32) * 1e6
    plain = nvfp4.unpack(nvfp4.pack(values))
    assert np.abs(plain).max() == 2688  # without a tensor scale, everything saturates
    scale = nvfp4.tensor_scale_for(values)
    scaled = nvfp4.unpack(nvfp4.pack(values, tensor_scale=scale), tensor_scale=scale)
    assert np.abs(scaled - values).max() < 0.25 * np.abs(values).max()
    # The scale of the block with the largest value is the largest scale.
    assert nvfp4.encode(values, tensor_scale=scale)[0].max() == 0x7E
    power = nvfp4.pack(values * np.float32(2**-20), tensor_scale=2**-20)
    assert power.tobytes() == nvfp4.pack(values).tobytes()


@given(st.integers(0, 2**32 - 1), st.floats(2.0**-20, 2.0**20, width=32))
def test_nvfp4_rounds_the_true_quotient(seed, tensor_scale):
    """float64 division is exact enough: compare with a decision made in integers."""
    rng = np.random.default_rng(seed)
    values = (rng.uniform(-6, 6, 16) * tensor_scale).astype(np.float32)
    ties = (np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]) * tensor_scale).astype(np.float32)
    values[1:8] = ties
    scales, codes = nvfp4.encode(values, tensor_scale=tensor_scale)
    numbers = E2M1.decode(np.arange(8, dtype=np.uint8)).tolist()
    unit = int(float(nvfp4.scale.value(scales)[0]) * 2**9) * int(tensor_scale * 2**50)
    for value, code in zip(values.tolist(), codes[0].tolist(), strict=True):
        exact = abs(int(value * 2**100)) * 2  # in units where an element of 0.5 is 2^41 * unit
        distances = [abs(exact - int(2 * n) * unit * 2**41) for n in numbers]
        best = min(distances)
        allowed = [i for i, distance in enumerate(distances) if distance == best]
        expected = allowed[0] if len(allowed) == 1 else next(i for i in allowed if i % 2 == 0)
        assert code & 7 == expected


# Ends of the range.


@pytest.mark.parametrize("each", MX, ids=str)
def test_scale_follows_the_largest_value(each):
    for exponent in (-149, -127, -126, -1, 0, 1, 126, 127):
        for mantissa in (1.0, 1.5, 1.9):
            values = block(np.ldexp(mantissa, exponent)) if exponent > -140 else block(np.ldexp(1.0, exponent))
            expected = max(0, exponent - each.element.top_exponent + 127)
            assert each.encode(values)[0].tolist() == [expected]


@pytest.mark.parametrize("each", [*MX, nvfp4], ids=str)
def test_zeros(each):
    zeros = block(-0.0, size=each.block)
    scales, codes = each.encode(zeros)
    assert scales.tolist() == [0]
    assert not each.decode(scales, codes).any()
    # A small float keeps the sign of zero; a two's complement integer has none to keep.
    assert np.signbit(each.decode(scales, codes)[0, 0]) == (each is not mxint8)


@pytest.mark.parametrize("each", [*MX, nvfp4], ids=str)
def test_limits_are_reached(each):
    limits = each.limits
    size = each.block
    highest = np.float32(limits.highest)
    assert each.decode(*each.encode(block(np.finfo(np.float32).max, size=size)))[0, 0] == highest
    assert each.decode(*each.encode(block(limits.smallest, size=size)))[0, 0] == np.float32(limits.smallest)
    assert each.decode(*each.encode(block(limits.smallest / 4, size=size)))[0, 0] == 0


def test_a_scale_of_255_makes_nan_and_a_large_one_infinity():
    assert np.isnan(mxfp8_e4m3.decode([255], [[0x38] * 32])).all()
    assert np.isposinf(mxfp8_e4m3.decode([254], [[0x7E] * 32])).all()


# NaN and infinity.


@pytest.mark.parametrize("each", [mxfp8_e4m3, mxfp8_e5m2], ids=str)
def test_an_element_that_has_nan_says_it(each):
    scales, codes = each.encode(block(1.0, np.nan, -np.nan))
    assert scales.tolist() == each.encode(block(1.0))[0].tolist()
    assert codes[0, 1:3].tolist() == [each.element.nan] * 2
    values = each.decode(scales, codes)[0]
    assert values[0] == 1.0
    assert np.isnan(values[1:3]).all()
    assert not values[3:].any()


@pytest.mark.parametrize("each", [mxfp6_e2m3, mxfp6_e3m2, mxfp4, mxint8, nvfp4], ids=str)
def test_without_a_nan_the_scale_says_it_for_the_block(each):
    values = np.concatenate([block(1.0, np.nan, -3.0, size=each.block), block(1.0, size=each.block)])
    scales, codes = each.encode(values)
    assert scales[0] == each.scale.nan == (127 if each is nvfp4 else 255)
    assert not codes[0].any()
    back = each.decode(scales, codes)
    assert np.isnan(back[0]).all()
    assert back[1, 0] == pytest.approx(1.0, rel=0.05)


def test_mxfp8_e5m2_says_infinity():
    scales, codes = mxfp8_e5m2.encode(block(1.0, np.inf, -np.inf, 2.0**-20))
    assert scales.tolist() == [112]
    assert codes[0, 1:3].tolist() == [0x7C, 0xFC]
    assert mxfp8_e5m2.decode(scales, codes)[0, :4].tolist() == [1.0, np.inf, -np.inf, 2.0**-20]


@pytest.mark.parametrize("each", [each for each in [*MX, nvfp4] if each is not mxfp8_e5m2], ids=str)
def test_without_an_infinity_it_counts_as_the_largest_float32(each):
    encoded = each.encode(block(1.0, -np.inf, size=each.block))
    expected = each.encode(block(1.0, -np.finfo(np.float32).max, size=each.block))
    np.testing.assert_array_equal(encoded[0], expected[0])
    np.testing.assert_array_equal(encoded[1], expected[1])
    assert each.decode(*encoded)[0, :2].tolist() == [0.0, np.float32(-each.max_value)]


@pytest.mark.parametrize("each", [mxfp8_e4m3, mxfp8_e5m2], ids=str)
def test_a_nan_keeps_its_own_sign_whatever_the_scale_says(each):
    nan = each.element.nan
    codes = np.full((2, each.block), nan, np.uint8)
    codes[:, 1] |= 0x80
    back = each.decode([127, 255], codes)
    assert np.isnan(back).all()
    assert np.signbit(back)[:, :3].tolist() == [[False, True, False]] * 2


@pytest.mark.parametrize("name", BLOCK_FORMATS)
def test_nothing_is_packed_and_unpacked(name):
    assert unpack_codes(np.zeros((0, 24), np.uint8), BLOCK_FORMATS[name].bits).size == 0
    nothing = pack(np.zeros(0, np.float32), name)
    assert unpack(nothing, name).size == nothing.size == 0
