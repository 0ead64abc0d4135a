# SPDX-License-Identifier: Apache-2.0
"""Any chain of views equals its model: the same indexing done by NumPy on a table of places."""

import copy

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tilewright import Layout, LayoutError, row_major
from tilewright.mojo.layout import LayoutTensor, TileTensor

from ..cases import examples
from .model import listed
from .strategies import VIEWS, chains, roots

FILL = -7


def lists_otherwise(tensor):
    """Whether the scalars of an element may be listed in the order of Mojo's older tensor."""
    return isinstance(tensor, LayoutTensor) and tensor.element_size > 1


def assert_like_model(tensor, model, storage):
    """Check everything that is asked of a view as a whole."""
    assert tensor.shape == model.shape
    assert tensor.rank == model.rank
    assert tensor.size == tensor.size == model.size
    assert tensor.element_size == int(np.prod(model.lanes))
    assert tensor.is_ragged == (not model.valid.all())
    np.testing.assert_array_equal(tensor.mask(), model.given_out(model.valid))
    np.testing.assert_array_equal(tensor.to_numpy(fill=FILL), model.padded(storage, FILL))
    assert_valid_part(tensor, model, storage)
    if not lists_otherwise(tensor):
        assert format(tensor, "mojo") == model.text(storage, tensor.flat_rank)
    if model.valid.any() and model.valid.reshape(-1)[0]:
        first = model.places.reshape(-1)[0]
        assert tensor.offset == tensor.ptr.offset == first
        assert tensor.ptr[0] == tensor.raw_load[1](0)[0] == storage[first]


def assert_valid_part(tensor, model, storage):
    if model.box is None:
        with pytest.raises(LayoutError, match="not a box"):
            _ = tensor.valid_shape
    elif model.elements.any():
        assert tensor.valid_shape == model.box
    else:
        assert model.size == 0 or 0 in tensor.valid_shape
    if not model.readable:
        with pytest.raises(LayoutError, match=r"give\s+fill=x"):
            tensor.to_numpy()
    elif model.elements.any():
        np.testing.assert_array_equal(tensor.to_numpy(), model.read(storage))
    else:
        assert tensor.to_numpy().size == 0


def assert_elements_like_model(tensor, model, storage):
    """Check every element on its own, through every way to reach one."""
    tensor = tensor.to_tile_tensor() if lists_otherwise(tensor) else tensor
    order = {c: k for k, c in enumerate(np.ndindex(*model.shape[::-1]))}
    for c in model.coordinates():
        places, valid = model.places[c].reshape(model.block), model.valid[c].reshape(model.block)
        if valid.all():
            if c:
                assert tensor.ptr_at_offset(*c).offset == places.reshape(-1)[0] == tensor.offset + tensor.layout(*c)
            np.testing.assert_array_equal(np.asarray(tensor[c]).reshape(-1), storage[places].reshape(-1))
            np.testing.assert_array_equal(np.asarray(tensor.load(c)).reshape(-1), storage[places].reshape(-1))
            if c:
                linear = np.asarray(tensor.load(order[c[::-1]]))
                np.testing.assert_array_equal(linear.reshape(-1), storage[places].reshape(-1))
        else:
            with pytest.raises(IndexError, match="valid"):
                tensor[c]
            with pytest.raises(IndexError, match="valid"):
                tensor.load(c)
        filled = np.where(valid, storage[np.where(valid, places, 0)], FILL)
        np.testing.assert_array_equal(np.asarray(tensor.load(c, fill=FILL)).reshape(-1), filled.reshape(-1))


@given(st.data())
@examples(200)
def test_a_chain_of_views_equals_its_model(data):
    origin = data.draw(roots())
    for walk in data.draw(chains(origin)):
        note(" . ".join(walk.steps))
        assert_like_model(walk.tensor, walk.model, origin.storage)


@given(st.data())
def test_every_element_of_a_chain_equals_its_model(data):
    origin = data.draw(roots(most=36))
    walk = data.draw(chains(origin))[-1]
    note(" . ".join(walk.steps))
    assert_elements_like_model(walk.tensor, walk.model, origin.storage)


@pytest.mark.parametrize("view", sorted(VIEWS))
@given(data=st.data())
@examples(25)
def test_every_kind_of_view_equals_its_model_on_every_kind_of_tensor(view, data):
    origin = data.draw(roots())
    before = data.draw(chains(origin, longest=1))[-1]
    after = data.draw(VIEWS[view](before))
    if after is not None:
        note(" . ".join(after.steps))
        assert_like_model(after.tensor, after.model, origin.storage)


@given(st.data())
def test_views_share_memory_and_keep_their_labels(data):
    origin = data.draw(roots())
    tensor = origin.walk.tensor.address_space_cast[
        data.draw(st.sampled_from(list(type(origin.walk.tensor.address_space))))
    ]()
    origin.walk.tensor = tensor
    walk = data.draw(chains(origin, views=tuple([name for name in VIEWS if name != "same"])))[-1]
    assert walk.tensor.ptr.storage is origin.storage
    assert walk.tensor.dtype is tensor.dtype
    assert walk.tensor.address_space is tensor.address_space
    assert walk.tensor.mut is tensor.mut is True


@given(st.data())
def test_a_read_only_view_stays_read_only_through_any_chain(data):
    origin = data.draw(roots())
    ways = [lambda t: t.as_immut(), lambda t: t.as_imm(), TileTensor]
    origin.walk.tensor = data.draw(st.sampled_from(ways))(origin.walk.tensor)
    walk = data.draw(chains(origin))[-1]
    assert walk.tensor.readonly
    assert not walk.tensor.mut
    assert_like_model(walk.tensor, walk.model, origin.storage)


@given(st.data())
def test_a_copy_of_a_view_is_the_same_view(data):
    origin = data.draw(roots())
    walk = data.draw(chains(origin))[-1]
    assert_like_model(copy.copy(walk.tensor), walk.model, origin.storage)
    assert copy.copy(walk.tensor).ptr.storage is origin.storage


@given(st.data())
def test_dynamic_extents_and_strides_change_no_number(data):
    origin = data.draw(roots())
    walk = data.draw(chains(origin))[-1]
    dynamic = walk.tensor.make_dynamic()
    assert_like_model(dynamic, walk.model, origin.storage)
    assert dynamic.static_shape == (-1,) * dynamic.flat_rank
    assert dynamic.shape_known is (dynamic.flat_rank == 0)


@given(st.data())
def test_reshape_refuses_exactly_what_does_not_follow_row_major_order(data):
    origin = data.draw(roots())
    walk = data.draw(chains(origin, longest=2))[-1]
    if walk.model.size == 0 or (walk.model.follows_row_major() and not isinstance(walk.tensor.layout, Layout)):
        return
    ways = [lambda: walk.tensor.reshape(walk.model.size), walk.tensor.as_span]
    if walk.tensor.all_dims_known:
        ways += [walk.tensor.reshape[walk.model.size]]
        if not isinstance(walk.tensor, LayoutTensor):  # whose modes are merged where they can be
            ways += [walk.tensor.coalesce]
    for reshaped in ways:
        if walk.model.follows_row_major():
            reshaped()
        else:
            with pytest.raises(LayoutError, match="row-major order"):
                reshaped()


@given(st.data())
def test_flat_lists_the_valid_elements_in_the_stated_order(data):
    origin = data.draw(roots())
    walk = data.draw(chains(origin))[-1]
    if not walk.model.readable:
        with pytest.raises(LayoutError):
            walk.tensor.flat()
        return
    values = walk.model.read(origin.storage)
    rank = walk.model.rank
    for order, axes in (("row", range(rank)), ("colex", reversed(range(rank)))):
        flat = values.transpose(*axes, *range(rank, values.ndim)).reshape(-1, *walk.model.block)
        np.testing.assert_array_equal(walk.tensor.flat(order=order), flat)


@given(st.data())
def test_as_strided_shows_the_valid_scalars_without_a_copy(data):
    origin = data.draw(roots(kinds=("compact", "gaps", "reversed", "broadcast")))
    walk = data.draw(chains(origin, views=("tile", "vectorize", "subscript", "transpose", "split")))[-1]
    try:
        seen = walk.tensor.as_strided()
    except LayoutError:
        nested = walk.model.lanes or any(part is None or len(part) > 1 for part in walk.model.leaves)
        composed = not isinstance(walk.tensor.layout, Layout)
        assert walk.model.box is None or composed or (nested and not walk.model.valid.all())
        return
    scalars = walk.model.places[walk.model.valid]
    assert sorted(seen.reshape(-1).tolist()) == sorted(origin.storage[scalars].tolist())
    assert seen.size == 0 or np.shares_memory(seen, origin.storage)


def test_as_strided_shows_the_lanes_of_a_ragged_edge_within_their_mode():
    storage = np.arange(88)
    vectors = TileTensor(storage, row_major(8, 11)).vectorize[1, 2]()
    np.testing.assert_array_equal(vectors.as_strided(), storage.reshape(8, 11))
    edge = TileTensor(storage, row_major(8, 11)).tile[8, 4](0, 2).vectorize[1, 2]()
    np.testing.assert_array_equal(edge.as_strided(), storage.reshape(8, 11)[:, 8:])


@given(st.data())
def test_invalid_scalars_print_as_underscores(data):
    origin = data.draw(roots())
    walk = data.draw(chains(origin, views=("tile", "distribute", "vectorize")))[-1]
    assert format(walk.tensor, "mojo").count("_") == (~walk.model.valid).sum()
    if walk.model.rank == 1 and not walk.model.lanes:
        shown = [str(place) if ok else "_" for place, ok in zip(walk.model.places, walk.model.valid, strict=True)]
        assert str(walk.tensor) == (listed(shown) if shown else "")


def test_whole_vectors_beside_dropped_modes_are_readable():
    vectors = TileTensor(np.arange(64), Layout((4, 4, 4))).vectorize[1, 1, 2]()[0:1, 0, 0]
    assert vectors.tile[2](0).to_numpy().tolist() == [[0, 16]]


def test_empty_views_of_nested_modes_have_vectors_that_do_not_divide():
    nested = TileTensor(np.arange(96), Layout(((2, 2), 4, 4), ((1, 3), 6, 24)))
    empty = nested[:, 0:0, :].vectorize[3, 1, 2]()
    assert empty.shape == (2, 0, 2)
    assert empty.to_numpy().shape == (2, 0, 2, 3, 2)
