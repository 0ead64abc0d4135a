# SPDX-License-Identifier: Apache-2.0
"""Kernels in Mojo source run on the checking machine, also through helpers, methods and closures that wait."""

import pytest

from tilewright import mojo
from tilewright.errors import KernelError
from tilewright_mojo.simt import collect_reports

KERNEL = """\
from std.gpu import thread_idx
from max.gpu.sync import barrier
from max.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from layout import Layout, LayoutTensor

comptime size = 8
comptime dtype = DType.float32
comptime layout = Layout.row_major(size)


def reduce[n: Int](shared: LayoutTensor[mut=True, dtype, ...], i: Int):
    var stride = n // 2
    while stride > 0:
        if i < stride:
            shared[i] += shared[i + stride]
        barrier()
        stride //= 2


@fieldwise_init
struct Scaler(ImplicitlyCopyable):
    var factor: Float32

    def apply(self, x: Float32) -> Float32:
        return x * self.factor

    def meet(self):
        barrier()


def add_one(mut k: Int):
    k += 1


def kernel[
    factor: Int
](output: LayoutTensor[mut=True, dtype, layout, MutAnyOrigin], a: LayoutTensor[dtype, layout, MutAnyOrigin]):
    var shared = LayoutTensor[
        dtype, layout, MutAnyOrigin, address_space=AddressSpace.SHARED
    ].stack_allocation()
    var i = Int(thread_idx.x)
    var scaler = Scaler(factor)
    shared[i] = scaler.apply(rebind[Float32](a[i]))
    scaler.meet()

    def wait_and_count() {mut} -> Int:
        barrier()
        return 3

    var count = wait_and_count()
    add_one(count)
    reduce[size](shared, i)
    if i == 0:
        output[0] = shared[0] + Float32(count)


def main() raises:
    with DeviceContext() as ctx:
        var output = ctx.enqueue_create_buffer[dtype](size)
        var a = ctx.enqueue_create_buffer[dtype](size)
        output.enqueue_fill(0)
        a.enqueue_fill(2)
        ctx.enqueue_function[kernel[3]](
            LayoutTensor[dtype, layout](output), LayoutTensor[dtype, layout](a), grid_dim=1, block_dim=size
        )
        ctx.synchronize()
        with output.map_to_host() as host:
            print(host[0])
"""


def test_a_kernel_with_helpers_that_wait(capsys):
    with collect_reports() as reports:
        mojo.run(KERNEL, name="kernel.mojo")
    assert capsys.readouterr().out == "52.0\n"
    assert [report.clean for report in reports] == [True]


def test_a_removed_barrier_is_a_race_between_lines_of_the_source():
    damaged = KERNEL.replace("        barrier()\n        stride //= 2", "        stride //= 2")
    with pytest.raises(KernelError) as caught:
        mojo.run(damaged, name="damaged.mojo")
    assert "damaged.mojo:16" in str(caught.value)
