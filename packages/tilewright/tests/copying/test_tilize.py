# SPDX-License-Identifier: Apache-2.0
"""tilize and untilize against a model in plain NumPy: one reshape, one transpose."""

import tracemalloc
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.copying import tilize, untilize
from tilewright.errors import FormatError, LayoutError, TransferError
from tilewright.formats import BLOCK_FORMATS, SCALAR_FORMATS, bfloat8_b, cast, format_of
from tilewright.layout import tiled_layout

from ..cases import all_cases, examples
from .models import (
    SCALARS,
    any_bits,
    as_bytes,
    assert_same_bits,
    fitting,
    numbers,
    opencl_step,
    padded_shape,
    padding,
    poisoned,
    require,
    tilized,
    untilized,
)

MIB = 1 << 20
fewer = settings(max_examples=max(1, settings().max_examples // 2))
seeds = st.integers(0, 2**32 - 1)


def divisors(n):
    return [k for k in range(1, n + 1) if n % k == 0]


@st.composite
def shapes(draw, empty=False):
    """Return ranks 1 to 5 of small extents, of which two at most are large enough to meet several tiles."""
    rank = draw(st.integers(1, 5))
    outer = [draw(st.integers(1, 3)) for _ in range(max(0, rank - 2))]
    matrix = [draw(st.one_of(st.just(1), st.integers(1, 40))) for _ in range(min(rank, 2))]
    shape = [*outer, *matrix]
    if empty:
        shape[draw(st.integers(0, rank - 1))] = 0
    return tuple(shape)


@st.composite
def tilings(draw):
    """Return tile, face and transpose: any tile, and any face that divides it, or is larger, or none."""
    tile = (draw(st.integers(1, 20)), draw(st.integers(1, 20)))
    # a face that is larger than the tile is cut down to it
    sides = [draw(st.one_of(st.sampled_from(divisors(n)), st.integers(n, 3 * n))) for n in tile]
    return {"tile": tile, "face": draw(st.sampled_from([None, tuple(sides)])), "transpose": draw(st.booleans())}


@st.composite
def views(draw, shape, element):
    """Return an array of a shape that may step through its memory in any way that NumPy knows."""
    rng = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(["plain", "reversed", "transposed", "broadcast", "sliced", "odd address"]))
    if kind == "transposed":
        order = draw(st.permutations(range(len(shape))))
        array = any_bits(rng, tuple(shape[k] for k in order), element)
        array = array.transpose(np.argsort(order))
    elif kind == "broadcast":
        held = tuple(draw(st.sampled_from([1, n])) for n in shape)
        array = np.broadcast_to(any_bits(rng, held, element), shape)
    elif kind == "sliced":
        array = any_bits(rng, tuple(3 * n + 2 for n in shape), element)
        steps = [draw(st.integers(1, 3)) for _ in shape]
        array = array[tuple(slice(1, 1 + n * s, s) for n, s in zip(shape, steps, strict=True))]
    elif kind == "odd address":
        whole = any_bits(rng, shape, element)
        memory = np.zeros(whole.nbytes + 1, dtype=np.uint8)
        array = np.ndarray(shape, whole.dtype, memory, offset=1)
        array[...] = whole
    else:
        array = any_bits(rng, shape, element)
    if kind == "reversed":
        array = array[tuple(slice(None, None, draw(st.sampled_from([1, -1]))) for _ in shape)]
    assert array.shape == tuple(shape)
    return array


# The laws.


@given(data=st.data(), shape=shapes(), tiling=tilings(), element=st.sampled_from(SCALARS))
def test_tilize_is_one_reshape_and_one_transpose(engine, data, shape, tiling, element):
    array = data.draw(views(shape, element))
    before = array.copy()
    assert_same_bits(tilize(array, **tiling, **engine), tilized(array, **tiling))
    assert_same_bits(array, before)


@given(data=st.data(), shape=shapes(), tiling=tilings(), element=st.sampled_from(SCALARS))
def test_untilize_finds_every_element_again(engine, data, shape, tiling, element):
    whole = padded_shape((1,) * (2 - len(shape)) + shape, tiling["tile"])
    flat = any_bits(np.random.default_rng(data.draw(seeds)), (prod(whole),), element)
    assert_same_bits(untilize(flat, shape, **tiling, **engine), untilized(flat, shape, **tiling))


@given(data=st.data(), shape=shapes(), tiling=tilings(), element=st.sampled_from(SCALARS))
@fewer
def test_untilize_undoes_tilize(engine, data, shape, tiling, element):
    array = data.draw(views(shape, element))
    assert_same_bits(untilize(tilize(array, **tiling, **engine), shape, **tiling, **engine), array)


PADS = st.one_of(st.integers(-300, 300), st.floats(width=32), st.sampled_from([-0.0, 0.1, 1e30, True]))


@given(
    data=st.data(),
    shape=shapes(),
    tiling=tilings(),
    elements=st.tuples(st.sampled_from(SCALARS), st.sampled_from(SCALARS)),
    pad=PADS,
)
def test_elements_and_pad_value_are_converted_on_the_way_in(engine, data, shape, tiling, elements, pad):
    array, pad = data.draw(views(shape, elements[0])), fitting(pad, elements[0])
    wanted = tilized(cast(array, elements[1]), **tiling, pad=padding(pad, *elements))
    assert_same_bits(tilize(array, **tiling, dtype=elements[1], pad_value=pad, **engine), wanted)


@given(
    data=st.data(),
    shape=shapes(),
    tiling=tilings(),
    elements=st.tuples(st.sampled_from(SCALARS), st.sampled_from(SCALARS)),
)
@fewer
def test_elements_are_converted_on_the_way_out(engine, data, shape, tiling, elements):
    flat = tilized(any_bits(np.random.default_rng(data.draw(seeds)), shape, elements[0]), **tiling)
    wanted = cast(untilized(flat, shape, **tiling), elements[1])
    assert_same_bits(untilize(flat, shape, **tiling, out_dtype=elements[1], **engine), wanted)


@all_cases(("transpose", [False, True]), ("element", SCALARS), step=opencl_step)
def test_every_scalar_format_is_tilized_in_the_standard_tiles(engine, element, transpose):
    rng = np.random.default_rng(3)
    array = any_bits(rng, (2, 70, 90), element)
    flat = tilized(array, transpose=transpose)
    assert_same_bits(tilize(array, transpose=transpose, **engine), flat)
    assert_same_bits(untilize(flat, array.shape, transpose=transpose, **engine), array)


@given(shape=shapes(empty=True), tiling=tilings(), element=st.sampled_from([*SCALARS, "bfloat8_b"]))
@fewer
def test_an_empty_array_has_no_bytes_and_comes_back_empty(engine, shape, tiling, element):
    if element == "bfloat8_b":
        tiling = {"tile": (4, 16)}
    nothing = np.empty(shape, dtype=format_of("float32" if element == "bfloat8_b" else element).dtype)
    flat = tilize(nothing, **tiling, dtype=element, **engine)
    assert flat.size == 0
    back = untilize(flat, shape, **tiling, dtype=element, **engine)
    assert back.shape == shape
    assert back.dtype == nothing.dtype


@given(tiling=tilings(), value=st.integers(-100, 100))
@fewer
def test_a_single_number_fills_the_first_place_of_one_tile(engine, tiling, value):
    flat = tilize(np.int16(value), **tiling, pad_value=101, **engine)
    assert flat.tolist() == [value] + [101] * (prod(tiling["tile"]) - 1)
    assert untilize(flat, (), **tiling, **engine).item() == value


@given(shape=shapes(), tiling=tilings())
@fewer
def test_the_tiled_layout_says_where_tilize_puts_each_element(engine, shape, tiling):
    matrix = (1,) * (2 - len(shape)) + shape
    counted = np.arange(1, prod(shape) + 1, dtype=np.int32).reshape(matrix)
    flat = tilize(counted.reshape(shape), **tiling, **engine)
    layout = tiled_layout(shape, **tiling)
    assert layout.size == flat.size
    for index in np.ndindex(*matrix):
        assert flat[layout(*index)] == counted[index]


@all_cases(("outer", [(), (3,), (2, 1, 4)]), step=opencl_step)
def test_outer_dimensions_fold_into_one_matrix_after_the_other(engine, outer):
    array = any_bits(np.random.default_rng(5), (*outer, 17, 40), "uint16")
    one_by_one = [tilize(matrix, **engine) for matrix in array.reshape(-1, 17, 40)]
    assert_same_bits(tilize(array, **engine), np.concatenate(one_by_one))


# The example of the tilized-layout document.


def test_the_four_by_eight_example_holds_to_the_byte(engine):
    data = tilize(np.arange(32, dtype=np.uint8).reshape(4, 8), tile=(2, 2), face=None, **engine)
    rows = {0x0: [0, 1], 0x2: [8, 9], 0x4: [2, 3], 0x6: [10, 11], 0x8: [4, 5], 0xA: [12, 13], 0xC: [6, 7]}
    rows |= {0xE: [14, 15], 0x10: [16, 17], 0x12: [24, 25], 0x14: [18, 19], 0x16: [26, 27], 0x18: [20, 21]}
    rows |= {0x1A: [28, 29], 0x1C: [22, 23], 0x1E: [30, 31]}
    assert sorted(rows) == list(range(0, 32, 2))
    for offset, row in rows.items():
        assert data[offset : offset + 2].tolist() == row


@all_cases(("row, column", [(0, 0), (1, 17), (15, 31), (16, 0), (31, 15), (20, 25)]), step=opencl_step)
def test_the_place_in_a_tile_of_32_is_face_then_row_then_column(engine, row, column):
    array = np.zeros((32, 32), dtype=np.int32)
    array[row, column] = 7
    place = ((row // 16) * 2 + column // 16) * 256 + (row % 16) * 16 + column % 16
    assert np.flatnonzero(tilize(array, **engine)).tolist() == [place]


# Blocks.

BLOCK_TILES = [
    ({"tile": (32, 32)}, (40, 70)),
    ({"tile": (32, 32), "transpose": True}, (40, 70)),
    ({"tile": (32, 32), "face": None}, (33, 64)),
    ({"tile": (16, 32)}, (2, 17, 33)),
    ({"tile": (32, 16)}, (33, 5)),
    ({"tile": (16, 16), "transpose": True}, (3, 2, 9, 20)),
    ({"tile": (8, 32), "face": (8, 16)}, (20, 64)),
    ({"tile": (64, 64), "face": (32, 16)}, (70, 100)),
    ({"tile": (8, 64), "face": (4, 8)}, (9, 65)),
]


@all_cases(("name", BLOCK_FORMATS), ("tiling, shape", BLOCK_TILES), step=opencl_step)
def test_blocks_are_packed_from_the_padded_physical_order(engine, name, tiling, shape):
    require(engine, name)
    element = BLOCK_FORMATS[name]
    array = numbers(np.random.default_rng(7), shape)
    wanted = element.pack(tilized(array, **tiling, pad=np.float32(0.75)), tile_elements=prod(tiling["tile"]))
    assert_same_bits(tilize(array, **tiling, dtype=element, pad_value=0.75, **engine), wanted)


@all_cases(("name", BLOCK_FORMATS), ("tiling, shape", BLOCK_TILES), step=opencl_step)
def test_blocks_are_unpacked_to_logical_order(engine, name, tiling, shape):
    require(engine, name)
    element, elements = BLOCK_FORMATS[name], prod(tiling["tile"])
    lifted = padded_shape(shape, tiling["tile"])
    flat = numbers(np.random.default_rng(8), (prod(lifted),))
    data = element.pack(flat, tile_elements=elements)
    wanted = untilized(element.unpack(data, tile_elements=elements), shape, **tiling)
    assert_same_bits(untilize(data, shape, **tiling, dtype=element, **engine), wanted)


@all_cases(("name", [name for name in BLOCK_FORMATS if name.startswith("bfloat")]), step=opencl_step)
def test_any_bytes_can_be_unpacked(engine, name):
    require(engine, name)
    element = BLOCK_FORMATS[name]
    data = any_bits(np.random.default_rng(9), (2 * element.bytes_per_tile(1024),), "uint8")
    if name.endswith("_a"):  # five bits of exponent
        data.reshape(2, -1)[:, :64] &= 31
    wanted = untilized(element.unpack(data), (32, 64))
    assert_same_bits(untilize(data, (32, 64), dtype=element, **engine), wanted)


@st.composite
def block_tilings(draw, block):
    """Return tilings whose blocks lie in rows of faces, in columns of faces, or across several of them."""
    high, wide = draw(st.sampled_from([(block, 1), (1, block), (2, block // 2), (block // 4, 8), (4, block)]))
    down, across = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return {"tile": (high * down, wide * across), "face": (high, wide), "transpose": draw(st.booleans())}


@pytest.mark.parametrize("name", ["bfloat8_b", "bfloat4_b", "bfloat2_b", "bfloat8_a", "mxfp6_e3m2", "mxint8"])
@given(data=st.data(), shape=shapes(), source=st.sampled_from(SCALARS), pad=PADS)
@examples(20)
def test_random_arrays_of_any_format_are_packed_like_the_model(engine, name, data, shape, source, pad):
    require(engine, name)
    element = BLOCK_FORMATS[name]
    tiling = data.draw(block_tilings(element.block))
    elements = prod(tiling["tile"])
    array, pad = data.draw(views(shape, source)), fitting(pad, source)
    wanted = element.pack(tilized(cast(array, "float32"), **tiling, pad=padding(pad, source, "float32")), elements)
    out = np.zeros_like(wanted)
    assert_same_bits(tilize(array, **tiling, dtype=element, pad_value=pad, out=out, **engine), wanted)
    logical = cast(untilized(element.unpack(wanted, elements), shape, **tiling), source)
    assert_same_bits(untilize(wanted, shape, **tiling, dtype=element, out_dtype=source, **engine), logical)


def test_padding_belongs_to_its_block(engine):
    array = np.arange(1, 8, dtype=np.float32)
    flattened = tilize(array, dtype="bfloat8_b", pad_value=1000, **engine)
    assert untilize(flattened, 7, dtype="bfloat8_b", **engine).tolist() == [0, 0, 0, 0, 8, 8, 8]
    clean = tilize(array, dtype="bfloat8_b", **engine)
    assert untilize(clean, 7, dtype="bfloat8_b", **engine).tolist() == array.tolist()


@all_cases(("rows", range(1, 18)), step=opencl_step)
def test_a_block_that_is_partly_padding_takes_the_pad_value(engine, rows):
    array = np.full((rows, 16), 3.0, dtype=np.float32)
    data = tilize(array, tile=(32, 16), transpose=True, dtype="bfloat8_b", pad_value=5, **engine)
    values = bfloat8_b.unpack(data, tile_elements=512).reshape(2, 16, 16)  # faces, columns, rows
    wanted = np.concatenate([values[0], values[1]], axis=1)
    assert (wanted[:, :rows] == 3).all()
    assert (wanted[:, rows:] == 5).all()


def test_the_sizes_of_tiles_are_those_of_the_hardware(engine):
    array = np.ones((32, 32), dtype=np.float32)
    sizes = {name: tilize(array, dtype=name, **engine).nbytes for name in ("bfloat8_b", "bfloat4_b", "bfloat2_b")}
    assert sizes == {"bfloat8_b": 1088, "bfloat4_b": 576, "bfloat2_b": 320}


# Where the result goes.


@given(
    shape=shapes(), tiling=tilings(), elements=st.tuples(st.sampled_from(SCALARS), st.sampled_from(SCALARS)), seed=seeds
)
@fewer
def test_the_result_can_go_into_memory_that_is_there(engine, shape, tiling, elements, seed):
    array = any_bits(np.random.default_rng(seed), shape, elements[0])
    wanted = tilized(cast(array, elements[1]), **tiling)
    out = poisoned(wanted.size, wanted.dtype)
    got = tilize(array, **tiling, dtype=elements[1], out=out, **engine)
    assert np.shares_memory(got, out)
    assert_same_bits(out, wanted)


def test_out_may_have_any_shape_of_the_right_size(engine):
    array = any_bits(np.random.default_rng(1), (64, 64), "float32")
    out = poisoned(4096, "float32").reshape(4, 32, 32)
    tilize(array, out=out, **engine)
    assert_same_bits(out.reshape(-1), tilized(array))


@all_cases(("element", ["float32", "bfloat16", "bfloat8_b"]), step=opencl_step)
def test_out_may_be_a_memory_map(engine, tmp_path, element):
    array = numbers(np.random.default_rng(2), (100, 200))
    wanted = tilize(array, dtype=element, engine="reference")
    path = tmp_path / "tiles.bin"
    out = np.memmap(path, dtype=wanted.dtype, mode="w+", shape=wanted.shape)
    tilize(array, dtype=element, out=out, **engine)
    out.flush()
    assert path.read_bytes() == wanted.tobytes()


def test_a_memory_map_can_be_read_without_being_writeable(engine, tmp_path):
    array = any_bits(np.random.default_rng(4), (70, 50), "int16")
    array.tofile(tmp_path / "array.bin")
    mapped = np.memmap(tmp_path / "array.bin", dtype=np.int16, mode="r", shape=(70, 50))
    assert_same_bits(np.asarray(tilize(mapped, **engine)), tilized(array))


def test_untilize_writes_into_any_view_of_the_right_shape(engine):
    array = any_bits(np.random.default_rng(6), (40, 50), "int32")
    memory = poisoned(100 * 200, "int32").reshape(100, 200)
    window = memory[90:10:-2, 7:157:3]
    got = untilize(tilized(array), (40, 50), out=window, **engine)
    assert np.shares_memory(got, memory)
    assert_same_bits(window.copy(), array)
    assert (memory == poisoned(1, "int32")).sum() == memory.size - array.size


@all_cases(("element", ["float32", "bfloat8_b"]), step=opencl_step)
def test_a_read_only_array_is_a_good_source(engine, element):
    array = numbers(np.random.default_rng(7), (40, 50))
    wanted = tilize(array, dtype=element, **engine)
    array.flags.writeable = False
    assert_same_bits(tilize(array, dtype=element, **engine), wanted)
    wanted.flags.writeable = False
    assert untilize(wanted, (40, 50), dtype=element, **engine).flags.writeable


# What is refused.


@all_cases(
    (
        "out",
        [
            np.zeros(1023, dtype=np.float32),
            np.zeros(1025, dtype=np.float32),
            np.zeros(1024, dtype=np.int32),
            np.zeros(1024, dtype=">f4"),
            np.zeros(2048, dtype=np.float32)[::2],
        ],
    ),
    name=["too small", "too large", "other type", "other byte order", "not contiguous"],
    step=opencl_step,
)
def test_a_wrong_out_is_refused_and_left_alone(engine, out):
    with pytest.raises(LayoutError, match="1024 x float32"):
        tilize(np.ones((32, 32), dtype=np.float32), out=out, **engine)
    assert not out.any()


def test_blocks_go_into_bytes_only(engine):
    with pytest.raises(LayoutError, match="1088 x uint8"):
        tilize(np.ones((32, 32), dtype=np.float32), dtype="bfloat8_b", out=np.zeros(272, dtype=np.float32), **engine)


def test_a_read_only_out_is_refused(engine):
    out = np.zeros(1024, dtype=np.float32)
    out.flags.writeable = False
    with pytest.raises(TransferError, match="read-only"):
        tilize(np.ones((32, 32), dtype=np.float32), out=out, **engine)
    assert not out.any()


def test_untilize_refuses_an_out_of_another_shape(engine):
    with pytest.raises(LayoutError, match=r"\(3, 4\).*\(4, 3\)"):
        untilize(np.zeros(1024), (4, 3), out=np.zeros((3, 4)), **engine)


def test_untilize_refuses_too_few_bytes(engine):
    with pytest.raises(FormatError, match="4096"):
        untilize(np.zeros(1023, dtype=np.float32), (4, 3), **engine)
    with pytest.raises(FormatError, match="1088"):
        untilize(np.zeros(1087, dtype=np.uint8), (4, 3), dtype="bfloat8_b", **engine)


def test_untilize_refuses_data_with_gaps(engine):
    with pytest.raises(LayoutError, match="contiguous"):
        untilize(np.zeros(2048)[::2], (4, 3), **engine)


def test_a_logical_array_holds_no_blocks(engine):
    with pytest.raises(FormatError, match="bfloat8_b"):
        untilize(np.zeros(1024, dtype=np.float32), (4, 3), out_dtype="bfloat8_b", **engine)


@all_cases(
    ("dtype", [[("a", "<i4"), ("b", "<f4")], np.complex64, "M8[s]", "S4", object]),
    name=lambda dtype: str(dtype)[:12],
    step=opencl_step,
)
def test_what_is_not_a_number_of_ours_is_refused_by_name(engine, dtype):
    with pytest.raises(FormatError, match="expected a scalar format"):
        tilize(np.zeros((4, 4), dtype=dtype), **engine)


@all_cases(("tile", [32, (32,), (32, 32, 1), (0, 32), (32, -1), "32"]), step=opencl_step)
def test_a_tile_has_a_height_and_a_width(engine, tile):
    with pytest.raises(LayoutError, match="tile"):
        tilize(np.ones((4, 4)), tile=tile, **engine)


@all_cases(("tile, face", [((32, 32), (5, 16)), ((32, 32), (16, 12)), ((24, 32), (16, 16))]), step=opencl_step)
def test_faces_divide_their_tile(engine, tile, face):
    with pytest.raises(LayoutError, match="do not divide"):
        tilize(np.ones((4, 4)), tile=tile, face=face, **engine)


@all_cases(("tile", [(3, 5), (1, 8), (5, 5)]), step=opencl_step)
def test_a_tile_of_blocks_is_a_whole_number_of_blocks(engine, tile):
    with pytest.raises(LayoutError, match="16"):
        tilize(np.ones((4, 4)), tile=tile, face=None, dtype="bfloat8_b", **engine)


def test_an_unknown_format_is_refused(engine):
    with pytest.raises(FormatError, match="float7"):
        tilize(np.ones((4, 4)), dtype="float7", **engine)


# Memory.


@all_cases(("element", ["float32", "bfloat16", "bfloat8_b", "bfloat4_b"]), step=opencl_step)
def test_a_large_move_needs_no_large_temporary(engine, element):
    array = np.zeros((2048, 2048), dtype=np.float32)
    assert array.nbytes == 16 * MIB
    array[::512, ::512] = 1.5
    bytes_per_tile = format_of(element).bytes_per_tile(1024)
    out = np.zeros(64 * 64 * bytes_per_tile, dtype=np.uint8)
    typed = out if element.endswith("_b") else out.view(format_of(element).dtype)
    back = np.ones_like(array)
    tracemalloc.start()
    try:
        tilize(array, dtype=element, out=typed, **engine)
        untilize(typed, array.shape, dtype=element, out=back, **engine)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * MIB
    assert as_bytes(back).tobytes() == array.tobytes()


def test_every_scalar_format_was_among_the_random_ones():
    assert set(SCALARS) == set(SCALAR_FORMATS)
    assert len(SCALARS) == 15
    assert len(BLOCK_FORMATS) == 13


def test_a_pad_value_must_be_a_value_of_the_source():
    assert tilize(np.ones((1, 1), np.float32), dtype="int32", pad_value=-3.7)[1] == -3  # converted like the data
    with pytest.raises(FormatError, match=r"converted like the data, from int32: 1\.5 is not a value of int32"):
        tilize(np.ones((1, 1), np.int32), dtype="float32", pad_value=1.5)
    with pytest.raises(FormatError, match="300 is not a value of uint8, which holds whole numbers from 0 to 255"):
        tilize(np.ones((1, 1), np.uint8), pad_value=300)
    assert tilize(np.ones((32, 32), np.uint8), pad_value=300).sum() == 1024  # nothing is padded


def test_data_of_another_format_or_shape_is_not_read_as_this_one():
    packed = tilize(np.ones((60, 90), np.float32), dtype="bfloat8_b")
    with pytest.raises(FormatError, match=r"needs 6144 bytes, but the data has 6528; check .* dtype"):
        untilize(packed, (60, 90))
    with pytest.raises(FormatError, match="needs 4352 bytes, but the data has 6528"):
        untilize(packed, (60, 64), dtype="bfloat8_b")
