# SPDX-License-Identifier: Apache-2.0
"""View, copy or untilize: compared with what happens to every single element."""

from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tilewright import MemoryConfigError
from tilewright.formats import BlockFormat
from tilewright.memory import (
    ChangeKind,
    PageLayout,
    TensorSpec,
    Tile,
    block_sharded,
    convert_spec,
    from_bytes,
    height_sharded,
    reshape_spec,
    reshard_spec,
    retile_spec,
    slice_spec,
    to_bytes,
    transpose_spec,
    width_sharded,
)

VIEW, COPY, UNTILIZE = ChangeKind.VIEW, ChangeKind.COPY, ChangeKind.UNTILIZE


def numbered(spec):
    """Return the number of every element, as its value."""
    return np.arange(prod(spec.shape), dtype=np.int32).reshape(spec.shape.logical)


def physical_numbers(spec, values):
    """Return the values in physical order, -1 for padding."""
    return to_bytes(values, spec, pad_value=-1).view(np.int32)


def expected(old, new, values):
    """Return what a change really is on the host, element by element."""
    before, after = physical_numbers(old, numbered(old)), physical_numbers(new, values)
    at = np.full(before.max(initial=0) + 1, -1)
    at[before[before >= 0]] = np.flatnonzero(before >= 0)
    data = np.flatnonzero(after >= 0)
    came_from = at[after[data]]
    shift = came_from - data
    if len(set(shift.tolist())) == 1 and 0 <= shift[0] <= before.size - after.size:
        return VIEW
    page = new.page_elements
    if old.page_elements == page and (came_from % page == data % page).all():
        pairs = set(zip((data // page).tolist(), (came_from // page).tolist(), strict=True))
        if len(pairs) == len({first for first, _ in pairs}):
            return COPY
    return UNTILIZE if old.page_layout is PageLayout.TILE else COPY


TILES = st.sampled_from([(32, 32), (16, 32), (16, 16), (4, 16), (2, 32), (1, 16), (1, 32)])


@st.composite
def plain_specs(draw, shape=None):
    extents = st.sampled_from([1, 2, 3, 4, 8, 16, 30, 32, 48, 64])
    shape = draw(st.lists(extents, min_size=1, max_size=4)) if shape is None else shape
    assume(prod(shape) <= 20000)
    if draw(st.booleans()):
        return TensorSpec(shape, "int32", chip="wormhole_n150")
    size = draw(TILES)
    tile = Tile(size, transpose=size[0] >= 16 and draw(st.booleans()))
    return TensorSpec(shape, "int32", "tile", tile, chip="wormhole_n150")


@st.composite
def factorisations(draw, count):
    """Return a shape with so many elements."""
    shape = []
    while count > 1 and len(shape) < 4:
        divisor = draw(st.sampled_from([d for d in range(2, count + 1) if count % d == 0]))
        shape.append(divisor)
        count //= divisor
    shape = [*shape, count] if count > 1 else shape
    for _ in range(draw(st.integers(0, 2))):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    return draw(st.permutations(shape or [1]))


def check(change, old, values):
    assert change.spec.shape.logical == values.shape
    truth = expected(old, change.spec, values)
    assert change.on_host == truth, (change, truth)
    assert change.kind == (truth if truth is not VIEW else change.kind)
    if change.kind is VIEW:
        assert np.array_equal(old.pages(base=0).rows()[: change.spec.num_pages], change.spec.pages(base=0).rows())


@given(plain_specs(), st.data())
def test_reshapes(spec, data):
    shape = data.draw(factorisations(prod(spec.shape)))
    check(reshape_spec(spec, shape), spec, numbered(spec).reshape(shape))


@given(plain_specs(), st.data())
def test_transposes(spec, data):
    assume(spec.shape.rank > 1)
    order = data.draw(st.permutations(range(spec.shape.rank)))
    check(transpose_spec(spec, *order), spec, numbered(spec).transpose(order))


@given(plain_specs(), st.data())
def test_slices(spec, data):
    box = []
    for n in spec.shape:
        start = data.draw(st.sampled_from([0, 0, n // 2, n // 4, n - 1]))
        box.append(slice(start, data.draw(st.sampled_from([n, n, start + 1, start + (n - start + 1) // 2]))))
    check(slice_spec(spec, *box), spec, numbered(spec)[tuple(box)])


@given(plain_specs(), st.data())
def test_retiles(spec, data):
    other = data.draw(plain_specs(shape=spec.shape.logical))
    tile = other.tile if other.page_layout is PageLayout.TILE else None
    check(retile_spec(spec, other.page_layout, tile), spec, numbered(spec))


@given(plain_specs())
def test_a_view_on_the_host_reads_right(spec):
    """The real host reshape of a tiled tensor only changes the label, and silently reads wrong data."""
    change = reshape_spec(spec, (-1,))
    if change.on_host is VIEW:
        assert np.array_equal(from_bytes(to_bytes(numbered(spec), spec), change.spec), numbered(spec).reshape(-1))


def test_shards():
    spec = TensorSpec((64, 64), page_layout="tile", chip="wormhole_n150")
    moved = reshard_spec(spec, block_sharded((2, 2)))
    assert (moved.kind, moved.on_host) == (COPY, VIEW)
    assert reshard_spec(moved.spec, block_sharded((2, 2), (32, 32))).kind is VIEW
    rows = TensorSpec((5, 7), "float32", chip="wormhole_n150")
    assert reshard_spec(rows, height_sharded((5, 1), (1, 7))).on_host is VIEW
    assert reshard_spec(rows, width_sharded((4, 1), (5, 2))).on_host is COPY  # rows grow from 7 to 8
    sharded = TensorSpec((2, 64, 64), page_layout="tile", memory=height_sharded((4, 1), (32, 64)), chip="wormhole_n150")
    assert reshape_spec(sharded, (128, 64)).kind is VIEW
    with pytest.raises(MemoryConfigError, match="reshard first"):
        reshape_spec(sharded, (64, 128))


def test_conversions():
    spec = TensorSpec((64, 64), "float32", "tile")
    assert convert_spec(spec, "float32").kind is VIEW
    assert convert_spec(spec, "bfloat8_b").kind is COPY
    with pytest.raises(MemoryConfigError, match="choose the tile layout"):
        convert_spec(TensorSpec((64, 64), "float32"), "bfloat8_b")


def test_blocks_move_by_pages():
    spec = TensorSpec((4, 64, 64), "bfloat8_b", chip="wormhole_n150")
    assert isinstance(spec.dtype, BlockFormat)
    assert reshape_spec(spec, (256, 64)).kind is VIEW
    assert slice_spec(spec, slice(1, 2)).on_host is VIEW
    assert slice_spec(spec, slice(1, 2)).kind is COPY
    assert transpose_spec(spec, 1, 0, 2).kind is UNTILIZE
    assert transpose_spec(spec).kind is UNTILIZE


def test_what_cannot_be():
    spec = TensorSpec((4, 6))
    for wrong in (
        lambda: reshape_spec(spec, (5, 5)),
        lambda: reshape_spec(spec, (-1, 5)),
        lambda: transpose_spec(spec, 0, 0),
    ):
        with pytest.raises(MemoryConfigError):
            wrong()
    with pytest.raises(MemoryConfigError, match="slices with step 1"):
        slice_spec(spec, slice(0, 4, 2))
