# SPDX-License-Identifier: Apache-2.0
"""Recasting: the same memory seen as wider or narrower elements."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Layout, LayoutError, addr, cute

from ..layout.reference import table, values
from ..layout.strategies import layouts, leaves

L = Layout
FACTORS = st.sampled_from([1, 2, 3, 4, 8])


@st.composite
def contiguous_first(draw):
    """Return a layout with one touching mode, and other modes that start where it and each other end."""
    extents = draw(st.lists(st.integers(2, 6), min_size=1, max_size=3))
    steps, step = [], 1
    for n in extents:
        steps.append(step)
        step *= n + draw(st.integers(0, 2)) if step > 1 else n
    order = draw(st.permutations(range(len(extents))))
    return L(tuple([extents[k] for k in order]), tuple([steps[k] for k in order])) + draw(st.integers(0, 3))


def narrow_places(places, factor):
    """Return the places of the narrow elements that wide elements at these places consist of."""
    return sorted(place * factor + k for place in places for k in range(factor))


# Same memory.


@given(contiguous_first(), FACTORS)
def test_narrow_elements_cover_the_memory_of_the_wide_ones(layout, factor):
    assert sorted(values(cute.downcast(layout, factor))) == narrow_places(table(layout), factor)


@given(contiguous_first(), FACTORS)
def test_wide_elements_cover_the_memory_of_the_narrow_ones(layout, factor):
    narrow = cute.downcast(layout, factor)
    wide = cute.upcast(narrow, factor)
    assert narrow_places(values(wide), factor) == sorted(values(narrow))


@given(st.integers(1, 40), st.integers(1, 5), FACTORS)
def test_elements_that_do_not_fill_a_wide_one_still_need_it(n, rows, factor):
    layout = L((n, rows), (1, 40 * factor))
    wide = cute.upcast(layout, factor)
    assert set(values(wide)) == {place // factor for place in values(layout)}
    assert wide.size == cute.ceil_div(n, factor) * rows


# Pairs.


@given(layouts(max_size=64), FACTORS)
def test_upcast_undoes_downcast_or_says_why_it_cannot(layout, factor):
    narrow = cute.downcast(layout, factor)
    try:
        assert tw.functionally_equal(cute.upcast(narrow, factor), layout)
    except tw.LayoutError as problem:
        backwards = any(step == -1 for step in cute.flatten(narrow.stride))
        shared = (
            sum(
                n > 1 and abs(d) == 1
                for n, d in zip(cute.flatten(narrow.shape), cute.flatten(narrow.stride), strict=True)
            )
            > 1
        )
        if not (backwards and "negative stride" in str(problem)) and not (shared and "exceed" in str(problem)):
            raise


@given(contiguous_first(), FACTORS)
def test_downcast_undoes_upcast_where_the_factor_divides(layout, factor):
    narrow = cute.downcast(layout, factor)
    assert cute.downcast(cute.upcast(narrow, factor), factor) == narrow


@given(layouts(max_size=64), FACTORS, FACTORS)
def test_downcasting_twice_is_downcasting_by_the_product(layout, first, second):
    assert cute.downcast(cute.downcast(layout, first), second) == cute.downcast(layout, first * second)


@given(layouts(max_size=64))
def test_a_factor_of_one_changes_nothing(layout):
    assert cute.upcast(layout, 1) == cute.downcast(layout, 1) == layout


@given(contiguous_first(), st.sampled_from([4, 8, 16]), FACTORS)
def test_recasting_goes_by_the_widths_in_bits(layout, bits, factor):
    narrow = cute.recast(layout, bits * factor, bits)
    assert narrow == cute.downcast(layout, factor)
    assert cute.recast(narrow, bits, bits * factor) == layout
    assert cute.recast(layout, bits, bits) == layout


# Decision 22a: only the touching mode widens, the others scale.


@given(layouts(max_size=64), FACTORS)
def test_downcast_sees_every_part_of_every_element_where_elements_touch(layout, factor):
    narrow = cute.downcast(layout, factor)
    touching = [step for step in leaves(layout.stride) if abs(step) == 1]
    assert narrow.size == layout.size * factor ** len(touching)
    if touching == [1]:
        parts = [place * factor + k for place in values(layout) for k in range(factor)]
        assert Counter(values(narrow)) == Counter(parts)
    elif not touching:
        assert values(narrow) == [place * factor for place in values(layout)]
    steps = list(zip(leaves(narrow.shape), leaves(narrow.stride), strict=True))
    modes = zip(leaves(layout.shape), leaves(layout.stride), strict=True)
    assert steps == [(n * factor, d) if abs(d) == 1 else (n, d * factor) for n, d in modes]
    assert narrow.offset == layout.offset * factor


@pytest.mark.parametrize(
    ("layout", "factor", "expected"),
    [
        (L((32, 32), (32, 1)), 16, L((32, 2), (2, 1))),
        (L((4, 8), (2, 8)), 4, L((2, 8), (1, 2))),
        (L((8, 4), (0, 1)), 4, L((8, 1), (0, 1))),
        (L(8, -4), 4, L(8, -1)),
        (L(8, 16), 4, L(8, 4)),
    ],
    ids=str,
)
def test_upcast_by_example(layout, factor, expected):
    assert cute.upcast(layout, factor) == expected


# What cannot be recast.


@pytest.mark.parametrize(
    ("layout", "factor", "words"),
    [
        (L((4, 8), (1, 6)), 4, "stride 6"),
        (L(8) + 2, 4, "offset 2"),
        (L((3, 2), (1, 2)), 4, "exceed a wide element"),  # by one
        (tw.pad(L(6), 8), 2, "padded"),
        (tw.replicate(L(8), 2, 8), 2, "replicated"),
        (L(8, 1 @ addr), 2, "named axes"),
        (L(8), 0, "at least 1"),
        (L(8), -2, "at least 1"),
    ],
    ids=str,
)
def test_a_refused_upcast_says_why(layout, factor, words):
    with pytest.raises(LayoutError, match=words):
        cute.upcast(layout, factor)


def test_widths_must_divide_each_other_and_be_integers():
    with pytest.raises(LayoutError, match="divisible"):
        cute.recast(L(8), 6, 4)
    with pytest.raises(TypeError):
        cute.recast(L(8), 8.0, 4)
    with pytest.raises(TypeError):
        cute.downcast(L(8), True)
