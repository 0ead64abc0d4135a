# Add up each row of a matrix. A block has a row, and its threads
# add as in the dot product.
from std.gpu import barrier, block_idx, thread_idx
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from std.testing import assert_equal
from layout import TileTensor, row_major
from layout.tile_tensor import stack_allocation

comptime ROWS = 3
comptime COLUMNS = 8


def sum_rows(sums: TileTensor, matrix: TileTensor):
    var part = stack_allocation[
        dtype=DType.float32, address_space=AddressSpace.SHARED
    ](row_major[COLUMNS]())
    var row = block_idx.x
    var column = thread_idx.x
    # your part: bring the row, add it up, write sums[row]
    part[column] = matrix[row, column]
    barrier()
    var half = COLUMNS // 2
    while half > 0:
        if column < half:
            part[column] += part[column + half]
        barrier()
        half //= 2
    if column == 0:
        sums[row] = part[0]
    # end of your part


def main() raises:
    with DeviceContext() as ctx:
        var matrix = ctx.enqueue_create_buffer[DType.float32](ROWS * COLUMNS)
        var sums = ctx.enqueue_create_buffer[DType.float32](ROWS)
        sums.enqueue_fill(-1)
        with matrix.map_to_host() as host:
            for i in range(ROWS * COLUMNS):
                host[i] = Float32(i)
        ctx.enqueue_function[sum_rows](
            TileTensor(sums, row_major[ROWS]()),
            TileTensor(matrix, row_major[ROWS, COLUMNS]()),
            grid_dim=ROWS, block_dim=COLUMNS,
        )
        ctx.synchronize()
        with sums.map_to_host() as host:
            print(host)
            for row in range(ROWS):
                var total = 0
                for column in range(COLUMNS):
                    total += row * COLUMNS + column
                assert_equal(host[row], Float32(total))
    print("Right.")
