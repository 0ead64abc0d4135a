# SPDX-License-Identifier: Apache-2.0
"""Copies by a table of places: pieces of every length, in any order, wherever the target lies, and no other byte."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..cases import all_cases, examples
from . import models
from .abi import COPY, LIBRARY, SCALARS, memory, nest
from .levels import LEVELS, at_level, run_at

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no native library")

POISON = 0xA5
BYTES = {1: 10, 2: 11, 4: 12, 8: 13}  # an unsigned type of each size


@pytest.fixture(scope="module", params=LEVELS)
def tw_run(request):
    return at_level(request.param)


def check(tw_run, size, run, outer, order, past, gap, threads):
    """Move pieces of `run` elements; each of `outer` groups has the pieces in another order on each side."""
    piece, count = run * size, len(order)
    group = count * piece + gap
    modes = [(outer, group, group), (run, size, size)]
    places = np.arange(count, dtype=np.int64) * piece
    tables = (places.copy(), places[order].copy())
    src = np.random.default_rng(count).integers(0, 255, outer * group + 64, dtype=np.uint8)
    dst = memory(len(src) + 64, past, POISON)
    expected = dst.copy()
    for a, b in zip(*tables, strict=True):
        took = models.offsets(modes, 1, int(a))
        put = models.offsets(modes, 2, int(b))
        models.scatter(expected, put, models.gather(src, took, size))
    assert run_at(tw_run, [nest(COPY, modes, BYTES[size], BYTES[size], tables=tables)], src, dst, threads) == 0
    assert np.array_equal(dst, expected)


@all_cases(("run", [1, 2, 3, 4, 8, 16, 40, 64]), ("size", [1, 2, 4, 8]), ("past", [0, 4, 16, 63]), groups=4)
def test_pieces_of_every_length(tw_run, size, run, past):
    order = np.random.default_rng(run).permutation(64)
    check(tw_run, size, run, 5, order, past, 0, 1)


@all_cases(("size, run", [(1, 1), (2, 8), (4, 4), (4, 16), (8, 2)]), groups=4)
def test_large_targets_on_several_threads(tw_run, size, run):
    order = np.random.default_rng(run).permutation(64)
    outer = (9 << 20) // (64 * run * size)  # enough to be streamed
    check(tw_run, size, run, outer, order, 0, 0, 3)


@examples(60)
@given(
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, 20),
    st.integers(1, 4),
    st.integers(2, 40),
    st.integers(0, 63),
    st.integers(0, 70),
    st.integers(1, 2),
    st.randoms(use_true_random=False),
)
def test_any_table(size, run, outer, count, past, gap, threads, random):
    order = list(range(count))
    random.shuffle(order)
    check(LIBRARY.tw_run, size, run, outer, np.array(order), past, gap, threads)


def test_sizes_are_as_they_say():
    assert {size: SCALARS[code].itemsize for size, code in BYTES.items()} == {size: size for size in BYTES}
