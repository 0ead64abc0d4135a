# SPDX-License-Identifier: Apache-2.0
"""The OCP MX formats and nvfp4 in every set of instructions: all that can happen to an element, bit for bit."""

from functools import cache

import ml_dtypes
import numpy as np
import pytest

from tilewright.formats import BLOCK_FORMATS, cast
from tilewright.formats.scalars import pack_codes

from ..cases import all_cases
from .abi import F32, LIBRARY, PACK, SCALARS, SCALED, UNPACK, memory, nest
from .levels import LEVELS, at_level, run_at

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no native library")
F16, BF16 = 2, 3
GUARD = 64
POISON = 0xA5


@pytest.fixture(scope="module", params=["tw_run", "tw_run_streaming"])
def how(request):
    return request.param


@pytest.fixture(scope="module", params=LEVELS)
def run(request, how):
    return at_level(request.param, how)


def edges():
    """Return float32 of every exponent and sign, with the fractions at which some rounding turns."""
    turns = [1 << k for k in range(23)] + [3 << k for k in range(22)] + [7 << k for k in range(21)]
    turns += [0x7FFFFF << k & 0x7FFFFF for k in range(23)]
    near = sorted({(t + d) & 0x7FFFFF for t in (0, *turns) for d in (-1, 0, 1)})
    bits = np.arange(512, dtype=np.uint32)[:, None] << 23 | np.array(near, np.uint32)
    return bits.reshape(-1).view(np.float32)


def around(values):
    """Return float32 values with the neighbours of each."""
    values = np.asarray(values, np.float32)
    return np.stack([np.nextafter(values, np.float32(0)), values, np.nextafter(values, np.float32(np.inf))], axis=-1)


def ties(block):
    """Return blocks whose values lie at and beside every tie of nvfp4, of its elements and of its scales."""
    scales = np.arange(1, 127, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    elements = around(np.outer(scales, [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])).reshape(len(scales), -1)
    rows = np.zeros((2 * len(scales), block), np.float32)
    rows[:, 0] = np.repeat(6 * scales, 2)  # chooses the scale
    rows[::2, 1:12], rows[1::2, 1:11] = elements[:, :11], -elements[:, 11:]
    between = around(3 * (scales[1:] + scales[:-1])).reshape(-1)
    alone = np.zeros((len(between), block), np.float32)
    alone[:, -1] = between
    return np.concatenate([rows, alone])


def inputs(block):
    """Return blocks of float32: every bfloat16, alone and in company, edges under near scales, any bits at all."""
    rng = np.random.default_rng(block)
    brains = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    found = [brains, rng.permutation(brains), ties(block)]
    alone = np.zeros((1 << 16, block), np.float32)
    alone[np.arange(1 << 16), np.arange(1 << 16) % block] = brains
    found.append(alone)
    sharp = edges()
    sharp = np.concatenate([sharp, np.zeros(-len(sharp) % block, np.float32)])
    found += [sharp, rng.permutation(sharp)]
    # Under the scale of a lane that is larger by 0 to 12 powers of two, every step of an element is tried.
    finite = sharp[np.isfinite(sharp)]
    for powers in (0, 1, 2, 3, 5, 8, 12):
        rows = finite[: len(finite) // (block - 1) * (block - 1)].reshape(-1, block - 1)
        with np.errstate(over="ignore"):
            top = np.minimum(np.abs(rows).max(axis=1) * np.float32(2.0**powers), np.finfo(np.float32).max)
        scale = rng.uniform(1, 2, len(top)).astype(np.float32)
        found.append(np.concatenate([np.minimum(top, 1e38)[:, None] * scale[:, None], rows], axis=1))
    found.append(rng.integers(0, 1 << 32, (1 << 14) * block, dtype=np.uint32).view(np.float32))
    # Numbers of a like size, of which any may be a NaN, an infinity or a zero.
    common = rng.standard_normal((1 << 14, block), dtype=np.float32)
    common *= np.exp2(rng.integers(-140, 120, (len(common), 1))).astype(np.float32)
    odd = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -3e38], np.float32)
    struck = rng.random(common.shape) < 0.01
    common[struck] = rng.choice(odd, struck.sum())
    found.append(common)
    return np.concatenate([np.ascontiguousarray(each).reshape(-1, block) for each in found])


def packed(run, kind, scalar, values, lanes=None):
    """Return (codes, scales) that the engine makes of blocks in rows."""
    element, size = BLOCK_FORMATS[SCALED[kind]], SCALARS[scalar].itemsize
    block, codes = element.block, element.block * element.bits // 8
    lanes = [size * i for i in range(block)] if lanes is None else lanes
    scales_at = -(-len(values) * codes // 64) * 64
    out = memory(scales_at + len(values) + GUARD, 0, POISON)
    p = nest(
        PACK, [(len(values), values.strides[0], codes, 1)], scalar, kind, (0, 0, scales_at), lanes, (1 << block) - 1
    )
    assert run_at(run, [p], values, out, 1) == 0
    assert (out[len(values) * codes : scales_at] == POISON).all()
    assert (out[scales_at + len(values) :] == POISON).all()
    return out[: len(values) * codes].reshape(-1, codes), out[scales_at : scales_at + len(values)]


@pytest.fixture(scope="module", params=list(SCALED), ids=SCALED.get)
def kind(request):
    return request.param


@pytest.fixture
def wanted(kind):
    return reference_blocks(kind)


@cache  # pytest orders the items by their instructions first
def reference_blocks(kind):
    """Return blocks of float32, and the codes and scales that the reference makes of them."""
    element = BLOCK_FORMATS[SCALED[kind]]
    values = inputs(element.block)
    scales, codes = element.encode(values)
    return values, pack_codes(codes, element.bits), scales


def test_packing(run, kind, wanted):
    values, codes, scales = wanted
    made = packed(run, kind, F32, values)
    np.testing.assert_array_equal(made[1], scales)
    np.testing.assert_array_equal(made[0], codes)


def test_packing_out_of_order(run, kind, wanted):
    values, _, _ = wanted
    block = values.shape[1]
    values = values[:: 7 if block == 32 else 5]  # a number of blocks that is not a multiple of eight
    element = BLOCK_FORMATS[SCALED[kind]]
    scales, codes = element.encode(values[:, ::-1])
    made = packed(run, kind, F32, np.ascontiguousarray(values), [4 * i for i in reversed(range(block))])
    np.testing.assert_array_equal(made[1], scales)
    np.testing.assert_array_equal(made[0], pack_codes(codes, element.bits))


@all_cases(("scalar", [BF16, F16]), groups=4)
def test_packing_every_number_of_sixteen_bits(run, kind, scalar):
    element = BLOCK_FORMATS[SCALED[kind]]
    every = np.arange(1 << 16, dtype=np.uint16)
    values = np.concatenate([every, np.random.default_rng(1).permutation(every)]).reshape(-1, element.block)
    values = values.view(ml_dtypes.bfloat16 if scalar == BF16 else np.float16)
    scales, codes = element.encode(values)
    made = packed(run, kind, scalar, values)
    np.testing.assert_array_equal(made[1], scales)
    np.testing.assert_array_equal(made[0], pack_codes(codes, element.bits))


@all_cases(("turned", [False, True]), ("scalar", [F32, BF16, F16]), groups=4)
def test_unpacking_every_code_under_every_scale(run, kind, scalar, turned):
    element, dtype = BLOCK_FORMATS[SCALED[kind]], SCALARS[scalar]
    block, size = element.block, element.block * element.bits // 8
    every = np.arange(max(1 << element.bits, block)) % (1 << element.bits)
    codes = np.tile(every.astype(np.uint8).reshape(-1, block), (256, 1))
    scales = np.repeat(np.arange(256, dtype=np.uint8), len(every) // block)
    count = len(scales)
    data = np.concatenate([pack_codes(codes, element.bits).reshape(-1), scales])
    out = memory(count * block * dtype.itemsize + GUARD, 0, POISON)
    order = list(reversed(range(block))) if turned else list(range(block))
    lanes = [dtype.itemsize * i for i in order]
    modes = [(count, size, block * dtype.itemsize, 1)]
    p = nest(UNPACK, modes, kind, scalar, (0, 0, count * size), lanes, (1 << block) - 1)
    assert run_at(run, [p], data, out, 1) == 0
    expected = cast(element.decode(scales, codes), dtype)
    found = out[:-GUARD].reshape(count, block, dtype.itemsize)[:, order]
    np.testing.assert_array_equal(found.reshape(-1), expected.reshape(-1).view(np.uint8))
    assert (out[-GUARD:] == POISON).all()


@all_cases(("past, extra", [(0, 0), (16, 0), (34, 9), (0, 1888)]), ("scalar", [F32, BF16, F16]), groups=4)
def test_tiles_of_faces_and_back(run, kind, scalar, past, extra):
    """Blocks of 32 are two rows of a face: halves that lie a row of the matrix apart, or even a page."""
    element, dtype = BLOCK_FORMATS[SCALED[kind]], SCALARS[scalar]
    height, width = 64, 160
    pitch, size, block = width + extra, dtype.itemsize, element.block
    rng = np.random.default_rng(past)
    matrix = memory(height * pitch * size, past).view(dtype).reshape(height, pitch)
    numbers = rng.standard_normal(matrix.shape, dtype=np.float32)
    numbers[rng.random(matrix.shape) < 0.0005] = np.inf  # in a few of the groups that are packed together
    matrix[...] = numbers.astype(dtype)
    tile, codes, rows = element.bytes_per_tile(1024), block * element.bits // 8, block // 16
    scales, blocks, across = 1024 // block, 256 // block, width // 32
    modes = [
        (height // 32, 32 * pitch * size, across * tile, across * tile),
        (across, 32 * size, tile, tile),
        (2, 16 * pitch * size, 2 * blocks * codes, 2 * blocks),
        (2, 16 * size, blocks * codes, blocks),
        (blocks, rows * pitch * size, codes, 1),
    ]
    lanes = [i // 16 * pitch * size + i % 16 * size for i in range(block)]
    out = memory(height // 32 * across * tile + GUARD, past, POISON)
    p = nest(PACK, modes, scalar, kind, (0, scales, 0), lanes, (1 << block) - 1)
    assert run_at(run, [p], matrix, out, 2) == 0
    faces = matrix[:, :width].reshape(height // 32, 2, 16, across, 2, 16).transpose(0, 3, 1, 4, 2, 5)
    expected = element.pack(np.ascontiguousarray(faces))
    np.testing.assert_array_equal(out[:-GUARD], expected)
    assert (out[-GUARD:] == POISON).all()
    back = memory(height * pitch * size, past, POISON).view(dtype).reshape(height, pitch)
    p = nest(UNPACK, [(n, d, s, x) for n, s, d, x in modes], kind, scalar, (scales, 0, 0), lanes, (1 << block) - 1)
    assert run_at(run, [p], out, back, 2) == 0
    values = cast(element.unpack(expected), dtype).reshape(faces.shape).transpose(0, 2, 4, 1, 3, 5)
    np.testing.assert_array_equal(back[:, :width].copy().view(np.uint8), values.reshape(height, width).view(np.uint8))
    assert (back[:, width:].copy().view(np.uint8) == POISON).all()
