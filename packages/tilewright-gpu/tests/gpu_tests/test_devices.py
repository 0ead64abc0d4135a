# SPDX-License-Identifier: Apache-2.0
"""The documented program with host and device buffers, on every device there is."""

import numpy as np
import pytest
from tilewright_mojo.std.gpu.host import DeviceContext

import tilewright as tw
from tilewright.errors import LayoutError, TransferError
from tilewright.mojo.layout import Idx, TileTensor

from .on_devices import CUDA, OPENCL

DRIVERS = {"opencl": OPENCL, "cuda": CUDA}


@pytest.fixture(params=["host", "opencl", "cuda"])
def context(request):
    reason = DRIVERS[request.param].unavailable_reason() if request.param in DRIVERS else None
    if reason:
        pytest.skip(reason)
    return DeviceContext(request.param)


def test_data_goes_to_a_device_and_back(context):
    host, device = context.enqueue_create_host_buffer["float32"](16), context.enqueue_create_buffer["float32"](16)
    for i in range(16):
        host[i] = i + 1
    context.enqueue_copy(device, host)
    tensor = TileTensor(device, tw.row_major(4, 4))
    with pytest.raises(LayoutError, match="device memory cannot be reached"):
        tensor[0, 0]
    other, back = context.enqueue_create_buffer["float32"](16), context.enqueue_create_host_buffer["float32"](16)
    context.enqueue_copy(other, tensor.to_device_buffer(context))
    context.enqueue_copy(back, other)
    context.synchronize()
    assert back.array.tolist() == list(range(1, 17))
    with pytest.raises(LayoutError, match="17 x float32"):  # as much as the target holds is copied
        context.enqueue_copy(context.enqueue_create_buffer["float32"](17), host)


def test_a_view_of_the_host_becomes_a_device_buffer(context):
    tensor = TileTensor(np.arange(12, dtype=np.int32), tw.row_major(3, 4))
    host = context.enqueue_create_host_buffer["int32"](4)
    context.enqueue_copy(host, tensor.slice[1:2, 0:4]().to_device_buffer(context))
    assert host.array.tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("name", DRIVERS)
def test_buffers_of_a_device_are_moved_there(name):
    if DRIVERS[name].unavailable_reason():
        pytest.skip(DRIVERS[name].unavailable_reason())
    context = DeviceContext(name)
    values = np.random.default_rng(3).standard_normal(40 * 50).astype(np.float32)
    device = context.enqueue_create_buffer["float32"](values.size)
    context.enqueue_copy(device, values)
    moved = tw.copying.relayout(device, tw.row_major(40, 50), tw.col_major(40, 50))
    got = np.asarray(moved.get())
    np.testing.assert_array_equal(got, values.reshape(40, 50).T.reshape(-1))


def test_the_documented_program_runs(context):
    dtype = "float32"
    dev_buf = context.enqueue_create_buffer[dtype](16)
    host_buf = context.enqueue_create_host_buffer[dtype](16)
    context.synchronize()
    for i in range(16):
        host_buf[i] = i
    context.enqueue_copy(dev_buf, host_buf)
    tensor = TileTensor(dev_buf, tw.row_major((Idx[4](), Idx[4]())))
    assert tensor.to_device_buffer(context) is dev_buf
    back = context.enqueue_create_host_buffer[dtype](16)
    context.enqueue_copy(back, dev_buf)
    context.synchronize()
    there = TileTensor(back, tw.row_major((Idx[4](), Idx[4]())))
    assert there[2, 3] == 11
    for touch in (lambda: tensor.fill(1), tensor.to_numpy, lambda: dev_buf[0]):
        with pytest.raises(LayoutError, match="cannot be reached"):
            touch()


def test_tiles_of_a_device_tensor_are_copied_by_plans(context):
    values = np.random.default_rng(5).standard_normal((24, 40)).astype(np.float32)
    device, back = context.enqueue_create_buffer["float32"](960), context.enqueue_create_host_buffer["float32"](960)
    tensor = TileTensor(device, tw.row_major(24, 40))
    tensor.copy_from(TileTensor(values, tw.row_major(24, 40)))
    context.enqueue_copy(back, device)
    context.synchronize()
    np.testing.assert_array_equal(back.array, values.reshape(-1))
    turned = context.enqueue_create_buffer["float64"](960)
    TileTensor(turned, tw.col_major(24, 40)).copy_from(tensor)
    buffer = TileTensor(np.full(960, -1.0), tw.row_major(24, 40))
    buffer.copy_from(TileTensor(turned, tw.col_major(24, 40)))
    np.testing.assert_array_equal(buffer.to_numpy(), values.astype(np.float64))
    # one tile there and back, and nothing around it
    tensor.tile[8, 8](1, 2).copy_from(TileTensor(np.full(64, 7, np.float32), tw.row_major(8, 8)))
    context.enqueue_copy(back, device)
    wanted = values.copy()
    wanted[8:16, 16:24] = 7
    np.testing.assert_array_equal(back.array, wanted.reshape(-1))
    rows = tensor.slice[8:12, 0:40]().to_device_buffer(context)
    part = context.enqueue_create_host_buffer["float32"](160)
    context.enqueue_copy(part, rows)
    np.testing.assert_array_equal(part.array, wanted[8:12].reshape(-1))
    with pytest.raises(LayoutError, match="needs equal extents"):
        tensor.copy_from(TileTensor(np.zeros(9, np.float32), tw.row_major(3, 3)))


def test_an_unknown_device_is_refused_by_name():
    with pytest.raises(TransferError, match="unknown device 'abacus'; expected one of host, opencl, cuda"):
        DeviceContext("abacus")
