# A block has fewer threads than there are numbers, so several
# blocks share the work. Add 10 to every number; the last block has
# threads without one.
from std.gpu import block_dim, block_idx, thread_idx
from std.gpu.host import DeviceContext
from std.testing import assert_equal
from layout import TileTensor, row_major

comptime SIZE = 10
comptime THREADS = 4
comptime BLOCKS = 3


def add_ten(result: TileTensor, numbers: TileTensor):
    var mine = thread_idx.x
    # your part: number the threads of all blocks, and write result
    var i = block_idx.x * block_dim.x + mine
    if i < SIZE:
        result[i] = numbers[i] + 10
    # end of your part


def main() raises:
    with DeviceContext() as ctx:
        var numbers = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var result = ctx.enqueue_create_buffer[DType.float32](SIZE)
        result.enqueue_fill(-1)
        with numbers.map_to_host() as host:
            for i in range(SIZE):
                host[i] = Float32(i)
        ctx.enqueue_function[add_ten](
            TileTensor(result, row_major[SIZE]()),
            TileTensor(numbers, row_major[SIZE]()),
            grid_dim=BLOCKS, block_dim=THREADS,
        )
        ctx.synchronize()
        with result.map_to_host() as host:
            print(host)
            for i in range(SIZE):
                assert_equal(host[i], Float32(i + 10))
    print("Right.")
