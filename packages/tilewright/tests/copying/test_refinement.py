# SPDX-License-Identifier: Apache-2.0
"""Common leaves and boxes of digits: every index is in exactly one box, and every leaf steps as its sides do."""

from collections import Counter
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.copying.placement import common_leaves, prefix_boxes, suffix_boxes

extents_lists = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@st.composite
def cuts(draw):
    extents = draw(extents_lists)
    return extents, draw(st.integers(0, prod(extents)))


def indices(extents, boxes):
    """Return how often each index lies in one of the boxes, by enumeration."""
    radices = [prod(extents[:k]) for k in range(len(extents))]
    found = Counter()
    for box in boxes:
        assert len(box) == len(extents)
        for (start, count), n in zip(box, extents, strict=True):
            assert 0 <= start < start + count <= n
        digits = product(*[range(start, start + count) for start, count in box])
        found.update(sum(d * r for d, r in zip(point, radices, strict=True)) for point in digits)
    return found


@given(cuts())
def test_prefix_boxes_hold_each_index_below_the_limit_once(cut):
    extents, limit = cut
    assert indices(extents, prefix_boxes(extents, limit)) == Counter(range(limit))


@given(cuts())
def test_suffix_boxes_hold_each_index_from_the_limit_on_once(cut):
    extents, limit = cut
    assert indices(extents, suffix_boxes(extents, limit)) == Counter(range(limit, prod(extents)))


@given(cuts())
def test_there_is_at_most_one_box_a_leaf(cut):
    extents, limit = cut
    assert len(prefix_boxes(extents, limit)) <= len(extents)
    assert len(suffix_boxes(extents, limit)) <= len(extents)


def test_a_mode_without_leaves_is_one_box():
    assert prefix_boxes([], 1) == [[]]


@st.composite
def modes(draw, extent):
    """Return the leaves of a mode, fastest first; their product may be less than the extent or more."""
    found = [(draw(st.integers(1, 6)), draw(st.integers(-9, 9))) for _ in range(draw(st.integers(1, 4)))]
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(found) - 1))
        found[at] = (found[at][0], None)
    return found


def digits_of(index, extents):
    """Return the digits of an index; the last has no end."""
    digits = []
    for n in extents[:-1]:
        index, digit = divmod(index, n)
        digits.append(digit)
    return [*digits, index]


def place(mode, index):
    """Return the place of an index; None counts as a step that only a table can know."""
    steps = [1_000_003 * (k + 7) if step is None else step for k, (_, step) in enumerate(mode)]
    digits = digits_of(index, [n for n, _ in mode])
    return sum(digit * step for digit, step in zip(digits, steps, strict=True))


@st.composite
def domains(draw):
    extent = draw(st.integers(1, 60))
    return extent, [draw(modes(extent)) for _ in range(draw(st.integers(1, 2)))]


def bounded(mode):
    """Return the mode without the units that end it: what goes on without end is the last leaf that is larger."""
    return [leaf for leaf in mode if leaf[0] != 1] or [(1, 0)]


@given(domains())
def test_leaves_step_as_their_sides_do_and_the_rest_is_left_to_tables(domain):
    extent, sides = domain
    sides = [bounded(mode) for mode in sides]
    leaves = common_leaves(3, sides, extent)
    radix = 1
    for leaf in leaves:
        assert (leaf.mode, leaf.radix) == (3, radix)
        radix *= leaf.extent
    assert radix >= extent
    for index in range(extent):
        digits = [index // leaf.radix % leaf.extent for leaf in leaves]
        hot = sum(d * leaf.radix for d, leaf in zip(digits, leaves, strict=True) if not leaf.is_strided)
        for side, mode in enumerate(sides):
            steps = sum(d * leaf.strides[side] for d, leaf in zip(digits, leaves, strict=True) if leaf.is_strided)
            assert place(mode, index) == steps + place(mode, hot)


@given(st.data(), st.integers(1, 60))
def test_sides_that_divide_each_other_need_no_table(data, extent):
    inner, outer = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    step = data.draw(st.integers(1, 9))
    leaves = common_leaves(0, [[(extent, step)], [(inner, 1), (outer, 100), (extent, 1000)]], extent)
    assert all(leaf.is_strided for leaf in leaves)


@pytest.mark.parametrize("extent", [5, 6, 7, 11])
def test_sides_that_do_not_divide_each_other_end_in_a_table(extent):
    leaves = common_leaves(0, [[(2, 1), (9, 10)], [(3, 1), (9, 10)]], extent)
    assert not leaves[-1].is_strided
    assert prod(leaf.extent for leaf in leaves) >= extent
