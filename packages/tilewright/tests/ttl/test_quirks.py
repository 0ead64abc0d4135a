# SPDX-License-Identifier: Apache-2.0
"""Where TTL is known to be wrong or surprising, the dialect gives the sane result, or says no."""

import numpy as np
import pytest

from tilewright import FormatError, LayoutError, TransferError, ttl
from tilewright.tiling import SimulatedQueue
from tilewright.tiling.transfers import COMPLETIONS

from .golden import cases, quirk
from .kernels import SCHEMES, scratch_tensor

ELSEWHERE = {
    "sub_tensor_row_padding_zeroed": "test_golden.test_transactions",
    "duplex_start_imports_tile0_twice": "test_golden.test_our_schedules_differ_from_the_shipped_ones_where_we_say",
    "ttl_copy_3d_drops_events": "test_golden.test_kernels, under every completion",
}


def test_every_quirk_has_a_test():
    tests = {name.removeprefix("test_") for name in globals()}
    assert {case.id for case in cases("quirks")} <= tests | set(ELSEWHERE)


def around(offset, const=False):
    """Return a 3 x 3 internal tensor, and the same box of a 4 x 3 external one that has guards around it."""
    memory = np.full(44, -7, np.int32)
    memory[16:28] = range(1, 13)
    inside = ttl.create_int_tensor(np.arange(100, 109, dtype=np.int32), ttl.create_shape(3, 3))
    make = ttl.create_const_ext_tensor if const else ttl.create_ext_tensor
    outside = make(memory[16:28], inside.shape, ttl.create_layout(4), ttl.create_offset(*offset), 4)
    return inside, outside, memory


def test_export_not_clipped_left():
    inside, outside, memory = around((-1, -1))
    before = memory.copy()
    with pytest.raises(TransferError, match="covers bytes -20"):
        ttl.blocking_export(inside, outside)
    assert (memory == before).all()


def test_export_not_clipped_right():
    inside, outside, memory = around((2, 1))
    before = memory.copy()
    with pytest.raises(TransferError, match="covers bytes"):
        ttl.blocking_export(inside, outside)
    assert (memory == before).all()


def test_schemes_clip_their_exports():
    target = np.zeros(12, np.int32)
    outside = ttl.create_ext_tensor(target, ttl.create_shape(4, 3))
    event = ttl.get_event()
    scheme = ttl.start_export_double_buffering(bytearray(36), bytearray(36), outside, event)
    tile = ttl.tile_t(ttl.create_shape(3, 3), ttl.create_offset(-1, -1))
    ttl.step_buffering(scheme, tile).array()[...] = np.arange(100, 109).reshape(1, 3, 3)
    ttl.finish_buffering(scheme)
    assert target.reshape(3, 4).tolist() == [[104, 105, 0, 0], [107, 108, 0, 0], [0, 0, 0, 0]]


def test_plain_import_not_clipped():
    inside, outside, _ = around((-1, -1), const=True)
    with pytest.raises(TransferError, match="covers bytes"):
        ttl.blocking_import(inside, outside)


def test_column_major_id_not_validated():
    tiler = ttl.create_tiler(ttl.create_shape(10, 7), ttl.create_shape(4, 3))
    for number in map(int, quirk("column_major_id_not_validated")["ttl"]):
        assert ttl.get_tile_column_major(number, tiler) == ttl.get_tile(number, tiler)
        assert ttl.tile_empty(ttl.get_tile_column_major(number, tiler))


def test_tile_count_wraps_32bit():
    tiler = ttl.create_tiler(ttl.create_shape(100000, 100000), ttl.create_shape(1, 1))
    assert ttl.number_of_tiles(tiler) == quirk("tile_count_wraps_32bit")["sane"]


def test_overlap_is_uchar():
    tiler = ttl.create_overlap_tiler(ttl.create_shape(1000), ttl.create_shape(300), ttl.create_overlap(256))
    assert ttl.number_of_tiles(tiler) == 17


@pytest.mark.parametrize(
    ("space", "tile", "overlap"), [(5, 0, 0), (5, 3, 3), (5, 3, 4), (3, 5, 3), (2, 5, 3), (1, 5, 4)]
)
def test_degenerate_tilers(space, tile, overlap):
    with pytest.raises(LayoutError, match="tile"):
        ttl.create_overlap_tiler(ttl.create_shape(space, 4), ttl.create_shape(tile, 2), ttl.create_overlap(overlap))


def test_byte_offset_overflows_int32():
    far = ttl.create_ext_tensor(
        np.zeros(4, np.uint8), ttl.create_shape(1), ttl.create_layout(70000), ttl.create_offset(5, 40000), 1
    )
    assert far.base.offset == quirk("byte_offset_overflows_int32")["sane"]
    assert ttl.linearize(ttl.create_offset(0, 50000), ttl.create_layout(50000)) == 2_500_000_000


@pytest.mark.parametrize("scheme", SCHEMES)
def test_pipeline_plane_spacing_is_height(scheme):
    space = ttl.create_shape(4, 3, 2)
    source, target = np.arange(24, dtype=np.int32), np.zeros(24, np.int32)
    tiler = ttl.create_tiler(space, space)

    def copy(imported_to, to_export_from):
        to_export_from.array()[...] = imported_to.array()

    tensors = ttl.create_ext_tensor(source, space), ttl.create_ext_tensor(target, space)
    for _ in SCHEMES[scheme](*tensors, tiler, tiler, copy, ttl.get_event):
        pass
    assert target.tolist() == quirk("pipeline_plane_spacing_is_height")["sane"]


def test_default_ctor_plane_spacing_is_height():
    layout = ttl.create_int_tensor(bytearray(120), ttl.create_shape(6, 5, 4), 1).layout
    sane = quirk("default_ctor_plane_spacing_is_height")["sane"]
    assert (layout.row_spacing, layout.plane_spacing) == (sane["row_spacing"], sane["plane_spacing"])


def imported(space, shape, offset, int_layout=None, fill=9):
    """Return a box of 1, 2, 3, ... imported as a sub tensor, indexed [z, y, x]."""
    source = np.arange(1, np.prod(space) + 1, dtype=np.uint8)
    width, height, depth = shape
    layout = ttl.create_layout(*(int_layout or (width, width * height)))
    memory = np.full(
        max(1, (depth - 1) * layout.plane_spacing + height * max(layout.row_spacing, width)), fill, np.uint8
    )
    whole = ttl.create_const_ext_tensor(source, ttl.create_shape(*space))
    tile, at = ttl.create_shape(*shape), ttl.create_offset(*offset)
    part = ttl.create_int_sub_tensor(memory, tile, layout, whole, at)
    moved = ttl.create_const_ext_tensor(source, tile, whole.layout, at, 1)
    event = ttl.get_event()
    ttl.import_sub_tensor(part, moved, event)
    ttl.wait(1, event)
    return part.array(), source.reshape(space[::-1]), memory


@pytest.mark.parametrize("z", [-1, 1, -2, 2])
def test_sub_tensor_z_not_padded(z):
    found, source, _ = imported((3, 2, 2), (3, 2, 2), (0, 0, z))
    padded = np.pad(source, ((2, 2), (0, 0), (0, 0)))
    assert (found == padded[z + 2 : z + 4]).all()


def test_sub_tensor_prefill_ignores_plane_spacing():
    found, source, memory = imported((3, 2, 2), (3, 2, 2), (-1, 0, 0), int_layout=(4, 11))
    assert (found == np.pad(source, ((0, 0), (0, 0), (1, 0)))[:, :, :3]).all()
    assert memory[8:11].tolist() == [9, 9, 9]  # between the planes nothing is written


@pytest.mark.parametrize(
    "offset", [(-4, 0, 0), (-9, 0, 0), (9, 0, 0), (0, 9, 0), (0, -9, 0), (5, 2, 0), (0, 0, 7), (-9, 9, -9)]
)
def test_sub_tensor_wholly_outside_crashes(offset):
    found, _, _ = imported((5, 2, 1), (4, 3, 1), offset)
    assert not found.any()


def test_sub_tensor_row_spacing_smaller_than_width_crashes():
    found, _, _ = imported((5, 1, 1), (4, 1, 1), (-1, 0, 0), int_layout=(0, 0))
    assert found.tolist() == [[[0, 1, 2, 3]]]
    with pytest.raises(TransferError, match="at least 4"):
        imported((5, 2, 1), (4, 2, 1), (0, 0, 0), int_layout=(3, 0))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_duplex_elem_size_from_input(scheme):
    space, tile = ttl.create_shape(10, 7), ttl.create_shape(4, 3)
    source, target = np.arange(70, dtype=np.uint8), np.zeros(70, np.uint32)
    ext_in = ttl.to_void_tensor(ttl.create_ext_tensor(source, space))
    ext_out = ttl.to_void_tensor(ttl.create_ext_tensor(target, space))
    tiler = ttl.create_tiler(space, tile)
    sizes = set()

    def compute(imported_to, to_export_from):
        sizes.add((imported_to.elem_size, to_export_from.elem_size))
        to_export_from.array().view(np.uint32)[...] = 1000 * imported_to.array().view(np.uint8).astype(np.uint32)

    for _ in SCHEMES[scheme](ext_in, ext_out, tiler, tiler, compute, ttl.get_event):
        pass
    assert sizes == {(1, 4)}
    assert (target == 1000 * source.astype(np.uint32)).all()


def test_copy_uses_internal_shape_and_elem_size():
    inside = ttl.create_int_tensor(np.zeros(12, np.uint8), ttl.create_shape(4, 3))
    for other, message in (
        (ttl.create_ext_tensor(np.zeros(12, np.uint8), ttl.create_shape(3, 4)), "differ"),
        (ttl.create_ext_tensor(np.zeros(12, np.int16), ttl.create_shape(4, 3)), "external ones 2"),
        (ttl.create_ext_tensor(np.zeros(12, np.int8), ttl.create_shape(4, 3)), "external ones int8"),
    ):
        for move in (ttl.blocking_import, ttl.blocking_export):
            with pytest.raises(TransferError, match=message):
                move(inside, other)


@pytest.mark.parametrize("completion", COMPLETIONS)
def test_simplex_race_without_fence(completion):
    """As shipped, simplex is wrong where an import may overtake an export; ordered, it is right everywhere."""
    space, tile = ttl.create_shape(40), ttl.create_shape(4)
    source = np.arange(1, 41, dtype=np.int32)
    tiler = ttl.create_tiler(space, tile)
    results = {}
    for shipped in (False, True):
        target = np.zeros(40, np.int32)
        tensors = ttl.create_ext_tensor(source, space), ttl.create_ext_tensor(target, space)
        engine = SimulatedQueue(completion)

        def copy(imported_to, to_export_from):
            to_export_from.array()[...] = imported_to.array()

        for _ in SCHEMES["simplex"](
            *tensors, tiler, tiler, copy, lambda engine=engine: ttl.get_event(engine), shipped=shipped
        ):
            pass
        results[shipped] = (target == source).all()
    assert results[False]
    assert results[True] == (completion not in ("imports_first", "lifo"))


def test_empty_predicates():
    assert ttl.shape_empty(ttl.create_shape(5, 0))
    assert ttl.shape_empty(ttl.create_shape(0, 3, 3))
    assert ttl.create_empty_tile().shape == ttl.create_shape(0, 1, 1)
    tiler = ttl.create_tiler(ttl.create_shape(4), ttl.create_shape(2))
    assert ttl.get_tile(9, tiler).shape == ttl.create_shape(0, 0, 0)
    nothing = ttl.create_empty_int_sub_tensor()
    something = ttl.create_int_sub_tensor(ttl.create_int_tensor(bytearray(4), ttl.create_shape(4), 1))
    assert ttl.tensors_empty(ttl.create_io_tensors(nothing, something))
    assert not ttl.tensors_empty(ttl.create_io_tensors(something, nothing))
    assert ttl.valid_int_tensor(something)
    assert not ttl.valid_int_tensor(nothing)


def test_void_memory_needs_an_element_size():
    with pytest.raises(LayoutError, match="give elem_size"):
        ttl.create_int_tensor(bytearray(12), ttl.create_shape(4, 3))


def test_a_buffer_that_is_too_small_is_refused():
    space, tile = ttl.create_shape(40), ttl.create_shape(8)
    tiler = ttl.create_tiler(space, tile)
    ext = ttl.create_ext_tensor(np.zeros(40, np.int32), space)
    with pytest.raises(TransferError, match="covers bytes 0 to 32, but the memory has 28 bytes"):
        ttl.start_import_double_buffering(bytearray(28), bytearray(32), ext, ttl.get_event(), ttl.get_tile(0, tiler))


def test_const_stays_const():
    const = ttl.to_const_tensor(ttl.create_int_tensor(np.zeros(4, np.uint8), ttl.create_shape(4)))
    with pytest.raises(TransferError, match="const"):
        ttl.write_tensor(const, 1, 0)
    with pytest.raises(TransferError, match="is const; create a const tensor"):
        ttl.create_int_sub_tensor(const)
    with pytest.raises(TransferError, match="const"):
        ttl.blocking_import(const, ttl.create_ext_tensor(np.zeros(4, np.uint8), ttl.create_shape(4)))
    with pytest.raises(TransferError, match="const"):
        ttl.blocking_export(const, ttl.create_const_ext_tensor(np.zeros(4, np.uint8), ttl.create_shape(4)))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_leaving_a_loop_early_retires_what_is_in_flight(scheme):
    space, tile = ttl.create_shape(40), ttl.create_shape(4)
    tiler = ttl.create_tiler(space, tile)
    source, target = np.arange(1, 41, dtype=np.int32), np.zeros(40, np.int32)
    ext_in, ext_out = ttl.create_ext_tensor(source, space), ttl.create_ext_tensor(target, space)
    engine = SimulatedQueue("fifo")
    events = [ttl.get_event(engine), ttl.get_event(engine)]
    buffers = [scratch_tensor(tiler, np.int32) for _ in range(4)]
    if scheme == "double":
        reading = ttl.start_import_double_buffering(buffers[0], buffers[1], ext_in, events[0], ttl.get_tile(0, tiler))
        writing = ttl.start_export_double_buffering(buffers[2], buffers[3], ext_out, events[1])
        started = [reading, writing]
    elif scheme == "duplex":
        started = [ttl.start_duplex_buffering(ext_in, buffers[0], ext_out, buffers[1], events, ttl.get_tile(0, tiler))]
    else:
        started = [ttl.start_simplex_buffering(*buffers[:3], ext_in, ext_out, *events, ttl.get_tile(0, tiler))]
    for i in range(3):
        if scheme == "double":
            imported_to = ttl.step_buffering(started[0], ttl.get_tile(i + 1, tiler))
            to_export_from = ttl.step_buffering(started[1], ttl.get_tile(i, tiler))
        else:
            ahead = i if scheme == "duplex" else i + 1
            tensors = ttl.step_buffering(started[0], ttl.get_tile(ahead, tiler), ttl.get_tile(i, tiler))
            imported_to, to_export_from = tensors.imported_to, tensors.to_export_from
        to_export_from.array()[...] = imported_to.array()
    for one in started:
        ttl.finish_buffering(one)
    assert not engine.pending
    assert target.tolist() == [*range(1, 13), *([0] * 28)]


def test_values_that_the_element_type_does_not_have_are_refused():
    tensor = ttl.create_int_tensor(np.zeros(12, np.uint8), ttl.create_shape(4, 3))
    for value in (1.5, 300, -1, float("nan")):
        with pytest.raises(FormatError, match="is not a value of uint8, which holds whole numbers from 0 to 255"):
            ttl.write_tensor(tensor, value, 1, 1)
        with pytest.raises(FormatError, match="is not a value of uint8"):
            tensor.base[5] = value
    assert not tensor.array().any()
    ttl.write_tensor(tensor, 7.0, 1, 1)
    assert ttl.read_tensor(tensor, 1, 1) == 7
