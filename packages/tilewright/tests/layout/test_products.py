# SPDX-License-Identifier: Apache-2.0
"""Products: a block repeated at the positions of another layout, without collision."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Swizzle, core, cute

from .reference import data, table, valid_flags, values
from .strategies import injective_layouts, layouts

L = Layout
PRODUCTS = [tw.logical_product, tw.layout.zipped_product, tw.layout.tiled_product, tw.layout.flat_product]
BLOCKS = st.one_of(
    injective_layouts(max_size=24),
    layouts(max_size=24, kinds=("broadcast",), offsets=False),
    st.sampled_from([L((2, 2), (2, 3)), L((5, 4), (1, 10)), L((3, 2), (2, 7))]),
)
COPIES = layouts(max_size=12, kinds=("compact", "padded", "broadcast"), offsets=False)


# The law.


@given(BLOCKS, COPIES)
def test_the_first_mode_of_a_product_is_the_block(block, copies):
    product = tw.logical_product(block, copies)
    assert product.size == block.size * copies.size
    assert cute.compatible((block.size, copies.size), product)
    assert values(product(None, 0)) == table(block)
    for j in range(copies.size):
        start = product(0, j)
        assert [product(i, j) - start for i in range(block.size)] == table(block)


@given(BLOCKS, COPIES)
def test_copies_at_different_positions_do_not_collide(block, copies):
    product = tw.logical_product(block, copies)
    starts = {}
    for j, position in enumerate(table(copies)):
        assert starts.setdefault(position, product(0, j)) == product(0, j)
    image = set(table(block))
    places = {start + place for start in starts.values() for place in image}
    assert len(places) == len(starts) * len(image)


@given(BLOCKS, COPIES)
def test_copies_lie_in_the_order_of_their_positions(block, copies):
    product = tw.logical_product(block, copies)
    ordered = sorted((position, product(0, j)) for j, position in enumerate(table(copies)))
    assert [start for _, start in ordered] == sorted(start for _, start in ordered)
    assert product(0, 0) == 0


@given(layouts(max_size=24, kinds=("compact",), offsets=False), layouts(max_size=12, kinds=("compact",), offsets=False))
def test_a_product_of_compact_layouts_is_compact(block, copies):
    assert tw.is_bijective(tw.logical_product(block, copies))


@given(BLOCKS, st.integers(1, 9))
def test_an_integer_means_that_many_copies(block, n):
    assert values(tw.logical_product(block, n)) == values(tw.logical_product(block, L(n)))


@given(BLOCKS)
def test_none_means_no_copies(block):
    assert tw.logical_product(block, None) == block


# Regroupings.


@given(
    injective_layouts(max_size=24, min_rank=2, max_rank=2, max_depth=1),
    layouts(max_size=12, kinds=("compact",), offsets=False, min_rank=2, max_rank=2, max_depth=1),
)
def test_all_products_are_regroupings_of_the_logical_one(block, copies):
    logical, zipped, tiled, flat = (product(block, copies) for product in PRODUCTS)
    blocked, raked = tw.blocked_product(block, copies), tw.layout.raked_product(block, copies)
    for (t, u), (r, s) in tw.layout.coordinates((tuple(block.shape), tuple(copies.shape))):
        j = r + s * copies.shape[0]
        place = logical((t, u), j)
        assert zipped(t + u * block.shape[0], j) == place
        assert tiled(t + u * block.shape[0], r, s) == place
        assert flat(t, u, r, s) == place
        assert blocked(t + block.shape[0] * r, u + block.shape[1] * s) == place
        assert raked(r + copies.shape[0] * t, s + copies.shape[1] * u) == place


@given(BLOCKS, COPIES)
def test_blocked_and_raked_products_hold_the_same_places(block, copies):
    expected = Counter(values(tw.logical_product(block, copies)))
    assert Counter(values(tw.blocked_product(block, copies))) == expected
    assert Counter(values(tw.layout.raked_product(block, copies))) == expected


@given(BLOCKS, COPIES)
def test_blocked_and_raked_products_have_as_many_modes_as_the_larger_factor(block, copies):
    blocked, raked = tw.blocked_product(block, copies), tw.layout.raked_product(block, copies)
    assert cute.rank(blocked) == cute.rank(raked) == max(block.rank, copies.rank)
    assert cute.product_each(blocked.shape) == cute.product_each(raked.shape)


def test_a_tuple_of_tilers_repeats_each_mode_on_its_own():
    block = L((2, 3), (1, 10)) + 7
    product = tw.logical_product(block, (5, 4))
    assert product == L(((2, 5), (3, 4)), ((1, 2), (10, 1))) + 7
    assert product.mode(0) == tw.logical_product(block.mode(0), 5)
    assert product.mode(1) == tw.logical_product(block.mode(1), 4)
    assert tw.logical_product(block, (5, None)) == L(((2, 5), 3), ((1, 2), 10)) + 7
    assert tw.logical_product(block, (5,)) == L(((2, 5), 3), ((1, 2), 10)) + 7


def test_zipped_tiled_and_flat_products_by_example():
    block, copies = L((2, 2)), L((3, 4))
    assert tw.logical_product(block, copies) == L(((2, 2), (3, 4)), ((1, 2), (4, 12)))
    assert tw.layout.zipped_product(block, copies) == L(((2, 2), (3, 4)), ((1, 2), (4, 12)))
    assert tw.layout.tiled_product(block, copies) == L(((2, 2), 3, 4), ((1, 2), 4, 12))
    assert tw.layout.flat_product(block, copies) == L((2, 2, 3, 4), (1, 2, 4, 12))


# Gaps that do not divide.


def test_a_product_with_gaps_that_do_not_divide_stays_exact():
    block = L((5, 4), (1, 10))
    product = tw.logical_product(block, 5)
    assert isinstance(product, ComposedLayout)
    assert [product(0, j) for j in range(5)] == [0, 5, 40, 45, 80]
    for operation in (*PRODUCTS, tw.blocked_product, tw.layout.raked_product):
        assert Counter(values(operation(block, 5))) == Counter(values(product))
        with pytest.raises(LayoutError, match="divisible"):
            operation(block, 5, strided=True)


@given(BLOCKS, COPIES)
def test_strided_raises_exactly_where_the_product_is_not_a_layout(block, copies):
    product = tw.logical_product(block, copies)
    if isinstance(product, Layout):
        assert tw.logical_product(block, copies, strided=True) == product
    else:
        with pytest.raises(LayoutError, match="divisible"):
            tw.logical_product(block, copies, strided=True)


# Named axes, padding and swizzles.


@given(injective_layouts(max_size=24), st.integers(1, 6), st.integers(1, 6))
def test_copies_on_a_named_axis_lie_side_by_side(block, rows, columns):
    grid = L((rows, columns), (1 @ core.y, 1 @ core.x))
    product = tw.logical_product(block, grid)
    assert product.shape == (block.shape, (rows, columns))
    for i, j, k in {(0, 0, 0), (block.size - 1, rows - 1, columns - 1), (block.size // 2, 0, columns - 1)}:
        place = product(i, (j, k))
        assert (place.plain, place.get("core.y", 0), place.get("core.x", 0)) == (block(i), j, k)


def test_two_layouts_on_one_axis_would_collide():
    with pytest.raises(LayoutError, match="collide"):
        tw.logical_product(L(4, 1 @ core.x), L(2, 1 @ core.x))


def test_a_padded_block_is_padded_in_every_copy():
    block = tw.with_logical_shape(L((4, 4), (4, 1)), (3, 4))
    product = tw.logical_product(block, 3)
    assert [product(None, j).offset for j in range(3)] == [0, 16, 32]
    for j in range(3):
        assert valid_flags(product(None, j)) == valid_flags(block)
    assert len(data(product)) == 36


@pytest.mark.parametrize("operation", [*PRODUCTS, tw.blocked_product])
def test_a_swizzled_block_is_repeated_inside_the_swizzle(operation):
    swizzle, inner = Swizzle(2, 0, 2), tw.row_major(4, 4)
    product = operation(tw.compose(swizzle, inner), L((2, 3)))
    assert values(product) == [swizzle(place) for place in values(operation(inner, L((2, 3))))]


def test_a_composition_over_strides_is_repeated_before_it_is_composed():
    with pytest.raises(LayoutError, match="repeat the inner layout first"):
        tw.logical_product(ComposedLayout(L((4, 3), (1, 10)), L((3, 2), (1, 5))), L(2))


def test_blocks_that_collide_have_no_product():
    with pytest.raises(LayoutError, match="not injective"):
        tw.logical_product(L((4, 8), (1, 3)), 2)
    with pytest.raises(LayoutError, match="more modes"):
        tw.logical_product(L((4, 8)), (2, 2, 2))


# Tiling a shape.


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.sampled_from([None, (0, 1), (1, 0)]),
)
def test_a_tiled_shape_holds_every_coordinate_once_and_pads_the_rest(block_shape, shape, order):
    block = tw.row_major(*block_shape)
    tiled = tw.tile_to_shape(block, shape, order)
    counts = tuple([cute.ceil_div(n, b) for n, b in zip(shape, block_shape, strict=True)])
    assert cute.product_each(tiled.shape) == tuple([n * b for n, b in zip(counts, block_shape, strict=True)])
    assert tw.is_bijective(L(tiled.shape, tiled.stride))
    for i, j in tw.layout.coordinates(cute.product_each(tiled.shape)):
        assert tiled.valid(i, j) == (i < shape[0] and j < shape[1])
        at = (i // block_shape[0], j // block_shape[1])
        number = at[0] * counts[1] + at[1] if order == (1, 0) else at[0] + at[1] * counts[0]
        assert tiled(i, j) == number * block.size + block(i % block_shape[0], j % block_shape[1])
    assert tiled.logical_shape == shape


def test_tiling_exactly_refuses_what_does_not_divide():
    assert tw.tile_to_shape(L((2, 2)), (4, 6), exact=True).size == 24
    with pytest.raises(LayoutError, match="exact multiple"):
        tw.tile_to_shape(L((2, 2)), (4, 5), exact=True)
    with pytest.raises(LayoutError, match="same number of top-level modes"):
        tw.tile_to_shape(L((2, 2)), (4, 4, 4))
    with pytest.raises(LayoutError, match="permutation"):
        tw.tile_to_shape(L((2, 2)), (4, 4), (1, 1))


def test_a_line_is_tiled_too():
    tiled = tw.tile_to_shape(L(4), 10)
    assert tiled.size == 12
    assert data(tiled) == list(range(10))
    gapped = tw.tile_to_shape(L(4, 2), 10)  # copies in the gaps: not strided, and padded all the same
    assert isinstance(gapped, ComposedLayout)
    assert data(gapped) == [0, 2, 4, 6, 1, 3, 5, 7, 8, 10]
