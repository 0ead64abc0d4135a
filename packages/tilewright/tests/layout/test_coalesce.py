# SPDX-License-Identifier: Apache-2.0
"""Other forms of the same function: coalesce, filter, flatten, unflatten, group and sort."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Swizzle, cute
from tilewright.layout.axes import merge_modes

from .reference import table, valid_flags, values
from .strategies import layouts, leaves, named_layouts, nested_like, place_by_hand, shapes

ANY = st.one_of(layouts(allow_zero=True, allow_empty=True), named_layouts())


def modes_of(layout):
    """Return the (extent, stride) pairs of the leaves."""
    return list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))


# coalesce


@given(ANY)
def test_coalescing_keeps_the_function_of_the_index(layout):
    merged = tw.coalesce(layout)
    assert merged.size == layout.size
    assert merged.depth <= 1
    assert table(merged) == table(layout)
    assert values(merged) == values(layout)


@given(layouts())
def test_a_coalesced_layout_has_no_unit_and_no_neighbours_that_run_on(layout):
    merged = tw.coalesce(layout)
    modes = modes_of(merged)
    if merged.size == 1:
        assert (merged.shape, merged.stride) == (1, 0)
    else:
        assert all(n != 1 for n, _ in modes)
    assert all(n * d != step for (n, d), (_, step) in pairwise(modes))
    assert tw.coalesce(merged) == merged


@given(layouts(), layouts())
def test_two_layouts_are_the_same_function_exactly_when_they_coalesce_alike(a, b):
    assert (tw.coalesce(a) == tw.coalesce(b)) == (table(a) == table(b))


@given(layouts(min_rank=1), st.data())
def test_coalescing_with_a_profile_merges_inside_each_mode(layout, data):
    count = data.draw(st.integers(1, layout.rank))
    merged = tw.coalesce(layout, (1,) * count)
    assert merged.rank == layout.rank
    assert merged.offset == layout.offset
    assert values(merged) == values(layout)
    for k in range(layout.rank):
        expected = tw.coalesce(layout.mode(k)) if k < count else layout.mode(k)
        assert merged.mode(k) == expected


def test_a_nested_profile_reaches_into_nested_modes():
    layout = Layout((((2, 2), 3), 4), (((1, 2), 4), 12))
    assert tw.coalesce(layout, ((1, 1), 1)) == Layout(((4, 3), 4), ((1, 4), 12))
    assert tw.coalesce(layout, (1, 1)) == Layout((12, 4), (1, 12))
    assert tw.coalesce(layout) == Layout(48, 1)


def test_a_profile_with_more_modes_than_the_layout_is_refused():
    with pytest.raises(LayoutError, match="more modes"):
        tw.coalesce(Layout((2, 3)), (1, 1, 1))


@given(layouts(max_size=48, min_rank=1, max_rank=2), st.data())
def test_coalescing_keeps_what_is_data(layout, data):
    extents = [layout.mode(k).size for k in range(layout.rank)]
    marked = tw.with_logical_shape(layout, tuple([data.draw(st.integers(0, n)) for n in extents]))
    merged = tw.coalesce(marked)
    assert values(merged) == values(marked)
    assert valid_flags(merged) == valid_flags(marked)
    by_mode = tw.coalesce(marked, (1,) * layout.rank)
    assert values(by_mode) == values(marked)
    assert valid_flags(by_mode) == valid_flags(marked)


def test_coalescing_a_composition_coalesces_its_inner_layout():
    layout = ComposedLayout(Swizzle(2, 0, 2), Layout((2, 2, 4), (1, 2, 4)))
    merged = tw.coalesce(layout)
    assert merged.shape == 16
    assert values(merged) == values(layout)


# filter


@given(layouts())
def test_filtering_keeps_the_places_and_drops_units_and_broadcasts(layout):
    kept = cute.filter(layout)
    assert set(table(kept)) == set(table(layout))
    if kept.size > 1:
        assert all(n != 1 and d != 0 for n, d in modes_of(kept))
    factor = layout.size // kept.size
    assert factor * kept.size == layout.size
    assert all(count == factor * Counter(table(kept))[place] for place, count in Counter(table(layout)).items())


def test_what_only_repeats_is_filtered_to_one_place():
    assert cute.filter(Layout((4, 2), (0, 0)) + 3) == Layout(1, 0) + 3


@given(layouts(min_rank=2))
def test_filtering_with_a_profile_works_inside_each_mode(layout):
    kept = cute.filter(layout, (1,))
    assert kept.rank == layout.rank
    assert kept.offset == layout.offset
    assert kept.mode(0) == cute.filter(layout.mode(0))
    assert all(kept.mode(k) == layout.mode(k) for k in range(1, layout.rank))


def test_filtering_padding_is_refused_since_it_would_be_lost():
    with pytest.raises(LayoutError, match="padded"):
        cute.filter(tw.pad(Layout(100), 128))


# The modes of several functions of one index


@st.composite
def cut_modes(draw):
    """Return (extents, channels, count): the strides of some functions over count modes, each cut into several."""
    count, width = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    extents, channels = [], [[] for _ in range(width)]
    for _ in range(count):
        steps = [draw(st.integers(-3, 6)) for _ in channels]
        for n in draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)):
            extents.append(n)
            for channel, step in zip(channels, steps, strict=True):
                channel.append(step)
            steps = [step * n for step in steps]
    return extents, channels, count


@given(cut_modes())
def test_merged_modes_are_few_and_every_channel_stays_the_same_function(cut):
    extents, channels, count = cut
    merged, lines = merge_modes(extents, channels)
    assert len(merged) <= count
    assert len(lines) == len(channels)
    for channel, line in zip(channels, lines, strict=True):
        assert values(Layout(tuple(merged), tuple(line))) == values(Layout(tuple(extents), tuple(channel)))


# flatten and unflatten


@given(ANY)
def test_flattening_removes_nesting_and_unflattening_puts_it_back(layout):
    flat = tw.flatten(layout)
    assert flat.depth <= 1
    assert modes_of(flat) == modes_of(layout)
    assert flat.offset == layout.offset
    if layout.depth:
        assert tw.layout.unflatten(flat, layout.shape) == layout
        assert cute.unflatten(flat, layout) == layout


@given(shapes(allow_zero=True), st.integers(-5, 5))
def test_tuples_flatten_and_unflatten_too(shape, start):
    numbers = tuple(range(start, start + len(leaves(shape))))
    assert cute.flatten(shape) == tuple(leaves(shape))
    assert cute.unflatten(numbers, shape) == nested_like(shape, numbers)


@given(layouts(max_size=48, min_rank=2, max_rank=3), st.data())
def test_flattening_keeps_what_is_data(layout, data):
    marked = tw.with_logical_shape(layout, tuple([data.draw(st.integers(0, mode.size)) for mode in layout.modes]))
    assert valid_flags(tw.flatten(marked)) == valid_flags(marked)


@pytest.mark.parametrize("profile", [(0, 0), (0, (0, 0, 0)), ()])
def test_unflattening_needs_as_many_entries_as_the_profile(profile):
    with pytest.raises(LayoutError, match="unflatten"):
        tw.layout.unflatten(Layout((2, 3, 5)), profile)


# group and sort


@given(layouts(min_rank=1, max_rank=4), st.data())
def test_grouping_nests_a_range_of_modes_and_changes_no_place(layout, data):
    start = data.draw(st.integers(0, layout.rank - 1))
    end = data.draw(st.integers(start + 1, layout.rank))
    grouped = tw.layout.group(layout, start, end)
    assert grouped.rank == layout.rank - (end - start) + 1
    assert grouped.mode(start).modes == layout.modes[start:end]
    assert values(grouped) == values(layout)


@pytest.mark.parametrize(("start", "end"), [(1, 1), (2, 1), (-1, 2), (0, 4)])
def test_grouping_modes_that_are_not_there_is_refused(start, end):
    with pytest.raises(LayoutError, match="group"):
        tw.layout.group(Layout((2, 3, 5)), start, end)


@given(layouts())
def test_sorting_orders_the_modes_by_stride_and_keeps_all_of_them(layout):
    ordered = cute.sort(layout)
    strides = [d for _, d in modes_of(ordered)]
    assert strides == sorted(strides)
    assert Counter(modes_of(ordered)) == Counter(modes_of(layout))
    assert Counter(table(ordered)) == Counter(table(layout))


def test_sorting_carries_padding_along():
    marked = tw.with_logical_shape(Layout((4, 3), (3, 1)), (4, 2))
    ordered = cute.sort(marked)
    assert ordered == tw.with_logical_shape(Layout((3, 4), (1, 3)), (2, 4))
    assert [place_by_hand(ordered, i) for i in range(12) if ordered.valid(i)] == [0, 1, 3, 4, 6, 7, 9, 10]


@pytest.mark.parametrize(
    ("layout", "affine"),
    [(Layout((4, 8)), True), (ComposedLayout(Swizzle(1, 0, 1), Layout(4)), False), ((4, 8), False)],
)
def test_only_strided_layouts_are_affine(layout, affine):
    assert isinstance(layout, tw.Layout) == affine
