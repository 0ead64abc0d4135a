# SPDX-License-Identifier: Apache-2.0
"""The complement: where a layout can be repeated without collision, up to a bound."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Layout, LayoutError, Swizzle, addr, bank, cute

from .reference import table, values
from .strategies import injective_layouts, layouts, leaves

L = Layout
# strides that nest, strides with gaps, broadcasts, and layouts whose modes interleave without colliding
FREE = st.one_of(
    injective_layouts(max_size=48),
    layouts(max_size=48, kinds=("broadcast",), offsets=False),
    st.sampled_from([L((2, 2), (2, 3)), L((3, 2), (2, 5)), L((2, 2, 2), (3, 5, 20)), L((2, 4), (9, 2))]),
)
BOUNDS = st.integers(0, 240)


@given(FREE, BOUNDS)
def test_a_complement_increases_strictly_from_zero(layout, bound):
    places = values(tw.complement(layout, bound))
    assert places[0] == 0
    assert all(a < b for a, b in pairwise(places))


@given(FREE, BOUNDS)
def test_a_complement_meets_the_layout_only_in_zero(layout, bound):
    assert set(table(layout)) & set(values(tw.complement(layout, bound))) == {0}


@given(FREE, BOUNDS)
def test_copies_at_the_places_of_the_complement_do_not_collide(layout, bound):
    image = set(table(layout))
    starts = values(tw.complement(layout, bound))
    assert len({start + place for start in starts for place in image}) == len(starts) * len(image)


@given(FREE, BOUNDS)
def test_layout_and_complement_together_reach_the_bound(layout, bound):
    free = tw.complement(layout, bound)
    assert tw.layout.join(layout, free).cosize >= bound
    assert max(table(layout)) + max(values(free)) + 1 >= bound


@given(injective_layouts(max_size=48), BOUNDS)
def test_with_one_copy_less_a_complement_would_not_reach_the_bound(layout, bound):
    free = tw.complement(layout, bound)
    extents, strides = leaves(free.shape), leaves(free.stride)
    if free.size > 1 and strides[-1] > max(table(layout)):
        fewer = L((*extents[:-1], extents[-1] - 1), tuple(strides))
        assert max(table(layout)) + max(table(fewer)) + 1 < bound


@given(FREE, st.none() | BOUNDS, st.integers(-50, 50))
def test_a_complement_does_not_depend_on_where_the_layout_starts(layout, bound, offset):
    assert tw.complement(layout + offset, bound) == tw.complement(layout, bound)


@given(FREE)
def test_without_a_bound_a_complement_reaches_as_far_as_the_layout(layout):
    assert tw.complement(layout) == tw.complement(layout, layout.cosize)


@given(FREE, st.integers(2, 240))
def test_beside_an_empty_layout_every_place_is_free(layout, bound):
    empty = L((0, layout.shape), (1, layout.stride))
    assert tw.complement(empty, bound) == L(bound)


@given(layouts(max_size=48, kinds=("compact",), offsets=False), st.integers(1, 6))
def test_a_compact_layout_and_its_complement_cover_every_place_once(layout, copies):
    free = tw.complement(layout, layout.size * copies)
    assert free.size == copies
    assert tw.is_bijective(tw.layout.join(layout, free))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5))
def test_the_gaps_of_a_strided_line_are_filled(n, step, periods):
    free = tw.complement(L(n, step), n * step * periods)
    everything = tw.layout.join(L(n, step), free)
    assert sorted(values(everything)) == list(range(everything.size))
    assert everything.size == (n * step * periods if n > 1 else periods * step)


@given(FREE)
def test_the_bound_is_the_cosize_unless_given(layout):
    assert tw.complement(layout) == tw.complement(layout, layout.cosize)


@given(FREE, BOUNDS)
def test_a_complement_is_coalesced_and_has_no_unit_tail(layout, bound):
    free = tw.complement(layout, bound)
    assert free == tw.coalesce(free)
    assert free == L(1, 0) or 1 not in leaves(free.shape)


@given(injective_layouts(max_size=48), BOUNDS, st.integers(1, 5))
def test_broadcast_and_unit_modes_make_no_difference(layout, bound, copies):
    wider = tw.layout.join(L(copies, 0), layout, L(1, 17))
    assert tw.complement(wider, bound) == tw.complement(layout, bound)


@given(injective_layouts(max_size=48), BOUNDS, st.integers(-9, 9))
def test_an_offset_makes_no_difference(layout, bound, offset):
    assert tw.complement(layout + offset, bound) == tw.complement(layout, bound)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(1, 12))
def test_a_shape_as_bound_is_covered_mode_by_mode(shape, n):
    shape = tuple(shape)
    free = tw.complement(L(n), shape)
    assert tw.layout.join(L(n), free).cosize >= cute.size(shape)
    assert free.size >= tw.complement(L(n), cute.size(shape)).size
    assert tw.complement(L(n), (cute.size(shape),)) == tw.complement(L(n), cute.size(shape))


def test_a_shape_as_bound_does_not_let_a_block_run_on_into_the_next_mode():
    assert tw.complement(L(4), (6, 6)) == L(12, 4)  # two blocks a column, although nine would cover 36
    assert tw.complement(L(4), 36) == L(9, 4)


def test_a_shape_or_an_integer_stands_for_its_compact_layout():
    assert tw.complement(4, 16) == tw.complement(L(4), 16) == L(4, 4)
    assert tw.complement((2, 2), 16) == L(4, 4)


@given(layouts(max_size=48, kinds=("arbitrary",), offsets=False), BOUNDS)
def test_layouts_that_collide_or_run_backwards_are_refused(layout, bound):
    live = cute.filter(layout)
    steps = [d for n, d in zip(leaves(live.shape), leaves(live.stride), strict=True) if n > 1]
    if any(d < 0 for d in steps):
        with pytest.raises(LayoutError, match="negative stride"):
            tw.complement(layout, bound)
    elif len(set(table(live))) < live.size:
        with pytest.raises(LayoutError, match="not injective"):
            tw.complement(layout, bound)
    else:
        assert set(table(layout)) & set(values(tw.complement(layout, bound))) == {0}


@pytest.mark.parametrize("layout", [L((2, 3), (1, 1)), L((4, 8), (1, 3)), L((2, 2, 2), (2, 3, 1))], ids=str)
def test_a_refusal_names_two_coordinates_that_collide(layout):
    pairs = [(a, b) for a in layout for b in layout if a != b and layout(a) == layout(b)]
    with pytest.raises(LayoutError) as caught:
        tw.complement(layout, 64)
    assert any(f"{a} and {b} share offset {layout(a)}" in str(caught.value) for a, b in pairs)


def test_what_is_not_strided_has_no_complement():
    with pytest.raises(LayoutError, match="not strided"):
        tw.complement(tw.compose(Swizzle(2, 0, 2), L((4, 4))), 64)


def test_along_one_named_axis_a_complement_lies_on_that_axis():
    assert tw.complement(L((2, 2), (1 @ bank, 4 @ bank)), 16) == L((2, 2), (2 @ bank, 8 @ bank))
    with pytest.raises(LayoutError, match=r"bank, addr"):
        tw.complement(L((2, 2), (1 @ bank, 4 @ addr)), 16)


def test_a_huge_complement_needs_no_enumeration():
    assert tw.complement(L((1 << 20, 1 << 20), (1, 1 << 21)), 1 << 42) == L((2, 2), (1 << 20, 1 << 41))


@given(injective_layouts(max_size=12, offsets=False), st.integers(1, 3), st.integers(0, 60), st.integers(0, 80))
def test_the_places_of_copies_are_not_free(layout, count, step, bound):
    copied = tw.replicate(layout, count, step)
    taken = [place for i in range(copied.size) for place in copied(i)]
    if len(set(taken)) < len(taken):
        return
    rest = tw.complement(copied, bound)
    met = [place + rest(k) for k in range(rest.size) for place in taken]
    assert len(set(met)) == len(met)
    repeated = tw.logical_product(copied, 3)
    every = [place for i in range(repeated.size) for place in repeated(i)]
    assert len(set(every)) == len(every) == 3 * len(taken)
