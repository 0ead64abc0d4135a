# SPDX-License-Identifier: Apache-2.0
"""LayoutTensor: a tile tensor whose edges are masks, that can be composed, and has copies that pad."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tensor.strategies import VIEWS, chains, iota, roots
from tests.tensor.test_view_chains import assert_like_model
from tilewright_mojo.layout import layout_tensor
from tilewright_mojo.std.gpu.memory import Fill

from tilewright import LayoutError, Swizzle, col_major, compose, row_major
from tilewright.mojo.layout import LayoutTensor, TileTensor, lt_to_tt
from tilewright.mojo.layout.tile_layout import Layout
from tilewright.mojo.layout.tile_tensor import TileTensorIter, flatten_leading, stack_allocation

fewer = settings(max_examples=max(1, settings().max_examples // 2))


@given(st.data())
@fewer
def test_it_is_the_same_view_and_goes_back(data):
    origin = data.draw(roots())
    walk = data.draw(chains(origin))[-1]
    tensor = walk.tensor.to_layout_tensor()
    assert type(tensor) is LayoutTensor
    assert_like_model(tensor, walk.model, origin.storage)
    assert tensor.masked is tensor.is_ragged
    for back in (tensor.to_tile_tensor(), lt_to_tt(tensor)):
        assert type(back) is TileTensor
        assert_like_model(back, walk.model, origin.storage)


@given(st.data())
@fewer
def test_all_its_views_are_layout_tensors_too(data):
    origin = data.draw(roots())
    origin.walk.tensor = origin.walk.tensor.to_layout_tensor()
    walk = data.draw(chains(origin, views=tuple([name for name in VIEWS if name != "same"])))[-1]
    assert type(walk.tensor) is LayoutTensor
    assert_like_model(walk.tensor, walk.model, origin.storage)


def test_element_layouts_nesting_and_mutability_are_kept():
    vectors = TileTensor(iota(96), row_major(8, 12)).vectorize[2, 4]().as_immut()
    tensor = vectors.to_layout_tensor()
    assert (tensor.element_layout, tensor.layout, tensor.readonly) == (vectors.element_layout, vectors.layout, True)
    nested = Layout(((2, 2), (2, 3)), ((2, 12), (1, 4)))
    assert str(TileTensor(iota(24), nested).to_layout_tensor().runtime_layout) == str(nested)


# Composition: element i of the result is element layout(i) of the tensor.


@given(st.data())
def test_composition_selects_by_one_index(data):
    origin = data.draw(roots(ragged=False))
    tensor, model = origin.walk.tensor.to_layout_tensor(), origin.walk.model
    n = data.draw(st.integers(1, model.size))
    step = data.draw(st.integers(1, max(1, (model.size - 1) // max(n - 1, 1))))
    start = data.draw(st.integers(0, model.size - 1 - (n - 1) * step))
    found = tensor.compose(Layout((n,), (step,)) + start)
    places = model.places.reshape(-1, order="F")[start : start + n * step : step][:n]
    assert isinstance(found, LayoutTensor)
    np.testing.assert_array_equal(found.to_numpy(), origin.storage[places])
    np.testing.assert_array_equal(tensor.composition(Layout((n,), (step,)) + start).to_numpy(), origin.storage[places])


def test_composition_by_modes():
    tensor = TileTensor(iota(32), row_major(4, 8)).to_layout_tensor()
    found = tensor.compose((Layout((2,), (2,)), Layout((4,), (2,))))
    np.testing.assert_array_equal(found.to_numpy(), iota(32).reshape(4, 8)[::2, ::2])


def test_writes_through_a_composition_reach_the_storage():
    storage = iota(32)
    TileTensor(storage, row_major(4, 8)).to_layout_tensor().compose(Layout((4,), (1,))).fill(-1)
    assert np.flatnonzero(storage == -1).tolist() == [0, 8, 16, 24]


def test_vectors_are_composed_before_they_are_made():
    with pytest.raises(LayoutError, match="compose it before vectorize"):
        TileTensor(iota(32), row_major(4, 8)).vectorize[1, 4]().to_layout_tensor().compose(Layout((2,), (1,)))


# Masked tiles and their copies.


def test_tiles_at_the_edge_are_masked():
    tensor = TileTensor(iota(35), row_major(5, 7)).to_layout_tensor()
    masked = [tile.masked for tile in tensor.tiles[2, 4]()]
    assert masked == [False, True, False, True, True, True]
    assert tensor.tile[2, 4](2, 1).mask().tolist() == [[True, True, True, False], [False] * 4]


def test_masked_copies_pad_the_tile_and_spare_the_parent():
    storage = iota(35)
    source = TileTensor(storage, row_major(5, 7))
    staged = stack_allocation["int64"](row_major(2, 4)).to_layout_tensor()
    assert staged.fill(9).copy_from_masked(source.tile[2, 4](2, 1), fill=-1).to_numpy().tolist() == [
        [32, 33, 34, -1],
        [-1, -1, -1, -1],
    ]
    assert staged.copy_from_masked(source.tile[2, 4](2, 1)).to_numpy()[1].tolist() == [0, 0, 0, 0]
    np.testing.assert_array_equal(storage, iota(35))


@pytest.mark.parametrize("name", [name for name in layout_tensor.__all__ if name.startswith("copy")])
def test_copies_between_memories_move_ragged_matrices_tile_by_tile(name):
    move = getattr(layout_tensor, name)
    source = TileTensor(iota(35), row_major(5, 7))
    target = TileTensor(np.zeros(35, dtype=np.int64), col_major(5, 7))
    staged = stack_allocation["int64"](compose(Swizzle(1, 0, 2), row_major(2, 4)))
    for into, out_of in zip(target.tiles[2, 4](), source.tiles[2, 4](), strict=True):
        move(staged, out_of)
        move(into, staged)
    np.testing.assert_array_equal(target.to_numpy(), source.to_numpy())


# Other helpers of the dialect that give tensors.


def test_an_iterator_steps_through_memory_or_around_it():
    memory = TileTensor(iota(30), row_major(30))
    ring = TileTensorIter(memory, row_major(2, 3), bound=20, stride=6, circular=True)
    assert [ring.next(k).offset for k in range(8)] == [0, 6, 12, 18, 4, 10, 16, 2]
    ring += 3
    assert ring.get().to_numpy().tolist() == [[18, 19, 20], [21, 22, 23]]
    line = TileTensorIter(memory, row_major(2, 3), bound=20, stride=6)
    assert [part.offset for part in line] == [0, 6, 12, 18]
    with pytest.raises(IndexError, match="24 is past the bound 20"):
        line.next(4)
    with pytest.raises(LayoutError, match="must be at least 1, got 0"):
        TileTensorIter(memory, row_major(2, 3), bound=0)


def test_leading_modes_flatten_where_their_strides_allow():
    tensor = TileTensor(iota(24), row_major(2, 3, 4))
    np.testing.assert_array_equal(flatten_leading(tensor).to_numpy(), iota(24).reshape(6, 4))
    with pytest.raises(LayoutError, match=r"stride 12 is not 2 \* 4"):
        flatten_leading(tensor.slice[:, 0:2, :]())
    with pytest.raises(LayoutError, match="three plain modes"):
        flatten_leading(TileTensor(iota(24), row_major(4, 6)))


def test_masked_asynchronous_copies_skip_what_is_masked():
    edge = LayoutTensor(np.arange(12.0), row_major(3, 4)).tile[2, 2](1, 1)
    for options, wanted in (
        ({}, [[10.0, 11.0], [7.0, 7.0]]),
        ({"fill": Fill.ZERO}, [[10.0, 11.0], [0.0, 0.0]]),
    ):
        target = LayoutTensor(np.full(4, 7.0), row_major(2, 2))
        assert target.copy_from_async(edge, is_masked=True, **options) is target
        assert target.to_numpy().tolist() == wanted
    target = LayoutTensor(np.full(4, 7.0), row_major(2, 2)).copy_from_async(edge, 1, is_masked=True, fill=Fill.NAN)
    np.testing.assert_array_equal(target.to_numpy(), [[10.0, np.nan], [np.nan, np.nan]])
    with pytest.raises(LayoutError, match="give fill"):
        LayoutTensor(np.zeros(4), row_major(2, 2)).copy_from_async(edge)
    with pytest.raises(LayoutError, match="a masked copy needs tensors of one shape and type"):
        LayoutTensor(np.zeros(3), row_major(3)).copy_from_async(edge, is_masked=True)
    with pytest.raises(LayoutError, match="with a swizzle is not supported"):
        LayoutTensor(np.zeros(4), row_major(2, 2)).copy_from_async(edge, swizzle=Swizzle(1, 0, 1))
