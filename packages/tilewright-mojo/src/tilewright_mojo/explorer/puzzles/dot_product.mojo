# Multiply two rows of numbers, and add up the products in a tree:
# half of the threads add what the other half has, and again.
from std.gpu import barrier, thread_idx
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from std.testing import assert_equal
from layout import TileTensor, row_major
from layout.tile_tensor import stack_allocation

comptime SIZE = 16


def dot(result: TileTensor, left: TileTensor, right: TileTensor):
    var products = stack_allocation[
        dtype=DType.float32, address_space=AddressSpace.SHARED
    ](row_major[SIZE]())
    var i = thread_idx.x
    products[i] = left[i] * right[i]
    barrier()
    # your part: add up the products; thread 0 writes result[0]
    var half = SIZE // 2
    while half > 0:
        if i < half:
            products[i] += products[i + half]
        barrier()
        half //= 2
    if i == 0:
        result[0] = products[0]
    # end of your part


def main() raises:
    with DeviceContext() as ctx:
        var left = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var right = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var result = ctx.enqueue_create_buffer[DType.float32](1)
        result.enqueue_fill(-1)
        with left.map_to_host() as host:
            for i in range(SIZE):
                host[i] = Float32(i)
        with right.map_to_host() as host:
            for i in range(SIZE):
                host[i] = Float32(i + 1)
        ctx.enqueue_function[dot](
            TileTensor(result, row_major[1]()),
            TileTensor(left, row_major[SIZE]()),
            TileTensor(right, row_major[SIZE]()),
            grid_dim=1, block_dim=SIZE,
        )
        ctx.synchronize()
        with result.map_to_host() as host:
            print(host)
            var total = 0
            for i in range(SIZE):
                total += i * (i + 1)
            assert_equal(host[0], Float32(total))
    print("Right.")
