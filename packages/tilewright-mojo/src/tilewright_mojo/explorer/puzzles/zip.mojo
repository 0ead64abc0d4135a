# Add two rows of numbers, each number to the one at its place.
from std.gpu import thread_idx
from std.gpu.host import DeviceContext
from std.testing import assert_equal
from layout import TileTensor, row_major

comptime SIZE = 8


def add_pairs(result: TileTensor, left: TileTensor, right: TileTensor):
    var i = thread_idx.x
    # your part: write result[i]
    result[i] = left[i] + right[i]
    # end of your part


def main() raises:
    with DeviceContext() as ctx:
        var left = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var right = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var result = ctx.enqueue_create_buffer[DType.float32](SIZE)
        result.enqueue_fill(-1)
        with left.map_to_host() as host:
            for i in range(SIZE):
                host[i] = Float32(i)
        with right.map_to_host() as host:
            for i in range(SIZE):
                host[i] = Float32(100 * i)
        ctx.enqueue_function[add_pairs](
            TileTensor(result, row_major[SIZE]()),
            TileTensor(left, row_major[SIZE]()),
            TileTensor(right, row_major[SIZE]()),
            grid_dim=1, block_dim=SIZE,
        )
        ctx.synchronize()
        with result.map_to_host() as host:
            print(host)
            for i in range(SIZE):
                assert_equal(host[i], Float32(101 * i))
    print("Right.")
