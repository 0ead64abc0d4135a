# SPDX-License-Identifier: Apache-2.0
"""Nested tuples: the functions on trees of integers that shapes and strides are made with."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Layout, LayoutError, cute
from tilewright.layout.tuples import (
    as_tree,
    index_strides,
    is_congruent,
    is_weakly_congruent,
    map_leaves,
    nest_like,
    tree_depth,
)
from tilewright.layout.tuples import leaves as package_leaves

from ..layout.strategies import leaves, nested_like, shapes, size_of

trees = st.recursive(st.integers(0, 20), lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)
filled = st.recursive(st.integers(1, 9), lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=8)


@st.composite
def refined(draw, shape):
    """Return a shape with some extents split into nested modes of the same size."""
    if isinstance(shape, tuple):
        return tuple(draw(refined(mode)) for mode in shape)
    if draw(st.booleans()):
        return shape
    first = draw(st.sampled_from([n for n in range(1, shape + 1) if shape % n == 0]))
    return (first, draw(refined(shape // first)))


def same_form(a, b):
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_form, a, b))
    return not isinstance(a, tuple) and not isinstance(b, tuple)


# Leaves and forms


@given(trees)
def test_leaves_come_in_order_and_go_back_into_their_form(tree):
    assert package_leaves(tree) == leaves(tree)
    assert nest_like(tree, iter(package_leaves(tree))) == tree
    assert cute.unflatten(cute.flatten(tree), tree) == tree
    assert cute.flatten(tree) == tuple(leaves(tree))


@given(trees)
def test_mapping_leaves_keeps_the_form(tree):
    doubled = map_leaves(lambda leaf: leaf * 2, tree)
    assert same_form(doubled, tree)
    assert leaves(doubled) == [2 * leaf for leaf in leaves(tree)]


@given(trees)
def test_lists_become_tuples(tree):
    def as_lists(branch):
        return [as_lists(part) for part in branch] if isinstance(branch, tuple) else branch

    assert as_tree(as_lists(tree)) == as_tree(tree) == tree


@given(trees)
def test_product_is_that_of_all_leaves(tree):
    assert cute.product(tree) == prod(leaves(tree)) == cute.size(tree)
    assert cute.product_each(tree) == tuple(size_of(mode) for mode in cute.as_tuple(tree))


@given(filled)
def test_the_largest_leaf_is_found(tree):
    assert cute.tuple_max(tree) == max(leaves(tree))


@given(trees)
def test_rank_and_depth_count_levels(tree):
    assert cute.rank(tree) == (len(tree) if isinstance(tree, tuple) else 0)
    if isinstance(tree, tuple) and tree:
        assert tree_depth(tree) == cute.depth(tree) == 1 + max(map(tree_depth, tree))
    else:
        assert tree_depth(tree) == 0


@given(trees, st.lists(st.booleans(), min_size=8, max_size=8))
def test_none_is_found_wherever_it_stands(tree, chosen):
    holes = [None if hole else leaf for leaf, hole in zip(leaves(tree), chosen, strict=False)]
    values = holes + leaves(tree)[len(holes) :]
    assert cute.has_none(nested_like(tree, values)) is (None in values)


@pytest.mark.parametrize(
    ("value", "integer", "is_tuple"), [(4, True, False), (True, False, False), (4.0, False, False), ((4,), False, True)]
)
def test_integers_and_tuples_are_told_apart(value, integer, is_tuple):
    assert cute.is_int(value) is integer
    assert cute.is_tuple(value) is is_tuple


def test_anything_is_a_tuple_of_modes():
    assert cute.as_tuple(4) == (4,)
    assert cute.as_tuple((4, 8)) == cute.as_tuple([4, 8]) == (4, 8)
    assert cute.as_tuple(()) == ()


def test_modes_of_plain_shapes_are_picked_by_number():
    assert cute.mode((4, (2, 3)), 1) == cute.mode((4, (2, 3)), -1) == (2, 3)
    assert cute.mode(4, 0) == 4


# Strides


@given(filled)
def test_prefix_products_are_the_strides_of_a_column_major_array(tree):
    steps = cute.prefix_product(tree)
    assert same_form(steps, tree)
    extents = leaves(tree)
    assert leaves(steps) == [prod(extents[:k]) for k in range(len(extents))]


@given(filled)
def test_suffix_products_are_the_strides_of_a_row_major_array(tree):
    steps = cute.suffix_product(tree)
    assert same_form(steps, tree)
    extents = leaves(tree)
    assert leaves(steps) == [prod(extents[k + 1 :]) for k in range(len(extents))]


@given(filled, st.integers(1, 9))
def test_a_start_scales_all_strides(tree, init):
    assert cute.prefix_product(tree, init) == map_leaves(lambda step: step * init, cute.prefix_product(tree))
    assert cute.suffix_product(tree, init) == map_leaves(lambda step: step * init, cute.suffix_product(tree))


@given(filled)
def test_index_strides_differ_from_prefix_products_only_at_leading_units(tree):
    extents = leaves(tree)
    steps = leaves(index_strides(tree))
    for k, (step, prefix) in enumerate(zip(steps, leaves(cute.prefix_product(tree)), strict=True)):
        assert step == (0 if all(n == 1 for n in extents[: k + 1]) else prefix)


@given(filled, st.data())
def test_the_inner_product_sums_over_matching_leaves(tree, data):
    other = nested_like(tree, [data.draw(st.integers(-9, 9)) for _ in leaves(tree)])
    assert cute.inner_product(tree, other) == sum(a * b for a, b in zip(leaves(tree), leaves(other), strict=True))
    assert cute.inner_product(tree, other) == cute.inner_product(other, tree)


@given(filled, st.data())
def test_scaling_by_a_finer_tree_uses_the_size_of_each_branch(tree, data):
    factors = nested_like(tree, [data.draw(filled) for _ in leaves(tree)])
    scaled = cute.elem_scale(tree, factors)
    assert same_form(scaled, tree)
    assert prod(leaves(scaled)) == prod(leaves(tree)) * prod(leaves(factors))


# Congruence


@given(trees, trees)
def test_congruent_means_the_same_form(a, b):
    assert is_congruent(a, b) == cute.congruent(a, b) == same_form(a, b)
    assert cute.congruent(a, b) == cute.congruent(b, a)


@given(trees)
def test_congruence_does_not_look_at_numbers(tree):
    assert cute.congruent(tree, map_leaves(lambda leaf: leaf + 1, tree))
    assert not cute.congruent(tree, (tree, tree))


@given(trees, trees)
def test_congruent_both_ways_is_weakly_congruent_both_ways(a, b):
    both = is_weakly_congruent(a, b) and is_weakly_congruent(b, a)
    assert both == is_congruent(a, b)


@given(filled, st.data())
def test_a_refinement_is_weakly_congruent_and_compatible(shape, data):
    finer = data.draw(refined(shape))
    assert cute.weakly_congruent(shape, finer)
    assert cute.compatible(shape, finer)
    finest = data.draw(refined(finer))
    assert cute.compatible(shape, finest), "compatibility is transitive"


@given(shapes(max_size=48), st.data())
def test_compatible_shapes_share_their_coordinates(a, data):
    b = data.draw(st.one_of(refined(a), shapes(max_size=48)))
    if cute.compatible(a, b):
        assert cute.size(a) == cute.size(b)
        for coord in tw.layout.coordinates(a):
            assert cute.crd2idx(coord, b) == cute.crd2idx(coord, a)
    if cute.compatible(a, b) and cute.compatible(b, a):
        assert a == b, "shapes that refine each other are the same"


@given(shapes(), shapes())
def test_layouts_are_compared_by_their_shapes(a, b):
    for compare in (cute.congruent, cute.weakly_congruent, cute.compatible):
        assert compare(Layout(a), Layout(b)) == compare(a, b) == compare(Layout(a), b)


# Division


@given(st.integers(-100, 100), st.integers(1, 20))
def test_rounding_up_is_the_least_multiple_that_is_enough(a, b):
    assert cute.round_up(a, b) % b == 0
    assert cute.round_up(a, b) - b < a <= cute.round_up(a, b)
    assert cute.ceil_div(a, b) * b == cute.round_up(a, b)


@given(st.integers(-100, 100), st.integers(1, 20))
def test_exact_division_undoes_multiplication_and_refuses_the_rest(a, b):
    assert cute.safe_div(a * b, b) == a
    if a % b:
        with pytest.raises(LayoutError, match=f"{a} is not divisible by {b}"):
            cute.safe_div(a, b)


@given(filled, st.data())
def test_dividing_a_shape_divides_its_size(shape, data):
    divisor = 1
    for extent in leaves(shape):
        part = data.draw(st.sampled_from([n for n in range(1, extent + 1) if extent % n == 0]))
        divisor *= part
        if part != extent:
            break
    quotient = cute.shape_div(shape, divisor)
    assert same_form(quotient, shape)
    assert size_of(quotient) * divisor == size_of(shape)
    taken = cute.shape_mod(shape, divisor)
    assert size_of(taken) == divisor
    assert [a * b for a, b in zip(leaves(taken), leaves(quotient), strict=True)] == leaves(shape)


@given(filled)
def test_dividing_by_one_or_by_all_leaves_all_or_one(shape):
    assert cute.shape_div(shape, 1) == shape
    assert size_of(cute.shape_div(shape, size_of(shape))) == 1
    assert cute.shape_div(shape, shape) == map_leaves(lambda _: 1, shape)
    assert cute.shape_mod(shape, size_of(shape)) == shape


@given(st.integers(1, 60), st.integers(1, 60))
def test_extents_divide_exactly_when_one_is_a_multiple_of_the_other(a, b):
    if a % b == 0 or b % a == 0:
        assert cute.shape_div(a, b) == max(1, a // b)
    else:
        with pytest.raises(LayoutError, match="divisible"):
            cute.shape_div(a, b)


@pytest.mark.parametrize(
    ("shape", "divisor", "quotient"),
    [
        ((4, 6), 8, (1, 3)),
        (12, (3, 2), 2),
        ((6, 4), (3, 2), (2, 2)),
        ((2, (3, 4)), 6, (1, (1, 4))),
        ((3, 4), 6, (1, 2)),
    ],
)
def test_known_quotients(shape, divisor, quotient):
    assert cute.shape_div(shape, divisor) == quotient


@pytest.mark.parametrize(
    ("shape", "modulus", "kept"), [((4, 6), 8, (4, 2)), (12, 4, 4), (4, 6, 4), ((2, (3, 4)), 6, (2, (3, 1)))]
)
def test_known_remainders(shape, modulus, kept):
    assert cute.shape_mod(shape, modulus) == kept
