# SPDX-License-Identifier: Apache-2.0
"""The reference page of `ttnn.Tensor`, statement by statement."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest

import tilewright as tw
import tilewright.ttnn as ttnn
from tilewright import LayoutError, MemoryConfigError, TransferError, views

from .statements import shows

RANKS_ARE_DATED = "dated: ttnn 0.81.1 accepts any rank, and so does the dialect; ttnn.strict() enforces the rule"
WIDTHS_ARE_DATED = (
    "dated: ttnn 0.81.1 accepts any width; width_multiple knows the rule, fit notes it, and ttnn.strict() enforces it"
)


@pytest.fixture
def device():
    with ttnn.manage_device(device_id=0) as opened:
        yield opened


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def counted(*shape, dtype=np.float32):
    """Return an array of a shape in which every element has its own number."""
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def packed(values):
    """Return the values of an array after a trip through bfloat8_b."""
    tensor = ttnn.from_torch(np.asarray(values, np.float32), dtype=ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT)
    return ttnn.to_numpy(tensor)


def sharded_config(shape=(64, 64)):
    """Return the config of the document's example: 2 x 2 cores, shards of 64 x 64, block sharded, row-major."""
    return ttnn.create_sharded_memory_config(
        shape,
        core_grid=ttnn.CoreGrid(y=2, x=2),
        strategy=ttnn.ShardStrategy.BLOCK,
        orientation=ttnn.ShardOrientation.ROW_MAJOR,
        use_height_and_width_as_shard_shape=True,
    )


def shown(subject, **options):
    """Return what an object prints when it is shown."""
    out = io.StringIO()
    with redirect_stdout(out):
        subject.show(**options)
    return out.getvalue()


def printed(value):
    """Return what print writes."""
    out = io.StringIO()
    with redirect_stdout(out):
        print(value)
    return out.getvalue().removesuffix("\n")


# Tensors and shapes.


@shows("N1", "5", "A ttnn.Tensor is a multi-dimensional matrix of a single data type")
@shows("N3", "10", "It stores its shape as a ttnn.Shape")
def test_a_tensor_has_one_type_and_a_shape():
    tensor = ttnn.Tensor(ones(2, 3, 4))
    assert (tensor.dtype, tensor.shape) == (ttnn.float32, ttnn.Shape([2, 3, 4]))
    assert type(tensor.shape) is ttnn.Shape


@shows("N2", "5", "It is made of an array, or of a list and a shape")
def test_constructors():
    listed = ttnn.Tensor([1, 2, 3, 4], [2, 2], ttnn.float32, ttnn.ROW_MAJOR_LAYOUT)
    assert listed.to_list() == ttnn.Tensor(counted(2, 2) + 1).to_list() == [[1.0, 2.0], [3.0, 4.0]]
    assert (listed.dtype, listed.layout) == (ttnn.float32, ttnn.ROW_MAJOR_LAYOUT)


@shows("N4", "12", "A shape stores ranks from 1 to 8")
@shows("N8", "12", "and so does a tensor, in tiles, too")
def test_ranks_1_to_8():
    for rank in range(1, 9):
        assert ttnn.Shape([2] * rank).rank == rank
        tensor = ttnn.from_torch(ones(*[2] * rank), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
        assert tensor.shape == [2] * rank
        assert tensor.padded_shape == [*[2] * (rank - 2), 32, 32]


@shows("N5", "12", "The least rank of a shape is 1", differs=RANKS_ARE_DATED)
@shows("N6", "12", "The largest rank of a shape is 8", differs=RANKS_ARE_DATED)
@shows("N7", "12", "The largest rank of a tensor is 8", differs=RANKS_ARE_DATED)
def test_other_ranks():
    assert ttnn.Shape([]).rank == 0
    assert ttnn.Shape([2] * 9).rank == 9
    assert ttnn.from_torch(ones(*[1] * 9)).shape == [1] * 9
    rule = "allow ranks from 1 to 8, got"
    with ttnn.strict():
        for extents in ([], [2] * 9):
            with pytest.raises(LayoutError, match=f"{rule} {len(extents)}"):
                ttnn.Shape(extents)
            with pytest.raises(LayoutError, match=f"{rule} {len(extents)}"):
                ttnn.from_torch(ones(*extents))
            with pytest.raises(LayoutError, match=f"{rule} {len(extents)}"):
                ttnn.TensorSpec(extents, ttnn.bfloat16, ttnn.TILE_LAYOUT)
        test_ranks_1_to_8()


@shows("N9", "14", "A shape stores the actual and the padded extents")
@shows("N15", "33-34", "ttnn.Shape([14, 28], [32, 32]) has 14 rows and 28 columns, padded to 32 and 32")
@shows("N16", "35", "It has 32 * 32 elements in the storage")
def test_a_padded_shape():
    shape = ttnn.Shape([14, 28], [32, 32])
    assert (shape[0], shape[1], shape.logical, shape.padded) == (14, 28, (14, 28), (32, 32))
    assert (shape.volume(), shape.logical_volume()) == (32 * 32, 14 * 28)


@shows("N10", "16", "ttnn.Shape([16, 32]) has 16 rows and 32 columns")
@shows("N11", "17", "Its padded extents are the actual ones")
@shows("N12", "17", "It has 16 * 32 elements in the storage")
def test_a_shape_without_padding():
    shape = ttnn.Shape([16, 32])
    assert (shape[0], shape[1], list(shape), len(shape)) == (16, 32, [16, 32], 2)
    assert shape.padded == (16, 32)
    assert shape.volume() == 16 * 32


def rows_of(text):
    """Return the rows of the first panel of a picture, without the names of rows."""
    lines = text.splitlines()
    return [line.split()[1:] for line in lines[4 : lines.index("", 4)] if line.split()[0].isdigit()]


@shows("N13", "19-23", "Figure: a tensor with 16 rows and 32 columns")
@shows("N17", "37-41", "Figure: 14 rows and 28 columns, padded to a tile of 32 x 32")
@shows("N94", "37-41", "The objects of ttnn have pictures")
def test_pictures_of_shapes():
    assert rows_of(shown(ttnn.Shape([16, 32]))) == [["·"] * 32] * 16
    padded = ttnn.Shape([14, 28], [32, 32])
    assert rows_of(shown(padded)) == [["·"] * 28 + ["/"] * 4] * 14 + [["/"] * 32] * 18
    assert shown(padded).startswith("ttnn.Shape([14[32], 28[32]])")
    assert "/ padding" in shown(padded)
    tensor = ttnn.from_torch(counted(4, 4))
    assert rows_of(shown(tensor)) == [[str(4 * row + column) for column in range(4)] for row in range(4)]
    for subject in (padded, tensor, tensor.spec, sharded_config()):
        assert subject._repr_html_().startswith("<div")
    assert "Core (1,1)" in shown(sharded_config())
    assert shown(ttnn.DRAM_MEMORY_CONFIG).startswith("interleaved in DRAM: 16 pages in turn over the 12 banks of")


@shows("N14", "30-31", "print(ttnn.Shape([16, 32])) prints ttnn.Shape([16, 32])")
@shows("N18", "47-48", "print(ttnn.Shape([14, 28], [32, 32])) prints ttnn.Shape([14[32], 28[32]])")
@shows("N19", "55-56", "with_tile_padding() gives ttnn.Shape([32, 32])")
def test_shapes_are_printed():
    assert printed(ttnn.Shape([16, 32])) == "ttnn.Shape([16, 32])"
    assert printed(ttnn.Shape([14, 28], [32, 32])) == "ttnn.Shape([14[32], 28[32]])"
    assert printed(ttnn.Shape([14, 28], [32, 32]).with_tile_padding()) == "ttnn.Shape([32, 32])"
    assert printed(ttnn.Shape([32, 28], [32, 32])) == "ttnn.Shape([32, 28[32]])"


@shows("N20", "47", "The shape of a padded tensor is printed so, too")
@shows("N21", "47", "Printing shows the padding; without print a shape is echoed as ttnn echoes it")
def test_shapes_of_tensors_are_printed():
    tensor = ttnn.from_torch(ones(14, 28), dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
    assert printed(tensor.shape) == "ttnn.Shape([14[32], 28[32]])"
    assert repr(tensor.shape) == "Shape([14, 28])"


@shows("N22", "47", "The padded extents are not smaller than the actual ones")
@shows("N23", "47", "and there are as many")
def test_padded_shapes_are_checked():
    with pytest.raises(MemoryConfigError, match=r"smaller than the logical shape .*; 8 must be at least 28"):
        ttnn.Shape([14, 28], [8, 8])
    ranks = r"padded shape \[32\] has rank 1, the logical shape \[14, 28\] rank 2; give a padded extent for every"
    with pytest.raises(MemoryConfigError, match=ranks):
        ttnn.Shape([14, 28], [32])


@shows("N88", "239-244", "ttnn.Shape has the members of the reference")
@shows("N89", "239-244", "It compares, indexes and iterates as a list")
def test_members_of_a_shape():
    shape = ttnn.Shape([1, 2, 30, 40])
    assert (shape.rank, shape[-1], shape[-3], tuple(shape)) == (4, 40, 2, (1, 2, 30, 40))
    assert shape == [1, 2, 30, 40] == list(shape)
    assert shape != [1, 2, 30, 41]
    assert shape.to_rank(5) == [1, 1, 2, 30, 40]
    assert shape.with_tile_padding() == shape


# Layouts.


@shows("N24", "63-67", "In ROW_MAJOR_LAYOUT the elements of a row lie next to each other")
def test_row_major():
    tensor = ttnn.from_torch(counted(4, 4))
    assert tensor.layout == ttnn.ROW_MAJOR_LAYOUT
    assert np.frombuffer(tensor.native.raw, np.float32).tolist() == list(range(16))


@shows("N25", "69-73", "Figure: a 4 x 4 tensor in row-major layout")
@shows("N33", "83-87", "Figure: a 4 x 4 tensor in tiles of 2 x 2")
def test_pictures_of_layouts():
    rows = rows_of(shown(ttnn.from_torch(counted(4, 4)).spec))
    assert rows == [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9", "10", "11"], ["12", "13", "14", "15"]]
    tiled = rows_of(shown(tw.tiled_layout((4, 4), (2, 2)), memory=False))
    assert tiled == [
        ["0", "1", "│", "4", "5"],
        ["2", "3", "│", "6", "7"],
        ["8", "9", "│", "12", "13"],
        ["10", "11", "│", "14", "15"],
    ]


@shows("N26", "79", "In TILE_LAYOUT elements are placed in tiles of 32 x 32")
@shows("N27", "80", "The tiles are stored in row-major order")
@shows("N28", "80", "ttnn.to_layout makes the transition")
def test_tiles():
    values = counted(64, 96)
    tensor = ttnn.to_layout(ttnn.from_torch(values), ttnn.TILE_LAYOUT)
    assert tensor.layout == ttnn.TILE_LAYOUT
    assert tensor.native.spec.page_shape == (32, 32)
    first_of_tiles = np.frombuffer(tensor.native.raw, np.float32)[::1024]
    assert first_of_tiles.tolist() == values[::32, ::32].ravel().tolist()
    assert (ttnn.to_numpy(tensor) == values).all()


@shows("N29", "81", "Padding is provided if height or width are not divisible by 32")
@shows("N30", "81", "to the last two dimensions")
@shows("N31", "81", "also of a tensor of rank 1")
@shows("N32", "81", "and goes away with the tiles")
def test_padding_is_automatic():
    tensor = ttnn.to_layout(ttnn.from_torch(ones(30, 40)), ttnn.TILE_LAYOUT)
    assert (tensor.shape, tensor.padded_shape, ttnn.to_numpy(tensor).shape) == ([30, 40], [32, 64], (30, 40))
    assert ttnn.to_layout(tensor, ttnn.ROW_MAJOR_LAYOUT).padded_shape == [30, 40]
    outer = ttnn.to_layout(ttnn.from_torch(ones(3, 5, 30, 40)), ttnn.TILE_LAYOUT)
    assert outer.padded_shape == [3, 5, 32, 64]
    assert ttnn.to_layout(ttnn.from_torch(ones(40)), ttnn.TILE_LAYOUT).padded_shape == [32, 64]


@shows(
    "N34",
    "87",
    "Tensors can only have tiles of 32 x 32; tiles of 2 x 2 are an illustration",
    differs="dated: ttnn 0.81.1 has twelve tile shapes, and so has the dialect; 2 x 2 is none of them; ttnn.strict()"
    " enforces the rule",
)
def test_tile_shapes():
    shapes = [(height, width) for height in (32, 16, 8, 4, 2, 1) for width in (32, 16)]
    for shape in shapes:
        tensor = ttnn.from_torch(ones(64, 64), layout=ttnn.TILE_LAYOUT, tile=ttnn.Tile(shape))
        assert tensor.tile.tile_shape == list(shape)
        assert (ttnn.to_numpy(tensor) == 1).all()
    with pytest.raises(MemoryConfigError, match=r"2 x 2|\(2, 2\)"):
        ttnn.from_torch(ones(4, 4), layout=ttnn.TILE_LAYOUT, tile=ttnn.Tile((2, 2)))
    with ttnn.strict():
        assert ttnn.Tile((32, 32)) == ttnn.Tile()
        for shape in shapes[1:]:
            with pytest.raises(MemoryConfigError, match=f"32 x 32 only, got {shape[0]} x {shape[1]}"):
                ttnn.Tile(shape)
            with pytest.raises(MemoryConfigError, match="tiles of 32 x 32 only"):
                ttnn.from_torch(ones(64, 64), layout=ttnn.TILE_LAYOUT, tile=shape)


# Data types.

TYPES = (ttnn.uint16, ttnn.uint32, ttnn.float32, ttnn.bfloat16, ttnn.bfloat8_b)


@shows("N35", "97-101", "The data types are uint16, uint32, float32, bfloat16 and bfloat8_b")
@shows("N36", "97-101", "A tensor of each holds values and gives them back")
def test_data_types():
    assert [dtype.name for dtype in TYPES] == ["UINT16", "UINT32", "FLOAT32", "BFLOAT16", "BFLOAT8_B"]
    for dtype in TYPES:
        tensor = ttnn.from_torch(np.full((32, 32), 3, np.float32), dtype=dtype, layout=ttnn.TILE_LAYOUT)
        assert tensor.dtype == dtype
        assert (ttnn.to_numpy(tensor).astype(np.float32) == 3).all()


@shows("N37", "97-101", "Unsigned types come back as they are")
@shows("N38", "97", "and are taken from arrays of their type")
def test_unsigned_types():
    for dtype, kind in ((ttnn.uint16, np.uint16), (ttnn.uint32, np.uint32)):
        assert ttnn.to_torch(ttnn.from_torch(ones(32, 32, dtype=np.int32), dtype=dtype)).dtype == kind
        assert ttnn.from_torch(ones(4, 4, dtype=kind)).dtype == dtype
    assert ttnn.from_torch(ones(4, 4, dtype=np.int64)).dtype == ttnn.uint32


@shows("N39", "105", "A row takes at least 4 bytes on the device", differs=WIDTHS_ARE_DATED)
@shows("N40", "105-106", "A width of 3 in bfloat16 is not for the device", differs=WIDTHS_ARE_DATED)
@shows("N42", "105-106", "nor is a width of 5 in uint16", differs=WIDTHS_ARE_DATED)
def test_any_width_is_accepted(device):
    for width, dtype in ((1, ttnn.bfloat16), (3, ttnn.bfloat16), (5, ttnn.uint16)):
        tensor = ttnn.to_device(ttnn.from_torch(ones(4, width), dtype=dtype), device)
        assert (ttnn.to_numpy(tensor).astype(np.float32) == 1).all()
        (note,) = tw.fit(tensor).tensors[0].warnings
        assert note.startswith(f"rows of {width} x {dtype.name.lower()} are not a multiple of 4 bytes")
        assert note.endswith("a multiple of 2")
        with ttnn.strict():
            rows = ttnn.from_torch(ones(4, width), dtype=dtype)  # on the host all widths are allowed
            rule = (
                rf"widths of {dtype.name.lower()} are multiples of 2, got {width}; pad it to {width + 1}, or use tiles"
            )
            with pytest.raises(LayoutError, match=rule):
                ttnn.to_device(rows, device)
            with pytest.raises(LayoutError, match=rule):
                ttnn.from_torch(ones(4, width), dtype=dtype, device=device)
            assert ttnn.to_device(ttnn.to_layout(rows, ttnn.TILE_LAYOUT), device).shape == [4, width]
    with ttnn.strict():
        test_widths_that_are_multiples(device)


@shows("N41", "105-106", "A width of 4 in bfloat16 is")
@shows("N43", "105-106", "and so is any width in float32 and uint32")
@shows("N44", "105-106", "On the host all widths are allowed")
def test_widths_that_are_multiples(device):
    for width, dtype in ((4, ttnn.bfloat16), (3, ttnn.float32), (1, ttnn.uint32)):
        tensor = ttnn.to_device(ttnn.from_torch(ones(4, width), dtype=dtype), device)
        assert tensor.shape == [4, width]
        assert not tw.fit(tensor).tensors[0].warnings
    assert ttnn.from_torch(ones(4, 3), dtype=ttnn.bfloat16).shape == [4, 3]


@shows("N45", "108-123", "The table of width multiples: 2, 1, 1, 2 and 32")
def test_width_multiples():
    expected = {ttnn.uint16: 2, ttnn.uint32: 1, ttnn.float32: 1, ttnn.bfloat16: 2, ttnn.bfloat8_b: 32}
    assert {dtype: ttnn.width_multiple(dtype) for dtype in TYPES} == expected


@shows("N46", "123", "bfloat8_b has to be in tile layout: rows are refused")
@shows("N47", "123", "it is so by default")
@shows("N48", "123", "it does not become rows")
@shows("N49", "123", "and is padded to tiles")
def test_block_floats_are_in_tiles():
    with pytest.raises(MemoryConfigError, match="bfloat8_b"):
        ttnn.from_torch(ones(32, 32), dtype=ttnn.bfloat8_b, layout=ttnn.ROW_MAJOR_LAYOUT)
    tensor = ttnn.from_torch(ones(4, 5), dtype=ttnn.bfloat8_b)
    assert (tensor.layout, tensor.padded_shape) == (ttnn.TILE_LAYOUT, [32, 32])
    with pytest.raises(MemoryConfigError, match="bfloat8_b"):
        ttnn.to_layout(tensor, ttnn.ROW_MAJOR_LAYOUT)


# Limitations of bfloat8_b.


@shows("N50", "130", "16 consecutive numbers share one exponent")
@shows("N51", "130", "which the largest of them determines")
def test_shared_exponents():
    bfloat8_b = tw.format_of("bfloat8_b")
    assert (bfloat8_b.block, bfloat8_b.bytes_per_tile(1024)) == (16, 1024 + 64)
    values = ones(32, 32)
    values[0, 3] = 100
    tensor = ttnn.from_torch(values, dtype=ttnn.bfloat8_b)
    exponents = np.frombuffer(tensor.native.raw, np.uint8)[:64]
    assert exponents[:2].tolist() == [127 + 6, 127]  # 64 <= 100 < 128, and 1 in the group below it
    assert ttnn.to_numpy(tensor)[0, 2:5].tolist() == [1.0, 100.0, 1.0]


@shows("N52", "134", "Small values beside large ones are flushed to zero")
@shows("N53", "134", "so that their reciprocals are wrong")
def test_small_values_are_flushed():
    values = np.full((32, 32), 0.01, np.float32)
    values[0, 3] = 100
    assert packed(values)[0, :5].tolist() == [0, 0, 0, 100, 0]
    inverse = ttnn.to_numpy(ttnn.reciprocal(ttnn.from_torch(values, dtype=ttnn.bfloat8_b)))
    assert inverse[0, :5].tolist() == [*[1.7014118346046923e38] * 3, 0, 1.7014118346046923e38]
    np.testing.assert_allclose(inverse[0, 16:], 100, rtol=0.02)  # another group


@shows("N54", "135", "An infinity dominates its group: the others become zero")
@shows("N55", "135", "and so does what is not a number")
def test_extreme_values_dominate():
    for extreme in (np.inf, np.nan):
        values = ones(32, 32)
        values[0, 3] = extreme
        np.testing.assert_array_equal(packed(values)[0, :5], [0, 0, 0, extreme, 0])
        assert (packed(values)[1:] == 1).all()


@shows("N56", "137", "The reciprocal of zero is 1.7014118346046923e+38")
def test_the_reciprocal_of_zero():
    zeros = ttnn.from_torch(np.zeros((32, 32), np.float32), dtype=ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT)
    assert (ttnn.to_numpy(ttnn.reciprocal(zeros)) == 1.7014118346046923e38).all()
    flushed = ttnn.from_torch(np.array([[1e-6, 2.0]], np.float32), dtype=ttnn.bfloat8_b)  # to 0 and 2
    assert ttnn.reciprocal(flushed).to_list() == [[1.7014118346046923e38, 0.0]]
    exact = ttnn.from_torch(np.array([[0.0, 2.0]], np.float32))
    assert ttnn.reciprocal(exact).to_list() == [[np.inf, 0.5]]


@shows("N57", "141", "Data of high variance lose: it can be measured")
@shows("N58", "142", "The magnitudes in groups of 16 can be looked at")
@shows("N59", "143", "Outputs can be checked against a format of higher precision")
@shows("N60", "145", "Homogeneous values are kept well")
def test_losses_can_be_measured():
    spread = np.array([[1e-4] * 15 + [100.0]] * 32, np.float32)
    even = np.full((32, 32), 1.3, np.float32)
    assert tw.formats.quantization_error(spread, "bfloat8_b").rms_error > 9e-5  # all that is small is lost
    assert tw.formats.quantization_error(even, "bfloat8_b").max_abs_error.max() < 1.3 / 128
    text = views.to_text(views.block_scene(spread[:1], "bfloat8_b"))
    assert "shared exponents" in text
    tensor = ttnn.from_torch(spread, dtype=ttnn.bfloat8_b)
    assert not tw.diff(spread, tensor).same
    assert tw.diff(even, ttnn.from_torch(even, dtype=ttnn.bfloat8_b), rtol=0.01).same


# Storage.


@shows("N61", "152-154", "OWNED_HOST_STORAGE: on the host, owned by ttnn")
@shows("N62", "156-158", "BORROWED_HOST_STORAGE: on the host, borrowed from torch or NumPy")
@shows("N63", "156-158", "or from another buffer")
def test_host_storage():
    values = np.zeros((4, 4), np.float32)
    owned = ttnn.from_torch(values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
    assert owned.storage_type() == ttnn.OWNED_HOST_STORAGE
    assert owned.storage_type() != ttnn.BORROWED_HOST_STORAGE
    for borrowed in (ttnn.from_torch(values), ttnn.from_torch(memoryview(values))):
        assert borrowed.storage_type() == ttnn.BORROWED_HOST_STORAGE
        assert borrowed.storage_type() != ttnn.OWNED_HOST_STORAGE
        values[1, 2] += 7
        assert borrowed.to_list()[1][2] == values[1, 2]
    values[...] = 9
    assert (ttnn.to_numpy(owned).astype(np.float32) == 0).all()
    for tensor in (owned, borrowed):  # ttnn today has one type for both
        assert tensor.storage_type() == ttnn.StorageType.HOST
        assert printed(tensor.storage_type()) == "StorageType.HOST"


@shows("N64", "160-162", "DEVICE_STORAGE: on a device")
@shows("N65", "160-162", "where ttnn owns the allocation")
@shows("N66", "160-162", "What was deallocated cannot be read")
def test_device_storage(device):
    tensor = ttnn.to_device(ttnn.from_torch(ones(32, 32)), device)
    assert tensor.storage_type() == ttnn.DEVICE_STORAGE
    assert tensor.storage_type() != ttnn.StorageType.HOST
    ttnn.deallocate(tensor)
    assert not tensor.is_allocated()
    with pytest.raises(TransferError, match="was deallocated"):
        ttnn.to_numpy(tensor)


# Sharding.


@shows("N67", "169-170", "A tensor can be distributed over the L1 of different cores")
@shows("N73", "195", "The core grid says which cores have a shard")
@shows("N75", "196", "The shard shape is in elements")
@shows("N87", "232", "create_sharded_memory_config makes such a config")
def test_a_sharded_config():
    config = sharded_config()
    assert config.is_sharded()
    assert (config.buffer_type, config.memory_layout) == (
        ttnn.BufferType.L1,
        ttnn.TensorMemoryLayout.BLOCK_SHARDED,
    )
    assert (config.shard_spec.num_cores(), config.shard_spec.shape) == (4, [64, 64])
    assert printed(config.shard_spec.grid) == "{[0-0 - 1-1]}"


@shows("N68", "174-175", "Outer dimensions are folded: [1, 2, 3, 4] is [6, 4] before it is sharded")
@shows("N69", "174-175", "A tensor of rank 4 is sharded so")
def test_higher_ranks_are_folded(device):
    assert ttnn.from_torch(ones(1, 2, 3, 4)).physical_shape == [6, 4]
    values = counted(1, 2, 64, 32)
    config = ttnn.create_sharded_memory_config(
        (1, 2, 64, 32), core_grid=ttnn.CoreGrid(y=1, x=4), strategy=ttnn.ShardStrategy.HEIGHT
    )
    tensor = ttnn.to_memory_config(ttnn.from_torch(values, layout=ttnn.TILE_LAYOUT), config)
    assert tensor.physical_shape == [128, 32]
    assert tensor.memory_config().shard_spec.shape == [32, 32]
    assert (ttnn.to_numpy(tensor) == values).all()


@shows(
    "N70",
    "177",
    "The size of the tile depends on layout and shape",
    differs="the tile is a property of its own, 32 x 32 by default; what depends on layout and shape is the page",
)
def test_pages_depend_on_layout_and_shape():
    rows, tiles = (ttnn.from_torch(ones(64, 96), layout=layout) for layout in ttnn.Layout)
    assert rows.get_tile() == tiles.get_tile() == ttnn.Tile((32, 32))
    assert (rows.native.spec.page_shape, tiles.native.spec.page_shape) == ((1, 96), (32, 32))


@shows("N71", "182-183", "On the host the tiles stay in row-major order")
def test_sharded_on_the_host():
    values = counted(128, 128)
    plain = ttnn.from_torch(values, layout=ttnn.TILE_LAYOUT)
    sharded = ttnn.from_torch(values, layout=ttnn.TILE_LAYOUT, memory_config=sharded_config())
    assert sharded.memory_config().is_sharded()
    assert bytes(sharded.native.raw) == bytes(plain.native.raw)


@shows(
    "N74",
    "195",
    "Each core has a single shard",
    differs="dated: so it is for shards cut by height, by width or as blocks, and more are refused; the ND shards of"
    " ttnn 0.81.1 go round, and a core can have several; ttnn.strict() enforces the rule",
)
def test_one_shard_per_core():
    several = ttnn.NdShardSpec([1, 32, 32], ttnn.CoreRange((0, 0), (1, 0)))
    config = ttnn.MemoryConfig(ttnn.BufferType.L1, several)
    spec = ttnn.TensorSpec([5, 32, 32], ttnn.bfloat16, ttnn.TILE_LAYOUT, config)
    assert spec.native.with_chip("wormhole_n150").pages().by_core()[0, 0] == [0, 2, 4]
    with ttnn.strict():
        with pytest.raises(MemoryConfigError, match="cut shards by height, by width or as blocks"):
            ttnn.MemoryConfig(ttnn.BufferType.L1, several)
        with pytest.raises(MemoryConfigError, match=r"one shard on each core|by height, by width or as blocks"):
            ttnn.TensorSpec([5, 32, 32], ttnn.bfloat16, ttnn.TILE_LAYOUT, config)
    memory = tw.height_sharded((2, 1), (64, 128))
    with pytest.raises(MemoryConfigError, match="4 shards"):
        tw.TensorSpec((256, 128), "bfloat16", "tile", memory=memory, chip="wormhole_n150").pages()


@shows("N76", "197", "The strategies split rows, columns, or both")
@shows("N77", "198", "The orientation of cores is row-major or column-major")
def test_strategies_and_orientations():
    shapes = {}
    for strategy in ttnn.ShardStrategy:
        grid = ttnn.CoreGrid(y=2, x=2)
        shapes[strategy.name] = ttnn.create_sharded_memory_config((128, 128), grid, strategy).shard_spec.shape
    assert shapes == {"HEIGHT": [32, 128], "WIDTH": [128, 32], "BLOCK": [64, 64]}
    spec = tw.TensorSpec((128, 128), "bfloat16", "tile", chip="wormhole_n150")
    second = []
    for orientation in ttnn.ShardOrientation:
        memory = tw.block_sharded((2, 2), orientation=orientation.native)
        second.append(spec.with_memory(memory).where(0, 64).core)
    assert second == [(1, 0), (0, 1)]  # x, y


@shows("N78", "204", "to_memory_config takes an unsharded host tensor to a sharded one on the device")
@shows("N79", "204", "which needs an open device")
def test_to_memory_config():
    host = ttnn.from_torch(counted(128, 128), layout=ttnn.TILE_LAYOUT)
    with pytest.raises(MemoryConfigError, match="on the host and no single device is open; use to_device"):
        ttnn.to_memory_config(host, sharded_config())
    with ttnn.manage_device(device_id=0) as device:
        tensor = ttnn.to_memory_config(host, sharded_config())
        assert (tensor.device(), tensor.is_sharded(), tensor.storage_type()) == (device, True, ttnn.DEVICE_STORAGE)
        assert (ttnn.to_numpy(tensor) == counted(128, 128)).all()


def sharded_example(device):
    """Return the document's example on a device: 128 x 128 in tiles, in shards of 64 x 64 on 2 x 2 cores."""
    host = ttnn.from_torch(counted(128, 128), layout=ttnn.TILE_LAYOUT)
    return ttnn.to_memory_config(host, sharded_config(), device=device)


HELD = {(0, 0): [0, 1, 4, 5], (1, 0): [2, 3, 6, 7], (0, 1): [8, 9, 12, 13], (1, 1): [10, 11, 14, 15]}


@shows("N80", "205-212", "The tiles of 2 x 2 cores, with shards of 64 x 64: C(0, 0) has H0, H1, H4 and H5, and so on")
@shows("N83", "212", "P is the number of a tile in its core, H its number on the host")
def test_tiles_of_cores(device):
    spec = sharded_example(device).native.spec
    assert spec.pages().by_core() == HELD
    for core, pages in HELD.items():
        for number, page in enumerate(pages):
            place = spec.where(32 * (page // 4), 32 * (page % 4))
            assert (place.core, place.page_in_shard, place.page) == (core, number, page)
    assert "shard    1 = (0, 1): page 3" in str(spec.where(32, 96))


@shows("N72", "186-190", "Figure: 4 x 4 tiles, each labelled with its number")
def test_the_picture_of_the_host(device):
    tensor = ttnn.to_device(ttnn.from_torch(counted(128, 128), layout=ttnn.TILE_LAYOUT), device)
    assert rows_of(shown(tensor.spec)) == [[f"P{4 * row + column}" for column in range(4)] for row in range(4)]


@shows("N81", "207-212", "Figure: C(x, y) of every core, P of its tiles, and H of the host's")
@shows("N82", "212", "What labels the tiles can be chosen")
def test_the_picture_of_the_cores(device):
    spec = sharded_example(device).spec
    cores = views.scene_of(spec, label=("local page", "host page")).panels[1]
    boxes = {box.title: box for row in cores.box_grids() for box in row}
    assert list(boxes) == ["Core (0,0)", "Core (1,0)", "Core (0,1)", "Core (1,1)"]
    for core, pages in HELD.items():
        box = boxes[f"Core ({core[0]},{core[1]})"]
        assert box.field("local page").values == (0, 1, 2, 3)
        assert box.field("host page").values == tuple(pages)
    text = shown(spec, label=("core", "local page", "host page"))
    assert "C(0,0) P0 H0" in text
    assert "C(1,1) P3 H15" in text
    assert "P15" in shown(spec, label="page")
    with pytest.raises(TypeError, match="wrong"):
        shown(spec, label="wrong")


# Memory configs.


@shows("N84", "220-222", "DRAM_MEMORY_CONFIG is interleaved in DRAM")
@shows("N85", "224-226", "L1_MEMORY_CONFIG is interleaved in L1")
def test_interleaved_configs():
    for config, buffer in ((ttnn.DRAM_MEMORY_CONFIG, "DRAM"), (ttnn.L1_MEMORY_CONFIG, "L1")):
        assert config.memory_layout == ttnn.TensorMemoryLayout.INTERLEAVED
        assert config.buffer_type == ttnn.BufferType[buffer]
        assert config.interleaved


@shows(
    "N86",
    "229-231",
    "A tensor is physically distributed over the L1 of cores only",
    differs="dated: ttnn 0.81.1 also shards in DRAM, over its banks, and so does the dialect; ttnn.strict() enforces"
    " the rule",
)
def test_sharding_in_dram(device):
    shards = ttnn.ShardSpec(ttnn.CoreRange((0, 0), (11, 0)), [32, 32])
    config = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.DRAM, shards)
    tensor = ttnn.to_device(ttnn.from_torch(counted(384, 32), layout=ttnn.TILE_LAYOUT), device, config)
    assert tensor.native.spec.where(40, 0).bank == 1
    assert (ttnn.to_numpy(tensor) == counted(384, 32)).all()
    with ttnn.strict():
        for refused in (
            lambda: ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.DRAM, shards),
            lambda: ttnn.create_dram_sharded_mem_config(64, 6144, device),
            lambda: ttnn.to_device(ttnn.from_torch(counted(384, 32), layout=ttnn.TILE_LAYOUT), device, config),
        ):
            with pytest.raises(MemoryConfigError, match="allow shards in L1 only, got DRAM"):
                refused()


# What is printed, and what other functions take.


@shows("N91", "5", "Integers are printed as integers")
@shows("N95", "97-98", "also those that a float would round")
def test_integers_are_printed():
    tensor = ttnn.from_torch(ones(2, 3, dtype=np.int32), dtype=ttnn.uint16)
    assert printed(tensor) == (
        "ttnn.Tensor([[    1,     1,     1],\n             [    1,     1,     1]],"
        " shape=Shape([2, 3]), dtype=DataType::UINT16, layout=Layout::ROW_MAJOR)"
    )
    large = ttnn.from_torch(np.array([[16777217, 4294967295]], np.uint32))
    assert printed(large).startswith("ttnn.Tensor([[16777217, 4294967295]], shape=Shape([1, 2])")


@shows("N92", "5", "Floats are printed as ttnn prints them")
def test_floats_are_printed():
    values = np.array([[1.5, -2.25, 0.125]], np.float32)
    properties = "shape=Shape([1, 3]), dtype=DataType::BFLOAT16, layout=Layout::TILE"
    tensor = ttnn.from_torch(values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
    assert printed(tensor) == f"ttnn.Tensor([[ 1.5000, -2.2500,  0.1250]], {properties})"
    wide = ttnn.from_torch(np.array([1e-6, 1.0], np.float32))
    assert printed(wide).startswith("ttnn.Tensor([ 1.0000e-06,  1.0000e+00], shape")


@shows("N93", "63-75", "Layouts are printed as ttnn prints them")
def test_layouts_are_printed():
    assert [printed(layout) for layout in (ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT)] == [
        "Layout.ROW_MAJOR",
        "Layout.TILE",
    ]
    assert repr(ttnn.TILE_LAYOUT) == "Layout.TILE"


@pytest.mark.parametrize(
    "name", ["to_device", "to_layout", "to_memory_config", "to_torch", "reciprocal", "reshard", "squeeze", "tilize"]
)
@pytest.mark.parametrize("value", [3, None, np.zeros((4, 4))], ids=["integer", "none", "array"])
def test_what_is_no_tensor_is_refused_by_name(name, value):
    with pytest.raises(MemoryConfigError, match=f"{name} takes a ttnn.Tensor, got {type(value).__name__}"):
        getattr(ttnn, name)(value, None)


@shows("N96", "10", "tw.fit, tw.explain and tw.diff take a ttnn.Tensor")
def test_tensors_in_other_functions(device):
    tensor = sharded_example(device)
    assert tw.fit(tensor)
    assert tw.fit([tensor, tensor.spec], "wormhole_n150").tensors[1].spec == tensor.native.spec
    first = ttnn.to_device(ttnn.from_torch(ones(32, 32)), device)
    explained = tw.explain(tensor, (1, 1))
    assert explained.where.core == (0, 0)
    assert explained.where.base == tensor.buffer_address()
    assert tw.explain(first, (1, 1)).where.base == first.buffer_address()
    assert tw.diff(tensor, counted(128, 128)).same
    with pytest.raises(MemoryConfigError, match="expected a TensorSpec or a tensor, got Shape"):
        tw.fit(tensor.shape)
