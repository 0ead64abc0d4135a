# Add 10 to every number of a matrix. Threads have two indices, and
# there are more of them than rows and columns. Which of x and y
# should be the column, so that neighbors read neighbors?
from std.gpu import thread_idx
from std.gpu.host import DeviceContext
from std.testing import assert_equal
from layout import TileTensor, row_major

comptime ROWS = 3
comptime COLUMNS = 5
comptime SIDE = 6


def add_ten(result: TileTensor, matrix: TileTensor):
    var x = thread_idx.x
    var y = thread_idx.y
    # your part: find row and column, and write result[row, column]
    var row = y
    var column = x
    if row < ROWS and column < COLUMNS:
        result[row, column] = matrix[row, column] + 10
    # end of your part


def main() raises:
    with DeviceContext() as ctx:
        var matrix = ctx.enqueue_create_buffer[DType.float32](ROWS * COLUMNS)
        var result = ctx.enqueue_create_buffer[DType.float32](ROWS * COLUMNS)
        result.enqueue_fill(-1)
        with matrix.map_to_host() as host:
            for i in range(ROWS * COLUMNS):
                host[i] = Float32(i)
        ctx.enqueue_function[add_ten](
            TileTensor(result, row_major[ROWS, COLUMNS]()),
            TileTensor(matrix, row_major[ROWS, COLUMNS]()),
            grid_dim=1, block_dim=(SIDE, SIDE),
        )
        ctx.synchronize()
        with result.map_to_host() as host:
            print(host)
            for i in range(ROWS * COLUMNS):
                assert_equal(host[i], Float32(i + 10))
    print("Right.")
