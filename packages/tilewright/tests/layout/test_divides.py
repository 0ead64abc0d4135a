# SPDX-License-Identifier: Apache-2.0
"""Division: a layout cut into tiles holds every element once, and remembers where a ragged edge ends."""

from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Swizzle, cute

from .reference import data, valid_flags, values, without_padding
from .strategies import layouts, named_layouts, shapes

L = Layout
DIVIDES = [tw.logical_divide, tw.zipped_divide, tw.layout.tiled_divide, tw.layout.flat_divide]


@st.composite
def covering_tilers(draw, size):
    """Return an extent, or a layout whose tiles fill their period together with their gaps; None sometimes."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return None
    if kind == 1:
        return draw(st.integers(1, min(size + 3, 14)))
    steps, step = [], 1
    extents = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    for n in extents:
        step *= draw(st.integers(1, 3))
        steps.append(step)
        step *= n
    order = draw(st.permutations(range(len(extents))))
    shape, stride = tuple([extents[k] for k in order]), tuple([steps[k] for k in order])
    return L(shape, stride) if len(order) > 1 else L(shape[0], stride[0])


@st.composite
def divisions(draw, source=None):
    """Return (layout, tiler), the tiler flat or by mode."""
    layout = draw(layouts(max_size=64) if source is None else source)
    if isinstance(layout.shape, tuple) and draw(st.booleans()):
        count = draw(st.integers(1, layout.rank))
        return layout, tuple([draw(covering_tilers(layout.mode(k).size)) for k in range(count)])
    return layout, draw(covering_tilers(layout.size))


def tile_only(layout, tiler):
    """Return the tiler that picks the first tile: a mode that is left whole has a tile of one element."""
    if not isinstance(tiler, tuple):
        return 1 if tiler is None else tiler
    return tuple([tile_only(layout, part) for part in tiler] + [1] * (layout.rank - len(tiler)))


@given(layouts(max_size=64), st.integers(1, 14))
def test_an_extent_cuts_like_the_layout_of_that_extent(layout, n):
    assert tw.logical_divide(layout, n) == tw.logical_divide(layout, L(n))


# Every element once.


@given(shapes(max_size=64), st.data())
def test_every_coordinate_appears_exactly_once(shape, draws):
    layout, tiler = draws.draw(divisions(st.just(L(shape))))
    for divide in DIVIDES:
        if tiler is None:
            continue
        assert sorted(data(divide(layout, tiler))) == list(range(layout.size))


@given(divisions())
def test_every_place_appears_as_often_as_before(pair):
    layout, tiler = pair
    assume(tiler is not None)
    for divide in DIVIDES:
        divided = divide(layout, tiler)
        assert Counter(data(divided)) == Counter(values(layout))
        assert divided.size >= layout.size


@given(divisions(named_layouts(max_size=48)))
def test_named_layouts_are_divided_like_others(pair):
    layout, tiler = pair
    assume(tiler is not None)
    divided = tw.logical_divide(layout, tiler)
    assert Counter(data(divided)) == Counter(values(layout))


@given(layouts(max_size=48, min_rank=1, max_rank=2), st.data())
def test_what_was_padding_stays_padding(layout, draws):
    marked = tw.with_logical_shape(layout, tuple([draws.draw(st.integers(1, mode.size)) for mode in layout.modes]))
    _, tiler = draws.draw(divisions(st.just(layout)))
    assume(tiler is not None)
    assert Counter(data(tw.logical_divide(marked, tiler))) == Counter(data(marked))


@given(divisions())
def test_the_first_tile_is_the_layout_composed_with_the_tiler(pair):
    layout, tiler = pair
    assume(tiler is not None)
    tile = tw.zipped_divide(layout, tiler)(None, 0)
    expected = tw.compose(layout, tile_only(layout, tiler))
    assert values(tile) == values(expected)
    assert valid_flags(tile) == valid_flags(expected)


@given(st.integers(1, 60), st.integers(1, 20))
def test_tiles_of_a_line_follow_each_other(n, tile):
    divided = tw.logical_divide(L(n), tile)
    assert divided.shape == (tile, cute.ceil_div(n, tile))
    for i, j in divided:
        assert divided.valid(i, j) == (i + tile * j < n)
        assert not divided.valid(i, j) or divided(i, j) == i + tile * j


# Regroupings.


@given(st.tuples(st.integers(1, 9), st.integers(1, 9)), st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_the_four_divides_are_regroupings_of_each_other(shape, tiler):
    layout = tw.row_major(*shape)
    logical, zipped, tiled, flat = (divide(layout, tiler) for divide in DIVIDES)
    rests = tuple([cute.ceil_div(n, t) for n, t in zip(shape, tiler, strict=True)])
    assert zipped.shape == (tiler, rests)
    assert tiled.shape == (tiler, *rests)
    assert flat.shape == (*tiler, *rests)
    for (t, u), (r, s) in tw.layout.coordinates((tiler, rests)):
        located = logical.locate((t, r), (u, s))
        assert zipped.locate((t, u), (r, s)) == located
        assert tiled.locate((t, u), r, s) == located
        assert flat.locate(t, u, r, s) == located


def test_modes_without_a_tiler_stay_whole_and_go_to_the_rest():
    layout = L((8, 6, 5))
    assert tw.logical_divide(layout, (2, None)) == L(((2, 4), 6, 5), ((1, 2), 8, 48))
    assert tw.zipped_divide(layout, (2, None)) == L(((2, 1), (4, 6, 5)), ((1, 0), (2, 8, 48)))
    assert tw.layout.tiled_divide(layout, (2, 3)) == L(((2, 3), 4, 2, 5), ((1, 8), 2, 24, 48))
    assert tw.layout.flat_divide(layout, (2, 3)) == L((2, 3, 4, 2, 5), (1, 8, 2, 24, 48))


def test_nested_tilers_cut_nested_modes():
    layout = L(((4, 6), 8))
    assert tw.logical_divide(layout, ((2, 3), 4)) == L((((2, 2), (3, 2)), (4, 2)), (((1, 2), (4, 12)), (24, 96)))
    zipped = tw.zipped_divide(layout, ((2, 3), 4))
    assert zipped == L((((2, 3), 4), ((2, 2), 2)), (((1, 4), 24), ((2, 12), 96)))


def test_hier_unzip_gathers_what_a_splitter_gives():
    assert cute.hier_unzip(tw.logical_divide, L((4, 8)), (2, 4)) == tw.zipped_divide(L((4, 8)), (2, 4))
    assert cute.hier_unzip(tw.logical_divide, L((4, 8)), (2, None)) == L(((2, 1), (2, 8)), ((1, 0), (2, 4)))
    assert cute.hier_unzip(tw.logical_divide, L((4, 8)), (2,)) == L(((2,), (2, 8)), ((1,), (2, 4))), (
        "the rest stays whole"
    )
    with pytest.raises(LayoutError, match="more modes"):
        cute.hier_unzip(tw.logical_divide, L((4, 8)), (2, 2, 2))
    named = L(((3, 2),), ((tw.Place(bank=1), tw.Place(bank=1)),))
    with pytest.raises(LayoutError, match="is not strided, and cannot be a mode"):
        cute.hier_unzip(tw.logical_divide, named, (2,))


# Ragged edges.


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9), st.integers(1, 9))
def test_a_ragged_table_holds_the_fill_value_where_there_is_no_data(rows, columns, height, width):
    divided = tw.zipped_divide(tw.row_major(rows, columns), (height, width))
    table = divided.offsets(fill=-1)
    assert table.shape == (height * width, cute.ceil_div(rows, height) * cute.ceil_div(columns, width))
    assert sorted(table[table >= 0].tolist()) == list(range(rows * columns))
    assert (table == -1).sum() == divided.size - rows * columns


def test_a_tile_of_nothing_is_all_padding():
    assert cute.product_each(tw.logical_divide(L(0), 4).shape) == (4, 1)
    assert data(tw.zipped_divide(L((0, 3)), (4, 2))) == []


def test_dividing_100_by_32_covers_128_and_remembers_100():
    divided = tw.logical_divide(L(100), 32)
    assert without_padding(divided) == L((32, 4), (1, 32))
    assert divided.valid(3, 3)
    assert not divided.valid(4, 3)
    assert sum(valid_flags(divided)) == 100


def test_a_ragged_divide_is_divided_again_without_losing_the_edge():
    twice = tw.logical_divide(tw.logical_divide(L(100), 32), (5, None))
    assert sorted(data(twice)) == list(range(100))


def test_a_flat_tiler_across_modes_is_exact():
    divided = tw.zipped_divide(L((16, 4), (8, 1)), 3)
    assert isinstance(divided, ComposedLayout)
    assert divided.shape == (3, 22)
    assert data(divided) == values(L((16, 4), (8, 1)))


@given(divisions())
def test_exact_raises_exactly_where_the_tiles_do_not_divide(pair):
    layout, tiler = pair
    assume(tiler is not None)
    for divide in DIVIDES:
        if divide(layout, tiler).size == layout.size:
            assert values(divide(layout, tiler, exact=True)) == values(divide(layout, tiler))
        else:
            with pytest.raises(LayoutError, match="leaves the data"):
                divide(layout, tiler, exact=True)


@given(divisions())
def test_strided_raises_exactly_where_the_result_is_not_a_layout(pair):
    layout, tiler = pair
    assume(tiler is not None)
    for divide in DIVIDES:
        if isinstance(divide(layout, tiler), Layout):
            assert divide(layout, tiler, strided=True) == divide(layout, tiler)
        else:
            with pytest.raises(LayoutError, match="divisible"):
                divide(layout, tiler, strided=True)


# Swizzled layouts and errors.


@pytest.mark.parametrize("divide", DIVIDES)
def test_a_swizzled_layout_is_divided_inside_the_swizzle(divide):
    swizzle, inner = Swizzle(2, 0, 2), tw.row_major(4, 8)
    divided = divide(tw.compose(swizzle, inner), (2, 4))
    assert values(divided) == [swizzle(place) for place in values(divide(inner, (2, 4)))]


@pytest.mark.parametrize("divide", DIVIDES)
def test_tilers_that_make_no_sense_are_refused(divide):
    with pytest.raises(LayoutError, match="more modes"):
        divide(L((4, 4)), (2, 2, 2))
    with pytest.raises(LayoutError, match="not injective"):
        divide(L(8), L((2, 2), (1, 1)))
    with pytest.raises(LayoutError, match="negative"):
        divide(L(8), -2)
    with pytest.raises(TypeError, match="tiler"):
        divide(L(8), Swizzle(1, 0, 1))
    with pytest.raises(TypeError):
        divide(L(8), 2.0)
