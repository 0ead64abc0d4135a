# SPDX-License-Identifier: Apache-2.0
"""Layouts as values: how they are made, what they know of themselves, and when two are the same."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Place, Swizzle, addr, bank, col_major, cute, row_major
from tilewright.layout import Guard
from tilewright.layout.modes import extend_domain, scale
from tilewright.mojo.layout import Idx, MixedLayout
from tilewright.mojo.layout.coord import is_dynamic

from .strategies import layouts, leaves, named_layouts, nested_like, place_by_hand, shapes, size_of

known = MixedLayout.wrap


def depth_by_hand(tree):
    return 1 + max(map(depth_by_hand, tree)) if isinstance(tree, tuple) and tree else 0


def as_lists(tree):
    return [as_lists(branch) for branch in tree] if isinstance(tree, tuple) else tree


def rebuilt(value):
    names = {"Layout": Layout, "Place": Place, "Guard": Guard, "Idx": Idx, "ComposedLayout": ComposedLayout}
    return eval(repr(value), {**names, "Swizzle": Swizzle})  # noqa: S307 - that a repr can be pasted back is the claim


# Construction


@given(layouts(allow_zero=True, allow_empty=True, offsets=False))
def test_shape_and_stride_come_back_as_given(layout):
    again = Layout(layout.shape, layout.stride)
    assert (again.shape, again.stride, again.offset) == (layout.shape, layout.stride, 0)


@given(layouts(allow_zero=True, allow_empty=True, offsets=False))
def test_lists_are_read_as_tuples(layout):
    assert Layout(as_lists(layout.shape), as_lists(layout.stride)) == layout


@given(layouts(offsets=False))
def test_numpy_integers_become_plain_ones(layout):
    as_numpy = nested_like(layout.shape, map(np.int64, leaves(layout.shape)))
    steps = nested_like(layout.shape, map(np.int32, leaves(layout.stride)))
    again = Layout(as_numpy, steps)
    assert again == layout
    assert {type(leaf) for leaf in leaves(again.shape) + leaves(again.stride)} <= {int}


@given(shapes(allow_zero=True, allow_empty=True))
def test_default_strides_give_each_coordinate_its_index(shape):
    layout = Layout(shape)
    assert [layout(i) for i in range(layout.size)] == list(range(size_of(shape)))


@pytest.mark.parametrize(
    ("shape", "stride"),
    [
        (4, 1),
        ((4, 8), (1, 4)),
        ((1, 2, (3, 4)), (0, 1, (2, 6))),
        ((2, 1, 3), (1, 2, 2)),
        ((1, 1, 5), (0, 0, 1)),
        (((1, 1), (1, 4)), ((0, 0), (0, 1))),
        (1, 0),
        ((1,), (0,)),
        ((4, 1), (1, 4)),
        ((), ()),
    ],
)
def test_leading_units_have_stride_zero_and_later_ones_do_not(shape, stride):
    assert Layout(shape).stride == stride


def test_layout_of_nothing_is_one_place():
    layout = Layout()
    assert layout == Layout(()) == Layout((), ())
    assert (layout.shape, layout.stride, layout.size, layout.cosize, layout.rank) == ((), (), 1, 1, 0)
    assert layout() == 0


@given(st.lists(layouts(max_size=12), min_size=1, max_size=3))
def test_joined_layouts_become_modes_that_add_up(parts):
    joined = Layout(*parts)
    assert joined == tw.layout.join(*parts)
    assert joined.shape == tuple(part.shape for part in parts)
    assert joined.stride == tuple(part.stride for part in parts)
    for i in range(joined.size):
        rest, total = i, 0
        for part in parts:
            total += part(rest % part.size)
            rest //= part.size
        assert joined(i) == total


compositions = st.builds(
    lambda outer, n, step, offset: ComposedLayout(outer, Layout(n, step, offset=offset)),
    layouts(max_size=12),
    st.integers(1, 5),
    st.integers(0, 4),
    st.integers(0, 3),
)


@given(compositions, compositions | layouts(max_size=6))
def test_joined_compositions_become_modes_that_add_up(a, b):
    joined = tw.layout.join(a, b)
    for i, j in product(range(a.size), range(b.size)):
        assert joined.locate(i, j) == (a.extended(i) + b.extended(j), a.valid(i) and b.valid(j))


@given(layouts(max_size=12), st.integers(1, 3), st.integers(-9, 9), st.integers(1, 5))
def test_a_scaled_layout_has_every_place_multiplied(layout, count, step, factor):
    copies = tw.replicate(layout, count, step)
    for i in range(layout.size):
        assert scale(layout, factor)(i) == layout(i) * factor
        assert scale(copies, factor)(i) == {place * factor for place in copies(i)}


def test_joining_one_layout_adds_a_level():
    assert Layout(Layout(4)) == Layout((4,), (1,))
    assert Layout(Layout((4, 8))) == Layout(((4, 8),), ((1, 4),))


def test_joined_padding_stays_with_its_mode():
    joined = Layout(tw.pad(Layout(3), 4), tw.pad(Layout(5, 10), 6))
    assert [c for c in joined if joined.valid(c)] == [(i, j) for j in range(5) for i in range(3)]


@given(shapes(min_rank=1))
def test_row_major_counts_the_last_mode_first(shape):
    layout = row_major(shape)
    assert layout.shape == shape
    extents = leaves(shape)
    for index in np.ndindex(*extents):
        assert layout(*index) == np.ravel_multi_index(index, extents)


@given(shapes(min_rank=1))
def test_col_major_counts_the_first_mode_first(shape):
    layout = col_major(shape)
    assert layout.shape == shape
    extents = leaves(shape)
    for index in np.ndindex(*extents):
        assert layout(*index) == np.ravel_multi_index(index, extents, order="F")


@pytest.mark.parametrize("major", [row_major, col_major])
@pytest.mark.parametrize("shape", [(4, 8), (4,), (2, (3, 5)), ((2, 3), (4, 5)), (1, 7)])
def test_every_way_to_write_a_major_layout_agrees(major, shape):
    expected = major(shape)
    assert major(*shape) == expected
    assert major(list(shape)) == expected


def test_major_layouts_of_one_extent_have_one_mode():
    assert row_major(8) == row_major((8,)) == col_major(8) == Layout((8,), (1,))


def test_major_layouts_know_which_strides_are_dynamic():
    layout = row_major((Idx[4](), Idx(6)))
    assert tw.functionally_equal(layout, row_major(4, 6))
    assert known(layout).static_shape == (4, -1)
    assert known(layout).static_stride == (-1, 1)
    assert known(row_major((Idx(4), Idx[6]()))).static_stride == (6, 1)
    assert known(col_major((Idx(4), Idx[6]()))).static_stride == (1, -1)
    assert known(row_major(Idx[4](), Idx[6]())).all_dims_known


# Properties


@given(layouts(allow_empty=True))
def test_size_bounds_and_cosize_are_those_of_all_places(layout):
    found = [place_by_hand(layout, i) for i in range(size_of(layout.shape))]
    assert layout.size == len(layout) == cute.size(layout) == len(found)
    assert layout.bounds == (min(found), max(found))
    assert layout.cosize == cute.cosize(layout) == max(0, *found) + 1 - min(0, *found)


@given(named_layouts())
def test_bounds_over_axes_are_those_of_each_axis(layout):
    found = [place_by_hand(layout, i) for i in range(layout.size)]
    low, high = layout.bounds
    for name in layout.axes:
        along = [place.get(name, 0) for place in found]
        assert (low[name], high[name]) == (min(along), max(along))
        assert layout.cosize[name] == max(along) + 1 - min(0, *along)


@given(layouts(allow_zero=True, allow_empty=True))
def test_rank_depth_and_flat_rank_are_those_of_the_shape(layout):
    shape = layout.shape
    assert layout.rank == cute.rank(layout) == (len(shape) if isinstance(shape, tuple) else 1)
    assert layout.depth == cute.depth(layout) == cute.depth(shape) == depth_by_hand(shape)
    assert len(leaves(shape)) == known(layout).flat_rank


def test_an_integer_has_no_rank_but_a_layout_over_it_does():
    assert (cute.rank(31), cute.rank(Layout(31, 1)), cute.depth(31), cute.size(())) == (0, 1, 0, 1)


def test_an_empty_layout_has_no_bounds_and_needs_no_room():
    empty = Layout((4, 0, 3))
    assert (empty.size, empty.cosize, list(empty)) == (0, 0, [])
    with pytest.raises(tw.LayoutError, match="empty"):
        _ = empty.bounds


@given(layouts(allow_zero=True, allow_empty=True))
def test_iteration_yields_each_coordinate_in_order_of_index(layout):
    seen = list(layout)
    assert len(seen) == len(layout)
    assert [cute.crd2idx(coord, layout.shape) for coord in seen] == list(range(layout.size))
    assert [layout(coord) for coord in seen] == [layout(i) for i in range(layout.size)]
    assert [(coord, layout(coord)) for coord in layout] == [(coord, layout(coord)) for coord in seen]


@pytest.mark.parametrize("layout", [Layout(0), Layout(1), Layout(()), Layout((4, 0)), Layout(4)])
def test_a_layout_is_true_even_when_it_is_empty(layout):
    assert bool(layout)


@given(layouts(min_rank=1))
def test_modes_are_the_layout_without_its_offset(layout):
    assert len(layout.modes) == layout.rank
    for k, mode in enumerate(layout.modes):
        assert mode == layout.mode(k) == layout[k] == layout[k - layout.rank] == cute.mode(layout, k)
        assert (mode.shape, mode.stride, mode.offset) == (layout.shape[k], layout.stride[k], 0)


# Immutability


@pytest.mark.parametrize(
    "value",
    [
        Layout((4, 8)),
        Layout((4, 8), (1 @ bank, 2 @ addr)),
        tw.compose(Layout((3, 5), (5, 1)), Layout(6, 2)),
        tw.left_inverse(Layout((2, 2), (2, 3))),
        Swizzle(2, 0, 2),
        Guard(1, 3),
        Place(bank=1),
        bank,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_cannot_be_changed_or_extended(value):
    text = repr(value)
    public = [name for name in dir(value) if not name.startswith("_")]
    assert public
    for name in public:
        with pytest.raises((AttributeError, TypeError)):
            setattr(value, name, 0)
    with pytest.raises((AttributeError, TypeError)):
        value.note = 0
    assert not hasattr(value, "__dict__")
    assert repr(value) == text


# Equality


@given(layouts(allow_zero=True, allow_empty=True), layouts(allow_zero=True, allow_empty=True))
def test_layouts_are_equal_exactly_when_shape_stride_and_offset_are(a, b):
    same = (a.shape, a.stride, a.offset) == (b.shape, b.stride, b.offset)
    assert (a == b) is same
    assert (a != b) is not same


@given(layouts(allow_zero=True, allow_empty=True))
def test_equal_layouts_have_equal_hashes(layout):
    twin = Layout(layout.shape, layout.stride, offset=layout.offset)
    assert twin is not layout
    assert twin == layout
    assert hash(twin) == hash(layout)
    assert {layout: "found"}[twin] == "found"


@given(named_layouts())
def test_equal_layouts_over_axes_have_equal_hashes(layout):
    twin = Layout(layout.shape, layout.stride, offset=layout.offset)
    assert twin == layout
    assert hash(twin) == hash(layout)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Layout(4), Layout((4,))),
        (Layout((4, 8)), Layout(((4, 8),))),
        (Layout((4, 8)), Layout((4, (8,)))),
        (Layout((4, 8)), Layout(32)),
        (Layout((4, 8)), Layout((4, 8), (8, 1))),
        (Layout(4), Layout(4) + 1),
        (Layout(4, 1 @ bank), Layout(4, 1 @ addr)),
        (Layout(4, 1 @ bank), Layout(4, 1)),
        (Layout(4), tw.replicate(Layout(4), 2, 8)),
    ],
)
def test_layouts_that_are_written_differently_differ(a, b):
    assert a != b
    assert len({a, b}) == 2


@pytest.mark.parametrize("other", [4, (4,), ((4,), (1,)), "4:1", None, Swizzle(0, 0, 0), 1 @ bank])
def test_a_layout_equals_no_other_type(other):
    assert Layout(4) != other
    assert other != Layout(4)
    assert Layout(4) not in [other]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Layout((Idx(4), 8)), Layout((4, 8))),
        (tw.pad(Layout(100), 128), Layout(128)),
        (tw.pad(Layout(3), 4), tw.pad(Layout(2), 4)),
        (tw.replicate(Layout(4), 2, 4), Layout(4)),
        (Layout(4, 0 @ bank), Layout(4, 0)),
        (Layout(4, 1 @ bank) + 0 @ addr, Layout(4, 1 @ bank)),
    ],
)
def test_what_a_public_function_tells_apart_is_not_equal(one, other):
    assert one != other
    assert len({one, other}) == 2
    if not one.axes and not other.axes:
        assert ComposedLayout(tw.Swizzle(2, 0, 2), one) != ComposedLayout(tw.Swizzle(2, 0, 2), other)


def test_compositions_and_inverses_are_values_too():
    a, b = (tw.compose(Layout((3, 5), (5, 1)), Layout(6, 2)) for _ in range(2))
    assert a == b
    assert hash(a) == hash(b)
    assert a != tw.compose(Layout((3, 5), (5, 1)), Layout(6, 2) + 1)
    c, d = (tw.left_inverse(Layout((2, 2), (2, 3))) for _ in range(2))
    assert c == d
    assert hash(c) == hash(d)
    assert c != tw.left_inverse(Layout((2, 2), (2, 5)))


# repr


@given(st.one_of(layouts(allow_zero=True, allow_empty=True), named_layouts()))
def test_repr_is_a_constructor_call(layout):
    assert rebuilt(layout) == layout
    assert repr(rebuilt(layout)) == repr(layout)


@pytest.mark.parametrize(
    "value",
    [
        tw.pad(Layout((3, 5)), (4, 8)),
        tw.replicate(Layout(4, 1 @ bank) + 64 @ addr, 2, 8 @ bank),
        Layout((Idx(4), Idx(8))),
        Swizzle(3, 0, 3),
        tw.compose(Swizzle(2, 0, 2), row_major(4, 4)),
        tw.compose(Layout((3, 5), (5, 1)), Layout(6, 2)),
    ],
    ids=str,
)
def test_repr_keeps_padding_replicas_and_what_is_dynamic(value):
    assert rebuilt(value) == value
    assert repr(rebuilt(value)) == repr(value)


@given(layouts())
def test_layouts_survive_being_sent_to_another_process(layout):
    assert pickle.loads(pickle.dumps(layout)) == layout  # noqa: S301 - our own bytes


# Static and dynamic integers


@given(st.integers(-100, 100), st.integers(1, 50))
def test_dynamic_integers_count_like_others_and_stay_dynamic(a, b):
    n = Idx(a)
    for value, expected in [
        (n + b, a + b),
        (b + n, a + b),
        (n - b, a - b),
        (b - n, b - a),
        (n * b, a * b),
        (b * n, a * b),
        (n // b, a // b),
        (n % b, a % b),
        (-n, -a),
        (abs(n), abs(a)),
    ]:
        assert value == expected
        assert is_dynamic(value)
    assert n == a
    assert hash(n) == hash(a)


def test_static_integers_are_plain_in_a_layout():
    assert Idx[4]() == Idx[4] == 4
    assert not is_dynamic(Idx[4]())
    layout = Layout((Idx[4](), 8), (Idx[1](), 4))
    assert repr(layout) == "Layout((4, 8), (1, 4))"
    assert known(layout).all_dims_known


@given(layouts(allow_empty=True))
def test_plain_layouts_are_known_throughout(layout):
    assert known(layout).shape_known
    assert known(layout).stride_known
    assert known(layout).all_dims_known
    assert known(layout).static_shape == tuple(leaves(layout.shape))
    assert known(layout).static_stride == tuple(leaves(layout.stride))


@given(layouts())
def test_made_dynamic_a_layout_is_the_same_but_unknown(layout):
    dynamic = known(layout).make_dynamic()
    assert dynamic != layout
    assert tw.functionally_equal(dynamic, layout)
    assert not known(dynamic).shape_known
    assert not known(dynamic).stride_known
    assert not known(dynamic).all_dims_known
    assert set(known(dynamic).static_shape) == set(known(dynamic).static_stride) == {-1}
    assert [dynamic(i) for i in range(layout.size)] == [layout(i) for i in range(layout.size)]
    assert not any(map(is_dynamic, (dynamic.size, dynamic.cosize, dynamic(0))))


def test_each_question_about_what_is_known_has_its_own_answer():
    rows = Layout((4, Idx(6)))
    assert (known(rows).shape_known, known(rows).stride_known, known(rows).all_dims_known) == (False, True, False)
    steps = Layout((4, 6), (Idx(6), 1))
    assert (known(steps).shape_known, known(steps).stride_known, known(steps).all_dims_known) == (True, False, False)
    assert (known(steps).static_shape, known(steps).static_stride) == ((4, 6), (-1, 1))
    assert known(Layout(4, -1)).stride_known, "a stride of -1 is known; only the answer -1 means unknown"


def test_strides_derived_from_dynamic_extents_are_dynamic():
    layout = Layout((2, Idx(3), 5, (7, 2)))
    assert tw.functionally_equal(layout, Layout((2, 3, 5, (7, 2))))
    assert known(layout).static_stride == (1, 2, -1, -1, -1)


@given(layouts(kinds=("compact", "padded", "broadcast"), offsets=False))
def test_coalescing_dynamic_layouts_gives_the_same_dynamic_layout(layout):
    merged = tw.coalesce(known(layout).make_dynamic())
    assert (merged.shape, merged.stride) == (tw.coalesce(layout).shape, tw.coalesce(layout).stride)
    assert all(
        static == -1 for static, n in zip(known(merged).static_shape, leaves(merged.shape), strict=True) if n > 1
    )


@given(layouts(offsets=False), st.data())
def test_dynamic_strides_survive_composition(outer, data):
    inner = data.draw(layouts(kinds=("compact",), offsets=False, max_size=12))
    expected = tw.compose(outer, inner)
    found = tw.compose(known(outer).make_dynamic(), inner)
    assert tw.functionally_equal(found, expected)
    if isinstance(found, Layout):
        steps = zip(known(found).static_stride, leaves(expected.stride), strict=True)
        assert all(static == -1 for static, step in steps if step != 0)


def test_dynamic_extents_survive_where_a_result_derives_from_them():
    n = Idx(8)
    merged = tw.coalesce(Layout((4, n)))
    assert (merged.shape, known(merged).static_shape, known(merged).static_stride) == (32, (-1,), (1,))
    picked = tw.compose(Layout(64), Layout(n, 2))
    assert (picked.shape, known(picked).static_shape, known(picked).static_stride) == (8, (-1,), (2,))
    tiled = tw.logical_divide(Layout((n, 6)), (2, 3))
    assert (tiled.shape, tiled.stride) == (((2, 4), (3, 2)), ((1, 2), (8, 24)))
    assert known(tiled).static_shape == (2, -1, 3, 2)
    assert known(tiled).static_stride == (1, 2, -1, -1)
    zipped = tw.zipped_divide(Layout((n, 6)), (2, 3))
    assert known(zipped).static_shape == (2, 3, -1, 2)
    assert known(zipped).static_stride == (1, -1, 2, -1)
    ragged = tw.logical_divide(Layout(Idx(100)), 32)
    assert (known(ragged).static_shape, known(ragged).static_stride) == ((32, -1), (1, 32))
    assert is_dynamic(ragged.guards[0].limit)


def test_static_parts_stay_static_beside_dynamic_ones():
    assert known(tw.logical_divide(Layout((16, Idx(8))), (4, None))).static_shape == (4, 4, -1)
    assert known(Layout((4, Idx(8)))[0]).all_dims_known
    assert not known(Layout((4, Idx(8)))[1]).all_dims_known
    assert known(Layout((4, Idx(8)), (8, 1))(None, 2)).all_dims_known


def test_modes_are_joined_from_a_list_as_from_arguments():
    modes = [Layout(4), Layout(8, 4)]
    assert cute.make_layout(modes) == cute.make_layout(tuple(modes)) == tw.layout.join(*modes) == Layout((4, 8), (1, 4))
    assert cute.make_layout([Layout(4, 2)]) == Layout((4,), (2,))


def test_modes_are_added_to_a_layout_padded_in_one_of_them():
    padded = tw.pad(Layout((4, 6)), (4, 8))
    added = tw.layout.append(padded, Layout(2, 100))
    assert added.logical_shape == (4, 6, 2)
    assert tw.layout.append(padded + 7, Layout(2, 100))(3, 5, 1) == padded(3, 5) + 107, "the offset stays"
    assert tw.layout.prepend(padded, Layout(2, 100)).logical_shape == (2, 4, 6)
    with pytest.raises(LayoutError, match="padded across modes"):
        tw.layout.append(Layout((4, 6), (1, 4), guards=(Guard((1, 4), 21),)), Layout(2))


def test_nothing_cannot_be_continued():
    with pytest.raises(LayoutError, match="is empty and cannot be extended"):
        extend_domain(Layout((0, 3), (1, 5)), 2)


@pytest.mark.parametrize("steps", [(2**62, 2**62), (2**62, -(2**62)), (-(2**62), -(2**62)), (2**62, (2**62, 0))])
def test_strides_that_reach_beyond_64_bits_are_refused_whichever_way_they_go(steps):
    shape = nested_like(steps, [2] * len(leaves(steps)))
    with pytest.raises(LayoutError, match=r"reaches 9223372036854775808, beyond 2\^63 - 1"):
        Layout(shape, steps)


def test_a_line_has_one_order():
    assert cute.make_ordered_layout(4) == cute.make_ordered_layout(4, 0) == Layout(4)


@pytest.mark.parametrize(
    "layout", [Layout(4), tw.layout.PagedLayout(2, [0, 8]), ComposedLayout(Layout(5, 2), Layout(4))]
)
def test_every_layout_is_moved_up_and_down(layout):
    for step in (3, np.int64(3)):
        moved = layout + step
        assert [moved(k) for k in range(4)] == [layout(k) + 3 for k in range(4)]
        assert moved - step == layout
