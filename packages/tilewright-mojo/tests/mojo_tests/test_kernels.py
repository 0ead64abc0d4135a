# SPDX-License-Identifier: Apache-2.0
"""Kernels of Python over device buffers: every thread runs once, on the SIMT machine."""

import numpy as np
import pytest
from tilewright_mojo.std.gpu import barrier, block_dim, block_idx, global_idx, grid_dim, thread_idx
from tilewright_mojo.std.gpu.host import DeviceContext

from tilewright import KernelError, LayoutError, TransferError
from tilewright.mojo import DType
from tilewright.mojo.layout import AddressSpace, TileTensor, row_major


def downloaded(ctx, buffer):
    host = ctx.enqueue_create_host_buffer[buffer.dtype](len(buffer))
    ctx.enqueue_copy(host, buffer)
    return host.array.tolist()


def test_every_thread_runs_once_with_its_own_position():
    seen = []

    def kernel():
        seen.append((block_idx.x, block_idx.y, thread_idx.x, thread_idx.y, thread_idx.z, global_idx.x, global_idx.y))
        assert (grid_dim.x, grid_dim.y, grid_dim.z, block_dim.x, block_dim.y, block_dim.z) == (2, 3, 1, 4, 1, 2)

    DeviceContext().enqueue_function[kernel](grid_dim=(2, 3), block_dim=(4, 1, 2))
    assert len(seen) == len(set(seen)) == 2 * 3 * 4 * 2
    assert seen[1] == (0, 0, 1, 0, 0, 1, 0)
    assert seen[-1] == (1, 2, 3, 0, 1, 7, 2)
    with pytest.raises(TransferError, match="thread_idx is known only inside a kernel"):
        thread_idx.x  # noqa: B018


def test_tensors_and_buffers_of_the_device_are_within_reach_inside_only():
    ctx = DeviceContext()
    numbers = ctx.enqueue_create_buffer[DType.int32](8)
    tensor = TileTensor(numbers, row_major[2, 4](), address_space=AddressSpace.GLOBAL)

    def kernel(tensor, buffer, scale):
        row = thread_idx.x
        tensor.tile[1, 2](row, block_idx.x).fill(scale * row)
        assert tensor.address_space is AddressSpace.GLOBAL
        if row == 0 and block_idx.x == 0:
            buffer[0] = -1

    ctx.enqueue_function(kernel, tensor, numbers, 5, grid_dim=2, block_dim=2)
    assert downloaded(ctx, numbers) == [-1, 0, 0, 0, 5, 5, 5, 5]
    with pytest.raises(LayoutError, match="device memory cannot be reached"):
        tensor[0, 0]


def test_indices_are_checked_in_kernels():
    ctx = DeviceContext()
    tensor = TileTensor(ctx.enqueue_create_buffer[DType.int32](8), row_major[8]())

    def kernel(tensor):
        tensor[global_idx.x] = 1

    with pytest.raises(IndexError, match="index 8 is outside"):
        ctx.enqueue_function[kernel](tensor, grid_dim=3, block_dim=4)
    with pytest.raises(TransferError, match="global_idx is known only inside"):
        global_idx.x  # noqa: B018


def test_what_cannot_be_launched():
    ctx = DeviceContext()
    with pytest.raises(KernelError, match="cannot wait there"):
        ctx.enqueue_function[barrier](grid_dim=1, block_dim=1)
    with pytest.raises(TypeError, match="a kernel must be a function, got int 3"):
        ctx.enqueue_function[3](grid_dim=1, block_dim=1)
    for wrong in (0, (1, 2, 3, 4), ()):
        with pytest.raises(LayoutError, match="block takes one to three numbers of at least 1"):
            ctx.enqueue_function[print](grid_dim=1, block_dim=wrong)
    ctx.home = object()  # a real device
    with pytest.raises(TransferError, match="cannot run print on a real device"):
        ctx.enqueue_function[print](grid_dim=1, block_dim=1)


def test_threads_of_one_element_each():
    ctx = DeviceContext()
    a, b, c = [ctx.enqueue_create_buffer[DType.float32](64) for _ in range(3)]
    ctx.enqueue_copy(a, np.arange(64, dtype=np.float32))
    ctx.enqueue_copy(b, np.ones(64, np.float32))
    layout = row_major[8, 8]()

    def add(x, y, out):
        if global_idx.x < 8 and global_idx.y < 8:
            out[global_idx.y, global_idx.x] = x[global_idx.y, global_idx.x] + y[global_idx.y, global_idx.x]

    ctx.enqueue_function[add](*[TileTensor(each, layout) for each in (a, b, c)], grid_dim=(3, 3), block_dim=(3, 3))
    assert downloaded(ctx, c) == list(range(1, 65))
