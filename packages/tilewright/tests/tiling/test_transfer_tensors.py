# SPDX-License-Identifier: Apache-2.0
"""Tensors: layouts with spacings, windows, const-ness, and memory that is too small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import Layout, LayoutError, TransferError, blocked_product, row_major
from tilewright.errors import CoordinateError
from tilewright.tiling import Box, ExternalTensor, InternalTensor, export, import_, spaced_layout


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 4), st.integers(0, 9), st.data())
def test_spacings_count_elements(shape, more_row, more_plane, data):
    shape = tuple(shape)
    row = shape[-1] + more_row
    plane = row * (shape[-2] if len(shape) > 1 else 1) + more_plane
    layout = spaced_layout(shape, row, plane)
    at = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
    expected = at[-1]
    if len(shape) > 1:
        expected += at[-2] * row
    if len(shape) > 2:
        expected += np.ravel_multi_index(at[:-2], shape[:-2]) * plane
    assert layout(*at) == expected


def test_alignments_round_spacings_up():
    assert spaced_layout((2, 3, 5), 6, 20, row_alignment=4, plane_alignment=16).stride == (32, 8, 1)


@pytest.mark.parametrize(
    ("spacings", "message"), [((4,), "at least 5"), ((8, 20), "at least 21"), ((5, None, 0), "at least 1")]
)
def test_spacings_that_overlap_are_refused(spacings, message):
    with pytest.raises(LayoutError, match=message):
        spaced_layout((2, 3, 5), *spacings)


def test_rows_may_be_closer_than_wide_when_there_is_one():
    assert spaced_layout((1, 5), 0).shape == (1, 5)
    assert spaced_layout((5,), 0)(4) == 4


def test_a_window_of_a_window_belongs_to_the_whole():
    whole = ExternalTensor(np.arange(24).reshape(4, 6))
    part = whole.sub((1, 2), (3, 4)).sub((-2, 1), (2, 2))
    assert part.window == Box((-1, 3), (2, 2))
    assert part.array().tolist() == [[3, 4]]


def test_elements_are_read_and_written_in_bounds():
    buffer = InternalTensor(bytearray(24), (2, 3), dtype="int32")
    buffer.write(7, 1, 2)
    assert buffer.read(1, 2) == 7
    for at in ((2, 0), (0, -1), (0,)):
        with pytest.raises(CoordinateError, match="outside"):
            buffer.read(*at)
    with pytest.raises(CoordinateError, match="padding"):
        buffer.sub((-1, 0), (2, 2)).read(0, 0)


def test_const_is_enforced_and_has_no_way_back():
    array = np.zeros(4)
    const = ExternalTensor(array).as_const()
    with pytest.raises(TransferError, match="const"):
        export(InternalTensor(np.ones(4)), const)
    with pytest.raises(TransferError, match="const"):
        export(InternalTensor(np.ones(2)), const.sub(1, 2))
    with pytest.raises(TransferError, match="const"):
        import_(InternalTensor(np.ones(4), const=True), ExternalTensor(array))
    with pytest.raises(TransferError, match="const"):
        const.write(1, 0)
    with pytest.raises(ValueError, match="read-only"):
        const.array()[0] = 1
    assert not array.any()
    array.flags.writeable = False
    assert ExternalTensor(array).const
    with pytest.raises(TransferError, match="read-only"):
        ExternalTensor(array, const=False)


def test_memory_that_is_too_small_is_found_before_a_byte_moves():
    memory = bytearray(10)
    outside = ExternalTensor(memory, (3, 4), dtype="int8")
    import_(InternalTensor(np.zeros((2, 4), np.int8)), outside.sub((0, 0), (2, 4))).wait()
    with pytest.raises(TransferError, match="covers bytes 0 to 12, but the memory has 10 bytes"):
        import_(InternalTensor(np.zeros((3, 4), np.int8)), outside)
    with pytest.raises(TransferError, match="covers bytes -1"):
        export(InternalTensor(np.zeros(2, np.int8)), ExternalTensor(memory, (2,), dtype="int8", offset=-1))
    with pytest.raises(TransferError, match="covers bytes 0 to 12, but the memory has 8 bytes"):
        import_(InternalTensor(bytearray(8), (3, 4), dtype="int8"), ExternalTensor(np.zeros((3, 4), np.int8)))


def test_shapes_must_agree():
    with pytest.raises(TransferError, match=r"shape \(2,\), external tensor has shape \(3,\)"):
        import_(InternalTensor(np.zeros(2)), ExternalTensor(np.zeros(3)))
    with pytest.raises(LayoutError, match="does not have shape"):
        ExternalTensor(bytearray(99), (3, 4), row_major(4, 4))


def test_a_type_of_another_size_needs_a_shape():
    memory = np.zeros(64, np.uint8)
    assert ExternalTensor(memory, (4, 4), dtype="float32").array().shape == (4, 4)
    with pytest.raises(LayoutError, match="give a shape"):
        ExternalTensor(memory, dtype="float32")


@pytest.mark.parametrize("thing", [np.array([object()]), 7, "text"])
def test_what_has_no_bytes_is_refused(thing):
    with pytest.raises(LayoutError):
        ExternalTensor(thing)


def test_elements_are_converted_where_types_differ():
    buffer = InternalTensor(np.zeros(3, np.int16))
    import_(buffer, ExternalTensor(np.array([1.6, -2.2, 9.0], np.float32))).wait()
    assert buffer.array().tolist() == [1, -2, 9]
    with pytest.raises(TransferError, match="byte order"):
        import_(buffer, ExternalTensor(np.zeros(3, ">f4")))


def test_a_tensor_stored_in_tiles_can_be_imported_and_exported():
    tiled = blocked_product(row_major(4, 4), row_major(3, 2))
    array = np.arange(96, dtype=np.float32).reshape(12, 8)
    memory = np.zeros(96, np.float32)
    memory[tiled.offsets()] = array
    outside = ExternalTensor(memory, (12, 8), tiled)
    buffer = InternalTensor(np.zeros((5, 6), np.float32))
    import_(buffer, outside.sub((3, 1), (5, 6))).wait()
    assert (buffer.array() == array[3:8, 1:7]).all()
    buffer.array()[...] *= -1
    export(buffer, outside.sub((7, 2), (5, 6))).wait()
    array[7:12, 2:8] = -array[3:8, 1:7]
    assert (memory[tiled.offsets()] == array).all()


def test_offsets_are_exact_beyond_32_bits():
    far = ExternalTensor(bytearray(8), (100000, 70000), Layout((100000, 70000), (70000, 1)), "uint8")
    with pytest.raises(TransferError, match="2800000005"):
        far.validate_bounds(Box((40000, 5), (1, 1)))


def test_tensors_of_nothing():
    nothing = ExternalTensor(np.zeros((0, 4)))
    assert nothing.array().shape == (0, 4)
    buffer = InternalTensor(np.full((2, 2), 9.0))
    import_(buffer, nothing.sub((0, 0), (2, 2)), fill=1).wait()
    assert (buffer.array() == 1).all()
    import_(InternalTensor(np.zeros((0, 4))), nothing).wait()
