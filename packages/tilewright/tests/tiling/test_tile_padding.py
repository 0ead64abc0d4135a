# SPDX-License-Identifier: Apache-2.0
"""Imports that leave their tensor: every fill is what `numpy.pad` says, for any box, rank and element type."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import LayoutError, TransferError
from tilewright.tiling import Box, ExternalTensor, InternalTensor, import_
from tilewright.tiling.tile_copies import axis_segments, boxes_outside

PAIR = np.dtype([("a", "u1"), ("b", "<i4"), ("c", "<f8")])
TYPES = ["uint8", "int16", "float32", "float64", "complex128", "V3", ">i4", PAIR]
FILLS = ["zero", "edge", "reflect", "symmetric", "wrap"]


@st.composite
def boxes(draw, most=3):
    """Return the shape of a space and a tile that may lie anywhere near it."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=most)))
    offset = tuple(draw(st.integers(-6, n + 2)) for n in shape)
    extent = tuple(draw(st.integers(1, 8)) for _ in shape)
    return shape, Box(offset, extent)


def filled_with_bytes(shape, dtype, seed=0):
    dtype = np.dtype(dtype)
    data = np.random.default_rng(seed).integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8)
    return data.view(dtype).reshape(shape)


def padded(array, tile, fill):
    """Return what a tile of an array should hold, found by looking every coordinate up."""
    result = np.zeros(tile.shape, array.dtype)
    for at in np.ndindex(*tile.shape):
        where = [a + b for a, b in zip(at, tile.offset, strict=True)]
        source = [seen(i, n, fill) for i, n in zip(where, array.shape, strict=True)]
        if None not in source:
            result[at] = array[tuple(source)]
    return result


def seen(i, n, fill):
    if 0 <= i < n:
        return i
    if fill == "zero":
        return None
    if fill == "edge" or n == 1:
        return min(max(i, 0), n - 1)
    if fill == "wrap":
        return i % n
    turn = np.pad(np.arange(n), (0, n - 2 if fill == "reflect" else n), mode=fill)
    return int(turn[i % len(turn)])


@given(boxes(), st.sampled_from(TYPES), st.sampled_from(FILLS))
def test_an_import_holds_what_its_fill_says(box, dtype, fill):
    shape, tile = box
    array = filled_with_bytes(shape, dtype)
    buffer = InternalTensor(np.full(tile.size * array.itemsize, 0x5A, np.uint8), tile.shape, dtype=dtype)
    import_(buffer, ExternalTensor(array).tile(tile), fill=fill).wait()
    assert buffer.array().tobytes() == padded(array, tile, fill).tobytes()


@given(boxes(most=2))
def test_a_view_with_any_strides_can_be_the_source(box):
    shape, tile = box
    array = filled_with_bytes(tuple(2 * n for n in shape), "int16").T[::-2, ...][tuple(slice(n) for n in shape[::-1])]
    turned = Box(tile.offset[::-1], tile.shape[::-1])
    buffer = InternalTensor(np.zeros(turned.shape, np.int16))
    import_(buffer, ExternalTensor(array).tile(turned), fill="reflect").wait()
    assert (buffer.array() == padded(array, turned, "reflect")).all()


@given(boxes())
def test_outside_boxes_and_inside_are_a_partition(box):
    shape, tile = box
    count = np.zeros(tile.shape, int)
    inside = tile.within(shape)
    for part in [inside, *boxes_outside(tile, inside)]:
        count[part.relative_to(tile.offset).slices] += not part.empty
    assert (count == 1).all()


@given(st.integers(-20, 20), st.integers(1, 20), st.integers(1, 6), st.sampled_from(FILLS[1:]))
def test_segments_follow_each_other_and_stay_inside(offset, length, space, fill):
    at = 0
    for part in axis_segments(offset, length, space, fill):
        assert part.start == at
        ends = (part.source, part.source + part.step * (part.length - 1))
        assert min(ends) >= 0
        assert max(ends) < space
        at += part.length
    assert at == length


def test_constants():
    array = np.ones(3, np.float32)
    buffer = InternalTensor(np.zeros(5, np.float32))
    import_(buffer, ExternalTensor(array).sub(-1, 5), fill=-np.inf).wait()
    assert buffer.array().tolist() == [-np.inf, 1, 1, 1, -np.inf]
    import_(buffer, ExternalTensor(array).sub(-1, 5), fill="nan").wait()
    assert np.isnan(buffer.array()[[0, 4]]).all()
    pairs = InternalTensor(np.zeros(3, PAIR))
    import_(pairs, ExternalTensor(np.zeros(1, PAIR)).sub(-1, 3), fill=(1, 2, 3.5)).wait()
    assert pairs.array().tolist() == [(1, 2, 3.5), (0, 0, 0.0), (1, 2, 3.5)]


@pytest.mark.parametrize(
    ("fill", "dtype", "message"),
    [
        ("nan", "int32", "fill nan is not a value of int32"),
        (float("nan"), "uint8", "fill nan is not a value of uint8"),
        (2.5, "int8", "fill 2.5 is not a value of int8, which holds whole numbers from -128 to 127"),
        ("mirror", "int32", "unknown fill 'mirror'"),
        (300, "uint8", "not a value"),
        (None, "uint8", "extends outside"),
    ],
)
def test_a_fill_that_cannot_be_is_refused(fill, dtype, message):
    buffer = InternalTensor(np.zeros(4, dtype))
    with pytest.raises(TransferError, match=message):
        import_(buffer, ExternalTensor(np.zeros(4, dtype)).sub(-1, 4), fill=fill)


def test_an_empty_space_has_nothing_to_repeat():
    with pytest.raises(LayoutError, match="the space is empty"):
        import_(InternalTensor(np.zeros(2)), ExternalTensor(np.zeros(0)).sub(0, 2), fill="edge")
