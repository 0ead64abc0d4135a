# SPDX-License-Identifier: Apache-2.0
"""Writes: what is written through a view is seen by its parent at exactly the view's places, and nowhere else."""

import operator

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tilewright import Layout, LayoutError, Swizzle, cast, col_major, compose, row_major
from tilewright.mojo.layout import Coord, TileTensor

from ..cases import examples
from .strategies import APART, chains, iota, roots

NEW = 1000
fewer = settings(max_examples=max(1, settings().max_examples // 2))


def drawn_view(data, kinds=APART, **options):
    origin = data.draw(roots(kinds=kinds, **options))
    walk = data.draw(chains(origin))[-1]
    note(" . ".join(walk.steps))
    return origin.storage, walk.tensor, walk.model


def fresh_values(model):
    """Return an element array with numbers that storage does not hold."""
    return model.given_out(NEW + np.arange(model.places.size).reshape(model.places.shape))


def written(storage, model, values):
    """Return storage after the valid scalars of a model got the values of an element array."""
    after = storage.copy()
    after[model.places[model.valid]] = values.reshape(model.places.shape)[model.valid]
    return after


# Single elements.


@given(st.data())
@fewer
def test_an_element_is_written_to_its_places_and_nowhere_else(data):
    storage, tensor, model = drawn_view(data, most=24)
    expected, values = storage.copy(), fresh_values(model)
    for k, c in enumerate(model.coordinates()):
        valid, value = model.valid[c], values[c]
        write = [
            lambda c=c, value=value: tensor.__setitem__(c, value),
            lambda c=c, value=value: tensor.store(c, value),
            lambda c=c, value=value: tensor.store(*c, value) if c else tensor.store((), value),
            lambda c=c, value=value: tensor.store(Coord(*c), value),
        ][k % 4]
        if valid.all():
            write()
            expected[model.places[c].reshape(-1)] = np.asarray(value).reshape(-1)
        else:
            with pytest.raises(IndexError, match="valid"):
                write()
            tensor.store(c, value, fill=0)
            expected[model.places[c][valid]] = np.asarray(value).reshape(model.lanes)[valid]
        np.testing.assert_array_equal(storage, expected)


@given(st.data())
@fewer
def test_a_scalar_goes_into_all_lanes_of_an_element(data):
    storage, tensor, model = drawn_view(data, most=24)
    expected = storage.copy()
    for c in model.coordinates():
        if model.valid[c].all():
            tensor[c] = NEW
            expected[model.places[c]] = NEW
    np.testing.assert_array_equal(storage, expected)


@given(st.data())
@fewer
def test_a_store_of_some_width_writes_scalars_that_follow_each_other(data):
    storage, tensor, model = drawn_view(data, most=24)
    width = data.draw(st.integers(1, 5))
    for c in model.coordinates():
        first = model.places[c].reshape(-1)[0]
        if not model.valid[c].reshape(-1)[0]:
            continue
        before, values = storage.copy(), NEW + np.arange(width)
        if first + width > storage.size:
            with pytest.raises(IndexError, match="exceed the storage"):
                tensor.store[width](c, values)
        else:
            tensor.store[width](c, values)
            before[first : first + width] = values
            np.testing.assert_array_equal(tensor.load[width](c), values)
        np.testing.assert_array_equal(storage, before)


# Whole views.


@given(st.data())
def test_fill_sets_every_valid_scalar_and_no_other(data):
    kinds = (*APART, "overlapping", "broadcast")
    storage, tensor, model = drawn_view(data, kinds=kinds)
    expected = storage.copy()
    expected[model.places[model.valid]] = NEW
    assert tensor.fill(NEW, use_runtime_layout=data.draw(st.sampled_from([None, True, False]))) is tensor
    np.testing.assert_array_equal(storage, expected)


@given(st.data())
def test_copy_from_a_tensor_of_the_same_shape_goes_by_coordinate(data):
    storage, tensor, model = drawn_view(data)
    if len(model.lanes) not in (0, model.rank) or not model.rank:
        return
    scalars = tuple([n * k for n, k in zip(model.shape, model.lanes, strict=True)]) if model.lanes else model.shape
    source = NEW + np.arange(int(np.prod(scalars))).reshape(scalars)
    other = TileTensor(np.asfortranarray(source)) if data.draw(st.booleans()) else TileTensor(source)
    by_element = other.vectorize[model.lanes]().to_numpy() if model.lanes and max(model.lanes) > 1 else source
    expected = written(storage, model, by_element)
    assert tensor.copy_from(other) is tensor
    np.testing.assert_array_equal(storage, expected)


@given(st.data())
def test_copy_to_and_back_restores_the_storage(data):
    storage, tensor, model = drawn_view(data)
    if not model.readable or model.size == 0:
        return
    before = storage.copy()
    kept = tensor.to_numpy()
    tensor.fill(NEW)
    if model.valid.any():
        assert (storage != before).any()
    if not model.lanes:
        tensor.copy_from(kept)
        np.testing.assert_array_equal(storage, before)


@given(st.data())
@fewer
def test_a_subscript_assigns_to_the_same_places_as_numpy(data):
    origin = data.draw(roots(kinds=APART, ragged=False))
    storage, tensor, model = origin.storage, origin.walk.tensor, origin.walk.model
    edges = [st.none() | st.integers(-n - 1, n + 1) for n in model.shape]
    key = tuple(
        [slice(data.draw(edge), data.draw(edge), data.draw(st.sampled_from([None, 1, 2, -1]))) for edge in edges]
    )
    chosen = model.places[key]
    value = data.draw(st.sampled_from(["a number", "an array", "a tensor"]))
    given_value = NEW if value == "a number" else NEW + np.arange(chosen.size).reshape(chosen.shape)
    expected = storage.copy()
    expected[chosen] = given_value
    tensor[key] = TileTensor(given_value) if value == "a tensor" else given_value
    np.testing.assert_array_equal(storage, expected)


# copy_from, case by case.


@pytest.mark.parametrize("order", ["row", "colex"])
def test_other_shapes_copy_in_a_stated_order(order):
    source = TileTensor(iota(12), row_major(3, 4))
    target = TileTensor(np.zeros(12, dtype=np.int64), col_major(2, 6))
    target.copy_from(source, order=order)
    layout = "C" if order == "row" else "F"
    np.testing.assert_array_equal(
        target.to_numpy(), iota(12).reshape(3, 4).reshape(-1, order=layout).reshape(2, 6, order=layout)
    )


def test_other_shapes_need_an_order_and_the_same_count():
    target = TileTensor(np.zeros(12), row_major(2, 6))
    with pytest.raises(LayoutError, match=r"shape \(3, 4\) into \(2, 6\).*order='row' or 'colex'"):
        target.copy_from(TileTensor(iota(12), row_major(3, 4)))
    with pytest.raises(LayoutError, match="10 scalars into 12"):
        target.copy_from(TileTensor(iota(10), row_major(10)), order="row")
    with pytest.raises(LayoutError, match=r"expected order 'row' .*, got 'column'"):
        target.copy_from(TileTensor(iota(12), row_major(12)), order="column")
    assert not target.to_numpy().any()


def test_equal_mode_sizes_mean_the_same_coordinate_however_the_modes_nest():
    nested = TileTensor(iota(24), Layout(((2, 2), (2, 3)), ((2, 12), (1, 4))))
    flat = TileTensor(np.zeros(24, dtype=np.int64), row_major(4, 6)).copy_from(nested)
    np.testing.assert_array_equal(flat.to_numpy(), nested.to_numpy())


@pytest.mark.parametrize("step", [1, -1])
def test_overlapping_views_copy_as_if_the_source_was_read_first(step):
    storage = iota(10)
    tensor = TileTensor(storage, row_major(10))
    tensor[2:8].copy_from(tensor[0:6] if step > 0 else tensor[7:1:-1])
    expected = iota(10)
    expected[2:8] = iota(10)[0:6] if step > 0 else iota(10)[7:1:-1]
    np.testing.assert_array_equal(storage, expected)


def test_a_square_can_be_transposed_in_place():
    tensor = TileTensor(iota(16), row_major(4, 4))
    tensor.copy_from(tensor.transpose())
    np.testing.assert_array_equal(tensor.to_numpy(), iota(16).reshape(4, 4).T)


def test_a_swizzled_view_can_be_copied_onto_itself_unswizzled():
    storage = iota(64)
    swizzled = TileTensor(storage, compose(Swizzle(3, 0, 3), row_major(8, 8)))
    values = swizzled.to_numpy()
    TileTensor(storage, row_major(8, 8)).copy_from(swizzled)
    np.testing.assert_array_equal(storage.reshape(8, 8), values)


@pytest.mark.parametrize(
    ("wide", "narrow"), [("float64", "float32"), ("float32", "bfloat16"), ("float32", "float8_e4m3")]
)
def test_copies_convert_as_cast_does(wide, narrow):
    numbers = cast(np.linspace(-3, 3, 24, dtype=np.float32), wide)
    target = TileTensor(cast(np.zeros(24, dtype=np.float32), narrow), row_major(4, 6))
    target.copy_from(TileTensor(numbers, row_major(4, 6)))
    np.testing.assert_array_equal(target.to_numpy(), cast(numbers, narrow).reshape(4, 6))
    back = TileTensor(np.zeros(24, dtype=numbers.dtype), col_major(4, 6)).copy_from(target)
    np.testing.assert_array_equal(back.to_numpy(), cast(cast(numbers, narrow), wide).reshape(4, 6))


def test_large_copies_convert_and_permute_too():
    numbers = np.arange(300 * 200, dtype=np.float32)
    target = TileTensor(np.zeros(300 * 200, dtype=np.float64), col_major(300, 200))
    target.copy_from(TileTensor(numbers, row_major(300, 200)))
    np.testing.assert_array_equal(target.to_numpy(), numbers.reshape(300, 200))


def test_large_overlapping_copies_are_safe():
    tensor = TileTensor(iota(250 * 250), row_major(250, 250))
    tensor.copy_from(tensor.transpose())
    np.testing.assert_array_equal(tensor.to_numpy(), iota(250 * 250).reshape(250, 250).T)


def test_a_ragged_source_needs_a_fill_for_a_whole_target():
    edge = TileTensor(iota(12), row_major(3, 4)).tile[2, 3](1, 1)
    target = TileTensor(np.full(6, NEW), row_major(2, 3))
    with pytest.raises(LayoutError, match=r"valid in \(1, 1\) of \(2, 3\).*\(2, 3\) of the target.*fill=x"):
        target.copy_from(edge)
    assert (target.to_numpy() == NEW).all()
    target.copy_from(edge, fill=-1)
    assert target.to_numpy().tolist() == [[11, -1, -1], [-1, -1, -1]]


def test_a_ragged_target_takes_what_is_valid_of_a_whole_source():
    storage = iota(12)
    edge = TileTensor(storage, row_major(3, 4)).tile[2, 3](1, 1)
    edge.copy_from(TileTensor(NEW + iota(6), row_major(2, 3)))
    assert storage.tolist() == [*range(11), NEW]


def test_ragged_edges_of_one_shape_copy_their_valid_part():
    storage = np.zeros(12, dtype=np.int64)
    source = TileTensor(iota(12), row_major(3, 4)).tiles[2, 3]()
    target = TileTensor(storage, row_major(3, 4)).tiles[2, 3]()
    for into, out_of in zip(target, source, strict=True):
        into.copy_from(out_of)
    np.testing.assert_array_equal(storage, iota(12))


def test_fill_of_a_copy_pads_the_whole_target_but_nothing_around_it():
    storage = np.full(30, NEW)
    target = TileTensor(storage, Layout((2, 3), (10, 1)))
    target.copy_from(TileTensor(iota(12), row_major(3, 4)).tile[2, 3](1, 0), fill=0)
    assert target.to_numpy().tolist() == [[8, 9, 10], [0, 0, 0]]
    assert (np.delete(storage, [0, 1, 2, 10, 11, 12]) == NEW).all()


def test_copy_to_writes_into_arrays_and_tensors():
    tensor = TileTensor(iota(6), col_major(2, 3))
    array = np.zeros((2, 3), dtype=np.float32)
    assert tensor.copy_to(array) is array
    assert array.tolist() == [[0, 2, 4], [1, 3, 5]]
    other = TileTensor(np.zeros(6, dtype=np.int64), row_major(2, 3))
    assert tensor.copy_to(other) is other
    assert other.equals(tensor)


# Arithmetic in place: on equal shapes, or a tensor of rank 1 along mode 0.

IN_PLACE = {"+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "//=": operator.ifloordiv}


@pytest.mark.parametrize("name", sorted(IN_PLACE))
@given(data=st.data())
@examples(25)
def test_arithmetic_in_place_changes_the_places_of_a_view_only(name, data):
    storage, tensor, model = drawn_view(data)
    if not model.readable or model.size == 0 or not model.valid.all():
        return
    expected = storage.copy()
    expected[model.places] = IN_PLACE[name](storage[model.places], 3)
    after = IN_PLACE[name](tensor, 3)
    assert after is tensor
    np.testing.assert_array_equal(storage, expected)


@pytest.mark.parametrize("name", sorted(IN_PLACE))
def test_tensors_of_equal_shape_combine_element_by_element(name):
    left, right = TileTensor(iota(12) + 5, row_major(3, 4)), TileTensor(iota(12) + 1, col_major(3, 4))
    expected = IN_PLACE[name](left.to_numpy(), right.to_numpy())
    IN_PLACE[name](left, right)
    np.testing.assert_array_equal(left.to_numpy(), expected)


def test_a_tensor_of_rank_1_goes_along_mode_0():
    tensor = TileTensor(iota(12), row_major(3, 4))
    tensor += TileTensor(np.array([100, 200, 300]), row_major(3))
    np.testing.assert_array_equal(tensor.to_numpy(), iota(12).reshape(3, 4) + np.array([[100], [200], [300]]))


def test_on_a_square_the_rule_for_rank_1_is_not_that_of_numpy():
    tensor = TileTensor(np.zeros(4, dtype=np.int64), row_major(2, 2))
    tensor += TileTensor(np.array([1, 2]), row_major(2))
    assert tensor.to_numpy().tolist() == [[1, 1], [2, 2]]
    tensor += np.array([10, 20])  # arrays broadcast as in NumPy
    assert tensor.to_numpy().tolist() == [[11, 21], [12, 22]]


def test_other_shapes_are_refused_in_place():
    tensor = TileTensor(iota(12), row_major(3, 4))
    for shape in [(4,), (1, 4), (3, 1), (1,), (12,)]:
        with pytest.raises(LayoutError, match=r"needs equal shapes, or a tensor of rank 1 along mode 0"):
            tensor += TileTensor(np.ones(shape, dtype=np.int64))
    np.testing.assert_array_equal(tensor.to_numpy(), iota(12).reshape(3, 4))


def test_a_result_that_would_lose_its_fraction_is_refused():
    tensor = TileTensor(iota(4), row_major(2, 2))
    with pytest.raises(LayoutError, match=r"result of float64 in a tensor of int64.*//="):
        tensor /= 2
    assert tensor.to_numpy().tolist() == [[0, 1], [2, 3]]
    floats = TileTensor(np.arange(4, dtype=np.float32), row_major(2, 2))
    floats /= 2
    assert floats.to_numpy().tolist() == [[0, 0.5], [1, 1.5]]


def test_functions_in_place():
    tensor = TileTensor(np.array([-4.0, 2.0, 0.5, 1.0]), col_major(2, 2))
    assert tensor.abs() is tensor
    assert tensor.to_numpy().tolist() == [[4, 0.5], [2, 1]]
    assert tensor.recip().to_numpy().tolist() == [[0.25, 2], [0.5, 1]]
    assert tensor.max(0.5).to_numpy().tolist() == [[0.5, 2], [0.5, 1]]
    assert tensor.min(TileTensor(np.array([1.0, 0.75]), row_major(2))).to_numpy().tolist() == [[0.5, 1], [0.5, 0.75]]
    np.testing.assert_array_equal(tensor.copy_from(np.zeros((2, 2))).exp[2.0]().to_numpy(), np.ones((2, 2)))


def test_in_place_arithmetic_of_a_ragged_view_touches_its_valid_part():
    storage = iota(12)
    edge = TileTensor(storage, row_major(3, 4)).tile[2, 3](1, 1)
    edge += 100
    assert storage.tolist() == [*range(11), 111]


def test_a_view_added_to_itself_transposed():
    tensor = TileTensor(iota(9), row_major(3, 3))
    tensor += tensor.transpose()
    np.testing.assert_array_equal(tensor.to_numpy(), iota(9).reshape(3, 3) + iota(9).reshape(3, 3).T)


# Arithmetic out of place: NumPy's rules, a new tensor.

OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}


@pytest.mark.parametrize("name", sorted(OPERATORS))
@pytest.mark.parametrize(
    "other", [3, np.array([1, 2, 3, 4]), np.array([[1], [2], [3]])], ids=["number", "row", "column"]
)
def test_arithmetic_out_of_place_is_numpys(name, other):
    storage = iota(12) + 1
    tensor = TileTensor(storage, col_major(3, 4))
    plain = tensor.to_numpy()
    for result, expected in [
        (OPERATORS[name](tensor, other), OPERATORS[name](plain, other)),
        (OPERATORS[name](other, tensor), OPERATORS[name](other, plain)),
        (OPERATORS[name](tensor, TileTensor(np.atleast_1d(other))), OPERATORS[name](plain, np.atleast_1d(other))),
    ]:
        assert isinstance(result, TileTensor)
        assert result.is_row_major
        np.testing.assert_array_equal(result.to_numpy(), expected)
    np.testing.assert_array_equal(storage, iota(12) + 1)


def test_unary_operators_comparisons_and_functions_of_numpy():
    tensor = TileTensor(np.array([-1.0, 4.0, 9.0, -16.0]), row_major(2, 2))
    plain = tensor.to_numpy()
    np.testing.assert_array_equal((-tensor).to_numpy(), -plain)
    np.testing.assert_array_equal(abs(tensor).to_numpy(), abs(plain))
    np.testing.assert_array_equal(np.sqrt(abs(tensor)).to_numpy(), np.sqrt(abs(plain)))
    for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        np.testing.assert_array_equal(compare(tensor, tensor.transpose()), compare(plain, plain.T))
    assert np.add.reduce(tensor, axis=None) == plain.sum()


# Read-only views.


def ways_to_write(tensor):
    """Return every kind of write, each of which has to be refused by a read-only view."""
    zeros = np.zeros((4, 4))
    return {
        "t[i, j] = x": lambda: operator.setitem(tensor, (0, 0), 9),
        "t[c] = x": lambda: operator.setitem(tensor, [0, 0], 9),
        "t[a:b, :] = x": lambda: operator.setitem(tensor, (slice(0, 2), slice(None)), 9),
        "t[...] = tensor": lambda: operator.setitem(tensor, Ellipsis, TileTensor(zeros)),
        "store": lambda: tensor.store(0, 0, 9),
        "store of a width": lambda: tensor.store[2]((0, 0), [9, 9]),
        "store_linear": lambda: tensor.store_linear(0, 0, 9),
        "raw_store": lambda: tensor.raw_store(0, 9),
        "raw_store of a width": lambda: tensor.raw_store[2](0, [9, 9]),
        "ptr": lambda: operator.setitem(tensor.ptr, 0, 9),
        "ptr_at_offset": lambda: operator.setitem(tensor.ptr_at_offset(1, 1), 0, 9),
        "fill": lambda: tensor.fill(9),
        "copy_from": lambda: tensor.copy_from(zeros),
        "copy_from a tensor": lambda: tensor.copy_from(TileTensor(zeros)),
        "copy_to": lambda: TileTensor(zeros).copy_to(tensor),
        "+=": lambda: operator.iadd(tensor, 1),
        "max": lambda: tensor.max(9),
        "min": lambda: tensor.min(-9),
        "abs": tensor.abs,
        "exp": tensor.exp,
        "np.add out": lambda: np.add(tensor, 1, out=(tensor,)),
        "as_span": lambda: operator.setitem(tensor.as_span(), 0, 9),
        "as_strided": lambda: operator.setitem(tensor.as_strided(), (0, 0), 9),
        "to_numpy without a copy": lambda: operator.setitem(tensor.to_numpy(copy=False), (0, 0), 9),
        "np.asarray": lambda: operator.setitem(np.asarray(tensor), (0, 0), 9),
        "as_layout_tensor": lambda: tensor.to_layout_tensor().copy_from_masked(TileTensor(zeros)),
        "a tile": lambda: tensor.tile[2, 2](0, 0).fill(9),
        "a share": lambda: tensor.distribute[row_major(2, 2)](0).fill(9),
        "a vector": lambda: operator.setitem(tensor.vectorize[1, 4](), (0, 0), 9),
        "a bitcast": lambda: tensor.bitcast["uint64"]().fill(9),
        "a cast": lambda: tensor.address_space_cast[3]().fill(9),
    }


IMMUTABLE = {
    "as_immut": lambda data: TileTensor(data, row_major(4, 4)).as_immut(),
    "as_imm": lambda data: TileTensor(data, row_major(4, 4)).as_imm(),
    "TileTensor(t)": lambda data: TileTensor(TileTensor(data, row_major(4, 4))),
    "a read-only array": lambda data: TileTensor(_locked(data), row_major(4, 4)),
    "a read-only array of its own shape": lambda data: TileTensor(_locked(data).reshape(4, 4)),
    "a read-only memoryview": lambda data: TileTensor(memoryview(data).toreadonly(), row_major(4, 4)),
}


def _locked(data):
    view = data[:]
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("source", sorted(IMMUTABLE))
@pytest.mark.parametrize("way", sorted(ways_to_write(TileTensor(iota(16, np.float64), row_major(4, 4)))))
def test_read_only_views_refuse_every_write_and_change_nothing(source, way):
    storage = iota(16, np.float64)
    tensor = IMMUTABLE[source](storage)
    with pytest.raises(ValueError, match="read-only"):  # LayoutError is one; so is NumPy's refusal
        ways_to_write(tensor)[way]()
    np.testing.assert_array_equal(storage, iota(16, np.float64))


@pytest.mark.parametrize("way", sorted(ways_to_write(TileTensor(iota(16, np.float64), row_major(4, 4)))))
def test_mutable_views_accept_every_write(way):
    before = -iota(16, np.float64) - 1
    storage = before.copy()
    ways_to_write(TileTensor(storage, row_major(4, 4)))[way]()
    assert (storage != before).any()


def test_a_read_only_view_leaves_its_parent_writable():
    tensor = TileTensor(iota(16, np.float64), row_major(4, 4))
    view = tensor.as_immut()
    tensor[1, 1] = NEW
    assert view[1, 1] == NEW
    assert tensor.mut
    assert not view.mut
