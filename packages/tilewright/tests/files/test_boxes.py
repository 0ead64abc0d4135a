# SPDX-License-Identifier: Apache-2.0
"""Boxes of tensors in the bytes of their pages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilewright as tw
from tilewright.files.stored_tensor import PagedBoxes, as_box
from tilewright.layout.properties import Box
from tilewright.memory import TensorSpec, alignment_of, from_bytes, to_bytes

from ..cases import examples
from ..memory.strategies import specs


@st.composite
def boxes_of(draw, shape):
    ranges = []
    for n in shape:
        start = draw(st.integers(0, n))
        ranges.append(slice(start, draw(st.integers(start, n))))
    return as_box(tuple(ranges), shape)


def check_box(spec, box):
    """Assert that the runs of a box are the pages of its own spec, and hold the same values."""
    count = int(np.prod(spec.shape.logical))
    values = (np.arange(count) % 200).astype(np.float32).reshape(spec.shape.logical)
    data = to_bytes(values, spec)
    expected = from_bytes(data, spec)[box.slices]
    boxes = PagedBoxes(spec)
    around = boxes.enclosing_box(box)
    part = b"".join(bytes(data[at : at + size]) for at, size in boxes.runs(around))
    if 0 in box.shape:
        return
    own = boxes.box_spec(around)
    assert len(part) == own.nbytes
    np.testing.assert_array_equal(from_bytes(part, own)[box.relative_to(around.offset).slices], expected)


@examples(100)
@given(st.data())
def test_a_box_is_a_tensor_of_its_own(data):
    spec = data.draw(specs(empty=True))
    check_box(spec, data.draw(boxes_of(spec.shape.logical)))


@examples(100)
@given(st.data())
def test_a_box_of_a_tensor_with_more_padding(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=2, max_size=3)))
    extra = data.draw(st.lists(st.integers(0, 3), min_size=len(shape), max_size=len(shape)))
    tiled = data.draw(st.booleans())
    unit = ((1,) * len(shape) + ((32, 32) if tiled else (1, 1)))[-len(shape) :]
    padded = tuple(-(-n // u) * u + more * u for n, u, more in zip(shape, unit, extra, strict=True))
    spec = TensorSpec(shape, "uint16", "tile" if tiled else "row_major", alignment=alignment_of(padded))
    assert spec.padded_shape == padded
    check_box(spec, data.draw(boxes_of(shape)))


@examples(100)
@given(specs())
def test_the_whole_is_one_run(spec):
    boxes = PagedBoxes(spec)
    assert boxes.runs(as_box(None, spec.shape.logical)) == [(0, spec.nbytes)]


def test_rows_of_tiles_are_one_run():
    boxes = PagedBoxes(TensorSpec((3, 100, 70), "bfloat8_b"))
    assert boxes.runs(Box((1, 32, 0), (1, 64, 70))) == [((1 * 4 + 1) * 3 * 1088, 2 * 3 * 1088)]
    assert boxes.runs(Box((1, 32, 32), (1, 64, 38))) == [(16 * 1088, 2 * 1088), (19 * 1088, 2 * 1088)]


@pytest.mark.parametrize("ranges", [(slice(0, 4, 2),), (3,), (slice(None),) * 3])
def test_bad_boxes_are_refused(ranges):
    with pytest.raises(tw.LayoutError):
        as_box(ranges, (8, 8))


def test_a_box_that_cuts_pages_is_refused():
    with pytest.raises(tw.LayoutError, match="enclosing_box"):
        PagedBoxes(TensorSpec((64, 64), "bfloat8_b")).runs(Box((0, 0), (33, 64)))
