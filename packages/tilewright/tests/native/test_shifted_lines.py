# SPDX-License-Identifier: Apache-2.0
"""Large targets at every distance from a cache line, and odd pitches: bytes are right, and no other is touched."""

from functools import lru_cache
from itertools import product

import numpy as np
import pytest

from ..cases import all_cases
from . import models
from .abi import BLOCKS, COPY, F32, LIBRARY, PACK, SCALARS, UNPACK, memory, nest
from .levels import LEVELS, at_level, run_at

pytestmark = [pytest.mark.slow, pytest.mark.skipif(LIBRARY is None, reason="no native library")]

POISON = 0xA5
GUARD = 192
BF16, F16 = 3, 2
ROWS = 32 * 9  # in tiles: 9 of them, so that two threads get unequal shares


def tile_modes(rows, columns, pitch, source_size, target_size, to_tiles):
    """Return the modes between rows of `pitch` elements and 32 x 32 tiles of 16 x 16 faces."""
    across = columns // 32
    logical = [(rows // 32, 32 * pitch), (2, 16 * pitch), (16, pitch), (across, 32), (2, 16), (16, 1)]
    tiled = [across * 1024, 512, 16, 1024, 256, 1]
    if to_tiles:
        return [(n, a * source_size, b * target_size) for (n, a), b in zip(logical, tiled, strict=True)]
    return [(n, b * source_size, a * target_size) for (n, a), b in zip(logical, tiled, strict=True)]


def check_tiles(pair, to_tiles, past, columns, pitch, rows=ROWS):
    """Copy at every level into a poisoned target: bytes are as expected, and the poison is everywhere else."""
    modes, source, expected = tiles_case(pair, to_tiles, columns, pitch, rows)
    for level, threads in product(LEVELS, (1, 2)):
        dst = memory(len(expected), past - GUARD, POISON)
        assert run_at(at_level(level), [nest(COPY, modes, *pair, (0, GUARD, 0))], source, dst, threads) == 0
        assert np.array_equal(dst, expected), f"{level}, {threads} threads"


@lru_cache(maxsize=2)
def tiles_case(pair, to_tiles, columns, pitch, rows):
    """Return the modes of a copy, its source, and its target with the poison around and between what is written."""
    a, b = SCALARS[pair[0]], SCALARS[pair[1]]
    rng = np.random.default_rng(0)
    logical = (rng.standard_normal((rows, columns)) * 100).astype(a)
    tiled = logical.reshape(rows // 32, 2, 16, columns // 32, 2, 16).transpose(0, 3, 1, 4, 2, 5)
    modes = tile_modes(rows, columns, pitch, a.itemsize, b.itemsize, to_tiles)
    spread = np.zeros((rows, pitch), a)
    spread[:, :columns] = logical
    source, result = (spread, tiled) if to_tiles else (tiled, spread)
    source = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
    flat = np.ascontiguousarray(result).reshape(-1)
    expected = models.convert(flat.view(np.uint8).reshape(-1, a.itemsize), *pair).reshape(-1)
    touched = np.ones((rows, pitch), bool)
    touched[:, columns:] = False
    touched = np.ones(len(expected), bool) if to_tiles else np.repeat(touched.reshape(-1), b.itemsize)
    assert touched.sum() >= 8 << 20  # large enough to be streamed
    expected[~touched] = POISON
    return modes, source, np.concatenate([guard := np.full(GUARD, POISON, np.uint8), expected, guard])


def large(size, rows=ROWS):
    """Return as many columns, in whole tiles, as make 8 MiB of elements of this size."""
    return -(-(8 << 20) // (size * rows * 32)) * 32


@all_cases(("to_tiles", [True, False]), ("past", range(0, 64, 4)), groups=2)
def test_every_distance(past, to_tiles):
    check_tiles((F32, F32), to_tiles, past, large(4), large(4))


@all_cases(
    ("pair", [(BF16, BF16), (10, 10), (13, 13), (F32, BF16), (BF16, F32), (F32, F16), (F16, F32)]),
    ("to_tiles", [True, False]),
    ("past", [1, 2, 16, 34, 63]),
    groups=2,
)
def test_types(past, to_tiles, pair):
    columns = large(SCALARS[pair[1]].itemsize)
    check_tiles(pair, to_tiles, past, columns, columns)


@all_cases(("pair", [(F32, F32), (BF16, BF16), (BF16, F32), (F32, BF16)]), ("extra", [1, 7, 16]), ("past", [0, 16]))
def test_odd_pitches(past, extra, pair):
    columns = large(SCALARS[pair[1]].itemsize)
    check_tiles(pair, False, past, columns, columns + extra)
    check_tiles(pair, True, past, columns, columns + extra)


@all_cases(("extra", [0, 3]), ("columns", [32, 160]), ("past", [0, 20]), groups=2)
def test_narrow(past, columns, extra):
    rows = -(-(8 << 20) // (4 * columns * 32)) * 32
    check_tiles((F32, F32), False, past, columns, columns + extra, rows)
    check_tiles((F32, F32), True, past, columns, columns + extra, rows)


def block_modes(rows, columns, pitch, size, kind, to_tiles):
    bits, _ = BLOCKS[kind]
    tile, codes, across = 1024 * bits // 8 + 64, 2 * bits, columns // 32
    logical = [(rows // 32, 32 * pitch), (2, 16 * pitch), (16, pitch), (across, 32), (2, 16)]
    blocks = [(across * tile, across * tile), (32 * codes, 32), (codes, 1), (tile, tile), (16 * codes, 16)]
    if to_tiles:
        return [(n, s * size, c, x) for (n, s), (c, x) in zip(logical, blocks, strict=True)]
    return [(n, c, s * size, x) for (n, s), (c, x) in zip(logical, blocks, strict=True)]


@lru_cache(maxsize=6)
def numbers_of_all_scales(scalar, pitch):
    """Return rows of numbers of very different sizes, the smallest denormal and the largest infinite."""
    rng = np.random.default_rng(pitch)
    values = rng.standard_normal((ROWS, pitch)) * 2.0 ** rng.integers(-20, 20, (ROWS, pitch))
    values[:32, :64] *= 1e-38
    values[32:64, :64] = np.inf
    with np.errstate(all="ignore"):
        return values.astype(SCALARS[scalar])


@all_cases(
    ("level", LEVELS),
    ("kind", list(BLOCKS)),
    ("scalar", [F32, BF16, F16]),
    ("past, extra", [(0, 0), (16, 0), (34, 9)]),
    groups=2,
)
def test_blocks(level, past, extra, scalar, kind):
    """Packing and unpacking, of all scales, against a sample by the model."""
    bits, _ = BLOCKS[kind]
    dtype = SCALARS[scalar]
    columns = large(dtype.itemsize)
    pitch, across = columns + extra, columns // 32
    source = numbers_of_all_scales(scalar, pitch)
    lanes = [i * dtype.itemsize for i in range(16)]
    tile = 1024 * bits // 8 + 64
    packing = block_modes(ROWS, columns, pitch, dtype.itemsize, kind, True)
    packed = memory(ROWS // 32 * across * tile, past, POISON)
    p = nest(PACK, packing, scalar, kind, (0, 64, 0), lanes, 0xFFFF)
    assert run_at(at_level(level), [p], source, packed, 2) == 0

    def in_blocks(array):
        inner = array[:, :columns].reshape(ROWS // 32, 2, 16, across, 2, 16)
        return np.ascontiguousarray(inner.transpose(0, 3, 1, 4, 2, 5)).reshape(-1, 16)

    sample = np.unique(
        np.concatenate(
            [np.arange(128), across * 64 + np.arange(128), np.random.default_rng(0).integers(0, ROWS * across, 500)]
        )
    )
    scalars = in_blocks(source)[sample]
    rows = models.convert(scalars.reshape(-1, 1).view(np.uint8), scalar, F32)
    codes, scales = models.pack(np.ascontiguousarray(rows).view(np.float32).reshape(-1, 16), kind)
    tiles = packed.reshape(-1, tile)
    assert np.array_equal(tiles[:, :64].reshape(-1)[sample], scales)
    assert np.array_equal(np.ascontiguousarray(tiles[:, 64:]).reshape(-1, 2 * bits)[sample], codes)

    back = memory(ROWS * pitch * dtype.itemsize + GUARD, past, POISON)
    p = nest(UNPACK, [(n, c, s, x) for n, s, c, x in packing], kind, scalar, (64, 0, 0), lanes, 0xFFFF)
    assert run_at(at_level(level), [p], packed, back, 2) == 0
    assert (back[-GUARD:] == POISON).all()
    result = back[:-GUARD].view(dtype).reshape(ROWS, pitch)
    assert (np.ascontiguousarray(result[:, columns:]).reshape(-1).view(np.uint8) == POISON).all()
    wanted = models.unpack(codes, scales, kind).reshape(-1, 1).view(np.uint8)
    wanted = np.ascontiguousarray(models.convert(wanted, F32, scalar)).view(dtype).reshape(-1, 16)
    assert np.array_equal(in_blocks(result)[sample].view(np.uint8), wanted.view(np.uint8))
