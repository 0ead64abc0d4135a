# SPDX-License-Identifier: Apache-2.0
"""Boxes: what they hold is a set of coordinates, and every operation is one on such sets."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tilewright.layout import Box

SPACE = (5, 6)
boxes = st.builds(
    Box, st.tuples(*[st.integers(-3, 7)] * 2), st.tuples(*[st.integers(0, 5)] * 2)
)  # some outside of the space, some empty


def held(box):
    return set(product(*[range(start, end) for start, end in zip(box.offset, box.end, strict=True)]))


@given(boxes)
def test_size_and_emptiness_are_those_of_what_it_holds(box):
    assert box.size == len(held(box))
    assert box.empty == (not held(box))


@given(boxes, boxes)
def test_two_boxes_meet_in_what_both_hold(one, other):
    assert held(one.intersection(other)) == held(one) & held(other)


@given(boxes)
def test_within_a_space_is_what_the_space_has_of_it(box):
    inside = box.within(SPACE)
    assert held(inside) == held(box) & held(Box((0, 0), SPACE))
    whole = [tuple(at) for at in product(range(5), range(6))]
    rows, columns = inside.slices
    assert {(a, b) for a, b in whole if a in range(5)[rows] and b in range(6)[columns]} == held(inside)


@given(boxes, st.tuples(*[st.integers(-4, 4)] * 2))
def test_counted_from_elsewhere_it_holds_the_same(box, start):
    moved = {(a + start[0], b + start[1]) for a, b in held(box.relative_to(start))}
    assert moved == held(box)


@given(boxes)
def test_its_axes_may_be_turned_and_its_ends_say_it_all(box):
    assert held(box.permute((1, 0))) == {(b, a) for a, b in held(box)}
    assert Box.between(box.offset, box.end) == box


@given(*[st.tuples(*[st.integers(-3, 3)] * 2)] * 2)
def test_between_coordinates_the_wrong_way_round_there_is_nothing(start, end):
    box = Box.between(start, end)
    assert box.size == len(held(box)) == max(0, end[0] - start[0]) * max(0, end[1] - start[1])
