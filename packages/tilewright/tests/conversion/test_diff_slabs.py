# SPDX-License-Identifier: Apache-2.0
"""Slabs and row_pieces cover everything once, in order, and stay within their bounds."""

from itertools import pairwise
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright.conversion.comparison import ErrorMap
from tilewright.conversion.tensor_diff import row_major_slabs, row_pieces

shapes = st.lists(st.integers(1, 70), max_size=4).filter(lambda shape: prod(shape) < 20_000).map(tuple)


@given(shapes, st.integers(20, 5000))
def test_slabs_are_runs_that_cover_the_shape_in_order(shape, most):
    numbers = np.arange(prod(shape)).reshape(shape)
    seen = [numbers[box.slices].reshape(-1) for box in row_major_slabs(shape, most)]
    assert np.array_equal(np.concatenate(seen), np.arange(prod(shape)))
    assert max(map(len, seen)) <= most


def test_an_empty_shape_has_no_slabs():
    assert list(row_major_slabs((3, 0, 4), 10)) == []


@given(st.integers(0, 50), st.integers(1, 40), st.integers(1, 30), st.integers(1, 100))
def test_pieces_are_whole_rows_or_parts_of_one(first_row, rows, width, most):
    start, count = first_row * width, rows * width
    found = list(row_pieces(start, count, width, most))
    assert found[0].start == 0
    assert found[-1].stop == count
    assert all(a.stop == b.start for a, b in pairwise(found))
    for part in found:
        assert part.stop - part.start <= most
        whole = (start + part.start) % width == 0 and (part.stop - part.start) % width == 0
        assert whole or (start + part.start) // width == (start + part.stop - 1) // width


@given(shapes.filter(bool), st.integers(20, 5000), st.sampled_from([(32, 32), (16, 32), (4, 16)]))
def test_the_error_map_has_the_largest_error_of_every_block(shape, most, tile):
    errors = np.random.default_rng(0).random(prod(shape))
    found = ErrorMap(shape, tile)
    for box in row_major_slabs(shape, most, tile):
        start = int(np.ravel_multi_index(box.offset, shape))
        for part in row_pieces(start, prod(box.shape), shape[-1]):
            found.add(start + part.start, errors[start : start + prod(box.shape)][part])
    matrix = errors.reshape(-1, shape[-1])
    high, wide = found.block
    assert (high % tile[0], wide % tile[1]) == (0, 0)
    expected = [
        [matrix[top : top + high, left : left + wide].max() for left in range(0, shape[-1], wide)]
        for top in range(0, len(matrix), high)
    ]
    assert np.array_equal(found.cells, expected)


def test_a_map_stays_small():
    assert max(ErrorMap((100_000, 70_000), (32, 32)).cells.shape) <= 64
