# SPDX-License-Identifier: Apache-2.0
"""Named axes: places are vectors, and a layout over several axes is one plain layout for each."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Axis, Layout, LayoutError, Place, addr, bank, core, cute, device, lane

from .strategies import digits, layouts, leaves, named_layouts, place_by_hand, places, size_of, tilers

NAMES = ("bank", "addr", "core.x")
numbers = st.integers(-50, 50)
mixed_places = places(plain=True)


def along(place, name):
    """Return one coordinate of a place or of a plain number."""
    return (Place() + place).get(name, 0)


# Axis


@given(st.sampled_from([bank, addr, core.x, Axis("row_2")]), st.integers())
def test_an_amount_on_an_axis_is_a_place_with_that_coordinate(axis, amount):
    step = amount @ axis
    assert isinstance(step, Place)
    assert step == Place({axis.name: amount})
    assert step.get(axis, 0) == step[axis] == step[axis.name] == amount
    assert step.axes == (axis.name,)


def test_axes_are_equal_by_name_and_nothing_else():
    assert Axis("bank") == bank
    assert hash(Axis("bank")) == hash(bank)
    assert bank != addr
    assert bank != "bank"
    assert repr(core.x) == "Axis('core.x')"
    assert len({bank, Axis("bank"), addr}) == 2
    assert [axis.name for axis in (addr, bank, core, device, lane)] == ["addr", "bank", "core", "device", "lane"]


def test_an_axis_has_parts():
    assert core.x == Axis("core.x") != core.y
    assert core.x.hi == Axis("core.x.hi")
    assert 3 @ core.x == Place({"core.x": 3})


@pytest.mark.parametrize("name", ["", "1a", "a b", "a.", ".a", "a..b", "a-b", "a@b", "a\n", "é"])
def test_what_is_not_a_name_cannot_name_an_axis(name):
    for make in (Axis, lambda text: Place({text: 1}) if text else Axis(text)):
        with pytest.raises(LayoutError, match="cannot name an axis"):
            make(name)


@pytest.mark.parametrize("wrong", [5, None, b"bank", ("bank",)])
def test_a_name_is_a_string(wrong):
    with pytest.raises(TypeError, match="name must be a str"):
        Axis(wrong)


@pytest.mark.parametrize("amount", [1.5, "1", True, None, [1]])
def test_an_amount_is_an_integer(amount):
    with pytest.raises(TypeError):
        _ = amount @ bank
    with pytest.raises(TypeError):
        Place(bank=amount)


def test_an_amount_cannot_lie_on_two_axes_at_once():
    with pytest.raises(TypeError, match="write a sum"):
        _ = 1 @ bank @ addr


# Place as a vector


@given(mixed_places, mixed_places, mixed_places)
def test_addition_is_associative_and_commutative(a, b, c):
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)


@given(mixed_places)
def test_zero_is_neutral_and_every_place_has_an_opposite(a):
    assert a + 0 == 0 + a == a + Place() == a
    assert a + -a == a - a == 0
    assert -1 * (-a) == a
    assert not (a - a)


@given(mixed_places, mixed_places, numbers, numbers)
def test_scaling_distributes(a, b, m, n):
    assert m * (a + b) == m * a + m * b
    assert (m + n) * a == m * a + n * a
    assert m * (n * a) == (m * n) * a
    assert a * m == m * a
    assert 1 * a == a
    assert 0 * a == 0


@given(mixed_places, mixed_places, numbers)
def test_subtraction_undoes_addition(a, b, n):
    assert (a + b) - b == a
    assert a - b == a + -1 * b
    assert n - a == -(a - n)
    assert (a + n).plain == a.plain + n


@given(mixed_places, mixed_places)
def test_each_coordinate_is_counted_on_its_own(a, b):
    for name in NAMES:
        assert (a + b).get(name, 0) == a.get(name, 0) + b.get(name, 0)
    assert (a + b).plain == a.plain + b.plain


@given(mixed_places, mixed_places)
def test_places_are_equal_exactly_when_all_coordinates_are(a, b):
    same = a.plain == b.plain and all(a.get(name, 0) == b.get(name, 0) for name in NAMES)
    assert (a == b) is same
    assert (a != b) is not same
    if same:
        assert hash(a) == hash(b)


@given(mixed_places, st.sampled_from(NAMES))
def test_a_coordinate_of_zero_changes_nothing(place, name):
    same = place + 0 @ Axis(name)
    assert same == place
    assert hash(same) == hash(place)


@given(st.integers())
def test_a_place_on_no_axis_is_its_number(n):
    assert Place(n) == n
    assert hash(Place(n)) == hash(n)
    assert bool(Place(n)) is bool(n)
    assert {n: "found"}[Place(n)] == "found"


@given(places(plain=True), places(plain=True))
def test_a_place_of_several_parts_is_their_sum(one, other):
    parts = [part for place in (one, other) for part in (place.plain, dict(place))]
    assert Place(*parts) == one + other
    assert Place({"bank": 1}, bank=3) == Place(bank=4)


@given(places())
def test_a_place_is_a_mapping_from_axes_to_coordinates(place):
    assert dict(place) == {name: place.get(name, 0) for name in place.axes}
    assert list(place) == list(place.axes)
    assert len(place) == len(place.axes)
    assert Place(dict(place)) == Place(bank=0) + place == place
    for name in NAMES:
        assert (name in place) is (name in place.axes)
        assert place.get(name, "absent") == (place.get(name, 0) if name in place.axes else "absent")


def test_coordinates_are_read_by_attribute_name_or_axis():
    place = Place({"bank": 1, "addr": 2048, "core.x": 3, "core.y": 4})
    assert (place.bank, place["addr"], place[addr], place[core.x]) == (1, 2048, 2048, 3)
    assert place.core == Place(x=3, y=4)
    assert (place.core.x, place.core["y"]) == (3, 4)
    assert place.get(lane, 0) == 0
    assert lane not in place
    assert 5 not in place


def test_an_axis_that_is_not_there_is_named_in_the_error():
    place = Place(bank=1)
    with pytest.raises(AttributeError, match=r"no axis 'addr'; it has bank"):
        _ = place.addr
    with pytest.raises(KeyError, match="addr"):
        _ = place[addr]


@given(mixed_places)
def test_the_repr_of_a_place_is_a_constructor_call(place):
    again = eval(repr(place), {"Place": Place})  # noqa: S307 - that a repr can be pasted back is the claim
    assert again == place
    assert again.axes == place.axes


@pytest.mark.parametrize("wrong", ["1", None, [1], (1,), True, 2.5, {"bank": 1}])
def test_places_do_not_add_to_anything_but_numbers_and_places(wrong):
    with pytest.raises(TypeError):
        _ = Place(bank=1) + wrong
    with pytest.raises(TypeError):
        _ = Place(bank=1) - wrong


@pytest.mark.parametrize("wrong", [2.5, "x", True, None, Place(bank=2)])
def test_places_scale_by_integers_only(wrong):
    with pytest.raises(TypeError):
        _ = Place(bank=1) * wrong
    with pytest.raises(TypeError):
        _ = wrong * Place(bank=1)


def test_numpy_integers_count_like_others():
    assert np.int64(3) * (1 @ bank) == (1 @ bank) * np.int64(3) == np.int64(3) @ bank == 3 @ bank
    assert Layout(4) + np.int64(3) == Layout(4, offset=3)
    assert Layout(4) - np.int64(3) == Layout(4, offset=-3)


@pytest.mark.parametrize("other", [None, "bank", (1,), {"bank": 1}, bank])
def test_a_place_equals_no_other_type(other):
    assert Place(bank=1) != other


# Layouts over axes


@given(named_layouts())
def test_a_layout_over_axes_is_one_plain_layout_for_each(layout):
    for name in layout.axes:
        line = layout.project(name)
        assert line.axes == ()
        assert line.shape == layout.shape
        for i in range(layout.size):
            assert line(i) == along(layout(i), name) == along(place_by_hand(layout, i), name)


@given(named_layouts())
def test_places_mention_every_axis_of_the_layout_and_no_other(layout):
    for i in range(layout.size):
        assert isinstance(layout(i), Place)
        assert layout(i).axes == layout.axes


@given(named_layouts(), places())
def test_an_offset_moves_every_place(layout, step):
    moved, back = layout + step, layout - step
    for i in range(layout.size):
        assert moved(i) == layout(i) + step
        assert back(i) == layout(i) - step
    assert tw.functionally_equal(moved - step, layout)
    assert (moved - step == layout) == (set(moved.axes) == set(layout.axes))
    assert step + layout == moved


def test_plain_and_named_parts_mix():
    layout = Layout((3, 4), (1 @ bank, 5)) + 100
    assert layout(2, 3) == Place(bank=2) + 115
    assert layout(2, 3).plain == 115
    assert (Layout((3, 4), (1 @ bank, 64 @ addr)) + 5 @ bank)(1, 1) == Place(bank=6, addr=64)
    assert (Layout(4) + 128)(3) == 131
    assert (Layout(4) + 2 @ bank)(3) == Place(bank=2) + 3


def test_the_pages_of_twelve_banks():
    pages = Layout((12, 100), (1 @ bank, 2048 @ addr))
    assert pages(13) == Place(bank=1, addr=2048)
    assert pages(13).addr == 2048
    assert repr(pages(13)) == "Place(bank=1, addr=2048)"
    assert pages.axes == ("bank", "addr")
    assert pages.project("addr") == Layout((12, 100), (0, 2048))
    assert pages.cosize == Place(bank=12, addr=99 * 2048 + 1)


@given(named_layouts())
def test_coalescing_keeps_every_place(layout):
    merged = tw.coalesce(layout)
    assert merged.size == layout.size
    assert merged.depth <= 1
    assert [merged(i) for i in range(layout.size)] == [layout(i) for i in range(layout.size)]


@given(named_layouts(), layouts(max_size=24))
def test_composition_with_a_layout_of_indices_keeps_its_law(outer, inner):
    result = tw.compose(outer, inner)
    assert result.size == inner.size
    for i in range(inner.size):
        assert result(i) == outer.extended(inner(i))
        assert result.valid(i) == (0 <= inner(i) < outer.size)


@given(named_layouts(), layouts(max_size=24, kinds=("compact", "padded", "broadcast"), offsets=False))
def test_each_axis_composes_as_a_plain_layout_does(outer, inner):
    result = tw.compose(outer, inner)
    for name in result.axes:
        line = tw.compose(outer.project(name), inner)
        assert [result.project(name)(i) for i in range(inner.size)] == [line(i) for i in range(inner.size)]


def test_twelve_banks_under_five_columns_compose_exactly():
    pages = Layout((12, 9), (1 @ bank, 64 @ addr))
    result = tw.compose(pages, Layout((5, 7), (7, 1)))
    assert isinstance(result, tw.ComposedLayout)
    for i in range(5):
        for j in range(7):
            page = i * 7 + j
            assert result(i, j) == Place(bank=page % 12, addr=page // 12 * 64)


@given(named_layouts(min_rank=1), st.data())
def test_dividing_loses_and_repeats_nothing(layout, data):
    tiler = data.draw(tilers(layout))
    expected = Counter(layout(i) for i in range(layout.size))
    for divide in (tw.logical_divide, tw.zipped_divide, tw.layout.tiled_divide, tw.layout.flat_divide):
        divided = divide(layout, tiler)
        assert Counter(divided(i) for i in range(divided.size) if divided.valid(i)) == expected


@given(named_layouts(min_rank=2, max_rank=2), st.data())
def test_slicing_fixes_a_coordinate(layout, data):
    rows, columns = (size_of(mode) for mode in layout.shape)
    j = data.draw(st.integers(0, columns - 1))
    assert [layout(None, j)(i) for i in range(rows)] == [layout(i, j) for i in range(rows)]
    i = data.draw(st.integers(0, rows - 1))
    assert [layout[i, :](k) for k in range(columns)] == [layout(i, k) for k in range(columns)]


@given(layouts(max_size=12, offsets=False), named_layouts(max_size=8, offsets=False))
def test_a_named_tiler_puts_the_copies_on_its_axes(block, tiler):
    product = tw.logical_product(block, tiler)
    for i in range(block.size):
        for j in range(tiler.size):
            assert product(i, j) == block(i) + tiler(j)


def test_a_blocked_product_with_a_named_tiler_is_a_sharded_tensor():
    tile = tw.row_major(2, 3)
    grid = Layout((4, 5), (1 @ core.y, 1 @ core.x))
    sharded = tw.blocked_product(tile, grid)
    for i in range(8):
        for j in range(15):
            place = sharded(i, j)
            assert place == Place({"core.y": i // 2, "core.x": j // 3}) + tile(i % 2, j % 3)
            assert (place.core.y, place.core.x, place.plain) == (i // 2, j // 3, tile(i % 2, j % 3))


def test_copies_on_an_axis_of_the_block_would_collide():
    with pytest.raises(LayoutError, match="collide on the axis bank"):
        tw.logical_product(Layout(4, 1 @ bank), Layout(2, 1 @ bank))


# Replicas


@given(layouts(max_size=24), st.integers(1, 4), st.integers(-9, 9))
def test_a_replicated_layout_leads_to_the_set_of_all_copies(layout, count, step):
    copies = tw.replicate(layout, count, step)
    for i in range(layout.size):
        assert copies(i) == frozenset(layout(i) + k * step for k in range(count))
        assert isinstance(copies(i), frozenset)


@given(named_layouts(max_size=24), st.integers(1, 3), places(), st.integers(1, 3), places())
def test_copies_of_copies_multiply(layout, m, a, n, b):
    copies = tw.replicate(tw.replicate(layout, m, a), n, b)
    for i in range(layout.size):
        assert copies(i) == {layout(i) + j * a + k * b for j in range(m) for k in range(n)}


def test_replicas_survive_slicing_coalescing_offsets_and_composition():
    copies = tw.replicate(Layout((4, 8), (1 @ bank, 64 @ addr)), 2, 1 @ device)
    at = Place(bank=3, addr=128)
    both = {at, at + 1 @ device}
    assert copies(3, 2) == both
    assert copies(None, 2)(3) == both
    assert tw.coalesce(copies)(11) == both
    assert (copies + 1 @ bank)(2, 2) == both
    assert tw.compose(copies, Layout(8, 4) + 3)(2) == both
    assert tw.logical_divide(copies, (2, 4))(3, 2) == both
    assert copies.project(device)(3, 2) == {0, 1}
    assert copies.project(bank)(3, 2) == 3
    assert copies.axes == ("bank", "addr", "device")


def test_equal_copies_are_one_place():
    assert tw.replicate(Layout(4, 2), 3, 0)(1) == {2}


# Inverses


@given(named_layouts(injective=True, offsets=False, axes=(bank, addr)))
def test_the_left_inverse_over_its_axes_gives_back_the_index(layout):
    back = tw.left_inverse(layout, axes=(bank, addr))
    for i in range(layout.size):
        place = Place() + layout(i)
        assert back(place.get(bank, 0), place.get(addr, 0)) == i


@given(named_layouts(injective=True, offsets=False, axes=(bank, addr)))
def test_the_order_of_axes_is_the_order_of_arguments(layout):
    back = tw.left_inverse(layout, axes=("addr", "bank"))
    for i in range(layout.size):
        place = Place() + layout(i)
        assert back(place.get(addr, 0), place.get(bank, 0)) == i


@given(named_layouts(injective=True, offsets=False, axes=(bank, addr)))
def test_the_right_inverse_over_its_axes_leads_back_to_the_place(layout):
    back = tw.right_inverse(layout, axes=(bank, addr))
    rows, columns = (size_of(mode) for mode in back.shape)
    for b in range(rows):
        for a in range(columns):
            if back.valid(b, a):
                assert layout(back(b, a)) == Place(bank=b, addr=a)


def test_places_that_hold_nothing_are_not_valid_in_the_inverse():
    layout = Layout((3, 4), (1 @ bank, 8 @ addr))
    back = tw.left_inverse(layout, axes=(bank, addr))
    held = {(b, 8 * a): b + 3 * a for b in range(3) for a in range(4)}
    for b in range(3):
        for a in range(25):
            assert back.valid(b, a) == ((b, a) in held)
            if (b, a) in held:
                assert back(b, a) == held[b, a]


def test_inverses_ask_for_the_axes_they_need():
    layout = Layout((12, 100), (1 @ bank, 2048 @ addr))
    for invert in (tw.left_inverse, tw.right_inverse):
        with pytest.raises(LayoutError, match="give the axes"):
            invert(layout)
        with pytest.raises(LayoutError, match="do not include"):
            invert(layout, axes=(bank,))
        with pytest.raises(LayoutError, match="do not include"):
            invert(Layout((4, 8), (1 @ bank, 1)), axes=(bank,))


@given(layouts(max_size=24, kinds=("compact", "padded"), offsets=False))
def test_the_complement_on_one_axis_stays_on_it(layout):
    named = Layout(layout.shape, cute.unflatten(tuple(step @ bank for step in leaves(layout.stride)), layout.shape))
    free = tw.complement(named, 100)
    assert free.project(bank) == tw.complement(layout, 100) or free.size == 1


def test_the_complement_over_several_axes_asks_for_one():
    with pytest.raises(LayoutError, match="take one axis"):
        tw.complement(Layout((4, 8), (1 @ bank, 1 @ addr)))


# Errors


def test_an_axis_that_a_layout_does_not_have_is_named():
    layout = Layout((12, 100), (1 @ bank, 2048 @ addr))
    with pytest.raises(LayoutError, match="no axis 'core'; it has bank, addr"):
        layout.project(core)
    with pytest.raises(LayoutError, match="only plain strides"):
        Layout(4).project(bank)
    with pytest.raises(TypeError):
        layout.project(5)


def test_a_named_layout_cannot_be_the_inner_function():
    with pytest.raises(LayoutError, match="outer layout"):
        tw.compose(Layout(4), Layout(4, 1 @ bank))


def test_strides_and_offsets_of_other_types_are_refused():
    with pytest.raises(TypeError, match="stride"):
        Layout((2, 2), (1 @ bank, "1"))
    for wrong in ("1", True, 1.5, None):
        with pytest.raises(TypeError):
            _ = Layout(2, 1 @ bank) + wrong
        with pytest.raises(TypeError):
            _ = Layout(2, 1 @ bank) - wrong
    with pytest.raises(TypeError, match="offset"):
        Layout(2, 1 @ bank, offset=1.5)


@given(named_layouts())
def test_the_whole_table_has_one_array_for_each_axis(layout):
    table = layout.offsets()
    assert table.axes == layout.axes
    order = np.arange(layout.size).reshape(table[layout.axes[0]].shape, order="F")
    for name in layout.axes:
        expected = [along(layout(int(i)), name) for i in order.ravel()]
        assert table[name].ravel().tolist() == expected


@given(named_layouts(max_size=24), st.integers(1, 4), st.integers(-9, 9))
def test_the_whole_table_keeps_what_lies_on_no_axis_apart(layout, n, step):
    beside = tw.layout.join(layout, Layout(n, step))
    table = beside.offsets()
    for i, j in np.ndindex(layout.size, n):
        place = Place() + beside(i, j)
        assert all(table[name][i, j] == place.get(name, 0) for name in layout.axes)
        assert np.broadcast_to(table.plain, (layout.size, n))[i, j] == place.plain == j * step


@given(named_layouts())
def test_coordinates_of_every_form_agree_over_axes(layout):
    for i in range(layout.size):
        at = digits(i, leaves(layout.shape))
        assert layout(tw.cute.idx2crd(i, layout.shape)) == layout(i) == place_by_hand(layout, i)
        assert len(at) == len(layout.flat_modes()[0])
