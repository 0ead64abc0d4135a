# SPDX-License-Identifier: Apache-2.0
"""Random nests through the native engine equal the model byte for byte, and nothing outside the target is touched."""

import math
from functools import cache, lru_cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..cases import all_cases
from . import models
from .abi import (
    BLOCKS,
    COPY,
    F32,
    FILL,
    LIBRARY,
    MAX_RANK,
    PACK,
    SCALARS,
    SCALED,
    UNPACK,
    geometry,
    memory,
    nest,
    run,
)
from .levels import LEVELS, at_level, run_at

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no native library")

POISON = 0xA5
GUARD = 67  # odd, so that every base in a test is misaligned


@st.composite
def extents(draw, most=3000):
    """Extents of up to six modes, small in all; now and then a zero, now and then one long mode."""
    rank = draw(st.integers(0, 6))
    found, volume = [], 1
    for _ in range(rank):
        extent = draw(st.sampled_from([1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 257, 1000]))
        extent = min(extent, max(1, most // volume))
        found.append(extent)
        volume *= extent
    if rank and draw(st.integers(0, 19)) == 0:
        found[draw(st.integers(0, rank - 1))] = 0
    return draw(st.permutations(found))


@st.composite
def distinct_strides(draw, shape, size):
    """Strides, of either sign, under which no two elements overlap."""
    strides = [0] * len(shape)
    step = size
    for i in draw(st.permutations(range(len(shape)))):
        step += draw(st.sampled_from([0, 0, 0, 0, 1, size, 64]))
        strides[i] = step * draw(st.sampled_from([1, 1, 1, -1]))
        step *= max(1, shape[i])
    return strides


@st.composite
def any_strides(draw, shape, size):
    """Strides of a source: a permutation, possibly broadcast, reversed or overlapping."""
    strides = draw(distinct_strides(shape, size))
    for i in range(len(shape)):
        change = draw(st.integers(0, 9))
        if change == 0:
            strides[i] = 0
        elif change == 1:
            strides[i] = draw(st.integers(-3, 3)) * size
        elif change == 2:
            strides[i] = draw(st.integers(-40, 40))
    return strides


def span(shape, strides, size):
    """Return (lowest, one past the highest) byte that a nest touches from offset 0."""
    if 0 in shape:
        return 0, 0
    ends = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends) + size


def source_bytes(rng, count, dtype):
    """Return random bytes in which special values of the type are frequent."""
    data = rng.integers(0, 256, count, np.uint8)
    if dtype is not None and dtype.kind not in "iub":
        size = dtype.itemsize
        with np.errstate(all="ignore"):
            x = (rng.standard_normal(count // size + 1) * 2.0 ** rng.integers(-20, 20, count // size + 1)).astype(dtype)
            special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, 448, 57344, -(2.0**31), 2.0**63, 0.5])
            special = special.astype(dtype)
        x[rng.random(len(x)) < 0.1] = rng.choice(special)
        take = rng.random(count) < 0.9
        data = np.where(take, x.view(np.uint8)[:count], data)
    return data


def check(make, src, size, threads=(1, 2), past=0):
    """Run make() on a poisoned target of `size` bytes at each level and for each number of threads; return the bytes.

    The byte after the guard is `past` bytes past a cache line.
    """
    results = []
    for level, count in [*product(LEVELS[:1], threads), *product(LEVELS[1:], threads[:1])]:
        dst = memory(size, past - GUARD, POISON)
        before = src.copy()
        assert run_at(at_level(level), make(), src, dst, count) == 0
        assert np.array_equal(src, before)
        results.append(dst)
    assert all(np.array_equal(results[0], other) for other in results[1:])
    return results[0]


def tables_for(draw, src_span, dst_span):
    """Return (entries, source offsets, target offsets): targets apart from each other, in any order."""
    count = draw(st.sampled_from([0, 0, 0, 1, 2, 5]))
    if count == 0:
        return 0, np.zeros(1, np.int64), np.zeros(1, np.int64)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dst = rng.permutation(count).astype(np.int64) * (dst_span + int(rng.integers(0, 9)))
    return count, rng.integers(0, 100, count).astype(np.int64), dst


@given(st.data())
def test_copy(data):
    shape = data.draw(extents())
    src_type, dst_type = data.draw(st.tuples(*[st.integers(0, len(SCALARS) - 1)] * 2))
    if data.draw(st.booleans()):
        dst_type = src_type
    a, b = SCALARS[src_type].itemsize, SCALARS[dst_type].itemsize
    src_strides, dst_strides = data.draw(any_strides(shape, a)), data.draw(distinct_strides(shape, b))
    src_low, src_high = span(shape, src_strides, a)
    dst_low, dst_high = span(shape, dst_strides, b)
    count, src_table, dst_table = tables_for(data.draw, src_high - src_low, dst_high - dst_low)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    src = source_bytes(rng, src_high - src_low + GUARD + 100, SCALARS[src_type])
    size = int(dst_high - dst_low + dst_table.max() + 2 * GUARD)
    modes = list(zip(shape, src_strides, dst_strides, strict=True))
    places = (GUARD - src_low, GUARD - dst_low, 0)
    tables = (src_table, dst_table) if count else None
    got = check(lambda: [nest(COPY, modes, src_type, dst_type, places, tables=tables)], src, size)
    expected = np.full(size, POISON, np.uint8)
    for s, d in zip(src_table, dst_table, strict=True):
        rows = models.gather(src, models.offsets(modes, 1, places[0] + s), a)
        where = models.offsets(modes, 2, places[1] + d)
        models.scatter(expected, where, models.convert(rows, src_type, dst_type))
    assert np.array_equal(got, expected)


@given(st.data())
def test_fill(data):
    shape = data.draw(extents())
    dst_type = data.draw(st.integers(0, len(SCALARS) - 1))
    size = SCALARS[dst_type].itemsize
    strides = data.draw(distinct_strides(shape, size))
    low, high = span(shape, strides, size)
    fill = data.draw(st.binary(min_size=size, max_size=size))
    modes = [(n, 12345, s) for n, s in zip(shape, strides, strict=True)]
    got = check(
        lambda: [nest(FILL, modes, 99, dst_type, (-77, GUARD - low, 0), fill=fill)],
        np.zeros(1, np.uint8),
        high - low + 2 * GUARD,
    )
    expected = np.full(len(got), POISON, np.uint8)
    where = models.offsets(modes, 2, GUARD - low)
    models.scatter(expected, where, np.tile(np.frombuffer(fill, np.uint8), (len(where), 1)))
    assert np.array_equal(got, expected)


def lanes_for(draw, size, count):
    """Return (lane offsets, mask): contiguous, in halves, strided, or scattered without overlap."""
    kind = draw(st.integers(0, 4))
    if kind == 0:
        found = [i * size for i in range(count)]
    elif kind == 1:
        apart = draw(st.sampled_from([16 * size, -16 * size, 64, 64 * size, 400]))
        apart = max(apart, 16 * size) if apart > 0 else apart
        found = [i % 16 * size + i // 16 * apart for i in range(count)]
    elif kind == 2:
        step = draw(st.integers(size, 200)) * draw(st.sampled_from([1, -1]))
        found = [i * step for i in range(count)]
    else:
        found = [(i * 3 + i // 5) * size for i in draw(st.permutations(range(count)))]
    mask = draw(st.sampled_from([0xFFFF, 0xFFFF, 0x00FF, 0xFFFE, 0x0001, 0x5A5A, 0]))
    return found, mask | draw(st.sampled_from([0xFFFF, 0xFFFF, mask, 0])) << 16 if count == 32 else mask


@given(st.data())
def test_pack(data):
    shape = data.draw(extents(most=200))
    kind = data.draw(st.sampled_from([*BLOCKS, *SCALED]))
    block, bits = geometry(kind)
    codes = block * bits // 8
    src_type = data.draw(st.one_of(st.just(F32), st.integers(0, len(SCALARS) - 1)))
    size = SCALARS[src_type].itemsize
    lanes, mask = lanes_for(data.draw, size, block)
    src_strides = data.draw(any_strides(shape, size * data.draw(st.sampled_from([1, 16]))))
    dst_strides, aux_strides = data.draw(distinct_strides(shape, codes)), data.draw(distinct_strides(shape, 1))
    src_low, src_high = span(shape, src_strides, size)
    src_low, src_high = src_low + min(*lanes, 0), src_high + max(*lanes, 0)
    dst_low, dst_high = span(shape, dst_strides, codes)
    aux_low, aux_high = span(shape, aux_strides, 1)
    count, src_table, dst_table = tables_for(data.draw, 0, dst_high - dst_low)
    aux_table = dst_table.argsort().argsort() * (aux_high - aux_low + 8)  # apart from each other, too
    aux_start = int(dst_high - dst_low + dst_table.max() + 2 * GUARD)
    total = int(aux_start + aux_high - aux_low + aux_table.max() + GUARD)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    src = source_bytes(rng, src_high - src_low + GUARD + 100, SCALARS[src_type])
    fill = np.float32(data.draw(st.sampled_from([0.0, 1.5, -1000.0, np.inf, np.nan])))
    modes = list(zip(shape, src_strides, dst_strides, aux_strides, strict=True))
    places = (GUARD - src_low, GUARD - dst_low, aux_start - aux_low)
    tables = (src_table, dst_table, aux_table) if count else None
    got = check(lambda: [nest(PACK, modes, src_type, kind, places, lanes, mask, fill.tobytes(), tables)], src, total)
    expected = np.full(total, POISON, np.uint8)
    for s, d, x in zip(src_table, dst_table, aux_table, strict=True):
        start = models.offsets(modes, 1, places[0] + s)
        values = np.full((len(start), block), fill, np.float32)
        for i in range(block):
            if mask >> i & 1:
                rows = models.gather(src, start + lanes[i], size)
                values[:, i] = np.ascontiguousarray(models.convert(rows, src_type, F32)).view(np.float32)[:, 0]
        packed, scales = models.pack(values, kind)
        models.scatter(expected, models.offsets(modes, 2, places[1] + d), packed)
        models.scatter(expected, models.offsets(modes, 3, places[2] + x), scales[:, None])
    assert np.array_equal(got, expected)


@given(st.data())
def test_unpack(data):
    shape = data.draw(extents(most=200))
    kind = data.draw(st.sampled_from([*BLOCKS, *SCALED]))
    block, bits = geometry(kind)
    codes = block * bits // 8
    dst_type = data.draw(st.one_of(st.just(F32), st.integers(0, len(SCALARS) - 1)))
    size = SCALARS[dst_type].itemsize
    lanes, mask = lanes_for(data.draw, size, block)
    reach = max(lanes) - min(lanes) + size
    if data.draw(st.booleans()) or lanes[1] - lanes[0] == size:
        dst_strides = data.draw(distinct_strides(shape, reach))
    else:  # blocks between the lanes of a block, as in a transposed tile
        count = math.prod(max(1, n) for n in shape)
        lanes = [i * count * size for i in range(block)]
        reach, step, dst_strides = (block - 1) * count * size + size, size, []
        for n in shape:
            dst_strides.append(step)
            step *= max(1, n)
    src_strides, aux_strides = data.draw(any_strides(shape, codes)), data.draw(any_strides(shape, 1))
    src_low, src_high = span(shape, src_strides, codes)
    aux_low, aux_high = span(shape, aux_strides, 1)
    dst_low, dst_high = span(shape, dst_strides, size)
    dst_low, dst_high = dst_low + min(*lanes, 0), dst_high + max(*lanes, 0)
    count, src_table, dst_table = tables_for(data.draw, 0, dst_high - dst_low)
    aux_table = src_table[::-1].copy()
    aux_start = int(src_high - src_low + GUARD + 100)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    src = rng.integers(0, 256, aux_start + aux_high - aux_low + 100, np.uint8)
    src[aux_start:] = rng.choice(
        np.array([0, 1, 2, 5, 7, 8, 100, 127, 130, 142, 143, 254, 255], np.uint8), len(src) - aux_start
    )
    if kind in BLOCKS and BLOCKS[kind][1] == "a":
        src[aux_start:] %= 32
    total = int(dst_high - dst_low + dst_table.max() + 2 * GUARD)
    modes = list(zip(shape, src_strides, dst_strides, aux_strides, strict=True))
    places = (GUARD - src_low, GUARD - dst_low, aux_start - aux_low)
    tables = (src_table, dst_table, aux_table) if count else None
    got = check(lambda: [nest(UNPACK, modes, kind, dst_type, places, lanes, mask, tables=tables)], src, total)
    expected = np.full(total, POISON, np.uint8)
    for s, d, x in zip(src_table, dst_table, aux_table, strict=True):
        packed = models.gather(src, models.offsets(modes, 1, places[0] + s), codes)
        scales = models.gather(src, models.offsets(modes, 3, places[2] + x), 1)[:, 0]
        values = models.unpack(packed, scales, kind)
        start = models.offsets(modes, 2, places[1] + d)
        for i in range(block):
            if not mask >> i & 1:
                continue
            wanted = models.convert(values[:, i : i + 1].copy().view(np.uint8), F32, dst_type)
            models.scatter(expected, start + lanes[i], wanted)
    assert np.array_equal(got, expected)


@all_cases(("dst_type", range(len(SCALARS))), ("src_type", range(len(SCALARS))), groups=4)
def test_every_conversion(src_type, dst_type):
    a, b = SCALARS[src_type], SCALARS[dst_type]
    rng = np.random.default_rng(src_type * 100 + dst_type)
    count = 1031
    src = source_bytes(rng, count * a.itemsize, a)
    if a.itemsize <= 2:  # every value of the small types
        src = np.arange(256**a.itemsize, dtype=f"u{a.itemsize}").view(np.uint8)
        count = 256**a.itemsize
    got = check(lambda: [nest(COPY, [(count, a.itemsize, b.itemsize)], src_type, dst_type)], src, count * b.itemsize)
    expected = models.convert(src.reshape(-1, a.itemsize), src_type, dst_type)
    assert np.array_equal(got.reshape(-1, b.itemsize), expected)


def tilized(height, width, size, itemsize_to=None, to_tiles=True):
    """Return the modes of a move between rows and 32x32 tiles of 16x16 faces."""
    t = itemsize_to or size
    rows = [
        (16, width * size, 16 * t),
        (2, 16 * width * size, 512 * t),
        (height // 32, 32 * width * size, 32 * width * t),
    ]
    columns = [(16, size, t), (2, 16 * size, 256 * t), (width // 32, 32 * size, 1024 * t)]
    modes = rows[::-1] + columns[::-1]
    if not to_tiles:
        modes = [(n, d // t * size, s // size * t) for n, s, d in modes]
    return modes


@all_cases(
    ("large", [False, True]), ("to_tiles", [True, False]), ("size", [1, 2, 4, 8]), ("past", [0, 16, 40, 3]), groups=4
)
def test_tiles(past, size, to_tiles, large):
    height, width = (96, 160) if not large else (1056, 2112 * 4 // size)
    kind = {1: 10, 2: 11, 4: 12, 8: 13}[size]
    src = np.random.default_rng(size).integers(0, 256, height * width * size + 64, np.uint8)
    modes = tilized(height, width, size, to_tiles=to_tiles)
    total = height * width * size + 2 * GUARD
    got = check(lambda: [nest(COPY, modes, kind, kind, (5, GUARD, 0))], src, total, past=past)
    x = tiles_of(src[5 : 5 + height * width * size], height, width, size, to_tiles)
    assert np.array_equal(got[GUARD:-GUARD], x.reshape(-1))
    assert (got[:GUARD] == POISON).all()
    assert (got[-GUARD:] == POISON).all()


def tiles_of(data, height, width, size, to_tiles):
    """Return the bytes of a matrix in tile order, or back."""
    if to_tiles:
        return data.reshape(height // 32, 2, 16, width // 32, 2, 16, size).transpose(0, 3, 1, 4, 2, 5, 6)
    return data.reshape(height // 32, width // 32, 2, 2, 16, 16, size).transpose(0, 2, 4, 1, 3, 5, 6)


@lru_cache(maxsize=2)  # the cases of one pair follow each other
def converted_numbers(pair, count):
    """Return the bytes of random numbers of one type, and of the other as the model converts them."""
    dtype = SCALARS[pair[0]]
    source = source_bytes(np.random.default_rng(7), count * dtype.itemsize, dtype)
    return source, models.convert(source.reshape(-1, dtype.itemsize), *pair)


@all_cases(
    ("large", [False, True]),
    ("pair", [(1, 3), (3, 1), (1, 2), (2, 1), (0, 1), (8, 4)]),
    ("to_tiles", [True, False]),
    ("past", [0, 16, 3]),
)
def test_converting_tiles(past, to_tiles, pair, large):
    a, b = SCALARS[pair[0]], SCALARS[pair[1]]
    height, width = (64, 96) if not large else (2112, 4160 // b.itemsize // 32 * 32)
    src, rows = converted_numbers(pair, height * width)
    modes = tilized(height, width, a.itemsize, b.itemsize, to_tiles)
    total = height * width * b.itemsize + 2 * GUARD
    got = check(lambda: [nest(COPY, modes, *pair, (0, GUARD, 0))], src, total, past=past)
    x = tiles_of(rows.reshape(-1), height, width, b.itemsize, to_tiles)
    assert np.array_equal(got[GUARD:-GUARD], x.reshape(-1))
    assert (got[:GUARD] == POISON).all()
    assert (got[-GUARD:] == POISON).all()


# Larger than the threshold for streaming stores, so that heads, tails and ragged boxes of that path are seen.
@all_cases(
    ("past", [0, 16, 3]),
    ("shape", [(1500, 1501), (37, 60021), (3, 700001), (60021, 37), (700001, 3), (1536, 1448)]),
    ("dtype", [6, 7, 8, 9]),
    groups=4,
)
def test_large_transposes(dtype, shape, past):
    size = SCALARS[dtype].itemsize
    n, m = (shape[0] * 4 // size, shape[1]) if shape[0] > 100 else (shape[0], shape[1] * 4 // size)
    src = np.random.default_rng(1).integers(0, 256, n * m * size + 1, np.uint8)[1:]
    modes = [(n, m * size, size), (m, size, n * size)]
    got = check(lambda: [nest(COPY, modes, dtype, dtype, (0, GUARD, 0))], src, n * m * size + 2 * GUARD, past=past)
    expected = src.reshape(n, m, size).transpose(1, 0, 2).reshape(-1)
    assert np.array_equal(got[GUARD:-GUARD], expected)
    assert (got[:GUARD] == POISON).all()
    assert (got[-GUARD:] == POISON).all()


@all_cases(
    ("past", [0, 16]),
    ("pair", [(8, 8), (1, 3), (3, 1)]),
    ("shape", [(7, 61, 83, 65), (16, 128, 32, 48), (3, 5, 50021, 3)]),
    ("axes", [(0, 2, 1, 3), (3, 2, 1, 0), (2, 0, 3, 1), (0, 3, 1, 2), (1, 0, 2, 3), (0, 2, 3, 1)]),
    groups=4,
)
def test_large_permutations(axes, shape, pair, past):
    a, b = SCALARS[pair[0]], SCALARS[pair[1]]
    rng = np.random.default_rng(2)
    source = rng.integers(-1000, 1000, shape).astype(a)
    strides = np.empty(shape, a).strides
    result = memory(source.size * b.itemsize, past).view(b).reshape([shape[i] for i in axes])
    modes = [(shape[i], strides[i], s) for i, s in zip(axes, result.strides, strict=True)]
    assert run([nest(COPY, modes, *pair)], source, result, 2) == 0
    assert np.array_equal(result.view(np.uint8), np.ascontiguousarray(source.transpose(axes).astype(b)).view(np.uint8))


@cache
def normal_numbers(count):
    return np.random.default_rng(3).standard_normal(count, dtype=np.float32)


@all_cases(("kind", list(BLOCKS)), ("past", [0, 16]))
def test_large_packing_and_back(kind, past):
    bits, _ = BLOCKS[kind]
    height, width = 2048, 4608 * 8 // bits
    rng = np.random.default_rng(3)
    matrix = normal_numbers(2048 * 4608 * 8)[: height * width].reshape(height, width)
    data, tile = 1024 * bits // 8, 1024 * bits // 8 + 64
    across, down = width // 32, height // 32

    def modes(codes, scales):
        return [
            (down, 32 * width * 4, across * tile, across * tile),
            (across, 128, tile, tile),
            (2, 16 * width * 4, 2 * codes * 16, 2 * scales * 16),
            (2, 64, codes * 16, scales * 16),
            (16, width * 4, codes, scales),
        ]

    packing = modes(2 * bits, 1)
    lanes = [4 * i for i in range(16)]
    packed = memory(down * across * tile, past, POISON)
    assert run([nest(PACK, packing, F32, kind, (0, 64, 0), lanes, 0xFFFF)], matrix, packed, 2) == 0
    blocks = matrix.reshape(down, 2, 16, across, 2, 16).transpose(0, 3, 1, 4, 2, 5)
    sample = rng.integers(0, matrix.size // 16, 2000)
    sampled = np.unravel_index(sample, blocks.shape[:-1])
    codes, scales = models.pack(blocks[sampled], kind)
    tiles = packed.reshape(-1, tile)
    assert np.array_equal(tiles[:, :64].reshape(-1)[sample], scales)
    assert np.array_equal(np.ascontiguousarray(tiles[:, 64:]).reshape(-1, 2 * bits)[sample], codes)
    assert data + 64 == tile
    back = memory(matrix.nbytes, past).view(np.float32).reshape(matrix.shape)
    unpacking = [(n, d, s, x) for n, s, d, x in packing]
    assert run([nest(UNPACK, unpacking, kind, F32, (64, 0, 0), lanes, 0xFFFF)], packed, back, 2) == 0
    back = back.reshape(down, 2, 16, across, 2, 16).transpose(0, 3, 1, 4, 2, 5)
    assert np.array_equal(back[sampled].view(np.uint32), models.unpack(codes, scales, kind).view(np.uint32))


def test_several_parts_share_the_threads():
    rng = np.random.default_rng(4)
    src = rng.integers(0, 256, 6 << 20, np.uint8)
    pieces = [(0, 100), (100, 3 << 20), (3 << 20, 3 << 20), (3 << 20, (3 << 20) + 1), ((3 << 20) + 1, 6 << 20)]
    nests = [nest(COPY, [(stop - start, 1, 1)], 10, 10, (start, start, 0)) for start, stop in pieces]
    assert np.array_equal(check(lambda: nests, src, len(src), threads=(1, 2, 3, 0)), src)


def test_what_is_not_supported_writes_nothing():
    src, dst = np.ones(64, np.uint8), np.zeros(64, np.uint8)
    good = nest(COPY, [(4, 4, 4)], 1, 1)
    lanes = [4 * i for i in range(16)]
    bad = [
        nest(9, [(4, 4, 4)], 1, 1),
        nest(COPY, [(4, 4, 4)], 1, 15),
        nest(COPY, [(4, 4, 4)], -1, 1),
        nest(COPY, [(4, 4, 4)], 100, 100),
        nest(PACK, [], 1, 1, lanes=lanes, mask=0xFFFF),
        nest(PACK, [], 1, 106, lanes=lanes, mask=0xFFFF),
        nest(PACK, [], 1, 113, lanes=lanes, mask=0xFFFF),
        nest(UNPACK, [], 111, 1, lanes=lanes, mask=0xFFFF),
        nest(UNPACK, [], 1, 1, lanes=lanes, mask=0xFFFF),
        nest(PACK, [], 1, 100, lanes=lanes[:8], mask=0xFF),
        nest(FILL, [(4, 4, 4)], 1, 100),
    ]
    for p in bad:
        assert run([good, p], src, dst) < 0
    deep = nest(COPY, [(1, 1, 1)] * MAX_RANK, 1, 1)
    deep.rank = MAX_RANK + 1
    assert run([good, deep], src, dst) < 0
    assert not dst.any()
    assert run([], src, dst) == 0
    assert run([nest(COPY, [(1, 1, 1)] * MAX_RANK, 1, 1)], src, dst) == 0
    assert dst[:4].all()


def test_cpu_features_are_named():
    assert LIBRARY.tw_cpu_features().decode()
