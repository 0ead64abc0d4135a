# SPDX-License-Identifier: Apache-2.0
"""Tiles of bfloat8_b from quantised codes, in every set of instructions: the bits that packing their values makes."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.copying import native
from tilewright.copying.native import CODE_NUMBERS, NativeCoding, recode_codes
from tilewright.errors import FormatError
from tilewright.formats.ggml import GGML_TYPES

from .abi import LIBRARY, memory
from .levels import LEVELS, at_level
from .remote import COMMAND

IS_HERE = LIBRARY is not None and COMMAND is None and native.is_available()
pytestmark = pytest.mark.skipif(not IS_HERE, reason="no native library in this process")
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
GGML = {entry.name: entry for entry in GGML_TYPES.values()}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1e-38, 3e38, -0.37, 1.0]


@pytest.fixture(scope="module", params=LEVELS)
def level(request):
    return request.param


def call(level, function, out, code, codes, columns, scales=None, group=(1, 1), first=(0, 0)):
    """Call tw_decode or tw_recode of the library of a level."""
    run = at_level(level, function)
    run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2 + [ctypes.c_void_p]
    grid = np.ones((1, 1), np.float32) if scales is None else np.ascontiguousarray(scales, np.float32)
    coding = NativeCoding(CODE_NUMBERS[code], 8, codes.strides[0], grid.shape[1], *group, *first)
    place = (codes.ctypes.data, grid.ctypes.data, len(codes), columns, out.ctypes.data)
    assert run(ctypes.addressof(coding), *place) == 0


def recode(level, code, codes, columns, *scales):
    """Return the tiles that the library of a level makes, in memory between guards."""
    size = len(codes) * columns // 1024 * 1088
    whole = memory(size + 128, fill=0xA5)
    call(level, "tw_recode", whole[64:], code, codes, columns, *scales)
    outside = np.delete(whole, slice(64, 64 + size))
    assert (outside == 0xA5).all(), "written outside of the tiles"
    return whole[64 : 64 + size]


def packed(values):
    """Return the tiles of values as NumPy makes them."""
    return tw.tilize(values, dtype="bfloat8_b", engine="reference").reshape(-1).view(np.uint8)


def check(level, values, *coding):
    """Assert that the library decodes codes to these values, and recodes them to their tiles.

    Which NaN a product of two is, is not said: its tiles are those of the value that the same library decodes.
    """
    decoded = np.empty_like(values)
    call(level, "tw_decode", decoded, *coding)
    assert np.array_equal(decoded, values, equal_nan=True), (level, coding[0])
    expected = packed(decoded).reshape(-1, 1088)
    tiles = recode(level, *coding).reshape(-1, 1088)
    wrong = np.flatnonzero((tiles != expected).any(axis=1))
    assert wrong.size == 0, (level, coding[0], wrong[:5], tiles[wrong[:1]], expected[wrong[:1]])


def spread_numbers(numbers, shape, rng):
    """Return random numbers of a sorted list, those of each sixteen up to a place of their own."""
    most = rng.integers(1, len(numbers) + 1, (shape[0], shape[1] // 16, 1))
    places = rng.integers(0, 1 << 30, (shape[0], shape[1] // 16, 16)) % most
    return numbers[places.reshape(shape)]


def e4m3_codes(shape, rng, most=127):
    magnitudes = spread_numbers(np.arange(most, dtype=np.uint8), shape, rng)
    return magnitudes | (rng.integers(0, 2, shape, dtype=np.uint8) << 7)


def e4m3_values(codes, scales, group):
    scale = np.repeat(np.repeat(scales, group[0], 0), group[1], 1)[: codes.shape[0], : codes.shape[1]]
    with np.errstate(all="ignore"):
        return codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32) * scale


@pytest.mark.parametrize("most", [127, 128], ids=["numbers", "with NaN"])
def test_e4m3_under_scales_of_every_exponent(level, most):
    rng = np.random.default_rng(most)
    fraction = np.array([0, 1, 0x2AAAAA, 0x400000, 0x7FFFFF, 0x100000, 0x124925], np.uint32)
    scales = (np.arange(256, dtype=np.uint32)[:, None] << 23 | fraction).view(np.float32)
    codes = e4m3_codes((256 * 32, 7 * 64), rng, most)
    check(level, e4m3_values(codes, scales, (32, 64)), "float8_e4m3", codes, 7 * 64, scales, (32, 64))


@pytest.mark.parametrize("group", [(128, 128), (1, 192), (1, 64), (64, 32), (1, 16), (48, 96)])
def test_e4m3_in_groups(level, group):
    rng = np.random.default_rng(7)
    codes = e4m3_codes((192, 192), rng)
    scales = rng.standard_normal((-(-192 // group[0]), -(-192 // group[1])), dtype=np.float32)
    check(level, e4m3_values(codes, scales, group), "float8_e4m3", codes, 192, scales, group)
    check(level, e4m3_values(codes, abs(scales), group), "float8_e4m3", codes, 192, abs(scales), group)
    scales.flat[::3] = rng.choice(SPECIAL, scales.flat[::3].shape)
    check(level, e4m3_values(codes, scales, group), "float8_e4m3", codes, 192, scales, group)


def test_e4m3_from_within_a_group(level):
    rng = np.random.default_rng(8)
    codes, scales = e4m3_codes((64, 128), rng), rng.random((2, 3), dtype=np.float32)
    whole = np.zeros((256, 384), np.uint8)
    whole[100:164, 96:224] = codes
    values = e4m3_values(whole, scales, (128, 128))[100:164, 96:224]
    check(level, values, "float8_e4m3", codes, 128, scales, (128, 128), (100, 96))


@pytest.mark.parametrize("columns", [32, 64, 96, 256])
def test_e2m1_under_every_power_of_two(level, columns):
    rng = np.random.default_rng(columns)
    fields = np.resize(np.arange(256, dtype=np.uint32), (4096, columns // 32))
    fields[::2] = rng.integers(2, 253, fields[::2].shape)
    fields[:1024] = rng.integers(2, 253, fields[:1024].shape)  # tiles without any but the usual
    scales = (fields << 23).view(np.float32)
    numbers = spread_numbers(np.arange(8, dtype=np.uint8), (4096, columns), rng) | (
        rng.integers(0, 2, (4096, columns), dtype=np.uint8) << 3
    )
    codes = numbers[:, ::2] | numbers[:, 1::2] << 4
    with np.errstate(all="ignore"):
        values = E2M1[numbers] * np.repeat(scales, 32, 1)
        check(level, values, "e2m1", codes, columns, scales, (1, 32))
        scales[2000:2040] *= np.float32(1.3)
        scales[3000:3040] *= -1
        values = E2M1[numbers] * np.repeat(scales, 32, 1)
    check(level, values, "e2m1", codes, columns, scales, (1, 32))


def test_e2m1_from_within_a_group(level):
    rng = np.random.default_rng(9)
    numbers = rng.integers(0, 16, (32, 96), dtype=np.uint8)
    scales = np.ldexp(np.float32(1), rng.integers(-9, 9, (32, 4)))
    values = E2M1[numbers] * np.repeat(scales, 32, 1)[:, 16:112]
    check(level, values, "e2m1", numbers[:, ::2] | numbers[:, 1::2] << 4, 96, scales, (1, 32), (0, 16))


def half_bytes(bits):
    return np.asarray(bits, np.uint16)[..., None].view(np.uint8)


@pytest.mark.parametrize("halves", [0x7C00, 0x10000], ids=["usual", "any"])
def test_q8_0(level, halves):
    rng = np.random.default_rng(halves)
    rows, blocks = 2048, 8
    records = np.empty((rows, blocks, 34), np.uint8)
    bits = rng.integers(0, halves, (rows, blocks))
    bits[:256] = 0
    bits[256:512] %= 1024  # subnormal
    records[..., :2] = half_bytes(bits)
    numbers = spread_numbers(np.arange(129 if halves > 0x7C00 else 128), (rows, blocks * 32), rng)
    numbers = numbers * rng.choice([-1, 1], numbers.shape)
    records[..., 2:] = numbers.clip(-128, 127).astype(np.int8).view(np.uint8).reshape(rows, blocks, 32)
    values = GGML["Q8_0"].decode(records.reshape(-1, 34)).reshape(rows, -1)
    check(level, values, "Q8_0", records.reshape(rows, -1), blocks * 32)


@pytest.mark.parametrize("kind", ["usual", "far exponents", "any"])
def test_q4_k(level, kind):
    rng = np.random.default_rng(len(kind))
    rows, blocks = 1536, 3
    records = np.frombuffer(rng.bytes(rows * blocks * 144), np.uint8).reshape(rows, blocks, 144).copy()
    if kind != "any":
        exponent = rng.integers(0, 31, (rows // 32, 1, blocks)) + np.zeros((1, 32, 1), int)
        apart = (-3, 8) if kind == "usual" else (-6, 11)
        other = (exponent + rng.integers(*apart, exponent.shape)).clip(0, 30)
        for place, field in ((0, exponent), (2, other)):
            bits = field << 10 | rng.integers(0, 1024, field.shape)
            bits[::7, :, ::2] = 0 if place == 0 else bits[::7, :, ::2]
            bits[::9, :, 1] = 0 if place == 2 else bits[::9, :, 1]
            records[..., place : place + 2] = half_bytes(bits.reshape(rows, blocks))
    records[::5, :, 4:16] &= 0x41  # small scales, and many that are 0
    quarters = records[..., 16:].reshape(rows, blocks, 8, 16)
    quarters[:, :, ::2] &= rng.choice([0, 0x11, 0x77, 0xFF], quarters[:, :, ::2].shape[:3])[..., None].astype(np.uint8)
    values = GGML["Q4_K"].decode(records.reshape(-1, 144)).reshape(rows, -1)
    check(level, values, "Q4_K", records.reshape(rows, -1), blocks * 256)


@pytest.mark.parametrize("code", ["Q4_0", "Q4_1", "Q5_K", "Q6_K", "MXFP4"])
def test_block_types_without_a_kernel(level, code):
    rng = np.random.default_rng(1)
    entry = GGML[code]
    records = np.frombuffer(rng.bytes(64 * 512 // entry.elements * entry.nbytes), np.uint8)
    values = entry.decode(records.reshape(-1, entry.nbytes)).reshape(64, 512)
    check(level, values, code, records.reshape(64, -1), 512)


def test_large_tiles_are_streamed_alike(level):
    """Past the caches, and where tiles are not on lines."""
    rng = np.random.default_rng(2)
    codes = e4m3_codes((2080, 4128), rng)
    codes[1000, 2000] = 127  # a NaN in the midst of it
    scales = rng.random((17, 33), dtype=np.float32) + np.float32(0.1)
    values = e4m3_values(codes, scales, (128, 128))
    check(level, values, "float8_e4m3", codes, 4128, scales, (128, 128))


def test_tiles_that_do_not_lie_on_lines():
    rng = np.random.default_rng(3)
    codes, scales = e4m3_codes((2048, 4160), rng), np.full((1, 1), 0.3, np.float32)
    out = memory(2048 * 4160 // 1024 * 1088, past=1)
    recode_codes("float8_e4m3", codes, 4160, scales, (2048, 4160), out=out)
    assert np.array_equal(out, recode_codes("float8_e4m3", codes, 4160, scales, (2048, 4160)))


def test_what_is_not_whole_tiles_is_refused():
    with pytest.raises(FormatError, match="whole tiles of 32 x 32, got 31 x 64"):
        recode_codes("int8", np.zeros((31, 64), np.uint8), 64)
    with pytest.raises(FormatError, match="1088 contiguous bytes"):
        recode_codes("int8", np.zeros((32, 32), np.uint8), 32, out=np.zeros(32, np.uint8))
    coding = NativeCoding(99, 8, 32, 1, 1, 1, 0, 0)
    data = np.zeros(2048, np.uint8)
    library, place = native.load_library(), data.ctypes.data
    assert library.tw_recode(ctypes.addressof(coding), place, place, 32, 32, place) == -1
    coding.element = CODE_NUMBERS["Q4_K"]
    assert library.tw_recode(ctypes.addressof(coding), place, place, 32, 32, place) == -1
