# SPDX-License-Identifier: Apache-2.0
"""Mojo's gpu modules: who threads are, warps, blocks, barriers in memory, atomics, contexts and buffers."""

import pytest
from tilewright_mojo.max.gpu.host import DeviceAttribute, DeviceContext, Dim
from tilewright_mojo.max.gpu.memory import async_copy, async_copy_wait_all, external_memory
from tilewright_mojo.max.gpu.primitives import block, cluster, warp
from tilewright_mojo.max.gpu.sync import barrier, mbarrier_arrive, mbarrier_init, mbarrier_test_wait, syncwarp
from tilewright_mojo.std.atomic import Atomic
from tilewright_mojo.std.gpu import WARP_SIZE, block_idx, global_idx, lane_id, thread_idx, warp_id

from tilewright import FormatError, KernelError, LayoutError, TransferError, mojo
from tilewright.mojo import DType, Float32, Int32, UInt32
from tilewright.mojo.layout import AddressSpace, TileTensor, row_major, stack_allocation
from tilewright_mojo.running import run_collecting
from tilewright_mojo.simt import launch


def gather(kernel, threads=32, **options):
    log = []
    assert launch(kernel, log, grid=1, block=threads, **options).clean
    return log


def test_shuffles_and_reductions_of_a_warp():
    def kernel(log):
        x = Float32(lane_id())
        log.append(
            (
                warp.sum(x),
                warp.max(x),
                warp.min(x),
                warp.broadcast(x + 7),
                warp.prefix_sum(x),
                warp.prefix_sum.with_parameters(exclusive=True)(x),
                warp.shuffle_down(x, UInt32(1)),
                warp.shuffle_up(x, 1),
                warp.shuffle_xor(x, 16),
                warp.shuffle_idx(x, 3),
                warp.lane_group_sum.with_parameters(num_lanes=4)(x),
                warp.vote[DType.uint32](lane_id() < 2),
            )
        )

    log = gather(kernel)
    total = sum(range(WARP_SIZE))
    assert [float(number) for number in log[5]] == [total, 31, 0, 7, 15, 10, 6, 4, 21, 3, 22, 3]
    assert all(row[0] == Float32(total) for row in log)
    assert type(log[0][0]) is type(Float32(0))


def test_operations_of_a_block():
    def kernel(log):
        x = Int32(thread_idx.x)
        log.append(
            (
                block.sum.with_parameters(block_size=64, broadcast=True)(x),
                block.sum.with_parameters(block_size=64, broadcast=False)(val=x),
                block.max.with_parameters(block_size=64)(x),
                block.prefix_sum.with_parameters(dtype=DType.int32, block_size=64, exclusive=True)(val=x),
                block.broadcast.with_parameters(block_size=64)(val=x, src_thread=9),
            )
        )

    log = gather(kernel, 64)
    assert [int(number) for number in log[0]] == [2016, 2016, 63, 0, 9]
    assert [int(number) for number in log[3]] == [2016, 3, 63, 3, 9]


def test_barriers_in_shared_memory():
    def kernel(log):
        bar = stack_allocation[DType.uint64, AddressSpace.SHARED](row_major[1]())
        data = stack_allocation[DType.int32, AddressSpace.SHARED](row_major[4]())
        if thread_idx.x == 0:
            mbarrier_init(bar.ptr, 4)
        barrier()
        data[thread_idx.x] = thread_idx.x
        mbarrier_arrive(bar.ptr)
        while not mbarrier_test_wait(bar.ptr, 4):
            pass
        log.append(int(data[3 - thread_idx.x]))

    assert gather(kernel, 4) == [3, 2, 1, 0]

    def too_few(log):
        bar = stack_allocation[DType.uint64, AddressSpace.SHARED](row_major[1]())
        if thread_idx.x == 0:
            mbarrier_init(bar.ptr, 5)
        barrier()
        mbarrier_arrive(bar.ptr)
        mbarrier_test_wait(bar.ptr, 5)

    with pytest.raises(KernelError, match="deadlock"):
        launch(too_few, [], grid=1, block=4)


def test_syncwarp_and_warp_id():
    def kernel(log):
        syncwarp()
        log.append(warp_id())

    assert gather(kernel, 64) == [0] * 32 + [1] * 32


def test_blocks_of_a_cluster_wait_for_each_other():
    def kernel(parts, totals):
        parts[block_idx.x] = Int32(cluster.block_rank_in_cluster())
        cluster.cluster_arrive()
        cluster.cluster_wait()
        if thread_idx.x == 0:
            first = block_idx.x // 2 * 2
            totals[block_idx.x] = 10 * parts[first] + parts[first + 1]

    ctx = DeviceContext()
    parts, totals = [ctx.enqueue_create_buffer[DType.int32](4) for _ in range(2)]
    ctx.enqueue_function[kernel](parts, totals, grid_dim=4, block_dim=1, cluster_dim=Dim(2))
    assert str(totals) == "DeviceBuffer([1, 1, 1, 1])"
    with pytest.raises(KernelError, match="race between blocks"):  # without a cluster nothing orders them
        ctx.enqueue_function[kernel](parts, totals, grid_dim=4, block_dim=1)
    with pytest.raises(TransferError, match="known only inside a kernel"):
        cluster.cluster_sync()

    def leaves(log):
        if block_idx.x == 0:
            cluster.cluster_sync()

    with pytest.raises(KernelError, match="1 block of the cluster returned without coming"):
        launch(leaves, [], grid=2, block=2, cluster=2)
    with pytest.raises(LayoutError, match="not a multiple of clusters"):
        launch(leaves, [], grid=3, block=2, cluster=2)


@pytest.mark.parametrize("make", ["enqueue_create_buffer", "enqueue_create_host_buffer"])
def test_a_buffer_is_filled_with_numbers_of_its_type(make):
    ctx = DeviceContext()
    buffer = getattr(ctx, make)[DType.float32](2)
    for value in (Int32(1), UInt32(1), mojo.Float64(1)):
        with pytest.raises(FormatError, match="the types must match"):
            buffer.enqueue_fill(value)
        with pytest.raises(FormatError, match="the types must match"):
            ctx.enqueue_memset(buffer, value)
    assert "[2.0, 2.0]" in str(buffer.enqueue_fill(Float32(2)))
    assert "[3.0, 3.0]" in str(buffer.enqueue_fill(3))


def test_atomics():
    ctx = DeviceContext()
    counts = ctx.enqueue_create_buffer[DType.int32](4).enqueue_fill(0)
    best = ctx.enqueue_create_buffer[DType.float32](1).enqueue_fill(0)

    def kernel(counts, best):
        Atomic.fetch_add(counts + global_idx.x % 4, 1)
        Atomic.max(best, Float32(global_idx.x))

    ctx.enqueue_function[kernel](counts, best, grid_dim=4, block_dim=8)
    assert (str(counts), str(best)) == ("DeviceBuffer([8, 8, 8, 8])", "DeviceBuffer([31.0])")

    counter = Atomic[Int32](3)
    counter += 4
    assert counter.load() == 7
    assert counter.compare_exchange(7, 9)
    assert not counter.compare_exchange(7, 1)
    assert counter.exchange(2) == 9
    counter.store(5)
    assert counter.value == Int32(5)


def test_dynamic_shared_memory_and_single_copies():
    ctx = DeviceContext()
    source = ctx.enqueue_create_buffer[DType.float32](16)
    with source.map_to_host() as numbers:
        for k in range(16):
            numbers[k] = k
    target = ctx.enqueue_create_buffer[DType.float32](16)

    def kernel(source, target):
        shared = external_memory[DType.float32]()
        async_copy.with_parameters(16)(source + 4 * thread_idx.x, shared + 4 * thread_idx.x)
        async_copy_wait_all()
        barrier()
        for k in range(4):
            place = thread_idx.x + 4 * k
            target[place] = shared[15 - place]

    ctx.enqueue_function[kernel](source, target, grid_dim=1, block_dim=4, shared_mem_bytes=64)
    with target.map_to_host() as numbers:
        assert [float(x) for x in numbers] == list(range(15, -1, -1))


def test_a_buffer_that_nobody_wrote_is_not_read():
    ctx = DeviceContext()
    new = ctx.enqueue_create_buffer[DType.int32](4)

    def kernel(numbers):
        numbers[0] = numbers[1]

    with pytest.raises(KernelError, match="uninitialised read: numbers\\[1\\] in global memory"):
        ctx.enqueue_function[kernel](new, grid_dim=1, block_dim=1)
    new.enqueue_fill(1)
    ctx.enqueue_function[kernel](new, grid_dim=1, block_dim=1)


def test_buffers():
    ctx = DeviceContext()
    with ctx as same:
        assert same is ctx
    device = ctx.enqueue_create_buffer[DType.int32](8).enqueue_fill(3)
    part = device.create_sub_buffer[DType.int32](2, 4)
    part.enqueue_fill(5)
    host = ctx.enqueue_create_host_buffer[DType.int32](8)
    device.enqueue_copy_to(host)
    assert str(host) == "HostBuffer([3, 3, 5, 5, 5, 5, 3, 3])"
    host.enqueue_fill(1)
    host.enqueue_copy_to(device)
    assert str(part) == "DeviceBuffer([1, 1, 1, 1])"
    ctx.enqueue_memset(device, 2)
    ctx.enqueue_copy(src_buf=device, dst_buf=host)
    assert host[7] == 2
    assert host.unsafe_ptr()[3] == 2
    with pytest.raises(LayoutError, match="device memory cannot be reached"):
        device.unsafe_ptr()[0]
    few = ctx.enqueue_create_host_buffer[DType.int32](2)
    ctx.enqueue_copy(few, device)  # as much as there is place for
    assert str(few) == "HostBuffer([2, 2])"
    with pytest.raises(LayoutError, match="a copy to 8 x int32 needs as many scalars of that format, got 2 x int32"):
        ctx.enqueue_copy(device, few)
    with pytest.raises(IndexError, match="outside a buffer of 8"):
        device.create_sub_buffer[DType.int32](6, 4)
    many = ctx.enqueue_create_host_buffer[DType.int32](2000)
    assert str(many) == "HostBuffer([0, 0, 0, ..., 0, 0, 0])"


def test_what_a_context_says_about_itself():
    ctx = DeviceContext()
    assert DeviceContext.number_of_devices() == 1
    assert ctx.get_attribute(DeviceAttribute.MAX_THREADS_PER_BLOCK) == 1024
    assert ctx.get_attribute(DeviceAttribute.WARP_SIZE) == WARP_SIZE
    assert (ctx.api(), DeviceContext(api="cpu").name()) == ("cuda", "cpu")
    assert (str(Dim(2, 3)), Dim((4, 5)).z) == ("(x=2, y=3)", 1)


def test_compiled_functions():
    ctx = DeviceContext()
    numbers = ctx.enqueue_create_buffer[DType.int32](4)

    def kernel(tensor, scale):
        tensor[global_idx.x] = scale * global_idx.x

    compiled = ctx.compile_function[kernel, kernel]()
    ctx.enqueue_function(compiled, TileTensor(numbers, row_major[4]()), 3, grid_dim=Dim(2), block_dim=Dim(2))
    assert str(numbers) == "DeviceBuffer([0, 3, 6, 9])"
    ctx.enqueue_function_experimental[kernel](TileTensor(numbers, row_major[4]()), 2, grid_dim=1, block_dim=4)
    assert str(numbers) == "DeviceBuffer([0, 2, 4, 6])"


def test_a_barrier_in_memory_has_to_be_made_before_others_arrive():
    text = """
from std.gpu import barrier, thread_idx
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from std.gpu.sync import mbarrier_arrive, mbarrier_init, mbarrier_test_wait
from layout import row_major
from layout.tile_tensor import stack_allocation

def kernel():
    var memory = stack_allocation[dtype=DType.uint64, address_space=AddressSpace.SHARED](row_major[1]())
    if thread_idx.x == 0:
        mbarrier_init(memory.ptr, 4)
    barrier()
    _ = mbarrier_arrive(memory.ptr)
    while not mbarrier_test_wait(memory.ptr, 4):
        pass

def main() raises:
    with DeviceContext() as ctx:
        ctx.enqueue_function[kernel](grid_dim=1, block_dim=4)
"""
    right = run_collecting(text, True, (), {}, True)
    assert (right.problem, right.reports[0].errors) == (None, ())
    wrong = run_collecting(text.replace("    barrier()\n", ""), True, (), {}, True)
    assert [defect.kind for defect in wrong.reports[0].errors] == ["race"]


def test_memory_is_filled_through_spans_and_pointers(capsys):
    mojo.run("""
from std.math import iota
from std.random import rand, randint, randn
from max.gpu.host import DeviceContext

def main() raises:
    var ctx = DeviceContext()
    var buffer = ctx.enqueue_create_host_buffer[DType.float32](6)
    iota(buffer.as_span())
    print(buffer[0], buffer[5])
    iota(buffer.as_span(), 3)
    print(buffer[0], buffer[5])
    randint[DType.float32](buffer.as_span(), low=2, high=2)
    print(buffer[0], buffer.unsafe_ptr().unsafe_load[width=2](4))
    rand(buffer.unsafe_ptr(), 6)
    print(buffer[0] < 1)
    randn(buffer.unsafe_ptr(), 6, 4.0, standard_deviation=0.0)
    buffer.unsafe_ptr().unsafe_store(1, Float32(7))
    print(buffer[3], buffer[1])
""")
    assert capsys.readouterr().out.split("\n")[:5] == ["0.0 5.0", "3.0 8.0", "2.0 [2.0, 2.0]", "True", "4.0 7.0"]
