# SPDX-License-Identifier: Apache-2.0
"""Questions about shapes and layouts: size, rank, depth, and the three relations between shapes."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Swizzle, cute

from ..layout.strategies import layouts, leaves, nested_like, shapes

L = Layout
SHAPES = shapes(max_size=48, allow_zero=True)


def refined(draw, shape, other_sizes=False):
    """Return shape with some leaves replaced by tuples: of the same size, or of any."""
    if isinstance(shape, tuple):
        return tuple([refined(draw, mode, other_sizes) for mode in shape])
    if draw(st.booleans()):
        return draw(st.integers(1, 9)) if other_sizes else shape
    first = draw(st.sampled_from([n for n in range(1, shape + 1) if shape % n == 0] or [1]))
    if other_sizes:
        return (draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    return (first, shape // first)


@st.composite
def chains(draw, other_sizes=False):
    """Return three shapes, each a refinement of the one before."""
    first = draw(SHAPES)
    second = refined(draw, first, other_sizes)
    return first, second, refined(draw, second, other_sizes)


def same_form(a, b):
    if isinstance(a, tuple) != isinstance(b, tuple):
        return False
    return not isinstance(a, tuple) or (len(a) == len(b) and all(map(same_form, a, b)))


# congruent: an equivalence


@given(SHAPES, SHAPES)
def test_shapes_are_congruent_when_they_nest_alike(a, b):
    assert cute.congruent(a, b) == same_form(a, b)
    assert cute.congruent(a, b) == cute.congruent(b, a)
    assert cute.congruent(a, a)


@given(SHAPES, st.data())
def test_congruence_looks_at_no_number(shape, draws):
    other = nested_like(shape, [draws.draw(st.integers(0, 9)) for _ in leaves(shape)])
    assert cute.congruent(shape, other)
    assert cute.congruent(L(shape), L(other))


# weakly_congruent: a preorder that congruence makes an order


@given(chains(other_sizes=True))
def test_weak_congruence_is_reflexive_and_transitive(chain):
    a, b, c = chain
    assert cute.weakly_congruent(a, a)
    assert cute.weakly_congruent(a, b)
    assert cute.weakly_congruent(b, c)
    assert cute.weakly_congruent(a, c)


@given(SHAPES, SHAPES)
def test_shapes_that_are_weakly_congruent_both_ways_are_congruent(a, b):
    both = cute.weakly_congruent(a, b) and cute.weakly_congruent(b, a)
    assert both == cute.congruent(a, b)


# compatible: a partial order


@given(chains())
def test_compatibility_is_reflexive_and_transitive(chain):
    a, b, c = chain
    assert cute.compatible(a, a)
    assert cute.compatible(a, b)
    assert cute.compatible(b, c)
    assert cute.compatible(a, c)


@given(chains(), SHAPES)
def test_shapes_that_are_compatible_both_ways_are_the_same(chain, other):
    for a, b in [(chain[0], chain[1]), (chain[1], chain[2]), (chain[0], other)]:
        assert (cute.compatible(a, b) and cute.compatible(b, a)) == (a == b)


@given(SHAPES, SHAPES)
def test_compatible_shapes_have_one_size_and_are_weakly_congruent(a, b):
    if cute.compatible(a, b):
        assert cute.size(a) == cute.size(b)
        assert cute.weakly_congruent(a, b)
    if cute.size(a) != cute.size(b):
        assert not cute.compatible(a, b)


@given(chains())
def test_every_coordinate_of_a_shape_is_one_of_its_refinements(chain):
    a, b, _ = chain
    for coord in tw.layout.coordinates(a):
        assert cute.crd2idx(tw.cute.idx2crd(coord, b), b) == cute.crd2idx(coord, a)


@given(SHAPES)
def test_every_shape_refines_its_size(shape):
    assert cute.compatible(cute.size(shape), shape)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (12, (4, 3), True),
        ((4, 3), ((2, 2), 3), True),
        ((4, 3), 12, False),
        ((4, 3), (3, 4), False),
        ((4, 3), (4, 3, 1), False),
        (6, (6,), True),
        ((6,), 6, False),
        ((2, (3, 4)), (2, 12), False),
    ],
)
def test_compatibility_by_example(a, b, expected):
    assert cute.compatible(a, b) == expected
    assert cute.compatible(L(a), L(b)) == expected
    assert cute.compatible(L(a), b) == expected


# Counting.


@given(layouts(allow_zero=True, allow_empty=True))
def test_layouts_and_their_shapes_count_alike(layout):
    assert cute.size(layout) == cute.size(layout.shape) == layout.size == len(layout) == prod(leaves(layout.shape))
    assert cute.depth(layout) == cute.depth(layout.shape) == layout.depth
    assert cute.rank(layout) == layout.rank == (len(layout.shape) if isinstance(layout.shape, tuple) else 1)
    assert cute.cosize(layout) == layout.cosize


@pytest.mark.parametrize(
    ("shape", "size", "rank", "depth"),
    [(5, 5, 0, 0), ((4,), 4, 1, 1), ((4, (2, 3)), 24, 2, 2), ([4, [2, 3]], 24, 2, 2), ((3, 0), 0, 2, 1)],
)
def test_shapes_count_by_example(shape, size, rank, depth):
    assert (cute.size(shape), cute.rank(shape), cute.depth(shape)) == (size, rank, depth)
    assert cute.size(()) == 1
    assert cute.rank(()) == 0


@given(layouts(min_rank=1))
def test_modes_are_numbered_from_either_end(layout):
    for k in range(layout.rank):
        assert cute.mode(layout, k) == layout.mode(k) == layout.modes[k] == layout[k]
        assert cute.mode(layout, k - layout.rank) == layout.mode(k)
        assert cute.mode(layout.shape, k) == layout.shape[k]
    for beyond in (layout.rank, -layout.rank - 1):
        with pytest.raises(LayoutError, match="no mode"):
            cute.mode(layout, beyond)
        with pytest.raises(LayoutError, match="no mode"):
            cute.mode(layout.shape, beyond)
    with pytest.raises(LayoutError, match="no mode"):
        cute.mode(layout.shape, layout.rank + 1)


def test_modes_of_compositions_and_pages_are_modes_too():
    swizzled, pages = ComposedLayout(Swizzle(2, 0, 2), tw.row_major(4, 4)), tw.layout.PagedLayout(4, [0, 8])
    for layout in (swizzled, pages):
        assert [cute.mode(layout, k) for k in (0, 1, -1)] == [layout.mode(k) for k in (0, 1, -1)]
        with pytest.raises(LayoutError, match="no mode"):
            cute.mode(layout, 2)


@given(layouts(max_size=32))
def test_iterating_gives_every_coordinate_with_its_place(layout):
    pairs = [(coord, layout(coord)) for coord in layout]
    assert [coord for coord, _ in pairs] == list(layout) == list(tw.layout.coordinates(layout.shape))
    assert [place for _, place in pairs] == [layout(i) for i in range(layout.size)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (L(4), True),
        (ComposedLayout(Swizzle(1, 0, 1), L(4)), True),
        (tw.left_inverse(L((2, 2), (2, 3))), True),
        ((4,), False),
        (Swizzle(1, 0, 1), False),
    ],
    ids=str,
)
def test_layouts_of_every_kind_are_layouts(value, expected):
    assert cute.is_layout(value) == expected
