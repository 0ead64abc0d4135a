# Make a table of sums: a column of numbers along the left, a row of
# numbers along the top.
from std.gpu import thread_idx
from std.gpu.host import DeviceContext
from std.testing import assert_equal
from layout import TileTensor, row_major

comptime ROWS = 3
comptime COLUMNS = 4


def add_table(table: TileTensor, left: TileTensor, top: TileTensor):
    var row = thread_idx.y
    var column = thread_idx.x
    # your part: write table[row, column]; left has one column, and top one row
    table[row, column] = left[row, 0] + top[0, column]
    # end of your part


def main() raises:
    with DeviceContext() as ctx:
        var left = ctx.enqueue_create_buffer[DType.float32](ROWS)
        var top = ctx.enqueue_create_buffer[DType.float32](COLUMNS)
        var table = ctx.enqueue_create_buffer[DType.float32](ROWS * COLUMNS)
        table.enqueue_fill(-1)
        with left.map_to_host() as host:
            for i in range(ROWS):
                host[i] = Float32(10 * i)
        with top.map_to_host() as host:
            for i in range(COLUMNS):
                host[i] = Float32(i)
        ctx.enqueue_function[add_table](
            TileTensor(table, row_major[ROWS, COLUMNS]()),
            TileTensor(left, row_major[ROWS, 1]()),
            TileTensor(top, row_major[1, COLUMNS]()),
            grid_dim=1, block_dim=(COLUMNS, ROWS),
        )
        ctx.synchronize()
        with table.map_to_host() as host:
            print(host)
            for row in range(ROWS):
                for column in range(COLUMNS):
                    assert_equal(host[row * COLUMNS + column], Float32(10 * row + column))
    print("Right.")
