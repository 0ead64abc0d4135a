# SPDX-License-Identifier: Apache-2.0
"""Pages that start anywhere: evaluation by every kind of coordinate, in compositions and in copies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import (
    LayoutError,
    Placement,
    compose,
    left_inverse,
    plan_copy,
    right_inverse,
    row_major,
    tiled_layout,
    with_logical_shape,
)
from tilewright.copying import execute
from tilewright.errors import CoordinateError
from tilewright.layout import Layout, PagedLayout
from tilewright.layout.composition import strided_leaves


def scattered(page, order, gap=0, first=0):
    return PagedLayout(page, [first + k * (page + gap) for k in order])


@st.composite
def pages(draw):
    order = draw(st.permutations(range(draw(st.integers(1, 9)))))
    return scattered(draw(st.integers(1, 6)), order, draw(st.integers(0, 3)), draw(st.integers(-50, 9)))


@given(pages())
def test_every_way_of_asking_agrees(layout):
    expected = [layout.starts[i // layout.page] + i % layout.page for i in range(layout.size)]
    assert [layout(i) for i in range(layout.size)] == expected
    assert [layout(k, page) for page in range(len(layout.starts)) for k in range(layout.page)] == expected
    assert layout(np.arange(layout.size)).tolist() == expected
    assert layout.offsets().ravel(order="F").tolist() == expected
    assert layout.cosize == max(0, *expected) + 1 - min(0, *expected)
    assert not layout.valid(layout.size)
    assert layout.valid(np.array([0, layout.size])).tolist() == [True, False]


@given(pages())
def test_an_element_is_found_by_its_place(layout):
    back = left_inverse(layout - min(layout.starts))
    places = (layout - min(layout.starts))(np.arange(layout.size))
    assert back(places).tolist() == list(range(layout.size))
    assert int(back.valid(np.arange(back.size)).sum()) == layout.size
    start = right_inverse(layout)
    assert [layout(start(i)) for i in range(start.size)] == list(range(start.size))


@given(pages(), st.data())
def test_pages_may_be_filled_in_part(layout, draws):
    logical = (draws.draw(st.integers(0, layout.page)), draws.draw(st.integers(0, len(layout.starts))))
    marked = with_logical_shape(layout, logical)
    for page in range(len(layout.starts)):
        for k in range(layout.page):
            assert marked.locate(k, page) == (layout(k, page), k < logical[0] and page < logical[1])


@given(pages(), st.integers(1, 4), st.integers(0, 9))
def test_compositions_evaluate_exactly(layout, width, left_out):
    size = max(1, layout.size - left_out)
    inner = row_major(size // width, width) if size % width == 0 else Layout(size)
    both = compose(layout, inner)
    places = [layout(inner(i)) for i in range(size)]
    assert [both(i) for i in range(size)] == places
    assert both.cosize == max(0, *places) + 1 - min(0, *places)


def test_a_copy_needs_a_table_of_pages_only():
    inner = tiled_layout((64, 96))
    target = scattered(1024, [3, 1, 5, 0, 2, 4], gap=64)
    assert [step for mode in strided_leaves(compose(target, inner)) for _, step in mode].count(None) == 2
    source = np.arange(64 * 96, dtype=np.int32).reshape(64, 96)
    plan = plan_copy(Placement(row_major(64, 96), "int32"), Placement(compose(target, inner), "int32"))
    assert plan.nests[0].tabulated.count == 6
    memory = np.zeros(target.cosize, dtype=np.int32)
    execute(plan, source, memory)
    assert all(memory[target(inner(r, c))] == source[r, c] for r in range(0, 64, 7) for c in range(0, 96, 5))


def test_padding_of_the_inner_layout_is_known_without_a_mask():
    inner = tiled_layout((60, 90))
    place = Placement(compose(scattered(1024, range(6)), inner), "int8")
    assert place.data_extents == (60, 90)
    assert place.extents == (64, 96)


def test_values():
    layout = PagedLayout(4, [100, 0, 50])
    assert layout == PagedLayout(4, (100, 0, 50))
    assert hash(layout) == hash(PagedLayout(4, np.array([100, 0, 50])))
    assert layout != PagedLayout(4, [100, 0, 51])
    assert layout != PagedLayout(2, [100, 0, 50])
    assert eval(repr(layout)) == layout  # noqa: S307
    assert (layout + 7)(0) == 107
    assert str(PagedLayout(2, range(100))) == "pages(2,100):(0,1,2,3,4,5,...)"
    assert layout.mode(0) == Layout(4)
    assert layout.mode(1)(2) == 50
    assert layout.mode(-2) == layout.mode(0)
    assert layout.mode(-1) == layout.mode(1)
    assert layout.mode(1, 0) == Layout(1)
    assert PagedLayout(2, [0, 8]) != PagedLayout(4, [0, 8]) != PagedLayout(2, [0, 8])
    assert hash(PagedLayout(2, [])) == hash(PagedLayout(2, []))


def test_what_cannot_be():
    with pytest.raises(LayoutError, match="at least 1"):
        PagedLayout(0, [1])
    for wrong in (None, "abc", [0.5], [2**70], np.array([2**63], np.uint64)):
        with pytest.raises(LayoutError, match="starts of pages must be integers"):
            PagedLayout(4, wrong)
    with pytest.raises(CoordinateError, match="outside shape"):
        PagedLayout(4, [0])(4)
    with pytest.raises(CoordinateError, match="no mode 2"):
        PagedLayout(4, [0]).mode(2)
    with pytest.raises(CoordinateError, match="no mode -3"):
        PagedLayout(4, [0]).mode(-3)
    with pytest.raises(ValueError, match="read-only"):
        PagedLayout(4, [0]).starts[0] = 1
