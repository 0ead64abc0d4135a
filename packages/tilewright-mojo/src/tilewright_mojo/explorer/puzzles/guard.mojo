# There are more threads than numbers: those without one must leave
# memory alone. Double every number.
from std.gpu import thread_idx
from std.gpu.host import DeviceContext
from std.testing import assert_equal
from layout import TileTensor, row_major

comptime SIZE = 6
comptime THREADS = 8


def double(result: TileTensor, numbers: TileTensor):
    var i = thread_idx.x
    # your part: write result[i], where there is one
    if i < SIZE:
        result[i] = 2 * numbers[i]
    # end of your part


def main() raises:
    with DeviceContext() as ctx:
        var numbers = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var result = ctx.enqueue_create_buffer[DType.float32](SIZE)
        result.enqueue_fill(-1)
        with numbers.map_to_host() as host:
            for i in range(SIZE):
                host[i] = Float32(i)
        ctx.enqueue_function[double](
            TileTensor(result, row_major[SIZE]()),
            TileTensor(numbers, row_major[SIZE]()),
            grid_dim=1, block_dim=THREADS,
        )
        ctx.synchronize()
        with result.map_to_host() as host:
            print(host)
            for i in range(SIZE):
                assert_equal(host[i], Float32(2 * i))
    print("Right.")
