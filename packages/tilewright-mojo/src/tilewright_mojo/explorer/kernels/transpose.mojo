# A tile is transposed in shared memory. It is right, but slow:
# how many words does each bank serve for a warp?
from std.gpu import barrier, thread_idx
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from layout import TileTensor, row_major
from layout.tile_tensor import stack_allocation

comptime SIDE = 32
comptime Square = row_major[SIDE, SIDE]()


def transpose(result: TileTensor, matrix: TileTensor):
    var tile = stack_allocation[
        dtype=DType.float32, address_space=AddressSpace.SHARED
    ](row_major[SIDE, SIDE]())
    var row = thread_idx.y
    var column = thread_idx.x
    tile[row, column] = matrix[row, column]
    barrier()
    result[row, column] = tile[column, row]


def main() raises:
    with DeviceContext() as ctx:
        var matrix = ctx.enqueue_create_buffer[DType.float32](SIDE * SIDE)
        var result = ctx.enqueue_create_buffer[DType.float32](SIDE * SIDE)
        with matrix.map_to_host() as host:
            for k in range(SIDE * SIDE):
                host[k] = Float32(k)
        ctx.enqueue_function[transpose](
            TileTensor(result, Square),
            TileTensor(matrix, Square),
            grid_dim=1, block_dim=(SIDE, SIDE),
        )
        ctx.synchronize()
        with result.map_to_host() as host:
            print(host[0], host[1], host[2])
