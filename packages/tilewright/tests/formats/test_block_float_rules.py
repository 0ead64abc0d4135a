# SPDX-License-Identifier: Apache-2.0
"""Block floats against the written rules of the reference, with plain integers, on any bit pattern."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.formats import BLOCK_FORMATS

BLOCK_FLOATS = [each for name, each in BLOCK_FORMATS.items() if name.startswith("bfloat")]

# Exponents near each other, at both ends, or anywhere; fractions anywhere or at the ties of the formats.
FIELDS = st.tuples(
    st.integers(0, 1),
    st.one_of(st.integers(0, 255), st.integers(100, 150), st.sampled_from([0, 1, 2, 254, 255])),
    st.one_of(
        st.integers(0, 2**23 - 1),
        st.builds(lambda top, low: (top << 15 | low) % 2**23, st.integers(0, 255), st.sampled_from([0, 1, 2**15 - 1])),
    ),
)
GROUPS = st.lists(FIELDS, min_size=16, max_size=16)


def packed_by_the_rules(group, magnitude_bits, exponent_a):
    """Return (exponent byte, codes) as the reference words it."""
    fields = []
    for sign, exponent, fraction in group:
        e, f = exponent, fraction
        if exponent_a:
            e -= 112
            if e > 31:
                e, f = 31, 2**23 - 1
            elif e < 0:
                e, f = 0, 0
        fields.append((sign, exponent == 0, e, f))
    shared = max(e for _, _, e, _ in fields)
    codes = []
    for sign, zero, e, f in fields:
        aligned = 0 if zero else (2**23 + f) >> (shared - e)
        width = 24 - magnitude_bits
        q, r = aligned >> width, aligned % 2**width
        if r > 2 ** (width - 1) or (r == 2 ** (width - 1) and q % 2):
            q += 1
        q = min(q, 2**magnitude_bits - 1)
        codes.append(q + sign * 2**magnitude_bits if q else 0)
    return shared, codes


def unpacked_by_the_rules(shared, code, magnitude_bits, exponent_a):
    """Return the float32 bits as the reference words it."""
    sign, q = code >> magnitude_bits, code % 2**magnitude_bits
    if q == 0:
        return sign << 31
    k = magnitude_bits - q.bit_length()
    if k > shared:
        return 0
    field = shared - k + (112 if exponent_a else 0)
    return sign << 31 | field << 23 | ((q << k) - 2 ** (magnitude_bits - 1)) << (24 - magnitude_bits)


def single(group):
    return np.array([s << 31 | e << 23 | f for s, e, f in group], dtype=np.uint32).view(np.float32)


@given(group=GROUPS)
def test_encode(group):
    for each in BLOCK_FLOATS:
        scales, codes = each.encode(single(group))
        shared, expected = packed_by_the_rules(group, each.bits - 1, each.name.endswith("_a"))
        assert (scales.tolist(), codes.tolist()) == ([shared], [expected]), each.name
        again = each.encode(each.decode(scales, codes))
        assert (again[0].tolist(), again[1].tolist()) == ([shared], [expected]), each.name


@pytest.mark.parametrize("each", BLOCK_FLOATS, ids=str)
def test_decode_every_scale_and_code(each):
    scales = np.arange(each.scale.last_byte + 1)
    codes = np.resize(np.arange(2**each.bits), (max(2**each.bits // 16, 1), 16))
    for row in codes:
        values = each.decode(scales, np.tile(row, (scales.size, 1))).view(np.uint32)
        expected = [
            [unpacked_by_the_rules(s, c, each.bits - 1, each.name.endswith("_a")) for c in row.tolist()]
            for s in scales.tolist()
        ]
        assert values.tolist() == expected


@pytest.mark.parametrize("elements", [16, 32, 64, 256, 512, 1024])
@pytest.mark.parametrize("each", BLOCK_FLOATS, ids=str)
def test_packed_tiles_are_scales_padding_codes(each, elements):
    """Write the section rule with plain integers: scales, zeros to 16 bytes, codes with the first in the low bits."""
    values = np.random.default_rng(elements).standard_normal(2 * elements).astype(np.float32)
    scales, codes = each.encode(values)
    expected = b""
    for tile in range(2):
        own = slice(tile * elements // 16, (tile + 1) * elements // 16)
        section = scales[own].tobytes()
        whole = sum(code << (i * each.bits) for i, code in enumerate(codes[own].reshape(-1).tolist()))
        expected += section + bytes(-len(section) % 16) + whole.to_bytes(elements * each.bits // 8, "little")
    assert each.pack(values, elements).tobytes() == expected


def test_consequences_named_in_the_reference():
    bfloat8_b, bfloat4_b = BLOCK_FORMATS["bfloat8_b"], BLOCK_FORMATS["bfloat4_b"]

    def through(each, *values):
        return each.unpack(each.pack(np.float32(values), 16), 16, count=len(values)).tolist()

    assert through(bfloat8_b, 7.9999) == [7.9375]
    assert through(bfloat4_b, 7.9999) == [7.0]
    assert through(bfloat8_b, -np.inf, 5.0, 1e36) == [-np.inf, 0.0, 0.0]
    assert through(bfloat8_b, np.finfo(np.float32).max) == [bfloat8_b.max_value]
    assert bfloat8_b.max_value == pytest.approx(3.376e38, rel=1e-3)
    assert through(bfloat8_b, 1, 2, 3, 4, 5, 6, 7, 1000)[:7] == [0, 0, 0, 0, 8, 8, 8]  # what a pad of 1000 does
    nans = np.array([0x7FC00000, 0x7F800001], dtype=np.uint32).view(np.float32)
    quiet, signalling = bfloat8_b.unpack(bfloat8_b.pack(nans, 16), 16, count=2)
    assert np.isnan(quiet)
    assert np.isposinf(signalling)


def test_small_numbers_with_a_five_bit_exponent():
    """Only the hardware's own rounding raises what is below 2^-15."""
    bfloat8_a = BLOCK_FORMATS["bfloat8_a"]
    small = np.full(16, 2.0**-17, dtype=np.float32)
    for options, allowed in (
        ({}, {2.0**-15}),
        ({"rounding": "truncate"}, {0.0}),
        ({"rounding": "stochastic", "seed": 1}, {0.0}),
    ):
        codes = bfloat8_a.encode(small, **options)
        assert set(bfloat8_a.decode(*codes).reshape(-1).tolist()) == allowed
    small[0] = 1.0
    values = bfloat8_a.decode(*bfloat8_a.encode(np.tile(small, 4096), rounding="stochastic", seed=1))
    assert values[:, 1:].mean() == pytest.approx(2.0**-17, rel=0.25)
