# SPDX-License-Identifier: Apache-2.0
"""Transposes, permutations and woven channels: odd pitches, odd bases, every size of element, every instruction set."""

import itertools
import math
from functools import lru_cache

import numpy as np
import pytest

from ..cases import all_cases
from .abi import COPY, LIBRARY, memory, nest
from .levels import LEVELS, at_level, run_at

pytestmark = [pytest.mark.slow, pytest.mark.skipif(LIBRARY is None, reason="no native library")]

POISON = 0xA5
GUARD = 131  # bytes before and after what is moved
TYPES = {1: 10, 2: 11, 4: 12, 8: 13}
LARGE = 9 << 20  # bytes: more than the caches hold


def dense(shape, size, gap=0):
    """Return strides in C order; every row of the last axis is followed by a gap of so many elements."""
    strides, step = [], size
    for i, extent in reversed(list(enumerate(shape))):
        strides.append(step)
        step *= extent
        if i == len(shape) - 1:
            step += gap * size
    return strides[::-1]


def check(size, modes, past=(0, 0), threads=(1, 2), tables=None):
    """Copy elements through the modes, whose strides are positive, at every level, and compare all target bytes."""
    shape = [m[0] for m in modes]
    ends = [sum((m[0] - 1) * m[k] for m in modes) + size for k in (1, 2)]
    starts = list(zip(*tables, strict=True)) if tables else [(0, 0)]
    src = memory(ends[0] + max(s for s, _ in starts) + 2 * GUARD, past[0] - GUARD)
    src[...] = random_bytes(len(src))
    expected = memory(ends[1] + max(d for _, d in starts) + 2 * GUARD, past[1] - GUARD, POISON)

    def view(data, k, start):
        return np.ndarray(shape, f"u{size}", data, GUARD + start, [m[k] for m in modes])

    for s, d in starts:
        view(expected, 2, int(d))[...] = view(src, 1, int(s))
    copying = [nest(COPY, modes, TYPES[size], TYPES[size], (GUARD, GUARD, 0), tables=tables)]
    got = memory(len(expected), past[1] - GUARD, POISON)
    for level in LEVELS:
        for count in threads:
            got[...] = POISON
            assert run_at(at_level(level), copying, src, got, count) == 0
            assert np.array_equal(got, expected), f"{level}, {count} threads"


def random_bytes(count):
    return np.resize(many_random_bytes(), count)


@lru_cache(maxsize=1)
def many_random_bytes():
    return np.frombuffer(np.random.default_rng(0).bytes(LARGE + 4099), np.uint8)


def permuted(shape, axes, size, gaps=(0, 0)):
    """Return the modes of a permutation between arrays with gaps after their rows."""
    source = dense(shape, size, gaps[0])
    target = dense([shape[a] for a in axes], size, gaps[1])
    return [(shape[a], source[a], t) for a, t in zip(axes, target, strict=True)]


@all_cases(
    ("past", [(0, 0), (16, 16), (3, 5), (0, 48)]), ("gaps", [(0, 0), (0, 1), (3, 0), (5, 7)]), ("size", TYPES), groups=4
)
def test_large_matrices(size, gaps, past):
    rows = 1472 if gaps[1] == 0 else 1499
    check(size, permuted((rows, LARGE // rows // size), (1, 0), size, gaps), past)


@all_cases(
    ("past", [(0, 0), (16, 16), (3, 5)]),
    ("shape", [(1, 1), (9, 5), (16, 16), (64, 64), (65, 63), (300, 17), (17, 300), (128, 1), (200, 1024), (513, 520)]),
    ("size", TYPES),
    groups=4,
)
def test_small_matrices(size, shape, past):
    for gaps in ((0, 0), (2, 9)):
        check(size, permuted(shape, (1, 0), size, gaps), past)


@all_cases(("pitch", [4096, 8192 + 64]), ("size", TYPES), groups=4)
def test_rows_that_share_their_place_in_the_cache(size, pitch):
    n = pitch // size
    check(size, [(n - 7, size, pitch), (n - 3, pitch, size)], (16, 0), threads=(1,))


@all_cases(("axes", list(itertools.permutations(range(4)))), ("size", TYPES), groups=4)
def test_permutations(size, axes):
    check(size, permuted((20, 12, 9, 24), axes, size), (16, 0))
    check(size, permuted((5, 33, 6, 70), axes, size, (1, 0)), (0, 16))


@all_cases(
    ("past", [0, 16, 24]),
    ("axes", [(3, 2, 1, 0), (1, 3, 0, 2), (1, 2, 3, 0), (0, 3, 1, 2), (2, 0, 3, 1)]),
    ("size", TYPES),
    groups=4,
)
def test_large_permutations(size, axes, past):
    check(size, permuted((20, 48, LARGE // 20 // 48 // 96 // size, 96), axes, size), (16, past))


@all_cases(("past", [(0, 0), (16, 24), (3, 5)]), ("channels", range(2, 10)), ("size", TYPES), groups=4)
def test_channels(size, channels, past):
    large = LARGE // 2 // channels // size + 3
    for pixels in (1, 127, 1000, large):
        for gap in (0, 5) if pixels != large else (3,):
            apart = (pixels + gap) * size
            together = [(2, 2 * pixels * channels * size), (pixels, channels * size), (channels, size)]
            modes = [(n, s, d) for (n, s), d in zip(together, (channels * apart, size, apart), strict=True)]
            check(size, modes, past)
            check(size, [(n, d, s) for n, s, d in modes], past)


@all_cases(
    ("modes", [[(70, 1, 80), (80, 70, 1)], [(3, 1, 500), (500, 3, 1)], [(3, 500, 1), (500, 1, 3)]]),
    ("size", TYPES),
    groups=4,
)
def test_tables(size, modes):
    modes = [(n, s * size, d * size) for n, s, d in modes]
    bytes_each = math.prod(m[0] for m in modes) * size
    places = np.arange(5, dtype=np.int64) * (bytes_each + 8)
    check(size, modes, (0, 16), tables=(places[::-1].copy(), places))
