# SPDX-License-Identifier: Apache-2.0
"""Where a layout, or a tensor in memory, has an element: the steps, and objects of the dialects."""

import numpy as np
import pytest

import tilewright as tw
import tilewright.ttl as ttl
from tilewright import MemoryConfigError, addr, bank
from tilewright.errors import CoordinateError


def steps(subject, at):
    return dict(tw.explain(subject, at).steps())


def test_the_sum_of_a_strided_layout():
    assert str(tw.explain(tw.row_major(4, 8), (2, 5))) == "element   (2, 5) of (4,8):(8,1)\noffset    21 = 2 x 8 + 5"
    assert steps(tw.Layout(((2, 2), 4), ((1, 8), 2)), ((1, 1), 3))["offset"] == "15 = 1 + 1 x 8 + 3 x 2"
    assert steps(tw.Layout(5, 2), (3,)) == {"element": "(3,) of 5:2", "offset": "6 = 3 x 2"}
    assert steps(tw.row_major(4, 8) + 100, (0, 5))["offset"] == "105 = 100 + 5"
    assert steps(tw.row_major(4, 8), (0, 5))["offset"] == "5"


def test_layouts_without_a_sum():
    assert steps(tw.parse("Sw<2,0,2> o (4,4):(4,1)"), (2, 3))["offset"] == "9"
    placed = tw.explain(tw.Layout((12, 100), (1 @ bank, 2048 @ addr)), (3, 5))
    assert placed.offset == tw.Place(bank=3, addr=10240)
    assert placed.to_json()["offset"] == "Place(bank=3, addr=10240)"
    padded = tw.with_logical_shape(tw.row_major(4, 8), (3, 8))
    assert steps(padded, (3, 0))["element"].endswith("which is padding")


@pytest.mark.parametrize("seed", range(20))
def test_every_offset_is_that_of_the_layout(seed):
    random = np.random.default_rng(seed)
    shape, stride = (tuple(int(n) for n in random.integers(1, 6, 3)) for _ in range(2))
    layout = tw.Layout(shape, stride)
    at = tuple(int(random.integers(n)) for n in shape)
    explained = tw.explain(layout, at)
    total, _, terms = dict(explained.steps())["offset"].partition(" = ")
    assert int(total) == explained.offset == layout(*at)
    if terms:
        assert sum(int(np.prod([int(n) for n in term.split(" x ")])) for term in terms.split(" + ")) == layout(*at)


def test_tensors_in_memory():
    tensor = tw.TileTensor(np.arange(48, dtype=np.float32), tw.row_major(6, 8))
    tile = tw.explain(tensor.tile[2, 4](1, 1), (1, 2))
    assert dict(tile.steps())["storage"] == "scalar 30 = 20 + 10"
    assert dict(tile.steps())["byte"] == "120 = 30 x 4"
    assert tensor.to_numpy().reshape(-1)[30] == tensor.tile[2, 4](1, 1)[1, 2]
    assert tile.to_json() == {"coordinate": [1, 2], "offset": 10, "start": 20, "itemsize": 4}
    image = np.arange(70, dtype=np.int16)
    outside = ttl.create_const_ext_tensor(
        image, ttl.create_shape(4, 3), ttl.create_layout(10), ttl.create_offset(4, 3), 2
    )
    assert steps(outside, (1, 2))["storage"] == f"scalar {image[46]} = 34 + 12"
    assert steps(ttl.create_layout(16), (1, 3))["offset"] == "19 = 1 x 16 + 3"


def test_what_cannot_be_explained():
    with pytest.raises(CoordinateError, match="outside shape"):
        str(tw.explain(tw.row_major(4, 8), (4, 0)))
    with pytest.raises(MemoryConfigError, match="a layout has offsets, not addresses; leave out base=5"):
        tw.explain(tw.row_major(4, 8), (1, 1), base=5)
    with pytest.raises(MemoryConfigError, match="expected a TensorSpec or a tensor, got offset_t"):
        tw.explain(ttl.create_offset(1, 1), (1, 1))
