# SPDX-License-Identifier: Apache-2.0
"""Inverses: from a place back to the index that lives there."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Swizzle, addr, bank, cute
from tilewright.layout import InverseLayout
from tilewright.layout.composed import find_index

from .reference import table, values
from .strategies import injective_layouts, layouts, leaves, named_layouts

L = Layout
NO_OFFSET = layouts(max_size=64, offsets=False)
COLLIDING = [L((2, 3), (1, 1)), L((4, 8), (1, 3)), L((2, 2, 2), (2, 3, 1)), L((3, 2), (1, -2))]


def longest_chain(layout):
    """Return how far the modes reach from 0 without a gap, trying every order and every cut of each mode."""
    modes = [(n, d) for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True) if n > 1 and d > 0]
    best = 1
    for count in range(1, len(modes) + 1):
        for chain in permutations(modes, count):
            best = max(best, *_reaches(chain))
    return best


def _reaches(chain):
    ends = {1}
    for n, d in chain:
        ends = {d * used for used in range(1, n + 1)} if d in ends else set()
    return ends or {1}


# Right inverses.


@given(NO_OFFSET)
def test_a_right_inverse_finds_an_index_for_every_place_that_it_takes(layout):
    inverse = tw.right_inverse(layout)
    by_hand = table(layout)
    assert inverse.depth <= 1
    assert [by_hand[inverse(i)] for i in range(inverse.size)] == list(range(inverse.size))


@given(layouts(max_size=64, offsets=False, max_rank=2, max_depth=2))
def test_no_chain_of_modes_reaches_further_than_the_right_inverse(layout):
    assert tw.right_inverse(layout).size == longest_chain(layout)


@given(layouts(max_size=64, kinds=("compact",), offsets=False))
def test_the_right_inverse_of_a_compact_layout_is_its_inverse_on_both_sides(layout):
    inverse = tw.right_inverse(layout)
    assert inverse.size == layout.size
    assert [inverse(layout(i)) for i in range(layout.size)] == list(range(layout.size))
    assert tw.functionally_equal(tw.right_inverse(inverse), layout)


@given(layouts(max_size=64, kinds=("reversed",), offsets=False))
def test_reversed_modes_are_inverted_when_the_lowest_place_is_zero(layout):
    shifted = layout - layout.bounds[0]
    inverse = tw.right_inverse(shifted)
    assert inverse.size == layout.size
    assert [shifted(inverse(i)) for i in range(inverse.size)] == list(range(inverse.size))


def test_a_right_inverse_needs_something_at_place_zero():
    with pytest.raises(LayoutError, match="no coordinate maps to 0"):
        tw.right_inverse(L(4) + 1)
    assert tw.right_inverse(L(4, -1) + 3) == L(4, -1) + 3
    assert tw.right_inverse(L(4, -1)) == L(1, 0)


def test_inverses_of_empty_layouts():
    assert tw.right_inverse(L((0, 3))).size == 0
    with pytest.raises(LayoutError, match="empty"):
        tw.left_inverse(L((0, 3)))


@given(st.integers(1, 40), st.integers(0, 12))
def test_a_right_inverse_of_a_padded_layout_is_valid_where_it_leads_to_data(n, extra):
    layout = tw.pad(L((n, 2), (2, 1)), (n + extra, 2))
    inverse = tw.right_inverse(layout)
    for i in range(inverse.size):
        assert layout(inverse(i)) == i
        assert inverse.valid(i) == layout.valid(inverse(i))


# Left inverses.


@given(NO_OFFSET)
def test_a_left_inverse_undoes_an_injective_layout_and_refuses_others(layout):
    by_hand = table(layout)
    live = cute.filter(layout)
    if len(set(by_hand)) < live.size:
        with pytest.raises(LayoutError, match="not injective"):
            tw.left_inverse(layout)
        return
    inverse = tw.left_inverse(layout)
    assert [by_hand[inverse(place)] for place in by_hand] == by_hand
    if len(set(by_hand)) == layout.size:
        assert [inverse(place) for place in by_hand] == list(range(layout.size))


@given(injective_layouts(max_size=64))
def test_a_left_inverse_is_valid_exactly_on_the_places_in_use(layout):
    inverse = tw.left_inverse(layout)
    used = set(table(layout))
    top = max(layout.cosize, inverse.shape if isinstance(inverse.shape, int) else inverse.size)
    assert [inverse.valid(place) for place in range(top + 3)] == [place in used for place in range(top + 3)]


@given(layouts(max_size=64, kinds=("reversed", "padded")))
def test_layouts_with_offsets_and_negative_strides_have_exact_left_inverses(layout):
    inverse = tw.left_inverse(layout)
    by_hand = table(layout)
    assert [inverse(place) for place in by_hand] == list(range(layout.size))
    low, high = min(by_hand), max(by_hand)
    assert [inverse.valid(place) for place in range(low, high + 1)] == [
        place in by_hand for place in range(low, high + 1)
    ]


@pytest.mark.parametrize("layout", COLLIDING, ids=str)
def test_a_refusal_names_two_coordinates_that_collide(layout):
    with pytest.raises(LayoutError) as caught:
        tw.left_inverse(layout)
    pairs = [(a, b) for a in layout for b in layout if a != b and layout(a) == layout(b)]
    assert any(f"{a} and {b}" in str(caught.value) for a, b in pairs)


@given(layouts(max_size=64, kinds=("broadcast",), offsets=False))
def test_broadcast_layouts_have_a_left_inverse_that_finds_one_of_the_copies(layout):
    inverse = tw.left_inverse(layout)
    for place in set(table(layout)):
        assert layout(inverse(place)) == place


@given(st.integers(1, 30), st.integers(0, 9))
def test_a_left_inverse_of_a_padded_layout_is_valid_only_on_data(n, extra):
    layout = tw.pad(L((n, 2), (2, 1)), (n + extra, 2))
    inverse = tw.left_inverse(layout)
    data = {layout(i): i for i in range(layout.size) if layout.valid(i)}
    for place in range(layout.size):
        assert inverse.valid(place) == (place in data)
        assert not inverse.valid(place) or inverse(place) == data[place]


# Inverses that are not strided.

GAPPED = [L((2, 2), (2, 3)), L((3, 2), (2, 5)), L((2, 3), (-1, 4)) + 1, L((4, 3), (-7, 2)), L(5, 3) + 4]


@pytest.mark.parametrize("layout", GAPPED, ids=str)
def test_an_inverse_layout_is_an_exact_function(layout):
    inverse = tw.left_inverse(layout)
    assert isinstance(inverse, InverseLayout)
    assert inverse.inverted == layout
    used = {layout(i): i for i in range(layout.size)}
    for place in range(min(used) - 2, max(used) + 3):
        assert inverse.valid(place) == (place in used)
        if place in used:
            assert inverse(place) == used[place]
        else:
            with pytest.raises(tw.errors.CoordinateError, match=f"offset {place} is unused"):
                inverse(place)


@pytest.mark.parametrize("layout", GAPPED, ids=str)
def test_an_inverse_layout_takes_arrays(layout):
    inverse = tw.left_inverse(layout)
    places = np.array(values(layout))
    assert inverse(places).tolist() == list(range(layout.size))
    around = np.arange(places.min() - 2, places.max() + 3)
    assert inverse.valid(around).tolist() == [place in places for place in around.tolist()]
    with pytest.raises(tw.errors.CoordinateError, match="are unused"):
        inverse(around)


@pytest.mark.parametrize("layout", GAPPED, ids=str)
def test_an_inverse_layout_composes_with_the_layout_to_the_identity(layout):
    identity = tw.compose(tw.left_inverse(layout), layout)
    assert values(identity) == list(range(layout.size))
    assert all(identity.valid(i) for i in range(layout.size))


def test_an_inverse_layout_is_a_value_with_a_text():
    layout = L((2, 2), (2, 3))
    inverse = tw.left_inverse(layout)
    assert inverse == tw.left_inverse(L((2, 2), (2, 3)))
    assert hash(inverse) == hash(tw.left_inverse(L((2, 2), (2, 3))))
    assert inverse != tw.left_inverse(L((2, 2), (3, 2)))
    assert inverse != layout
    assert tw.parse(str(inverse)) == inverse
    assert inverse.offsets(fill=-7).tolist() == [0, -7, 1, 2, -7, 3]
    assert inverse.offsets().tolist() == [0, -1, 1, 2, -1, 3], "nothing lives at -1 either"
    assert (inverse.size, inverse.cosize) == (6, 4)


def test_a_huge_left_inverse_needs_no_table():
    inverse = tw.left_inverse(L((1 << 20, 1 << 20), (3, 1 << 30)))
    assert inverse(3 * 77 + (5 << 30)) == 77 + (5 << 20)
    assert not inverse.valid(1)
    inverse = tw.left_inverse(L((1 << 20, 1 << 20), (-3, 1 << 30)))
    assert inverse(-3 * 77 + (5 << 30)) == 77 + (5 << 20)


# Swizzles and compositions.


@pytest.mark.parametrize("swizzle", [Swizzle(1, 0, 1), Swizzle(2, 0, 2), Swizzle(2, 1, 3), Swizzle(2, 0, -2)], ids=str)
@pytest.mark.parametrize("invert", [tw.left_inverse, tw.right_inverse])
@pytest.mark.parametrize("inner", [L(64), L((8, 8), (8, 1)), L((4, 2, 8), (16, 8, 1))], ids=str)
def test_a_swizzled_layout_that_covers_the_swizzle_is_inverted(swizzle, invert, inner):
    layout = tw.compose(swizzle, inner)
    inverse = invert(layout)
    assert [layout(inverse(place)) for place in range(64)] == list(range(64))
    assert [inverse(layout(i)) for i in range(64)] == list(range(64))


def test_a_swizzled_layout_that_does_not_cover_the_swizzle_is_inverted_exactly():
    layout = tw.compose(Swizzle(2, 0, 2), L((3, 4), (4, 1)))
    inverse = tw.left_inverse(layout)
    assert [inverse(layout(i)) for i in range(12)] == list(range(12))
    assert not inverse.valid(12)


def test_a_swizzle_undoes_itself():
    swizzle = Swizzle(2, 1, 3)
    assert tw.left_inverse(swizzle) == tw.right_inverse(swizzle) == swizzle
    assert [swizzle(swizzle(x)) for x in range(64)] == list(range(64))


def test_an_injective_composition_is_inverted_and_another_is_refused():
    layout = tw.compose(L((3, 5), (5, 1)), L(6, 2))
    assert isinstance(layout, ComposedLayout)
    inverse = tw.left_inverse(layout)
    assert [inverse(layout(i)) for i in range(6)] == list(range(6))
    colliding = tw.compose(L((3, 5), (5, 1)), L((6, 2), (2, 0)))
    assert isinstance(colliding, ComposedLayout)
    with pytest.raises(LayoutError, match="not injective"):
        tw.left_inverse(colliding)


# Named axes.


@given(named_layouts(max_size=48, injective=True, offsets=False))
def test_named_layouts_are_inverted_over_their_axes(layout):
    names = layout.axes
    if not names:
        return
    inverse = tw.left_inverse(layout, axes=names)
    for i, coord in enumerate(layout):
        place = layout(coord)
        assert inverse(*[place[name] for name in names]) == i


def test_inverses_of_named_layouts_need_all_axes():
    layout = L((4, 8), (1 @ bank, 1 @ addr))
    with pytest.raises(LayoutError, match="give the axes"):
        tw.left_inverse(layout)
    with pytest.raises(LayoutError, match="addr"):
        tw.right_inverse(layout, axes=(bank,))
    forth = tw.right_inverse(layout, axes=(addr, bank))
    assert layout(forth(5, 3)) == tw.Place(addr=5, bank=3)


@pytest.mark.parametrize("invert", [tw.left_inverse, tw.right_inverse])
def test_replicated_layouts_have_no_inverse(invert):
    """Over axes they had one, which knew of the first copies alone."""
    plain, named = tw.replicate(L(12), 2, 100), tw.replicate(L(12, 1 @ bank), 2, 1 @ addr)
    for copies, axes in ((plain, None), (named, (bank, addr))):
        for layout in (copies, ComposedLayout(copies, L(6, 2))):
            with pytest.raises(LayoutError, match="replicas"):
                invert(layout, axes=axes)


def test_the_right_inverse_cuts_a_mode_where_another_goes_on_from_it():
    assert tw.right_inverse(L((4, 8), (1, 2))) == L((2, 8), (1, 4))
    assert tw.right_inverse(L((5, (16, 6)), (6, (1, 1)))) == L((6, 5), (80, 1)), "a whole mode before a cut one"


# Looking up one place.


@given(layouts(max_size=48, allow_zero=True))
@example(L((3, 3, 2), (-7, 4, -1), offset=20))
@example(L((2, 3, 2), (-5, -3, 1), offset=11))
def test_a_place_is_looked_up_where_an_element_lives_and_nowhere_else(layout):
    used = set(values(layout))
    low, high = layout.bounds if layout.size else (0, 0)
    for place in range(low - 2, high + 3):
        found = find_index(layout, place)
        assert (found is None) == (place not in used)
        assert found is None or layout(found) == place


# Nullspace and common vectors.


def test_modes_of_one_element_are_not_in_the_nullspace():
    assert cute.nullspace(L((2, 1, 3), (0, 0, 0))) == L((2, 3), (1, 2))


@given(layouts(max_size=64, offsets=False))
def test_the_nullspace_holds_every_index_that_broadcasting_sends_to_zero(layout):
    null = cute.nullspace(layout)
    found = values(null)
    assert len(set(found)) == len(found)
    broadcast = [n if d == 0 else 1 for n, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True)]
    expected = set()
    for coord in np.ndindex(*broadcast):
        index, below = 0, 1
        for c, n in zip(coord, leaves(layout.shape), strict=True):
            index += c * below
            below *= n
        expected.add(int(index))
    assert set(found) == expected


@given(layouts(max_size=48, kinds=("compact", "padded"), offsets=False, min_rank=1), st.data())
def test_a_common_vector_is_contiguous_in_both_layouts(a, data):
    b = cute.make_ordered_layout(a.shape, data.draw(st.permutations(range(a.rank))))
    common = cute.max_common_layout(a, b)
    assert common.size == cute.max_common_vector(a, b)
    assert [a(common(i)) for i in range(common.size)] == list(range(common.size))
    assert [b(common(i)) for i in range(common.size)] == list(range(common.size))


@given(layouts(max_size=48, kinds=("compact",), offsets=False))
def test_a_layout_has_everything_in_common_with_itself(layout):
    assert cute.max_common_vector(layout, layout) == layout.size


@given(
    layouts(max_size=24, offsets=False, min_rank=1), layouts(max_size=24, kinds=("compact",), offsets=False), st.data()
)
def test_the_common_vector_is_as_long_as_both_agree(a, b, data):
    """Whatever the two are: longer, padded, swizzled."""
    if data.draw(st.booleans()):
        a = tw.with_logical_shape(a, [data.draw(st.integers(1, n)) for n in cute.product_each(a.shape)])
    if data.draw(st.booleans()):
        a = tw.compose(tw.Swizzle(1, data.draw(st.integers(0, 2)), data.draw(st.integers(1, 2))), a)
    inverse = tw.right_inverse(b)
    shifts = [a(at) - i if a.valid(at := inverse(i)) else None for i in range(inverse.size)]
    ends = [i for i in range(1, inverse.size) if shifts[i] != shifts[i - 1]]
    expected = (math.gcd(*ends) or inverse.size) if shifts[0] == 0 else 1
    assert cute.max_common_vector(a, b) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (L(8), L(32), 8),
        (L(32), L(8), 8),
        (tw.with_logical_shape(L(8), 5), L(8), 5),
        (tw.compose(tw.Swizzle(3, 4, 3), L(4096)), L(4096), 16),
        (L(4096), tw.compose(tw.Swizzle(3, 4, 3), L(4096)), 16),
        (tw.compose(tw.Swizzle(3, 0, 3), L((8, 8), (8, 1))), tw.row_major(8, 8), 1),
        (tw.compose(tw.Swizzle(3, 4, 3), L(4096)), tw.compose(tw.Swizzle(3, 4, 3), L(4096)), 4096),
    ],
)
def test_a_common_vector_where_one_is_longer_padded_or_swizzled(a, b, expected):
    assert cute.max_common_vector(a, b) == expected


@pytest.mark.parametrize("other", [L((4, 2), (2, 1)), L(8) + 1, ComposedLayout(L(5, 2), L(8, 3))])
def test_layouts_with_nothing_in_common_share_one_element(other):
    assert cute.max_common_layout(other, L(8)) == L(1, 0)
