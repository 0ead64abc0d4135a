# SPDX-License-Identifier: Apache-2.0
"""Swizzles: one field of bits is XORed into another, and nothing else changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import ComposedLayout, Layout, LayoutError, Swizzle, cute, row_major

from .strategies import layouts, leaves, named_layouts, nested_like, size_of


@st.composite
def swizzles(draw, min_bits=0, max_bits=4, max_base=5, max_shift=7):
    bits = draw(st.integers(min_bits, max_bits))
    shift = draw(st.integers(bits, max(bits, max_shift))) * draw(st.sampled_from([1, -1]))
    return Swizzle(bits, draw(st.integers(0, max_base)), shift)


offsets = st.integers(0, 2**40)
storage = layouts(kinds=("compact", "padded", "broadcast"), offsets=False)


def bit_by_bit(swizzle, offset):
    """Return the swizzled offset one bit at a time: target bit k is flipped where source bit k is set."""
    low, high = swizzle.base, swizzle.base + abs(swizzle.shift)
    source, target = (high, low) if swizzle.shift >= 0 else (low, high)
    result = list(format(offset, "0100b")[::-1])
    for k in range(swizzle.bits):
        if (offset >> (source + k)) % 2:
            result[target + k] = "1" if result[target + k] == "0" else "0"
    return int("".join(result)[::-1], 2)


# The function


@given(swizzles(), offsets)
def test_a_swizzle_flips_target_bits_where_source_bits_are_set(swizzle, offset):
    assert swizzle(offset) == bit_by_bit(swizzle, offset)


@given(swizzles(), offsets)
def test_a_swizzle_undoes_itself(swizzle, offset):
    assert swizzle(swizzle(offset)) == offset


@given(swizzles(), offsets)
def test_only_target_bits_change_and_only_source_bits_matter(swizzle, offset):
    assert (swizzle(offset) ^ offset) & ~swizzle.target_mask == 0
    assert swizzle(offset & swizzle.source_mask) ^ (offset & swizzle.source_mask) == swizzle(offset) ^ offset


@given(st.integers(0, 20), st.integers(0, 20), st.integers(61, 66), st.sampled_from([1, -1]))
def test_both_fields_lie_within_the_63_bits_of_an_offset(bits, base, reach, sign):
    shift = sign * (reach - bits - base)
    if reach > 63:
        with pytest.raises(LayoutError, match="exceeds the 63 bits"):
            Swizzle(bits, base, shift)
    else:
        swizzle = Swizzle(bits, base, shift)
        assert (swizzle.source_mask | swizzle.target_mask) < 2**63


@given(swizzles(max_bits=2, max_base=2, max_shift=3), st.integers(0, 5))
def test_each_block_of_its_size_is_permuted(swizzle, block):
    start = block * swizzle.size
    found = sorted(swizzle(start + k) for k in range(swizzle.size))
    assert found == list(range(start, start + swizzle.size))


@given(swizzles(min_bits=1, max_bits=2, max_base=2, max_shift=3))
def test_some_offset_in_the_first_block_moves(swizzle):
    assert any(swizzle(k) != k for k in range(swizzle.size))


@given(st.integers(0, 5), st.integers(-8, 8), offsets)
def test_a_swizzle_of_no_bits_changes_nothing(base, shift, offset):
    assert Swizzle(0, base, shift)(offset) == offset


def test_known_values():
    assert Swizzle(3, 0, 3)(19) == 17
    assert Swizzle(3, 0, 3)(0b010_011) == 0b010_001
    assert [Swizzle(1, 0, 1)(x) for x in range(4)] == [0, 1, 3, 2]
    assert [Swizzle(1, 0, -1)(x) for x in range(4)] == [0, 3, 2, 1]
    assert Swizzle(2, 4, 3)(0b1_1000_0000) == 0b1_1011_0000


# Masks


@given(swizzles())
def test_masks_are_two_separate_runs_of_bits(swizzle):
    source, target = swizzle.source_mask, swizzle.target_mask
    assert source & target == 0
    assert source.bit_count() == target.bit_count() == swizzle.bits
    assert (source | target).bit_length() <= swizzle.size.bit_length() - 1
    if swizzle.bits:
        assert target << swizzle.shift == source if swizzle.shift >= 0 else source << -swizzle.shift == target
        assert (source | target) & ((1 << swizzle.base) - 1) == 0


@given(swizzles(min_bits=1))
def test_the_masks_make_the_swizzle_again(swizzle):
    assert cute.make_swizzle(swizzle.source_mask, swizzle.target_mask) == swizzle


def test_empty_masks_make_the_identity():
    assert cute.make_swizzle(0, 0) == Swizzle(0, 0, 0)


@given(st.integers(0, 255), st.integers(0, 255), offsets)
def test_any_two_masks_give_that_swizzle_or_are_refused(source, target, offset):
    try:
        swizzle = cute.make_swizzle(source, target)
    except LayoutError:
        return
    assert (swizzle.source_mask, swizzle.target_mask) == (source, target)


def test_fields_of_negative_shift_lie_the_other_way_round():
    up, down = Swizzle(3, 2, 4), Swizzle(3, 2, -4)
    assert (up.source_mask, up.target_mask) == (0b111_000_000, 0b111_00)
    assert (down.source_mask, down.target_mask) == (up.target_mask, up.source_mask)
    assert up.size == down.size == 1 << 9


# Values


@given(swizzles(), swizzles())
def test_swizzles_are_values(a, b):
    same = (a.bits, a.base, a.shift) == (b.bits, b.base, b.shift)
    assert (a == b) is same
    assert eval(repr(a), {"Swizzle": Swizzle}) == a  # noqa: S307 - that a repr can be pasted back is the claim
    assert hash(eval(repr(a), {"Swizzle": Swizzle})) == hash(a)  # noqa: S307
    assert str(a) == f"Sw<{a.bits},{a.base},{a.shift}>"


def test_numpy_integers_make_plain_swizzles():
    swizzle = Swizzle(np.int64(3), np.int32(0), np.int8(3))
    assert swizzle == Swizzle(3, 0, 3)
    assert {type(field) for field in (swizzle.bits, swizzle.base, swizzle.shift)} == {int}
    assert type(swizzle(np.int64(19))) is int


# Arrays


@given(swizzles(), st.lists(offsets, max_size=20))
def test_arrays_are_swizzled_element_by_element(swizzle, values):
    assert swizzle(np.array(values, dtype=np.int64)).tolist() == [swizzle(value) for value in values]


@given(swizzles(), st.sampled_from(["uint8", "int8", "uint16", "int32"]))
def test_narrow_arrays_do_not_wrap(swizzle, dtype):
    top = np.iinfo(dtype).max
    values = np.arange(top - 100, top + 1, dtype=np.int64)
    assert swizzle(values.astype(dtype)).tolist() == [swizzle(int(value)) for value in values]


def test_the_shape_of_an_array_stays():
    assert Swizzle(2, 0, 2)(np.arange(24).reshape(2, 3, 4)).shape == (2, 3, 4)


# Composition


@given(swizzles(), storage)
def test_a_swizzled_layout_swizzles_every_place(swizzle, layout):
    result = tw.compose(swizzle, layout)
    assert result.shape == layout.shape
    assert [result(i) for i in range(layout.size)] == [swizzle(layout(i)) for i in range(layout.size)]
    assert all(result.valid(i) for i in range(layout.size))
    assert result.offsets().ravel().tolist() == [swizzle(int(place)) for place in layout.offsets().ravel()]


@given(swizzles(), storage)
def test_a_layout_of_swizzled_indices_continues_where_they_leave_it(swizzle, layout):
    result = tw.compose(layout, swizzle)
    assert result.size == layout.size
    for i in range(layout.size):
        assert result(i) == layout.extended(swizzle(i))
        assert result.valid(i) == (swizzle(i) < layout.size)


@given(swizzles(), storage)
def test_swizzling_twice_gives_back_the_layout(swizzle, layout):
    twice = tw.compose(swizzle, tw.compose(swizzle, layout))
    assert tw.functionally_equal(twice, layout)


@given(swizzles(), storage, st.data())
def test_swizzled_layouts_compose_further(swizzle, layout, data):
    swizzled = tw.compose(swizzle, layout)
    inner = data.draw(
        layouts(kinds=("compact", "padded", "broadcast"), offsets=False, max_size=max(1, layout.size // 2))
    )
    result = tw.compose(swizzled, inner)
    for i in range(inner.size):
        assert result(i) == swizzled.extended(inner(i))
        if inner(i) < layout.size:
            assert result(i) == swizzle(layout(inner(i)))


@given(swizzles(), st.data())
def test_swizzled_layouts_slice_and_divide(swizzle, data):
    layout = data.draw(layouts(kinds=("compact", "padded"), offsets=False, min_rank=2, max_rank=2))
    swizzled = tw.compose(swizzle, layout)
    rows, columns = (size_of(mode) for mode in layout.shape)
    j = data.draw(st.integers(0, columns - 1))
    assert [swizzled(None, j)(i) for i in range(rows)] == [swizzle(layout(i, j)) for i in range(rows)]
    tiles = tw.zipped_divide(swizzled, (data.draw(st.integers(1, rows)), data.draw(st.integers(1, columns))))
    found = sorted(tiles(i) for i in range(tiles.size) if tiles.valid(i))
    assert found == sorted(swizzled(i) for i in range(swizzled.size))


@given(swizzles(), storage)
def test_a_swizzle_that_never_acts_collapses_to_the_layout(swizzle, layout):
    result = tw.compose(swizzle, layout)
    if layout.cosize <= max(1, swizzle.source_mask & -swizzle.source_mask) or swizzle.bits == 0:
        assert result == layout
    if any(swizzle(layout(i)) != layout(i) for i in range(layout.size)):
        assert isinstance(result, ComposedLayout)


def test_swizzles_that_act_and_that_do_not():
    assert tw.compose(Swizzle(2, 0, 4), row_major(4, 4)) == row_major(4, 4)
    assert tw.compose(Swizzle(2, 0, 3), row_major(4, 4)) == ComposedLayout(Swizzle(2, 0, 3), row_major(4, 4))
    swizzled = tw.compose(Swizzle(2, 0, 2), row_major(4, 4))
    assert swizzled.offsets().tolist() == [[0, 1, 2, 3], [5, 4, 7, 6], [10, 11, 8, 9], [15, 14, 13, 12]]
    assert swizzled.cosize == 16
    assert tw.is_bijective(swizzled)


def test_a_swizzled_tile_has_no_bank_conflicts_in_rows_or_columns():
    swizzled = tw.compose(Swizzle(3, 0, 3), row_major(8, 8))
    table = swizzled.offsets() % 8
    for line in [*table, *table.T]:
        assert sorted(line.tolist()) == list(range(8))


@given(swizzles(max_bits=2, max_base=1, max_shift=2))
def test_a_swizzled_bijection_has_both_inverses(swizzle):
    layout = row_major(swizzle.size, 4)
    swizzled = tw.compose(swizzle, layout)
    for invert in (tw.left_inverse, tw.right_inverse):
        back = invert(swizzled)
        for i in range(layout.size):
            assert back(swizzled(i)) == i
            assert swizzled(back(i)) == i


@given(swizzles())
def test_a_swizzle_is_its_own_inverse(swizzle):
    assert tw.left_inverse(swizzle) == tw.right_inverse(swizzle) == swizzle


@given(named_layouts(max_size=64), swizzles())
def test_places_over_axes_follow_swizzled_indices(layout, swizzle):
    result = tw.compose(layout, swizzle)
    for i in range(layout.size):
        assert result(i) == layout.extended(swizzle(i))


def test_every_coordinate_form_reaches_a_swizzled_layout():
    shape = ((2, 2), 4)
    layout = Layout(shape, ((4, 8), 1))
    swizzled = tw.compose(Swizzle(2, 0, 2), layout)
    for i in range(16):
        at = [i % 2, i // 2 % 2, i // 4]
        expected = Swizzle(2, 0, 2)(layout(i))
        assert swizzled(i) == swizzled(i % 4, i // 4) == swizzled(nested_like(shape, at)) == expected
        assert len(leaves(shape)) == len(at)


def test_arrays_of_offsets_beyond_63_bits_are_refused_and_do_not_wrap():
    with pytest.raises(LayoutError, match="largest offset"):
        Swizzle(1, 0, 1)(np.array([2**63 + 2], np.uint64))
    assert Swizzle(1, 0, 1)(np.array([2**63 - 1], np.uint64)).tolist() == [Swizzle(1, 0, 1)(2**63 - 1)]
