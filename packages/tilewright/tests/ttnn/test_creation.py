# SPDX-License-Identifier: Apache-2.0
"""Tensors that are created, allocated, joined and moved into others."""

import numpy as np
import pytest

import tilewright as tw
from tilewright import ttnn

TALL = ttnn.create_sharded_memory_config((64, 64), ttnn.CoreGrid(x=2, y=1), ttnn.ShardStrategy.HEIGHT)
WIDE = ttnn.create_sharded_memory_config((64, 64), ttnn.CoreGrid(x=2, y=1), ttnn.ShardStrategy.WIDTH)
VALUES = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)


@pytest.fixture
def device():
    """Return a device that is closed again."""
    with ttnn.manage_device() as opened:
        yield opened


def test_filled_tensors():
    """Defaults, padding and conversions as recorded: padding has the value, too, but zeros in blocks."""
    x = ttnn.full((2, 3), 1.5, layout=ttnn.TILE_LAYOUT)
    assert (x.dtype, x.padded_shape, x.storage_type()) == (ttnn.bfloat16, (32, 32), ttnn.StorageType.HOST)
    assert set(np.asarray(x.native.pages).view(np.uint16).tolist()) == {0x3FC0}
    blocks = ttnn.ones((2, 3), ttnn.bfloat8_b)
    assert (blocks.layout, blocks.to_list()) == (ttnn.TILE_LAYOUT, [[1.0] * 3] * 2)
    assert np.asarray(blocks.native.pages).tolist().count(0x40) == 6
    for number, dtype, expected in [
        (2.5, ttnn.int32, 2),
        (-1, ttnn.uint8, 255),
        (300, ttnn.uint8, 44),
        (3, ttnn.float32, 3),
    ]:
        assert ttnn.full([1, 1], number, dtype).to_list() == [[expected]], (number, dtype)
    assert ttnn.zeros((3, 5)).layout == ttnn.ROW_MAJOR_LAYOUT
    assert ttnn.zeros((), ttnn.float32).to_list() == 0.0
    with pytest.raises(tw.FormatError, match="clip"):
        ttnn.full((1, 1), 300.0, ttnn.uint8)


def test_tensors_like_others(device):
    x = ttnn.from_torch(VALUES.astype(np.int32), layout=ttnn.TILE_LAYOUT, device=device, memory_config=TALL)
    for made, value in [(ttnn.zeros_like(x), 0), (ttnn.ones_like(x), 1), (ttnn.full_like(x, 7.0), 7)]:
        assert made.spec == x.spec
        assert made.device() is device
        assert set(made.to_numpy().flat) == {value}
    assert ttnn.zeros_like(x, dtype=ttnn.float32, memory_config=ttnn.DRAM_MEMORY_CONFIG).dtype == ttnn.float32
    empty = ttnn.empty_like(x)
    assert (empty.spec, empty.buffer_address() != x.buffer_address()) == (x.spec, True)
    with pytest.raises(tw.MemoryConfigError, match="needs a device"):
        ttnn.empty_like(ttnn.from_torch(VALUES))


def test_ranges():
    for arguments, expected in [
        ((5,), [0, 1, 2, 3, 4]),
        ((2, 10, 3), [2, 5, 8]),
        ((10, 0, -3), [10, 7, 4, 1]),
        ((5, 5), []),
    ]:
        assert ttnn.arange(*arguments, dtype=ttnn.int32).to_list() == expected
    assert ttnn.arange(3).dtype == ttnn.bfloat16
    for arguments in ((0, 5, -1), (0, 5, 0), (5, 2)):
        with pytest.raises(tw.LayoutError, match="expected a step other than 0"):
            ttnn.arange(*arguments)
    with pytest.raises(tw.FormatError, match="typecast"):
        ttnn.arange(3, dtype=ttnn.bfloat8_b)


def test_memory_is_allocated_without_writing(device):
    spec = ttnn.TensorSpec([64, 64], ttnn.bfloat16, ttnn.TILE_LAYOUT, memory_config=TALL)
    x = ttnn.allocate_tensor_on_device(spec, device)
    y = ttnn.allocate_tensor_on_device([64, 64], ttnn.bfloat16, ttnn.TILE_LAYOUT, device, TALL)
    z = ttnn.empty([64, 64], ttnn.bfloat16, ttnn.TILE_LAYOUT, device, TALL)
    assert x.spec == y.spec == z.spec
    assert len({each.buffer_address() for each in (x, y, z)}) == 3
    view = ttnn.get_memory_view(device, ttnn.BufferType.L1)
    assert view.total_bytes_allocated_per_bank == 3 * 2 * 2048
    assert view.block_table[1]["address"] == str(x.buffer_address() - device.allocator.start_address("l1") - 2 * 4096)
    assert [row["allocated"] for row in view.block_table] == ["no", "yes", "yes", "yes"]
    assert [row["prevID"] for row in view.block_table] == [str(2**64 - 1), "0", "1", "2"]
    host = ttnn.allocate_tensor_on_host(spec, device)
    assert (host.spec, host.device()) == (spec, None)
    for call in (lambda: ttnn.empty([2, 2]), lambda: ttnn.allocate_tensor_on_device([2, 2], dtype=ttnn.bfloat16)):
        with pytest.raises(tw.MemoryConfigError, match="needs a"):
            call()


def test_mesh_allocations_are_replicas():
    with ttnn.create_mesh_device(ttnn.MeshShape(1, 2)) as mesh:
        for made in (
            ttnn.empty([32, 32], device=mesh),
            ttnn.allocate_tensor_on_host([1, 1], "int32", "row_major", mesh),
        ):
            assert made.tensor_topology().distribution_shape() == (1, 2)
            assert made.tensor_topology().placements() == [ttnn.PlacementReplicate()] * 2
        assert ttnn.zeros([32, 32], device=mesh).tensor_topology().distribution_shape() == (2,)


def test_shards(device):
    x = ttnn.from_torch(VALUES, layout=ttnn.TILE_LAYOUT, device=device)
    tall = ttnn.interleaved_to_sharded(x, TALL)
    by_cores = ttnn.interleaved_to_sharded(
        x, ttnn.CoreGrid(x=2, y=1), [32, 64], ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.ShardOrientation.ROW_MAJOR
    )
    assert tall.memory_config() == by_cores.memory_config()
    wide = ttnn.reshard(tall, WIDE)
    back = ttnn.sharded_to_interleaved(wide, ttnn.L1_MEMORY_CONFIG, ttnn.bfloat16)
    assert (wide.memory_config().shard_spec.shape, back.dtype) == ([64, 32], ttnn.bfloat16)
    assert wide.to_list() == VALUES.tolist()
    for call, message in [
        (lambda: ttnn.interleaved_to_sharded(tall, WIDE), "got sharded and sharded; use reshard"),
        (lambda: ttnn.reshard(x, WIDE), "use interleaved_to_sharded"),
        (lambda: ttnn.sharded_to_interleaved(x), "use to_memory_config"),
        (lambda: ttnn.interleaved_to_sharded(x, ttnn.CoreGrid(x=2, y=1)), "shard_shape"),
    ]:
        with pytest.raises(tw.MemoryConfigError, match=message):
            call()


def test_copies_into_tensors(device):
    ttnn.synchronize_device(device)
    x = ttnn.from_torch(VALUES, ttnn.bfloat8_b)
    target = ttnn.zeros((64, 64), ttnn.bfloat8_b, device=device, memory_config=TALL)
    address = target.buffer_address()
    ttnn.copy_host_to_device_tensor(x, target)
    assert (target.to_list(), target.buffer_address()) == (x.to_list(), address)
    host = ttnn.zeros((64, 64), ttnn.bfloat8_b)
    ttnn.copy_device_to_host_tensor(target, host)
    np.testing.assert_array_equal(host.native.pages, x.native.pages)
    for call, message in [
        (lambda: ttnn.copy_host_to_device_tensor(target, x), "in this order"),
        (lambda: ttnn.copy_device_to_host_tensor(x, host), "in this order"),
        (lambda: ttnn.copy_host_to_device_tensor(ttnn.zeros((64, 32), ttnn.bfloat8_b), target), "same shape"),
    ]:
        with pytest.raises(tw.LayoutError, match=message):
            call()


def test_parts_are_joined_and_cut_out(device):
    for dtype, layout in [
        (ttnn.float32, ttnn.ROW_MAJOR_LAYOUT),
        (ttnn.bfloat16, ttnn.TILE_LAYOUT),
        (ttnn.int32, ttnn.TILE_LAYOUT),
    ]:
        values = (np.arange(5 * 7) % 100).reshape(1, 5, 7).astype(np.float32)
        x, y = (ttnn.from_torch(each, dtype, layout=layout, device=device) for each in (values, values[:, :, :3]))
        joined = ttnn.concat([x, y, x], dim=-1)
        np.testing.assert_array_equal(
            joined.to_numpy().astype(np.float32), np.concatenate([values, values[:, :, :3], values], 2)
        )
        assert (joined.dtype, joined.layout, joined.device()) == (dtype, layout, device)
        part = ttnn.slice(joined, [0, 1, 2], [1, 5, 11], [1, 2, 3])
        np.testing.assert_array_equal(part.to_numpy(), joined.to_numpy()[:, 1:5:2, 2:11:3])
    for call, message in [
        (lambda: ttnn.concat([]), "a list of one or more"),
        (lambda: ttnn.concat(x, 0), "a list of one or more"),
        (lambda: ttnn.concat([x, y], dim=1), "only it may differ"),
        (lambda: ttnn.concat([x, x], dim=3), "use -3 to 2"),
        (lambda: ttnn.slice(x, [0, 0, 0], [1, 5, 8]), "not inside"),
        (lambda: ttnn.slice(x, [-1, 0, 0], [1, 5, 7]), "not inside"),
        (lambda: ttnn.slice(x, [0, 0], [1, 5]), "not inside"),
        (lambda: ttnn.squeeze(x, 3), "use -3 to 2"),
        (lambda: ttnn.unsqueeze(x, 4), "use -4 to 3"),
        (lambda: ttnn.unsqueeze_to_4D(ttnn.zeros((1, 1, 1, 1, 1))), "rank 4"),
    ]:
        with pytest.raises(tw.LayoutError, match=message):
            call()
    with pytest.raises(tw.MemoryConfigError, match="groups=2 is not supported"):
        ttnn.concat([x, x], groups=2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ttnn.Tile(32), tw.MemoryConfigError, r"expected a tile of two positive extents.*got 32"),
        (lambda: ttnn.Tile("32x32"), tw.MemoryConfigError, r"expected a tile of two positive extents.*got '32x32'"),
        (lambda: ttnn.StorageType["BORROWED"], tw.MemoryConfigError, r"did you mean StorageType.BORROWED_HOST\?"),
        (lambda: ttnn.DataType["bf16"], tw.MemoryConfigError, "DataType has no bf16, its members are BFLOAT16"),
        (lambda: ttnn.StorageType(17), tw.MemoryConfigError, 'unknown storage type 17; use one of "host"'),
        (lambda: ttnn.ShardOrientation("diagonal"), tw.MemoryConfigError, "unknown shard orientation 'diagonal'"),
        (lambda: ttnn.concat([1, 2], 0), tw.LayoutError, "concat takes tensors, got int among them"),
        (lambda: ttnn.pad(ttnn.ones((2, 2)), "x", 0), tw.LayoutError, "expected padding such as"),
        (lambda: ttnn.open_device(device_id=-1), tw.MemoryConfigError, "devices are numbered from 0"),
        (lambda: ttnn.open_device(device_id="a"), TypeError, "device_id must be an integer, got str 'a'"),
        (lambda: ttnn.CoreCoord(-1, 0), tw.MemoryConfigError, "core coordinates must not be negative"),
        (lambda: ttnn.CoreCoord("a", 0), TypeError, "core coordinate must be an integer, got str 'a'"),
        (lambda: ttnn.reshape(ttnn.ones((2, 2)), (1.5, 2)), TypeError, "an extent must be an integer, got float 1.5"),
        (lambda: ttnn.full("ab", 1), TypeError, "extent must be an integer, got str 'a'"),
        (lambda: ttnn.arange("a"), TypeError, "a limit or step of arange must be an integer, got str 'a'"),
    ],
)
def test_wrong_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
