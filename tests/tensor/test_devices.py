# SPDX-License-Identifier: Apache-2.0
"""The documented program with host and device buffers, on every device there is."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.copy import cuda_engine, opencl_engine
from tilewright.errors import LayoutError, TransferError
from tilewright.tensor import DeviceContext, TileTensor

DRIVERS = {"opencl": opencl_engine, "cuda": cuda_engine}


@pytest.fixture(params=["host", "opencl", "cuda"])
def context(request):
    reason = DRIVERS[request.param].why_not() if request.param in DRIVERS else None
    if reason:
        pytest.skip(reason)
    return DeviceContext(request.param)


def test_data_goes_to_a_device_and_back(context):
    host, device = context.enqueue_create_host_buffer["float32"](16), context.enqueue_create_buffer["float32"](16)
    for i in range(16):
        host[i] = i + 1
    context.enqueue_copy(device, host)
    tensor = TileTensor(device, tw.row_major[4, 4]())
    with pytest.raises(LayoutError, match="device memory cannot be reached"):
        tensor[0, 0]
    other, back = context.enqueue_create_buffer["float32"](16), context.enqueue_create_host_buffer["float32"](16)
    context.enqueue_copy(other, tensor.to_device_buffer(context))
    context.enqueue_copy(back, other)
    context.synchronize()
    assert back.array.tolist() == list(range(1, 17))
    with pytest.raises(LayoutError, match="16 x float32 to 5 x float32"):
        context.enqueue_copy(context.enqueue_create_buffer["float32"](5), host)


def test_a_view_of_the_host_becomes_a_device_buffer(context):
    tensor = TileTensor(np.arange(12, dtype=np.int32), tw.row_major(3, 4))
    host = context.enqueue_create_host_buffer["int32"](4)
    context.enqueue_copy(host, tensor.slice[1:2, 0:4]().to_device_buffer(context))
    assert host.array.tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize("name", DRIVERS)
def test_buffers_of_a_device_are_moved_there(name):
    if DRIVERS[name].why_not():
        pytest.skip(DRIVERS[name].why_not())
    context = DeviceContext(name)
    values = np.random.default_rng(3).standard_normal(40 * 50).astype(np.float32)
    device = context.enqueue_create_buffer["float32"](values.size)
    context.enqueue_copy(device, values)
    moved = tw.relayout(device, tw.row_major(40, 50), tw.col_major(40, 50))
    got = np.asarray(moved.get())
    np.testing.assert_array_equal(got, values.reshape(40, 50).T.reshape(-1))


def test_an_unknown_device_is_refused_by_name():
    with pytest.raises(TransferError, match="no device 'abacus'; choose one of host, opencl, cuda"):
        DeviceContext("abacus")
