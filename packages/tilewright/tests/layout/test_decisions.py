# SPDX-License-Identifier: Apache-2.0
"""Where the peers disagree: a test for each decision of the reference, and for each wrong answer it names."""

import pytest

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Swizzle, cute

from .reference import without_padding


def values(layout):
    return [layout(i) for i in range(layout.size)]


# The wrong answers of section 1: (outer, inner, the true places).
NAMED_WRONG_ANSWERS = [
    (Layout((3, 5), (5, 1)), Layout(6, 2), [0, 10, 6, 2, 12, 8]),
    (Layout((4, (2, 4)), (2, (1, 8))), Layout((2, 2), (1, 3)), [0, 2, 6, 1]),
    (Layout((3, 1, 6), (6, 36, 1)), Layout(4, 1), [0, 6, 12, 1]),
    (Layout((4, 6, 8), (1, 4, 7)), Layout(6, 1), [0, 1, 2, 3, 4, 5]),
]


@pytest.mark.parametrize(("outer", "inner", "expected"), NAMED_WRONG_ANSWERS, ids=str)
def test_compositions_that_peers_get_wrong_are_right_here(outer, inner, expected):
    result = tw.compose(outer, inner)
    assert values(result) == expected == [outer(inner(i)) for i in range(inner.size)]
    assert result.offsets().reshape(-1, order="F").tolist() == expected


def test_a_tiled_matrix_has_the_check_value_of_the_reference():
    tiles = Layout(((16, 2, 128), (16, 2, 128)), ((16, 512, 131072), (1, 256, 1024)))
    assert tiles(1234, 2345) == 5056041
    assert tiles((2, 1, 38), (9, 0, 73)) == 5056041
    assert tiles(1234 + 4096 * 2345) == 5056041


def test_decision_1_only_proven_compositions_are_layouts():
    carries = tw.compose(Layout((3, 5), (5, 1)), Layout(6, 2))
    assert isinstance(carries, ComposedLayout)
    adds_up = tw.compose(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))
    assert adds_up == Layout(((2, 2), 3), ((24, 2), 8))


def test_decision_2_what_does_not_divide_is_composed_or_refused():
    outer, inner = Layout((4, 6, 8), (2, 3, 5)), Layout(6, 3)
    result = tw.compose(outer, inner)
    assert isinstance(result, ComposedLayout)
    assert values(result) == [outer(3 * i) for i in range(6)]
    with pytest.raises(LayoutError, match="divisible"):
        tw.compose(outer, inner, strided=True)


@pytest.mark.parametrize(
    ("outer", "inner", "expected", "inside"),
    [
        (Layout(7, 11), Layout(3, 4), Layout(3, 44), [True, True, False]),
        (Layout((4, 3), (3, 1)), Layout(24), Layout((4, 6), (3, 1)), [True] * 12 + [False] * 12),
        (Layout(1, 1), Layout(6), Layout(6, 0), [True] + [False] * 5),
    ],
    ids=str,
)
def test_decision_3_outer_is_continued_where_inner_leaves_its_domain(outer, inner, expected, inside):
    result = tw.compose(outer, inner)
    assert without_padding(result) == expected
    assert [result.valid(i) for i in range(result.size)] == inside
    assert values(result) == [outer.extended(inner(i)) for i in range(inner.size)]


def test_decision_4_coordinates_are_checked_and_the_continued_function_has_a_name():
    layout = Layout((4, 8))
    with pytest.raises(tw.errors.CoordinateError) as caught:
        layout((9, 9))
    assert isinstance(caught.value, (LayoutError, IndexError))
    assert "(9, 9)" in str(caught.value)
    assert "(4, 8)" in str(caught.value)
    assert layout.extended((9, 9)) == 9 + 4 * 9
    assert layout.extended(32) == 32


@pytest.mark.parametrize(("outer", "inner", "expected"), NAMED_WRONG_ANSWERS, ids=str)
def test_decision_5_the_result_has_the_size_of_inner_and_refines_its_shape(outer, inner, expected):
    result = tw.compose(outer, inner)
    assert result.size == inner.size
    assert cute.compatible(inner, result)


def test_decision_6_a_ragged_divide_by_mode_covers_and_remembers():
    ragged = tw.logical_divide(Layout((5, 8), (1, 5)), (2, 4))
    assert without_padding(ragged) == Layout(((2, 3), (4, 2)), ((1, 2), (5, 20)))
    located = [ragged.locate(i) for i in range(ragged.size)]
    assert sorted(place for place, valid in located if valid) == list(range(40))
    assert sum(not valid for _, valid in located) == 8


def test_decision_7_a_flat_tiler_runs_over_the_flat_index():
    layout = Layout((16, 4), (8, 1))
    divided = tw.logical_divide(layout, 3)
    assert isinstance(divided, ComposedLayout)
    assert divided.size == 66
    found = [divided(i) for i in range(66) if divided.valid(i)]
    assert len(found) == 64
    assert found == values(layout)


@pytest.mark.parametrize(("shape", "stride"), [((2, 3), (1, 1)), ((4, 8), (1, 3)), ((2, 2, 2), (1, 0, 1))])
def test_decision_8_a_complement_needs_distinct_places_and_names_two_that_collide(shape, stride):
    layout = Layout(shape, stride)
    with pytest.raises(LayoutError, match="not injective") as caught:
        tw.complement(layout, 64)
    pairs = [(a, b) for a in layout for b in layout if a != b and layout(a) == layout(b)]
    assert any(f"{a} and {b}" in str(caught.value) for a, b in pairs)


def test_decision_8_a_complement_ignores_broadcast_and_unit_modes():
    assert tw.complement(Layout(4, 2), 16) == Layout((2, 2), (1, 8))
    assert tw.complement(Layout((3, 4, 1), (0, 2, 7)), 16) == Layout((2, 2), (1, 8))


def test_decision_9_the_complement_is_bounded_by_the_cosize_and_has_no_unit_tail():
    assert tw.complement(Layout((4, 8), (1, 8))) == Layout(2, 4)  # not (2, 1):(4, 64)
    assert tw.complement(Layout((4, 8), (1, 8)), 60) == Layout(2, 4)
    assert tw.complement(Layout((2, 2), (1, 4)), (4, 4)) == Layout((2, 2), (2, 8))
    assert tw.complement(Layout(32)) == Layout(1, 0)


def test_decision_10_a_complement_of_a_negative_stride_is_refused_in_those_words():
    with pytest.raises(LayoutError, match="negative stride"):
        tw.complement(Layout((2, 4), (4, -1)))


def test_decision_11_the_right_inverse_is_the_largest_strided_one():
    layout = Layout((5, (16, 6)), (6, (1, 1)))
    inverse = tw.right_inverse(layout)
    assert inverse == Layout((6, 5), (80, 1))
    assert [layout(inverse(i)) for i in range(30)] == list(range(30))


def test_decision_12_the_left_inverse_of_a_padded_layout_covers_its_places():
    layout = Layout((4, 8), (1, 5))
    inverse = tw.left_inverse(layout)
    assert without_padding(inverse) == Layout((5, 8), (1, 4))
    assert [inverse(layout(i)) for i in range(32)] == list(range(32))
    used = set(values(layout))
    assert [inverse.valid(place) for place in range(40)] == [place in used for place in range(40)]


def test_decision_12_without_a_strided_answer_the_left_inverse_is_an_exact_function():
    layout = Layout((2, 2), (2, 3))
    inverse = tw.left_inverse(layout)
    assert not isinstance(inverse, Layout)
    assert [inverse(place) for place in (0, 2, 3, 5)] == [0, 1, 2, 3]
    assert [inverse.valid(place) for place in range(6)] == [True, False, True, True, False, True]


@pytest.mark.parametrize("operation", [tw.left_inverse, lambda layout: tw.logical_product(layout, 2)])
def test_decision_13_colliding_layouts_have_no_left_inverse_and_no_product(operation):
    with pytest.raises(LayoutError, match="not injective"):
        operation(Layout((4, 8), (1, 3)))


def test_decision_13_broadcast_modes_can_be_inverted_and_repeated():
    layout = Layout((2, 4), (0, 1))
    inverse = tw.left_inverse(layout)
    assert [layout(inverse(layout(i))) for i in range(8)] == values(layout)
    assert tw.logical_product(layout, 3) == Layout(((2, 4), 3), ((0, 1), 4))


def test_decision_14_a_product_keeps_every_copy_where_the_gaps_do_not_divide():
    block = Layout((5, 4), (1, 10))
    result = tw.logical_product(block, Layout(5))
    assert isinstance(result, ComposedLayout)
    assert result.size == 100
    assert len(set(values(result))) == 100
    assert [result(0, k) for k in range(5)] == [0, 5, 40, 45, 80]
    with pytest.raises(LayoutError, match="divisible"):
        tw.logical_product(block, Layout(5), strided=True)


def test_decision_15_an_integer_in_a_product_means_that_many_copies():
    assert tw.logical_product(Layout(4), 3) == Layout((4, 3), (1, 4))
    assert tw.logical_product(Layout((2, 2), (4, 1)), 3) == tw.logical_product(Layout((2, 2), (4, 1)), Layout(3))


def test_decision_16_coalescing_a_unit_gives_stride_zero():
    assert tw.coalesce(Layout(1, 1)) == Layout(1, 0)
    assert tw.coalesce(Layout((2, (1, 6)), (1, (6, 2)))) == Layout(12, 1)
    assert tw.coalesce(Layout((2, 1, 3), (3, 5, 1))) == Layout((2, 3), (3, 1))


@pytest.mark.parametrize(
    ("shape", "stride"),
    [((1, 2, (3, 4)), (0, 1, (2, 6))), ((2, 1, 3), (1, 2, 2)), (1, 0), ((1, 1), (0, 0)), ((4, 8), (1, 4))],
)
def test_decision_17_leading_units_get_stride_zero_by_default(shape, stride):
    assert Layout(shape).stride == stride


def test_decision_18_layouts_count_iterate_and_hash_by_value():
    layout = Layout((2, (1, 2)))
    assert len(layout) == 4
    assert list(layout) == [(0, (0, 0)), (1, (0, 0)), (0, (0, 1)), (1, (0, 1))]
    assert cute.rank(5) == 0
    assert cute.rank(Layout(31, 1)) == 1
    assert len({layout, Layout((2, (1, 2))), Layout((2, 2))}) == 2


def test_decision_19_equality_is_structural_and_the_hash_agrees():
    nested, flat = Layout((2, 2), (1, 2)), Layout(4)
    assert nested != flat
    assert nested == Layout([2, 2], [1, 2])
    assert hash(nested) == hash(Layout([2, 2], [1, 2]))
    assert tw.functionally_equal(nested, flat)


@pytest.mark.parametrize("coord", [(1, None), (None, 2), (None, None), None], ids=str)
def test_decision_20_none_in_a_coordinate_always_gives_a_layout(coord):
    layout = Layout((4, 8), (8, 1))
    part = layout(coord)
    assert isinstance(part, Layout)
    fixed = coord if isinstance(coord, tuple) else (None, None)
    rows = range(4) if fixed[0] is None else [fixed[0]]
    columns = range(8) if fixed[1] is None else [fixed[1]]
    assert values(part) == [layout(row, column) for column in columns for row in rows]


def test_decision_21_a_swizzled_layout_is_a_composition():
    swizzled = tw.compose(Swizzle(2, 0, 2), tw.row_major(4, 4))
    assert isinstance(swizzled, ComposedLayout)
    assert swizzled.outer == Swizzle(2, 0, 2)
    assert [swizzled(1, column) for column in range(4)] == [5, 4, 7, 6]


def test_decision_22_negative_strides_are_exact_and_bounds_are_lowest_and_highest():
    layout = Layout((4, 8), (-1, 4))
    assert layout(3, 0) == -3
    assert layout.bounds == (-3, 28)
    assert layout.bounds == (min(values(layout)), max(values(layout)))
    assert Layout(9, -1).bounds == (-8, 0)


def test_decision_22a_downcast_widens_the_touching_mode_and_scales_the_others():
    assert cute.downcast(Layout((4, 8), (1, 4)), 2) == Layout((8, 8), (1, 8))
    assert cute.downcast(Layout((4, 8), (-1, 4)), 2) == Layout((8, 8), (-1, 8))
    assert cute.downcast(Layout((4, 8), (2, 8)), 2) == Layout((4, 8), (4, 16))


def test_decision_23_layout_errors_are_value_errors_and_wrong_types_are_type_errors():
    with pytest.raises(ValueError, match="negative extent -4") as caught:
        Layout((-4, 8))
    assert isinstance(caught.value, LayoutError)
    with pytest.raises(LayoutError, match=r"\(1,\).*\(4, 8\)"):
        Layout((4, 8), (1,))
    with pytest.raises(TypeError, match=r"shape.*float"):
        Layout((4.0, 8))
    with pytest.raises(TypeError, match=r"stride.*str"):
        Layout((4, 8), (1, "4"))
    with pytest.raises(TypeError, match="bool"):
        Layout(True)
    with pytest.raises(LayoutError, match=r"\(4,6,8\):\(2,3,5\) o 6:3"):
        tw.compose(Layout((4, 6, 8), (2, 3, 5)), Layout(6, 3), strided=True)
