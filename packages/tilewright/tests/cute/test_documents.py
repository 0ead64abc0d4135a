# SPDX-License-Identifier: Apache-2.0
"""The expressions of NVIDIA's documents on CuTe layouts, algebra, tensors and atoms give the documented answers."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import cute
from tilewright.cute import (
    E,
    Int,
    Layout,
    LayoutLeft,
    LayoutRight,
    append,
    coalesce,
    complement,
    composition,
    flatten,
    get,
    group_modes,
    idx2crd,
    logical_divide,
    logical_product,
    make_layout,
    make_shape,
    make_stride,
    prepend,
    replace,
    select,
    shape_div,
    shape_mod,
    take,
    zipped_divide,
)

I = Int  # noqa: E741
ROW = Layout((I(2), I(3), I(5), I(7)))

MATRIX = Layout((I(9), (I(4), I(8))), (I(59), (I(13), I(1))))
TILER = (Layout(I(3), I(3)), Layout((I(2), I(4)), (I(1), I(8))))
BLOCK, GRID = Layout((I(2), I(5)), (I(5), I(1))), Layout((I(3), I(4)))

# What the documents print, and the expression that gives it.
LAYOUTS = [
    ("_8:_1", lambda: make_layout(I(8))),
    ("(_2,_4):(_1,_2)", lambda: make_layout(make_shape(I(2), I(4)))),
    ("(_2,4):(_1,_2)", lambda: make_layout(make_shape(I(2), 4))),
    ("(_2,4):(_12,_1)", lambda: make_layout(make_shape(I(2), 4), make_stride(I(12), I(1)))),
    ("(_2,4):(_1,_2)", lambda: make_layout(make_shape(I(2), 4), LayoutLeft())),
    ("(_2,4):(4,_1)", lambda: make_layout(make_shape(I(2), 4), LayoutRight())),
    ("(2,(2,2)):(4,(2,1))", lambda: make_layout(make_shape(2, make_shape(2, 2)), make_stride(4, make_stride(2, 1)))),
    ("(3,6):(4,12)", lambda: get(Layout((4, (3, 6))), 1)),
    ("(3,7):(2,30)", lambda: select(Layout((2, 3, 5, 7)), 1, 3)),
    ("(2,3,7):(1,2,30)", lambda: select(Layout((2, 3, 5, 7)), 0, 1, 3)),
    ("(5):(6)", lambda: select(Layout((2, 3, 5, 7)), 2)),
    ("(3,5):(2,6)", lambda: take(Layout((2, 3, 5, 7)), 1, 3)),
    ("(3,5,7):(2,6,30)", lambda: take(Layout((2, 3, 5, 7)), 1, 4)),
    ("(3,4):(1,3)", lambda: make_layout(Layout(3, 1), Layout(4, 3))),
    ("((3,4),(4,3)):((1,3),(3,1))", lambda: make_layout(Layout((3, 4)), Layout((4, 3), (3, 1)))),
    ("(3,4):(1,3)", lambda: append(Layout(3, 1), Layout(4, 3))),
    ("(4,3):(3,1)", lambda: prepend(Layout(3, 1), Layout(4, 3))),
    ("(3,4,(3,4)):(1,3,(1,3))", lambda: append(Layout((3, 4)), Layout((3, 4)))),
    ("(3,4,4):(1,3,3)", lambda: replace(Layout((3, 4, (3, 4)), (1, 3, (1, 3))), 2, Layout(4, 3))),
    ("((_2,_3),_5,_7):((_1,_2),_6,_30)", lambda: group_modes(ROW, 0, 2)),
    ("((_2,_3),(_5,_7)):((_1,_2),(_6,_30))", lambda: group_modes(group_modes(ROW, 0, 2), 1, 3)),
    ("(_2,_3,_5,_7):(_1,_2,_6,_30)", lambda: flatten(group_modes(ROW, 0, 2))),
    ("_12:_1", lambda: coalesce(Layout((I(2), (I(1), I(6))), (I(1), (I(6), I(2)))))),
    ("(_2,_6):(_1,_2)", lambda: coalesce(Layout((I(2), (I(1), I(6))), (I(1), (I(6), I(2)))), (1, 1))),
    ("((2,2),3):((24,2),8)", lambda: composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))),
    ("(5,4):(8,2)", lambda: composition(Layout(20, 2), Layout((5, 4), (4, 1)))),
    ("(5,(2,2)):(16,(80,4))", lambda: composition(Layout((10, 2), (16, 4)), Layout((5, 4), (1, 5)))),
    ("(3,(2,4)):(236,(26,1))", lambda: composition(Layout((12, (4, 8)), (59, (13, 1))), (Layout(3, 4), Layout(8, 2)))),
    ("(3,(4,2)):(59,(13,1))", lambda: composition(Layout((12, (4, 8)), (59, (13, 1))), (3, 8))),
    ("6:4", lambda: complement(Layout(4, 1), 24)),
    ("4:1", lambda: complement(Layout(6, 4), 24)),
    ("1:0", lambda: complement(Layout((4, 6), (1, 4)), 24)),
    ("(2,3):(1,8)", lambda: complement(Layout(4, 2), 24)),
    ("3:2", lambda: complement(Layout((2, 4), (1, 6)), 24)),
    ("(3,2):(2,12)", lambda: complement(Layout((2, 2), (1, 6)), 24)),
    ("((2,2),(2,3)):((4,1),(2,8))", lambda: logical_divide(Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2))),
    ("((2,2),(2,3)):((4,1),(2,8))", lambda: logical_product(Layout((2, 2), (4, 1)), Layout(6, 1))),
    ("(4,8):(1@0,1@1)", lambda: Layout((4, 8), (E(0), E(1)))),
    ("(_3,(_2,_4)):(_177,(_13,_2))", lambda: composition(MATRIX, TILER)),
    ("((_3,_3),((_2,_4),(_2,_2))):((_177,_59),((_13,_2),(_26,_1)))", lambda: logical_divide(MATRIX, TILER)),
    ("((_3,(_2,_4)),(_3,(_2,_2))):((_177,(_13,_2)),(_59,(_26,_1)))", lambda: zipped_divide(MATRIX, TILER)),
    ("((_3,(_2,_4)),_3,(_2,_2)):((_177,(_13,_2)),_59,(_26,_1))", lambda: cute.tiled_divide(MATRIX, TILER)),
    ("(_3,(_2,_4),_3,(_2,_2)):(_177,(_13,_2),_59,(_26,_1))", lambda: cute.flat_divide(MATRIX, TILER)),
    ("((2,2),(4,2)):((4,1),(8,2))", lambda: logical_product(Layout((2, 2), (4, 1)), Layout((4, 2), (2, 1)))),
    ("((_2,_3),(_5,_4)):((_5,_10),(_1,_30))", lambda: cute.blocked_product(BLOCK, GRID)),
    ("((_3,_2),(_4,_5)):((_10,_5),(_30,_1))", lambda: cute.raked_product(BLOCK, GRID)),
    ("((_2,_5),(_3,_4)):((_5,_1),(_10,_30))", lambda: cute.zipped_product(BLOCK, GRID)),
    ("((_2,_5),_3,_4):((_5,_1),_10,_30)", lambda: cute.tiled_product(BLOCK, GRID)),
    ("(_2,_3,_4,_5):(_1,_40,_2,_8)", lambda: cute.make_ordered_layout((I(2), I(3), I(4), I(5)), (2, 67, 42, 50))),
    ("(_4,_3,_8):(_8,_0,_1)", lambda: cute.make_layout_like(Layout((I(4), I(3), I(8)), (I(100), I(0), I(1))))),
    ("(_4,_4):(_4,_1)", lambda: cute.upcast(Layout((I(4), I(8)), (I(8), I(1))), 2)),
    ("(_4,_16):(_16,_1)", lambda: cute.downcast(Layout((I(4), I(8)), (I(8), I(1))), 2)),
]


@pytest.mark.parametrize(("text", "expression"), LAYOUTS, ids=[text for text, _ in LAYOUTS])
def test_layouts(text, expression):
    found = str(expression()).replace(" ", "")
    if "_" not in text:
        found = found.replace("_", "")  # which integers are static is not what the document shows here
    assert found == text


def test_tuples():
    for shape, divisor, quotient in [
        ((6, 2), 2, (3, 2)), ((6, 2), 3, (2, 2)), ((6, 2), 6, (1, 2)), ((6, 2), 12, (1, 1)),
        ((3, 6, 2, 8), 3, (1, 6, 2, 8)), ((3, 6, 2, 8), 6, (1, 3, 2, 8)), ((3, 6, 2, 8), 9, (1, 2, 2, 8)),
        ((3, 6, 2, 8), 72, (1, 1, 1, 4)),
    ]:  # fmt: skip
        assert shape_div(shape, divisor) == quotient
    for shape, modulus, rest in [
        ((6, 2), 2, (2, 1)), ((6, 2), 3, (3, 1)), ((6, 2), 6, (6, 1)), ((6, 2), 12, (6, 2)),
        ((3, 6, 2, 8), 6, (3, 2, 1, 1)), ((3, 6, 2, 8), 9, (3, 3, 1, 1)), ((1, 2, 2, 8), 2, (1, 2, 1, 1)),
        ((1, 2, 2, 8), 16, (1, 2, 2, 4)),
    ]:  # fmt: skip
        assert shape_mod(shape, modulus) == rest
    for coord in (16, (1, 5), (1, (1, 2))):
        assert idx2crd(coord, (3, (2, 3))) == (1, (1, 2))


def test_offsets_of_tiles():
    tiles = zipped_divide(MATRIX, TILER)
    assert (tiles(0, 3), tiles(0, 7), tiles(0, (1, 2))) == (26, 60, 60)
    assert get(tiles, 0) == composition(MATRIX, TILER)


def test_coordinates_of_tma_tensors():
    swapped = Layout((4, 5), (E(1), E(0)))
    assert [[swapped(i, j) for j in range(5)] for i in range(4)] == [[(j, i) for j in range(5)] for i in range(4)]
    tile = Layout(((128, 64), 2, 3, 1), ((E(0), E(1)), 64 * E(1), E(2), E(3)))
    assert tile(5, 1, 2, 0) == (5, 64, 2, 0)
    assert str(tile) == "((128,64),2,3,1):((1@0,1@1),64@1,1@2,1@3)"


def test_tables_of_offsets():
    layout = Layout((2, (2, 2)), (4, (2, 1)))
    assert [[layout(m, n) for n in range(4)] for m in range(2)] == [[0, 2, 1, 3], [4, 6, 5, 7]]
    matrix = Layout((3, (2, 3)), (3, (12, 1)))
    assert [[matrix(i, j) for j in range(6)] for i in range(3)] == [
        [0, 12, 1, 13, 2, 14], [3, 15, 4, 16, 5, 17], [6, 18, 7, 19, 8, 20],
    ]  # fmt: skip


def test_tensors_are_divided_and_sliced():
    a = cute.make_tensor(np.arange(8 * 24), Layout((8, 24)))
    tiled = zipped_divide(a, (4, 8))
    assert tiled.layout.shape == ((4, 8), (2, 3))
    layout = Layout(((I(3), 2), (2, I(5), I(2))), ((4, 1), (I(2), 13, 100)))
    for coord, text in [
        ((2, None), "((2,5,2)):((2,13,100))"),
        ((None, 5), "((3,2)):((4,1))"),
        (((None, None), 5), "(3,2):(4,1)"),
        (((None, 1), (0, None, 1)), "(3,5):(4,13)"),
        (((2, None), (None, 3, None)), "(2,2,2):(1,2,100)"),
    ]:
        assert str(cute.slice_(coord, layout)).replace("_", "").replace(" ", "") == text
    by_thread = composition(
        cute.make_tensor(np.arange(32), Layout((4, 8), (8, 1))), Layout(((2, 4), (2, 2)), ((8, 1), (4, 16)))
    )
    assert by_thread.layout.shape == ((2, 4), (2, 2))


def test_volta_atoms():
    """The quad pair of SM70: its accumulator, the tiled one of 2 x 2 atoms, and the permuted one."""
    atom = tw.atoms["SM70_8x8x4_F32F16F16F32_NT"]
    assert str(atom.c) == "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))"
    assert str(tw.atoms["SM70_8x8x4_F16F16F16F16_NT"].c) == "(8,8):(1,8)"
    assert str(atom.a) == "((4,2),4):((8,4),1)"
    assert str(tw.atoms["SM70_8x8x4_F32F16F16F32_TN"].a) == "(8,4):(1,8)"
    assert str(tw.atoms["SM90_64x128x16_F32F16F16_SS_KK"].c) == "((4,8,4),(2,2,16)):((128,1,16),(64,8,512))"
    by_fours = cute.make_tiled_mma(atom, Layout((2, 2), (2, 1)), (32, 32, 4))
    places = [divmod(int(by_fours.partition_A(Layout((32, 4)), 0)(value)), 32)[::-1] for value in range(8)]
    assert places == [(0, 0), (1, 0), (2, 0), (3, 0), (16, 0), (17, 0), (18, 0), (19, 0)]
    scattered = cute.make_tiled_mma(atom, Layout((2, 2), (2, 1)), (Layout((4, 4, 2), (1, 8, 4)), 32, 4))
    assert [int(scattered.partition_A(Layout((32, 4)), 0)(value)) for value in range(8)] == list(range(8))
