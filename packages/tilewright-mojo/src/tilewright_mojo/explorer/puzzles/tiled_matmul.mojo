# Multiply two matrices tile by tile: a block brings a tile of each
# into shared memory, adds their product to its own, and goes on to
# the next two.
from std.gpu import barrier, block_idx, thread_idx
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from std.testing import assert_equal
from layout import TileTensor, row_major
from layout.tile_tensor import stack_allocation

comptime SIDE = 8
comptime TILE = 4


def multiply(product: TileTensor, a: TileTensor, b: TileTensor):
    var left = stack_allocation[
        dtype=DType.float32, address_space=AddressSpace.SHARED
    ](row_major[TILE, TILE]())
    var right = stack_allocation[
        dtype=DType.float32, address_space=AddressSpace.SHARED
    ](row_major[TILE, TILE]())
    var y = thread_idx.y
    var x = thread_idx.x
    var row = block_idx.y * TILE + y
    var column = block_idx.x * TILE + x
    var total: Float32 = 0
    for start in range(0, SIDE, TILE):
        left[y, x] = a[row, start + x]
        # your part: bring the other tile, and add their product to total
        right[y, x] = b[start + y, column]
        barrier()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        barrier()
        # end of your part
    product[row, column] = total


def main() raises:
    with DeviceContext() as ctx:
        var a = ctx.enqueue_create_buffer[DType.float32](SIDE * SIDE)
        var b = ctx.enqueue_create_buffer[DType.float32](SIDE * SIDE)
        var product = ctx.enqueue_create_buffer[DType.float32](SIDE * SIDE)
        product.enqueue_fill(-1)
        with a.map_to_host() as host:
            for i in range(SIDE * SIDE):
                host[i] = Float32(i)
        with b.map_to_host() as host:
            for i in range(SIDE * SIDE):
                host[i] = Float32(i // SIDE - i % SIDE)
        ctx.enqueue_function[multiply](
            TileTensor(product, row_major[SIDE, SIDE]()),
            TileTensor(a, row_major[SIDE, SIDE]()),
            TileTensor(b, row_major[SIDE, SIDE]()),
            grid_dim=(SIDE // TILE, SIDE // TILE), block_dim=(TILE, TILE),
        )
        ctx.synchronize()
        with product.map_to_host() as host:
            print(host)
            for row in range(SIDE):
                for column in range(SIDE):
                    var total = 0
                    for k in range(SIDE):
                        total += (row * SIDE + k) * (k - column)
                    assert_equal(host[row * SIDE + column], Float32(total))
    print("Right.")
