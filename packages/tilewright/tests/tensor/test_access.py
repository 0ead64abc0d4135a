# SPDX-License-Identifier: Apache-2.0
"""Access to elements: one rule for coordinates everywhere; refusals name the value, the rule and the way out."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import Layout, LayoutError, Swizzle, blocked_product, compose, row_major
from tilewright.errors import CoordinateError
from tilewright.mojo import Float32
from tilewright.mojo.layout import Coord, Idx, TileTensor, coord
from tilewright.mojo.layout import Layout as MojoLayout

from ..cases import examples
from .strategies import iota, roots

NESTED = blocked_product(row_major(2, 2), row_major(2, 3))  # ((2,2),(2,3)):((2,12),(1,4))


def matrix(dtype=np.int64):
    return TileTensor(iota(48, dtype), row_major(6, 8))


# Every way to reach an element takes every form of a coordinate.

REACH = {
    "t[...]": lambda t, *c: t[c if len(c) != 1 else c[0]],
    "load": lambda t, *c: t.load(*c),
    "load of width 1": lambda t, *c: t.load[1](*c)[0],
    "load_linear": lambda t, *c: t.load_linear(*c),
    "ptr_at_offset": lambda t, *c: t.ptr_at_offset(*c)[0],
    "prefetch": lambda t, *c: (t.prefetch(*c), t.ptr_at_offset(*c).offset)[1],
    "t[...] = x": lambda t, *c: _written(t, lambda: t.__setitem__(c if len(c) != 1 else c[0], -1)),
    "store": lambda t, *c: _written(t, lambda: t.store(*c, -1)),
    "store of width 1": lambda t, *c: _written(t, lambda: t.store[1](*c, [-1])),
    "store_linear": lambda t, *c: _written(t, lambda: t.store_linear(*c, -1)),
}


def _written(tensor, write):
    """Return the one place of storage that a write changed."""
    before = tensor.ptr.store.data.copy()
    write()
    changed = np.flatnonzero(tensor.ptr.store.data != before)
    assert changed.size == 1
    return changed[0]


FORMS = {
    "a mode each": ((2, 5), 21),
    "a tuple": (((2, 5),), 21),
    "a Coord": ((Coord(2, 5),), 21),
    "a static Coord": ((coord[2, 5],), 21),
    "a list": (([2, 5],), 21),
    "a leaf each": ((0, 1, 1, 2), 21),
    "a tuple of leaves": (((0, 1, 1, 2),), 21),
    "a Coord of leaves": ((Coord(0, 1, 1, 2),), 21),
    "nested tuples": (((0, 1), (1, 2)), 21),
    "a tuple of tuples": ((((0, 1), (1, 2)),), 21),
    "a nested Coord": ((Coord((0, 1), (1, 2)),), 21),
    "a tuple and a number": (((0, 1), 5), 21),
    "a number and a tuple": ((2, (1, 2)), 21),
    "one index": ((7,), 15),
    "a Coord of one index": ((Coord(7),), 15),
    "dynamic integers": ((Idx(2), Idx(5)), 21),
    "static integers": ((Idx[2](), Idx[5]()), 21),
    "integers of NumPy": ((np.int32(2), np.uint8(5)), 21),
}


LINEAR = ("load", "load of width 1")  # Mojo's page takes a linear index there, and nowhere else


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("way", sorted(REACH))
def test_every_way_takes_every_form(way, form):
    index, place = FORMS[form]
    tensor = TileTensor(iota(24) + 0, NESTED)
    if "one index" not in form or way in LINEAR:
        assert REACH[way](tensor, *index) == place
    else:
        with pytest.raises(CoordinateError, match=r"^one index, 7, does not address .*: give 2, one for each mode"):
            REACH[way](tensor, *index)


@pytest.mark.parametrize("way", LINEAR)
@given(data=st.data())
@examples(10)
def test_one_index_counts_with_the_first_mode_fastest(way, data):
    origin = data.draw(roots(kinds=("compact", "gaps", "swizzled"), ragged=False, most=24))
    model = origin.walk.model
    k = data.draw(st.integers(0, model.size - 1))
    assert REACH[way](origin.walk.tensor, k) == model.places.reshape(-1, order="F")[k]


OUTSIDE = {
    "past a row": (6, 0),
    "past a column": (0, 8),
    "a negative row": (-1, 2),
    "a negative column": (1, -1),
    "exceed a wide element": (48,),
    "a negative index": (-1,),
    "far away": (10**30, 0),
    "too many": (1, 2, 3),
    "far too many": (0, 0, 0, 0, 0),
    "a tuple too long": ((1, 2, 3),),
}


@pytest.mark.parametrize("case", sorted(OUTSIDE))
@pytest.mark.parametrize("way", sorted(REACH))
def test_every_way_refuses_what_is_outside(way, case):
    tensor = matrix()
    index = OUTSIDE[case]
    with pytest.raises(CoordinateError) as refused:
        REACH[way](tensor, *index)
    assert isinstance(refused.value, IndexError)
    assert isinstance(refused.value, LayoutError)
    text = str(refused.value)
    flat = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
    for number in re.findall(r"-?\d+", str(flat)):
        assert number in text
    assert "(6, 8)" in text
    np.testing.assert_array_equal(tensor.ptr.store.data, iota(48))


@pytest.mark.parametrize("way", sorted(REACH))
def test_tuples_fit_only_nested_modes(way):
    with pytest.raises(CoordinateError, match=r"\(1, 2\) does not fit shape 6.* takes one integer"):
        REACH[way](matrix(), (1, 2), 3)


@pytest.mark.parametrize("way", sorted(REACH))
@pytest.mark.parametrize("entry", [1.0, True, None, "1", 1j], ids=repr)
def test_entries_must_be_integers(way, entry):
    with pytest.raises((TypeError, LayoutError), match=r"integer|None"):
        REACH[way](matrix(), 1, entry)


def test_a_negative_index_says_that_indices_count_from_0():
    with pytest.raises(IndexError, match=r"index \(1, -1\) is negative; indices into shape \(6, 8\) start at 0"):
        matrix()[1, -1]


# Arrays as coordinates.


def test_arrays_of_coordinates_give_arrays_of_elements():
    tensor = matrix()
    rows, columns = np.array([0, 5, 2]), np.array([7, 0, 3])
    np.testing.assert_array_equal(tensor[rows, columns], [7, 40, 19])
    np.testing.assert_array_equal(tensor.load(rows, columns), [7, 40, 19])
    np.testing.assert_array_equal(tensor[rows[:, None], columns], rows[:, None] * 8 + columns)
    np.testing.assert_array_equal(tensor[1, columns], 8 + columns)
    tensor[rows, columns] = [-1, -2, -3]
    assert (tensor[0, 7], tensor[5, 0], tensor[2, 3]) == (-1, -2, -3)
    with pytest.raises(IndexError, match="outside"):
        tensor[np.array([0, 6]), 0]
    swizzled = TileTensor(iota(64), compose(Swizzle(3, 0, 3), row_major(8, 8)))
    np.testing.assert_array_equal(swizzled[rows, columns], swizzled.to_numpy()[rows, columns])


def test_arrays_of_coordinates_must_all_be_valid():
    edge = matrix().tile[4, 3](1, 2)
    np.testing.assert_array_equal(edge[np.array([0, 1]), np.array([1, 0])], [39, 46])
    with pytest.raises(IndexError, match=r"its valid shape is \(2, 2\)"):
        edge[np.array([0, 2]), 0]


# Scalars and blocks.


def test_an_element_is_a_scalar_of_numpy_or_a_block():
    tensor = matrix(np.float32)
    assert isinstance(tensor[1, 2], Float32)
    assert isinstance(tensor[1, 2], tensor.ElementType)
    assert repr(tensor.ElementType) == "SIMD[DType.float32, 1]"
    block = tensor.vectorize[2, 4]()
    assert isinstance(block[1, 1], block.ElementType)
    assert repr(block.ElementType) == "SIMD[DType.float32, 8]"
    assert block[1, 1].tolist() == [20, 21, 22, 23, 28, 29, 30, 31]
    assert block.load[8](1, 1).tolist() == [20, 21, 22, 23, 24, 25, 26, 27]  # Mojo's read: scalars in a row


def test_a_block_is_a_copy():
    tensor = matrix()
    tensor.vectorize[1, 4]()[0, 0][0] = -1
    np.testing.assert_array_equal(tensor.to_numpy(), iota(48).reshape(6, 8))


def test_a_block_takes_a_scalar_or_all_its_lanes():
    tensor = matrix()
    vectors = tensor.vectorize[2, 2]()
    vectors[0, 0] = 9
    vectors[0, 1] = [[1, 2], [3, 4]]
    vectors[0, 2] = [5, 6, 7, 8]
    assert tensor[0:2, 0:6].to_numpy().tolist() == [[9, 9, 1, 2, 5, 6], [9, 9, 3, 4, 7, 8]]
    with pytest.raises(LayoutError, match=r"has 4 scalars of shape \(2, 2\): expected one number or 4, got\s+3"):
        vectors[0, 0] = [1, 2, 3]


# Widths and alignment.


def test_a_load_reads_across_rows_but_stays_inside_storage():
    tensor = matrix()
    for first, (row, column) in enumerate(np.ndindex(6, 8)):
        for load in (lambda width, *c: tensor.load[width](*c), lambda width, *c: tensor.load(*c, width=width)):
            for width in {1, 48 - first}:
                np.testing.assert_array_equal(load(width, row, column), np.arange(first, first + width))
            for width in (49 - first, 60):
                with pytest.raises(
                    IndexError, match=f"scalars {first} to {first + width - 1} exceed the storage of 48"
                ):
                    load(width, row, column)


def test_a_store_needs_exactly_its_width():
    tensor = matrix()
    with pytest.raises(LayoutError, match="store with width 4 takes 4 scalars, got 3"):
        tensor.store[4]((0, 0), [1, 2, 3])
    with pytest.raises(LayoutError, match="at least 1"):
        tensor.load[0](0, 0)
    for arguments in ((), (5,)):
        with pytest.raises(TypeError, match=r"store takes (an index and a value|one index)"):
            tensor.store(*arguments)


def test_one_number_fills_the_width_of_a_store():
    """As Mojo converts a number to a vector: `store[4](coord, 1.0)` writes four of them."""
    tensor = TileTensor(np.zeros(48, np.float32), row_major(6, 8))
    tensor.store[4]((0, 0), 1.0)
    tensor.store((1, 2), Float32(2), width=3)
    tensor.store[2](5, 6, [3.0])
    assert tensor.to_numpy()[0].tolist() == [1.0] * 4 + [0.0] * 4
    assert tensor.to_numpy()[1].tolist() == [0.0, 0.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0]
    assert tensor.to_numpy()[5].tolist() == [0.0] * 6 + [3.0, 3.0]
    old = tensor.to_layout_tensor()
    old.store[4](2, 0, 5.0)
    old.aligned_store[4](3, 0, 6.0)
    assert tensor.to_numpy()[2:4, :5].tolist() == [[5.0] * 4 + [0.0], [6.0] * 4 + [0.0]]
    with pytest.raises(IndexError, match="exceed the storage"):
        tensor.store[4]((5, 6), 1.0)


def aligned_matrix():
    """Return a float32 matrix whose storage starts at a multiple of 64 bytes."""
    memory = np.zeros(48 * 4 + 64, dtype=np.uint8)
    start = -memory.__array_interface__["data"][0] % 64
    return TileTensor(memory[start : start + 48 * 4].view(np.float32), row_major(6, 8))


@pytest.mark.parametrize("alignment", [1, 2, 4, 8, 12, 16, 32, 64])
def test_alignment_is_checked_against_the_address(alignment):
    tensor = aligned_matrix()
    base = tensor.ptr.address
    for row, column in np.ndindex(5, 8):
        address = base + 4 * (8 * row + column)
        reaches = [
            lambda c=(row, column): tensor.load(c, alignment=alignment),
            lambda c=(row, column): tensor.load[2](c, alignment=alignment, invariant=True),
            lambda c=(row, column): tensor.load[2, alignment](c),
            lambda c=(row, column): tensor.load[2, alignment, True](c),
            lambda c=(row, column): tensor.store(c, 1, alignment=alignment),
            lambda c=(row, column): tensor.store[2](c, [1, 1], alignment=alignment),
        ]
        for reach in reaches:
            if address % alignment == 0:
                reach()
            else:
                with pytest.raises(LayoutError, match=f"{address:#x}, which is not a multiple of {alignment}"):
                    reach()


def test_a_misaligned_store_writes_nothing():
    tensor = aligned_matrix()
    with pytest.raises(LayoutError, match="align the storage, or use a smaller alignment"):
        tensor.store[4]((0, 1), [1, 2, 3, 4], alignment=16)
    assert not tensor.to_numpy().any()
    with pytest.raises(LayoutError, match="an alignment must be at least 1 byte, got 0"):
        tensor.load(0, 0, alignment=0)


def test_loads_of_any_alignment_are_the_default():
    assert matrix().load[4](0, 1).tolist() == [1, 2, 3, 4]


# Ragged edges.


def test_outside_the_valid_part_access_is_refused_or_padded():
    edge = matrix().tile[4, 3](1, 2)
    assert (edge.shape, edge.valid_shape, edge.offset) == ((4, 3), (2, 2), 38)
    for reach in (
        lambda: edge[2, 0],
        lambda: edge.load(2, 0),
        lambda: edge.store(2, 0, 1),
        lambda: edge.__setitem__((2, 0), 1),
        lambda: edge.ptr_at_offset(2, 0),
        lambda: edge.prefetch(2, 0),
    ):
        with pytest.raises(
            IndexError, match=r"index \(2, 0\).*\(4, 3\): its valid shape is \(2, 2\); load\(\.\.\., fill=x\)"
        ):
            reach()
    assert edge.load(2, 0, fill=-1) == -1
    assert edge.load(1, 1, fill=-1) == 47
    with pytest.raises(IndexError, match="outside"):
        edge.load(4, 0, fill=-1)
    edge.store(2, 0, 99, fill=0)
    np.testing.assert_array_equal(edge.ptr.store.data, iota(48))


def test_a_single_element_that_is_not_valid_is_padded_too():
    outside = matrix().tile[4, 3](1, 2).slice[2, 2]()
    assert (outside.rank, outside.is_ragged) == (0, True)
    assert outside.load((), fill=-1) == -1
    with pytest.raises(IndexError, match="valid"):
        outside[()]


def test_partly_valid_vectors_say_how_many_lanes_they_have():
    vectors = TileTensor(iota(88), row_major(8, 11)).vectorize[1, 2]()
    with pytest.raises(
        IndexError, match=r"element \(7, 5\) of a ragged view has 1 valid scalars of 2; load\(\.\.\., fill=x\)"
    ):
        vectors[7, 5]
    with pytest.raises(IndexError, match=r"1 valid scalars of 2; store\(\.\.\., fill=x\) writes only those"):
        vectors[7, 5] = 0
    assert vectors.load(7, 5, fill=-1).tolist() == [87, -1]
    vectors.store((7, 5), [100, 101], fill=0)
    assert vectors.load(7, 5, fill=-1).tolist() == [100, -1]


# Raw scalars, pointers and spans.


def test_raw_scalars_ignore_the_layout():
    tile = matrix().tile[2, 2](1, 1)
    assert tile.raw_load(0) == 18
    assert tile.raw_load[3](-1).tolist() == [17, 18, 19]
    tile.raw_store(1, -5)
    tile.raw_store[2](2, [-6, -7])
    assert tile.ptr.store.data[18:22].tolist() == [18, -5, -6, -7]
    with pytest.raises(IndexError, match="scalars 47 to 48 exceed the storage of 48"):
        tile.raw_load[2](29)
    with pytest.raises(IndexError, match="scalars -1 to -1 exceed the storage of 48"):
        tile.raw_store(-19, 0)


def test_pointers_step_through_storage():
    tensor = matrix(np.float32)
    pointer = tensor.tile[2, 2](1, 1).ptr
    assert pointer.offset == 18
    assert (pointer + 2)[0] == 20
    assert (pointer + 2) - pointer == 2
    assert (pointer - 18).offset == 0
    assert (pointer + 1).address - pointer.address == 4
    pointer[1] = 99
    assert tensor[2, 3] == 99
    with pytest.raises(IndexError, match="scalar 48 is outside the storage, which has 0 to 47"):
        pointer[30]
    with pytest.raises(LayoutError, match="different storage"):
        pointer - matrix().ptr


def test_as_span_is_the_storage_itself():
    tensor = matrix()
    tensor.slice[2:4, 0:8]().as_span()[0] = 99
    assert tensor[2, 0] == 99
    with pytest.raises(LayoutError, match="as_span needs elements in row-major order"):
        tensor.transpose().as_span()


def test_a_vector_of_elements_can_be_looped_over():
    assert [int(x) for x in TileTensor(iota(4), row_major(4))] == [0, 1, 2, 3]
    with pytest.raises(TypeError, match=r"only a tensor of rank 1 is iterable; loop over t\.tiles.*t\.flat"):
        iter(matrix())


# Facts about a tensor.


@given(st.data())
def test_extents_and_strides_by_mode_and_by_leaf(data):
    origin = data.draw(roots(kinds=("compact", "gaps", "reversed", "broadcast")))
    tensor, model = origin.walk.tensor, origin.walk.model
    flat = [n for part in model.leaves for n in part]
    assert (tensor.rank, tensor.flat_rank) == (model.rank, len(flat))
    assert (
        [tensor.shape[k] for k in range(model.rank)] == [tensor.dim[k]() for k in range(model.rank)] == [*model.shape]
    )
    known = tensor.shape_known
    assert tensor.static_shape == (tuple(flat) if known else (-1,) * len(flat))
    for k, part in enumerate(model.leaves):
        if len(part) > 1:
            with pytest.raises(LayoutError, match="has no single stride, but"):
                tensor.dynamic_stride(k)
        elif part[0] > 1:
            two = [model.places[tuple([i if j == k else 0 for j in range(model.rank)])] for i in (0, 1)]
            assert tensor.dynamic_stride(k) == two[1] - two[0]
    for outside in (-1, model.rank):
        with pytest.raises(IndexError, match=f"got {outside}"):
            tensor.dim(outside)
    for outside in (-1, len(flat)):
        with pytest.raises(IndexError, match=f"got {outside}"):
            tensor.static_shape[outside]
        with pytest.raises(IndexError, match=f"got {outside}"):
            tensor.static_stride[outside]


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (row_major(3, 4), True),
        (MojoLayout((3, 4), (4, 1)).make_dynamic(), True),
        (Layout((1, 4), (1, 1)), False),  # col_major[1, 4]: extents of 1 count too
        (Layout((3, 4), (99, 1)), False),
        (Layout((3, 4), (1, 3)), False),
        (NESTED, False),
        (compose(Swizzle(1, 0, 2), row_major(4, 4)), False),
    ],
    ids=str,
)
def test_is_row_major_compares_actual_strides(layout, expected):
    assert TileTensor(iota(400), layout).is_row_major is expected


def test_the_type_name_says_what_a_view_is():
    tensor = TileTensor(iota(16, np.int32), row_major(4, 4))
    assert TileTensor.get_type_name() == "TileTensor"
    assert tensor.vectorize[1, 4]().as_immut().get_type_name() == (
        "TileTensor[mut=False, dtype=int32, Engine=DefaultEngine[element_size=4],"
        " address_space=AddressSpace.GENERIC, linear_idx_type=int32]"
    )


def test_linear_idx_type_follows_the_rule_of_26_2():
    static, dynamic = TileTensor(iota(16), row_major(4, 4)), TileTensor(iota(16), row_major(Idx(4), 4))
    assert static.linear_idx_type.name == "int32"
    assert dynamic.linear_idx_type.name == "int64"
    assert dynamic.address_space_cast[3]().linear_idx_type.name == "int64"  # a cast keeps it
    assert TileTensor(iota(16), row_major(4, 4), linear_idx_type="int64").linear_idx_type.name == "int64"
    assert dynamic.tile[2, 2](0, 0).linear_idx_type.name == "int32"  # a view derives it again
    assert dynamic.vectorize[1, 2]().linear_idx_type.name == "int64"
    with pytest.raises(LayoutError, match="must be an integer format, got float32"):
        TileTensor(iota(16), row_major(4, 4), linear_idx_type="float32")


def test_tensors_are_trivial_to_copy():
    for name in ("__copy_ctor_is_trivial", "__move_ctor_is_trivial", "__del__is_trivial"):
        assert getattr(TileTensor, name) is True


def test_vectors_of_a_slice_join_the_vectors_of_the_modes_that_are_left():
    storage = np.arange(48)
    rows = TileTensor(storage, row_major(6, 8)).vectorize[1, 4]()[:, 1]
    pairs = rows.vectorize[2]()
    assert (rows.element_layout.shape, pairs.shape) == ((1, 4), (3,))
    for k in range(3):
        assert pairs[k].tolist() == storage.reshape(6, 8)[2 * k : 2 * k + 2, 4:].reshape(-1).tolist()
    columns = TileTensor(storage, row_major(6, 8)).vectorize[3, 1]()[1, :].vectorize[2]()
    assert columns[1].tolist() == storage.reshape(6, 8)[3:, 2:4].reshape(-1).tolist()


def test_a_bitcast_to_a_smaller_format_scales_the_strides_of_nested_modes():
    values = np.arange(24, dtype=np.float32)
    nested = TileTensor(values, Layout((4, (2, 3)), (6, (3, 1))))
    halves = nested.bitcast["uint16"](rescale=True)
    assert halves.layout == Layout((4, (2, 3)), (12, (6, 2)))
    assert halves.to_numpy().tolist() == values.view(np.uint16)[halves.layout.offsets()].tolist()
