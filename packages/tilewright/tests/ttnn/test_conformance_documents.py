# SPDX-License-Identifier: Apache-2.0
"""What the three original documents show runs, and gives what they say."""

import numpy as np
import pytest

import tilewright as tw
import tilewright.ttnn as ttnn

try:
    import torch
except ImportError:
    from . import torch_stand_in as torch


@pytest.fixture
def device():
    opened = ttnn.open_device(device_id=0)
    yield opened
    ttnn.close_device(opened)


def as_host_array(tensor):
    """Return the values of a tensor of torch, or of its stand-in, as float32."""
    return np.asarray(tensor.float() if hasattr(tensor, "float") else tensor).astype(np.float32)


# Tilized data.


def test_tilized_data():
    tensor = np.arange(32, dtype=np.uint8).reshape(4, 8)
    memory = tw.tilize(tensor, tile=(2, 2), face=None)
    rows = {0x0: [0, 1], 0x2: [8, 9], 0x4: [2, 3], 0x6: [10, 11], 0xC: [6, 7], 0xE: [14, 15]}
    rows |= {0x10: [16, 17], 0x12: [24, 25], 0x14: [18, 19], 0x1E: [30, 31]}
    for address, row in rows.items():
        assert memory[address : address + 2].tolist() == row


# Tensor and memory layouts.


def test_outer_dimensions_are_folded():
    assert tw.memory.Shape([1, 4, 6, 8]).folded == (24, 8)
    assert tw.TensorSpec((1, 2, 3, 4)).physical_shape == (6, 4)


def test_pages_of_a_64x64_tensor():
    assert tw.TensorSpec((64, 64)).num_pages == 64
    assert tw.TensorSpec((64, 64), page_layout="tile").num_pages == 4


def test_banks():
    assert tw.Chip.named("grayskull_e150").banks("dram") == 8
    assert tw.Chip.named("wormhole_n150").banks("dram") == 12


def test_interleaved_pages_go_round():
    three = tw.Chip.from_toml(
        """
        arch = "small"
        [cores]
        grid = [3, 1]
        [l1]
        base = 0
        end = 65536
        [dram]
        banks = 3
        base = 0
        end = 65536
        alignment = 32
        """,
        "three",
    )
    assert tw.TensorSpec((4, 8), chip=three).pages().bank.tolist() == [0, 1, 2, 0]


def test_interleaved_l1_tensor(device):
    torch_a = torch.randn((64, 64), dtype=torch.bfloat16)
    a = ttnn.from_torch(torch_a)
    a = ttnn.to_device(a, device, memory_config=ttnn.L1_MEMORY_CONFIG)

    assert a.storage_type() == ttnn.DEVICE_STORAGE
    assert a.memory_config() == ttnn.L1_MEMORY_CONFIG
    assert a.dtype == ttnn.bfloat16
    np.testing.assert_array_equal(ttnn.to_numpy(a).astype(np.float32), as_host_array(torch_a))


def test_sharded_tensor(device):
    torch_a = torch.randn((64, 64), dtype=torch.bfloat16)
    a = ttnn.from_torch(torch_a)
    sharded_memory_config = ttnn.create_sharded_memory_config(
        (32, 32),
        core_grid=ttnn.CoreGrid(y=2, x=2),
        strategy=ttnn.ShardStrategy.BLOCK,
        use_height_and_width_as_shard_shape=True,
    )
    a = ttnn.to_device(a, device, memory_config=sharded_memory_config)

    assert a.is_sharded()
    assert a.buffer_page_size() == 64  # one row of a shard
    np.testing.assert_array_equal(ttnn.to_numpy(a).astype(np.float32), as_host_array(torch_a))
    back = ttnn.to_torch(ttnn.from_device(a))
    np.testing.assert_array_equal(as_host_array(back), as_host_array(torch_a))


def test_the_figure_of_sixteen_pages(device):
    tensor = ttnn.from_torch(np.arange(128 * 128, dtype=np.float32).reshape(128, 128), layout=ttnn.TILE_LAYOUT)
    config = ttnn.create_sharded_memory_config(
        (64, 64),
        core_grid=ttnn.CoreGrid(y=2, x=2),
        strategy=ttnn.ShardStrategy.BLOCK,
        orientation=ttnn.ShardOrientation.ROW_MAJOR,
        use_height_and_width_as_shard_shape=True,
    )
    sharded = ttnn.to_memory_config(tensor, config)  # a host tensor goes to the open device
    pages_of_core = {}
    for page in ttnn.get_buffer_pages(device):
        pages_of_core.setdefault((page.core_x, page.core_y), []).append(page.page_index)
    assert pages_of_core == {
        (0, 0): [0, 1, 4, 5],
        (1, 0): [2, 3, 6, 7],
        (0, 1): [8, 9, 12, 13],
        (1, 1): [10, 11, 14, 15],
    }
    assert sharded.device() is device


def test_rows_of_a_sharded_tensor_are_as_wide_as_the_shard():
    spec = ttnn.TensorSpec(ttnn.Shape([64, 64]), ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT, ttnn.BufferType.L1)
    grid = ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 1))
    assert spec.block_sharded(grid).native.page_shape == (1, 32)
