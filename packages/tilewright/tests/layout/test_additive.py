# SPDX-License-Identifier: Apache-2.0
"""The strided part of a composition: it adds up, and nothing that is strided is overlooked."""

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import ComposedLayout, Layout, Swizzle, compose, parse, replicate, row_major
from tilewright.layout import PagedLayout
from tilewright.layout.composition import strided_leaves

from .reference import layouts_into
from .strategies import digits, layouts, size_of

swizzles = st.builds(Swizzle, st.integers(0, 2), st.integers(0, 3), st.integers(2, 3) | st.integers(-3, -2))


@st.composite
def outers(draw):
    """Return a function of 0 .. size - 1 that is rarely strided, with its size."""
    kind = draw(st.sampled_from(["swizzle", "layout", "pages"]))
    if kind == "swizzle":
        swizzle = draw(swizzles)
        return swizzle, swizzle.size * draw(st.integers(1, 3))
    if kind == "pages":
        page = draw(st.integers(1, 12))
        starts = [k * (page + 1) for k in draw(st.permutations(range(draw(st.integers(1, 6)))))]
        return PagedLayout(page, starts), page * len(starts)
    layout = draw(layouts(max_size=60, kinds=("compact", "padded", "arbitrary")))
    return layout, layout.size


@st.composite
def compositions(draw):
    outer, size = draw(outers())
    inner = draw(layouts_into(size, max_size=40) | layouts_into(size, max_size=40).map(ascending))
    return draw(st.sampled_from([compose, ComposedLayout]))(outer, inner)


def ascending(layout):
    """Return the layout with its steps turned to go upwards, over the same places."""
    return Layout(layout.shape, upwards(layout.stride), offset=layout.bounds[0])


def upwards(stride):
    return tuple(map(upwards, stride)) if isinstance(stride, tuple) else abs(stride)


@given(compositions() | layouts())
def test_strided_leaves_add_up_with_the_layout_at_the_others(layout):
    modes = strided_leaves(layout)
    extents = [[n for n, _ in mode] for mode in modes]
    branches = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    assert [prod(mode) for mode in extents] == [size_of(branch) for branch in branches]
    for coordinate in product(*(range(prod(mode)) for mode in extents)):
        strided, others = 0, []
        for index, mode in zip(coordinate, modes, strict=True):
            other, radix = 0, 1
            for digit, (n, step) in zip(digits(index, [n for n, _ in mode]), mode, strict=True):
                if step is None:
                    other += digit * radix
                else:
                    strided += digit * step
                radix *= n
            others.append(other)
        assert layout(*coordinate) == strided + layout(*others)


@given(layouts())
def test_a_layout_is_strided_throughout(layout):
    assert None not in [step for mode in strided_leaves(layout) for _, step in mode]


@given(st.integers(1, 12), st.permutations(range(5)), st.integers(1, 3), st.integers(0, 3))
def test_whole_pages_are_strided_inside(page, order, pages, skipped):
    scattered = PagedLayout(page, [100 * start for start in order])
    pages = ComposedLayout(scattered, Layout((page, pages), (1, page), offset=min(skipped, 5 - pages) * page))
    within, across = strided_leaves(pages)
    assert within == ([(page, 1)] if page > 1 else [(1, None)])
    assert [step for _, step in across] == [None]


# Bits 1 and 2 change with bits 4 and 5: strided below 2, and from 64 on.
SWIZZLE = Swizzle(2, 1, 3)


@pytest.mark.parametrize(
    ("outer", "inner", "modes"),
    [
        (SWIZZLE, Layout(256), [[(2, 1), (32, None), (4, 64)]]),
        (SWIZZLE, row_major(16, 16), [[(4, None), (4, 64)], [(2, 1), (8, None)]]),
        (SWIZZLE, Layout((2, 4), (1, 64), offset=4), [[(2, 1)], [(4, 64)]]),
        (SWIZZLE, Layout((2, 4), (1, 64), offset=62), [[(2, 1)], [(4, 64)]]),
        (SWIZZLE, Layout((2, 4), (1, 64), offset=63), [[(2, None)], [(4, None)]]),
        (SWIZZLE, Layout((2, 12), (1, 2)), [[(2, 1)], [(12, None)]]),
        (SWIZZLE, Layout((2, 64), (1, 2)), [[(2, 1)], [(32, None), (2, 64)]]),
        (SWIZZLE, Layout((2, 3, 5), (1, 30, 2)), [[(2, 1)], [(3, None)], [(5, None)]]),
        (SWIZZLE, Layout((2, 8), (-1, 2), offset=1), [[(2, None)], [(8, None)]]),
        (Swizzle(0, 0, 0), Layout(8), [[(8, None)]]),
    ],
)
def test_a_swizzle_leaves_alone_what_lies_below_and_above_its_bits(outer, inner, modes):
    assert strided_leaves(ComposedLayout(outer, inner)) == modes


@pytest.mark.parametrize(
    ("outer", "inner", "modes"),
    [
        # Indices 0 .. 7 of the outer layout are strided, 0 .. 23 are not: five columns do not divide four.
        ("(4,2,9):(1,100,1000)", "(4,5):(1,4)", [[(4, 1)], [(5, None)]]),
        ("(4,2,9):(1,100,1000)", "(2,2,5):(4,1,8)", [[(2, 100)], [(2, 1)], [(5, None)]]),
        ("(4,2,9):(1,100,1000)", "(8,5):(1,8)", [[(4, 1), (2, 100)], [(5, None)]]),
        ("(4,2,9):(1,100,1000)", "(3,5):(1,4)+1", [[(3, 1)], [(5, None)]]),
        ("(4,2,9):(1,100,1000)", "(4,5):(1,4)+1", [[(4, None)], [(5, None)]]),
    ],
)
def test_the_largest_block_of_a_layout_that_is_strided_is_found(outer, inner, modes):
    assert strided_leaves(ComposedLayout(parse(outer), parse(inner))) == modes


@pytest.mark.parametrize(
    "layout",
    [
        PagedLayout(4, [8, 0]),
        ComposedLayout(PagedLayout(2, [6, 4, 0]), ComposedLayout(SWIZZLE, Layout((2, 3), (1, 2)))),
        ComposedLayout(SWIZZLE, replicate(Layout((2, 4), (1, 2)), 2, 64)),
        ComposedLayout(PagedLayout(16, [0]), Layout((2, 4), (-1, 2), offset=1)),
    ],
)
def test_what_is_not_taken_apart_has_no_strided_leaf(layout):
    assert strided_leaves(layout) == [[(n, None)] for n in layout.shape]


def test_a_run_that_crosses_a_mode_of_the_outer_layout_is_not_strided():
    """It starts two places before the end of that mode; from its start it would fit."""
    crossing = ComposedLayout(Layout((4, 3, 5), (1, 10, 1000)), Layout(3) + 2)
    assert [crossing(k) for k in range(3)] == [2, 3, 10]
    assert strided_leaves(crossing) == [[(3, None)]]
