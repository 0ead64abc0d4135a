# SPDX-License-Identifier: Apache-2.0
"""The worked examples of the CuTe layout paper (Cecka, arXiv 2603.02298), figure by figure.

Its coordinate strides e0, e1 are named axes here, and its binary strides are swizzles.
"""

from itertools import product

import pytest

import tilewright as tw
from tilewright import Axis, ComposedLayout, Layout, LayoutError, Place, Swizzle, cute

from ..layout.reference import without_padding

L = Layout
ROW, COLUMN = Axis("row"), Axis("column")  # e0 and e1 of the paper


def values(layout):
    return [layout(i) for i in range(layout.size)]


# Figure 1: one 2 x 2 x 2 tensor, folded three ways.


@pytest.mark.parametrize(
    ("layout", "rows"),
    [
        (L(((2, 2), 2), ((2, 4), 1)), ["ab", "cd", "ef", "gh"]),
        (L((2, (2, 2)), (2, (1, 4))), ["abef", "cdgh"]),
    ],
    ids=str,
)
def test_figure_1_folding_reads_the_same_memory_as_a_matrix(layout, rows):
    memory = "abcdefgh"
    height, width = layout.mode(0).size, layout.mode(1).size
    assert ["".join(memory[layout(i, j)] for j in range(width)) for i in range(height)] == rows
    folded = L((2, 2, 2), (2, 1, 4))
    assert sorted(values(layout)) == sorted(values(folded)) == list(range(8))


def test_figure_1_only_the_first_fold_is_a_plain_matrix():
    assert tw.coalesce(L(((2, 2), 2), ((2, 4), 1)), (1, 1)) == L((4, 2), (2, 1))
    assert tw.coalesce(L((2, (2, 2)), (2, (1, 4))), (1, 1)) == L((2, (2, 2)), (2, (1, 4)))


# Figure 2: coordinates of shapes.


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (4, [0, 1, 2, 3]),
        ((2, 3), [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]),
        (((2, 3), 2), [((k % 2, k // 2 % 3), k // 6) for k in range(12)]),
    ],
    ids=str,
)
def test_figure_2_an_index_and_its_coordinate_name_each_other(shape, expected):
    assert list(tw.layout.coordinates(shape)) == expected
    for index, coord in enumerate(expected):
        assert tw.cute.idx2crd(index, shape) == coord
        assert cute.crd2idx(coord, shape) == index


# Figure 3: layouts of a 4 x 8 matrix; the first rows as they are printed.

FIGURE_3 = [
    ("column-major", L((4, 8), (1, 4)), [0, 4, 8, 12, 16, 20, 24, 28], 32, True),
    ("row-major", L((4, 8), (8, 1)), [0, 1, 2, 3, 4, 5, 6, 7], 32, True),
    ("padded", L((4, 8), (1, 5)), [0, 5, 10, 15, 20, 25, 30, 35], 39, True),
    ("interleaved", L((4, (4, 2)), (4, (1, 16))), [0, 1, 2, 3, 16, 17, 18, 19], 32, True),
    ("mixed", L(((2, 2), (4, 2)), ((1, 8), (2, 16))), [0, 2, 4, 6, 16, 18, 20, 22], 32, True),
    ("blocked broadcast", L(((2, 2), (2, 4)), ((0, 2), (0, 4))), [0, 0, 4, 4, 8, 8, 12, 12], 15, False),
]


@pytest.mark.parametrize(
    ("name", "layout", "first_row", "cosize", "injective"), FIGURE_3, ids=[row[0] for row in FIGURE_3]
)
def test_figure_3_six_layouts_of_one_matrix(name, layout, first_row, cosize, injective):
    assert cute.compatible((4, 8), layout)
    assert [layout(0, column) for column in range(8)] == first_row
    assert layout.cosize == cosize
    assert tw.is_injective(layout) == injective
    assert tw.is_bijective(layout) == (injective and cosize == 32)


def test_figure_3_three_coordinates_name_one_element():
    mixed = L(((2, 2), (4, 2)), ((1, 8), (2, 16)))
    assert mixed(22) == mixed(2, 5) == mixed((0, 1), (1, 1)) == 26


# Figure 4 and table 1: coordinate and binary strides.


def test_figure_4_coordinate_strides_give_coordinates():
    identity = L((4, 8), (1 @ ROW, 1 @ COLUMN))
    assert identity(3, 7) == Place(row=3, column=7)
    blocked = L((4, (4, 2)), (1 @ COLUMN, (1 @ ROW, 6 @ COLUMN)))
    assert [(p.row, p.column) for p in (blocked(0, j) for j in range(8))] == [
        *((row, 0) for row in range(4)),
        *((row, 6) for row in range(4)),
    ]
    assert blocked(3, (3, 1)) == Place(row=3, column=9)


def test_figure_4_binary_strides_are_a_swizzle():
    swizzled = tw.compose(Swizzle(2, 0, 2), L((4, (4, 3)), (1, (4, 16))))
    assert swizzled.offsets().tolist() == [
        [0, 5, 10, 15, 16, 21, 26, 31, 32, 37, 42, 47],
        [1, 4, 11, 14, 17, 20, 27, 30, 33, 36, 43, 46],
        [2, 7, 8, 13, 18, 23, 24, 29, 34, 39, 40, 45],
        [3, 6, 9, 12, 19, 22, 25, 28, 35, 38, 41, 44],
    ]


def test_table_1_a_swizzled_layout_is_linear_over_bits():
    swizzled = tw.compose(Swizzle(2, 0, 2), L((4, 4), (1, 4)))
    columns = [swizzled(1 << bit) for bit in range(4)]
    assert [[column >> bit & 1 for column in columns] for bit in range(4)] == [
        [1, 0, 1, 0],
        [0, 1, 0, 1],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
    ]
    for a, b in product(range(16), repeat=2):
        assert swizzled(a ^ b) == swizzled(a) ^ swizzled(b)


# Figure 5: slices.

FIGURE_5 = L(((3, 2), ((2, 3), 2)), ((4, 1), ((2, 15), 100)))


@pytest.mark.parametrize(
    ("coord", "offset", "kept"),
    [
        ((2, None), 8, L(((2, 3), 2), ((2, 15), 100))),
        ((None, 5), 32, L((3, 2), (4, 1))),
        ((2, ((0, None), None)), 8, L((3, 2), (15, 100))),
        (((None, 1), (None, 0)), 1, L((3, (2, 3)), (4, (2, 15)))),
        (((None, 0), ((0, None), 1)), 100, L((3, 3), (4, 15))),
        (((1, None), ((None, 0), None)), 4, L((2, (2, 2)), (1, (2, 100)))),
    ],
    ids=str,
)
def test_figure_5_a_slice_is_an_offset_and_the_open_modes(coord, offset, kept):
    assert FIGURE_5(coord) == kept + offset
    assert FIGURE_5(*coord) == kept + offset
    part, start = cute.slice_and_offset(coord, FIGURE_5)
    assert (tw.flatten(part), start) == (tw.flatten(kept), offset)


def test_figure_5_a_slice_holds_the_elements_that_match_its_coordinate():
    part = FIGURE_5(2, ((0, None), None))
    for column, page in product(range(3), range(2)):
        assert part(column, page) == FIGURE_5(2, ((0, column), page))


# Tables 2 and 3: the same loop copies, gathers, transposes and multiplies.


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (L(8), L(8)),
        (L((8, 2, 3), (1, 16, 32)), L((8, 2, 3), (1, 16, 32))),
        (L((2, 3, 2), (42, 1, 128)), L(12)),
        (L(12), L((2, 3, 2), (42, 1, 128))),
        (L(7, 0), L(7)),
        (L(7, 0), L(7, 0)),
        (L((8, 3), (1, 8)), L((8, 3), (3, 1))),
        (L((8, (3, 5)), (1, (57, 8))), L((8, 15), (1, 8))),
    ],
    ids=["array", "tensor", "gather", "scatter", "broadcast", "constant", "transpose", "tensor transpose"],
)
def test_table_2_one_copy_loop_serves_every_pair(source, target):
    assert source.size == target.size
    memory = {place: f"item {place}" for place in values(source)}
    stored = {target(i): memory[source(i)] for i in range(target.size)}
    assert [stored[target(i)] for i in range(target.size)] == [memory[source(i)] for i in range(source.size)]
    assert len(stored) == len(set(values(target)))


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        (L((3, 4), (1, 5)), L((2, 4), (1, 4)), L((3, 2), (1, 3))),
        (L((3, 4), (6, 1)), L((2, 4), (5, 1)), L((3, 2), (1, 4))),
        (L((3, 4), (2, 7)), L((2, 4), (3, 11)), L((3, 2), (5, 13))),
        (L(((2, 3), 2), ((1, 4), 17)), L((4, 2), (2, 1)), L(((2, 3), 4), ((1, 5), 23))),
        (
            L(((2, 3), (2, 2)), ((5, 19), (1, 2))),
            L(((2, 2), (2, 2)), ((7, 23), (1, 2))),
            L(((2, 3), (2, 2)), ((1, 2), (6, 12))),
        ),
        (
            L((2, (1, 1, 2, 2)), (1, (2, 2, 2, 4))),
            L(((1, 1, 2, 2), (1, 1, 2, 2)), ((4, 4, 4, 8), (1, 1, 1, 2))),
            L((2, (1, 1, 2, 2)), (1, (2, 2, 2, 4))),
        ),
    ],
    ids=["NT", "TN", "BLIS", "GETT rows", "GETT inner", "CONV"],
)
def test_table_3_one_loop_multiplies_matrices_of_any_layout(a, b, c):
    m, n, k = a.mode(0).size, b.mode(0).size, a.mode(1).size
    assert (c.mode(0).size, c.mode(1).size, b.mode(1).size) == (m, n, k)
    left = {a(i, p): 10 * i + p + 1 for i in range(m) for p in range(k)}
    right = {b(j, p): 7 * j - p for j in range(n) for p in range(k)}
    out = dict.fromkeys(values(c), 0)
    for i, j, p in product(range(m), range(n), range(k)):
        out[c(i, j)] += left[a(i, p)] * right[b(j, p)]
    for i, j in product(range(m), range(n)):
        assert out[c(i, j)] == sum((10 * i + p + 1) * (7 * j - p) for p in range(k))


# Section 3.1 and 3.2: joining and coalescing.


def test_section_3_1_a_joined_layout_adds_its_modes():
    first, second = L(3, 2), L(4, 6)
    joined = tw.layout.join(first, second)
    assert joined == L((3, 4), (2, 6))
    assert all(joined(i, j) == first(i) + second(j) for i, j in product(range(3), range(4)))


@pytest.mark.parametrize(
    ("layout", "profile", "expected"),
    [
        (L((2, (1, 6)), (1, (6, 2))), None, L(12, 1)),
        (L(((4, 3), 5), ((15, 1), 3)), None, L((4, 15), (15, 1))),
        (L((2, (1, 6)), (1, (6, 2))), (None, None), L((2, 6), (1, 2))),
    ],
    ids=str,
)
def test_section_3_2_coalesce(layout, profile, expected):
    assert tw.coalesce(layout, profile) == expected
    assert values(expected) == values(layout)


# Section 3.3: composition.


@pytest.mark.parametrize("identity", [L(24), L((4, 6), (1, 4)), L((3, (4, 2)), (1, (3, 12)))], ids=str)
def test_section_3_3_identity_layouts_change_nothing(identity):
    assert values(identity) == list(range(24))
    other = L((6, 4), (5, 1))
    assert tw.functionally_equal(tw.compose(other, identity), other)
    assert tw.functionally_equal(tw.compose(identity, L((6, 4), (4, 1))), L((6, 4), (4, 1)))


def test_section_3_3_association_matters_only_past_the_middle_domain():
    a, b, c = L((4, 8), (1, 4)), L(16, 2), L(4, 1)
    assert values(tw.compose(a, tw.compose(b, c))) == values(tw.compose(tw.compose(a, b), c))
    a, b, c = L((5, 3), (1, 7)), L(4, 1), L(2, 5)
    assert without_padding(tw.compose(a, tw.compose(b, c))) == L(2, 7)
    assert without_padding(tw.compose(tw.compose(a, b), c)) == L(2, 5)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (L(7, 11), L(3, 4), L(3, 44)),
        (L(7, 11), L((3, 5), (6, 3)), L((3, 5), (66, 33))),
        (L((4, 6, 8, 10), (2, 3, 5, 7)), L(6, 12), L((2, 3), (9, 5))),
        (L((4, 2, 8), (3, 12, 97)), L(3, 3), L(3, 9)),
        (L(24, 3), L(8, 3), L(8, 9)),
    ],
    ids=str,
)
def test_section_3_3_compositions_that_are_strided(a, b, expected):
    assert without_padding(tw.compose(a, b)) == expected
    assert values(expected) == [a.extended(b(i)) for i in range(b.size)]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (L((4, 6, 8), (2, 3, 5)), L(6, 3)),
        (L((4, 2, 8), (3, 12, 97)), L(4, 3)),
        (L((4, 2, 8), (3, 15, 97)), L(3, 3)),
    ],
    ids=str,
)
def test_section_3_3_compositions_that_are_not_strided(a, b):
    result = tw.compose(a, b)
    assert isinstance(result, ComposedLayout)
    assert values(result) == [a(b(i)) for i in range(b.size)]
    with pytest.raises(LayoutError, match="divisible"):
        tw.compose(a, b, strided=True)


# Figure 6 and table 4: which thread holds which values of an 8 x 8 matrix.

THREAD_VALUES = L(((4, 8), 2), ((16, 1), 8))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (L((8, 8), (1, 8)), THREAD_VALUES),
        (L((8, 8), (8, 1)), L(((4, 8), 2), ((2, 8), 1))),
        (L((8, 8), (1, 9)), L(((4, 8), 2), ((18, 1), 9))),
        (L(((4, 2), (2, 4)), ((2, 16), (1, 8))), L(((4, (4, 2)), 2), ((8, (2, 16)), 1))),
        (L((8, 8), (1 @ ROW, 1 @ COLUMN)), L(((4, 8), 2), ((2 @ COLUMN, 1 @ ROW), 1 @ COLUMN))),
    ],
    ids=["column-major", "row-major", "padded", "interleaved", "coordinates"],
)
def test_table_4_partitioning_is_composition(data, expected):
    result = tw.compose(data, THREAD_VALUES)
    assert result == expected
    assert values(result) == [data(THREAD_VALUES(i)) for i in range(64)]


def test_table_4_a_swizzled_matrix_is_partitioned_inside_the_swizzle():
    swizzle = Swizzle(3, 0, 3)
    data = tw.compose(swizzle, L((8, 8), (1, 8)))
    result = tw.compose(data, THREAD_VALUES)
    assert result == tw.compose(swizzle, THREAD_VALUES)
    assert values(result) == [data(THREAD_VALUES(i)) for i in range(64)]


def test_figure_6_every_thread_holds_two_neighbours_in_a_row():
    for (quad, row), value in product(tw.layout.coordinates((4, 8)), range(2)):
        place = THREAD_VALUES((quad, row), value)
        assert (place % 8, place // 8) == (row, 2 * quad + value)


# Figure 7 and 12: tilers.

EVEN_ROWS, EVEN_COLUMNS = range(0, 8, 2), range(0, 16, 2)


@pytest.mark.parametrize(
    ("tiler", "rows", "columns"),
    [
        ((4, 8), range(4), range(8)),
        ((L(4), L(8)), range(4), range(8)),
        ((L((2, 2), (1, 4)), L(8)), (0, 1, 4, 5), range(8)),
        ((L((2, 2), (1, 4)), L(8, 2)), (0, 1, 4, 5), EVEN_COLUMNS),
        ((L(4, 2), L(8, 2)), EVEN_ROWS, EVEN_COLUMNS),
    ],
    ids=str,
)
def test_figure_7_a_tiler_picks_rows_and_columns(tiler, rows, columns):
    matrix = L((8, 16), (1, 8))
    picked = tw.compose(matrix, tiler)
    assert picked.offsets().tolist() == [[matrix(i, j) for j in columns] for i in rows]


@pytest.mark.parametrize(
    "tiler", [(4, 8), (L((2, 2), (1, 4)), 8), (L((2, 2), (1, 4)), L(8, 2)), (L(4, 2), L(8, 2))], ids=str
)
def test_figure_12_each_tiler_splits_the_matrix_into_four_tiles(tiler):
    matrix = L((8, 16), (1, 8))
    tiles = tw.zipped_divide(matrix, tiler)
    assert (tiles.mode(0).size, tiles.mode(1).size) == (32, 4)
    assert sorted(values(tiles)) == list(range(128))
    assert tw.functionally_equal(tiles(None, 0), tw.compose(matrix, tiler))


# Tables 5 and 6: inverses.

RIGHT_INVERSES = [
    (L((4, 8), (1, 4)), L(32, 1)),
    (L((4, 8), (8, 1)), L((8, 4), (4, 1))),
    (L((3, 7, 5), (5, 15, 1)), L((5, 21), (21, 1))),
    (L((4, (4, 2)), (4, (1, 16))), L((4, 4, 2), (4, 1, 16))),
    (L(((2, 2), (4, 2)), ((1, 8), (2, 16))), L((2, 4, 2, 2), (1, 4, 2, 16))),
    (L((4, 8), (1, 5)), L(4, 1)),
    (L(((2, 2), (2, 4)), ((0, 1), (0, 2))), L((2, 4), (2, 8))),
    (L(((2, 2), (2, 4)), ((0, 2), (0, 4))), L(1, 0)),
]
LEFT_INVERSES = [
    *RIGHT_INVERSES[:5],
    (L((4, 8), (1, 5)), L((5, 8), (1, 4))),
    (L(((2, 2), (2, 4)), ((0, 1), (0, 2))), L((2, 4), (2, 8))),
    (L(((2, 2), (2, 4)), ((0, 2), (0, 4))), L((2, 2, 4), (0, 2, 8))),
]


@pytest.mark.parametrize(("layout", "expected"), RIGHT_INVERSES, ids=str)
def test_table_5_right_inverses(layout, expected):
    assert tw.right_inverse(layout) == expected
    assert [layout(expected(i)) for i in range(expected.size)] == list(range(expected.size))


@pytest.mark.parametrize(("layout", "expected"), LEFT_INVERSES, ids=str)
def test_table_6_left_inverses(layout, expected):
    assert without_padding(tw.left_inverse(layout)) == expected
    assert [layout(expected(layout(i))) for i in range(layout.size)] == values(layout)


@pytest.mark.parametrize("invert", [tw.right_inverse, tw.left_inverse])
def test_tables_5_and_6_a_swizzled_layout_is_its_own_kind_of_inverse(invert):
    swizzle = Swizzle(2, 0, 2)
    layout = tw.compose(swizzle, L((4, (4, 3)), (1, (4, 16))))
    inverse = invert(layout)
    assert [inverse(i) for i in range(48)] == values(tw.compose(swizzle, L((4, 4, 3), (1, 4, 16))))
    assert [layout(inverse(i)) for i in range(48)] == list(range(48))


def test_tables_5_and_6_coordinate_layouts_are_inverted_over_their_axes():
    identity = L((4, 8), (1 @ ROW, 1 @ COLUMN))
    blocked = L((4, (4, 2)), (1 @ COLUMN, (1 @ ROW, 6 @ COLUMN)))
    for layout in (identity, blocked):
        back = tw.left_inverse(layout, axes=(ROW, COLUMN))
        places = values(layout)
        assert [back(place.row, place.column) for place in places] == list(range(32))
    forth = tw.right_inverse(blocked, axes=(ROW, COLUMN))
    for i, j in product(range(4), range(4)):
        assert blocked(forth(i, j)) == Place(row=i, column=j)


# Figure 8: what two layouts keep contiguous together.


@pytest.mark.parametrize(
    ("source", "target", "width"),
    [
        (L((4, 4), (1, 4)), L(((2, 2), 4), ((1, 8), 2)), 2),
        (L(((2, 2), (2, 2)), ((8, 2), (4, 1))), L(((2, 2), (2, 2)), ((4, 2), (8, 1))), 4),
    ],
    ids=str,
)
def test_figure_8_common_vectors(source, target, width):
    assert cute.max_common_vector(source, target) == width
    common = cute.max_common_layout(source, target)
    assert [source(common(i)) for i in range(width)] == list(range(width))
    assert [target(common(i)) for i in range(width)] == list(range(width))


# Section 3.4.4: tensor memory, 16384 to a lane.


@pytest.mark.parametrize(
    ("layout", "last"),
    [
        (L((1, 128), (1, 16384)), 127 * 16384),
        (L((2, 128), (1, 16384)), 1 + 127 * 16384),
        (L((8, (16, 4)), (1, (16384, 32 * 16384))), 7 + (15 + 3 * 32) * 16384),
    ],
    ids=str,
)
def test_section_3_4_4_tensor_memory_layouts_are_injective_and_end_where_they_should(layout, last):
    assert layout(layout.size - 1) == last == layout.cosize - 1
    assert tw.is_injective(layout)


# Table 7: complements, in coalesced form.


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (L((4, 8), (1, 4)), L(1, 0)),
        (L((4, 8), (8, 1)), L(1, 0)),
        (L((4, (4, 2)), (4, (1, 16))), L(1, 0)),
        (L((4, 8), (1, 5)), L(1, 0)),
        (L((4, 8), (1, 8)), L(2, 4)),
        (L(((2, 2), (2, 4)), ((0, 1), (0, 2))), L(1, 0)),
        (L(((2, 2), (2, 4)), ((0, 2), (0, 4))), L(2, 1)),
    ],
    ids=str,
)
def test_table_7_complements(layout, expected):
    assert tw.complement(layout) == expected
    assert set(values(layout)) & set(values(expected)) == {0}


# Section 3.5: products and divides.


@pytest.mark.parametrize(
    ("operation", "a", "b", "expected"),
    [
        (tw.logical_product, L((3, 4), (4, 1)), L((2, 5)), L(((3, 4), (2, 5)), ((4, 1), (12, 24)))),
        (tw.logical_product, L((4, 8), (20, 2)), L((3, 2), (2, 1)), L(((4, 8), (3, 2)), ((20, 2), (80, 1)))),
        (tw.blocked_product, L((3, 4), (4, 1)), L((2, 5)), L(((3, 2), (4, 5)), ((4, 12), (1, 24)))),
        (tw.layout.raked_product, L((3, 4), (4, 1)), L((2, 5)), L(((2, 3), (5, 4)), ((12, 4), (24, 1)))),
        (tw.logical_divide, L(24, 3), L(8, 3), L((8, 3), (9, 3))),
        (tw.logical_divide, L((6, 2, 2), (2, 1, 20)), L(8, 3), L(((2, 2, 2), 3), ((6, 1, 20), 2))),
        (tw.logical_divide, L((8, 16), (20, 1)), (L(4), L(8, 2)), L(((4, 2), (8, 2)), ((20, 80), (2, 1)))),
        (tw.zipped_divide, L((8, 16), (20, 1)), (L(4), L(8, 2)), L(((4, 8), (2, 2)), ((20, 2), (80, 1)))),
    ],
)
def test_section_3_5_products_and_divides(operation, a, b, expected):
    assert operation(a, b) == expected


def test_figure_10_blocks_follow_each_other_and_figure_11_they_interleave():
    block, grid = L((3, 4), (4, 1)), L((2, 5))
    blocked, raked = tw.blocked_product(block, grid), tw.layout.raked_product(block, grid)
    assert [blocked(i, 0) for i in range(6)] == [0, 4, 8, 12, 16, 20]
    assert [raked(i, 0) for i in range(6)] == [0, 12, 4, 16, 8, 20]
    assert sorted(values(blocked)) == sorted(values(raked)) == list(range(120))
