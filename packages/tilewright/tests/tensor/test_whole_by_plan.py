# SPDX-License-Identifier: Apache-2.0
"""Whole tensors move by copy plans: the same elements land in the same places as one by one, whatever the layouts."""

import numpy as np
import pytest

from tilewright import Layout, Swizzle, TileTensor, blocked_product, col_major, compose, row_major
from tilewright.tensor import elements

SHAPE = (64, 96)
LAYOUTS = {
    "row-major": row_major(*SHAPE),
    "column-major": col_major(*SHAPE),
    "gaps": Layout(SHAPE, (100, 1)),
    "backwards": Layout(SHAPE, (-96, 1)) + 63 * 96,
    "tiles": blocked_product(row_major(16, 32), row_major(4, 3)),
    "swizzled": compose(Swizzle(3, 2, 3), row_major(*SHAPE)),
    "swizzled low": compose(Swizzle(2, 0, 3), row_major(*SHAPE)),
    "swizzled off its blocks": compose(Swizzle(2, 1, 4), Layout(SHAPE, (97, 1)) + 5),
    "composed": compose(Layout((48, 128), (128, 1)), row_major(*SHAPE)),
}


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch):
    monkeypatch.setattr(elements, "SMALL", 1)


def tensor(name, start=0):
    layout = LAYOUTS[name]
    return TileTensor(np.arange(start, start + 8192, dtype=np.int32), layout)


def one_by_one(view):
    return np.array([[int(view[i, j]) for j in range(view.valid_shape[1])] for i in range(view.valid_shape[0])])


@pytest.mark.parametrize("name", LAYOUTS)
def test_reading_gives_every_element(name):
    view = tensor(name)
    np.testing.assert_array_equal(view.to_numpy(), one_by_one(view))


@pytest.mark.parametrize("target", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
def test_a_copy_moves_every_element_and_nothing_else(source, target):
    into, out_of = tensor(target, start=100_000), tensor(source)
    touched = np.zeros(8192, dtype=bool)
    touched[np.asarray(into.layout.offsets()) + into.offset] = True
    before = into.origin.copy()
    into.copy_from(out_of)
    np.testing.assert_array_equal(one_by_one(into), one_by_one(out_of))
    np.testing.assert_array_equal(into.origin[~touched], before[~touched])


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_ragged_tile_is_read_and_written_only_where_it_is_valid(name):
    whole_tensor = tensor(name)
    edge = whole_tensor.tile[40, 50](1, 1)
    assert edge.valid_shape == (24, 46)
    np.testing.assert_array_equal(edge.to_numpy(), one_by_one(edge))
    expected = one_by_one(whole_tensor)
    expected[40:, 50:] = -7
    edge.copy_from(np.full((24, 46), -7, dtype=np.int32))
    np.testing.assert_array_equal(one_by_one(whole_tensor), expected)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_copy_converts(name):
    single = TileTensor(np.zeros(8192, dtype=np.float32), LAYOUTS[name])
    single.copy_from(tensor("row-major"))
    np.testing.assert_array_equal(single.to_numpy(), np.arange(64 * 96).reshape(SHAPE))


def test_a_copy_onto_itself_reads_before_it_writes():
    square = TileTensor(np.arange(64 * 64), row_major(64, 64))
    square.copy_from(square.transpose())
    np.testing.assert_array_equal(square.to_numpy(), np.arange(64 * 64).reshape(64, 64).T)


def test_a_target_with_several_elements_in_one_place_keeps_one_of_them():
    row = TileTensor(np.zeros(96, dtype=np.int32), Layout(SHAPE, (0, 1)))
    row.copy_from(tensor("row-major"))
    assert all(int(row[0, j]) % 96 == j for j in range(96))
