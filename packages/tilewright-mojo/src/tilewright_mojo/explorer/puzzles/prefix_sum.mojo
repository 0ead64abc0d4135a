# Each result is the sum of all numbers up to its own. In every
# round add what lies 1, 2, 4 and 8 places before. A thread must not
# write what its neighbor still has to read.
from std.gpu import barrier, thread_idx
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from std.testing import assert_equal
from layout import TileTensor, row_major
from layout.tile_tensor import stack_allocation

comptime SIZE = 16


def scan(result: TileTensor, numbers: TileTensor):
    var sums = stack_allocation[
        dtype=DType.float32, address_space=AddressSpace.SHARED
    ](row_major[SIZE]())
    var i = thread_idx.x
    sums[i] = numbers[i]
    barrier()
    # your part: add in rounds
    var back = 1
    while back < SIZE:
        var other: Float32 = 0
        if i >= back:
            other = sums[i - back]
        barrier()
        sums[i] += other
        barrier()
        back *= 2
    # end of your part
    result[i] = sums[i]


def main() raises:
    with DeviceContext() as ctx:
        var numbers = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var result = ctx.enqueue_create_buffer[DType.float32](SIZE)
        result.enqueue_fill(-1)
        with numbers.map_to_host() as host:
            for i in range(SIZE):
                host[i] = Float32(i)
        ctx.enqueue_function[scan](
            TileTensor(result, row_major[SIZE]()),
            TileTensor(numbers, row_major[SIZE]()),
            grid_dim=1, block_dim=SIZE,
        )
        ctx.synchronize()
        with result.map_to_host() as host:
            print(host)
            for i in range(SIZE):
                assert_equal(host[i], Float32(i * (i + 1) // 2))
    print("Right.")
