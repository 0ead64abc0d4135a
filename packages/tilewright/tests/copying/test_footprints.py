# SPDX-License-Identifier: Apache-2.0
"""Footprints: two views of one memory may be copied to each other exactly when they have no byte in common."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.copying import Placement, copy, execute, plan_copy
from tilewright.copying.placement import Footprint, footprint_of
from tilewright.errors import TransferError


@st.composite
def footprints(draw):
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    strides = draw(st.lists(st.integers(-12, 12), min_size=len(shape), max_size=len(shape)))
    return Footprint(draw(st.integers(-20, 20)), tuple(shape), tuple(strides), draw(st.integers(1, 4)))


def touched(footprint):
    """Return every byte, one by one."""
    starts = [
        footprint.first + sum(k * stride for k, stride in zip(at, footprint.strides, strict=True))
        for at in product(*map(range, footprint.shape))
    ]
    return {start + k for start in starts for k in range(footprint.itemsize)}


@given(footprints(), footprints())
def test_two_meet_if_they_have_a_byte_in_common(one, other):
    assert one.overlaps(other) == bool(touched(one) & touched(other))
    assert one.overlaps(other) == other.overlaps(one)


@given(footprints(), st.integers(-(2**40), 2**40))
def test_where_memory_begins_makes_no_difference(one, shift):
    moved = one._replace(first=one.first + shift)
    assert moved.overlaps(moved) == one.overlaps(one) == bool(touched(one))


def test_what_is_too_hard_to_tell_is_shared():
    wide = Footprint(0, (2,) * 40, tuple(2 << k for k in range(40)), 1)
    assert wide.overlaps(wide._replace(first=1))


@st.composite
def two_views(draw):
    """Return two views of equal shapes of one array, by slices with steps."""
    extents = draw(st.lists(st.integers(1, 12), min_size=1, max_size=3))
    whole = np.arange(np.prod(extents), dtype=draw(st.sampled_from(["int8", "float32", "float64"]))).reshape(extents)
    views = [whole[tuple(draw(st.tuples(*[_slices(n) for n in extents])))] for _ in range(2)]
    common = tuple([slice(min(a, b)) for a, b in zip(*[view.shape for view in views], strict=True)])
    return whole, views[0][common], views[1][common]


def _slices(n):
    steps = st.sampled_from([1, 1, 2, 3, -1, -2])
    return st.builds(slice, st.integers(0, n - 1), st.none(), steps)


@given(two_views())
def test_copies_between_views_of_one_array(engine, views):
    whole, source, target = views
    wanted, before = source.copy(), whole.copy()
    if np.shares_memory(source, target):
        with pytest.raises(TransferError, match="share memory"):
            copy(source, target, **engine)
        assert (whole == before).all()
        return
    mine = np.zeros(whole.shape, bool)
    corner = np.lib.stride_tricks.as_strided
    offset = target.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    strides = tuple([stride // whole.itemsize for stride in target.strides])
    if target.size:
        corner(mine.reshape(-1)[offset // whole.itemsize :], target.shape, strides)[...] = True
    copy(source, target, **engine)
    assert (target == wanted).all()
    assert (whole[~mine] == before[~mine]).all()


def test_a_plan_counts_by_its_layouts_not_by_the_arrays_it_is_given():
    """An array stands for its memory, gaps and all: which of it is touched, the layouts say."""
    memory = np.arange(16, dtype=np.int8)
    dense, spread = Placement(tw.Layout(8), "int8"), Placement(tw.Layout(4, 2), "int8")
    with pytest.raises(TransferError, match="share memory"):
        execute(plan_copy(dense, dense), memory[::2], memory[1::2])
    execute(plan_copy(spread, spread), memory, memory[1:])
    assert memory.tolist() == [0, 0, 2, 2, 4, 4, 6, 6, 8, 9, 10, 11, 12, 13, 14, 15]


def test_layouts_without_steps_take_all_of_their_bytes():
    swizzled = Placement(tw.compose(tw.Swizzle(1, 0, 1), tw.Layout(4)), "int16")
    assert footprint_of(swizzled, 100) == Footprint(100, (8,), (1,), 1)
    blocks = Placement(tw.Layout(1024), "bfloat8_b", tile_elements=1024)
    assert footprint_of(blocks, 0) == Footprint(0, (1088,), (1,), 1)


def test_tiles_of_one_tensor_are_copied_to_each_other():
    values = np.arange(256 * 256).reshape(256, 256)
    t = tw.TileTensor(values.copy(), tw.row_major(256, 256))
    t.tile[128, 128](0, 0).copy_from(t.tile[128, 128](1, 1).transpose())
    wanted = values.copy()
    wanted[:128, :128] = values[128:, 128:].T
    assert (t.to_numpy() == wanted).all()
    t.copy_from(t.transpose())  # every element is read before it is written
    assert (t.to_numpy() == wanted.T).all()
