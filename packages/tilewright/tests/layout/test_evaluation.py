# SPDX-License-Identifier: Apache-2.0
"""Evaluation: every way to name a coordinate leads to the same place, one at a time or all at once."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tilewright as tw
from tilewright import Layout, LayoutError, Place, Swizzle, addr, bank, cute, row_major
from tilewright.errors import CoordinateError
from tilewright.layout.evaluation import chunks
from tilewright.mojo.layout import Idx

from .strategies import digits, layouts, leaves, named_layouts, nested_like, place_by_hand, size_of, tilers


@st.composite
def evaluable(draw, named=True):
    """Return any kind of layout: strided, padded, named, composed or swizzled."""
    plain = ["strided", "padded", "composed", "swizzled"]
    kind = draw(st.sampled_from(plain + ["named", "named composed"] * named))
    if kind == "strided":
        return draw(layouts(allow_zero=True, allow_empty=True))
    if kind == "named":
        return draw(named_layouts())
    inner = draw(layouts(kinds=("compact", "padded", "broadcast"), offsets=False))
    if kind == "padded":
        return tw.logical_divide(inner, draw(tilers(inner)))
    if kind == "swizzled":
        return tw.compose(Swizzle(2, draw(st.integers(0, 2)), draw(st.sampled_from([2, 3, -2]))), inner)
    outer = draw(named_layouts()) if kind == "named composed" else draw(layouts())
    return tw.compose(outer, inner)


def modes_of(shape):
    return shape if isinstance(shape, tuple) else (shape,)


@st.composite
def slicers(draw, shape):
    """Return (coordinate, pattern): a coordinate that keeps some modes, and what it says of each leaf."""
    choice = draw(st.sampled_from(["keep", "fix", "split"] if isinstance(shape, tuple) else ["keep", "fix"]))
    if choice == "keep":
        return draw(st.sampled_from([None, slice(None)])), [None] * len(leaves(shape))
    if choice == "fix":
        index = draw(st.integers(0, size_of(shape) - 1))
        at = digits(index, leaves(shape))
        return draw(st.sampled_from([index, nested_like(shape, at)])), at
    parts = [draw(slicers(mode)) for mode in shape]
    return tuple(coord for coord, _ in parts), [at for _, pattern in parts for at in pattern]


# Calling


@given(layouts(allow_empty=True))
def test_every_form_of_a_coordinate_leads_to_the_same_place(layout):
    shape, extents = layout.shape, leaves(layout.shape)
    for index in range(layout.size):
        expected = place_by_hand(layout, index)
        at = digits(index, extents)
        by_mode = digits(index, [size_of(mode) for mode in modes_of(shape)])
        nested = nested_like(shape, at)
        assert layout(index) == expected
        assert layout(nested) == expected
        if isinstance(shape, tuple):
            if len(shape) != 1:  # one argument is the whole coordinate
                assert layout(*nested) == expected
            assert layout(*by_mode) == expected
            assert layout(tuple(by_mode)) == expected
            assert layout(list(by_mode)) == expected
            assert layout(*at) == expected or len(at) == len(shape), "a flat coordinate"
            assert layout(tuple(at)) == expected or len(at) == len(shape), "a flat coordinate"


@given(layouts(), layouts(kinds=("compact", "padded", "broadcast"), offsets=False, min_rank=1))
def test_compositions_take_every_form_of_a_coordinate_too(outer, inner):
    composed = tw.ComposedLayout(outer, inner)
    for index in range(inner.size):
        expected = outer.extended(inner(index))
        at = digits(index, [size_of(mode) for mode in inner.shape])
        assert composed(index) == composed(*at) == composed(tuple(at)) == expected
        assert composed(nested_like(inner.shape, digits(index, leaves(inner.shape)))) == expected


@given(layouts())
def test_a_place_is_a_plain_int_whatever_integer_asks_for_it(layout):
    for asked in (0, np.int64(0), np.uint8(0), Idx(0), Idx[0]()):
        assert type(layout(asked)) is int
        assert layout(asked) == layout.offset


# Bounds


@given(evaluable(), st.integers())
def test_an_index_is_taken_exactly_when_it_lies_in_the_shape(layout, index):
    if 0 <= index < layout.size:
        layout(index)
    else:
        with pytest.raises(CoordinateError):
            layout(index)
        assert layout.valid(index) is False


@given(layouts(min_rank=2), st.data())
def test_a_coordinate_outside_one_mode_is_refused_and_named(layout, data):
    sizes = [size_of(mode) for mode in layout.shape]
    at = [data.draw(st.integers(0, n - 1)) for n in sizes]
    k = data.draw(st.integers(0, len(sizes) - 1))
    at[k] = data.draw(st.one_of(st.integers(sizes[k], sizes[k] + 50), st.integers(-50, -1)))
    with pytest.raises(CoordinateError) as caught:
        layout(*at)
    assert str(tuple(at)) in str(caught.value)
    assert str(layout.shape) in str(caught.value)
    assert f"mode {k} takes 0 to {sizes[k] - 1}" in str(caught.value)


@pytest.mark.parametrize("coord", [(4, 0), (0, 6), (0, (2, 0)), (0, (0, 3)), (0, 0, 3), (24,), (-1,), (-1, 0)])
def test_the_error_is_a_layout_error_and_an_index_error(coord):
    layout = Layout((4, (2, 3)), (6, (3, 1)))
    with pytest.raises(CoordinateError) as caught:
        layout(*coord)
    assert isinstance(caught.value, LayoutError)
    assert isinstance(caught.value, IndexError)
    assert isinstance(caught.value, ValueError)
    assert "(4, (2, 3))" in str(caught.value)


@pytest.mark.parametrize("layout", [Layout(0), Layout((4, 0)), row_major(0, 3)])
def test_an_empty_layout_takes_no_coordinate(layout):
    with pytest.raises(CoordinateError, match="empty"):
        layout(0)


@pytest.mark.parametrize("wrong", [True, False, 1.0, "1", b"1", 1j, {1}, {"a": 1}, object(), np.float64(1), np.True_])
def test_coordinates_of_other_types_are_refused_by_name(wrong):
    for layout in (Layout((4, 8)), tw.compose(Layout((3, 5), (5, 1)), Layout(6, 2)), Layout((4, 8), (1 @ bank, 0))):
        for coord in ((wrong,), (0, wrong), (wrong, 0)):
            if len(coord) <= layout.rank:
                with pytest.raises(TypeError, match=type(wrong).__name__.rstrip("_")):  # bool_ before NumPy 2
                    layout(*coord)


@pytest.mark.parametrize("dtype", [bool, float, complex])
def test_arrays_of_other_types_are_refused(dtype):
    with pytest.raises(TypeError, match="integers"):
        Layout((4, 8))(np.zeros(3, dtype), 0)


@pytest.mark.parametrize("coord", [(), (0, 0, 0, 0), ((0, 0), 0), (0, (0, 0, 0)), ((0,), 0)])
def test_coordinates_of_another_form_are_refused(coord):
    with pytest.raises(LayoutError, match="does not fit shape"):
        Layout((4, (2, 3)))(*coord)


# Slicing


@given(layouts(min_rank=1), st.data())
def test_a_slice_is_the_layout_with_some_coordinates_fixed(layout, data):
    coord, pattern = data.draw(slicers(layout.shape))
    assume(None in pattern)
    part = layout(coord)
    extents = leaves(layout.shape)
    kept = [n for n, at in zip(extents, pattern, strict=True) if at is None]
    assert isinstance(part, Layout)
    assert leaves(part.shape) == kept
    for index in range(size_of(tuple(kept))):
        chosen = iter(digits(index, kept))
        at = [next(chosen) if fixed is None else fixed for fixed in pattern]
        assert part(index) == layout(nested_like(layout.shape, at))
    if isinstance(coord, tuple) and len(coord) > 1:
        assert layout(*coord) == part
        assert layout[coord] == part


@given(evaluable(), st.data())
def test_slices_of_any_layout_keep_places_and_padding(layout, data):
    assume(layout.size > 0)
    coord, pattern = data.draw(slicers(layout.shape))
    assume(None in pattern)
    part = layout(coord)
    kept = [n for n, at in zip(leaves(layout.shape), pattern, strict=True) if at is None]
    assert part.size == size_of(tuple(kept))
    for index in range(part.size):
        chosen = iter(digits(index, kept))
        at = nested_like(layout.shape, [next(chosen) if fixed is None else fixed for fixed in pattern])
        assert part(index) == layout(at)
        assert part.valid(index) == layout.valid(at)


def test_brackets_slice_compositions_too():
    swizzled = tw.compose(Swizzle(2, 0, 2), row_major(4, 4))
    assert swizzled[:, 2] == swizzled(None, 2)
    assert [swizzled[1, :](j) for j in range(4)] == [swizzled(1, j) for j in range(4)]


def test_slices_keep_the_form_of_what_they_keep():
    layout = Layout((4, (2, 3)), (6, (3, 1)))
    assert layout(None, 3) == layout[:, 3] == layout(None, (1, 1)) == Layout((4,), (6,), offset=4)
    assert layout(2, None) == layout[2, :] == Layout((2, 3), (3, 1), offset=12)
    assert layout(1, (None, 2)) == layout[1, (slice(None), 2)] == Layout((2,), (3,), offset=8)
    assert layout(None, (1, None)) == Layout((4, 3), (6, 1), offset=3)
    assert layout(None) == layout[:] == layout[...] == layout(None, None) == layout
    assert layout(None, 0, 2) == Layout((4,), (6,), offset=2)


def test_slices_are_checked_like_other_coordinates():
    layout = Layout((4, (2, 3)), (6, (3, 1)))
    for coord in ((4, None), (None, 6), (None, (2, None)), (None, -1)):
        with pytest.raises(CoordinateError):
            layout(*coord)
    with pytest.raises(CoordinateError, match=r"\(4, \(2, 3\)\)"):
        layout(None, 6)
    for ranged in (lambda: layout(slice(0, 2), 1), lambda: layout[0:2, 1], lambda: layout[0:2]):
        with pytest.raises(LayoutError, match="whole mode"):
            ranged()
    with pytest.raises(LayoutError):
        layout(None, (None, 1, 2))
    with pytest.raises(LayoutError):
        layout((None, 1), None)


def open_modes(coord, tree):
    """Return the branches of a tree where a coordinate is open, side by side: the structure of CuTe's slices."""
    if not isinstance(coord, tuple):
        return (tree,) if coord is None or isinstance(coord, slice) else ()
    return tuple([branch for part, mode in zip(coord, tree, strict=True) for branch in open_modes(part, mode)])


@given(layouts(min_rank=1), st.data())
def test_slice_and_offset_takes_the_offset_apart_from_the_slice(layout, data):
    coord, pattern = data.draw(slicers(layout.shape))
    assume(None in pattern)
    coord = None if coord == slice(None) else coord
    part, offset = cute.slice_and_offset(coord, layout)
    assert part.offset == 0
    assert tw.flatten(part + offset) == tw.flatten(layout(coord))
    nested = layout._nest_coordinate((coord,))
    assert (part.shape, part.stride) == (open_modes(nested, layout.shape), open_modes(nested, layout.stride))


@given(layouts(min_rank=1))
def test_brackets_with_an_integer_give_a_mode(layout):
    for k in range(layout.rank):
        assert layout[k] == layout[np.int64(k)] == layout.mode(k)
        assert [layout[k](i) + layout.offset for i in range(layout[k].size)] == [
            layout(tuple(i if j == k else 0 for j in range(layout.rank))) for i in range(layout[k].size)
        ]


def test_brackets_refuse_what_they_cannot_mean():
    layout = Layout((4, (2, 3)))
    for k in (2, -3):
        with pytest.raises(IndexError, match="modes 0 to 1") as caught:
            layout[k]
        assert isinstance(caught.value, LayoutError)
    with pytest.raises(LayoutError, match="ambiguous"):
        layout[1, 2]
    for wrong in (1.0, "1", True):
        with pytest.raises(TypeError, match=type(wrong).__name__):
            layout[wrong]
    assert layout.mode(1, 0) == Layout(2, 4)
    with pytest.raises(LayoutError, match="no mode"):
        layout.mode(1, 2)


# Past the edge


@given(layouts(allow_empty=True))
def test_the_continued_function_agrees_inside(layout):
    assert [layout.extended(i) for i in range(layout.size)] == [layout(i) for i in range(layout.size)]
    for coord in layout:
        assert layout.extended(coord) == layout(coord)


@given(layouts(), st.integers(0, 500))
def test_past_the_end_the_outermost_coalesced_mode_goes_on(layout, index):
    merged = tw.coalesce(Layout(layout.shape, layout.stride))
    extents, steps = leaves(merged.shape), leaves(merged.stride)
    at = digits(index, extents[:-1])
    outermost = index // size_of(tuple(extents[:-1]))
    low = sum(c * step for c, step in zip(at, steps[:-1], strict=True))
    assert layout.extended(index) == layout.offset + low + outermost * steps[-1]


@given(layouts(offsets=False), st.integers(1, 500))
def test_below_zero_the_continued_function_is_odd(layout, index):
    assert layout.extended(-index) == -layout.extended(index)


@given(layouts(), st.integers(-10, 10))
def test_an_offset_moves_the_continued_function_as_a_whole(layout, index):
    bare = Layout(layout.shape, layout.stride)
    assert layout.extended(index) == bare.extended(index) + layout.offset


@given(layouts(min_rank=1), st.data())
def test_each_mode_continues_on_its_own(layout, data):
    at = [data.draw(st.integers(-5, 40)) for _ in layout.shape]
    parts = [mode.extended(c) for mode, c in zip(layout.modes, at, strict=True)]
    assert layout.extended(*at) == sum(parts) + layout.offset


def test_known_continuations():
    assert Layout((4, 3), (3, 1)).extended(12) == 3
    assert Layout(7, 11).extended(8) == 88
    assert Layout(1, 5).extended(6) == 0, "one element is constant"
    assert Layout((4, 1), (3, 100)).extended(5) == 15, "a unit is not the outermost mode"


@given(layouts())
def test_locate_is_the_place_and_whether_it_is_data(layout):
    padded = tw.pad(layout, [n + 2 for n in [size_of(mode) for mode in modes_of(layout.shape)]])
    for coord in padded:
        place, valid = padded.locate(coord)
        assert place == padded(coord)
        assert valid == padded.valid(coord)
    assert padded.locate(padded.size) == (padded.extended(padded.size), False)


# Arrays


@given(evaluable(named=False), st.data())
def test_an_array_of_indices_gives_the_array_of_places(layout, data):
    assume(layout.size > 0)
    shape = data.draw(st.sampled_from([(5,), (2, 3), (1, 4, 1), (0,)]))
    count = int(np.prod(shape))
    index = st.integers(0, layout.size - 1)
    asked = np.array(data.draw(st.lists(index, min_size=count, max_size=count)), dtype=np.int64).reshape(shape)
    found = layout(asked)
    expected = [layout(int(i)) for i in asked.ravel()]
    assert np.broadcast_to(found, shape).ravel().tolist() == expected


@given(named_layouts(), st.data())
def test_an_array_of_indices_gives_a_place_of_arrays_over_axes(layout, data):
    shape = data.draw(st.sampled_from([(5,), (2, 3), (1, 4, 1), (0,)]))
    count = int(np.prod(shape))
    index = st.integers(0, layout.size - 1)
    asked = np.array(data.draw(st.lists(index, min_size=count, max_size=count)), dtype=np.int64).reshape(shape)
    found = layout(asked)
    assert isinstance(found, Place)
    assert found.axes == layout.axes
    for name in found:
        table = np.broadcast_to(found[name], shape)
        assert table.ravel().tolist() == [layout(int(i)).get(name, 0) for i in asked.ravel()]


@given(layouts(), st.sampled_from(["int8", "uint8", "int16", "uint32"]))
def test_narrow_arrays_of_coordinates_do_not_wrap(layout, dtype):
    index = np.arange(layout.size)
    expected = [layout(int(i)) for i in index]
    assert layout(index.astype(dtype)).tolist() == expected
    assert layout.extended(index.astype(dtype)).tolist() == expected


def test_known_narrow_arrays():
    assert Layout(100, 100)(np.arange(100, dtype=np.uint8))[-1] == 9900
    assert Layout(4, -1)(np.array([3], dtype=np.uint8)).tolist() == [-3]
    ragged = tw.logical_divide(Layout(950), 100)
    last = np.array([99], dtype=np.uint8), np.array([9], dtype=np.uint8)
    assert ragged(*last).tolist() == [999]
    assert ragged.valid(*last).tolist() == [False]


def test_arrays_whose_places_need_more_than_64_bits_are_refused():
    with pytest.raises(LayoutError):
        (Layout(4, 2**60) + (2**63 - 1))(np.arange(4))
    with pytest.raises(LayoutError, match=r"2\^63 - 1"):
        Layout(2, 2**61).extended(np.arange(5))
    assert Layout(2, 2**61).extended(np.arange(4)).tolist() == [k * 2**61 for k in range(4)]


@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 3)])
def test_an_empty_layout_does_not_go_on(shape):
    layout = Layout(shape, tuple(range(5, 5 + len(shape))))
    for index in (5, np.arange(6)):
        with pytest.raises(LayoutError, match="cannot be extended"):
            layout.extended(index)


@given(layouts(min_rank=2, max_rank=2), st.data())
def test_arrays_of_coordinates_broadcast(layout, data):
    rows, columns = (size_of(mode) for mode in layout.shape)
    table = layout(np.arange(rows)[:, None], np.arange(columns))
    assert table.shape == (rows, columns)
    assert table.tolist() == [[layout(i, j) for j in range(columns)] for i in range(rows)]
    j = data.draw(st.integers(0, columns - 1))
    assert layout(np.arange(rows), j).tolist() == [layout(i, j) for i in range(rows)]


@given(layouts(min_rank=1))
def test_arrays_may_stand_at_every_leaf(layout):
    index = np.arange(layout.size)
    at = [np.array(c) for c in zip(*(digits(int(i), leaves(layout.shape)) for i in index), strict=True)]
    found = layout(nested_like(layout.shape, at))
    assert found.tolist() == [layout(int(i)) for i in index]


@pytest.mark.parametrize("wrong", [np.array([0, 4]), np.array([-1, 0]), np.array([[100]])])
def test_arrays_are_checked_against_the_shape(wrong):
    layout = Layout((4, (2, 3)))
    with pytest.raises(CoordinateError, match=r"outside shape \(4, \(2, 3\)\)"):
        layout(wrong, 0)
    with pytest.raises(IndexError):
        layout(0, (0, wrong))


def test_whether_an_array_is_data_is_an_array():
    assert Layout(8).valid(np.arange(8)).tolist() == [True] * 8
    assert tw.pad(Layout(6), 8).valid(np.arange(8)).tolist() == [True] * 6 + [False] * 2


def test_arrays_past_the_edge_have_a_continuation_and_are_not_valid():
    layout = Layout((4, 3), (3, 1))
    index = np.arange(-3, 20)
    assert layout.extended(index).tolist() == [layout.extended(int(i)) for i in index]
    assert layout.valid(index).tolist() == [layout.valid(int(i)) for i in index]


# Whole tables


@given(evaluable())
def test_offsets_are_the_places_of_all_coordinates(layout):
    table = layout.offsets()
    sizes = tuple(size_of(mode) for mode in modes_of(layout.shape))
    parts = {name: table[name] for name in table} if isinstance(table, Place) else {"": table}
    assert parts
    for name, part in parts.items():
        assert part.shape == sizes
        assert part.dtype == np.int64
        for at in np.ndindex(*sizes):
            place = layout(*map(int, at)) if isinstance(layout.shape, tuple) else layout(int(at[0]))
            assert part[at] == ((Place() + place).get(name, 0) if name else place)


@given(st.data())
def test_fill_marks_exactly_what_is_not_data(data):
    layout = data.draw(layouts(kinds=("compact", "padded", "broadcast"), offsets=False))
    divided = tw.zipped_divide(layout, data.draw(tilers(layout)))
    filled, plain = divided.offsets(fill=-1), divided.offsets()
    for i, j in np.ndindex(*plain.shape):
        at = int(i), int(j)
        assert plain[i, j] == divided(*at)
        assert filled[i, j] == (divided(*at) if divided.valid(*at) else -1)
    assert int((filled != -1).sum()) == layout.size


def test_fill_on_a_known_ragged_divide():
    tiles = tw.logical_divide(Layout(10), 4)
    assert tiles.offsets(fill=-1).T.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, -1, -1]]
    assert tiles.offsets().T.tolist()[2] == [8, 9, 10, 11]
    assert Layout((2, 2)).offsets(fill=-1).tolist() == [[0, 2], [1, 3]], "nothing to fill"


@given(layouts(), st.sampled_from(["int8", "uint8", "int16", "int32", "uint64"]))
def test_a_dtype_is_used_where_all_places_fit_and_refused_where_not(layout, dtype):
    limits = np.iinfo(dtype)
    low, high = layout.bounds
    if limits.min <= low and high <= limits.max:
        table = layout.offsets(dtype=dtype)
        assert table.dtype == np.dtype(dtype)
        assert (table == layout.offsets()).all()
    else:
        with pytest.raises(LayoutError, match=f"do not fit into {dtype}"):
            layout.offsets(dtype=dtype)


def test_tables_beyond_64_bits_are_refused():
    padded = tw.pad(Layout(2, 2**62), 4)
    assert padded.locate(3) == (3 * 2**62, False), "one place is an exact integer"
    with pytest.raises(LayoutError, match="2\\^63"):
        padded.offsets()


def test_an_extent_of_one_goes_nowhere_however_large_its_stride():
    assert Layout((1, 4), (2**63 - 1, 1)).offsets().tolist() == [[0, 1, 2, 3]]


@given(st.integers(-(2**60), 2**60), st.integers(-(2**40), 2**40), st.integers(0, 2**62))
def test_arrays_of_indices_are_continued_exactly_or_refused(step, offset, index):
    layout = Layout(4, step, offset=offset)
    if abs(offset) + index * abs(step) < 2**63:
        assert layout.extended(np.array([index])).tolist() == [layout.extended(index)]
    else:
        with pytest.raises(LayoutError, match="2\\^63"):
            layout.extended(np.array([index]))


@given(evaluable(named=False), st.integers(1, 40))
def test_the_domain_can_be_walked_a_piece_at_a_time(layout, limit):
    pieces = list(chunks(layout, limit))
    assert all(len(index) <= limit for index, _, _ in pieces)
    assert [i for index, _, _ in pieces for i in index] == list(range(layout.size))
    assert [place for _, places, _ in pieces for place in places.tolist()] == [layout(i) for i in range(layout.size)]
    assert [bool(ok) for _, _, valid in pieces for ok in valid] == [layout.valid(i) for i in range(layout.size)]


def test_replicas_add_a_dimension():
    copies = tw.replicate(Layout((2, 3), (3, 1)), 2, 100)
    table = copies.offsets()
    assert table.shape == (2, 3, 2)
    for i, j in np.ndindex(2, 3):
        assert set(table[i, j].tolist()) == copies(int(i), int(j))


def test_a_large_table_is_made_without_a_loop():
    layout = Layout(((16, 2, 128), (16, 2, 128)), ((16, 512, 131072), (1, 256, 1024)))
    table = layout.offsets(dtype="int32")
    assert table.shape == (4096, 4096)
    assert table[1234, 2345] == layout(1234, 2345) == 5056041
    assert np.array_equal(np.sort(table, axis=None), np.arange(4096 * 4096))


# NumPy


def run_alone(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_named_tables_are_places_of_arrays():
    table = Layout((3, 4), (1 @ bank, 64 @ addr)).offsets()
    assert table.axes == ("bank", "addr")
    assert table.bank.tolist() == [[0] * 4, [1] * 4, [2] * 4]
    assert table.addr.tolist() == [[0, 64, 128, 192]] * 3
