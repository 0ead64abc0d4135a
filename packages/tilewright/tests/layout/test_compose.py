# SPDX-License-Identifier: Apache-2.0
"""Composition: `compose(A, B)` takes i to A(B(i)), always, and is a `Layout` whenever a strided one exists."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Swizzle, cute

from ..cases import examples
from .reference import continued, is_strided_over, layouts_into, table, valid_flags, values, without_padding
from .strategies import layouts, leaves, named_layouts, shapes, tilers

OUTER = layouts(max_size=48, allow_empty=True)
INNER = layouts(max_size=48, allow_zero=True, allow_empty=True)


@st.composite
def padded_layouts(draw, max_size=40):
    """Return a layout of which only some coordinates are data, mode by mode."""
    layout = draw(layouts(max_size=max_size, min_rank=1, max_rank=2))
    extents = tuple([layout.mode(k).size for k in range(layout.rank)])
    if draw(st.booleans()):
        return tw.with_logical_shape(layout, tuple([draw(st.integers(0, n)) for n in extents]))
    return tw.pad(layout, tuple([n + draw(st.integers(0, 3)) for n in extents]))


@st.composite
def pairs_in_domain(draw, max_size=48):
    outer = draw(layouts(max_size=max_size))
    return outer, draw(layouts_into(outer.size, max_size=max_size))


def assert_is_the_composition(result, outer, inner):
    """The law, for any outer and inner: same size, refined shape, same places, validity of both."""
    assert result.size == inner.size
    assert cute.compatible(inner, result)
    for i in range(inner.size):
        at = inner(i)
        assert result(i) == outer.extended(at), f"{outer} o {inner} gave {result}, wrong at {i}"
        assert result.valid(i) == (inner.valid(i) and outer.valid(at)), f"{result} has wrong validity at {i}"


# The law.


@given(OUTER, INNER)
def test_composition_is_the_function_of_the_function(outer, inner):
    result = tw.compose(outer, inner)
    assert_is_the_composition(result, outer, inner)
    assert values(result) == [continued(outer, place) for place in table(inner)]
    assert valid_flags(result) == [0 <= place < outer.size for place in table(inner)]


@given(pairs_in_domain())
def test_composition_inside_the_domain_is_all_data(pair):
    outer, inner = pair
    result = tw.compose(outer, inner, exact=True)
    by_hand = table(outer)
    assert values(result) == [by_hand[place] for place in table(inner)]
    assert all(valid_flags(result))


@given(padded_layouts(), layouts(max_size=32))
def test_composition_with_a_padded_outer_layout_keeps_what_is_data(outer, inner):
    assert_is_the_composition(tw.compose(outer, inner), outer, inner)


@given(layouts(max_size=32), padded_layouts())
def test_composition_with_a_padded_inner_layout_keeps_what_is_data(outer, inner):
    assert_is_the_composition(tw.compose(outer, inner), outer, inner)


@given(padded_layouts(max_size=24), padded_layouts(max_size=24))
def test_composition_of_two_padded_layouts_is_data_where_both_are(outer, inner):
    assert_is_the_composition(tw.compose(outer, inner), outer, inner)


@given(named_layouts(max_size=32), layouts(max_size=32))
def test_named_layouts_compose_on_the_outer_side(outer, inner):
    assert_is_the_composition(tw.compose(outer, inner), outer, inner)


@given(layouts(max_size=16), named_layouts(max_size=8))
def test_named_layouts_do_not_compose_on_the_inner_side(outer, inner):
    if inner.axes:
        with pytest.raises(LayoutError, match="maps to the axes"):
            tw.compose(outer, inner)


@given(layouts(max_size=24), layouts(max_size=24), st.integers(1, 3), st.integers(-40, 40))
def test_replicas_of_the_outer_layout_are_kept(outer, inner, count, step):
    assert_is_the_composition(
        tw.compose(tw.replicate(outer, count, step), inner), tw.replicate(outer, count, step), inner
    )


@given(pairs_in_domain(max_size=24), st.integers(1, 3), st.integers(0, 40))
def test_replicas_of_the_inner_layout_go_through_the_outer_one(pair, count, step):
    outer, inner = pair
    result = tw.compose(outer, tw.replicate(inner, count, step))
    assert result.size == inner.size
    for i in range(inner.size):
        assert result(i) == {outer.extended(inner(i) + k * step) for k in range(count)}


@given(OUTER, st.integers(0, 60))
def test_an_integer_composes_as_the_first_so_many_indices(outer, n):
    assert values(tw.compose(outer, n)) == [continued(outer, i) for i in range(n)]


@given(layouts())
def test_none_leaves_a_layout_as_it_is(layout):
    assert tw.compose(layout, None) is layout


@given(pairs_in_domain(max_size=32), st.data())
def test_composition_is_associative_inside_the_domains(pair, data):
    a, b = pair
    c = data.draw(layouts_into(b.size, max_size=32))
    left, right = tw.compose(tw.compose(a, b), c), tw.compose(a, tw.compose(b, c))
    assert values(left) == values(right) == [a(b(c(i))) for i in range(c.size)]
    assert all(valid_flags(left))
    assert all(valid_flags(right))


def test_cute_composes_without_padding():
    assert tw.compose(Layout(7, 11), Layout(3, 4)).guards
    assert cute.composition(Layout(7, 11), Layout(3, 4)) == Layout(3, 44)
    with pytest.raises(LayoutError, match="not divisible"):
        cute.composition(Layout((3, 5), (5, 1)), Layout(6, 2))


def test_an_empty_outer_layout_only_composes_with_an_empty_one():
    with pytest.raises(LayoutError, match="empty"):
        tw.compose(Layout((0, 3), (1, 7)), Layout(2))
    assert tw.compose(Layout((0, 3), (1, 7)), Layout((2, 0))).size == 0


# Large layouts: the proof needs no enumeration.


def test_huge_layouts_compose_from_their_modes():
    outer = Layout((1 << 20, 1 << 20), (1 << 20, 1))
    result = tw.compose(outer, Layout((1 << 10, 1 << 30), (1 << 10, 1 << 10)))
    assert isinstance(result, (Layout, ComposedLayout))
    for i in (0, 5, 1 << 30, (1 << 40) - 1):
        assert result(i) == outer.extended(Layout((1 << 10, 1 << 30), (1 << 10, 1 << 10))(i))
    assert tw.compose(outer, 1 << 40) == outer


def test_a_step_that_does_not_divide_the_radix_is_cut_where_it_carries():
    outer = Layout((5, 1 << 20), (1 << 20, 1))
    inner = Layout((4, 1 << 13), (3, 10))  # too many points to compare one by one
    expected = Layout(((2, 2), 1 << 13), ((3 << 20, (1 << 20) + 1), 2))
    assert tw.compose(outer, inner) == expected
    assert all(expected(i) == outer(inner(i)) for i in range(0, inner.size, 501))


def test_a_window_of_a_tiled_matrix_is_strided():
    tiles = Layout(((16, 2, 128), (16, 2, 128)), ((16, 512, 131072), (1, 256, 1024)))
    window = Layout((32, 32), (1, 4096))
    assert tw.compose(tiles, window) == Layout(((16, 2), (16, 2)), ((16, 512), (1, 256)))


# Completeness: a strided answer is found whenever there is one.


@given(layouts(max_size=36), layouts(max_size=36))
def test_the_result_is_a_layout_exactly_when_a_strided_one_exists(outer, inner):
    extents = leaves(inner.shape)
    coordinates = product(*map(range, reversed(extents)))
    function = {coord[::-1]: continued(outer, place) for coord, place in zip(coordinates, table(inner), strict=True)}
    assert isinstance(tw.compose(outer, inner), Layout) == is_strided_over(extents, function)


SMALL_OUTERS = [
    Layout(shape, stride) for shape in ((2, 3), (3, 2), (3, 4)) for stride in ((1, 5), (4, 1), (3, 1), (1, 0))
]


@pytest.mark.parametrize("outer", SMALL_OUTERS, ids=str)
def test_every_small_line_and_grid_composes_as_strided_where_it_can(outer):
    strided = 0
    inners = [Layout(n, d) for n in range(1, 9) for d in range(-3, 7)]
    inners += [Layout(n, d) - 3 for n in range(2, 7) for d in (1, 2, 3)]
    inners += [Layout((m, n), (d, e)) for m, n in ((2, 2), (2, 3), (3, 2)) for d in range(5) for e in range(5)]
    for inner in inners:
        extents = leaves(inner.shape)
        points = [inner(i) for i in range(inner.size)]
        coordinates = (coord[::-1] for coord in product(*map(range, reversed(extents))))
        function = {coord: continued(outer, at) for coord, at in zip(coordinates, points, strict=True)}
        result = tw.compose(outer, inner)
        assert values(result) == list(function.values())
        assert isinstance(result, Layout) == is_strided_over(extents, function), f"{outer} o {inner}"
        strided += isinstance(result, Layout)
    assert 0 < strided < len(inners)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        (Layout((3, 5), (5, 1)), Layout(3) - 1, Layout(3, 5) - 5),  # below 0 signs turn
        (Layout((2, 2, 2), (1, 5, 7)), Layout((2, 2), (1, 3)), Layout((2, 2), (1, 6))),  # two carries that cancel
    ],
    ids=str,
)
def test_strided_compositions_that_no_digit_proof_finds_are_found(outer, inner, expected):
    assert without_padding(tw.compose(outer, inner)) == expected
    assert values(expected) == [continued(outer, place) for place in table(inner)]


# The strict forms.


@given(OUTER, INNER)
def test_strided_raises_exactly_where_the_result_is_not_a_layout(outer, inner):
    result = tw.compose(outer, inner)
    if isinstance(result, Layout):
        assert tw.compose(outer, inner, strided=True) == result
    else:
        with pytest.raises(LayoutError, match="divisible"):
            tw.compose(outer, inner, strided=True)


@given(layouts(max_size=32), st.one_of(layouts(max_size=32), padded_layouts(max_size=24)))
def test_exact_raises_exactly_where_some_coordinate_is_not_data(outer, inner):
    result = tw.compose(outer, inner)
    if all(valid_flags(result)):
        assert values(tw.compose(outer, inner, exact=True)) == values(result)
    else:
        with pytest.raises(LayoutError, match="leaves the data"):
            tw.compose(outer, inner, exact=True)


# By mode.


def by_definition(layout, tiler):
    """Return (place, valid) of every index of layout composed mode by mode, relative to its offset."""
    if isinstance(tiler, tuple):
        modes = [layout.mode(k) for k in range(layout.rank)]
        parts = [by_definition(mode, tiler[k] if k < len(tiler) else None) for k, mode in enumerate(modes)]
        rows = product(*reversed(parts))
        return [(sum(place for place, _ in row), all(valid for _, valid in row)) for row in rows]
    layout = layout - layout.offset
    tile = Layout(layout.size) if tiler is None else tiler if isinstance(tiler, Layout) else Layout(tiler)
    places = [tile(i) for i in range(tile.size)]
    return [(layout.extended(at), layout.valid(at)) for at in places]


@given(layouts(max_size=48, min_rank=1), st.data())
def test_a_tuple_composes_mode_by_mode(layout, data):
    tiler = data.draw(tilers(layout, by_mode=True))
    result = tw.compose(layout, tiler)
    expected = by_definition(layout, tiler)
    assert values(result) == [place + layout.offset for place, _ in expected]
    assert valid_flags(result) == [valid for _, valid in expected]


@given(padded_layouts(), st.data())
def test_a_tuple_composes_mode_by_mode_with_padding(layout, data):
    assume(isinstance(layout, Layout))  # padding runs across nested modes, so tilers stay at the top level
    tiler = tuple([data.draw(tilers(mode, by_mode=False)) for mode in layout.modes])
    result = tw.compose(layout, tiler)
    expected = by_definition(layout, tiler)
    assert values(result) == [place + layout.offset for place, _ in expected]
    assert valid_flags(result) == [valid for _, valid in expected]


def test_nested_tuples_reach_into_nested_modes():
    layout = Layout(((4, 6), 5), ((1, 4), 24))
    assert tw.compose(layout, ((2, 3), None)) == Layout(((2, 3), 5), ((1, 4), 24))
    assert tw.compose(layout, ((None, Layout(3, 2)),)) == Layout(((4, 3), 5), ((1, 8), 24))
    assert tw.compose(layout, (12, 2)) == Layout((12, 2), (1, 24))


def test_a_tuple_with_more_entries_than_modes_is_refused():
    with pytest.raises(LayoutError, match="more modes"):
        tw.compose(Layout((4, 8)), (2, 2, 2))


def test_a_mode_that_is_not_strided_is_composed_exactly():
    layout = Layout(((3, 5), 4), ((5, 1), 100))
    result = tw.compose(layout, (Layout(6, 2), 3))
    assert isinstance(result, ComposedLayout)
    assert result.offsets().tolist() == [
        [column * 100 + place for column in range(3)] for place in (0, 10, 6, 2, 12, 8)
    ]
    with pytest.raises(LayoutError, match="divisible"):
        tw.compose(layout, (Layout(6, 2), 3), strided=True)


# Compositions that stay compositions.


@st.composite
def composed_layouts(draw):
    """Return (composition, the same places by hand): swizzled, or not strided."""
    if draw(st.booleans()):
        swizzle = Swizzle(draw(st.integers(1, 2)), draw(st.integers(0, 1)), draw(st.sampled_from([-3, -2, 2, 3])))
        inner = draw(layouts(max_size=32, kinds=("compact", "padded")).filter(lambda layout: layout.bounds[0] >= 0))
        return ComposedLayout(swizzle, inner), [swizzle(place) for place in table(inner)]
    outer, inner = draw(pairs_in_domain(max_size=32))
    by_hand = table(outer)
    return ComposedLayout(outer, inner), [by_hand[place] for place in table(inner)]


@given(composed_layouts())
def test_a_composition_evaluates_one_by_one_and_in_bulk(pair):
    layout, expected = pair
    assert values(layout) == expected
    assert layout.offsets().reshape(-1, order="F").tolist() == expected
    assert layout(np.arange(layout.size)).tolist() == expected
    assert layout.cosize == max([0, *expected]) + 1 - min([0, *expected])


@given(composed_layouts(), st.data())
def test_a_composition_composes_further_on_the_inner_side(pair, data):
    layout, expected = pair
    tile = data.draw(layouts_into(layout.size, max_size=24))
    result = tw.compose(layout, tile)
    assert values(result) == [expected[place] for place in table(tile)]
    assert cute.compatible(tile, result)


@given(composed_layouts(), layouts(max_size=24))
def test_a_composition_composes_further_on_the_outer_side(pair, outer):
    layout, expected = pair
    result = tw.compose(outer, layout)
    assert values(result) == [continued(outer, place) for place in expected]
    assert valid_flags(result) == [0 <= place < outer.size for place in expected]


@given(composed_layouts(), st.data())
def test_a_composition_composes_mode_by_mode(pair, data):
    layout, _ = pair
    assume(isinstance(layout.shape, tuple))
    counts = tuple([data.draw(st.integers(1, n)) for n in cute.product_each(layout.shape)])
    result = tw.compose(layout, counts)
    assert cute.product_each(result.shape) == counts
    for coord in product(*map(range, counts)):
        assert result(*coord) == layout(*coord)


@given(composed_layouts(), st.data())
def test_a_composition_can_be_sliced(pair, data):
    layout, _ = pair
    modes = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    sizes = [cute.size(mode) for mode in modes]
    coord = tuple([data.draw(st.one_of(st.none(), st.integers(0, n - 1))) for n in sizes])
    if None not in coord:
        return
    part = layout(*coord)
    assert isinstance(part, ComposedLayout)
    open_sizes = [n for n, c in zip(sizes, coord, strict=True) if c is None]
    expected = []
    for chosen in product(*map(range, reversed(open_sizes))):
        free = iter(chosen[::-1])
        expected.append(layout(*[next(free) if c is None else c for c in coord]))
    assert values(part) == expected


@given(composed_layouts())
def test_a_composition_prints_what_can_be_read_back(pair):
    layout, _ = pair
    assert str(layout) == f"{layout.outer} o {layout.inner}"
    assert tw.parse(str(layout)) == layout
    assert repr(layout) == f"ComposedLayout({layout.outer!r}, {layout.inner!r})"


@given(composed_layouts(), composed_layouts())
def test_compositions_are_equal_when_their_parts_are(first, second):
    a, b = first[0], second[0]
    same = a.outer == b.outer and a.inner == b.inner
    assert (a == b) == same
    copy = ComposedLayout(a.outer, a.inner)
    assert copy == a
    assert hash(copy) == hash(a)
    assert len({a, copy}) == 1
    assert a != a.inner


def test_a_composition_needs_functions():
    with pytest.raises(TypeError, match="outer"):
        ComposedLayout((4, 8), Layout(4))
    with pytest.raises(TypeError, match="inner"):
        ComposedLayout(Layout(4), 4)


@given(layouts(max_size=32))
def test_a_swizzle_on_the_inner_side_permutes_the_index(layout):
    swizzle = Swizzle(1, 0, 1)
    result = tw.compose(layout, swizzle)
    assert values(result) == [continued(layout, swizzle(i)) for i in range(layout.size)]


@given(shapes(max_size=64), st.integers(0, 3), st.integers(0, 2), st.integers(-3, 3))
def test_a_swizzle_on_the_outer_side_permutes_the_places(shape, bits, base, shift):
    if abs(shift) < bits:
        return
    swizzle, inner = Swizzle(bits, base, shift), Layout(shape)
    assert values(tw.compose(swizzle, inner)) == [swizzle(i) for i in range(inner.size)]


# An independent oracle: the same relations in the integer set library.


def as_relation(layout):
    """Return a layout as an isl map from index to place, with divisions and remainders."""
    islpy = pytest.importorskip("islpy")
    terms, below = [str(layout.offset)], 1
    for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True):
        terms.append(f"{d} * (floor(i / {below}) mod {n})")
        below *= n
    return islpy.Map(f"{{ [i] -> [o] : 0 <= i < {layout.size} and o = {' + '.join(terms)} }}")


def points(relation):
    """Return the pairs of an isl map as a dictionary."""
    islpy = pytest.importorskip("islpy")
    found = {}

    def visit(point):
        key, value = (point.get_coordinate_val(islpy.dim_type.set, k).to_python() for k in range(2))
        assert key not in found
        found[key] = value

    relation.wrap().foreach_point(visit)
    return found


@examples(60)
@given(layouts(max_size=30), layouts(max_size=30))
def test_composition_agrees_with_the_integer_set_library(outer, inner):
    relation = as_relation(inner).apply_range(as_relation(outer))
    result = tw.compose(outer, inner)
    assert points(relation) == {i: result(i) for i in range(result.size) if result.valid(i)}


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        (Layout((3, 5), (5, 1)), Layout(6, 2)),
        (Layout((4, 6, 8), (2, 3, 5)), Layout(6, 3)),
        (Layout((5, 7), (7, 1)), Layout((5, 7), (2, 3))),
        (Layout((3, 5, 2), (10, 2, 1)), Layout((4, 3), (5, 2))),
        (Layout((7, 3), (1, 11)), Layout((2, 5), (9, -1), offset=4)),
        (Layout((4, 3), (3, 1)), Layout(24)),
    ],
    ids=str,
)
def test_chosen_ragged_pairs_agree_with_the_integer_set_library(outer, inner):
    relation = as_relation(inner).apply_range(as_relation(outer))
    result = tw.compose(outer, inner)
    assert points(relation) == {i: result(i) for i in range(result.size) if result.valid(i)}
    assert len(points(relation)) == sum(0 <= inner(i) < outer.size for i in range(inner.size))


@pytest.mark.parametrize(
    ("outer", "place", "cosize"),
    [
        (Layout((3, 4), (4, 1)), 9, 10),
        (tw.layout.PagedLayout(4, [8, 0]), 1, 2),
        (Layout((3, 4), (4 @ tw.addr, 1 @ tw.bank)), tw.Place(addr=8, bank=1), tw.Place(addr=9, bank=2)),
    ],
)
def test_a_composition_without_modes_is_one_place(outer, place, cosize):
    point = ComposedLayout(outer, Layout((), offset=5))
    assert point() == place
    assert point.cosize == cosize
