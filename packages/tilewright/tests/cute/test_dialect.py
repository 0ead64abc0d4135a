# SPDX-License-Identifier: Apache-2.0
"""CuTe's documented answers: slices, ordered layouts, static integers, basis strides, printing."""

import copy
import pickle

import pytest

import tilewright as tw
from tilewright import LayoutError, cute
from tilewright.cute import E, Int, Layout

# The layout of CuTe's page on tensors, and what its slices are there.
PAGE = Layout(((3, 2), (2, 5, 2)), ((4, 1), (2, 13, 100)))


@pytest.mark.parametrize(
    ("coord", "expected"),
    [
        ((2, None), "((2,5,2)):((2,13,100))"),
        ((None, 5), "((3,2)):((4,1))"),
        (((None, None), 5), "(3,2):(4,1)"),
        (((None, 1), (0, None, 1)), "(3,5):(4,13)"),
        (((2, None), (None, 3, None)), "(2,2,2):(1,2,100)"),
    ],
    ids=str,
)
def test_slices_have_the_structure_of_cute(coord, expected):
    assert str(PAGE(*coord)) == expected
    sublayout, offset = cute.slice_and_offset(coord, PAGE)
    assert str(sublayout) == expected
    assert offset == cute.crd2idx(coord, PAGE.shape, PAGE.stride)


def test_orders_are_any_numbers_and_may_nest():
    assert str(cute.make_ordered_layout((2, 3, 4, 5), (2, 67, 42, 50))) == "(2,3,4,5):(1,40,2,8)"
    assert str(cute.make_ordered_layout((3, (4, 5)), (1, (2, 0)))) == "(3,(4,5)):(5,(15,1))"
    with pytest.raises(LayoutError, match="does not fit shape"):
        cute.make_ordered_layout((4, 8), (1, 2, 3))


def test_static_integers_print_with_an_underscore():
    layout = Layout((Int(8), Int(64)), (Int(64), Int(1)))
    assert str(layout) == "(_8,_64):(_64,_1)"
    assert str(cute.coalesce(Layout((Int(2), Int(4))))) == "_8:_1"
    assert str(cute.zipped_divide(layout, (Int(2), Int(4)))) == "((_2,_4),(_4,_16)):((_64,_1),(_128,_4))"
    assert layout == tw.row_major(8, 64).__class__((Int(8), Int(64)), (Int(64), Int(1)))
    assert layout != Layout((8, 64), (64, 1))
    assert cute.is_static(layout)
    assert not cute.is_static(Layout((4, 8)))


def test_nothing_is_padded_and_nothing_is_checked():
    assert str(cute.composition(Layout(7, 11), Layout(3, 4))) == "3:44"
    assert str(cute.logical_divide(Layout(10), 4)) == "(4,3):(1,4)"
    assert Layout((4, 1), (1, 100))(5) == 101
    with pytest.raises(LayoutError, match="divisible"):
        cute.composition(Layout((3, 5), (5, 1)), Layout(6, 2))


def test_indices_under_strides():
    assert cute.idx2crd(21, (4, 8), (8, 1)) == (2, 5)
    assert cute.idx2crd(13, ((2, 2), (2, 3)), ((2, 12), (1, 4))) == ((0, 1), (1, 0))


def test_basis_strides_give_coordinates():
    assert str(E(1)) == "Place(E1=1)"
    identity = cute.make_identity_layout((4, (2, 3)))
    assert str(identity) == "(4,(2,3)):(1@0,(1@0@1,1@1@1))"
    assert [identity(i) for i in (0, 1, 7, 23)] == [(0, (0, 0)), (1, (0, 0)), (3, (1, 0)), (3, (1, 2))]


def test_a_layout_is_a_value():
    for copied in (pickle.loads(pickle.dumps(PAGE)), copy.deepcopy(PAGE)):  # noqa: S301  (its own pickle)
        assert type(copied) is Layout
        assert copied == PAGE
        assert str(copied) == str(PAGE)
