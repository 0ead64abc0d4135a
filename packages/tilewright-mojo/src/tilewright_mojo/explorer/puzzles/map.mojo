# Add 10 to every number. There is a thread for each of them.
from std.gpu import thread_idx
from std.gpu.host import DeviceContext
from std.testing import assert_equal
from layout import TileTensor, row_major

comptime SIZE = 8


def add_ten(result: TileTensor, numbers: TileTensor):
    var i = thread_idx.x
    # your part: write result[i]
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
            grid_dim=1, block_dim=SIZE,
        )
        ctx.synchronize()
        with result.map_to_host() as host:
            print(host)
            for i in range(SIZE):
                assert_equal(host[i], Float32(i + 10))
    print("Right.")
