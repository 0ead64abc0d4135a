# SPDX-License-Identifier: Apache-2.0
"""Specs, memory configs, shapes, layouts and tilers, of the core and of dialects: compared, fitted, explained."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ttl, ttnn
from tilewright.errors import CoordinateError
from tilewright.mojo.layout.tile_layout import row_major as mojo_row_major
from tilewright.tiling import Tiler

from ..cases import examples

SHARDED = ttnn.create_sharded_memory_config(
    (64, 64), core_grid=ttnn.CoreGrid(y=2, x=2), strategy=ttnn.ShardStrategy.BLOCK
)


@pytest.mark.parametrize(
    ("a", "b", "different"),
    [
        (tw.TensorSpec((64, 64)), tw.TensorSpec((64, 64), "float32"), {"dtype", "pages"}),
        (tw.TensorSpec((64, 64), chip="n150"), tw.TensorSpec((64, 64)), {"chip"}),
        (ttnn.DRAM_MEMORY_CONFIG, ttnn.L1_MEMORY_CONFIG, {"buffer type"}),
        (ttnn.Shape([14, 28], [32, 32]), ttnn.Shape([14, 28]), {"padded shape"}),
        (ttl.create_shape(4, 3), ttl.create_shape(4, 4), {"shape", "elements"}),
        (tw.row_major(3, 4), mojo_row_major[3, 4](), set()),
        (tw.row_major(3, 4), tw.col_major(3, 4), {"stride", "offset of element (0, 1)"}),
        (Tiler((7, 10), (3, 4)), ttl.create_tiler(ttl.create_shape(10, 7), ttl.create_shape(4, 3)), set()),
        (Tiler((7, 10), (3, 4)), Tiler((7, 10), (3, 4), overlap=(0, 1)), {"overlap"}),
    ],
)
def test_attributes_that_differ(a, b, different):
    found = tw.diff(a, b)
    assert {name for name, _, _ in found.differences} == different
    assert bool(found) is found.same is (not different)
    assert tw.diff(a, a).same
    assert found.to_json()["same"] is found.same
    for name in different:
        assert name in str(found)


MEMORIES = (None, "l1", tw.height_sharded((2, 1)), tw.width_sharded((2, 1)), tw.block_sharded((2, 1)))
CHIPS = (None, "wormhole_n150", tw.Chip.named("wormhole_n150", harvested=0))


@st.composite
def descriptions(draw):
    """Return two specs, their memory configs or shapes, two layouts or two tilers, which are often equal."""
    kind = draw(st.sampled_from(["spec", "memory", "shape", "layout", "tiler"]))
    pair = []
    for _ in range(2):
        if kind == "layout":
            layout = draw(st.sampled_from([tw.row_major(4, 6), tw.col_major(4, 6), tw.row_major(4, (2, 3))]))
            changed = [
                layout,
                layout + 5,
                tw.with_logical_shape(layout, (4, 5)),
                tw.compose(tw.Swizzle(1, 0, 2), layout),
            ]
            pair.append(draw(st.sampled_from(changed)))
        elif kind == "tiler":
            order = draw(st.sampled_from(["row_major", "col_major", "snake"]))
            overlap, halo = draw(st.tuples(st.integers(0, 1), st.integers(0, 1)))
            pair.append(Tiler((7, 10), (3, 4), (0, overlap), (0, halo), order=order))
        else:
            memory, chip = draw(st.sampled_from(MEMORIES)), draw(st.sampled_from(CHIPS))
            alignment = draw(st.sampled_from([None, (64, 64)]))
            spec = tw.TensorSpec((64, 64), "bfloat16", "tile", memory=memory, chip=chip, alignment=alignment)
            pair.append({"spec": spec, "memory": spec.memory, "shape": spec.shape}[kind])
    return pair


@examples(100)
@given(descriptions())
def test_descriptions_are_the_same_if_they_are_equal(pair):
    a, b = pair
    assert tw.diff(a, b).same is (a == b)


def test_a_sharded_config_has_attributes_that_others_have_not():
    found = tw.diff(SHARDED, ttnn.DRAM_MEMORY_CONFIG)
    assert ("shard shape", "[32, 32]", "none") in found.differences


@pytest.mark.parametrize("other", [np.zeros(3), ttnn.Shape([2, 3]), [1, 2]])
def test_two_kinds_are_not_compared(other):
    with pytest.raises(tw.LayoutError, match="cannot compare MemoryConfig and"):
        tw.diff(SHARDED, other)


@pytest.mark.parametrize("thing", [ttnn.Shape([2, 3]), SHARDED, tw.row_major(2, 3), ttl.create_shape(4, 3)])
def test_what_holds_nothing_does_not_fit_or_miss(thing):
    with pytest.raises(tw.MemoryConfigError, match="does not state how it is stored; create a TensorSpec"):
        tw.fit(thing, "wormhole_n150")


def test_tensors_in_memory_fit_as_their_storage():
    internal = ttl.create_int_tensor(np.arange(24, dtype=np.int16), ttl.create_shape(4, 3), ttl.create_layout(8))
    assert "interleaved in L1" in str(tw.fit(internal, "wormhole_n150"))
    tensor = tw.TileTensor(np.zeros(12), tw.row_major(3, 4))
    assert "[1, 12] float64" in str(tw.fit(tensor, "wormhole_n150"))
    large = tw.TensorSpec((1, 1_600_000), "uint8", memory="l1", chip="wormhole_n150")
    shared = ttl.create_int_tensor(np.zeros(1_600_000, np.uint8), ttl.create_shape(1_600_000))
    assert not tw.fit(shared, "wormhole_n150")
    assert not tw.fit(large)


def test_elements_of_shapes_and_tilers_are_explained():
    assert str(tw.explain(ttnn.Shape([14, 28], [32, 32]), (2, 3))).endswith("67 = 2 x 32 + 3")
    tiler = ttl.create_tiler(ttl.create_shape(10, 7), ttl.create_shape(4, 3))
    assert tw.explain(tiler, (4, 5)).tiles == ((4, (1, 1), (1, 1)),)


@pytest.mark.parametrize("order", ["row_major", "col_major", "snake", "hilbert"])
@pytest.mark.parametrize("overlap", [(0, 0), (1, 2)])
def test_every_tile_that_holds_an_element_is_named(order, overlap):
    tiler = Tiler((9, 11), (4, 5), overlap=overlap, order=order)
    for i in range(9):
        for j in range(11):
            found = {number: inside for number, _, inside in tw.explain(tiler, (i, j)).tiles}
            boxes = {number: tiler[number] for number in range(len(tiler))}
            expected = {
                number: (i - box.offset[0], j - box.offset[1])
                for number, box in boxes.items()
                if all(a <= c < b for a, c, b in zip(box.offset, (i, j), box.end, strict=True))
            }
            assert found == expected


def test_a_tiler_has_no_addresses():
    with pytest.raises(tw.MemoryConfigError, match="a tiler has tiles, not addresses; leave out base=64"):
        tw.explain(Tiler((9, 11), (4, 5)), (0, 0), base=64)


def test_elements_outside_a_tiler():
    with pytest.raises(CoordinateError, match="outside a space of 9 x 11"):
        Tiler((9, 11), (4, 5)).explain_element((9, 0))
