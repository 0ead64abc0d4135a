# SPDX-License-Identifier: Apache-2.0
"""Arrays of PyOpenCL: every move takes them and gives them back, where they are, with the bits of the host."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.copying import copy, execute
from tilewright.errors import LayoutError, TransferError

from ..on_devices import OPENCL, needs_opencl, random, same_bits

pytestmark = needs_opencl


@pytest.fixture(scope="module")
def cl_array():
    return pytest.importorskip("pyopencl.array")


@pytest.fixture(scope="module")
def queue():
    return OPENCL.default_backend().queue


@pytest.mark.parametrize("dtype", [None, "float16", "int32", "bfloat8_b", "bfloat4_a"])
def test_tilize_and_untilize(cl_array, queue, dtype):
    host = random((3, 40, 50))
    tiles = tw.tilize(cl_array.to_device(queue, host), dtype=dtype, pad_value=3)
    wanted = tw.tilize(host, dtype=dtype, pad_value=3, engine="reference")
    assert isinstance(tiles, cl_array.Array)
    same_bits(tiles.get(), wanted)
    block = dtype if str(dtype).startswith("bfloat") else None
    back = tw.untilize(tiles, host.shape, dtype=block)
    assert isinstance(back, cl_array.Array)
    same_bits(back.get(), tw.untilize(wanted, host.shape, dtype=block, engine="reference"))


def test_relayout_and_copy(cl_array, queue):
    host = random((30, 44), 1)
    there = cl_array.to_device(queue, host)
    moved = tw.copying.relayout(there, tw.row_major(30, 44), tw.col_major(30, 44), dtype="float64")
    assert isinstance(moved, cl_array.Array)
    same_bits(moved.get(), host.T.reshape(-1).astype(np.float64))
    target = cl_array.zeros(queue, (30, 44), np.int32)
    assert copy(there, target) is target
    same_bits(target.get(), host.astype(np.int32))


def test_pack_and_unpack(cl_array, queue):
    host = random(4096, 2)
    there = cl_array.to_device(queue, host)
    packed = tw.pack(there, "bfloat8_b")
    wanted = tw.pack(host, "bfloat8_b", engine="reference")
    assert isinstance(packed, cl_array.Array)
    same_bits(packed.get(), wanted)
    same_bits(wanted, tw.format_of("bfloat8_b").pack(host, 1024))
    values = tw.unpack(packed, "bfloat8_b")
    assert isinstance(values, cl_array.Array)
    same_bits(values.get(), tw.unpack(wanted, "bfloat8_b", engine="reference"))


def test_out_is_filled_and_given_back(cl_array, queue):
    host = random((33, 35), 3)
    there = cl_array.to_device(queue, host)
    out = cl_array.zeros(queue, 4096, np.float32)
    tw.tilize(there, out=out)
    same_bits(out.get(), tw.tilize(host, engine="reference"))
    buffer = cl_array.zeros(queue, (33, 35), np.float32)
    tw.untilize(out, (33, 35), out=buffer)
    same_bits(buffer.get(), host)
    with pytest.raises(LayoutError, match="out must be a contiguous array of 4096"):
        tw.tilize(there, out=cl_array.zeros(queue, 10, np.float32))


def test_views_that_start_anywhere_and_go_by_strides(cl_array, queue):
    host = random((41, 53), 4)
    there = cl_array.to_device(queue, host)
    same_bits(tw.tilize(there[3:, 5:]).get(), tw.tilize(host[3:, 5:], engine="reference"))
    same_bits(tw.tilize(there.T).get(), tw.tilize(host.T, engine="reference"))
    whole = cl_array.to_device(queue, np.full((41, 53), 9, np.float32))
    copy(there[3:20, 5:30], whole[10:27, 1:26])
    wanted = np.full((41, 53), 9, np.float32)
    wanted[10:27, 1:26] = host[3:20, 5:30]
    same_bits(whole.get(), wanted)


def test_between_the_host_and_the_device(cl_array, queue):
    host = random((20, 30), 5)
    there = cl_array.zeros(queue, (20, 30), np.float64)
    copy(host, there)
    same_bits(there.get(), host.astype(np.float64))
    back = np.zeros((30, 20), np.float32)
    copy(there.T, back)
    same_bits(back, host.T)


def test_plain_buffers_hold_bytes(queue):
    import pyopencl as cl

    host = np.arange(48, dtype=np.int16)
    flags = cl.mem_flags.READ_WRITE
    source = cl.Buffer(queue.context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=host)
    target = cl.Buffer(queue.context, flags, size=96)
    plan = tw.plan_copy(tw.Placement(tw.row_major(6, 8), "int16"), tw.Placement(tw.col_major(6, 8), "int16"))
    execute(plan, source, target)
    found = np.zeros(48, np.int16)
    execute(tw.plan_copy(tw.Placement(tw.Layout(48), "int16"), tw.Placement(tw.Layout(48), "int16")), target, found)
    same_bits(found, host.reshape(6, 8).T.reshape(-1))


def test_empty_arrays_are_no_work(cl_array, queue):
    nothing = cl_array.zeros(queue, (0, 5), np.float32)
    assert tw.tilize(nothing).size == 0
    assert copy(nothing, cl_array.zeros(queue, (0, 5), np.int32)).size == 0


def test_pipelines_compute_arrays_where_they_are(cl_array, queue):
    from tilewright.tiling import Input, Output, Pipeline, Tiler

    host = random((50, 60), 6)
    a, b = cl_array.to_device(queue, host), cl_array.zeros(queue, (50, 60), np.float32)
    tiler = Tiler((50, 60), (16, 32))
    pipeline = Pipeline([Input(a, tiler)], [Output(b, tiler)])
    pipeline.kernel("in0 * in0").run()
    same_bits(b.get(), host * host)
    with pytest.raises(tw.TransferError, match=r"in opencl memory.*pipeline.kernel"):
        pipeline.run(lambda x, y: None)
    with pytest.raises(tw.TransferError, match="in opencl memory, but the kernel is for cuda"):
        pipeline.kernel("in0", engine="cuda")._device_backend(OPENCL)


def test_halves_of_one_buffer_are_copied_to_each_other(cl_array, queue):
    whole = cl_array.to_device(queue, np.arange(32, dtype=np.float32).reshape(4, 8))
    copy(whole[:, :4], whole[:, 4:])
    assert whole.get().tolist() == [[*range(k, k + 4)] * 2 for k in range(0, 32, 8)]
    with pytest.raises(TransferError, match="share memory"):
        copy(whole[:, :4], whole[:, 3:7])
