# SPDX-License-Identifier: Apache-2.0
"""Padding: a logical extent inside a larger one, remembered by everything that is made from it."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Swizzle, addr, bank, cute
from tilewright.layout import Guard
from tilewright.layout.axes import data_extents, live_guards

from .reference import data, table, valid_flags, values, without_padding
from .strategies import layouts

L = Layout
LINES = st.lists(st.tuples(st.integers(1, 7), st.integers(0, 4)), min_size=1, max_size=3)


@st.composite
def marked_layouts(draw, least=0):
    """Return (layout, logical): a layout of which only coordinates inside logical are data."""
    layout = draw(layouts(max_size=64))
    logical = tuple([draw(st.integers(least, mode.size)) for mode in layout.modes])
    return tw.with_logical_shape(layout, logical), logical


# guards

GUARDS = st.builds(Guard, st.tuples(st.integers(-4, 4), st.integers(-4, 4)), st.integers(0, 12), st.integers(-6, 6))


@given(st.tuples(st.integers(0, 4), st.integers(1, 4)), st.lists(GUARDS, max_size=3))
def test_the_guards_that_count_are_those_that_some_coordinate_fails(shape, guards):
    failed = [guard for guard in guards if not all(guard.is_data([*at]) for at in product(*map(range, shape)))]
    assert live_guards(shape, guards) == tuple(dict.fromkeys(failed))


@given(st.tuples(st.integers(1, 4), st.integers(1, 4)), st.lists(GUARDS, max_size=2))
@example((4, 3), [Guard((1, 0), 2, -1)])
@example((4, 3), [Guard((1, 0), 2, 3)])
@example((4, 3), [Guard((-1, 0), 2, 3)])
def test_guards_that_leave_a_box_tell_its_extents(shape, guards):
    extents = data_extents(shape, tuple(guards))
    if extents is not None:
        data = [at for at in product(*map(range, shape)) if all(guard.is_data([*at]) for guard in guards)]
        assert data == [*product(*map(range, extents))]
        assert min(extents) >= 0


# pad


@given(LINES)
def test_padding_keeps_the_function_and_marks_what_was_not_there(modes):
    have = tuple([n for n, _ in modes])
    layout = tw.row_major(*have)
    wanted = tuple([n + more for n, more in modes])
    padded = tw.pad(layout, wanted)
    assert padded.shape == wanted
    for coord in product(*map(range, wanted)):
        inside = all(c < n for c, n in zip(coord, have, strict=True))
        assert padded.valid(*coord) == inside
        assert padded.locate(*coord) == (layout.extended(*coord), inside)
    assert sorted(data(padded)) == sorted(values(layout))
    assert padded.logical_shape == have


@given(layouts(max_size=48, min_rank=1, max_rank=2), st.integers(0, 5))
def test_padding_nested_modes_keeps_every_element(layout, more):
    wanted = tuple([mode.size + more for mode in layout.modes])
    padded = tw.pad(layout, wanted)
    assert cute.product_each(padded.shape) == wanted
    assert Counter(data(padded)) == Counter(table(layout))


def test_padding_to_the_same_shape_changes_nothing():
    layout = L((4, (2, 3)), (6, (3, 1)))
    padded = tw.pad(layout, (4, 6))
    assert padded == layout
    assert padded.guards == ()
    assert all(valid_flags(padded))


@pytest.mark.parametrize(
    ("layout", "shape", "words"),
    [
        (L((60, 90)), (64, 80), "less than the extent 90"),
        (L((60, 90)), 128, "has 1 extents"),
        (L((60, 90)), (64, (48, 2)), "nested"),
        (L(8), -1, "negative"),
    ],
)
def test_padding_to_what_does_not_fit_is_refused(layout, shape, words):
    with pytest.raises(LayoutError, match=words):
        tw.pad(layout, shape)


@pytest.mark.parametrize("extent", ["64", 64.0, None, True])
def test_padding_takes_integers_only(extent):
    with pytest.raises(TypeError):
        tw.pad(L(8), extent)


# within


@given(marked_layouts())
def test_only_coordinates_inside_the_logical_extents_are_data(pair):
    layout, logical = pair
    sizes = cute.product_each(layout.shape)
    for coord in product(*map(range, sizes)):
        assert layout.valid(*coord) == all(c < n for c, n in zip(coord, logical, strict=True))


@given(marked_layouts())
def test_marking_padding_moves_nothing(pair):
    layout, _ = pair
    assert values(layout) == table(layout)
    assert (layout == without_padding(layout)) == (not layout.guards)


@given(marked_layouts(least=1))
def test_the_logical_shape_is_what_was_given(pair):
    layout, logical = pair
    assert layout.logical_shape == logical


@given(marked_layouts(least=1), st.data())
def test_marking_twice_keeps_the_smaller_extents(pair, draws):
    layout, first = pair
    second = tuple([draws.draw(st.integers(1, n)) for n in cute.product_each(layout.shape)])
    assert tw.with_logical_shape(layout, second).logical_shape == tuple(map(min, first, second))


def test_within_gives_padding_room_of_its_own():
    stored = tw.with_logical_shape(tw.row_major(64, 96), (60, 90))
    assert stored(1, 0) == 96
    assert stored.valid(59, 89)
    assert not stored.valid(60, 0)
    assert not stored.valid(0, 90)
    assert len(data(stored)) == 60 * 90


def test_within_needs_one_extent_for_each_mode():
    with pytest.raises(LayoutError, match="2 modes"):
        tw.with_logical_shape(L((4, 8)), 4)
    with pytest.raises(LayoutError, match="negative"):
        tw.with_logical_shape(L((4, 8)), (4, -1))


def test_a_composition_can_be_marked_too():
    swizzled = tw.with_logical_shape(tw.compose(Swizzle(2, 0, 2), tw.row_major(4, 4)), (3, 4))
    assert isinstance(swizzled, ComposedLayout)
    assert valid_flags(swizzled) == [i % 4 < 3 for i in range(16)]


def test_named_layouts_are_padded_and_marked_too():
    pages = L((12, 10), (1 @ bank, 64 @ addr))
    assert tw.pad(pages, (12, 16)).logical_shape == (12, 10)
    marked = tw.with_logical_shape(pages, (11, 10))
    assert marked(11, 0) == tw.Place(bank=11)
    assert not marked.valid(11, 0)


# Bulk evaluation.


@given(marked_layouts())
def test_tables_show_the_fill_value_where_there_is_no_data(pair):
    layout, _ = pair
    assert layout.offsets().reshape(-1, order="F").tolist() == table(layout)
    filled = layout.offsets(fill=-999).reshape(-1, order="F").tolist()
    assert filled == [at if valid else -999 for at, valid in zip(table(layout), valid_flags(layout), strict=True)]
    index = np.arange(layout.size)
    assert np.broadcast_to(layout.valid(index), index.shape).tolist() == valid_flags(layout)


@given(st.data())
def test_a_composition_has_data_where_both_its_layouts_have(draws):
    inner = tw.with_logical_shape(L((5, 3), (1, 7)), draws.draw(st.tuples(st.integers(0, 5), st.integers(0, 3))))
    outer = tw.with_logical_shape(L(32, 2), draws.draw(st.integers(0, 32)))
    for layout in (ComposedLayout(outer, inner), ComposedLayout(L(32, 2), inner), ComposedLayout(outer, L(9))):
        filled = layout.offsets(fill=-999).reshape(-1, order="F").tolist()
        assert filled == [layout(i) if layout.valid(i) else -999 for i in range(layout.size)]


def test_arrays_of_coordinates_may_be_given_leaf_by_leaf():
    padded = tw.pad(L(((2, 2), 3)), (4, 4))
    column = np.array([0, 2, 3, 4])
    assert padded.valid(np.array(1), np.array(1), column).tolist() == [True, True, False, False]
    assert padded.valid(np.array(1), np.array(2), column).tolist() == [False] * 4


def test_arrays_of_coordinates_may_leave_a_padded_layout_only_when_asking_for_validity():
    padded = tw.pad(L(100), 128)
    index = np.array([0, 99, 100, 127, 128, -1])
    assert padded.valid(index).tolist() == [True, True, False, False, False, False]
    with pytest.raises(tw.errors.CoordinateError):
        padded(index)


def test_locate_gives_a_place_even_outside():
    tiles = tw.logical_divide(L(100), 32)
    assert tiles.locate(3, 3) == (99, True)
    assert tiles.locate(4, 3) == (100, False)
    assert tiles.locate(128) == (128, False)


# Carried through the algebra.


@given(marked_layouts(), st.data())
def test_slices_keep_what_is_data(pair, draws):
    layout, _ = pair
    sizes = cute.product_each(layout.shape)
    coord = [draws.draw(st.one_of(st.none(), st.integers(0, n - 1))) for n in sizes]
    coord[draws.draw(st.integers(0, len(coord) - 1))] = None
    part = layout(*coord)
    expected = []
    open_sizes = [n for n, c in zip(sizes, coord, strict=True) if c is None]
    for chosen in product(*map(range, reversed(open_sizes))):
        free = iter(chosen[::-1])
        at = [next(free) if c is None else c for c in coord]
        expected.append((layout(*at), layout.valid(*at)))
    assert [(part(i), part.valid(i)) for i in range(part.size)] == expected


@given(marked_layouts(least=1))
def test_modes_keep_what_is_data_along_them(pair):
    layout, logical = pair
    for k, extent in enumerate(logical):
        assert valid_flags(layout.mode(k)) == [i < extent for i in range(layout.mode(k).size)]


@given(marked_layouts(), st.integers(1, 7))
def test_divides_and_products_keep_what_is_data(pair, tile):
    layout, _ = pair
    for divide in (tw.logical_divide, tw.zipped_divide, tw.layout.flat_divide):
        assert Counter(data(divide(layout, (tile,)))) == Counter(data(layout))
    if tw.is_injective(L(layout.shape, layout.stride)) and min(table(layout)) >= layout.offset:
        assert len(data(tw.logical_product(layout, tile))) == tile * len(data(layout))


@given(marked_layouts())
def test_arrays_of_indices_know_what_is_data_past_the_edges_too(pair):
    layout, _ = pair
    index = np.arange(-2, layout.size + 3)
    assert layout.valid(index).tolist() == [layout.valid(int(i)) for i in index]


@given(marked_layouts())
def test_other_forms_keep_what_is_data(pair):
    layout, _ = pair
    forms = [tw.coalesce(layout), tw.flatten(layout), tw.compose(layout, layout.size)]
    for form in forms + ([tw.layout.group(layout, 0, 1)] if isinstance(layout.shape, tuple) else []):
        assert valid_flags(form) == valid_flags(layout)
        assert values(form) == values(layout)


@given(marked_layouts(least=1), st.integers(-9, 9))
def test_an_offset_keeps_what_is_data(pair, step):
    layout, logical = pair
    moved = layout + step
    assert moved.logical_shape == logical
    assert values(moved) == [place + step for place in values(layout)]


def test_padding_across_modes_has_no_logical_shape():
    tiles = tw.logical_divide(L(100), 32)
    with pytest.raises(LayoutError, match="across modes"):
        tiles.logical_shape  # noqa: B018
    assert tw.coalesce(tiles).logical_shape == (100,)


@given(marked_layouts())
def test_padding_prints_and_is_read_back(pair):
    layout, _ = pair
    again = tw.parse(str(layout))
    assert again == layout
    assert again.guards == layout.guards
    assert valid_flags(again) == valid_flags(layout)


@pytest.mark.parametrize("empty", [L(0), L((0, 4)), tw.layout.PagedLayout(4, [])])
def test_nothing_is_inside_an_empty_layout(empty):
    assert empty.valid(np.array([0, 3])).tolist() == [False, False]
