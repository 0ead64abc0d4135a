# Multiply two matrices: each thread has one element of the product.
# How often is each number read from global memory?
from std.gpu import thread_idx
from std.gpu.host import DeviceContext
from std.testing import assert_equal
from layout import TileTensor, row_major

comptime SIDE = 6


def multiply(product: TileTensor, a: TileTensor, b: TileTensor):
    var row = thread_idx.y
    var column = thread_idx.x
    # your part: write product[row, column]
    var total: Float32 = 0
    for k in range(SIDE):
        total += a[row, k] * b[k, column]
    product[row, column] = total
    # end of your part


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
            grid_dim=1, block_dim=(SIDE, SIDE),
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
