# Kernels whose defects `test_mutants.py` seeds: each line with a guard, a loop or a barrier is changed in turn.
from std.gpu import barrier, block_dim, block_idx, thread_idx
from std.gpu.host import DeviceContext
from std.gpu.memory import AddressSpace
from std.testing import assert_equal
from layout import TileTensor, row_major
from layout.tile_tensor import stack_allocation

comptime SIZE = 13
comptime THREADS = 8
comptime BLOCKS = 2
comptime SIDE = 6
comptime TILE = 4
comptime Numbers = row_major[SIZE]()
comptime Sums = row_major[BLOCKS]()
comptime Square = row_major[SIDE, SIDE]()


def sum_blocks(
    sums: TileTensor[mut=True, DType.float32, type_of(Sums), MutAnyOrigin],
    numbers: TileTensor[mut=False, DType.float32, type_of(Numbers), ImmutAnyOrigin],
):
    var partial = stack_allocation[dtype=DType.float32, address_space=AddressSpace.SHARED](row_major[THREADS]())
    var mine = thread_idx.x
    var place = block_dim.x * block_idx.x + mine
    partial[mine] = 0
    if place < SIZE:
        partial[mine] = numbers[place]
    barrier()
    var half = THREADS // 2
    while half > 0:
        if mine < half:
            partial[mine] += partial[mine + half]
        barrier()
        half //= 2
    if mine < 1:
        sums[block_idx.x] = partial[0]


def smooth(
    result: TileTensor[mut=True, DType.float32, type_of(Numbers), MutAnyOrigin],
    numbers: TileTensor[mut=False, DType.float32, type_of(Numbers), ImmutAnyOrigin],
):
    var window = stack_allocation[dtype=DType.float32, address_space=AddressSpace.SHARED](row_major[THREADS + 2]())
    var mine = thread_idx.x
    var place = block_dim.x * block_idx.x + mine
    if place < SIZE:
        window[mine + 1] = numbers[place]
    if mine < 1:
        window[0] = 0
        if place > 0:
            window[0] = numbers[place - 1]
    if mine + 1 == THREADS or place + 1 == SIZE:
        window[mine + 2] = 0
        if place + 1 < SIZE:
            window[mine + 2] = numbers[place + 1]
    barrier()
    if place < SIZE:
        var total: Float32 = 0
        for offset in range(3):
            total += window[mine + offset][0]
        result[place] = total


def multiply(
    product: TileTensor[mut=True, DType.float32, type_of(Square), MutAnyOrigin],
    left: TileTensor[mut=False, DType.float32, type_of(Square), ImmutAnyOrigin],
    right: TileTensor[mut=False, DType.float32, type_of(Square), ImmutAnyOrigin],
):
    var left_tile = stack_allocation[dtype=DType.float32, address_space=AddressSpace.SHARED](row_major[TILE, TILE]())
    var right_tile = stack_allocation[dtype=DType.float32, address_space=AddressSpace.SHARED](row_major[TILE, TILE]())
    var row = block_idx.y * TILE + thread_idx.y
    var column = block_idx.x * TILE + thread_idx.x
    var total: Float32 = 0
    for step in range(2):
        left_tile[thread_idx.y, thread_idx.x] = 0
        if row < SIDE and step * TILE + thread_idx.x < SIDE:
            left_tile[thread_idx.y, thread_idx.x] = left[row, step * TILE + thread_idx.x]
        right_tile[thread_idx.y, thread_idx.x] = 0
        if step * TILE + thread_idx.y < SIDE and column < SIDE:
            right_tile[thread_idx.y, thread_idx.x] = right[step * TILE + thread_idx.y, column]
        barrier()
        for k in range(TILE):
            total += left_tile[thread_idx.y, k][0] * right_tile[k, thread_idx.x][0]
        barrier()
    if row < SIDE and column < SIDE:
        product[row, column] = total


def main() raises:
    with DeviceContext() as ctx:
        var numbers = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var sums = ctx.enqueue_create_buffer[DType.float32](BLOCKS)
        var result = ctx.enqueue_create_buffer[DType.float32](SIZE)
        var left = ctx.enqueue_create_buffer[DType.float32](SIDE * SIDE)
        var product = ctx.enqueue_create_buffer[DType.float32](SIDE * SIDE)
        with numbers.map_to_host() as values:
            for i in range(SIZE):
                values[i] = Float32(i + 1)
        with left.map_to_host() as values:
            for i in range(SIDE * SIDE):
                values[i] = Float32(i * 3 % 7 + i // 5)
        var a = TileTensor(numbers, Numbers)
        var square = TileTensor(left, Square)
        ctx.enqueue_function[sum_blocks](TileTensor(sums, Sums), a, grid_dim=BLOCKS, block_dim=THREADS)
        ctx.enqueue_function[smooth](TileTensor(result, Numbers), a, grid_dim=BLOCKS, block_dim=THREADS)
        ctx.enqueue_function[multiply](
            TileTensor(product, Square), square, square, grid_dim=(2, 2), block_dim=(TILE, TILE)
        )
        ctx.synchronize()
        with sums.map_to_host() as values:
            assert_equal(values[0], 36)
            assert_equal(values[1], 55)
        with result.map_to_host() as values:
            for i in range(SIZE):
                assert_equal(values[i], 25 if i == SIZE - 1 else Float32(3 * (i + 1)))
        with product.map_to_host() as values:
            with left.map_to_host() as factors:
                for i in range(SIDE):
                    for j in range(SIDE):
                        var expected: Float32 = 0
                        for k in range(SIDE):
                            expected += factors[i * SIDE + k] * factors[k * SIDE + j]
                        assert_equal(values[i * SIDE + j], expected)
