# SPDX-License-Identifier: Apache-2.0
"""Properties, compared with brute force on small layouts, and decided without enumeration on huge ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Place, Swizzle, addr, bank, cute
from tilewright.layout import InverseLayout
from tilewright.layout.properties import find_collision

from .reference import data, layouts_into, table, values
from .strategies import KINDS, injective_layouts, layouts, named_layouts, place_by_hand

L = Layout


@st.composite
def any_layouts(draw):
    """Return a plain, named, padded or composed layout, empty ones too."""
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return draw(named_layouts(max_size=32))
    layout = draw(layouts(max_size=32, allow_zero=True))
    if kind == 1 and layout.size:
        sizes = cute.product_each(layout.shape)
        return tw.with_logical_shape(layout, tuple([draw(st.integers(0, n)) for n in sizes]))
    if kind == 2 and layout.size:
        return ComposedLayout(layout, draw(layouts_into(layout.size, max_size=24)))
    if kind == 3 and layout.size and layout.bounds[0] >= 0:
        return ComposedLayout(Swizzle(1, 0, 1), layout)
    return layout


def is_run(places, start):
    """Return whether places are start, start + 1, ... in any order."""
    return sorted(places) == list(range(start, start + len(places)))


# Against brute force.


@given(any_layouts())
def test_a_layout_is_injective_when_no_place_holds_two_elements(layout):
    places = data(layout)
    assert tw.is_injective(layout) == (len(set(places)) == len(places))


@given(layouts(kinds=KINDS, allow_zero=True))
def test_plain_layouts_are_injective_when_their_tables_are(layout):
    assert tw.is_injective(layout) == (len(set(table(layout))) == layout.size)


@given(any_layouts())
def test_a_layout_is_bijective_when_its_places_are_the_first_ones(layout):
    places = data(layout)
    plain = not layout.axes if hasattr(layout, "axes") else True
    assert tw.is_bijective(layout) == (not places or (plain and is_run(places, 0)))


@given(layouts(max_size=64, allow_zero=True))
def test_a_plain_layout_is_contiguous_when_its_places_are_one_run(layout):
    places = table(layout)
    assert tw.is_contiguous(layout) == is_run(places, min(places, default=0))


@given(layouts(max_size=48, min_rank=1, max_rank=2), st.data())
def test_a_padded_layout_is_contiguous_when_its_data_is_one_run(layout, draws):
    marked = tw.with_logical_shape(layout, tuple([draws.draw(st.integers(0, mode.size)) for mode in layout.modes]))
    places = data(marked)
    assert tw.is_contiguous(marked) == is_run(places, min(places, default=0))


def test_a_named_layout_is_contiguous_along_one_axis():
    assert tw.is_contiguous(L((4, 8), (8 @ addr, 1 @ addr)) + 64 @ addr)
    assert not tw.is_contiguous(L((4, 8), (16 @ addr, 1 @ addr)))
    assert not tw.is_contiguous(L((4, 8), (1 @ bank, 1 @ addr)))


@given(any_layouts(), any_layouts())
def test_layouts_are_functionally_equal_when_places_and_padding_agree(a, b):
    expected = [a.locate(i) if a.valid(i) else None for i in range(a.size)]
    found = [b.locate(i) if b.valid(i) else None for i in range(b.size)]
    assert tw.functionally_equal(a, b) == (expected == found)


@given(any_layouts())
def test_other_forms_are_functionally_equal(layout):
    assert tw.functionally_equal(layout, layout)
    if isinstance(layout, Layout):
        assert tw.functionally_equal(layout, tw.coalesce(layout))
        assert tw.functionally_equal(tw.flatten(layout), layout)
        if layout.size:
            assert tw.functionally_equal(layout, ComposedLayout(layout, L(layout.size)))


@given(layouts(max_size=32), st.integers(1, 5))
def test_another_offset_or_size_is_another_function(layout, step):
    assert not tw.functionally_equal(layout, layout + step)
    assert not tw.functionally_equal(layout, tw.layout.join(layout, L(step + 1)))


def test_padding_makes_a_different_function():
    layout = L((4, 8))
    assert not tw.functionally_equal(layout, tw.with_logical_shape(layout, (3, 8)))
    assert tw.functionally_equal(layout, tw.with_logical_shape(layout, (4, 8)))


@given(injective_layouts(max_size=32), st.integers(1, 3), st.integers(-40, 40))
def test_a_replicated_layout_is_injective_when_no_two_elements_share_a_place(layout, count, step):
    sets = [{place_by_hand(layout, i) + k * step for k in range(count)} for i in range(layout.size)]
    disjoint = len(set().union(*sets)) == sum(map(len, sets))
    assert tw.is_injective(tw.replicate(layout, count, step)) == disjoint


# Collisions.


@given(layouts(max_size=64))
def test_a_collision_is_two_coordinates_at_one_place(layout):
    pair = find_collision(layout)
    if pair is None:
        assert len(set(table(layout))) == layout.size
    else:
        assert pair[0] != pair[1]
        assert layout(pair[0]) == layout(pair[1])
        assert pair[0] < pair[1]


def test_copies_are_compared_set_by_set():
    copies = tw.replicate(L((4, 2)), 2, 100)
    assert tw.functionally_equal(copies, ComposedLayout(tw.replicate(L(8), 2, 100), L(8)))
    assert not tw.functionally_equal(copies, ComposedLayout(tw.replicate(L(8), 2, 50), L(8)))
    assert not tw.functionally_equal(copies, ComposedLayout(L(8, 2), L(8)))
    with pytest.raises(LayoutError, match="sets and do not fit into an array"):
        copies(np.arange(8))


def test_a_collision_of_three_modes_is_found():
    assert find_collision(L((2, 3, 2), (5, 3, 1))) == ((0, 2, 0), (1, 0, 1))


@pytest.mark.parametrize("step", [1 @ bank, 2 @ addr, Place(bank=1, addr=2)])
def test_compositions_over_axes_differ_when_one_of_their_axes_does(step):
    inner = L(3, 2)
    layout = ComposedLayout(L(6, Place(bank=1, addr=1)), inner)
    assert not tw.functionally_equal(layout, ComposedLayout(L(6, step), inner))
    assert not tw.functionally_equal(ComposedLayout(L(6, step), inner), layout)
    assert tw.functionally_equal(ComposedLayout(L(6, step), inner), ComposedLayout(L(7, step), inner))


def test_collisions_of_compositions_are_not_known_from_modes():
    with pytest.raises(LayoutError, match="not strided"):
        find_collision(ComposedLayout(Swizzle(1, 0, 1), L(4)))


# Huge layouts: any of these would never end if it enumerated.

HUGE = 1 << 20


@pytest.mark.parametrize(
    ("layout", "injective", "bijective", "contiguous"),
    [
        (L((HUGE, HUGE)), True, True, True),
        (L((HUGE, HUGE), (HUGE, 1)), True, True, True),
        (L((HUGE, HUGE), (HUGE, 1)) + 3, True, False, True),
        (L((HUGE, HUGE), (-1, HUGE)), True, False, True),
        (L((HUGE, HUGE), (1, HUGE + 7)), True, False, False),
        (L((HUGE, HUGE), (1, HUGE - 1)), False, False, False),
        (L((HUGE, HUGE), (HUGE, HUGE + 1)), True, False, False),
        (L((HUGE, HUGE + 1), (HUGE, HUGE - 1)), False, False, False),
        (L((HUGE, 2, HUGE), (2, 1, 2 * HUGE)), True, True, True),
        (L((HUGE, HUGE), (0, 1)), False, False, False),
        (L((HUGE, HUGE), (1 @ bank, 1 @ addr)), True, False, False),
    ],
    ids=str,
)
def test_huge_layouts_are_decided_from_their_modes(layout, injective, bijective, contiguous):
    assert tw.is_injective(layout) == injective
    assert tw.is_bijective(layout) == bijective
    assert tw.is_contiguous(layout) == contiguous


def test_huge_layouts_are_compared_from_their_modes():
    layout = L((HUGE, HUGE), (HUGE, 1))
    assert tw.functionally_equal(layout, L(((1024, 1024), HUGE), ((HUGE, HUGE * 1024), 1)))
    assert not tw.functionally_equal(layout, L((HUGE, HUGE)))


def test_a_huge_padded_layout_is_injective_when_the_whole_is():
    assert tw.is_injective(tw.pad(L((HUGE, HUGE)), (HUGE, HUGE + 1)))


@given(layouts(max_size=24, kinds=("arbitrary",), max_rank=4))
def test_properties_of_large_multiples_match_their_small_pattern(layout):
    wide = tw.layout.join(layout, L(HUGE, 1 << 30))
    assert tw.is_injective(wide) == tw.is_injective(layout) == (len(set(values(layout))) == layout.size)


def test_the_exact_inverse_of_a_layout_with_gaps_is_injective():
    inverse = InverseLayout(Layout((4, 3), (1, 5)))  # places 4 and 9 hold nothing
    assert tw.is_injective(inverse)
    assert inverse.cosize == 12
